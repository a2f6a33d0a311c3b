"""A change is told to each host once, whatever the number of its flows, until the host has said that it knows. Packets as bytes."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Literal

import pytest

from tidegate.network import Network
from tidegate.systems.pacing.format import FOR_ALL, Keys, Kind, PacingOption
from tidegate.systems.pacing.setup import paced, pacing
from tidegate.systems.pacing.test_members import GIVEN, KEYS, LINK, Flow, Switch, said

Engine = Literal["interp", "jit"]
AGAIN_S = 0.11
"""After this a notice without an answer is sent again."""


@dataclass
class Rig:
    """A switch, flows, and who of them answers notices."""

    engine: Engine
    by_host: bool = True
    keys: Keys | None = None
    flows: dict[tuple[str, int], Flow] = field(default_factory=dict)
    silent: set[tuple[str, int]] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.switch = Switch(self.engine, self.keys)
        self.switch.api.register_write("tell_by_host", [int(self.by_host)], 0)

    def join(self, host: int, sport: int, weight: int = 1) -> Flow:
        flow = self.switch.flow(host, sport)
        flow.join(weight)
        self.flows[flow.address, sport] = flow
        return flow

    def walk(self, ticks: int = 3, after_s: float = 0.0002) -> list[tuple[str, int, PacingOption]]:
        """The notices of some ticks: address and port of their flows, and what they say. They are answered."""
        found = []
        for _ in range(ticks):
            for _, packet in self.switch.tick(after_s):
                option = said(packet)
                assert option is not None
                assert option.kind == Kind.NOTICE
                who = (packet["IP"].dst, packet["TCP"].dport)
                found.append((*who, option))
                if who not in self.silent:
                    self.answer(self.flows[who], option)
        return found

    def answer(self, flow: Flow, option: PacingOption) -> None:
        seen = PacingOption(Kind.SEEN, link=option.link, sequence=option.sequence, hops=option.hops)
        flow.out("A", flow.option(seen))


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("keys", [None, KEYS])
def test_a_change_is_told_to_each_host_once(engine: Engine, keys: Keys | None) -> None:
    rig = Rig(engine, keys=keys)
    for number in range(20):
        rig.join(0, 1000 + number)
    # Each is told by itself, once.
    first = rig.walk(5)
    assert Counter(option.hops for *_, option in first if option.hops == 0) == {0: 20}
    rig.walk(5)
    assert rig.walk(5) == []
    rig.join(1, 1)
    told = rig.walk(5)
    assert len(told) == 2
    of = {address: option for address, _, option in told}
    assert of["10.0.0.1"].hops == FOR_ALL
    assert of["10.0.0.2"].hops == 0
    for option in of.values():
        assert (option.link, option.weight) == (LINK, 21)
        assert option.rate == pytest.approx(GIVEN, rel=0.001)
    assert rig.walk(5, AGAIN_S) == []
    # The new one is its host's only flow: what it has been told its host knows.
    rig.flows["10.0.0.2", 1].out("FA")
    assert [(address, option.hops, option.weight) for address, _, option in rig.walk(5)] == [
        ("10.0.0.1", FOR_ALL, 20)
    ]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_each_flow_is_told_where_that_is_wished(engine: Engine) -> None:
    rig = Rig(engine, by_host=False)
    for number in range(20):
        rig.join(0, 1000 + number)
    rig.walk(5)
    rig.join(1, 1)
    told = rig.walk(5)
    assert Counter(option.hops for *_, option in told) == {0: 21}
    assert rig.walk(5, AGAIN_S) == []


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_another_flow_carries_the_notice_when_one_does_not_answer(engine: Engine) -> None:
    rig = Rig(engine)
    for number in range(3):
        rig.join(0, 1000 + number)
    rig.walk(5)
    rig.walk(5)
    rig.silent = {("10.0.0.1", port) for port in (1000, 1002)}
    rig.join(1, 1)
    carriers = []
    for _ in range(6):
        told = [
            (port, option.hops) for address, port, option in rig.walk(1, AGAIN_S) if address == "10.0.0.1"
        ]
        carriers += told
    # Nobody twice in a row, until the one that answers.
    assert carriers[-1] == (1001, FOR_ALL)
    assert 1 <= len(carriers) <= 3
    assert all(one != other for one, other in pairwise(carriers))


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_after_three_notices_in_vain_each_flow_is_told(engine: Engine) -> None:
    rig = Rig(engine)
    for number in range(3):
        rig.join(0, 1000 + number)
    rig.walk(5)
    rig.walk(5)
    everybody = {("10.0.0.1", port) for port in (1000, 1001, 1002)}
    rig.silent = set(everybody)
    rig.join(1, 1)
    for_all = 0
    while for_all < 3:
        told = [option.hops for address, _, option in rig.walk(1, AGAIN_S) if address == "10.0.0.1"]
        assert told in ([], [FOR_ALL])
        for_all += len(told)
    rig.silent = set()
    alone = [(address, port) for address, port, option in rig.walk(3, AGAIN_S) if option.hops == 0]
    assert set(alone) == everybody
    assert len(alone) == 3
    assert rig.walk(3, AGAIN_S) == []
    # The next change is told to the host again.
    rig.flows["10.0.0.2", 1].out("FA")
    assert [option.hops for *_, option in rig.walk(3)] == [FOR_ALL]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_flow_that_another_link_limits_is_told_by_itself(engine: Engine) -> None:
    rig = Rig(engine)
    for number in range(4):
        rig.join(0, 1000 + number)
    rig.walk(5)
    rig.walk(5)
    limited = rig.flows["10.0.0.1", 1002]
    limited.out("A", limited.option(PacingOption(Kind.UPDATE, rate=1000, link=LINK + 1)))
    rig.walk(5)
    rig.join(1, 1)
    told = [
        (port, option.hops, option.weight) for address, port, option in rig.walk(5) if address == "10.0.0.1"
    ]
    assert len(told) == 2
    # Its own weight counts in what it could have.
    assert (1002, 0, 5) in told
    assert [(hops, weight) for port, hops, weight in told if port != 1002] == [(FOR_ALL, 4)]


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_an_answer_to_one_flow_s_notice_is_none_for_the_host(engine: Engine) -> None:
    rig = Rig(engine)
    for number in range(3):
        rig.join(0, 1000 + number)
    rig.walk(5)
    rig.walk(5)
    rig.silent = set(rig.flows)
    rig.join(1, 1)
    (notice,) = [option for address, _, option in rig.walk(1) if address == "10.0.0.1"]
    flow = rig.flows["10.0.0.1", 1000]
    seen = PacingOption(Kind.SEEN, link=LINK, sequence=notice.sequence)
    flow.out("A", flow.option(seen))
    again = [option.hops for address, _, option in rig.walk(3, AGAIN_S) if address == "10.0.0.1"]
    assert FOR_ALL in again


def test_hosts_apply_a_notice_to_all_their_flows() -> None:
    network = Network()
    switch = pacing(network, "switch")
    server = network.host("server")
    network.link(switch, server, rate="100 Mbit/s", delay="5 ms", queue="100 packets")
    agents = []
    for name in ("one", "other"):
        host = network.host(name)
        network.link(host, switch, rate="1 Gbit/s", delay="10 us", queue="1000 packets")
        agents.append(paced(network, host))
        for number in range(12 if name == "one" else 1):
            network.tcp(host, server, start="0 s" if name == "one" else "1 s", label=f"{name}{number}")
    before: list[int] = []
    network.at("999 ms", lambda: before.append(agents[0].counts["notice"]))
    network.run("2 s")
    assert agents[0].counts["notice"] - before[0] == 1
    rates = {flow.connection.flow: flow.rate_kbps for agent in agents for flow in agent.flows.values()}
    assert list(rates.values()) == pytest.approx([99_750 / 13] * 13, rel=0.001)
    changed = [at for at, _, _ in agents[0].changes if at > 1]
    assert len(changed) == 12
    # A round trip after the other's SYN, with its handshake's ACK.
    assert 0 < max(changed) - agents[1].opened[12] < 0.011
