"""Scenarios that other simulators have been measured on."""
