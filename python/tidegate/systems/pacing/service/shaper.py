"""Pacing by a queueing discipline of the interface: fq, which goes by the sockets' own limits, or HTB, with a class for each flow."""

from __future__ import annotations

import socket
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from tidegate._core import TidegateError
from tidegate.systems.pacing.service.pacer import PacedFlow

# The major number of the handle, and of the classes; as in `pace.c`.
HANDLE = 0x7467
BURST_BYTES = 15_140
"""What a class may send at once: ten frames."""
# What interfaces have if nobody has chosen.
DEFAULTS = ("noqueue", "pfifo_fast", "mq", "fq_codel", "pfifo")


@contextmanager
def _netlink() -> Iterator[Any]:
    with IPRoute() as ip:
        yield ip


def _root(ip: Any, index: int) -> tuple[str, int]:
    """Kind and major number of an interface's root qdisc."""
    for qdisc in ip.get_qdiscs(index):
        if qdisc["parent"] == 0xFFFF_FFFF:
            return qdisc.get_attr("TCA_KIND"), qdisc["handle"] >> 16
    return "noqueue", 0


def install(kind: str, interfaces: Sequence[str]) -> None:
    """Put the qdisc at the root of interfaces. Raises TidegateError where the kernel has none, or another has been chosen."""
    with _netlink() as ip:
        for name in interfaces:
            index = socket.if_nametoindex(name)
            there, major = _root(ip, index)
            if there not in DEFAULTS and major != HANDLE:
                raise TidegateError(
                    f"interface {name} has the qdisc {there}, which somebody has chosen; remove it "
                    f"(tc qdisc del dev {name} root), or pace by sockets"
                )
            more = {"default": 0} if kind == "htb" else {}
            try:
                ip.tc("replace", kind, index, handle=HANDLE << 16, **more)
            except NetlinkError as error:
                remove(interfaces)
                why = "this kernel has no such qdisc" if error.code == 2 else error.args[1]
                raise TidegateError(f"interface {name}: {kind} cannot be set up: {why}") from None


def remove(interfaces: Iterable[str]) -> None:
    """Take it away again, where it is this one's."""
    with _netlink() as ip:
        for name in interfaces:
            with suppress(OSError, NetlinkError):
                index = socket.if_nametoindex(name)
                if _root(ip, index)[1] == HANDLE:
                    ip.tc("del", index=index, parent=0xFFFF_FFFF)


class Classes:
    """The classes of HTB, as the kernel has them."""

    def __init__(self, interfaces: Sequence[str]) -> None:
        self._interfaces = tuple(interfaces)
        self._rates: dict[tuple[str, int], int] = {}

    def follow(self, flows: Iterable[PacedFlow]) -> None:
        """Give each flow's class the flow's rate, where that is another than before."""
        wanted = [(flow.class_number, flow.class_rate) for flow in flows if flow.class_number]
        changed = [
            (name, number, rate)
            for name in self._interfaces
            for number, rate in wanted
            if rate and self._rates.get((name, number)) != rate
        ]
        if not changed:
            return
        with _netlink() as ip:
            for name, number, rate in changed:
                # An interface that is gone is told of elsewhere.
                with suppress(OSError, NetlinkError):
                    ip.tc(
                        "replace-class",
                        "htb",
                        socket.if_nametoindex(name),
                        handle=HANDLE << 16 | number,
                        parent=HANDLE << 16,
                        rate=rate,
                        ceil=rate,
                        burst=BURST_BYTES,
                        cburst=BURST_BYTES,
                    )
                    self._rates[name, number] = rate
