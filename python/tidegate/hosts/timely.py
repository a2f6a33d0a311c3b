"""The parameters of the congestion control `timely` of real hosts (`timely.c`): those of the simulated one, in the units of `timely_law.h`."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction

from tidegate import units
from tidegate.hosts import stamp_field

Given = tuple[tuple[str, str], ...]
"""Names and values, as `Network.tcp` has checked them."""

# As the simulated control has them (crates/transport/src/cc/timely.rs).
DEFAULTS = {
    **stamp_field.DEFAULTS,
    "signal": "rtt",
    "thresholds_on": "rtt",
    "thresholds": "path",
    "t_low": "50 us",
    "t_high": "500 us",
    "delta": "10 Mbit/s",
    "alpha": "0.875",
    "beta": "0.8",
    "most_cut": "1",
    "hai": "5",
    "raw_falls": "no",
    "patched": "no",
    "scaled": "no",
    "step": "segment",
    "send": "paced",
    "min_rtt": "",
    "hop_delay": "0 us",
    "start_rate": "",
    "min_rate": "1 Mbit/s",
    "max_rate": "100 Gbit/s",
}
SOURCES = ("rtt", "rtt_less_hops", "stamp")
TIMES = ("t_low", "t_high", "min_rtt", "hop_delay")
RATES = ("delta", "start_rate", "min_rate", "max_rate")
MOST_RATE, MOST_TIME = "100 Gbit/s", "1 s"
SEGMENT = 16_384

POINT = 20
_PARAMETERS = struct.Struct(f"=8Q5I{stamp_field.SIZE}s7Bx")
SIZE = _PARAMETERS.size + -_PARAMETERS.size % 8


def refusals(given: Given) -> Iterator[str]:
    """What real hosts cannot do of the parameters."""
    value = {**DEFAULTS, **dict(given)}
    yield from stamp_field.refusals(value)
    for name in RATES:
        if value[name] and units.rate(value[name]) > units.rate(MOST_RATE):
            yield f"{name}: it counts rates up to {MOST_RATE}"
    for name in TIMES:
        if value[name] and units.time(value[name]) > units.time(MOST_TIME):
            yield f"{name}: it counts times up to {MOST_TIME}"


def packed(given: Given) -> bytes:
    """The parameters as `timely.c` has them; they are none that `refusals` names."""
    value = {**DEFAULTS, **dict(given)}
    yes = {name: value[name] == "yes" for name in ("raw_falls", "patched", "scaled")}
    return _PARAMETERS.pack(
        *(units.rate(value[name]) if value[name] else 0 for name in RATES),
        *(units.time(value[name]) // 1000 if value[name] else 0 for name in TIMES),
        *(round(float(value[name]) * (1 << POINT)) for name in ("alpha", "beta", "most_cut")),
        int(value["hai"]),
        SEGMENT if value["step"] == "segment" else 0,
        # Nanoseconds.
        stamp_field.packed(value, Fraction(1, 1000)),
        SOURCES.index(value["signal"]),
        value["thresholds_on"] == "signal",
        value["thresholds"] == "path",
        yes["raw_falls"],
        yes["patched"],
        yes["scaled"],
        value["send"] == "window",
    ).ljust(SIZE, b"\0")
