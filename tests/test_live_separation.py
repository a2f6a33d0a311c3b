"""Flow separation between real hosts: the monitor's round-trip times, and shares by the router's queues."""

from __future__ import annotations

from functools import partial

import pytest

from live import needs_iperf3, needs_namespaces, undisturbed
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.separation.setup import separation

RTTS_MS = (10, 40)
SHARE = 50e6 * 1448 / 1514 / 2
"""Payload of half of the link, in bit/s."""


def separated(kept: dict[str, list[float]]) -> Result:
    """Two flows of real hosts over a router with classes."""
    net = Network()
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
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
    result = net.run("8 s", backend="live")
    found = sorted(controller.flows.by_place.values(), key=lambda one: one.flow.target_port)
    kept["rtts"] = [one.base_rtt_s or 0.0 for one in found]
    kept["classes"] = [float(controller.classes_now()[one.flow]) for one in found]
    return result


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
