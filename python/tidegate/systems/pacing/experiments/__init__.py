"""Experiments of switch-driven pacing."""
