"""Stamps in a network: what hosts read is the queue that the simulator has recorded."""

from pathlib import Path

import polars as pl
from scapy.layers.inet import IP
from scapy.packet import Packet
from scapy.utils import rdpcap

from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Echo, Insert, Report, Shim
from tidegate.network import Network
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.setup import stamping


class Host(Agent):
    """Keeps what it is told of the stamps."""

    def __init__(self, form: Format, *shims: Shim) -> None:
        self.form = form
        self.shims = shims
        self.told: list[tuple[int, int, int]] = []

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        self.told.append((now, *self.form.read(data)))


def checksum_is_right(packet: Packet) -> bool:
    anew = packet.copy()
    del anew.chksum
    return bool(IP(bytes(anew)).chksum == packet.chksum)


def by_segment(file: Path) -> dict[bytes, Packet]:
    """The data packets of a capture that the receiver gets, by what no switch changes of them."""
    packets = [packet for packet in rdpcap(str(file)) if packet[IP].options]
    return {bytes(packet[IP].payload)[:40]: packet for packet in packets}


def waits_us(arrivals: Path, departures: Path) -> dict[bytes, float]:
    """How long each packet waited in a switch, from captures of its last bit's arrival and of its first bit's departure."""
    came, left = by_segment(arrivals), by_segment(departures)
    return {key: (float(left[key].time) - float(came[key].time)) * 1e6 for key in left}


def test_a_stamp_is_the_longest_wait_of_its_packet(tmp_path: Path) -> None:
    # A code is a microsecond.
    form = Format("65536 us", bits=16)
    net = Network()
    a, b = net.host("a"), net.host("b")
    first, second = stamping(net, "first", form), stamping(net, "second", form)
    access = net.link(a, first, rate="1 Gbit/s", delay="10 us")
    middle = net.link(first, second, rate="50 Mbit/s", delay="1 ms", queue="100 packets")
    last = net.link(second, b, rate="40 Mbit/s", delay="1 ms", queue="60 packets")
    sender = Host(form, Insert(form.option, form.blank), Report(form.echo))
    receiver = Host(form, Report(form.option), Echo(form.option, form.echo))
    net.agent(a, sender)
    net.agent(b, receiver)
    net.tcp(a, b, size="2 MB")
    net.record("1 ms", queues=[middle, last])
    ends = [(access, first), (middle, first), (middle, second), (last, second)]
    files = [tmp_path / f"{number}.pcap" for number in range(4)]
    for (link, node), file in zip(ends, files, strict=True):
        net.capture(link, node, file)
    result = net.run("2 s", progress=False)

    at_first, at_second = waits_us(*files[:2]), waits_us(*files[2:])
    arrived = by_segment(files[3])
    assert len(arrived) > 1300
    assert max(at_second.values()) > 15_000
    assert sum(at_first[key] > at_second[key] for key in arrived) > 20
    for key, packet in arrived.items():
        stamp = form.read(bytes(packet[IP].options[0])[2:])
        # Two readings of a clock of 1 us.
        assert abs(stamp.code - max(at_first[key], at_second[key])) < 1.001
        assert stamp.hops == 2
        assert checksum_is_right(packet[IP])
    # The receiver is told of each stamp that differs from the last, and the sender of each that an ACK brings.
    codes = [form.read(bytes(packet[IP].options[0])[2:]).code for packet in arrived.values()]
    changes = [code for before, code in zip([None, *codes], codes, strict=False) if code != before]
    assert [code for _, code, _ in receiver.told] == changes
    assert {told[1:] for told in sender.told} <= {told[1:] for told in receiver.told}
    assert len(sender.told) > 600
    recorded = result.queues.filter(pl.col("queue") == "second -> b")["queue_delay_ms_max"].item()
    assert abs(max(codes) - recorded * 1000) < 1.001
