"""Features of this machine and its kernel, detected at run time."""

from __future__ import annotations

import shutil
import socket
import sys
import time
from collections.abc import Iterable
from pathlib import Path

from tidegate._core import TidegateError

CLOCK_MONOTONIC_COARSE = 6
NET_ADMIN, NET_RAW, SYS_ADMIN = 12, 13, 21
RUN_ELSEWHERE = "--backend sim (or net.run without a backend) needs none of this"


def capabilities() -> int:
    """Those that this process has, as bits."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:
        return 0
    line = next((line for line in status.splitlines() if line.startswith("CapEff:")), "CapEff: 0")
    return int(line.split()[1], 16)


def may_make_namespaces() -> bool:
    """Whether this process may make network namespaces and what is in them."""
    held = capabilities()
    return all(held >> capability & 1 for capability in (NET_ADMIN, NET_RAW, SYS_ADMIN))


def demand_privilege(what: str = "the live backend", elsewhere: str = RUN_ELSEWHERE) -> None:
    """Raise `TidegateError` unless this process may create a lab; `elsewhere` is what works without, if anything does."""
    rest = f"; {elsewhere}" if elsewhere else ""
    if sys.platform != "linux":
        raise TidegateError(f"{what} runs on Linux only, and this is {sys.platform}{rest}")
    if not may_make_namespaces():
        raise TidegateError(
            f"{what} makes network namespaces, for which it needs root "
            f"(CAP_SYS_ADMIN, CAP_NET_ADMIN and CAP_NET_RAW): run it with sudo{rest}"
        )


def missing_program(name: str) -> str | None:
    """The message for a program that is not installed."""
    if shutil.which(name) is not None:
        return None
    return f"{name} is not installed; on Debian and Ubuntu: apt install {name}"


def ticks_per_second() -> int:
    """CONFIG_HZ, the rate of the coarse clocks."""
    return round(1 / time.clock_getres(CLOCK_MONOTONIC_COARSE))


def congestion_controls(asked: Iterable[str]) -> set[str]:
    """Those of these that the kernel has; one in a module is loaded by being asked for."""
    there = set()
    for name in asked:
        with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as one:
            try:
                one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, name.encode())
            except OSError:
                continue
            there.add(name)
    return there


def known_congestion_controls() -> str:
    """Those that the kernel has at hand, for a message."""
    path = Path("/proc/sys/net/ipv4/tcp_available_congestion_control")
    return ", ".join(sorted(path.read_text().split()))
