"""Measures computed from a run's tables: counts that controllers recorded, goodput between two times, delays and rates over windows.

A window goes from a time to a time, in seconds; the counts at its ends are those of the last sample or note until then. In live
runs samples and notes are up to `SLACK_S` late.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import polars as pl

from tidegate._core import TidegateError
from tidegate.results import Result
from tidegate.suggest import did_you_mean

Floats = npt.NDArray[np.float64]

SLACK_S = 0.05
"""Largest delay of a periodic sample or note in real time."""


def growth(times_s: Floats, count: npt.NDArray[np.int64], edges_s: Floats) -> Floats:
    """How much a count that begins with 0 grows from edge to edge, from its samples: between real hosts none is just at an edge."""
    grown: Floats = np.diff(np.interp(edges_s, times_s, count, left=0.0))
    return grown


def received_bytes(samples: pl.DataFrame, flow: int, edges_s: Floats) -> Floats:
    """Bytes that a flow's receiver gets from edge to edge, in seconds, by a run's flow samples; 0 with fewer than two of them."""
    own = samples.filter(pl.col("flow") == flow).sort("time_s")
    if own.height < 2:
        return np.zeros(len(edges_s) - 1)
    return growth(own["time_s"].to_numpy(), own["bytes_received"].to_numpy(), edges_s)


class Noted:
    """The notes of a run by quantity (`SwitchApi.note`), as steps over time."""

    def __init__(self, notes: pl.DataFrame) -> None:
        parts = notes.partition_by("quantity", as_dict=True, maintain_order=True)
        self.parts = {str(key[0]): part for key, part in parts.items()}
        # A histogram of delays is hundreds of counts: a look into an array costs much less than one into a table.
        self._steps = {
            quantity: (part["time_s"].to_numpy(), part["value"].to_numpy())
            for quantity, part in self.parts.items()
        }

    def values(self, quantity: str, from_s: float, to_s: float) -> Floats:
        """Values recorded after `from_s` and up to `to_s`."""
        part = self.parts.get(quantity)
        if part is None:
            return np.zeros(0)
        kept = part.filter(pl.col("time_s") > from_s + 1e-9, pl.col("time_s") <= to_s + 1e-9)
        values: Floats = kept["value"].to_numpy()
        return values

    def at(self, quantity: str, time_s: float) -> float:
        """The last value noted up to a time; 0 before the first."""
        steps = self._steps.get(quantity)
        if steps is None:
            return 0.0
        times, values = steps
        index = int(np.searchsorted(times, time_s + SLACK_S))
        return float(values[index - 1]) if index > 0 else 0.0

    def since(self, quantity: str, from_s: float, to_s: float) -> float:
        """The growth of a count."""
        return self.at(quantity, to_s) - self.at(quantity, from_s)


def last(notes: pl.DataFrame, quantity: str) -> int:
    """The last value noted. Raises `TidegateError` where there is none."""
    values = notes.filter(pl.col("quantity") == quantity)["value"]
    if not len(values):
        raise _unknown("note", quantity, notes["quantity"], "a controller notes it with `SwitchApi.note`")
    return int(values[-1])


def _unknown(what: str, name: object, names: pl.Series, cure: str) -> TidegateError:
    known = names.unique(maintain_order=True).to_list()
    there = f"there are {', '.join(map(repr, known[:20]))}" if known else f"there are none: {cure}"
    return TidegateError(f"there is no {what} {name!r}: {did_you_mean(name, known)}{there}")


def _demand_samples(
    found: pl.DataFrame, samples: pl.DataFrame, what: str, from_s: float, to_s: float
) -> None:
    """Refuse a window without a sample: nothing is not zero."""
    if len(found):
        return
    there = "there are none: record with `Network.record`"
    if len(samples):
        times = samples["time_s"].to_numpy()
        there = f"they are from {times.min():g} to {times.max():g} s"
    raise TidegateError(f"there is no sample of {what} from {from_s:g} to {to_s:g} s; {there}")


def _of_queue(result: Result, queue: str) -> pl.DataFrame:
    samples = result.queue_samples
    found = samples.filter(pl.col("queue") == queue)
    if not len(found):
        cure = "record with `Network.record(queues=[...])`"
        raise _unknown("recorded queue", queue, samples["queue"], cure)
    return found


@dataclass(frozen=True)
class History:
    """A count of bytes since the start, at times."""

    time_s: Floats
    bytes: Floats

    @classmethod
    def noted(cls, notes: pl.DataFrame, quantity: str) -> History:
        """From a controller's notes, with 0 at the start."""
        table = notes.filter(pl.col("quantity") == quantity)
        times, values = table["time_s"].to_numpy(), table["value"].to_numpy()
        return cls(np.concatenate(([0.0], times)), np.concatenate(([0.0], values)))

    def mbps(self, since_s: float = 0.0) -> float:
        """The mean rate from a time to the end."""
        time, came = self._from(since_s)
        return float((came[-1] - came[0]) * 8e-6 / (time[-1] - time[0]))

    def windows_mbps(self, window_s: float, since_s: float = 0.0) -> Floats:
        """The rate over every window of that length from a time on; over the whole time, if that is shorter."""
        time, came = self._from(since_s)
        # In a live run the first reading may be late.
        steps = min(round(window_s / float(np.median(np.diff(time)))), len(time) - 1)
        rates: Floats = (came[steps:] - came[:-steps]) * 8e-6 / (time[steps:] - time[:-steps])
        return rates

    def _from(self, since_s: float) -> tuple[Floats, Floats]:
        """Times and counts from a time on. Raises `TidegateError` where they are no interval: readings of a live run may be late."""
        kept = self.time_s >= since_s - 1e-9
        if kept.sum() < 2:
            raise TidegateError(
                f"there are fewer than two readings from {since_s:g} s on, which give no rate: "
                "give a longer run, or run it on a less busy machine"
            )
        return self.time_s[kept], self.bytes[kept]


@dataclass(frozen=True)
class Delays:
    """A histogram of queueing delays."""

    edges_ms: Floats
    """Lower edge of each bin, and the upper edge of the last."""
    shares: Floats
    """Packets by bin."""
    mean_ms: float
    packets: int

    def quantile_ms(self, share: float) -> float:
        """The quantile of the delay; linear within a bin."""
        return float(np.interp(share, np.concatenate(([0.0], self.shares.cumsum())), self.edges_ms))


NO_DELAYS = Delays(np.zeros(2), np.ones(1), 0.0, 0)


def sampled_delays(result: Result, queue: str, from_s: float, to_s: float) -> Delays:
    """Queueing delay of a plain queue (`left -> right`) for a packet that arrives at the time of a sample.

    Raises `TidegateError` for a queue that is not recorded, and a window without samples.
    """
    of = _of_queue(result, queue)
    table = of.filter(pl.col("time_s") > from_s, pl.col("time_s") <= to_s + 1e-9)
    _demand_samples(table, of, queue, from_s, to_s)
    samples = table["queue_delay_ms"].to_numpy()
    counts, edges = np.histogram(samples, 400, (0.0, max(float(samples.max()), 0.001)))
    return Delays(edges, counts / len(samples), float(samples.mean()), len(samples))


def within(samples: pl.DataFrame, from_s: float, to_s: float) -> pl.DataFrame:
    """The samples of a window."""
    return samples.filter(pl.col("time_s") >= from_s - 1e-9, pl.col("time_s") <= to_s + SLACK_S)


def grown(result: Result, from_s: float, to_s: float) -> pl.DataFrame:
    """Growth of each flow's counts from its first to its last sample in a window, and the time between.

    Raises `TidegateError` for a window without samples.
    """
    samples = within(result.flow_samples, from_s, to_s)
    _demand_samples(samples, result.flow_samples, "flows", from_s, to_s)
    counts = ("time_s", "bytes_received", "delivered_ce")
    return samples.group_by("flow", maintain_order=True).agg(
        [pl.col(name).last() - pl.col(name).first() for name in counts]
    )


def goodputs_mbps(result: Result, from_s: float, to_s: float) -> dict[int, float]:
    """Goodput of each flow, from its samples. Raises `TidegateError` for a window without samples."""
    rows = grown(result, from_s, to_s).iter_rows()
    return {int(flow): bytes * 8e-6 / spent if spent > 0 else 0.0 for flow, spent, bytes, _ in rows}


def utilisation(result: Result, queue: str, from_s: float, to_s: float) -> float:
    """Share of the time in which a queue (`left -> right`) was sending.

    Raises `TidegateError` for a queue that is not recorded, and a window with fewer than two samples.
    """
    of = _of_queue(result, queue).filter(pl.col("number") == 0)
    samples = within(of, from_s, to_s)
    _demand_samples(samples[1:], of, queue, from_s, to_s)
    spent = float(samples["time_s"][-1] - samples["time_s"][0])
    return min(1.0, float(samples["busy_s"][-1] - samples["busy_s"][0]) / spent)
