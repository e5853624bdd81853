"""Ways to bring implementations into the cache. The table of recipes is in ``registry.py``."""

from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"
"""Lock files, and the sources of our small programs."""
