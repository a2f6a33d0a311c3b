"""`pi2_tofino.p4`, `dualpi2_tofino.p4` and their controller: what the paper (section III) says, point by point."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import TidegateError
from tidegate.control import SwitchApi
from tidegate.systems.aqm import packet_harness as rig
from tidegate.systems.aqm.controller import ONE
from tidegate.systems.aqm.packet_harness import MS, US, Sent, share, spaced
from tidegate.systems.aqm.rfc9332_pseudocode import CE, ECT0, ECT1, NOT_ECT
from tidegate.systems.aqm.setup import program
from tidegate.systems.aqm.tofino import PAPER, TofinoAqm, TofinoController

PROGRAMS = ["pi2_tofino", "dualpi2_tofino"]
Name = Literal["pi2_tofino", "dualpi2_tofino"]
# The controller does not run before the end.
STILL = TofinoAqm(period="1 s", step="100 ms")


def counted(
    name: str, packets: list[Sent], p: Fraction, aqm: TofinoAqm = STILL, **options: Any
) -> rig.Outcome:
    """What comes of packets at 80 Mbit/s."""
    return rig.through_program(name, aqm, packets, p=p, rate=80_000_000, **options)


def test_the_settings_are_the_papers() -> None:
    """Section IV: a target of 20 ms and a step of 1 ms; the open ones are RFC 9332's."""
    assert (PAPER.target, PAPER.step, PAPER.period) == ("20 ms", "1 ms", "16 ms")
    assert PAPER.gains == pytest.approx((0.1 * 0.016 / 0.1**2, 0.3 / 0.1))
    assert PAPER.latency == 0


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("p", [Fraction(1, 20), Fraction(1, 5), Fraction(2, 5)])
def test_scalable_packets_are_marked_by_2_p_and_classic_ones_get_p_squared(name: Name, p: Fraction) -> None:
    low = int(name.startswith("dual"))
    for ecn, queue, counter, expected in (
        (NOT_ECT, 0, "dropped_not_ect", p**2),
        (ECT0, 0, "marked", p**2),
        (ECT1, low, "marked", 2 * p),
    ):
        outcome = counted(name, spaced(2000, ecn), p)
        assert share(outcome, counter, queue) == pytest.approx(float(expected), abs=0.035)
        assert outcome.counts["dropped_ect"] == [0, 0]
        assert outcome.counts["arrived"][queue] == 2000


@pytest.mark.parametrize("name", PROGRAMS)
def test_from_a_half_on_all_scalable_packets_are_marked_and_none_is_dropped(name: Name) -> None:
    outcome = counted(name, spaced(500, ECT1), Fraction(6, 10))
    assert [left.ecn for left in outcome.left] == [CE] * 500


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_decisions_are_those_of_the_random_numbers_on_both_engines(
    name: Name, engine: Literal["interp", "jit"]
) -> None:
    """p' > R/2 for scalable packets; for Classic ones two numbers below p'."""
    pipeline = program(name).pipeline(engine, seed=7)
    p = round(0.3 * ONE)
    TofinoController({rig.PORT: rig.RATE}, PAPER, ports={"02:00:00:00:00:01": rig.PORT}).start(pipeline)  # type: ignore[arg-type]
    for register in ("p_coupled", "p_squared"):
        pipeline.register_write(register, [p], rig.PORT)
    draw = rig.dice(7)
    for number in range(400):
        ecn = number % 4
        came = [
            rig.number_and_ecn(data)[1]
            for _, data in pipeline.process(number * MS, 1, rig.frame(number, 80, ecn, 0, 4))
        ]
        first = int(draw() * ONE)
        if ecn % 2:
            due = p > first >> 1
            assert came == [CE if due else ecn], number
        else:
            due = p > max(first, int(draw() * ONE))
            assert came == ([] if due and ecn == NOT_ECT else [CE if due else ecn]), number


SENT = st.lists(
    st.tuples(
        st.integers(0, 3_000_000_000),
        st.sampled_from([80, 81, 600, 1513, 1514]),
        st.integers(0, 3),
        st.sampled_from([4, 6]),
    ),
    min_size=1,
    max_size=150,
)


@pytest.mark.parametrize("name", PROGRAMS)
@settings(max_examples=20, deadline=None)
@given(
    packets=SENT,
    p=st.sampled_from([Fraction(0), Fraction(1, 2), Fraction(1)])
    | st.integers(0, ONE).map(lambda p: Fraction(p, ONE)),
    seed=st.integers(0, 2**32),
)
def test_no_scalable_packet_is_dropped_and_those_that_have_waited_for_more_than_1_ms_are_marked(
    name: Name, packets: list[tuple[int, int, int, int]], p: Fraction, seed: int
) -> None:
    """Whoever else sends, however much, and whatever p' is."""
    at, sent = 1, []
    for gap, size, ecn, version in packets:
        at += gap
        sent.append(Sent(at, size, ecn, None, version))
    # The step is the paper's; p' stays.
    outcome = rig.through_program(name, TofinoAqm(period="1 s"), sent, p=p, seed=seed)
    left = {one.number: one for one in outcome.left}
    assert len(left) == len(outcome.left)
    for number, one in enumerate(sent):
        if one.ecn not in (ECT1, CE):
            continue
        waited_us = left[number].us - one.at // US
        if one.ecn == CE or (name == "dualpi2_tofino" and waited_us > 1000) or p >= Fraction(1, 2):
            assert left[number].ecn == CE, (number, waited_us)
        elif p == 0:
            assert left[number].ecn == ECT1, (number, waited_us)


def test_the_step_is_above_1_ms_and_there_need_be_nothing_behind() -> None:
    def last_of_two(wait_us: int) -> int:
        # A first packet takes so long on the wire; the second waits for it, and nothing comes behind.
        rate = round(1400 * 8 * 10**12 / ((wait_us + 0.5) * US))
        pair = [Sent(1, 1400, ECT1), Sent(2, 1400, ECT1)]
        return rig.through_program("dualpi2_tofino", PAPER, pair, rate=rate).left[1].ecn

    assert [last_of_two(us) for us in (990, 1000, 1001, 1010)] == [ECT1, ECT1, CE, CE]


def test_p_goes_by_the_classic_queue_alone_and_by_its_last_packet_when_that_is_empty() -> None:
    """Section III-B: "using the delay experienced by non-scalable TCP traffic"."""
    # Ten L packets wait up to 14 ms; the two of C, of which the second waits for one of L, little.
    packets = [Sent(n + 1, 1514, ECT1) for n in range(10)]
    outcome = rig.through_program("dualpi2_tofino", STILL, packets)
    assert outcome.registers["classic_delay"][0] == 0
    outcome = rig.through_program("pi2_tofino", STILL, packets)
    assert outcome.registers["classic_delay"][0] == pytest.approx(9 * 1514, abs=1)
    outcome = rig.through_program("dualpi2_tofino", STILL, [Sent(1, 1514, NOT_ECT), Sent(2, 80, NOT_ECT)])
    assert outcome.registers["classic_delay"][0] == pytest.approx(1514, abs=1)


class Recorded:
    """A switch that has a delay, and remembers when p' was written."""

    def __init__(self, delays_us: list[int]) -> None:
        self.delays_us, self.p, self.now = delays_us, 0, 0
        self.writes: list[tuple[int, int]] = []

    def table_entries(self, table: str) -> list[Any]:
        return []

    def table_add(self, *about: object) -> None: ...

    def note(self, quantity: str, value: float) -> None: ...

    def register_read(self, name: str, port: int, count: int) -> list[int]:
        delay = self.delays_us[min(self.now // (16 * MS), len(self.delays_us) - 1)]
        return [delay if name == "classic_delay" else self.p]

    def register_write(self, name: str, values: list[int], port: int) -> None:
        (self.p,) = values
        if name == "p_squared":
            self.writes.append((self.now, self.p))


def ticks(aqm: TofinoAqm, switch: Recorded, milliseconds: int) -> list[tuple[int, float]]:
    """What a controller writes in that time: milliseconds and p'."""
    controller = TofinoController({0: 1}, aqm)
    controller.start(switch)  # type: ignore[arg-type]
    period = controller.period
    assert isinstance(period, int)
    for number in range(1, milliseconds * MS // period + 1):
        switch.now = number * period
        controller.tick(switch.now, switch)  # type: ignore[arg-type]
    return [(at // MS, p / ONE) for at, p in switch.writes]


def test_the_pi_law() -> None:
    """p' += alpha (delay - target) + beta (delay - delay before), every T."""
    written = ticks(PAPER, Recorded([0, 30_000, 30_000, 10_000]), 64)
    expected = 0.16 * 0.010 + 3.0 * 0.030
    assert [at for at, _ in written] == [16, 32, 48, 64]
    assert [p for _, p in written] == pytest.approx(
        [
            expected,
            expected + 0.0016,
            max(0, expected + 0.0016 - 0.0016 - 0.06),
            max(0, expected - 0.0016 - 0.06),
        ],
        abs=1e-8,
    )


@pytest.mark.parametrize(("read", "write", "at"), [(0, 0, 16), (1, 3, 20), (8, 8, 32), (0, 5, 21)])
def test_p_is_in_the_switch_after_both_latencies_and_of_the_delay_that_was_read(
    read: int, write: int, at: int
) -> None:
    aqm = TofinoAqm(read_latency=f"{read} ms", write_latency=f"{write} ms")
    written = ticks(aqm, Recorded([0, 30_000, 0]), 64)
    assert [when for when, _ in written][:2] == [at, at + 16]
    assert written[0][1] == pytest.approx(0.0016 + 0.09)


@pytest.mark.parametrize("name", PROGRAMS)
def test_p_survives_the_controller(name: Name) -> None:
    seen: list[int] = []

    def prepare(api: SwitchApi) -> None:
        again = TofinoController({rig.PORT: rig.RATE}, PAPER)
        again.start(api)
        seen.extend(
            int(api.register_read(register, rig.PORT, 1)[0]) for register in ("p_coupled", "p_squared")
        )

    rig.through_program(name, PAPER, [Sent(1000, ecn=NOT_ECT)], p=Fraction(1, 8), prepare=prepare)
    assert seen == [ONE // 8] * 2


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"target": 0}, "the queue management's target is 0; give 1 to 4294967295 us"),
        ({"period": "2 s"}, "the PI controller's period is 2 s; give 1 us to 1 s"),
        ({"gains": (0.1,)}, "the gains are (0.1,); give alpha and beta in Hz, both above 0"),
        (
            {"read_latency": "10 ms", "write_latency": "7 ms"},
            "reading and writing take 17 ms, longer than the period of 16 ms; the controller does one after the other: "
            "give a longer period",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any], refused: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(refused)):
        TofinoAqm(**settings).check()


def test_unmanaged_ports_are_left_alone() -> None:
    pipeline = program("dualpi2_tofino").pipeline()
    pipeline.table_add("forward", ["02:00:00:00:00:01"], "to_port", [3])
    frame = rig.frame(1, 80, ECT1, 0, 4)
    assert pipeline.process(0, 1, frame) == [(3, frame)]
    assert pipeline.counter_read("arrived", 6, 2)[:, 0].tolist() == [0, 0]
