"""What `tidegate monitor` serves of interfaces to Prometheus."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate.web import Server, serve_metrics

COUNTERS = {
    "packets": "Packets of a flow",
    "bytes": "Bytes of a flow, from the IP header on",
    "retransmissions": "Packets of a TCP flow that were sent again, or late",
    "rtt_samples": "Round-trip times of a flow",
}
OF_TWO_TAPS = {
    "queue_delay_samples": "Packets of a flow that were seen at both taps",
    "lost_at_router": "Packets of a flow that were seen at the first tap and not at the second",
}
TIMES = ("min", "p50", "p95", "p99")
LABELS = ("protocol", "src", "src_port", "dst", "dst_port")


class Metrics(Collector):
    """The last look at interfaces for Prometheus: totals, and the flows that are shown."""

    def __init__(self) -> None:
        self.answer: dict[str, Any] | None = None
        self.flows: list[dict[str, Any]] = []

    def collect(self) -> Iterator[Metric]:
        """All of them."""
        answer = self.answer
        if answer is None:
            return
        for name, help_text in (
            ("packets", "Packets seen"),
            ("dropped_packets", "Packets that came faster than they were taken"),
        ):
            metric = CounterMetricFamily(f"tidegate_monitor_{name}", help_text)
            metric.add_metric([], answer[name])
            yield metric
        flows = GaugeMetricFamily(
            "tidegate_monitor_flows", "Flows that are watched, each direction for itself"
        )
        flows.add_metric([], answer["flow_count"])
        yield flows
        taps = "packets_at_both" in answer
        for name, help_text in (COUNTERS | (OF_TWO_TAPS if taps else {})).items():
            metric = CounterMetricFamily(f"tidegate_monitor_flow_{name}", help_text, labels=LABELS)
            for flow in self.flows:
                if flow.get(name) is not None:
                    metric.add_metric([str(flow[label]) for label in LABELS], flow[name])
            yield metric
        yield self._quantiles("rtt_ms", "Round-trip time of a flow in ms", TIMES)
        if taps:
            help_text = "Time of a flow's packets from the first tap to the second in ms"
            yield self._quantiles("queue_delay_ms", help_text, (*TIMES, "max"))

    def _quantiles(self, name: str, help_text: str, quantiles: tuple[str, ...]) -> Metric:
        times = GaugeMetricFamily(f"tidegate_monitor_flow_{name}", help_text, labels=(*LABELS, "quantile"))
        for flow in self.flows:
            for quantile in quantiles:
                if flow.get(f"{name}_{quantile}") is not None:
                    labels = [str(flow[label]) for label in LABELS]
                    times.add_metric([*labels, quantile], flow[f"{name}_{quantile}"])
        return times


def serve(metrics: Metrics, address: str, insecure: bool) -> Server:
    """Serve them at an address."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(metrics)
    return serve_metrics(registry, address, insecure)
