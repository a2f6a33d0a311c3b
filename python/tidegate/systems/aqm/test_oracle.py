"""`pi2.p4` and `dualpi2.p4`, with a switch's queues around them, against RFC 9332's pseudocode: same packets, same random numbers,
same packets at the same times with the same code points, to the last one; and the same p' in the end.
"""

from __future__ import annotations

import random
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.systems.aqm import packet_harness as rig
from tidegate.systems.aqm.controller import ONE, Aqm, AqmController
from tidegate.systems.aqm.packet_harness import Left, Sent
from tidegate.systems.aqm.rfc9332_pseudocode import NOT_ECT, DualPi2, Packet, Params, Pi2, Wrr

SCHEDULERS = ["weighted round robin", "time-shifted FIFO"]
PROGRAMS = ["pi2", "dualpi2"]


def same(name: str, aqm: Aqm, packets: list[Sent], scheduler: str, p: Fraction, seed: int = 1) -> rig.Outcome:
    """Runs both; gives the program's outcome."""
    port, choose = rig.scheduled(scheduler)
    queues = None if name == "pi2" else port
    ours = rig.through_program(name, aqm, packets, p=p, port=queues, seed=seed)
    theirs, oracle = rig.through_oracle(name, aqm, packets, p=p, scheduler=choose, seed=seed)
    assert ours.left == theirs.left
    assert ours.p == theirs.p
    assert sum(ours.counts["overflowed"]) == len(oracle.overflowed)
    assert sum(ours.counts["dropped_not_ect"]) + sum(ours.counts["dropped_ect"]) == len(oracle.dropped)
    return ours


def traffic(seed: int, count: int, loads: tuple[float, ...]) -> list[Sent]:
    """Packets of all sizes and code points, in stretches of different load; some go where a classifier wants them."""
    chance = random.Random(seed)
    packets, at = [], 0
    for number in range(count):
        load = loads[number * len(loads) // count]
        size = chance.choice([70, 600, 1514])
        at += chance.randrange(1, round(2 * 726e6 / load))
        classed = chance.choice([None, None, None, None, "L", "C"])
        packets.append(Sent(at, size, chance.randrange(4), classed, chance.choice([4, 4, 6])))
    return packets


@pytest.mark.parametrize("scheduler", SCHEDULERS)
@pytest.mark.parametrize("at_random", [False, True])
@pytest.mark.parametrize("name", PROGRAMS)
def test_same_decisions_as_rfc_9332_from_idle_to_overload(name: str, at_random: bool, scheduler: str) -> None:
    packets = traffic(7, 3000, (0.5, 0.97, 1.6, 0.9))
    ours = same(name, Aqm(random=at_random), packets, scheduler, Fraction(0))
    # There was something to decide.
    assert len(ours.left) < len(packets)
    assert sum(ours.counts["marked"]) > 100


PLACES = st.sampled_from([None, None, "L", "C"])
PACKETS = st.lists(
    st.tuples(
        st.integers(1, 3_000_000_000),
        st.sampled_from([70, 71, 600, 1513, 1514]),
        st.integers(0, 3),
        PLACES,
        st.sampled_from([4, 6]),
    ),
    min_size=1,
    max_size=150,
)
SETTINGS = st.builds(
    Aqm,
    target=st.sampled_from(["1 ms", "15 ms"]),
    rtt_max=st.sampled_from(["10 ms", "100 ms"]),
    k=st.sampled_from([1.0, 2.0, 4.0]),
    p_c_max=st.sampled_from([None, 0.01, 0.25, 1.0]),
    ramp_from=st.sampled_from([0, "800 us", "5 ms"]),
    ramp=st.sampled_from([0, "400 us", "512 us"]),
    ramp_packets=st.sampled_from([None, 0, 1, 2, 3]),
    random=st.booleans(),
    policed=st.booleans(),
    mtu=st.sampled_from([1500, 1500, 9000]),
    limit_packets=st.sampled_from([None, None, 20]),
    spares_two=st.booleans(),
    l4s=st.sampled_from([True, True, False]),
)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(PROGRAMS),
    aqm=SETTINGS,
    packets=PACKETS,
    scheduler=st.sampled_from(SCHEDULERS),
    p=st.integers(0, 2**32).map(lambda p: Fraction(p, 2**32)),
    seed=st.integers(0, 2**32),
)
def test_same_decisions_as_rfc_9332_for_any_packets_and_settings(
    name: str,
    aqm: Aqm,
    packets: list[tuple[int, int, int, str | None, int]],
    scheduler: str,
    p: Fraction,
    seed: int,
) -> None:
    at, sent = 0, []
    for gap, *about in packets:
        at += gap
        sent.append(Sent(at, *about))  # type: ignore[arg-type]
    same(name, aqm, sent, scheduler, p, seed)


@pytest.mark.parametrize("name", PROGRAMS)
def test_same_decisions_with_the_controller_in_the_control_plane(name: str) -> None:
    """The oracle's p' follows the same law every 16 ms, and is as precise as the data plane's register."""
    packets = traffic(11, 2000, (0.9, 1.3, 0.8))
    aqm = replace(rig.OUTSIDE, ramp_from="800 us", ramp="512 us")
    ours = rig.through_program(name, aqm, packets)
    ticked = _with_ticks(name, aqm, packets)
    assert ours.left == ticked
    assert sum(ours.counts["marked"]) > 50


def _with_ticks(name: str, aqm: Aqm, packets: list[Sent]) -> list[Left]:
    kind = DualPi2 if name == "dualpi2" else Pi2
    params = rig.params_of(aqm)
    # The controller's gains are those of the RFC to a double's precision.
    params.alpha = Fraction(aqm.alpha) / 10**6 / (aqm.tupdate // 10**6)
    params.beta = Fraction(aqm.beta) / 10**6
    oracle = kind(params, Wrr(), rig.dice(1))
    left: list[Left] = []
    events = sorted(
        [(sent.at, 1, number) for number, sent in enumerate(packets)]
        + [(tick * aqm.tupdate, 0, 0) for tick in range(1, packets[-1].at // aqm.tupdate + 100)]
    )
    free_at = now = 0
    for at, is_packet, number in events:
        while oracle.lq.packets or oracle.cq.packets:
            start = max(free_at, now)
            # What the wire is free for at a tick's very time goes first.
            if start > at:
                break
            now = start
            pkt = oracle.dequeue(now)
            if pkt is not None:
                left.append(Left(pkt.number, pkt.ecn, now // 10**6))
                free_at = now + pkt.bytes * 10**6
        now = at
        if is_packet:
            sent = packets[number]
            oracle.enqueue(now, Packet(number, sent.bytes, sent.ecn, sent.classed))  # type: ignore[arg-type]
        else:
            oracle.update(aqm.tupdate // 10**6, oracle.lq.sojourn(), oracle.cq.sojourn())
            oracle.p = Fraction(round(oracle.p * ONE), ONE)
    return left


def test_the_oracle_by_hand() -> None:
    """Figures 4, 5 and 8, with numbers that one can check."""
    oracle = DualPi2(Params(limit=10**6), Wrr())
    assert [oracle.recur(oracle.cq, Fraction(2, 5)) for _ in range(10)] == [
        *(False, False, True, False, False),
        *(True, False, True, False, False),
    ]
    assert [oracle.laqm(us) for us in (0, 800, 900, 1000, 1199, 1200, 9999)] == [
        *(0, 0, Fraction(1, 4), Fraction(1, 2), Fraction(399, 400), 1, 1)
    ]
    # 16 ms, 5 ms above the target after nothing: 0.16 * 5 ms + 3 * 20 ms.
    oracle.update(16_000, 3_000, 20_000)
    assert oracle.p == pytest.approx(0.16 * 0.005 + 3 * 0.02, abs=1e-9)
    oracle.update(16_000, 0, 0)
    assert oracle.p == 0
    oracle.p = Fraction(1, 2)
    assert (oracle.p_c, oracle.p_cl) == (Fraction(1, 4), Fraction(1))


@pytest.mark.parametrize(("rtt_max", "target"), [(100, 15), (100, 20), (10, 15), (200, 30)])
def test_the_programs_gains_are_the_rfcs(rtt_max: int, target: int) -> None:
    ours = rig.params_of(Aqm(rtt_max=f"{rtt_max} ms", target=f"{target} ms"))
    rfc = Params(limit=0, rtt_max=1000 * rtt_max)
    assert ours.alpha is not None
    assert ours.beta is not None
    assert rfc.alpha is not None
    assert rfc.beta is not None
    assert float(ours.alpha) == pytest.approx(float(rfc.alpha), rel=1e-4)
    assert float(ours.beta) == pytest.approx(float(rfc.beta), rel=1e-4)


def test_a_controller_that_comes_back_goes_on_where_it_was() -> None:
    """RFC or not: p' and what it needs are in the switch."""
    seen: list[float] = []

    def prepare(api: object) -> None:
        again = AqmController({rig.PORT: rig.RATE}, rig.OUTSIDE)
        again.start(api)  # type: ignore[arg-type]
        seen.append(float(api.register_read("p", rig.PORT, 1)[0]))  # type: ignore[attr-defined]

    ours = rig.through_program(
        "dualpi2", rig.OUTSIDE, [Sent(1000, ecn=NOT_ECT)], p=Fraction(1, 8), prepare=prepare
    )
    assert seen == [ONE / 8]
    assert len(ours.left) == 1


def test_a_controller_that_takes_over_knows_the_delay_before() -> None:
    """A delay that has not changed moves p' by the integral part alone."""
    values: list[float] = []

    def prepare(api: object) -> None:
        api.register_write("delay", [30_000, 0], 2 * rig.PORT)  # type: ignore[attr-defined]
        for _ in range(2):
            again = AqmController({rig.PORT: rig.RATE}, rig.OUTSIDE)
            again.start(api)  # type: ignore[arg-type]
            again.tick(0, api)  # type: ignore[arg-type]
            values.append(float(api.register_read("p", rig.PORT, 1)[0]) / ONE)  # type: ignore[attr-defined]

    rig.through_program("dualpi2", rig.OUTSIDE, [Sent(1000, ecn=NOT_ECT)], prepare=prepare)
    first, second = values
    assert first == pytest.approx(rig.OUTSIDE.alpha * 0.01 + rig.OUTSIDE.beta * 0.03, abs=1e-6)
    assert second - first == pytest.approx(rig.OUTSIDE.alpha * 0.01, abs=1e-6)
