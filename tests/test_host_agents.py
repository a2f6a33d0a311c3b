"""Conformance of host agents: what a system may rely on, whichever backend runs its hosts.

Each case describes a network, an agent for each side, and what is expected of captures and callbacks. What only real
hosts have is in `test_live_agents.py`.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import polars as pl
import pytest
from scapy.layers.inet import IP, TCP, UDP
from scapy.packet import Packet
from scapy.utils import rdpcap

from live import again_if_disturbed, needs_agents, needs_iperf3, needs_namespaces, untimed, watched
from tidegate import TidegateError
from tidegate.hosts.agents import Agent, Attached, Connection
from tidegate.hosts.shims import Check, Echo, Insert, Option, Report, Shim, Signal
from tidegate.network import Flow, Network, Node
from tidegate.results import Result

LIVE = [needs_namespaces, needs_agents, needs_iperf3]
BACKENDS = ["sim", pytest.param("live", marks=LIVE)]
measures_no_time = pytest.mark.parametrize(
    "lab", ["sim", pytest.param("live", marks=[*LIVE, untimed])], indirect=True
)
"""A test that looks at options and bytes, which a busy machine does not change."""

MARK = Option("tcp", 253)
STAMP = Option("ip", 30)


class Recorder(Agent):
    """Keeps what it is told."""

    def __init__(self, *shims: Shim) -> None:
        self.shims = shims
        self.told: list[tuple[str, int, object]] = []
        self.connections: list[Connection] = []

    def on_open(self, now: int, connection: Connection) -> None:
        self.connections.append(connection)
        self.told.append(("open", now, connection.active))

    def on_established(self, now: int, connection: Connection) -> None:
        self.told.append(("established", now, connection.active))

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        assert connection in self.connections
        self.told.append(("report", now, (kind, data)))

    def on_closed(self, now: int, connection: Connection) -> None:
        self.told.append(("closed", now, connection.active))

    def reported(self, kind: int) -> list[bytes]:
        return [what[1] for name, _, what in self.told if name == "report" and what[0] == kind]  # type: ignore[index]


@dataclass
class Lab:
    """Two hosts over a router, or a P4 switch, with a capture at the second one."""

    folder: Path
    backend: str
    program: Path | None = None
    rate: str = "20 Mbit/s"
    queue: str = "100 packets"
    net: Network = field(default_factory=Network)
    _packets: Sequence[Packet] | None = None

    def __post_init__(self) -> None:
        self.a, self.b = self.net.host("a"), self.net.host("b")
        router = self.net.router("r") if self.program is None else self.net.switch("r", self.program)
        self.net.link(self.a, router, rate="1 Gbit/s", delay="1 ms")
        self.narrow = self.net.link(router, self.b, rate=self.rate, delay="4 ms", queue=self.queue)
        self.file = self.folder / "b.pcap"
        self.net.capture(self.narrow, self.b, self.file)

    def agent(self, host: Node, agent: Agent) -> Attached:
        return self.net.agent(host, agent)

    def run(self, until: str = "1 s") -> Result:
        self._packets = None
        result = self.net.run(until, backend=self.backend, progress=False)
        return watched(result) if self.backend == "live" else result

    def packets(self) -> Sequence[Packet]:
        """Of TCP flows; iperf3 has connections of its own besides, which agents do not see."""
        if self._packets is None:
            tuples = [self.net.five_tuple(flow) for flow in self.net.flows]
            ports = {frozenset((five.source_port, five.target_port)) for five in tuples}
            tcp = (packet for packet in rdpcap(str(self.file)) if TCP in packet)
            self._packets = [one for one in tcp if frozenset((one[TCP].sport, one[TCP].dport)) in ports]
        return self._packets

    def sent_by(self, host: Node) -> Sequence[Packet]:
        return [packet for packet in self.packets() if packet[IP].src == self.net.address(host)]


@pytest.fixture(params=BACKENDS)
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[..., Lab]:
    return lambda **given: Lab(tmp_path, request.param, **given)


def tcp_option(packet: Packet, kind: int = 253) -> bytes | None:
    values = [value for name, value in packet[TCP].options if name == kind]
    return values[0] if values else None


def ip_option(packet: Packet, kind: int = 30) -> bytes | None:
    values = [bytes(option) for option in packet[IP].options]
    return next((value[2:] for value in values if value[0] == kind), None)


def checked(packet: Packet) -> bool:
    """Whether IP's and TCP's checksums are what scapy computes."""
    anew = packet[IP].copy()
    said = (anew.chksum, anew[TCP].chksum)
    del anew.chksum, anew[TCP].chksum
    anew = IP(bytes(anew))
    return said == (anew.chksum, anew[TCP].chksum)


def samples_of(result: Result, flow: Flow, since: float, until: float) -> pl.DataFrame:
    """Samples of a time, a tenth of a second apart; real ones come a little late."""
    of_flow = pl.col("flow") == flow.number
    return result.flow_samples.filter(of_flow & pl.col("time_s").is_between(since - 0.01, until + 0.05))


def mbps(result: Result, flow: Flow, since: float, until: float) -> float:
    """Goodput of a time, by the clock of its samples."""
    part = samples_of(result, flow, since, until)
    assert part.height > 9 * (until - since)
    spent = part["time_s"][-1] - part["time_s"][0]
    return float((part["bytes_received"][-1] - part["bytes_received"][0]) * 8e-6 / spent)


def payload(packet: Packet) -> int:
    return packet[IP].len - 4 * packet[IP].ihl - 4 * packet[TCP].dataofs


@measures_no_time
@again_if_disturbed
def test_an_option_on_syn_and_syn_ack(lab: Callable[..., Lab]) -> None:
    rig = lab()
    asks = Recorder(Insert(MARK, b"\x01\x02", on=("syn",)), Report(MARK))
    answers = Recorder(Insert(MARK, b"\x03\x04\x05\x06", on=("syn-ack",)), Report(MARK))
    rig.agent(rig.a, asks)
    rig.agent(rig.b, answers)
    rig.net.tcp(rig.a, rig.b, size="50 kB")
    rig.run()
    assert answers.reported(253) == [b"\x01\x02"]
    assert asks.reported(253) == [b"\x03\x04\x05\x06"]
    marked = [str(packet[TCP].flags) for packet in rig.packets() if tcp_option(packet) is not None]
    assert [flags.replace("E", "").replace("C", "") for flags in marked] == ["S", "SA"]
    assert all(checked(packet) for packet in rig.packets())
    # Each side hears of its end of the connection, in order.
    for agent, active in ((asks, True), (answers, False)):
        lives = [(name, what) for name, _, what in agent.told if name != "report"]
        assert lives == [("open", active), ("established", active), ("closed", active)]
    one, other = asks.connections[0], answers.connections[0]
    assert (one.source, one.source_port) == (other.target, other.target_port)
    assert one.flow == other.flow == 0


@measures_no_time
@pytest.mark.parametrize("once", [True, False])
@again_if_disturbed
def test_an_option_on_the_first_packet_only(lab: Callable[..., Lab], once: bool) -> None:
    rig = lab()
    rig.agent(rig.a, Recorder(Insert(STAMP, b"\x01\x02", on=("syn",), once=once)))
    back = Recorder(Insert(STAMP, b"\x03\x04", on=("syn-ack", "ack"), once=once))
    rig.agent(rig.b, back)
    for start in ("0 s", "200 ms"):
        rig.net.tcp(rig.a, rig.b, size="50 kB", start=start)
    rig.run()
    sent: Counter[str] = Counter()
    for packet in rig.packets():
        if packet[IP].options:
            flags = {"S": "syn", "SA": "syn-ack"}.get(
                str(packet[TCP].flags).replace("E", "").replace("C", ""), "ack"
            )
            sent[flags] += 1
    assert (sent["syn"], sent["syn-ack"]) == (2, 2)
    assert (sent["ack"] == 0) == once
    assert all(checked(packet) for packet in rig.packets())


@measures_no_time
@pytest.mark.parametrize("each", [True, False])
@again_if_disturbed
def test_of_several_options_each_or_the_first_is_told(lab: Callable[..., Lab], each: bool) -> None:
    rig = lab()
    values = [bytes([value, value]) for value in (7, 9, 8)]
    asks = Recorder(*(Insert(STAMP, value, on=("syn",)) for value in values))
    answers = Recorder(Report(STAMP, each=each))
    rig.agent(rig.a, asks)
    rig.agent(rig.b, answers)
    rig.net.tcp(rig.a, rig.b, size="50 kB")
    rig.run()
    assert answers.reported(30) == (values if each else values[:1])


@measures_no_time
@again_if_disturbed
def test_a_stamp_on_data_is_read_and_echoed_in_the_ack(lab: Callable[..., Lab]) -> None:
    rig = lab()
    sender = Recorder(Insert(STAMP, clock=True), Report(MARK), Signal(MARK))
    receiver = Recorder(Echo(STAMP, MARK))
    rig.agent(rig.a, sender)
    rig.agent(rig.b, receiver)
    rig.net.tcp(rig.a, rig.b, size="100 kB")
    rig.run()
    data = [packet for packet in rig.sent_by(rig.a) if payload(packet) > 0]
    stamps = [ip_option(packet) for packet in data]
    assert None not in stamps
    assert stamps == sorted(stamps, key=lambda stamp: stamp or b"")
    echoes = [echo for packet in rig.sent_by(rig.b) if (echo := tcp_option(packet)) is not None]
    assert len(echoes) > 20
    assert set(echoes) <= set(stamps)
    # The sender is told of each echo once.
    assert sender.reported(253) == list(dict.fromkeys(echoes))
    assert all(checked(packet) for packet in rig.packets())


@again_if_disturbed
def test_a_pacing_rate_is_set_and_lifted(lab: Callable[..., Lab]) -> None:
    rig = lab(rate="100 Mbit/s", queue="500 packets")
    agent = Recorder()
    rig.agent(rig.a, agent)
    flow = rig.net.tcp(rig.a, rig.b)
    rig.net.record("100 ms")
    rig.net.at("500 ms", lambda: agent.connections[0].pace("10 Mbit/s"))
    rig.net.at("3 s", lambda: agent.connections[0].pace(None))
    rig.net.at("4500 ms", lambda: agent.connections[0].limit_cwnd(8))
    result = rig.run("6 s")
    # Over two seconds: a pause of the machine that `is_disturbed` lets pass, 25 ms, is 1.25 % of them.
    assert mbps(result, flow, 1, 3) == pytest.approx(10, rel=0.02)
    assert mbps(result, flow, 3.5, 4.5) > 80
    # Eight packets in a round trip of 10 ms, and what the hosts take of it.
    limited = samples_of(result, flow, 5, 6)
    assert limited["in_flight_packets"].max() <= 8
    round_trip = limited["srtt_ms"].mean()
    assert 10 < round_trip < 15
    assert mbps(result, flow, 5, 6) == pytest.approx(8 * 1448 * 8e-3 / round_trip, rel=0.1)


@measures_no_time
@again_if_disturbed
def test_room_for_options_is_kept(lab: Callable[..., Lab]) -> None:
    rig = lab()
    rig.agent(rig.a, Recorder(Insert(MARK, bytes(6), on=("syn", "data", "ack")), Insert(STAMP, bytes(10))))
    flow = rig.net.tcp(rig.a, rig.b, size="300 kB")
    result = rig.run()
    sizes = {(packet[IP].len, payload(packet)) for packet in rig.sent_by(rig.a) if payload(packet) > 1000}
    # 1448 less 8 for TCP's option and 12 for IP's.
    assert sizes == {(1500, 1428)}
    syns = [dict(packet[TCP].options)["MSS"] for packet in rig.packets() if packet[TCP].flags.S]
    assert syns == [1460, 1460]
    assert result.flows["finish_s"][flow.number] is not None
    assert sum(result.queues["too_large"]) == 0


@measures_no_time
@again_if_disturbed
def test_an_option_that_finds_no_room_is_left_out_and_counted(lab: Callable[..., Lab]) -> None:
    rig = lab(rate="10 Mbit/s", queue="20 packets")
    attached = rig.agent(rig.b, Recorder(Insert(MARK, bytes(10), on=("ack",))))
    counted: list[int] = []
    rig.net.at("2500 ms", lambda: counted.append(attached.counts()["no_room"]))
    rig.net.tcp(rig.a, rig.b, size="1 MB")
    rig.run("3 s")
    acks = [packet for packet in rig.sent_by(rig.b) if not packet[TCP].flags.S]
    without = [packet for packet in acks if tcp_option(packet) is None]
    assert counted == [len(without)]
    assert 0 < len(without) < len(acks)
    # TCP's own come first: with two blocks and timestamps, 8 bytes are left.
    assert all(len(dict(packet[TCP].options)["SAck"]) >= 4 for packet in without)


class Sender(Agent):
    """Sends an ACK of its own now and then."""

    period = "10 ms"

    def tick(self, now: int, connections: Sequence[Connection]) -> None:
        for connection in connections:
            connection.send(STAMP, b"\1\2")


@measures_no_time
@again_if_disturbed
def test_an_ack_beside_tcp_s_acknowledges_no_more_than_these(lab: Callable[..., Lab]) -> None:
    # Packets are lost: what comes behind them waits.
    rig = lab(rate="10 Mbit/s", queue="20 packets")
    rig.agent(rig.b, Sender())
    rig.net.tcp(rig.a, rig.b, size="1 MB")
    rig.run("2 s")
    # In the simulator, what a delayed ACK would say is said by it already.
    more = 2 * 1448 if rig.backend == "sim" else 0
    said, beside, waits = 0, 0, 0
    for packet in rig.sent_by(rig.b):
        if ip_option(packet) is None:
            waits = "SAck" in dict(packet[TCP].options)
            said = packet[TCP].ack
        elif said:
            beside += waits
            assert (said + more - packet[TCP].ack) % 2**32 < 2**31
    assert beside > 5


@measures_no_time
@pytest.mark.parametrize("same", [True, False], ids=["same key", "another key"])
@again_if_disturbed
def test_an_option_counts_with_the_right_check(lab: Callable[..., Lab], same: bool) -> None:
    rig = lab()
    option, keys = Option("ip", 94), (0x0123456789ABCDEF, 0xFEDCBA9876543210)
    data = bytes(range(8, 15)) + bytes(3)
    other = keys if same else (keys[0], keys[1] ^ 1)
    asks = Recorder(Insert(option, data, on=("syn", "data")), Report(option), Check(option, other, signing=1))
    answers = Recorder(Insert(option, data, on=("syn-ack",)), Report(option), Check(option, keys, signing=0))
    heard = rig.agent(rig.b, answers)
    hears = rig.agent(rig.a, asks)
    counts: list[int] = []
    rig.net.at("900 ms", lambda: counts.extend(one.counts()["refused"] for one in (hears, heard)))
    rig.net.tcp(rig.a, rig.b, size="50 kB")
    rig.run()
    told = answers.reported(94)
    # A SYN and the data that follow; what is signed says with which key.
    if same:
        # In the simulator a SYN's number, which is in its check, is 0.
        assert len(told) == (2 if rig.backend == "live" else 1)
        assert {one[:7] for one in told} == {bytes([data[0] | 0x40]) + data[1:7]}
        assert len({one[7:] for one in told}) == len(told)
        assert asks.reported(94)[0][:7] == data[:7]
        assert counts == [0, 0]
    else:
        assert told == []
        # The first key is the same.
        assert len(asks.reported(94)) == 1
        assert counts[0] == 0
        assert counts[1] >= 2


@again_if_disturbed
def test_an_agent_that_dies_leaves_nothing(lab: Callable[..., Lab]) -> None:
    rig = lab()

    class Limiter(Recorder):
        period = "100 ms"
        ticks = 0

        def tick(self, now: int, connections: Sequence[Connection]) -> None:
            self.ticks += 1
            for connection in connections:
                connection.pace("5 Mbit/s")

    agent = Limiter(Insert(MARK, bytes(2)))
    attached = rig.agent(rig.a, agent)
    flow = rig.net.tcp(rig.a, rig.b)
    rig.net.record("100 ms")
    rig.net.at("1550 ms", attached.kill)
    result = rig.run("3 s")
    # None after its end. Of real hosts, a tick that comes too late is skipped.
    assert 12 <= agent.ticks <= 15 if rig.backend == "live" else agent.ticks == 15
    assert mbps(result, flow, 0.5, 1.5) == pytest.approx(5, rel=0.1)
    assert mbps(result, flow, 2, 3) > 16
    marked = [float(packet.time) for packet in rig.sent_by(rig.a) if tcp_option(packet) is not None]
    assert 1.4 < max(marked) < 1.7
    with pytest.raises(TidegateError, match="is not running"):
        attached.kill()


@measures_no_time
def test_an_agent_that_fails_ends_the_run(lab: Callable[..., Lab]) -> None:
    rig = lab()

    class Failing(Agent):
        def on_established(self, now: int, connection: Connection) -> None:
            raise RuntimeError("on purpose")

    rig.agent(rig.a, Failing())
    rig.net.tcp(rig.a, rig.b)
    with pytest.raises(RuntimeError, match="on purpose"):
        rig.run()


@again_if_disturbed
def test_an_agent_that_does_nothing_changes_nothing(lab: Callable[..., Lab]) -> None:
    def run(with_agent: bool) -> tuple[Lab, Result]:
        rig = lab(queue="12 packets")
        if with_agent:
            rig.agent(rig.a, Agent())
            rig.agent(rig.b, Recorder(Report(STAMP)))
        # First, so that iperf3's handshake for it finds room in the queue.
        rig.net.udp(rig.a, rig.b, rate="2 Mbit/s")
        rig.net.tcp(rig.a, rig.b, size="1 MB", start="500 ms")
        return rig, rig.run("2 s")

    alone, plain = run(False)
    before = alone.file.read_bytes()
    rig, result = run(True)
    if rig.backend == "sim":
        assert (plain.flows.to_dicts(), before) == (result.flows.to_dicts(), rig.file.read_bytes())
    assert result.flows["bytes_received"][1] == plain.flows["bytes_received"][1] == 1_000_000
    own = {"MSS", "SAckOK", "Timestamp", "NOP", "WScale", "SAck"}
    assert all({name for name, _ in packet[TCP].options} <= own for packet in rig.packets())
    packets = rdpcap(str(rig.file))
    assert all(packet[IP].ihl == 5 for packet in packets)
    assert sum(UDP in packet for packet in packets) > 265


@again_if_disturbed
def test_of_two_agents_of_a_host_the_lesser_limit_holds(lab: Callable[..., Lab]) -> None:
    rig = lab(rate="100 Mbit/s", queue="500 packets")

    class Pacer(Recorder):
        rate = "10 Mbit/s"

        def on_established(self, now: int, connection: Connection) -> None:
            connection.pace(self.rate)

    class Slower(Pacer):
        rate = "5 Mbit/s"

    rig.agent(rig.a, Pacer(Insert(MARK, b"\1\2"), Insert(STAMP, b"\1\2")))
    second = rig.agent(rig.a, Slower(Insert(Option("tcp", 77), b"\3\4"), Insert(Option("ip", 31), b"\3\4")))
    told = Recorder(Report(MARK), Report(Option("tcp", 77)), Report(Option("ip", 31)))
    rig.agent(rig.b, told)
    flow = rig.net.tcp(rig.a, rig.b)
    rig.net.record("100 ms")
    rig.net.at("1550 ms", second.kill)
    result = rig.run("3 s")
    assert mbps(result, flow, 0.5, 1.5) == pytest.approx(5, rel=0.05)
    assert mbps(result, flow, 2, 3) == pytest.approx(10, rel=0.05)
    data = [packet for packet in rig.sent_by(rig.a) if payload(packet) > 0]
    for packet in data:
        # By the run's clock, as the kill: a real flow may start late.
        early, late = packet.time < 1.5, packet.time > 1.8
        # The first agent is next to TCP: its options come first.
        if early:
            assert [(bytes(one)[0], bytes(one)[2:]) for one in packet[IP].options][:2] == [
                (30, b"\1\2"),
                (31, b"\3\4"),
            ]
            assert [option for option in packet[TCP].options if option[0] in (77, 253)] == [
                (253, b"\1\2"),
                (77, b"\3\4"),
            ]
        if late:
            assert (ip_option(packet, 30), ip_option(packet, 31)) == (b"\1\2", None)
            assert (tcp_option(packet, 253), tcp_option(packet, 77)) == (b"\1\2", None)
    assert (told.reported(253), told.reported(77), told.reported(31)) == ([b"\1\2"], [b"\3\4"], [b"\3\4"])


@measures_no_time
@again_if_disturbed
def test_the_largest_value_is_echoed_once(lab: Callable[..., Lab]) -> None:
    rig = lab()
    rig.agent(rig.a, Recorder(Insert(STAMP, clock=True)))
    rig.agent(rig.b, Recorder(Echo(STAMP, MARK, keep="max")))
    rig.net.tcp(rig.a, rig.b, size="100 kB")
    rig.run()
    stamps = [ip_option(packet) for packet in rig.sent_by(rig.a)]
    echoes = [echo for packet in rig.sent_by(rig.b) if (echo := tcp_option(packet)) is not None]
    assert len(echoes) > 20
    # Packets that leave together have one stamp.
    assert Counter(echoes) <= Counter(stamps)


BREAK = """
#include <core.p4>
#include <v1model.p4>

header ethernet_t { bit<112> fields; }
header ipv4_t { bit<4> version; bit<4> ihl; bit<64> first; bit<8> protocol; bit<80> last; }
header tcp_t { bit<96> first; bit<4> offset; bit<60> last; }
header timestamps_t { bit<96> bytes; }
header option_t { bit<16> head; bit<16> data; }

struct headers_t { ethernet_t ethernet; ipv4_t ipv4; option_t in_ip; tcp_t tcp; timestamps_t stamps; option_t in_tcp; }
struct metadata_t { }

parser Parse(packet_in packet, out headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    state start {
        packet.extract(hdr.ethernet);
        packet.extract(hdr.ipv4);
        transition select(hdr.ipv4.ihl) { 6: in_ip; default: tcp; }
    }
    state in_ip { packet.extract(hdr.in_ip); transition tcp; }
    state tcp {
        packet.extract(hdr.tcp);
        transition select(hdr.tcp.offset) { 9: in_tcp; default: accept; }
    }
    state in_tcp { packet.extract(hdr.stamps); packet.extract(hdr.in_tcp); transition accept; }
}
control Verify(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Break(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) {
    register<bit<32>>(1) seen;
    apply {
        standard.egress_spec = standard.ingress_port ^ 1;
        bit<32> number;
        seen.read(number, 0);
        if (hdr.in_ip.isValid() || hdr.in_tcp.isValid()) {
            number = number + 1;
            seen.write(0, number);
            if (number == 5) {
                // A length beyond the header. The checksum is the same.
                if (hdr.in_ip.isValid()) {
                    hdr.in_ip.head = hdr.in_ip.head + 0x50;
                    hdr.in_ip.data = hdr.in_ip.data - 0x50;
                } else {
                    hdr.in_tcp.head = hdr.in_tcp.head + 0x50;
                    hdr.in_tcp.data = hdr.in_tcp.data - 0x50;
                }
            }
        }
    }
}
control Nothing(inout headers_t hdr, inout metadata_t meta, inout standard_metadata_t standard) { apply { } }
control Compute(inout headers_t hdr, inout metadata_t meta) { apply { } }
control Deparse(packet_out packet, in headers_t hdr) { apply { packet.emit(hdr); } }
V1Switch(Parse(), Verify(), Break(), Nothing(), Compute(), Deparse()) main;
"""


@pytest.mark.parametrize("option", [STAMP, MARK], ids=["ip", "tcp"])
@again_if_disturbed
def test_a_packet_with_a_malformed_option_is_dropped(
    option: Option, lab: Callable[..., Lab], tmp_path: Path
) -> None:
    program = tmp_path / "break.p4"
    program.write_text(BREAK)
    rig = lab(program=program)
    data = b"\x7f\xff"
    rig.agent(rig.a, Recorder(Insert(option, data)))
    told = Recorder(Report(option))
    rig.agent(rig.b, told)
    flow = rig.net.tcp(rig.a, rig.b, size="100 kB")
    result = rig.run()
    whole, broken = bytes((option.kind, 4)) + data, bytes((option.kind, 0x54)) + b"\x7f\xaf"
    came = [bytes(packet) for packet in rig.sent_by(rig.a)]
    assert sum(broken in packet for packet in came) == 1
    assert sum(whole in packet for packet in came) > 60
    # The host did not take it: it came a second time.
    (place,) = (number for number, packet in enumerate(came) if broken in packet)
    sequences = [packet[TCP].seq for packet in rig.sent_by(rig.a)]
    assert sequences.count(sequences[place]) == 2
    assert result.flows["retransmits"][flow.number] == 1
    assert result.flows["bytes_received"][flow.number] == 100_000
    assert told.reported(option.kind) == [data]
    assert result.malformed_options == (1 if rig.backend == "sim" else 0)


@measures_no_time
@pytest.mark.parametrize(
    ("shim", "what"),
    [
        (Insert(Option("tcp", 8)), "TCP's own"),
        (Insert(Option("ip", 1)), "padding"),
        (Insert(Option("udp", 253)), "no header `udp`"),  # type: ignore[arg-type]
        (Insert(Option("tcp", 256)), "more than 8 bits"),
        (Insert(MARK, on=("fin",)), "no kind of packet `fin`"),  # type: ignore[arg-type]
        (Echo(STAMP, MARK, keep="least"), "not `least`"),  # type: ignore[arg-type]
    ],
)
def test_shims_that_make_no_sense_are_refused(shim: Shim, what: str, lab: Callable[..., Lab]) -> None:
    rig = lab()
    rig.agent(rig.a, Recorder(shim))
    with pytest.raises(TidegateError, match=what):
        rig.run()


@pytest.mark.parametrize("option", [Option("shim", 0x0800), Option("tag", 0x8100), Option("shim", 12)])
def test_ethertypes_that_mean_something_else_are_refused(option: Option, tmp_path: Path) -> None:
    rig = Lab(tmp_path, "sim")
    rig.agent(rig.a, Recorder(Report(option)))
    with pytest.raises(TidegateError, match="is no EtherType for a header of its own"):
        rig.run()


def test_agents_are_checked_where_they_are_named(tmp_path: Path) -> None:
    net = Network()
    host, router = net.host("a"), net.router("r")
    with pytest.raises(TidegateError, match="r is no host"):
        net.agent(router, Agent())
    with pytest.raises(TidegateError, match="is no agent"):
        net.agent(host, Agent)  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match="38 bytes"):
        Insert(MARK, bytes(39))
    with pytest.raises(TidegateError, match="a shim header has room for 64 bytes of data, not for 65"):
        Insert(Option("shim", 0x88B5), bytes(65))
    with pytest.raises(TidegateError, match="a tag has 2 bytes of data, not 8"):
        Insert(Option("tag", 0x9900), clock=True)
    with pytest.raises(TidegateError, match="either `data` or `clock`"):
        Insert(MARK, b"1", clock=True)
