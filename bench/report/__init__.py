"""Analysis and report of a large run."""
