"""Requests of a client to a server: the programs of a study, and how one trial of them runs."""
