"""Requests between two machines and services on several, over the network as it is: a study with ``hosts``."""
