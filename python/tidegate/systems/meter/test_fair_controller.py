"""`fair.py`: what the controller writes, what it finds again, and what it refuses."""

from __future__ import annotations

import itertools
from typing import cast

import pytest

from tidegate._core import TidegateError
from tidegate.control import SwitchApi
from tidegate.network import Network
from tidegate.systems.meter.fair import QUEUES, FairMeters, burst_bytes, limit_shift
from tidegate.systems.meter.fair_harness import PROGRAM, US, Fair, S, datagram
from tidegate.systems.meter.packet_harness import ECT0, MAC, NOT_ECT
from tidegate.systems.meter.setup import fair, program
from tidegate.systems.meter.tables import Meter, Prefix

ALL = (Prefix("10.0.0.0/8", "to"),)


def new_switch() -> SwitchApi:
    # A pipeline alone has all that this controller asks of a switch.
    return cast(SwitchApi, PROGRAM.pipeline("jit"))


def ranges(switch: SwitchApi) -> dict[int, tuple[int, int]]:
    """Of each meter: its first queue, and how many it has."""
    found = {}
    for entry in switch.table_entries("meters"):
        first, mask = entry.values[-2:]
        found[int(entry.match[0].value or 0)] = (first, mask + 1)
    return found


@pytest.mark.parametrize(
    ("rate", "burst", "shift", "size"),
    [
        (100e6, "1 s", 20, 13_107_200),
        (100e6, "1048576 us", 20, 13_107_200),
        (100e6, "1048577 us", 21, 26_214_400),
        (100e6, "1 ms", 12, 51_200),
        (10e9, "1 ms", 10, 1_280_000),
        # 30 kB take 2.4 s, and 3.75 s.
        (100e3, "1 s", 22, 52_429),
        (64e3, "1 s", 22, 33_554),
    ],
)
def test_a_limit_is_a_power_of_two_of_microseconds(rate: float, burst: str, shift: int, size: int) -> None:
    assert limit_shift(rate, burst) == shift
    assert burst_bytes(rate, burst) == size


def test_meters_have_queues_of_their_own() -> None:
    switch = new_switch()
    meters = [
        Meter(number, "10 Mbit/s", (Prefix(f"10.{number // 256}.{number % 256}.0/24"),))
        for number in range(300)
    ]
    controller = FairMeters(meters)
    controller.start(switch)
    found = ranges(switch)
    assert {count for _, count in found.values()} == {1024}
    assert len({first // 1024 for first, _ in found.values()}) == 300
    controller.remove(switch, 7)
    controller.add(switch, Meter(1000, "10 Mbit/s", ()))
    found = ranges(switch)
    assert 7 not in found
    assert len({first for first, _ in found.values()}) == 300


def test_65_536_meters_find_room() -> None:
    controller = FairMeters([Meter(number, "1 Mbit/s", ()) for number in range(65_536)])
    switch = new_switch()
    controller.start(switch)
    found = ranges(switch)
    assert len(found) == 65_536
    assert len({first for first, _ in found.values()}) == 65_536
    assert all(count == 8 and first + count <= QUEUES for first, count in found.values())


def test_another_controller_goes_on() -> None:
    switch = new_switch()
    FairMeters([Meter(0, "10 Mbit/s", ALL), Meter(3, "20 Mbit/s", ())], ports={MAC: 1}, queues=64).start(
        switch
    )
    pipeline = cast("object", switch)
    assert pipeline.process(S, 0, datagram(0, 1000))  # type: ignore[attr-defined]
    level = int(switch.register_read("total", 0, 1)[0])
    before = ranges(switch)
    second = FairMeters([Meter(0, "10 Mbit/s", ALL), Meter(9, "5 Mbit/s", ())], ports={MAC: 1}, queues=256)
    second.start(switch)
    assert int(switch.register_read("total", 0, 1)[0]) == level
    after = ranges(switch)
    assert {number: after[number] for number in before} == before
    first, count = after[9]
    assert count == 256
    assert all(first >= old + size or first + count <= old for old, size in before.values())
    second.retarget(switch, 3, "40 Mbit/s")
    assert int(switch.register_read("target", 3, 1)[0]) == 40_000_000
    assert ranges(switch)[3] == before[3]
    second.remove(switch, 3)
    assert 3 not in ranges(switch)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: FairMeters(burst="0 s"), "the meters' burst is 0 s; give 1 ms to 4 s"),
        (lambda: FairMeters(peak="9 s"), "the meters' peak is 9 s; give 1 ms to 4 s"),
        (lambda: FairMeters(queues=3), "a meter with 3 queues; give a power of two up to 1048576"),
        (
            lambda: FairMeters([Meter(0, "63 kbit/s", ())]).start(new_switch()),
            "the target of meter 0 is 63 kbit/s; give 64 kbit/s to 1 Tbit/s",
        ),
        (lambda: FairMeters([Meter(0, 0, ())]).start(new_switch()), "the target of meter 0 is 0; give"),
        (lambda: FairMeters([Meter(70_000, "1 Mbit/s", ())]).start(new_switch()), "there is no meter 70000"),
        (
            lambda: FairMeters([Meter(n, "1 Mbit/s", ()) for n in range(3)], queues=QUEUES // 2).start(
                new_switch()
            ),
            "meter 2 finds no queues: 2 meters have 524288 each; give fewer",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: object, message: str) -> None:
    with pytest.raises(TidegateError, match=message):
        make()  # type: ignore[operator]


def test_a_target_can_change_while_flows_run() -> None:
    class Changes(FairMeters):
        period = "1 s"

        def tick(self, now: int, switch: SwitchApi) -> None:
            if now // S == 8:
                self.retarget(switch, 0, "40 Mbit/s")

    net = Network()
    switch = net.switch("s", program("fair"))
    a, b = net.host("a"), net.host("b")
    for host in (a, b):
        net.link(host, switch, rate="1 Gbit/s", delay="2 ms", queue="10000 packets")
    net.tcp(a, b, ecn="on")
    net.control(
        Changes([Meter(0, "20 Mbit/s", (Prefix(f"{net.address(a)}/32"),))], ports=net.forwarding(switch)),
        switch,
    )
    net.record("1 s")
    samples = net.run("20 s").flow_samples.sort("time_s")
    received = dict(
        zip(samples["time_s"].round(0).to_list(), samples["bytes_received"].to_list(), strict=True)
    )
    assert (received[8] - received[3]) * 8e-6 / 5 * 1500 / 1448 == pytest.approx(20, rel=0.05)
    assert (received[20] - received[14]) * 8e-6 / 6 * 1500 / 1448 == pytest.approx(40, rel=0.05)


def test_a_network_gets_a_fair_meter_in_one_call() -> None:
    net = Network()
    switch = net.switch("s", program("fair"))
    a, b = net.host("a"), net.host("b")
    fair(net, switch, [Meter(0, "20 Mbit/s", (Prefix(f"{net.address(a)}/32"),))])
    for host in (a, b):
        net.link(host, switch, rate="1 Gbit/s", delay="2 ms")
    flows = [net.tcp(a, b, congestion_control=control) for control in ("cubic", "bbr")]
    goodput = net.run("15 s").flows["goodput_mbps"].to_list()
    assert len(flows) == 2
    assert goodput == pytest.approx([10, 10], rel=0.15)


def sent_over_a_change(
    before: int, after: int, flows: int, ecn: int, seconds: tuple[int, int] = (14, 6)
) -> tuple[list[tuple[int, int]], int]:
    """What passes of three times the rate, as times in us and bytes, and when the target changes: the meter is empty first, then full.

    It is kept from being idle at first, which would let it begin anew.
    """
    meter = Fair(before, queues=64)
    passed, now = [], 0

    def send(gap_us: int, length: int, until: int) -> None:
        nonlocal now
        for number in itertools.count():
            if now + gap_us > until:
                return
            now += gap_us
            if meter.send(now * US, datagram(number % flows, length, ecn)):
                passed.append((now, length))

    send(500_000, 40, 6_000_000)
    send(4_000_000_000 // before, 1500, 6_000_000 + seconds[0] * 1_000_000)
    change = now
    meter.controller.retarget(cast(SwitchApi, meter.switch), meter.index, after)
    send(4_000_000_000 // after, 1500, change + seconds[1] * 1_000_000)
    return passed, change


CHANGES = [(100_000, 10_000_000), (10_000_000, 100_000), (250_000, 200_000), (64_000, 1_000_000)]


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize(("flows", "ecn"), [(1, NOT_ECT), (16, NOT_ECT), (4, ECT0)])
def test_no_meter_goes_dark_when_its_target_changes(before: int, after: int, flows: int, ecn: int) -> None:
    passed, change = sent_over_a_change(before, after, flows, ecn)
    then = [(at, length) for at, length in passed if at > change]
    # A flow that cannot slow down may wait for 150 ms, and at 100 kbit/s a packet takes 120 ms.
    assert then[0][0] - change < 500_000
    assert sum(length for _, length in then) * 8 / 6 == pytest.approx(after, rel=0.1)


@pytest.mark.parametrize(("before", "after"), CHANGES)
@pytest.mark.parametrize(("flows", "ecn"), [(1, NOT_ECT), (16, NOT_ECT), (4, ECT0)])
def test_over_a_change_no_more_passes_than_the_rates_and_the_larger_burst(
    before: int, after: int, flows: int, ecn: int
) -> None:
    passed, change = sent_over_a_change(before, after, flows, ecn)
    most = level = 0.0
    then = 0
    for at, length in passed:
        given = before * (min(at, change) - min(then, change)) + after * (max(at, change) - max(then, change))
        level = max(level - given / 8e6, 0.0) + length
        most, then = max(most, level), at
    assert 0.9 * burst_bytes(before) < most <= max(burst_bytes(before), burst_bytes(after)) + 1
