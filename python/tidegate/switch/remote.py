"""P4Runtime for a switch that runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from tidegate import addresses
from tidegate._core import TidegateError
from tidegate.p4 import Program
from tidegate.p4runtime import Limits, Server, Tls
from tidegate.p4runtime.values import PORTS
from tidegate.switch.running import LiveSwitch

TIMEOUTS_S = 0.02
"""How often timeouts of entries and of digests are looked at. News of packets and digests do not wait for it."""


def tls(certificate: Path | None, key: Path | None, clients: Path | None) -> Tls | None:
    """What `--grpc-cert`, `--grpc-key` and `--grpc-ca` mean together."""
    if certificate is None and key is None and clients is None:
        return None
    if certificate is None or key is None:
        raise TidegateError("TLS needs --grpc-cert and --grpc-key; --grpc-ca asks clients for theirs as well")
    return Tls(certificate, key, clients)


def limits(given: Sequence[str]) -> Limits:
    """What `--grpc-limit` means."""
    try:
        return Limits.parse(given)
    except TidegateError as error:
        raise TidegateError(f"--grpc-limit: {error}") from None


def warning(address: str, secret: Tls | None) -> str | None:
    """What an operator should know of who may connect."""
    if addresses.is_loopback(addresses.parse(address)[0]) or (
        secret is not None and secret.clients is not None
    ):
        return None
    which = "no TLS" if secret is None else "no certificates of clients are asked for"
    return f"{which}: anyone who reaches this address controls the switch; see --grpc-{'cert' if secret is None else 'ca'}"


@contextmanager
def served(
    live: LiveSwitch,
    address: str,
    device_id: int,
    secret: Tls | None,
    limits: Limits | None = None,
    insecure: bool = False,
    program_limits: Mapping[str, int] | None = None,
) -> Iterator[Server]:
    """A server in front of a switch. Names of interfaces are names of ports, for programs with a type of ports that are names."""
    names = {port.interface: port.number for port in live.ports}

    def replaced(program: Program) -> None:
        # What is counted goes by the program's names.
        live.program = program

    server = Server(
        live.api,
        live.program,
        address=address,
        device_id=device_id,
        tls=secret,
        translations={PORTS: names},
        poll_every=TIMEOUTS_S,
        on_program=replaced,
        messages=live.messages,
        limits=limits,
        program_limits=program_limits,
        insecure=insecure,
    )
    live.core.watch(live.node)
    live.server = lambda: server.statistics
    with server:
        yield server
