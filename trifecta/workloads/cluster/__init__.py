"""A run on a cluster: the head plans and gathers, each node is a lab of its own, and a block never leaves its node."""
