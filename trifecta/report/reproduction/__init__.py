"""Runs beside what the four studies published: what they say to it, as tables, a page and data.

``places`` reads a run into what ``trifecta.analysis.published`` evaluates; ``published`` has the studies' files.
"""
