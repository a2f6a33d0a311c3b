"""Explicit rates after RCP: the law, the rate in packets, and what flows get. Rates by the paper's equation."""

from __future__ import annotations

from typing import Literal

import pytest
from scapy.layers.inet import IP, TCP, IPOption
from scapy.layers.l2 import Ether
from scapy.packet import Raw

from tidegate._core import TidegateError
from tidegate.network import Network
from tidegate.systems.pacing.experiments.equation import FORMULAS, OWN_CHAINS, counts
from tidegate.systems.pacing.experiments.paths import Chain
from tidegate.systems.pacing.experiments.rcp import ALPHA, BETA, PAYLOAD, next_rate, program, rcp, rcp_switch
from tidegate.systems.pacing.experiments.star import goodput_of
from tidegate.systems.pacing.format import packed

HOST, SERVER = "02:00:00:00:00:01", "02:00:00:00:00:02"


def test_the_law_is_rcps() -> None:
    # A link that is full and has no queue keeps its rate; half a round trip with half of it spare adds a quarter of alpha.
    assert next_rate(5e7, 1e8, 1e8, 0, 0.01, 0.02) == 5e7
    assert next_rate(5e7, 1e8, 5e7, 0, 0.01, 0.02) == pytest.approx(5e7 * (1 + ALPHA / 4))
    # A queue of a bandwidth-delay product takes beta of it in a round trip.
    assert next_rate(5e7, 1e8, 1e8, 2e6, 0.02, 0.02) == pytest.approx(5e7 * (1 - BETA))
    assert next_rate(5e7, 1e8, 1e8, 1e9, 0.02, 0.02) == 1e5
    assert next_rate(9e7, 1e8, 0, 0, 0.02, 0.02) == 1e8


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_the_least_rate_of_a_path_stays_in_the_option(engine: Literal["interp", "jit"]) -> None:
    switch = program().pipeline(engine)
    switch.table_add("forward", [SERVER], "to_port", [1])
    switch.register_write("rate", [packed(50_000)], 1)
    sent = 0
    for asked, expected in ((0xFFFF, packed(50_000)), (packed(40_000), packed(40_000))):
        option = IPOption(b"\x5e\x04" + asked.to_bytes(2))
        packet = Ether(src=HOST, dst=SERVER) / IP(src="10.0.0.1", dst="10.0.1.1", options=[option])
        packet = Ether(bytes(packet / TCP(sport=1, dport=2) / Raw(bytes(100))))
        ((port, out),) = switch.process(10**12, 0, bytes(packet))
        sent += len(out)
        found = Ether(out)
        assert (port, bytes(found[IP].options[0])) == (1, b"\x5e\x04" + expected.to_bytes(2))
        checksum = found[IP].chksum
        del found[IP].chksum
        assert Ether(bytes(found))[IP].chksum == checksum
    # Without an option a packet goes on as it is.
    plain = bytes(Ether(src=HOST, dst=SERVER) / IP(src="10.0.0.1", dst="10.0.1.1") / TCP(sport=1, dport=2))
    assert switch.process(10**12, 0, plain) == [(1, plain)]
    assert [int(bytes_) for bytes_ in switch.register_read("arrived", 1, 1)] == [sent + len(plain)]


def star(rtt: str = "20 ms") -> Network:
    network = Network()
    switch, server = rcp_switch(network, "switch"), network.host("server")
    link = network.link(switch, server, rate="100 Mbit/s", delay="9.99 ms", queue="128 packets")
    hosts = [network.host(f"host{number}") for number in range(2)]
    for number, host in enumerate(hosts):
        network.link(host, switch, rate="1 Gbit/s", delay="10 us")
        network.tcp(host, server, start=f"{number} s", segmentation_offload=None)
    rcp(network, switch, link, rtt, hosts, server)
    network.record("50 ms", queues=[link])
    return network


def test_flows_share_a_link_after_some_round_trips() -> None:
    result = star().run("3 s")
    assert goodput_of(result, 1, 0.7, 1.0) == pytest.approx([100 * PAYLOAD], rel=0.01)
    assert goodput_of(result, 2, 2.5, 3.0) == pytest.approx([50 * PAYLOAD] * 2, rel=0.02)
    assert result.flows["retransmits"].sum() == 0


def test_a_round_trip_of_nothing_is_refused() -> None:
    with pytest.raises(TidegateError, match="RCP divides by the round trip"):
        star("0 ms")


def test_the_papers_equation_has_one_number_of_flows() -> None:
    crowded = OWN_CHAINS["crowded-wide"]
    assert counts(crowded) == [10, 1]
    found = {
        name: None if rule is None else rule(crowded)[0] / 0.9975 for name, (_, rule) in FORMULAS.items()
    }
    assert found == {
        "narrowest": pytest.approx(60.0),
        "most": pytest.approx(6.0),
        "each": pytest.approx(10.0),
        "ours": None,
    }
    # With the same number everywhere, the forms are one.
    same = Chain((100, 40), ((0, 2, 1), (0, 2, 1)))
    rules = [rule for _, rule in FORMULAS.values() if rule is not None]
    assert [rule(same) for rule in rules] == [[pytest.approx(0.9975 * 20)] * 2] * 3
