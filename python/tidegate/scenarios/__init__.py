"""Scenarios (access link, WAN, data centre, satellite, Wi-Fi-like) and the schemes that can be put into them.

>>> from tidegate import scenarios
>>> net = scenarios.network(scenarios.SCENARIOS["wan"], scenarios.SCHEMES["codel"])
>>> net
<Network: 12 hosts, 2 routers, 13 links, 6 flows>

`tidegate run reference.scenarios` runs schemes on scenarios, `tidegate compare fifo codel aqm` compares them.
`tidegate compare fifo ./my.py:scheme` has one of yours beside them, a `Scheme` of that name in that file.
"""

from __future__ import annotations

from tidegate.scenarios.build import measure, network
from tidegate.scenarios.scenario import SCENARIOS, FlowSet, Scenario, on_trace
from tidegate.scenarios.schemes import SCHEMES, Place, Scheme
from tidegate.scenarios.traces import Trace, follow, parse, read

__all__ = [
    "SCENARIOS",
    "SCHEMES",
    "FlowSet",
    "Place",
    "Scenario",
    "Scheme",
    "Trace",
    "follow",
    "measure",
    "network",
    "on_trace",
    "parse",
    "read",
]
