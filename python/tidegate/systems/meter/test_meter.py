"""`meter.p4`: bucket, account, early marking, second chance and classification, against plain models of each."""

from __future__ import annotations

import itertools
import math
import struct
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scapy.layers.inet import IP, TCP, UDP, IPOption_RR
from scapy.layers.inet6 import IPv6, IPv6ExtHdrHopByHop
from scapy.layers.l2 import ARP, Dot1Q, Ether

from tidegate import TidegateError, p4

Engine = Literal["interp", "jit"]
ENGINES: list[Engine] = ["interp", "jit"]
PROGRAM = p4.compile(Path(__file__).with_name("meter.p4"))
# A switch takes longer to make than a test to run: tests share these, each with a meter of its own.
SWITCHES: dict[Engine, p4.Pipeline] = {engine: PROGRAM.pipeline(engine) for engine in ENGINES}
METERS = itertools.count()

US = 10**6
UNIT = 65536
MAC, GENERATOR = "02:00:00:00:00:02", 500
NOT_ECT, ECT1, ECT0, CE = range(4)


@dataclass(frozen=True)
class Config:
    """A meter: bytes, and bytes a microsecond in 1/65536."""

    rate: int = 0
    burst: int = 128_000
    depth: int = 0
    peak: int = 0
    mark_below: Fraction = Fraction(0)
    mark_saved: int = 0
    # So large that the account never falls by it.
    mark_step: int = 2**40
    probability: int = UNIT
    shift: int = 0
    marks: bool = False
    second_chance: bool = False
    averages: bool = False
    timer: bool = False
    account: bool = False

    @property
    def values(self) -> list[int]:
        """What the action `configure` takes."""
        sizes = [
            self.burst * UNIT,
            self.depth * UNIT,
            int(self.mark_below * UNIT),
            self.mark_saved * UNIT,
            self.mark_step * UNIT,
            self.probability,
            self.shift,
        ]
        return sizes + [
            int(flag) for flag in (self.marks, self.second_chance, self.averages, self.timer, self.account)
        ]


class Meter:
    """A meter of its own in a switch that forwards to port 1, for everything sent to 10.0.0.0/8 and fd00::/8."""

    def __init__(
        self, config: Config, engine: Engine = "jit", *, level: Fraction | int | None = None, saved: int = 0
    ) -> None:
        self.index = next(METERS)
        self.switch = SWITCHES[engine]
        for table in (
            "forward",
            "flows4",
            "sources4",
            "targets4",
            "targets6",
            "ports",
            "meters",
            "generators",
        ):
            self.switch.table_clear(table)
        self.switch.table_add("forward", [MAC], "to_port", [1])
        self.switch.table_add("targets4", ["10.0.0.0/8"], "use", [self.index])
        self.switch.table_add("targets6", ["fd00::/8"], "use", [self.index])
        self.switch.table_add("generators", [GENERATOR], "pass")
        self.handle = self.switch.table_add("meters", [self.index], "configure", config.values)
        self.write("level", config.burst if level is None else level)
        self.write("average", config.burst if level is None else level)
        self.write("account", saved)
        self.write("lowest", saved)
        self.switch.register_write("rate", [config.rate], self.index)
        self.switch.register_write("peak", [config.peak], self.index)

    def write(self, register: str, size: Fraction | int) -> None:
        self.switch.register_write(register, [int(size * UNIT)], self.index)

    def read(self, register: str) -> Fraction:
        return Fraction(int(self.switch.register_read(register, self.index, 1)[0]), UNIT)

    def count(self, counter: str) -> tuple[int, int]:
        packets, size = self.switch.counter_read(counter, self.index, 1)[0]
        return int(packets), int(size)

    def counts(self) -> list[int]:
        """Packets passed, dropped, marked, spared."""
        return [self.count(name)[0] for name in ("passed", "dropped", "marked", "spared")]

    def send(self, at: int, packet: bytes, port: int = 0) -> bytes | None:
        """What leaves, at a time in picoseconds."""
        match self.switch.process(at, port, packet):
            case []:
                return None
            case [(1, out)]:
                return out
            case other:
                raise AssertionError(other)


@cache
def udp(length: int, ecn: int = NOT_ECT) -> bytes:
    """A packet of so many bytes of IP."""
    return raw(IP(src="192.0.2.1", dst="10.0.0.1", tos=ecn) / UDP(dport=9) / bytes(length - 28))


@cache
def udp6(length: int, ecn: int = NOT_ECT) -> bytes:
    return raw(IPv6(src="2001:db8::1", dst="fd00::1", tc=ecn) / UDP(dport=9) / bytes(length - 48))


@cache
def tokens(meter: int, count: int) -> bytes:
    """A packet of the generator."""
    return bytes(Ether(dst=MAC, src="02:00:00:00:00:01", type=0x0880) / struct.pack("!HI", meter, count))


def raw(layers: Any) -> bytes:
    return bytes(Ether(dst=MAC, src="02:00:00:00:00:01") / layers)


def ecn_of(packet: bytes) -> int:
    parsed = Ether(packet)
    return int(parsed[IP].tos if IP in parsed else parsed[IPv6].tc) & 3


def folded(header: bytes | bytearray) -> int:
    """The ones' complement sum over a header: 0xffff if its checksum is right."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Ideal:
    """A token bucket of exact fractions that is filled all the time, behind an account or not; times are microseconds."""

    def __init__(self, config: Config, saved: int = 0) -> None:
        self.config = config
        self.rate, self.peak = Fraction(config.rate, UNIT), Fraction(config.peak, UNIT)
        self.level, self.saved = Fraction(config.burst), Fraction(saved)
        self.then = 0

    def passes(self, now: int, length: int, ecn: int = NOT_ECT) -> bool:
        left, self.then = Fraction(now - self.then), now
        if not self.config.account:
            self.level = min(self.level + left * self.rate, Fraction(self.config.burst))
            left = Fraction(0)
        while left:
            left -= self.flow(left)
        if length <= self.level:
            self.level -= length
            return True
        if self.config.second_chance and ecn == CE and self.level > Fraction(length, 2):
            self.level = Fraction(0)
            return True
        return False

    def flow(self, left: Fraction) -> Fraction:
        """Let tokens flow at even rates until something is full or empty, or the time is over; return the time of that."""
        room = self.config.burst - self.level
        give = Fraction(0) if room == 0 else self.peak if self.saved else min(self.rate, self.peak)
        gain = self.rate - give
        if gain > 0 and self.saved == self.config.depth:
            gain = Fraction(0)
        ends = [left]
        if give:
            ends.append(room / give)
        if gain > 0:
            ends.append((self.config.depth - self.saved) / gain)
        if gain < 0:
            ends.append(self.saved / -gain)
        time = min(ends)
        self.level += give * time
        self.saved += gain * time
        return time


# From 15 B/s to 17 Gbit/s, and up to 64 packets with gaps of up to some milliseconds, rarely of minutes.
RATES = st.integers(1, 2**27)
LENGTHS = st.integers(28, 9000)
GAPS = st.integers(0, 5 * US) | st.integers(0, 5_000 * US) | st.integers(0, 10**9 * US)
ARRIVALS = st.lists(st.tuples(GAPS, LENGTHS, st.sampled_from([NOT_ECT, CE])), min_size=1, max_size=64)


def timed(arrivals: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Gaps to times of arrival."""
    times = itertools.accumulate(gap for gap, _, _ in arrivals)
    return [(at, length, ecn) for at, (_, length, ecn) in zip(times, arrivals, strict=True)]


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("second_chance", [False, True])
@given(rate=RATES, burst=st.integers(0, 200_000), arrivals=ARRIVALS)
def test_lazy_refill_is_the_ideal_bucket(
    engine: Engine, second_chance: bool, rate: int, burst: int, arrivals: list[tuple[int, int, int]]
) -> None:
    config = Config(rate=rate, burst=burst, second_chance=second_chance)
    meter, ideal = Meter(config, engine), Ideal(config)
    for at, length, ecn in timed(arrivals):
        passed = meter.send(at, udp(length, ecn)) is not None
        assert passed == ideal.passes(at // US, length, ecn)
        assert meter.read("level") == ideal.level


@given(rate=RATES, burst=st.integers(0, 200_000), arrivals=ARRIVALS)
def test_over_no_time_more_than_rate_and_burst(
    rate: int, burst: int, arrivals: list[tuple[int, int, int]]
) -> None:
    meter = Meter(Config(rate=rate, burst=burst))
    sent = [(at, length) for at, length, _ in timed(arrivals) if meter.send(at, udp(length)) is not None]
    for first, (begin, _) in enumerate(sent):
        total = 0
        for end, length in sent[first:]:
            total += length
            # The switch's clock ticks in microseconds, so it may see one that has only begun.
            assert total <= burst + Fraction(rate, UNIT) * (Fraction(end - begin, US) + 1)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@given(
    rate=RATES,
    faster=st.fractions(Fraction(1, 2), 8),
    burst=st.integers(0, 200_000),
    depth=st.integers(0, 2_000_000),
    saved=st.floats(0, 1),
    arrivals=ARRIVALS,
)
def test_the_account_is_a_second_bucket_that_fills_the_first(
    engine: Engine,
    rate: int,
    faster: Fraction,
    burst: int,
    depth: int,
    saved: float,
    arrivals: list[tuple[int, int, int]],
) -> None:
    config = Config(rate=rate, peak=int(rate * faster), burst=burst, depth=depth, account=True)
    start = int(saved * depth)
    meter, ideal = Meter(config, engine, saved=start), Ideal(config, start)
    total = 0
    for at, length, _ in timed(arrivals):
        passed = meter.send(at, udp(length)) is not None
        assert passed == ideal.passes(at // US, length)
        assert (meter.read("level"), meter.read("account")) == (ideal.level, ideal.saved)
        total += length * passed
        assert total <= burst + start + Fraction(config.rate, UNIT) * Fraction(at, US)
        assert total <= burst + Fraction(config.peak, UNIT) * Fraction(at, US)


def test_the_account_saves_what_is_unused_and_gives_it_out_at_the_peak() -> None:
    # 12.5 byte/us are 100 Mbit/s; the peak is twice that.
    config = Config(rate=25 * UNIT // 2, peak=25 * UNIT, burst=10_000, depth=60_000, account=True)
    meter = Meter(config)
    assert meter.send(8_000 * US, udp(1000)) is not None
    assert meter.read("account") == 60_000
    # A load far above the rate: what is saved lasts for 60 000 / 12.5 us.
    passed = [at for at in range(8_000, 18_000, 20) if meter.send(at * US, udp(1000)) is not None]
    early = sum(1000 for at in passed if at <= 12_000)
    late = sum(1000 for at in passed if at > 14_000)
    assert abs(early - (9_000 + 25 * 4_000)) <= 1000
    assert abs(late - 12.5 * 4_000) <= 1000


def test_a_smaller_bucket_is_at_its_brim_and_costs_no_savings() -> None:
    config = Config(rate=UNIT, peak=2 * UNIT, burst=100_000, depth=500_000, account=True)
    meter = Meter(config, saved=300_000)
    small = replace(config, burst=3_000)
    meter.switch.table_modify("meters", meter.handle, "configure", small.values)
    assert meter.send(1_000 * US, udp(1_000)) is not None
    assert meter.read("level") == 2_000
    assert meter.read("account") == 301_000


@pytest.mark.parametrize("account", [False, True])
@pytest.mark.parametrize("rate", [2**31, 2**32 - 1])
@pytest.mark.parametrize("us", [2**31 - 1, 2**31, 2**32, 2**33, 86_400 * 10**6])
def test_after_a_day_at_the_highest_rate_nothing_overflows(account: bool, rate: int, us: int) -> None:
    meter = Meter(Config(rate=rate, peak=rate, burst=2**31, depth=2**40, account=account), level=0)
    assert meter.send(us * US, udp(1_000)) is not None
    assert meter.read("level") == 2**31 - 1_000
    assert (meter.read("account") > 2**31) == account


def test_at_the_lowest_rate_half_an_hour_counts_whole_and_no_more() -> None:
    meter = Meter(Config(rate=1), level=0)
    assert meter.send((2**31 + 9) * US, udp(40_000)) is None
    assert meter.read("level") == Fraction(2**31 - 1, UNIT)


@pytest.mark.parametrize("engine", ENGINES)
@given(burst=st.integers(0, 50_000), events=st.lists(st.none() | LENGTHS, max_size=200))
def test_a_packet_of_the_generator_brings_128_tokens(
    engine: Engine, burst: int, events: list[int | None]
) -> None:
    # The rate is not looked at: the generator's period is the rate.
    meter = Meter(Config(rate=2**32 - 1, burst=burst, timer=True), engine)
    level = burst
    for at, length in enumerate(events):
        if length is None:
            assert meter.send(at * US, tokens(meter.index, 128), GENERATOR) is None
            level = min(burst, level + 128)
        else:
            passes = length <= level
            level -= length * passes
            assert (meter.send(at * US, udp(length)) is not None) == passes
        assert meter.read("level") == level


@given(arrivals=ARRIVALS)
@settings(max_examples=30)
def test_the_paper_s_timer_at_500_mbit_is_within_one_period_of_the_ideal(
    arrivals: list[tuple[int, int, int]],
) -> None:
    # 128 bytes each 2048 ns (section IV-A). Gaps are cut, as each costs packets of the generator.
    meter, period = Meter(Config(burst=128_000, timer=True)), 2_048_000
    rate, total, due = Fraction(500, 8), 0, period
    for at, length, _ in timed([(min(gap, 300 * US), length, ecn) for gap, length, ecn in arrivals]):
        while due <= at:
            meter.send(due, tokens(meter.index, 128), GENERATOR)
            due += period
        passes = meter.send(at, udp(length)) is not None
        total += length * passes
        assert total <= 128_000 + rate * Fraction(at, US)
        # Turned away only by a bucket that would have had less than a period's tokens more.
        assert passes or meter.read("level") + 128 < length + 128


def test_orders_come_from_the_generator_s_ports_alone() -> None:
    timed_meter = Meter(Config(timer=True), level=0)
    order = tokens(timed_meter.index, 128)
    # Somebody who sends such a packet has it forwarded, as any that is not IP.
    assert timed_meter.send(0, order, 3) == order
    assert timed_meter.read("level") == 0
    assert timed_meter.send(0, order, GENERATOR) is None
    assert timed_meter.read("level") == 128
    # A packet of the generator that is cut short, and one for a meter that does not exist.
    timed_meter.send(0, order[:18], GENERATOR)
    timed_meter.send(0, tokens(65_535, 128), GENERATOR)
    assert timed_meter.read("level") == 128
    assert SWITCHES["jit"].register_read("level", 65_535, 1) == [0]
    assert timed_meter.counts() == [0, 0, 0, 0]
    lazy = Meter(Config(), level=0)
    lazy.send(0, tokens(lazy.index, 128), GENERATOR)
    assert lazy.read("level") == 0


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


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("probability", [UNIT // 4, UNIT])
@pytest.mark.parametrize("saved", [0, 1_000, 50_000, 99_000, 100_000, 200_000])
def test_the_emptier_the_account_the_more_marks(engine: Engine, probability: int, saved: int) -> None:
    # Nothing comes, and the bucket takes nothing: the account stays as it is.
    config = Config(
        burst=10**9,
        depth=200_000,
        marks=True,
        account=True,
        mark_saved=100_000,
        probability=probability,
    )
    meter, packets = Meter(config, engine, saved=saved), 20_000
    for _ in range(packets):
        meter.send(0, udp(100, ECT1))
    assert meter.read("account") == saved
    chance = probability / UNIT * max(0.0, 1 - saved / 100_000) ** 3
    marks = meter.counts()[2]
    assert abs(marks - packets * chance) <= 5 * math.sqrt(packets * chance * (1 - chance))


@pytest.mark.parametrize("engine", ENGINES)
def test_one_mark_for_each_step_that_the_account_falls(engine: Engine) -> None:
    # 1000 bytes a millisecond come; the bucket is so small that each packet comes out of the account.
    config = Config(
        rate=UNIT, peak=2**32 - 1, burst=1_000, depth=100_000, marks=True, account=True, mark_step=10_000
    )
    meter = Meter(config, engine, level=1_000, saved=100_000)
    now = 0

    def marks(packets: int, gap: int) -> list[int]:
        """Which of the packets are marked that come every so many microseconds."""
        nonlocal now
        marked = []
        for number in range(packets):
            now += gap * 1_000_000
            if meter.send(now, udp(1_000, ECT0)) == udp(1_000, CE):
                marked.append(number)
        return marked

    # At the rate the account stays full; at twice the rate it falls by 500 bytes a packet, by more than 10 000 in 21.
    assert marks(50, 1_000) == []
    falling = marks(70, 500)
    assert [after - before for before, after in itertools.pairwise(falling)] == [21, 21]
    # While it rises nothing is marked, wherever it is; when it falls again the step counts from where it turned.
    assert marks(20, 1_500) == []
    assert len(marks(19, 500)) == 0
    assert len(marks(4, 500)) == 1
    # Packets that cannot be marked do not use a step up.
    meter.switch.register_write("account", [50_000 * UNIT], meter.index)
    meter.switch.register_write("step_mark", [60_000 * UNIT], meter.index)
    now += 1_000_000_000
    assert meter.send(now, udp(1_000)) == udp(1_000)
    assert marks(1, 1_000) == [0]


@pytest.mark.parametrize("engine", ENGINES)
def test_an_account_that_rises_marks_nothing(engine: Engine) -> None:
    # Almost empty, with a bucket that is; 2000 bytes a millisecond come.
    config = Config(
        rate=2 * UNIT,
        peak=2**32 - 1,
        burst=1_000,
        depth=1_000_000,
        marks=True,
        account=True,
        mark_saved=1_000_000,
        mark_below=Fraction(1_001),
        mark_step=100_000,
        probability=UNIT,
    )
    meter = Meter(config, engine, level=1_000, saved=50_000)
    now = 0

    def marks(packets: int, gap: int) -> int:
        nonlocal now
        before = meter.counts()[2]
        for _ in range(packets):
            now += gap * 1_000_000
            meter.send(now, udp(1_000, ECT0))
        return meter.counts()[2] - before

    assert marks(100, 1_000) == 0
    # Falls, but not below where it was lowest, which follows it at the distance of a step.
    assert marks(80, 10) == 0
    assert marks(60, 10) > 20


def test_a_bucket_that_the_account_will_fill_is_not_marked_for() -> None:
    config = Config(
        burst=10_000, depth=100_000, marks=True, account=True, mark_below=Fraction(10_000), mark_saved=50_000
    )
    assert Meter(config, level=2_000, saved=100_000).send(0, udp(1_000, ECT0)) == udp(1_000, ECT0)
    # The account alone would mark one in 10^15.
    assert Meter(config, level=2_000, saved=49_999).send(0, udp(1_000, ECT0)) == udp(1_000, CE)


def test_without_account_nothing_is_marked_by_it() -> None:
    config = Config(marks=True, mark_saved=100_000)
    for other in (
        config,
        replace(config, account=True, timer=True),
        replace(config, account=True, marks=False),
    ):
        assert Meter(other).send(0, udp(1_000, ECT0)) == udp(1_000, ECT0)
    assert Meter(replace(config, account=True)).send(0, udp(1_000, ECT0)) == udp(1_000, CE)
    assert Meter(replace(config, account=True)).send(0, udp(1_000)) == udp(1_000)


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


PAIR = [PROGRAM.pipeline(engine, seed=3) for engine in ENGINES]
CONFIGS = st.builds(
    Config,
    rate=st.integers(0, 2**32 - 1),
    burst=st.integers(0, 2**47),
    depth=st.integers(0, 2**47),
    peak=st.integers(0, 2**32 - 1),
    mark_below=st.fractions(0, 10_000),
    mark_saved=st.integers(0, 2**47),
    mark_step=st.integers(0, 2**47),
    probability=st.integers(0, 2**17 - 1),
    shift=st.integers(0, 63),
    marks=st.booleans(),
    second_chance=st.booleans(),
    averages=st.booleans(),
    timer=st.booleans(),
    account=st.booleans(),
)
CELLS = st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 2**64 - 1), min_size=5, max_size=5)


@pytest.mark.slow
@given(
    config=CONFIGS,
    cells=CELLS,
    packets=st.lists(
        st.tuples(st.integers(0, 2**50), st.integers(60, 3000), st.integers(0, 3), st.integers(0, 2)),
        max_size=20,
    ),
)
def test_both_engines_agree(
    config: Config, cells: list[int], packets: list[tuple[int, int, int, int]]
) -> None:
    index = next(METERS)
    known = []
    for switch in PAIR:
        for table in ("forward", "targets4", "targets6", "meters", "generators"):
            switch.table_clear(table)
        switch.table_add("forward", [MAC], "to_port", [1])
        switch.table_add("targets4", ["0.0.0.0/0"], "use", [index])
        switch.table_add("targets6", ["::/0"], "use", [index])
        switch.table_add("generators", [GENERATOR], "pass")
        switch.table_add("meters", [index], "configure", config.values)
        for register, cell in zip(("level", "account", "average", "step_mark", "lowest"), cells, strict=True):
            switch.register_write(register, [cell], index)
        switch.register_write("rate", [config.rate], index)
        switch.register_write("peak", [config.peak], index)
        outputs, now = [], 0
        for gap, length, ecn, kind in packets:
            now += gap
            packet = (udp(length, ecn), udp6(length, ecn), tokens(index, length))[kind]
            outputs.append(switch.process(now, GENERATOR if kind == 2 else 0, packet))
        state = [
            int(switch.register_read(name, index, 1)[0])
            for name in ("level", "account", "average", "step_mark", "lowest", "updated")
        ]
        counts = [
            switch.counter_read(name, index, 1).tolist() for name in ("passed", "dropped", "marked", "spared")
        ]
        known.append((outputs, state, counts))
    assert known[0] == known[1]
