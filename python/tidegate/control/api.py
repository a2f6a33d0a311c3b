"""The control plane's names in one place; they are defined in `objects`, `operations` and `switch`."""

from tidegate.control.objects import (
    Digest,
    Match,
    MatchKind,
    PacketIn,
    Port,
    Queue,
    QueueState,
    Scheduler,
    Shaper,
    TableEntry,
    Value,
    Words,
    port_spec,
)
from tidegate.control.switch import PipelineApi, SwitchApi

__all__ = [
    "Digest",
    "Match",
    "MatchKind",
    "PacketIn",
    "PipelineApi",
    "Port",
    "Queue",
    "QueueState",
    "Scheduler",
    "Shaper",
    "SwitchApi",
    "TableEntry",
    "Value",
    "Words",
    "port_spec",
]
