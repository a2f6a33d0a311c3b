"""On which processors the work of a live network runs.

The network's thread stays on one, the last. What an ACK has a sender do (its TCP, and all up to the network's port) runs where the ACK
is received: so senders receive on the other processors, which leaves the network's thread its own. With two processors the other
one has enough to do with sending, and hosts that receive data do so on the network's; with more they have the others, too.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True)
class Placement:
    """Processors, by what runs there."""

    network: int | None
    """Where the network's thread stays; `None`: wherever the kernel has it."""
    senders: tuple[int, ...]
    """Where hosts receive that mostly send."""
    receivers: tuple[int, ...]
    """Where the others receive; none: where the packets come from, which is the network's thread."""


def placement(allowed: Collection[int] | None = None) -> Placement:
    """For the processors that this process may use, or for these."""
    numbers = tuple(sorted(os.sched_getaffinity(0) if allowed is None else allowed))
    if len(numbers) == 1:
        return Placement(None, numbers, numbers)
    *others, last = numbers
    return Placement(last, tuple(others), tuple(others) if len(others) > 1 else ())
