"""The part of pacing that runs on hosts: asks for each flow to be paced, and sets the rate that switches tell.

A switch tells what a link's flows share, and the sum of their weights. The flow's rate at the link is its weight's part of that,
and the least of its links' rates holds. Rates of switches count frames, a connection's pacing rate counts TCP's payload.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Check, Insert, Report
from tidegate.systems.pacing.format import CONSUMED, MOST_WEIGHT, OPTION, Keys, Kind, PacingOption

ETHERNET, IPV4, TCP, TIMESTAMPS = 14, 20, 20, 12
CHANGE = 0.002
"""A rate that differs by less is not told to switches."""


@dataclass
class Flow:
    """What is known of a connection."""

    shares: dict[int, float] = field(default_factory=dict)
    """By link: kbit/s for each unit of weight."""
    rate_kbps: float | None = None
    """Of frames; None: not paced."""
    link: int = 0
    """The link that the rate is from."""
    told: tuple[float, int] = (0.0, 0)
    """The rate and the link that switches have been told."""
    sequences: dict[int, int] = field(default_factory=dict)
    """By link: its last notice's."""
    left: set[int] = field(default_factory=set)
    """Links that the flow has left; what they gave holds until another link is known."""
    unsaid: set[int] = field(default_factory=set)
    """Links whose notices came before the flow could answer."""


class PacingAgent(Agent):
    """Paces the connections that a host opens.

    `weight` is that of each flow. `mtu` and `timestamps` say what part of a frame is payload. Rates outside `least` and `most` are
    those. With `keys`, options carry a check, and those with a wrong one are not believed. `changes` has each rate that was set: time in seconds, the flow's number, bit/s of payload; `opened`,
    `established` and `closed` have the seconds at which flows, by number, sent their SYN, had its answer, and were over.
    """

    # Below 1 ms of round trip, Linux would send bursts of 64 KiB.
    sysctls = (("ipv4/tcp_tso_rtt_log", "0"),)

    def __init__(
        self,
        weight: int = 1,
        *,
        mtu: int = 1500,
        timestamps: bool = True,
        least: units.Rate = "64 kbit/s",
        most: units.Rate = "1 Tbit/s",
        keys: Keys | None = None,
    ) -> None:
        if not 1 <= weight <= MOST_WEIGHT:
            raise TidegateError(f"a flow's weight is {weight}; give one from 1 to {MOST_WEIGHT}")
        self._weight = weight
        header = IPV4 + TCP + (TIMESTAMPS if timestamps else 0)
        if mtu <= header:
            raise TidegateError(f"an MTU of {mtu} has no room for payload; give one above {header}")
        self._payload = (mtu - header) / (mtu + ETHERNET)
        self._least, self._most = units.rate(least), units.rate(most)
        if not 0 < self._least <= self._most:
            raise TidegateError(
                f"rates from {least} to {most} are none; give a least rate above 0 and at most the largest"
            )
        self._keys = keys
        join = Insert(OPTION, PacingOption(Kind.JOIN, weight=weight).data, on=("syn",))
        report = Report(OPTION, consume=CONSUMED, each=True)
        check = () if keys is None else (Check(OPTION, keys.values, keys.signing),)
        self.shims = (join, report, *check)
        self.flows: dict[int, Flow] = {}
        self.changes: list[tuple[float, int, float]] = []
        self.counts: Counter[str] = Counter()
        self.opened: dict[int, float] = {}
        self.established: dict[int, float] = {}
        self.closed: dict[int, float] = {}

    def on_open(self, now: int, connection: Connection) -> None:
        """Flows that the other side opens send little, and are not paced."""
        if self.changes and now < self.changes[-1][0] * units.PS_PER_S:
            # Another run.
            self.changes.clear()
            self.counts.clear()
            self.opened.clear()
            self.established.clear()
            self.closed.clear()
        if connection.active:
            self.flows[connection.number] = Flow()
            self.opened[connection.flow] = now / units.PS_PER_S

    def on_established(self, now: int, connection: Connection) -> None:
        """Answer what came before."""
        flow = self.flows.get(connection.number)
        if flow is not None:
            self.established[connection.flow] = now / units.PS_PER_S
            flow.unsaid = {link for link in flow.unsaid if not self._seen(connection, flow, link)}

    def on_closed(self, now: int, connection: Connection) -> None:
        """Nothing is known of the flow any more."""
        if self.flows.pop(connection.number, None) is not None:
            self.closed[connection.flow] = now / units.PS_PER_S

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        """A switch has said what a link gives."""
        flow, option = self.flows.get(connection.number), PacingOption.of(data)
        if flow is None:
            return
        if option is None or option.kind not in (Kind.TRACE, Kind.NOTICE) or option.weight == 0:
            self.counts["malformed"] += 1
            return
        self.counts[option.kind.name.lower()] += 1
        if option.rate == 0:
            self._forget(now, connection, flow, option)
            return
        if option.kind == Kind.NOTICE:
            last = flow.sequences.get(option.link)
            if last is not None and (option.sequence - last) % 256 >= 128:
                self.counts["stale"] += 1
                return
            flow.sequences[option.link] = option.sequence
            if not self._seen(connection, flow, option.link):
                flow.unsaid.add(option.link)
        flow.shares[option.link] = option.rate / option.weight
        flow.left.discard(option.link)
        self._settle(now, connection, flow)

    def _forget(self, now: int, connection: Connection, flow: Flow, option: PacingOption) -> None:
        """The flow has left a link. Its share holds until another is known, so that the flow is never without a rate."""
        self._send(connection, PacingOption(Kind.SEEN, link=option.link, sequence=option.sequence))
        flow.left.add(option.link)
        flow.sequences.pop(option.link, None)
        if flow.shares.keys() - flow.left:
            self._settle(now, connection, flow)

    def _settle(self, now: int, connection: Connection, flow: Flow) -> None:
        """Set a flow's rate from what is known, and tell switches of it where there is more than one."""
        if flow.shares.keys() - flow.left:
            for gone in flow.left:
                flow.shares.pop(gone, None)
            flow.left.clear()
        link, share = min(flow.shares.items(), key=lambda item: item[1])
        kbps = share * self._weight
        if kbps != flow.rate_kbps:
            flow.rate_kbps = kbps
            rate = min(max(round(kbps * 1000 * self._payload), self._least), self._most)
            connection.pace(rate)
            self.changes.append((now / units.PS_PER_S, connection.flow, rate))
        flow.link = link
        rate_told, link_told = flow.told
        changed = link != link_told or abs(kbps - rate_told) > CHANGE * rate_told
        update = PacingOption(Kind.UPDATE, rate=int(kbps), weight=self._weight, link=link)
        if len(flow.shares) > 1 and changed and self._send(connection, update):
            flow.told = (kbps, link)

    def _seen(self, connection: Connection, flow: Flow, link: int) -> bool:
        """Say that a link's notice has come, if the connection can."""
        return self._send(connection, PacingOption(Kind.SEEN, link=link, sequence=flow.sequences[link]))

    def _send(self, connection: Connection, option: PacingOption) -> bool:
        if self._keys is not None:
            host, peer = (
                (connection.source, connection.source_port),
                (connection.target, connection.target_port),
            )
            option = replace(option, key=self._keys.signing).checked(
                self._keys.values[self._keys.signing], host, peer
            )
        return connection.send(OPTION, option.data)
