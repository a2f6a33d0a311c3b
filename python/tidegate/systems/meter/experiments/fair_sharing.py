"""Flows of all kinds inside one meter: what each gets of its max-min share (property: no flow below half of it for ten seconds)."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

import polars as pl
from matplotlib.figure import Figure

from tidegate import units
from tidegate._core import Sizes
from tidegate.claims import Claim, Percents, Row, Unit, between, least, medians, most
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result, jain
from tidegate.systems.meter.experiments.contender_grid import Shading, draw_grid
from tidegate.systems.meter.experiments.contenders import CONTENDERS, SIMULATED, AnyContenders, burst_columns
from tidegate.systems.meter.experiments.customer import PASSED, Customer, retransmits_since, sent

SECOND = units.PS_PER_S
SETTLED_S = 10
WINDOW_S = 10
LOSS_FREE_S = 5
"""Retransmissions count from then on: slow start is over."""
HALF = 0.5
"""Of its max-min share: no flow below that for ten seconds."""
MTU_BITS = 12_000
LEAST_WINDOW = {"cubic": 2, "reno": 2, "htcp": 2, "dctcp": 2, "prague": 2, "bbr3": 4}
"""Packets a round trip of a flow's share from which on early marks can spare it all losses, for controls that heed marks."""
BBR3_HEEDS_MS = 5
"""The longest RTT at which BBRv3 heeds marks (its `ecn_max_rtt_us`)."""
WHY_LOSS = (
    "DCTCP and Prague answer by alpha / 2, and alpha is near 0 after many round trips without a mark, so a queue can be full before marks "
    "slow them down; DCTCP with few packets a round trip has more than its share although the packets of each second one are marked, as "
    "its cut of three packets is rounded down to none; BBRv3 cuts by a third of the marked share, and its next probe, after as many round "
    "trips as packets are its share, takes that back, and it does not heed marks where its smallest RTT is above 5 ms; CUBIC with two to "
    "three packets a round trip is marked in one of four above 24 ms; of other flows the cause was not looked for"
)
TABLE = (
    "scheme",
    "burst_bytes",
    "cell",
    "flow",
    "label",
    "ip_mbps",
    "of_share",
    "worst_10_s",
    "retransmits",
    "total_error",
)
Rng = random.Random


@dataclass(frozen=True)
class Cell:
    """Flows that share the meter."""

    text: str
    add: Callable[[Customer, Callable[[], int]], None]
    """Adds the flows; the second argument gives times to start at, within the first second."""
    longest_rtts: float = 1
    """The longest base RTT of a flow, in base RTTs."""
    short: float = 0
    """Load of short flows beside them, as a share of the rate."""


def _tcp(*flows: str) -> Callable[[Customer, Callable[[], int]], None]:
    """TCP flows by name (`Customer.named`)."""

    def add(at: Customer, start: Callable[[], int]) -> None:
        for flow in flows:
            at.named(flow, start=start())

    return add


def _beside_udp(flow: str, offered: float, ecn: str) -> Callable[[Customer, Callable[[], int]], None]:
    def add(at: Customer, start: Callable[[], int]) -> None:
        _tcp(flow)(at, start)
        at.udp(offered, ecn=ecn, start=start())

    return add


def _two_rtts(ecn: str) -> Callable[[Customer, Callable[[], int]], None]:
    def add(at: Customer, start: Callable[[], int]) -> None:
        for times in (1, 10):
            at.tcp("cubic", ecn=ecn, rtt_ms=times * at.base_rtt_ms, start=start())

    return add


EIGHT = ("reno", "cubic", "htcp", "vegas", "bbr", "bbr3+ECN", "dctcp+ECN", "prague+ECN")
CELLS = {
    "cubic-e+cubic": Cell("CUBIC with and without ECN", _tcp("cubic+ECN", "cubic")),
    "cubic+bbr": Cell("CUBIC, BBRv1", _tcp("cubic", "bbr")),
    "cubic-e+bbr-e": Cell("CUBIC, BBRv1, both ECN", _tcp("cubic+ECN", "bbr+ECN")),
    "cubic+bbr3": Cell("CUBIC, BBRv3", _tcp("cubic", "bbr3")),
    "cubic-e+bbr3-e": Cell("CUBIC, BBRv3, both ECN", _tcp("cubic+ECN", "bbr3+ECN")),
    "prague+cubic-e": Cell("Prague, CUBIC with ECN", _tcp("prague+ECN", "cubic+ECN")),
    "cubic+udp3": Cell("CUBIC, UDP of 3x", _beside_udp("cubic", 3, "not-ect")),
    "cubic-e+flood10": Cell("CUBIC with ECN, ECT(0) of 10x", _beside_udp("cubic+ECN", 10, "ect0")),
    "two-rtts": Cell("CUBIC, base RTT and 10x", _two_rtts("off"), longest_rtts=10),
    "two-rtts-e": Cell("CUBIC with ECN, base RTT and 10x", _two_rtts("on"), longest_rtts=10),
    "eight": Cell("8 different controls", _tcp(*EIGHT)),
    "5-cubic-e": Cell("5 CUBIC with ECN", _tcp(*["cubic+ECN"] * 5)),
    "8-cubic": Cell("8 CUBIC", _tcp(*["cubic"] * 8)),
    "8-cubic-e": Cell("8 CUBIC with ECN", _tcp(*["cubic+ECN"] * 8)),
    "16-cubic-e": Cell("16 CUBIC with ECN", _tcp(*["cubic+ECN"] * 16)),
    "24-cubic-e": Cell("24 CUBIC with ECN", _tcp(*["cubic+ECN"] * 24)),
    "40-cubic-e": Cell("40 CUBIC with ECN", _tcp(*["cubic+ECN"] * 40)),
    "64-cubic-e": Cell("64 CUBIC with ECN", _tcp(*["cubic+ECN"] * 64)),
    "short": Cell("CUBIC with and without ECN, short flows", _tcp("cubic+ECN", "cubic"), short=0.2),
}
LIVE_CELLS = (
    "cubic-e+cubic",
    "cubic+bbr",
    "cubic+udp3",
    "cubic-e+flood10",
    "prague+cubic-e",
    "two-rtts",
    "two-rtts-e",
    "8-cubic",
    "8-cubic-e",
    "16-cubic-e",
)
"""Those of controls that Linux has, or that BPF adds."""
SHORT_SIZES = Sizes("20000 0\n500000 1\n")
"""Bytes of the short flows: 20 to 500 kB, all alike likely."""


def can_be_spared(control: str, share_mbps: float, rtt_ms: float) -> bool:
    """Whether early marks can spare a flow with ECN all losses: its control heeds them, and its share is packets enough a round trip."""
    heeds = control != "bbr3" or rtt_ms <= BBR3_HEEDS_MS
    window = share_mbps * 1e6 * (rtt_ms / 1e3) / MTU_BITS
    return heeds and window >= LEAST_WINDOW.get(control, math.inf)


def build(
    contender: str,
    cell: str,
    rate_mbps: float,
    rtt_ms: float,
    duration_s: int,
    seed: int,
    *,
    apart: bool = False,
) -> Customer:
    """The network of a case."""
    chance, kind = Rng(seed), CELLS[cell]
    at = Customer(contender, rate_mbps, rtt_ms, longest_rtt_ms=kind.longest_rtts * rtt_ms, apart=apart)
    kind.add(at, lambda: chance.randrange(SECOND))
    if kind.short:
        at.workload(kind.short, duration_s * SECOND, sizes=SHORT_SIZES, seed=seed, ecn="on")
    at.attach("1 s", by_flow=not kind.short)
    return at


def measure(contender: str, cell: str, rate_mbps: float, rtt_ms: float) -> Callable[[Result], list[Row]]:
    """A row for each long flow."""

    def rows(result: Result) -> list[Row]:
        at = build(contender, cell, rate_mbps, rtt_ms, SETTLED_S, 1)
        total = sent(result, PASSED).mbps(SETTLED_S) / rate_mbps - 1
        shares = at.shares_mbps()
        if CELLS[cell].short:
            shares = [share * (1 - CELLS[cell].short) for share in shares]
        histories = at.histories(result)
        rates = [history.mbps(SETTLED_S) for history in histories]
        fairness = jain(pl.Series([rate / share for rate, share in zip(rates, shares, strict=True)]))
        out: list[Row] = []
        for number, (flow, share, history, rate) in enumerate(
            zip(at.flows, shares, histories, rates, strict=True)
        ):
            worst = float(history.windows_mbps(WINDOW_S, SETTLED_S).min())
            tcp = flow.kind == "tcp"
            spec = flow.spec
            marked = tcp and getattr(spec, "ecn", "off") in ("on", "accurate")
            control = getattr(spec, "congestion_control", "udp")
            out.append(
                {
                    **burst_columns(contender, rate_mbps, at.longest_rtt_ms),
                    "cell": cell,
                    "target_mbps": rate_mbps,
                    "base_rtt_ms": rtt_ms,
                    "flow": number,
                    "label": f"{control}{' ECN' if marked else ''}",
                    "goodput_mbps": rate / (1500 / 1448) if tcp else rate * 1472 / 1500,
                    "ip_mbps": rate,
                    "share_mbps": share,
                    "of_share": rate / share,
                    "worst_10_s": worst / share,
                    "jain": fairness,
                    "retransmits": retransmits_since(result, flow, LOSS_FREE_S) if tcp else None,
                    "spared": marked and can_be_spared(control, share, rtt_ms),
                    "total_error": total,
                }
            )
        return out

    return rows


def label(row: Row) -> str:
    """`cubic+bbr, flow 1 (bbr)`."""
    return f"{row['cell']}, flow {row['flow']} ({row['label']})"


def worst_of_cells(rows: list[Row], contender: str) -> dict[str, float]:
    """The worst ten seconds of any flow, by cell."""
    return least(
        [row for row in rows if row["scheme"] == contender], "worst_10_s", lambda row: str(row["cell"])
    )


def claims_of(rows: list[Row]) -> list[Claim]:
    """The properties of the meter, for ours and for peers."""
    out: list[Claim] = []
    for name, way in CONTENDERS.items():
        own = [row for row in rows if row["scheme"] == name]
        if not own or way.of not in ("ours", "peer"):
            continue
        published = None if way.of == "ours" else "max-min fair, without a bound in time (abstracts)"
        statement = f"{way.text}: no flow below half of its max-min share in any ten seconds from the tenth on, with any seed"
        worst = least(own, "worst_10_s", label)
        out.append(
            between(
                f"{name}-half",
                way.of,
                statement,
                worst,
                HALF,
                published=published,
                why=way.why("share"),
                form=Unit(),
            )
        )
        errors = medians(own, "total_error", lambda row: str(row["cell"]))
        statement = f"{way.text}: all flows together within 2 % of the rate, from the tenth second on"
        out.append(
            between(
                f"{name}-rate",
                way.of,
                statement,
                errors,
                -0.02,
                0.02,
                published=None if way.of == "ours" else "enforces the rate (abstracts)",
                why=way.why("rate"),
                form=Percents(),
            )
        )
        if way.of != "ours":
            continue
        spared = most([row for row in own if row["spared"]], "retransmits", label)
        if spared:
            statement = (
                f"{way.text}: no retransmissions after {LOSS_FREE_S} s of flows that heed marks and whose share is two "
                "packets a round trip or more"
            )
            out.append(between(f"{name}-loss", "ours", statement, spared, 0, 0, why=WHY_LOSS))
        for peer in ("bcpqp", "bcpqp-1s"):
            out += _against(rows, name, peer)
    return out


def _against(rows: list[Row], ours: str, peer: str) -> list[Claim]:
    """At least as good as BC-PQP in each cell, and with no more losses where a flow has no ECN."""
    mine, theirs = (worst_of_cells(rows, name) for name in (ours, peer))
    # A share is at most 1: what a peer lets pass in addition to the rate does not count for it.
    both = {cell: min(mine[cell], 1.0) - min(theirs[cell], 1.0) for cell in mine if cell in theirs}
    if not both:
        return []
    texts = f"{CONTENDERS[ours].text} against {CONTENDERS[peer].text}"
    statement = (
        f"{texts}: in each cell the worst ten seconds of any flow are at least as good (to 0.02 of a share)"
    )
    out = [between(f"{ours}-{peer}-share", "ours", statement, both, -0.02, why=CONTENDERS[ours].why("share"))]
    plain = [row for row in rows if not row["spared"] and row["retransmits"] is not None]
    counts = [
        medians([row for row in plain if row["scheme"] == name], "retransmits", label)
        for name in (ours, peer)
    ]
    more = {flow: count - counts[1][flow] for flow, count in counts[0].items() if flow in counts[1]}
    if more:
        statement = (
            f"{texts}: no more retransmissions of any flow without ECN, or whose share is too small for it"
        )
        out.append(
            between(f"{ours}-{peer}-loss", "ours", statement, more, high=0, why=CONTENDERS[ours].why("loss"))
        )
    return out


@experiment(
    "meter.fair",
    TABLE,
    quick={
        "cells": ("cubic-e+cubic", "cubic+bbr", "cubic+udp3", "8-cubic-e"),
        "schemes": ("plain-1s", "fair", "bcpqp-1s", "fairpolicer-1s", "drr"),
        "duration_s": 30,
    },
    backends=("sim", "live"),
    live={
        "cells": LIVE_CELLS,
        "schemes": ("plain-1s", "fair", "bcpqp-1s"),
        "duration_s": 30,
        "hosts": "apart",
    },
    live_quick={
        "cells": ("cubic-e+cubic", "cubic+udp3"),
        "schemes": ("plain-1s", "fair"),
        "duration_s": 20,
        "hosts": "apart",
    },
)
def fair(
    cells: Annotated[tuple[str, ...], OneOf(CELLS)] = tuple(CELLS),
    schemes: AnyContenders = SIMULATED,
    target_mbps: float = 100.0,
    base_rtt_ms: float = 10.0,
    duration_s: Annotated[int, AtLeast(SETTLED_S + WINDOW_S)] = 63,
    hosts: Annotated[str, OneOf(("one", "apart"))] = "one",
) -> Plan:
    """Flows of all kinds inside one meter: each one's share, its worst ten seconds, and losses."""
    apart = hosts == "apart"

    def case(scheme: str, cell: str) -> Case:
        def network(seed: int) -> Network:
            return build(scheme, cell, target_mbps, base_rtt_ms, duration_s, seed, apart=apart).network

        return Case(
            f"{scheme}-{cell}",
            network,
            f"{duration_s} s",
            measure(scheme, cell, target_mbps, base_rtt_ms),
        )

    def draw(runs: list[Run]) -> Figure:
        return draw_worst(all_rows(runs), cells, schemes, f"{target_mbps:g} Mbit/s, {base_rtt_ms:g} ms")

    return Plan([case(scheme, cell) for cell in cells for scheme in schemes], claims_of, draw)


def draw_worst(rows: list[Row], cells: tuple[str, ...], schemes: tuple[str, ...], where: str) -> Figure:
    """A line for each cell, a column for each contender: the worst ten seconds of the flow that fares worst."""
    values = {scheme: worst_of_cells(rows, scheme) for scheme in schemes}
    return draw_grid(
        values,
        {cell: CELLS[cell].text for cell in cells},
        Shading(
            "RdYlGn", 0, 1, "rate / max-min share", lambda value: f"{value:.2f}", lambda value: value < HALF
        ),
        f"The worst ten seconds, from the 10th second on, of the flow that fares worst, {where}\nbold: below half of its share",
    )
