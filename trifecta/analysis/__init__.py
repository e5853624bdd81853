"""Estimates, confidence sequences, verdicts, the planner and the checks. Pure: reads nothing, writes nothing."""
