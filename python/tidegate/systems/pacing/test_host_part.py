"""The part on hosts, where not all goes well: options that are dropped, switches that forget, applications that send little."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.network import Network
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.controller import PacingController
from tidegate.systems.pacing.experiments.star import Star
from tidegate.systems.pacing.setup import paced, pacing

DROPS_OPTIONS = """
#include <core.p4>
#include <v1model.p4>
header ethernet_t { bit<96> addresses; bit<16> ether_type; }
header ipv4_t { bit<4> version; bit<4> ihl; }
struct headers_t { ethernet_t ethernet; ipv4_t ipv4; }
struct metadata_t { }
parser P(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(h.ethernet); p.extract(h.ipv4); transition accept; }
}
control V(inout headers_t h, inout metadata_t m) { apply { } }
control I(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    counter(1, CounterType.packets) dropped;
    apply {
        s.egress_spec = s.ingress_port ^ 1;
        if (h.ipv4.ihl != 5) { dropped.count(0); mark_to_drop(s); }
    }
}
control E(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) { apply { } }
control C(inout headers_t h, inout metadata_t m) { apply { } }
control D(packet_out p, in headers_t h) { apply { p.emit(h.ethernet); p.emit(h.ipv4); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""


class At(Controller):
    """Does something to a switch at a time, in seconds."""

    def __init__(self, at_s: float, act: Callable[[SwitchApi], object]) -> None:
        self.period = f"{round(at_s * 1000)} ms"
        self._act: Callable[[SwitchApi], object] | None = act

    def tick(self, now: int, switch: SwitchApi) -> None:
        if self._act is not None:
            self._act(switch)
        self._act = None


def test_where_options_are_dropped_flows_connect(tmp_path: Path) -> None:
    program = tmp_path / "drops.p4"
    program.write_text(DROPS_OPTIONS)
    network = Network()
    host, server = network.host("host"), network.host("server")
    firewall, switch = network.switch("firewall", program), pacing(network, "switch")
    network.link(host, firewall, rate="1 Gbit/s", delay="1 ms")
    network.link(firewall, switch, rate="1 Gbit/s", delay="1 ms")
    network.link(switch, server, rate="100 Mbit/s", delay="1 ms", queue="64 packets")
    agent = paced(network, host)
    network.tcp(host, server)
    dropped: list[Any] = []
    network.control(At(2.9, lambda api: dropped.append(api.counter_read("dropped", 0))), firewall)
    result = network.run("3 s")
    # After the first SYN's timeout of a second, and asking in vain.
    assert 1.0 < agent.established[0] < 1.1
    assert agent.counts == {"asked": 2}
    assert agent.changes == []
    assert dropped[0][0][0] == 3
    assert result.flows["bytes_received"][0] > 1.5 * 100e6 / 8


def test_a_flow_whose_marked_syn_was_lost_asks_and_is_paced() -> None:
    star = Star(100.0, 10.0)
    star.flow(star.host(), 0.1)
    star.access[0].set(0, loss=1.0, direction="forward")
    star.access[0].set("500 ms", loss=0.0)
    star.network.run("2 s")
    (agent,) = star.agents
    assert agent.established[0] > 1.0
    # After one lost SYN Linux sends ten packets at once: before the first notice is answered each one brings a notice.
    assert (agent.counts["asked"], agent.counts["trace"], agent.counts["notice"]) == (1, 0, 10)
    # A round trip to the switch after the handshake.
    set_at, _, rate = agent.changes[0]
    assert 0 < set_at - agent.established[0] < 0.001
    assert rate == pytest.approx(star.given_mbps * 1e6, rel=0.002)


def test_what_an_application_leaves_is_given_to_others() -> None:
    star = Star(100.0, 30.0)
    # 64 kB each round trip.
    star.flow(star.host(), receive_buffer_max="128 kB")
    star.flow(star.host())
    lender, borrower = star.agents
    result = star.network.run("6 s")
    rates = star.rates(result, 4.0, 6.0)
    assert rates[0] < 30
    assert lender.counts["asked"] >= 1
    # What is kept for it is a quarter more than it takes.
    assert sum(rates) == pytest.approx(star.given_mbps, rel=0.1)
    assert rates[1] == pytest.approx(star.given_mbps - 1.25 * rates[0], rel=0.03)
    assert borrower.counts["asked"] == 0


def test_the_share_of_an_application_that_sends_nothing_is_given_to_others() -> None:
    star = Star(100.0, 10.0)
    star.flow(star.host())
    star.network.page(star.host(), star.server, objects=3, think="5 s", response="10 kB")
    result = star.network.run("4 s")
    # Except 16 kbit/s.
    assert star.rates(result, 2.0, 4.0)[0] == pytest.approx(star.given_mbps - 0.016, rel=0.001)
    at, _, _ = star.agents[0].changes[-1]
    assert 1.0 < at < 2.0


def test_an_application_that_takes_more_again_gets_it() -> None:
    star = Star(100.0, 10.0)
    star.flow(star.host())
    star.flow(star.host())
    # What comes back for the first flow is slow for a while.
    star.access[0].set("1 s", rate="20 Mbit/s", direction="forward")
    star.access[0].set("4 s", rate="1 Gbit/s", direction="forward")
    result = star.network.run("8 s")
    assert star.rates(result, 3.0, 4.0)[1] > 1.3 * star.given_mbps / 2
    assert star.rates(result, 6.5, 8.0) == pytest.approx([star.given_mbps / 2] * 2, rel=0.01)


def test_an_agent_that_does_not_lend_keeps_its_share() -> None:
    star = Star(100.0, 30.0)
    star.flow(star.host(lends=False), receive_buffer_max="128 kB")
    star.flow(star.host())
    result = star.network.run("4 s")
    assert star.rates(result, 2.0, 4.0)[1] == pytest.approx(star.given_mbps / 2, rel=0.005)


def test_a_switch_that_is_silent_for_long_limits_nobody() -> None:
    star = Star(100.0, 4.0, 200)
    for _ in range(2):
        star.flow(star.host(refresh="1 s", timeout="3 s"))
    # It manages no link any more.
    star.network.control(At(3.2, lambda api: api.register_write("capacity", [0], 0)), star.switch)
    result = star.network.run("9 s")
    for agent in star.agents:
        assert agent.counts["silent"] == 1
        at, _, rate = agent.changes[-1]
        assert rate == 0
        # A question after a refresh at the latest, and the timeout; ticks of half a second.
        assert 5.7 < at < 7.8
        assert len(agent.changes) == 3
    assert sum(star.rates(result, 8.0, 9.0)) > star.given_mbps


@pytest.mark.parametrize("flows", [1, 4])
def test_a_switch_that_is_restarted_learns_its_flows(flows: int) -> None:
    star = Star(100.0, 4.0, 200)
    for number in range(flows):
        star.flow(star.host(refresh="500 ms", timeout="3 s"), 0.05 * number)
    network = star.network
    controller = next(known for known, _ in network.controllers if isinstance(known, PacingController))
    members: list[int] = []

    def count(api: SwitchApi) -> None:
        members.append(controller.members(api, 0).flows)

    def restart(api: SwitchApi) -> None:
        api.state_reset()
        controller.start(api)
        count(api)

    network.control(At(1.2, restart), star.switch)
    network.control(At(3.9, count), star.switch)
    result = network.run("4 s")
    assert members == [0, flows]
    assert sum(agent.counts["silent"] for agent in star.agents) == 0
    assert star.rates(result, 3.0, 4.0) == pytest.approx([star.given_mbps / flows] * flows, rel=0.01)


@pytest.mark.parametrize("before", [100, 200])
@pytest.mark.parametrize("by_host", [False, True])
def test_a_restarted_switch_that_gives_another_rate_is_believed(before: int, by_host: bool) -> None:
    """It counts its changes from 0 again: from 128 changes before, that looks like the past."""
    star = Star(100.0, 4.0, 200)
    host = star.host(refresh="500 ms", timeout="3 s")
    for number in range(2):
        star.flow(host, 0.05 * number)
    network = star.network
    controller = next(known for known, _ in network.controllers if isinstance(known, PacingController))

    def start(api: SwitchApi) -> None:
        api.register_write("tell_by_host", [int(by_host)], 0)
        api.register_write("epoch", [before], 0)

    def restart(api: SwitchApi) -> None:
        api.state_reset()
        controller.start(api)
        api.register_write("tell_by_host", [int(by_host)], 0)
        (capacity,) = api.register_read("capacity", 0, 1)
        api.register_write("capacity", [int(capacity) // 2], 0)

    network.control(At(0.001, start), star.switch)
    network.control(At(1.2, restart), star.switch)
    result = network.run("6 s")
    (agent,) = star.agents
    assert agent.counts["silent"] == 0
    assert star.rates(result, 0.5, 1.0) == pytest.approx([star.given_mbps / 2] * 2, rel=0.02)
    assert star.rates(result, 5.0, 6.0) == pytest.approx([star.given_mbps / 4] * 2, rel=0.02)
    # Until a question has had no answer for 2 s, it is not believed.
    assert (agent.counts["stale"] > 0) == (before == 100)


@pytest.mark.parametrize(("refresh", "timeout"), [("0 s", "1 s"), ("2 s", "1 s")])
def test_times_that_make_no_sense_are_refused(refresh: str, timeout: str) -> None:
    with pytest.raises(TidegateError, match="give a refresh above 0 and at most the timeout"):
        PacingAgent(refresh=refresh, timeout=timeout)
