"""A tap: a switch without a link of its own sees what goes over a link, and nobody else notices."""

from collections import Counter, defaultdict
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP
from scapy.utils import rdpcap

from live import needs_iperf3, needs_namespaces, untimed
from tidegate import TidegateError
from tidegate.control import Controller, PacketIn, SwitchApi
from tidegate.network import Network

MONITOR = Path(__file__).parents[1] / "crates/network/tests/data/monitor.p4"


class Watcher(Controller):
    """Keeps what the monitor hands up, by the port that it came by."""

    def __init__(self) -> None:
        self.seen: dict[int, list[bytes]] = defaultdict(list)

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        self.seen[int.from_bytes(packet.data[:2])].append(packet.data[2:] + bytes(packet.more))


def run(
    folder: Path, tapped: bool, backend: str = "sim"
) -> tuple[dict[int, list[bytes]], bytes, list[dict[str, object]]]:
    net = Network()
    a, b, r = net.host("a"), net.host("b"), net.router("r")
    net.link(a, r, rate="100 Mbit/s", delay="1 ms")
    narrow = net.link(r, b, rate="10 Mbit/s", delay="2 ms", queue="20 packets")
    monitor = net.switch("monitor", MONITOR, cpu_port=64)
    watcher = Watcher()
    net.control(watcher, monitor)
    if tapped:
        net.tap(narrow, monitor)
    file = folder / "b.pcap"
    net.capture(narrow, b, file)
    net.tcp(a, b, size="200 kB")
    net.udp(b, a, rate="100 kbit/s", start="100 ms")
    result = net.run("2 s", backend=backend, progress=False)
    return watcher.seen, file.read_bytes(), result.flows.to_dicts()


def test_a_tap_sees_what_a_capture_there_has(tmp_path: Path) -> None:
    seen, capture, flows = run(tmp_path, tapped=True)
    packets = rdpcap(str(tmp_path / "b.pcap"))
    for port, source in ((6, "10.0.0.1"), (7, "10.0.0.2")):
        captured = [bytes(packet) for packet in packets if packet[IP].src == source]
        assert len(captured) > 50
        assert seen[port] == captured
    # The monitored ones notice nothing.
    assert run(tmp_path, tapped=False) == ({}, capture, flows)


@needs_namespaces
@untimed
@needs_iperf3
def test_a_tap_between_real_hosts(tmp_path: Path) -> None:
    seen, _, flows = run(tmp_path, tapped=True, backend="live")
    assert flows[0]["bytes_received"] == 200_000
    packets = rdpcap(str(tmp_path / "b.pcap"))
    for port, source in ((6, "10.0.0.1"), (7, "10.0.0.2")):
        captured = [bytes(packet) for packet in packets if IP in packet and packet[IP].src == source]
        # The hosts' goodbye comes after the controller's last call.
        assert len(seen[port]) > 50
        assert seen[port] == captured[: len(seen[port])]


def test_taps_that_make_no_sense_are_refused() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="1 Gbit/s", delay="1 ms")
    monitor = net.switch("monitor", MONITOR, cpu_port=64)
    with pytest.raises(TidegateError, match="a is no switch of this network"):
        net.tap(link, a)  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match="port 6 for both directions"):
        net.tap(link, monitor, reverse=6)
    with pytest.raises(TidegateError, match="every is 0; give the number of seconds"):
        net.tap(link, monitor, every=0)
    net.tap(link, monitor)
    net.tap(link, monitor, forward=7, reverse=8)
    with pytest.raises(TidegateError, match=r"the tap of .*: monitor has a port 7 already"):
        net.run("1 ms", progress=False)


def test_a_tap_shows_flows_in_turns(tmp_path: Path) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="2 Mbit/s", delay="2 ms", queue="20 packets")
    monitor = net.switch("monitor", MONITOR, cpu_port=64)
    watcher = Watcher()
    net.control(watcher, monitor)
    net.tap(link, monitor, every=3)
    file = tmp_path / "b.pcap"
    net.capture(link, b, file)
    for number in range(2):
        net.tcp(a, b, start=f"{100 + number} ms", size="300 kB")
    net.udp(a, b, rate="100 kbit/s", start="1 s", stop="3500 ms")
    net.run("4 s", progress=False)
    shown = Counter[str]()
    expected = []
    for packet in rdpcap(str(file)):
        if packet[IP].src != "10.0.0.1":
            continue
        # Flows have the ports from 10 000 on, in order; UDP's is the first of its kind.
        number = packet[IP].payload.sport - 10_000
        ends = packet.haslayer(TCP) and packet[TCP].flags & "SFR"
        if ends or (int(packet.time) + number) % 3 == 0:
            expected.append(bytes(packet))
            shown["ends" if ends else f"{packet[IP].payload.name} {number}"] += 1
    assert watcher.seen[6] == expected
    assert shown["ends"] == 4
    assert all(shown[flow] > 20 for flow in ("TCP 0", "TCP 1"))
    assert shown["UDP 0"] > 3
