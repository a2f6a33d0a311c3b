"""Pacing between real hosts: sockets are paced at the rate that the switch tells."""

from __future__ import annotations

from functools import partial

import pytest

from live import needs_agents, needs_iperf3, needs_namespaces, undisturbed
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.experiments.htb import HtbAgent
from tidegate.systems.pacing.format import Keys
from tidegate.systems.pacing.setup import pacing

GIVEN = 50e6 * 0.9975 * 1448 / 1514
"""Payload of what a link of 50 Mbit/s gives away, in bit/s."""


KEYS = Keys((0x0123456789ABCDEF, 0xFEDCBA9876543210), signing=1)


def told(by: type[PacingAgent] = PacingAgent) -> Result:
    """Two flows, one after the other; each is told its share. Options carry checks."""
    network = Network()
    switch = pacing(network, "switch", keys=KEYS)
    server = network.host("server")
    link = network.link(switch, server, rate="50 Mbit/s", delay="5 ms", queue="100 packets")
    agents = []
    for number in range(2):
        host = network.host(f"host{number}")
        network.link(host, switch, rate="1 Gbit/s", delay="10 us")
        agents.append(by(keys=KEYS))
        network.agent(host, agents[-1])
        network.tcp(host, server, start=f"{1.5 * number} s")
    network.record("100 ms", queues=[link])
    result = network.run("4 s", backend="live")
    # Where the machine stalls, a queue stands, and 1.6 % are kept back until it has drained.
    assert [agent.changes[-1][2] for agent in agents] == pytest.approx([GIVEN / 2] * 2, rel=0.02)
    assert agents[0].changes[0][2] == pytest.approx(GIVEN, rel=0.02)
    # Each flow's join is told to all.
    assert [agent.counts["trace"] for agent in agents] == [1, 1]
    assert agents[0].counts["notice"] >= 2
    assert agents[1].counts["notice"] >= 1
    return result


@needs_namespaces
@needs_iperf3
@needs_agents
@pytest.mark.parametrize("by", [PacingAgent, HtbAgent])
def test_real_hosts_are_paced(by: type[PacingAgent]) -> None:
    # What is not sent while the machine stalls is not made up for: a pacing rate is a limit.
    samples = undisturbed(partial(told, by), late_ms=2).flow_samples
    for flow in range(2):
        own = samples.filter((samples["flow"] == flow) & (samples["time_s"] > 2.5)).sort("time_s")
        spent = own["time_s"][-1] - own["time_s"][0]
        rate = 8 * (own["bytes_received"][-1] - own["bytes_received"][0]) / spent
        assert rate == pytest.approx(GIVEN / 2, rel=0.05)


@needs_namespaces
@needs_iperf3
@needs_agents
def test_the_class_of_htb_has_what_the_switch_gives() -> None:
    network = Network()
    switch, server = pacing(network, "switch"), network.host("server")
    network.link(switch, server, rate="50 Mbit/s", delay="5 ms", queue="100 packets")
    agents = [HtbAgent(), HtbAgent()]
    for number, agent in enumerate(agents):
        host = network.host(f"host{number}")
        network.link(host, switch, rate="1 Gbit/s", delay="10 us")
        network.agent(host, agent)
        network.tcp(host, server, start=f"{number} s")
    seen: list[list[int]] = []
    for when in ("800 ms", "1900 ms"):
        network.at(when, lambda: seen.append([agent.class_rate() for agent in agents[: len(seen) + 1]]))
    network.run("2 s", backend="live")
    # Bytes of frames in a second. Where the machine stalls, the switch drains a queue: 1.6 % less.
    given = 50e6 * 0.9975 / 8
    assert seen == [[pytest.approx(given, rel=0.02)], [pytest.approx(given / 2, rel=0.02)] * 2]
