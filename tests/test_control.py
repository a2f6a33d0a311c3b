"""Controllers and the fixed parts of switches, in the simulator."""

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from conftest import EXAMPLES
from tidegate import TidegateError, p4
from tidegate.control import Controller, Digest, PacketIn, Port, Queue, Shaper, SwitchApi
from tidegate.network import Link, Network, Node, Switch

LEARNING = EXAMPLES / "learning_switch" / "learning_switch.p4"
ROUTER = p4.compile(EXAMPLES / "ipv4_router" / "ipv4_router.p4")

PUNT = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<48> to; bit<48> from; bit<16> type; }
header ipv4_t {
    bit<8> version; bit<8> tos; bit<16> length; bit<32> id; bit<8> ttl; bit<8> protocol; bit<16> checksum;
    bit<32> source; bit<32> target;
}
struct H { ethernet_t ethernet; ipv4_t ipv4; }
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); transition select(h.ethernet.type) { 0x800: ip; default: accept; } }
    state ip { p.extract(h.ipv4); transition accept; }
}
control V(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bit<32>>(4) seen;
    counter(4, CounterType.packets_and_bytes) packets;
    action to(bit<9> port, bit<3> priority) { s.egress_spec = port; s.priority = priority; }
    action copy(bit<16> group) { s.mcast_grp = group; }
    action drop() { mark_to_drop(s); }
    table routes { key = { h.ipv4.target: exact; } actions = { to; copy; drop; } default_action = drop(); }
    apply {
        bit<32> n;
        if (s.ingress_port == 100) { s.egress_spec = 1; exit; }
        seen.read(n, 0);
        seen.write(0, n + 1);
        packets.count(0);
        if (h.ethernet.type == 0x1234) { s.egress_spec = 100; exit; }
        routes.apply();
        if (h.ipv4.tos & 3 == 2) { s.priority = 1; }
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control C(inout H h, inout M m) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def punt(tmp_path_factory: pytest.TempPathFactory) -> p4.Program:
    path = tmp_path_factory.mktemp("control") / "punt.p4"
    path.write_text(PUNT)
    return p4.compile(path)


def star(
    program: p4.Program, hosts: int = 2, **settings: object
) -> tuple[Network, Switch, list[Node], list[Link]]:
    """Hosts around a switch, 100 Mbit/s and 1 ms each."""
    net = Network()
    switch = net.switch("s", program, **settings)  # type: ignore[arg-type]
    nodes = [net.host(f"h{i}") for i in range(hosts)]
    links = [net.link(node, switch, rate="100 Mbit/s", delay="1 ms", queue="200 packets") for node in nodes]
    return net, switch, nodes, links


class Routes(Controller):
    """Fills the table in, and counts."""

    period = "100 ms"

    def __init__(self, net: Network) -> None:
        self.net = net

    def start(self, switch: SwitchApi) -> None:
        self.ticks: list[int] = []
        for host in self.net.nodes:
            if host.kind == "host":
                port = switch.port_towards(host.name)
                switch.table_add("routes", [self.net.address(host)], "to", [port, int(host.name[1:]) % 2])

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.ticks.append(now)
        switch.note("packets", float(switch.register_read("seen", 0, 1)[0]))


def test_a_controller_sets_a_switch_up_and_ticks(punt: p4.Program) -> None:
    net, _, (a, b), _ = star(punt, queues=2)
    controller = Routes(net)
    net.control(controller)
    net.udp(a, b, rate="12 Mbit/s", payload=1472, stop="1 s")
    for _ in range(2):
        result = net.run("1050 ms")
        assert result.flows["datagrams_received"][0] == 1000
        assert controller.ticks == [i * 100_000_000_000 for i in range(1, 11)]
        notes = result.notes
        assert notes["switch"].unique().to_list() == ["s"]
        assert notes["time_s"].to_list() == pytest.approx([i / 10 for i in range(1, 11)])
        # One packet each millisecond; the first has come after 1.12 ms.
        assert notes.filter(pl.col("quantity") == "packets")["value"].to_list() == pytest.approx(
            [100.0 * i - 1 for i in range(1, 11)], abs=1
        )


class Learner(Controller):
    """Learns where addresses are from the program's digests."""

    def start(self, switch: SwitchApi) -> None:
        self.learned: list[tuple[int, int]] = []
        switch.multicast_set(1, range(len(switch.ports)))

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        source, port = digest.fields["src"], digest.fields["port"]
        self.learned.append((now, port))
        switch.table_add("source", [source], "NoAction")
        switch.table_add("destination", [source], "forward", [port])


def test_digests_come_at_once() -> None:
    """The example learns: the first packet of each side is flooded, the others are not."""
    net, _, (a, b, _), _ = star(p4.compile(LEARNING), 3)
    learner = Learner()
    net.control(learner)
    net.tcp(a, b, size="100 kB")
    result = net.run("2 s")
    assert result.flows["bytes_received"][0] == 100_000
    assert [port for _, port in learner.learned] == [0, 1]
    # The SYN takes 1 ms and, with 74 bytes, 5.92 us to the switch.
    assert learner.learned[0][0] == 1_005_920_000
    assert result.queues.filter(pl.col("queue") == "s -> h2")["packets"][0] == 1


def test_a_pipeline_gives_all_digests_that_wait() -> None:
    """However many the engine takes at a time."""
    pipeline = p4.compile(LEARNING).pipeline()
    for source in range(3000):
        pipeline.process(source, 0, b"\x02" + bytes(6) + source.to_bytes(5) + b"\x88\xb5" + bytes(46))
    learned = pipeline.digests()
    assert len({tuple(sorted(digest.fields.items())) for digest in learned}) == 3000
    assert pipeline.digests() == []


class Echo(Controller):
    """Sends every packet that comes in out again."""

    def start(self, switch: SwitchApi) -> None:
        self.seen: list[PacketIn] = []
        packet = bytes(12) + b"\x12\x34" + bytes(46)
        switch.generator_set(1, port=0, packet=packet, period="10 ms")

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        self.seen.append(packet)
        switch.packet_out(packet.data)
        if len(self.seen) == 3:
            switch.generator_period(1, "1 ms")
        if len(self.seen) == 5:
            switch.generator_stop(1)


def test_packets_to_and_from_the_controller(punt: p4.Program) -> None:
    net, _, _, _ = star(punt, cpu_port=100)
    echo = Echo()
    net.control(echo)
    result = net.run("1 s")
    assert [packet.at // 1_000_000_000 for packet in echo.seen] == [10, 20, 30, 31, 32]
    assert all(len(packet.data) == 60 for packet in echo.seen)
    assert result.queues.filter(pl.col("queue") == "s -> h1")["packets"][0] == 5


def test_a_shaped_queue_gives_tcp_its_rate(punt: p4.Program) -> None:
    net, switch, (a, b), (_, link) = star(punt, queues=2)
    net.control(Routes(net))
    shaped = Queue(packets=100, shaper=Shaper("20 Mbit/s", "3 kB"))
    net.configure(switch, link, Port((Queue(packets=100), shaped)))
    net.tcp(a, b, congestion_control="reno")
    net.record("100 ms", queues=[link])
    result = net.run("10 s")
    # 1448 of 1514 bytes are payload.
    assert result.goodput_mbps(2)["goodput_mbps"][0] == pytest.approx(20 * 1448 / 1514, rel=0.005)
    queues = result.queues.filter(pl.col("queue") == "s -> h1")
    assert queues["number"].to_list() == [0, 1]
    assert queues["packets"][0] == 0
    assert queues["queue_delay_ms_p99"][1] <= queues["queue_delay_ms_max"][1] * 1.04
    samples = result.queue_samples.filter(pl.col("queue") == "s -> h1", pl.col("number") == 1)
    assert 20 < samples["packets"].max() <= 100  # type: ignore[operator]


def test_weights_share_a_port(punt: p4.Program) -> None:
    net, switch, (a, b, c), links = star(punt, 3)
    net.control(Routes(net))
    port = Port((Queue(packets=50), Queue(packets=50, weight=3)), "deficit round robin", "1514 B")
    net.configure(switch, links[0], port)
    net.udp(b, a, rate="90 Mbit/s", payload=1472)
    net.udp(c, a, rate="90 Mbit/s", payload=1472, ecn="ect0")
    result = net.run("2 s")
    full = result.drops.filter(pl.col("reason") == "queue full").row(0, named=True)
    assert (full["switch"], full["packets"]) == ("s", result.queues["dropped"].sum())
    low, high = result.flows["datagrams_received"].to_list()
    assert high / low == pytest.approx(3, rel=0.02)
    assert low + high == pytest.approx(2 * 100e6 / 8 / 1514, rel=0.01)


def test_what_is_set_can_be_read_back(punt: p4.Program) -> None:
    net, switch, (a, _), _ = star(punt)
    seen: dict[str, object] = {}

    class Reader(Controller):
        period = "1 ms"

        def start(self, switch: SwitchApi) -> None:
            handle = switch.table_add("routes", [net.address(a)], "to", [0, 1])
            (entry,) = switch.table_entries("routes")
            assert (entry.handle, entry.action, entry.values) == (handle, "I.to", (0, 1))
            assert (entry.match[0].kind, entry.match[0].value) == ("exact", 0x0A000001)
            switch.table_modify("routes", handle, "drop")
            assert switch.table_entries("routes")[0].action == "I.drop"
            switch.table_delete("routes", handle)
            assert switch.table_entries("routes") == []
            switch.register_write("seen", [7, 8], start=1)
            assert switch.register_read("seen").tolist() == [0, 7, 8, 0]
            assert switch.register_read("seen", 2, 2).tolist() == [8, 0]
            assert switch.counter_read("packets").shape == (4, 2)
            switch.queue_write(1, 0, packets=3, time_shift="50 ms")
            port = switch.port_read(1)
            assert port.queues[0] == Queue(packets=3, time_shift=50_000_000_000)
            switch.mirror_set(5, 1, truncate=64)
            assert "5" in switch.command("mirroring_get 5")
            switch.multicast_set(2, [0, (1, 7)])
            assert "2" in switch.command("mc_dump")
            for wrong, message in [
                (
                    lambda: switch.register_read("seen", 3, 2),
                    "register `seen` has 4 cells; 2 from 3 on are too many",
                ),
                (lambda: switch.port_read(9), "there is no port 9; the ports are 0, 1"),
                (
                    lambda: switch.port_read(-1),
                    "-1 is not a port's number: give a whole number from 0 to 511",
                ),
                (lambda: switch.queue_read(0, -1), "-1 is not a queue's number"),
                (lambda: switch.queue_write(0, 0, packets=-1), "-1 is not a queue's limit in packets"),
                (lambda: switch.queue_write(0, 0, weight=1.5), "1.5 is not a queue's weight"),
                (lambda: switch.register_read("seen", -1), "-1 is not a cell's index"),
                (lambda: switch.register_read("seen", 0, -1), "-1 is not a number of cells"),
                (lambda: switch.register_write("seen", [1], -1), "-1 is not a cell's index"),
                (lambda: switch.counter_read("packets", -1), "-1 is not a cell's index"),
                (lambda: switch.multicast_set(-1, [0]), "-1 is not a multicast group"),
                (lambda: switch.multicast_set(1, [600]), "600 is not a port's number"),
                (lambda: switch.multicast_set(1, [(0, -1)]), "-1 is not a replication id"),
                (lambda: switch.mirror_set(-1, 0), "-1 is not a mirror session"),
                (lambda: switch.mirror_set(1, 0, truncate=-1), "-1 is not a length in bytes"),
                (lambda: switch.queue_write(0, 5, weight=1), "port 0 of s has 1 queue; there is no queue 5"),
                (lambda: switch.queue_write(0, 0, weight=0), "queue 0 of port 0 has the weight 0"),
                (lambda: switch.queue_write(0, 0, size=1), "a queue has no such setting"),
                (lambda: switch.packet_out(b"x"), "has no port for the controller; give it a cpu_port"),
                (lambda: switch.generator_period(1, "1 ms"), "s has no generator 1"),
                (
                    lambda: switch.generator_set(1, port=0, packet=bytes(60), period="99 ns"),
                    "the generators of a switch make at most 10000000 packets a second",
                ),
                (lambda: switch.port_towards("x"), "s has no port to 'x'; it has ports to h0, h1"),
            ]:
                with pytest.raises(TidegateError, match=message.replace("(", r"\(")):
                    wrong()

        def tick(self, now: int, switch: SwitchApi) -> None:
            seen.update(switch.statistics)

    net.control(Reader(), switch)
    net.run("2 ms")
    assert seen["received"] == seen["transmitted"] == 0


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda net, s, link: net.configure(s, link, Port(())), "switch s: port 0 has no queue"),
        (
            lambda net, s, link: net.configure(s, link, Port((Queue(),), "fair")),
            "there is no scheduler `fair`; known: strict priority, deficit round robin, weighted round robin, time-shifted FIFO",
        ),
        (
            lambda net, s, link: net.configure(s, link, Port((Queue(shaper=Shaper(0)),))),
            "the shaper of queue 0 of port 0 lets nothing through",
        ),
        (lambda net, s, link: net.switch("t", ROUTER, cpu_port=511), "cpu_port 511 is not a port number"),
        (lambda net, s, link: net.switch("t", ROUTER, cpu_port="1"), "cpu_port '1' is not a port number"),
        (lambda net, s, link: net.switch("t", ROUTER, queues=1.5), "t has 1.5 queues; give it at least one"),
        (
            lambda net, s, link: net.control(Routes(net), Network().switch("t", ROUTER)),
            "t is not a switch of this network",
        ),
        (lambda net, s, link: net.control(Routes), "is not a controller"),
        (lambda net, s, link: net.configure(s, link, Queue()), "is not a Port"),
    ],
)
def test_what_makes_no_sense_is_refused(build: object, message: str, punt: p4.Program) -> None:
    net, switch, _, links = star(punt)

    def attempt() -> None:
        build(net, switch, links[0])  # type: ignore[operator]
        net.run("1 ms")

    with pytest.raises(TidegateError, match=message):
        attempt()


def test_a_controller_without_a_switch_is_refused() -> None:
    net = Network()
    net.host("a")
    net.control(Routes(net))
    with pytest.raises(TidegateError, match="the controller Routes has no switch to control"):
        net.run("1 ms")


def test_an_error_of_a_controller_ends_the_run(punt: p4.Program) -> None:
    class Fails(Controller):
        period = "1 ms"

        def tick(self, now: int, switch: SwitchApi) -> None:
            switch.register_write("seen", np.array([-1]))

    net, _, _, _ = star(punt)
    net.control(Fails())
    with pytest.raises(TidegateError, match="not negative"):
        net.run("1 s")


def test_a_controller_that_comes_back_finds_what_it_has_set(punt: p4.Program) -> None:
    """While it is down the switch goes on, nothing is called, and what it has sent to it is gone."""

    class Comes(Controller):
        period = "10 ms"

        def __init__(self) -> None:
            self.found: list[tuple[int, int]] = []
            self.ticks: list[int] = []
            self.heard: list[int] = []

        def start(self, switch: SwitchApi) -> None:
            self.found.append((switch.now // 10**9, len(switch.table_entries("routes"))))
            if len(self.found) == 1:
                switch.table_add("routes", [net.address(b)], "to", [1, 0])
                switch.generator_set(1, port=0, packet=bytes(12) + b"\x12\x34" + bytes(46), period="4 ms")
            switch.record("table_entries", period="20 ms")

        def tick(self, now: int, switch: SwitchApi) -> None:
            self.ticks.append(now // 10**9)

        def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
            self.heard.append(now // 10**9)

    net, _, (a, b), _ = star(punt, cpu_port=100)
    controller = Comes()
    net.control(controller)
    net.restart(controller, "15 ms", down="10 ms")
    net.udp(a, b, rate="12 Mbit/s", payload=1472, stop="40 ms")
    result = net.run("50 ms")
    assert controller.found == [(0, 0), (25, 1)]
    assert controller.ticks == [10, 35, 45]
    assert controller.heard == [4, 8, 12, 28, 32, 36, 40, 44, 48]
    assert result.flows["datagrams_received"][0] == 40
    assert result.notes["time_s"].to_list() == pytest.approx([0.045])
    with pytest.raises(TidegateError, match=r"controls nothing here; call net\.control first"):
        net.restart(Controller(), "1 s")


def test_the_example_of_the_documentation_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    root = EXAMPLES.parent.parent
    text = (root / "docs" / "control.md").read_text()
    code = text.split("```python\n")[1].split("```")[0]
    monkeypatch.chdir(root)
    names: dict[str, object] = {}
    exec(compile(code, "docs/control.md", "exec"), names)
    net = names["net"]
    assert isinstance(net, Network)
    assert net.run("1 s").flows["bytes_received"].to_list() == [10_000_000]


@pytest.mark.parametrize(("clock", "unit"), [("1 us", 1_000_000), ("1 ns", 1000)])
def test_timestamps_count_in_the_switch_s_clock(clock: str, unit: int) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    switch = net.switch("s", Path(__file__).parent / "data/clock.p4", clock=clock)
    net.link(a, switch, rate="1 Gbit/s", delay="1 us")
    net.link(switch, b, rate="300 Mbit/s", delay="1 us", framing=0)
    net.udp(a, b, rate="900 Mbit/s", payload=1000, stop="70 us")
    waits: list[int] = []

    class Reader(Controller):
        period = "1 ms"

        def tick(self, now: int, switch: SwitchApi) -> None:
            count, *each = switch.register_read("waits").tolist()
            waits[:] = each[:count]

    net.control(Reader(), switch)
    net.run("2 ms")
    # A packet waits until those before it are sent, 1028 bytes at 300 Mbit/s each; they come at 900 Mbit/s of payload.
    assert len(waits) == 8
    sends, comes = 1028 * 8 / 0.3, 1028 * 8 / 0.9
    expected = [round(number * (sends - comes) * 1000) // unit for number in range(8)]
    assert waits == pytest.approx(expected, abs=1), expected
