"""Ways to bring implementations into the cache. The table of recipes is in ``registry.py``."""
