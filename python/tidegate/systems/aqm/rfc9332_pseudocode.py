"""DualPI2 and PI2 as RFC 9332 appendix A writes them: the oracle that the P4 programs are held to.

Functions, variables and line numbers are those of the RFC's figures 2 to 8, second pass. What the RFC says in words is in words of
its own here: p' stays in [0, 1] and likelihoods are at most 1; the two-packet minimum (appendix A.1); unexpected code points,
operators' classifiers, and overload that begins before p_CL is 1 (section 2.5.1.1); ECT(1) while L4S is disabled (RFC 9331 section 5.1). `recur()` has a random sibling.

Times are whole picoseconds, delays microseconds as v1model counts them, sizes bytes. Numbers are exact; `fix` cuts those that the
program keeps to its resolution, 2^-32.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Literal

PS_PER_US = 1_000_000
FRAME = 1514
"""Bytes of a full frame."""
NOT_ECT, ECT1, ECT0, CE = range(4)


def fix(value: Fraction) -> Fraction:
    """Cut to the program's resolution."""
    return Fraction(int(value * 2**32 // 1), 2**32)


@dataclass
class Packet:
    """A packet, and what becomes of it."""

    number: int
    bytes: int
    ecn: int
    classed: Literal["L", "C"] | None = None
    """By an operator's classifier; `None`: by its ECN field."""
    stamp: int = 0
    low: bool = False


@dataclass
class Queue:
    """lq or cq."""

    packets: deque[Packet] = field(default_factory=deque)
    count: Fraction = Fraction(0)
    last_us: int = 0
    since_us: int = 0

    def byt(self) -> int:
        """Its length in bytes."""
        return sum(packet.bytes for packet in self.packets)

    def len(self) -> int:
        """Its length in packets."""
        return len(self.packets)

    def time(self, now: int) -> int:
        """How long its first packet has waited, in microseconds; 0 if it is empty.

        Of a packet that is first because another has left, only when that one had come is known.
        """
        return now // PS_PER_US - self.since_us if self.packets else 0

    def sojourn(self) -> int:
        """The same by the sojourn technique (note a of appendix A.1): of the packet that left last."""
        return self.last_us

    def enqueue(self, now: int, packet: Packet) -> None:
        """Its last packet from now on."""
        if not self.packets:
            self.since_us = now // PS_PER_US
        self.packets.append(packet)

    def dequeue(self, now: int) -> tuple[Packet, int]:
        """The first packet, and its sojourn time."""
        packet = self.packets.popleft()
        sojourn = (now - packet.stamp) // PS_PER_US
        self.last_us = sojourn if self.packets else 0
        self.since_us = now // PS_PER_US - sojourn
        return packet, sojourn


@dataclass
class Params:
    """dualpi2_params_init(); delays in microseconds, gains for a microsecond."""

    limit: int
    k: Fraction = Fraction(2)
    target: int = 15_000
    rtt_max: int = 100_000
    p_c_max: Fraction | None = None
    alpha: Fraction | None = None
    """For a microsecond of delay and of Tupdate."""
    beta: Fraction | None = None
    min_th: int = 800
    range: int = 400
    slope: Fraction | None = None
    """One over `range`, if not exactly."""
    th_len: int = 1
    """-1: a packet may be the last one."""
    frame: int = FRAME
    """Bytes of a full frame: the RFC's MTU."""
    # What the RFC describes in words.
    l4s: bool = True
    policed: bool = False
    spares_two: bool = True

    def __post_init__(self) -> None:
        if self.p_c_max is None:
            self.p_c_max = min(1 / self.k**2, Fraction(1))
        rtt = Fraction(self.rtt_max, 1_000_000)
        if self.alpha is None:
            self.alpha = Fraction(1, 10) / rtt**2 / 10**12
        if self.beta is None:
            self.beta = Fraction(3, 10) / rtt / 10**6
        if self.slope is None and self.range:
            self.slope = Fraction(1, self.range)


class DualPi2:
    """The queues and their signals. `draw` gives random numbers in [0, 1); without it signals come by recur()."""

    single = False
    """All in one queue: PI2."""

    def __init__(
        self,
        params: Params,
        scheduler: Scheduler,
        draw: Callable[[], Fraction] | None = None,
    ) -> None:
        self.params = params
        self.scheduler = scheduler
        self.draw = draw
        self.lq, self.cq = Queue(), Queue()
        self.p = Fraction(0)
        self.prevq = 0
        self.dropped: list[int] = []
        self.overflowed: list[int] = []

    @property
    def p_cl(self) -> Fraction:
        """Figure 8, line 4."""
        return min(self.params.k * self.p, Fraction(1))

    @property
    def p_c(self) -> Fraction:
        """Figure 8, line 5."""
        return self.p**2

    def enqueue(self, now: int, pkt: Packet) -> None:
        """Figure 3."""
        if self.lq.byt() + self.cq.byt() + self.params.frame > self.params.limit:
            self.overflowed.append(pkt.number)
            return
        pkt.stamp = now
        pkt.low = not self.single and self.params.l4s and self.classifies_low(pkt)
        self.scheduler.waits(self.lq, self.cq)
        (self.lq if pkt.low else self.cq).enqueue(now, pkt)

    @staticmethod
    def classifies_low(pkt: Packet) -> bool:
        """Operators' classifiers first (RFC 9331 section 5.4), then the ECN field."""
        return pkt.classed == "L" if pkt.classed is not None else pkt.ecn % 2 == 1

    def recur(self, q: Queue, likelihood: Fraction) -> bool:
        """Figure 4."""
        if self.draw is not None:
            return self.draw() < likelihood
        q.count += likelihood
        if q.count > 1:
            q.count -= 1
            return True
        return False

    def recur_squared(self, q: Queue, root: Fraction) -> bool:
        """The same for the square of a likelihood: at random, two numbers have to be below it."""
        if self.draw is not None:
            first, second = self.draw(), self.draw()
            return max(first, second) < root
        return self.recur(q, fix(root**2))

    def laqm(self, qdelay: int) -> Fraction:
        """Figure 5."""
        params = self.params
        if qdelay >= params.min_th + params.range:
            return Fraction(1)
        if qdelay > params.min_th:
            assert params.slope is not None
            return (qdelay - params.min_th) * params.slope
        return Fraction(0)

    def update(self, elapsed_us: int, l_time: int, c_time: int) -> None:
        """Figure 8, for a Tupdate of so many microseconds."""
        params = self.params
        assert params.alpha is not None
        assert params.beta is not None
        curq = max(c_time, l_time)
        p = (
            self.p
            + fix(params.alpha * elapsed_us * (curq - params.target))
            + params.beta * (curq - self.prevq)
        )
        self.p = min(max(p, Fraction(0)), Fraction(1))
        self.prevq = curq

    def dequeue(self, now: int, updates: Callable[[Queue, int], None] | None = None) -> Packet | None:
        """Figure 7. `updates` is called with each packet's queue and delay as it leaves: to run update() then."""
        params = self.params
        assert params.p_c_max is not None
        while self.lq.len() + self.cq.len() > 0:
            waiting = self.lq.byt() + self.cq.byt()
            before = self.scheduler.state
            q = self.scheduler.choose(now, self.lq, self.cq)
            pkt, qdelay = q.dequeue(now)
            if updates is not None:
                updates(q, qdelay)
            spared = params.spares_two and waiting < 2 * params.frame
            p, p_cl, p_c = (Fraction(0),) * 3 if spared else (self.p, self.p_cl, self.p_c)
            scalable = params.l4s and pkt.ecn % 2 == 1
            ecn_capable = pkt.ecn in (ECT0, CE) or scalable
            mark = drop = False
            if q is self.lq:
                p_l = max(self.laqm(qdelay) if q.len() > params.th_len else Fraction(0), p_cl)
                if p_cl < 1 and p_c < params.p_c_max:
                    if scalable:
                        mark = self.recur(q, p_l)
                    elif ecn_capable or not params.policed:
                        signal = self.recur_squared(q, fix(p_l / params.k))
                        mark, drop = signal and ecn_capable, signal and not ecn_capable
                else:
                    drop = self.recur_squared(q, p)
                    mark = not drop and self.recur(q, p_l)
            elif scalable:
                drop = p_c >= params.p_c_max and self.recur_squared(q, p)
                mark = not drop and self.recur(q, p_cl)
            elif self.recur_squared(q, p):
                drop = not ecn_capable or p_c >= params.p_c_max
                mark = not drop
            if drop:
                self.dropped.append(pkt.number)
                # A drop costs no turn.
                self.scheduler.state = before
                continue
            if mark and pkt.ecn != NOT_ECT:
                pkt.ecn = CE
            return pkt
        return None


class Pi2(DualPi2):
    """One queue: the C queue, with ECT(1) packets in it."""

    single = True


class Scheduler:
    """scheduler(): which queue is next; at least one has a packet."""

    state: int | None = None

    def waits(self, lq: Queue, cq: Queue) -> None:
        """A packet is about to be enqueued."""

    def choose(self, now: int, lq: Queue, cq: Queue) -> Queue:
        """lq or cq."""
        if lq.packets and cq.packets:
            return self.of_both(now, lq, cq)
        return lq if lq.packets else cq

    def of_both(self, now: int, lq: Queue, cq: Queue) -> Queue:
        """L first, without bounds."""
        return lq


class Wrr(Scheduler):
    """Weighted round robin with conditional credit (appendix A.1): it changes only here, where packets wait in both."""

    def __init__(self, l_weight: int = 15, c_weight: int = 1) -> None:
        self.weights = l_weight, c_weight

    def waits(self, lq: Queue, cq: Queue) -> None:
        """Reset in favour of L."""
        if not lq.packets and not cq.packets:
            self.state = None

    def of_both(self, now: int, lq: Queue, cq: Queue) -> Queue:
        """C, if it has credit."""
        l_weight, c_weight = self.weights
        credit = (c_weight - l_weight) * FRAME if self.state is None else self.state
        if credit > 0:
            self.state = credit - l_weight * cq.packets[0].bytes
            return cq
        self.state = credit + c_weight * lq.packets[0].bytes
        return lq


class TsFifo(Scheduler):
    """Time-shifted FIFO (appendix B, Figure 10)."""

    def __init__(self, shift_us: int = 50_000) -> None:
        self.shift = shift_us * PS_PER_US

    def of_both(self, now: int, lq: Queue, cq: Queue) -> Queue:
        """Who has waited longest, the shift included."""
        timel = now - lq.packets[0].stamp + self.shift
        timec = now - cq.packets[0].stamp
        return lq if timel >= timec else cq
