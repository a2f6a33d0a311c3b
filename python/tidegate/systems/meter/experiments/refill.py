"""Tokens by timer packets, as on the paper's switch, and how many a packet (section IV-A, equation (1)).

The paper takes N = 128 tokens a timer packet as a balance between bursts of tokens and the timer's cost. Beside that is the lazy
refill of this implementation, which computes the tokens from the time since the last packet and needs no timer.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import AtLeast, Plan, Run, experiment
from tidegate.papers import of_run
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.controller import PLAIN, Fixed
from tidegate.systems.meter.experiments.testbed import Seconds
from tidegate.systems.meter.experiments.variants import TABLE, draw_settings, varied_case

LAZY = "lazy"


@experiment(
    "meter.refill",
    (*TABLE, "timer_packets_per_s"),
    quick={"duration_s": 10, "rates_mbps": (100,), "tokens": (128, 8192)},
)
def refill(
    tokens: Annotated[tuple[int, ...], AtLeast(16, 131_072)] = (64, 128, 1024, 8192, 65_536),
    rates_mbps: tuple[int, ...] = (100, 400),
    base_rtts_ms: tuple[float, ...] = (0.1, 1.0),
    duration_s: Seconds = 40,
) -> Plan:
    """Tokens by timer packets, N a packet, beside a lazy refill: one TCP flow through a plain bucket (section IV-A)."""
    variants = {LAZY: PLAIN}
    variants |= {f"N {number}": replace(PLAIN, refill="timer", tokens=number) for number in sorted(tokens)}

    def claims(rows: list[Row]) -> list[Claim]:
        lazy = {
            (row["base_rtt_ms"], row["target_mbps"], row["seed"]): row for row in rows if not row["tokens"]
        }
        same = [
            {**row, "difference": row["goodput_error"] - lazy[_place(row)]["goodput_error"]}
            for row in rows
            if row["tokens"] == PLAIN.tokens
        ]
        out = of_run(CLAIMS, "meter.refill", rows, {"duration_s": duration_s})
        if same:
            out.append(
                between(
                    "lazy",
                    "ours",
                    f"the lazy refill has the goodput of timer packets of {PLAIN.tokens} tokens, within a point of the target",
                    medians(same, "difference", lambda row: str(row["case"])),
                    -0.01,
                    0.01,
                    why="where a plain bucket collapses, its rate is chaotic: one packet more or less at one time changes it",
                    form=Percents(),
                )
            )
        return out

    def draw(runs: list[Run]) -> Figure:
        return draw_settings(
            runs,
            list(variants),
            base_rtts_ms,
            lower="timeouts_per_s",
            lower_label="timeouts per second",
            title=f"One CUBIC flow through a plain bucket, N tokens a timer packet, mean of {duration_s} s",
            xlabel="refill; N tokens a timer packet",
            per_cent=False,
        )

    cases = [
        varied_case(
            name,
            bucket,
            Fixed(),
            rtt,
            rate,
            duration_s,
            tokens=bucket.tokens if name != LAZY else None,
            # Equation (1), the other way around.
            timer_packets_per_s=rate * 125_000 / bucket.tokens if name != LAZY else 0.0,
        )
        for rtt in base_rtts_ms
        for name, bucket in variants.items()
        for rate in rates_mbps
    ]
    return Plan(cases, claims, draw)


def _place(row: Row) -> tuple[float, int, int]:
    return row["base_rtt_ms"], row["target_mbps"], row["seed"]
