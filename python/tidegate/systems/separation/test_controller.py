"""Shares, buffers, and what the controller makes of measured flows."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any, cast

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate._core import TidegateError
from tidegate.control import Digest, SwitchApi
from tidegate.network import FiveTuple, Link, Network, Node
from tidegate.systems.separation import shares
from tidegate.systems.separation.buffers import MTU, stanford
from tidegate.systems.separation.controller import SeparationController, Taps
from tidegate.systems.separation.measured import RATE_OVER_S, Flows, Measured, Unknown
from tidegate.systems.separation.routers import Plan, QueuePlan
from tidegate.systems.separation.routers.simulated import port
from tidegate.systems.separation.setup import separation
from tidegate.units import PS_PER_S

LINK = 100_000_000


@given(
    st.floats(0, 1e10),
    st.lists(st.tuples(st.floats(0, 1e9) | st.just(math.inf), st.floats(0.01, 100)), min_size=1, max_size=50),
)
def test_shares_are_max_min(capacity: float, flows: list[tuple[float, float]]) -> None:
    demands, weights = [flow[0] for flow in flows], [flow[1] for flow in flows]
    rates = shares.max_min(capacity, demands, weights)
    assert (rates <= np.array(demands) * (1 + 1e-9)).all()
    # Nothing is left while somebody wants more.
    assert rates.sum() == pytest.approx(min(capacity, sum(demands)), rel=1e-6, abs=1e-3)
    # Whoever has less than it wants has as much by weight as any other.
    wants = rates < np.array(demands) * (1 - 1e-6) - 1e-3
    if wants.any():
        level = (rates / weights)[wants].min()
        assert ((rates / weights) <= level * (1 + 1e-6) + 1e-3).all()


def test_three_ways_to_weigh() -> None:
    classes, times = [0, 0, 0, 1], [0.01, 0.01, 0.01, 0.04]
    assert shares.max_min(100, [math.inf] * 4, shares.weights("flows", classes, times)).tolist() == [25] * 4
    of_classes = shares.max_min(90, [math.inf] * 4, shares.weights("classes", classes, times))
    assert of_classes == pytest.approx([15, 15, 15, 45])
    by_rtt = shares.max_min(130, [math.inf] * 4, shares.weights("rtt", classes, times))
    assert by_rtt == pytest.approx([40, 40, 40, 10])


def test_the_stanford_rule_has_a_floor() -> None:
    assert stanford(1e9, 0.04, 1) == 5_000_000
    assert stanford(1e9, 0.04, 100) == 500_000
    assert stanford(1e8, 0.001, 400) == 24 * MTU


@dataclass
class Noted:
    """A router that keeps what it was told."""

    most_queues: int = 8
    plans: list[Plan] = field(default_factory=list)

    def apply(self, plan: Plan) -> None:
        self.plans.append(plan)


class Refusing(Noted):
    """A router that refuses some plans, at first."""

    def __init__(self, times: int) -> None:
        super().__init__()
        self.times = times

    def apply(self, plan: Plan) -> None:
        self.times -= 1
        if self.times >= 0:
            raise TidegateError("router 1: its candidate is locked")
        super().apply(plan)


class Notes:
    def __init__(self) -> None:
        self.failures: list[float] = []

    def note(self, quantity: str, value: float) -> None:
        assert quantity == "router_failures"
        self.failures.append(value)


def test_a_router_that_refuses_a_plan_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    router, notes, plan = Refusing(2), Notes(), Plan((), {})
    controller = SeparationController(router, Taps((1, 2), 3), LINK, retries=2)
    for before in (None, None, plan):
        controller._apply(plan, notes)  # type: ignore[arg-type]
        assert controller.plan is before
    assert router.plans == [plan]
    assert notes.failures == [1, 2, 0]
    assert (
        caplog.messages
        == ["router 1: its candidate is locked; it keeps its queues, and is tried again in 1 s"] * 2
    )


def test_a_router_that_goes_on_refusing_ends_it() -> None:
    controller = SeparationController(Refusing(9), Taps((1, 2), 3), LINK, retries=1)
    controller._apply(Plan((), {}), Notes())  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match="its candidate is locked"):
        controller._apply(Plan((), {}), Notes())  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match="-1 retries of a router"):
        SeparationController(Noted(), Taps((1, 2), 3), LINK, retries=-1)


def flow(number: int, protocol: int = 6) -> FiveTuple:
    return FiveTuple(f"10.0.0.{number}", "10.0.1.1", protocol, 1000 + number, 80)


class Rounds:
    """A controller, and what the monitor would have measured."""

    def __init__(self, **options: Any) -> None:
        self.controller = SeparationController(Noted(), Taps((1, 2), 3), LINK, **{"classes": 2, **options})
        self.now, self.sent, self.unknown = 0, dict[FiveTuple, Measured](), Unknown()

    def tick(self, seconds: float = 1.0, **rates: tuple[float, ...]) -> Plan:
        """`f1=(rate in Mbit/s, base RTT in ms, queue delay in ms)`; UDP `u9=(offered, passed)`."""
        self.now += int(seconds * PS_PER_S)
        active = []
        for name, (rate, *rest) in rates.items():
            five = flow(int(name[1:]), 17 if name[0] == "u" else 6)
            one = self.sent.setdefault(five, Measured(five, len(self.sent), self.now))
            one.rate_bps, one.last_active = rate * 1e6, self.now
            if name[0] == "u":
                one.offered_bps, one.rate_bps = rate * 1e6, rest[0] * 1e6
            else:
                one.base_rtt_s = rest[0] / 1e3
                one.queue_delay_s = rest[1] / 1e3
                one.rtt_s = (rest[0] + rest[1]) / 1e3
            one.bytes += int(one.rate_bps * seconds / 8)
            one.sent.append((self.now, one.bytes))
            active.append(one)
        plan = self.controller._planned(self.now, active, self.unknown)
        assert plan is not None
        self.controller.plan = plan
        return plan


def mbps(plan: Plan) -> list[float]:
    return [round(queue.rate_bps / 1e6, 1) for queue in plan.queues]


def caps(plan: Plan) -> list[float | None]:
    return [None if queue.cap_bps is None else round(queue.cap_bps / 1e6, 1) for queue in plan.queues]


def test_each_flow_has_its_share_and_a_slow_one_gives_the_rest() -> None:
    rounds = Rounds(hold="cap")
    for _ in range(4):
        plan = rounds.tick(f1=(50, 10, 3), f2=(50, 40, 3))
    assert dict(plan.flows) == {flow(1): 1, flow(2): 2}
    assert mbps(plan) == [33.3, 50, 50]
    assert caps(plan) == [None, 50, 50]
    for _ in range(4):
        plan = rounds.tick(f1=(50, 10, 3), f2=(20, 40, 0.1))
    # The slow one is guaranteed some room, of which the other has what it does not send.
    assert (mbps(plan)[1:], caps(plan)) == ([78.8, 21.2], [None, 80, 21.2])
    # It sends as much as before, and keeps the rest given away.
    plan = rounds.tick(f1=(78, 10, 3), f2=(20, 40, 0.1))
    assert mbps(plan)[1:] == [78.8, 21.2]
    # It fills what it has, and may want more.
    plan = rounds.tick(f1=(78, 10, 3), f2=(21.2, 40, 5))
    assert (mbps(plan)[1:], caps(plan)) == ([50, 50], [None, 50, 50])


def test_flows_that_are_gone_are_in_no_class() -> None:
    rounds = Rounds()
    rounds.tick(f1=(50, 10, 3), f2=(50, 40, 3))
    controller = rounds.controller
    assert controller.classes_now() == {flow(1): 0, flow(2): 1}
    # The router keeps its plan.
    assert controller._planned(rounds.now + PS_PER_S, [], Unknown()) is None
    assert controller.plan is not None
    assert dict(controller.plan.flows) == {flow(1): 1, flow(2): 2}
    assert controller.classes_now() == {}
    assert controller.known == {}


def test_a_cap_of_a_plan_is_in_bytes_of_ip_and_a_shaper_in_bytes_of_frames() -> None:
    (queue,) = port((QueuePlan(60e6, 10_000, 75e6),), 1500).queues
    assert queue.shaper is not None
    assert queue.shaper.rate == 75_700_000


def test_each_rule_of_buffers_has_its_rates() -> None:
    def sizes(rule: str) -> list[int]:
        plan = Rounds(buffers=rule).tick(f1=(20, 20, 3), f2=(20, 20, 3), f3=(20, 20, 3), f4=(20, 100, 3))
        assert mbps(plan)[1:] == [75, 25]
        return [queue.buffer_bytes for queue in plan.queues[1:]]

    # Three flows with 20 ms and one with 100, on 100 Mbit/s; a mean of 40 ms.
    assert sizes("stanford") == [math.ceil(187_500 / math.sqrt(3)), 312_500]
    assert sizes("link") == [math.ceil(250_000 / math.sqrt(3)), 1_250_000]
    assert sizes("bdp") == [187_500, 312_500]
    assert sizes("split") == [375_000, 125_000]


def test_a_flow_that_starves_or_grows_keeps_its_share() -> None:
    rounds = Rounds(hold="cap")
    for _ in range(6):
        plan = rounds.tick(f1=(50, 10, 3), f2=(1, 40, 400))
    assert mbps(plan)[1:] == [50, 50]
    rounds = Rounds(hold="cap")
    for rate in (1, 2, 4, 8, 16, 32):
        plan = rounds.tick(f1=(50, 10, 3), f2=(rate, 40, 0.1))
    assert mbps(plan)[1:] == [50, 50]


@pytest.mark.parametrize("loses", [False, True])
def test_a_flow_behind_others_of_its_class_keeps_its_share_where_it_loses_packets(loses: bool) -> None:
    rounds = Rounds()
    for number in range(6):
        if loses and number:
            rounds.sent[flow(2)].resent += 3
        plan = rounds.tick(f1=(55, 10, 5), f2=(10, 10.2, 5), f3=(33, 40, 3))
    assert dict(plan.flows) == {flow(1): 1, flow(2): 1, flow(3): 2}
    # Otherwise something else holds it back, and it leaves the rest to all.
    assert mbps(plan)[1:] == ([66.7, 33.3] if loses else [55.3, 44.7])
    # What it lost before is long ago.
    for _ in range(6):
        plan = rounds.tick(f1=(55, 10, 5), f2=(10, 10.2, 5), f3=(33, 40, 3))
    assert mbps(plan)[1:] == [55.3, 44.7]


@pytest.mark.parametrize("period_s", [0.5, 1, 2, 3, 8, 10, 30])
def test_a_slow_flow_is_found_whatever_the_period(period_s: float) -> None:
    rounds = Rounds(hold="cap", period=f"{period_s} s")
    for _ in range(12):
        # A live controller's rounds come a little early or late.
        for late in (-0.01, 0.01):
            plan = rounds.tick(period_s + late, f1=(50, 10, 3), f2=(20, 40, 0.1))
    assert mbps(plan)[1:] == [78.8, 21.2]
    # Not one that grows.
    rounds = Rounds(hold="cap", period=f"{period_s} s")
    for number in range(12):
        plan = rounds.tick(period_s, f1=(50, 10, 3), f2=(2 * 1.3**number, 40, 0.1))
    assert mbps(plan)[1:] == [50, 50]


@pytest.mark.parametrize("period_s", [1, 3, 10, 30])
def test_enough_rounds_are_kept_whatever_the_period(period_s: int) -> None:
    flows, registers = Flows(), Registers(place=3)
    flows.found(0, Digest("flow_t", FOUND))
    for number in range(1, 40):
        registers.bytes += 1000 * min(number, 30)
        (one,) = flows.read(number * period_s * PS_PER_S, cast("SwitchApi", registers))
        assert one.grows(1.0) == (number <= 30)
    assert len(one.sent) == max(3, 20 // period_s + 1)


def test_newcomers_wait_for_half_a_second_at_most() -> None:
    # Two flows: the link's BDP with the longest round-trip time is 450 ms of the rate of one more.
    plan = Rounds().tick(1.0, **{f"f{n}": (50, 150, 9) for n in range(2)})
    assert plan.queues[0].buffer_bytes == stanford(LINK, 0.150, 1)
    # Those of flows that are known say little of another's.
    plan = Rounds().tick(1.0, **{f"f{n}": (50, 1, 9) for n in range(2)})
    assert plan.queues[0].buffer_bytes == stanford(LINK, 0.100, 1)
    # A hundred: 4 s of it.
    plan = Rounds().tick(1.0, **{f"f{n}": (1, 40, 9) for n in range(100)})
    rate = plan.queues[0].rate_bps
    assert rate == LINK // 101
    assert plan.queues[0].buffer_bytes == pytest.approx(rate / 8 * 0.5, abs=1)
    # At least the floor of each queue.
    plan = Rounds().tick(1.0, **{f"f{n}": (0.2, 40, 9) for n in range(250)})
    assert plan.queues[0].buffer_bytes == 24 * MTU


def test_newcomers_have_what_they_send_and_some_room() -> None:
    flows: dict[str, Any] = {f"f{n}": (24, 10, 3) for n in range(1, 5)}
    # A thousand short ones send 4 of 100 Mbit/s together; the long ones have the rest, though those could have more.
    rounds = Rounds(hold="cap", classes=1)
    rounds.unknown = Unknown(1000, 4e6)
    plan = rounds.tick(**flows)
    assert (mbps(plan), caps(plan)) == ([99.6, 94], [None, 96])
    # Where others keep them from sending they can have as much as one long flow each none the less.
    rounds.unknown = Unknown(4, 1e6)
    plan = rounds.tick(**flows)
    assert (mbps(plan), caps(plan)) == ([50, 98.5], [None, 99])
    # And that is what they have, where they ask for more; while they do not have it the others may.
    rounds.unknown = Unknown(4, 40e6)
    plan = rounds.tick(**flows)
    assert (mbps(plan), caps(plan)) == ([50, 50], [None, 60])
    # They have the first class's queue, where they have none of their own.
    rounds = Rounds(hold="cap", classes=1, newcomers=False)
    rounds.unknown = Unknown(1000, 4e6)
    plan = rounds.tick(**flows)
    assert (mbps(plan), plan.queues[0].cap_bps) == ([100], LINK)
    # That queue gets all that was planned.
    (*known,) = rounds.sent.values()
    assert rounds.controller._held_back(known[:3], Unknown(1, 20e6)) == set()
    assert rounds.controller._held_back(known[:3], Unknown()) == {0}


@pytest.mark.parametrize("hold", ["guarantee", "cap"])
def test_policed_flows_may_have_what_newcomers_leave(hold: str) -> None:
    """A hundred flows that are not known yet send 5 of 100 Mbit/s together; two TCP flows and one of UDP want a third of the rest."""
    rounds = Rounds(hold=hold, udp_above=0.4)
    rounds.unknown = Unknown(100, 5e6)
    for _ in range(3):
        plan = rounds.tick(f1=(31, 10, 3), f2=(31, 40, 3), u9=(50, 31))
    assert caps(plan)[-1] == pytest.approx(100 * (1 - 0.06) / 3, abs=0.7)


def pair(net: Network, fast: str, slow: str, delay: str) -> tuple[tuple[Node, Link, Link], tuple[Node, Node]]:
    """Two hosts, the router that sends by a slow link, and the links before and after it; others are fast, the last one has `delay`."""
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
    before = net.link(s1, r1, rate=fast, delay="10 us")
    after = net.link(r1, r2, rate=slow, delay="10 us")
    a, b = net.host("a"), net.host("b")
    net.link(a, s1, rate=fast, delay="10 us")
    net.link(b, r2, rate=fast, delay=delay)
    return (r1, before, after), (a, b)


def test_short_flows_leave_the_link_to_long_ones() -> None:
    net = Network()
    (r1, before, after), (a, b) = pair(net, "1 Gbit/s", "20 Mbit/s", "5 ms")
    long = [net.tcp(a, b) for _ in range(2)]
    # 100 a second of 5 kB.
    net.transfers((PS_PER_S * number // 100, 5000, a, b, 0) for number in range(1000))
    options = {"classes": 1, "long_bytes": "500 kB", "hold": "cap", "period": "500 ms"}
    separation(net, "monitor", r1, before, after, buffer="100 kB", **options)  # type: ignore[arg-type]
    result = net.run("10 s", progress=False)
    assert len(result.flows) == len(long) + 1000
    goodput = result.flows.sort("flow")["goodput_mbps"][: len(long)].sum()
    assert goodput > 0.55 * 20


def test_udp_is_policed_above_the_threshold_beside_others() -> None:
    rounds = Rounds(udp_above=0.4)
    plan = rounds.tick(u9=(120, 99))
    assert plan.flows[flow(9, 17)] == 3
    assert plan.queues[3].cap_bps is None
    plan = rounds.tick(u9=(120, 60), f1=(30, 10, 9))
    assert (plan.queues[3].cap_bps, plan.queues[1].rate_bps) == (50_000_000, 50_000_000)
    # What it still offers counts, not what it gets; and it comes back when that is half of the threshold.
    plan = rounds.tick(u9=(25, 25), f1=(30, 10, 9))
    assert plan.flows[flow(9, 17)] == 3
    plan = rounds.tick(u9=(15, 15), f1=(80, 10, 9))
    assert plan.flows[flow(9, 17)] == 0
    assert mbps(plan)[1] == 85.0


def test_a_fair_udp_flow_is_never_policed() -> None:
    rounds = Rounds(udp_above=0.4)
    rng = np.random.default_rng(3)
    for _ in range(3600):
        part = rng.uniform(20, 39)
        plan = rounds.tick(u9=(part, part), f1=(60, 10, 9))
        assert plan.flows[flow(9, 17)] == 0


def test_who_fills_a_queue_above_its_limit_is_moved_and_stays() -> None:
    rounds = Rounds(rtt_limits=("20 ms",))
    plan = rounds.tick(f1=(20, 10, 0.1))
    plan = rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
    assert set(plan.flows.values()) == {1}
    plan = rounds.tick(f1=(20, 10, 15), f2=(70, 10, 15))
    assert dict(plan.flows) == {flow(1): 1, flow(2): 2}
    # The classes alone would put it back.
    for _ in range(20):
        plan = rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
        assert dict(plan.flows) == {flow(1): 1, flow(2): 2}
    for _ in range(12):
        plan = rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
    assert set(plan.flows.values()) == {1}


def test_flows_are_moved_by_what_they_had_in_the_queue_in_which_they_were() -> None:
    rounds = Rounds(classes=3, rtt_limits=("20 ms", "25 ms"))
    rounds.tick(f1=(20, 10, 0.1), f2=(40, 10, 1), f3=(30, 18, 0.1))
    # The last flow of the first class has more than the second one's limit, too, and joins a flow that has not.
    plan = rounds.tick(f1=(20, 10, 18), f2=(40, 10, 18), f3=(30, 18, 0.1))
    assert dict(plan.flows) == {flow(1): 1, flow(2): 2, flow(3): 2}
    # It fills that queue as well, and goes on.
    plan = rounds.tick(f1=(20, 10, 0.1), f2=(40, 10, 16), f3=(15, 18, 8))
    assert dict(plan.flows) == {flow(1): 1, flow(2): 3, flow(3): 2}
    # A flow that is new is looked at when it has had a queue of its class for a round.
    plan = rounds.tick(f1=(20, 10, 0.1), f2=(40, 10, 16), f3=(30, 18, 0.1), f4=(40, 10, 30))
    assert plan.flows[flow(4)] == 1


@pytest.mark.parametrize("classes", [1, 2])
def test_a_limit_for_the_last_class_has_no_effect_and_is_warned_of(
    classes: int, caplog: pytest.LogCaptureFixture
) -> None:
    one_less, one_each = (
        Rounds(classes=classes, rtt_limits=("20 ms",) * number) for number in (classes - 1, classes)
    )
    assert [record.getMessage() for record in caplog.records] == [
        "the last limit of round-trip times, 20 ms, has no effect: flows of the last class have no class to move to; leave it out"
    ]
    for rounds in (one_less, one_each):
        rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
        plan = rounds.tick(f1=(20, 10, 15), f2=(70, 10, 15))
        assert plan.flows[flow(2)] == classes
        # Both stay in the last class, above its limit.
        plan = rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 30))
        assert plan.flows[flow(2)] == classes


@pytest.mark.parametrize(
    ("options", "cure"),
    [
        ({"classes": 9}, "fewer classes"),
        ({"classes": 7, "udp_above": 0.4}, "fewer classes"),
        ({"classes": 0}, "1 or more"),
        ({"classes": 3, "rtt_limits": ("20 ms",)}, "one for each class but the last"),
        ({"classes": 1, "rtt_limits": ("20 ms", "1 s")}, "one for each class but the last"),
        ({"every": 0}, "every is 0; give the number of seconds"),
        ({"every": 8}, "period is 1 s; give a multiple of 8 s"),
        ({"every": 8, "period": "12 s"}, "period is 12 s; give a multiple of 8 s"),
    ],
)
def test_refused(options: dict[str, object], cure: str) -> None:
    with pytest.raises(TidegateError, match=cure):
        Rounds(**options)


def test_a_link_without_a_rate_is_refused() -> None:
    with pytest.raises(TidegateError, match="above 0"):
        SeparationController(Noted(), Taps((1, 2)), 0)


def test_no_weights_beyond_those_there_are() -> None:
    with pytest.raises(TidegateError, match="known: flows"):
        shares.weights("none", [0], [1.0])  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match="not negative"):
        shares.max_min(1, [-1.0])


@pytest.mark.parametrize("given", [{}, {"period": "6 s"}])
def test_a_fair_udp_flow_that_is_seen_in_turns_is_not_policed(given: dict[str, str]) -> None:
    net = Network()
    (r1, before, after), (a, b) = pair(net, "100 Mbit/s", "10 Mbit/s", "1 ms")
    net.udp(a, b, rate="2 Mbit/s")
    options = {"every": 3, "udp_above": 0.4, "long_bytes": "10 kB", "classes": 1, **given}
    controller = separation(net, "monitor", r1, before, after, buffer="50 kB", **options)  # type: ignore[arg-type]
    net.run("13 s", progress=False)
    assert controller.plan is not None
    assert set(controller.plan.flows.values()) == {0}
    (one,) = controller.flows.by_place.values()
    assert one.offered_bps == pytest.approx(2e6, rel=0.1)


def test_flows_that_are_seen_in_turns_have_their_classes_and_rates() -> None:
    net = Network()
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
    before = net.link(s1, r1, rate="1 Gbit/s", delay="10 us")
    after = net.link(r1, r2, rate="40 Mbit/s", delay="10 us")
    rtts_ms = (10, 12, 80, 90)
    for number, rtt_ms in enumerate(rtts_ms):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, s1, rate="1 Gbit/s", delay="10 us")
        net.link(b, r2, rate="1 Gbit/s", delay=f"{rtt_ms / 2} ms")
        net.tcp(a, b)
    controller = separation(
        net,
        "monitor",
        r1,
        before,
        after,
        buffer="200 kB",
        classes=2,
        long_bytes="1 MB",
        period="2 s",
        every=2,
    )
    net.run("14 s", progress=False)
    classes = controller.classes_now()
    assert [classes[net.five_tuple(flow)] for flow in net.flows] == [0, 0, 1, 1]
    rates = [one.rate_bps for one in controller.flows.by_place.values()]
    # What was seen in one second of two, twice.
    assert sum(rates) == pytest.approx(40e6 * 1500 / 1514, rel=0.1)


@pytest.mark.parametrize("every", [1, 4])
def test_flows_that_are_not_known_are_counted_once_however_they_are_seen(
    monkeypatch: pytest.MonkeyPatch, every: int
) -> None:
    seen: list[Unknown] = []
    count = Flows.unknown

    def counted(flows: Flows, now: int, switch: SwitchApi) -> Unknown:
        seen.append(count(flows, now, switch))
        return seen[-1]

    monkeypatch.setattr(Flows, "unknown", counted)
    net = Network()
    (r1, before, after), (a, b) = pair(net, "1 Gbit/s", "20 Mbit/s", "10 us")
    for _ in range(40):
        net.udp(a, b, rate="0.4 Mbit/s")
    separation(net, "monitor", r1, before, after, buffer="200 kB", period="4 s", every=every)
    net.run("12.5 s", progress=False)
    assert len(seen) == 3
    for one in seen[1:]:
        assert one.flows == pytest.approx(40, abs=2)
        assert one.rate_bps == pytest.approx(16e6, rel=0.1)


@pytest.mark.parametrize(("bits", "found"), [(6, 0), (8, 20)])
def test_a_sketch_that_is_too_small_for_all_flows_is_warned_of(
    caplog: pytest.LogCaptureFixture, bits: int, found: int
) -> None:
    net = Network()
    (r1, before, after), (a, b) = pair(net, "1 Gbit/s", "20 Mbit/s", "10 us")
    for _ in range(20):
        net.udp(a, b, rate="0.9 Mbit/s")
    controller = separation(
        net, "monitor", r1, before, after, buffer="200 kB", long_bytes="1 MB", sizes={"sketch_bits": bits}
    )
    net.run("20 s", progress=False)
    assert len(controller.flows.by_place) == found
    # 64 cells find 6 flows of equal rates, and these are 20; it is said once.
    assert len(caplog.messages) == (0 if found else 1)
    if not found:
        assert re.fullmatch(
            r"\d+ flows that are not known have \d\d % of the link; of flows of equal rates the monitor finds 6: "
            r"make its sketch larger \(sketch_bits=14\)",
            caplog.messages[0],
        )


@pytest.mark.parametrize(("bits", "warned"), [(4, True), (8, False)])
def test_tables_in_which_flows_find_no_place_are_warned_of(
    caplog: pytest.LogCaptureFixture, bits: int, warned: bool
) -> None:
    net = Network()
    (r1, before, after), (a, b) = pair(net, "1 Gbit/s", "20 Mbit/s", "10 us")
    for _ in range(40):
        net.udp(a, b, rate="0.4 Mbit/s")
    controller = separation(
        net, "monitor", r1, before, after, buffer="200 kB", long_bytes="0 B", sizes={"flow_bits": bits}
    )
    net.run("5 s", progress=False)
    found = len(controller.flows.by_place)
    # Two tables of 16 places; it is said once.
    assert (16 < found < 32) if warned else found == 40
    assert len(caplog.messages) == warned
    if warned:
        assert re.fullmatch(
            r"the monitor has found \d+ flows, and no place for another, which stays with the flows that are not known: "
            r"make its tables larger \(flow_bits=6\)",
            caplog.messages[0],
        )


class Registers:
    """A monitor's, of which a flow at a place has sent so much; and others, of its direction and of the one back."""

    def __init__(
        self, place: int, others: dict[str, int] | None = None, back: dict[str, int] | None = None
    ) -> None:
        self.place, self.bytes, self.others, self.back = place, 0, others or {}, back or {}

    def register_read(self, name: str) -> npt.NDArray[np.int64]:
        """All cells of one."""
        cells = np.zeros(64, np.int64)
        cells[2 * self.place] = self.bytes if name == "bytes" else self.others.get(name, 0)
        cells[2 * self.place + 1] = self.back.get(name, 0)
        return cells


FOUND = {"low": 1, "high": 2, "low_port": 1000, "high_port": 2000, "protocol": 6, "six": 0, "place": 3}
"""A digest of the flow of `Registers(3)`."""


@pytest.mark.parametrize("every", [1, 4])
def test_a_flow_that_goes_on_after_a_long_silence_is_active_again(every: int) -> None:
    flows, registers = Flows(every), Registers(place=3)
    flows.found(0, Digest("flow_t", FOUND))
    active = []
    for second in range(1, 200):
        # It waits from 10 s to 190 s. The monitor has told of it once.
        registers.bytes += 1000 if not 10 < second <= 190 else 0
        active.append(len(flows.read(second * PS_PER_S, cast("SwitchApi", registers))))
    silent = round(10 + RATE_OVER_S * every)
    assert active == [1] * silent + [0] * (190 - silent) + [1] * 9


@pytest.mark.parametrize(("samples", "found"), [(99, None), (100, 0.012)])
def test_a_flow_that_the_second_tap_does_not_show_in_time_has_its_least_time(
    samples: int, found: float | None
) -> None:
    flows = Flows()
    registers = Registers(place=3, others={"rtt_samples": samples, "rtt_least": 12_000})
    flows.found(0, Digest("flow_t", FOUND))
    registers.bytes += 1000
    (one,) = flows.read(PS_PER_S, cast("SwitchApi", registers))
    assert one.base_rtt_s == found


def test_a_round_trip_has_both_legs() -> None:
    flows, registers = Flows(), Registers(place=3)
    flows.found(0, Digest("flow_t", FOUND))

    def read(second: int) -> Measured:
        registers.bytes += 1000
        (one,) = flows.read(second * PS_PER_S, cast("SwitchApi", registers))
        return one

    registers.others = {"rtt_samples": 2, "rtt_sum": 50_000, "rtt_least": 20_000, "rtt_base": 12_000}
    registers.back = {"stamp_least": 30_000}
    one = read(1)
    # The sender's leg is known by its least time alone.
    assert [one.base_rtt_s, one.rtt_s] == pytest.approx([0.042, 0.055])
    # Then it has samples, too.
    registers.others |= {"rtt_samples": 3, "rtt_sum": 70_000}
    registers.back |= {"rtt_samples": 1, "rtt_sum": 38_000, "rtt_base": 29_000}
    one = read(2)
    assert [one.base_rtt_s, one.rtt_s] == pytest.approx([0.041, 0.058])
    assert read(3).rtt_s is None


@pytest.mark.parametrize(("samples", "then"), [(99, None), (100, 0.012)])
def test_a_flow_with_timestamps_has_a_base_once_they_tell_the_sender_s_leg(
    samples: int, then: float | None
) -> None:
    flows, registers = Flows(), Registers(place=3)
    flows.found(0, Digest("flow_t", FOUND))

    def base(second: int) -> float | None:
        registers.bytes += 1000
        (one,) = flows.read(second * PS_PER_S, cast("SwitchApi", registers))
        return one.base_rtt_s

    # All of a burst's samples may come before the first timestamp is back.
    registers.others = {"rtt_samples": samples, "rtt_base": 12_000}
    registers.back = {"stamp_seen": 7}
    assert base(1) is None
    # Of some they do not come back at all.
    assert base(2) == then
    registers.back |= {"stamp_least": 30_000}
    assert base(3) == pytest.approx(0.042)
