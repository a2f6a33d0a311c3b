"""Links, queues and hosts: what is counted as sent, what is taken in, how small a buffer may be."""

import numpy as np
import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.network import Network


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
