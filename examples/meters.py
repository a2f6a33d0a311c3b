"""Meters for `tidegate switch --controller`: packets from 10.0.0.1 are limited to 100 Mbit/s, which its flows share.

Frames from port 1 leave by port 2, and the other way round.
"""

from tidegate.systems.meter.fair import FairMeters
from tidegate.systems.meter.tables import Meter, Prefix

controllers = FairMeters([Meter(0, "100 Mbit/s", (Prefix("10.0.0.1/32"),))], wires={1: 2, 2: 1})
