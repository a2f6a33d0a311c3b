"""Switches without the fixed parts of a whole one: what they refuse, and how."""

from __future__ import annotations

from typing import ClassVar, NoReturn

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control.api import Port, QueueState, SwitchApi


class Unsupported(TidegateError):
    """A switch of this kind does not have what was asked for."""


class WithoutFixedParts(SwitchApi):
    """A switch that has no queues, packet generators or counts of all packets, or cannot be asked for them.

    Each call for one raises `Unsupported`.
    """

    reason: ClassVar[str]
    """What comes before the name of what is missing, as `replays captures, and has no`."""

    def _refuse(self, what: str) -> NoReturn:
        raise Unsupported(f"{self.name} {self.reason} {what}")

    @property
    def statistics(self) -> dict[str, int]:
        """Refused."""
        self._refuse("statistics")

    def port_read(self, port: int) -> Port:
        """Refused."""
        self._refuse("ports and queues")

    def port_write(self, port: int, to: Port) -> None:
        """Refused."""
        self._refuse("ports and queues")

    def queue_read(self, port: int, queue: int = 0) -> QueueState:
        """Refused."""
        self._refuse("ports and queues")

    def generator_set(self, number: int, *, port: int, packet: bytes, period: units.Time) -> None:
        """Refused."""
        self._refuse("packet generators")

    def generator_period(self, number: int, period: units.Time) -> None:
        """Refused."""
        self._refuse("packet generators")

    def generator_stop(self, number: int) -> None:
        """Refused."""
        self._refuse("packet generators")
