"""Benchmarks of the link against a bare cable and its peers."""
