"""RFC 9332 appendix A, point by point: the native AQM, the buffer, the PI controller, and their parameters."""

from __future__ import annotations

import re
from dataclasses import replace
from fractions import Fraction
from typing import Literal

import numpy as np
import pytest

from tidegate import TidegateError
from tidegate.control import SwitchApi
from tidegate.systems.aqm import packet_harness as rig
from tidegate.systems.aqm.controller import ONE, Aqm, dual_port
from tidegate.systems.aqm.packet_harness import FIXED, MS, US, Sent, spaced
from tidegate.systems.aqm.rfc9332_pseudocode import CE, ECT0, ECT1, NOT_ECT

PROGRAMS = ["pi2", "dualpi2"]
Name = Literal["pi2", "dualpi2"]


# Appendix A: the native AQM.


def native(aqm: Aqm, count: int) -> list[bool]:
    """Which packets of one burst are marked; each waits 1514 us longer than the one before."""
    burst = [Sent(n + 1, 1514, ECT1) for n in range(count)]
    outcome = rig.through_program("dualpi2", aqm, burst)
    return [left.ecn == CE for left in outcome.left]


def test_a_1_a_step_marks_from_its_threshold_on() -> None:
    # Waits of 0, 1514, 3028 us, less a few picoseconds that are cut off; at the threshold counts.
    step = replace(FIXED, ramp_from="3027 us", ramp=0, ramp_packets=0, random=True)
    assert native(step, 8) == [False, False, *[True] * 5, False]


def test_a_1_the_ramp_is_linear() -> None:
    # By the recurrence, marks are where the sum of likelihoods passes whole numbers: 1/4, 1/2, 3/4, 1, 1.
    ramp = replace(FIXED, ramp_from="1514 us", ramp="6056 us", ramp_packets=0)
    assert native(ramp, 9) == [False, False, False, False, True, True, True, True, False]


def test_a_2_no_native_mark_for_a_queue_of_one_packet() -> None:
    step = replace(FIXED, ramp_from="1 us", ramp=0, random=True)
    # Behind the last packet there is none, behind the last but one there is one.
    assert native(step, 6) == [False, True, True, True, False, False]
    assert native(replace(step, ramp_packets=3), 6) == [False, True, False, False, False, False]


def test_a_1_signals_are_given_as_packets_leave() -> None:
    """p' rises while the packets wait: what has come before is signalled by what holds as it leaves."""
    burst = [Sent(n + 1, 1514, ECT0) for n in range(100)]

    def raise_p(api: SwitchApi) -> None:
        api.register_write("p", [int(0.4 * ONE)], rig.PORT)

    outcome = rig.through_program("dualpi2", FIXED, burst, during=[(50 * 1514 * US, raise_p)])
    marks = [left.ecn == CE for left in outcome.left]
    assert not any(marks[:50])
    assert sum(marks) == pytest.approx(50 * 0.16, abs=1)


# Appendix A: the buffer, the two-packet minimum, the PI controller.


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_1_both_queues_share_a_buffer_of_250_ms_in_which_an_mtu_always_has_room(name: Name) -> None:
    # 8 Mbit/s: 250 000 bytes.
    burst = [Sent(n + 1, 1000, (NOT_ECT, ECT1)[n % 2]) for n in range(300)]
    outcome = rig.through_program(name, FIXED, burst)
    # The first leaves at once. A packet is taken while 1514 bytes are left, whatever its own size.
    taken = (250_000 - 1514) // 1000 + 2
    assert sum(outcome.counts["presented"]) == len(outcome.left) == taken
    assert sum(outcome.counts["arrived"]) == 300
    assert sum(outcome.counts["overflowed"]) == 300 - taken
    assert outcome.registers["backlog"] == [0, 0]
    assert rig.params_of(FIXED).limit == 250_000


def test_a_1_the_buffer_holds_two_packets_at_least() -> None:
    burst = [Sent(n + 1, 1514) for n in range(4)]
    # 250 ms of 8 kbit/s are less than a packet. The first leaves at once.
    outcome = rig.through_program("dualpi2", FIXED, burst, rate=8000)
    assert len(outcome.left) == 3


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_1_no_signals_of_the_pi_controller_while_less_than_two_packets_wait(name: Name) -> None:
    aqm = replace(FIXED, spares_two=True)
    for ecn in (NOT_ECT, ECT1):
        alone = [Sent(n * 2 * MS + 1, 1514, ecn) for n in range(200)]
        outcome = rig.through_program(name, aqm, alone, p=Fraction(49, 100))
        assert [left.ecn for left in outcome.left] == [ecn] * 200
        # Three at once: as the second leaves, it and the third are 3028 bytes.
        threes = [Sent(n // 3 * 5 * MS + n % 3 + 1, 1514, ecn) for n in range(300)]
        outcome = rig.through_program(name, aqm, threes, p=Fraction(49, 100))
        changed = {left.number % 3 for left in outcome.left if left.ecn != ecn}
        changed |= {n % 3 for n in set(range(300)) - {left.number for left in outcome.left}}
        assert changed == {1}


def test_a_1_defaults_and_what_follows_from_them() -> None:
    aqm = Aqm()
    assert (aqm.target, aqm.rtt_max, aqm.limit, aqm.k) == ("15 ms", "100 ms", "250 ms", 2.0)
    assert (aqm.ramp_from, aqm.ramp, aqm.ramp_packets) == ("800 us", "400 us", 1)
    assert aqm.tupdate == 15 * MS
    assert Aqm(target="50 ms").tupdate == 100 * MS // 3
    assert aqm.alpha == pytest.approx(0.15)
    assert aqm.beta == pytest.approx(3)
    assert replace(aqm, period="16 ms").alpha == pytest.approx(0.16)
    assert aqm.p_max**2 == pytest.approx(0.25)
    assert Aqm(k=1).p_max == 1


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"home": "moon"}, "the PI controller's home is 'control plane' or 'data plane', not 'moon'"),
        ({"k": 0.5}, "the coupling factor is 0.5; give one from 1 to 15.9"),
        ({"k": 15.99}, "the coupling factor is 15.99; give one from 1 to 15.9"),
        ({"k": "2"}, "the queue management's k is '2'; give a number"),
        ({"p_c_max": True}, "the queue management's p_c_max is True; give a number"),
        ({"random": "no"}, "the queue management's random is 'no'; give True or False"),
        (
            {"rtt_max": "6 s", "target": "3 s"},
            "the PI controller's period is 2 s by the target and rtt_max; give 1 us to 1 s",
        ),
        ({"p_c_max": 0.0}, "p_c_max is 0.0; give a likelihood above 0 and up to 1"),
        ({"target": 0}, "the queue management's target is 0; give one above 0"),
        ({"period": "2 s"}, "the PI controller's period is 2 s; give 1 us to 1 s"),
        ({"rtt_max": "1 ms"}, "the gains for an rtt_max of 1 ms are too large; give at least 8 ms"),
        ({"ramp_packets": -1}, "ramp_packets is -1; give 0 to 524286"),
        ({"mtu": 60}, "mtu is 60; give 68 to 65535"),
        ({"limit_packets": 1}, "limit_packets is 1; give 2 to 2147483648"),
        ({"gains": (0.0, 3.0)}, "the gains are (0.0, 3.0); give alpha and beta in Hz, both above 0"),
        (
            {"gains": (0.1, 2000.0)},
            "the gains (0.1, 2000.0) are too large for the data plane; give at most 27.9 and 1953 Hz",
        ),
    ],
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, object], refused: str) -> None:
    with pytest.raises(TidegateError, match=re.escape(refused)):
        Aqm(**settings).check()  # type: ignore[arg-type]


@pytest.mark.parametrize("home", ["control plane", "data plane"])
def test_a_2_the_longer_delay_of_both_queues_drives_p(home: Literal["control plane", "data plane"]) -> None:
    """L alone, twice as much as the wire can send, and unresponsive: p' goes up until it is dropped."""
    aqm = Aqm(home=home)
    flood = [Sent(n * 757 * US + 1, 1514, ECT1) for n in range(1500)]
    outcome = rig.through_program("dualpi2", aqm, flood)
    assert outcome.counts["presented"][0] == 0
    assert outcome.counts["dropped_ect"][1] > 200
    last = [left.us - flood[left.number].at // US for left in outcome.left[-200:-60]]
    # Not far from the classic target, where tail drop would have made it 250 ms.
    assert np.mean(last) < 80_000


@pytest.mark.parametrize("classic", [False, True])
def test_a_1_a_packet_that_waits_drives_p_before_it_leaves(classic: bool) -> None:
    """L has as much as the wire can send, which keeps a lone packet in C waiting for the time shift."""
    port = dual_port("time-shifted FIFO", time_shift="50 ms")
    packets = [Sent(1, 1514, ECT1), *(Sent(n * 1514 * US + 2, 1514, ECT1) for n in range(40))]
    if classic:
        packets.insert(1, Sent(3, 1514, NOT_ECT))
    aqm = Aqm(ramp_from="1 s", spares_two=False)
    outcome = rig.through_program("dualpi2", aqm, packets, port=port, options={"watch": "1 ms"})
    before = [p for at, name, p in outcome.notes if name == "p_0" and at < 0.045]
    if classic:
        (left,) = [one for one in outcome.left if one.number == 1]
        assert left.us > 45_000
        assert max(before) > 0.05
    else:
        assert max(before) < 0.01


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_1_p_stays_from_0_to_1(name: Name) -> None:
    # A quiet time brings it down to 0 and no further, a flood up to 1.
    quiet = rig.through_program(name, Aqm(), spaced(100, NOT_ECT, gap_us=20_000), p=Fraction(1, 100))
    assert quiet.p == 0
    # As much in one go: the controller runs when a packet leaves, and 10 s have gone by.
    pause = rig.through_program(
        name, Aqm(), [Sent(1, 80, NOT_ECT), Sent(10_000 * MS, 80, NOT_ECT)], p=Fraction(9, 10)
    )
    assert pause.p == 0
    shorter = rig.through_program(
        name, Aqm(), [Sent(1, 80, NOT_ECT), Sent(2000 * MS, 80, NOT_ECT)], p=Fraction(9, 10)
    )
    assert float(shorter.p) == pytest.approx(0.9 - 0.3, abs=0.003)
    flood = rig.through_program(
        name,
        Aqm(rtt_max="10 ms"),
        [Sent(n * 75 * US + 1, 1514, ECT0) for n in range(2000)],
        options={"watch": "1 ms"},
    )
    values = [value for _, quantity, value in flood.notes if quantity == "p_0"]
    assert max(values) == 1.0
