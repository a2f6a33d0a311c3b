"""Compares runs: medians, spread over seeds, and paired differences by seed with bootstrap confidence intervals.

What is compared is first made alike, or refused: the same cases, the same columns in the same units. Parameters that differ are said.
"""

from __future__ import annotations

from tidegate.compare.alike import Side, demand_alike
from tidegate.compare.operands import sides
from tidegate.compare.statistics import compare, interval

__all__ = ["Side", "compare", "demand_alike", "interval", "sides"]
