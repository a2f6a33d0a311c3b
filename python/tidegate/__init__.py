"""Tidegate: P4 data planes that help TCP.

>>> import tidegate
>>> net = tidegate.Network()
>>> a, b = net.host("a"), net.host("b")
>>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
>>> flow = net.tcp(a, b)
>>> result = net.run("1 s")
>>> result
<Result: 1 s, seed 1; 1 flow, 91.8 Mbit/s in all, 0 retransmissions>
>>> result.flows.select("label", "retransmits").rows()
[('cubic a -> b', 0)]
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from tidegate._core import TidegateError, __version__
    from tidegate.network import Network
    from tidegate.results import Result

INCLUDE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
"""The folder for `-I` under which `tidegate/p4/*.p4` are: headers, forwarding and ECN marking that systems share."""

MODULES = frozenset(
    ("claims", "control", "experiments", "measures", "p4", "plots", "scenarios", "topologies", "units")
)
"""Those of docs/api.md that are there after `import tidegate` alone."""

HOMES = {
    "Network": "tidegate.network",
    "Result": "tidegate.results",
    "TidegateError": "tidegate._core",
    "__version__": "tidegate._core",
}
"""What is in `tidegate` itself, and where it is from."""

__all__ = ["INCLUDE", "Network", "Result", "TidegateError", "__version__", "program"]


def program(name: str) -> Path:
    """The path of a P4 program that comes with Tidegate, by its file's name, or by system and name (`aqm/dualpi2`).

    >>> program("meter").name
    'meter.p4'
    >>> program("metre")
    Traceback (most recent call last):
    ...
    tidegate._core.TidegateError: there is no program 'metre'; did you mean 'meter'? known: aqm/dualpi2, ...
    """
    from pathlib import Path

    from tidegate._core import TidegateError
    from tidegate.suggest import did_you_mean

    systems = Path(__file__).parent / "systems"
    found = {
        f"{path.parent.name}/{path.stem}": path
        for path in sorted(systems.glob("*/*.p4"))
        # The others are included by these.
        if "V1Switch(" in path.read_text(encoding="utf-8")
    }
    wanted = str(name).removesuffix(".p4")
    matching = [full for full in found if wanted in (full, full.partition("/")[2])]
    if len(matching) == 1:
        return found[matching[0]]
    if matching:
        raise TidegateError(f"{name!r} could be any of {', '.join(matching)}; give one of these")
    near = did_you_mean(wanted, [*(full.partition("/")[2] for full in found), *found])
    raise TidegateError(f"there is no program {name!r}; {near}known: {', '.join(found)}")


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the command does not always use all of it, and Ctrl-C ends it with one line only from `__main__` on.
    import importlib

    if name in MODULES:
        return importlib.import_module(f"tidegate.{name}")
    if name in HOMES:
        found = globals()[name] = getattr(importlib.import_module(HOMES[name]), name)
        return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*__all__, *MODULES})
