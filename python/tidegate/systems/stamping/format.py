"""What a stamp is: the quantity, how switches fold it, its bits, and the place in a packet. README.md has the layout to the bit.

A code stands for a range of the quantity (a bin); hosts decode it to the range's lower edge. A quantity is in picoseconds (`time`),
bytes of Ethernet frames (`bytes`), packets (`packets`), or bytes of a base RTT at the link's rate (`utilisation`: 1 is a full link).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import isfinite, isqrt
from typing import Literal, get_args

from tidegate import units
from tidegate._core import TidegateError
from tidegate.systems.stamping.field import MOST_HOPS, Carrier, Field, Scale

Source = Literal["time", "bytes", "packets", "utilisation"]
Fold = Literal["max", "sum", "sum_squ", "ind", "vector"]
Bins = Literal["equal", "log"]

BITS = (1, 2, 4, 8, 16, 32)


def fixed_point(factor: Fraction, what: str) -> tuple[int, int]:
    """A multiplier of 32 bits and a shift for `(v * multiplier) >> shift`, rounded up. Raises `TidegateError` if there are none."""
    shift = 0
    while shift < 63 and factor * (2 << shift) <= (1 << 32) - 1:
        shift += 1
    multiplier = int(-(-(factor * (1 << shift)) // 1))
    if not 0 < multiplier < 1 << 32:
        raise TidegateError(f"{what} is too short for its number of codes; give a longer one")
    return multiplier, shift


NEAR = Fraction(1, 1000)
"""Of a step: how far its whole number of picoseconds, or of parts of them, may be off."""


def unit_options(step: Fraction) -> dict[str, str | int]:
    """The options `stamp_unit` and `stamp_shift` of a congestion control, for a step of so many picoseconds.

    A step is `stamp_unit` / 2^`stamp_shift`, with the smallest shift at which whole picoseconds are within 0.1 %.
    """
    shift = 0
    while abs(round(step * (1 << shift)) - step * (1 << shift)) > NEAR * step * (1 << shift):
        shift += 1
    options: dict[str, str | int] = {"stamp_unit": f"{round(step * (1 << shift))} ps"}
    return options | ({"stamp_shift": shift} if shift else {})


@dataclass(frozen=True)
class Format(Field):
    """A stamp's format. All switches and hosts of a network have the same one."""

    full_scale: units.Time | units.Size | float
    """The quantity at which codes end: more has the largest code. It need not be the buffer.

    A time, a size, a number of packets, or a utilisation. `sum_squ`: what the largest root stands for. `ind`: the threshold.
    """
    bits: int = 8
    """Bits of a code: 1, 2, 4, 8, 16 or 32."""
    source: Source = "time"
    """`time` in the queue, `bytes` or `packets` that the packet has found in it, or `utilisation`: bytes sent and the shortest queue."""
    fold: Fold = "max"
    """`max`, `sum` and `sum_squ` (of squares) of the hops' codes; `ind`: whether one is at the threshold; `vector`: each."""
    carrier: Carrier = "option"
    """An IPv4 `option`, or a `shim` header behind Ethernet."""
    bins: Bins = "equal"
    """Bins of equal width, or `log`: of equal width up to 2^(mantissa + 1), then 2^mantissa for each doubling."""
    mantissa: int = 5
    capacity: int = 1
    """Hops that a vector has room for."""
    own: bool = False
    """Whether the packet itself counts (`bytes` and `packets`)."""
    base_rtt: units.Time = 0
    """Of a utilisation: its queue is in bytes of this time at the link's rate."""

    def __post_init__(self) -> None:
        for name, known in (("source", Source), ("fold", Fold), ("carrier", Carrier), ("bins", Bins)):
            if getattr(self, name) not in get_args(known):
                listed = ", ".join(get_args(known))
                raise TidegateError(f"a stamp's {name} is one of {listed}, not {getattr(self, name)!r}")
        if isinstance(self.bits, bool) or self.bits not in BITS:
            raise TidegateError(f"a stamp of {self.bits!r} bits: give 1, 2, 4, 8, 16 or 32")
        if self.fold == "ind" and self.bits != 1:
            raise TidegateError(f"ind is one bit, not {self.bits}; give bits=1")
        if self.fold == "sum_squ" and self.bits == 1:
            raise TidegateError("a sum of squares of 1 bit has no root; give 2 bits or more")
        if self.bins == "log":
            self._demand_log()
        if self.fold != "vector" and self.capacity != 1:
            raise TidegateError(f"only a vector has a capacity; leave it out for {self.fold}")
        units.below(self.capacity, 1, MOST_HOPS + 1, "the hops of a vector")
        if self.own and self.source not in ("bytes", "packets"):
            raise TidegateError(f"the packet itself counts in bytes or packets, not in {self.source}")
        if self.full <= 0:
            raise TidegateError(
                f"the stamp's full scale is {self.full_scale}; give the quantity at which codes end, above 0"
            )
        if (self.source == "utilisation") != (self.rtt > 0):
            raise TidegateError("a utilisation needs a base_rtt above 0, and no other source has one")
        self.demand_carrier()

    def _demand_log(self) -> None:
        if self.fold not in ("max", "vector"):
            raise TidegateError(f"codes of logarithmic bins do not add up; give equal bins for {self.fold}")
        if isinstance(self.mantissa, bool) or not 0 <= self.mantissa < self.bits:
            raise TidegateError(
                f"a mantissa of {self.mantissa!r} bits does not fit a code of {self.bits}; give 0 to {self.bits - 1}"
            )
        if self.range > 1 << 32:
            raise TidegateError(
                f"{self.bits} bits with a mantissa of {self.mantissa} span more than 2^32 steps; give a longer mantissa"
            )

    @property
    def full(self) -> Fraction:
        """The full scale in the source's unit."""
        whole = self.full_scale
        if self.source == "time" and not isinstance(whole, float):
            return Fraction(units.time(whole))
        if self.source == "bytes" and not isinstance(whole, float):
            return Fraction(units.size(whole))
        if isinstance(whole, bool | str) or not isfinite(whole) or self.source in ("time", "bytes"):
            kind = {"time": "a time", "bytes": "a size"}.get(self.source, "a number")
            raise TidegateError(f"the full scale of {self.source} is {kind}, not {whole!r}")
        return Fraction(whole)

    @property
    def rtt(self) -> int:
        """The base RTT in picoseconds."""
        return units.time(self.base_rtt)

    @property
    def width(self) -> int:
        """Bytes of a code."""
        return max(1, self.bits // 8)

    @property
    def largest(self) -> int:
        """The largest code."""
        return (1 << self.bits) - 1

    @property
    def range(self) -> int:
        """Scaled quantities that codes span: steps of the finest bin in the full scale."""
        if self.fold == "sum_squ":
            return 1 << (self.bits // 2)
        if self.bins == "log":
            return 1 << min(self.mantissa - 1 + (1 << (self.bits - self.mantissa)), 64)
        return 1 if self.fold == "ind" else 1 << self.bits

    @property
    def defines(self) -> list[str]:
        """Definitions that specialise `stamp.p4`."""
        fold = "max" if self.fold == "ind" else self.fold
        names = [
            f"STAMP_CARRIER=CARRIER_{self.carrier.upper()}",
            f"STAMP_SOURCE=SOURCE_{self.source.upper()}",
            f"STAMP_FOLD=FOLD_{fold.upper()}",
            f"STAMP_BITS={self.bits}",
            f"STAMP_BYTES={self.width}",
            f"STAMP_ENTRIES={self.capacity}",
        ]
        if self.bins == "log":
            names.append(f"STAMP_MANTISSA={self.mantissa}")
        return names + ["STAMP_OWN"] * self.own

    def scale(self, rate: units.Rate, *, tick: units.Time = "1 us", mtu: int = 1500) -> Scale:
        """The scale of a port at a link of a rate, in a switch that measures times in units of `tick`.

        The multiplier has 32 bits and is rounded up, so that the lower edge of a bin belongs to the bin.
        """
        step, bits = units.time(tick), units.rate(rate)
        full, window, ratio = self.full, 0, 0
        if self.source == "time":
            full /= step
        if self.source == "utilisation":
            full *= Fraction(bits * self.rtt, 8 * units.PS_PER_S)
            # A window holds two of the largest frames, and is 1024 ns at least.
            shortest = max(1_024_000, 2 * (mtu + 14) * 8 * units.PS_PER_S // bits)
            while step << window < shortest:
                window += 1
            ratio = self.rtt * 65536 // (step << window)
            if not 0 < ratio < 1 << 32 or full > 1 << 32:
                raise TidegateError(
                    f"a utilisation over a base RTT of {units.show_time(self.rtt)} does not go with a link of "
                    f"{rate} and windows of {units.show_time(step << window)}"
                )
        multiplier, shift = fixed_point(
            Fraction(self.range) / full, f"the stamp's full scale {self.full_scale}"
        )
        return Scale(multiplier, shift, mtu + 14, window, ratio)

    def code(self, scaled: int) -> int:
        """The code of a scaled quantity, before it is folded."""
        if self.bins == "log":
            scaled = min(scaled, (1 << 32) - 1)
            exponent = max(0, scaled.bit_length() - 1 - self.mantissa)
            scaled = (exponent << self.mantissa) + (scaled >> exponent)
        if self.fold == "sum_squ":
            scaled = scaled * scaled
        return min(scaled, self.largest)

    def decode(self, code: int) -> float:
        """The lower edge of a code's bin in the source's unit; of a sum of squares, its root."""
        if self.fold == "sum_squ":
            return float(isqrt(code << 64) * self.full / self.range / (1 << 32))
        if self.bins == "log":
            exponent = max(0, (code >> self.mantissa) - 1)
            code = code - (exponent << self.mantissa) << exponent
        return float(code * self.full / self.range)

    @property
    def control_options(self) -> dict[str, str | int]:
        """The format, for the `control_options` of a congestion control that reads times from the echo."""
        if self.source != "time":
            raise TidegateError(f"congestion controls read times from stamps; these are in {self.source}")
        if self.bins == "log" and self.mantissa == 0:
            raise TidegateError(
                "congestion controls take bins without a mantissa for equal ones; give a mantissa of 1 or more, or equal bins"
            )
        options: dict[str, str | int] = {
            **unit_options(self.full / self.range),
            "stamp_fold": self.fold if self.fold in ("sum", "sum_squ") else "max",
            "stamp_kind": self.echo.kind,
        }
        if self.bins == "log":
            options["stamp_mantissa"] = self.mantissa
        if self.fold == "vector":
            options["stamp_entry"] = self.width
        return options
