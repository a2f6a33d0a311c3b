"""The monitor's program: flows, counts and times of packets as bytes, on both engines, and beside `tidegate monitor`."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Literal, cast
from zlib import crc32

import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw

from tidegate.control import Controller, Digest, SwitchApi
from tidegate.monitor import watch
from tidegate.network import Network
from tidegate.replay import replay
from tidegate.systems.separation.controller import COUNTS, LEAVES, OFFERS, TRACKS
from tidegate.systems.separation.measured import SKETCH_LOAD, Flows
from tidegate.systems.separation.setup import program

A, B = "10.0.0.1", "10.0.0.2"
MS = 10**9
"""Picoseconds."""
Engine = Literal["interp", "jit"]


@pytest.fixture(params=["interp", "jit"])
def tap(request: pytest.FixtureRequest) -> Tap:
    return Tap(request.param)


class Tap:
    """A monitor, and a connection from A to B that it sees."""

    def __init__(self, engine: Engine, isn: int = 1000, long_bytes: int = 0) -> None:
        self.api = program(flow_bits=6, packet_bits=8, sketch_bits=8).pipeline(engine)
        self.api.register_write("long_bytes", [long_bytes])
        self.api.register_write("idle_time", [60_000_000])
        self.api.register_write("waiting_time", [2_000_000])
        self.isn = (isn, 9000)

    def see(self, at_ms: float, packet: Packet, port: int = 1) -> None:
        assert self.api.process(round(at_ms * MS), port, bytes(packet)) == []

    def send(
        self, at_ms: float, side: int, seq: int, ack: int, length: int = 0, flags: str = "A", port: int = 1
    ) -> None:
        """`seq` and `ack` count from the sides' first byte of payload."""
        self.see(at_ms, self.packet(side, seq, ack, length, flags), port)

    def packet(self, side: int, seq: int, ack: int, length: int = 0, flags: str = "A") -> Packet:
        ends = (A, B) if side == 0 else (B, A)
        ports = (1000, 80) if side == 0 else (80, 1000)
        mine, theirs = self.isn if side == 0 else self.isn[::-1]
        tcp = TCP(sport=ports[0], dport=ports[1], flags=flags)
        tcp.seq, tcp.ack = (mine + 1 + seq) % 2**32, (theirs + 1 + ack) % 2**32
        return Ether() / IP(src=ends[0], dst=ends[1]) / tcp / Raw(bytes(length))

    def stamped(
        self, side: int, seq: int, ack: int, value: int, echo: int, length: int = 0, flags: str = "A"
    ) -> Packet:
        """With a timestamp's value and echo."""
        packet = self.packet(side, seq, ack, length, flags)
        packet[TCP].options = [("NOP", None), ("NOP", None), ("Timestamp", (value, echo))]
        return packet

    def open(self, at_ms: float = 0.0, rtt_ms: float = 10.0, own_ms: float = 2.0) -> float:
        """The handshake; gives when it is over."""
        self.send(at_ms, 0, -1, 0, flags="S")
        self.send(at_ms + rtt_ms, 1, -1, 0, flags="SA")
        self.send(at_ms + rtt_ms + own_ms, 0, 0, 0)
        return at_ms + rtt_ms + own_ms

    def found(self) -> list[dict[str, int]]:
        return [digest.fields for digest in self.api.digests()]

    def read(self, register: str, side: int = 0) -> int:
        """Of the first flow that was found; the direction from A or from B."""
        if not hasattr(self, "place"):
            (first, *_) = self.found()
            self.place = first["place"]
        return int(self.api.register_read(register, 2 * self.place + side, 1)[0])

    def samples(self, side: int = 0) -> tuple[int, int, int]:
        """Number, least, and sum in microseconds."""
        return tuple(self.read(name, side) for name in ("rtt_samples", "rtt_least", "rtt_sum"))  # type: ignore[return-value]


def test_a_handshake_gives_both_legs(tap: Tap) -> None:
    tap.open(rtt_ms=10.0, own_ms=2.0)
    assert tap.samples(0) == (1, 10_000, 10_000)
    assert tap.samples(1) == (1, 2_000, 2_000)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("isn", [1000, 2**32 - 2000, 2**31 - 2000])
def test_an_acknowledgment_is_paired_with_its_packet_whatever_the_numbers(engine: Engine, isn: int) -> None:
    tap = Tap(engine, isn)
    for n in range(4):
        tap.send(n, 0, 1000 * n, 0, 1000)
    # Delayed: every second packet's. The ECN bits of AccECN stand in the flags.
    tap.send(20, 1, 0, 2000, flags="AEC")
    tap.send(25, 1, 0, 4000)
    assert tap.samples() == (2, 19_000, 19_000 + 22_000)
    assert (tap.read("packets"), tap.read("bytes")) == (4, 4 * 1040)
    assert (tap.read("packets", 1), tap.read("bytes", 1)) == (2, 80)


def test_data_in_both_directions(tap: Tap) -> None:
    tap.send(0, 0, 0, 0, 100)
    tap.send(5, 1, 0, 100, 200)
    tap.send(6, 0, 100, 200, 100)
    assert tap.samples(0)[0] == tap.samples(1)[0] == 1
    assert (tap.samples(0)[1], tap.samples(1)[1]) == (5_000, 1_000)


def test_what_was_sent_twice_gives_no_sample(tap: Tap) -> None:
    tap.send(0, 0, 0, 0, 1000)
    tap.send(200, 0, 0, 0, 1000)
    tap.send(210, 1, 0, 1000)
    assert tap.samples()[0] == 0
    assert tap.read("resent") == 1
    # What comes after it does.
    tap.send(211, 0, 1000, 0, 1000)
    tap.send(222, 1, 0, 2000)
    assert tap.samples() == (1, 11_000, 11_000)


def test_a_syn_that_was_sent_twice_gives_no_sample(tap: Tap) -> None:
    # The answer of the first comes after 1.3 s, when the SYN has been sent again, and is sent again for it.
    tap.send(0, 0, -1, 0, flags="S")
    tap.send(1000, 0, -1, 0, flags="S")
    tap.send(1300, 1, -1, 0, flags="SA")
    tap.send(2300, 1, -1, 0, flags="SA")
    tap.send(2310, 0, 0, 0)
    assert (tap.samples(0)[0], tap.samples(1)[0]) == (0, 0)
    assert (tap.read("resent"), tap.read("resent", 1)) == (1, 1)
    # The same ports again, with other numbers.
    tap.isn = (70_000, 90_000)
    tap.open(5000, rtt_ms=10.0, own_ms=2.0)
    assert (tap.samples(0), tap.samples(1)) == ((1, 10_000, 10_000), (1, 2_000, 2_000))


def test_a_hole_that_is_filled_gives_no_sample(tap: Tap) -> None:
    # The second of three gets lost before the tap.
    tap.send(0, 0, 0, 0, 1000)
    tap.send(0, 0, 2000, 0, 1000)
    tap.send(10, 1, 0, 1000)
    tap.send(10, 1, 0, 1000)
    tap.send(12, 0, 1000, 0, 1000)
    tap.send(22, 1, 0, 3000)
    assert tap.samples()[0] == 0


def test_duplicate_acknowledgments_give_no_samples(tap: Tap) -> None:
    for n in range(4):
        tap.send(n, 0, 1000 * n, 0, 1000)
    tap.send(10, 1, 0, 1000)
    for n in range(3):
        tap.send(11 + n, 1, 0, 1000)
    # The first of the others was lost behind the tap and is sent again: its acknowledgment is for all.
    tap.send(15, 0, 1000, 0, 1000)
    tap.send(25, 1, 0, 4000)
    assert tap.samples() == (1, 10_000, 10_000)


NOPS = [("NOP", None), ("NOP", None)]


@pytest.mark.parametrize(
    ("options", "samples"),
    [
        ([], 2),
        ([*NOPS, ("SAck", (3001, 4001))], 1),
        ([*NOPS, ("Timestamp", (50, 7))], 2),
        ([*NOPS, ("Timestamp", (50, 7)), *NOPS, ("SAck", (3001, 4001))], 1),
    ],
    ids=["none", "SACK", "timestamps", "both"],
)
def test_an_acknowledgment_with_sack_blocks_is_a_duplicate_though_its_window_differs(
    tap: Tap, options: list[tuple[str, object]], samples: int
) -> None:
    for n in range(4):
        tap.send(n, 0, 1000 * n, 0, 1000)
    tap.send(10, 1, 0, 1000)
    # The second comes late, by another way. Without SACK blocks this is an update of the window.
    again = tap.packet(1, 0, 1000)
    again[TCP].window, again[TCP].options = 4000, options
    tap.see(11, again)
    tap.send(40, 1, 0, 4000)
    assert tap.samples() == (samples, 10_000, 10_000 + 37_000 * (samples - 1))
    # What is sent afterwards gives samples.
    tap.send(50, 0, 4000, 0, 1000)
    tap.send(62, 1, 0, 5000)
    assert tap.samples()[0] == samples + 1


def test_the_first_acknowledgment_where_samples_begin_is_no_duplicate(tap: Tap) -> None:
    """Of a flow whose begin was not seen; each acknowledgment is of two packets, and of one where samples may begin."""
    for n in range(6):
        tap.send(n, 0, 2000 + 1000 * n, 0, 1000)
    for n in range(4):
        tap.send(10 + 2 * n, 1, 0, 2000 * n)
    assert tap.samples() == (2, 13_000, 26_000)


def test_two_flows_whose_numbers_have_one_signature_do_not_meet(tap: Tap) -> None:
    """Some of millions of packets have: a flow's base round-trip time would be what another's packet was sent before."""

    def signature(port: int, number: int) -> int:
        ends = b"".join(bytes(map(int, end.split("."))) for end in (A, B))
        flow = crc32(ends + port.to_bytes(2, "big") + (80).to_bytes(2, "big") + b"\6")
        return crc32(flow.to_bytes(4, "big") + bytes(4) + number.to_bytes(4, "big"))

    # CRCs are linear: numbers whose difference has the two flows' difference have one signature. By elimination, bit by bit.
    base = signature(1001, 0)
    rows: list[tuple[int, int]] = []
    for bit in range(32):
        value, of = signature(1001, 1 << bit) ^ base, 1 << bit
        for other, numbers in rows:
            value, of = min((value, of), (value ^ other, of ^ numbers))
        rows.append((value, of))
        rows.sort(reverse=True)
    ahead = 1000 + 1 + 1000
    wanted, number = signature(1000, ahead) ^ base, 0
    for value, of in rows:
        wanted, number = min((wanted, number), (wanted ^ value, number ^ of))
    assert signature(1001, number) == signature(1000, ahead)
    second = Tap.__new__(Tap)
    second.api, second.isn = tap.api, ((number - 1001) % 2**32, 9000)
    tap.send(0, 0, 0, 0, 1000)
    for at, side in ((9, 0), (19, 1)):
        packet = second.packet(side, 0, 1000 * side, 1000 * (1 - side))
        packet[TCP].sport, packet[TCP].dport = (1001, 80) if side == 0 else (80, 1001)
        if side == 1:
            tap.send(10, 1, 0, 1000)
        second.see(at, packet)
    places = tap.found()
    assert [place["low_port"] for place in places] == [1000, 1001]
    for place in places:
        assert int(tap.api.register_read("rtt_least", 2 * place["place"], 1)[0]) == 10_000


def test_acknowledgments_of_what_was_not_sent_give_none(tap: Tap) -> None:
    tap.send(0, 0, 0, 0, 1000)
    tap.send(1, 1, 0, 5000)
    assert tap.samples()[0] == 0
    tap.send(10, 1, 0, 1000)
    assert tap.samples() == (1, 10_000, 10_000)


def test_resets_and_ends(tap: Tap) -> None:
    tap.open()
    tap.send(20, 0, 0, 0, 100, flags="FA")
    assert (tap.read("ended"), tap.read("ended", 1)) == (1, 0)
    tap.send(30, 1, 0, 101)
    assert tap.samples()[0] == 2
    tap.send(31, 1, 0, 101, flags="R")
    assert (tap.read("ended"), tap.read("ended", 1)) == (1, 1)
    # The same ports again.
    tap.send(40, 0, -1, 0, flags="S")
    assert tap.read("ended") == 0


def test_timestamps_are_paired_where_they_first_occur(tap: Tap) -> None:
    # Of a flow whose begin was not seen the first values are not.
    tap.see(0.0, tap.stamped(1, 0, 0, 49, 98))
    tap.see(0.0, tap.stamped(0, 0, 0, 99, 7, 1000))
    tap.see(1.0, tap.stamped(0, 1000, 0, 100, 7, 1000))
    tap.see(1.9, tap.stamped(0, 2000, 0, 100, 7, 1000))
    tap.see(6.0, tap.stamped(1, 0, 2000, 50, 100))
    # A second packet with the value 100 is no new one.
    tap.see(6.1, tap.stamped(0, 3000, 0, 100, 50, 1000))
    tap.see(6.2, tap.stamped(1, 0, 3000, 50, 100))
    assert tap.read("stamp_least") == 5_000
    assert tap.read("stamp_least", 1) == 100


@pytest.mark.parametrize("first", [100, 2**31 - 2])
def test_a_timestamp_that_will_not_come_back_makes_room(tap: Tap, first: int) -> None:
    values = [(first + number) % 2**32 for number in range(4)]
    tap.see(0.0, tap.stamped(0, 0, 0, values[0], 7, 1000))
    tap.see(1.0, tap.stamped(0, 1000, 0, values[1], 7, 1000))
    tap.see(2.0, tap.stamped(0, 2000, 0, values[2], 7, 1000))
    # The other end had both values before it sent anything, and gives back the later one.
    tap.see(7.0, tap.stamped(1, 0, 3000, 50, values[2]))
    assert tap.read("stamp_least") == 0
    tap.see(8.0, tap.stamped(0, 3000, 0, values[3], 50, 1000))
    tap.see(12.0, tap.stamped(1, 0, 4000, 55, values[3]))
    assert tap.read("stamp_least") == 4_000


def test_the_first_timestamp_of_a_flow_whose_begin_was_not_seen_is_not_paired(tap: Tap) -> None:
    # A packet with it may have gone by before the flow had its place: what it brings back comes too early.
    tap.see(0.0, tap.stamped(1, 0, 1000, 50, 7))
    tap.see(0.2, tap.stamped(0, 1000, 0, 100, 50, 1000))
    tap.see(0.3, tap.stamped(1, 0, 2000, 51, 7))
    assert tap.read("stamp_least", 1) == 0
    assert tap.read("stamp_seen", 1) == 51
    tap.see(5.3, tap.stamped(0, 2000, 0, 105, 51, 1000))
    assert tap.read("stamp_least", 1) == 5_000


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("first", [100, 2**32 - 1, 2**31 - 1, 2**31, 3 * 2**30])
def test_a_late_packet_with_an_older_timestamp_is_not_paired(engine: Engine, first: int) -> None:
    tap = Tap(engine)
    values = [(first + number) % 2**32 for number in range(4)]
    tap.see(0.0, tap.stamped(0, 0, 0, values[0], 7, 1000))
    tap.see(10.0, tap.stamped(1, 0, 1000, 50, values[0]))
    # Two packets have the second value, of which the later one is overtaken by the third value.
    tap.see(20.0, tap.stamped(0, 1000, 0, values[1], 50, 1000))
    tap.see(21.0, tap.stamped(0, 3000, 0, values[2], 50, 1000))
    tap.see(30.0, tap.stamped(1, 0, 2000, 60, values[1]))
    tap.see(30.1, tap.stamped(0, 2000, 0, values[1], 50, 1000))
    # The duplicate acknowledgment for the third was under way.
    tap.see(30.3, tap.stamped(1, 0, 2000, 60, values[1]))
    assert tap.read("stamp_least") == 10_000
    # Newer ones are.
    tap.see(40.0, tap.stamped(0, 4000, 0, values[3], 60, 1000))
    tap.see(45.0, tap.stamped(1, 0, 5000, 70, values[3]))
    assert tap.read("stamp_least") == 5_000
    # Another connection on the same ports begins with any value.
    older = (first - 1000) % 2**32
    tap.see(50.0, tap.stamped(0, 0, 0, older, 0, flags="S"))
    tap.see(52.0, tap.stamped(1, 0, 1, 90, older, flags="SA"))
    assert tap.read("stamp_least") == 2_000


@pytest.mark.parametrize("kind", ["vlan", "qinq", "options", "ipv6", "udp", "udp6", "icmp", "fragment"])
def test_headers(tap: Tap, kind: str) -> None:
    udp = UDP(sport=1000, dport=80) / Raw(bytes(500))
    tcp = TCP(sport=1000, dport=80, flags="A") / Raw(bytes(500))
    packet, length, protocol = {
        "vlan": (Ether() / Dot1Q(vlan=5) / IP(src=A, dst=B) / tcp, 540, 6),
        "qinq": (Ether(type=0x88A8) / Dot1Q(vlan=5) / Dot1Q(vlan=6) / IP(src=A, dst=B) / tcp, 540, 6),
        "options": (Ether() / IP(src=A, dst=B, options=[IPOption(b"\x94\x04\x00\x00")]) / tcp, 544, 6),
        "ipv6": (Ether() / IPv6(src="fd00::1", dst="fd00::2") / tcp, 560, 6),
        "udp": (Ether() / IP(src=A, dst=B) / udp, 528, 17),
        "udp6": (Ether() / IPv6(src="fd00::1", dst="fd00::2") / udp, 548, 17),
        "icmp": (Ether() / IP(src=A, dst=B, proto=1) / Raw(bytes(64)), 84, 1),
        "fragment": (Ether() / IP(src=A, dst=B, frag=100) / tcp, 540, 6),
    }[kind]
    tap.see(1, packet)
    (found,) = tap.found()
    tap.place = found["place"]
    assert (tap.read("bytes"), found["protocol"], found["six"]) == (length, protocol, int("6" in kind))
    ports = (0, 0) if kind in ("icmp", "fragment") else (1000, 80)
    assert (found["low_port"], found["high_port"]) == ports
    assert tap.read("offered") == (length if protocol != 6 else 0)


def test_what_is_no_ip_is_not_seen(tap: Tap) -> None:
    tap.see(1, Ether(type=0x0806) / Raw(bytes(28)))
    for size in range(0, 54, 3):
        tap.api.process(2 * MS, 1, bytes(tap.packet(0, 0, 0))[:size])
    assert all(found["protocol"] == 6 for found in tap.found())


def test_a_packet_at_both_taps_counts_once(tap: Tap) -> None:
    roles = {1: TRACKS | OFFERS, 2: TRACKS, 3: COUNTS | LEAVES, 4: 0}
    for port, what in roles.items():
        tap.api.table_add("taps", [port], "sees", [what])
    for n in range(4):
        tap.send(10 * n, 0, 1000 * n, 0, 1000, port=1)
        tap.send(10 * n + 3 + n, 0, 1000 * n, 0, 1000, port=3)
        tap.send(10 * n + 8, 1, 0, 1000 * n + 1000, port=4)
        tap.send(10 * n + 8.5, 1, 0, 1000 * n + 1000, port=2)
    assert (tap.read("packets"), tap.read("packets", 1)) == (4, 0)
    assert tap.samples() == (4, 8_500, 4 * 8_500)
    # From tap to tap it took 3, 4, 5 and 6 ms.
    queued = [tap.read(name) for name in ("queued_samples", "queued_sum", "queued_last")]
    assert queued == [4, 18_000, 6_000]
    # The least time without that.
    assert tap.read("rtt_base") == 2_500


def test_a_packet_that_was_not_seen_to_leave_says_nothing_of_the_base(tap: Tap) -> None:
    for port, what in {1: TRACKS | OFFERS, 2: TRACKS, 3: COUNTS | LEAVES}.items():
        tap.api.table_add("taps", [port], "sees", [what])
    # The router drops it, and what is sent again passes unseen: the acknowledgment comes after 8 s.
    tap.send(0, 0, 0, 0, 1000, port=1)
    tap.send(8000, 1, 0, 1000, port=2)
    assert (tap.samples()[0], tap.read("rtt_base")) == (1, 0)
    tap.send(8001, 0, 1000, 0, 1000, port=1)
    tap.send(8004, 0, 1000, 0, 1000, port=3)
    tap.send(8010, 1, 0, 2000, port=2)
    assert tap.read("rtt_base") == 6_000
    # What comes back passes one tap.
    tap.send(8020, 1, 0, 2000, 500, port=2)
    tap.send(8022, 0, 2000, 500, port=1)
    assert tap.read("rtt_base", 1) == 2_000


def test_what_is_sent_again_says_nothing_of_the_time_from_tap_to_tap(tap: Tap) -> None:
    for port, what in {1: TRACKS | OFFERS, 2: TRACKS, 3: COUNTS | LEAVES}.items():
        tap.api.table_add("taps", [port], "sees", [what])
    tap.send(0, 0, 0, 0, 1000, port=1)
    tap.send(1, 0, 1000, 0, 1000, port=1)
    # The router drops the first; the second takes 2 ms.
    tap.send(3, 0, 1000, 0, 1000, port=3)
    # It is sent again after 300 ms, and takes 4 ms.
    tap.send(300, 0, 0, 0, 1000, port=1)
    tap.send(304, 0, 0, 0, 1000, port=3)
    assert (tap.read("queued_samples"), tap.read("queued_sum")) == (1, 2_000)
    # What comes after it counts again.
    tap.send(310, 1, 0, 2000, port=2)
    tap.send(311, 0, 2000, 0, 1000, port=1)
    tap.send(316, 0, 2000, 0, 1000, port=3)
    assert (tap.read("queued_samples"), tap.read("queued_last")) == (2, 5_000)


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_long_flows_get_places_and_others_do_not(engine: Engine) -> None:
    tap = Tap(engine, long_bytes=100_000)
    for n in range(99):
        tap.send(n, 0, 960 * n, 0, 960)
    assert tap.found() == []
    for sport in range(5000, 5200):
        tap.see(100, Ether() / IP(src=A, dst=B) / UDP(sport=sport, dport=80) / Raw(bytes(72)))
    assert tap.found() == []
    tap.send(200, 0, 96_000, 0, 960)
    tap.send(201, 0, 96_960, 0, 960)
    (found,) = tap.found()
    assert (found["low"], found["high_port"]) == (0x0A000001, 80)
    assert int(tap.api.register_read("sketched")[0]) == 100 * 1000 + 200 * 100


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_short_flows_stay_short_however_many_there_have_been(engine: Engine) -> None:
    tap, flows, long_bytes = Tap(engine, long_bytes=5000), Flows(), 5000
    switch = cast("SwitchApi", tap.api)
    mouse = bytearray(bytes(Ether() / IP(src=A, dst=B) / UDP(dport=80) / Raw(bytes(972))))
    for second in range(50):
        for number in range(60):
            # Each of 1000 bytes in one packet. In all each of 256 cells of a row would get 12 of them.
            mouse[34:36] = (5000 + 60 * second + number).to_bytes(2)
            tap.api.process((1000 * second + number) * MS, 1, bytes(mouse))
        for number in range(2):
            tap.send(1000 * second + 100, 0, 960 * (2 * second + number), 0, 960)
        unknown = flows.unknown(1000 * (second + 1) * MS, switch)
        assert unknown.rate_bps == pytest.approx(8 * 60_000, rel=0.04)
        assert unknown.flows == pytest.approx(60, rel=0.2)
        flows.clear_sketch(switch, long_bytes)
        assert int(tap.api.register_read("sketched")[0]) <= SKETCH_LOAD * 256 * long_bytes
    # A flow that is long is found.
    (found,) = tap.found()
    assert found["protocol"] == 6


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_places_are_taken_again_when_their_flows_are_silent(engine: Engine) -> None:
    tap = Tap(engine)
    for sport in range(2000):
        tap.see(1, Ether() / IP(src=A, dst=B) / UDP(sport=sport, dport=80) / Raw(bytes(72)))
    first = tap.found()
    places = {found["place"] for found in first}
    # Of 128 places two of each flow's are asked for.
    assert len(places) == len(first) == 128
    assert int(tap.api.register_read("no_place")[0]) == 2000 - 128
    tap.see(61_000, Ether() / IP(src=A, dst=B) / UDP(sport=5000, dport=80) / Raw(bytes(72)))
    (again,) = tap.found()
    tap.place = again["place"]
    assert tap.read("bytes") == 100


class Reader(Controller):
    """Has all flows watched, and keeps what there is at the end."""

    period = "100 ms"

    def start(self, switch: SwitchApi) -> None:
        switch.register_write("long_bytes", [0])
        switch.register_write("idle_time", [60_000_000])
        switch.register_write("waiting_time", [2_000_000])
        self.places: dict[int, dict[str, int]] = {}

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        self.places[digest.fields["place"]] = digest.fields

    def tick(self, now: int, switch: SwitchApi) -> None:
        names = ("rtt_samples", "rtt_least", "rtt_sum", "resent", "packets", "bytes")
        self.registers = {name: switch.register_read(name) for name in names}


def as_ipv6(capture: Path) -> Path:
    """The same packets with headers of IPv6, whose addresses end with those of IPv4."""
    data = capture.read_bytes()
    out, at = [data[:24]], 24
    while at < len(data):
        seconds, part, kept, length = struct.unpack_from("<IIII", data, at)
        frame = data[at + 16 : at + 16 + kept]
        header = 4 * (frame[14] & 15)
        (total,) = struct.unpack_from("!H", frame, 16)
        six = struct.pack("!IHBB", 6 << 28, total - header, frame[23], frame[22])
        six += b"".join(b"\xfd" + bytes(11) + frame[begin : begin + 4] for begin in (26, 30))
        new = frame[:12] + b"\x86\xdd" + six + frame[14 + header :]
        out += [struct.pack("<IIII", seconds, part, len(new), length - header + 40), new]
        at += 16 + kept
    path = capture.with_name("six.pcap")
    path.write_bytes(b"".join(out))
    return path


@pytest.mark.parametrize(("loss", "six"), [(0.0, False), (0.01, False), (0.01, True)])
def test_as_tidegate_monitor_by_the_exact_rule(tmp_path: Path, loss: float, six: bool) -> None:
    net = Network()
    left, right = net.router("left"), net.router("right")
    middle = net.link(left, right, rate="50 Mbit/s", delay="5 ms", queue="50 packets", loss=loss)
    for number in range(6):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, left, rate="1 Gbit/s", delay=f"{number + 1} ms")
        net.link(b, right, rate="1 Gbit/s", delay="1 ms")
        net.tcp(
            a, b, start=f"{100 * number} ms", stop="4 s", congestion_control="bbr" if number % 2 else "cubic"
        )
    net.capture(middle, left, tmp_path / "some.pcap", snap="128 B")
    net.run("5 s")
    reader, path = Reader(), tmp_path / "some.pcap"
    if six:
        path = as_ipv6(path)
    replay(program(), {1: path}, tmp_path / "out", controllers=[reader])
    exact = {(flow["src_port"], flow["dst_port"]): flow for flow in watch([path], rtt_rule="exact")["flows"]}
    assert len(reader.places) == 6
    assert {place["six"] for place in reader.places.values()} == {int(six)}
    compared = 0
    for place, found in reader.places.items():
        both = exact[found["low_port"], found["high_port"]], exact[found["high_port"], found["low_port"]]
        counted = [
            {name: int(values[2 * place + side]) for name, values in reader.registers.items()}
            for side in (0, 1)
        ]
        # The last tick is up to 100 ms before the end.
        late = [flow["packets"] - mine["packets"] for flow, mine in zip(both, counted, strict=True)]
        for flow, mine, own in zip(both, counted, late, strict=True):
            if flow["packets"] < 100 or flow["rtt_samples"] < 10:
                continue
            compared += 1
            assert 0 <= own <= 0.05 * flow["packets"]
            assert (own == 0) == (flow["bytes"] == mine["bytes"])
            assert 0 <= flow["retransmissions"] - mine["resent"] <= own
            # Each packet of the other direction may have brought one.
            assert -1 <= flow["rtt_samples"] - mine["rtt_samples"] <= max(sum(late) - own, 1)
            # The least may be one of those that the last tick came too early for.
            more = 0.02 if mine["rtt_samples"] < flow["rtt_samples"] else 0.001
            assert -0.001 <= mine["rtt_least"] / 1e3 - flow["rtt_ms_min"] <= more
    assert compared >= 3
