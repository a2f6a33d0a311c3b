"""Agents of real hosts: what they refuse, what a congestion control gets of them, what is left of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import polars as pl
import pytest

from live import (
    again_if_disturbed,
    has_ended,
    held,
    is_there,
    labs_of,
    missing_parts,
    needs_agents,
    needs_iperf3,
    needs_namespaces,
    untimed,
    wait_for,
    watched,
    without,
)
from tidegate import TidegateError
from tidegate.hosts import controls, real_agents
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Insert, Option, Report, Shim, Signal
from tidegate.lab import kernel
from tidegate.lab.plan import plan
from tidegate.network import Network, Node

MARK = Option("tcp", 253)


def agent_of(*shims: Shim) -> Agent:
    agent = Agent()
    agent.shims = shims
    return agent


def pair(**link: object) -> tuple[Network, Node, Node]:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, **({"rate": "20 Mbit/s", "delay": "5 ms", "queue": "100 packets"} | link))
    return net, a, b


@pytest.mark.parametrize(
    ("shims", "why"),
    [
        ([Report(MARK)] * 17, "the agents of a have 17 shims; a real host has room for 16"),
        ([Insert(MARK, b"\1")], "an agent of a: Linux writes TCP option 253 with at least 2 bytes"),
        (
            [Report(Option("shim", 0x88B5))],
            "an agent of a has a shim between Ethernet and IP; real hosts have IPv4 and TCP options only",
        ),
        (
            [Insert(MARK, b"\1\2"), Insert(MARK, b"\1\2", on=("syn", "data"))],
            "agents of a: two shims write TCP option 253 on `data` packets",
        ),
        (
            [Insert(Option("ip", 30), bytes(10), on=("udp",))],
            "udp a -> b: datagrams of 1472 bytes leave no room for 12 bytes .* at most 1460 bytes",
        ),
    ],
)
def test_what_a_real_host_cannot_do_is_refused(shims: list[Shim], why: str) -> None:
    net, a, b = pair()
    for shim in shims:
        net.agent(a, agent_of(shim))
    net.udp(a, b, rate="1 Mbit/s", payload=1472)
    with pytest.raises(TidegateError) as error:
        plan(net, 1)
    assert re.search(why, str(error.value))


@needs_namespaces
@untimed
@missing_parts
def test_what_is_missing_is_said(what: str, value: object, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    net, a, b = pair()
    net.agent(a, Agent())
    net.agent(b, Agent())
    net.tcp(a, b, size="10 kB")
    with without(what, value, monkeypatch), pytest.raises(TidegateError) as error:
        net.run("1 s", backend="live", progress=False)
    assert re.search(rf"a, b: no agents of real hosts: {why}", str(error.value))


SIGNALLED = Path(__file__).parent / "data/signalled.c"
WINDOW = 7


@needs_namespaces
@needs_agents
@needs_iperf3
@pytest.mark.skipif(bool(kernel.congestion_controls(["dctcp"])), reason="this kernel has a dctcp of its own")
@again_if_disturbed
def test_a_congestion_control_gets_what_signal_hands_it(monkeypatch: pytest.MonkeyPatch) -> None:
    # In the place of one that this kernel lacks.
    monkeypatch.setitem(controls.SOURCES, "dctcp", SIGNALLED)
    net, a, b = pair(queue="1000 packets")
    net.agent(a, agent_of(Signal(MARK)))
    net.agent(b, agent_of(Insert(MARK, WINDOW.to_bytes(2), on=("ack",))))
    net.tcp(a, b, congestion_control="dctcp")
    net.record("100 ms")
    result = watched(net.run("2 s", backend="live", progress=False))
    settled = result.flow_samples.filter(pl.col("time_s") > 0.5)
    assert set(settled["cwnd_packets"]) == {WINDOW}
    # A window per round trip, which is 10 ms and what the hosts take of it.
    round_trip = settled["srtt_ms"].mean()
    assert 10 < round_trip < 15
    assert result.goodput_mbps(0.5)["goodput_mbps"][0] == pytest.approx(
        WINDOW * 1436 * 8e-3 / round_trip, rel=0.1
    )


@needs_namespaces
@untimed
@needs_agents
def test_news_that_python_is_too_slow_for_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(real_agents, "RING_BYTES", 4096)
    net, a, b = pair()

    class Slow(Agent):
        shims = (Report(MARK),)
        reports = 0

        def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
            self.reports += 1
            if self.reports == 10:
                time.sleep(0.3)

    slow = Slow()
    net.agent(a, agent_of(Insert(MARK, clock=True)))
    net.agent(b, slow)
    net.tcp(a, b, size="1 MB")
    result = net.run("2 s", backend="live", progress=False)
    (told,) = (warning for warning in result.warnings if "agents of hosts" in warning)
    lost = int(re.search(r"too slow for (\d+) of the reports", told)[1])  # type: ignore[index]
    # A stamp on each packet; few are lost in the network.
    assert lost > 100
    assert slow.reports + lost >= 1_000_000 // 1440


class Failing(Agent):
    shims = (Insert(MARK, bytes(2)),)

    def on_established(self, now: int, connection: Connection) -> None:
        raise RuntimeError("on purpose")


def left() -> tuple[object, ...]:
    """What a run could leave behind in this process and on this machine."""
    mounts = Path("/proc/self/mountinfo").read_text()
    lines = [line.split() for line in mounts.splitlines()]
    folders = {
        folder for _, _, _, _, mount, *rest in lines if "cgroup2" in rest for folder, _, _ in os.walk(mount)
    }
    return held(os.getpid()), len(os.listdir("/proc/self/fd")), mounts, folders, labs_of(os.getpid())


# Alone, as it looks at the whole machine.
@needs_namespaces
@needs_agents
@pytest.mark.parametrize("agent", [agent_of(Insert(MARK, bytes(2)), Report(MARK)), Failing()])
def test_nothing_is_left_of_a_run(agent: Agent) -> None:
    def run() -> None:
        net, a, b = pair()
        net.agent(a, agent)
        net.tcp(a, b, size="10 kB")
        if isinstance(agent, Failing):
            with pytest.raises(RuntimeError, match="on purpose"):
                net.run("1 s", backend="live", progress=False)
        else:
            net.run("300 ms", backend="live", progress=False)

    # The first run loads libraries, which stay.
    run()
    before = left()
    run()
    assert left() == before


ONE_OF_TWO = """
import sys
from tidegate.hosts.agents import Agent
from tidegate.hosts.shims import Insert, Option, Report
from tidegate.network import Network

MARK = Option("tcp", 253)
seen = set()

class Sender(Agent):
    shims = (Insert(MARK, sys.argv[1].encode()),)

class Receiver(Agent):
    shims = (Report(MARK),)
    def on_report(self, now, connection, kind, data):
        seen.add(data.decode())

net = Network()
a, b = net.host("a"), net.host("b")
net.link(a, b, rate="10 Mbit/s", delay="1 ms")
net.agent(a, Sender())
net.agent(b, Receiver())
net.tcp(a, b, size="10 MB")
net.run("2 s", backend="live", progress=False)
print(*seen)
"""


@needs_namespaces
@untimed
@needs_agents
def test_two_labs_at_once_have_their_own_shims() -> None:
    # Their hosts have the same addresses and ports, and their processes one cgroup.
    both = [
        subprocess.Popen([sys.executable, "-c", ONE_OF_TWO, name], stdout=subprocess.PIPE, text=True)
        for name in ("one", "other")
    ]
    assert [one.communicate(timeout=60)[0] for one in both] == ["one\n", "other\n"]


LOAD = """
from tidegate.hosts.agents import Agent
from tidegate.hosts.shims import Insert, Option, Report
from tidegate.network import Network

class Both(Agent):
    shims = (Insert(Option("tcp", 253), bytes(2)), Insert(Option("ip", 30), clock=True), Report(Option("tcp", 253)))
    def on_established(self, now, connection):
        connection.pace("5 Mbit/s")

net = Network()
a, b, r = net.host("a"), net.host("b"), net.router("r")
net.link(a, r, rate="1 Gbit/s", delay="100 us")
net.link(b, r, rate="1 Gbit/s", delay="100 us")
net.agent(a, Both())
net.agent(b, Both())
net.tcp(a, b, size="1 GB")
net.at("300 ms", lambda: print("there", flush=True))
net.run("60 s", backend="live", progress=False)
"""


# Alone, as it looks at the whole machine.
@needs_namespaces
@needs_agents
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_process_that_is_killed(how: signal.Signals) -> None:
    before = left()
    one = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
    assert one.stdout is not None
    assert one.stdout.readline() == "there\n"
    things = held(one.pid)
    # Two programs at interfaces, one for sockets, the iterator; the maps.
    assert len([kind for kind, _ in things if kind == "prog"]) >= 4
    assert all(is_there(*thing) for thing in things)
    one.send_signal(how)
    one.communicate(timeout=60)
    assert wait_for(lambda: has_ended(one.pid, set()))
    assert wait_for(lambda: not any(is_there(*thing) for thing in things))
    assert left() == before
