"""How congestion controls of real hosts read stamps: the options `stamp_*` of the simulated ones, as `stamp_field.h` has them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from fractions import Fraction

from tidegate import units

DEFAULTS = {
    "stamp_unit": "1 us",
    "stamp_shift": "0",
    "stamp_mantissa": "0",
    "stamp_fold": "max",
    "stamp_entry": "0",
    "stamp_kind": "253",
    "stamp_back_kind": "0",
}
"""As in crates/transport/src/cc/stamp_field.rs."""
_FIELD = struct.Struct("=2I3Bx")
SIZE = _FIELD.size


def refusals(value: Mapping[str, str]) -> Iterator[str]:
    """What real hosts cannot do of the options."""
    if value["stamp_entry"] != "0":
        yield "stamp_entry: it reads one value for all hops, and no vectors"
    if value["stamp_back_kind"] != "0":
        yield "stamp_back_kind: it reads the echo only, and no stamps on ACKs"


def packed(value: Mapping[str, str], per_ps: Fraction) -> bytes:
    """`struct field`; `per_ps`: units of the control in a picosecond."""
    return _FIELD.pack(
        *_fixed_point(units.time(value["stamp_unit"]) * per_ps / (1 << int(value["stamp_shift"]))),
        value["stamp_fold"] == "sum_squ",
        int(value["stamp_mantissa"]),
        int(value["stamp_kind"]),
    )


def _fixed_point(factor: Fraction) -> tuple[int, int]:
    """A multiplier of 32 bits and a shift; a larger factor is cut to what fits."""
    shift = 0
    while shift < 63 and factor * (2 << shift) < 1 << 32:
        shift += 1
    return min(round(factor * (1 << shift)), (1 << 32) - 1), shift
