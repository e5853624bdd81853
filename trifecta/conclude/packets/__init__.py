"""What captured packets say: metrics, where time and octets went, and what figures draw."""
