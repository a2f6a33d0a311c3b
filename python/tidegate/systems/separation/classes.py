"""Classes of flows by their round-trip times: Jenks natural breaks, with hysteresis.

The paper (section III-C) sorts flows into as many classes as the router has queues. It leaves open which statistic of a flow's round-trip
times counts, when classes are made anew, and what keeps flows from going to and fro. Here it is the least one: a mean has the
router's own queue in it, and so the last classes. The least so far only falls, and what it falls to is nearer the truth: so a flow that has
come below a break is in the lower class at once. It rises when the flow is found anew, with few samples: then the flow stays for a while.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import jenkspy
import numpy as np
import numpy.typing as npt

from tidegate._core import TidegateError

Times = npt.NDArray[np.float64]

WELL = 0.9
"""Goodness of variance fit with which a number of classes is enough."""
APART = 1.05
"""Means of two classes differ by this factor at least."""
NOISE = 0.001
"""Of the variance of all times; by so much breaks may fit worse where new ones leave next to nothing of it, as with few flows."""
MOST_VALUES = 1024
"""Values that breaks are computed of; of more, so many quantiles. The algorithm's time is quadratic in them."""


def breaks(times: Times, classes: int) -> list[float]:
    """Upper ends of all classes but the last, ascending, by Jenks natural breaks; fewer where fewer values differ."""
    distinct = np.unique(times)
    if classes < 2 or len(distinct) < 2:
        return []
    if len(times) > MOST_VALUES:
        times = np.quantile(times, np.linspace(0, 1, MOST_VALUES))
        distinct = np.unique(times)
    if len(distinct) <= classes:
        found = distinct[:-1]
    else:
        found = np.array(jenkspy.jenks_breaks(times, n_classes=classes)[1:-1])
    found = _apart(times, found)
    # Between two values, so that a small change of one does not cross a break.
    following = distinct[np.searchsorted(distinct, found, side="right").clip(max=len(distinct) - 1)]
    return [float(value) for value in (found + following) / 2]


def _apart(times: Times, ends: Times) -> Times:
    """Upper ends without those between classes whose means are nearly the same: what is left of them is noise of the measurement."""
    kept = list(ends)
    while kept:
        of = np.searchsorted(kept, times)
        means = [float(times[of == number].mean()) for number in range(len(kept) + 1)]
        near = [after / before for before, after in pairwise(means)]
        if min(near) >= APART:
            break
        del kept[int(np.argmin(near))]
    return np.array(kept)


def goodness_of_fit(times: Times, ends: list[float]) -> float:
    """Goodness of variance fit: 1 less the squared deviations from the classes' means over those from the mean of all."""
    total = float(((times - times.mean()) ** 2).sum())
    if total == 0:
        return 1.0
    of = np.searchsorted(ends, times)
    within = sum(
        float(((part - part.mean()) ** 2).sum()) for c in np.unique(of) for part in (times[of == c],)
    )
    return 1 - within / total


@dataclass
class Classifier:
    """Classes of flows that stay as they are while they fit."""

    classes: int
    """The most that there may be: the router's queues."""
    by_fit: bool = False
    """As few classes as give a goodness of fit of `WELL`, rather than as many as there may be."""
    slack: float = 0.1
    """New breaks are taken when the old ones leave more of the variance within the classes than new ones: by this part of what those leave, and
    by `NOISE`."""
    margin: float = 0.1
    """A flow leaves its class for one of longer times when its time is beyond the break by this part of it."""
    ends: list[float] = field(default_factory=list)
    _of: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not isinstance(self.classes, int) or self.classes < 1:
            raise TidegateError(f"{self.classes!r} classes of flows; give 1 or more")

    def classify(self, times: Mapping[Any, float]) -> dict[Any, int]:
        """The class of each flow from its time, 0 for the shortest. Flows that are not given are forgotten."""
        if not times:
            self._of = {}
            return {}
        values = np.fromiter(times.values(), dtype=float, count=len(times))
        new = self._new_ends(values)
        if len(new) != len(self.ends) or not self._fits(values, new):
            self.ends, self._of = new, {}
        found: dict[Any, int] = {}
        plain = np.searchsorted(self.ends, values).tolist()
        for (flow, time), now in zip(times.items(), plain, strict=True):
            found[flow] = self._kept(self._of.get(flow, now), now, time)
        self._of = found
        return dict(found)

    def _fits(self, values: Times, new: list[float]) -> bool:
        left, least = (1 - goodness_of_fit(values, ends) for ends in (self.ends, new))
        return left <= (1 + self.slack) * least + NOISE

    def _new_ends(self, values: Times) -> list[float]:
        if not self.by_fit:
            return breaks(values, self.classes)
        ends: list[float] = []
        for classes in range(1, self.classes + 1):
            ends = breaks(values, classes)
            if goodness_of_fit(values, ends) >= WELL:
                break
        return ends

    def _kept(self, before: int, now: int, time: float) -> int:
        stays = now > before and time <= self.ends[before] * (1 + self.margin)
        return before if stays else now
