"""``trifecta.open`` and a first query over a large run."""
