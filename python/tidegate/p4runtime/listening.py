"""Where a P4Runtime server listens, and its TLS."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import grpc

from tidegate import addresses
from tidegate._core import TidegateError
from tidegate.p4runtime import pem
from tidegate.p4runtime.limits import Limits

ADDRESS = "127.0.0.1:9559"
MOST_TRIES = 10
"""Ports that are tried if any will do."""


def options(limits: Limits) -> list[tuple[str, int]]:
    """Settings of gRPC."""
    return [
        # Two servers on one port would share its controllers.
        ("grpc.so_reuseport", 0),
        ("grpc.max_receive_message_length", limits.message_bytes),
        ("grpc.max_metadata_size", limits.header_bytes),
        ("grpc.absolute_max_metadata_size", limits.header_bytes),
        ("grpc.max_concurrent_streams", limits.calls_per_connection),
        ("grpc.max_allowed_incoming_connections", limits.connections),
        ("grpc.server_handshake_timeout_ms", 1000 * limits.handshake_s),
        ("grpc.max_connection_idle_ms", 1000 * limits.idle_s),
        # A controller that is gone without a word is noticed after about so long.
        ("grpc.keepalive_time_ms", 1000 * limits.keepalive_s),
        ("grpc.keepalive_timeout_ms", 500 * limits.keepalive_s),
        # Without it gRPC waits a minute for the answer where nothing else is to be sent.
        ("grpc.http2.ping_timeout_ms", 500 * limits.keepalive_s),
        ("grpc.keepalive_permit_without_calls", 1),
        # Who asks more often is cut off at the third time.
        ("grpc.http2.min_ping_interval_without_data_ms", limits.ping_ms),
        ("grpc.http2.max_ping_strikes", 2),
    ]


@dataclass(frozen=True)
class Tls:
    """Files in PEM."""

    certificate: Path
    key: Path
    clients: Path | None = None
    """Certificate of the authority that must have signed clients' certificates; `None`: clients need none."""

    def credentials(self) -> grpc.ServerCredentials:
        """For gRPC; raises if a file cannot be read."""
        pair = (pem.read(self.key, secret=True), pem.read(self.certificate))
        root = None if self.clients is None else pem.read(self.clients)
        return grpc.ssl_server_credentials([pair], root, require_client_auth=root is not None)


def listen(server: grpc.Server, address: str, tls: Tls | None, insecure: bool) -> str:
    """Have a server listen; where it does."""
    host, port = addresses.parse(address)
    where = addresses.show(host, port)
    if tls is None and not insecure and not addresses.is_loopback(host):
        raise TidegateError(
            f"cannot serve P4Runtime on {where}: without TLS, anyone who reaches this address controls the switch; "
            "give a certificate and a key, or say that this is meant: --grpc-cert and --grpc-key, or --insecure"
        )
    credentials = None if tls is None else tls.credentials()
    why_not = addresses.why_not(host, port)
    if why_not is not None:
        raise TidegateError(f"cannot serve P4Runtime on {where}: {why_not}; give another address")
    bound = 0
    for _ in range(MOST_TRIES if port == 0 else 1):
        with _ipv4_alone(host, port) as number:
            try:
                at = addresses.show(host, number)
                if credentials is None:
                    bound = server.add_insecure_port(at)
                else:
                    bound = server.add_secure_port(at, credentials)
            except RuntimeError:
                bound = 0
        if bound:
            return addresses.show(host, bound)
    raise TidegateError(
        f"cannot serve P4Runtime on {where}: "
        + (
            "gRPC cannot listen there"
            if tls is None
            else f"{tls.certificate} and {tls.key} do not belong together"
        )
    )


@contextmanager
def _ipv4_alone(host: str, port: int) -> Iterator[int]:
    """The port to listen at; of 0.0.0.0 with nobody at IPv6 meanwhile.

    gRPC takes 0.0.0.0 for all addresses, IPv6 included, unless somebody has the port there.
    """
    if host != "0.0.0.0":
        yield port
        return
    try:
        other = socket.socket(socket.AF_INET6, socket.SOCK_STREAM)
    except OSError:
        # There is no IPv6.
        yield port
        return
    with other:
        other.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        try:
            other.bind(("::", port))
        except OSError:
            # Somebody has it already, or no interface has IPv6.
            yield port
            return
        yield other.getsockname()[1]
