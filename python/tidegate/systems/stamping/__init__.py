"""Queue-occupancy stamping: switches write the state of their egress queues into packets."""
