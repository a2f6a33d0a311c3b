"""Traces of links whose rate varies, in Mahimahi's format: a line for each packet of 1500 bytes that the link can carry, with its time.

Times are whole milliseconds from the start of the trace, in order; the last one is also the trace's length, after which it begins again
(Netravali et al., "Mahimahi: Accurate Record-and-Replay for HTTP", USENIX ATC 2015; mm-link(1)).

Here a trace is a rate for each window of time. A window without any packet has the rate of one: a link of ours cannot stand still.
"""

from __future__ import annotations

from dataclasses import dataclass
from os import PathLike
from pathlib import Path

import numpy as np

from tidegate import units
from tidegate._core import TidegateError
from tidegate.files import read_start
from tidegate.network import Link

PACKET = 1500
PS_PER_MS = units.PS_PER_S // 1000
MOST_BYTES = 64 << 20
MOST_PACKETS = 8_000_000
MOST_MS = 24 * 3600 * 1000
MOST_CHANGES = 100_000
"""Of a link in a run."""


@dataclass(frozen=True)
class Trace:
    """When a link can carry a packet."""

    name: str
    times_ms: tuple[int, ...]

    @property
    def length_ms(self) -> int:
        """After which it begins again."""
        return self.times_ms[-1]

    @property
    def mean_rate(self) -> int:
        """Bit/s."""
        return len(self.times_ms) * PACKET * 8 * 1000 // self.length_ms

    def packets(self, begin: int, end: int) -> int:
        """How many packets the link can carry between two times in ps."""
        times = np.asarray(self.times_ms)

        def before(at: int) -> int:
            loops, rest = divmod(at // PS_PER_MS, self.length_ms)
            return loops * len(times) + int(np.searchsorted(times, rest, "right"))

        return before(end) - before(begin)

    def rates(self, window_ms: int) -> list[int]:
        """The rate in each window, in bit/s; the last one may be shorter."""
        if window_ms < 1:
            raise TidegateError(f"a window of {window_ms} ms; give 1 ms or more")
        counts = [0] * -(-self.length_ms // window_ms)
        for time in self.times_ms:
            # A packet at 40 ms has had its time before that.
            counts[max(time - 1, 0) // window_ms] += 1
        lengths = [window_ms] * (len(counts) - 1) + [self.length_ms - window_ms * (len(counts) - 1)]
        return [
            max(count, 1) * PACKET * 8 * 1000 // length for count, length in zip(counts, lengths, strict=True)
        ]


def of(trace: Trace | str | PathLike[str]) -> Trace:
    """A trace, or that of a file."""
    return trace if isinstance(trace, Trace) else read(trace)


def read(path: str | PathLike[str]) -> Trace:
    """A trace of a file. Raises `TidegateError` with the line for what is none."""
    file = Path(path)
    data = read_start(file, MOST_BYTES + 1)
    if len(data) > MOST_BYTES:
        raise TidegateError(f"{file} has more than {MOST_BYTES >> 20} MiB; give a shorter trace")
    return parse(data, str(file))


def parse(data: bytes, name: str) -> Trace:
    """A trace of the bytes of a file."""
    times: list[int] = []
    before = 0
    for number, line in enumerate(data.splitlines(), 1):
        text = line.strip()
        if not text.isdigit() or len(text) > 9:
            shown = text[:20].decode("ascii", "backslashreplace")
            raise TidegateError(f"{name}:{number}: {shown!r} is not a time in whole milliseconds")
        time = int(text)
        if time < before:
            raise TidegateError(f"{name}:{number}: {time} ms comes after {before} ms; times are in order")
        if time > MOST_MS:
            raise TidegateError(f"{name}:{number}: {time} ms is more than a day; give a shorter trace")
        if number > MOST_PACKETS:
            raise TidegateError(f"{name}:{number}: more than {MOST_PACKETS} packets; give a shorter trace")
        times.append(time)
        before = time
    if not before:
        raise TidegateError(
            f"{name} has no time above 0 ms; a trace has a line for each packet, with its time"
        )
    return Trace(name, tuple(times))


def follow(
    link: Link, trace: Trace, until: units.Time, *, window_ms: int = 20, direction: str = "forward"
) -> None:
    """Let a link follow a trace from the start of a run until a time, in one direction."""
    rates, end = trace.rates(window_ms), units.given_time(until)
    changes = -(-end // (window_ms * PS_PER_MS))
    if changes > MOST_CHANGES:
        raise TidegateError(
            f"{trace.name}: {changes} changes of a rate in {units.show_time(end)}, more than {MOST_CHANGES}; give a longer window"
        )
    start, at, before = 0, 0, None
    while at < end:
        for number, rate in enumerate(rates):
            at = start + number * window_ms * PS_PER_MS
            if at >= end:
                return
            if rate != before:
                link.set(at, rate=rate, direction=direction)
                before = rate
        start += trace.length_ms * PS_PER_MS
        at = start
