"""What is counted of a running switch, for Prometheus: the quantities of `tidegate.control.quantities`."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from prometheus_client import CollectorRegistry, start_http_server
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate import addresses
from tidegate._core import TidegateError
from tidegate.control import quantities
from tidegate.control.quantities import Family
from tidegate.switch.running import LiveSwitch


def families(switch: LiveSwitch) -> list[Family]:
    """All quantities, as they are now."""
    return quantities.families(switch.subject)


class _Collector(Collector):
    def __init__(self, switch: LiveSwitch) -> None:
        self._switch = switch

    def collect(self) -> Iterable[Metric]:
        for family in families(self._switch):
            kind = CounterMetricFamily if family.kind == "counter" else GaugeMetricFamily
            metric = kind(f"tidegate_{family.name}", family.help, labels=family.labels)
            for labels, value in family.rows:
                metric.add_metric(labels, value)
            yield metric


@dataclass(frozen=True)
class Server:
    """Serves metrics, until `stop` is called."""

    address: str
    """`HOST:PORT`; port 0 was asked for any that is free, and is the one that was."""
    stop: Callable[[], None]


def serve(switch: LiveSwitch, address: str) -> Server:
    """Serve the metrics at `HOST:PORT`, in threads of its own."""
    host, port = addresses.parse(address)
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(switch))
    why_not = addresses.why_not(host, port)
    if why_not is not None:
        raise TidegateError(f"--metrics-addr {address}: {why_not}; give another address")
    server, thread = start_http_server(port, host, registry)

    def stop() -> None:
        server.shutdown()
        server.server_close()
        thread.join()

    return Server(addresses.show(host, server.server_port), stop)
