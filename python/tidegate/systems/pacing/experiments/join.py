"""Flows that join, one after another (the paper's section IV, Fig. 6, Tables I and II).

Four hosts send to a server through a pacing switch whose link to the server is the bottleneck. A period begins with each flow.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import numpy.typing as npt
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians, medians_of_times
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.hosts.agents import Connection
from tidegate.measures import received_bytes
from tidegate.network import Link, Network, Switch
from tidegate.plots import all_rows, of_first_seed
from tidegate.results import Result, jain
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.claims import SUMS, judged
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.htb import HtbAgent
from tidegate.systems.pacing.experiments.rcp import rcp, rcp_switch
from tidegate.systems.pacing.setup import paced, pacing

FLOWS = 4
SAMPLE_MS = 100
PAYLOAD = 1448 / 1514
"""Of a frame of 1514 bytes, with TCP's timestamps."""
FIRST_START_S = 1.0
PERIOD_S = 15.0
ACCESS = "1 Gbit/s"
AUTOMATIC_KIB = 32 * 1024
"""A receive buffer that grows as far as it has to."""
FIRST_KIB = 128
"""What a receive buffer has at first; six tenths of it are window."""
SCHEMES = {
    "tcp": "TCP",
    "tcp-window": "TCP, small receive buffer",
    "fq": "paced (FQ)",
    "bbr": "BBR v1",
    "bbr3": "BBR v3",
    "manual": "set by hand for four flows",
    "rcp": "RCP",
    "htb": "paced (HTB)",
}
"""`fq`: the paper's scheme; a socket is paced by its own TCP, as where Linux has no FQ."""
BBR = ("bbr", "bbr3")
"""Those that are congestion controls themselves."""
SIMULATED = tuple(name for name in SCHEMES if name != "htb")
"""Hosts of the simulator have no HTB."""
LIVE = ("tcp", "fq", "bbr", "htb")
"""Linux as it is released has no BBRv3."""


@dataclass(frozen=True)
class Setting:
    """One of the paper's two networks."""

    name: str
    rate_mbps: float
    rtt_ms: float

    @property
    def limit_mbps(self) -> float:
        """Goodput that the frames' headers leave."""
        return self.rate_mbps * PAYLOAD


SETTINGS = {"lan": Setting("lan", 300.0, 0.5), "wan": Setting("wan", 100.0, 20.0)}


def _network(
    setting: Setting, scheme: str, control: str, buffer_packets: int, receive_kib: int, period_s: float
) -> tuple[Network, Link]:
    network = Network()
    managed = scheme in ("fq", "htb")
    switch = (
        pacing(network, "switch")
        if managed
        else rcp_switch(network, "switch")
        if scheme == "rcp"
        else network.router("switch")
    )
    server = network.host("server")
    bottleneck = network.link(
        switch,
        server,
        rate=round(setting.rate_mbps * 1e6),
        delay=round(setting.rtt_ms * 1e9 / 2 - 10e6),
        queue=f"{buffer_packets} packets",
    )
    hosts = []
    for number in range(FLOWS):
        host = network.host(f"host{number + 1}")
        hosts.append(host)
        network.link(host, switch, rate=ACCESS, delay="10 us", queue="1000 packets")
        if scheme == "htb":
            network.agent(host, HtbAgent())
        elif managed:
            paced(network, host)
        elif scheme == "manual":
            network.agent(host, ByHand(round(setting.rate_mbps * 1e6 * (1 - RESERVE) / FLOWS * PAYLOAD)))
        network.tcp(
            host,
            server,
            congestion_control=scheme if scheme in BBR else control,
            start=round((FIRST_START_S + number * period_s) * 1e12),
            receive_buffer_max=f"{receive_kib} KiB",
            # RCP's hosts space single packets.
            segmentation_offload=None if scheme == "rcp" else "64 KiB",
        )
    if scheme == "rcp":
        assert isinstance(switch, Switch)
        rcp(network, switch, bottleneck, f"{setting.rtt_ms} ms", hosts, server)
    network.record(f"{SAMPLE_MS} ms", queues=[bottleneck])
    return network, bottleneck


class ByHand(PacingAgent):
    """Sends at a rate that somebody has set."""

    def __init__(self, rate: int) -> None:
        super().__init__()
        self.shims = ()
        self._rate = rate

    def on_open(self, now: int, connection: Connection) -> None:
        """Set the rate."""
        if connection.active:
            connection.pace(self._rate)


def goodput(samples: pl.DataFrame, flow: int, edges: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Mbit/s that the receiver gets between times in seconds."""
    found: npt.NDArray[np.float64] = received_bytes(samples, flow, edges) * 8e-6 / np.diff(edges)
    return found


def variation(values: npt.NDArray[np.float64]) -> float:
    """Coefficient of variation, in percent."""
    return float(100 * values.std() / values.mean()) if len(values) and values.mean() > 0 else 0.0


def _rows(
    setting: Setting, about: Row, period_s: float, network: Network, link: Link, result: Result
) -> list[Row]:
    """A row for each period: from the newcomer's SYN on. On real hosts iperf3 first speaks over a connection of its own, for 0.1 s at
    20 ms, in which the flow does not exist."""
    rows = []
    starts = dict(result.flows.select("flow", "start_s").iter_rows())
    seconds = max(round(period_s), 1)
    queue = result.queue_samples.filter(pl.col("queue") == f"{link.a.name} -> {link.b.name}").sort("time_s")
    for period in range(FLOWS):
        begin = starts.get(period) or FIRST_START_S + period * period_s
        # The last period may be shorter for that.
        edges = np.minimum(begin + np.linspace(0.0, period_s, seconds + 1), result.end_s)
        rates = np.array([goodput(result.flow_samples, flow, edges) for flow in range(period + 1)])
        means = rates.mean(axis=1)
        here = queue.filter((pl.col("time_s") > begin) & (pl.col("time_s") <= begin + period_s))
        row: Row = {
            **about,
            "period": period + 1,
            "goodput_mbps": float(means.sum()),
            "of_limit": float(means.sum() / setting.limit_mbps),
            "jain": jain(pl.Series(means)),
            "cv_percent_old": max([variation(rates[flow]) for flow in range(period)], default=None),
            "cv_percent_new": variation(rates[period]),
            "cv_percent_new_later": variation(rates[period][1:]),
            "retransmits": _retransmits(result, begin, begin + period_s),
            "queue_delay_ms_p99": float(np.quantile(here["queue_delay_ms"].to_numpy(), 0.99)),
        }
        for flow in range(FLOWS):
            row[f"flow{flow + 1}_mbps"] = float(means[flow]) if flow <= period else None
            row[f"flow{flow + 1}_cv_percent"] = variation(rates[flow]) if flow <= period else None
        told = _told_ms(network, setting, period, period_s)
        if told is not None:
            row["in_force_ms"], row["handshake_ms"] = told
            row["behind_handshake_ms"] = None if told[0] is None else told[0] - told[1]
        rows.append(row)
    return rows


def _retransmits(result: Result, begin: float, end: float) -> int:
    """Of all flows, between two times."""
    count = 0
    for flow in range(FLOWS):
        own = result.flow_samples.filter((pl.col("flow") == flow) & (pl.col("time_s") <= end)).sort("time_s")
        if own.height:
            before = own.filter(pl.col("time_s") <= begin)["retransmits"]
            count += int(own["retransmits"][-1]) - (int(before[-1]) if len(before) else 0)
    return count


def in_force_ms(
    agents: Sequence[PacingAgent],
    fair_mbps: Mapping[int, float],
    begin: float,
    until: float,
    near: float = 0.02,
) -> float | None:
    """From a time until each of these flows has a rate near its fair one, and keeps it until another time; None: one has not.

    A flow that was near it before and stays so has it at once.
    """
    since: dict[int, float | None] = dict.fromkeys(fair_mbps)
    for agent in agents:
        for time, flow, rate in agent.changes:
            fair = fair_mbps.get(flow)
            if fair is None or time >= until:
                continue
            if abs(rate / 1e6 - fair) > near * fair:
                since[flow] = None
            elif since[flow] is None:
                since[flow] = time
    times = [time for time in since.values() if time is not None]
    if len(times) < len(since):
        return None
    return 1e3 * (max(begin, *times) - begin)


def _told_ms(
    network: Network, setting: Setting, flow: int, period_s: float
) -> tuple[float | None, float] | None:
    """From a flow's SYN until it and those before it have their fair rates for a second, within 2 %, and until its answer came, a round
    trip. None: no agent has seen the flow."""
    agents = [attached.agent for attached in network.agents if isinstance(attached.agent, PacingAgent)]
    own = next((agent for agent in agents if flow in agent.established), None)
    if own is None:
        return None
    begin = own.opened[flow]
    fair = setting.rate_mbps * (1 - RESERVE) * PAYLOAD / (flow + 1)
    told = in_force_ms(agents, dict.fromkeys(range(flow + 1), fair), begin, begin + min(1.0, period_s / 2))
    return told, 1e3 * (own.established[flow] - begin)


@experiment(
    "pacing.join",
    (
        "setting",
        "scheme",
        "control",
        "buffer_packets",
        "period",
        "goodput_mbps",
        "of_limit",
        "jain",
        "cv_percent_old",
        "cv_percent_new",
    ),
    backends=("sim", "live"),
    quick={"period_s": 5.0, "buffers": (32,), "settings": ("wan",), "schemes": ("tcp", "fq", "bbr3")},
    live={"schemes": LIVE, "buffers": (32,)},
    live_quick={"schemes": ("tcp", "fq")},
)
def join(
    settings: Annotated[tuple[str, ...], OneOf(SETTINGS)] = ("lan", "wan"),
    schemes: Annotated[tuple[str, ...], OneOf(SCHEMES)] = SIMULATED,
    controls: Annotated[tuple[str, ...], OneOf(("cubic", "reno"))] = ("cubic",),
    buffers: Annotated[tuple[int, ...], AtLeast(2)] = (8, 16, 32, 64, 128, 256),
    main_buffer: Annotated[int, AtLeast(2)] = 32,
    receive_buffers_kib: Annotated[tuple[int, ...], AtLeast(FIRST_KIB, AUTOMATIC_KIB)] = (
        140,
        180,
        256,
        512,
        1024,
    ),
    period_s: Annotated[float, AtLeast(2.0)] = PERIOD_S,
) -> Plan:
    """Four flows that join one after another: regular TCP, pacing by the switch, BBR, rates set by hand, RCP; over buffers and round trips.

    At 20 ms also over buffers of the bottleneck and, for `tcp-window`, over `receive_buffers_kib`. The scheme `htb` runs on real hosts
    only.
    """
    cases = []
    for name in settings:
        setting = SETTINGS[name]
        for control in controls:
            for scheme in schemes:
                if scheme in BBR and control != controls[0]:
                    continue
                for buffer_packets, receive_kib in _sizes(
                    name, scheme, {*buffers, main_buffer}, main_buffer, receive_buffers_kib
                ):
                    network, link = _network(setting, scheme, control, buffer_packets, receive_kib, period_s)
                    about: Row = {
                        "setting": name,
                        "scheme": scheme,
                        "control": scheme if scheme in BBR else control,
                        "buffer_packets": buffer_packets,
                        "receive_buffer_kib": receive_kib,
                    }
                    duration = FIRST_START_S + FLOWS * period_s
                    measure = partial(_rows, setting, about, period_s, network, link)
                    key = f"{name}-{scheme}-{about['control']}-{buffer_packets}"
                    if scheme == "tcp-window":
                        key += f"-{receive_kib}"
                    cases.append(Case(key, network, f"{round(duration * 1000)} ms", measure))
    return Plan(cases, partial(_claims, main_buffer, period_s), partial(_draw, main_buffer, period_s))


def _sizes(
    setting: str, scheme: str, buffers: Collection[int], main: int, receive_kib: Collection[int]
) -> list[tuple[int, int]]:
    """Buffers of the bottleneck and receive buffers to run with: one of them is varied at a time, at the longer round trip."""
    small = scheme == "tcp-window"
    usual = min(receive_kib) if small else AUTOMATIC_KIB
    if setting != "wan":
        return [(main, usual)]
    return sorted({(size, usual) for size in buffers} | {(main, kib) for kib in receive_kib if small})


WHY_START = "a newcomer's slow start takes some round trips before it sends at its rate"
WHY_LATE = "real hosts set a rate and send late by what the machine takes; bursts of 10 kB and more are lost where the buffer is small"


def _claims(main_buffer: int, period_s: float, rows: list[Row]) -> list[Claim]:
    def label(row: Row) -> str:
        return f"{row['control']} P{row['period']}"

    def paced_in(setting: str) -> list[Row]:
        mine = [row for row in rows if row["scheme"] == "fq" and row["setting"] == setting]
        return [row for row in mine if row["buffer_packets"] == main_buffer]

    def of(setting: str, column: str, periods: Sequence[int] = (1, 2, 3, 4)) -> dict[str, float]:
        chosen = [row for row in paced_in(setting) if row["period"] in periods]
        return medians([row for row in chosen if row.get(column) is not None], column, label)

    claims: list[Claim] = []
    # A newcomer's first second is a part of the period: the bounds are for the paper's 15 s.
    if of("wan", "of_limit") and period_s >= PERIOD_S:
        claims += [
            _at_least(
                "wan-start",
                "20 ms: in period 1 at least 98.5 % of the limit",
                of("wan", "of_limit", (1,)),
                0.985,
            ),
            _at_least(
                "wan-later",
                "20 ms: in periods 2 to 4 at least 99 % of the limit",
                of("wan", "of_limit", (2, 3, 4)),
                0.99,
            ),
            _at_most(
                "wan-cv-old",
                "20 ms: flows that were there before vary by at most 1 %",
                of("wan", "cv_percent_old"),
                1.0,
            ),
            _at_most(
                "wan-cv-new",
                "20 ms: a newcomer varies by at most 3 %, its first second included",
                of("wan", "cv_percent_new", (2, 3, 4)),
                3.0,
            ),
            _at_most(
                "wan-cv-new-later",
                "20 ms: after its first second by at most 1 %",
                of("wan", "cv_percent_new_later"),
                1.0,
            ),
        ]
    if of("lan", "of_limit") and period_s >= PERIOD_S:
        claims += [
            _at_least("lan-limit", "300 Mbit/s: at least 98 % of the limit", of("lan", "of_limit"), 0.98),
            _at_most(
                "lan-cv",
                "300 Mbit/s: flows that were there before vary by at most 2.5 %",
                of("lan", "cv_percent_old"),
                2.5,
            ),
        ]
    shares = {f"{name} {key}": value for name in SETTINGS for key, value in of(name, "jain").items()}
    if shares and period_s >= PERIOD_S:
        claims.append(_at_least("jain", "Jain's index of the means is at least 0.9999", shares, 0.9999))
    for name, setting in SETTINGS.items():
        times = medians_of_times(paced_in(name), lambda row: row.get("behind_handshake_ms"), label)
        if times:
            claims.append(
                between(
                    f"{name}-in-force",
                    "ours",
                    f"{setting.rate_mbps:g} Mbit/s: the new rate holds at all hosts within 1 ms after the newcomer's handshake of a round trip",
                    times,
                    high=1.0,
                    why="the notice waits for the machine's processors",
                    form=Unit("ms"),
                )
            )
    return claims if period_s < PERIOD_S else claims + judged(rows, "pacing.join")


def _at_least(name: str, statement: str, values: dict[str, float], low: float) -> Claim:
    return between(name, "ours", statement, values, low, why=WHY_START, form=Unit(""))


def _at_most(name: str, statement: str, values: dict[str, float], high: float) -> Claim:
    return between(name, "ours", statement, values, high=high, why=WHY_LATE, form=Unit("%"))


def _draw(main_buffer: int, period_s: float, runs: list[Run]) -> Figure:
    """Goodput over time of each scheme; below, over buffers."""
    about = [(run, run.rows[0]) for run in of_first_seed(runs) if run.rows]
    windows = {row["receive_buffer_kib"] for _, row in about if row["scheme"] == "tcp-window"}
    usual = {AUTOMATIC_KIB, min(windows, default=AUTOMATIC_KIB)}
    first = [
        (run, row)
        for run, row in about
        if row["buffer_packets"] == main_buffer and row["receive_buffer_kib"] in usual
    ]
    settings = list(dict.fromkeys(str(row["setting"]) for _, row in first))
    columns = max(sum(row["setting"] == name for _, row in first) for name in settings)
    controls = list(dict.fromkeys(row["control"] for _, row in about if row["scheme"] not in BBR))
    several = len(controls) > 1
    figure = Figure(figsize=(3.4 * columns, 3.2 * (len(settings) + 1)), layout="constrained")
    grid = figure.add_gridspec(len(settings) + 1, columns)
    for line, name in enumerate(settings):
        shown = [(run, row) for run, row in first if row["setting"] == name]
        for column, (run, row) in enumerate(shown):
            panel = figure.add_subplot(grid[line, column])
            _draw_time(panel, run, _text(row, several), SETTINGS[name], period_s)
            if column == 0:
                panel.set_ylabel("goodput (Mbit/s)")
                panel.legend(fontsize="x-small", loc="lower left")
    rows = all_rows(runs)
    below = grid[len(settings), :].subgridspec(1, 3 if len(windows) > 1 else 2)
    over_buffers = [row for row in rows if row["receive_buffer_kib"] in usual]
    for column, period in enumerate((1, FLOWS)):
        _draw_buffers(figure.add_subplot(below[column]), over_buffers, period, several)
    if len(windows) > 1:
        own = [row for row in rows if row["buffer_packets"] == main_buffer and row["control"] == controls[0]]
        _draw_receive_buffers(figure.add_subplot(below[2]), own)
    return figure


def _draw_time(panel: Axes, run: Run, scheme: str, setting: Setting, period_s: float) -> None:
    end = FIRST_START_S + FLOWS * period_s
    edges = np.arange(0.0, end + 1e-9, 0.5)
    total = np.zeros(len(edges) - 1)
    for flow in range(FLOWS):
        rates = goodput(run.tables["flow_samples"], flow, edges)
        total += rates
        panel.plot(edges[1:], np.where(rates > 0, rates, np.nan), linewidth=1.0, label=f"flow {flow + 1}")
    panel.plot(edges[1:], total, color="black", linewidth=0.8, label="sum")
    panel.axhline(setting.limit_mbps, color="0.6", linewidth=0.8, linestyle=":")
    panel.set(
        title=f"{scheme}, {setting.rtt_ms:g} ms",
        xlabel="time (s)",
        xlim=(0, end),
        ylim=(0, 1.1 * setting.rate_mbps),
    )
    panel.grid(alpha=0.3)


def _text(row: Row, several: bool) -> str:
    """A scheme, with its control where there are several."""
    scheme = SCHEMES[row["scheme"]]
    return f"{scheme}, {row['control']}" if several and row["scheme"] not in BBR else scheme


def _draw_buffers(panel: Axes, rows: list[Row], period: int, several: bool) -> None:
    """Part of the limit in a period, at the longer round trip."""
    wan = [row for row in rows if row["setting"] == "wan"]
    for text in dict.fromkeys(_text(row, several) for row in wan):
        chosen = [row for row in wan if row["period"] == period and _text(row, several) == text]
        found = medians(chosen, "of_limit", lambda row: str(row["buffer_packets"]))
        if len(found) > 1:
            sizes = sorted(map(int, found))
            panel.plot(sizes, [found[str(size)] for size in sizes], "-o", markersize=4, label=text)
            panel.set_xscale("log", base=2)
            panel.set_xticks(sizes, [str(size) for size in sizes])
    if panel.lines and period > 1:
        panel.legend(fontsize="x-small", loc="lower right")
    panel.set(
        title=f"period {period}, 20 ms",
        xlabel="buffer of the bottleneck (packets)",
        ylabel="part of the limit",
        ylim=(None, 1.02),
    )
    panel.grid(alpha=0.3)


def _draw_receive_buffers(panel: Axes, rows: list[Row]) -> None:
    """What regular TCP gets at the longer round trip, beside the paper's Table I."""
    own = [row for row in rows if row["setting"] == "wan" and row["scheme"] in ("tcp", "tcp-window")]
    sizes = sorted({int(row["receive_buffer_kib"]) for row in own})
    for period in range(1, FLOWS + 1):
        found = medians(
            [row for row in own if row["period"] == period],
            "goodput_mbps",
            lambda row: str(row["receive_buffer_kib"]),
        )
        (line,) = panel.plot(
            [found[str(size)] for size in sizes], "-o", markersize=4, label=f"period {period}"
        )
        panel.axhline(SUMS["tcp"][period - 1], color=line.get_color(), linewidth=0.8, linestyle=":")
    names = [f"{size}" if size != AUTOMATIC_KIB else "automatic" for size in sizes]
    panel.set_xticks(range(len(sizes)), names)
    panel.set(
        title="TCP, 20 ms; dotted: the paper's",
        xlabel="receive buffer (KiB)",
        ylabel="sum of goodput (Mbit/s)",
        ylim=(0, None),
    )
    panel.legend(fontsize="small")
    panel.grid(alpha=0.3)
