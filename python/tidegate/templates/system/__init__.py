"""Marks ECN-capable packets that have waited in a queue for longer than a threshold."""
