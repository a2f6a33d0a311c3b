"""How quantities are read of a switch: a function for each group of `quantities.GROUPS`.

Each gives names, labels and values. It gets the labels that are asked for, from the first on, and may give more than is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from tidegate import units
from tidegate.control import operations as op
from tidegate.control.objects import Words

if TYPE_CHECKING:
    from tidegate.control.api import SwitchApi
    from tidegate.p4 import Program

MAX_CELLS = 64
"""The default of `Subject.cells`."""
MAX_BYTES = 32 << 20
"""Bytes of all registers that are looked at for this, and of all counters; so much takes some milliseconds."""
MAX_METERS = 65_536
"""Cells of all meters that are looked at."""
SLICE = 64 << 10
"""Bytes that are read at a time: packets wait meanwhile."""
METERS_SLICE = 1024
"""Cells of a meter that are read at a time."""

INTERFACE = {
    "truncated": "longer than a port can take",
    "overrun": "came faster than they were taken",
    "wrong_size": "longer than the interface's MTU, or shorter than an Ethernet header",
    "refused": "not taken by the kernel",
}
"""Frames dropped at an interface, by the name of the count."""

Labels = tuple[str, ...]


@dataclass(frozen=True)
class Subject:
    """What quantities are read of: a switch, and what its backend has besides."""

    api: SwitchApi
    core: Any
    """The engine's surface of the switch: what `SwitchApi` has no method for."""
    program: Callable[[], Program]
    """Which it runs now."""
    ports: Sequence[int] | None = None
    """Ports that have queues; `None`: the switch has no fixed parts."""
    interfaces: Callable[[], Sequence[tuple[int, str]]] | None = None
    """Numbers and names of ports that are interfaces; `statistics` has their counts."""
    statistics: Callable[[], Mapping[str, Any]] | None = None
    notes: Callable[[], Mapping[str, float]] | None = None
    """Last value that a controller noted."""
    planes: Callable[[], Mapping[str, int]] | None = None
    """What a P4Runtime server counts."""
    dropped: Callable[[], Mapping[str, int]] | None = None
    """Messages that controllers did not take in time."""
    flows: Callable[[], Sequence[tuple[str, Mapping[str, Any]]]] | None = None
    """Labels of the network's flows, and what came of each so far."""
    cells: int = MAX_CELLS
    """Cells of a register, counter or meter that are shown if none is asked for: the first that are not zero."""


Value = tuple[str, tuple[object, ...], float]
"""A quantity's name, labels, value."""


def is_of(asked: str, has: str) -> bool:
    """Whether a label is the one that is asked for: names of a program's objects may be a suffix."""
    return asked == has or has.endswith(f".{asked}")


def interfaces(subject: Subject, _: Labels) -> Iterator[Value]:
    """Counts of interfaces, and how late frames left."""
    assert subject.interfaces is not None
    assert subject.statistics is not None
    state = subject.statistics()
    for port, row in zip(subject.interfaces(), state["ports"], strict=True):
        for way in ("received", "sent"):
            yield "port_packets", (*port, way), row[way]
            yield "port_bytes", (*port, way), row[f"{way}_bytes"]
        for reason in INTERFACE:
            yield "port_dropped", (*port, reason), row[reason]
        for what in ("completed", "segmented", "merged"):
            yield "port_changed", (*port, what), row[what]
        yield "port_info", (*port, row["kind"]), 1
        yield "port_mtu_bytes", port, row["mtu"]
        yield "port_up", port, row["up"]
    for share, key in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"), ("0.999", "p999"), ("1", "max")):
        yield "lateness_seconds", (share,), (state["lateness"][key] or 0) / units.PS_PER_S
    yield "wakeups", (), state["wakeups"]


def queues(subject: Subject, only: Labels) -> Iterator[Value]:
    """What queues have and have counted."""
    api = subject.api
    for port in subject.ports or ():
        if only and only[0] != str(port):
            continue
        for number in range(len(api.port_read(port).queues)):
            if only[1:] and only[1] != str(number):
                continue
            queue, name = api.queue_read(port, number), (port, number)
            yield "queue_packets", name, queue.packets
            yield "queue_bytes", name, queue.bytes
            yield "queue_dropped", (*name, "queue full"), queue.dropped
            yield "queue_dropped", (*name, "egress"), queue.dropped_in_egress
            yield "queue_depth_packets", name, queue.waiting_packets
            yield "queue_depth_bytes", name, queue.waiting_bytes
            yield "queue_wait_seconds", name, queue.wait_sum / units.PS_PER_S


def packets(subject: Subject, _: Labels) -> Iterator[Value]:
    """Where every packet is."""
    for what, count in subject.api.statistics.items():
        yield "packets", (what,), count


def drops(subject: Subject, _: Labels) -> Iterator[Value]:
    """Drops by reason."""
    for reason, count in subject.api.drops.items():
        yield "dropped", (reason,), count


def digests(subject: Subject, _: Labels) -> Iterator[Value]:
    """Lost digests."""
    yield "digests_lost", (), subject.core.act(op.DigestsLost())


def notes(subject: Subject, _: Labels) -> Iterator[Value]:
    """What controllers noted last."""
    assert subject.notes is not None
    for quantity, value in dict(subject.notes()).items():
        yield "note", (quantity,), value


def tables(subject: Subject, _: Labels) -> Iterator[Value]:
    """Entries and direct counters of tables."""
    for table in subject.program().summary["tables"]:
        name, start, sums = table["name"], 0, np.zeros(2, dtype=np.uint64)
        while start is not None:
            # Packets wait while some entries are summed, and go on in between.
            ((_, size, entries, *counts, start),) = subject.core.act(op.TableTotals(name, start))
            counted = counts[0] is not None
            if counted:
                sums += np.array(counts, dtype=np.uint64)
        yield "table_entries", (name,), entries
        yield "table_size", (name,), size
        if counted:
            yield "table_packets", (name,), int(sums[0])
            yield "table_bytes", (name,), int(sums[1])


def _declared(subject: Subject, kind: str, only: Labels) -> Iterator[str]:
    """Full names of a program's arrays: all, or those that a name is of."""
    for item in subject.program().summary[kind]:
        if item["size"] is not None and (not only or is_of(only[0], item["name"])):
            yield item["name"]


def _index(only: Labels) -> int | None:
    return int(only[1]) if only[1:] and only[1].isascii() and only[1].isdecimal() else None


def _shown(
    size: int, cell_bytes: int, room: int, most: int, read: Callable[[int, int], Words]
) -> tuple[list[tuple[int, Words]], int, int]:
    """The first `most` cells that are not zero with their values, how many there are, and how many cells were looked at.

    Read slice by slice, no more than there is room for.
    """
    looked = min(size, room // cell_bytes)
    step = max(1, SLICE // cell_bytes)
    shown: list[tuple[int, Words]] = []
    there = 0
    for start in range(0, looked, step):
        cells = read(start, min(step, looked - start))
        (found,) = np.nonzero(cells if cells.ndim == 1 else cells.any(axis=1))
        there += len(found)
        shown += [(start + int(at), cells[at]) for at in found[: most - len(shown)]]
    return shown, there, looked


def _sizes(subject: Subject, kind: str) -> dict[str, dict[str, Any]]:
    return {item["name"]: item for item in subject.program().summary[kind]}


def _number(cell: Words) -> float:
    """A cell of a register; its least significant word comes first."""
    return float(sum(int(word) << 64 * at for at, word in enumerate(np.atleast_1d(cell))))


def registers(subject: Subject, only: Labels) -> Iterator[Value]:
    """Cells of registers."""
    index = _index(only)
    declared = _sizes(subject, "registers")
    room = MAX_BYTES
    for name in _declared(subject, "registers", only):
        if index is not None:
            yield "register", (name, index), _number(subject.api.register_read(name, index, 1)[0])
            continue
        size, width = declared[name]["size"], declared[name]["bits"]
        cell_bytes = 8 * max(1, -(-width // 64))
        read = partial(subject.api.register_read, name)
        shown, there, looked = _shown(size, cell_bytes, room, subject.cells, read)
        room -= looked * cell_bytes
        yield "register_cells_not_zero", (name,), there
        yield "register_cells_left_out", (name,), size - looked + there - len(shown)
        for cell, value in shown:
            yield "register", (name, cell), _number(value)


def counters(subject: Subject, only: Labels) -> Iterator[Value]:
    """Cells of counters."""
    index = _index(only)
    declared = _sizes(subject, "counters")
    room = MAX_BYTES
    for name in _declared(subject, "counters", only):
        if index is not None:
            shown = [(index, subject.api.counter_read(name, index, 1)[0])]
        else:
            size = declared[name]["size"]
            read = partial(subject.api.counter_read, name)
            shown, there, looked = _shown(size, 16, room, subject.cells, read)
            room -= looked * 16
            yield "counter_cells_left_out", (name,), size - looked + there - len(shown)
        for cell, counts in shown:
            yield "counter_packets", (name, cell), counts[0]
            yield "counter_bytes", (name, cell), counts[1]


def meters(subject: Subject, only: Labels) -> Iterator[Value]:
    """Rates of meters."""
    index = _index(only)
    declared = _sizes(subject, "meters")
    room = MAX_METERS
    for name in _declared(subject, "meters", only):
        size = declared[name]["size"]
        looked = min(size, room)
        first, end = (0, looked) if index is None else (index, index + 1)
        shown = there = 0
        for start in range(first, end, METERS_SLICE):
            count = min(METERS_SLICE, end - start)
            for cell, rates in enumerate(subject.core.act(op.MeterRead(name, start, count)), start):
                if rates is None:
                    continue
                there += 1
                if shown == subject.cells:
                    continue
                shown += 1
                committed, burst, peak, peak_burst = rates
                values = (committed // 1000, burst, peak // 1000, peak_burst)
                for quantity, value in zip(METERS, values, strict=True):
                    yield quantity, (name, cell), value
        if index is None:
            room -= looked
            yield "meter_cells_left_out", (name,), size - looked + there - shown


def planes(subject: Subject, _: Labels) -> Iterator[Value]:
    """What a P4Runtime server counts."""
    assert subject.planes is not None
    for what, count in subject.planes().items():
        if what == "streams":
            yield "p4runtime_streams", (), count
        else:
            yield "p4runtime_dropped", (what.removesuffix("_dropped"),), count


def controllers(subject: Subject, _: Labels) -> Iterator[Value]:
    """Messages that controllers lost."""
    assert subject.dropped is not None
    for what, count in subject.dropped().items():
        yield "controller_dropped", (what,), count


def flows(subject: Subject, _: Labels) -> Iterator[Value]:
    """What came of flows."""
    assert subject.flows is not None
    for label, outcome in subject.flows():
        for quantity, count in FLOWS.items():
            if count in outcome:
                yield quantity, (label,), outcome[count]


METERS = ("meter_committed_rate", "meter_committed_burst", "meter_peak_rate", "meter_peak_burst")
"""Of a cell, in the order in which a meter is read."""
FLOWS = {
    "flow_received_bytes": "bytes_received",
    "flow_segments_sent": "segments_sent",
    "flow_retransmits": "retransmits",
    "flow_timeouts": "timeouts",
    "flow_datagrams_received": "datagrams_received",
}
"""Quantities of flows, and what they are in a flow's outcome."""
