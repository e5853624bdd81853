"""Trifecta from Python: opens runs, draws them and starts new ones, in scripts and notebooks."""
