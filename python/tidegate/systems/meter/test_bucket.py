"""`meter.p4`: the token bucket, its refill by the time and by the generator, and the account behind it, against exact models."""

from __future__ import annotations

from dataclasses import replace
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
