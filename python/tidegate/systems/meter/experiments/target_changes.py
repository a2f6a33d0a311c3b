"""The target changes while a flow runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, medians, most
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import Case, Plan, Run, experiment
from tidegate.measures import History
from tidegate.results import Result
from tidegate.systems.meter.controller import Meter
from tidegate.systems.meter.experiments.testbed import SCHEMES, Ours, Seconds, history, star
from tidegate.systems.meter.tables import MeterTables

SECOND = units.PS_PER_S
WHY_CHANGED = "a limit is a time: what a queue holds at the old target passes at the new one; a large window takes time to shrink"


class Steps(Controller):
    """Gives meter 0 the next target in time."""

    period = "1 s"

    def __init__(self, meters: MeterTables, targets_mbps: Sequence[int], each_s: int) -> None:
        self._meters = meters
        self._targets = [mbps * 1_000_000 for mbps in targets_mbps]
        self._each = each_s * SECOND

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Set the target of this time."""
        self._meters.retarget(switch, 0, self._targets[min(now // self._each, len(self._targets) - 1)])


@experiment("meter.step", backends=("sim", "live"), quick={"each_s": 20}, also="meter.target_changes")
def step(
    targets_mbps: tuple[int, ...] = (400, 200, 600),
    each_s: Seconds = 30,
    base_rtts_ms: tuple[float, ...] = (0.1, 0.5, 1.0),
    schemes: Ours = ("paper", "fair"),
) -> Plan:
    """The target changes while a flow runs: time to reach it, and overshoot."""
    duration_s = each_s * len(targets_mbps)

    def measure(scheme: str, rtt: float) -> Callable[[Result], list[Row]]:
        def rows(result: Result) -> list[Row]:
            passed = history(result.notes, 0)
            out = []
            for number, target in enumerate(targets_mbps):
                begin, end = number * each_s, (number + 1) * each_s
                kept = (passed.time_s >= begin - 1e-9) & (passed.time_s <= end + 1e-9)
                errors = History(passed.time_s[kept], passed.bytes[kept]).windows_mbps(1) / target - 1
                # The first second after which no second is beyond 5 %.
                beyond = np.flatnonzero(np.abs(errors) > 0.05)
                settled = 0 if not len(beyond) else int(beyond[-1]) + 1
                out.append(
                    {
                        "scheme": scheme,
                        "base_rtt_ms": rtt,
                        "target_mbps": target,
                        "flow": 0,
                        "achieved_mbps": float((1 + errors.mean()) * target),
                        "relative_error": float(errors[len(errors) // 2 :].mean()),
                        "settling_s": settled,
                        "overshoot": float(max(errors[1:].max(), 0.0)),
                    }
                )
            return out

        return rows

    def case(scheme: str, rtt: float) -> Case:
        lab = star(rtt, data_plane=SCHEMES[scheme].data_plane)
        net, (a, b) = lab.network, lab.hosts
        flow = net.tcp(a, b, congestion_control="cubic", ecn="on")
        meters = [Meter(0, targets_mbps[0] * 1_000_000, (net.five_tuple(flow),))]
        controller = lab.meter(meters, scheme)
        assert controller is not None, "meters of `Ours` can change"
        net.control(Steps(controller, targets_mbps, each_s))
        return Case(f"{scheme}-{rtt:g}ms", net, f"{duration_s} s", measure(scheme, rtt))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [row for row in rows if row["scheme"] == "fair"]
        if not ours:
            return []

        def label(row: Row) -> str:
            return f"{row['base_rtt_ms']:g} ms, {row['target_mbps']} Mbit/s"

        return [
            between(
                "error",
                "ours",
                "fair meter: at most 5 % from the new target in the second half of its time",
                medians(ours, "relative_error", label),
                -0.05,
                0.05,
                why=WHY_CHANGED,
                form=Percents(),
            ),
            between(
                "overshoot",
                "ours",
                "fair meter: no second more than 50 % above the new target, after the first",
                most(ours, "overshoot", label),
                -1,
                0.5,
                why=WHY_CHANGED,
                form=Percents(),
            ),
        ]

    def draw(runs: list[Run]) -> Figure:
        figure = Figure(figsize=(9, 1 + 2.3 * len(base_rtts_ms)), layout="constrained")
        panels = figure.subplots(len(base_rtts_ms), 1, squeeze=False, sharex=True)[:, 0]
        edges = [each_s * number for number in range(len(targets_mbps) + 1)]
        for panel, rtt in zip(panels, base_rtts_ms, strict=True):
            panel.stairs(targets_mbps, edges, color="black", linewidth=1.2, label="target", baseline=None)
            for scheme in schemes:
                for run in runs:
                    if run.case == f"{scheme}-{rtt:g}ms" and run.seed == runs[0].seed:
                        passed = history(run.tables["notes"], 0)
                        rates = passed.windows_mbps(1)
                        panel.plot(
                            passed.time_s[1:], rates, color=SCHEMES[scheme].colour, label=SCHEMES[scheme].text
                        )
            panel.set(
                title=f"base RTT {rtt:g} ms",
                ylabel="rate (Mbit/s)",
                ylim=(0, None),
                xlim=(0, duration_s),
            )
            panel.grid(alpha=0.3)
        panels[0].legend(loc="upper left", fontsize="small", ncols=3)
        panels[-1].set_xlabel("time (s)")
        figure.suptitle("The target changes; rates over one second")
        return figure

    return Plan([case(scheme, rtt) for rtt in base_rtts_ms for scheme in schemes], claims, draw)
