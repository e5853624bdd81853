"""Requests between two machines, over the network as it is: a study with ``hosts``."""
