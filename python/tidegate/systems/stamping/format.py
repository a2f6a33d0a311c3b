"""What a stamp is: the quantity, how switches fold it, its bits, and the place in a packet. README.md has the layout to the bit.

A code stands for a range of the quantity (a bin); hosts decode it to the range's lower edge. Quantities are in picoseconds (`time`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, NamedTuple

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts.shims import Option

Source = Literal["time"]
Fold = Literal["max"]
Carrier = Literal["option"]

BITS = (1, 2, 4, 8, 16, 32)
OPTION_KIND = 30
"""Of the IPv4 option (RFC 4727)."""
ECHO_KIND = 253
"""Of the TCP option that brings the field back (RFC 6994)."""
MOST_HOPS = 63
VERSION = 0


class Stamp(NamedTuple):
    """A field that has been read."""

    code: int
    hops: int
    """Switches that have stamped, at most 63. 0: the packet is not stamped, which differs from an idle path."""


class Scale(NamedTuple):
    """A port's full scale for the data plane: the code of a quantity v is `(v * multiplier) >> shift`."""

    multiplier: int
    shift: int


@dataclass(frozen=True)
class Format:
    """A stamp's format. All switches and hosts of a network have the same one."""

    full_scale: units.Time
    """The quantity at which the codes end: a longer queue has the largest code. It need not be the buffer."""
    bits: int = 8
    """Bits of a code: 1, 2, 4, 8, 16 or 32."""
    source: Source = "time"
    """`time`: how long the packet has waited in the queue."""
    fold: Fold = "max"
    carrier: Carrier = "option"

    def __post_init__(self) -> None:
        if self.bits not in BITS:
            raise TidegateError(f"a stamp of {self.bits!r} bits: give 1, 2, 4, 8, 16 or 32")
        if self.full == 0:
            raise TidegateError("the stamp's full scale is 0; give the quantity at which the codes end")

    @property
    def full(self) -> int:
        """The full scale in the source's unit."""
        return units.time(self.full_scale)

    @property
    def width(self) -> int:
        """Bytes of a code."""
        return max(1, self.bits // 8)

    @property
    def size(self) -> int:
        """Bytes of the field: the value, and the byte with version and hops."""
        return self.width + 1

    @property
    def option(self) -> Option:
        """The field's option, for the shims of a host."""
        return Option("ip", OPTION_KIND)

    @property
    def echo(self) -> Option:
        """The option that brings the field back to the sender."""
        return Option("tcp", ECHO_KIND)

    @property
    def blank(self) -> bytes:
        """The field as the sender writes it."""
        return bytes(self.size)

    @property
    def largest(self) -> int:
        """The largest code."""
        return (1 << self.bits) - 1

    @property
    def defines(self) -> list[str]:
        """Definitions that specialise `stamp.p4`."""
        return [f"STAMP_BITS={self.bits}", f"STAMP_BYTES={self.width}"]

    def scale(self, tick: int) -> Scale:
        """The full scale of a port whose switch measures the quantity in units of `tick`.

        The multiplier has 32 bits and is rounded up, so that the lower edge of a bin belongs to the bin.
        """
        # (v * multiplier) >> shift is v * tick * 2^bits / full.
        numerator, shift = tick << self.bits, 0
        while (numerator << (shift + 1)) // self.full < 1 << 31 and shift < 63:
            shift += 1
        multiplier = -(-(numerator << shift) // self.full)
        if multiplier >= 1 << 32:
            raise TidegateError(
                f"the stamp's full scale {self.full_scale} is less than a step of {self.bits} bits; give a longer one"
            )
        return Scale(multiplier, shift)

    def read(self, data: bytes) -> Stamp:
        """The field in the data of an option. Raises `TidegateError` if it has not this format."""
        if len(data) != self.size or data[-1] >> 6 != VERSION:
            raise TidegateError(f"{data.hex()} is not a stamp of {self.bits} bits")
        return Stamp(int.from_bytes(data[:-1]), data[-1] & MOST_HOPS)

    def decode(self, code: int) -> int:
        """The lower edge of a code's bin."""
        return code * self.full >> self.bits
