"""Captures: dissected by tshark into four tables, from our own link or from elsewhere."""
