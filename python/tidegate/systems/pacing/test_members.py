"""Who is a member of a link: each flow once, from its handshake to its end. Packets as bytes, both engines."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest
from scapy.layers.inet import IP, TCP, IPOption
from scapy.layers.l2 import Ether
from scapy.packet import Packet

from tidegate.p4 import Program
from tidegate.systems.pacing.controller import ManagedLink
from tidegate.systems.pacing.format import OPTION, Keys, Kind, PacingOption, number, packed
from tidegate.systems.pacing.setup import program

HOSTS = ("02:00:00:00:00:01", "02:00:00:00:00:03")
SERVER = "02:00:00:00:00:02"
OUT = 1
LINK = 9
GIVEN = 99_750
"""What a link of 100 Mbit/s gives away, in kbit/s."""
US = 10**6
"""Picoseconds."""
IDLE_S = 8
KEYS = Keys((0x0706050403020100, 0x0123456789ABCDEF), signing=1)


class Switch:
    """A pacing switch with hosts at ports 0 and 2, and a managed link of 100 Mbit/s at port 1."""

    def __init__(
        self, engine: Literal["interp", "jit"], keys: Keys | None = None, data_plane: Program | None = None
    ) -> None:
        self.api = (data_plane or program()).pipeline(engine)
        self.now = 10 * 10**12
        self.keys = keys
        for port, host in zip((0, 2), HOSTS, strict=True):
            self.api.table_add("forward", [host], "to_port", [port])
        self.api.table_add("forward", [SERVER], "to_port", [OUT])
        self.api.register_write("idle", [IDLE_S * 10**6], 0)
        self.api.register_write("again", [100_000], 0)
        self.api.register_write("capacity", [ManagedLink("100 Mbit/s", LINK).kbps()], OUT)
        self.api.register_write("link_id", [LINK], OUT)
        self.api.register_write("port_after", [OUT], OUT)
        self.api.register_write("turn", [OUT], 0)
        for port in range(3):
            self.api.mirror_set(port + 1, port)
        if keys is not None:
            self.api.register_write("keys", list(keys.values), 0)
            self.api.register_write("signing", [keys.signing], 0)
            self.api.register_write("keyed", [1], 0)

    def send(self, port: int, packet: Packet) -> list[tuple[int, Packet]]:
        self.now += 10 * US
        return [(to, Ether(out)) for to, out in self.api.process(self.now, port, bytes(packet))]

    def tick(self, after_s: float = 0.0002) -> list[tuple[int, Packet]]:
        self.now += round(after_s * 10**12)
        return self.send(510, Ether(dst=HOSTS[0], src=HOSTS[0], type=0x88B6) / bytes(2))

    def flow(self, host: int = 0, sport: int = 1000) -> Flow:
        return Flow(self, host, sport)

    def read(self, register: str) -> int:
        return int(self.api.register_read(register, OUT, 1)[0])

    @property
    def state(self) -> tuple[int, int, int]:
        """Flows, sum of weights, kbit/s that limited flows take."""
        return self.read("flows"), self.read("weights"), self.read("taken")

    def refused(self) -> list[int]:
        return [int(packets) for packets, _ in self.api.counter_read("refused")]


class Flow:
    """Packets of a flow."""

    def __init__(self, switch: Switch, host: int, sport: int) -> None:
        self.switch, self.host, self.sport = switch, host, sport
        self.address = f"10.0.0.{host + 1}"

    def option(self, option: PacingOption, bound: int = 0) -> PacingOption:
        keys = self.switch.keys
        if keys is None:
            return option
        keyed = replace(option, key=keys.signing)
        return keyed.checked(keys.values[keys.signing], (self.address, self.sport), ("10.0.1.1", 80), bound)

    def packet(self, flags: str, option: PacingOption | None = None, seq: int = 0, ack: int = 0) -> Packet:
        options = [] if option is None else [ip_option(option.data)]
        ip = IP(src=self.address, dst="10.0.1.1", options=options)
        return (
            Ether(src=HOSTS[self.host], dst=SERVER)
            / ip
            / TCP(sport=self.sport, dport=80, flags=flags, seq=seq, ack=ack)
        )

    def out(
        self,
        flags: str,
        option: PacingOption | None = None,
        seq: int = 0,
        ack: int = 0,
        port: int = OUT,
    ) -> None:
        """From the host: goes on as it is."""
        packet = self.packet(flags, option, seq, ack)
        assert self.switch.send(2 * self.host, packet) == [(port, Ether(bytes(packet)))]

    def back(self, flags: str, option: PacingOption | None = None, ack: int = 101) -> Packet:
        """From the server; gives what comes to the host."""
        options = [] if option is None else [ip_option(option.data)]
        ip = IP(src="10.0.1.1", dst=self.address, options=options)
        tcp = TCP(sport=80, dport=self.sport, flags=flags, ack=ack)
        ((to, packet),) = self.switch.send(OUT, Ether(src=SERVER, dst=HOSTS[self.host]) / ip / tcp)
        assert to == 2 * self.host
        return packet

    def join(self, weight: int = 1) -> PacingOption:
        """The handshake; gives the trace."""
        self.out("S", self.option(PacingOption(Kind.JOIN, weight=weight), 100), seq=100)
        trace = said(self.back("SA"))
        self.out("A", seq=101, ack=1)
        assert trace is not None
        return trace


@pytest.mark.parametrize("engine", ["interp", "jit"])
@pytest.mark.parametrize("managed", [False, True])
def test_either_end_may_reset_a_flow(engine: Literal["interp", "jit"], managed: bool) -> None:
    switch = Switch(engine)
    if managed:
        # The host's own link is managed, too, as in `setup.pacing`.
        switch.api.register_write("capacity", [1_000_000], 0)
        switch.api.register_write("link_id", [LINK + 1], 0)
    for host_resets in (True, False):
        flow = switch.flow(0, 1000 + host_resets)
        flow.join()
        assert switch.state[0] == 1
        if host_resets:
            flow.out("R")
        else:
            flow.back("RA")
        assert switch.state == (0, 0, 0)


def ip_option(data: bytes) -> IPOption:
    return IPOption(bytes((OPTION.kind, 2 + len(data))) + data)


def said(packet: Packet) -> PacingOption | None:
    """The option of a packet, whose checksums are right."""
    raw = bytes(packet)
    again = packet.copy()
    del again[IP].chksum, again[TCP].chksum
    assert bytes(again) == raw
    length = 4 * (raw[14] & 15) - 20
    return PacingOption.of(raw[36:46]) if length >= 12 and raw[34:36] == bytes((94, 12)) else None


@pytest.fixture(params=["interp", "jit"])
def switch(request: pytest.FixtureRequest) -> Switch:
    return Switch(request.param)


@pytest.fixture(params=["interp", "jit"])
def keyed(request: pytest.FixtureRequest) -> Switch:
    return Switch(request.param, KEYS)


def test_a_flow_counts_from_the_handshakes_ack_to_its_fin(switch: Switch) -> None:
    flow = switch.flow()
    flow.out("S", PacingOption(Kind.JOIN), seq=100)
    assert switch.state == (0, 0, 0)
    trace = said(flow.back("SA"))
    assert trace == PacingOption(Kind.TRACE, number(packed(GIVEN)), 1, link=LINK, hops=1)
    assert switch.state == (0, 0, 0)
    flow.out("A", seq=101, ack=1)
    assert switch.state == (1, 1, 0)
    flow.out("PA", seq=101, ack=1)
    flow.out("FA", seq=101, ack=1)
    assert switch.state == (0, 0, 0)
    flow.out("FA", seq=101, ack=1)
    flow.out("A", seq=102, ack=2)
    assert switch.state == (0, 0, 0)


def test_a_flow_counts_once_however_often_it_asks(switch: Switch) -> None:
    flow = switch.flow()
    for _ in range(3):
        flow.out("S", PacingOption(Kind.JOIN), seq=100)
        flow.back("SA")
    for _ in range(3):
        flow.out("A", seq=101, ack=1)
    assert switch.state == (1, 1, 0)
    # The port is used again, by a host that has forgotten the flow.
    assert flow.join().weight == 1
    assert switch.state == (1, 1, 0)


@pytest.mark.parametrize("flags", ["R", "RA"])
@pytest.mark.parametrize("from_host", [True, False])
def test_a_reset_frees_the_share_once(switch: Switch, flags: str, from_host: bool) -> None:
    flow, other = switch.flow(), switch.flow(1)
    flow.join()
    other.join(3)
    assert switch.state == (2, 4, 0)
    for _ in range(2):
        flow.out(flags) if from_host else flow.back(flags)
        assert switch.state == (1, 3, 0)


def test_a_vanished_flow_is_gone_after_the_idle_time(switch: Switch) -> None:
    gone, stays, half = switch.flow(), switch.flow(1), switch.flow(0, 2000)
    gone.join()
    stays.join()
    half.out("S", PacingOption(Kind.JOIN), seq=100)
    for _ in range(IDLE_S + 3):
        stays.out("A")
        for _ in range(5):
            switch.tick(0.2)
    assert switch.state == (1, 1, 0)
    assert sum(1 for source in switch.api.register_read("member_src") if source) == 1


def test_traffic_without_the_option_is_not_a_member_and_is_taken_off(switch: Switch) -> None:
    member = switch.flow()
    member.join()
    other = bytes(switch.flow(1).packet("PA", seq=1))
    # 54 bytes each 20 us: 21.6 Mbit/s.
    for number_sent in range(25_000):
        switch.now += 20 * US
        switch.api.process(switch.now, 2, other)
        if number_sent % 100 == 0:
            member.out("A")
            switch.tick(0)
    assert switch.state == (1, 1, 0)
    assert switch.read("others") == pytest.approx(21_600, rel=0.05)
    flow = switch.flow(1, 5000)
    assert flow.join().rate == pytest.approx(GIVEN - 21_600, rel=0.02)


def test_all_members_are_told_of_a_change_once_each_until_they_have_seen_it(switch: Switch) -> None:
    flows = [switch.flow(host, 1000 + number) for number in range(20) for host in (0, 1)]
    for flow in flows:
        flow.join()
    told = [out for _ in range(3) for out in switch.tick()]
    assert len(told) == len(flows)
    for port, packet in told:
        option = said(packet)
        assert option is not None
        assert option.kind == Kind.NOTICE
        assert option.link == LINK
        assert (option.rate, option.weight) == (number(packed(GIVEN)), len(flows))
        assert packet[TCP].flags == 0
        assert packet.dst == HOSTS[port // 2]
        assert packet[IP].src == "10.0.1.1"
    assert {(port // 2, packet[TCP].dport) for port, packet in told} == {(f.host, f.sport) for f in flows}
    seen = said(told[0][1])
    assert seen is not None
    for flow in flows[:30]:
        flow.out("A", PacingOption(Kind.SEEN, link=LINK, sequence=seen.sequence))
    assert [out for _ in range(3) for out in switch.tick()] == []
    again = [out for _ in range(3) for out in switch.tick(0.1)]
    assert {(port // 2, packet[TCP].dport) for port, packet in again} == {
        (f.host, f.sport) for f in flows[30:]
    }


def test_a_flow_that_takes_less_leaves_the_rest_to_others(switch: Switch) -> None:
    first, second = switch.flow(), switch.flow(1)
    first.join()
    second.join()
    first.out("A", PacingOption(Kind.UPDATE, rate=20_000, link=3))
    assert switch.state == (2, 1, number(packed(20_000)))
    # More than the link gives is no limit, nor is what this link itself has said.
    first.out("A", PacingOption(Kind.UPDATE, rate=80_000, link=3))
    assert switch.state == (2, 2, 0)
    first.out("A", PacingOption(Kind.UPDATE, rate=20_000, link=LINK))
    assert switch.state == (2, 2, 0)
    first.out("A", PacingOption(Kind.UPDATE, rate=20_000, link=3))
    first.out("FA")
    assert switch.state == (1, 1, 0)


def test_a_living_flow_that_was_forgotten_joins_again_by_its_next_update(switch: Switch) -> None:
    flow = switch.flow()
    flow.out("A", PacingOption(Kind.UPDATE, weight=5, link=LINK))
    assert switch.state == (1, 5, 0)


def test_a_flow_that_goes_another_way_takes_its_share_along(switch: Switch) -> None:
    flow = switch.flow()
    flow.join()
    switch.api.register_write("capacity", [50_000], 3)
    handle = next(e.handle for e in switch.api.table_entries("forward") if e.values == (OUT,))
    switch.api.table_modify("forward", handle, "to_port", [3])
    switch.send(0, flow.packet("A"))
    assert switch.state == (0, 0, 0)
    assert int(switch.api.register_read("flows", 3, 1)[0]) == 1


def test_the_narrowest_link_stays_in_the_trace(switch: Switch) -> None:
    flow = switch.flow()
    flow.out("S", PacingOption(Kind.JOIN), seq=100)
    narrower = PacingOption(Kind.TRACE, 10_000, 4, link=200, hops=1)
    assert said(flow.back("SA", narrower)) == narrower
    wider = PacingOption(Kind.TRACE, 200_000, 2, link=200, hops=1)
    trace = said(flow.back("SA", wider))
    assert trace is not None
    assert (trace.link, trace.hops, trace.weight) == (LINK, 2, 1)


def test_other_options_stay_where_they_are(switch: Switch) -> None:
    flow = switch.flow()
    flow.join()
    timestamp = IPOption(b"\x44\x0c\x05\x00" + bytes(8))
    packet = flow.packet("A")
    packet[IP].options = [timestamp]
    assert switch.send(0, Ether(bytes(packet))) == [(OUT, Ether(bytes(packet)))]
    assert switch.state == (1, 1, 0)


def test_a_syn_ack_without_room_goes_on_without_a_trace(switch: Switch) -> None:
    flow = switch.flow()
    flow.out("S", PacingOption(Kind.JOIN), seq=100)
    full = IP(src="10.0.1.1", dst=flow.address, options=[IPOption(b"\x44\x20\x05\x00" + bytes(28))])
    packet = Ether(src=SERVER, dst=HOSTS[0]) / full / TCP(sport=80, dport=flow.sport, flags="SA", ack=101)
    assert switch.send(OUT, packet) == [(0, Ether(bytes(packet)))]
    assert switch.refused() == [0, 1, 0, 0]


def test_with_keys_a_marked_syn_joins_at_once(keyed: Switch) -> None:
    flow = keyed.flow()
    flow.out("S", flow.option(PacingOption(Kind.JOIN, weight=2), 100), seq=100)
    assert keyed.state == (1, 2, 0)
    trace = said(flow.back("SA"))
    assert trace is not None
    host, server = (flow.address, flow.sport), ("10.0.1.1", 80)
    assert trace.checked(KEYS.values[1], host, server, 101) == trace
    ((_, notice),) = keyed.tick()
    option = said(notice)
    assert option is not None
    assert option.checked(KEYS.values[1], host, server) == option
    assert option.key == 1
    # Without the handshake's end it is gone sooner.
    for _ in range(3):
        keyed.tick(IDLE_S / 8)
    assert keyed.state == (0, 0, 0)


def test_with_keys_nobody_else_says_anything(keyed: Switch) -> None:
    flow, other = keyed.flow(), keyed.flow(1)
    flow.join()
    right = flow.option(PacingOption(Kind.UPDATE, rate=1000, link=3))
    forged = [
        PacingOption(Kind.UPDATE, rate=1000, link=3),
        replace(right, check=right.check ^ 1),
    ]
    for option in forged:
        flow.out("A", option)
    # A SYN of one flow in another's name, and one that was replayed with another sequence number.
    other.out("S", flow.option(PacingOption(Kind.JOIN), 100), seq=100)
    other.out("S", other.option(PacingOption(Kind.JOIN), 100), seq=101)
    assert keyed.state == (1, 1, 0)
    assert keyed.refused() == [0, 0, 0, 4]
    flow.out("A", right)
    assert keyed.state == (1, 0, 1000)


def test_both_keys_are_believed(keyed: Switch) -> None:
    old = Keys(KEYS.values, signing=0)
    keyed.keys = old
    keyed.flow().join()
    assert keyed.state == (1, 1, 0)


def test_a_forged_fin_takes_a_flow_off_until_it_asks_again(keyed: Switch) -> None:
    """As README.md says, "Limits"."""
    flow = keyed.flow()
    flow.join()
    flow.out("FA", seq=12345)
    assert keyed.state == (0, 0, 0)
    flow.out("A")
    assert keyed.state == (0, 0, 0)
    flow.out("A", flow.option(PacingOption(Kind.UPDATE)))
    assert keyed.state == (1, 1, 0)


def test_who_has_seen_an_option_of_a_host_can_repeat_it_until_the_key_is_another(keyed: Switch) -> None:
    """As README.md says, "Limits"."""
    flow = keyed.flow()
    join = flow.option(PacingOption(Kind.JOIN, weight=2), 100)
    limited = flow.option(PacingOption(Kind.UPDATE, rate=1000, link=3))
    flow.join()
    flow.out("A", limited)
    flow.out("A", flow.option(PacingOption(Kind.UPDATE)))
    assert keyed.state == (1, 1, 0)
    flow.out("A", limited)
    assert keyed.state == (1, 0, 1000)
    flow.out("FA")
    # With another sequence number it is none. With its own, it is a flow that has begun, and gone in an eighth of the idle time.
    flow.out("S", join, seq=101)
    assert keyed.state == (0, 0, 0)
    flow.out("S", join, seq=100)
    assert keyed.state == (1, 2, 0)
    for _ in range(3):
        keyed.tick(IDLE_S / 8)
    assert keyed.state == (0, 0, 0)
    keyed.api.register_write("keys", [1, 2], 0)
    flow.out("S", join, seq=100)
    assert keyed.state == (0, 0, 0)
