"""IPv6's extension headers: `monitor.p4` and `tidegate monitor` see the same flows behind them."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from scapy.layers.inet import TCP
from scapy.layers.inet6 import (
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.ipsec import AH
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapWriter

from tidegate.control import Digest
from tidegate.monitor import watch
from tidegate.systems.separation.setup import program

A, B = "fd00::1", "fd00::2"
MS = 10**9
"""Picoseconds."""
Engine = Literal["interp", "jit"]

HEADERS: dict[str, tuple[Packet, ...]] = {
    "none": (),
    "hop-by-hop": (IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]),),
    "long": (IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(252)), PadN(optdata=bytes(240))]),),
    "routing": (IPv6ExtHdrRouting(addresses=[A, B]),),
    "first fragment": (IPv6ExtHdrFragment(offset=0, m=1, id=7),),
    "authentication": (AH(nh=6, payloadlen=4, spi=1, seq=1, icv=bytes(12)),),
    # As RFC 8200 section 4.1 orders them: all that a packet should have.
    "all": (
        IPv6ExtHdrHopByHop(options=[PadN(optdata=bytes(4))]),
        IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]),
        IPv6ExtHdrRouting(addresses=[B]),
        IPv6ExtHdrFragment(offset=0, m=0, id=8),
        AH(nh=60, payloadlen=4, spi=1, seq=1, icv=bytes(12)),
        IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(12))]),
    ),
}
MANY = tuple(IPv6ExtHdrDestOpt(options=[PadN(optdata=bytes(4))]) for _ in range(7))
LATER = (IPv6ExtHdrFragment(offset=100, m=0, id=7),)


def packet(headers: tuple[Packet, ...], sport: int, side: int, seq: int, ack: int, length: int) -> Packet:
    """Of a connection from A, port `sport`, to B, port 80."""
    ends, ports = ((A, B), (sport, 80)) if side == 0 else ((B, A), (80, sport))
    whole: Packet = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02") / IPv6(src=ends[0], dst=ends[1])
    for header in headers:
        whole = whole / header.copy()
    return whole / TCP(sport=ports[0], dport=ports[1], seq=seq, ack=ack, flags="A") / Raw(bytes(length))


class Both:
    """The program, and a capture of what it gets."""

    def __init__(self, engine: Engine, path: Path) -> None:
        self.api = program(flow_bits=6, packet_bits=8, sketch_bits=8).pipeline(engine)
        self.api.register_write("idle_time", [60_000_000])
        self.api.register_write("waiting_time", [2_000_000])
        self.path = path
        self.capture = PcapWriter(str(path), linktype=1)
        self.capture.write_header(None)
        self.places: list[Digest] = []

    def see(self, at_ms: int, frame: bytes) -> None:
        assert self.api.process(at_ms * MS, 1, frame) == []
        self.capture.write_packet(frame, sec=0, usec=at_ms * 1000)

    def by_program(self) -> dict[tuple[int, int, int], dict[str, int]]:
        """By protocol, source port and destination port; directions that had packets."""
        self.places += self.api.digests()
        flows = {}
        for fields in (digest.fields for digest in self.places):
            for side, ports in ((0, ("low_port", "high_port")), (1, ("high_port", "low_port"))):
                names = ("packets", "bytes", "rtt_samples", "rtt_least", "resent")
                at = 2 * fields["place"] + side
                mine = {name: int(self.api.register_read(name, at, 1)[0]) for name in names}
                if mine["packets"]:
                    flows[fields["protocol"], fields[ports[0]], fields[ports[1]]] = mine
        return flows

    def by_monitor(self) -> dict[tuple[int, int, int], dict[str, int]]:
        self.capture.close()
        return {
            (6, flow["src_port"], flow["dst_port"]): {
                "packets": flow["packets"],
                "bytes": flow["bytes"],
                "rtt_samples": flow["rtt_samples"],
                "rtt_least": round((flow["rtt_ms_min"] or 0) * 1000),
                "resent": flow["retransmissions"],
            }
            for flow in watch([self.path])["flows"]
        }


@pytest.fixture(params=["interp", "jit"])
def both(request: pytest.FixtureRequest, tmp_path: Path) -> Both:
    return Both(request.param, tmp_path / "some.pcap")


def test_flows_behind_extension_headers_are_seen(both: Both) -> None:
    for number, headers in enumerate(HEADERS.values()):
        sport, begin = 1000 + number, 100 * number
        for n in range(3):
            both.see(begin + 10 * n, bytes(packet(headers, sport, 0, 1000 + 500 * n, 9000, 500)))
            acknowledgment = packet(headers, sport, 1, 9000, 1500 + 500 * n, 0)
            both.see(begin + 10 * n + 3 + number, bytes(acknowledgment))
        both.see(begin + 60, bytes(packet(headers, sport, 0, 1000, 9000, 500)))
    mine = both.by_program()
    assert len(mine) == 2 * len(HEADERS)
    for number in range(len(HEADERS)):
        flow = mine[6, 1000 + number, 80]
        assert (flow["rtt_samples"], flow["rtt_least"], flow["resent"]) == (3, (3 + number) * 1000, 1)
    assert mine == both.by_monitor()
    assert int(both.api.register_read("too_many_headers")[0]) == 0


def test_later_fragments_have_no_ports(both: Both) -> None:
    # What follows is payload that looks like TCP.
    both.see(1, bytes(packet(LATER, 1000, 0, 1000, 9000, 500)))
    both.see(2, bytes(packet(HEADERS["hop-by-hop"] + LATER, 1000, 0, 1500, 9000, 500)))
    flows = both.by_program()
    assert {key: (flow["packets"], flow["bytes"]) for key, flow in flows.items()} == {
        (6, 0, 0): (2, 2 * (40 + 8 + 20 + 500) + 8)
    }
    # The monitor leaves them out.
    assert both.by_monitor() == {}


def test_packets_with_more_headers_are_counted(both: Both) -> None:
    both.see(1, bytes(packet(MANY[1:], 1000, 0, 1000, 9000, 500)))
    both.see(2, bytes(packet(MANY, 1000, 0, 1500, 9000, 500)))
    both.see(3, bytes(packet(MANY, 1000, 0, 2000, 9000, 500)))
    flows = both.by_program()
    assert {key: flow["packets"] for key, flow in flows.items()} == {(6, 1000, 80): 1, (60, 0, 0): 2}
    assert int(both.api.register_read("too_many_headers")[0]) == 2
    # The monitor follows them to the end.
    assert both.by_monitor()[6, 1000, 80]["packets"] == 3


def test_what_is_cut_within_a_header_has_no_ports(both: Both) -> None:
    whole = bytes(packet(HEADERS["all"], 1000, 0, 1000, 9000, 0))
    for size in range(14 + 40, len(whole)):
        both.see(size, whole[:size])
    assert all(key[1:] == (0, 0) for key in both.by_program())
    assert int(both.api.register_read("too_many_headers")[0]) == 0
    assert both.by_monitor() == {}
