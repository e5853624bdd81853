"""Clients other than the engine's load, one file each."""
