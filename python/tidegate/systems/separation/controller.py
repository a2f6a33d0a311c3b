"""The slow loop: reads the monitor, makes classes of flows, gives each class its rate and buffer, and tells the router.

Each period:

1. Long TCP flows are sorted into classes by their least round-trip times (`classes`), one for each queue.
2. Each flow's rate is its weighted max-min share (`shares`). A flow that for a while has sent less than its share, though its packets did
   not wait at the router, asks for what it sends and some room; the rest goes to those that can use it. One that waits in a queue does so
   too, if that queue gets all that was planned for it and the flow much less than its share, but not where it loses packets: then it is the
   others in its queue that leave it no more, and what it does not get is theirs.
3. A class's queue is guaranteed the sum, or capped at what others leave too, and has a buffer by the Stanford rule with a floor (`buffers`).
4. Where an operator gives round-trip times that a queue may not exceed, the flow that sends most of a queue above its time moves to the
   next queue, and stays there for a while.
5. UDP flows above a rate, and those above their shares that are above it together, have a queue of their own, capped at their max-min
   shares while others are there, and not while alone.
"""

from __future__ import annotations

import logging
import math
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Literal, NamedTuple
from zlib import crc32

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, Digest, SwitchApi
from tidegate.network import FiveTuple
from tidegate.systems.separation import shares
from tidegate.systems.separation.buffers import FLOOR_PACKETS, MTU, stanford
from tidegate.systems.separation.classes import Classifier
from tidegate.systems.separation.measured import MOST_BITS, Flows, Measured, Unknown, sketch_bits
from tidegate.systems.separation.routers import Plan, QueuePlan, Router
from tidegate.units import PS_PER_S

log = logging.getLogger("tidegate.separation")

TRACKS, COUNTS, LEAVES, OFFERS = 1, 2, 4, 8
"""What a tap's copies are for: `monitor.p4`."""

SETTLE_S = 1.5
"""A flow that has been slower than its share for so long, and for two rounds, without waiting at the router, cannot use it."""
SLOWER, SLOWER_BEHIND_OTHERS, LIMITED = 0.9, 0.7, 0.97
"""Of its share: slower than this is slower; for one that waits in its queue; and for one that has been found slow, and may have no more than
a little above what it sent."""
USED = 0.9
"""Of a queue's rate: with less, the router holds its flows back."""
ROOM = 1.06
"""What a flow that cannot use its share may have: this much of what it sends. It sends less than `LIMITED` of that, so it keeps it."""
QUIET_S, QUIET_PACKETS = 1e-3, 8
"""A packet that waits for less than this, or than so many packets take, has not waited."""
WAITING_US = 50_000
"""After which a packet of the monitor leaves its cell to another: `separation.memory`."""
IDLE_US = 60_000_000
"""After which a silent flow leaves its place to another: of the time in which the monitor sees it."""
NEWCOMERS_ROOM = 1.5
"""What is left to flows that are not known yet: this much of what they send. They come and go, so it is more than `ROOM`."""
TYPICAL_RTT_S = 0.02
"""Where none is known, for a buffer."""
NEWCOMERS_RTT_S = 0.1
"""What the round-trip time of flows that are not known yet is taken for, at least (CoDel's interval, RFC 8289 section 4.3). Those of the
known flows say nothing of it: beside one with 1 ms a flow with 200 ms would leave slow start with a window of a few packets."""
NEWCOMERS_S = 0.5
"""The buffer of flows that are not known yet is a BDP of the link, and at most what their own rate sends in this time: a SYN is sent again
after 1 s (RFC 6298 section 2). Beside thousands of flows the link's BDP would be a minute of their rate."""
STAY_S = 30.0
"""A flow that was moved by a threshold stays in its queue for so long; twice as long when it is moved again."""
MOST_MOVES = 10


@dataclass(frozen=True)
class Taps:
    """Ports of the monitor that taps lead to."""

    before: tuple[int, int]
    """Of the link in front of the router: towards the congested link, and back."""
    after: int | None = None
    """Of the link behind it, towards its far end. Without it nothing is known of the time in the router: no flow is found that cannot use its
    share, and base round-trip times have the least time in the router in them."""
    wire: units.Time = 0
    """Time that a packet takes from one to the other without waiting."""

    def entries(self) -> dict[int, int]:
        """What each port's copies are for. Bytes are those towards the congested link, of what has left the router if there is a tap."""
        forth, back = self.before
        if self.after is None:
            return {forth: TRACKS | COUNTS | OFFERS, back: TRACKS}
        return {forth: TRACKS | OFFERS, back: TRACKS, self.after: COUNTS | LEAVES}


@dataclass
class _Flow:
    """What the controller remembers of a flow."""

    share_bps: float = 0.0
    slow_since: int | None = None
    slow_resent: int = 0
    """Packets that it had sent again by then."""
    demand_bps: float = float("inf")
    stays_in: int | None = None
    stays_until: int = 0
    moved: int = 0
    """Times that it was moved by a threshold."""
    with_others: bool = False
    """It is policed for what it and other UDP flows offer together."""


class _Share(NamedTuple):
    """What a flow is given."""

    flow: Measured
    rate_bps: float
    most_bps: float
    """What it may have of what others leave, where classes are capped."""


@dataclass
class SeparationController(Controller):
    """Of a switch with `monitor.p4`, and of a router's port to a link."""

    clock = "1 us"
    router: Router
    taps: Taps
    rate: units.Rate
    """Of the router's link, in IP bytes."""
    classes: int = 4
    """Of TCP flows; each has a queue."""
    newcomers: bool = True
    """Whether flows that are not known yet, and UDP flows that are not policed, have a queue of their own, rather than the first class's."""
    by_fit: bool = False
    classify_by: Literal["rtt", "hash"] | Mapping[FiveTuple, int] = "rtt"
    """`hash`: classes by a hash of the 5-tuple, against which those by round-trip time have to be compared. Or the class of each flow; one that
    is not in it is of class 0."""
    weighting: shares.Weighting = "flows"
    hold: Literal["guarantee", "cap"] = "guarantee"
    """Whether a class's rate is what it gets at least, or at most too."""
    period: units.Time | None = "1 s"
    long_bytes: units.Size = "10 MB"
    """Bytes from which on a flow is long; 0: all are. They count from when the sketch was cleared (`measured.SKETCH_LOAD`)."""
    buffers: Literal["stanford", "link", "bdp", "split"] = "stanford"
    """By a class's own rate, round-trip time and flows; by the link's rate in place of its own, which it may have while others are idle; by
    its rate and round-trip time; or one BDP of the link, by the mean round-trip time of all flows, divided by the classes' rates."""
    floor_packets: int = FLOOR_PACKETS
    rtt_limits: Sequence[units.Time] = ()
    """For each class but the last, the round-trip time that its flows may have; none: no limits. Flows of the last one have no class to move
    to: a limit for it has no effect, and a warning says so."""
    udp_above: float | None = None
    """Part of the link's rate above which a UDP flow is policed, and so are those that offer more than their max-min shares, if they are
    above it together; `None`: never."""
    ready: Callable[[], None] | None = None
    """Called at the start of each run."""
    every: int = 1
    """The monitor sees a flow in one of so many seconds (`Network.tap`): what it counts is multiplied. A period is a multiple of it, so that
    each period has as much of each flow."""
    retries: int = 5
    """How often in a row a router may refuse a plan, or not answer: until then it keeps its last plan, and the next round tries again."""
    known: dict[FiveTuple, _Flow] = field(default_factory=dict, repr=False)
    plan: Plan | None = field(default=None, repr=False)
    round_s: float | None = field(default=None, repr=False)
    """By the clock, of the last round: reading the monitor, classes, shares, and notes, without what the router took."""
    commit_s: float | None = field(default=None, repr=False)
    """By the clock, of the router's taking the last plan that it was told, or refusing it."""

    def __post_init__(self) -> None:
        self._rate = float(units.rate(self.rate))
        self._wire_s = units.time(self.taps.wire) / PS_PER_S
        self._quiet_s = max(QUIET_S, QUIET_PACKETS * MTU * 8 / max(self._rate, 1.0))
        self._limits = [units.time(limit) for limit in self.rtt_limits]
        self._first, self._policed = int(self.newcomers), int(self.newcomers) + self.classes
        wanted = self._policed + (self.udp_above is not None)
        if wanted > self.router.most_queues:
            raise TidegateError(
                f"{wanted} queues, and the router's port has {self.router.most_queues}; give fewer classes"
            )
        if not isinstance(self.every, int) or self.every < 1:
            raise TidegateError(
                f"every is {self.every!r}; give the number of seconds of which a flow is shown in one"
            )
        if self.every > 1 and self.period is not None and units.time(self.period) % (self.every * PS_PER_S):
            raise TidegateError(
                f"a flow is shown in one of {self.every} seconds, so rates are known over {self.every} s, and the period is {self.period}; "
                f"give a multiple of {self.every} s"
            )
        self._long_bytes = units.size(self.long_bytes) // self.every
        if self.retries < 0:
            raise TidegateError(f"{self.retries} retries of a router; give 0 or more")
        if self._rate <= 0:
            raise TidegateError("a link with the rate 0 has nothing to share; give a rate above 0")
        if self._limits and len(self._limits) not in (self.classes - 1, self.classes):
            raise TidegateError(
                f"{len(self._limits)} limits of round-trip times for {self.classes} classes; give one for each class but the last"
            )
        if self._limits and len(self._limits) == self.classes:
            log.warning(
                "the last limit of round-trip times, %s, has no effect: flows of the last class have no class to move to; leave it out",
                self.rtt_limits[-1],
            )
            del self._limits[-1]
        self._begin()

    def _begin(self) -> None:
        self.flows, self.known, self.plan = Flows(self.every), {}, None
        self.failures = 0
        self._warned = self._warned_of_places = False
        self.round_s = self.commit_s = None
        self._classifier = Classifier(self.classes, self.by_fit)

    @property
    def class_ends(self) -> list[float]:
        """Upper ends of the classes' round-trip times (s) but the last, ascending."""
        return list(self._classifier.ends)

    def classes_now(self) -> dict[FiveTuple, int]:
        """The class of each active TCP flow that has one, as last told to the router. With no flow active the router keeps its last plan."""
        flows = {} if self.plan is None else self.plan.flows
        last = self._first + self.classes
        return {
            flow: of - self._first
            for flow, of in flows.items()
            if flow.protocol == 6 and self._first <= of < last and flow in self.known
        }

    def start(self, switch: SwitchApi) -> None:
        """Set the monitor up. Flows that it knows from before are found again as they send."""
        self._begin()
        if self.ready is not None:
            self.ready()
        switch.state_reset()
        for port, what in self.taps.entries().items():
            switch.table_add("taps", [port], "sees", [what])
        switch.register_write("long_bytes", [self._long_bytes])
        switch.register_write("idle_time", [IDLE_US * self.every])
        switch.register_write("waiting_time", [WAITING_US])

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        """A flow has got a place."""
        self.flows.found(now, digest)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """One round."""
        began, told_s = perf_counter(), 0.0
        active = self.flows.read(now, switch)
        unknown = self.flows.unknown(now, switch)
        if self.flows.clear_sketch(switch, self._long_bytes):
            self._heed_sketch(unknown)
        if self.flows.crowded:
            self._heed_places(switch)
        plan = self._planned(now, active, unknown)
        if plan is not None and plan != self.plan:
            self._apply(plan, switch)
            told_s = self.commit_s or 0.0
        switch.note("active_flows", len(active))
        if self.plan is not None:
            inside = Counter(self.plan.flows.values())
            for number, queue in enumerate(self.plan.queues):
                switch.note(f"queue_{number}_rate_mbps", queue.rate_bps / 1e6)
                switch.note(f"queue_{number}_flows", inside[number])
        self.round_s = perf_counter() - began - told_s

    def _heed_sketch(self, unknown: Unknown) -> None:
        """Warn, once, of a sketch that is too small for the flows that there are: it would be cleared before any of them is long."""
        most = self.flows.most_found
        if self._warned or unknown.flows <= most or unknown.rate_bps < self._rate / 2:
            return
        self._warned = True
        log.warning(
            "%.0f flows that are not known have %.0f %% of the link; of flows of equal rates the monitor finds %.0f: make its sketch "
            "larger (sketch_bits=%d)",
            unknown.flows,
            100 * unknown.rate_bps / self._rate,
            most,
            sketch_bits(round(unknown.flows)),
        )

    def _heed_places(self, switch: SwitchApi) -> None:
        """Warn, once, of tables in which a long flow has found no place."""
        if self._warned_of_places or not int(switch.register_read("no_place")[0]):
            return
        self._warned_of_places = True
        log.warning(
            "the monitor has found %d flows, and no place for another, which stays with the flows that are not known: make its tables "
            "larger (flow_bits=%d)",
            len(self.flows.by_place),
            min((2 * len(self.flows.by_place) - 1).bit_length(), MOST_BITS),
        )

    def _apply(self, plan: Plan, switch: SwitchApi) -> None:
        began = perf_counter()
        try:
            try:
                self.router.apply(plan)
            finally:
                self.commit_s = perf_counter() - began
        except TidegateError as error:
            self.failures += 1
            switch.note("router_failures", self.failures)
            if self.failures > self.retries:
                raise
            log.warning("%s; it keeps its queues, and is tried again in %s", error, self.period)
        else:
            if self.failures:
                switch.note("router_failures", 0)
            self.failures, self.plan = 0, plan

    def _planned(self, now: int, active: Sequence[Measured], unknown: Unknown) -> Plan | None:
        tcp = [one for one in active if not one.is_udp and one.base_rtt_s is not None]
        udp = [one for one in active if one.is_udp]
        self.known = {one.flow: self.known.get(one.flow) or _Flow() for one in active}
        if not active:
            return None
        if self.classify_by == "rtt":
            class_of = self._classifier.classify({one.flow: one.base_rtt_s or 0.0 for one in tcp})
        elif isinstance(self.classify_by, Mapping):
            known = self.classify_by
            class_of = {one.flow: min(known.get(one.flow, 0), self.classes - 1) for one in tcp}
        else:
            class_of = {one.flow: crc32(repr(tuple(one.flow)).encode()) % self.classes for one in tcp}
        class_of = self._within_limits(now, tcp, class_of)
        # Those without a sample yet are with the flows that are not known.
        new = [one for one in active if not one.is_udp and one.base_rtt_s is None]
        everyone = [*tcp, *new, *udp]
        of = {one.flow: 0 for one in new} | {flow: self._first + number for flow, number in class_of.items()}
        held = self._held_back(everyone, unknown)
        demands = [self._demand(now, one, held) for one in everyone]
        policed = self._above(udp, demands, unknown)
        of |= {one.flow: self._policed if one.flow in policed else 0 for one in udp}
        # Of UDP no round-trip time is known.
        longest = max((one.base_rtt_s for one in tcp if one.base_rtt_s is not None), default=TYPICAL_RTT_S)
        rtts = [one.base_rtt_s or longest for one in everyone]
        weight = shares.weights(self.weighting, [of[one.flow] for one in everyone], rtts)
        # Flows that are not known yet are about so many, and their queue has the shares of so many. With caps the others have what they
        # leave of it; with guarantees it goes to those by itself, and a plan for more than the link would slow the newcomers.
        weights = [*weight, max(unknown.flows, 1e-9) * float(weight.mean())]
        *rates, newcomers = shares.max_min(self._rate, [*demands, math.inf], weights)
        used, most, left = newcomers, rates, rates
        asked = NEWCOMERS_ROOM * unknown.rate_bps
        if self.hold == "cap" or policed:
            *left, asked = shares.max_min(self._rate, [*demands, asked], weights)
        if self.hold == "cap":
            rates, used = left, asked
            most = self._caps(everyone, demands, unknown.rate_bps, weights)
        for one, rate in zip(everyone, rates, strict=True):
            self.known[one.flow].share_bps = float(rate)
        inside: list[list[_Share]] = [[] for _ in range(self._policed + (self.udp_above is not None))]
        for one, rate, cap in zip(everyone, rates, most, strict=True):
            inside[of[one.flow]].append(_Share(one, float(rate), float(cap)))
        mean = sum(one.base_rtt_s or 0.0 for one in tcp) / len(tcp) if tcp else TYPICAL_RTT_S
        queues = [self._class_queue(flows, mean) for flows in inside]
        if self.udp_above is not None:
            # Not what is guaranteed to flows that are not known yet, but what they leave.
            most_bps = sum(
                rate for one, rate in zip(everyone, left, strict=True) if of[one.flow] == self._policed
            )
            alone = len(inside[-1]) == len(everyone)
            queues[-1] = self._policed_queue(inside[-1], None if alone else float(most_bps))
        if self.newcomers or not inside[0]:
            # At least what one more flow would have, and room for its slow start.
            more = newcomers + sum(one.rate_bps for one in inside[0])
            mine = min(self._rate, max(self._rate / (len(everyone) + 1), more))
            size = min(stanford(self._rate, max(longest, NEWCOMERS_RTT_S), 1), round(mine / 8 * NEWCOMERS_S))
            queues[0] = QueuePlan(round(mine), max(size, self.floor_packets * MTU))
        else:
            queues[0] = self._class_queue(inside[0], mean, float(used))
        return Plan(tuple(queues), of)

    def _above(self, udp: Sequence[Measured], demands: Sequence[float], unknown: Unknown) -> set[FiveTuple]:
        """UDP flows above the threshold; and of the others those above their shares, if these are above it together.

        They stay policed while that is above half of it. One that comes back to its share is not policed with others: in their queue it
        would lose packets.
        """
        if not udp or self.udp_above is None:
            return set()
        most = self.udp_above * self._rate
        above = {one.flow for one in udp if one.offered_bps > most * self._stays(one, with_others=False)}
        share = self._equal_share(demands, unknown)
        greedy = [one for one in udp if one.flow not in above and self._is_greedy(one, share)]
        sum_bps = sum(one.offered_bps for one in greedy)
        together = {one.flow for one in greedy if sum_bps > most * self._stays(one, with_others=True)}
        for one in udp:
            self.known[one.flow].with_others = one.flow in together
        return above | together

    def _stays(self, one: Measured, *, with_others: bool) -> float:
        """The part of the threshold that counts for a UDP flow: half, if it is policed for what it offers alone, or with others."""
        before = self.plan is not None and self.plan.flows.get(one.flow) == self._policed
        return 0.5 if before and self.known[one.flow].with_others == with_others else 1

    def _is_greedy(self, one: Measured, share_bps: float) -> bool:
        """Whether a UDP flow offers more than its share; one that is not policed with others has some room."""
        return one.offered_bps > share_bps * (1 if self.known[one.flow].with_others else ROOM)

    def _equal_share(self, demands: Sequence[float], unknown: Unknown) -> float:
        """The most that a flow has by max-min shares with equal weights: who asks for more has no more.

        Flows that are not known yet ask for what they send and some room.
        """
        asked = [*demands, NEWCOMERS_ROOM * unknown.rate_bps]
        rates = shares.max_min(self._rate, asked, [*(1.0 for _ in demands), max(unknown.flows, 1e-9)])
        return float(rates[:-1].max())

    def _held_back(self, everyone: Sequence[Measured], unknown: Unknown) -> set[int]:
        """Queues that get less from the router than was planned."""
        if self.plan is None:
            return set()
        # Flows that are not known yet have the first queue.
        rates = [unknown.rate_bps] + [0.0] * (len(self.plan.queues) - 1)
        for one in everyone:
            if one.flow in self.plan.flows:
                rates[self.plan.flows[one.flow]] += one.rate_bps
        planned = enumerate(zip(rates, self.plan.queues, strict=True))
        return {number for number, (rate, queue) in planned if rate < USED * queue.rate_bps}

    def _demand(self, now: int, one: Measured, held: Collection[int]) -> float:
        """What a flow asks for: no limit, or where it has not used its share for a while, what it sends and some room."""
        if one.is_udp:
            return one.offered_bps
        memory = self.known[one.flow]
        waited = (one.queue_delay_s or 0.0) - self._wire_s > self._quiet_s
        is_limited = memory.demand_bps < float("inf")
        if waited and self.plan is not None and self.plan.flows.get(one.flow) in held:
            # It waits, and not because others in its queue have more.
            memory.slow_since = None
            return memory.demand_bps
        # In a queue with others it may have to wait for them, and get less than they.
        enough = LIMITED if is_limited else SLOWER_BEHIND_OTHERS if waited else SLOWER
        uses = memory.share_bps <= 0 or one.rate_bps >= enough * memory.share_bps
        # It loses packets where it waits: it sends what TCP lets it, beside others in its queue.
        loses = waited and memory.slow_since is not None and one.resent > memory.slow_resent
        if uses or loses or one.queue_delay_s is None or (not is_limited and one.grows(SETTLE_S)):
            # It uses what it has, or is on its way, or waits for a timeout: it may want more.
            memory.slow_since = None
            memory.demand_bps = float("inf")
            return memory.demand_bps
        if memory.slow_since is None:
            memory.slow_since, memory.slow_resent = now, one.resent
        if now - memory.slow_since >= SETTLE_S * PS_PER_S:
            memory.demand_bps = max(one.top_rate_bps(SETTLE_S) * ROOM, self._rate / 1000)
        return memory.demand_bps

    def _caps(
        self,
        everyone: Sequence[Measured],
        demands: Sequence[float],
        newcomers_bps: float,
        weights: Sequence[float],
    ) -> list[float]:
        """The most that each flow may have: its share while those that cannot use theirs, and unknown flows, send as much as they do.

        The room that those have above it (`ROOM`, `NEWCOMERS_ROOM`) is guaranteed to them, and would be idle otherwise.
        """
        room = [
            ROOM if not one.is_udp and math.isfinite(demand) else 1.0
            for one, demand in zip(everyone, demands, strict=True)
        ]
        sent = [demand / more for demand, more in zip(demands, room, strict=True)]
        *left, _ = shares.max_min(self._rate, [*sent, newcomers_bps], weights)
        return [
            float(rate * more if rate >= asked else rate)
            for rate, asked, more in zip(left, sent, room, strict=True)
        ]

    def _class_queue(
        self, flows: Sequence[_Share], mean_of_all: float, newcomers_bps: float = 0.0
    ) -> QueuePlan:
        """The queue of some flows with their rates, given the mean round-trip time of all flows, and of others that are not known yet."""
        rate = max(sum(one.rate_bps for one in flows) + newcomers_bps, self._rate / 100)
        most = min(max(sum(one.most_bps for one in flows) + newcomers_bps, rate), self._rate)
        rtts = [one.flow.base_rtt_s for one in flows if one.flow.base_rtt_s is not None]
        mean = sum(rtts) / len(rtts) if rtts else TYPICAL_RTT_S
        mean = mean_of_all if self.buffers == "split" else mean
        count = len(flows) if self.buffers in ("stanford", "link") else 1
        filled = self._rate if self.buffers == "link" else rate
        size = stanford(filled, mean, count, floor_packets=self.floor_packets)
        return QueuePlan(round(rate), size, round(most) if self.hold == "cap" and rtts else None)

    def _policed_queue(self, flows: Sequence[_Share], most_bps: float | None) -> QueuePlan:
        """The queue of policed flows, which is capped but while they are alone (`None`)."""
        rate = max(sum(one.rate_bps for one in flows), self._rate / 100)
        size = stanford(rate, TYPICAL_RTT_S, 1, floor_packets=self.floor_packets)
        cap = round(max(rate, most_bps)) if flows and most_bps is not None else None
        return QueuePlan(round(rate), size, cap)

    def _within_limits(
        self, now: int, tcp: Sequence[Measured], of: dict[FiveTuple, int]
    ) -> dict[FiveTuple, int]:
        """Moves who fills a queue above its limit, by one queue, once for a while; who was moved stays."""
        if not self._limits:
            return of
        for one in tcp:
            memory = self.known[one.flow]
            if memory.stays_in is not None and now < memory.stays_until:
                of[one.flow] = memory.stays_in
        # Times are of the queue in which a flow was.
        was_in = {} if self.plan is None else self.plan.flows
        for number, limit in enumerate(self._limits):
            stay = [one for one in tcp if of[one.flow] == number]
            inside = [
                one for one in stay if was_in.get(one.flow) == self._first + number and one.rtt_s is not None
            ]
            late = [one for one in inside if (one.rtt_s or 0) * PS_PER_S > limit]
            if len(inside) > 1 and late:
                most = max(one.rate_bps for one in inside)
                culprit = max((one for one in inside if one.rate_bps > 0.5 * most), key=lambda one: one.since)
                memory = self.known[culprit.flow]
                memory.stays_in, memory.stays_until = (
                    number + 1,
                    now + round(STAY_S * 2**memory.moved * PS_PER_S),
                )
                memory.moved = min(memory.moved + 1, MOST_MOVES)
                of[culprit.flow] = number + 1
        return of
