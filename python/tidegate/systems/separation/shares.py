"""Rates of flows and classes on one link: weighted max-min fairness with demands, and three ways to weigh.

The paper (sections III-D and IV-A) gives each flow C/N, and what a flow cannot use to the others; its equation 1 weighs flows by their
round-trip times, where the weight "falls with" the time. That is unfair to flows with long ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt

from tidegate._core import TidegateError

Weighting = Literal["flows", "classes", "rtt"]
"""`flows`: each flow weighs the same, so a class weighs as many as are in it. `classes`: each class weighs the same. `rtt`: a flow
weighs the reciprocal of its class's mean round-trip time, as the paper's equation 1."""

Rates = npt.NDArray[np.float64]


def weights(weighting: Weighting, classes: Sequence[int], times: Sequence[float]) -> Rates:
    """The weight of each flow, given its class and its round-trip time."""
    of, time = np.asarray(classes, dtype=np.intp), np.asarray(times, dtype=float)
    if weighting == "flows":
        return np.ones(len(of))
    in_class = np.bincount(of, minlength=1)
    if weighting == "classes":
        return 1 / in_class[of]
    if weighting == "rtt":
        mean = np.bincount(of, time, minlength=1) / np.maximum(in_class, 1)
        if len(of) and not (mean[of] > 0).all():
            raise TidegateError("a round-trip time of 0 has no reciprocal to weigh a flow by")
        return 1 / mean[of]
    raise TidegateError(f"there is no weighting {weighting!r}; known: flows, classes, rtt")


def max_min(
    capacity: float, demands: Sequence[float] | Rates, weight: Sequence[float] | Rates | None = None
) -> Rates:
    """Weighted max-min fair rates of flows on a link: in proportion to weights, none above its demand.

    `demands` are in the unit of `capacity`; `inf`: as much as possible. Progressive filling, in order of demand over weight: O(n log n).
    """
    asked = np.asarray(demands, dtype=float)
    weigh = np.ones(len(asked)) if weight is None else np.asarray(weight, dtype=float)
    if (asked < 0).any() or not (weigh > 0).all() or capacity < 0:
        raise TidegateError("demands and capacity are not negative, and weights are above 0")
    order = np.argsort(asked / weigh)
    rates = np.zeros(len(asked))
    left, weight_left = float(capacity), float(weigh.sum())
    for number, flow in enumerate(order):
        level = left / weight_left
        if asked[flow] > level * weigh[flow]:
            rest = order[number:]
            rates[rest] = level * weigh[rest]
            break
        rates[flow] = asked[flow]
        left = max(0.0, left - asked[flow])
        weight_left -= weigh[flow]
    return rates
