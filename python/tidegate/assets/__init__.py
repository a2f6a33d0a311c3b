"""Scripts and styles of reports and of the dashboard. Everything is served from here or is in the page: nothing comes from a network.

`uplot.min.js` and `uplot.min.css` are uPlot 1.6.32, unchanged, under the MIT licence in `uplot.LICENSE`.
"""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def text(name: str) -> str:
    """The text of a file."""
    return resources.files(__name__).joinpath(name).read_text(encoding="utf-8")


@cache
def licence_of_uplot() -> str:
    """As it has to be beside uPlot wherever that goes."""
    return text("uplot.LICENSE").strip()
