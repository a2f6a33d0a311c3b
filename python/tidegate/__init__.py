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

import importlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate._core import TidegateError, __version__
from tidegate.suggest import did_you_mean

if TYPE_CHECKING:
    from tidegate.network import Network
    from tidegate.results import Result

INCLUDE = str(Path(__file__).parents[1])
"""The folder for `-I` under which `tidegate/p4/*.p4` are: headers, forwarding and ECN marking that systems share."""

MODULES = frozenset(
    ("claims", "control", "experiments", "measures", "p4", "plots", "scenarios", "topologies", "units")
)
"""Those of docs/api.md that are there after `import tidegate` alone."""

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
    # What these need takes a while to load, and the command does not always use it.
    if name == "Network":
        from tidegate.network import Network

        return Network
    if name == "Result":
        from tidegate.results import Result

        return Result
    if name in MODULES:
        return importlib.import_module(f"tidegate.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
