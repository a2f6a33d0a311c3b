"""Addresses that servers listen at, as people write them."""

from __future__ import annotations

import ipaddress
import socket

from tidegate import units
from tidegate._core import TidegateError

LOOPBACK = "127.0.0.1"


def parse(text: str) -> tuple[str, int]:
    """Host and port of `HOST:PORT` or `[IPv6]:PORT`; the host is loopback if there is none. Raises `TidegateError`."""
    host, colon, digits = text.rpartition(":")
    port = units.decimal(digits)
    bare = host.removeprefix("[").removesuffix("]")
    bracketed = host == f"[{bare}]"
    if (
        not colon
        or port is None
        or port > 65_535
        or (":" in bare) != bracketed
        or any(letter in "[]/@" or letter.isspace() for letter in bare)
    ):
        raise TidegateError(f"{text!r} is not an address; write HOST:PORT, as 127.0.0.1:9559")
    return bare or LOOPBACK, port


def show(host: str, port: int) -> str:
    """`127.0.0.1:9100`, `[::1]:9100`."""
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches a host's address."""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def demand_local_metrics(address: str, insecure: bool) -> None:
    """Refuse `--metrics-addr` at an address that other machines reach, unless that is meant: pages have no authentication."""
    host, _ = parse(address)
    if not insecure and not is_loopback(host):
        raise TidegateError(
            f"--metrics-addr {address}: anyone who reaches this address reads the metrics; "
            "give a loopback address, as 127.0.0.1:9100, or --insecure if this is meant"
        )


def demand_free_metrics(address: str) -> None:
    """Refuse `--metrics-addr` at an address that this machine does not have, or that is taken."""
    problem = why_not(*parse(address))
    if problem is not None:
        raise TidegateError(f"--metrics-addr {address}: {problem}; give another address")


def why_not(host: str, port: int) -> str | None:
    """The system's error if the address cannot be bound, else `None`."""
    try:
        for family, kind, protocol, _, where in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM):
            with socket.socket(family, kind, protocol) as probe:
                probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                probe.bind(where)
                probe.listen()
    except OSError as error:
        return error.strerror
    except UnicodeError:
        return "no such host name can be"
    return None
