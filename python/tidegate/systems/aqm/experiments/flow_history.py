"""What flows did over time, from their samples: goodput in intervals of a second, the time to reach a rate, what a loss costs."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tidegate.results import Result

Floats = npt.NDArray[np.float64]

INTERVAL_S = 1.0
"""iperf's default interval of reports."""
ALONE_S = 2.0
"""A loss is judged if the flow has no other one so long before and after it."""


class FlowHistory:
    """The samples of each flow of a run. Times are in seconds, rates in Mbit/s of payload."""

    def __init__(self, result: Result) -> None:
        self._of: dict[int, tuple[Floats, Floats, Floats]] = {}
        self._slow_start: dict[int, npt.NDArray[np.bool_]] = {}
        parts = result.flow_samples.partition_by("flow", as_dict=True, maintain_order=True)
        for key, part in parts.items():
            columns = ("time_s", "bytes_received", "retransmits")
            time, received, sent_again = (
                part[name].fill_null(0).to_numpy().astype(float) for name in columns
            )
            flow = int(str(key[0]))
            self._of[flow] = time, received, sent_again
            # No threshold is known before the first congestion.
            beyond = (part["cwnd_packets"] >= part["ssthresh_packets"]).fill_null(value=False)
            self._slow_start[flow] = ~beyond.to_numpy()

    def _mbps(self, flow: int, from_s: Floats, to_s: Floats) -> Floats:
        """Mean rates between pairs of times."""
        time, received, _ = self._of[flow]
        came = np.interp(to_s, time, received) - np.interp(from_s, time, received)
        rates: Floats = came * 8e-6 / (to_s - from_s)
        return rates

    def intervals_mbps(self, flow: int, from_s: float, to_s: float) -> Floats:
        """Goodput in each whole interval of a time; over all of it, if that is shorter than an interval."""
        whole = int((to_s - from_s) / INTERVAL_S + 1e-6)
        edges: Floats = np.array([from_s, to_s])
        if whole:
            edges = from_s + INTERVAL_S * np.arange(whole + 1, dtype=np.float64)
        return self._mbps(flow, edges[:-1], edges[1:])

    def ramp_s(self, flow: int, start_s: float, to_s: float, mbps: float) -> float:
        """Time from a flow's start to the end of the first interval in which it has `mbps`; if it never has, the time until `to_s`."""
        time, _, _ = self._of[flow]
        ends = time[(time >= start_s + INTERVAL_S) & (time <= to_s + 1e-9)]
        reached = ends[self._mbps(flow, ends - INTERVAL_S, ends) >= mbps]
        return float(reached[0] if len(reached) else to_s) - start_s

    def loss_costs(self, flow: int, from_s: float, to_s: float) -> list[float]:
        """For each single loss in a time, by how much goodput falls from the interval before it to the one after it, as a share.

        A single loss is one packet that is sent again between two samples, after slow start.
        """
        time, _, sent_again = self._of[flow]
        growth = np.diff(sent_again)
        at = np.flatnonzero(growth > 0) + 1
        costs = []
        for index, sample in enumerate(at):
            if growth[sample - 1] != 1 or self._slow_start[flow][sample - 1]:
                continue
            before, after = time[sample - 1], time[sample]
            alone = (index == 0 or time[at[index - 1]] < before - ALONE_S) and (
                index == len(at) - 1 or time[at[index + 1] - 1] > after + ALONE_S
            )
            if not alone or before < from_s + ALONE_S or after > to_s - ALONE_S:
                continue
            edges = np.array([before - INTERVAL_S, after]), np.array([before, after + INTERVAL_S])
            was, became = self._mbps(flow, *edges)
            if was > 0:
                costs.append(float(1 - became / was))
        return costs
