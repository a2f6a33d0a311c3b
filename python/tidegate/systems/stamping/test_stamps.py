"""Stamps in a network: what hosts read is the queue that the simulator has recorded."""

from __future__ import annotations

import itertools
from pathlib import Path

import polars as pl
import pytest
from scapy.layers.inet import IP, UDP, IPOption
from scapy.utils import RawPcapNgReader, RawPcapReader

from tidegate import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Echo, Insert, Report, Shim
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.stamping.field import Carrier, Stamp
from tidegate.systems.stamping.format import Format, Source
from tidegate.systems.stamping.model import find, with_checksum
from tidegate.systems.stamping.setup import stamping


class Host(Agent):
    """Keeps what it is told of the stamps."""

    def __init__(self, form: Format, *shims: Shim) -> None:
        self.form = form
        self.shims = shims
        self.told: list[Stamp] = []

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        self.told.append(self.form.read(data))


class Lab:
    """Two hosts over two stamping switches; the second's link is the slower one."""

    def __init__(self, form: Format, folder: Path, clock: str = "1 us", size: str = "2 MB") -> None:
        self.form = form
        self.net = net = Network()
        a, b = net.host("a"), net.host("b")
        first, second = (stamping(net, name, form, clock=clock) for name in ("first", "second"))
        access = net.link(a, first, rate="1 Gbit/s", delay="10 us")
        middle = net.link(first, second, rate="50 Mbit/s", delay="1 ms", queue="100 packets")
        last = net.link(second, b, rate="40 Mbit/s", delay="1 ms", queue="60 packets")
        self.sender = Host(form, Insert(form.option, form.blank), Report(form.echo))
        self.receiver = Host(form, Report(form.option), Echo(form.option, form.echo))
        net.agent(a, self.sender)
        net.agent(b, self.receiver)
        net.tcp(a, b, size=size)
        net.record("1 ms", queues=[middle, last])
        ends = [(access, first), (middle, first), (middle, second), (last, second)]
        self.files = [folder / f"{number}.pcap" for number in range(4)]
        for (link, node), file in zip(ends, self.files, strict=True):
            net.capture(link, node, file)

    def run(self) -> Result:
        return self.net.run("2 s", progress=False)

    def packets(self, file: int) -> dict[bytes, tuple[int, bytes]]:
        """Time in nanoseconds, and bytes, of the packets with stamps in a capture, by what no switch changes of them."""
        found = {}
        for frame, info in RawPcapReader(str(self.files[file])):
            assert not isinstance(info, RawPcapNgReader.PacketMetadata)
            at = find(self.form, frame)
            if isinstance(at, int):
                ip = 14 if self.form.carrier == "option" else at + self.form.size
                payload = ip + (frame[ip] & 15) * 4
                found[frame[payload : payload + 40]] = (info.sec * 10**9 + info.usec, frame)
        return found

    def times(self) -> list[dict[bytes, int]]:
        """When packets came to the first switch and left it, and the same of the second: last bits, and first bits."""
        return [{key: at for key, (at, _) in self.packets(file).items()} for file in range(4)]

    def stamp(self, frame: bytes) -> Stamp:
        at = find(self.form, frame)
        assert isinstance(at, int)
        end = at + self.form.size
        plain = frame if self.form.carrier == "option" else frame[:14] + frame[end:]
        assert plain == with_checksum(plain)
        return self.form.read(frame[at:end])


# A code is a tick of the clock.
@pytest.mark.parametrize(
    ("clock", "form", "tick_ns"),
    [
        ("1 us", Format("65536 us", 16), 1000),
        ("1 ns", Format("4294967296 ns", 32), 1),
        ("1 us", Format("65536 us", 16, carrier="shim"), 1000),
    ],
    ids=["us", "ns", "shim"],
)
def test_a_stamp_is_the_longest_wait_of_its_packet(
    clock: str, form: Format, tick_ns: int, tmp_path: Path
) -> None:
    lab = Lab(form, tmp_path, clock)
    result = lab.run()
    times = lab.times()
    arrived = lab.packets(3)
    # From the arrival of a packet's last bit at a switch to the departure of its first, in nanoseconds.
    waits = [tuple(times[after][key] - times[after - 1][key] for after in (1, 3)) for key in arrived]
    stamps = [lab.stamp(frame) for _, frame in arrived.values()]
    assert len(stamps) > 1300
    # Either switch has the longer queue for some.
    assert max(second for _, second in waits) > 15_000_000
    assert sum(first > second for first, second in waits) > 20
    # Two readings of a clock.
    differences = [stamp.code * tick_ns - max(each) for stamp, each in zip(stamps, waits, strict=True)]
    assert max(map(abs, differences)) <= tick_ns
    assert {stamp.hops for stamp in stamps} == {2}
    recorded = result.queues.filter(pl.col("queue") == "second -> b")["queue_delay_ms_max"].item()
    assert abs(max(stamps).code * tick_ns - recorded * 1e6) <= tick_ns + 1e-3
    # The receiver is told of each stamp that differs from the last, and the sender of each that an ACK brings.
    changes = [stamp for before, stamp in zip([None, *stamps], stamps, strict=False) if stamp != before]
    assert lab.receiver.told == changes
    assert set(lab.sender.told) <= set(changes)
    assert len(lab.sender.told) > 150


def test_a_vector_has_the_wait_of_each_hop(tmp_path: Path) -> None:
    lab = Lab(Format("65536 us", 16, fold="vector", capacity=4), tmp_path)
    lab.run()
    times = lab.times()
    arrived = lab.packets(3)
    assert len(arrived) > 400
    for key, (_, frame) in arrived.items():
        stamp = lab.stamp(frame)
        assert len(stamp.codes) == stamp.hops == 2
        for hop, code in enumerate(stamp.codes):
            assert abs(code - (times[2 * hop + 1][key] - times[2 * hop][key]) / 1000) < 1.001


@pytest.mark.parametrize(
    ("source", "own"), [("packets", False), ("packets", True), ("bytes", False), ("bytes", True)]
)
def test_a_stamp_is_the_queue_that_its_packet_has_found(source: Source, own: bool, tmp_path: Path) -> None:
    # A code is a packet or 4 bytes.
    full = 65536 if source == "packets" else 262_144
    lab = Lab(Format(full, 16, source, "vector", capacity=2, own=own), tmp_path)
    result = lab.run()
    assert result.queues["dropped"].sum() > 0
    exact = 0
    arrived = lab.packets(3)
    for hop in range(2):
        came, left = lab.packets(2 * hop), lab.packets(2 * hop + 1)
        departures = sorted((at, len(frame)) for at, frame in left.values())
        for key, (_, frame) in arrived.items():
            at = came[key][0]
            ahead = [size for when, size in departures if at < when < left[key][0]]
            found = (len(ahead) if source == "packets" else sum(ahead)) + own * (
                1 if source == "packets" else len(frame)
            )
            told = lab.form.decode(lab.stamp(frame).codes[hop])
            # What has been dropped since the last departure is counted with the bytes.
            assert told >= found - 3.9
            exact += abs(told - found) < 4
    assert exact > 0.97 * 2 * len(arrived)
    assert exact == 2 * len(arrived) or source == "bytes"


def load(rate: str, tmp_path: Path) -> list[float]:
    """Utilisations in the packets of a UDP flow over a link of 40 Mbit/s, after the start."""
    form = Format(4.0, 16, "utilisation", base_rtt="10 ms")
    net = Network()
    a, b = net.host("a"), net.host("b")
    switch = stamping(net, "switch", form)
    net.link(a, switch, rate="1 Gbit/s", delay="10 us")
    last = net.link(switch, b, rate="40 Mbit/s", delay="1 ms", queue="60 packets")
    net.agent(a, Host(form, Insert(form.option, form.blank, on=("udp",))))
    net.udp(a, b, rate=rate, payload=1460)
    net.capture(last, b, tmp_path / "b.pcap")
    net.run("500 ms", progress=False)
    frames = [frame for frame, _ in RawPcapReader(str(tmp_path / "b.pcap"))]
    places = [(frame, find(form, frame)) for frame in frames]
    found = [form.read(frame[at : at + form.size]) for frame, at in places if isinstance(at, int)]
    assert {stamp.hops for stamp in found} == {1}
    return [form.decode(stamp.code) for stamp in found[len(found) // 4 :]]


def test_the_utilisation_of_a_link_with_room_is_its_load(tmp_path: Path) -> None:
    told = load("20 Mbit/s", tmp_path)
    assert len(told) > 100
    assert sum(told) / len(told) == pytest.approx(0.5, rel=0.06)


def test_the_utilisation_of_a_full_link_has_its_standing_queue(tmp_path: Path) -> None:
    told = load("60 Mbit/s", tmp_path)
    assert len(told) > 100
    # All of the link, and 60 packets in the bytes of 10 ms.
    assert sum(told) / len(told) == pytest.approx(1 + 59 * 1510 / 50_000, rel=0.03)


class BrokenFrames(Controller):
    """Has a switch get a frame each millisecond, and reads what it has not stamped."""

    period = "1 ms"

    def __init__(self, frame: bytes) -> None:
        self.frame = frame
        self.unstamped: list[int] = []

    def start(self, switch: SwitchApi) -> None:
        switch.generator_set(0, port=500, packet=self.frame, period="1 ms")

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.unstamped = [int(packets) for packets, _ in switch.counter_read("unstamped")]


@pytest.mark.parametrize("carrier", ["option", "shim"])
def test_malformed_fields_are_counted_by_switches_and_hosts(carrier: Carrier) -> None:
    form = Format("1 ms", carrier=carrier)
    net = Network()
    a, b = net.host("a"), net.host("b")
    switch = stamping(net, "switch", form)
    for host in (a, b):
        net.link(host, switch, rate="1 Gbit/s", delay="10 us")
        net.agent(host, Host(form, Insert(form.option, form.blank), Report(form.option, each=True)))
    flow = net.tcp(a, b, size="100 kB")
    addresses = bytes.fromhex((net.mac(b) + net.mac(a)).replace(":", ""))
    ip = IP(src=net.address(a), dst=net.address(b), proto=17, options=IPOption(b"\x1e\x04\x00\x00"))
    broken = {
        # An option and a shim that end behind their header.
        "option": bytes(ip / UDP(sport=1, dport=2)).replace(b"\x1e\x04", b"\x1e\x09"),
        "shim": bytes.fromhex("0800090000"),
    }
    frame = addresses + bytes.fromhex("0800" if carrier == "option" else "88b5") + broken[carrier]
    source = BrokenFrames(with_checksum(frame) if carrier == "option" else frame)
    net.control(source, switch)
    result = net.run("20.5 ms", progress=False)
    # The last one is on its way at the last look.
    assert source.unstamped[0] in (19, 20)
    assert source.unstamped[1:] == [0, 0, 0]
    assert result.malformed_options in (20, 21)
    assert result.flows.row(flow.number, named=True)["bytes_received"] == 100_000


def test_a_path_longer_than_the_vector_is_refused() -> None:
    form = Format("1 ms", fold="vector", capacity=2)
    net = Network()
    a, b = net.host("a"), net.host("b")
    switches = [stamping(net, f"s{number}", form) for number in range(3)]
    nodes = [a, switches[0], net.router("r"), *switches[1:], b]
    for one, other in itertools.pairwise(nodes):
        net.link(one, other, rate="1 Gbit/s", delay="10 us")
    with pytest.raises(TidegateError, match="3 stamping switches, and the vector room for 2"):
        net.run("1 ms", progress=False)
