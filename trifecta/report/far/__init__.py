"""Servers elsewhere, as a terminal and a report tell of them."""
