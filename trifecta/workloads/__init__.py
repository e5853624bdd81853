"""What is asked of the network, and the runner of a study."""
