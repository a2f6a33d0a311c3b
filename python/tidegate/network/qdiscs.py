"""Linux's own qdiscs at ports of Linux routers: for live runs, as the simulator has none of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from tidegate import units
from tidegate._core import TidegateError

QdiscKind = Literal["police", "tbf", "htb", "fq_codel", "cake"]


@dataclass(frozen=True)
class Qdisc:
    """The qdisc of a Linux router's port, in place of the link's queue.

    Rate and sizes count frames, from the Ethernet header on.

    `police` drops what exceeds a token bucket; `tbf` and `htb` shape into one queue; `fq_codel` is HTB with FQ-CoDel's queues; `cake` shapes
    into queues by flow.
    """

    kind: QdiscKind
    rate: units.Rate
    burst: units.Size = "15140 B"
    """Of `police`: bytes that pass at once."""
    limit: units.Size = "1 MB"
    """Of the others: bytes that wait at most."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(QdiscKind):
            raise TidegateError(
                f"there is no qdisc {self.kind!r} here; known: {', '.join(get_args(QdiscKind))}"
            )
        if units.rate(self.rate) < 8000:
            raise TidegateError(f"the qdisc's rate is {self.rate}; give 8 kbit/s or more")
        for name, size in (("burst", self.burst), ("limit", self.limit)):
            if not 1514 <= units.size(size) < 2**32:
                raise TidegateError(f"the qdisc's {name} is {size}; give a frame of 1514 bytes to 4 GB")
