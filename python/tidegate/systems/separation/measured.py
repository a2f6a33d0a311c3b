"""What the monitor has measured of each flow: registers read whole, and made into flows."""

from __future__ import annotations

import ipaddress
import math
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from tidegate.control import Digest, SwitchApi
from tidegate.network import FiveTuple
from tidegate.units import PS_PER_S

PS_PER_US = 1_000_000
UNSEEN = 100
"""So many samples, and of none the time in the router is known: the second tap does not show this flow's packets in time. Then the least
round-trip time has to do for the base. Or its timestamps have not come back: then the sender's leg is left out."""
RATE_OVER_S = 10.0
"""A flow is active if it sent something within this time, of that in which the monitor sees it: one that waits for a retransmission timeout
is."""
SKETCH_LOAD = 0.1
"""The sketch is cleared once its cells have on average this part of the bytes of a long flow.

So of flows with equal rates it finds as many as this part of a row's cells: each has to send that many bytes between two clearings.
"""
MOST_BITS = 16
"""Of the number of a flow's place in a table, and of its cell in a row of the sketch: as many as the shorter of the two hashes has."""
SKETCH_BITS = (14, MOST_BITS)
"""Least and most bits of the number of a row's cell; the least is the default."""
CROWDED = 0.25
"""Of the monitor's places, those that are taken: in more some flows find none."""
KEPT_S, KEPT_ROUNDS = 2 * RATE_OVER_S, 3
"""Rounds of which a flow's bytes are kept: those within this time, and at least so many."""

_READ = (
    "bytes",
    "offered",
    "ended",
    "resent",
    "rtt_least",
    "rtt_base",
    "rtt_sum",
    "rtt_samples",
    "stamp_seen",
    "stamp_least",
    "queued_sum",
    "queued_samples",
)

Columns = dict[str, npt.NDArray[np.int64]]
Places = npt.NDArray[np.intp]
Seconds = npt.NDArray[np.float64]


def sketch_bits(flows: int) -> int:
    """Bits of a row's cells with which the sketch finds so many flows of equal rates, or as many as it can have.

    >>> sketch_bits(300), sketch_bits(6000)
    (14, 16)
    """
    least, most = SKETCH_BITS
    return min(max(least, (math.ceil(flows / SKETCH_LOAD) - 1).bit_length()), most)


@dataclass
class Measured:
    """A flow, in the direction in which it sends most."""

    flow: FiveTuple
    place: int
    since: int
    """When the monitor found it (picoseconds)."""
    direction: int = 0
    bytes: int = 0
    resent: int = 0
    rate_bps: float = 0.0
    """Of IP bytes, over the last period."""
    offered_bps: float = 0.0
    """Of IP bytes, of a UDP flow, before the router."""
    base_rtt_s: float | None = None
    """The least round-trip time, of both legs: from the tap to the receiver and back, less the time from tap to tap, and to the sender
    and back."""
    rtt_s: float | None = None
    """The mean of the last period, of both legs, where there were samples from the tap to the receiver and back. Of the sender's leg it is the
    least where it has had none."""
    queue_delay_s: float | None = None
    """The mean from tap to tap in the last period."""
    has_ended: bool = False
    """It has sent its FIN, or one of its ends a RST."""
    samples: int = 0
    last_active: int = 0
    """When it was last seen to send (picoseconds)."""
    sent: list[tuple[int, int]] = field(default_factory=list)
    """Time and bytes of the last rounds."""

    @property
    def is_udp(self) -> bool:
        """Whether it is a UDP flow."""
        return self.flow.protocol == 17

    def turn(self, direction: int) -> None:
        """It sends most in this direction now."""
        self.direction, self.sent = direction, []
        low, high, protocol, low_port, high_port = self.flow
        self.flow = FiveTuple(high, low, protocol, high_port, low_port)

    def grows(self, seconds: float) -> bool:
        """Whether it has sent faster in the last seconds than in as many before, at least a round each; or it is not known for so long."""
        middle = self._round(seconds)
        first = min(self._round(2 * seconds), middle - 1)
        if first < 0:
            return True
        (begin, before), (half, size), (end, total) = (self.sent[number] for number in (first, middle, -1))
        if not begin < half < end:
            return True
        return (total - size) / (end - half) > GROWING * (size - before) / (half - begin)

    def _round(self, ago_s: float) -> int:
        """The number in `sent` of the last round that is so long ago or longer; -1: there is none."""
        end = self.sent[-1][0]
        return sum(end - at >= ago_s * PS_PER_S for at, _ in self.sent) - 1

    def top_rate_bps(self, seconds: float) -> float:
        """Of IP bytes, in the fastest round of the last seconds: BBR pauses now and then."""
        end = self.sent[-1][0]
        rounds = [
            (size - before) * 8 * PS_PER_S / (at - begin)
            for (begin, before), (at, size) in pairwise(self.sent)
            if end - begin <= seconds * PS_PER_S and at > begin
        ]
        return max(rounds, default=self.rate_bps)


GROWING = 1.03
"""Times the rate before: a flow that grows."""


@dataclass(frozen=True)
class Unknown:
    """Flows without a place, over the last period."""

    flows: float = 0.0
    """About how many have sent."""
    rate_bps: float = 0.0
    """Of IP bytes, of all together."""


class Flows:
    """The monitor's flows, by place. It sees each in one of `every` seconds.

    A silent flow stays until another takes its place: the monitor tells of a flow once, not when it goes on.
    """

    def __init__(self, every: int = 1) -> None:
        self._every = every
        self.by_place: dict[int, Measured] = {}
        self._before: Columns | None = None
        self._sketch: npt.NDArray[np.int64] | None = None
        self._sketched = self._counted = 0
        self._at = 0

    def found(self, now: int, digest: Digest) -> None:
        """A flow has got a place."""
        fields = digest.fields
        kind = ipaddress.IPv6Address if fields["six"] else ipaddress.IPv4Address
        flow = FiveTuple(
            str(kind(fields["low"])),
            str(kind(fields["high"])),
            fields["protocol"],
            fields["low_port"],
            fields["high_port"],
        )
        place = fields["place"]
        self.by_place[place] = Measured(flow, place, now, last_active=now)
        if self._before is not None:
            for column in self._before.values():
                column[2 * place : 2 * place + 2] = 0

    def unknown(self, now: int, switch: SwitchApi) -> Unknown:
        """Flows without a place that have sent since this was last called: linear counting of a row of the sketch, and the bytes in it.

        A flow that sends all the time is seen in each period, however few of its seconds are, and another's SYN always is: their number is
        not multiplied.

        K.-Y. Whang, B. Vander-Zanden, H. Taylor, "A Linear-Time Probabilistic Counting Algorithm", 1990.
        """
        row, sketched = (
            switch.register_read("sketch_1").astype(np.int64),
            int(switch.register_read("sketched")[0]),
        )
        changed = int(np.count_nonzero(row if self._sketch is None else row != self._sketch))
        sent, took = sketched - self._sketched, max(now - self._counted, 1)
        self._sketch, self._sketched, self._counted = row, sketched, now
        cells = len(row)
        flows = -cells * math.log(1 - min(changed, cells - 1) / cells)
        return Unknown(flows, sent * 8 * PS_PER_S / took * self._every)

    @property
    def most_found(self) -> float:
        """Flows of equal rates that the sketch can find as long."""
        return math.inf if self._sketch is None else SKETCH_LOAD * len(self._sketch)

    @property
    def crowded(self) -> bool:
        """Whether so many places are taken that some flows find both of theirs taken: 3 % where `CROWDED` of them are."""
        return self._before is not None and len(self.by_place) > CROWDED * len(self._before["bytes"]) / 2

    def clear_sketch(self, switch: SwitchApi, long_bytes: int) -> bool:
        """Clear the sketch if it is as full as `SKETCH_LOAD` says: else all flows would count as long in the end. Says whether it was.

        With f of `long_bytes` in a cell on average, a flow of a part p of `long_bytes` counts as long with a probability of (f / (1 - p))^3 at
        most: Markov's inequality for three rows.
        """
        if self._sketch is None or self._sketched <= self.most_found * long_bytes:
            return False
        for register in ("sketch_1", "sketch_2", "sketch_3", "sketched"):
            switch.register_set(register, None, 0)
        self._sketch, self._sketched = np.zeros_like(self._sketch), 0
        return True

    def read(self, now: int, switch: SwitchApi) -> list[Measured]:
        """Read all registers; give the flows that were active within `RATE_OVER_S` and have not ended.

        One that waits for timeouts of seconds is silent in most of the seconds in which the monitor sees it, and active.
        """
        window = round(RATE_OVER_S * self._every * PS_PER_S)
        columns: Columns = {name: switch.register_read(name).astype(np.int64) for name in _READ}
        for counted in ("bytes", "offered"):
            columns[counted] *= self._every
        before = self._before or {name: np.zeros_like(column) for name, column in columns.items()}
        took = max(now - self._at, 1)
        if self.by_place:
            _update(list(self.by_place.values()), now, took, columns, before)
        self._before, self._at = columns, now
        return [
            one for one in self.by_place.values() if now - one.last_active <= window and not one.has_ended
        ]


def _update(flows: list[Measured], now: int, took: int, columns: Columns, before: Columns) -> None:
    """Measure all flows anew: by columns what is to be computed, then flow by flow what is to be kept."""
    both = 2 * np.fromiter((one.place for one in flows), np.intp, len(flows))
    sizes = columns["bytes"] + columns["offered"]
    direction = (sizes[both + 1] > sizes[both]).astype(np.intp)
    forth, back = both + direction, both + 1 - direction

    def grown(name: str, of: Places) -> npt.NDArray[np.int64]:
        column, was = columns[name], before[name]
        return column[of] - was[of]

    def mean_s(name: str, of: Places) -> tuple[npt.NDArray[np.bool_], Seconds]:
        """Which flows have samples, and their mean."""
        count = grown(f"{name}_samples", of)
        return count > 0, grown(f"{name}_sum", of) / np.maximum(count, 1) / 1e6

    senders_us = _senders_leg_us(columns, back)
    there = _there_us(columns, forth)
    (has_leg, leg), (has_other, other) = mean_s("rtt", forth), mean_s("rtt", back)
    rtt = leg + np.where(has_other & (other != 0), other, senders_us / 1e6)
    waited, wait = mean_s("queued", forth)
    rows = zip(
        flows,
        direction.tolist(),
        columns["bytes"][forth].tolist(),
        grown("bytes", forth).tolist(),
        grown("offered", forth).tolist(),
        columns["resent"][forth].tolist(),
        (columns["ended"][forth] != 0).tolist(),
        columns["rtt_samples"][forth].tolist(),
        _known(
            (there > 0) & ~_waits_for_stamps(columns, before, forth, back, senders_us),
            (there + senders_us) / 1e6,
        ),
        _known(has_leg, rtt),
        _known(waited, wait),
        strict=True,
    )
    # A rate's numerator has more than 64 bits.
    bits, kept = 8 * PS_PER_S, round(KEPT_S * PS_PER_S)
    for one, towards, size, more, offered, resent, ended, samples, base_rtt_s, rtt_s, wait_s in rows:
        if towards != one.direction:
            one.turn(towards)
        one.bytes, one.resent, one.samples, one.has_ended = size, resent, samples, ended
        one.rate_bps, one.offered_bps = more * bits / took, offered * bits / took
        if more > 0 or offered > 0:
            one.last_active = now
        sent = one.sent
        sent.append((now, size))
        while len(sent) > KEPT_ROUNDS and now - sent[0][0] > kept:
            sent.pop(0)
        one.base_rtt_s, one.rtt_s, one.queue_delay_s = base_rtt_s, rtt_s, wait_s


def _known(known: npt.NDArray[np.bool_], values: Seconds) -> list[float | None]:
    """`None` where nothing is known."""
    return [
        value if is_known else None for is_known, value in zip(known.tolist(), values.tolist(), strict=True)
    ]


def _there_us(columns: Columns, forth: Places) -> npt.NDArray[np.int64]:
    """The least time to the receiver and back, without the router's queue; 0 if it is not known."""
    there = columns["rtt_base"][forth]
    unseen = (there == 0) & (columns["rtt_samples"][forth] >= UNSEEN)
    return np.where(unseen, columns["rtt_least"][forth], there)


def _waits_for_stamps(
    columns: Columns, before: Columns, forth: Places, back: Places, senders_us: npt.NDArray[np.int64]
) -> npt.NDArray[np.bool_]:
    """Whether the time to the sender and back is not known, and timestamps will tell it. They may take the longest round-trip time."""
    seen, samples = columns["stamp_seen"][back], before["rtt_samples"][forth]
    waits: npt.NDArray[np.bool_] = (senders_us == 0) & (seen != 0) & (samples < UNSEEN)
    return waits


def _senders_leg_us(columns: Columns, back: Places) -> npt.NDArray[np.int64]:
    """The least time to the sender and back; 0 if it is not known."""
    by_numbers, by_stamps = columns["rtt_base"][back], columns["stamp_least"][back]
    one_of_them = np.maximum(by_numbers, by_stamps)
    return np.where((by_numbers > 0) & (by_stamps > 0), np.minimum(by_numbers, by_stamps), one_of_them)
