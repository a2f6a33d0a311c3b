"""What several UDP flows below the threshold of policing do to TCP: policing is by flow."""

from __future__ import annotations

from typing import Literal

import pytest

from tidegate.network import Network, Node
from tidegate.results import Result
from tidegate.systems.separation.controller import SeparationController
from tidegate.systems.separation.setup import separation

MBPS = 20.0


def beside_udp(
    parts: tuple[float, ...], hold: Literal["guarantee", "cap"]
) -> tuple[SeparationController, Result]:
    """A TCP flow; from 3 s on UDP flows that offer these parts of the link; another TCP flow from 8 s on. For 20 s."""
    net = Network()
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
    before = net.link(s1, r1, rate="1 Gbit/s", delay="10 us")
    after = net.link(r1, r2, rate=f"{MBPS} Mbit/s", delay="10 us")

    def hosts(name: str) -> tuple[Node, Node]:
        a, b = net.host(f"a{name}"), net.host(f"b{name}")
        net.link(a, s1, rate="1 Gbit/s", delay="10 us")
        net.link(b, r2, rate="1 Gbit/s", delay="5 ms")
        return a, b

    net.tcp(*hosts("known"))
    for number, part in enumerate(parts):
        net.udp(*hosts(f"udp{number}"), rate=f"{MBPS * part:g} Mbit/s", start="3 s")
    net.tcp(*hosts("later"), start="8 s")
    net.record("500 ms", [after])
    options = {"classes": 2, "long_bytes": "200 kB", "period": "500 ms", "udp_above": 0.4, "hold": hold}
    controller = separation(net, "monitor", r1, before, after, buffer="100 kB", **options)  # type: ignore[arg-type]
    return controller, net.run("20 s", progress=False)


def goodput_mbps(result: Result, flow: int) -> float:
    """From 10 s on, when all are there."""
    samples = result.flow_samples.filter(
        (result.flow_samples["flow"] == flow) & (result.flow_samples["time_s"] >= 10)
    )
    received, times = samples["bytes_received"], samples["time_s"]
    return float((received[-1] - received[0]) * 8 / (times[-1] - times[0]) / 1e6)


@pytest.mark.parametrize("hold", ["guarantee", "cap"])
def test_udp_flows_that_are_above_the_threshold_only_together_are_not_policed(
    hold: Literal["guarantee", "cap"],
) -> None:
    controller, result = beside_udp((0.38, 0.38, 0.38), hold)
    assert controller.plan is not None
    assert {of for flow, of in controller.plan.flows.items() if flow.protocol == 17} == {0}
    # A flow that is known has its class, and the share of one flow of five in it.
    assert goodput_mbps(result, 0) > 0.95 * MBPS / 5
    # One that comes later waits with them for its first bytes, and does not become known.
    later = result.flows.sort("flow")["goodput_mbps"][-1]
    assert later < 0.01 * MBPS
    assert sum(flow.protocol == 6 for flow in controller.plan.flows) == 1


@pytest.mark.parametrize("hold", ["guarantee", "cap"])
def test_one_udp_flow_that_offers_as_much_is_policed(hold: Literal["guarantee", "cap"]) -> None:
    controller, result = beside_udp((1.14,), hold)
    assert controller.plan is not None
    assert {of for flow, of in controller.plan.flows.items() if flow.protocol == 17} == {3}
    both = goodput_mbps(result, 0), result.flows.sort("flow")["goodput_mbps"][-1]
    assert min(both) > 0.8 * MBPS / 3
