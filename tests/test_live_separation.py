"""Flow separation between real hosts: the monitor's round-trip times, and shares by the router's queues."""

from __future__ import annotations

import os
import subprocess
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import polars as pl
import pytest

from live import (
    Attempt,
    again_if_disturbed,
    held,
    namespaces,
    needs_iperf3,
    needs_namespaces,
    undisturbed,
    wait_for,
    watched,
)
from tidegate.experiments import run
from tidegate.experiments.registry import find
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.separation.experiments.rebalance import PHASES
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


def left() -> list[str]:
    """What a run that does not clean up would leave on this machine: namespaces, devices, queues."""
    commands = (["netns", "list"], ["-o", "link", "show"])
    texts = [
        subprocess.run(["ip", *words], check=True, capture_output=True, text=True).stdout
        for words in commands
    ]
    queues = subprocess.run(["tc", "qdisc", "show"], check=True, capture_output=True, text=True).stdout
    named = [line.split(": ")[1] for line in texts[1].splitlines()]
    return [
        line
        for line in [*texts[0].splitlines(), *named, *queues.splitlines()]
        if "tidegate" in line or "7d1" in line
    ]


@needs_namespaces
@needs_iperf3
@pytest.mark.slow
@again_if_disturbed
def test_flows_are_degraded_and_recover_behind_a_linux_router(tmp_path: Path) -> None:
    """`separation.rebalance` with `router=linux`, from the flows' start to their rows; then nothing of it is left."""
    experiment = find("separation.rebalance")
    given = {
        "schemes": ("guarantee",),
        "router": "linux",
        "rate_mbps": 20.0,
        "unit_s": 6.0,
        "sample_ms": 50.0,
    }
    spaces, kept, before = namespaces(), held(os.getpid()), left()
    made = run(
        experiment.name,
        {**experiment.parameters(quick=True), **given},
        backend="live",
        seeds=[1],
        out=tmp_path / f"out{Attempt.number}",
    )
    (tables,) = (tmp_path / f"out{Attempt.number}" / "tables").iterdir()
    live = pl.read_parquet(tables / "live.parquet")
    watched(SimpleNamespace(live=live, warnings=[]))  # type: ignore[arg-type]
    rows = made["rows"]
    assert {"r1 eth0", "r1 eth1"} <= set(live["where"])
    assert [row["phase"] for row in rows] == list(PHASES)
    flows = [[row[f"flow_{number}_mbps"] for number in (1, 2, 3)] for row in rows]
    assert [[rate is not None for rate in of] for of in flows] == [
        [number < there for number in range(3)] for there in (1, 2, 2, 2, 3, 3, 2)
    ]
    for row, rates in zip(rows, flows, strict=True):
        # No more than the link carries, and each flow has some of it.
        assert 10 < sum(rate or 0 for rate in rates) < 20 * 1448 / 1514 * 1.1
        assert row["link_use"] > 0.5
        assert min(rate for rate in rates if rate is not None) > 0.5
    # Who is degraded has less than the other, by its sender's link: to a fifth, and to three tenths.
    assert flows[2][1] < 0.6 * flows[2][0]
    assert flows[3][0] < 0.7 * flows[3][1]
    assert wait_for(lambda: namespaces() <= spaces and held(os.getpid()) <= kept)
    assert left() == before
