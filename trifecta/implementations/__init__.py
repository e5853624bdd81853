"""Real programs that speak HTTP, each behind one small adapter file."""
