"""The experiments of the marker. Each file is found by itself."""
