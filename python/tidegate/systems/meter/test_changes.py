"""Meters that come, go and change, and that another controller finds on the switch: `meter.p4` and `fair.p4` alike."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, cast

import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether

from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.network import FiveTuple, Network
from tidegate.systems.meter.controller import BPS_OF_RATE, PLAIN, Fixed, Meter, MeterController
from tidegate.systems.meter.experiments.peer_meters import FairPolicerMeters
from tidegate.systems.meter.experiments.standard_meters import StandardMeters
from tidegate.systems.meter.experiments.testbed import Counts, history
from tidegate.systems.meter.fair import QUEUES, FairMeters
from tidegate.systems.meter.packet_harness import MAC, sent
from tidegate.systems.meter.setup import program
from tidegate.systems.meter.tables import MATCHES, IngressPort, Match, MeterTables, Prefix

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
        (
            (Prefix("172.16.0.0/12"), *FROM_10),
            r"meter 1, Prefix\(prefix='10.0.0.0/8', direction='from'\): .* has an entry with this match already",
        ),
        ((Prefix("172.16.0.0/12"), Prefix("10.0.0.7/8")), "10.0.0.7/8 has host bits set; write it as"),
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


def test_a_meter_without_matches_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    FairMeters([Meter(0, "1 Mbit/s", FROM_10), Meter(3, "1 Mbit/s", ())]).start(new_switch("fair"))
    assert [record.message for record in caplog.records] == [
        "meters 3 have no matches: no packet is for them"
    ]


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


OTHERS: dict[str, dict[str, Any]] = {
    "meter": {"bucket": replace(PLAIN, burst="64 KiB")},
    "fair": {"burst": "2 s", "peak": "500 ms"},
}
"""Settings that are not the defaults."""


def entries(switch: SwitchApi, *tables: str) -> list[tuple[object, tuple[int, ...]]]:
    """Keys and values, in no order."""
    return sorted(
        ((table, *((match.value, match.other) for match in entry.match)), entry.values)
        for table in tables
        for entry in switch.table_entries(table)
    )


def two_meters() -> list[Meter]:
    return [Meter(0, "1 Mbit/s", FROM_10), Meter(5, "2 Mbit/s", (IngressPort(3),))]


@pytest.mark.parametrize(("name", "make"), CONTROLLERS)
def test_what_was_changed_stays_after_a_restart(
    name: str, make: Callable[..., MeterTables], caplog: pytest.LogCaptureFixture
) -> None:
    switch = new_switch(name)
    first = make(two_meters())
    first.start(switch)
    first.retarget(switch, 0, "3 Mbit/s")
    first.remove(switch, 5)
    first.add(switch, Meter(7, "4 Mbit/s", (IngressPort(4),)))
    before = entries(switch, "meters", "sources4", "ports")
    again = make([*two_meters(), Meter(8, "5 Mbit/s", (IngressPort(5),))])
    for _ in range(2):
        # The same object starts again, too.
        again.start(switch)
        assert again._targets == {0: 3e6, 7: 4e6, 8: 5e6}
    after = entries(switch, "meters", "sources4", "ports")
    # But for the new one.
    assert [entry for entry in after if entry in before] == before
    assert len(after) == len(before) + 2
    assert [record.message for record in caplog.records[:2]] == [
        "meters 0 keep the targets that the switch has; retarget gives them others",
        "meters 5 stay removed; add brings them back",
    ]
    again.add(switch, two_meters()[1])
    again.start(switch)
    assert again._targets[5] == 2e6
    again.remove(switch, 7)
    assert not [entry for entry in entries(switch, "ports") if entry[1] == (7,)]


@pytest.mark.parametrize(("name", "make"), CONTROLLERS)
def test_settings_are_those_of_the_new_controller(name: str, make: Callable[..., MeterTables]) -> None:
    switch, fresh = new_switch(name), new_switch(name)
    make(two_meters()).start(switch)
    make(two_meters(), **OTHERS[name]).start(fresh)
    assert entries(switch, "meters") != entries(fresh, "meters")
    # Of a meter that the new one does not list as well.
    make(two_meters()[:1], **OTHERS[name]).start(switch)
    assert entries(switch, "meters") == entries(fresh, "meters")


@pytest.mark.parametrize(("name", "make"), CONTROLLERS)
def test_matches_are_those_of_the_new_controller(name: str, make: Callable[..., MeterTables]) -> None:
    flow = FiveTuple("10.0.0.1", "10.0.0.2", 6, 1000, 80)
    old = [Meter(0, "1 Mbit/s", (*FROM_10, flow)), Meter(5, "2 Mbit/s", (IngressPort(3), IngressPort(4)))]
    new = [Meter(0, "1 Mbit/s", (IngressPort(3), flow)), Meter(5, "2 Mbit/s", (*FROM_10, IngressPort(4)))]
    switch, fresh = new_switch(name), new_switch(name)
    make(old).start(switch)
    switch.table_add("ports", [9], "pass")
    kept = [entry.handle for entry in switch.table_entries("flows4")]
    again = make(new)
    again.start(switch)
    make(new).start(fresh)
    fresh.table_add("ports", [9], "pass")
    assert entries(switch, *MATCHES) == entries(fresh, *MATCHES)
    assert [entry.handle for entry in switch.table_entries("flows4")] == kept
    again.remove(switch, 0)
    again.remove(switch, 5)
    assert entries(switch, "meters", *MATCHES) == [(("ports", (9, None)), ())]


@pytest.mark.parametrize(("name", "make"), CONTROLLERS)
def test_a_meter_that_is_listed_twice_is_refused(name: str, make: Callable[..., MeterTables]) -> None:
    with pytest.raises(TidegateError, match="meter 0 is there already"):
        make([Meter(0, "1 Mbit/s", ()), Meter(0, "2 Mbit/s", ())]).start(new_switch(name))


def test_an_entry_that_somebody_else_has_made_is_left_alone() -> None:
    switch = new_switch("fair")
    FairMeters([Meter(0, "1 Mbit/s", ())]).start(switch)
    (entry,) = switch.table_entries("meters")
    switch.table_add("meters", [3], "configure", entry.values)
    again = FairMeters(burst="2 s")
    again.start(switch)
    assert again._targets == {0: 1e6}
    assert [one.values for one in switch.table_entries("meters") if one.match[0].value == 3] == [entry.values]


def test_tokens_of_a_packet_generator_are_those_of_the_new_controller() -> None:
    """In the simulator, as a pipeline alone has no packet generators: by timer and by time, in turns."""
    net = Network()
    switch = net.switch("s", program())
    a, b = net.host("a"), net.host("b")
    for host in (a, b):
        net.link(host, switch, rate="1 Gbit/s", delay="1 ms", queue="10000 packets")
    net.udp(a, b, rate="100 Mbit/s")
    meters = [Meter(0, "20 Mbit/s", (Prefix(f"{net.address(a)}/32"),))]
    ways: list[tuple[Literal["timer", "lazy"], int]] = [("timer", 1024), ("lazy", 1), ("timer", 128)]
    buckets = [replace(PLAIN, refill=refill, tokens=tokens) for refill, tokens in ways]
    controllers = [
        MeterController(meters, ports=net.forwarding(switch), bucket=bucket, law=Fixed())
        for bucket in buckets
    ]

    class Turns(Controller):
        period = "3 s"

        def start(self, switch: SwitchApi) -> None:
            controllers[0].start(switch)

        def tick(self, now: int, switch: SwitchApi) -> None:
            controllers[min(now // (3 * S), 2)].start(switch)

    net.control(Turns(), switch)
    net.control(Counts(1), switch)
    passed = history(net.run("9 s").notes, 0).windows_mbps(1)
    assert passed[1:] == pytest.approx(20, rel=0.06)


@pytest.mark.parametrize(("name", "make"), CONTROLLERS)
def test_a_restart_in_a_run_undoes_nothing(name: str, make: type[MeterTables]) -> None:
    class Changes(make):  # type: ignore[misc, valid-type]
        period = "1 s"

        def tick(self, now: int, switch: SwitchApi) -> None:
            if now == 2 * S:
                self.retarget(switch, 0, "5 Mbit/s")
                self.remove(switch, 1)

    net = Network()
    switch = net.switch("s", program(name))
    a, b, c = (net.host(host) for host in "abc")
    for host in (a, b, c):
        net.link(host, switch, rate="1 Gbit/s", delay="1 ms", queue="10000 packets")
    flows = [net.udp(host, c, rate="20 Mbit/s") for host in (a, b)]
    meters = [Meter(number, "10 Mbit/s", (net.five_tuple(flow),)) for number, flow in enumerate(flows)]
    controller = Changes(meters, ports=net.forwarding(switch))
    net.control(controller, switch)
    net.control(Counts(1), switch)
    net.restart(controller, "3 s")
    result = net.run("8 s")
    assert history(result.notes, 0).windows_mbps(1)[5:] == pytest.approx(5, rel=0.05)
    # All but what the meter dropped in the first two seconds.
    assert result.flows["datagrams_received"][1] > 0.85 * result.flows["datagrams_sent"][1]
