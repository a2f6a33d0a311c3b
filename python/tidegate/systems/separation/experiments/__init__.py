"""Experiments of flow separation."""
