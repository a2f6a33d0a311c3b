"""Fig. 7: a UDP flow that sends more than the link carries, and TCP flows that join it one after another.

With one queue the UDP flow has all, and Jain's index is one over the number of flows. With separation the UDP flow has a queue of its
own as soon as others are there. The paper leaves open the rate, the cap, the threshold, when flows join, and round-trip times.
"""

from __future__ import annotations

from functools import partial
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, Unit, between, medians, medians_of_times, most
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.separation.claims import UDP_ABOVE, judged
from tidegate.systems.separation.experiments.testbed import (
    FRAMING,
    MTU,
    ROUTERS,
    SCHEMES,
    SEPARATED,
    STEP_S,
    Testbed,
    goodput_of,
    goodputs,
    idle_while_waiting,
    jain,
    per_step,
)

TCP_FLOWS = 3
RTTS_MS = (10.0, 20.0, 40.0)
UDP_PAYLOAD = 1472
SETTLE_S = 3.0


class Policed(Controller):
    """Notes when a queue for UDP has its first flow."""

    def __init__(self, bed: Testbed) -> None:
        self.period = "100 ms"
        self._bed = bed

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note how many flows are policed."""
        controller = self._bed.controller
        plan = controller.plan if controller is not None else None
        policed = 0 if plan is None else sum(flow.protocol == 17 and q > 0 for flow, q in plan.flows.items())
        switch.note("policed", float(policed))


@experiment(
    "separation.udp",
    (
        "scheme",
        "udp_part",
        "phase",
        "udp_mbps",
        "tcp_mbps",
        "tcp_over_fair",
        "jain",
        "idle_while_waiting",
        "detected_s",
        "alarms",
    ),
    backends=("sim", "live"),
    quick={"rate_mbps": 100.0, "unit_s": 12.0, "fair_s": 30.0},
)
def udp(
    schemes: Annotated[tuple[str, ...], OneOf(SCHEMES)] = ("fifo", "drr", "guarantee", "cap"),
    rate_mbps: Annotated[float, AtLeast(10.0)] = 1000.0,
    unit_s: Annotated[float, AtLeast(6.0)] = 60.0,
    udp_part: Annotated[float, AtLeast(0.05, 5.0)] = 1.2,
    fair_part: Annotated[float, AtLeast(0.01, 0.39)] = 0.24,
    fair_s: Annotated[float, AtLeast(10.0)] = 240.0,
    period_ms: Annotated[float, AtLeast(100.0)] = 500.0,
    buffer_ms: float = 40.0,
    router: Annotated[str, OneOf(ROUTERS)] = "tidegate",
) -> Plan:
    """A UDP flow at 1.2 times the link's rate, and three TCP flows that join: shares by phase, detection, false alarms (Fig. 7)."""
    cases = []
    options = {"period": f"{period_ms} ms", "long_bytes": "1 MB", "classes": 3, "udp_above": UDP_ABOVE}
    for scheme in schemes:
        for part, end_s in ((udp_part, (TCP_FLOWS + 1) * unit_s), (fair_part, fair_s)):
            fair = part == fair_part
            if fair and scheme not in SEPARATED:
                continue
            bed = Testbed(scheme, rate_mbps, buffer_ms, options, router)
            sender, receiver = bed.ends(RTTS_MS[0])
            ip_rate = part * rate_mbps * MTU / (MTU + FRAMING)
            bed.network.udp(sender, receiver, rate=f"{ip_rate:.6f} Mbit/s", payload=UDP_PAYLOAD, label="udp")
            for number in range(TCP_FLOWS):
                bed.tcp(RTTS_MS[number], 0.5 if fair else (number + 1) * unit_s)
            if bed.controller is not None:
                monitor = next(node for node in bed.network.nodes if node.name == "monitor")
                bed.network.control(Policed(bed), monitor)  # type: ignore[arg-type]
            measure = partial(_rows, bed, part, fair, unit_s, end_s)
            cases.append(Case(f"{scheme}-{part:g}", bed.network, f"{end_s} s", measure))
    return Plan(cases, _claims, partial(_draw, rate_mbps))


def _udp_mbps(result: Result, sent_mbps: float, end_s: float) -> np.ndarray:
    """What is left of the link: Mbit/s of IP in each step that is not TCP's."""
    queue = result.queue_samples.filter((pl.col("queue") == "r1 -> r2") & (pl.col("number") == 0))
    sent = per_step(queue["time_s"].to_numpy(), queue["sent_bytes"].to_numpy(), end_s)
    ip = sent * 8 / STEP_S / 1e6 * MTU / (MTU + FRAMING)
    return np.minimum(ip, sent_mbps)


def _rows(bed: Testbed, part: float, fair: bool, unit_s: float, end_s: float, result: Result) -> list[Row]:
    tcp = goodputs(result, TCP_FLOWS + 1, end_s)[1:]
    all_ip = _udp_mbps(result, float("inf"), end_s)
    # In payload of TCP's packets, to compare like with like.
    other = np.maximum(goodput_of(all_ip * 1e6) - tcp.sum(axis=0), 0.0)  # type: ignore[arg-type]
    noted = result.notes.filter(pl.col("quantity") == "policed")
    policed = noted.filter(pl.col("value") > 0)["time_s"]
    rows: list[Row] = []
    for phase in range(1) if fair else range(TCP_FLOWS + 1):
        begin = 0.0 if fair else phase * unit_s
        end = end_s if fair else begin + unit_s
        flows = TCP_FLOWS if fair else phase
        settled = round((begin + SETTLE_S) / STEP_S), round(end / STEP_S)
        own = tcp[:flows, slice(*settled)].mean(axis=1)
        udp_rate = float(other[slice(*settled)].mean())
        demands = [part * bed.fair([float("inf")])[0], *(float("inf") for _ in range(flows))]
        wanted = bed.fair(demands)[1:]
        after = policed.filter(policed >= begin)
        rows.append(
            {
                "scheme": bed.scheme,
                "udp_part": part,
                "phase": f"{flows} TCP flows" if flows != 1 else "1 TCP flow",
                "udp_mbps": udp_rate,
                "tcp_mbps": float(own.sum()),
                "tcp_over_fair": float((own / wanted).min()) if flows else None,
                "jain": jain(np.array([udp_rate, *own])),
                "idle_while_waiting": idle_while_waiting(result, begin + SETTLE_S, end),
                "detected_s": None
                if bed.controller is None or fair or after.is_empty()
                else float(after.min()) - begin,  # type: ignore[arg-type]
                "alarms": int(policed.len() > 0) if fair and bed.controller is not None else None,
            }
        )
    return rows


def _claims(rows: list[Row]) -> list[Claim]:
    hostile = [row for row in rows if row["alarms"] is None]
    claims = []

    def label(row: Row) -> str:
        return f"{row['scheme']}, {row['phase']}"

    separated = [row for row in hostile if row["scheme"] in SEPARATED]
    shares = medians(
        [row for row in separated if row["tcp_over_fair"] is not None],
        lambda row: float(row["tcp_over_fair"]) - 1,
        label,
    )
    if shares:
        claims.append(
            between(
                "fair",
                "ours",
                "With separation each TCP flow has its fair share within 10 %",
                shares,
                -0.10,
                0.10,
                why="a flow that has just joined has not grown to its share yet",
                form=Percents(),
            )
        )
    above = [row for row in separated if row["udp_part"] > UDP_ABOVE]
    detected = medians_of_times(above, "detected_s", label)
    if detected:
        claims.append(
            between(
                "detected",
                "ours",
                "A UDP flow above the threshold is detected within 3 s",
                detected,
                high=3.0,
                form=Unit("s"),
            )
        )
    alarms = most(
        [row for row in rows if row["alarms"] is not None], "alarms", lambda row: str(row["scheme"])
    )
    if alarms:
        claims.append(
            between(
                "alarms",
                "ours",
                "A UDP flow below the threshold is never policed",
                alarms,
                high=0.0,
                form=Unit("alarms"),
            )
        )
    return claims + judged(rows, "separation.udp")


def _draw(rate_mbps: float, runs: list[Run]) -> Figure:
    """Goodput of each flow over time."""
    shown = [run for run in of_first_seed(runs) if run.rows and run.rows[0]["alarms"] is None]
    figure = Figure(figsize=(4.2 * max(len(shown), 1), 3.2), layout="constrained")
    for panel, run in zip(
        figure.subplots(1, max(len(shown), 1), squeeze=False, sharey=True)[0], shown, strict=False
    ):
        samples = run.tables["flow_samples"]
        link = run.tables["queue_samples"].filter((pl.col("queue") == "r1 -> r2") & (pl.col("number") == 0))
        at = link["time_s"].to_numpy()
        total = np.diff(link["sent_bytes"].to_numpy()) * 8 / np.diff(at) / 1e6 * 1448 / (MTU + FRAMING)
        for number in range(1, TCP_FLOWS + 1):
            own = samples.filter(samples["flow"] == number)
            times, received = own["time_s"].to_numpy(), own["bytes_received"].to_numpy()
            if len(times) > 2:
                rate = np.interp(at[1:], times[1:], np.diff(received) * 8 / np.diff(times) / 1e6, left=0.0)
                total = total - rate
                panel.plot(at[1:], rate, label=f"TCP {number}, {RTTS_MS[number - 1]:g} ms", linewidth=0.9)
        panel.plot(at[1:], np.maximum(total, 0), label="UDP", color="0.3", linewidth=0.9)
        assert run.rows is not None
        panel.set_title(SCHEMES[run.rows[0]["scheme"]], fontsize=9)
        panel.set_xlabel("time (s)")
        panel.set_ylim(0, rate_mbps * 1.05)
        panel.grid(alpha=0.25)
    figure.axes[0].set_ylabel("goodput (Mbit/s)")
    figure.axes[0].legend(fontsize=7)
    return figure
