"""The part of pacing that runs on hosts: asks for each flow to be paced, and sets the rate that switches tell.

A switch tells what a link's flows share, and the sum of their weights. The flow's rate at the link is its weight's part of that,
and the least of its links' rates holds. Rates of switches count frames, a connection's pacing rate counts TCP's payload.

The first SYN alone is marked. A flow that is connected and has not heard of a switch asks, in a packet that may be lost; one that
sends asks every `refresh`, so that a switch that was restarted learns of it; and one without an answer for `timeout` is not paced
any more. What an application does not use for a second, switches are told to give to others.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Check, Insert, Report
from tidegate.systems.pacing.format import (
    APPLICATION,
    CONSUMED,
    FOR_ALL,
    MOST_WEIGHT,
    OPTION,
    Keys,
    Kind,
    PacingOption,
)

ETHERNET, IPV4, TCP, TIMESTAMPS = 14, 20, 20, 12
CHANGE = 0.002
"""A rate that differs by less is not told to switches."""
IDLE = units.time("1 s")
"""So long an application uses less than its share before the rest is given away."""
FIRST_AGAIN = units.time("1 s")
"""After so long a flow that no switch has answered asks again; then after twice as long, and so on."""
ANSWERED = units.time("2 s")
"""By then a switch has answered: it walks a list that nothing has changed in once in 1.05 s."""
LEAST_LIMIT = 16
"""In kbit/s: what a flow keeps whose application sends nothing."""


@dataclass
class Flow:
    """What is known of a connection."""

    connection: Connection
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
    awaited: dict[int, int] = field(default_factory=dict)
    """By link: the first question that it has not answered."""
    left: set[int] = field(default_factory=set)
    """Links that the flow has left; what they gave holds until another link is known."""
    unsaid: set[int] = field(default_factory=set)
    """Links whose notices came before the flow could answer."""
    heard: int | None = None
    """When a switch said something last. This and the other times are picoseconds."""
    asked: int = 0
    """When switches were asked last; of one that never was: when the flow began."""
    asking: int | None = None
    """Since when a question has no answer."""
    sent: int | None = None
    """What had been sent when switches were asked last."""
    questions: int = 0
    """That had no answer."""
    used: _Use = field(default_factory=lambda: _Use())

    def is_old(self, now: int, notice: PacingOption, refresh: int) -> bool:
        """Whether a later notice of its link has come before.

        A link that has not answered for a refresh may have begun to count anew: a switch that was restarted counts from 0.
        """
        last = self.sequences.get(notice.link)
        if last is None or (notice.sequence - last) % 256 < 128:
            return False
        return now - self.awaited.get(notice.link, now) < max(refresh, ANSWERED)

    def hear(self, now: int) -> None:
        """A switch has said something of its rate."""
        self.heard, self.asking, self.questions = now, None, 0


@dataclass
class _Use:
    """What an application uses of its flow's rate."""

    at: int | None = None
    sent: int = 0
    """When it was looked at last, and the bytes that had been sent then."""
    idle: int | None = None
    """Since when it uses less."""
    limit_kbps: float | None = None
    """What switches were told that it takes; None: all that it is given."""

    def look(self, now: int, sent: int, kbps: float, payload: float) -> bool:
        """Measure again, and give whether switches are to be told of another limit. `kbps` and the limit count frames."""
        spent, bytes_sent = now - (self.at or now), (sent - self.sent) % 2**32
        self.at, self.sent = now, sent
        if not spent:
            return False
        used = bytes_sent * 8e9 / spent / payload
        limit = self.limit_kbps
        # More than it took before: it may have all again.
        if limit is not None and used > 7 / 8 * limit:
            self.limit_kbps = self.idle = None
            return True
        if used * 1.5 >= (kbps if limit is None else limit):
            self.idle = None
            return False
        if self.idle is None:
            self.idle = now - spent
        if now - self.idle < IDLE:
            return False
        self.idle = None
        used = max(1.25 * used, LEAST_LIMIT)
        if used >= (kbps if limit is None else limit):
            return False
        self.limit_kbps = used
        return True


class PacingAgent(Agent):
    """Paces the connections that a host opens.

    `weight` is that of each flow. `mtu` and `timestamps` say what part of a frame is payload. Rates outside `least` and `most` are
    those. With `keys`, options carry a check, and those with a wrong one are not believed. With `lends`, what applications leave
    goes to others. `changes` has each rate that was set: time in seconds, the flow's number, bit/s of payload (0: not paced any
    more); `opened`, `established` and `closed` have the seconds at which flows, by number, sent their SYN, had its answer, and
    were over.
    """

    period = "500 ms"

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
        lends: bool = True,
        refresh: units.Time = "10 s",
        timeout: units.Time = "30 s",
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
        self._keys, self._lends = keys, lends
        self._refresh, self._timeout = units.time(refresh), units.time(timeout)
        if not 0 < self._refresh <= self._timeout:
            raise TidegateError(
                f"a refresh of {refresh} and a timeout of {timeout} make no sense; give a refresh above 0 and at most the timeout"
            )
        join = Insert(OPTION, PacingOption(Kind.JOIN, weight=weight).data, on=("syn",), once=True)
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
            self.flows[connection.number] = Flow(connection, asked=now)
            self.opened[connection.flow] = now / units.PS_PER_S

    def on_established(self, now: int, connection: Connection) -> None:
        """Answer what came before; ask where nothing has come."""
        flow = self.flows.get(connection.number)
        if flow is not None:
            self.established[connection.flow] = now / units.PS_PER_S
            flow.unsaid = {
                link for link in flow.unsaid if not self._seen(connection, link, flow.sequences[link])
            }
            # Behind its FIN, an option would have switches take a flow for one that is there.
            if flow.heard is None and connection.bytes_sent() is not None:
                self._ask(now, flow)

    def tick(self, now: int, connections: Sequence[Connection]) -> None:
        """Ask again, give up, and see what applications use."""
        for connection in connections:
            flow = self.flows.get(connection.number)
            sent = None if flow is None else connection.bytes_sent()
            if flow is None or sent is None:
                continue
            changed = False
            if self._lends and flow.rate_kbps is not None:
                changed = flow.used.look(now, sent, flow.rate_kbps, self._payload)
            since = flow.asked if flow.heard is None else max(flow.asked, flow.heard)
            unanswered = 0 if flow.asking is None else now - flow.asking
            refresh = self._refresh
            if flow.heard is None:
                # The question may be lost, or there is no such switch: soon again at first, then seldom.
                refresh = min(FIRST_AGAIN << max(flow.questions - 1, 0), 8 * self._refresh)
            if changed or (now - since >= refresh and (sent != flow.sent or flow.heard is None)):
                self._ask(now, flow)
                flow.sent = sent
            if flow.rate_kbps is not None and unanswered >= self._timeout:
                self.counts["silent"] += 1
                flow.rate_kbps = None
                flow.connection.pace(None)
                self.changes.append((now / units.PS_PER_S, connection.flow, 0))

    def _ask(self, now: int, flow: Flow) -> None:
        """Say what the flow takes. Switches answer with what they give."""
        if self._update(flow):
            self.counts["asked"] += 1
            flow.asked = now
            flow.questions += 1
            if flow.asking is None:
                flow.asking = now
            for link in flow.shares:
                flow.awaited.setdefault(link, now)

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
            self._forget(now, flow, option)
            return
        old = option.kind == Kind.NOTICE and flow.is_old(now, option, self._refresh)
        if not old:
            flow.hear(now)
        if option.kind == Kind.NOTICE:
            if option.hops == FOR_ALL:
                self._all(now, connection, option)
                return
            if old:
                self.counts["stale"] += 1
                return
            flow.sequences[option.link] = option.sequence
            if not self._seen(connection, option.link, option.sequence):
                flow.unsaid.add(option.link)
        self._take(now, flow, option)

    def _all(self, now: int, connection: Connection, option: PacingOption) -> None:
        """A notice for all flows that have a share of the link. Those that have been told by themselves know better."""
        self._seen(connection, option.link, option.sequence, FOR_ALL)
        old = 0
        for flow in self.flows.values():
            if option.link not in flow.shares or option.link in flow.left:
                continue
            if flow.is_old(now, option, self._refresh):
                old += 1
            elif flow.sequences.get(option.link) == option.sequence:
                flow.awaited.pop(option.link, None)
            else:
                flow.hear(now)
                flow.sequences[option.link] = option.sequence
                self._take(now, flow, option)
        self.counts["stale"] += old > 0

    def _take(self, now: int, flow: Flow, option: PacingOption) -> None:
        """What a link gives to a flow."""
        flow.shares[option.link] = option.rate / option.weight
        flow.awaited.pop(option.link, None)
        flow.left.discard(option.link)
        self._settle(now, flow)

    def _forget(self, now: int, flow: Flow, option: PacingOption) -> None:
        """The flow has left a link. Its share holds until another is known, so that the flow is never without a rate."""
        self._seen(flow.connection, option.link, option.sequence)
        flow.left.add(option.link)
        flow.sequences.pop(option.link, None)
        flow.awaited.pop(option.link, None)
        if flow.shares.keys() - flow.left:
            self._settle(now, flow)

    def _settle(self, now: int, flow: Flow) -> None:
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
            flow.connection.pace(rate)
            self.changes.append((now / units.PS_PER_S, flow.connection.flow, rate))
        flow.link = link
        rate_told, link_told = flow.told
        changed = link != link_told or abs(kbps - rate_told) > CHANGE * rate_told
        if len(flow.shares) > 1 and changed:
            self._update(flow)

    def _update(self, flow: Flow) -> bool:
        """Tell switches what the flow takes, and what limits it: a link, or its application."""
        kbps, link = flow.rate_kbps or 0, flow.link if flow.rate_kbps else 0
        limit = flow.used.limit_kbps
        taken = (limit, APPLICATION) if limit is not None and limit < kbps else (kbps, link)
        update = PacingOption(Kind.UPDATE, rate=int(taken[0]), weight=self._weight, link=taken[1])
        sent = self._send(flow.connection, update)
        if sent:
            flow.told = (kbps, link)
        return sent

    def _seen(self, connection: Connection, link: int, sequence: int, hops: int = 0) -> bool:
        """Say that a link's notice has come, if the connection can."""
        return self._send(connection, PacingOption(Kind.SEEN, link=link, sequence=sequence, hops=hops))

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
