"""Servers, one file each; the table is in ``implementations/registry.py``."""
