"""Everything that can be read of a switch, by name: one list for `SwitchApi.record`, Prometheus, `--watch` and the docs.

A quantity has labels that tell its values apart: `queue_depth_packets` has a port and a queue. In notes its values are called
`queue_depth_packets[1,0]`, for Prometheus `tidegate_queue_depth_packets{port="1",queue="0"}`. Bytes are bytes, times seconds. A `counter`
only grows; a `gauge` is as it is now.

A new quantity is an entry of `GROUPS` and a line where its group is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from tidegate import units
from tidegate._core import TidegateError

if TYPE_CHECKING:
    from tidegate.control.api import SwitchApi
    from tidegate.p4 import Program

MAX_CELLS = 64
"""Cells of a register, counter or meter that are shown if none is asked for: the first that are not zero."""

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


@dataclass(frozen=True)
class Quantity:
    """Something that can be read."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: Labels = ()


Value = tuple[str, tuple[object, ...], float]
"""A quantity's name, labels, value."""


@dataclass(frozen=True)
class Group:
    """Quantities that are read together. `read` gets the labels that are asked for, from the first on, and may give more."""

    where: str
    quantities: tuple[Quantity, ...]
    read: Callable[[Subject, Labels], Iterator[Value]]
    there: Callable[[Subject], bool] = lambda _: True
    if_any: bool = False
    """Left out where there are no values."""


@dataclass
class Family:
    """A quantity with its values."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: Labels
    rows: list[tuple[Labels, float]] = field(default_factory=list)


# What is read.


def _interfaces(subject: Subject, _: Labels) -> Iterator[Value]:
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


def _queues(subject: Subject, only: Labels) -> Iterator[Value]:
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


def _packets(subject: Subject, _: Labels) -> Iterator[Value]:
    for what, count in subject.api.statistics.items():
        yield "packets", (what,), count


def _drops(subject: Subject, _: Labels) -> Iterator[Value]:
    for reason, count in subject.api.drops.items():
        yield "dropped", (reason,), count


def _digests(subject: Subject, _: Labels) -> Iterator[Value]:
    yield "digests_lost", (), subject.core.digests_lost()


def _notes(subject: Subject, _: Labels) -> Iterator[Value]:
    assert subject.notes is not None
    for quantity, value in dict(subject.notes()).items():
        yield "note", (quantity,), value


def _tables(subject: Subject, _: Labels) -> Iterator[Value]:
    for name, size, entries, packets, counted in subject.core.table_totals():
        yield "table_entries", (name,), entries
        yield "table_size", (name,), size
        if packets is not None:
            yield "table_packets", (name,), packets
            yield "table_bytes", (name,), counted or 0


def _declared(subject: Subject, kind: str, only: Labels) -> Iterator[str]:
    """Full names of a program's arrays: all, or those that a name is of."""
    for item in subject.program().summary[kind]:
        if item["size"] is not None and (not only or _is(only[0], item["name"])):
            yield item["name"]


def _index(only: Labels) -> int | None:
    return int(only[1]) if only[1:] and only[1].isascii() and only[1].isdecimal() else None


def _registers(subject: Subject, only: Labels) -> Iterator[Value]:
    index = _index(only)
    for name in _declared(subject, "registers", only):
        start, count = (0, None) if index is None else (index, 1)
        cells = subject.api.register_read(name, start, count)
        values = cells if cells.ndim == 1 else cells @ (2.0 ** (64 * np.arange(cells.shape[1])))
        (found,) = np.nonzero(values)
        if index is None:
            yield "register_cells_not_zero", (name,), len(found)
        for cell in found[:MAX_CELLS] if index is None else (0,):
            yield "register", (name, start + int(cell)), values[cell]


def _counters(subject: Subject, only: Labels) -> Iterator[Value]:
    index = _index(only)
    for name in _declared(subject, "counters", only):
        start, count = (0, None) if index is None else (index, 1)
        cells = subject.api.counter_read(name, start, count)
        (found,) = np.nonzero(cells.any(axis=1))
        for cell in found[:MAX_CELLS] if index is None else (0,):
            yield "counter_packets", (name, start + int(cell)), cells[cell][0]
            yield "counter_bytes", (name, start + int(cell)), cells[cell][1]


def _meters(subject: Subject, only: Labels) -> Iterator[Value]:
    index = _index(only)
    for name in _declared(subject, "meters", only):
        shown = 0
        for cell, rates in enumerate(subject.core.read("meter", name)):
            if rates is None or shown == MAX_CELLS or index not in (None, cell):
                continue
            shown += 1
            for quantity, value in zip(METERS, rates, strict=True):
                yield quantity, (name, cell), value


def _planes(subject: Subject, _: Labels) -> Iterator[Value]:
    assert subject.planes is not None
    for what, count in subject.planes().items():
        if what == "streams":
            yield "p4runtime_streams", (), count
        else:
            yield "p4runtime_dropped", (what.removesuffix("_dropped"),), count


def _controllers(subject: Subject, _: Labels) -> Iterator[Value]:
    assert subject.dropped is not None
    for what, count in subject.dropped().items():
        yield "controller_dropped", (what,), count


def _flows(subject: Subject, _: Labels) -> Iterator[Value]:
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

_PORT = ("port", "interface")
_QUEUE = ("port", "queue")
_LIVE = "`tidegate switch`"
_FIXED = f"simulator, live lab, {_LIVE}"
ALL = f"{_FIXED}, replay"
"""Where quantities can be read."""

GROUPS = (
    Group(
        _LIVE,
        (
            Quantity("port_packets", "counter", "Frames that a port has received and sent.", (*_PORT, "way")),
            Quantity("port_bytes", "counter", "Bytes of these frames.", (*_PORT, "way")),
            Quantity("port_dropped", "counter", "Frames dropped at an interface.", (*_PORT, "reason")),
            Quantity(
                "port_changed",
                "counter",
                "Frames that the port changed: checksums, segmentation, merging.",
                (*_PORT, "what"),
            ),
            Quantity("port_info", "gauge", "How a port reaches its interface.", (*_PORT, "kind")),
            Quantity(
                "port_mtu_bytes", "gauge", "Longest packet of an interface, from the IP header on.", _PORT
            ),
            Quantity("port_up", "gauge", "Whether an interface is up.", _PORT),
            Quantity(
                "lateness_seconds",
                "gauge",
                "How late frames left: quantiles by share of the frames.",
                ("share",),
            ),
            Quantity("wakeups", "counter", "How often the switch's thread has woken up."),
        ),
        _interfaces,
        lambda subject: subject.interfaces is not None and subject.statistics is not None,
    ),
    Group(
        _FIXED,
        (
            Quantity("queue_packets", "counter", "Packets enqueued.", _QUEUE),
            Quantity("queue_bytes", "counter", "Bytes of these packets.", _QUEUE),
            Quantity("queue_dropped", "counter", "Packets dropped at a queue.", (*_QUEUE, "reason")),
            Quantity("queue_depth_packets", "gauge", "Packets in the queue now.", _QUEUE),
            Quantity("queue_depth_bytes", "gauge", "Bytes in the queue now.", _QUEUE),
            Quantity(
                "queue_wait_seconds", "counter", "Sojourn time in the queue, summed over packets.", _QUEUE
            ),
        ),
        _queues,
        lambda subject: subject.ports is not None,
    ),
    Group(
        _FIXED,
        (Quantity("packets", "counter", "Packets by what became of them; held: in queues now.", ("what",)),),
        _packets,
        lambda subject: subject.ports is not None,
    ),
    Group(
        ALL,
        (Quantity("dropped", "counter", "Packets that the switch has dropped.", ("reason",)),),
        _drops,
    ),
    Group(
        ALL,
        (
            Quantity(
                "digests_lost", "counter", "Digests dropped because too many waited for the control plane."
            ),
        ),
        _digests,
    ),
    Group(
        _LIVE,
        (Quantity("note", "gauge", "Last value that a controller noted.", ("quantity",)),),
        _notes,
        lambda subject: subject.notes is not None,
    ),
    Group(
        ALL,
        (
            Quantity("table_entries", "gauge", "Entries of a table.", ("table",)),
            Quantity("table_size", "gauge", "Entries that the program declares room for.", ("table",)),
            Quantity(
                "table_packets",
                "counter",
                "Packets of a table's direct counter, all entries.",
                ("table",),
            ),
            Quantity("table_bytes", "counter", "Bytes of a table's direct counter, all entries.", ("table",)),
        ),
        _tables,
    ),
    Group(
        ALL,
        (
            Quantity("register", "gauge", "Cells that are not zero.", ("register", "index")),
            Quantity("register_cells_not_zero", "gauge", "How many cells are not zero.", ("register",)),
        ),
        _registers,
    ),
    Group(
        ALL,
        (
            Quantity(
                "counter_packets", "counter", "Packets in cells that are not zero.", ("counter", "index")
            ),
            Quantity("counter_bytes", "counter", "Bytes in cells that are not zero.", ("counter", "index")),
        ),
        _counters,
    ),
    Group(
        ALL,
        tuple(
            Quantity(name, "gauge", text, ("meter", "index"))
            for name, text in zip(
                METERS,
                (
                    "Committed rate of cells that are set: bytes or packets per second.",
                    "Committed burst: bytes or packets.",
                    "Peak rate: bytes or packets per second.",
                    "Peak burst: bytes or packets.",
                ),
                strict=True,
            )
        ),
        _meters,
    ),
    Group(
        "`tidegate switch --controller`",
        (
            Quantity(
                "controller_dropped",
                "counter",
                "Messages dropped because controllers were too slow.",
                ("what",),
            ),
        ),
        _controllers,
        lambda subject: subject.dropped is not None,
        if_any=True,
    ),
    Group(
        "`tidegate switch --grpc-addr`",
        (
            Quantity("p4runtime_streams", "gauge", "P4Runtime clients that have a stream."),
            Quantity(
                "p4runtime_dropped",
                "counter",
                "Messages dropped because P4Runtime clients were too slow.",
                ("what",),
            ),
        ),
        _planes,
        lambda subject: subject.planes is not None,
        if_any=True,
    ),
    Group(
        "simulator",
        (
            Quantity("flow_received_bytes", "counter", "Bytes that a flow's receiver has.", ("flow",)),
            Quantity("flow_segments_sent", "counter", "Segments that a TCP flow has sent.", ("flow",)),
            Quantity("flow_retransmits", "counter", "Segments sent again.", ("flow",)),
            Quantity("flow_timeouts", "counter", "Retransmission timeouts.", ("flow",)),
            Quantity("flow_datagrams_received", "counter", "Datagrams that have arrived.", ("flow",)),
        ),
        _flows,
        lambda subject: subject.flows is not None,
    ),
)

QUANTITIES = {quantity.name: quantity for group in GROUPS for quantity in group.quantities}


def families(subject: Subject) -> list[Family]:
    """All that there is, as it is now."""
    found: list[Family] = []
    for group in GROUPS:
        if not group.there(subject):
            continue
        by_name = {q.name: Family(q.name, q.kind, q.help, q.labels) for q in group.quantities}
        for name, labels, value in group.read(subject, ()):
            by_name[name].rows.append((tuple(str(label) for label in labels), float(value)))
        found.extend(family for family in by_name.values() if family.rows or not group.if_any)
    return found


def demand(subject: Subject, name: str, labels: Sequence[object]) -> Quantity:
    """The quantity of a name, if the switch has it. Raises `TidegateError` for one that it does not have."""
    quantity = QUANTITIES.get(name)
    if quantity is None:
        raise TidegateError(f"there is no quantity {name!r}; there are {', '.join(QUANTITIES)}")
    group = _group(name)
    if not group.there(subject):
        raise TidegateError(f"{subject.api.name} has no {name}; there is one here: {group.where}")
    if len(labels) > len(quantity.labels):
        has = ", ".join(quantity.labels) or "none"
        raise TidegateError(f"{name}: {len(labels)} labels are too many; it has {has}")
    return quantity


def read(subject: Subject, name: str, *labels: object) -> dict[Labels, float]:
    """A quantity's values by their labels: all of them, or those whose first labels are these.

    Names of a program's objects may be a suffix that only one has.
    """
    demand(subject, name, labels)
    only = tuple(str(label) for label in labels)
    found: dict[Labels, float] = {}
    for given, at, value in _group(name).read(subject, only):
        row = tuple(str(label) for label in at)
        if given == name and all(_is(asked, has) for asked, has in zip(only, row, strict=False)):
            found[row] = float(value)
    return found


def note_name(name: str, labels: Labels) -> str:
    """What a value is called in notes."""
    return f"{name}[{','.join(labels)}]" if labels else name


def table() -> str:
    """The list, for the documentation."""
    lines = ["| quantity | labels | kind | where | |", "|---|---|---|---|---|"]
    for group in GROUPS:
        for q in group.quantities:
            lines.append(f"| `{q.name}` | {', '.join(q.labels)} | {q.kind} | {group.where} | {q.help} |")
    return "\n".join(lines) + "\n"


def _group(name: str) -> Group:
    return next(group for group in GROUPS if any(q.name == name for q in group.quantities))


def _is(asked: str, has: str) -> bool:
    return asked == has or has.endswith(f".{asked}")
