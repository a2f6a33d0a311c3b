"""What the data plane does besides: IPv6, traces of each link, shares by host, flows without a place. Packets as bytes, both engines."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Literal

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.inet6 import HBHOptUnknown, IPv6, IPv6ExtHdrHopByHop, PadN
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tidegate._core import TidegateError
from tidegate.network import Network
from tidegate.systems.pacing.controller import ManagedLink
from tidegate.systems.pacing.format import OPTION6, Keys, Kind, PacingOption, number, packed
from tidegate.systems.pacing.setup import paced, pacing, program
from tidegate.systems.pacing.test_members import (
    GIVEN,
    HOSTS,
    IDLE_S,
    KEYS,
    LINK,
    OUT,
    SERVER,
    Flow,
    Switch,
    said,
)

Engine = Literal["interp", "jit"]
PEER6 = "2001:db8::1:1"


class Flow6(Flow):
    """The same over IPv6."""

    def __init__(self, switch: Switch, host: int, sport: int, address: str = "") -> None:
        super().__init__(switch, host, sport)
        self.address = address or f"2001:db8::{host + 1}"

    def option(self, option: PacingOption, bound: int = 0) -> PacingOption:
        keys = self.switch.keys
        if keys is None:
            return option
        keyed = replace(option, key=keys.signing)
        return keyed.checked(keys.values[keys.signing], (self.address, self.sport), (PEER6, 80), bound)

    def packet(self, flags: str, option: PacingOption | None = None, seq: int = 0, ack: int = 0) -> Packet:
        ip = with_options(IPv6(src=self.address, dst=PEER6), option)
        return (
            Ether(src=HOSTS[self.host], dst=SERVER)
            / ip
            / TCP(sport=self.sport, dport=80, flags=flags, seq=seq, ack=ack)
        )

    def back(self, flags: str, option: PacingOption | None = None, ack: int = 101) -> Packet:
        ip = with_options(IPv6(src=PEER6, dst=self.address), option)
        tcp = TCP(sport=80, dport=self.sport, flags=flags, ack=ack)
        ((to, packet),) = self.switch.send(OUT, Ether(src=SERVER, dst=HOSTS[self.host]) / ip / tcp)
        assert to == 2 * self.host
        return packet

    def join(self, weight: int = 1) -> PacingOption:
        self.out("S", self.option(PacingOption(Kind.JOIN, weight=weight), 100), seq=100)
        (trace,) = said6(self.back("SA"))
        self.out("A", seq=101, ack=1)
        return trace


def with_options(ip: IPv6, option: PacingOption | None) -> Packet:
    if option is None:
        return ip
    return ip / IPv6ExtHdrHopByHop(options=[HBHOptUnknown(otype=OPTION6, optdata=option.data)])


def said6(packet: Packet) -> list[PacingOption]:
    """The options of a packet over IPv6, whose lengths and checksum are right."""
    raw = bytes(packet)
    again = packet.copy()
    del again[IPv6].plen, again[TCP].chksum
    assert bytes(again) == raw
    if IPv6ExtHdrHopByHop not in packet:
        return []
    read = [
        PacingOption.of(bytes(one.optdata))
        for one in packet[IPv6ExtHdrHopByHop].options
        if one.otype == OPTION6
    ]
    assert None not in read
    return [option for option in read if option is not None]


@pytest.fixture(params=["interp", "jit"])
def engine(request: pytest.FixtureRequest) -> Engine:
    found: Engine = request.param
    return found


@pytest.mark.parametrize("keys", [None, KEYS])
def test_flows_of_ipv6_are_members_and_are_told(engine: Engine, keys: Keys | None) -> None:
    switch = Switch(engine, keys)
    flow, other = Flow6(switch, 0, 1000), Flow6(switch, 1, 1000)
    trace = flow.join()
    assert (trace.kind, trace.rate, trace.link, trace.hops) == (Kind.TRACE, number(packed(GIVEN)), LINK, 1)
    assert other.join(3).weight == 4
    assert switch.state == (2, 4, 0)
    told = [out for _ in range(2) for out in switch.tick()]
    assert {(port, packet[IPv6].src, packet[IPv6].dst) for port, packet in told} == {
        (0, PEER6, flow.address),
        (2, PEER6, other.address),
    }
    for port, packet in told:
        (notice,) = said6(packet)
        assert (notice.kind, notice.rate, notice.weight) == (Kind.NOTICE, number(packed(GIVEN)), 4)
        assert packet.dst == HOSTS[port // 2]
        assert packet[TCP].flags == 0
        if keys is not None:
            host = (packet[IPv6].dst, 1000)
            assert notice.checked(keys.values[keys.signing], host, (PEER6, 80)) == notice
    flow.out("A", flow.option(PacingOption(Kind.UPDATE, rate=20_000, link=3)))
    assert switch.state == (2, 3, number(packed(20_000)))
    flow.out("FA")
    other.back("R")
    assert switch.state == (0, 0, 0)


def test_checks_cover_all_of_an_address_of_ipv6(engine: Engine) -> None:
    switch = Switch(engine, KEYS)
    flow = Flow6(switch, 0, 1000)
    option = flow.option(PacingOption(Kind.JOIN), 100)
    for word in range(8):
        parts = ["2001", "db8", "0", "0", "0", "0", "0", "1"]
        parts[word] = "77"
        Flow6(switch, 0, 1000, ":".join(parts)).out("S", option, seq=100)
    assert switch.state == (0, 0, 0)
    flow.out("S", option, seq=100)
    assert switch.state == (1, 1, 0)


def test_an_address_of_ipv4_is_never_taken_for_one_of_ipv6(engine: Engine) -> None:
    switch = Switch(engine)
    flow = Flow6(switch, 0, 1000)
    flow.join()
    source = next(int(source) for source in switch.api.register_read("member_src") if source)
    target = next(int(target) for target in switch.api.register_read("member_dst") if target)
    ip = IP(src=".".join(map(str, (source >> 32).to_bytes(4))), dst=".".join(map(str, target.to_bytes(4))))
    switch.send(0, Ether(src=HOSTS[0], dst=SERVER) / ip / TCP(sport=1000, dport=80, flags="FA"))
    assert switch.state == (1, 1, 0)


def test_another_option_of_ipv6_stays_alone(engine: Engine) -> None:
    switch = Switch(engine)
    flow = Flow6(switch, 0, 1000)
    flow.out("S", PacingOption(Kind.JOIN), seq=100)
    options = IPv6ExtHdrHopByHop(options=[HBHOptUnknown(otype=0x1E, optdata=bytes(4))])
    tcp = TCP(sport=80, dport=1000, flags="SA", ack=101)
    packet = Ether(src=SERVER, dst=HOSTS[0]) / IPv6(src=PEER6, dst=flow.address) / options / tcp
    assert switch.send(OUT, packet) == [(0, Ether(bytes(packet)))]
    assert switch.refused() == [0, 1, 0, 0]


@pytest.mark.parametrize(
    ("bytes_", "has_option", "is_followed"),
    [(40, False, True), (48, False, False), (48, True, True), (56, True, False)],
)
def test_headers_of_ipv6_are_followed_up_to_a_length(
    engine: Engine, bytes_: int, has_option: bool, is_followed: bool
) -> None:
    switch = Switch(engine)
    flow = Flow6(switch, 0, 1000)
    flow.join()
    ours = [HBHOptUnknown(otype=OPTION6, optdata=PacingOption(Kind.UPDATE).data)] if has_option else []
    room = bytes_ - 2 - 12 * has_option
    options = IPv6ExtHdrHopByHop(options=[*ours, PadN(optdata=bytes(room - 2))])
    ip = IPv6(src=flow.address, dst=PEER6) / options
    packet = Ether(src=HOSTS[0], dst=SERVER) / ip / TCP(sport=1000, dport=80, flags="FA")
    assert len(bytes(options)) == bytes_
    assert switch.send(0, packet) == [(OUT, Ether(bytes(packet)))]
    assert switch.state == ((0, 0, 0) if is_followed else (1, 1, 0))
    assert (switch.read("other_bytes") > 0) == (not is_followed)


def appending(engine: Engine, keys: Keys | None = None) -> Switch:
    switch = Switch(engine, keys)
    switch.api.register_write("appends", [1], 0)
    return switch


@pytest.mark.parametrize("keys", [None, KEYS])
def test_each_link_has_an_option_of_its_own_where_traces_are_appended(
    engine: Engine, keys: Keys | None
) -> None:
    switch = appending(engine, keys)
    flow = switch.flow()
    flow.out("S", flow.option(PacingOption(Kind.JOIN), 100), seq=100)
    first = flow.option(PacingOption(Kind.TRACE, 199_936, 2, link=200, hops=1), 101)
    raw = bytes(flow.back("SA", first))
    assert raw[14] & 15 == 5 + 6
    found = [PacingOption.of(raw[at + 2 : at + 12]) for at in (34, 46)]
    assert [(one.link, one.rate, one.hops) for one in found if one] == [
        (LINK, number(packed(GIVEN)), 2),
        (200, 199_936, 1),
    ]
    assert found[1] == first
    again = Ether(raw)
    del again[IP].chksum, again[TCP].chksum
    assert bytes(again) == raw


def test_where_there_is_no_room_the_narrowest_link_stays(engine: Engine) -> None:
    switch = appending(engine)
    flow = switch.flow()
    flow.out("S", PacingOption(Kind.JOIN), seq=100)
    there = [PacingOption(Kind.TRACE, 200_000, 2, link=link, hops=link) for link in (3, 2, 1)]
    options = b"".join(bytes((94, 12)) + one.data for one in there)
    ip = IP(src="10.0.1.1", dst=flow.address)
    packet = Ether(src=SERVER, dst=HOSTS[0]) / ip / TCP(sport=80, dport=flow.sport, flags="SA", ack=101)
    raw = bytearray(bytes(packet))
    raw[14] = 0x40 | 5 + 9
    raw[16:18] = (76).to_bytes(2)
    raw[34:34] = options
    raw[24:26] = bytes(2)
    total = sum(int.from_bytes(raw[at : at + 2]) for at in range(14, 70, 2))
    raw[24:26] = ((total % 65535) ^ 0xFFFF).to_bytes(2)
    ((_, out),) = switch.send(OUT, Ether(bytes(raw)))
    trace = said(out)
    assert trace is not None
    assert (trace.link, trace.hops) == (LINK, 4)
    assert bytes(out)[46:70] == options[12:]
    assert switch.refused() == [0, 1, 0, 0]


def test_each_link_has_an_option_in_ipv6(engine: Engine) -> None:
    switch = appending(engine)
    flow = Flow6(switch, 0, 1000)
    flow.out("S", PacingOption(Kind.JOIN), seq=100)
    packet = flow.back("SA", PacingOption(Kind.TRACE, 200_000, 2, link=200, hops=1))
    assert [(one.link, one.hops) for one in said6(packet)] == [(LINK, 2), (200, 1)]


def by_host(engine: Engine) -> Switch:
    switch = Switch(engine)
    switch.api.register_write("by_host", [1], 0)
    return switch


def told_shares(switch: Switch) -> dict[tuple[int, int], float]:
    """By host and port: the kbit/s that a flow with weight 1 is told."""
    told = {}
    for _ in range(4):
        for port, packet in switch.tick():
            notice = said(packet)
            assert notice is not None
            told[port // 2, int(packet[TCP].dport)] = notice.rate / notice.weight
    return told


def test_hosts_share_equally_whatever_the_number_of_their_flows(engine: Engine) -> None:
    switch = by_host(engine)
    flows = [switch.flow(0, 1000 + at) for at in range(3)] + [switch.flow(1)]
    for flow in flows[:3]:
        flow.join()
    assert flows[3].join().weight == 2
    whole = number(packed(GIVEN))
    expected = {(0, 1000 + at): whole / 6 for at in range(3)} | {(1, 1000): whole / 2}
    assert told_shares(switch) == pytest.approx(expected)
    # Weights divide what a host has.
    flows[0].out("A", PacingOption(Kind.UPDATE, rate=0, weight=2, link=LINK))
    assert told_shares(switch)[0, 1001] == pytest.approx(whole / 8)
    # A flow that is limited elsewhere leaves the rest to all hosts.
    flows[3].out("A", PacingOption(Kind.UPDATE, rate=10_000, link=3))
    assert switch.state == (4, 1, number(packed(10_000)))
    assert told_shares(switch)[0, 1001] == pytest.approx((GIVEN - 10_000) / 4, rel=2e-3)
    for flow in flows:
        flow.out("FA")
    assert switch.state == (0, 0, 0)
    assert not any(switch.api.register_read("host_key"))
    assert not any(switch.api.register_read("host_members"))


def test_a_host_that_takes_another_way_counts_there(engine: Engine) -> None:
    switch = by_host(engine)
    flow, other = switch.flow(), switch.flow(1)
    flow.join()
    other.join()
    switch.api.register_write("capacity", [50_000], 3)
    handle = next(e.handle for e in switch.api.table_entries("forward") if e.values == (OUT,))
    switch.api.table_modify("forward", handle, "to_port", [3])
    flow.out("A", port=3)
    assert switch.state == (1, 1, 0)
    assert int(switch.api.register_read("weights", 3, 1)[0]) == 1
    flow.out("FA", port=3)
    assert int(switch.api.register_read("weights", 3, 1)[0]) == 0


def small(engine: Engine, keys: Keys | None = None) -> Switch:
    """With 6 places, and 2 aggregates."""
    return Switch(engine, keys, program(6))


@pytest.mark.parametrize("places", [0, 3, 7, 12_000, 3 << 17])
def test_numbers_of_places_that_cannot_be(places: int) -> None:
    with pytest.raises(TidegateError, match=f"cannot have {places} places; give 3 times a power of 2"):
        program(places)


def test_flows_without_a_place_are_counted_by_aggregates(engine: Engine) -> None:
    switch = small(engine)
    flows = [switch.flow(at % 2, 1000 + at) for at in range(20)]
    for flow in flows:
        flow.out("S", PacingOption(Kind.JOIN), seq=100)
        flow.back("SA")
        flow.out("A", seq=101, ack=1)
    placed, _, _ = switch.state
    assert 4 <= placed <= 6
    assert switch.refused()[0] == 20 - placed
    # They ask once they are connected, and are answered at once.
    answers = 0
    for flow in flows:
        packet = flow.packet("A", PacingOption(Kind.UPDATE))
        for port, out in switch.send(2 * flow.host, packet):
            if port == OUT:
                assert bytes(out) == bytes(packet)
                continue
            notice = said(out)
            assert notice is not None
            assert (port, out.dst, out[TCP].dport) == (2 * flow.host, HOSTS[flow.host], flow.sport)
            assert (notice.kind, notice.rate) == (Kind.NOTICE, number(packed(GIVEN)))
            answers += 1
            # Two flows that have the same bit count once.
            assert placed <= notice.weight <= placed + answers
    assert answers == 20 - placed
    counted = switch.state[0]
    assert 17 <= counted <= 20
    assert switch.state == (counted, counted, 0)
    trace = said(flows[-1].back("SA"))
    assert trace is not None
    assert trace.weight == counted
    # Each flow is counted once, and gone once.
    for flow in flows:
        flow.switch.send(2 * flow.host, flow.packet("A", PacingOption(Kind.UPDATE)))
    assert switch.state == (counted, counted, 0)
    for flow in flows:
        for _ in range(2):
            flow.switch.send(2 * flow.host, flow.packet("FA"))
    assert switch.state == (0, 0, 0)
    assert switch.read("aggregates") == 0


def test_flows_of_aggregates_are_gone_when_they_are_silent(engine: Engine) -> None:
    switch = small(engine, KEYS)
    flows = [switch.flow(at % 2, 1000 + at) for at in range(16)]
    for flow in flows:
        flow.out("S", flow.option(PacingOption(Kind.JOIN), 100), seq=100)
        flow.back("SA")
        flow.out("A", seq=101, ack=1)
    counted = switch.state[0]
    assert 14 <= counted <= 16
    stays = flows[:8]
    for _ in range(2 * IDLE_S + 4):
        for flow in stays:
            flow.out("A")
        for _ in range(5):
            switch.tick(0.2)
    assert 7 <= switch.state[0] <= 8
    for _ in range(2 * IDLE_S + 4):
        for _ in range(5):
            switch.tick(0.2)
    assert switch.state == (0, 0, 0)
    assert switch.read("aggregates") == 0


def test_other_traffic_counts_as_such_beside_aggregates(engine: Engine) -> None:
    switch = small(engine)
    for at in range(12):
        flow = switch.flow(0, 1000 + at)
        flow.out("S", PacingOption(Kind.JOIN), seq=100)
        flow.back("SA")
        flow.out("A", seq=101, ack=1)
        switch.send(0, flow.packet("A", PacingOption(Kind.UPDATE)))
    before = switch.read("other_bytes")
    member = switch.state
    switch.send(0, flow.packet("A"))
    assert switch.read("other_bytes") == before
    for sport in range(5000, 5040):
        switch.send(2, switch.flow(1, sport).packet("A"))
    # Few share an aggregate's bit.
    assert switch.read("other_bytes") - before >= 20 * 54
    assert switch.state == member


@pytest.mark.parametrize("after_s", [0.0165, 0.0183, 0.0188, 0.0257, 0.0328, 0.05, 0.1, 0.777, 1.0, 4.0])
def test_other_traffic_is_measured_over_the_time_that_has_passed(engine: Engine, after_s: float) -> None:
    switch = Switch(engine)
    switch.tick(0.05)
    # Nothing counts before.
    assert switch.read("other_average") == 0
    bytes_per_s = 50e6 / 8
    switch.api.register_write("other_bytes", [round(after_s * bytes_per_s)], OUT)
    switch.tick(after_s)
    # A port is up to 2 ms late at its time, which the next measurement makes good.
    expected = 50_000 * (after_s / 0.016384 if after_s < 0.0184 else 1)
    assert switch.read("other_average") == pytest.approx(expected, rel=0.035)
    assert switch.read("other_bytes") == 0


@pytest.mark.parametrize(
    ("link", "long"),
    [
        (ManagedLink("100 Mbit/s", LINK), 8),
        (ManagedLink("300 Mbit/s", LINK), 8),
        (ManagedLink("1 Gbit/s", LINK), 8),
        (ManagedLink("100 Gbit/s", LINK, frame=9014), 138),
        (ManagedLink("100 Gbit/s", LINK, frame=9014, long="10 us"), 13),
    ],
)
def test_a_queue_is_drained_when_it_is_long_for_its_link(
    engine: Engine, link: ManagedLink, long: int
) -> None:
    switch = Switch(engine)
    assert link.long_by() == long - 8
    switch.api.register_write("long_by", [link.long_by()], OUT)
    kept_back = GIVEN >> 6
    short = 2 + (long - 8) // 4
    for waiting, expected in (
        (long, 0),
        (long + 1, kept_back),
        (short + 1, kept_back),
        (short, 0),
    ):
        switch.api.register_write("backlog", [waiting], OUT)
        switch.tick(0.02)
        assert switch.read("draining") == expected, waiting


def test_paths_with_more_links_than_a_syn_ack_has_room_for_are_refused() -> None:
    def chain(switches: int, trace: str) -> Network:
        network = Network()
        nodes = [network.host("a"), *(pacing(network, f"s{at}", trace=trace) for at in range(switches))]
        nodes.append(network.host("b"))
        for one, other in pairwise(nodes):
            network.link(one, other, rate="100 Mbit/s", delay="1 ms")
        paced(network, nodes[0])
        network.tcp(nodes[0], nodes[-1])
        return network

    chain(3, "append").run("50 ms")
    chain(4, "narrowest").run("50 ms")
    with pytest.raises(TidegateError, match="from a to b has 4 pacing switches"):
        chain(4, "append").run("50 ms")
    with pytest.raises(TidegateError, match="trace='all' is unknown"):
        chain(1, "all")


@pytest.mark.parametrize(("trace", "options"), [("append", 3), ("narrowest", 1)])
@pytest.mark.parametrize("keys", [None, KEYS])
def test_a_host_knows_the_links_that_its_syn_ack_has_passed(
    trace: str, options: int, keys: Keys | None
) -> None:
    network = Network()
    host, server = network.host("host"), network.host("server")
    switches = [pacing(network, f"s{at}", trace=trace, keys=keys) for at in range(3)]
    rates = ("90 Mbit/s", "30 Mbit/s", "60 Mbit/s")
    network.link(host, switches[0], rate="1 Gbit/s", delay="10 us")
    for (one, other), rate in zip(pairwise([*switches, server]), rates, strict=True):
        network.link(one, other, rate=rate, delay="1 ms")
    agent = paced(network, host, keys=keys)
    network.tcp(host, server)
    network.run("100 ms")
    assert agent.counts["trace"] == options
    assert agent.counts["malformed"] == 0
    assert agent.changes[-1][2] == pytest.approx(30e6 * 0.9975 * 1448 / 1514, rel=2e-3)
