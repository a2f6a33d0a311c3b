"""Routers that cannot be programmed: what the controller asks of them, and what it does not need to know.

| module | router |
|---|---|
| `simulated` | a plain router of a network, in the simulator or in the lab |
| `tidegate.hosts.linux_router` | HTB at an interface of Linux, and a classifier in BPF |
| `junos` | class of service and a firewall filter of a Junos router, over NETCONF |
"""

from __future__ import annotations

from typing import Protocol

from tidegate.hosts.port_plan import Plan, QueuePlan

__all__ = ["Plan", "QueuePlan", "Router"]


class Router(Protocol):
    """A port of a router."""

    @property
    def most_queues(self) -> int:
        """Queues that the port can have."""
        ...

    def apply(self, plan: Plan) -> None:
        """Make the port be as planned. On an error it is as it was."""
        ...
