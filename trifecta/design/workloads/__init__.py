"""Workloads: a class each, which says all that others ask of one, and the table of those that a study can name."""
