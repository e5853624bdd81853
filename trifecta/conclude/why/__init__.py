"""Causes by intervention: what a run points to before, and what the runs without each cause say after."""
