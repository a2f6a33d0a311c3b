"""Time series of a run's tables, as charts: few enough points to draw, and none that hides a peak.

Where there are more samples than points, each interval of time has two: its lowest and its highest value. Rates are those of the whole
interval, from counts at its ends; between a series' own samples, a count is taken to grow evenly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

POINTS = 600
"""Of a series, at most twice as many."""
SERIES = 12
"""Of a chart, the largest."""
Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Chart:
    """Series over time."""

    title: str
    unit: str
    time_s: Floats
    series: list[tuple[str, Floats]]
    """Names and values; NaN where there is none."""
    left_out: int = 0
    """Series that there are besides."""


@dataclass(frozen=True)
class _Grid:
    """Values of one quantity by time and name."""

    time_s: Floats
    names: list[str]
    values: Floats
    """Of each time a row, of each name a column."""


def _grid(frame: pl.DataFrame, names: list[str], value: str) -> _Grid:
    """`names` has the name of each row."""
    times, at = np.unique(frame["time_s"].to_numpy(), return_inverse=True)
    order = {name: number for number, name in enumerate(dict.fromkeys(names))}
    values = np.full((len(times), len(order)), np.nan)
    values[at, [order[name] for name in names]] = frame[value].cast(pl.Float64).to_numpy()
    return _Grid(times, list(order), values)


def _largest(grid: _Grid, sizes: Floats) -> tuple[_Grid, int]:
    """The series with the largest sizes, in their own order, and how many others have values."""
    there = [n for n in range(len(grid.names)) if not np.isnan(grid.values[:, n]).all()]
    chosen = sorted(sorted(there, key=lambda n: -sizes[n])[:SERIES])
    kept = _Grid(grid.time_s, [grid.names[n] for n in chosen], grid.values[:, chosen])
    return kept, len(there) - len(chosen)


def _bins(times: Floats, points: int) -> npt.NDArray[np.int64]:
    """The interval of each time."""
    span = max(float(times[-1] - times[0]), 1e-12)
    bins: npt.NDArray[np.int64] = np.minimum(
        ((times - times[0]) / span * points).astype(np.int64), points - 1
    )
    return bins


def levels(grid: _Grid, points: int = POINTS) -> tuple[Floats, list[Floats]]:
    """Times and values of what is high or low at a time: queues, windows.

    >>> grid = _Grid(np.arange(6.0), ["a"], np.array([[1.0], [9.0], [2.0], [3.0], [0.0], [4.0]]))
    >>> times, [values] = levels(grid, 2)
    >>> values.tolist()
    [1.0, 9.0, 0.0, 4.0]
    """
    times, values = grid.time_s, grid.values
    if len(times) <= 2 * points:
        return times, [values[:, n] for n in range(values.shape[1])]
    bins = _bins(times, points)
    span = (times[-1] - times[0]) / points
    out_times = (
        times[0] + span * np.repeat(np.arange(points), 2) + np.tile([0.25 * span, 0.75 * span], points)
    )
    out = []
    for n in range(values.shape[1]):
        column = np.full(2 * points, np.nan)
        with np.errstate(invalid="ignore"):
            np.fmin.at(column, 2 * bins, values[:, n])
            np.fmax.at(column, 2 * bins + 1, values[:, n])
        out.append(column)
    return out_times, out


def rates(grid: _Grid, points: int = POINTS) -> tuple[Floats, list[Floats]]:
    """Times and increase per second of what is counted.

    >>> times, [values] = rates(_Grid(np.arange(3.0), ["a"], np.array([[0.0], [5.0], [5.0]])))
    >>> times.tolist(), values.tolist()
    ([1.0, 2.0], [5.0, 0.0])
    """
    times, values = grid.time_s, grid.values
    if len(times) > points:
        bins = _bins(times, points)
        last = np.flatnonzero(np.diff(bins, append=points))
    else:
        last = np.arange(len(times))
    out = []
    for n in range(values.shape[1]):
        own = ~np.isnan(values[:, n])
        known = np.interp(times[last], times[own], values[own, n], left=np.nan, right=np.nan)
        out.append(np.diff(known) / np.diff(times[last]))
    return times[last][1:], out


def _chart(
    title: str,
    unit: str,
    grid: _Grid,
    sizes: Floats,
    made: Callable[[_Grid], tuple[Floats, list[Floats]]],
    scale: float = 1.0,
) -> Chart | None:
    kept, left_out = _largest(grid, sizes)
    if not kept.names or len(kept.time_s) < 2:
        return None
    times, values = made(kept)
    named = [(name, column * scale) for name, column in zip(kept.names, values, strict=True)]
    return Chart(title, unit, times, named, left_out)


def _most(values: Floats) -> Floats:
    """The largest of each column; nothing is 0."""
    most: Floats = np.nan_to_num(np.fmax.reduce(values, axis=0), nan=0.0)
    return most


FLOW_LEVELS = (
    ("Congestion window", "packets", "cwnd_packets"),
    ("Smoothed round-trip time", "ms", "srtt_ms"),
)
QUEUE_LEVELS = (("Queue delay", "ms", "queue_delay_ms"), ("Queue", "packets", "packets"))
QUEUE_RATES = (
    ("Link rate", "Mbit/s", "sent_bytes", 8e-6),
    ("Drops", "packets/s", "dropped", 1.0),
    ("ECN marks", "packets/s", "marked", 1.0),
)


def charts(tables: Mapping[str, pl.DataFrame]) -> list[Chart]:
    """All time series of the tables of a run: flows, queues, what controllers have noted."""
    found = [*_flows(tables["flow_samples"], tables["flows"]), *_queues(tables["queue_samples"])]
    found += _notes(tables["notes"])
    return [chart for chart in found if chart is not None]


def _flows(samples: pl.DataFrame, flows: pl.DataFrame) -> list[Chart | None]:
    if samples.is_empty():
        return []
    labels = {number: f"{number}: {label}" for number, label in flows.select("flow", "label").rows()}
    names = [labels.get(flow, str(flow)) for flow in samples["flow"]]
    # A real kernel's sender knows what was acknowledged only.
    counted = samples.with_columns(pl.coalesce("bytes_received", "bytes_acked").alias("bytes"))
    grid = _grid(counted, names, "bytes")
    sizes = _most(grid.values)
    rate = _chart("Goodput", "Mbit/s", grid, sizes, rates, 8e-6)
    return [rate, *(_chart(t, u, _grid(samples, names, c), sizes, levels) for t, u, c in FLOW_LEVELS)]


def _queues(samples: pl.DataFrame) -> list[Chart | None]:
    if samples.is_empty():
        return []
    several = samples["number"].max() != 0
    pairs = zip(samples["queue"], samples["number"], strict=True)
    names = [f"{queue} [{number}]" if several else queue for queue, number in pairs]
    found = []
    for title, unit, column in QUEUE_LEVELS:
        grid = _grid(samples, names, column)
        found.append(_chart(title, unit, grid, _most(grid.values), levels))
    for title, unit, column, scale in QUEUE_RATES:
        grid = _grid(samples, names, column)
        if (_most(grid.values) > 0).any():
            found.append(_chart(title, unit, grid, _most(grid.values), rates, scale))
    return found


def _notes(notes: pl.DataFrame) -> list[Chart | None]:
    """A chart for each quantity; one with labels (`queue_depth_packets[1,0]`) has a series for each."""
    if notes.is_empty():
        return []
    found = []
    whole = notes.with_columns(pl.col("quantity").str.split("[").list.first().alias("base"))
    for (base,), part in whole.group_by("base", maintain_order=True):
        pairs = zip(part["switch"], part["quantity"], strict=True)
        names = [f"{switch} {quantity.removeprefix(str(base))}".strip() for switch, quantity in pairs]
        grid = _grid(part, names, "value")
        found.append(_chart(f"Noted: {base}", "", grid, _most(np.abs(grid.values)), levels))
    return found
