"""Reports of runs: one HTML file with figures, tables, claims, parameters and versions, which needs no network.

`page` writes it, `searches` those of studies and comparisons, `series` takes the time series of a run's tables, `flent` writes runs as flent's data files. Scripts and styles
are in `tidegate/assets`; uPlot (MIT) draws.
"""

from tidegate.report.flent import write_flent
from tidegate.report.page import join, of_run, write
from tidegate.report.searches import of_comparison, of_study

__all__ = ["join", "of_comparison", "of_run", "of_study", "write", "write_flent"]
