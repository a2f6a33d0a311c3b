"""Everything that a running switch counts, by name: for Prometheus and for the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate import addresses, units
from tidegate._core import TidegateError
from tidegate.switch.running import LiveSwitch

MAX_CELLS = 64
"""Cells of a register or counter that are shown: the first that are not zero."""

INTERFACE = {
    "truncated": "longer than a port can take",
    "overrun": "came faster than they were taken",
    "wrong_size": "longer than the interface's MTU, or shorter than an Ethernet header",
    "refused": "not taken by the kernel",
}
"""Frames that an interface has cost, by the name of the count."""


@dataclass
class Family:
    """Values of one kind."""

    name: str
    kind: Literal["counter", "gauge"]
    help: str
    labels: tuple[str, ...]
    rows: list[tuple[tuple[str, ...], float]] = field(default_factory=list)

    def add(self, *labels: object, value: float) -> None:
        """Add a value."""
        self.rows.append((tuple(str(label) for label in labels), float(value)))


def families(switch: LiveSwitch) -> list[Family]:
    """All there is, as it is now."""
    summary = switch.program.summary
    return [
        *_interfaces(switch),
        *_queues(switch),
        *_switch(switch),
        *_tables(switch),
        *_cells(switch, summary),
        *_server(switch),
    ]


def _interfaces(switch: LiveSwitch) -> Iterator[Family]:
    state = switch.statistics()
    labels = ("port", "interface")
    packets = Family("port_packets", "counter", "Frames that a port has received and sent.", (*labels, "way"))
    sizes = Family("port_bytes", "counter", "Bytes of these frames.", (*labels, "way"))
    dropped = Family("port_dropped", "counter", "Frames that an interface has cost.", (*labels, "reason"))
    changed = Family("port_changed", "counter", "Frames whose form was changed.", (*labels, "what"))
    kinds = Family("port_info", "gauge", "How a port reaches its interface.", (*labels, "kind"))
    mtus = Family("port_mtu_bytes", "gauge", "Longest packet of an interface, from the IP header on.", labels)
    ups = Family("port_up", "gauge", "Whether an interface is up.", labels)
    for port, row in zip(switch.ports, state["ports"], strict=True):
        name = (port.number, port.interface)
        for way in ("received", "sent"):
            packets.add(*name, way, value=row[way])
            sizes.add(*name, way, value=row[f"{way}_bytes"])
        for reason in INTERFACE:
            dropped.add(*name, reason, value=row[reason])
        for what in ("completed", "segmented", "merged"):
            changed.add(*name, what, value=row[what])
        kinds.add(*name, row["kind"], value=1)
        mtus.add(*name, value=row["mtu"])
        ups.add(*name, value=row["up"])
    yield from (packets, sizes, dropped, changed, kinds, mtus, ups)
    late = Family(
        "lateness_seconds",
        "gauge",
        "How much later than due frames have left, by share of the frames.",
        ("share",),
    )
    for share, key in (("0.5", "p50"), ("0.9", "p90"), ("0.99", "p99"), ("0.999", "p999"), ("1", "max")):
        value = state["lateness"][key]
        late.add(share, value=0 if value is None else value / units.PS_PER_S)
    yield late
    wakeups = Family("wakeups", "counter", "How often the switch's thread has woken up.", ())
    wakeups.add(value=state["wakeups"])
    yield wakeups


def _queues(switch: LiveSwitch) -> Iterator[Family]:
    labels = ("port", "queue")
    packets = Family("queue_packets", "counter", "Packets that a queue has taken.", labels)
    sizes = Family("queue_bytes", "counter", "Bytes of these packets.", labels)
    dropped = Family("queue_dropped", "counter", "Packets lost in a queue.", (*labels, "reason"))
    depth = Family("queue_depth_packets", "gauge", "Packets that wait.", labels)
    deep = Family("queue_depth_bytes", "gauge", "Bytes that wait.", labels)
    waits = Family(
        "queue_wait_seconds", "counter", "Time that packets have spent in a queue, summed.", labels
    )
    for port in switch.ports:
        for number in range(len(switch.api.port_read(port.number).queues)):
            queue, name = switch.api.queue_read(port.number, number), (port.number, number)
            packets.add(*name, value=queue.packets)
            sizes.add(*name, value=queue.bytes)
            dropped.add(*name, "queue full", value=queue.dropped)
            dropped.add(*name, "egress", value=queue.dropped_in_egress)
            depth.add(*name, value=queue.waiting_packets)
            deep.add(*name, value=queue.waiting_bytes)
            waits.add(*name, value=queue.wait_sum / units.PS_PER_S)
    yield from (packets, sizes, dropped, depth, deep, waits)


def _switch(switch: LiveSwitch) -> Iterator[Family]:
    packets = Family("packets", "counter", "Where every packet is; held is what is in queues now.", ("what",))
    for what, count in switch.api.statistics.items():
        packets.add(what, value=count)
    yield packets
    dropped = Family("dropped", "counter", "Packets that the switch has dropped.", ("reason",))
    for reason, count in switch.api.drops.items():
        dropped.add(reason, value=count)
    yield dropped
    notes = Family("note", "gauge", "What controllers have noted last.", ("quantity",))
    for quantity, value in dict(switch.notes).items():
        notes.add(quantity, value=value)
    yield notes


def _server(switch: LiveSwitch) -> Iterator[Family]:
    counts = switch.server()
    streams = Family("p4runtime_streams", "gauge", "Controllers that have a stream.", ())
    dropped = Family(
        "p4runtime_dropped", "counter", "Messages that controllers did not take in time.", ("what",)
    )
    for what, count in counts.items():
        if what == "streams":
            streams.add(value=count)
        else:
            dropped.add(what.removesuffix("_dropped"), value=count)
    yield from (family for family in (streams, dropped) if family.rows)


def _tables(switch: LiveSwitch) -> Iterator[Family]:
    entries = Family("table_entries", "gauge", "Entries of a table.", ("table",))
    sizes = Family("table_size", "gauge", "Entries that the program declares.", ("table",))
    packets = Family(
        "table_packets", "counter", "Packets of a table's direct counter, all entries.", ("table",)
    )
    counted = Family("table_bytes", "counter", "Bytes of a table's direct counter, all entries.", ("table",))
    for name, size, there, hits, hit_bytes in switch.control.table_totals():
        entries.add(name, value=there)
        sizes.add(name, value=size)
        if hits is not None:
            packets.add(name, value=hits)
            counted.add(name, value=hit_bytes or 0)
    yield from (entries, sizes, packets, counted)


def _cells(switch: LiveSwitch, summary: dict[str, Any]) -> Iterator[Family]:
    registers = Family("register", "gauge", "Cells that are not zero.", ("register", "index"))
    nonzero = Family("register_cells_not_zero", "gauge", "How many there are.", ("register",))
    for item in summary["registers"]:
        cells = switch.api.register_read(item["name"])
        values = cells if cells.ndim == 1 else cells @ (2.0 ** (64 * np.arange(cells.shape[1])))
        (found,) = np.nonzero(values)
        nonzero.add(item["name"], value=len(found))
        for index in found[:MAX_CELLS]:
            registers.add(item["name"], index, value=values[index])
    yield from (registers, nonzero)
    packets = Family(
        "counter_packets", "counter", "Packets in cells that are not zero.", ("counter", "index")
    )
    sizes = Family("counter_bytes", "counter", "Bytes in cells that are not zero.", ("counter", "index"))
    for item in summary["counters"]:
        if item["size"] is None:
            continue
        cells = switch.api.counter_read(item["name"])
        (found,) = np.nonzero(cells.any(axis=1))
        for index in found[:MAX_CELLS]:
            packets.add(item["name"], index, value=cells[index][0])
            sizes.add(item["name"], index, value=cells[index][1])
    yield from (packets, sizes)


class _Collector(Collector):
    def __init__(self, switch: LiveSwitch) -> None:
        self._switch = switch

    def collect(self) -> Iterable[Metric]:
        for family in families(self._switch):
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(f"tidegate_{family.name}", family.help, labels=family.labels)
            for labels, value in family.rows:
                metric.add_metric(labels, value)
            yield metric


@dataclass(frozen=True)
class Server:
    """Serves metrics, until `stop` is called."""

    address: str
    """`HOST:PORT`; port 0 was asked for any that is free, and is the one that was."""
    stop: Callable[[], None]


def serve(switch: LiveSwitch, address: str) -> Server:
    """Serve the metrics at `HOST:PORT`, in threads of its own."""
    host, port = addresses.parse(address)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(switch))
    why_not = addresses.why_not(host, port)
    if why_not is not None:
        raise TidegateError(f"--metrics-addr {address}: {why_not}; give another address")
    server, thread = start_http_server(port, host, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Server(addresses.show(host, server.server_port), stop)
