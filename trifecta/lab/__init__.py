"""Hosts, the network between them, certificates, and the engine that runs in it."""
