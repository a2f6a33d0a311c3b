"""Senders that do not respond, and that lie about ECN: bytes passed over any window against rate x T + burst.

Each window that begins and ends at a sample counts.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated

from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Row, between
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.experiments.contender_grid import Shading, draw_grid
from tidegate.systems.meter.experiments.contenders import (
    CONTENDERS,
    SIMULATED,
    Contenders,
    burst_bytes,
    burst_columns,
)
from tidegate.systems.meter.experiments.customer import PASSED, Customer, excess, sent

BASE_RTT_MS = 1.0
SAMPLE = "1 ms"
PACKET = 1500
HEADERS = 28


@dataclass(frozen=True)
class Pattern:
    """When senders send, and what all of them offer together meanwhile, as a multiple of the rate."""

    kind: str
    times: float
    on: str = "1 s"
    off: str = "1 s"


PATTERNS = {
    "constant": Pattern("constant", 3),
    # A bucket of a second is full again each time.
    "on-off": Pattern("on-off", 10, "500 ms", "2 s"),
    # 1.45 times the rate on the whole: silent for BC-PQP's period of 200 ms, and then what it lets pass in one.
    "pulses": Pattern("on-off", 16, "20 ms", "200 ms"),
}
CODES = ("not-ect", "ect0", "ect1", "ce")
TABLE = (
    "scheme",
    "burst_bytes",
    "case",
    "passed_mbps",
    "excess_bytes",
    "of_burst",
)


def cell_of(code: str, pattern: str, size: int, senders: int) -> str:
    """`ce-on-off-1500-16`."""
    return f"{code}-{pattern}-{size}-{senders}"


def build(
    contender: str, code: str, pattern: str, size: int, senders: int, rate: float, seed: int
) -> Network:
    """The network of a case."""
    chance, way = random.Random(seed), PATTERNS[pattern]
    at = Customer(contender, rate, BASE_RTT_MS)
    for _ in range(senders):
        at.udp(
            way.times / senders,
            payload=size - HEADERS,
            pattern=way.kind,
            on=way.on,
            off=way.off,
            ecn=code,
            start=chance.randrange(units.PS_PER_S // 10),
        )
    return at.attach(SAMPLE, sinks=False)


def measure(contender: str, rate_mbps: float, **about: object) -> Callable[[Result], Row]:
    """The row of a case."""

    def row(result: Result) -> Row:
        passed = sent(result, PASSED)
        burst = burst_bytes(contender, rate_mbps, BASE_RTT_MS)
        beyond = excess(passed, rate_mbps)
        return {
            **burst_columns(contender, rate_mbps, BASE_RTT_MS),
            **about,
            "target_mbps": rate_mbps,
            "passed_mbps": passed.mbps(),
            "excess_bytes": beyond,
            "excess_ms": beyond * 8e-3 / rate_mbps,
            # A packet more is what times in whole microseconds and the samples can add.
            "of_burst": max(0.0, beyond - PACKET) / burst,
        }

    return row


def claims_of(rows: list[Row]) -> list[Claim]:
    """The bound, for ours and for peers."""
    out: list[Claim] = []
    for name, way in CONTENDERS.items():
        own = [row for row in rows if row["scheme"] == name]
        if not own or way.of not in ("ours", "peer"):
            continue
        # Of a scheduler nothing of the kind was published.
        of = way.of if way.data_plane is not None else "ours"
        published = None if of == "ours" else "enforces the rate, without a bound in bytes (abstracts)"
        most: dict[str, float] = {}
        for row in own:
            most[row["cell"]] = max(most.get(row["cell"], 0.0), row["of_burst"])
        statement = f"{way.text}: over any window at most rate x T + burst, whoever sends (excess in bursts)"
        out.append(
            between(f"{name}-bound", of, statement, most, 0, 1.0, published=published, why=way.why("bound"))
        )
    return out


@experiment(
    "meter.cheat",
    TABLE,
    quick={
        "codes": ("not-ect", "ce"),
        "patterns": ("constant", "on-off"),
        "packet_bytes": (1500,),
        "senders": (1,),
        "schemes": ("plain-1s", "fair", "bcpqp-1s", "fairpolicer-1s"),
    },
)
def cheat(
    codes: Annotated[tuple[str, ...], OneOf(CODES)] = CODES,
    patterns: Annotated[tuple[str, ...], OneOf(PATTERNS)] = tuple(PATTERNS),
    packet_bytes: Annotated[tuple[int, ...], AtLeast(40, 1500)] = (40, 1500),
    senders: Annotated[tuple[int, ...], AtLeast(1, 1000)] = (1, 16),
    schemes: Contenders = SIMULATED,
    target_mbps: float = 10.0,
    duration_s: Annotated[int, AtLeast(1)] = 20,
) -> Plan:
    """Unresponsive and lying senders: bytes passed over any window against rate x T + burst."""

    def case(scheme: str, code: str, pattern: str, size: int, number: int) -> Case:
        cell = cell_of(code, pattern, size, number)

        def network(seed: int) -> Network:
            return build(scheme, code, pattern, size, number, target_mbps, seed)

        about = {"cell": cell, "code": code, "pattern": pattern, "packet_bytes": size, "senders": number}
        return Case(f"{scheme}-{cell}", network, f"{duration_s} s", measure(scheme, target_mbps, **about))

    grid = [
        (code, pattern, size, number)
        for number in senders
        for size in packet_bytes
        for pattern in patterns
        for code in codes
    ]

    def draw(runs: list[Run]) -> Figure:
        rows = all_rows(runs)
        values: dict[str, dict[str, float]] = {scheme: {} for scheme in schemes}
        for row in rows:
            known = values[row["scheme"]]
            known[row["cell"]] = max(known.get(row["cell"], 0.0), row["of_burst"])
        cells = {
            cell_of(*each): f"{each[0]}, {each[1]}, {each[2]} B, {each[3]} sender{'s' * (each[3] > 1)}"
            for each in grid
        }
        shading = Shading(
            "RdYlGn_r", 0, 2, "excess / burst", lambda value: f"{value:.2f}", lambda value: value > 1
        )
        title = f"The most beyond rate x T in any window, in bursts, {target_mbps:g} Mbit/s; bold: more than the burst"
        return draw_grid(values, cells, shading, title)

    return Plan([case(scheme, *each) for each in grid for scheme in schemes], claims_of, draw)
