"""`tidegate monitor`: flows of captures, with round-trip times, throughput and retransmissions."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.table import Table

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.options import Json

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure

MOST_FLOWS = 1_000_000
SHOWN = 12
"""Flows of the figure."""


class RttRule(StrEnum):
    """Which round-trip times are taken; see docs/monitor.md."""

    EXACT = "exact"
    TSHARK = "tshark"
    TCPTRACE = "tcptrace"
    TIMESTAMPS = "timestamps"


class Sort(StrEnum):
    """By what flows are sorted."""

    BYTES = "bytes"
    PACKETS = "packets"
    THROUGHPUT = "throughput_mbps"
    RETRANSMISSIONS = "retransmissions"
    RTT = "rtt_ms_p50"
    SAMPLES = "rtt_samples"
    FIRST = "first_s"


def watch(
    files: Sequence[str | Path],
    *,
    rtt_rule: str = "exact",
    max_flows: int = MOST_FLOWS,
    samples: str | Path | None = None,
    partial: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Watch captures (pcap or pcapng; gzip, zstd; `-` is standard input) together, in the order of their packets' times.

    Gives what `tidegate monitor --json` prints: `flows` has a dict for each direction of each TCP and UDP flow. `samples` is a CSV
    file that gets each round-trip time: `time_s`, ends and ports of the flow whose packet was acknowledged, `ack`, `rtt_ms`. With
    `partial`, an interrupt ends it with what was read until then. Raises TidegateError.
    """
    answer: dict[str, Any] = json.loads(
        _core.monitor([str(file) for file in files], rtt_rule, max_flows, samples, partial, progress)
    )
    return answer


def frame(answer: dict[str, Any]) -> pl.DataFrame:
    """The flows of an answer as a table."""
    import polars as pl

    return pl.DataFrame(answer["flows"], infer_schema_length=None)


def end(flow: dict[str, Any], which: str) -> str:
    """An end of a flow, as people write it."""
    address = flow[which]
    return f"[{address}]:{flow[f'{which}_port']}" if ":" in address else f"{address}:{flow[f'{which}_port']}"


def draw(flows: list[dict[str, Any]]) -> Figure:
    """Round-trip times of flows: least, p50, p95 and p99."""
    from matplotlib.figure import Figure

    with_rtt = [flow for flow in flows if flow["rtt_samples"]][:SHOWN]
    figure = Figure(figsize=(8, 1.2 + 0.35 * max(len(with_rtt), 1)), layout="constrained")
    panel = figure.subplots()
    for row, flow in enumerate(with_rtt):
        values = [flow[f"rtt_ms_{name}"] for name in ("min", "p50", "p95", "p99")]
        panel.plot([values[0], values[3]], [row, row], color="0.6", linewidth=1)
        for value, marker, label in zip(values, "|osD", ("least", "p50", "p95", "p99"), strict=True):
            panel.plot(value, row, marker, color="tab:blue", markersize=6, label=label if row == 0 else None)
    panel.set_yticks(
        range(len(with_rtt)),
        [f"{flow['protocol']} {end(flow, 'src')} > {end(flow, 'dst')}" for flow in with_rtt],
    )
    panel.invert_yaxis()
    panel.set(xlabel="round-trip time (ms)", xscale="log" if with_rtt else "linear")
    panel.grid(alpha=0.3, axis="x", which="both")
    if with_rtt:
        panel.legend(fontsize="small")
    return figure


def chosen(answer: dict[str, Any], sort: str, match: str | None) -> list[dict[str, Any]]:
    """Flows with a text in one of their ends, sorted; the largest first (of `first_s`, the least)."""
    flows = [
        flow
        for flow in answer["flows"]
        if match is None or match in f"{flow['protocol']} {end(flow, 'src')} {end(flow, 'dst')}"
    ]
    largest_first = sort != Sort.FIRST
    return sorted(
        flows,
        key=lambda flow: (flow[sort] is not None, flow[sort] if flow[sort] is not None else 0),
        reverse=largest_first,
    )


def _number(value: float | None, digits: int) -> str:
    return "" if value is None else f"{value:,.{digits}f}"


def _table(flows: list[dict[str, Any]]) -> Table:
    table = Table(box=None, pad_edge=False)
    columns = (
        "",
        "from",
        "to",
        "packets",
        "bytes",
        "Mbit/s",
        "resent",
        "samples",
        "RTT min",
        "p50",
        "p95",
        "p99 ms",
    )
    for name in columns:
        table.add_column(name, justify="left" if name in ("", "from", "to") else "right", no_wrap=True)
    for flow in flows:
        table.add_row(
            flow["protocol"],
            end(flow, "src"),
            end(flow, "dst"),
            f"{flow['packets']:,}",
            f"{flow['bytes']:,}",
            _number(flow["throughput_mbps"], 2),
            _number(flow["retransmissions"], 0),
            f"{flow['rtt_samples']:,}",
            *(_number(flow[f"rtt_ms_{name}"], 3) for name in ("min", "p50", "p95", "p99")),
        )
    return table


def _written(path: Path, suffixes: tuple[str, ...], what: str) -> Path:
    if path.suffix not in suffixes:
        raise TidegateError(f"{path}: a {what} has a name with {' or '.join(suffixes)}; give such a name")
    if not path.parent.is_dir():
        raise TidegateError(f"{path}: there is no folder {path.parent}; make it first")
    return path


def monitor(
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="Captures (pcap, pcapng; also gzip or zstd), watched together; - is standard input.",
            show_default=False,
        ),
    ],
    rtt_rule: Annotated[RttRule, typer.Option(help="Which round-trip times are taken.")] = RttRule.EXACT,
    sort: Annotated[Sort, typer.Option(help="What flows are sorted by.")] = Sort.BYTES,
    top: Annotated[int, typer.Option(metavar="N", min=1, help="Show so many flows.")] = 20,
    match: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="Only flows with this in protocol, address or port, such as 10.0.0.1:443."
        ),
    ] = None,
    max_flows: Annotated[
        int, typer.Option(metavar="N", min=1, help="Watch so many connections.")
    ] = MOST_FLOWS,
    samples: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write each round-trip time to a file.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write the flows to a file.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(metavar="FILE.png", help="Draw the round-trip times of the flows that are shown."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch captures: round-trip times, throughput and retransmissions of each flow."""
    for path, suffixes, what in (
        (samples, (".csv",), "file of samples"),
        (parquet, (".parquet",), "Parquet file"),
        (figure, (".png", ".svg", ".pdf"), "figure"),
    ):
        if path is not None:
            _written(path, suffixes, what)
    if files.count("-") > 1:
        raise TidegateError("standard input (-) is given twice; give it once")
    show = sys.stderr.isatty()

    def progress(packets: int) -> None:
        sys.stderr.write(f"\r{packets:,} packets ")
        sys.stderr.flush()

    answer = watch(
        files,
        rtt_rule=rtt_rule.value,
        max_flows=max_flows,
        samples=samples,
        partial="-" in files,
        progress=progress if show else None,
    )
    if show:
        sys.stderr.write("\r\x1b[K")
    flows = chosen(answer, sort.value, match)
    answer["flows"] = flows
    if parquet is not None:
        frame(answer).write_parquet(parquet)
    if figure is not None:
        draw(flows).savefig(figure, dpi=150)
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    if as_json:
        print(json.dumps(answer))
        return
    # Where nobody looks, lines may be as long as they are.
    width = None if sys.stdout.isatty() else 200
    Console(highlight=False, markup=False, width=width).print(_table(flows[:top]))
    rest = f", of which the first {top} are shown" if len(flows) > top else ""
    print(
        f"{answer['packets']:,} packets in {answer['duration_s']:.3f} s, {len(flows):,} flows{rest}; "
        f"RTT rule {answer['rtt_rule']}"
    )
