"""Requests to a server that runs elsewhere, over the path as it is: names, looks, manners, and how one trial runs."""
