"""`meter.p4`: the token bucket, and its refill by the time and by the generator, against exact models; its bound."""

from __future__ import annotations

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.systems.meter.packet_harness import (
    ARRIVALS,
    ENGINES,
    GENERATOR,
    LENGTHS,
    RATES,
    SWITCHES,
    UNIT,
    US,
    Config,
    Engine,
    Ideal,
    Meter,
    timed,
    tokens,
    udp,
)


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


def most_ahead(sent: list[tuple[int, int]], rate: Fraction) -> Fraction:
    """The most bytes beyond the rate in any time from a packet to a packet, of times in microseconds and lengths."""
    most = lowest = total = Fraction(0)
    for number, (at, length) in enumerate(sent):
        credit = total - rate * at
        lowest = min(lowest, credit) if number else credit
        total += length
        most = max(most, total - rate * at - lowest)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@given(rate=RATES, burst=st.integers(0, 200_000), arrivals=ARRIVALS)
def test_in_no_time_more_than_rate_and_burst(
    engine: Engine, rate: int, burst: int, arrivals: list[tuple[int, int, int]]
) -> None:
    """The plain bucket's bound, whatever is sent: sizes, gaps, ECN code points and CE."""
    meter = Meter(Config(rate=rate, burst=burst), engine)
    sent = [
        # The switch's clock ticks in microseconds.
        (at // US, length)
        for at, length, ecn in timed(arrivals)
        if meter.send(at, udp(length, ecn)) is not None
    ]
    assert most_ahead(sent, Fraction(rate, UNIT)) <= burst


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@given(rate=RATES, burst=st.integers(0, 200_000), arrivals=ARRIVALS)
def test_with_the_second_chance_less_than_twice_rate_and_burst(
    engine: Engine, rate: int, burst: int, arrivals: list[tuple[int, int, int]]
) -> None:
    """The paper's meter has no such bound: each packet pays for more than half of its length."""
    config = Config(rate=rate, burst=burst, marks=True, mark_below=Fraction(burst, 2), second_chance=True)
    meter = Meter(config, engine)
    total = 0
    for at, length, ecn in timed(arrivals):
        total += length * (meter.send(at, udp(length, ecn)) is not None)
        assert total == 0 or total < 2 * (burst + Fraction(rate, UNIT) * (at // US))


@pytest.mark.parametrize("rate", [2**31, 2**32 - 1])
@pytest.mark.parametrize("us", [2**31 - 1, 2**31, 2**32, 2**33, 86_400 * 10**6])
def test_after_a_day_at_the_highest_rate_nothing_overflows(rate: int, us: int) -> None:
    meter = Meter(Config(rate=rate, burst=2**31), level=0)
    assert meter.send(us * US, udp(1_000)) is not None
    assert meter.read("level") == 2**31 - 1_000


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
