"""Links, queues and hosts: what is counted as sent, what is taken in, how small a buffer may be."""

from collections.abc import Callable

import numpy as np
import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.network import Link, Network
from tidegate.view.finished import _topology


@pytest.mark.parametrize("aqm", [None, "codel"])
def test_what_waits_in_a_queue_has_not_been_sent(aqm: str | None) -> None:
    net = Network()
    a, b, r = net.host("a"), net.host("b"), net.router("r")
    net.link(a, r, rate="1 Gbit/s", delay="1 us")
    link = net.link(r, b, rate="100 Mbit/s", delay="5 ms", queue="1000 packets", aqm=aqm)
    net.udp(a, b, rate="500 Mbit/s", stop="20 ms")
    net.record("5 ms", queues=[link])
    samples = net.run("200 ms").queue_samples.filter(pl.col("queue") == "r -> b")
    sent = samples["sent_bytes"].to_numpy()
    # Plus the packet whose sending has just begun.
    assert np.diff(sent).max() <= 100e6 / 8 * 5e-3 + 1538
    assert sent[4] < 1.1 * 100e6 / 8 * 20e-3


def test_a_host_drops_what_a_route_brings_to_it_by_mistake() -> None:
    net = Network()
    hosts, router = [net.host(name) for name in "abc"], net.router("r")
    links = [net.link(host, router, rate="1 Gbit/s", delay="1 us") for host in hosts]
    net.udp(hosts[0], hosts[1], rate="10 Mbit/s", stop="10 ms")
    net.tcp(hosts[0], hosts[1], size="10 kB")
    net.route(router, hosts[1], links[2])
    flows = net.run("100 ms").flows
    assert flows["datagrams_received"][0] == 0
    assert flows["bytes_received"][1] == 0


def test_a_receive_buffer_holds_a_few_segments() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="1 Gbit/s", delay="1 ms")
    with pytest.raises(TidegateError, match="give it at least eight segments, 11680 bytes"):
        net.tcp(a, b, receive_buffer_max="8 KiB")


@pytest.mark.parametrize(
    ("queue", "why"),
    [
        ("1__000 packets", "a - b: '1__000 packets' does not begin with a number"),
        ("_ packets", "a - b: '_ packets' does not begin with a number"),
        ("packets", "a - b: 'packets' does not begin with a number"),
        ("1__0 BDP", "a - b: '1__0 BDP' does not begin with a number"),
        ("1. BDP", "a - b: '1. BDP' does not begin with a number"),
        ("\u0661 packets", "a - b: '\u0661 packets' does not begin with a number"),
        ("1e3 packets", "a - b: '1e3 packets' is not a whole number of packets"),
        ("e3 BDP", "a - b: 'e3 BDP' does not begin with a number"),
        ("1.5 packets", "a - b: '1.5 packets' is not a whole number of packets"),
        ("1 BPD", "a - b: the queue '1 BPD': `1 BPD` is not a size: no unit `BPD`"),
        ("10", "write it as in `128 KiB`, `100 packets` or `1 BDP`"),
        (f"{'9' * 5000} packets", "99999999999999999999 is not a queue's limit in packets (a - b)"),
        (f"{'9' * 5000} BDP", "is not a size in bytes"),
    ],
)
def test_a_queue_s_limit_that_makes_no_sense_is_refused(queue: str, why: str) -> None:
    net = Network()
    with pytest.raises(TidegateError) as refused:
        net.link(net.host("a"), net.host("b"), rate="1 Gbit/s", delay="1 ms", queue=queue)
    assert why in str(refused.value)


def test_numbers_of_a_queue_s_limit_may_have_underscores() -> None:
    net = Network()
    link = net.link(
        net.host("a"), net.host("b"), rate="1 Gbit/s", delay="1 ms", queue="1_000 packets, 1_0.5 BDP"
    )
    assert (link.forward.packets, link.forward.bytes) == (1000, 2_625_000)


def test_numbers_may_be_as_python_prints_them() -> None:
    net = Network()
    link = net.link(
        net.host("a"),
        net.host("b"),
        rate=f"{1e17} bit/s",
        delay=f"{1e-05} s",
        queue=f"{1e-05} BDP, 5 packets",
    )
    assert (link.forward.rate, link.forward.delay) == (10**17, 10_000_000)
    assert (link.forward.packets, link.forward.bytes) == (5, 2_500_000)


def a_byte(made: str, set_to: str) -> dict[str, float]:
    """A byte over a link that has one rate to the right and 10 Mbit/s to the left."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate=made, delay="1 ms")
    link.set(0, rate=set_to, direction="forward")
    link.set(0, rate="10 Mbit/s", direction="reverse")
    net.tcp(a, b, size=1)
    (row,) = net.run("2 s").flows.to_dicts()
    return row


def test_what_is_set_for_the_start_holds_for_the_first_packet() -> None:
    # SYN and SYN+ACK of 74 bytes with their framing, and a byte in a packet of 67.
    by_hand = 3 * 1.0 + (74 + 67) * 8 / 10 + 74 * 8 / 10e3
    for made in ("10 kbit/s", "10 Mbit/s", "1 Gbit/s"):
        row = a_byte(made, "10 kbit/s")
        assert row["completion_ms"] == pytest.approx(by_hand, abs=1e-6)
        assert row["slowdown"] == pytest.approx(1)


def test_a_link_that_loses_all_from_the_start_lets_nothing_through() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="1 ms").set(0, loss=1.0, direction="forward")
    net.tcp(a, b)
    queues = net.run("500 ms").queues
    assert queues.select("packets", "lost").rows() == [(1, 1), (0, 0)]


def planned_late(net: Network, link: Link) -> None:
    link.set("200 ms", rate="10 Mbit/s")
    link.set("100 ms", delay="20 ms")


def planned_in_time(net: Network, link: Link) -> None:
    link.set("100 ms", delay="20 ms")
    link.set("200 ms", rate="10 Mbit/s")


def during_the_run(net: Network, link: Link) -> None:
    link.set("200 ms", rate="10 Mbit/s")
    net.at("100 ms", lambda: link.set("100 ms", delay="20 ms"))


def for_a_time_that_has_passed(net: Network, link: Link) -> None:
    link.set("100 ms", delay="1 ms")
    link.set("200 ms", rate="10 Mbit/s")
    net.at("150 ms", lambda: link.set("50 ms", delay="20 ms"))


def for_a_time_before_one_of_the_run(net: Network, link: Link) -> None:
    net.at("50 ms", lambda: link.set("200 ms", rate="10 Mbit/s"))
    net.at("60 ms", lambda: link.set("100 ms", delay="20 ms"))


@pytest.mark.parametrize(
    "change",
    [
        planned_late,
        planned_in_time,
        during_the_run,
        for_a_time_that_has_passed,
        for_a_time_before_one_of_the_run,
    ],
)
def test_a_change_of_a_link_leaves_the_others_as_they_are(change: Callable[[Network, Link], None]) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
    net.udp(a, b, rate="1 Mbit/s", stop="90 ms")
    net.udp(a, b, rate="1 Mbit/s", start="250 ms", stop="290 ms")
    change(net, link)
    before = net.changes
    for _ in range(2):
        # The second run is as the first: what a run changes holds for it alone.
        delays = net.run("400 ms").flows["delay_ms_mean"].to_list()
        assert delays == pytest.approx([5 + 1514 * 8e-5, 20 + 1514 * 8e-4], rel=1e-6)
        assert net.changes == before


def test_a_change_of_a_link_that_is_not_possible_with_a_later_one_is_refused() -> None:
    net = Network()
    link = net.link(net.host("a"), net.host("b"), rate="1 Gbit/s", delay="1 ms")
    link.set("5 s", queue="1 BDP")
    before = net.changes
    with pytest.raises(TidegateError, match="a BDP of this link is less than a byte"):
        link.set("3 s", delay=0)
    assert net.changes == before
    assert [link.network.wire_at(link, side, 4 * 10**12) for side in ("forward", "reverse")] == [
        link.forward,
        link.reverse,
    ]


def test_a_bdp_is_by_the_round_trip_of_the_link_while_its_delay_stays() -> None:
    net = Network()
    routers = [net.router(name) for name in "abc"]
    alone = net.link(*routers[:2], rate="100 Mbit/s", delay="5 ms", queue="1 BDP")
    path = net.link(*routers[1:], rate="100 Mbit/s", delay="5 ms", queue="1 BDP", rtt="100 ms")
    for link in (alone, path):
        link.set("3 s", queue="1 BDP", delay="10 ms")
        link.set("2 s", queue="1 BDP")
        # Before all others, and of the rate alone: what is a BDP later is one of this rate.
        link.set("1 s", rate="50 Mbit/s")

    def queues(link: Link) -> list[int | None]:
        return [net.wire_at(link, "forward", at * 10**12).bytes for at in range(4)]

    # Twice the delay, or the round trip that was given as long as the delay is that of the link.
    assert queues(alone) == [125_000, 125_000, 62_500, 125_000]
    assert queues(path) == [1_250_000, 1_250_000, 625_000, 125_000]


def test_queues_of_several_links_between_two_nodes_have_names_of_their_own() -> None:
    net = Network()
    a, b, r, s = net.host("a"), net.host("b"), net.router("r"), net.router("s")
    net.link(a, r, rate="1 Gbit/s", delay="1 us")
    between = [net.link(*ends, rate="10 Mbit/s", delay="1 ms") for ends in ((r, s), (s, r), (r, s))]
    net.link(s, b, rate="1 Gbit/s", delay="1 us")
    net.record("100 ms", queues=between)
    result = net.run("100 ms")
    named = ["r -> s", "s -> r", "s -> r (2)", "r -> s (2)", "r -> s (3)", "s -> r (3)"]
    assert result.queues["queue"].to_list() == ["a -> r", "r -> a", *named, "s -> b", "b -> s"]
    assert result.queue_samples["queue"].to_list()[: len(named)] == named
    nodes, links = _topology(result.queues)
    assert nodes == [["a", "host"], ["r", "switch"], ["s", "switch"], ["b", "host"]]
    assert [link[2:] for link in links] == [
        ["a -> r", "r -> a"],
        ["r -> s", "s -> r"],
        ["r -> s (2)", "s -> r (2)"],
        ["r -> s (3)", "s -> r (3)"],
        ["b -> s", "s -> b"],
    ]


def test_a_node_may_be_named_like_a_second_link() -> None:
    net = Network()
    a, r, s = net.host("a"), net.router("r"), net.router("s (2)")
    net.link(a, r, rate="1 Gbit/s", delay="1 us")
    net.link(r, s, rate="1 Gbit/s", delay="1 us")
    nodes, _ = _topology(net.run("1 ms").queues)
    assert nodes == [["a", "host"], ["r", "switch"], ["s (2)", "host"]]
