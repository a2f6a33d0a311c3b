"""`meter.p4`: early marking by the level and by an average of it; the checksum after a mark; the second chance."""

from __future__ import annotations

import math
import struct
from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, IPOption_RR
from scapy.layers.l2 import Dot1Q

from tidegate.systems.meter.packet_harness import (
    CE,
    ECT0,
    ECT1,
    ENGINES,
    NOT_ECT,
    UNIT,
    US,
    Config,
    Engine,
    Ideal,
    Meter,
    ecn_of,
    folded,
    raw,
    udp,
    udp6,
)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [udp, udp6])
@pytest.mark.parametrize("ecn", [NOT_ECT, ECT1, ECT0, CE])
def test_only_ect_is_marked_and_only_below_the_threshold(engine: Engine, make: Any, ecn: int) -> None:
    config = Config(burst=100_000, marks=True, mark_below=Fraction(50_000))
    packet = make(1_000, ecn)
    for level, below in ((50_000, False), (Fraction(50_000 * UNIT - 1, UNIT), True), (1_000, True)):
        meter = Meter(config, engine, level=level)
        out = meter.send(0, packet)
        assert out is not None
        marked = below and ecn in (ECT0, ECT1)
        assert ecn_of(out) == (CE if marked else ecn)
        assert meter.counts() == [1, 0, int(marked), 0]
        if not marked:
            assert out == packet
    off = Meter(replace(config, marks=False), engine, level=1_000)
    assert off.send(0, packet) == packet


@pytest.mark.parametrize("probability", [0, 1, UNIT // 5, UNIT // 3, UNIT - 1, UNIT])
def test_the_probability_of_a_mark(probability: int) -> None:
    config = Config(burst=10**9, marks=True, mark_below=Fraction(10**9 + 1), probability=probability)
    meter = Meter(config)
    # So many that the rarest, 1 in 65 536, are seen.
    packets = 400_000 if probability % (UNIT - 1) <= 1 else 20_000
    for _ in range(packets):
        meter.send(0, udp(100, ECT0))
    passed, dropped, marks, _ = meter.counts()
    assert (passed, dropped) == (packets, 0)
    chance = probability / UNIT
    assert (marks == 0) == (chance == 0)
    assert (marks == packets) == (chance == 1)
    # Five standard deviations.
    assert abs(marks - packets * chance) <= 5 * math.sqrt(packets * chance * (1 - chance))


def test_a_mark_that_is_dropped_is_no_mark() -> None:
    meter = Meter(Config(marks=True, mark_below=Fraction(128_000)), level=400)
    assert meter.send(0, udp(1_000, ECT0)) is None
    assert meter.counts() == [0, 1, 0, 0]


@pytest.mark.parametrize("ecn", [ECT0, ECT1])
def test_the_checksum_is_right_after_a_mark_for_every_checksum(ecn: int) -> None:
    meter = Meter(Config(burst=10**9, marks=True, mark_below=Fraction(10**9 + 1)))
    seen = set()
    packet = bytearray(udp(28, ecn))
    for identification in range(65536):
        packet[18:20] = struct.pack("!H", identification)
        packet[24:26] = b"\0\0"
        packet[24:26] = struct.pack("!H", 0xFFFF - folded(packet[14:34]))
        out = meter.send(0, bytes(packet))
        assert out is not None
        assert folded(out[14:34]) == 0xFFFF
        seen.add(out[24:26])
    assert len(seen) == 65535


@given(
    options=st.integers(0, 9),
    tos=st.integers(0, 63),
    source=st.integers(0, 2**32 - 1),
    vlan=st.booleans(),
    payload=st.binary(max_size=50),
)
def test_a_mark_changes_two_bits_and_the_checksum(
    options: int, tos: int, source: int, vlan: bool, payload: bytes
) -> None:
    address = ".".join(map(str, source.to_bytes(4, "big")))
    routers = [IPOption_RR(routers=["192.0.2.9"] * (options - 1))] if options else []
    ip = IP(src=address, dst="10.0.0.9", tos=tos << 2 | ECT0, options=routers) / TCP() / payload
    meter = Meter(Config(marks=True, mark_below=Fraction(128_000)), level=10_000)
    out = meter.send(0, raw(Dot1Q(vlan=7) / ip if vlan else ip))
    assert out is not None
    ip.tos = tos << 2 | CE
    assert out == raw(Dot1Q(vlan=7) / ip if vlan else ip)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@given(
    shift=st.integers(0, 20),
    mark_below=st.integers(0, 100_000),
    arrivals=st.lists(st.tuples(st.integers(0, 200), st.integers(28, 9000)), max_size=60),
)
def test_marks_by_an_average_of_the_level(
    engine: Engine, shift: int, mark_below: int, arrivals: list[tuple[int, int]]
) -> None:
    config = Config(
        rate=50 * UNIT, burst=100_000, marks=True, mark_below=Fraction(mark_below), averages=True, shift=shift
    )
    meter, ideal = Meter(config, engine), Ideal(config)
    average, weight, now = Fraction(100_000), Fraction(1, 2**shift), 0
    for gap, length in arrivals:
        now += gap
        # The level that a packet finds.
        ideal.passes(now, 0)
        average += (ideal.level - average) * weight
        out = meter.send(now * US, udp(length, ECT1))
        assert (out is not None) == ideal.passes(now, length)
        # Each step rounds towards the old average by less than a unit.
        known = meter.read("average")
        assert abs(known - average) <= Fraction(len(arrivals), UNIT)
        if out is not None:
            assert (ecn_of(out) == CE) == (known < mark_below)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("make", [udp, udp6])
@pytest.mark.parametrize(
    ("level", "ecn", "second_chance", "passes", "left"),
    [
        (Fraction(1_000), CE, True, True, 0),
        (Fraction(999), CE, True, True, 0),
        (Fraction(500 * UNIT + 1, UNIT), CE, True, True, 0),
        (Fraction(500), CE, True, False, 500),
        (Fraction(999), CE, False, False, 999),
        (Fraction(999), ECT0, True, False, 999),
        (Fraction(999), NOT_ECT, True, False, 999),
        (Fraction(1_500), CE, True, True, 500),
    ],
)
def test_the_second_chance(
    engine: Engine, make: Any, level: Fraction, ecn: int, second_chance: bool, passes: bool, left: int
) -> None:
    meter = Meter(Config(second_chance=second_chance), engine, level=level)
    assert (meter.send(0, make(1_000, ecn)) is not None) == passes
    assert meter.read("level") == left
    assert meter.counts() == [int(passes), int(not passes), 0, int(passes and level < 1_000)]


def test_what_is_marked_here_has_its_second_chance_here() -> None:
    meter = Meter(Config(marks=True, mark_below=Fraction(64_000), second_chance=True), level=700)
    out = meter.send(0, udp(1_000, ECT0))
    assert out == udp(1_000, CE)
    assert meter.counts() == [1, 0, 1, 1]


@pytest.mark.parametrize(("load", "passes"), [(0.9, 0.9), (1.9, 1.9), (3.9, 1.95), (5.0, 5 / 3)])
def test_a_flood_with_ce_passes_at_up_to_twice_the_rate(load: float, passes: float) -> None:
    """The README says so: each red packet that is forgiven pays at least half of its length."""
    meter = Meter(Config(rate=UNIT, burst=15_000, second_chance=True))
    gap = 1500 / load
    sent = [meter.send(int(number * gap * US), udp(1500, CE)) for number in range(4_000)]
    later = [packet for packet in sent[1_000:] if packet is not None]
    assert len(later) * 1500 / (3_000 * gap) == pytest.approx(passes, abs=0.01)
    unmarked = Meter(Config(rate=UNIT, burst=15_000, second_chance=True))
    sent = [unmarked.send(int(number * gap * US), udp(1500, NOT_ECT)) for number in range(4_000)]
    later = [packet for packet in sent[1_000:] if packet is not None]
    assert len(later) * 1500 / (3_000 * gap) == pytest.approx(min(load, 1), abs=0.01)
