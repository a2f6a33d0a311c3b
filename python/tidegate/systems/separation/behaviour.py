"""What a congestion control does, seen passively: figures of a flow's series, and the control that they are most like.

The paper names classes by congestion control as future work. P4CCI (Kfoury et al., ICC 2023) feeds series of bytes in flight to a
neural network; here a few figures of the same series are compared with those of known runs: the nearest neighbours after scaling. What
cannot be told apart stays so: `separation.cca` has the confusion matrix on runs that were not looked at before.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path

import numpy as np
import numpy.typing as npt

from tidegate.control import Controller, SwitchApi
from tidegate.network import FiveTuple
from tidegate.systems.separation.measured import Flows

PERIOD_S = 0.1
NEIGHBOURS = 5
KNOWN = Path(__file__).with_name("behaviour.json")
"""Figures of the known runs. `python -m tidegate.systems.separation.experiments.cca DIR/run.json` writes them, of a run of `separation.cca`
with `runs=known`."""

FIGURES = (
    "loss_rate",
    "queue_over_base",
    "variation",
    "kept_at_loss",
    "middle_of_growth",
    "deepest_pause",
    "pause_every_s",
    "cycle",
    "loss_gap_rtts",
)

Series = npt.NDArray[np.float64]


@dataclass
class Observed:
    """A flow's series, one value each `PERIOD_S`."""

    rate_bps: list[float] = field(default_factory=list)
    rtt_s: list[float] = field(default_factory=list)
    """The mean of the period, or of the last one that had samples."""
    resent: list[int] = field(default_factory=list)
    """Packets that were sent again."""
    base_s: float = 0.0


class Observer(Controller):
    """Keeps the series of all long flows of a monitor. For a switch with `monitor.p4` that another controller has set up."""

    period = f"{round(PERIOD_S * 1000)} ms"
    clock = "1 us"

    def __init__(self) -> None:
        self.seen: dict[FiveTuple, Observed] = {}
        self._flows = Flows()
        self._resent: dict[FiveTuple, int] = {}

    def start(self, switch: SwitchApi) -> None:
        """Begin anew."""
        self.seen, self._flows, self._resent = {}, Flows(), {}

    def on_digest(self, now: int, switch: SwitchApi, digest: object) -> None:
        """A flow has got a place."""
        self._flows.found(now, digest)  # type: ignore[arg-type]

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Add a value to each series."""
        for one in self._flows.read(now, switch):
            if one.is_udp or one.base_rtt_s is None:
                continue
            own = self.seen.setdefault(one.flow, Observed())
            own.base_s = one.base_rtt_s
            own.rate_bps.append(one.rate_bps)
            own.rtt_s.append(one.rtt_s or (own.rtt_s[-1] if own.rtt_s else one.base_rtt_s))
            own.resent.append(one.resent - self._resent.get(one.flow, one.resent))
            self._resent[one.flow] = one.resent


def figures(seen: Observed, skip_s: float = 5.0) -> list[float] | None:
    """The figures of a flow by `FIGURES`; `None` if it was seen for less than 20 s after `skip_s`, or was silent for half of that or more."""
    skip = round(skip_s / PERIOD_S)
    rate, rtt = np.array(seen.rate_bps[skip:]), np.array(seen.rtt_s[skip:])
    resent = np.array(seen.resent[skip:])
    if len(rate) < 20 / PERIOD_S or np.median(rate) <= 0:
        return None
    base = max(seen.base_s, 1e-4)
    flight = rate * rtt
    packets = rate.mean() * PERIOD_S * len(rate) / 8 / 1500
    events = _events(resent, max(1, round(3 * base / PERIOD_S)))
    kept, middle = _around(flight, events, base)
    pauses = _pauses(rate)
    # Logarithms of the C library: NumPy's differ in the last bit from processor to processor.
    return [
        math.log10(1e-6 + resent.sum() / packets),
        math.log10(0.01 + max(0.0, np.median(rtt) / base - 1)),
        float(flight.std() / flight.mean()),
        kept,
        middle,
        float(min((rate[at] for at in pauses), default=np.median(rate)) / np.median(rate)),
        float(np.median(np.diff(pauses)) * PERIOD_S) if len(pauses) > 2 else 30.0,
        _cycle(rate, base),
        math.log10(np.median(np.diff(events)) * PERIOD_S / base) if len(events) > 1 else 4.0,
    ]


def _events(resent: npt.NDArray[np.int64], together: int) -> list[int]:
    """Steps at which losses begin."""
    found: list[int] = []
    last = -together - 1
    for at in np.flatnonzero(resent > 0).tolist():
        if at - last > together:
            found.append(at)
        last = at
    return found


def _around(flight: Series, events: Sequence[int], base_s: float) -> tuple[float, float]:
    """Medians of what is left of the bytes in flight after a loss, and of where they are half-way to the next."""
    settle = max(2, round(4 * base_s / PERIOD_S))
    kept, middle = [], []
    for at, after in pairwise([*events, len(flight)]):
        if at < 3 or after - at < 2 * settle + 4:
            continue
        before = float(flight[max(0, at - settle) : at].max())
        if before <= 0:
            # It is sent again after a silence: a timeout.
            continue
        low = float(flight[at : at + 2 * settle].min())
        kept.append(low / before)
        begin, end = at + settle, after - 1
        first, last = float(flight[begin : begin + 2].mean()), float(flight[end - 2 : end].mean())
        half = (begin + end) // 2
        if last > first * 1.02:
            middle.append((float(flight[half - 1 : half + 2].mean()) - first) / (last - first))
    return (
        float(np.median(kept)) if kept else 1.0,
        float(np.clip(np.median(middle), -1, 2)) if middle else 0.5,
    )


def _pauses(rate: Series) -> list[int]:
    """Steps with less than 60 % of the median, the first of each."""
    low = np.flatnonzero(rate < 0.6 * np.median(rate))
    return [int(at) for place, at in enumerate(low) if place == 0 or at - low[place - 1] > 10]


def _cycle(rate: Series, base_s: float) -> float:
    """Autocorrelation of the rate after 8 round-trip times, less that after 4: BBRv1 probes each eighth."""
    centred = rate - rate.mean()
    power = float((centred**2).sum())
    if power <= 0:
        return 0.0
    whole, half = (max(1, round(times * base_s / PERIOD_S)) for times in (8, 4))
    if whole + 1 >= len(rate) or whole == half:
        return 0.0
    return float(
        ((centred[whole:] * centred[:-whole]).sum() - (centred[half:] * centred[:-half]).sum()) / power
    )


@cache
def _known() -> tuple[list[str], Series, Series, Series]:
    """Names and scaled figures of known runs, and how to scale."""
    data = json.loads(KNOWN.read_text())
    points = np.array(data["points"], dtype=float)
    middle, spread = points.mean(axis=0), points.std(axis=0)
    spread = np.where(spread > 0, spread, 1.0)
    return data["controls"], (points - middle) / spread, middle, spread


def told(of: Sequence[float], among: Collection[str] | None = None) -> str:
    """The congestion control of most of the nearest known runs, of those of some controls if it is known which there are."""
    controls, points, middle, spread = _known()
    distances = (((np.array(of) - middle) / spread - points) ** 2).sum(axis=1)
    if among is not None:
        distances[[name not in among for name in controls]] = np.inf
    near = np.argsort(distances, kind="stable")[:NEIGHBOURS]
    votes = Counter(controls[at] for at in near)
    most = max(votes.values())
    # Of those with as many votes, the nearest.
    return str(next(controls[at] for at in near if votes[controls[at]] == most))
