"""`fairpolicer.p4` beside a model of FairPolicer that is written from its rules: the same decisions, the bound, and what is its own.

The model keeps times as fractions and what flows occupy exactly: few flows do not meet in the sketch.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from dataclasses import dataclass, field
from fractions import Fraction
from functools import cache
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Dot1Q

from tidegate import p4
from tidegate.systems.meter.packet_harness import ENGINES, MAC, UNIT, US, Engine, raw

PROGRAM = p4.compile(Path(__file__).with_name("fairpolicer.p4"))
SWITCHES: dict[Engine, p4.Pipeline] = {engine: PROGRAM.pipeline(engine) for engine in ENGINES}
METER = 63
MOST_REPAYMENTS = 1024


@dataclass
class Model:
    """FairPolicer of one meter, by steps 1 to 3 of the program's header. `rate` in 1/65536 byte a microsecond, `burst` (B) in bytes."""

    rate: int
    burst: int
    alpha_shift: int = 0
    tokens: Fraction = Fraction(0)
    occupied: dict[int, int] = field(default_factory=dict)
    active: deque[int] = field(default_factory=deque)
    repaid: Fraction = Fraction(0)
    """The time up to which flows have repaid, in microseconds."""
    refilled: int = 0

    def passes(self, now: int, flow: int, length: int) -> bool:
        self.repay(now)
        per_us = Fraction(self.rate, UNIT)
        self.tokens = min(Fraction(self.burst), self.tokens + per_us * (now - self.refilled))
        self.refilled = now
        has = self.occupied.get(flow, 0)
        if length > self.tokens or has > self.tokens / 2**self.alpha_shift:
            return False
        if has == 0:
            if len(self.active) == 2000:
                return False
            self.active.append(flow)
        self.occupied[flow] = has + length
        self.tokens -= length
        return True

    def repay(self, now: int) -> None:
        if self.rate:
            each = Fraction(100 * UNIT, self.rate)
            turns = min(int((now - self.repaid) / each), MOST_REPAYMENTS)
            for _ in range(turns if self.active else 0):
                self.repaid += each
                flow = self.active.popleft()
                if self.occupied[flow] > 100:
                    self.occupied[flow] -= 100
                    self.active.append(flow)
                else:
                    self.occupied[flow] = 0
                if not self.active:
                    break
        if not self.active:
            self.repaid = Fraction(now)


class Meter:
    """A meter of an empty state, whose bucket holds `tokens` bytes."""

    def __init__(self, engine: Engine, rate: int, burst: int, alpha_shift: int = 0, tokens: int = 0) -> None:
        self.switch = SWITCHES[engine]
        for table in ("forward", "targets4", "targets6", "meters"):
            self.switch.table_clear(table)
        self.switch.table_add("forward", [MAC], "to_port", [1])
        self.switch.table_add("targets4", ["10.0.0.0/8"], "use", [METER])
        self.switch.table_add("targets6", ["fd00::/8"], "use", [METER])
        self.switch.table_add("meters", [METER], "configure", [burst * UNIT, alpha_shift])
        for row in range(4):
            self.switch.register_write(f"row{row}", [0] * 1024, METER * 1024)
        for name, value in (("tokens", tokens * UNIT), ("rate", rate)):
            self.switch.register_write(name, [value], METER)
        for name in ("head", "waiting", "repayable", "updated"):
            self.switch.register_write(name, [0], METER)

    def passes(self, now: int, flow: int, length: int) -> bool:
        return bool(self.switch.process(now * US, 0, packet(flow, length)))

    def read(self, name: str) -> int:
        return int(self.switch.register_read(name, METER, 1)[0])

    def occupied(self) -> list[int]:
        """What all flows occupy, by each row."""
        return [int(self.switch.register_read(f"row{row}", METER * 1024, 1024).sum()) for row in range(4)]

    def counts(self) -> list[list[int]]:
        return [self.switch.counter_read(name, METER, 1)[0].tolist() for name in ("passed", "dropped")]


@cache
def packet(flow: int, length: int) -> bytes:
    """A packet of so many bytes of IP."""
    source = f"192.0.{flow // 250}.{1 + flow % 250}"
    return raw(IP(src=source, dst="10.0.0.1") / UDP(sport=1000 + flow, dport=9) / bytes(length - 28))


# Up to 5 flows: bursts at a moment, gaps of less than a packet's time, and silence that repays everything.
GAPS = st.sampled_from((0, 0, 1)) | st.integers(0, 300) | st.integers(0, 50_000) | st.integers(0, 1_000_000)
ARRIVALS = st.lists(
    st.tuples(GAPS, st.integers(0, 4), st.integers(28, 3000), st.integers(1, 30)), min_size=1, max_size=60
)


@pytest.mark.parametrize("engine", ENGINES)
@given(
    rate=st.integers(0, 20 * UNIT),
    burst=st.integers(0, 400_000),
    alpha_shift=st.sampled_from((0, 0, 1, 3)),
    full=st.booleans(),
    arrivals=ARRIVALS,
)
@settings(max_examples=100)
def test_the_same_decisions_and_state(
    engine: Engine,
    rate: int,
    burst: int,
    alpha_shift: int,
    full: bool,
    arrivals: list[tuple[int, int, int, int]],
) -> None:
    meter = Meter(engine, rate, burst, alpha_shift, burst if full else 0)
    model = Model(rate, burst, alpha_shift, Fraction(burst if full else 0))
    now = 0
    for gap, flow, length, repeats in arrivals:
        now += gap
        for _ in range(repeats):
            assert meter.passes(now, flow, length) == model.passes(now, flow, length)
        assert meter.read("tokens") == model.tokens * UNIT
        assert meter.read("waiting") == len(model.active)
        assert meter.occupied() == [sum(model.occupied.values())] * 4


@given(
    rate=st.integers(0, 20 * UNIT),
    burst=st.integers(28, 400_000),
    alpha_shift=st.sampled_from((0, 1)),
    arrivals=ARRIVALS,
)
@settings(max_examples=200)
def test_the_bound_is_the_bucket(
    rate: int, burst: int, alpha_shift: int, arrivals: list[tuple[int, int, int, int]]
) -> None:
    # Over any time T no more than rate x T + B pass, of all flows together.
    meter = Meter("jit", rate, burst, alpha_shift, burst)
    now, before, excess = 0, 0, Fraction(0)
    for gap, flow, length, repeats in arrivals:
        now += gap
        for _ in range(repeats):
            if meter.passes(now, flow, length):
                excess = max(Fraction(0), excess - Fraction(rate * (now - before), UNIT)) + length
                before = now
                assert excess <= burst


def test_one_flow_occupies_half_of_the_bucket_and_n_flows_a_share_each() -> None:
    for flows, alpha_shift, share in ((1, 0, 1 / 2), (3, 0, 1 / 4), (7, 0, 1 / 8), (1, 1, 1 / 3)):
        meter = Meter("jit", 0, 1_500_000, alpha_shift, 1_500_000)
        passed = [0] * flows
        for _ in range(1000):
            for flow in range(flows):
                passed[flow] += 1500 * meter.passes(0, flow, 1500)
        assert passed == pytest.approx([share * 1_500_000] * flows, abs=3000)


def test_an_aggressive_flow_and_a_modest_one_share_in_turn() -> None:
    # 100 Mbit/s; UDP of ten times that beside one of 30 Mbit/s, from the first second on.
    meter = Meter("jit", 25 * UNIT // 2, 125_000, tokens=125_000)
    passed = [0, 0]
    for now in range(0, 4_000_000, 12):
        for flow in (0, 1) if now % 408 < 12 else (0,):
            if meter.passes(now, flow, 1500) and now >= 1_000_000:
                passed[flow] += 1500
    assert passed[1] * 8 / 3e6 == pytest.approx(29.4, rel=0.01)
    assert passed[0] * 8 / 3e6 == pytest.approx(70.6, rel=0.01)


def test_a_flow_that_came_alone_has_nothing_while_it_repays() -> None:
    # 100 Mbit/s, B of a second. One flow fills its half of the bucket; then it and 15 others send more than the rate.
    meter = Meter("jit", 25 * UNIT // 2, 12_500_000, tokens=12_500_000)
    alone = sum(1500 * meter.passes(0, 0, 1500) for _ in range(5_000))
    assert alone == pytest.approx(6_250_000, abs=3_000)
    passed = [
        now
        for turn, now in enumerate(range(0, 12_000_000, 100))
        if meter.passes(now, turn % 16, 1500) and turn % 16 == 0
    ]
    # Its debt, down to what each occupies at last (a 17th of B), at a 16th of the rate; about n / 2 x B / rate, 8 s.
    longest = max(after - before for before, after in itertools.pairwise(passed))
    assert longest / 1e6 == pytest.approx((6_250_000 - 12_500_000 / 17) * 16 / 12_500_000, rel=0.05)


def test_what_a_packet_cannot_repay_the_next_ones_do() -> None:
    # 1 Gbit/s, and a bucket that is full: 300 000 bytes are occupied, and 2.4 ms later all of them could be repaid.
    meter = Meter("jit", 125 * UNIT, 1_000_000, tokens=1_000_000)
    assert all(meter.passes(0, 0, 1500) for _ in range(200))
    left = []
    for _ in range(4):
        meter.passes(2_400, 1, 100)
        left.append(meter.occupied()[0])
    assert left[0] == 300_000 - MOST_REPAYMENTS * 100 + 100
    assert left[1] < left[0] - 100_000
    # All that the time was worth; what is left is as much as has come since.
    assert left[3] == 400


def test_no_more_than_2000_flows_are_active() -> None:
    meter = Meter("jit", 0, 10_000_000, tokens=10_000_000)
    assert meter.passes(0, 0, 1000)
    meter.switch.register_write("waiting", [1999], METER)
    assert [meter.passes(0, flow, 1000) for flow in (1, 2, 0)] == [True, False, True]
    assert meter.read("waiting") == 2000


def test_flows_that_meet_in_the_sketch_are_taken_for_one() -> None:
    # Flow k finds all of its four cells in use with a probability of (1 - exp(-k / 1024))^4.
    alone = sum(1 - (1 - math.exp(-flow / 1024)) ** 4 for flow in range(2000))
    meter = Meter("jit", 0, 10_000_000, tokens=10_000_000)
    assert all(meter.passes(0, flow, 28) for flow in range(2000))
    assert meter.read("waiting") == pytest.approx(alone, rel=0.03)
    assert meter.occupied() == [2000 * 28] * 4


def test_what_counts_as_length() -> None:
    meter = Meter("jit", 0, 2_000, tokens=2_000)
    plain = packet(0, 500)
    tagged = raw(Dot1Q(vlan=7) / IP(plain[14:]))
    v6 = raw(IPv6(src="2001:db8::1", dst="fd00::1") / UDP(sport=5, dport=9) / bytes(52))
    before = meter.counts()
    # What no meter knows takes no tokens.
    assert meter.switch.process(0, 0, raw(IP(src="192.0.2.1", dst="172.16.0.1") / UDP() / bytes(900)))
    # The second one occupies as much as is left; the third one's flow occupies 1000 of 1000.
    sent = [bool(meter.switch.process(0, 0, one)) for one in (plain, tagged, plain, plain, v6)]
    assert sent == [True, True, True, False, True]
    assert meter.read("tokens") == 400 * UNIT
    passed, dropped = (
        [now - then for now, then in zip(*pair, strict=True)]
        for pair in zip(meter.counts(), before, strict=True)
    )
    assert (passed, dropped) == ([4, 514 + 518 + 514 + 114], [1, 514])
    # A meter without an entry.
    meter.switch.table_clear("meters")
    assert meter.switch.process(0, 0, plain) == [(1, plain)]
