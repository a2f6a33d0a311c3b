"""Which packets are for which meter: the tables of `common.p4` for forwarding and classification, and the meters in them.

`MeterTables` is what the controllers of `meter.p4` and `fair.p4` have in common. What a meter's registers hold is theirs.
"""

from __future__ import annotations

import ipaddress
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.control import operations as op
from tidegate.network import FiveTuple
from tidegate.p4 import forward

log = logging.getLogger("tidegate.meter")

METERS = 65_536
LEAST_BPS = 64_000
"""The least target: with less, the resolution of a register (122 bit/s in `meter.p4`) is no small share of it."""
REMOVED = 1
"""Stands in the register `target` of a meter that was removed: nobody's target."""
MATCHES = ("flows4", "flows6", "sources4", "sources6", "targets4", "targets6", "ports")
"""The tables that say which packets are for which meter."""
MOST_NAMED = 8
"""Meters in a warning."""


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


def target_of(meter: Meter, most_bps: float) -> int:
    """A meter's target in bit/s; raises `TidegateError` if it is below `LEAST_BPS` or above `most_bps`."""
    target = units.rate(meter.target)
    if not LEAST_BPS <= target <= most_bps:
        raise TidegateError(
            f"the target of meter {meter.number} is {meter.target}; give {units.show_rate(LEAST_BPS)} to {units.show_rate(int(most_bps))}"
        )
    return target


class MeterTables(Controller, ABC):
    """The meters of one switch: forwarding, which packets each is for, and its entry in `meters`.

    `ports` says where packets go: a port for each Ethernet address (`Network.forwarding`), or what gives them when it starts; `wires`, where those go
    whose address is not among them, by the port that they come in by: `{1: 2, 2: 1}` is a wire. Meters can be added, removed
    and given other targets while it runs.

    On a switch that has meters already, which meters there are and their targets are the switch's: what `retarget`, `add` and
    `remove` have done stays, and a warning names the meters that are otherwise than in `meters`. Their matches and all other settings
    are this controller's. Meters that the switch has never had are added.
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
    def _adopted(self, switch: SwitchApi, targets: Mapping[int, int]) -> None:
        """Note meters that the switch has; `targets` is what the register `target` says of each."""

    def _forget(self, switch: SwitchApi, number: int) -> None:
        """Give back what `_set_up` has taken for a meter whose entries are gone."""
        del self._targets[number]

    def _configured(self, switch: SwitchApi, number: int, old: list[int], new: list[int]) -> None:
        """Called when a meter that is in use has got another configuration; `_targets` still has its old target."""

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; of a switch that has meters already, take them over."""
        self._targets: dict[int, float] = {}
        # Entries by table and handle: of each meter its own, and after it those of its matches.
        self._handles: dict[int, list[tuple[str, int]]] = {}
        forward.fill(switch, self._ports() if callable(self._ports) else self._ports, self._wires)
        self._adopt(switch)
        known = [meter for meter in self._meters if meter.number in self._targets]
        others = [meter for meter in self._meters if meter.number not in self._targets]
        removed = self._removed(switch, others)
        self._match(switch, known)
        for meter in others:
            if meter.number not in removed:
                self.add(switch, meter)
        self._warn(known, removed)

    def _adopt(self, switch: SwitchApi) -> None:
        """Take over the meters that the switch has, with this controller's settings."""
        entries = {int(entry.match[0].value or 0): entry for entry in switch.table_entries("meters")}
        words = switch.register_read("target", 0, max(entries, default=-1) + 1)
        # Others are entries that somebody else has made.
        targets = {number: int(words[number]) for number in entries if words[number] > REMOVED}
        if not targets:
            return
        self._adopted(switch, targets)
        for number in targets:
            self._handles[number] = [("meters", entries[number].handle)]
            values = self._configuration(number, self._targets[number])
            self._configure(switch, number, list(entries[number].values), values)
        for table in MATCHES:
            for entry in switch.table_entries(table):
                # Exemptions have no number.
                if entry.values and entry.values[0] in self._handles:
                    self._handles[entry.values[0]].append((table, entry.handle))

    def _removed(self, switch: SwitchApi, meters: list[Meter]) -> set[int]:
        """Which of these meters were removed from the switch."""
        numbers = {meter.number for meter in meters if 0 <= meter.number < METERS}
        words = switch.register_read("target", 0, max(numbers, default=-1) + 1)
        return {number for number in numbers if words[number] == REMOVED}

    def _match(self, switch: SwitchApi, meters: list[Meter]) -> None:
        """Give meters that the switch has these matches. Old ones go first: they may be another meter's now."""
        asked = [(meter.number, *table_entry(match)) for meter in meters for match in meter.matches]
        reads = [op.TableRead(table, 0, (key, None)) for _, table, key in asked]
        kept: dict[int, set[tuple[str, int]]] = {meter.number: set() for meter in meters}
        missing = []
        for (number, table, key), answer in zip(asked, switch.batch(reads), strict=True):
            if isinstance(answer, TidegateError):
                raise answer
            rows, _ = answer
            places = {(table, row[0]) for row in rows} & set(self._handles[number])
            kept[number] |= places
            if not places:
                missing.append((number, table, key))
        for number, places in kept.items():
            own, *matched = self._handles[number]
            self._delete(switch, (place for place in matched if place not in places))
            self._handles[number] = [own, *places]
        for number, table, key in missing:
            self._handles[number].append((table, switch.table_add(table, key, "use", [number])))

    def _warn(self, known: list[Meter], removed: set[int]) -> None:
        """Name the meters that are not as `meters` has them."""
        others = [meter.number for meter in known if self._held(meter) != self._targets[meter.number]]
        for numbers, what in (
            (others, "keep the targets that the switch has; retarget gives them others"),
            (sorted(removed), "stay removed; add brings them back"),
            (
                [meter.number for meter in self._meters if not meter.matches],
                "have no matches: no packet is for them",
            ),
        ):
            if numbers:
                named = ", ".join(map(str, numbers[:MOST_NAMED])) + (
                    f" and {len(numbers) - MOST_NAMED} more" if len(numbers) > MOST_NAMED else ""
                )
                log.warning("meters %s %s", named, what)

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
            for match, (table, key) in zip(meter.matches, matches, strict=True):
                try:
                    handles.append((table, switch.table_add(table, key, "use", [number])))
                except TidegateError as error:
                    raise TidegateError(f"meter {number}, {match}: {error}") from None
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
        switch.register_write("target", [REMOVED], number)

    def retarget(self, switch: SwitchApi, number: int, target: units.Rate) -> None:
        """Set a new target rate."""
        if number not in self._targets:
            raise TidegateError(f"there is no meter {number} to give another target")
        held = self._held(Meter(number, target, ()))
        if held == self._targets[number]:
            return
        old = self._configuration(number, self._targets[number])
        self._configure(switch, number, old, self._configuration(number, held))
        self._change(switch, number, held)

    def _configure(self, switch: SwitchApi, number: int, old: list[int], new: list[int]) -> None:
        """Give a meter in use another configuration."""
        if new != old:
            table, handle = self._handles[number][0]
            switch.table_modify(table, handle, "configure", new)
            self._configured(switch, number, old, new)


def table_entry(match: Match) -> tuple[str, list[str | int]]:
    """The table and key of a match."""
    if isinstance(match, FiveTuple):
        table = "flows6" if ":" in match.source else "flows4"
        return table, [match.source, match.target, match.protocol, match.source_port, match.target_port]
    if isinstance(match, IngressPort):
        return "ports", [match.port]
    if match.direction not in ("from", "to"):
        raise TidegateError(f"a prefix is one that packets are from or to, not {match.direction!r}")
    try:
        ipaddress.ip_network(match.prefix)
    except ValueError as error:
        raise TidegateError(f"a prefix of a meter: {error}; write it as 10.0.0.0/8") from None
    family = "6" if ":" in match.prefix else "4"
    return ("sources" if match.direction == "from" else "targets") + family, [match.prefix]
