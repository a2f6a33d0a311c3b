"""`tidegate monitor`: flows of captures and interfaces, with round-trip times, throughput and retransmissions."""

from __future__ import annotations

import json
import re
import socket
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from enum import StrEnum
from os.path import realpath
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from tidegate import _core, addresses, monitor_table, monitor_taps, units
from tidegate._core import TidegateError
from tidegate.files import given_twice, replacing
from tidegate.monitor_files import demand_apart, demand_writable
from tidegate.monitor_taps import LOST_AFTER
from tidegate.options import Insecure, Json

if TYPE_CHECKING:
    import polars as pl
    from matplotlib.figure import Figure
    from rich.live import Live

MOST_FLOWS = 1_000_000
LARGEST_MAX_FLOWS = (1 << 32) - 1
RTT_MEMORY = 1024
"""MiB."""
MOST_RTT_MEMORY = 1 << 20
SHOWN = 12
"""Flows of the figure."""
LOOKED_AT = 5000
"""Flows with the most bytes, of those that `--match` chooses, that are read each interval."""
SEEN_TWICE = 0.4
"""Part of the packets that counts as sent again, from which on several sources are taken to have the same packets."""
COLUMNS = {
    "protocol": "String",
    "src": "String",
    "src_port": "Int64",
    "dst": "String",
    "dst_port": "Int64",
    "packets": "Int64",
    "bytes": "Int64",
    "payload_bytes": "Int64",
    "first_s": "Float64",
    "duration_s": "Float64",
    "throughput_mbps": "Float64",
    "syn": "Int64",
    "fin": "Int64",
    "rst": "Int64",
    "retransmissions": "Int64",
    "rtt_samples": "Int64",
    "rtt_ms_min": "Float64",
    "rtt_ms_p50": "Float64",
    "rtt_ms_p95": "Float64",
    "rtt_ms_p99": "Float64",
}
"""What a flow has, with the types of the table (names of Polars)."""


class RttRule(StrEnum):
    """Which round-trip times are taken; see docs/monitor.md."""

    EXACT = "exact"
    TSHARK = "tshark"
    TCPTRACE = "tcptrace"
    TIMESTAMPS = "timestamps"


class Sort(StrEnum):
    """Sort key of flows."""

    BYTES = "bytes"
    PACKETS = "packets"
    THROUGHPUT = "throughput_mbps"
    RETRANSMISSIONS = "retransmissions"
    RTT_MIN = "rtt_ms_min"
    RTT_P50 = "rtt_ms_p50"
    RTT_P95 = "rtt_ms_p95"
    RTT_P99 = "rtt_ms_p99"
    SAMPLES = "rtt_samples"
    FIRST = "first_s"
    QUEUE_DELAY_P95 = "queue_delay_ms_p95"
    LOST = "lost_at_router"


OF_TWO_TAPS = (Sort.QUEUE_DELAY_P95, Sort.LOST)


def watch(
    files: Sequence[str | Path],
    *,
    rtt_rule: str = "exact",
    max_flows: int = MOST_FLOWS,
    rtt_memory: int = RTT_MEMORY,
    samples: str | Path | None = None,
    after: Sequence[str | Path] = (),
    after_offset_ms: float = 0.0,
    lost_after: float = LOST_AFTER,
    delays: str | Path | None = None,
    partial: bool = False,
    progress: Callable[[int], None] | None = None,
) -> dict[str, Any]:
    """Watch captures (pcap or pcapng; gzip, zstd; `-` is standard input) together, in the order of their packets' times.

    Gives what `tidegate monitor --json` prints: `flows` has a dict for each direction of each TCP and UDP flow. `samples` is a CSV
    file that gets each round-trip time: `time_s`, ends and ports of the flow whose packet was acknowledged, `ack`, `rtt_ms`. With
    `partial`, an interrupt ends it with what was read until then.

    `after`: captures of the other side of a router. Their packets are paired with those of `files`: flows have queue delays and losses,
    and all else is as without. `after_offset_ms` is added to their times; what has not come to the other tap `lost_after` seconds later
    is lost. `delays` is a CSV file that gets each delay: `time_s` at the second tap, ends and ports, `queue_delay_ms`. Raises
    TidegateError.
    """
    _demand_lists(files=files, after=after)
    given = [*files, *after]
    if not files:
        raise TidegateError("there is nothing to watch; give a capture")
    if (twice := given_twice(given)) is not None:
        raise TidegateError(f"{twice} is given twice; give each capture once")
    for out in (samples, delays):
        if out is not None:
            demand_apart(Path(out), given)
    second = monitor_taps.second(after, after_offset_ms, lost_after, delays)
    answer: dict[str, Any] = json.loads(
        _core.monitor(
            [str(file) for file in files],
            rtt_rule,
            *_limits(max_flows, rtt_memory),
            samples,
            second,
            partial,
            progress,
        )
    )
    answer["warnings"] += _seen_twice(answer["flows"], len(files))
    return answer


def _demand_lists(**given: Sequence[str | Path]) -> None:
    """Refuse a name alone: each of its letters would be one."""
    for name, value in given.items():
        if isinstance(value, str | Path):
            raise TidegateError(f"{name} is a list: write {name}=[{str(value)!r}]")


def _repeated(names: Sequence[str]) -> str | None:
    return next((name for name in names if names.count(name) > 1), None)


def _limits(max_flows: int, rtt_memory: int) -> tuple[int, int]:
    """Connections, and bytes for round-trip times."""
    units.below(max_flows, 1, LARGEST_MAX_FLOWS + 1, "a number of connections (max_flows)")
    units.below(rtt_memory, 1, MOST_RTT_MEMORY + 1, "a number of MiB (rtt_memory)")
    return max_flows, rtt_memory << 20


class Interfaces:
    """Watches interfaces of this machine, as packets come and go: `with Interfaces(["eth0"]) as watched: watched.run(10)`.

    `after`, `lost_after`, `delays`: as of `watch`; interfaces on the other side of this machine, which is the router.

    Needs root, or CAP_NET_RAW and CAP_NET_ADMIN. Raises TidegateError.
    """

    def __init__(
        self,
        interfaces: Sequence[str],
        *,
        rtt_rule: str = "exact",
        max_flows: int = MOST_FLOWS,
        rtt_memory: int = RTT_MEMORY,
        samples: str | Path | None = None,
        after: Sequence[str] = (),
        lost_after: float = LOST_AFTER,
        delays: str | Path | None = None,
    ) -> None:
        _demand_lists(interfaces=interfaces, after=after)
        if (same := _repeated([*interfaces, *after])) is not None:
            raise TidegateError(f"{same}: an interface is given twice; give each once")
        self._core = _core.InterfaceMonitor(
            list(interfaces),
            rtt_rule,
            *_limits(max_flows, rtt_memory),
            None if samples is None else str(samples),
            monitor_taps.second(after, 0.0, lost_after, delays),
        )

    def __enter__(self) -> Interfaces:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(self, seconds: float) -> None:
        """Watch for so long."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            # Now and then Python looks for an interrupt.
            self._core.run(max(1, round(min(left, 0.2) * 1000)))

    def answer(self, most: int | None = None, match: str | None = None) -> dict[str, Any]:
        """What `watch` gives, up to now: with `interfaces` for `files`, `dropped_packets` and `forgotten_flows`.

        `most`: so many flows at most, those with the most bytes; `match`: only those with this in protocol, address or port.
        `flow_count` has how many there are.
        """
        answer: dict[str, Any] = json.loads(self._core.answer(most, match))
        return answer

    def settle(self) -> None:
        """Decide of two taps what is lost, as at the end of captures: without it, a packet may still come."""
        self._core.settle()

    def end(self) -> list[str]:
        """Stop; return warnings about the measurement."""
        return self._core.end()


def frame(answer: dict[str, Any]) -> pl.DataFrame:
    """The flows of an answer as a table."""
    import polars as pl

    columns = COLUMNS | (monitor_taps.COLUMNS if "after_packets" in answer else {})
    return pl.DataFrame(
        answer["flows"], schema={name: getattr(pl, kind) for name, kind in sorted(columns.items())}
    )


Name = tuple[str, str, int, str, int]


def _name(flow: dict[str, Any]) -> Name:
    return flow["protocol"], flow["src"], flow["src_port"], flow["dst"], flow["dst_port"]


def _seen_twice(flows: list[dict[str, Any]], sources: int) -> list[str]:
    """A warning where several sources seem to have the same packets.

    Packets with data are not counted apart from acknowledgments. So of each TCP connection the direction with more payload is looked
    at, where most packets have data; acknowledgments in it make the part smaller than it is.
    """
    if sources < 2:
        return []
    senders: dict[frozenset[tuple[str, int]], dict[str, Any]] = {}
    for flow in flows:
        if flow["protocol"] == "tcp" and flow["payload_bytes"] > 0:
            ends = frozenset({(flow["src"], flow["src_port"]), (flow["dst"], flow["dst_port"])})
            if ends not in senders or senders[ends]["payload_bytes"] < flow["payload_bytes"]:
                senders[ends] = flow
    packets = sum(flow["packets"] for flow in senders.values())
    again = sum(flow["retransmissions"] for flow in senders.values())
    if again == 0 or again < SEEN_TWICE * packets:
        return []
    # Half of the packets are copies where each is there twice.
    percent = min(100, round(100 * again / max(packets - again, 1)))
    return [
        f"about {percent} % of the packets with data were seen twice: give one side of the router, "
        "and the other with --after"
    ]


def end(flow: dict[str, Any], which: str) -> str:
    """An end of a flow, as people write it."""
    address = flow[which]
    return f"[{address}]:{flow[f'{which}_port']}" if ":" in address else f"{address}:{flow[f'{which}_port']}"


def draw(flows: list[dict[str, Any]]) -> Figure:
    """Round-trip times of flows: least, p50, p95 and p99. Of two taps also queue delays."""
    from matplotlib.figure import Figure

    taps = any("lost_at_router" in flow for flow in flows)
    shown = [
        flow for flow in flows if flow["rtt_ms_p50"] is not None or flow.get("queue_delay_ms_p50") is not None
    ][:SHOWN]
    with_rtt = [(row, flow) for row, flow in enumerate(shown) if flow["rtt_ms_p50"] is not None]
    height = 1.2 + 0.35 * max(len(shown), 1)
    figure = Figure(figsize=(12 if taps else 8, height), layout="constrained")
    panel, *others = figure.subplots(1, 2 if taps else 1, squeeze=False, sharey=True)[0]
    for row, flow in with_rtt:
        values = [flow[f"rtt_ms_{name}"] for name in ("min", "p50", "p95", "p99")]
        panel.plot([values[0], values[3]], [row, row], color="0.6", linewidth=1)
        for value, marker, label in zip(values, "|osD", ("least", "p50", "p95", "p99"), strict=True):
            panel.plot(
                value,
                row,
                marker,
                color="tab:blue",
                markersize=6,
                label=label if row == with_rtt[0][0] else None,
            )
    panel.set_yticks(
        range(len(shown)),
        [f"{flow['protocol']} {end(flow, 'src')} > {end(flow, 'dst')}" for flow in shown],
    )
    panel.invert_yaxis()
    panel.set(xlabel="round-trip time (ms)", xscale="log" if with_rtt else "linear")
    panel.grid(alpha=0.3, axis="x", which="both")
    if with_rtt:
        panel.legend(fontsize="small")
    for other in others:
        monitor_taps.draw(other, shown)
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


def _cells(
    flows: list[dict[str, Any]], now: Mapping[Name, float] | None = None
) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Columns and rows of the table. `now`: Mbit/s of the last interval, of the flows of which it is known."""
    columns: tuple[str, ...] = (
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
    taps = any("lost_at_router" in flow for flow in flows)
    if taps:
        columns = (*columns, *monitor_taps.HEADINGS)
    if now is not None:
        columns = (*columns, "Mbit/s now")
    rows = [
        (
            flow["protocol"],
            end(flow, "src"),
            end(flow, "dst"),
            f"{flow['packets']:,}",
            f"{flow['bytes']:,}",
            _number(flow["throughput_mbps"], 2),
            _number(flow["retransmissions"], 0),
            f"{flow['rtt_samples']:,}",
            *(_number(flow[f"rtt_ms_{name}"], 3) for name in ("min", "p50", "p95", "p99")),
            *(monitor_taps.cells(flow) if taps else []),
            *([] if now is None else [_number(now.get(_name(flow)), 2)]),
        )
        for flow in flows
    ]
    return columns, rows


class _Rates:
    """What flows have sent since the last look."""

    def __init__(self, most: int = LOOKED_AT) -> None:
        """`most`: flows of an answer at most."""
        self._most = most
        self._before: dict[Name, int] = {}
        self._had_all = True
        self._at = 0.0

    def look(self, answer: dict[str, Any]) -> dict[Name, float]:
        """Mbit/s of each flow. One that was there before, but not among those of the last look, has none yet."""
        took = answer["duration_s"] - self._at
        found = {}
        for flow in answer["flows"]:
            new = flow["first_s"] >= self._at
            before = 0 if new or self._had_all else None
            if not new:
                before = self._before.get(_name(flow), before)
            if before is not None:
                found[_name(flow)] = (flow["bytes"] - before) * 8 / took / 1e6 if took > 0 else 0.0
        self._before = {_name(flow): flow["bytes"] for flow in answer["flows"]}
        self._had_all, self._at = len(answer["flows"]) < self._most, answer["duration_s"]
        return found


def _watch_interfaces(
    watched: Interfaces,
    duration: float | None,
    interval: float,
    match: str | None,
    look: Callable[[dict[str, Any]], None],
) -> tuple[bool, str | None]:
    """Watch until the end or an interrupt, with a look each interval; give whether it was interrupted, and what failed."""
    begin = time.monotonic()
    try:
        while duration is None or time.monotonic() - begin < duration:
            left = interval if duration is None else min(interval, begin + duration - time.monotonic())
            watched.run(max(left, 0.0))
            look(watched.answer(LOOKED_AT, match))
    except KeyboardInterrupt:
        return duration is not None, None
    except TidegateError as error:
        return False, f"{error}{_cure(str(error))}"
    return False, None


def _cure(failed: str) -> str:
    """What helps where an interface is down; nothing where it is gone."""
    down = re.fullmatch(r"interface (\S+): network is down", failed)
    there = down is not None and any(name == down[1] for _, name in socket.if_nameindex())
    return f"; `ip link set {down[1]} up` changes that" if down is not None and there else ""


def monitor(
    files: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE...]",
            help="Captures (pcap, pcapng; also gzip or zstd), watched together; - is standard input.",
            show_default=False,
        ),
    ] = None,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            "-i",
            metavar="IFACE",
            help="Watch an interface of this machine; can be given again.",
        ),
    ] = None,
    duration: Annotated[
        float | None,
        typer.Option(metavar="SECONDS", min=0.0, help="Watch interfaces for so long, not until Ctrl-C."),
    ] = None,
    after: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FILE|IFACE",
            help="The router's other side: a capture, or with -i an interface; gives queue delay and loss; can be given again.",
        ),
    ] = None,
    after_offset: Annotated[
        float, typer.Option(metavar="MS", help="Add so many ms to the times of captures of --after.")
    ] = 0.0,
    lost_after: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS",
            min=0.001,
            max=monitor_taps.LONGEST,
            help=f"With --after, a packet that has not come to the other side by then ({LOST_AFTER:g} s) is lost.",
        ),
    ] = None,
    interval: Annotated[
        float | None,
        typer.Option(
            metavar="SECONDS", min=0.1, help="Time between two looks at interfaces, 1 s if not given."
        ),
    ] = None,
    metrics_addr: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Serve what is shown of interfaces to Prometheus."),
    ] = None,
    insecure: Insecure = False,
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
        int,
        typer.Option(metavar="N", min=1, max=LARGEST_MAX_FLOWS, help="Watch so many connections."),
    ] = MOST_FLOWS,
    rtt_memory: Annotated[
        int,
        typer.Option(
            metavar="MIB",
            min=1,
            max=MOST_RTT_MEMORY,
            help="Memory for round-trip times, of all connections together.",
        ),
    ] = RTT_MEMORY,
    samples: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="Write each round-trip time to a file.")
    ] = None,
    delays: Annotated[
        Path | None, typer.Option(metavar="FILE.csv", help="With --after, write each queue delay to a file.")
    ] = None,
    parquet: Annotated[
        Path | None, typer.Option(metavar="FILE.parquet", help="Write the flows to a file.")
    ] = None,
    figure: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.png",
            help=f"Draw the round-trip times of the flows that are shown, {SHOWN} at most.",
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Watch captures or interfaces: round-trip times, throughput and retransmissions of each flow."""
    captures, interfaces, behind = files or [], interface or [], after or []
    for path, suffixes, what in (
        (samples, (".csv",), "file of samples"),
        (delays, (".csv",), "file of delays"),
        (parquet, (".parquet",), "Parquet file"),
        (figure, (".png", ".svg", ".pdf"), "figure"),
    ):
        if path is not None:
            demand_writable(path, suffixes, what, [*captures, *behind] if captures else [])
    if bool(captures) == bool(interfaces):
        raise typer.BadParameter("give captures, or interfaces with -i; `tidegate monitor --help` shows how")
    if captures and not all(one is None for one in (duration, interval, metrics_addr)):
        raise typer.BadParameter(
            "--duration, --interval and --metrics-addr are for interfaces; leave them out with captures"
        )
    if insecure and metrics_addr is None:
        raise typer.BadParameter("--insecure is for --metrics-addr; give an address, or leave it out")
    if metrics_addr is not None:
        addresses.demand_local_metrics(metrics_addr, insecure)
    if not behind and (delays is not None or lost_after is not None or sort in OF_TWO_TAPS):
        raise typer.BadParameter(
            "--delays, --lost-after, and --sort by delay or loss, need the router's other side; give it with --after"
        )
    if after_offset and (interfaces or not behind):
        raise typer.BadParameter(
            "--after-offset is for captures of --after; interfaces of one machine have one clock"
        )
    if delays is not None and samples is not None and realpath(delays) == realpath(samples):
        raise typer.BadParameter("--samples and --delays are one file; give two")
    given = [*(captures or interfaces), *behind]
    if captures and given.count("-") > 1:
        raise TidegateError("standard input (-) is given twice; give it once")
    if captures and (twice := given_twice(given)) is not None:
        raise typer.BadParameter(f"{twice}: a capture is given twice; give each once")
    if interfaces and (same := _repeated(given)) is not None:
        raise typer.BadParameter(f"{same}: an interface is given twice; give each once")
    how: dict[str, Any] = {
        "rtt_rule": rtt_rule.value,
        "max_flows": max_flows,
        "rtt_memory": rtt_memory,
        "samples": samples,
        "after": behind,
        "lost_after": LOST_AFTER if lost_after is None else lost_after,
        "delays": delays,
    }
    if captures:
        answer = _of_captures(captures, **how, after_offset_ms=after_offset, partial="-" in given)
    else:
        with Interfaces(interfaces, **how) as watched:
            answer = _of_interfaces(
                watched,
                duration,
                1.0 if interval is None else interval,
                metrics_addr,
                sort.value,
                match,
                top,
                insecure=insecure,
                quiet=as_json,
            )
    flows = chosen(answer, sort.value, match)
    answer["flows"] = flows
    if match is not None and not flows:
        answer["warnings"].append(
            f"--match {match} found no flow; it is looked for in protocol, address and port"
        )
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    if not as_json:
        # Before the files: where one cannot be written, what was watched is not lost.
        monitor_table.show(*_cells(flows[:top]), _summary(answer, len(flows), top))
    if parquet is not None:
        with replacing(parquet) as file:
            frame(answer).write_parquet(file)
    if figure is not None:
        drawn = draw(flows[:top])
        with replacing(figure) as file:
            drawn.savefig(file, dpi=150, format=figure.suffix[1:])
    if as_json:
        from tidegate.cli.output import print_json

        print_json(answer)
    if interfaces and answer["failed"] is not None:
        from tidegate.cli.output import FAILED

        sys.stderr.write(f"{answer['failed']}; the table is of what came before\n")
        raise typer.Exit(FAILED)
    if interfaces and answer["interrupted"]:
        from tidegate.cli.output import INTERRUPTED, Told

        sys.stderr.write("interrupted\n")
        raise Told(INTERRUPTED)


def _summary(answer: dict[str, Any], flows: int, top: int) -> str:
    rest = f", of which the first {top} are shown" if flows > top else ""
    missed = f", {answer['dropped_packets']:,} missed" if answer.get("dropped_packets") else ""
    taps = f" ({answer['packets_at_both']:,} at both taps)" if "packets_at_both" in answer else ""
    return (
        f"{answer['packets']:,} packets{taps}{missed} in {answer['duration_s']:.3f} s, {flows:,} flows{rest}; "
        f"RTT rule {answer['rtt_rule']}"
    )


def _of_captures(files: list[str], **how: Any) -> dict[str, Any]:
    show = sys.stderr.isatty()

    def progress(packets: int) -> None:
        sys.stderr.write(f"\r{packets:,} packets ")
        sys.stderr.flush()

    answer = watch(files, **how, progress=progress if show else None)
    if show:
        sys.stderr.write("\r\x1b[K")
    return answer


def _of_interfaces(
    watched: Interfaces,
    duration: float | None,
    interval: float,
    metrics_addr: str | None,
    sort: str,
    match: str | None,
    top: int,
    *,
    insecure: bool,
    quiet: bool,
) -> dict[str, Any]:
    """Watch until the end, with a table on a terminal; give the answer of all flows."""
    rates = _Rates()
    with ExitStack() as stack:
        metrics: Metrics | None = None
        if metrics_addr is not None:
            from tidegate.monitor_metrics import Metrics, serve

            metrics = Metrics()
            server = serve(metrics, metrics_addr, insecure)
            stack.callback(server.stop)
            sys.stderr.write(f"metrics at http://{server.address}/metrics\n")
        live: Live | None = None
        if sys.stdout.isatty() and not quiet:
            from rich.console import Console, Group
            from rich.live import Live

            console = Console(highlight=False, markup=False)
            live = stack.enter_context(Live(console=console, auto_refresh=False, transient=True))
        elif duration is None:
            sys.stderr.write("watching; Ctrl-C ends it\n")

        def look(answer: dict[str, Any]) -> None:
            now = rates.look(answer)
            flows = chosen(answer, sort, match)
            count = answer["flow_count"] if match is None else len(flows)
            if metrics is not None:
                metrics.answer, metrics.flows = answer, flows[:top]
            if live is not None:
                table, _ = monitor_table.table(*_cells(flows[:top], now), console.width)
                live.update(Group(table, _summary(answer, count, top)), refresh=True)

        interrupted, failed = _watch_interfaces(watched, duration, interval, match, look)
        watched.settle()
        answer = watched.answer()
    answer["interrupted"], answer["failed"] = interrupted, failed
    answer["warnings"] = watched.end() + _seen_twice(answer["flows"], len(answer.get("interfaces", ())))
    return answer
