"""Meter, DualPI2 and stamping on one switch."""
