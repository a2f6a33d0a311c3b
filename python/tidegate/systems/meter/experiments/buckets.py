"""Plain buckets of other sizes (sections I and V-A of the paper, without data there).

The paper tried the range of Netgear's meter, 1 to 128 KB, and says that less than 128 KB gives TCP still less.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, most
from tidegate.experiments import AtLeast, Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.controller import PLAIN, Fixed
from tidegate.systems.meter.experiments.scheme_grid import QUICK_S
from tidegate.systems.meter.experiments.testbed import Seconds
from tidegate.systems.meter.experiments.variants import TABLE, draw_settings, varied_case

PACKET_BYTES = 1500


@experiment("meter.buckets", TABLE, quick={"duration_s": QUICK_S, "rates_mbps": (100, 400)})
def buckets(
    sizes_kib: Annotated[tuple[int, ...], AtLeast(1, 100_000)] = (1, 8, 32, 128),
    rates_mbps: tuple[int, ...] = (100, 200, 400, 800),
    base_rtts_ms: tuple[float, ...] = (0.012, 0.1, 1.0),
    duration_s: Seconds = 180,
) -> Plan:
    """One TCP flow through plain buckets of 1 to 128 KiB (sections I and V-A)."""

    def setting(size: int) -> str:
        return f"{size} KiB"

    def claims(rows: list[Row]) -> list[Claim]:
        out = of_run(CLAIMS, "meter.buckets", rows, {"duration_s": duration_s})
        small = [row for row in rows if row["size_kib"] * 1024 < PACKET_BYTES]
        if small:
            out.append(
                between(
                    "whole",
                    "ours",
                    f"a bucket of less than a packet of {PACKET_BYTES} bytes passes none of them",
                    most(small, "goodput_error", lambda row: f"{row['case']}"),
                    -1,
                    -1,
                    why="not explained",
                    form=Percents(),
                )
            )
        return out

    def draw(runs: list[Run]) -> Figure:
        return draw_settings(
            runs,
            [setting(size) for size in sizes_kib],
            base_rtts_ms,
            lower="timeouts_per_s",
            lower_label="timeouts per second",
            title=f"One CUBIC flow through plain buckets, mean of {duration_s} s",
            xlabel="size of the bucket",
            per_cent=False,
        )

    cases = [
        varied_case(
            setting(size), replace(PLAIN, burst=setting(size)), Fixed(), rtt, rate, duration_s, size_kib=size
        )
        for rtt in base_rtts_ms
        for size in sizes_kib
        for rate in rates_mbps
    ]
    return Plan(cases, claims, draw)
