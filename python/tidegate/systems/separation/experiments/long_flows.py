"""The flows of `separation.fct`: when they start, their sizes and round-trip times; and what an ideal link would make of them.

They are drawn from the ranges that the paper gives, or are those of a list that `tidegate monitor --parquet` has written of a capture.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from io import BytesIO
from pathlib import Path

import numpy as np
import polars as pl

from tidegate._core import TidegateError
from tidegate.systems.separation.experiments.testbed import FRAMING, MTU, PAYLOAD

SIZES = ("loguniform", "equal")
"""Log-uniform between `SIZES_MB`, or all of that mean."""
SIZES_MB = (150.0, 2000.0)
"""At 1 Gbit/s."""
RTTS_MS = (1.0, 224.0)
WIRE = 8 * (MTU + FRAMING) / PAYLOAD
"""Bits on the link for each byte of payload, in packets of the full size."""
MEAN_MB = (SIZES_MB[1] - SIZES_MB[0]) / math.log(SIZES_MB[1] / SIZES_MB[0])
"""Of log-uniform sizes, at 1 Gbit/s."""
PAPER_FLOWS, TRACE_S = 6000, 900.0
"""The paper's flows, and the length of a file of its trace (MAWI)."""
ONCE = 0.0
"""In place of a load: all flows start within 1 s."""
TRACE = round(PAPER_FLOWS * MEAN_MB * 1e6 * WIRE / 1e9 / TRACE_S, 1)
"""The load of the paper's flows in the time of its trace: starts are uniform in that time, of which so many flows have their part."""
ARRIVALS = {"once": ONCE, "trace": TRACE, **{f"{load:g}": load for load in (0.3, 0.6, 0.8, 0.9)}}
"""All at once, as in the trace, or Poisson at a load."""


@dataclass(frozen=True)
class Workload:
    """Flows by number: start (s), size (bytes), round-trip time (s)."""

    starts: tuple[float, ...]
    sizes: tuple[int, ...]
    rtts: tuple[float, ...]

    @property
    def mean_rtt_s(self) -> float:
        """Of all flows."""
        return float(np.mean(self.rtts))

    def drained_s(self, rate_mbps: float) -> float:
        """Time in which a link of this rate carries all bytes."""
        return sum(self.sizes) * WIRE / (rate_mbps * 1e6)

    def load(self, rate_mbps: float) -> float:
        """What the flows offer of a link from the first start to the last; `ONCE` if that is within 1 s."""
        within_s = max(self.starts) - min(self.starts)
        return round(self.drained_s(rate_mbps) / within_s, 2) if within_s > 1 else ONCE


@cache
def workload(flows: int, rate_mbps: float, load: float, seed: int, sizes_are: str = "loguniform") -> Workload:
    """Log-uniform round-trip times, and sizes that do not depend on them."""
    rng = np.random.default_rng([seed, flows])
    low, high = (math.log(size * rate_mbps * 1e3) for size in SIZES_MB)
    sizes = np.exp(rng.uniform(low, high, flows)).round()
    if sizes_are == "equal":
        sizes = np.full(flows, round(MEAN_MB * rate_mbps * 1e3))
    shortest, longest = (math.log(rtt / 1e3) for rtt in RTTS_MS)
    rtts = np.exp(rng.uniform(shortest, longest, flows))
    if load == ONCE:
        starts = rng.uniform(0, 1, flows)
    elif load == TRACE:
        starts = rng.uniform(0, TRACE_S * flows / PAPER_FLOWS, flows)
    else:
        gap = sizes.mean() * 8 * (MTU + FRAMING) / PAYLOAD / (load * rate_mbps * 1e6)
        starts = np.cumsum(rng.exponential(gap, flows))
    return Workload(tuple(starts.tolist()), tuple(int(s) for s in sizes), tuple(rtts.tolist()))


NEEDED = ("protocol", "src", "src_port", "dst", "dst_port", "payload_bytes", "first_s", "rtt_ms_min")
"""Columns of `tidegate monitor --parquet`, or of a CSV file that has them."""
_READERS: dict[str, Callable[[BytesIO], pl.DataFrame]] = {".parquet": pl.read_parquet, ".csv": pl.read_csv}
_CURE = "give what `tidegate monitor --parquet` writes, or a CSV file with the same columns"


def listed(path: Path) -> Workload:
    """The TCP connections of a list: each sends the payload of its larger direction, over the least times of both legs.

    Those without payload or round-trip time are left out. Raises `TidegateError` for a file that is no such list, with the place.
    """
    read = _READERS.get(path.suffix)
    if read is None:
        raise TidegateError(f"{path}: a list of flows ends with .parquet or .csv; {_CURE}")
    try:
        # Polars names the file only in some of its messages, so it gets none.
        table = read(BytesIO(path.read_bytes()))
    except OSError as error:
        raise TidegateError(f"{path}: {error.strerror}; {_CURE}") from error
    except pl.exceptions.PolarsError as error:
        raise TidegateError(f"{path}: {str(error).splitlines()[0]}; {_CURE}") from error
    missing = [name for name in NEEDED if name not in table.columns]
    if missing:
        raise TidegateError(f"{path}: it has no column {', '.join(missing)}; {_CURE}")
    text = ("protocol", "src", "dst")
    kinds = [(name, pl.String if name in text else pl.Float64) for name in NEEDED]
    try:
        table = table.select(pl.col(name).cast(kind) for name, kind in kinds)
    except pl.exceptions.PolarsError as error:
        raise TidegateError(f"{path}: {str(error).splitlines()[0]}; {_CURE}") from error
    table = table.filter(pl.col("protocol") == "tcp")
    one = table.rename({"rtt_ms_min": "leg_ms"})
    other = table.select(
        pl.col("dst").alias("src"),
        pl.col("dst_port").alias("src_port"),
        pl.col("src").alias("dst"),
        pl.col("src_port").alias("dst_port"),
        pl.col("payload_bytes").alias("back_bytes"),
        pl.col("rtt_ms_min").alias("other_leg_ms"),
    )
    both = one.join(other, on=["src", "src_port", "dst", "dst_port"], how="left")
    both = both.filter(
        pl.col("payload_bytes") >= 1,
        pl.col("payload_bytes") > pl.col("back_bytes").fill_null(-1),
        pl.col("leg_ms") > 0,
        pl.col("first_s").is_finite(),
    ).sort("first_s", "src", "src_port", "dst", "dst_port")
    if both.is_empty():
        raise TidegateError(f"{path}: no TCP flow of it has both payload and a round-trip time; give another")
    starts = both["first_s"] - both["first_s"].min()
    rtts = (both["leg_ms"] + both["other_leg_ms"].fill_null(0.0)) / 1e3
    return Workload(
        tuple(starts.to_list()), tuple(int(size) for size in both["payload_bytes"]), tuple(rtts.to_list())
    )


def processor_sharing(flows: Workload, goodput_bps: float) -> list[float]:
    """Completion times (s) on a link that all flows that are there share equally at each moment, and that is never idle with work."""
    order = sorted(range(len(flows.starts)), key=lambda n: flows.starts[n])
    done = [0.0] * len(order)
    # Service that each active flow has had since the start of a busy period; a flow leaves when it has had its size.
    now, served = 0.0, 0.0
    active: list[tuple[float, int]] = []
    for number in [*order, None]:
        until = float("inf") if number is None else flows.starts[number]
        while active:
            level, first = active[0]
            leaves = now + (level - served) * len(active) * 8 / goodput_bps
            if leaves > until:
                break
            now, served = leaves, level
            heapq.heappop(active)
            done[first] = now - flows.starts[first]
        if number is None:
            break
        if active:
            served += (until - now) * goodput_bps / 8 / len(active)
        now = until
        heapq.heappush(active, (served + flows.sizes[number], number))
    return done
