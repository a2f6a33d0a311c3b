"""UDP flows that are above the threshold of policing only together, and TCP flows beside them."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest

from tidegate.network import Network, Node
from tidegate.results import Result
from tidegate.systems.separation.controller import SeparationController
from tidegate.systems.separation.measured import Unknown
from tidegate.systems.separation.routers import Plan
from tidegate.systems.separation.setup import separation
from tidegate.systems.separation.test_controller import Rounds, caps

MBPS = 20.0
Hold = Literal["guarantee", "cap"]
POLICED = 3
HOLDS = pytest.mark.parametrize("hold", ["guarantee", "cap"])


def beside_udp(
    parts: tuple[float, ...],
    hold: Hold,
    *,
    known: int = 1,
    later: bool = True,
    port_s: float | None = None,
    **given: Any,
) -> tuple[SeparationController, Result]:
    """TCP flows; from 3 s on UDP flows that offer these parts of the link; another TCP flow from 8 s on. For 20 s.

    `port_s`: after so long another UDP flow goes on in the place of one.
    """
    net = Network()
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
    before = net.link(s1, r1, rate="1 Gbit/s", delay="10 us")
    after = net.link(r1, r2, rate=f"{MBPS} Mbit/s", delay="10 us")

    def hosts(name: str) -> tuple[Node, Node]:
        a, b = net.host(f"a{name}"), net.host(f"b{name}")
        net.link(a, s1, rate="1 Gbit/s", delay="10 us")
        net.link(b, r2, rate="1 Gbit/s", delay="5 ms")
        return a, b

    for number in range(known):
        net.tcp(*hosts(f"known{number}"))
    for number, part in enumerate(parts):
        ends, rate = hosts(f"udp{number}"), f"{MBPS * part:g} Mbit/s"
        if port_s is None:
            net.udp(*ends, rate=rate, start="3 s")
        else:
            for start in np.arange(3, 20, port_s):
                net.udp(*ends, rate=rate, start=f"{start} s", stop=f"{start + port_s} s")
    if later:
        net.tcp(*hosts("later"), start="8 s")
    net.record("500 ms", [after])
    options = {"classes": 2, "long_bytes": "200 kB", "period": "500 ms", "udp_above": 0.4, "hold": hold}
    controller = separation(net, "monitor", r1, before, after, buffer="100 kB", **{**options, **given})
    return controller, net.run("20 s", progress=False)


def goodput_mbps(result: Result, flow: int) -> float:
    """From 10 s on, when all are there."""
    samples = result.flow_samples.filter(
        (result.flow_samples["flow"] == flow) & (result.flow_samples["time_s"] >= 10)
    )
    received, times = samples["bytes_received"], samples["time_s"]
    return float((received[-1] - received[0]) * 8 / (times[-1] - times[0]) / 1e6)


def queues_of_udp(plan: Plan | None) -> list[int]:
    """The queue of each UDP flow, by number."""
    assert plan is not None
    return [of for flow, of in sorted(plan.flows.items()) if flow.protocol == 17]


@HOLDS
def test_udp_flows_that_are_above_the_threshold_only_together_are_policed(hold: Hold) -> None:
    controller, result = beside_udp((0.38, 0.38, 0.38), hold)
    assert queues_of_udp(controller.plan) == [POLICED] * 3
    # Both TCP flows are in one class, and have the shares of two flows of five: also the one that comes later.
    both = goodput_mbps(result, 0), float(result.flows.sort("flow")["goodput_mbps"][-1])
    assert sum(both) > 0.9 * MBPS * 2 / 5
    assert min(both) > 0.5 * MBPS / 5


@HOLDS
def test_one_udp_flow_that_offers_as_much_is_policed(hold: Hold) -> None:
    controller, result = beside_udp((1.14,), hold)
    assert queues_of_udp(controller.plan) == [POLICED]
    both = goodput_mbps(result, 0), result.flows.sort("flow")["goodput_mbps"][-1]
    assert min(both) > 0.8 * MBPS / 3


@HOLDS
def test_udp_flows_within_their_shares_lose_nothing(hold: Hold) -> None:
    # Together they are above the threshold; the shares of six flows are 17 %.
    controller, result = beside_udp((0.15, 0.15, 0.15), hold, known=3, later=False)
    assert queues_of_udp(controller.plan) == [0] * 3
    first = result.queue_samples.filter(
        (result.queue_samples["queue"] == "r1 -> r2") & (result.queue_samples["number"] == 0)
    )
    # Until the monitor knows them they may lose some.
    dropped = first.filter(first["time_s"] >= 5)["dropped"]
    assert dropped[-1] == dropped[0]


@HOLDS
def test_udp_flows_that_are_not_known_yet_are_not_policed(hold: Hold) -> None:
    # Each ends before it is long.
    controller, result = beside_udp((1.14,), hold, port_s=0.5, long_bytes="2 MB")
    assert queues_of_udp(controller.plan) == []
    # A flow that is known has its share beside two flows, and one that comes later next to nothing.
    assert goodput_mbps(result, 0) > 0.85 * MBPS / 3
    assert result.flows.sort("flow")["goodput_mbps"][-1] < 0.01 * MBPS


def tcp(count: int) -> dict[str, Any]:
    """TCP flows that want more."""
    return {f"f{10 + number}": (100 / count, 10, 9) for number in range(count)}


def udp(*offered: float) -> dict[str, Any]:
    """UDP flows that offer so much (Mbit/s, of 100)."""
    return {f"u{number}": (rate, rate) for number, rate in enumerate(offered, 1)}


def test_flows_above_their_shares_are_policed_together() -> None:
    rounds = Rounds(udp_above=0.4)
    # Alone they have the whole link.
    plan = rounds.tick(**udp(38, 38, 38))
    assert (queues_of_udp(plan), caps(plan)[POLICED]) == ([POLICED] * 3, None)
    plan = rounds.tick(**udp(38, 38, 38), **tcp(1))
    assert (queues_of_udp(plan), caps(plan)[POLICED]) == ([POLICED] * 3, 75)
    # One comes back to its share, and loses nothing beside the others.
    plan = rounds.tick(**udp(20, 38, 38), **tcp(1))
    assert queues_of_udp(plan) == [0, POLICED, POLICED]
    assert caps(plan)[POLICED] == pytest.approx(2 * 80 / 3, abs=0.1)
    # Of 38 % there is one left, which is its share.
    plan = rounds.tick(**udp(38), **tcp(1))
    assert queues_of_udp(plan) == [0]


def test_what_is_policed_alone_does_not_count_for_the_others() -> None:
    rounds = Rounds(udp_above=0.4)
    plan = rounds.tick(**udp(120, 24), **tcp(3))
    assert queues_of_udp(plan) == [POLICED, 0]
    plan = rounds.tick(**udp(120, 24, 24), **tcp(3))
    assert queues_of_udp(plan) == [POLICED] * 3


def test_policed_flows_stay_so_while_they_are_above_half_of_the_threshold_together() -> None:
    rounds = Rounds(udp_above=0.4)
    # Their shares are 4.3 %.
    for offered, policed in ((13, 0), (14, 3), (10, 3), (7, 3), (6, 0), (13, 0), (14, 3)):
        plan = rounds.tick(**udp(offered, offered, offered), **tcp(20))
        assert queues_of_udp(plan) == [policed] * 3


@pytest.mark.parametrize("mean", [20.0, 20.6, 21.2])
def test_flows_about_their_shares_do_not_come_and_go(mean: float) -> None:
    rounds, rng = Rounds(udp_above=0.4), np.random.default_rng(3)
    seen = [
        queues_of_udp(rounds.tick(**udp(*(mean * rng.uniform(0.98, 1.02, 3))), **tcp(2))) for _ in range(300)
    ]
    for queues in zip(*seen, strict=True):
        assert np.count_nonzero(np.diff(queues)) <= 1


def test_flows_within_their_shares_are_not_policed_whatever_their_sum() -> None:
    rounds, rng = Rounds(udp_above=0.4), np.random.default_rng(3)
    for _ in range(1000):
        plan = rounds.tick(**udp(*rng.uniform(5, 16.6, 3)), **tcp(3))
        assert queues_of_udp(plan) == [0] * 3


def test_many_short_flows_leave_the_shares_of_others_as_they_are() -> None:
    rounds = Rounds(udp_above=0.4)
    rounds.unknown = Unknown(flows=1000, rate_bps=5e6)
    assert queues_of_udp(rounds.tick(**udp(15, 15, 15), **tcp(3))) == [0] * 3
