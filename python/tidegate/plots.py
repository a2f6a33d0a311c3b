"""Shared parts of the experiments' figures: colours, and what is drawn of several seeds.

One scheme or congestion control has one colour in all figures (`colour`). The colours can be told apart with each of the common kinds
of colour blindness, the first eight best (Okabe and Ito, Color Universal Design, 2008). Matplotlib's `C0`, `C1`, ... are those of
`CYCLE` wherever an experiment draws.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
import polars as pl

from tidegate.claims import Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tidegate.experiments import Run
    from tidegate.results import Result

CYCLE = (
    "#0072b2",  # blue
    "#e69f00",  # orange
    "#009e73",  # green
    "#d55e00",  # vermilion
    "#cc79a7",  # pink
    "#56b4e9",  # sky
    "#6b3d00",  # brown
    "#484848",  # grey
    "#b5a300",  # olive
    "#332288",  # indigo
)
COLOURS = {
    # Congestion controls.
    "cubic": CYCLE[0],
    "reno": CYCLE[5],
    "bbr": CYCLE[3],
    "bbr3": CYCLE[1],
    "htcp": CYCLE[4],
    "dctcp": CYCLE[2],
    "prague": CYCLE[6],
    "vegas": CYCLE[9],
    "swift": CYCLE[8],
    "hpcc": "#aa4499",
    "hpcc_free": "#d9a3cf",
    "powertcp": "#882255",
    "stamp": "#000000",
    "stamp4": "#999999",
    "dctcp-stamp": "#117733",
    # TIMELY, by what it follows.
    "rtt": "#44aa99",
    "rtt_less_hops": "#7fc8bc",
    "sum": "#999933",
    "sum_squ": "#ddaa33",
    "max": "#4477aa",
    "ind": "#663333",
    # Schedulers and queues.
    "fifo": CYCLE[7],
    "one-queue": CYCLE[7],
    "droptail": CYCLE[7],
    "codel": CYCLE[3],
    "fq_codel": CYCLE[9],
    "drr": CYCLE[2],
    "fq": CYCLE[2],
    "hash": CYCLE[4],
    "rcp": CYCLE[8],
    "htb": CYCLE[6],
    "manual": CYCLE[4],
    "tcp": CYCLE[0],
}

mpl.rcParams["axes.prop_cycle"] = f"cycler(color={list(CYCLE)})"


def colour(name: str) -> str:
    """The colour of a scheme or congestion control, ignoring suffixes (`cubic+ECN`, `hash-4`) and the prefix `timely-`.

    >>> colour("cubic+ECN") == colour("cubic"), colour("timely-rtt") == colour("rtt")
    (True, True)

    Other names map to a fixed colour of `CYCLE`.
    """
    base = name.removeprefix("timely-").partition("+")[0].partition(" ")[0]
    for known in (base, base.partition("-")[0]):
        if known in COLOURS:
            return COLOURS[known]
    return CYCLE[sum(name.encode()) % len(CYCLE)]


def all_rows(runs: Iterable[Run]) -> list[Row]:
    """The rows of all runs; interrupted runs have none."""
    return [row for run in runs for row in run.rows or ()]


def of_first_seed(runs: list[Run]) -> list[Run]:
    """The runs with the first seed, which time series show."""
    return [run for run in runs if run.seed == runs[0].seed]


def by_seed(
    panel: Any, values: Mapping[float, Sequence[float]], *, label: str, colour: str, style: str = "o-"
) -> None:
    """Draw a line through the medians of all seeds, and behind it from the smallest value to the largest."""
    places = sorted(values)
    if not places:
        return
    middle, low, high = ([float(of(values[place])) for place in places] for of in (np.median, np.min, np.max))
    panel.plot(places, middle, style, color=colour, markersize=4, label=label)
    if low != high:
        panel.fill_between(places, low, high, color=colour, alpha=0.2, linewidth=0)


def log_scale(panel: Any) -> None:
    """A logarithmic y axis, if anything drawn so far is finite and above 0; of none matplotlib cannot draw one.

    >>> from matplotlib.figure import Figure
    >>> panel = Figure().subplots()
    >>> bars = panel.bar([0, 1], [0.0, float("nan")])
    >>> log_scale(panel)
    >>> panel.get_yscale()
    'linear'
    """
    if np.isfinite(panel.dataLim.minposy):
        panel.set_yscale("log")


MOST_LINES = 12
"""Flows and queues that a first look shows."""


def first_look(result: Result) -> Figure:
    """Goodput of the first TCP flows over time, and the delay of the first sampled queues that hold something."""
    from matplotlib.figure import Figure

    held = result.queue_samples.filter(pl.col("queue_delay_ms") > 0)
    queues = held.select("queue", "number").unique(maintain_order=True).rows()
    figure = Figure(figsize=(9, 5 if queues else 2.8), layout="constrained")
    panels = figure.subplots(2 if queues else 1, 1, sharex=True, squeeze=False).ravel()
    labels = dict(result.flows.select("flow", "label").iter_rows())
    for (flow,), samples in list(result.flow_samples.group_by("flow", maintain_order=True))[:MOST_LINES]:
        series = samples.select(
            time_s="time_s", rate=pl.col("bytes_received").diff() * 8e-6 / pl.col("time_s").diff()
        )
        label = f"{flow} {labels.get(flow) or ''}".strip()
        panels[0].plot(series["time_s"], series["rate"], lw=1, label=label)
    panels[0].set(ylabel="goodput, Mbit/s")
    for name, number in queues[:MOST_LINES]:
        of_link = result.queue_samples.filter(pl.col("queue") == name)
        samples = of_link.filter(pl.col("number") == number)
        label = name if samples.height == of_link.height else f"{name} [{number}]"
        panels[1].plot(samples["time_s"], samples["queue_delay_ms"], lw=1, label=label)
        panels[1].set(ylabel="queue delay, ms")
    for axes in panels:
        axes.grid(alpha=0.3)
        if axes.lines:
            for text in axes.legend(fontsize="small", ncols=2).get_texts():
                # Names are shown as they are: between two $ there need be no formula.
                text.set_parse_math(False)
    panels[-1].set(xlabel="time, s")
    return figure


def whiskers(
    panel: Any,
    rows: Iterable[Row],
    column: str,
    label: Callable[[Row], str],
    *,
    colour: str,
    places: Mapping[str, float] | None = None,
    scale: float | Mapping[str, float] = 1,
    offset: float = 0,
) -> None:
    """Draw a line from the smallest to the largest value of all seeds for each label; one seed has none.

    For figures that show the medians by that label. A label's line stands at its place, or, without `places`, at the number that
    the label is; `scale` and `offset` turn values into what the panel shows.
    """
    values: dict[str, list[float]] = {}
    for row in rows:
        if row[column] is not None:
            values.setdefault(label(row), []).append(float(row[column]))
    for name, found in values.items():
        factor = scale[name] if isinstance(scale, Mapping) else scale
        low, high = sorted(offset + factor * of(found) for of in (min, max))
        if low < high:
            at = float(name) if places is None else places[name]
            panel.vlines(at, low, high, color=colour, linewidth=1.2, alpha=0.7, zorder=1.5)
