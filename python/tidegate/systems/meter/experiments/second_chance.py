"""The second chance of marked packets on and off (section IV-B and Fig. 6 of the paper, without data there).

Beside it the price: a sender of ECT(0) datagrams that heeds no mark is marked by the meter itself, and each spared packet pays at
least half of its length.
"""

from __future__ import annotations

from dataclasses import replace

from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, most
from tidegate.experiments import Case, Plan, Run, experiment
from tidegate.measures import last
from tidegate.papers import of_run
from tidegate.results import Result
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.controller import PAPER, UNBOUNDED, Bucket, Fixed, MeterController
from tidegate.systems.meter.experiments.scheme_grid import QUICK_S
from tidegate.systems.meter.experiments.testbed import Counts, Seconds, history, meters_of, star
from tidegate.systems.meter.experiments.variants import COUNTERS, TABLE, draw_settings, varied_case

BUCKETS = {"on": PAPER, "off": replace(PAPER, second_chance=False)}
FLOOD = 10
"""Datagrams of the flood, in targets."""


def flood(setting: str, bucket: Bucket, base_rtt_ms: float, target_mbps: int, seconds: int) -> Case:
    """ECT(0) datagrams at `FLOOD` times the target, through a meter whose rate is the target."""
    lab = star(base_rtt_ms)
    net, (a, b) = lab.network, lab.hosts
    flow = net.udp(a, b, rate=FLOOD * target_mbps * 1_000_000, ecn="ect0")
    meters = meters_of(net, [flow], [target_mbps])
    net.control(MeterController(meters, ports=net.forwarding(lab.switch), bucket=bucket, law=Fixed()))
    net.control(Counts(1, counters=COUNTERS))

    def measure(result: Result) -> Row:
        passed = history(result.notes, 0)
        allowed = target_mbps * 125_000 * float(passed.time_s[-1]) + units.size(bucket.burst)
        counts = {name: last(result.notes, f"meter_0_{name}_packets") for name in COUNTERS[1:]}
        return {
            "setting": setting,
            "base_rtt_ms": base_rtt_ms,
            "target_mbps": target_mbps,
            "achieved_mbps": passed.mbps(),
            "relative_error": passed.mbps() / target_mbps - 1,
            # Of TCP alone.
            "goodput_error": None,
            "deviation": None,
            "timeouts": None,
            "drops": counts["dropped"],
            "ce_marks": counts["marked"],
            "spared": counts["spared"],
            "over_bound": float(passed.bytes[-1]) / allowed - 1,
            "congestion_control": None,
            "kind": "flood",
        }

    name = f"flood-{setting.replace(' ', '-')}-{base_rtt_ms:g}ms-{target_mbps}"
    return Case(name, net, f"{seconds} s", measure)


@experiment("meter.second_chance", TABLE, quick={"duration_s": QUICK_S, "rates_mbps": (100,)})
def second_chance(
    rates_mbps: tuple[int, ...] = (100, 200, 400, 800),
    base_rtts_ms: tuple[float, ...] = (0.012, 0.1, 1.0),
    duration_s: Seconds = 180,
    flood_s: Seconds = 20,
) -> Plan:
    """The second chance of marked packets, on and off: TCP, and a flood of ECT(0) datagrams (section IV-B, Fig. 6)."""

    def setting(way: str) -> str:
        return f"second chance {way}"

    def claims(rows: list[Row]) -> list[Claim]:
        tcp = [row for row in rows if row["kind"] == "tcp"]
        floods = [row for row in rows if row["kind"] == "flood"]

        def label(row: Row) -> str:
            return f"{row['setting']}, {row['target_mbps']} Mbit/s"

        return [
            *of_run(CLAIMS, "meter.second_chance", tcp, {"duration_s": duration_s}),
            between(
                "bound",
                "ours",
                f"ECT(0) datagrams at {FLOOD} times the rate: at most rate x time + bucket passes",
                most(floods, "over_bound", label),
                -1,
                0.001,
                why="a packet that the meter marked passes for the tokens that are left, half of its length or more",
                form=Percents(),
            ),
        ]

    def draw(runs: list[Run]) -> Figure:
        return draw_settings(
            [run for run in runs if not run.case.startswith("flood")],
            [setting(way) for way in BUCKETS],
            base_rtts_ms,
            lower="timeouts_per_s",
            lower_label="timeouts per second",
            title=f"The paper's meter with and without second chance, mean of {duration_s} s",
            xlabel="",
            per_cent=False,
        )

    def case(way: str, rtt: float, rate: int) -> Case:
        return varied_case(
            setting(way), BUCKETS[way], UNBOUNDED, rtt, rate, duration_s, kind="tcp", over_bound=None
        )

    cases = [case(way, rtt, rate) for rtt in base_rtts_ms for way in BUCKETS for rate in rates_mbps]
    cases += [
        flood(setting(way), BUCKETS[way], base_rtts_ms[0], rate, flood_s)
        for way in BUCKETS
        for rate in rates_mbps
    ]
    return Plan(cases, claims, draw)
