"""The parameters of the congestion control `stamp` of real hosts (`stamp.c`): those of the simulated one, in the units of `stamp_law.h`."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from fractions import Fraction

from tidegate import units
from tidegate.hosts import stamp_field

Given = tuple[tuple[str, str], ...]
"""Names and values, as `Network.tcp` has checked them."""

# As the simulated control has them (crates/transport/src/cc/stamp.rs, stamp_field.rs and wire_window.rs).
DEFAULTS = {
    "line_rate": "10 Gbit/s",
    "rtt": "",
    "overhead": "66",
    "min_rate": "100 Mbit/s",
    "min_cwnd": "1",
    **stamp_field.DEFAULTS,
    "signal": "queue",
    "rtt_weight": "0",
    "base_rtt": "10 us",
    "eta": "",
    "free_queue": "0.08",
    "search": "0.05",
    "gain": "0.6",
    "step": "0.02",
    "young": "100 kB",
    "least_step": "0.3",
    "theta": "0.3",
}
ETA = {"queue": "1", "utilisation": "0.98"}
MOST_RATE = "100 Gbit/s"
MOST_RTT = "1 s"
LEAST_RTT = 1000
"""One nanosecond, in picoseconds."""

POINT = 20
_PARAMETERS = struct.Struct(f"=5Q9I{stamp_field.SIZE}sI")
SIZE = _PARAMETERS.size + -_PARAMETERS.size % 8


def refusals(given: Given) -> Iterator[str]:
    """What real hosts cannot do of the parameters."""
    value = {**DEFAULTS, **dict(given)}
    yield from stamp_field.refusals(value)
    if float(value["rtt_weight"]) != 0:
        yield "rtt_weight: it follows stamps alone"
    if units.rate(value["line_rate"]) > units.rate(MOST_RATE):
        yield f"line_rate: it counts rates up to {MOST_RATE}"
    for name in ("rtt", "base_rtt"):
        if value[name] and not LEAST_RTT <= units.time(value[name]) <= units.time(MOST_RTT):
            yield f"{name}: it counts round trips from 1 ns to {MOST_RTT}"


def packed(given: Given) -> bytes:
    """The parameters as `stamp.c` has them; they are none that `refusals` names."""
    value = {**DEFAULTS, **dict(given)}
    value["eta"] = value["eta"] or ETA[value["signal"]]
    base_rtt = units.time(value["base_rtt"])
    shares = ("eta", "free_queue", "search", "gain", "step", "least_step", "theta")
    return _PARAMETERS.pack(
        units.rate(value["line_rate"]),
        units.rate(value["min_rate"]),
        base_rtt // 1000,
        units.time(value["rtt"]) // 1000 if value["rtt"] else 0,
        min(max(1, units.size(value["young"])), (1 << 32) - 1),
        *(round(float(value[name]) * (1 << POINT)) for name in shares),
        int(value["overhead"]),
        int(value["min_cwnd"]),
        stamp_field.packed(value, Fraction(1 << POINT, base_rtt)),
        value["signal"] == "utilisation",
    ).ljust(SIZE, b"\0")
