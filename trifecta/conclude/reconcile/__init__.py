"""Contradicting claims of the published studies, pair by pair, held against their runs, experiments and maps."""
