"""Everything that can be read of a switch, by name: one list for `SwitchApi.record`, Prometheus, `--watch` and the docs.

A quantity has labels that tell its values apart: `queue_depth_packets` has a port and a queue. In notes its values are called
`queue_depth_packets[1,0]`, for Prometheus `tidegate_queue_depth_packets{port="1",queue="0"}`. Bytes are bytes, times seconds. A `counter`
only grows; a `gauge` is as it is now.

A new quantity is an entry of `GROUPS` and a line in the function of `readings` that reads its group.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal

from tidegate._core import TidegateError
from tidegate.control import readings
from tidegate.control.readings import METERS, Labels, Subject, Value, is_of
from tidegate.suggest import did_you_mean


@dataclass(frozen=True)
class Quantity:
    """Something that can be read."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: Labels = ()


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
            Quantity("wakeups", "counter", "How often the switch's threads have woken up."),
        ),
        readings.interfaces,
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
        readings.queues,
        lambda subject: subject.ports is not None,
    ),
    Group(
        _FIXED,
        (Quantity("packets", "counter", "Packets by what became of them; held: in queues now.", ("what",)),),
        readings.packets,
        lambda subject: subject.ports is not None,
    ),
    Group(
        ALL,
        (Quantity("dropped", "counter", "Packets that the switch has dropped.", ("reason",)),),
        readings.drops,
    ),
    Group(
        ALL,
        (
            Quantity(
                "digests_lost", "counter", "Digests dropped because too many waited for the control plane."
            ),
        ),
        readings.digests,
    ),
    Group(
        _LIVE,
        (Quantity("note", "gauge", "Last value that a controller noted.", ("quantity",)),),
        readings.notes,
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
        readings.tables,
    ),
    Group(
        ALL,
        (
            Quantity("register", "gauge", "Cells that are not zero.", ("register", "index")),
            Quantity(
                "register_cells_not_zero",
                "gauge",
                "How many cells are not zero, of those that were looked at.",
                ("register",),
            ),
            Quantity(
                "register_cells_left_out",
                "gauge",
                "Cells that were not looked at, and those not zero that have no series of their own.",
                ("register",),
            ),
        ),
        readings.registers,
    ),
    Group(
        ALL,
        (
            Quantity(
                "counter_packets", "counter", "Packets in cells that are not zero.", ("counter", "index")
            ),
            Quantity("counter_bytes", "counter", "Bytes in cells that are not zero.", ("counter", "index")),
            Quantity(
                "counter_cells_left_out", "gauge", "As `register_cells_left_out`, of a counter.", ("counter",)
            ),
        ),
        readings.counters,
    ),
    Group(
        ALL,
        (
            *(
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
            Quantity(
                "meter_cells_left_out", "gauge", "As `register_cells_left_out`, of a meter.", ("meter",)
            ),
        ),
        readings.meters,
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
        readings.controllers,
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
        readings.planes,
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
        readings.flows,
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


def demand_known(name: object = "", *labels: object) -> Quantity:
    """The quantity of a name. Raises `TidegateError` if there is none, or none with so many labels."""
    quantity = QUANTITIES.get(name) if isinstance(name, str) else None
    if quantity is None:
        raise TidegateError(
            f"there is no quantity {name!r}; {did_you_mean(name, QUANTITIES)}there are {', '.join(QUANTITIES)}"
        )
    if len(labels) > len(quantity.labels):
        has = ", ".join(quantity.labels) or "none"
        raise TidegateError(f"{name}: {len(labels)} labels are too many; it has {has}")
    return quantity


def demand(subject: Subject, name: str, labels: Sequence[object]) -> Quantity:
    """The quantity of a name, if the switch has it. Raises `TidegateError` for one that it does not have."""
    quantity = demand_known(name, *labels)
    group = _group(name)
    if not group.there(subject):
        raise TidegateError(f"{subject.api.name} has no {name}; there is one here: {group.where}")
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
        if given == name and all(is_of(asked, has) for asked, has in zip(only, row, strict=False)):
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
