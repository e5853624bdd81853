"""Benchmarks against peers. Each is one command: ``python -m bench.load``, ``bench.link``, ..."""
