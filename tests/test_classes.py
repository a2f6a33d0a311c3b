"""Queues by class at the ports of plain routers, and queues by flow."""

from __future__ import annotations

import polars as pl
import pytest

from tidegate._core import TidegateError
from tidegate.control import Port, Queue, Shaper
from tidegate.network import Classes, Flow, Link, Network
from tidegate.results import Result

RATE = 100e6


def network(pairs: int, **link: object) -> tuple[Network, Link, list[Flow]]:
    """A dumbbell of 100 Mbit/s and 20 ms, with a CUBIC flow for each pair of hosts."""
    net = Network()
    left, right = net.router("left"), net.router("right")
    middle = net.link(left, right, rate="100 Mbit/s", delay="8 ms", **{"queue": "167 packets", **link})  # type: ignore[arg-type]
    flows = []
    for number in range(pairs):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, left, rate="1 Gbit/s", delay="1 ms")
        net.link(b, right, rate="1 Gbit/s", delay="1 ms")
        flows.append(net.tcp(a, b))
    net.record("100 ms", middle)
    return net, middle, flows


def shares(result: Result, since_s: float, until_s: float = 1e9) -> list[float]:
    """Shares of the link, payload scaled to what goes over it."""
    samples = result.flow_samples.filter((pl.col("time_s") >= since_s) & (pl.col("time_s") <= until_s))
    rates = []
    for _, flow in samples.group_by("flow", maintain_order=True):
        first, last = flow.row(0, named=True), flow.row(-1, named=True)
        rates.append(
            (last["bytes_received"] - first["bytes_received"]) * 8 / (last["time_s"] - first["time_s"])
        )
    return [rate * 1514 / 1448 / RATE for rate in rates]


def classes(net: Network, middle: Link, *queues: Queue) -> Classes:
    return net.classes(net.nodes[0], middle, Port(queues, "deficit round robin"))


def test_weights_are_shares() -> None:
    net, middle, flows = network(2)
    queues = classes(net, middle, Queue(packets=167, weight=3), Queue(packets=167, weight=1))
    queues.assign([net.five_tuple(flows[1])], 1)
    assert shares(net.run("20 s"), 5) == pytest.approx([0.75, 0.25], abs=0.01)


def test_a_class_takes_what_others_leave_and_keeps_its_cap() -> None:
    net, middle, flows = network(2)
    capped = Queue(packets=167, shaper=Shaper("30 Mbit/s", "3028 B"))
    queues = classes(net, middle, Queue(packets=167), capped)
    queues.assign([net.five_tuple(flows[1])], 1)
    one, two = shares(net.run("20 s"), 5)
    assert (one, two) == (pytest.approx(0.7, abs=0.01), pytest.approx(0.3, abs=0.01))


def stalled(result: Result, since_s: float) -> float:
    """Part of the time from then on in which the middle link was idle while packets waited for it."""
    samples = result.queue_samples.filter(pl.col("queue") == "left -> right", pl.col("time_s") >= since_s)
    first, last = samples.row(0, named=True), samples.row(-1, named=True)
    return float((last["stalled_s"] - first["stalled_s"]) / (last["time_s"] - first["time_s"]))


@pytest.mark.parametrize(("shaper", "part"), [(None, 0.0), (Shaper("30 Mbit/s", "3028 B"), 0.7)])
def test_a_link_is_stalled_while_a_cap_holds_its_packets_back(shaper: Shaper | None, part: float) -> None:
    net, middle, _ = network(1)
    classes(net, middle, Queue(packets=167, shaper=shaper))
    assert stalled(net.run("20 s"), 10) == pytest.approx(part, abs=0.01 if part else 0)


def test_queues_and_flows_change_during_a_run_and_for_it_alone() -> None:
    net, middle, flows = network(2)
    queues = classes(net, middle, Queue(packets=167))
    seen = []

    def split() -> None:
        queues.set(Port((Queue(packets=167), Queue(packets=167, weight=4)), "deficit round robin"))
        queues.assign([net.five_tuple(flows[1])], 1)

    def join() -> None:
        seen.append(queues.queue(1))
        queues.set(Port((Queue(packets=167),)))

    net.at("10 s", split)
    net.at("25 s", join)
    first = net.run("40 s")
    assert shares(first, 12, 25)[1] == pytest.approx(0.8, abs=0.02)
    assert seen[0].packets > 80_000
    assert seen[0].waiting_packets > 0
    # Nothing waits for ever in a queue that is gone.
    assert sum(shares(first, 26)) == pytest.approx(1, abs=0.01)
    assert queues.port.queues == (Queue(packets=167),)
    assert net.run("40 s").flows.equals(first.flows)


def test_packets_of_all_queues_are_counted() -> None:
    net, middle, flows = network(2)
    queues = classes(net, middle, Queue(packets=50), Queue(bytes="60 KiB"))
    queues.assign([net.five_tuple(flows[1])], 1)
    result = net.run("10 s")
    rows = result.queues.filter(result.queues["queue"] == "left -> right")
    assert rows["number"].to_list() == [0, 1]
    assert rows["dropped"].min() > 0
    samples = result.queue_samples
    assert samples.filter(samples["number"] == 0)["packets"].max() <= 50
    assert samples.filter(samples["number"] == 1)["bytes"].max() <= 60 * 1024


@pytest.mark.parametrize("aqm", ["drr", "fq_codel"])
def test_flows_with_queues_of_their_own_share(aqm: str) -> None:
    net, _, flows = network(3, aqm=aqm)
    # A flow that pays no heed gets no more than its share.
    net.udp(flows[0].source, flows[0].target, rate="80 Mbit/s")
    tcp = shares(net.run("30 s"), 5)[:3]
    assert min(tcp) == pytest.approx(0.25, abs=0.02)
    assert max(tcp) == pytest.approx(0.25, abs=0.02)


def test_fq_codel_keeps_delays_low() -> None:
    waits = {}
    for aqm in (None, "fq_codel"):
        net, _, _ = network(4, aqm=aqm, queue="1000 packets")
        result = net.run("20 s")
        row = result.queues.filter(result.queues["queue"] == "left -> right")
        waits[aqm] = row["queue_delay_ms_p99"].item()
    assert waits["fq_codel"] < 20 < 80 < waits[None]


REFUSED = {
    "a P4 switch or a host": lambda net, link: net.classes(net.nodes[2], link, Port((Queue(),))),
    "no queue": lambda net, link: net.classes(net.nodes[0], link, Port(())).assign([], 0) or net.run("1 s"),
    "another link": lambda net, link: net.classes(net.nodes[1], net.links[1], Port((Queue(),))),
    "twice": lambda net, link: [net.classes(net.nodes[0], link, Port((Queue(),))) for _ in "12"],
    "a queue of many bits": lambda net, link: net.classes(net.nodes[0], link, Port((Queue(),))).assign(
        [], -1
    ),
    "a state before the run": lambda net, link: net.classes(net.nodes[0], link, Port((Queue(),))).queue(0),
    "what is no address": lambda net, link: (
        net.classes(net.nodes[0], link, Port((Queue(),))).assign([("x", "10.0.0.1", 6, 1, 2)], 0)
        or net.run("1 s")
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    net, link, _ = network(1)
    with pytest.raises(TidegateError):
        REFUSED[what](net, link)


def test_one_queue_management_at_a_port() -> None:
    net, middle, _ = network(1, aqm="codel")
    classes(net, middle, Queue())
    with pytest.raises(TidegateError, match="aqm"):
        net.run("1 s")
