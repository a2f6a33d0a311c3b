"""Ways to run a network."""
