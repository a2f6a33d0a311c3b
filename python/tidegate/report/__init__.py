"""Reports of runs: one HTML file with figures, tables, claims, parameters and versions, which needs no network.

`page` writes it, `series` takes the time series of a run's tables, `flent` writes live runs as flent's data files. Scripts and styles
are in `tidegate/assets`; uPlot (MIT) draws.
"""

from tidegate.report.flent import write_flent
from tidegate.report.page import join, of_run, write

__all__ = ["join", "of_run", "write", "write_flent"]
