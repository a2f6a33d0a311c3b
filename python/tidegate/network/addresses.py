"""The address plan: by a host's number its addresses, by a flow's number its ports, as the simulator gives them.

The same plan is in `crates/network`; `tests/test_captures.py` compares them.
"""

from __future__ import annotations

_SPAN = 16_000
_SOURCES = 10_000
_TCP_RECEIVERS = _SOURCES + _SPAN
_UDP_RECEIVERS = _TCP_RECEIVERS + _SPAN


def ipv4(host: int) -> str:
    """IPv4 address of the host of that number, counted from 0."""
    number = host + 1
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def mac(host: int) -> str:
    """Ethernet address of the host of that number, counted from 0."""
    number = host + 1
    return "02:00:" + ":".join(f"{number >> shift & 255:02x}" for shift in (24, 16, 8, 0))


def ports(number: int, udp: bool) -> tuple[int, int]:
    """Source's and receiver's port of a flow. TCP and UDP flows are counted apart, each from 0."""
    high, low = divmod(number, _SPAN)
    return _SOURCES + low, (_UDP_RECEIVERS if udp else _TCP_RECEIVERS) + (low + high) % _SPAN
