"""Stamps between real hosts: they are exact, and the BPF congestion control `stamp` follows them as the simulated one does."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from pyroute2.ethtool.ioctl import IoctlEthtool
from scapy.utils import RawPcapReader

from live import (
    Disturbed,
    again_if_disturbed,
    has_ended,
    held,
    is_there,
    namespaces,
    needs_agents,
    needs_iperf3,
    needs_namespaces,
    spaces_of,
    untimed,
    wait_for,
    watched,
)
from tidegate import TidegateError
from tidegate.hosts import controls
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.controls import Control, Controls
from tidegate.hosts.shims import Echo, Insert, Signal
from tidegate.hosts.stamp import DEFAULTS
from tidegate.lab import kernel, names
from tidegate.lab.interfaces import HOST_INTERFACE
from tidegate.lab.plan import plan
from tidegate.network import Link, Network, Node
from tidegate.results import jain
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.model import find
from tidegate.systems.stamping.setup import stamping
from tidegate.systems.stamping.test_stamps import Lab

pytestmark = [
    needs_agents,
    pytest.mark.skipif(
        bool(kernel.congestion_controls(["stamp"])), reason="this kernel has a stamp of its own"
    ),
]

FORM = Format("32 ms", 8, bins="log", mantissa=5)
LINE = "1 Gbit/s"
WARM_UP_S = 0.5
GAIN = float(DEFAULTS["gain"])


class Host(Agent):
    shims = (Insert(FORM.option, FORM.blank), Echo(FORM.option, FORM.echo, keep="max"), Signal(FORM.echo))


def star(rate: str, rtt_ms: float, **options: Any) -> tuple[Network, Link, Callable[..., Node]]:
    """Hosts around a stamping switch: the network, the link to the receiver, and what adds a sender of a `stamp` flow."""
    net = Network()
    switch = stamping(net, "s", FORM)
    target = net.host("b")
    delay = f"{round(rtt_ms * 250)} us"
    last = net.link(switch, target, rate=rate, delay=delay, queue="500 packets")
    net.agent(target, Host())
    net.record("10 ms", last)
    parameters: dict[str, object] = {
        **FORM.control_options,
        "line_rate": LINE,
        "base_rtt": f"{rtt_ms} ms",
        "min_rate": "1 Mbit/s",
        "min_cwnd": 2,
    }

    def sender(name: str, control: str = "stamp", **more: Any) -> Node:
        host = net.host(name)
        net.link(host, switch, rate=LINE, delay=delay)
        net.agent(host, Host())
        told = {"control_options": parameters} if control == "stamp" else {}
        net.tcp(host, target, congestion_control=control, **told, **options, **more)
        return host

    return net, last, sender


class Merging(Agent):
    """Has the kernel of a receiver merge what it can of the packets that come, as it does by itself outside the lab."""

    merges = False

    def on_open(self, now: int, connection: Connection) -> None:
        with connection.in_namespace():
            interface = IoctlEthtool(HOST_INTERFACE)
            interface.set_offload_flag("generic-receive-offload", True)
            self.merges = dict(interface.get_offload_flags())["generic-receive-offload"]
            interface.close()


@needs_namespaces
@pytest.mark.parametrize("merging", [False, True], ids=["", "GRO"])
@again_if_disturbed
def test_the_receiver_reads_what_the_switches_recorded(merging: bool, tmp_path: Path) -> None:
    """With GRO as well: it merges no packets with IPv4 options, and so each stamp is read."""
    form = Format("65536 us", 16)
    lab = Lab(form, tmp_path, size="16 MB")
    merger = Merging()
    if merging:
        lab.net.agent(lab.net.nodes[1], merger)
    # 16 MB take 3.4 s.
    watched(lab.net.run("4500 ms", backend="live", progress=False))
    times = lab.times()
    arrived = lab.packets(3)
    assert len(arrived) > 10_000
    stamps = [lab.stamp(frame) for _, frame in arrived.values()]
    assert {stamp.hops for stamp in stamps} == {2}
    for key, stamp in zip(arrived, stamps, strict=True):
        longest = max(times[after][key] - times[after - 1][key] for after in (1, 3))
        # A code is a microsecond, of which the rest is cut.
        assert -1000 < stamp.code * 1000 - longest <= 0
    changes = [stamp for before, stamp in zip([None, *stamps], stamps, strict=False) if stamp != before]
    assert lab.receiver.told == changes
    assert merger.merges == merging
    # Each echo is a stamp of a data packet.
    assert len(lab.sender.told) > 1000
    assert set(lab.sender.told) <= set(changes)


@dataclass
class Measured:
    """A run after its start: shares of 1, milliseconds, Mbit/s."""

    utilisation: float
    queue_ms: float
    queue_p99_ms: float
    queue_max_ms: float
    rtt_ms: float
    goodput: pl.Series


def measured(
    net: Network, backend: str, until: str, since: float = WARM_UP_S, late_ms: float = 8
) -> Measured:
    result = net.run(until, backend=backend, progress=False)
    if backend == "live":
        watched(result, late_ms)
    late = pl.col("time_s") > since
    queue = result.queue_samples.filter(late & (pl.col("queue") == "s -> b"))
    spent = queue["time_s"][-1] - queue["time_s"][0]
    return Measured(
        (queue["busy_s"][-1] - queue["busy_s"][0]) / spent,
        queue["queue_delay_ms"].mean(),
        queue["queue_delay_ms"].quantile(0.99) or 0.0,
        queue["queue_delay_ms"].max(),
        result.flow_samples.filter(late)["srtt_ms"].mean(),
        result.goodput_mbps(since)["goodput_mbps"],
    )


def busy_as(simulated: Measured, live: Measured, rtt_ms: float) -> float:
    """The link is as busy as the simulated one but for what real hosts take of a round trip; gives that, in milliseconds.

    The window is that of the least round trip, so this share of the link is idle. What has stalled for so long comes at once and
    is a queue as long, for which the control falls by the share times its gain.
    """
    hosts = max(0.0, live.rtt_ms - live.queue_ms - (simulated.rtt_ms - simulated.queue_ms))
    if hosts > rtt_ms / 4:
        raise Disturbed(f"the hosts take {hosts:.2f} ms of a round trip of {rtt_ms} ms")
    assert live.utilisation > simulated.utilisation - 0.02 - (1 + GAIN) * hosts / rtt_ms
    return hosts


ONE_FLOW = "2 s"
"""After the start, 150 samples of a queue. In a longer run the machine is more likely to stall once."""


def one_flow(backend: str, rate: str, rtt_ms: int, until: str, control: str = "stamp") -> Measured:
    net, _, sender = star(rate, rtt_ms, segmentation_offload=None)
    sender("a", control)
    return measured(net, backend, until)


@cache
def one_simulated(rate: str, rtt_ms: int) -> Measured:
    """The same each time: not run again when a live run is."""
    return one_flow("sim", rate, rtt_ms, ONE_FLOW)


@needs_namespaces
@needs_iperf3
@pytest.mark.parametrize("rtt_ms", [1, 5])
@pytest.mark.parametrize("rate", ["100 Mbit/s", "400 Mbit/s"])
@again_if_disturbed
def test_a_flow_keeps_the_queue_short_and_the_link_busy(rate: str, rtt_ms: int) -> None:
    simulated, live = one_simulated(rate, rtt_ms), one_flow("live", rate, rtt_ms, ONE_FLOW)
    assert simulated.utilisation > 0.99
    try:
        hosts = busy_as(simulated, live, rtt_ms)
        # The set point is 0.08 base round trips, and more for the additive step; what stalls for `hosts` comes at once.
        assert live.queue_ms < simulated.queue_ms + 0.1 * rtt_ms + hosts
        assert live.queue_p99_ms < simulated.queue_p99_ms + rtt_ms
    except AssertionError as error:
        # It is not the stamps if CUBIC does not fill the link either.
        if one_flow("live", rate, rtt_ms, ONE_FLOW, "cubic").utilisation < 0.97:
            raise Disturbed(f"the machine does not carry {rate}") from error
        raise


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_two_flows_share_as_simulated_ones(tmp_path: Path) -> None:
    def run(backend: str) -> Measured:
        net, _, sender = star("100 Mbit/s", 5, segmentation_offload=None)
        sender("a1")
        sender("a2", start="500 ms")
        return measured(net, backend, "5 s", 2.0)

    simulated, live = run("sim"), run("live")
    assert jain(simulated.goodput) > 0.98
    assert jain(live.goodput) > 0.95
    assert live.queue_p99_ms < 5
    busy_as(simulated, live, 5)


@needs_namespaces
@needs_iperf3
@pytest.mark.parametrize("signal", ["rtt", "stamp"])
@again_if_disturbed
def test_timely_follows_the_rtt_or_stamps_as_the_simulated_one(signal: str) -> None:
    """Round trips of 20 ms, of which hosts take little, and thresholds of 30 and 100 ms."""
    options: dict[str, object] = {
        "step": "ack",
        "send": "window",
        "scaled": "yes",
        "most_cut": 0.5,
        "thresholds": "fixed",
        "t_low": "30 ms",
        "t_high": "100 ms",
        "delta": "500 kbit/s",
        "alpha": 0.3,
        "beta": 0.6,
        "start_rate": "5 Mbit/s",
        "raw_falls": "yes",
        "signal": signal,
        **(FORM.control_options if signal == "stamp" else {}),
    }

    def run(backend: str) -> Measured:
        net, _, sender = star("20 Mbit/s", 20, segmentation_offload=None)
        for name in ("a1", "a2"):
            sender(name, "timely", control_options=options)
        # It falls by up to half where an RTT rises by a few milliseconds, as behind a packet that left late.
        return measured(net, backend, "6 s", 2.0, late_ms=1)

    simulated, live = run("sim"), run("live")
    # T_low is no set point: to 60 and 150 ms the queue grows in seconds between falls. Its mean is as chance has them.
    assert live.queue_max_ms == pytest.approx(simulated.queue_max_ms, rel=0.25)
    assert live.utilisation == pytest.approx(simulated.utilisation, abs=0.04)
    assert live.goodput.sum() == pytest.approx(simulated.goodput.sum(), rel=0.04)
    assert jain(live.goodput) > 0.95


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_with_segmentation_offload_each_frame_has_its_own_stamp(tmp_path: Path) -> None:
    net, last, sender = star("100 Mbit/s", 5)
    sender("a")
    file = tmp_path / "b.pcap"
    net.capture(last, net.nodes[1], file)
    found = measured(net, "live", "2 s")
    frames = [frame for frame, _ in RawPcapReader(str(file))]
    places = [(frame, find(FORM, frame)) for frame in frames]
    codes = [FORM.read(frame[at : at + FORM.size]) for frame, at in places if isinstance(at, int)]
    assert len(codes) > 5000
    assert {stamp.hops for stamp in codes} == {1}
    # Of frames that leave their host at once, each waits for those before it.
    assert sum(one != other for one, other in itertools.pairwise(codes)) > len(codes) / 10
    assert found.queue_p99_ms < 5


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_without_stamps_losses_alone_say_what_there_is(tmp_path: Path) -> None:
    def run(backend: str) -> Measured:
        net = Network()
        a, b, router = net.host("a"), net.host("b"), net.router("s")
        net.link(a, router, rate=LINE, delay="1 ms")
        net.record("10 ms", net.link(router, b, rate="50 Mbit/s", delay="4 ms", queue="60 packets"))
        options = {"line_rate": "100 Mbit/s", "base_rtt": "10 ms", "min_rate": "1 Mbit/s"}
        net.tcp(a, b, congestion_control="stamp", control_options=options, segmentation_offload=None)
        return measured(net, backend, "4 s", 1.0)

    simulated, live = run("sim"), run("live")
    # As Reno: it fills the queue, and halves.
    assert live.queue_p99_ms > 8
    assert live.utilisation > min(0.9, simulated.utilisation - 0.1)


@needs_namespaces
@untimed
def test_each_set_of_parameters_is_a_control_of_its_own() -> None:
    asked = [Control("stamp"), Control("stamp", (("gain", "0.5"),)), Control("cubic")]
    with Controls(asked) as both:
        assert both.problems == {}
        assert set(both.names) == set(asked[:2])
        called = set(both.names.values())
        assert len(called) == 2
        assert called <= controls_of_kernel()
    assert wait_for(lambda: not called & controls_of_kernel())


@pytest.mark.parametrize(
    ("control", "options", "why"),
    [
        ("stamp", {"stamp_entry": "2"}, r"the stamp of real hosts: stamp_entry: it reads one value"),
        ("stamp", {"line_rate": "400 Gbit/s"}, r"the stamp of real hosts: line_rate: .* up to 100 Gbit/s"),
        (
            "timely",
            {"stamp_back_kind": "30"},
            r"the timely of real hosts: stamp_back_kind: it reads the echo",
        ),
        ("powertcp", {"gamma": "0.5"}, "this kernel does not have the congestion control powertcp"),
    ],
)
def test_what_it_cannot_do_is_said_once(control: str, options: dict[str, str], why: str) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="1 ms")
    net.tcp(a, b, congestion_control=control, control_options=options)
    with pytest.raises(TidegateError) as error:
        plan(net, 1)
    (_, *said) = str(error.value).splitlines()
    assert len(said) == 1
    assert re.search(why, said[0])
    assert not list(controls.refusals(Control("cubic")))


LOAD = """
from test_live_stamp import star
net, _, sender = star("100 Mbit/s", 1)
sender("a1")
sender("a2", size="1 GB")
net.at("300 ms", lambda: print("there", flush=True))
net.run("60 s", backend="live", progress=False)
"""


def controls_of_kernel() -> set[str]:
    return set(kernel.known_congestion_controls().split(", "))


def descendants(pid: int) -> list[int]:
    """A process and all that it has started."""
    parents = {}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            parents[int(folder.name)] = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
    found = [pid]
    for one in found:
        found += [child for child, parent in parents.items() if parent == one]
    return found


@needs_namespaces
@untimed
@needs_iperf3
@pytest.mark.parametrize("what", ["everything", "its owner", "its owner, politely"])
def test_nothing_is_left_of_a_lab_that_is_killed(what: str) -> None:
    folder = str(Path(__file__).parent)
    links, registered = set(os.listdir("/sys/class/net")), controls_of_kernel()
    one = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True, cwd=folder)
    assert one.stdout is not None
    assert one.stdout.readline() == "there\n"
    # Beside it others make namespaces of their own.
    things, came = held(one.pid), spaces_of(one.pid)
    # Six functions of the congestion control; those of the agents, and the maps of both. Three hosts and the switch.
    assert len([kind for kind, _ in things if kind == "prog"]) >= 10
    assert all(is_there(*thing) for thing in things)
    assert len(came) == 4
    known = controls_of_kernel() - registered
    assert {name[:6] for name in known} == {"stamp_"}
    victims = descendants(one.pid) if what == "everything" else [one.pid]
    for victim in victims:
        with suppress(ProcessLookupError):
            os.kill(victim, signal.SIGTERM if what.endswith("politely") else signal.SIGKILL)
    one.communicate(timeout=60)
    # Links, qdiscs and programs at interfaces are in the namespaces.
    assert wait_for(lambda: not namespaces() & came)
    assert wait_for(lambda: not any(is_there(*thing) for thing in things))
    assert not known & controls_of_kernel()
    assert set(os.listdir("/sys/class/net")) == links
    # Without a keeper, the names go with the next lab.
    names.remove_dead()
    # What was killed ends in its own time.
    assert wait_for(lambda: has_ended(one.pid, came))
