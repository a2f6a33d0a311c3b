"""Pacing by HTB, as the paper's hosts did with tc: all that a host sends goes through a class with the rate that switches tell.

A class counts frames, from the Ethernet header on. For hosts with one flow. Real hosts only: those of the simulator have no qdiscs.
"""

from __future__ import annotations

import socket
from dataclasses import fields
from typing import Any

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts.agents import Connection
from tidegate.lab.interfaces import HOST_INTERFACE
from tidegate.systems.pacing.agent import PacingAgent

HANDLE = 0x10000
CLASS = HANDLE | 1
BURST_BYTES = 15_140
"""What the class may send at once: ten frames."""


class _Shaped(Connection):
    """A connection whose rate is that of its host's class."""

    def __init__(self, connection: Connection, agent: HtbAgent) -> None:
        super().__init__(**{field.name: getattr(connection, field.name) for field in fields(Connection)})
        self._htb = agent

    def pace(self, rate: units.Rate | None) -> None:
        """Set the rate of the class, or take it away."""
        if rate is None:
            self._htb.lift()
        else:
            self._htb.shape(units.rate(rate))


class HtbAgent(PacingAgent):
    """Has a host's flow paced by HTB instead of its socket. Where the agent is killed, the class keeps its rate."""

    def on_open(self, now: int, connection: Connection) -> None:
        """Put HTB at the root of the host's interface; what it sends is not limited yet."""
        super().on_open(now, _Shaped(connection, self))
        if not connection.active:
            return
        try:
            inside = connection.in_namespace()
        except TidegateError as error:
            raise TidegateError(f"pacing by HTB: {error}, or take the scheme fq") from None
        with inside:
            self._netlink = IPRoute()
            self._index = socket.if_nametoindex(HOST_INTERFACE)
            try:
                self._tc("replace", handle=HANDLE, default=1)
            except NetlinkError as error:
                raise TidegateError(
                    f"pacing by HTB: {error.args[1]}; a kernel needs CONFIG_NET_SCH_HTB for it, or take the scheme fq"
                ) from None

    def on_closed(self, now: int, connection: Connection) -> None:
        """The namespace goes with its qdisc."""
        super().on_closed(now, connection)
        if connection.active:
            self._netlink.close()

    def shape(self, payload: int) -> None:
        """Give the class the rate of frames for so much payload."""
        rate = round(payload / self._payload) // 8
        self._tc(
            "replace-class",
            handle=CLASS,
            parent=HANDLE,
            rate=rate,
            ceil=rate,
            burst=BURST_BYTES,
            cburst=BURST_BYTES,
        )

    def lift(self) -> None:
        """What is in no class is not limited."""
        self._tc("del-class", handle=CLASS)

    def class_rate(self) -> int:
        """What the kernel's class has, in bytes/s of frames."""
        (found,) = self._netlink.get_classes(self._index)
        return int(found.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")["rate"])

    def _tc(self, command: str, **options: Any) -> None:
        self._netlink.tc(command, "htb", self._index, **options)
