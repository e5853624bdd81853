"""The studies' own figures, drawn from what was measured here."""
