"""The control plane: what a controller is, and what it sees of a switch."""

from tidegate.control.api import (
    Digest,
    Match,
    MatchKind,
    PacketIn,
    PipelineApi,
    Port,
    Queue,
    QueueState,
    Shaper,
    SwitchApi,
    TableEntry,
)
from tidegate.control.controller import Controller

__all__ = [
    "Controller",
    "Digest",
    "Match",
    "MatchKind",
    "PacketIn",
    "PipelineApi",
    "Port",
    "Queue",
    "QueueState",
    "Shaper",
    "SwitchApi",
    "TableEntry",
]
