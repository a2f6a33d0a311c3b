"""What is counted of a running switch, for Prometheus: the quantities of `tidegate.control.quantities`."""

from __future__ import annotations

from collections.abc import Iterable

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate.control import quantities
from tidegate.control.quantities import Family
from tidegate.switch.running import LiveSwitch
from tidegate.web import Server, serve_metrics


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


def serve(switch: LiveSwitch, address: str, insecure: bool = False) -> Server:
    """Serve the metrics at `HOST:PORT`, in a thread of its own; `insecure` permits addresses that other machines reach."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(switch))
    return serve_metrics(registry, address, insecure)
