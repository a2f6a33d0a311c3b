"""The tables of a run's flows, from what agents report."""

from __future__ import annotations

from array import array
from collections.abc import Iterable

import numpy as np
import polars as pl

from tidegate.lab.messages import RECEIVER_COLUMNS, SENDER_COLUMNS, UNKNOWN, FlowReport, Report
from tidegate.network import Flow, Network
from tidegate.results import FLOWS, flow_samples, has_all
from tidegate.units import PS_PER_S

PS_PER_NS = 1000


def flow_tables(network: Network, reports: Iterable[Report], end: int) -> tuple[pl.DataFrame, pl.DataFrame]:
    """`Result.flows` and `Result.flow_samples` of a run that ended at `end` picoseconds."""
    every = list(reports)
    sent = {one.number: one for report in every for one in report.sent}
    received = {one.number: one for report in every for one in report.received}
    rows = [_row(flow, sent[flow.number], received[flow.number], end) for flow in network.flows]
    return pl.DataFrame(rows, schema=FLOWS), _samples(every)


def _row(flow: Flow, sent: FlowReport, received: FlowReport, end: int) -> dict[str, object]:
    """A row of `FLOWS`; the kernel does not report the omitted columns."""
    stop, started, finished = flow.spec.stop, sent.started, received.finished
    last = end / PS_PER_NS if finished is None else float(finished)
    if finished is None and stop is not None:
        last = min(last, stop / PS_PER_NS)
    spent = None if started is None or last <= started else (last - started) / 1e9
    whole = has_all(flow, received.bytes)
    took = None if started is None or finished is None or not whole else (finished - started) / 1e6
    udp = flow.kind == "udp"
    # Nothing was sent again of what never began.
    counted = not udp and started is not None
    mean = received.delay_sum / received.datagrams if received.delay_sum and received.datagrams else None
    row: dict[str, object] = {
        "flow": flow.number,
        "label": flow.label,
        "kind": flow.kind,
        "source": flow.source.name,
        "target": flow.target.name,
        "start_s": None if started is None else started / 1e9,
        "finish_s": None if finished is None else finished / 1e9,
        "size_bytes": getattr(flow.spec, "size", None),
        "completion_ms": took,
        "bytes_received": received.bytes,
        "goodput_mbps": None if spent is None or received.bytes is None else received.bytes * 8e-6 / spent,
        "retransmits": sent.retransmits if counted else 0,
        "timeouts": sent.timeouts if counted else 0,
        "datagrams_sent": sent.datagrams if udp else None,
        "datagrams_received": received.datagrams if udp else None,
        "delay_ms_mean": None if mean is None else mean / 1e6,
        "delay_ms_max": None if received.delay_max is None else received.delay_max / 1e6,
    }
    return dict.fromkeys(FLOWS) | row


def _frame(parts: Iterable[array[int]], columns: tuple[str, ...]) -> pl.DataFrame:
    rows = np.concatenate([np.frombuffer(part, np.uint64) for part in parts] or [np.empty(0, np.uint64)])
    table = rows.reshape(-1, len(columns))
    return pl.DataFrame({name: table[:, number] for number, name in enumerate(columns)})


def _samples(reports: list[Report]) -> pl.DataFrame:
    """A row for each sample of a flow's sender, with the receiver's sample of the same tick."""
    sent = _frame((one.sender_samples for one in reports), SENDER_COLUMNS).sort("tick", "flow")
    came = _frame((one.receiver_samples for one in reports), RECEIVER_COLUMNS).sort("tick", "flow")
    both = sent.join(came, on=["tick", "flow"], how="left", suffix="_there", maintain_order="left")
    # A receiver whose sample was late keeps its previous value. Rates depend on the time at which bytes were counted.
    received = pl.col("bytes_received").forward_fill().over("flow").fill_null(0)
    when = pl.coalesce("time_there", "time").cum_max().over("flow")
    known = pl.when(pl.col("timeouts") != UNKNOWN).then(pl.col("timeouts"))
    return flow_samples(
        both.select(
            (when * PS_PER_NS / PS_PER_S).alias("time_s"),
            "flow",
            (pl.col("srtt_us") / 1e3).alias("srtt_ms"),
            (pl.col("rto_us") / 1e3).alias("rto_ms"),
            _rate("pacing_rate"),
            _rate("delivery_rate"),
            received.alias("bytes_received"),
            "bytes_acked",
            pl.col("cwnd").alias("cwnd_packets"),
            pl.col("ssthresh").alias("ssthresh_packets"),
            pl.col("in_flight").alias("in_flight_packets"),
            "retransmits",
            known.alias("timeouts"),
            "delivered_ce",
        )
    )


def _rate(name: str) -> pl.Expr:
    """From bytes/s; all ones stand for no limit."""
    return pl.when(pl.col(name) != UNKNOWN).then(pl.col(name) * 8 / 1e6).alias(f"{name}_mbps")
