"""The tables of a run.

Every column that has a unit ends in it. `Result.flows` has one row for each flow, `Result.queues` one for each direction of
each link; `number` is the queue's index at a P4 switch's port. A queue is named by its link's ends, as `r -> s`; that of a second link
between two nodes is `r -> s (2)`. `Result.flow_samples` and `Result.queue_samples` have one row
per flow or queue and sample, if the network was recorded. In the samples the delay of a plain queue is what a packet that
came now would wait; of a switch's, how long its first packet has waited. `busy_s` is the time in which the wire has been sending since the
start of the run, `stalled_s` that in which it has been idle while packets waited for it, as the shapers of a router's classes hold
them back (null of a P4 switch's ports, and live of a Linux router's). `Result.pages` has one row for each request of a
page.

`goodput_mbps` of `Result.flows` is all bytes that came, over the time from the flow's start to its finish; without a finish, to its
`stop` or the end of the run. What was on its way at `stop` counts, and the time that it took does not: a UDP flow that has
filled a queue by then can have a goodput above the link's rate. Rates within a span are in `Result.flow_samples` (TCP).
`completion_ms` and `slowdown` are null of a flow that `stop` has ended before its size was there.

The live backend gives the same tables; values that a real kernel does not report are null. `Result.live` is live only: packet
lateness and the hosts' interface counters.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import polars as pl

from tidegate import _core, html
from tidegate.control import operations as op
from tidegate.files import replacing, why
from tidegate.network.links import queue_names
from tidegate.units import PS_PER_S

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from tidegate.network import Flow, Link, Network

INFINITE_SSTHRESH = 0x7FFF_FFFF
UNKNOWN = 2**64 - 1
TABLES = ("flows", "queues", "drops", "flow_samples", "queue_samples", "notes", "pages", "live")

Note = tuple[int, str, str, float]
"""Picoseconds, switch, quantity, value."""

Measurement = tuple[str, str, float]
"""Where, quantity, value."""

Schema = dict[str, type[pl.DataType]]

FLOWS: Schema = {
    "flow": pl.Int64,
    **dict.fromkeys(("label", "kind", "source", "target"), pl.String),
    **dict.fromkeys(("start_s", "finish_s"), pl.Float64),
    "size_bytes": pl.Int64,
    **dict.fromkeys(("completion_ms", "ideal_ms", "slowdown"), pl.Float64),
    "bytes_received": pl.Int64,
    "goodput_mbps": pl.Float64,
    **dict.fromkeys(
        (
            "retransmits",
            "timeouts",
            "fast_recoveries",
            "tail_loss_probes",
            "undos",
            "ece_received",
            "datagrams_sent",
            "datagrams_received",
        ),
        pl.Int64,
    ),
    **dict.fromkeys(("delay_ms_mean", "delay_ms_max"), pl.Float64),
}
FLOW_SAMPLES: Schema = {
    "time_s": pl.Float64,
    "flow": pl.Int64,
    **dict.fromkeys(("srtt_ms", "rto_ms", "pacing_rate_mbps", "delivery_rate_mbps"), pl.Float64),
    **dict.fromkeys(
        (
            "bytes_received",
            "bytes_acked",
            "cwnd_packets",
            "ssthresh_packets",
            "in_flight_packets",
            "retransmits",
            "timeouts",
            "delivered_ce",
        ),
        pl.Int64,
    ),
}
PAGES: Schema = {
    "page": pl.Int64,
    "label": pl.String,
    **dict.fromkeys(("object", "flow"), pl.Int64),
    **dict.fromkeys(("start_s", "finish_s", "response_ms"), pl.Float64),
}


@dataclass(frozen=True)
class Result:
    """Tables of a run."""

    seed: int
    """Seed of the run."""
    end_s: float
    """The end of the run."""
    interrupted: bool
    """Whether the run was stopped early."""
    flows: pl.DataFrame
    queues: pl.DataFrame
    drops: pl.DataFrame
    """Packets that P4 switches dropped, including their queues: switch, reason, packets."""
    flow_samples: pl.DataFrame
    queue_samples: pl.DataFrame
    notes: pl.DataFrame
    """Values that controllers recorded (`SwitchApi.note`): time_s, switch, quantity, value."""
    pages: pl.DataFrame
    live: pl.DataFrame
    """Measurements of the live backend: where (a host or empty), quantity, value."""
    warnings: tuple[str, ...]
    """Conditions of a live run that make its figures unreliable; why a simulation ran on fewer threads than it was to have; captures
    of an interrupted run that could not be written."""
    events: int
    """Events that the simulator handled."""
    hops: int
    """Packets carried over links."""
    malformed_options: int = 0
    """Packets that simulated hosts with agents dropped for an option, or a header between Ethernet and IP, of a wrong length."""

    def __repr__(self) -> str:
        return f"<Result: {self._summary()}>"

    def _summary(self) -> str:
        flows = self.flows.height
        goodput = self.flows["goodput_mbps"].sum()
        resent = self.flows["retransmits"].sum()
        said = f"{self.end_s:g} s, seed {self.seed}{', interrupted' if self.interrupted else ''}; "
        said += html.counted(flows, "flow")
        if flows:
            said += f", {goodput:.3g} Mbit/s in all, {html.counted(int(resent), 'retransmission')}"
        return said

    def _repr_html_(self) -> str:
        """For notebooks: the flows, and the names of the other tables that have rows."""
        columns = ("flow", "label", "start_s", "finish_s", "goodput_mbps", "retransmits", "timeouts")
        others = [name for name in TABLES if name != "flows" and not getattr(self, name).is_empty()]
        rows = [
            tuple(
                "" if value is None else f"{value:.4g}" if isinstance(value, float) else value
                for value in row
            )
            for row in self.flows.select(columns).head(html.MOST_ROWS + 1).rows()
        ]
        also = (
            f"<p>Tables with more: {', '.join(f'<code>{name}</code>' for name in others)}</p>"
            if others
            else ""
        )
        figure = (
            "" if self.flow_samples.is_empty() else html.picture(self.figure(), "goodput and queue delay")
        )
        return (
            html.paragraph(f"Result: {self._summary()}")
            + html.table(columns, rows, self.flows.height)
            + figure
            + also
        )

    def figure(self) -> Figure:
        """Goodput of each TCP flow over time, and the delay of the sampled queues, for a first look.

        >>> net = tidegate.Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="10 Mbit/s", delay="1 ms")
        >>> flow = net.tcp(a, b)
        >>> net.record("100 ms", queues=[link])
        >>> len(net.run("1 s").figure().axes)
        2
        """
        from tidegate.plots import first_look

        return first_look(self)

    def save(self, folder: str | PathLike[str]) -> None:
        """Write the tables as Parquet, each completely or not at all.

        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     tidegate.Network().run("1 s").save(folder)
        ...     pl.read_parquet(f"{folder}/flows.parquet").height
        0
        """
        folder = Path(folder)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise _core.TidegateError(f"{folder}: cannot be made: {why(error)}") from None
        for name in TABLES:
            table: pl.DataFrame = getattr(self, name)
            with replacing(folder / f"{name}.parquet") as file:
                table.write_parquet(file)

    def goodput_mbps(self, since_s: float = 0.0) -> pl.DataFrame:
        """Goodput of each TCP flow between its first and its last sample from `since_s` on.

        A flow is sampled from its start until the first sample after it has finished. So a flow that has finished before `since_s` has
        no row; one that starts or finishes later is measured between its own samples, without what it received before the first.
        With one sample it is NaN.

        >>> net = tidegate.Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> flow = net.tcp(a, b)
        >>> net.record("100 ms")
        >>> net.run("3 s").goodput_mbps(since_s=1.0)["goodput_mbps"].round(1).to_list()
        [95.6]
        """
        samples = self.flow_samples.filter(pl.col("time_s") >= since_s)
        spent = pl.col("time_s").last() - pl.col("time_s").first()
        received = pl.col("bytes_received").last() - pl.col("bytes_received").first()
        return (
            samples.group_by("flow", maintain_order=True)
            .agg((received * 8 / spent / 1e6).alias("goodput_mbps"))
            .sort("flow")
        )

    def page_times(self) -> pl.DataFrame:
        """For each page that started: start of the first request, responses so far, time from the first request to the last
        response.

        >>> net = tidegate.Network()
        >>> a, b = net.host("a"), net.host("b")
        >>> link = net.link(a, b, rate="100 Mbit/s", delay="5 ms")
        >>> page = net.request_response(a, b, response="50 kB", objects=3)
        >>> net.run("3 s").page_times().select("label", "answers").rows()
        [('page a -> b', 3)]
        """
        return (
            self.pages.group_by("page", "label", maintain_order=True)
            .agg(
                pl.col("start_s").min(),
                pl.col("finish_s").count().alias("answers"),
                ((pl.col("finish_s").max() - pl.col("start_s").min()) * 1e3).alias("page_ms"),
            )
            .sort("page")
        )

    @staticmethod
    def of_simulation(
        network: Network,
        core: _core.Simulation,
        ports: dict[int, tuple[int, int]],
        watched: list[Link],
        notes: list[Note],
        seed: int,
        interrupted: bool,
    ) -> Result:
        """The tables of a simulation that has ended."""
        flow_columns, _ = core.samples()
        return replace(
            Result.of_network(network, core, ports, watched, notes, seed, interrupted),
            flows=_flows(network, core, core.now()),
            flow_samples=_flow_samples(flow_columns),
            pages=_pages(network, core),
        )

    @staticmethod
    def of_network(
        network: Network,
        core: _core.Simulation,
        ports: dict[int, tuple[int, int]],
        watched: list[Link],
        notes: list[Note],
        seed: int,
        interrupted: bool,
    ) -> Result:
        """All tables but those of flows, from the network's present state."""
        end = core.now()
        events, hops = core.work()
        _, queue_columns = core.samples()
        return Result(
            seed=seed,
            end_s=end / PS_PER_S,
            interrupted=interrupted,
            flows=pl.DataFrame(schema=FLOWS),
            queues=_queues(network, core, ports, watched, end),
            drops=_drops(network, core),
            flow_samples=pl.DataFrame(schema=FLOW_SAMPLES),
            queue_samples=_queue_samples(network, ports, queue_columns),
            notes=notes_table(notes),
            pages=pl.DataFrame(schema=PAGES),
            live=live_table([]),
            warnings=(),
            events=events,
            hops=hops,
        )


def live_table(rows: list[Measurement]) -> pl.DataFrame:
    """`Result.live`."""
    return pl.DataFrame(
        rows, schema={"where": pl.String, "quantity": pl.String, "value": pl.Float64}, orient="row"
    )


def jain(rates: pl.Series) -> float:
    """Jain's fairness index: 1 if all are equal, 1/n if one has everything."""
    total, squares = float(rates.sum()), float((rates * rates).sum())
    return total * total / (len(rates) * squares) if squares > 0 else float("nan")


def has_all(flow: Flow, received: int | None) -> bool:
    """Whether all of a flow's size has come, where that is known. Of what `stop` has cut short there is no completion time."""
    size = getattr(flow.spec, "size", None)
    return size is None or received is None or received >= size


def _flows(network: Network, core: _core.Simulation, end: int) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    for flow in network.flows:
        came = core.outcome(flow.number)
        started, finished = came["started"], came["finished"]
        last = end if finished is None else finished
        stop = flow.spec.stop
        if finished is None and stop is not None:
            last = min(last, stop)
        whole = has_all(flow, came["bytes_received"])
        took = None if finished is None or started is None or not whole else finished - started
        ideal = came["ideal"]
        spent = None if started is None or last <= started else (last - started) / PS_PER_S
        received = came["datagrams_received"] if flow.kind == "udp" else None
        rows.append(
            {
                "flow": flow.number,
                "label": flow.label,
                "kind": flow.kind,
                "source": flow.source.name,
                "target": flow.target.name,
                "start_s": None if started is None else started / PS_PER_S,
                "finish_s": None if finished is None else finished / PS_PER_S,
                "size_bytes": getattr(flow.spec, "size", None),
                "completion_ms": None if took is None else took / 1e9,
                "ideal_ms": None if ideal is None else ideal / 1e9,
                "slowdown": None if took is None or not ideal else took / ideal,
                "bytes_received": came["bytes_received"],
                "goodput_mbps": None if spent is None else came["bytes_received"] * 8 / spent / 1e6,
                "retransmits": came["retransmits"],
                "timeouts": came["timeouts"],
                "fast_recoveries": came["fast_recoveries"],
                "tail_loss_probes": came["tail_loss_probes"],
                "undos": came["undos"],
                "ece_received": came["ece_received"],
                "datagrams_sent": came.get("datagrams_sent"),
                "datagrams_received": received,
                "delay_ms_mean": came["delay_sum"] / received / 1e9 if received else None,
                "delay_ms_max": came["delay_max"] / 1e9 if received else None,
            }
        )
    return pl.DataFrame(rows, schema=FLOWS)


def notes_table(notes: list[Note]) -> pl.DataFrame:
    """Values that controllers recorded: time_s, switch, quantity, value."""
    schema = {"time_s": pl.Float64, "switch": pl.String, "quantity": pl.String, "value": pl.Float64}
    rows = [(time / PS_PER_S, switch, quantity, value) for time, switch, quantity, value in notes]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _pages(network: Network, core: _core.Simulation) -> pl.DataFrame:
    rows = [
        (
            page.number,
            page.label,
            number,
            flow,
            asked / PS_PER_S,
            None if answered is None else answered / PS_PER_S,
            None if answered is None else (answered - asked) / 1e9,
        )
        for page in network.pages
        for number, (flow, asked, answered) in enumerate(core.exchanges(page.number))
    ]
    return pl.DataFrame(rows, schema=PAGES, orient="row")


def _drops(network: Network, core: _core.Simulation) -> pl.DataFrame:
    schema = {"switch": pl.String, "reason": pl.String, "packets": pl.Int64}
    switches = [node for node in network.nodes if node.kind == "switch"]
    rows = [
        (node.name, *drop)
        for node in switches
        for drop in _core.SwitchControl.of_switch(core, node.number).act(op.DropsRead())
    ]
    return pl.DataFrame(rows, schema=schema, orient="row")


def _queue_names(network: Network, ports: dict[int, tuple[int, int]]) -> dict[int, str]:
    """The names of the core's ports."""
    names = queue_names(network.links)
    return {
        port: name
        for link in network.links
        for port, name in zip(ports[link.number], names[link.number], strict=True)
    }


def _queues(
    network: Network, core: _core.Simulation, ports: dict[int, tuple[int, int]], watched: list[Link], end: int
) -> pl.DataFrame:
    rows: list[dict[str, Any]] = []
    names = _queue_names(network, ports)
    for link in network.links:
        for port in ports[link.number]:
            wire = core.queue(port)
            # A switch or a router with classes has its queues in front of the wire; what it says of them takes the place of the port's own.
            of_switch = core.port_queues(port)
            for number, queue in enumerate(of_switch or [{}]):
                s = {**wire, **queue}
                p50, p99 = (
                    core.wait_quantile(port, number, share) if link in watched else None
                    for share in (0.5, 0.99)
                )
                left = s["packets"] - s.get("waiting_packets", 0)
                rows.append(
                    {
                        "queue": names[port],
                        "number": number,
                        "packets": s["packets"],
                        "bytes": s["bytes"],
                        "dropped": s["dropped"],
                        "dropped_in_egress": s.get("dropped_in_egress", 0),
                        "too_large": s["too_large"],
                        "lost": s["lost"],
                        "marked": s["marked"],
                        "queue_delay_ms_mean": s["wait_sum"] / left / 1e9 if left else None,
                        "queue_delay_ms_p50": None if p50 is None else p50 / 1e9,
                        "queue_delay_ms_p99": None if p99 is None else p99 / 1e9,
                        "queue_delay_ms_max": s["wait_max"] / 1e9,
                        "utilisation": max(0.0, s["busy"] - s["backlog"]) / end if end else None,
                    }
                )
    floats = ("queue_delay_ms_mean", "queue_delay_ms_p50", "queue_delay_ms_p99", "utilisation")
    return pl.DataFrame(rows, schema_overrides=dict.fromkeys(floats, pl.Float64), infer_schema_length=None)


def _columns(parts: list[_core.Columns], names: list[str]) -> pl.DataFrame:
    """The recorders' data in order; all columns are unsigned integers."""
    if not parts:
        return pl.DataFrame(schema=dict.fromkeys(names, pl.UInt64))
    return pl.concat([pl.DataFrame(part) for part in parts]).select(names)


def _scaled(column: pl.Series, unit: float) -> npt.NDArray[np.float64]:
    """Convert to a larger unit by division, so that a whole second is exactly one: Polars would multiply by the inverse."""
    scaled: npt.NDArray[np.float64] = column.to_numpy() / unit
    return scaled


def _flow_samples(parts: list[_core.Columns]) -> pl.DataFrame:
    counts = ["bytes_received", "cwnd", "ssthresh", "in_flight", "retransmits", "timeouts", "delivered_ce"]
    packets = ("cwnd", "ssthresh", "in_flight")
    columns = _columns(parts, ["time", "flow", "srtt", "rto", "pacing_rate", *counts])
    frame = pl.DataFrame(
        {
            "time_s": _scaled(columns["time"], PS_PER_S),
            "flow": columns["flow"].cast(pl.Int64),
            "srtt_ms": _scaled(columns["srtt"], 1e9),
            "rto_ms": _scaled(columns["rto"], 1e9),
            "pacing_rate_mbps": _scaled(columns["pacing_rate"], 1e6),
            **{f"{n}_packets" if n in packets else n: columns[n].cast(pl.Int64) for n in counts},
        }
    )
    return flow_samples(frame)


def flow_samples(frame: pl.DataFrame) -> pl.DataFrame:
    """`Result.flow_samples`: the columns in their order, null those that are not known."""
    # No threshold is known before the first congestion.
    known = pl.when(pl.col("ssthresh_packets") < INFINITE_SSTHRESH).then(pl.col("ssthresh_packets"))
    missing = [pl.lit(None).alias(name) for name in FLOW_SAMPLES if name not in frame.columns]
    whole = frame.with_columns(known.alias("ssthresh_packets"), *missing)
    return whole.select(pl.col(name).cast(kind) for name, kind in FLOW_SAMPLES.items())


def _queue_samples(
    network: Network, ports: dict[int, tuple[int, int]], parts: list[_core.Columns]
) -> pl.DataFrame:
    names = _queue_names(network, ports)
    counts = ["packets", "bytes", "sent_bytes", "dropped", "marked"]
    columns = _columns(parts, ["time", "port", "queue", "delay", "busy", "stalled", *counts])
    stalled = pl.Series(_scaled(columns["stalled"], PS_PER_S))
    return pl.DataFrame(
        {
            "time_s": _scaled(columns["time"], PS_PER_S),
            "queue": pl.Series([names[port] for port in columns["port"]], dtype=pl.String),
            "number": columns["queue"].cast(pl.Int64),
            "queue_delay_ms": _scaled(columns["delay"], 1e9),
            "busy_s": _scaled(columns["busy"], PS_PER_S),
            "stalled_s": stalled.set(columns["stalled"] == UNKNOWN, None),
            **{name: columns[name].cast(pl.Int64) for name in counts},
        }
    )
