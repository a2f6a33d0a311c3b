"""`meter.p4`: what a packet costs, which meter it is for, and what no meter is for."""

from __future__ import annotations

import itertools

import pytest
from scapy.layers.inet import IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1Q

from tidegate._core import TidegateError
from tidegate.systems.meter.packet_harness import MAC, METERS, SWITCHES, UNIT, Config, Meter, raw, udp, udp6


@pytest.mark.parametrize(
    ("packet", "length"),
    [
        (udp(1_000), 1_000),
        (udp6(1_000), 1_000),
        (raw(Dot1Q(vlan=5) / IP(dst="10.0.0.1") / UDP() / bytes(72)), 100),
        (raw(Dot1Q(vlan=5) / IPv6(dst="fd00::1") / UDP() / bytes(52)), 100),
        (raw(IP(dst="10.0.0.1", options=[IPOption_RR(routers=["0.0.0.0"])]) / UDP() / bytes(64)), 100),
        (raw(IP(dst="10.0.0.1", frag=100, proto=17) / bytes(80)), 100),
        (raw(IPv6(dst="fd00::1") / IPv6ExtHdrHopByHop() / UDP() / bytes(44)), 100),
        # What stands behind the IP packet in the frame counts, or one could hide bytes there.
        (udp(28) + bytes(18), 46),
    ],
)
def test_a_packet_costs_its_bytes_of_ip(packet: bytes, length: int) -> None:
    meter = Meter(Config(burst=10_000))
    assert meter.send(0, packet) == packet
    assert meter.read("level") == 10_000 - length
    assert meter.count("passed") == (1, len(packet))
    meter.write("level", length - 1)
    assert meter.send(0, packet) is None
    assert meter.count("dropped") == (1, len(packet))


FLOW4: list[str | int] = ["192.0.2.1", "10.0.0.1", 6, 20, 80]
FLOW6: list[str | int] = ["2001:db8::1", "fd00::1", 6, 20, 80]


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize("present", list(itertools.product([False, True], repeat=4)))
@pytest.mark.parametrize("exempt", [False, True])
def test_the_first_table_that_knows_a_packet_decides(
    version: int, present: tuple[bool, ...], exempt: bool
) -> None:
    switch = SWITCHES["jit"]
    first = next(METERS)
    keys: dict[str, list[str | int]] = {
        "flows4": FLOW4,
        "flows6": FLOW6,
        "sources4": ["192.0.2.0/24"],
        "sources6": ["2001:db8::/32"],
        "targets4": ["10.0.0.0/8"],
        "targets6": ["fd00::/8"],
        "ports": [0],
    }
    for table in [*keys, "meters", "forward"]:
        switch.table_clear(table)
    switch.table_add("forward", [MAC], "to_port", [1])
    indices = [first, *(next(METERS) for _ in range(3))]
    tables = [f"flows{version}", f"sources{version}", f"targets{version}", "ports"]
    known = [at for at, there in enumerate(present) if there]
    for at, (table, index) in enumerate(zip(tables, indices, strict=True)):
        switch.table_add("meters", [index], "configure", Config().values)
        switch.register_write("level", [128_000 * UNIT], index)
        if present[at]:
            # An entry that says `pass` exempts from what stands behind it.
            if exempt and at == known[0]:
                switch.table_add(table, keys[table], "pass")
            else:
                switch.table_add(table, keys[table], "use", [index])
    ip = IP(src="192.0.2.1", dst="10.0.0.1") if version == 4 else IPv6(src="2001:db8::1", dst="fd00::1")
    packet = raw(ip / TCP(sport=20, dport=80) / bytes(100))
    assert switch.process(0, 0, packet) == [(1, packet)]
    expected = [int(known[:1] == [at] and not exempt) for at in range(4)]
    assert [int(switch.counter_read("passed", index, 1)[0][0]) for index in indices] == expected


@pytest.mark.parametrize(
    ("packet", "flow", "port"),
    [
        (raw(IP(src="192.0.2.1", dst="10.0.0.1") / TCP(sport=20, dport=80)), True, 0),
        (raw(IP(src="192.0.2.1", dst="10.0.0.1") / TCP(sport=20, dport=81)), False, 0),
        (raw(IP(src="192.0.2.1", dst="10.0.0.1") / UDP(sport=20, dport=80)), False, 0),
        # Later fragments and packets with options have no ports where they are looked for.
        (raw(IP(src="192.0.2.1", dst="10.0.0.1", proto=6, frag=1) / bytes([0, 20, 0, 80])), False, 0),
        (raw(IP(src="192.0.2.1", dst="10.0.0.1", proto=6, ihl=6) / bytes([0, 20, 0, 80])), False, 0),
        (raw(IP(src="192.0.2.1", dst="10.0.0.1") / TCP(sport=20, dport=80)), True, 7),
    ],
)
def test_a_flow_is_its_five_fields(packet: bytes, flow: bool, port: int) -> None:
    meter = Meter(Config())
    meter.switch.table_clear("targets4")
    meter.switch.table_add("flows4", FLOW4, "use", [meter.index])
    assert meter.send(0, packet, port) == packet
    assert meter.counts() == [int(flow), 0, 0, 0]


def test_what_no_meter_is_for_passes() -> None:
    meter = Meter(Config(), level=0)
    for packet in (
        raw(IP(dst="198.51.100.1") / UDP() / bytes(100)),
        raw(IPv6(dst="2001:db8::2") / UDP() / bytes(100)),
        raw(ARP()),
        raw(Dot1Q(vlan=3) / ARP()),
        raw(IP(dst="10.0.0.1") / UDP())[:20],
        # A limit that the README names: IP behind two tags is not seen.
        raw(Dot1Q(vlan=3) / Dot1Q(vlan=4) / IP(dst="10.0.0.1") / UDP() / bytes(1000)),
    ):
        assert meter.send(0, packet) == packet
    meter.switch.table_add("ports", [5], "use", [meter.index])
    assert meter.send(0, raw(ARP()), 5) == raw(ARP())
    assert meter.counts() == [0, 0, 0, 0]
    # A meter that is named but not configured.
    meter.switch.table_clear("meters")
    assert meter.send(0, udp(1_000)) == udp(1_000)
    with pytest.raises(TidegateError):
        meter.switch.table_add("meters", [meter.index], "pass")


def test_what_goes_nowhere_takes_no_tokens() -> None:
    meter = Meter(Config())
    meter.switch.table_clear("forward")
    assert meter.send(0, udp(1_000)) is None
    assert meter.read("level") == 128_000
    assert meter.counts() == [0, 0, 0, 0]


def test_a_flooded_packet_is_metered_once_and_dropped_whole() -> None:
    meter = Meter(Config(burst=1_000))
    meter.switch.table_clear("forward")
    meter.switch.table_set_default("forward", "flood", [1])
    meter.switch.multicast_set(1, [1, 2, 3])
    try:
        assert [port for port, _ in meter.switch.process(0, 0, udp(1_000))] == [1, 2, 3]
        assert meter.switch.process(0, 0, udp(1_000)) == []
        assert meter.counts() == [1, 1, 0, 0]
    finally:
        meter.switch.table_set_default("forward", "drop")


def test_meters_do_not_touch_each_other() -> None:
    meter = Meter(Config(burst=1_000))
    meter.switch.table_add("targets4", ["10.9.0.0/16"], "use", [65_535])
    meter.switch.table_add("meters", [65_535], "configure", Config(burst=5_000).values)
    meter.switch.register_write("level", [5_000 * UNIT], 65_535)
    other = raw(IP(dst="10.9.0.1") / UDP() / bytes(972))
    sent = [meter.send(0, packet) is not None for packet in [udp(1_000), other] * 6]
    assert sent == [True, True] + [False, True] * 4 + [False, False]
    assert meter.counts() == [1, 5, 0, 0]
