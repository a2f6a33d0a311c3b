"""Meters that come, go and change, and that another controller finds on the switch: `meter.p4` and `fair.p4` alike."""

from __future__ import annotations

from typing import cast

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tidegate._core import TidegateError
from tidegate.control import SwitchApi
from tidegate.systems.meter.controller import BPS_OF_RATE, Meter, MeterController
from tidegate.systems.meter.experiments.peer_meters import FairPolicerMeters
from tidegate.systems.meter.experiments.standard_meters import StandardMeters
from tidegate.systems.meter.fair import QUEUES, FairMeters
from tidegate.systems.meter.packet_harness import MAC, sent
from tidegate.systems.meter.setup import program
from tidegate.systems.meter.tables import Match, MeterTables, Prefix

S = 10**12
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


CONTROLLERS = [("meter", MeterController), ("fair", FairMeters)]


@pytest.mark.parametrize(("name", "make"), CONTROLLERS)
@pytest.mark.parametrize(
    ("matches", "said"),
    [
        # The second is another meter's.
        ((Prefix("172.16.0.0/12"), *FROM_10), "has an entry with this match already"),
        ((Prefix("172.16.0.0/12"), Prefix("10.0.0.0/40")), "prefix"),
        ((Prefix("172.16.0.0/12"), Prefix("10.0.0.0/8", "of")), "from or to, not 'of'"),  # type: ignore[arg-type]
    ],
)
def test_a_meter_that_cannot_be_added_leaves_nothing(
    name: str, make: type[MeterTables], matches: tuple[Match, ...], said: str
) -> None:
    switch = new_switch(name)
    controller = make([Meter(0, "1 Mbit/s", FROM_10)])
    controller.start(switch)
    there = {table: switch.table_entries(table) for table in ("meters", "sources4")}
    for _ in range(2):
        with pytest.raises(TidegateError, match=said):
            controller.add(switch, Meter(1, "2 Mbit/s", matches))
    assert {table: switch.table_entries(table) for table in there} == there
    assert register(switch, "target", 1) == 0
    with pytest.raises(TidegateError, match="there is no meter 1 to remove"):
        controller.remove(switch, 1)
    controller.add(switch, Meter(1, "2 Mbit/s", matches[:1]))
    controller.remove(switch, 1)
    assert {table: switch.table_entries(table) for table in there} == there


def test_a_meter_that_cannot_be_added_gives_its_queues_back() -> None:
    switch = new_switch("fair")
    controller = FairMeters([Meter(0, "1 Mbit/s", FROM_10)], queues=QUEUES // 2)
    controller.start(switch)
    for _ in range(2):
        with pytest.raises(TidegateError, match="has an entry with this match already"):
            controller.add(switch, Meter(1, "2 Mbit/s", FROM_10))
    controller.add(switch, Meter(1, "2 Mbit/s", ()))
    with pytest.raises(TidegateError, match="meter 2 finds no queues"):
        controller.add(switch, Meter(2, "2 Mbit/s", ()))


def test_a_meter_that_comes_back_is_not_told_what_passed_before() -> None:
    pipeline = program().pipeline("jit")
    switch = SwitchApi("s", pipeline._core, [], lambda *_: None)
    controller = MeterController([Meter(0, "1 Mbit/s", ()), Meter(1, "100 Mbit/s", FROM_10)], ports={MAC: 1})
    controller.start(switch)
    packet = bytes(Ether(dst=MAC) / IP(src="10.0.0.1", dst="10.1.0.1") / UDP() / bytes(1000))
    for _ in range(50):
        assert sent(pipeline, S, 0, packet)
    controller.tick(S, switch)
    for second in (2, 3):
        # The one with the highest number, after which fewer counters are read, and one among others.
        controller.remove(switch, 1)
        if second == 3:
            controller.add(switch, Meter(2, "1 Mbit/s", ()))
        pipeline.advance(second * S)
        controller.tick(second * S, switch)
        controller.add(switch, Meter(1, "100 Mbit/s", FROM_10))
        pipeline.advance(second * S + S // 2)
        controller.tick(second * S + S // 2, switch)
        # Nothing has passed: no more than the proportional part is added for it.
        assert controller._state["integral"][1] == 0
        assert register(switch, "rate", 1) * BPS_OF_RATE == pytest.approx(170e6, rel=1e-3)


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
