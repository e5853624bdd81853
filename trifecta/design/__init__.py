"""A study and what follows from it: pure, no input or output."""
