"""Flow separation between real hosts: the monitor's round-trip times, and shares by the router's queues."""

from __future__ import annotations

from functools import partial

import pytest

from live import again_if_disturbed, needs_iperf3, needs_namespaces, undisturbed, watched
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.separation.routers.simulated import SimulatedRouter
from tidegate.systems.separation.setup import separation

RTTS_MS = (10, 40)
SHARE = 50e6 * 1448 / 1514 / 2
"""Payload of half of the link, in bit/s."""


def separated(kept: dict[str, list[float]], linux: bool = False, until: str = "8 s") -> Result:
    """Two flows of real hosts over a router with classes, Tidegate's or the kernel with HTB."""
    net = Network()
    s1, r2 = net.router("s1"), net.router("r2")
    r1 = net.router("r1", linux=linux)
    before = net.link(s1, r1, rate="1 Gbit/s", delay="10 us")
    after = net.link(r1, r2, rate="50 Mbit/s", delay="10 us")
    for number, rtt_ms in enumerate(RTTS_MS):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, s1, rate="1 Gbit/s", delay="10 us")
        net.link(b, r2, rate="1 Gbit/s", delay=f"{rtt_ms / 2} ms")
        net.tcp(a, b)
    options = {"classes": 2, "long_bytes": "500 kB", "period": "250 ms"}
    controller = separation(net, "monitor", r1, before, after, buffer="200 kB", **options)
    net.record("250 ms", [after])
    kept["sent"] = []
    assert isinstance(controller.router, SimulatedRouter)
    queues = controller.router.classes
    net.at("4 s", lambda: kept["sent"].extend(queues.queue(number).bytes for number in (1, 2)))
    result = net.run(until, backend="live")
    found = sorted(controller.flows.by_place.values(), key=lambda one: one.flow.target_port)
    kept["rtts"] = [one.base_rtt_s or 0.0 for one in found]
    kept["classes"] = [float(controller.classes_now().get(one.flow, -1)) for one in found]
    kept["rates"] = [] if controller.plan is None else [one.rate_bps for one in controller.plan.queues]
    return result


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_the_controller_sets_the_queues_of_a_linux_router() -> None:
    kept: dict[str, list[float]] = {}
    result = watched(separated(kept, linux=True, until="5 s"), late_ms=2)
    assert {"r1 eth0", "r1 eth1"} <= set(result.live["where"])
    # Each flow has its class, and the class's queue of HTB has sent its packets.
    assert kept["classes"] == [0, 1]
    assert len(kept["rates"]) == 3
    assert min(kept["sent"]) > 100_000


@needs_namespaces
@needs_iperf3
def test_real_hosts_have_equal_shares_whatever_their_round_trip_times() -> None:
    kept: dict[str, list[float]] = {}
    samples = undisturbed(partial(separated, kept), late_ms=2).flow_samples
    assert [1e3 * rtt for rtt in kept["rtts"]] == pytest.approx(RTTS_MS, abs=1.0)
    assert kept["classes"] == [0, 1]
    for flow in range(2):
        # A loss in slow start leaves the longer one below its share for some seconds.
        own = samples.filter((samples["flow"] == flow) & (samples["time_s"] > 4)).sort("time_s")
        spent = own["time_s"][-1] - own["time_s"][0]
        rate = 8 * (own["bytes_received"][-1] - own["bytes_received"][0]) / spent
        assert rate == pytest.approx(SHARE, rel=0.05)
