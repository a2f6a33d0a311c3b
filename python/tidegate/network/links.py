"""Links, their queues, and changes of them during a run."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

from tidegate import specs, units
from tidegate._core import TidegateError
from tidegate.network.nodes import Node
from tidegate.specs import Wire

if TYPE_CHECKING:
    from tidegate.network.topology import Topology


_FORMER_DIRECTIONS = {"there": "forward", "back": "reverse"}


class RunningLinks(Protocol):
    """The links while a run lasts."""

    def now(self) -> int:
        """Picoseconds of the run."""

    def change(self, changes: Sequence[Change]) -> None:
        """Have these changes come about, each in place of what is known for its time.

        Raises `TidegateError` if one of them is not possible.
        """


@dataclass(frozen=True)
class Change:
    """What is set of one direction of a link at a time; all else stays as it is then."""

    when: int
    order: int
    """Of the calls of `Link.set`: of changes at one time the later call comes last."""
    link: Link
    side: str
    settings: Mapping[str, Any]
    """Fields of `Wire`."""
    queue: str | None
    wire: Wire
    """The direction from then on, with all changes before."""

    def after(self, wire: Wire) -> Change:
        """The same change of a direction that is as `wire` before; raises `TidegateError` if that is not possible."""
        link, new = self.link, replace(wire, **self.settings)
        if self.queue is not None:
            packets, size = queue_limit(self.queue, new.rate, link.rtt_of(self.side, new.delay), link.name)
            new = replace(new, packets=packets, bytes=size)
        specs.demand(new, link.name)
        specs.demand_possible(new, f"the link {link.name}", (link.a.name, link.b.name))
        return replace(self, wire=new)


@dataclass(eq=False)
class Link:
    """A link between two nodes, the same in both directions unless it is changed."""

    network: Topology
    number: int
    a: Node
    b: Node
    forward: Wire
    """From `a` to `b`."""
    reverse: Wire
    rtt: int | None = None
    """What a BDP of its queue is measured by, in picoseconds; `None`: twice the delay."""

    def __repr__(self) -> str:
        text = f"<link {self.name}: {_wire(self.forward)}"
        return f"{text}>" if self.forward == self.reverse else f"{text}; back {_wire(self.reverse)}>"

    @property
    def name(self) -> str:
        """`a - b`."""
        return f"{self.a.name} - {self.b.name}"

    @property
    def there(self) -> Wire:
        """`forward` by its former name."""
        return self.forward

    @property
    def back(self) -> Wire:
        """`reverse` by its former name."""
        return self.reverse

    def set(
        self,
        at: units.Time,
        *,
        rate: units.Rate | None = None,
        delay: units.Time | None = None,
        queue: str | None = None,
        mark_above: int | None = None,
        loss: float | None = None,
        burst_loss: tuple[float, float, float, float] | None = None,
        jitter: units.Time | None = None,
        reorder: float | None = None,
        reorder_by: units.Time | None = None,
        duplicate: float | None = None,
        mtu: int | None = None,
        direction: str = "both",
    ) -> None:
        """Change the link at a time; settings that are not given stay as they are then.

        Changes come about in the order of their times, whatever the order of the calls; of those at one time the later call
        holds. At 0 the link is as set when the first packets are sent. A time that the run has passed is now. `direction` is `both`, `forward` (from `a` to `b`) or `reverse`. For `queue` a
        BDP is the rate from then on times the link's `rtt`, or times twice the delay if the link has no `rtt` or another
        delay by then.

        >>> net = Network()
        >>> link = net.link(net.host("a"), net.router("r"), rate="1 Gbit/s", delay="2 ms")
        >>> link.set("5 s", rate="100 Mbit/s", direction="forward")
        """
        if isinstance(direction, str):
            direction = _FORMER_DIRECTIONS.get(direction, direction)
        if direction not in ("both", "forward", "reverse"):
            raise TidegateError(f"{self.name}: a direction is both, forward or reverse, not {direction!r}")
        when, running = units.given_time(at), self.network.running
        if running is not None:
            when = max(when, running.now())
        settings: dict[str, Any] = {
            "rate": None if rate is None else units.given_rate(rate),
            "delay": None if delay is None else units.given_time(delay),
            "mark_above": mark_above,
            "loss": loss,
            "burst_loss": burst_loss,
            "jitter": None if jitter is None else units.given_time(jitter),
            "reorder": reorder,
            "reorder_by": None if reorder_by is None else units.given_time(reorder_by),
            "duplicate": duplicate,
            "mtu": mtu,
        }
        given = {name: value for name, value in settings.items() if value is not None}
        changed = [
            self._changed(side, when, given, queue)
            for side in ("forward", "reverse")
            if direction in ("both", side)
        ]
        if running is not None:
            running.change([change for _, later in changed for change in later])
        for before, later in changed:
            self.network.scheduled[self, later[0].side] = [*before, *later]

    def _changed(
        self, side: str, when: int, settings: Mapping[str, Any], queue: str | None
    ) -> tuple[list[Change], list[Change]]:
        """The changes of a direction up to a time, and a new one followed by those after it, as they are with it."""
        known = self.network.scheduled.get((self, side), [])
        place = bisect_right(known, when, key=lambda change: change.when)
        wire = self.network.wire_at(self, side, when)
        new = Change(when, self.network.next_change(), self, side, settings, queue, wire)
        later: list[Change] = []
        for change in (new, *known[place:]):
            later.append(change.after(wire))
            wire = later[-1].wire
        return known[:place], later

    def fixed_in_live_runs(self, side: str) -> str | None:
        """Why a live run cannot change a direction; `None`: it can."""
        sender = self.a if side == "forward" else self.b
        if not sender.linux:
            return None
        return f"{sender.name}: {self.name} changes during the run; what a Linux router sends over does not"

    def rtt_of(self, side: str, delay: int) -> int:
        """What a BDP of a direction that has this delay is measured by."""
        made: Wire = getattr(self, side)
        return self.rtt if self.rtt is not None and delay == made.delay else 2 * delay


def queue_names(links: Sequence[Link]) -> list[tuple[str, str]]:
    """The names of each link's two queues: `a -> b` and `b -> a`; of a second link between two nodes `a -> b (2)` and `b -> a (2)`."""
    between: Counter[frozenset[int]] = Counter()
    names = []
    for link in links:
        ends = frozenset((link.a.number, link.b.number))
        between[ends] += 1
        which = f" ({between[ends]})" if between[ends] > 1 else ""
        names.append((f"{link.a.name} -> {link.b.name}{which}", f"{link.b.name} -> {link.a.name}{which}"))
    return names


def _wire(wire: Wire) -> str:
    """Rate, delay and queue."""
    limits = [f"{wire.packets} packets"] if wire.packets is not None else []
    limits += [f"{wire.bytes} B"] if wire.bytes is not None else []
    rest = f", loss {wire.loss:g}" if wire.loss else ""
    queue = " and ".join(limits) or "any length"
    return f"{units.show_rate(wire.rate)}, {units.show_time(wire.delay)}, queue of {queue}{rest}"


def queue_limit(text: str, rate: int, rtt: int, where: str) -> tuple[int | None, int | None]:
    """The limits of a queue in packets and bytes, from `100 packets`, `64 KiB`, `1 BDP` or both as `100 packets, 64 KiB`.

    A BDP is `rate` times `rtt`, in picoseconds.
    """
    packets: int | None = None
    size: int | None = None
    if not isinstance(text, str):
        raise TidegateError(f"{where}: the queue {text!r}: write it as `100 packets`, `64 KiB` or `1 BDP`")
    for part in text.split(","):
        match = re.fullmatch(r"\s*([\d_.]*(?:[eE][-+]?\d+)?)\s*(packets?|BDP)\s*", part)
        if match is None:
            try:
                size = units.size(part)
            except TidegateError as error:
                raise TidegateError(
                    f"{where}: the queue {text!r}: {error}, `100 packets` or `1 BDP`"
                ) from None
            continue
        if re.fullmatch(r"\d+(_\d+)*(\.\d+)?([eE][-+]?\d+)?", match[1], re.ASCII) is None:
            raise TidegateError(
                f"{where}: {part.strip()!r} does not begin with a number; write it as `100 packets` or `1.5 BDP`"
            )
        number = match[1].replace("_", "")
        if match[2] == "BDP":
            # A number with hundreds of digits is infinite here.
            wanted = float(number) * rate * rtt / units.PS_PER_S / 8 if rtt else 0.0
            size = units.below(int(min(wanted, 2.0**64)), 0, 2**63, f"a size in bytes ({part.strip()})")
            if size == 0:
                raise TidegateError(
                    f"{where}: a BDP of this link is less than a byte; give the queue in packets or bytes, or say `rtt`"
                )
        else:
            if not number.isdigit():
                raise TidegateError(f"{where}: {part.strip()!r} is not a whole number of packets")
            limit = int(number[: units.MOST_DIGITS])
            packets = units.below(limit, 1, 2**32, f"a queue's limit in packets ({where})")
    return packets, size
