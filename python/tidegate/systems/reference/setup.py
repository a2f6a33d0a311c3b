"""Puts the policer into a network in one call."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from tidegate.network import Network, Switch
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4


@cache
def program() -> Program:
    """The policer's data plane."""
    return compile_p4(Path(__file__).with_name("policer.p4"))


def police(network: Network, name: str, rate_mbps: int, bucket_kib: int = 128) -> Switch:
    """A switch that holds what comes in by its first port, and leaves by its second, to a rate of Ethernet frames.

    It is a wire between ports 0 and 1, 2 and 3 and so on; the other ports are not held to a rate.
    """
    bits = bucket_kib * 1024 * 8
    registers = {"rate": rate_mbps, "burst": bits, "tokens": bits}
    commands = [f"register_write PolicerIngress.{name} 0 {value}" for name, value in registers.items()]
    return network.switch(name, program(), commands=commands)
