"""`bcpqp.p4` beside a model of BC-PQP that is written from its rules: the same decisions, the bound, and what is its own.

The model has queues of Python numbers; a share is rounded down to 1/65536 byte, as the program says of itself.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
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

PROGRAM = p4.compile(Path(__file__).with_name("bcpqp.p4"))
SWITCHES: dict[Engine, p4.Pipeline] = {engine: PROGRAM.pipeline(engine) for engine in ENGINES}
METER = 1023
PERIOD_US = 200_000
QUEUE_REGISTERS = ("length", "magic", "accepted", "begun")


@dataclass
class Queue:
    """A phantom queue; levels in 1/65536 byte, times in microseconds."""

    length: int = 0
    magic: int = 0
    accepted: int = 0
    begun: int = 0


@dataclass
class Model:
    """BC-PQP of one meter, by steps 1 to 4 of the program's header. `rate` in 1/65536 byte a microsecond, `size` (Q) alike."""

    rate: int
    size: int
    burst_control: bool = True
    queues: dict[int, Queue] = field(default_factory=dict)
    active: set[int] = field(default_factory=set)
    drained: int = 0

    def passes(self, now: int, number: int, cost: int) -> bool:
        queue = self.queues.setdefault(number, Queue())
        if queue.length + cost > self.size:
            self.drain(now)
        if queue.length + cost > self.size:
            return False
        queue.length += cost
        queue.accepted += cost
        self.active.add(number)
        fair = self.rate * PERIOD_US / len(self.active)
        if self.burst_control and queue.accepted > 1.5 * fair:
            self.drain(now)
            queue.magic += self.size - queue.length
            queue.length = self.size
            self.active.add(number)
            queue.accepted, queue.begun = 0, now
        elif now - queue.begun >= PERIOD_US:
            self.end_period(queue, now, fair)
        return True

    def end_period(self, queue: Queue, now: int, fair: float) -> None:
        if queue.accepted < 0.5 * fair:
            queue.length -= min(queue.length, queue.magic)
            queue.magic = 0
        queue.accepted, queue.begun = 0, now

    def drain(self, now: int) -> None:
        budget = self.rate * (now - self.drained)
        if budget < 1500 * UNIT * len(self.active):
            return
        self.drained = now
        fair = self.rate * PERIOD_US / len(self.active) if self.active else 0
        for number in self.active:
            if now - self.queues[number].begun >= PERIOD_US:
                self.end_period(self.queues[number], now, fair)
        while self.active:
            share = budget // len(self.active)
            short = {number for number in self.active if self.queues[number].length <= share}
            for number in self.active:
                taken = min(self.queues[number].length, share)
                self.queues[number].length -= taken
                budget -= taken
            self.active -= short
            if not short:
                break


class Meter:
    """A meter of an empty state in a switch, with queues of flows by `place`; flow 65 and more are hashed."""

    def __init__(self, engine: Engine, rate: int, size: int, queues: int = 64, exact: bool = True) -> None:
        self.switch = SWITCHES[engine]
        for table in ("forward", "targets4", "targets6", "meters", "places4", "places6"):
            self.switch.table_clear(table)
        self.switch.table_add("forward", [MAC], "to_port", [1])
        self.switch.table_add("targets4", ["10.0.0.0/8"], "use", [METER])
        self.switch.table_add("targets6", ["fd00::/8"], "use", [METER])
        self.switch.table_add("meters", [METER], "configure", [size, queues])
        self.switch.register_write("rate", [rate], METER)
        for name in QUEUE_REGISTERS:
            self.switch.register_write(name, [0] * 64, METER * 64)
        for name in ("actives", "drained"):
            self.switch.register_write(name, [0], METER)
        if exact:
            for flow in range(64):
                key: list[int | str] = ["192.0.2.1", "10.0.0.1", 17, 1000 + flow, 9]
                self.switch.table_add("places4", key, "at", [flow])

    def passes(self, now: int, flow: int, length: int) -> bool:
        return bool(self.switch.process(now * US, 0, packet(flow, length)))

    def state(self) -> dict[str, list[int]]:
        return {
            name: self.switch.register_read(name, METER * 64, 64).astype(int).tolist()
            for name in QUEUE_REGISTERS
        }

    def counts(self) -> list[list[int]]:
        return [self.switch.counter_read(name, METER, 1)[0].tolist() for name in ("passed", "dropped")]


@cache
def packet(flow: int, length: int) -> bytes:
    """A packet of so many bytes of IP."""
    return raw(IP(src="192.0.2.1", dst="10.0.0.1") / UDP(sport=1000 + flow, dport=9) / bytes(length - 28))


def state_of(model: Model) -> dict[str, list[int]]:
    queues = [model.queues.get(number, Queue()) for number in range(64)]
    return {name: [getattr(queue, name) for queue in queues] for name in QUEUE_REGISTERS}


# Up to 8 flows of those that have a queue: bursts at a moment, gaps of less than a packet's time, and silence of some periods.
GAPS = st.sampled_from((0, 0, 1)) | st.integers(0, 300) | st.integers(0, 50_000) | st.integers(0, 1_000_000)
ARRIVALS = st.lists(
    st.tuples(GAPS, st.sampled_from([0, 1, 2, 31, 63]), st.integers(28, 3000), st.integers(1, 30)),
    min_size=1,
    max_size=60,
)


@pytest.mark.parametrize("engine", ENGINES)
@given(rate=st.integers(0, 20 * UNIT), size=st.integers(0, 400_000), arrivals=ARRIVALS)
@settings(max_examples=100)
def test_the_same_decisions_and_state(
    engine: Engine, rate: int, size: int, arrivals: list[tuple[int, int, int, int]]
) -> None:
    meter, model = Meter(engine, rate, size * UNIT), Model(rate, size * UNIT)
    now = 0
    for gap, flow, length, repeats in arrivals:
        now += gap
        for _ in range(repeats):
            assert meter.passes(now, flow, length) == model.passes(now, flow, length * UNIT)
        assert meter.state() == state_of(model)
    mask = sum(1 << number for number in model.active)
    assert int(meter.switch.register_read("actives", METER, 1)[0]) == mask


@pytest.mark.parametrize("seed", range(3))
def test_64_flows_for_seconds(seed: int) -> None:
    chance = random.Random(seed)
    rate, size = 25 * UNIT // 2, 1_250_000 * UNIT
    meter, model = Meter("jit", rate, size), Model(rate, size)
    # 100 Mbit/s; flows of one to four times their share, that come and go.
    now, passed = 0, 0
    while now < 1_999_000:
        now += chance.randrange(1, 60)
        flow = chance.randrange(1 + now // 500_000 * 21)
        length = chance.choice((40, 576, 1500))
        goes = meter.passes(now, flow, length)
        assert goes == model.passes(now, flow, length * UNIT)
        passed += length * goes
    assert meter.state() == state_of(model)
    assert passed > 0


def most_in_any_window(passed: list[tuple[int, int]], rate: int) -> float:
    """The largest of what passed between two times less rate x time, in bytes; `passed` has times in microseconds, and bytes."""
    most, excess, before = 0.0, 0.0, 0
    for now, length in passed:
        excess = max(0.0, excess - (now - before) * rate / UNIT) + length
        most, before = max(most, excess), now
    return most


@given(
    rate=st.integers(UNIT // 10, 20 * UNIT),
    size=st.integers(3_000, 400_000),
    arrivals=ARRIVALS,
)
@settings(max_examples=300, derandomize=True)
def test_the_bound_of_one_queue_is_twice_its_length(
    rate: int, size: int, arrivals: list[tuple[int, int, int, int]]
) -> None:
    # Draining is not capped: what a queue took in since the last draining goes at once if that was long ago, and Q fits again.
    # The most that generated arrivals have found; how magic bytes add to it is not proven.
    model = Model(rate, size * UNIT)
    now, passed = 0, []
    for gap, _, length, repeats in arrivals:
        now += gap
        for _ in range(repeats):
            if model.passes(now, 0, length * UNIT):
                passed.append((now, length))
    assert most_in_any_window(passed, rate) <= 2 * size


def test_after_silence_a_burst_of_twice_q_passes_where_it_is_short() -> None:
    # 100 Mbit/s; 1.5 X is 3.75 MB, Q 100 packets.
    meter = Meter("jit", 25 * UNIT // 2, 150_000 * UNIT)
    assert sum(meter.passes(10_000_000, 0, 1500) for _ in range(1000)) == 200


def test_the_start_burst_is_one_and_a_half_periods_of_the_rate() -> None:
    # Q is 36 s of the rate, as its authors' sizing has it at 10 ms.
    rate = 25 * UNIT // 2
    meter = Meter("jit", rate, 450_000_000 * UNIT)
    burst = sum(meter.passes(300, 0, 1500) for _ in range(10_000))
    assert burst == 3_750_000 // 1500 + 1
    # And then it is held to the rate.
    later = [meter.passes(now, 0, 1500) for now in range(300, 1_000_300, 12)]
    assert sum(later) * 1500 == pytest.approx(12_500_000, rel=0.001)


def test_bursts_of_a_period_pass_at_one_and_a_half_times_the_rate_until_the_queue_is_full() -> None:
    # 100 Mbit/s, Q of a second; each 200 ms more than 1.5 X at once. X is 2.5 MB.
    meter = Meter("jit", 25 * UNIT // 2, 12_500_000 * UNIT)
    passed = [
        sum(1500 * meter.passes(period * 200_001, 0, 1500) for _ in range(2_600)) for period in range(12)
    ]
    # Each leaves half of X more in the queue: 3.75 MB, and seven times 1.25 MB up to Q.
    assert passed == pytest.approx([3_750_000] * 8 + [2_500_000] * 4, rel=0.005)


def test_an_aggressive_flow_and_a_modest_one_share_by_water_filling() -> None:
    # 100 Mbit/s; UDP of ten times that beside one of 30 Mbit/s, from the first second on.
    meter = Meter("jit", 25 * UNIT // 2, 1_250_000 * UNIT)
    passed = [0, 0]
    for now in range(0, 4_000_000, 12):
        for flow in (0, 1) if now % 408 < 12 else (0,):
            if meter.passes(now, flow, 1500) and now >= 1_000_000:
                passed[flow] += 1500
    assert passed[1] * 8 / 3e6 == pytest.approx(29.4, rel=0.01)
    assert passed[0] * 8 / 3e6 == pytest.approx(70.6, rel=0.01)


def test_without_burst_control_a_long_queue_passes_all_of_it() -> None:
    model = Model(25 * UNIT // 2, 12_500_000 * UNIT, burst_control=False)
    assert sum(model.passes(0, 0, 1500 * UNIT) for _ in range(10_000)) == 12_500_000 // 1500


def test_flows_are_hashed_over_as_many_queues_as_are_asked_for() -> None:
    meter = Meter("jit", UNIT, 1_000_000 * UNIT, queues=4, exact=False)
    for flow in range(64):
        assert meter.passes(0, flow, 100)
    used = meter.state()["length"]
    assert all(used[:4])
    assert sum(used) == 64 * 100 * UNIT
    # A flow keeps its queue.
    assert meter.passes(0, 7, 100)
    assert sum(a != b for a, b in zip(used, meter.state()["length"], strict=True)) == 1


def test_what_counts_as_length() -> None:
    meter = Meter("jit", UNIT, 1_000 * UNIT, exact=False)
    plain = packet(0, 500)
    tagged = raw(Dot1Q(vlan=7) / IP(plain[14:]))
    v6 = raw(IPv6(src="2001:db8::1", dst="fd00::1") / UDP(sport=5, dport=9) / bytes(52))
    before = meter.counts()
    # What goes nowhere takes no room; nor does what no meter knows.
    assert meter.switch.process(0, 0, raw(IP(src="192.0.2.1", dst="172.16.0.1") / UDP() / bytes(900)))
    assert [bool(meter.switch.process(0, 0, one)) for one in (plain, tagged, plain, v6)] == [
        True,
        True,
        False,
        True,
    ]
    passed, dropped = (
        [now - then for now, then in zip(*pair, strict=True)]
        for pair in zip(meter.counts(), before, strict=True)
    )
    assert (passed, dropped) == ([3, 514 + 518 + 114], [1, 514])
    # A meter without an entry.
    meter.switch.table_clear("meters")
    assert meter.switch.process(0, 0, plain) == [(1, plain)]
