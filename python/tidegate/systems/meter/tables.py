"""Which packets are for which meter: the tables of `common.p4` for forwarding and classification, and the meters in them.

`MeterTables` is what the controllers of `meter.p4` and `fair.p4` have in common. What a meter's registers hold is theirs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.network import FiveTuple
from tidegate.p4 import forward

METERS = 65_536
LEAST_BPS = 64_000
"""The least target: with less, the resolution of a register (122 bit/s in `meter.p4`) is no small share of it."""


@dataclass(frozen=True)
class Prefix:
    """Packets from or to a prefix (`10.0.0.0/8`, `2001:db8::/32`)."""

    prefix: str
    direction: Literal["from", "to"] = "from"


@dataclass(frozen=True)
class IngressPort:
    """Packets that arrive by a port of the switch."""

    port: int


Match = FiveTuple | Prefix | IngressPort


@dataclass(frozen=True)
class Meter:
    """A meter: its number, target rate and packets."""

    number: int
    """0 to 65535."""
    target: units.Rate
    """Target rate in IP bytes, as RFC 2697 and RFC 2698 count."""
    matches: tuple[Match, ...]
    """The packets that it meters. A flow takes precedence over a prefix, a source prefix over a destination prefix, a prefix over a port."""


class MeterTables(Controller, ABC):
    """The meters of one switch: forwarding, which packets each is for, and its entry in `meters`.

    `ports` says where packets go: a port for each Ethernet address (`Network.forwarding`), or what gives them when it starts; `wires`, where those go
    whose address is not among them, by the port that they come in by: `{1: 2, 2: 1}` is a wire. Meters can be added, removed
    and given other targets while it runs. What it needs to go on after a restart is in the switch.
    """

    clock = "1 us"

    def __init__(
        self,
        meters: Iterable[Meter] = (),
        *,
        ports: Mapping[str, int] | Callable[[], Mapping[str, int]] | None = None,
        wires: Mapping[int, int] | None = None,
    ) -> None:
        self._meters = list(meters)
        self._ports = ports or {}
        self._wires = dict(wires or {})

    @abstractmethod
    def _held(self, meter: Meter) -> float:
        """A meter's target as the registers hold it, in bit/s. Raises `TidegateError` if they cannot."""

    @abstractmethod
    def _set_up(self, switch: SwitchApi, number: int, target: float) -> None:
        """Write the registers of a new meter, and note its target. An error leaves nothing but registers behind."""

    @abstractmethod
    def _change(self, switch: SwitchApi, number: int, target: float) -> None:
        """Write the registers of a meter that has been given another target, and note it."""

    @abstractmethod
    def _configuration(self, number: int, target: float) -> list[int]:
        """What the action `configure` takes."""

    @abstractmethod
    def _adopted(self, switch: SwitchApi, numbers: list[int]) -> None:
        """Read what the switch's registers say of meters that it has: `_targets` at least."""

    def _forget(self, switch: SwitchApi, number: int) -> None:
        """Give back what `_set_up` has taken for a meter whose entries are gone."""
        del self._targets[number]

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables, or read the meters that the switch already has."""
        self._targets: dict[int, float] = {}
        self._handles: dict[int, list[tuple[str, int]]] = {}
        forward.fill(switch, self._ports() if callable(self._ports) else self._ports, self._wires)
        self._adopt(switch)
        for meter in self._meters:
            if meter.number in self._targets:
                self.retarget(switch, meter.number, meter.target)
            else:
                self.add(switch, meter)

    def _adopt(self, switch: SwitchApi) -> None:
        """Take over the meters that the switch has."""
        present = [int(entry.match[0].value or 0) for entry in switch.table_entries("meters")]
        if not present:
            return
        self._adopted(switch, present)
        for entry in switch.table_entries("meters"):
            self._handles.setdefault(int(entry.match[0].value or 0), []).append(("meters", entry.handle))
        for table in ("flows4", "flows6", "sources4", "sources6", "targets4", "targets6", "ports"):
            for entry in switch.table_entries(table):
                # Others are exemptions that somebody else has made.
                if entry.values:
                    self._handles.setdefault(entry.values[0], []).append((table, entry.handle))

    def add(self, switch: SwitchApi, meter: Meter) -> None:
        """Add a meter."""
        number = meter.number
        if not 0 <= number < METERS:
            raise TidegateError(f"there is no meter {number}; there are 0 to {METERS - 1}")
        if number in self._targets:
            raise TidegateError(
                f"meter {number} is there already; remove it first, or give it another target"
            )
        target = self._held(meter)
        matches = [table_entry(match) for match in meter.matches]
        before = switch.register_read("target", number, 1)
        handles: list[tuple[str, int]] = []
        try:
            self._set_up(switch, number, target)
            values = self._configuration(number, target)
            handles.append(("meters", switch.table_add("meters", [number], "configure", values)))
            for table, key in matches:
                handles.append((table, switch.table_add(table, key, "use", [number])))
        except Exception:
            self._delete(switch, handles)
            if number in self._targets:
                self._forget(switch, number)
            switch.register_write("target", before, number)
            raise
        self._handles[number] = handles

    def _delete(self, switch: SwitchApi, handles: Iterable[tuple[str, int]]) -> None:
        """Delete entries, a meter's own last: packets that still match it pass then."""
        for table, handle in reversed(list(handles)):
            switch.table_delete(table, handle)

    def remove(self, switch: SwitchApi, number: int) -> None:
        """Remove a meter; its packets pass."""
        if number not in self._targets:
            raise TidegateError(f"there is no meter {number} to remove")
        self._delete(switch, self._handles.pop(number))
        self._forget(switch, number)
        switch.register_write("target", [0], number)

    def retarget(self, switch: SwitchApi, number: int, target: units.Rate) -> None:
        """Set a new target rate."""
        if number not in self._targets:
            raise TidegateError(f"there is no meter {number} to give another target")
        held = self._held(Meter(number, target, ()))
        if held == self._targets[number]:
            return
        ((_, handle),) = [entry for entry in self._handles[number] if entry[0] == "meters"]
        switch.table_modify("meters", handle, "configure", self._configuration(number, held))
        self._change(switch, number, held)


def table_entry(match: Match) -> tuple[str, list[str | int]]:
    """The table and key of a match."""
    if isinstance(match, FiveTuple):
        table = "flows6" if ":" in match.source else "flows4"
        return table, [match.source, match.target, match.protocol, match.source_port, match.target_port]
    if isinstance(match, IngressPort):
        return "ports", [match.port]
    if match.direction not in ("from", "to"):
        raise TidegateError(f"a prefix is one that packets are from or to, not {match.direction!r}")
    family = "6" if ":" in match.prefix else "4"
    return ("sources" if match.direction == "from" else "targets") + family, [match.prefix]
