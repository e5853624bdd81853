"""Runs beside what the four studies published: ``places`` reads a run, ``result`` evaluates a whole folder."""
