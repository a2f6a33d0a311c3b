"""The buffer of a queue: the Stanford rule, with a floor.

G. Appenzeller, I. Keslassy, N. McKeown, "Sizing Router Buffers", SIGCOMM 2004: RTT * C / sqrt(n) for n long flows. The rule is made for
many flows that do not go in step; with some hundred short round-trip times it comes to 4 packets, in which flows live by timeouts. So
there is a floor, and one flow gets RTT * C.
"""

from __future__ import annotations

import math

MTU = 1514
FLOOR_PACKETS = 24


def stanford(rate_bps: float, rtt_s: float, flows: int, *, floor_packets: int = FLOOR_PACKETS) -> int:
    """Bytes of a queue of `rate_bps` for so many long flows with a mean round-trip time of `rtt_s`."""
    rule = rate_bps / 8 * rtt_s / math.sqrt(max(flows, 1))
    return max(math.ceil(rule), floor_packets * MTU)
