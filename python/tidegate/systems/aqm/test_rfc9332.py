"""What RFC 9332 (sections 2.3 to 2.5) and RFC 9331 (section 5) ask of a network, point by point."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.control import Port, SwitchApi
from tidegate.systems.aqm import packet_harness as rig
from tidegate.systems.aqm.controller import (
    BINS,
    ONE,
    Aqm,
    AqmController,
    bin_edges_us,
    dual_port,
)
from tidegate.systems.aqm.packet_harness import FIXED, MS, US, Sent, counted, share, spaced
from tidegate.systems.aqm.rfc9332_pseudocode import CE, ECT0, ECT1, NOT_ECT
from tidegate.systems.aqm.setup import program

PROGRAMS = ["pi2", "dualpi2"]
Name = Literal["pi2", "dualpi2"]

# Section 2.3 and RFC 9331 section 5.1: classification.


@pytest.mark.parametrize("version", [4, 6])
@pytest.mark.parametrize(("ecn", "queue"), [(NOT_ECT, 0), (ECT1, 1), (ECT0, 0), (CE, 1)])
def test_2_3_ect1_and_ce_go_to_the_l_queue_the_rest_to_the_c_queue(
    ecn: int, queue: int, version: int
) -> None:
    outcome = counted("dualpi2", FIXED, spaced(3, ecn, version=version), Fraction(0))
    assert outcome.counts["presented"][queue] == 3
    assert outcome.counts["presented"][1 - queue] == 0


@pytest.mark.parametrize("name", PROGRAMS)
def test_2_3_packets_with_a_vlan_tag_are_known_by_their_ecn_field_too(name: Name) -> None:
    pipeline = program(name).pipeline()
    AqmController({rig.PORT: rig.RATE}, FIXED, ports={"02:00:00:00:00:01": rig.PORT}).start(pipeline)  # type: ignore[arg-type]
    pipeline.register_write("p", [int(0.4 * ONE)], rig.PORT)
    marked = 0
    for number in range(100):
        plain = rig.frame(number, 80, ECT1, 0, 4)
        ((_, data),) = pipeline.process(number * MS, 1, plain[:12] + b"\x81\x00\x00\x05" + plain[12:])
        assert (data[:12], data[12:18], rig.checksum(data[18:38])) == (
            plain[:12],
            b"\x81\x00\x00\x05\x08\x00",
            0,
        )
        marked += data[19] & 3 == CE
    assert marked == pytest.approx(80, abs=1)


def test_2_3_operators_classify_ipv6_by_source_too() -> None:
    def by_source(api: SwitchApi) -> None:
        api.table_add("sources6", ["2001:db8::/32"], "classic")

    # DSCP 46 is for L, but the source is for C.
    packets = spaced(3, ECT1, "L", version=6)
    outcome = counted("dualpi2", FIXED, packets, Fraction(0), prepare=by_source)
    assert outcome.counts["presented"] == [3, 0]
    assert counted("dualpi2", FIXED, packets, Fraction(0)).counts["presented"] == [0, 3]


def test_2_3_operators_classify_by_source_first_then_by_dscp_and_code_points_stay() -> None:
    def by_source(api: SwitchApi) -> None:
        api.table_add("sources4", ["192.0.2.0/24"], "classic")

    # DSCP 46 is for L, but the source is for C.
    packets = [Sent(n * MS + 1, 80, ecn, "L") for n, ecn in enumerate([NOT_ECT, ECT1, ECT0, CE])]
    outcome = counted("dualpi2", FIXED, packets, Fraction(0), prepare=by_source)
    assert outcome.counts["presented"] == [4, 0]
    assert [left.ecn for left in outcome.left] == [NOT_ECT, ECT1, ECT0, CE]
    without = counted("dualpi2", FIXED, packets, Fraction(0))
    assert without.counts["presented"] == [0, 4]


@pytest.mark.parametrize("name", PROGRAMS)
def test_rfc_9331_5_1_disabled_ect1_is_as_not_ect(name: Name) -> None:
    aqm = replace(FIXED, l4s=False)
    packets = [*spaced(500, ECT1)]
    outcome = counted(name, aqm, packets, Fraction(1, 4))
    assert outcome.counts["presented"] == [500, 0]
    # Classic likelihood, and drop.
    assert share(outcome, "dropped_ect") == pytest.approx(1 / 16, abs=0.01)
    assert outcome.counts["marked"] == [0, 0]


# RFC 9331 section 5.1: transitions.


@settings(max_examples=15, deadline=None)
@given(
    name=st.sampled_from(PROGRAMS),
    p=st.integers(0, ONE),
    places=st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from([None, "L", "C"]), st.sampled_from([4, 6])),
        min_size=1,
        max_size=100,
    ),
    l4s=st.booleans(),
)
def test_rfc_9331_5_1_ect_may_become_ce_and_nothing_else_changes(
    name: Name, p: int, places: list[tuple[int, str | None, int]], l4s: bool
) -> None:
    packets = [
        Sent(n * 100 * US + 1, 80, ecn, place, version) for n, (ecn, place, version) in enumerate(places)
    ]
    outcome = counted(name, replace(FIXED, l4s=l4s, random=True), packets, Fraction(p, ONE))
    for left, data in zip(outcome.left, outcome.data, strict=True):
        sent = packets[left.number]
        before = rig.frame(left.number, sent.bytes, sent.ecn, rig.dscp(sent.classed), sent.version)
        assert left.ecn == sent.ecn or (sent.ecn in (ECT0, ECT1) and left.ecn == CE)
        if sent.version == 4:
            assert rig.checksum(data[14:34]) == 0
            assert (data[:15], data[16:24], data[26:]) == (before[:15], before[16:24], before[26:])
            assert data[15] >> 2 == before[15] >> 2
        else:
            assert (data[:15], data[16:]) == (before[:15], before[16:])
            assert data[15] & 0xCF == before[15] & 0xCF


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("ecn", [ECT0, ECT1])
def test_rfc_9331_5_1_packets_with_ce_have_a_right_checksum(name: Name, ecn: int) -> None:
    outcome = counted(name, FIXED, spaced(100, ecn), Fraction(2, 5))
    marked = [data for left, data in zip(outcome.left, outcome.data, strict=True) if left.ecn == CE]
    assert len(marked) > 10
    assert {rig.checksum(data[14:34]) for data in marked} == {0}


# Section 2.4, equations 1 to 4; RFC 9331 section 5.2.


@pytest.mark.parametrize("at_random", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 5), Fraction(2, 5)])
def test_2_4_classic_likelihood_is_p_squared_and_the_coupled_one_k_p(
    name: Name, at_random: bool, p: Fraction
) -> None:
    aqm = replace(FIXED, random=at_random)
    low = 1 if name == "dualpi2" else 0
    near = 0.05 if at_random else 0.002
    for ecn, queue, counter, expected in [
        (NOT_ECT, 0, "dropped_not_ect", p**2),
        (ECT0, 0, "marked", p**2),
        (ECT1, low, "marked", 2 * p),
    ]:
        outcome = counted(name, aqm, spaced(2000, ecn), p)
        assert share(outcome, counter, queue) == pytest.approx(float(expected), abs=near)
        assert outcome.counts["dropped_ect"] == [0, 0]


@pytest.mark.parametrize("k", [1.0, 1.5, 4.0])
def test_2_5_1_other_coupling_factors(k: float) -> None:
    p = Fraction(1, 10)
    outcome = counted("dualpi2", replace(FIXED, k=k), spaced(1000, ECT1), p)
    assert share(outcome, "marked", 1) == pytest.approx(k / 10, abs=0.002)


def test_2_4_the_l_likelihood_is_the_larger_of_native_and_coupled() -> None:
    # Bursts of eight full packets at 80 Mbit/s, each of which waits 151.4 us longer than the one before.
    bursts = [Sent(burst * 4 * MS + n + 1, 1514, ECT1) for burst in range(100) for n in range(8)]
    aqm = replace(FIXED, ramp_from="329 us", ramp="400 us", ramp_packets=0, random=True)

    def fourth(p: Fraction) -> float:
        outcome = counted("dualpi2", aqm, bursts, p)
        ordered = sorted(outcome.left, key=lambda left: left.number)
        delays = {left.number: left.us for left in ordered}
        # Waits of the first packets are multiples of what one takes on the wire, 151.4 us.
        assert delays[3] - delays[0] == pytest.approx(3 * 151.4, abs=2)
        return float(np.mean([left.ecn == CE for left in ordered if left.number % 8 == 3]))

    # The fourth packet: 454 us, 0.3125 of the ramp.
    assert fourth(Fraction(0)) == pytest.approx(0.3125, abs=0.15)
    assert fourth(Fraction(1, 20)) == pytest.approx(0.3125, abs=0.15)
    assert fourth(Fraction(4, 10)) == pytest.approx(0.8, abs=0.12)


# Section 2.5.1: the scheduler.


def order(port: Port, packets: list[Sent]) -> list[int]:
    """Whose turn it was: 1 for L."""
    outcome = rig.through_program("dualpi2", FIXED, packets, port=port)
    return [packets[left.number].ecn for left in outcome.left]


def test_2_5_1_l_goes_first_and_leaves_c_its_sixteenth() -> None:
    both = [Sent(n + 1, 1514, ECT1 if n % 2 else NOT_ECT) for n in range(160)]
    turns = order(dual_port(), both)
    # The very first has found the wire free. Then fifteen of L for one of C (section 4.2.2), and the rest.
    positions = [at for at, low in enumerate(turns) if not low]
    assert positions[:6] == [0, 16, 32, 48, 64, 80]
    assert len(turns) == 160


def test_2_5_1_with_a_time_shifted_fifo_c_waits_longer_by_at_most_the_shift() -> None:
    port = dual_port("time-shifted FIFO", time_shift="20 ms")
    # L has as much as the wire can send, for good; ten of C have come before.
    both = [Sent(n + 1, 1514, NOT_ECT) for n in range(10)]
    both += [Sent(n * 1514 * US + 1000, 1514, ECT1) for n in range(150)]
    outcome = rig.through_program("dualpi2", FIXED, both, port=port)
    waits = [left.us - both[left.number].at // US for left in outcome.left]
    classic = [wait for left, wait in zip(outcome.left, waits, strict=True) if left.number < 10]
    low = [wait for left, wait in zip(outcome.left, waits, strict=True) if left.number >= 10]
    assert max(classic) <= 20_000 + max(low) + 1514
    # And not much less: L had priority until then.
    assert max(classic) > 15_000


@pytest.mark.parametrize(
    "port", [dual_port(), dual_port("deficit round robin", weight=9), dual_port("time-shifted FIFO")]
)
def test_2_5_1_the_scheduler_conserves_work(port: Port) -> None:
    chance = np.random.default_rng(3)
    packets = [
        Sent(int(at) + 1, 1514, int(ecn))
        for at, ecn in zip(np.sort(chance.integers(0, 100 * MS, 80)), chance.integers(0, 4, 80), strict=True)
    ]
    outcome = rig.through_program("dualpi2", FIXED, packets, port=port)
    assert len(outcome.left) == 80
    for one, other in itertools.pairwise(outcome.left):
        # The wire is busy without a gap while something waits.
        came = packets[other.number].at // US
        assert other.us - max(one.us + 1514, came) in (0, 1)


# Section 2.5.1.1: unexpected code points, and overload.


def test_2_5_1_1_ect0_in_the_l_queue_is_marked_with_the_classic_likelihood() -> None:
    outcome = counted("dualpi2", FIXED, spaced(2000, ECT0, "L"), Fraction(1, 5))
    # p_L is 0.4; (p_L / k)^2.
    assert outcome.counts["presented"] == [0, 2000]
    assert share(outcome, "marked", 1) == pytest.approx(0.04, abs=0.001)
    assert outcome.counts["dropped_ect"] == [0, 0]


def test_2_5_1_1_ect0_in_the_l_queue_goes_by_the_delay_there_too() -> None:
    # All but the first and the last two wait longer than the step.
    step = replace(FIXED, ramp_from="1 us", ramp=0)
    burst = [Sent(n + 1, 1514, ECT0, "L") for n in range(102)]
    outcome = rig.through_program("dualpi2", step, burst)
    assert outcome.counts["marked"][1] == pytest.approx(99 / 4, abs=1)


def test_2_5_1_1_not_ect_in_the_l_queue_is_dropped_unless_something_polices_it() -> None:
    packets = spaced(2000, NOT_ECT, "L")
    outcome = counted("dualpi2", FIXED, packets, Fraction(1, 5))
    assert share(outcome, "dropped_not_ect", 1) == pytest.approx(0.04, abs=0.001)
    policed = counted("dualpi2", replace(FIXED, policed=True), packets, Fraction(1, 5))
    assert len(policed.left) == 2000
    # Only what is not ECN-capable is left alone.
    packets = spaced(2000, ECT0, "L")
    policed = counted("dualpi2", replace(FIXED, policed=True), packets, Fraction(1, 5))
    assert share(policed, "marked", 1) == pytest.approx(0.04, abs=0.001)


@pytest.mark.parametrize("p", [Fraction(1, 5), Fraction(2, 5)])
def test_2_5_1_1_ect1_in_the_c_queue_is_marked_with_the_coupled_likelihood(p: Fraction) -> None:
    outcome = counted("dualpi2", FIXED, spaced(2000, ECT1, "C"), p)
    assert outcome.counts["presented"] == [2000, 0]
    assert share(outcome, "marked", 0) == pytest.approx(2 * float(p), abs=0.001)
    assert len(outcome.left) == 2000


OVERLOAD = Fraction(3, 5)


@pytest.mark.parametrize("at_random", [False, True])
@pytest.mark.parametrize(
    ("ecn", "classed"), [(NOT_ECT, None), (ECT0, None), (ECT1, None), (CE, None), (ECT1, "C"), (ECT0, "L")]
)
@pytest.mark.parametrize("name", PROGRAMS)
def test_2_5_1_1_in_overload_all_are_dropped_with_the_same_likelihood(
    name: Name, ecn: int, classed: str | None, at_random: bool
) -> None:
    aqm = replace(FIXED, random=at_random)
    outcome = counted(name, aqm, spaced(2000, ecn, classed), OVERLOAD)
    dropped = sum(outcome.counts["dropped_not_ect"]) + sum(outcome.counts["dropped_ect"])
    assert dropped / 2000 == pytest.approx(float(OVERLOAD) ** 2, abs=0.04 if at_random else 0.002)
    low = ecn == ECT1 or (name == "dualpi2" and classed == "L")
    # Figure 7, line 8h: what is left of L is all marked, but for the first by the recurrence. Figure 7, line 12b: of C nothing is.
    for left in outcome.left[2:]:
        assert left.ecn == (CE if low else ecn)


@pytest.mark.parametrize("name", PROGRAMS)
def test_2_5_1_1_drop_ends_with_the_overload(name: Name) -> None:
    def calm(api: SwitchApi) -> None:
        api.register_write("p", [int(0.1 * ONE)], rig.PORT)

    packets = spaced(2000, ECT1)
    outcome = counted(name, FIXED, packets, OVERLOAD, during=[(100 * MS, calm)])
    lost = set(range(2000)) - {left.number for left in outcome.left}
    assert len(lost) == pytest.approx(360, abs=2)
    assert max(lost) < 1001


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize(("ecn", "classed"), [(ECT0, None), (ECT1, None), (ECT1, "C"), (ECT0, "L")])
@pytest.mark.parametrize(
    ("p_c_max", "p", "dropped", "near"),
    [
        # At random: where marks and drops take turns, the recurrence's one sum does not keep them apart.
        (0.04, Fraction(19, 100), 0, 0),
        (0.04, Fraction(21, 100), 44, 20),
        # The threshold itself is overload (appendix A.2: reaches).
        (0.25, Fraction(1, 2) - Fraction(1, ONE), 0, 0),
        (0.25, Fraction(1, 2), 250, 1),
        (0.25, Fraction(1), 999, 1),
    ],
)
def test_2_5_2_1_from_p_c_max_on_both_queues_drop(
    p_c_max: float, p: Fraction, dropped: int, near: int, name: Name, ecn: int, classed: str | None
) -> None:
    aqm = replace(FIXED, p_c_max=p_c_max, random=p_c_max < 0.25)
    outcome = counted(name, aqm, spaced(1000, ecn, classed), p)
    assert sum(outcome.counts["dropped_ect"]) == pytest.approx(dropped, abs=near)


def test_2_5_1_1_overload_before_marks_saturate_leaves_the_marks_as_they_are() -> None:
    aqm = replace(FIXED, p_c_max=0.04, random=True)
    outcome = counted("dualpi2", aqm, spaced(1000, ECT1), Fraction(21, 100))
    marked = sum(left.ecn == CE for left in outcome.left)
    assert marked / len(outcome.left) == pytest.approx(0.42, abs=0.05)


# Section 2.5.2: configuration, monitoring, anomalies.


def test_2_5_2_1_no_configuration_is_needed() -> None:
    """Only the port's rate is known, which the buffer goes by."""
    outcome = rig.through_program("dualpi2", Aqm(), [Sent(1, 1514, ECT1), Sent(2, 1514, NOT_ECT)])
    assert len(outcome.left) == 2
    AqmController({0: "1 Gbit/s"})


@pytest.mark.parametrize("name", PROGRAMS)
def test_2_5_2_2_statistics(name: Name) -> None:
    chance = np.random.default_rng(5)
    packets = [
        Sent(int(at) + 1, int(size), int(ecn))
        for at, size, ecn in zip(
            np.sort(chance.integers(0, 2000 * MS, 4000)),
            chance.choice([80, 1514], 4000),
            chance.choice([0] * 6 + [2] * 6 + [1, 3], 4000),
            strict=True,
        )
    ]
    outcome = rig.through_program(name, replace(FIXED, random=True), packets, p=Fraction(1, 5))
    counts = outcome.counts
    low = [name == "dualpi2" and sent.ecn % 2 == 1 for sent in packets]
    left = {one.number: one for one in outcome.left}
    for queue in (0, 1):
        own = [number for number, is_low in enumerate(low) if is_low == bool(queue)]
        assert counts["arrived"][queue] == len(own)
        # Tail drop and the AQM's.
        assert counts["arrived"][queue] - counts["presented"][queue] == counts["overflowed"][queue]
        discarded = counts["dropped_not_ect"][queue] + counts["dropped_ect"][queue]
        assert counts["presented"][queue] - counts["forwarded"][queue] == discarded
        assert counts["forwarded"][queue] == sum(number in left for number in own)
        marked = [n for n in own if n in left and left[n].ecn == CE and packets[n].ecn != CE]
        assert counts["marked"][queue] == len(marked)
        assert sum(outcome.bins[queue]) == counts["presented"][queue]
    assert sum(counts["overflowed"]) > 0
    # Mean and 99th percentile can be had of each queue.
    waits = [one.us - packets[one.number].at // US for one in outcome.left if not low[one.number]]
    assert outcome.registers["delay_sum"][0] / counts["presented"][0] == pytest.approx(
        np.mean(waits), rel=0.02
    )
    reached = np.cumsum(outcome.bins[0]) >= 0.99 * sum(outcome.bins[0])
    edges = bin_edges_us(int(np.argmax(reached)))
    assert edges[0] * 0.98 <= np.quantile(waits, 0.99) <= edges[1] * 1.02


def test_2_5_2_2_bins_of_the_histogram_follow_on_each_other() -> None:
    assert bin_edges_us(0)[0] == 0
    for number in range(BINS - 1):
        assert bin_edges_us(number)[1] == bin_edges_us(number + 1)[0]
    # The whole buffer fits in.
    assert bin_edges_us(BINS - 1)[1] > 300_000


@pytest.mark.parametrize("number", [0, 1, 127, 128, 129, 367, 368, 369, 400])
def test_2_5_2_2_the_program_has_the_same_bins(number: int) -> None:
    low, high = bin_edges_us(number)
    for wait_us in (low, (low + high) // 2, high - 1):
        # A first packet takes so long on the wire; the second waits for it.
        size = 1400
        rate = round(size * 8 * 10**12 / ((wait_us + 0.5) * US))
        pair = [Sent(1, size), Sent(2, size)]
        outcome = rig.through_program("pi2", FIXED, pair, rate=rate)
        assert outcome.bins[0][number] == (2 if number == 0 else 1)


def test_2_5_2_3_overload_is_reported_and_not_more_often_than_asked() -> None:
    changes = [(at, p) for at in range(0, 1000, 100) for p in (0.6, 0.1)]

    def to(p: float) -> Callable[[SwitchApi], None]:
        return lambda api: api.register_write("p", [int(p * ONE)], rig.PORT)

    aqm = Aqm(period="500 ms", target="20 ms")
    # Fifty milliseconds of overload in each hundred, over a second; the watch looks every ten.
    during = [(at * MS + (MS if p > 0.5 else 51 * MS), to(p)) for at, p in changes]
    quiet = [Sent(1, 80, NOT_ECT), Sent(1990 * MS, 80, NOT_ECT)]
    outcome = rig.through_program(
        "dualpi2", aqm, quiet, during=during, options={"watch": "10 ms", "hysteresis": "400 ms"}
    )
    reports = [(at, value) for at, quantity, value in outcome.notes if quantity == "overload_0_s"]
    assert [round(at, 2) for at, _ in reports] == [0.06, 0.46, 0.86, 1.26]
    assert [round(value, 2) for _, value in reports] == [0.05, 0.2, 0.2, 0.05]
    # Each with when it began.
    begins = [value for _, quantity, value in outcome.notes if quantity == "overload_0_since_s"]
    assert [round(begin, 2) for begin in begins] == [0.01, 0.11, 0.51, 0.91]
