"""Switches that know each link's flows tell hosts the rate at which to send."""
