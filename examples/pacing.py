"""Pacing for `tidegate switch --controller`: what leaves by port 2 shares 50 Mbit/s.

Frames from port 1 leave by port 2, and the other way round.
"""

from tidegate.systems.pacing.controller import ManagedLink, PacingController

controllers = PacingController({}, {2: ManagedLink("50 Mbit/s", number=1)}, wires={1: 2, 2: 1})
