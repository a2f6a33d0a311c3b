"""What other simulators and a real kernel were measured on, for comparison with them. Each file is found by itself."""
