"""How long a server takes from its start until it answers a real request over each protocol."""
