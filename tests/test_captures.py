"""Captures of simulated ports, read back with scapy."""

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import IP, TCP, UDP  # type: ignore[import-untyped]
from scapy.layers.l2 import Ether  # type: ignore[import-untyped]
from scapy.utils import rdpcap  # type: ignore[import-untyped]

from tidegate import TidegateError
from tidegate.network import Network
from tidegate.topologies import dumbbell

ROUTER = Path(__file__).parent.parent / "examples" / "p4" / "ipv4_router" / "ipv4_router.p4"


@pytest.mark.slow
def test_a_transfer_read_back(tmp_path: Path) -> None:
    net = Network()
    bell = dumbbell(net, 1, bottleneck={"rate": "100 Mbit/s", "queue": "50 packets"}, access={"framing": 14})
    ((a, b),) = bell.pairs
    net.tcp(a, b, size="1 MB", ecn="on")
    net.udp(a, b, rate="1 Mbit/s", payload=100, stop="50 ms")
    paths = {node.name: tmp_path / f"{node.name}.pcap" for node in (a, b, bell.left)}
    net.capture(bell.access[0], a, paths["a0"])
    net.capture(bell.access[1], b, paths["b0"])
    net.capture(bell.bottleneck, bell.left, paths["left"], snap="66 B")
    result = net.run("3 s")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a0.pcap", "b0.pcap", "left.pcap"]
    sent, come = rdpcap(str(paths["a0"])), rdpcap(str(paths["b0"]))
    assert len(sent) > 700
    for packets in (sent, come):
        times = [packet.time for packet in packets]
        assert times == sorted(times)
        for packet in packets:
            fresh = Ether(bytes(packet))
            del fresh[IP].chksum, fresh[TCP if TCP in fresh else UDP].chksum
            assert bytes(fresh) == bytes(packet)
            assert bytes(packet)[-1:] == b"\0" or TCP not in packet or not packet[TCP].payload
    # The same packets at both ends: those of a after the way from a, less what the bottleneck dropped.
    address = net.address(a)
    data = [p for p in sent if TCP in p and p[IP].src == address and len(p[TCP].payload)]
    first = {p[TCP].seq: p for p in reversed(data)}
    # From the first segment's first byte to the last one's last, without a gap.
    seq = 1
    for p in sorted(first.values(), key=lambda p: p[TCP].seq):
        assert p[TCP].seq == seq
        seq += len(p[TCP].payload)
    assert seq == 1_000_001
    retransmits = len(data) - len(first)
    assert retransmits == result.flows["retransmits"][0] > 0
    arrived = [p for p in come if TCP in p and p[IP].src == address and len(p[TCP].payload)]
    assert len(data) - len(arrived) == retransmits
    # SYN: 74 bytes over 10 Gbit/s, 100 Mbit/s, 10 Gbit/s, and 10 ms.
    syn = [next(p for p in packets if TCP in p) for packets in (sent, come)]
    assert [str(p[TCP].flags) for p in syn] == ["SEC", "SEC"]
    assert float(syn[1].time - syn[0].time) == pytest.approx(10e-3 + 2 * 74 * 8e-10 + 74 * 8e-8, abs=2e-9)
    # What the host reports as its round trips is what the capture shows: 20 ms.
    answer = next(p for p in sent if TCP in p and str(p[TCP].flags) == "SAE")
    assert float(answer.time - syn[0].time) == pytest.approx(20e-3, rel=1e-3)
    # ECT(0) on what is sent the first time, not on what is sent again (RFC 3168 section 6.1.5).
    again = {seq for seq, count in Counter(p[TCP].seq for p in data).items() if count > 1}
    assert all(p[IP].tos == (0 if p[TCP].seq in again else 2) for p in arrived)
    cut = rdpcap(str(paths["left"]))
    assert max(len(bytes(p)) for p in cut) == 66
    assert max(p.wirelen for p in cut) == 1514


def test_a_capture_at_a_p4_switch(tmp_path: Path) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    router = net.switch("r", ROUTER)
    links = [net.link(host, router, rate="1 Gbit/s", delay="1 ms") for host in (a, b)]
    for port, host in enumerate((a, b)):
        router.commands.append(
            f"table_add routes next_hop {net.address(host)}/32 => {port} 02:00:00:00:ff:00 {net.mac(host)}"
        )
    net.tcp(a, b, size="10 kB")
    net.capture(links[1], router, tmp_path / "r.pcap")
    net.run("1 s")
    packets = rdpcap(str(tmp_path / "r.pcap"))
    to_b = [p for p in packets if p[IP].dst == net.address(b)]
    # The program has put its address in, and taken one from the time to live.
    assert {(p.src, p.dst, p[IP].ttl) for p in to_b} == {("02:00:00:00:ff:00", net.mac(b), 63)}
    assert sum(len(p[TCP].payload) for p in to_b) == 10_000
    assert {p[IP].ttl for p in packets if p not in to_b} == {64}


def test_a_capture_of_a_run_that_fails_is_kept(tmp_path: Path) -> None:
    net = Network()
    bell = dumbbell(net, 1)
    net.tcp(*bell.pairs[0])
    net.capture(bell.bottleneck, bell.left, tmp_path / "x.pcap", snap="60 B")

    def stop() -> None:
        raise KeyboardInterrupt

    net.at("100 ms", stop)
    assert net.run("1 s").interrupted
    assert len(rdpcap(str(tmp_path / "x.pcap"))) > 10


def unwritable(folder: Path) -> Network:
    """A network with three captures, of which the first two cannot be written under their names."""
    net = Network()
    bell = dumbbell(net, 1)
    net.tcp(*bell.pairs[0])
    for name, link in zip(("a", "b", "c"), (bell.bottleneck, *bell.access), strict=True):
        net.capture(link, link.a, folder / f"{name}.pcap", snap="60 B")

    def block() -> None:
        for name in ("a", "b"):
            (folder / f"{name}.pcap").mkdir()

    net.at("50 ms", block)
    return net


def raises(error: BaseException) -> Callable[[], None]:
    def call() -> None:
        raise error

    return call


WRITTEN = r"/{}\.pcap: cannot be written: Is a directory; what there is of it is in .*/\.{}\.pcap\.\w+\.part"
BOTH = f"{WRITTEN.format('a', 'a')}\n.*{WRITTEN.format('b', 'b')}"


def test_a_capture_that_cannot_be_written_leaves_the_others_their_names(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=BOTH):
        unwritable(tmp_path).run("100 ms")
    assert len(rdpcap(str(tmp_path / "c.pcap"))) > 1


def test_a_capture_that_cannot_be_written_does_not_hide_what_ended_the_run(tmp_path: Path) -> None:
    net = unwritable(tmp_path)
    net.at("60 ms", raises(ValueError("mine")))
    with pytest.raises(ValueError, match="mine") as ended:
        net.run("100 ms")
    assert re.search(BOTH, "\n".join(ended.value.__notes__))
    assert (tmp_path / "c.pcap").is_file()


def test_an_interrupted_run_has_its_result_beside_captures_that_cannot_be_written(tmp_path: Path) -> None:
    net = unwritable(tmp_path)
    net.at("60 ms", raises(KeyboardInterrupt()))
    result = net.run("100 ms")
    assert result.interrupted
    assert re.search(BOTH, "\n".join(result.warnings))


def test_what_makes_no_sense_is_refused(tmp_path: Path) -> None:
    net = Network()
    bell = dumbbell(net, 1)
    with pytest.raises(TidegateError, match="right is at no end of a0 - left"):
        net.capture(bell.access[0], bell.right, tmp_path / "x.pcap")
    with pytest.raises(TidegateError, match="a snap length of 0 bytes"):
        net.capture(bell.bottleneck, bell.right, tmp_path / "x.pcap", snap=0)
    net.capture(bell.bottleneck, bell.left, tmp_path / "x.pcap")
    with pytest.raises(TidegateError, match="there is one with that name already"):
        net.capture(bell.bottleneck, bell.right, tmp_path / "x.pcap")
    net.capture(bell.bottleneck, bell.left, tmp_path / "y.pcap")
    with pytest.raises(TidegateError, match=r"y\.pcap: the port of left to right is captured already"):
        net.run("1 s")
    assert list(tmp_path.iterdir()) == []
    other = Network()
    bell = dumbbell(other, 1)
    other.capture(bell.bottleneck, bell.left, tmp_path / "nowhere" / "x.pcap")
    with pytest.raises(TidegateError, match=r"nowhere/x\.pcap: .*cannot be written"):
        other.run("1 s")


def test_packets_have_the_addresses_that_the_description_gives(tmp_path: Path) -> None:
    net = Network()
    hosts = [net.host(f"h{number}") for number in range(300)]
    a, b = hosts[1], hosts[299]
    link = net.link(a, b, rate="1 Gbit/s", delay="1 ms")
    # Ports of the flows from the 16 000th on are dealt anew.
    net.transfers((100 * 10**12, 1000, a, b) for _ in range(16_001))
    flows = [
        net.tcp(a, b, size=1000),
        net.udp(a, b, rate="1 Mbit/s", stop="30 ms"),
        net.tcp(b, a, size=1000),
        net.udp(b, a, rate="1 Mbit/s", stop="30 ms"),
    ]
    net.capture(link, a, tmp_path / "a.pcap")
    net.run("100 ms")
    seen = set()
    for packet in rdpcap(str(tmp_path / "a.pcap")):
        ip, ports = packet[IP], packet[TCP if TCP in packet else UDP]
        seen.add((packet.src, packet.dst, (ip.src, ip.dst, ip.proto, ports.sport, ports.dport)))
    for flow in flows:
        source, target = net.mac(flow.source), net.mac(flow.target)
        assert (source, target, net.five_tuple(flow)) in seen
    assert len(seen) == 2 + 2 * 2


def test_a_capture_leaves_pipes_alone(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="1 Mbit/s", delay="1 ms")
    with pytest.raises(TidegateError, match="that is a device or a pipe; give a file's name"):
        net.capture(link, a, pipe)
    assert pipe.is_fifo()
    with pytest.raises(TidegateError, match="the path of a capture is 5; give a file's name"):
        net.capture(link, a, 5)  # type: ignore[arg-type]
