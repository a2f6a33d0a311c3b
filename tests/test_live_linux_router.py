"""Linux routers between real hosts: the kernel forwards, HTB has the queues, and what cannot be is refused."""

from __future__ import annotations

import socket
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scapy.utils import RawPcapReader

from live import Disturbed, again_if_disturbed, needs_iperf3, needs_namespaces, watched
from tidegate import TidegateError
from tidegate.backends.build import build
from tidegate.backends.common import changing
from tidegate.control import Port, Queue, Shaper
from tidegate.lab import routers
from tidegate.lab.plan import plan, router_plans
from tidegate.network import Link, Network, Node
from tidegate.results import Result
from tidegate.systems.separation.setup import program as some_program

FAST = {"rate": "10 Gbit/s", "delay": "10 us", "queue": "10000 packets"}
BY_WEIGHT = "deficit round robin"


def line(
    routers: int = 1, pairs: int = 2, rate: str = "100 Mbit/s"
) -> tuple[Network, list[Node], list[Link]]:
    """Hosts, a router, Linux routers in a row, a router, hosts; the link behind the last Linux router is the slow one."""
    net = Network()
    first, last = net.router("first"), net.router("last")
    inner = [net.router(f"r{number}", linux=True) for number in range(routers)]
    row = [first, *inner, last]
    links = [net.link(a, b, **FAST) for a, b in pairwise(row[:-1])]  # type: ignore[arg-type]
    links.append(net.link(inner[-1], last, rate=rate, delay="1 ms", queue="100 packets"))
    for number in range(pairs):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, first, **FAST)  # type: ignore[arg-type]
        net.link(last, b, rate="10 Gbit/s", delay="2 ms", queue="10000 packets")
    return net, inner, links


def mbps(result: Result, flow: int, begin_s: float, end_s: float) -> float:
    own = result.flow_samples.filter((pl.col("flow") == flow) & pl.col("time_s").is_between(begin_s, end_s))
    times, received = own["time_s"], own["bytes_received"]
    return float((received[-1] - received[0]) * 8e-6 / (times[-1] - times[0]))


def hosts_of(net: Network, letter: str) -> list[Node]:
    return [node for node in net.nodes if node.kind == "host" and node.name.startswith(letter)]


@needs_namespaces
@needs_iperf3
@pytest.mark.parametrize("routers", [1, 2])
@again_if_disturbed
def test_the_kernel_forwards_at_the_link_s_rate(routers: int, tmp_path: Path) -> None:
    net, inner, links = line(routers, pairs=1)
    (a,), (b,) = hosts_of(net, "a"), hosts_of(net, "b")
    net.tcp(a, b)
    net.record("50 ms")
    net.capture(links[0], net.nodes[0], tmp_path / "before.pcap", snap="100 B")
    net.capture(links[-1], net.nodes[1], tmp_path / "after.pcap", snap="100 B")
    result = watched(net.run("2 s", backend="live", progress=False))
    # What framing lets through is 95.64; its own queue of 100 packets is 12 ms, twice the round trip. Bytes behind a hole count when it
    # is filled: those of a round trip with the queue may have come before, and a millisecond is HTB's burst.
    assert 88 < mbps(result, 0, 0.5, 2) < 95.64 * (1 + (0.012 + 0.006 + 0.001) / 1.5)
    queueing = result.flow_samples.filter(pl.col("time_s") > 0.5)["srtt_ms"].mean()
    assert 8 < queueing < 22
    ttls = []
    for name in ("before", "after"):
        # Thousands of packets, of which two fields of the IPv4 header count.
        packets = [frame[14:34] for frame, _ in RawPcapReader(str(tmp_path / f"{name}.pcap"))]
        ttls.append({ip[8] for ip in packets if ip[16:20] == socket.inet_aton(net.address(b))})
    assert ttls == [{64}, {64 - routers}]
    assert {f"{one.name} eth{port}" for one in inner for port in (0, 1)} <= set(result.live["where"])


@needs_namespaces
@needs_iperf3
@pytest.mark.parametrize(
    ("mtu", "framing", "rate_mbps", "payload"),
    [(9000, 14, 300, 8972), (1500, 38, 20, 200), (1500, 0, 100, 1472)],
    ids=["jumbo frames", "small packets and long framing", "no framing"],
)
@again_if_disturbed
def test_what_waits_for_a_link_waits_in_the_kernel(
    mtu: int, framing: int, rate_mbps: int, payload: int
) -> None:
    """HTB has the rate of the link, whatever its MTU and framing: behind it are no more than its bursts."""
    net = Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r", linux=True)
    net.link(a, router, rate="10 Gbit/s", delay=0, mtu=mtu)
    link = net.link(
        router, b, rate=f"{rate_mbps} Mbit/s", delay=0, queue="50 packets", mtu=mtu, framing=framing
    )
    net.udp(a, b, rate=f"{rate_mbps * 1.3} Mbit/s", payload=payload)
    net.record("10 ms", queues=[link])
    # A millisecond or ten frames, as long as the machine keeps up; of a rate that is 0.8 % too high it were four times as much.
    burst = max(10 * (mtu + framing), rate_mbps * 125)
    result = watched(net.run("2 s", backend="live", progress=False))
    samples = result.queue_samples.filter(pl.col("queue") == "r -> b", pl.col("time_s") > 0.5)
    assert samples["stalled_s"].null_count() == len(samples) > 0
    sent, times = samples["sent_bytes"], samples["time_s"]
    assert (sent[-1] - sent[0]) * 8e-6 / (times[-1] - times[0]) == pytest.approx(rate_mbps, rel=0.03)
    most = samples["bytes"].max()
    # Packets that pile up while the lab is late stay in the queue, as they come at its rate.
    late_ms = result.live.row(by_predicate=pl.col("quantity") == "lateness_ms_max", named=True)["value"]
    if most >= 1.5 * burst and late_ms > 1:  # type: ignore[operator]
        raise Disturbed(f"the lab was late by {late_ms:.1f} ms")
    assert most < 1.5 * burst  # type: ignore[operator]


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_queues_by_class_are_htb_s(tmp_path: Path) -> None:
    """Weights, a flow's queue, a change during the run, and a cap: as in the simulator."""

    def run(backend: str) -> tuple[Result, list[int]]:
        net, (router,), links = line()
        flows = [net.tcp(a, b) for a, b in zip(hosts_of(net, "a"), hosts_of(net, "b"), strict=True)]
        first, second = (net.five_tuple(flow) for flow in flows)
        two = (Queue(packets=100), Queue(packets=100, weight=3))
        classes = net.classes(router, links[-1], Port(two, BY_WEIGHT))
        classes.assign([second], 1)
        net.record("50 ms")
        sent: list[int] = []

        def move() -> None:
            sent.extend(classes.queue(number).bytes for number in (0, 1))
            classes.assign([second], 0)
            classes.assign([first], 1)

        def cap() -> None:
            capped = (Queue(packets=100), Queue(packets=100, shaper=Shaper("20 Mbit/s", "15140 B")))
            classes.set(Port(capped, BY_WEIGHT))

        net.at("2 s", move)
        net.at("4 s", cap)
        return net.run("6 s", backend=backend, progress=False), sent

    simulated, _ = run("sim")
    live, sent = run("live")
    watched(live)
    for begin, end in ((0.7, 2.0), (2.7, 4.0), (4.7, 6.0)):
        for flow in (0, 1):
            expected = mbps(simulated, flow, begin, end)
            assert mbps(live, flow, begin, end) == pytest.approx(expected, rel=0.12), (flow, begin)
    assert 2 < sent[1] / sent[0] < 3.5
    assert mbps(live, 0, 4.7, 6.0) < 20


def test_next_hops_are_by_the_nearest_linux_router() -> None:
    net, _, _ = line(2, pairs=1)
    (a,), (b,) = hosts_of(net, "a"), hosts_of(net, "b")
    net.tcp(a, b, size="1 MB")
    hosts = {host.node.name: host for host in plan(net, 1)}
    one, two = router_plans(net)
    assert hosts["a0"].set_up.neighbours == ((net.address(b), one.set_up.ports[0].mac),)
    assert hosts["b0"].set_up.neighbours == ((net.address(a), two.set_up.ports[1].mac),)
    assert [port.name for port in one.set_up.ports] == ["eth0", "eth1"]
    assert one.set_up.ports[0].neighbours == ((net.address(a), net.mac(a)),)
    assert one.set_up.ports[1].neighbours == ((net.address(b), two.set_up.ports[0].mac),)
    assert two.set_up.ports[1].neighbours == ((net.address(b), net.mac(b)),)
    macs = [port.mac for router in (one, two) for port in router.set_up.ports]
    assert len(set(macs)) == 4


def test_interfaces_of_many_routers_and_links_have_addresses_of_their_own() -> None:
    net = Network()
    hub = net.router("hub", linux=True)
    for number in range(300):
        net.link(hub, net.router(f"r{number}", linux=True), rate="1 Gbit/s", delay=0)
    net.link(hub, net.host("a"), rate="1 Gbit/s", delay=0)
    macs = [port.mac for router in router_plans(net) for port in router.set_up.ports]
    macs += [host.set_up.mac for host in plan(net, 1)]
    assert all(len(bytes.fromhex(mac.replace(":", ""))) == 6 for mac in macs)
    assert len(set(macs)) == len(macs) == 301 + 300 + 1


def test_more_routers_or_links_than_interfaces_have_names_for_are_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    net, _, _ = line(2, pairs=1)
    monkeypatch.setattr(routers, "MOST_ROUTERS", 1)
    monkeypatch.setattr(routers, "MOST_LINKS", 1)
    with pytest.raises(TidegateError) as error:
        plan(net, 1)
    for why in (
        "it has 2 Linux routers; the lab has room for 1",
        "r1: it has 2 links; a Linux router has at most 1",
    ):
        assert why in str(error.value)


def aqm(net: Network, router: Node, link: Link) -> None:
    net.link(router, net.host("c"), rate="1 Gbit/s", delay=0, aqm="codel")


def marks(net: Network, router: Node, link: Link) -> None:
    net.link(router, net.host("c"), rate="1 Gbit/s", delay=0, mark_above=5)


def changes(net: Network, router: Node, link: Link) -> None:
    link.set("1 s", rate="10 Mbit/s", direction="forward")


def routes(net: Network, router: Node, link: Link) -> None:
    net.route(router, hosts_of(net, "b")[0], link)


def priority(net: Network, router: Node, link: Link) -> None:
    net.classes(router, link, Port((Queue(), Queue())))


def a_switch_before(net: Network, router: Node, link: Link) -> None:
    switch, host = net.switch("p4", some_program()), net.host("c")
    net.link(host, switch, rate="1 Gbit/s", delay=0)
    net.link(switch, router, rate="1 Gbit/s", delay=0)
    net.tcp(host, hosts_of(net, "b")[0], size="1 MB")


@pytest.mark.parametrize(
    ("change", "why"),
    [
        (aqm, r"r0: its queue to r0 - c has aqm='codel'; the queues of a Linux router are HTB's"),
        (marks, r"r0: mark_above at r0 - c; the queues of a Linux router do not mark"),
        (changes, r"r0: r0 - last changes during the run; what a Linux router sends over does not"),
        (routes, r"r0: a route over r0 - last; a Linux router takes the shortest paths"),
        (
            priority,
            r"r0 -> last: strict priority; a Linux router's queues have the scheduler 'deficit round robin'",
        ),
        (a_switch_before, r"r0: the P4 switch p4 is between a host and this Linux router"),
    ],
)
def test_what_a_linux_router_cannot_do_is_refused(change: Callable[..., None], why: str) -> None:
    net, (router,), links = line(pairs=1)
    (a,), (b,) = hosts_of(net, "a"), hosts_of(net, "b")
    net.tcp(a, b, size="1 MB")
    change(net, router, links[-1])
    with pytest.raises(TidegateError, match=why):
        plan(net, 1)


def test_what_a_linux_router_sends_over_cannot_be_changed_during_a_run_either() -> None:
    net, _, links = line(pairs=1)
    core, ports = build(net, 1, with_flows=False)
    with changing(net, core, ports, elsewhere={}):
        with pytest.raises(TidegateError, match="r0: r0 - last changes during the run; what a Linux router"):
            links[-1].set("1 s", rate="10 Mbit/s")
        assert net.changes == []
        links[-1].set("1 s", rate="10 Mbit/s", direction="reverse")
        assert [change.side for change in net.changes] == ["reverse"]
    # In the simulator it is an ordinary router.
    net.at("1 ms", lambda: links[-1].set("1 ms", rate="10 Mbit/s"))
    net.run("2 ms")


@pytest.mark.parametrize(
    "port",
    [
        Port((Queue(), Queue())),
        Port((Queue(),), shaper=Shaper("1 Mbit/s")),
        Port((Queue(time_shift="1 ms"),)),
    ],
)
def test_what_htb_cannot_do_is_refused_during_a_run(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    from tidegate.hosts.linux_port import LinuxPort

    class Nothing:
        interface = "eth0"

        def apply(self, _: Any) -> None:
            pass

    there = LinuxPort(Nothing(), 10**8, Port((Queue(),)))  # type: ignore[arg-type]
    with pytest.raises(TidegateError, match=r"eth0: .* a Linux router"):
        there.set(port)
