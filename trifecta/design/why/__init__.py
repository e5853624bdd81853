"""Causes of a difference, and the experiment that removes each: what `trifecta why` measures."""
