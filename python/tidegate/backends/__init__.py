"""Ways to run a network."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

from tidegate._core import TidegateError
from tidegate.suggest import did_you_mean

if TYPE_CHECKING:
    from tidegate.network import Network
    from tidegate.results import Result

NAMES = ("sim", "live")

Run = Callable[["Network", int, int, Callable[[int, int], None] | None], "Result"]
"""Network, picoseconds to run, seed, and who is told of progress."""


def find(name: str) -> Run:
    """What runs a network on the backend of that name. Only the one that is asked for is loaded."""
    if name not in NAMES:
        raise TidegateError(
            f"there is no backend {name!r}; {did_you_mean(name, NAMES)}known: {', '.join(NAMES)}"
        )
    run: Run = import_module(f"tidegate.backends.{name}").run
    return run
