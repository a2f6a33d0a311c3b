"""Compares runs: medians, spread over seeds, and paired differences by seed with bootstrap confidence intervals.

What is compared is first made alike, or refused: the same cases, the same columns in the same units. Parameters that differ are said.
`sides` takes what is compared by the words of the command line, and `compare` puts it side by side.
"""

from __future__ import annotations

from tidegate.compare.alike import Side, demand_alike
from tidegate.compare.comparison import Comparison
from tidegate.compare.operands import Asked, sides
from tidegate.compare.statistics import compare, interval

__all__ = ["Asked", "Comparison", "Side", "compare", "demand_alike", "interval", "sides"]
