"""What the service counts, for Prometheus."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate.systems.pacing.service.pacer import COUNTERS_HELP, STATES
from tidegate.web import Server, serve_metrics


class _Collector(Collector):
    def __init__(self, status: Callable[[], dict[str, Any]]) -> None:
        self._status = status

    def collect(self) -> Iterable[Metric]:
        said = self._status()
        states = Counter(flow["state"] for flow in said["flows"])
        flows = GaugeMetricFamily("tidegate_agent_flows", "flows that are to be paced", labels=["state"])
        for state in STATES.values():
            flows.add_metric([state], states[state])
        yield flows
        rate = sum(flow["payload_mbps"] or 0 for flow in said["flows"]) * 1e6
        yield GaugeMetricFamily(
            "tidegate_agent_rate_bps", "sum of the limits of paced flows, in bit/s of payload", value=rate
        )
        for name, help_text in COUNTERS_HELP.items():
            yield CounterMetricFamily(f"tidegate_agent_{name}", help_text, value=said["counts"][name])


def serve(address: str, status: Callable[[], dict[str, Any]], insecure: bool = False) -> Server:
    """Serve the metrics at `HOST:PORT`, in a thread of its own; `insecure` permits addresses that other machines reach."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(status))
    return serve_metrics(registry, address, insecure)
