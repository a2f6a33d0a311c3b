"""Topologies: their parts, their ways, their errors."""

from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.network import Network
from tidegate.topologies import clos, dumbbell, leaf_spine, parking_lot

ROUTER = Path(__file__).parent.parent / "examples" / "p4" / "ipv4_router" / "ipv4_router.p4"


def test_a_dumbbell() -> None:
    net = Network()
    bell = dumbbell(net, 3, bottleneck={"rate": "100 Mbit/s", "queue": "1 BDP", "rtt": "20 ms"})
    assert [node.name for node in net.nodes] == ["left", "right", "a0", "b0", "a1", "b1", "a2", "b2"]
    assert [(a.name, b.name) for a, b in bell.pairs] == [("a0", "b0"), ("a1", "b1"), ("a2", "b2")]
    assert (bell.bottleneck.name, bell.bottleneck.there.bytes) == ("left - right", 250_000)
    assert bell.access[1].name == "b0 - right"
    for source, target in bell.pairs:
        net.tcp(source, target, size="1 MB")
    flows = net.run("5 s").flows
    assert flows["bytes_received"].to_list() == [1_000_000] * 3
    # Three times 1 MB at 100 Mbit/s, 20 ms base round trip.
    assert 0.25 < (flows["finish_s"].max() or 0) < 1  # type: ignore[operator]


def test_a_parking_lot_gives_the_long_flow_less() -> None:
    net = Network()
    lot = parking_lot(net, 3, cross_pairs=2, bottleneck={"queue": "200 packets"})
    assert [link.name for link in lot.bottlenecks] == ["r0 - r1", "r1 - r2", "r2 - r3"]
    assert [b.name for _, b in lot.cross[2]] == ["b2.1", "b2.2"]
    for source, target in (*lot.long, *(pair for hop in lot.cross for pair in hop)):
        net.tcp(source, target)
    net.record("100 ms", queues=lot.bottlenecks)
    result = net.run("10 s")
    rates = result.goodput_mbps(2)["goodput_mbps"]
    assert len(rates) == 7
    for hop in range(3):
        assert rates[0] + rates[1 + 2 * hop] + rates[2 + 2 * hop] == pytest.approx(95.6, abs=2)
    assert rates[0] < rates[1:].mean()  # type: ignore[operator]


def test_a_leaf_spine_splits_flows_over_its_spines() -> None:
    net = Network()
    fabric = leaf_spine(net, 2, 4, 8, access={"rate": "1 Gbit/s"}, fabric={"rate": "1 Gbit/s"})
    assert len(net.links) == 2 * 8 + 2 * 4
    assert [h.name for h in fabric.under(1)] == [f"h{i}" for i in range(8, 16)]
    for source, target in zip(fabric.under(0), fabric.under(1), strict=True):
        net.udp(source, target, rate="10 Mbit/s", stop="100 ms")
    queues = net.run("200 ms").queues
    over = queues.filter(pl.col("queue").str.starts_with("leaf0 -> spine"))["packets"]
    assert len(over) == 4
    assert over.sum() == queues.filter(pl.col("queue").str.starts_with("h"))["packets"].sum()
    assert sum(1 for packets in over if packets > 0) >= 2


def test_each_stage_of_a_clos_splits_flows_anew() -> None:
    net = Network()
    made = clos(net, hosts_per_tor=8, aggregations_per_pod=4, cores=4)
    half = len(made.hosts) // 2
    for source, target in zip(made.hosts[:half], made.hosts[half:], strict=True):
        for _ in range(8):
            net.udp(source, target, rate="10 Mbit/s", stop="10 ms")
    queues = net.run("20 ms").queues.filter(pl.col("number") == 0)
    for stage, expected in {"tor\\d+ -> agg": 6 * 4, "agg\\d+ -> core": 8 * 4, "core. -> agg": 4 * 8}.items():
        over = queues.filter(pl.col("queue").str.contains(f"^{stage}"))["packets"]
        used = over.filter(over > 0)
        # Half of the pods send, and half receive.
        assert len(used) == expected, stage
        assert max(used) < 4 * min(used), stage


@pytest.mark.slow
def test_the_clos_of_the_comparison_with_others() -> None:
    net = Network()
    made = clos(net, spread="destination")
    counts = [len(made.hosts), len(made.tors), len(made.aggregations), len(made.cores)]
    assert counts == [192, 12, 8, 2]
    assert len(net.links) == 192 + 12 * 2 + 8 * 2
    x = 1
    for i, host in enumerate(made.hosts):
        x = (1103515245 * x + 12345) % 2**31
        d = (x >> 8) % 191
        d += d >= i
        start = 10_000_000 * i
        net.tcp(host, made.hosts[d], start=start, rto_min="10 ms", delayed_ack="1 ms")
    net.record("10 ms")
    result = net.run("60 ms")
    # Over 20 to 100 ms it is 103.3 Gbit/s; ns-3 has 104.1.
    assert result.goodput_mbps(0.02)["goodput_mbps"].sum() == pytest.approx(104_100, rel=0.03)
    # Host 100 is in rack 6, pod 2: what is for it comes over aggregation switch 0 and core 0 of each level.
    routes = {(a.name, to.name): over.name for a, to, over in net.routes}
    assert routes["tor0", "h100"] == "tor0 - agg0"
    assert routes["agg1", "h103"] == "agg1 - core1"
    assert routes["core1", "h103"] == "agg5 - core1"
    assert ("tor6", "h100") not in routes


def test_p4_switches_in_place_of_routers() -> None:
    net = Network()
    bell = dumbbell(
        net,
        1,
        bottleneck={"rate": "100 Mbit/s"},
        switch=lambda net, name: net.switch(name, ROUTER),
        prefix="x-",
    )
    ((source, target),) = bell.pairs
    assert (bell.left.kind, bell.left.name, source.name) == ("switch", "x-left", "x-a0")
    for router, near, far in ((bell.left, source, target), (bell.right, target, source)):
        for host, link in ((near, net.links[1 if near is source else 2]), (far, bell.bottleneck)):
            port, address = net.port(router, link), net.address(host)
            router.commands.append(  # type: ignore[attr-defined]
                f"table_add routes next_hop {address}/32 => {port} 02:00:00:00:ff:00 {net.mac(host)}"
            )
    net.tcp(source, target, size="1 MB")
    assert net.run("5 s").flows["bytes_received"][0] == 1_000_000


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda net: dumbbell(net, 0), "dumbbell: pairs is 0; give a whole number of at least 1"),
        (
            lambda net: dumbbell(net, 1, bottleneck={"speed": 1}),
            "dumbbell: bottleneck has no option 'speed'; known: rate, delay, queue",
        ),
        (lambda net: dumbbell(net, 1, access={"rate": "fast"}), "`fast` is not a rate"),
        (lambda net: [dumbbell(net, 1), dumbbell(net, 1)], "there is a node 'left' already"),
        (lambda net: parking_lot(net, 2.5), "parking lot: hops is 2.5"),
        (lambda net: leaf_spine(net, 2, -1, 4), "leaf-spine: spines is -1"),
        (lambda net: clos(net, spread="even"), "clos: spread is 'even'; known: flow, destination"),
        (
            lambda net: clos(
                net,
                pods=1,
                spread="destination",
                switch=lambda net, name: net.switch(name, ROUTER),
            ),
            "fill the tables of P4 switches yourself",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(build: Callable[[Network], object], message: str) -> None:
    with pytest.raises(TidegateError) as error:
        build(Network())
    assert message in str(error.value)


def test_ways_are_what_p4_switches_need() -> None:
    """P4 switches filled in by `Network.ways` carry every host's flows; ties are all of the shortest ports."""
    net = Network()
    fabric = leaf_spine(net, 3, 2, 2, switch=lambda net, name: net.switch(name, ROUTER))
    leaf, spine = fabric.leaves[0], fabric.spines[0]
    near, far = fabric.hosts[0], fabric.hosts[-1]
    assert set(net.ways(leaf)) == set(fabric.hosts)
    assert len(net.ways(leaf)[far]) == 2
    assert len(net.ways(leaf)[near]) == len(net.ways(spine)[far]) == 1
    for node in (*fabric.leaves, *fabric.spines):
        for number, (host, ports) in enumerate(net.ways(node).items()):
            # A port of the ties for each host.
            port, mac = ports[number % len(ports)], net.mac(host)
            node.commands.append(
                f"table_add routes next_hop {net.address(host)}/32 => {port} 02:00:00:00:ff:00 {mac}"
            )
    flows = [net.tcp(a, b, size="100 kB") for a, b in zip(fabric.hosts, reversed(fabric.hosts), strict=True)]
    result = net.run("1 s")
    assert result.flows["bytes_received"].to_list() == [100_000] * len(flows)
    # A host that is not connected is not reached, and a host is no way to another.
    alone = net.host("alone")
    assert alone not in net.ways(leaf)
    assert net.ways(near)[far] == (0,)
