"""Meters for `tidegate switch --controller`: what comes from 10.0.0.1 is held to 100 Mbit/s, on a wire from port 1 to port 2."""

from tidegate.systems.meter.controller import Meter, MeterController, Prefix

controllers = MeterController([Meter(0, "100 Mbit/s", (Prefix("10.0.0.1/32"),))], wires={1: 2, 2: 1})
