"""Pages for Prometheus."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, start_http_server

from tidegate import addresses
from tidegate._core import TidegateError


@dataclass(frozen=True)
class Server:
    """Serves metrics, until `stop` is called."""

    address: str
    """`HOST:PORT`; port 0 was asked for any that is free, and is the one that was."""
    stop: Callable[[], None]


def serve_metrics(registry: CollectorRegistry, address: str) -> Server:
    """Serve what a registry collects at `HOST:PORT`, in threads of its own. Raises TidegateError."""
    host, port = addresses.parse(address)
    why_not = addresses.why_not(host, port)
    if why_not is not None:
        raise TidegateError(f"--metrics-addr {address}: {why_not}; give another address")
    server, thread = start_http_server(port, host, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Server(addresses.show(host, server.server_port), stop)
