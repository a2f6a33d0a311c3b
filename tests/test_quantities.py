"""Quantities by name: read, recorded, exported, documented."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from conftest import ROOT, pcap
from namespaces import needs_root, place
from switches import LEARNING, frame, ports
from test_control import Routes, punt, star
from tidegate import TidegateError, p4, p4runtime
from tidegate.control import Controller, SwitchApi, quantities, readings
from tidegate.control import operations as op
from tidegate.control.quantities import GROUPS, QUANTITIES
from tidegate.control.readings import Subject
from tidegate.replay import replay
from tidegate.switch.controllers import Controlled
from tidegate.switch.metrics import families
from tidegate.switch.running import LiveSwitch

__all__ = ["punt"]

EVERYTHING = Path(p4runtime.__file__).with_name("everything.p4")

METRICS = {
    "port_packets": ("counter", "port interface way"),
    "port_bytes": ("counter", "port interface way"),
    "port_dropped": ("counter", "port interface reason"),
    "port_changed": ("counter", "port interface what"),
    "port_info": ("gauge", "port interface kind"),
    "port_mtu_bytes": ("gauge", "port interface"),
    "port_up": ("gauge", "port interface"),
    "lateness_seconds": ("gauge", "share"),
    "wakeups": ("counter", ""),
    "queue_packets": ("counter", "port queue"),
    "queue_bytes": ("counter", "port queue"),
    "queue_dropped": ("counter", "port queue reason"),
    "queue_depth_packets": ("gauge", "port queue"),
    "queue_depth_bytes": ("gauge", "port queue"),
    "queue_wait_seconds": ("counter", "port queue"),
    "packets": ("counter", "what"),
    "dropped": ("counter", "reason"),
    "note": ("gauge", "quantity"),
    "table_entries": ("gauge", "table"),
    "table_size": ("gauge", "table"),
    "table_packets": ("counter", "table"),
    "table_bytes": ("counter", "table"),
    "register": ("gauge", "register index"),
    "register_cells_not_zero": ("gauge", "register"),
    "counter_packets": ("counter", "counter index"),
    "counter_bytes": ("counter", "counter index"),
    "p4runtime_streams": ("gauge", ""),
    "p4runtime_dropped": ("counter", "what"),
}
"""Names that dashboards know: they stay."""


def test_names_of_metrics_stay() -> None:
    ours = {name: (q.kind, " ".join(q.labels)) for name, q in QUANTITIES.items()}
    assert {name: ours.get(name) for name in METRICS} == METRICS
    assert len(QUANTITIES) == sum(len(group.quantities) for group in GROUPS), "each name is there once"


def test_the_table_in_the_documentation_is_the_list() -> None:
    text = (ROOT / "docs" / "control.md").read_text()
    assert quantities.table() in text, (
        "docs/control.md: put in what `tidegate.control.quantities.table()` gives"
    )


class Reads(Controller):
    """Reads quantities at its only tick."""

    period = "100 ms"

    def __init__(self, *names: tuple[object, ...]) -> None:
        self.names = names

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.found = [switch.quantity(*name) for name in self.names]  # type: ignore[arg-type]
        self.all = {family.name: dict(family.rows) for family in quantities.families(switch.subject)}  # type: ignore[arg-type]


def test_what_a_controller_reads_by_name(punt: p4.Program) -> None:
    """10 datagrams of 1514 bytes at 12 Mbit/s in 10 ms; the simulator's switch has no interfaces."""
    net, _, (a, b), _ = star(punt, queues=2)
    net.control(Routes(net))
    reads = Reads(
        ("register", "seen", 0),
        ("register", "seen", 3),
        ("register", "I.seen"),
        ("queue_packets", 1),
        ("queue_packets", 1, 0),
        ("queue_dropped",),
        ("table_entries", "routes"),
        ("counter_packets", "packets", 0),
        ("digests_lost",),
        ("flow_datagrams_received",),
        ("packets", "received"),
    )
    net.control(reads)
    net.udp(a, b, rate="12 Mbit/s", payload=1472, stop="10 ms", label="stream")
    net.run("100 ms")
    assert reads.found == [
        {("I.seen", "0"): 10},
        {("I.seen", "3"): 0},
        {("I.seen", "0"): 10},
        {("1", "0"): 0, ("1", "1"): 10},
        {("1", "0"): 0},
        {
            (str(port), str(queue), why): 0
            for port in (0, 1)
            for queue in (0, 1)
            for why in ("queue full", "egress")
        },
        {("I.routes",): 2},
        {("I.packets", "0"): 10},
        {(): 0},
        {("stream",): 10},
        {("received",): 10},
    ]
    there = {q.name for group in GROUPS if group.where.startswith("simulator") for q in group.quantities}
    assert set(reads.all) == there
    assert reads.all["counter_bytes"] == {("I.packets", "0"): 10 * 1514}
    assert reads.all["packets"]["transmitted",] == 10


def test_meters_and_lost_digests_of_a_program_alone() -> None:
    program = p4.compile(EVERYTHING)
    pipeline = program.pipeline()
    pipeline.command("meter_set_rates rates 2 0.5:100 1:200")
    pipeline.command("table_set_default learning learn")
    subject = Subject(pipeline, pipeline._core, lambda: program)  # type: ignore[arg-type]
    assert quantities.read(subject, "meter_committed_rate") == {("Work.rates", "2"): 500_000}
    assert quantities.read(subject, "meter_peak_burst", "rates", 2) == {("Work.rates", "2"): 200}
    assert quantities.read(subject, "meter_peak_burst", "rates", 1) == {}
    for number in range(65_536 + 7):
        pipeline.process(number, 1, bytes(6) + number.to_bytes(6) + b"\x88\xb5" + bytes(46))
    assert quantities.read(subject, "digests_lost") == {(): 7}


class Records(Controller):
    """Records what it is told to."""

    def __init__(self, *what: tuple[object, ...], period: str = "10 ms") -> None:
        self.what, self.every = what, period

    def start(self, switch: SwitchApi) -> None:
        for quantity, *labels in self.what:
            switch.record(quantity, *labels, period=self.every)  # type: ignore[arg-type]


ARRAYS = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { bit<8> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<48>>(100000) r;
    register<bit<130>>(3000) wide;
    counter(100000, CounterType.packets) c;
    meter(3000, MeterType.bytes) m1;
    apply {
        bit<48> a; bit<130> b;
        r.read(a, 0); wide.read(b, 0); c.count(0); m1.execute_meter(0, m.x);
    }
}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def test_large_arrays_are_read_in_slices_and_what_is_left_out_is_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    program = p4.Program.from_text(ARRAYS)
    pipeline = program.pipeline()
    core, asked = pipeline._core, list[tuple[str, int, int]]()

    class Watched:
        """The engine's surface, and what cells it is asked for."""

        def act(self, operation: op.Operation) -> object:
            if isinstance(operation, op.RegisterRead | op.CounterRead | op.MeterRead):
                assert operation.count is not None
                asked.append((operation.op, operation.start, operation.count))
            return core.act(operation)

    for cell in range(0, 100_000, 1000):
        pipeline.act(op.RegisterSet("I.r", cell, 5))
        pipeline.act(op.CounterSet("I.c", cell, 7, 8))
    pipeline.act(op.RegisterSet("I.wide", 2999, 1 << 129))
    for cell in range(0, 3000, 10):
        pipeline.act(op.MeterSet("I.m1", cell, [8000, 9, 8000, 9]))
    pipeline._core = Watched()  # type: ignore[assignment]
    subject = Subject(pipeline, pipeline._core, lambda: program)  # type: ignore[arg-type]

    def values(name: str) -> dict[tuple[str, ...], float]:
        return quantities.read(subject, name)

    assert values("register_cells_not_zero") == {("I.r",): 100, ("I.wide",): 1}
    assert values("register_cells_left_out") == {("I.r",): 36, ("I.wide",): 0}
    shown = values("register")
    assert {at for name, at in shown if name == "I.r"} == {str(cell) for cell in range(0, 64_000, 1000)}
    assert shown["I.wide", "2999"] == 2.0**129
    assert values("counter_cells_left_out") == {("I.c",): 36}
    assert values("counter_bytes")["I.c", "63000"] == 8
    assert values("meter_cells_left_out") == {("I.m1",): 236}
    assert len(values("meter_committed_rate")) == 64
    sizes = {"register_read": 8192, "counter_read": 4096, "meter_read": 1024}
    assert all(count <= sizes[kind] for kind, _, count in asked)
    assert max(start for kind, start, _ in asked if kind == "register_read") == 98_304, "and to the end"

    # Other numbers of series.
    for most in (0, 3, 1000):
        subject = Subject(pipeline, pipeline._core, lambda: program, cells=most)  # type: ignore[arg-type]
        assert len([at for name, at in values("register") if name == "I.r"]) == min(most, 100)
        assert values("register_cells_left_out")["I.r",] == 100 - min(most, 100)
        assert len(values("counter_bytes")) == min(most, 100)
        assert len(values("meter_committed_rate")) == min(most, 300)
        assert values("meter_cells_left_out") == {("I.m1",): 300 - min(most, 300)}
    subject = Subject(pipeline, pipeline._core, lambda: program)  # type: ignore[arg-type]

    # With less room some are not looked at.
    monkeypatch.setattr(readings, "MAX_BYTES", 80_000)
    monkeypatch.setattr(readings, "MAX_METERS", 1000)
    asked.clear()
    assert values("register_cells_not_zero") == {("I.r",): 10, ("I.wide",): 0}
    assert values("register_cells_left_out") == {("I.r",): 90_000, ("I.wide",): 3000}
    assert values("counter_cells_left_out") == {("I.c",): 95_000}
    assert values("meter_cells_left_out") == {("I.m1",): 2000 + 36}
    assert sum(count for kind, _, count in asked if kind == "register_read") == 2 * 10_000

    # One cell is read as one.
    asked.clear()
    assert quantities.read(subject, "register", "I.r", 99_000) == {("I.r", "99000"): 5}
    assert quantities.read(subject, "counter_packets", "I.c", 99_000) == {("I.c", "99000"): 7}
    assert quantities.read(subject, "meter_peak_burst", "I.m1", 2990) == {("I.m1", "2990"): 9}
    assert [count for _, _, count in asked] == [1, 1, 1]


DIRECT = (
    ARRAYS.partition("    register")[0].replace("bit<8> a", "bit<32> a")
    + """
    direct_counter(CounterType.packets_and_bytes) hits;
    table t { key = { h.h.a: exact; } actions = { NoAction; } counters = hits; size = 20000; }
    table u { key = { h.h.a: exact; } actions = { NoAction; } }
    apply { t.apply(); u.apply(); }
}
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""
)


def test_direct_counters_are_summed_some_entries_at_a_time() -> None:
    program = p4.Program.from_text(DIRECT)
    pipeline = program.pipeline()
    for key in range(10_000):
        pipeline.act(op.TableAdd("t", [key], ("NoAction", []), counter=(2**40, key)))
    core, asked = pipeline._core, list[int | None]()

    class Watched:
        """The engine's surface, and from where on it is asked for sums."""

        def act(self, operation: op.Operation) -> object:
            assert isinstance(operation, op.TableTotals)
            asked.append(operation.start)
            return core.act(operation)

    pipeline._core = Watched()  # type: ignore[assignment]
    subject = Subject(pipeline, pipeline._core, lambda: program)  # type: ignore[arg-type]
    assert quantities.read(subject, "table_packets") == {("I.t",): 10_000 * 2**40}
    assert asked == [0, 4096, 8192, 0], "of one table, and of the one that counts nothing"
    assert quantities.read(subject, "table_bytes") == {("I.t",): sum(range(10_000))}
    assert quantities.read(subject, "table_entries") == {("I.t",): 10_000, ("I.u",): 0}


def test_what_is_recorded_is_in_the_notes(punt: p4.Program) -> None:
    net, _, (a, b), _ = star(punt)
    net.control(Routes(net))
    net.control(Records(("register", "seen", 0), ("queue_packets", 1)))
    net.udp(a, b, rate="12 Mbit/s", payload=1472, stop="35 ms")
    notes = net.run("50 ms").notes
    seen = notes.filter(pl.col("quantity") == "register[I.seen,0]")
    assert seen["time_s"].to_list() == pytest.approx([0.01, 0.02, 0.03, 0.04, 0.05])
    # One datagram a millisecond; the first comes after 1.12 ms.
    assert seen["value"].to_list() == [9, 19, 29, 35, 35]
    assert notes["quantity"].unique().sort().to_list() == ["queue_packets[1,0]", "register[I.seen,0]"]


def test_a_network_records_them_of_all_switches_without_a_controller(punt: p4.Program) -> None:
    net, switch, (a, b), _ = star(punt)
    switch.commands.append(f"table_add routes to {net.address(b)} => 1 0")
    net.record("10 ms", quantities=["table_entries", ("queue_packets", 1, 0)])
    net.udp(a, b, rate="12 Mbit/s", payload=1472)
    plain = star(punt)[0]
    result = net.run("20 ms")
    found = dict(result.notes.group_by("quantity").agg("value").iter_rows())
    assert found == {"table_entries[I.routes]": [1, 1], "queue_packets[1,0]": [9, 19]}
    assert plain.run("20 ms").notes.is_empty()


@pytest.mark.parametrize(
    ("what", "message"),
    [
        (
            ("queue_length",),
            r"there is no quantity 'queue_length'; did you mean 'queue_packets'\? there are port_packets, ",
        ),
        (("port_packets",), "s has no port_packets; there is one here: `tidegate switch`"),
        (("queue_packets", 1, 0, 2), "queue_packets: 3 labels are too many; it has port, queue"),
    ],
)
def test_what_cannot_be_recorded_is_refused(punt: p4.Program, what: tuple[object, ...], message: str) -> None:
    net, _, _, _ = star(punt)
    net.control(Records(what))
    with pytest.raises(TidegateError, match=message):
        net.run("1 ms")


def test_a_period_of_nothing_is_refused(punt: p4.Program) -> None:
    net, _, _, _ = star(punt)
    net.control(Records(("dropped",), period="0 s"))
    with pytest.raises(TidegateError, match="the period of recording dropped is 0; give one above 0"):
        net.run("1 ms")


def test_a_switch_that_no_runner_runs_says_so(punt: p4.Program) -> None:
    api = SwitchApi("alone", None, (), lambda *_: None)  # type: ignore[arg-type]
    for call in (lambda: api.quantity("dropped"), lambda: api.record("dropped", period="1 s")):
        with pytest.raises(TidegateError, match="alone has no quantities that can be"):
            call()


def test_a_replay_records(punt: p4.Program, tmp_path: Path) -> None:
    file = tmp_path / "in.pcap"
    packet = bytes(12) + b"\x08\x00" + bytes(46)
    file.write_bytes(pcap([(10**9 + n * 1_000_000, packet) for n in range(21)], nanoseconds=True))
    controller = Records(("register", "seen", 0), ("dropped",))
    notes = replay(punt, {0: file}, tmp_path / "out", controllers=[controller]).notes
    assert notes.rows() == [
        (at, "switch", quantity, value)
        for at, value in ((0.01, 11), (0.02, 21))
        for quantity, value in (("register[I.seen,0]", value), ("dropped[dropped in ingress]", value))
    ]


@needs_root
def test_a_live_switch_has_what_has_no_other_place() -> None:
    """All that is not of simulated flows or of a P4Runtime server; what a controller records is a note."""
    with place(2) as two:
        live = LiveSwitch(p4.compile(LEARNING), ports(two, "packet"))
        recording = Records(("port_packets", 1), period="20 ms")
        with live, Controlled(live, [recording]):
            two.hosts[0].send(frame(1, 2))
            name = "port_packets[1,p1,received]"
            ended = iter(range(200))
            live.wait(lambda: live.notes.get(name) == 1 or next(ended, None) is None, every_s=0.02)
            assert live.notes == {name: 1, "port_packets[1,p1,sent]": 0}
            found = {family.name for family in families(live)}
    lacking = {q.name for q in QUANTITIES.values()} - found
    assert lacking == {name for name in QUANTITIES if name.startswith(("flow_", "p4runtime_", "controller_"))}
