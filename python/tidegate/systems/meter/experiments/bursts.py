"""How much a meter lets through at once: at the start of a flow, and in any ten milliseconds."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Row, Unit, between
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.measures import History
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.experiments.contenders import CONTENDERS, SIMULATED, Contenders, burst_columns
from tidegate.systems.meter.experiments.customer import PASSED, Customer, sent

SAMPLE = "1 ms"
WINDOW_S = 0.01
START_S = 5
MOST_MS = 300.0
"""BC-PQP's: 1.5 times the rate over its period of 200 ms."""
PACKET = 1500
SENDERS = ("cubic", "cubic+ECN", "reno+ECN", "bbr", "dctcp+ECN", "prague+ECN", "udp")
UDP_TIMES = 3.0
TABLE = (
    "scheme",
    "burst_bytes",
    "sender",
    "base_rtt_ms",
    "start_burst_ms",
    "start_burst_bytes",
    "burst_10_ms_ms",
    "burst_10_ms_bytes",
    "later_10_ms_ms",
)


def build(contender: str, sender: str, rate_mbps: float, rtt_ms: float, seed: int) -> Network:
    """One sender behind the meter; datagrams come at three times the rate."""
    at = Customer(contender, rate_mbps, rtt_ms)
    start = random.Random(seed).randrange(units.PS_PER_S // 10)
    if sender == "udp":
        at.udp(UDP_TIMES, start=start)
    else:
        at.named(sender, start=start)
    return at.attach(SAMPLE, sinks=False)


def start_burst(passed: History, rate_mbps: float) -> float:
    """The most that was ahead of the rate since the first packet, in the first five seconds; bytes."""
    kept = passed.time_s <= START_S + 1e-9
    time_s, count = passed.time_s[kept], passed.bytes[kept]
    # The last sample before the first packet: windows begin there.
    first = max(int(np.argmax(count > 0)) - 1, 0)
    return float(
        (count[first:] - count[first] - (time_s[first:] - time_s[first]) * rate_mbps * 125_000).max()
    )


def largest(passed: History, since_s: float = 0.0) -> float:
    """The most in any ten milliseconds from a time on; bytes."""
    return float(passed.windows_mbps(WINDOW_S, since_s).max()) * 125_000 * WINDOW_S


def measure(contender: str, sender: str, rate_mbps: float, rtt_ms: float) -> Callable[[Result], Row]:
    """The row of a case."""

    def row(result: Result) -> Row:
        passed = sent(result, PASSED)
        found = {
            "start_burst": start_burst(passed, rate_mbps),
            "burst_10_ms": largest(passed),
            "later_10_ms": largest(passed, START_S),
        }
        return {
            **burst_columns(contender, rate_mbps, rtt_ms),
            "sender": sender,
            "target_mbps": rate_mbps,
            "base_rtt_ms": rtt_ms,
            **{f"{name}_bytes": value for name, value in found.items()},
            **{f"{name}_ms": value * 8e-3 / rate_mbps for name, value in found.items()},
            "achieved_mbps": passed.mbps(START_S),
        }

    return row


def label(row: Row) -> str:
    """`cubic+ECN, 10 ms`."""
    return f"{row['sender']}, {row['base_rtt_ms']:g} ms"


def _why(name: str) -> str:
    return CONTENDERS[name].why("burst") if CONTENDERS[name].of != "ours" else "not explained"


def claims_of(rows: list[Row]) -> list[Claim]:
    """At most BC-PQP's, for it and for ours."""
    out: list[Claim] = []
    for name, way in CONTENDERS.items():
        own = [row for row in rows if row["scheme"] == name]
        if not own or not (way.of == "ours" or way.data_plane == "bcpqp"):
            continue
        for column, what, bound in (
            ("start_burst_ms", "start burst", MOST_MS),
            # A window of 10 ms has what the rate gives in it as well.
            ("burst_10_ms_ms", "most in any 10 ms", MOST_MS + 1e3 * WINDOW_S),
        ):
            most: dict[str, float] = {}
            for row in own:
                # BC-PQP looks at what it has accepted: the packet that goes beyond passes.
                packet_ms = PACKET * 8e-3 / row["target_mbps"]
                most[label(row)] = max(most.get(label(row), 0.0), row[column] - packet_ms)
            out.append(
                between(
                    f"{name}-{column.removesuffix('_ms').replace('_', '-')}",
                    way.of,
                    f"{way.text}: {what} at most {bound:g} ms of the rate and a packet",
                    most,
                    high=bound,
                    published=None if way.of == "ours" else "1.5 x the rate over 200 ms (theta+, T)",
                    why=_why(name),
                    form=Unit("ms"),
                )
            )
    return out


@experiment(
    "meter.burst",
    TABLE,
    quick={
        "senders": ("cubic+ECN", "udp"),
        "base_rtts_ms": (1.0, 10.0),
        "schemes": ("plain-1s", "fair", "bcpqp-1s", "fairpolicer-1s", "shaper"),
        "duration_s": 10,
    },
)
def burst(
    senders: Annotated[tuple[str, ...], OneOf(SENDERS)] = ("cubic", "cubic+ECN", "bbr", "dctcp+ECN", "udp"),
    base_rtts_ms: tuple[float, ...] = (0.1, 1.0, 10.0, 50.0),
    schemes: Contenders = SIMULATED,
    target_mbps: float = 100.0,
    duration_s: Annotated[int, AtLeast(START_S + 1)] = 20,
) -> Plan:
    """Start burst and largest burst of 10 ms of one sender, in bytes and in ms of the rate."""

    def case(scheme: str, sender: str, rtt: float) -> Case:
        def network(seed: int) -> Network:
            return build(scheme, sender, target_mbps, rtt, seed)

        name = f"{scheme}-{sender}-{rtt:g}ms"
        return Case(name, network, f"{duration_s} s", measure(scheme, sender, target_mbps, rtt))

    def draw(runs: list[Run]) -> Figure:
        rows = all_rows(runs)
        figure = Figure(figsize=(10.5, 1.6 + 0.38 * len(schemes)), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        for panel, column, title in (
            (panels[0], "start_burst_ms", "Start burst (ahead of the rate, first 5 s)"),
            (panels[1], "burst_10_ms_ms", "Largest burst of 10 ms"),
        ):
            _points(panel, rows, column, schemes, senders, base_rtts_ms)
            panel.axvline(MOST_MS, linestyle=":", color="0.4")
            panel.set(xscale="log", title=title, xlabel="ms of the rate; dotted: 300 ms")
            panel.grid(axis="x", alpha=0.3)
        panels[0].set_yticks(range(len(schemes)), [CONTENDERS[scheme].text for scheme in schemes])
        panels[0].set_ylim(len(schemes) - 0.5, -0.5)
        panels[1].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize="small")
        figure.suptitle(
            f"What passes at once, {target_mbps:g} Mbit/s; larger marks: longer RTTs; 0 stands at 0.1 ms"
        )
        return figure

    grid = [(scheme, sender, rtt) for rtt in base_rtts_ms for sender in senders for scheme in schemes]
    return Plan([case(*each) for each in grid], claims_of, draw)


def _points(
    panel: Axes,
    rows: list[Row],
    column: str,
    schemes: tuple[str, ...],
    senders: tuple[str, ...],
    base_rtts_ms: tuple[float, ...],
) -> None:
    """A line for each contender, a colour for each sender, a size for each RTT."""
    for number, sender in enumerate(senders):
        for size, rtt in enumerate(sorted(base_rtts_ms)):
            own = [row for row in rows if (row["sender"], row["base_rtt_ms"]) == (sender, rtt)]
            places = [
                schemes.index(row["scheme"]) + 0.6 * ((number + 0.5) / len(senders) - 0.5) for row in own
            ]
            panel.plot(
                [max(row[column], 0.1) for row in own],
                places,
                "o",
                color=f"C{number}",
                markersize=3 + 1.3 * size,
                alpha=0.75,
                label=sender if size == len(base_rtts_ms) - 1 else None,
            )
