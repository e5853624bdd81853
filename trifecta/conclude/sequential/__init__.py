"""Requests made one after the other: round trips, progression, tests of no difference."""
