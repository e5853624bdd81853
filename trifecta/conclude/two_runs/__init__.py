"""Two runs side by side: the same questions of both, and what else of them is not the same."""
