"""Where a P4Runtime server listens, and its TLS."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import grpc

from tidegate import addresses
from tidegate._core import TidegateError

ADDRESS = "127.0.0.1:9559"
MOST_MESSAGE = 32 << 20
# A controller that is gone without a word is noticed after about so long.
KEEPALIVE_MS = 10_000

OPTIONS = [
    # Two servers on one port would share its controllers.
    ("grpc.so_reuseport", 0),
    ("grpc.max_receive_message_length", MOST_MESSAGE),
    ("grpc.keepalive_time_ms", KEEPALIVE_MS),
    ("grpc.keepalive_timeout_ms", KEEPALIVE_MS // 2),
    ("grpc.keepalive_permit_without_calls", 1),
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

        def read(path: Path) -> bytes:
            try:
                return path.read_bytes()
            except OSError as error:
                raise TidegateError(f"{path}: cannot be read: {error.strerror}") from None

        pair = (read(self.key), read(self.certificate))
        root = None if self.clients is None else read(self.clients)
        return grpc.ssl_server_credentials([pair], root, require_client_auth=root is not None)


def listen(server: grpc.Server, address: str, tls: Tls | None) -> str:
    """Have a server listen; where it does."""
    host, port = addresses.parse(address)
    where = addresses.show(host, port)
    credentials = None if tls is None else tls.credentials()
    why_not = addresses.why_not(host, port)
    if why_not is not None:
        raise TidegateError(f"cannot serve P4Runtime on {where}: {why_not}; give another address")
    try:
        if credentials is None:
            bound = server.add_insecure_port(where)
        else:
            bound = server.add_secure_port(where, credentials)
    except RuntimeError:
        bound = 0
    if not bound:
        raise TidegateError(
            f"cannot serve P4Runtime on {where}: "
            + (
                "gRPC cannot listen there"
                if tls is None
                else f"{tls.certificate} and {tls.key} do not belong together"
            )
        )
    return addresses.show(host, bound)
