"""What a user waits for: the command line, the lab, and the share of a race that is not spent measuring."""
