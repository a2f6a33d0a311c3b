"""The controller of the fair meter (`fair.p4`): it writes a meter's rate and limits, and does nothing more.

A limit is a time: how long the rate needs for what may pass at once. All of the meter's levels are shares of it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Mapping

import numpy as np

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import SwitchApi
from tidegate.systems.meter.tables import Meter, MeterTables, target_of

US = units.PS_PER_S // 1_000_000
# The data plane counts in 1/65536 us.
TICKS_SHIFT = 16
PEAK = "300 ms"
"""The peak of a meter, if nothing else is asked for."""
LEAST_BYTES = 30_000
"""A limit has room for that many bytes, where its time is shorter: twenty packets."""
MOST_LIMIT_SHIFT = 22
"""A limit is at most 2^22 us."""
QUEUES = 1 << 20
"""Queues of flows in the data plane, of all meters."""
LEAST_QUEUES, MOST_QUEUES = 8, 65_536
MOST_BPS = 1_000_000_000_000
# Shares of the limit: where a meter's total begins, so that 0.3 s are left, and its first flow's queue; where flows are told to slow down,
# where they are told whether they grow or not, and where they are dropped.
BEGIN, BEGIN_OWN, TARGET, MIDDLE, MOST = 0.715, 0.58, 0.7, 0.85, 0.95
# What a byte costs of the peak: the data plane's shifts, 1/2 + 1/8 + 1/32 + 1/128. So the peak drains at 1.506 times the rate.
PEAK_COST = 85 / 128


def limit_shift(rate_bps: float, burst: units.Time) -> int:
    """Logarithm of a meter's limit in us: the next power of two, from `burst` on, that has room for `LEAST_BYTES`."""
    wanted = max(units.time(burst) / US, LEAST_BYTES * 8e6 / rate_bps)
    return min(max((round(wanted + 0.5) - 1).bit_length(), 10), MOST_LIMIT_SHIFT)


def burst_bytes(rate_bps: float, burst: units.Time = "1 s") -> int:
    """What may pass in addition to the rate, in bytes of IP: the limit."""
    return round(rate_bps / 8e6 * (1 << limit_shift(rate_bps, burst)))


def peak_for(rtt: units.Time) -> units.Time:
    """The peak for a longest RTT: the default, or the RTT, as a window comes in one piece."""
    return PEAK if units.time(rtt) <= units.time(PEAK) else rtt


class FairMeters(MeterTables):
    """Meters that divide their rate fairly among flows: a switch that runs `fair.p4`.

    Args:
        meters: with targets of 64 kbit/s to 1 Tbit/s, in IP bytes.
        ports, wires: see `MeterTables`.
        burst: over any time T, `rate * (T + burst)` passes at most, with `burst` rounded up to a power of two of microseconds (1 s to
            1.05 s), of at least 1 ms and 30 kB, and at most 4.2 s. TCP needs it where its window swings: see the README.
        peak: what may pass in one burst, as a time of the rate, and at least 30 kB; it comes again at half of the rate. At least the
            longest RTT.
        queues: queues of flows that each meter has, a power of two; flows with the same hash share one. By default 65536, or fewer where
            there are more than 8 meters: twice as many meters as given find room, down to 8 queues each.
    """

    def __init__(
        self,
        meters: Iterable[Meter] = (),
        *,
        ports: Mapping[str, int] | Callable[[], Mapping[str, int]] | None = None,
        wires: Mapping[int, int] | None = None,
        burst: units.Time = "1 s",
        peak: units.Time = PEAK,
        queues: int | None = None,
    ) -> None:
        super().__init__(meters, ports=ports, wires=wires)
        if queues is None:
            fits = QUEUES // max(2 * len(self._meters), 1)
            queues = min(max(1 << (fits.bit_length() - 1), LEAST_QUEUES), MOST_QUEUES)
        if queues < 1 or queues > QUEUES or queues & (queues - 1):
            raise TidegateError(f"a meter with {queues} queues; give a power of two up to {QUEUES}")
        for name, value in (("burst", burst), ("peak", peak)):
            if not US * 1000 <= units.time(value) <= US << MOST_LIMIT_SHIFT:
                raise TidegateError(f"the meters' {name} is {value}; give 1 ms to 4 s")
        self._burst = burst
        self._peak = peak
        self._queues = queues

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; of a switch that has meters already, take them over."""
        self._ranges: dict[int, tuple[int, int]] = {}
        self._free = deque(range(0, QUEUES, self._queues))
        super().start(switch)

    def _held(self, meter: Meter) -> float:
        return target_of(meter, MOST_BPS)

    def _set_up(self, switch: SwitchApi, number: int, target: float) -> None:
        if not self._free:
            raise TidegateError(
                f"meter {number} finds no queues: {len(self._ranges)} meters have {self._queues} each; give fewer (queues=)"
            )
        self._ranges[number] = self._free.popleft(), self._queues
        for register in ("total", "peak", "flows"):
            switch.register_write(register, [0], number)
        self._change(switch, number, target)

    def _change(self, switch: SwitchApi, number: int, target: float) -> None:
        switch.register_write("target", [round(target)], number)
        self._targets[number] = target

    def _configured(self, switch: SwitchApi, number: int, old: list[int], new: list[int]) -> None:
        """Keep each level's share of its limit where the limits change.

        A level above the new limit would let nothing pass until it is below. With the same shares the burst after the change is what
        was left of it before: over the change what the rates give passes, and at most the larger of the two bursts in addition. The
        data plane goes on meanwhile: what passes between reading and writing, in a live switch, is not counted.
        """
        now = switch.now // US << TICKS_SHIFT
        first, count = self._ranges[number]
        limits, peaks = (old[1], new[1]), (old[2], new[2])
        for register, at, cells, (before, after), since in (
            ("total", number, 1, limits, now),
            ("peak", number, 1, peaks, now),
            ("finish", first, count, limits, now),
            ("lowest", first, count, limits, 0),
            ("reference", first, count, limits, 0),
        ):
            if before != after:
                values = switch.register_read(register, at, cells)
                for cell in np.flatnonzero(values > since):
                    values[cell] = since + -((since - int(values[cell])) * after // before)
                switch.register_write(register, values, at)

    def _forget(self, switch: SwitchApi, number: int) -> None:
        first, count = self._ranges.pop(number)
        if count == self._queues:
            self._free.append(first)
        super()._forget(switch, number)

    def _adopted(self, switch: SwitchApi, targets: Mapping[int, int]) -> None:
        self._targets.update(targets)
        for entry in switch.table_entries("meters"):
            first, mask = entry.values[-2:]
            self._ranges[int(entry.match[0].value or 0)] = first, mask + 1
        taken = {
            block
            for first, count in self._ranges.values()
            for block in range(first // self._queues, -(-(first + count) // self._queues))
        }
        self._free = deque(first for first in self._free if first // self._queues not in taken)

    def _configuration(self, number: int, target: float) -> list[int]:
        shift = limit_shift(target, self._burst)
        limit = 1 << (shift + TICKS_SHIFT)
        peak_us = max(units.time(self._peak) / US, LEAST_BYTES * 8e6 / target)
        first, count = self._ranges[number]
        return [
            # Rounded up, as the data plane's costs are.
            -(-8_000_000 * 2**32 // round(target)),
            limit,
            round(min(peak_us, 1 << MOST_LIMIT_SHIFT) * PEAK_COST) << TICKS_SHIFT,
            *(round(share * limit) for share in (BEGIN, BEGIN_OWN, TARGET, MIDDLE, MOST)),
            shift + TICKS_SHIFT - 4,
            first,
            count - 1,
        ]
