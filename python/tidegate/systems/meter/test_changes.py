"""Meters that come, go and change, and that another controller finds on the switch: `meter.p4` and `fair.p4` alike."""

from __future__ import annotations

from typing import cast

import pytest

from tidegate._core import TidegateError
from tidegate.control import SwitchApi
from tidegate.systems.meter.controller import BPS_OF_RATE, Meter, MeterController
from tidegate.systems.meter.experiments.peer_meters import FairPolicerMeters
from tidegate.systems.meter.experiments.standard_meters import StandardMeters
from tidegate.systems.meter.setup import program
from tidegate.systems.meter.tables import Prefix

FROM_10 = (Prefix("10.0.0.0/8"),)


def new_switch(name: str = "meter") -> SwitchApi:
    """A pipeline alone has all that these controllers ask of a switch."""
    return cast(SwitchApi, program(name).pipeline("jit"))


def register(switch: SwitchApi, name: str, number: int = 0) -> int:
    """One cell."""
    return int(switch.register_read(name, number, 1)[0])


@pytest.mark.parametrize("target", [64_000, 100_000, 1_000_000, 99_999_999, 524_000_000_000])
def test_a_register_never_holds_more_than_the_target(target: int) -> None:
    switch = new_switch()
    MeterController([Meter(0, target, FROM_10)]).start(switch)
    assert target - BPS_OF_RATE < register(switch, "rate") * BPS_OF_RATE <= target
    standard, policer = new_switch("standard"), new_switch("fairpolicer")
    StandardMeters([Meter(0, target, FROM_10)], ports={}, scheme="rfc2697", burst=1500).start(standard)
    FairPolicerMeters([Meter(0, target, FROM_10)], ports={}, sizes=[1500]).start(policer)
    assert register(standard, "cir") == register(policer, "rate") == register(switch, "rate")


def test_targets_that_a_register_cannot_tell_apart_are_refused() -> None:
    refused = "the target of meter 0 is 63 kbit/s; give 64 kbit/s to 524"
    with pytest.raises(TidegateError, match=refused):
        MeterController([Meter(0, "63 kbit/s", ())]).start(new_switch())
    with pytest.raises(TidegateError, match=refused):
        StandardMeters([Meter(0, "63 kbit/s", ())], ports={}, scheme="rfc2697", burst=1).start(
            new_switch("standard")
        )


def test_a_target_that_a_register_rounds_is_known_again() -> None:
    """The rate that the control law has found stays, whether or not the target is a multiple of what a register counts in."""
    for target in (100_000, 1_000_000):
        switch = new_switch()
        MeterController([Meter(0, target, FROM_10)]).start(switch)
        switch.register_write("rate", [777])
        again = MeterController([Meter(0, target, FROM_10)])
        again.start(switch)
        again.retarget(switch, 0, target)
        assert register(switch, "rate") == 777
        assert again._state["integral"][0] < 0
