"""The experiments of the combination. Each file is found by itself."""
