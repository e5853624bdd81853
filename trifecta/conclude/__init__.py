"""Turns the tables of a finished run into what is said of it: statistics, dissection, derived tables.

Nothing here draws; ``trifecta.report`` does, and computes nothing.
"""
