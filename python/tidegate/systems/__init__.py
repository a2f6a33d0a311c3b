"""The systems that Tidegate carries, one folder each."""
