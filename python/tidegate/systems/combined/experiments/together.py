"""Each part alone, and all at once, on one switch with the same traffic: does each keep what it promises?

Port 1 (100 Mbit/s, DualPI2): two Prague and two CUBIC flows, and a customer's CUBIC flow behind a meter, the paper's or the fair one. Port
2 (100 Mbit/s): two flows whose control follows the stamps. All packets are stamped at both ports. The bounds were written down before the first run.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, Unit, between, medians, most
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.measures import Noted, goodputs_mbps, last, sampled_delays
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.combined.setup import METER_NAMES, combine, fair_meter, manage, meter, stamp, unmanaged
from tidegate.systems.meter.controller import Meter
from tidegate.systems.stamping.experiments.testbed import stamp_all
from tidegate.systems.stamping.format import Format

WARM_UP_S = 4
FORM = Format("320 ms", bits=8, bins="log", mantissa=5, carrier="shim")
WHY_QUEUE = "without DualPI2 a drop-tail queue that all share is behind the meter: the flow's losses are there, and none at the meter"
WHY_SHARE = "a fifth of the link, one flow's share, is less than the target: the queue holds the flow below it, and not the meter"
PARTS: Mapping[str, frozenset[str]] = {
    "meter alone": frozenset({"meter"}),
    "DualPI2 alone": frozenset({"aqm"}),
    "stamps alone": frozenset({"stamps"}),
    "together": frozenset({"meter", "aqm", "stamps"}),
}


class Counts(Controller):
    """Notes what the meter has let pass, and what the stamp has left alone, each second."""

    period = "1 s"

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note the counts."""
        packets, frames = switch.counter_read(METER_NAMES["passed"], 0, 1)[0].tolist()
        switch.note("meter_ip_bytes", frames - 14 * packets)
        switch.note("unstamped", int(switch.counter_read("unstamped", 0, 4).sum()))


@dataclass(frozen=True)
class Setting:
    """What is the same in all cases: the meter and its target, the rate of both ports, and the base RTT."""

    target_mbps: int = 10
    rate_mbps: int = 100
    rtt_ms: float = 10.0
    meter: str = "paper"


def network(parts: frozenset[str], setting: Setting) -> Network:
    """The switch with these parts set up; the traffic is the same."""
    net = Network()
    switch = combine(net, "switch", FORM, fair=setting.meter == "fair")
    # Plain routers would not know what to do with a shim: the switch leads to hosts.
    right, other = net.host("right"), net.host("other")
    ends = []
    for number in range(7):
        source = net.host(f"a{number}")
        net.link(source, switch, rate="1 Gbit/s", delay=0, queue="10000 packets")
        ends.append((source, other if number >= 5 else right))
    slow, second = (
        net.link(
            switch, host, rate=f"{setting.rate_mbps} Mbit/s", delay=f"{setting.rtt_ms / 2} ms", queue="4 BDP"
        )
        for host in (right, other)
    )
    stamp_all(net, [right, other, *(source for source, _ in ends)], FORM)
    size = 1460 - FORM.wire_bytes
    flows = [
        net.tcp(*ends[n], congestion_control="prague", ecn="accurate", mss=size, label=f"prague {n}")
        for n in (0, 1)
    ]
    flows += [net.tcp(*ends[n], congestion_control="cubic", mss=size, label=f"cubic {n}") for n in (2, 3)]
    customer = net.tcp(*ends[4], congestion_control="cubic", ecn="on", mss=size, label="metered 4")
    options = {
        "base_rtt": f"{setting.rtt_ms} ms",
        "rtt": f"{setting.rtt_ms} ms",
        "line_rate": f"{setting.rate_mbps} Mbit/s",
        "min_rate": "100 kbit/s",
        **FORM.control_options,
    }
    for n in (5, 6):
        net.tcp(
            *ends[n],
            congestion_control="stamp",
            control_options=options,
            ecn="off",
            mss=size,
            label=f"stamp {n}",
        )
    customers = [Meter(0, setting.target_mbps * 1_000_000, (net.five_tuple(customer),))]
    add_meters = fair_meter if setting.meter == "fair" else meter
    add_meters(net, switch, customers if "meter" in parts else [])
    # Without its part, DualPI2's tables say where packets go and manage no port.
    if "aqm" in parts:
        manage(net, switch, slow)
    else:
        unmanaged(net, switch)
    if "stamps" in parts:
        stamp(net, switch, slow, FORM)
        stamp(net, switch, second, FORM)
    net.control(Counts(), switch)
    net.record("20 ms", queues=[slow, second])
    return net


def _measure(name: str, target_mbps: int, duration_s: int, result: Result) -> Row:
    labels = dict(zip(result.flows["flow"], result.flows["label"], strict=True))
    goodputs = goodputs_mbps(result, WARM_UP_S, duration_s)

    def of(kind: str) -> list[float]:
        return [rate for flow, rate in goodputs.items() if labels[flow].startswith(kind)]

    noted = Noted(result.notes)
    passed = noted.since("meter_ip_bytes", WARM_UP_S, duration_s) * 8e-6 / (duration_s - WARM_UP_S)
    samples = result.queue_samples.filter(
        pl.col("queue") == "switch -> right", pl.col("time_s") > WARM_UP_S, pl.col("time_s") <= duration_s
    )
    classic, low = (
        float(samples.filter(pl.col("number") == number)["queue_delay_ms"].mean())  # type: ignore[arg-type]
        for number in (0, 1)
    )
    return {
        "parts": name,
        "metered_mbps": sum(of("metered")),
        "meter_off": passed / target_mbps - 1,
        "prague_mbps": float(np.mean(of("prague"))),
        "cubic_mbps": float(np.mean(of("cubic"))),
        "classic_ms_mean": classic,
        "low_ms_mean": low,
        "stamp_mbps": sum(of("stamp")),
        "stamp_queue_ms_mean": sampled_delays(result, "switch -> other", WARM_UP_S, duration_s).mean_ms,
        "unstamped": last(result.notes, "unstamped"),
    }


@experiment("combined.together", quick={"duration_s": 12})
def together(
    parts: Annotated[tuple[str, ...], OneOf(PARTS)] = tuple(PARTS),
    target_mbps: Annotated[int, AtLeast(1, 50)] = 10,
    duration_s: Annotated[int, AtLeast(WARM_UP_S + 2, 10_000)] = 30,
    rate_mbps: Annotated[int, AtLeast(20, 500)] = 100,
    rtt_ms: Annotated[float, AtLeast(1, 100)] = 10.0,
    meter: Annotated[str, OneOf(("paper", "fair"))] = "paper",
) -> Plan:
    """Meter, DualPI2 and stamping on one switch: each alone and all at once, with the same traffic."""
    setting = Setting(target_mbps, rate_mbps, rtt_ms, meter)
    cases = [
        Case(
            name.replace(" ", "-"),
            network(PARTS[name], setting),
            f"{duration_s} s",
            partial(_measure, name, target_mbps, duration_s),
        )
        for name in parts
    ]
    return Plan(cases, partial(_claims, setting), _draw)


def _claims(setting: Setting, rows: list[Row]) -> list[Claim]:
    def of(part: str, column: str) -> dict[str, float]:
        return medians(
            [row for row in rows if part in PARTS[row["parts"]]], column, lambda row: str(row["parts"])
        )

    shares = [{**row, "ratio": row["prague_mbps"] / row["cubic_mbps"]} for row in rows]
    ratios = medians(
        [row for row in shares if "aqm" in PARTS[row["parts"]]], "ratio", lambda row: str(row["parts"])
    )
    links = {name: value / setting.rate_mbps for name, value in of("stamps", "stamp_mbps").items()}
    return [
        between(
            "meter",
            "ours",
            "The meter passes its target within 5 %",
            of("meter", "meter_off"),
            -0.05,
            0.05,
            why=WHY_QUEUE if setting.rate_mbps >= 5 * setting.target_mbps else WHY_SHARE,
        ),
        between(
            "aqm-low",
            "ours",
            "DualPI2: the mean delay of the L queue is at most 1 ms",
            of("aqm", "low_ms_mean"),
            0,
            1,
            form=Unit("ms"),
        ),
        between(
            "aqm-classic",
            "ours",
            "DualPI2: the mean delay of the C queue is 0.5 to 1.5 of its target of 15 ms",
            of("aqm", "classic_ms_mean"),
            7.5,
            22.5,
            form=Unit("ms"),
        ),
        between(
            "aqm-shares",
            "ours",
            "DualPI2: a Prague flow has 0.5 to 2 times what a CUBIC flow has",
            ratios,
            0.5,
            2,
        ),
        between(
            "stamps-link",
            "ours",
            "Stamps: the flows that follow them have at least 0.85 of their link",
            links,
            0.85,
            form=Unit("of the link"),
        ),
        between(
            "stamps-queue",
            "ours",
            "Stamps: the mean queue of these flows is at most half a base RTT",
            of("stamps", "stamp_queue_ms_mean"),
            0,
            setting.rtt_ms / 2,
            form=Unit("ms"),
        ),
        between(
            "stamps-all",
            "ours",
            "Stamps: no packet with a field is left unstamped",
            most(
                [row for row in rows if "stamps" in PARTS[row["parts"]]],
                "unstamped",
                lambda row: str(row["parts"]),
            ),
            0,
            0,
        ),
    ]


PANELS = {
    "metered_mbps": "metered flow (Mbit/s)",
    "low_ms_mean": "L queue (ms)",
    "classic_ms_mean": "C queue (ms)",
    "stamp_queue_ms_mean": "stamps' queue (ms)",
}


def _draw(runs: list[Run]) -> Figure:
    rows = all_rows(runs)
    names = list(dict.fromkeys(row["parts"] for row in rows))
    figure = Figure(figsize=(10, 3.2), layout="constrained")
    for panel, (column, text) in zip(figure.subplots(1, len(PANELS)), PANELS.items(), strict=True):
        values = medians(rows, column, lambda row: str(row["parts"]))
        panel.barh(names[::-1], [values[name] for name in names[::-1]], color="C0")
        panel.set_xlabel(text)
        panel.grid(axis="x", alpha=0.3)
        if panel is not figure.axes[0]:
            panel.set_yticklabels([])
    return figure
