"""Experiments beyond the paper: other congestion controls, round trips and rates, changes, UDP, many meters, shared meters."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, medians, percent
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Numbers, OneOf, Plan, Run, experiment
from tidegate.results import Result, jain
from tidegate.systems.meter.controller import FRAME_BYTES, Meter, MeterController
from tidegate.systems.meter.lab import (
    SCHEMES,
    SETTLED_S,
    Floats,
    History,
    Ours,
    Seconds,
    flow_rows,
    history,
    last,
    metered_flows,
    star,
)

SECOND = units.PS_PER_S
# Congestion controls of the matrix, and whether they use ECN.
WHY_CELLS = (
    "at 10 Gbit/s and 50 ms windows take minutes to grow again; DCTCP at long round trips averages its marks over many of them; at "
    "10 Mbit/s the bucket is a few packets"
)
WHY_CHANGED = "the account that was saved at the old target is given out at the new one, and a large window takes time to shrink"
WHY_FEW = "the time is short for what the account makes up for"
CONTROLS = ("reno", "cubic", "cubic without ECN", "bbr", "bbr3", "htcp", "dctcp", "vegas")


def _rows(runs: Iterable[Run]) -> list[Row]:
    return [row for run in runs for row in run.rows or ()]


@experiment(
    "meter.matrix", quick={"controls": ("reno", "cubic", "bbr", "dctcp"), "rates_mbps": (10, 100, 1000)}
)
def matrix(
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = CONTROLS,
    base_rtts_ms: tuple[float, ...] = (0.2, 1.0, 10.0, 50.0),
    rates_mbps: tuple[int, ...] = (10, 100, 1000, 10_000),
    duration_s: Seconds = 60,
) -> Plan:
    """Congestion controls, round trips and rates: the friendly meter's error in each cell, all defaults unchanged."""
    skip_s = duration_s / 3
    cells = [(name, rtt, rate) for rate in rates_mbps for rtt in base_rtts_ms for name in controls]

    def measure(name: str, rtt: float, rate: int) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            (row,) = flow_rows(result, "default", rtt, [rate])
            passed = history(result.notes, 0)
            return {
                "congestion_control": name,
                **row,
                "relative_error": passed.mbps(skip_s) / rate - 1,
                "excess_10_s": float(passed.windows_mbps(10, skip_s).max()) / rate - 1,
            }

        return row

    def case(name: str, rtt: float, rate: int) -> Case:
        network = metered_flows(
            "default",
            rtt,
            [rate],
            congestion_control=name.split()[0],
            ecn="off" if name.endswith("without ECN") else "on",
            link_rate="100 Gbit/s" if rate >= 10_000 else "10 Gbit/s",
            # Twice what the largest window needs.
            receive_buffer_max=max(32 * 2**20, round(4 * rate * 125 * rtt)),
        )
        label = f"{name.replace(' ', '-')}-{rtt:g}ms-{rate}"
        return Case(label, network, f"{duration_s} s", measure(name, rtt, rate))

    def claims(rows: list[Row]) -> list[Claim]:
        errors = medians(rows, "relative_error", _cell)
        beyond = {name: error for name, error in errors.items() if abs(error) > 0.05}
        share = 1 - len(beyond) / len(errors)
        named = ", ".join(f"{name} ({percent(error)})" for name, error in beyond.items())
        excess = medians(rows, "excess_10_s", _cell)
        return [
            Claim(
                "cells",
                "ours",
                f"at least 90 % of {len(errors)} cells within 5 %, from {skip_s:.0f} s on",
                None,
                f"{100 * share:.1f} %; beyond: {named or 'none'}",
                holds=share >= 0.9,
                why=WHY_CELLS,
            ),
            between(
                "excess",
                "ours",
                "no cell runs away: at most 30 % above the target over any 10 s",
                excess,
                -1,
                0.3,
                why="a sender that probes far above its rate gets what the account has saved at once",
                form=Percents(),
            ),
        ]

    def draw(runs: list[Run]) -> Figure:
        errors = medians(_rows(runs), "relative_error", _cell)
        figure = Figure(figsize=(2 + 3.2 * len(rates_mbps), 1.6 + 0.5 * len(controls)), layout="constrained")
        panels = figure.subplots(1, len(rates_mbps), squeeze=False, sharey=True)[0]
        for panel, rate in zip(panels, rates_mbps, strict=True):
            grid = np.array(
                [
                    [100 * errors.get(f"{name}, {rtt:g} ms, {rate} Mbit/s", np.nan) for rtt in base_rtts_ms]
                    for name in controls
                ]
            )
            image = panel.imshow(grid, cmap="RdBu", vmin=-50, vmax=50, aspect="auto")
            for (line, column), value in np.ndenumerate(grid):
                dark = "white" if abs(value) > 30 else "black"
                weight = "bold" if abs(value) > 5 else "normal"
                panel.text(
                    column,
                    line,
                    f"{value:+.1f}",
                    ha="center",
                    va="center",
                    fontsize=8,
                    color=dark,
                    weight=weight,
                )
            panel.set_title(units.show_rate(rate * 1_000_000))
            panel.set_xticks(range(len(base_rtts_ms)), [f"{rtt:g}" for rtt in base_rtts_ms])
            panel.set_yticks(range(len(controls)), controls)
            panel.set_xlabel("base round trip (ms)")
        figure.colorbar(image, ax=list(panels), label="relative error (%); bold: beyond 5 %")
        figure.suptitle(f"The friendly meter with its defaults, {skip_s:.0f} to {duration_s} s")
        return figure

    return Plan([case(*cell) for cell in cells], claims, draw)


def _cell(row: Row) -> str:
    return f"{row['congestion_control']}, {row['base_rtt_ms']:g} ms, {row['target_mbps']} Mbit/s"


@experiment("meter.step", backends=("sim", "live"), quick={"each_s": 20})
def step(
    targets_mbps: tuple[int, ...] = (400, 200, 600),
    each_s: Seconds = 30,
    base_rtts_ms: tuple[float, ...] = (0.1, 0.5, 1.0),
    schemes: Ours = ("paper", "friendly"),
) -> Plan:
    """The target changes while a flow runs: how long until it is reached, and how far beyond it goes."""
    duration_s = each_s * len(targets_mbps)

    class Stepped(MeterController):
        """Gives its meter the next target in time."""

        def tick(self, now: int, switch: SwitchApi) -> None:
            super().tick(now, switch)
            self.retarget(
                switch, 0, targets_mbps[min(now // (each_s * SECOND), len(targets_mbps) - 1)] * 1_000_000
            )

    def measure(scheme: str, rtt: float) -> Callable[[Result], list[Row]]:
        def rows(result: Result) -> list[Row]:
            passed = history(result.notes, 0)
            out = []
            for number, target in enumerate(targets_mbps):
                begin, end = number * each_s, (number + 1) * each_s
                kept = (passed.time_s >= begin - 1e-9) & (passed.time_s <= end + 1e-9)
                errors = History(passed.time_s[kept], passed.ip_bytes[kept]).windows_mbps(1) / target - 1
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
        lab = star(rtt)
        net, (a, b) = lab.network, lab.hosts
        flow = net.tcp(a, b, congestion_control="cubic", ecn="on")
        meters = [Meter(0, targets_mbps[0] * 1_000_000, (net.five_tuple(flow),))]
        lab.meter(meters, scheme, make=Stepped)
        return Case(f"{scheme}-{rtt:g}ms", net, f"{duration_s} s", measure(scheme, rtt))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [row for row in rows if row["scheme"] == "friendly"]
        if not ours:
            return []

        def label(row: Row) -> str:
            return f"{row['base_rtt_ms']:g} ms, {row['target_mbps']} Mbit/s"

        return [
            between(
                "error",
                "ours",
                "friendly: at most 5 % from the new target in the second half of its time",
                medians(ours, "relative_error", label),
                -0.05,
                0.05,
                why=WHY_CHANGED,
                form=Percents(),
            ),
            between(
                "overshoot",
                "ours",
                "friendly: no second more than 50 % above the new target, after the first",
                medians(ours, "overshoot", label),
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
                title=f"base round trip {rtt:g} ms",
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


@experiment("meter.udp", backends=("sim", "live"), quick={"duration_s": 30})
def udp(
    target_mbps: int = 100,
    offered: Annotated[tuple[float, ...], AtLeast(0.001, 1000)] = (0.5, 0.9, 1.1, 2.0, 10.0),
    patterns: Annotated[tuple[str, ...], OneOf(("constant", "poisson", "on-off"))] = (
        "constant",
        "poisson",
        "on-off",
    ),
    schemes: Ours = ("plain", "paper", "default"),
    duration_s: Seconds = 60,
) -> Plan:
    """UDP is held to its rate, and passes whole below it, whatever helps TCP."""

    def measure(scheme: str, pattern: str, share: float) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            passed = history(result.notes, 0)
            settled = min(SETTLED_S, float(passed.time_s[-1]) / 2)
            flow = result.flows.row(0, named=True)
            sent = flow["datagrams_sent"]
            return {
                "scheme": scheme,
                "pattern": pattern,
                "target_mbps": target_mbps,
                "offered": share,
                "offered_mbps": share * target_mbps,
                "achieved_mbps": passed.mbps(settled),
                "relative_error": passed.mbps(settled) / target_mbps - 1,
                "excess_10_s": float(passed.windows_mbps(10, settled).max()) / target_mbps - 1,
                "drops": last(result.notes, "meter_0_dropped_packets"),
                "loss": last(result.notes, "meter_0_dropped_packets") / sent if sent else 0.0,
            }

        return row

    def case(scheme: str, pattern: str, share: float) -> Case:
        lab = star(1.0)
        net, (a, b) = lab.network, lab.hosts
        # On half of the time: twice the rate then.
        rate = round(share * target_mbps * 1_000_000 * (2 if pattern == "on-off" else 1))
        flow = net.udp(a, b, rate=rate, pattern=pattern, on="100 ms", off="100 ms")
        lab.meter([Meter(0, target_mbps * 1_000_000, (net.five_tuple(flow),))], scheme)
        return Case(f"{scheme}-{pattern}-{share:g}", net, f"{duration_s} s", measure(scheme, pattern, share))

    def claims(rows: list[Row]) -> list[Claim]:
        def label(row: Row) -> str:
            return f"{SCHEMES[row['scheme']].text}, {row['pattern']}, {row['offered']:g} x"

        above = [row for row in rows if row["offered"] > 1 and row["scheme"] != "paper"]
        below = [row for row in rows if row["offered"] < 1 and (row["pattern"] == "constant")]
        # Of what was asked for: `offered` may have one side alone.
        out = []
        if above:
            excess = medians(above, "excess_10_s", label)
            statement = "plain and friendly: never more than 5 % above the target over any 10 s"
            why = "the account gives out at once what it has saved"
            out.append(between("held", "ours", statement, excess, -1, 0.05, why=why, form=Percents()))
        if below:
            loss = medians(below, "loss", label)
            statement = "a constant rate below the target passes whole"
            why = "the rate offered is above what the meter's bucket gives at first"
            out.append(between("whole", "ours", statement, loss, 0.0, 0.0, why=why, form=Percents()))
        return out

    def draw(runs: list[Run]) -> Figure:
        rows = _rows(runs)
        figure = Figure(figsize=(1 + 3.2 * len(patterns), 3.6), layout="constrained")
        panels = figure.subplots(1, len(patterns), squeeze=False, sharey=True)[0]
        for panel, pattern in zip(panels, patterns, strict=True):
            panel.plot(
                offered, [min(share, 1) for share in offered], linestyle=":", color="0.4", label="ideal"
            )
            for scheme in schemes:
                some = [row for row in rows if row["scheme"] == scheme and row["pattern"] == pattern]
                got = medians(some, "achieved_mbps", lambda row: str(row["offered"]))
                panel.plot(
                    [float(at) for at in got],
                    [value / target_mbps for value in got.values()],
                    color=SCHEMES[scheme].colour,
                    marker=SCHEMES[scheme].marker,
                    markersize=4,
                    label=SCHEMES[scheme].text,
                )
            panel.set(xscale="log", title=pattern, xlabel="offered / target", ylim=(0, None))
            panel.set_xticks(offered, [f"{share:g}" for share in offered], rotation=60, fontsize="small")
            panel.minorticks_off()
            panel.grid(alpha=0.3)
        panels[0].set_ylabel("passed / target")
        panels[0].legend(loc="lower right", fontsize="small")
        figure.suptitle(f"UDP through a meter of {target_mbps} Mbit/s")
        return figure

    cells = [(scheme, pattern, share) for scheme in schemes for pattern in patterns for share in offered]
    return Plan([case(*cell) for cell in cells], claims, draw)


@experiment("meter.shared", quick={"duration_s": 30, "numbers": (1, 2, 4, 16)})
def shared(
    numbers: Numbers = (1, 2, 4, 16, 64),
    target_mbps: int = 400,
    base_rtts_ms: tuple[float, ...] = (0.1, 1.0, 10.0),
    schemes: Ours = ("plain", "paper", "default"),
    duration_s: Seconds = 60,
) -> Plan:
    """Several flows in one meter: the rate of all, and how fairly they share it."""

    def measure(scheme: str, rtt: float, number: int) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            passed = history(result.notes, 0)
            settled = min(SETTLED_S, float(passed.time_s[-1]) / 2)
            return {
                "scheme": scheme,
                "base_rtt_ms": rtt,
                "target_mbps": target_mbps,
                "flows": number,
                "achieved_mbps": passed.mbps(settled),
                "relative_error": passed.mbps(settled) / target_mbps - 1,
                "jain": jain(result.goodput_mbps(settled)["goodput_mbps"]),
                "drops": last(result.notes, "meter_0_dropped_packets"),
                "ce_marks": last(result.notes, "meter_0_marked_packets"),
                "timeouts": int(result.flows["timeouts"].sum()),
            }

        return row

    def case(scheme: str, rtt: float, number: int) -> Case:
        lab = star(rtt)
        net, (a, b) = lab.network, lab.hosts
        flows = [
            net.tcp(a, b, congestion_control="cubic", ecn="on", start=i * SECOND // number)
            for i in range(number)
        ]
        lab.meter([Meter(0, target_mbps * 1_000_000, tuple(map(net.five_tuple, flows)))], scheme)
        net.record("1 s")
        return Case(f"{scheme}-{rtt:g}ms-{number}", net, f"{duration_s} s", measure(scheme, rtt, number))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [row for row in rows if row["scheme"] == "default"]
        if not ours:
            return []

        def label(row: Row) -> str:
            return f"{row['flows']} flows, {row['base_rtt_ms']:g} ms"

        return [
            between(
                "rate",
                "ours",
                "friendly: all flows together at most 5 % from the target",
                medians(ours, "relative_error", label),
                -0.05,
                0.05,
                why=WHY_FEW,
                form=Percents(),
            ),
            between(
                "fair",
                "ours",
                "friendly: Jain's index at least 0.8, as a share of 1",
                medians(ours, "jain", label),
                0.8,
                why="a meter has one bucket for all of its flows, and nothing in it makes them fair to each other",
                form=Percents(),
            ),
        ]

    def draw(runs: list[Run]) -> Figure:
        rows = _rows(runs)
        figure = Figure(figsize=(1 + 3.2 * len(base_rtts_ms), 6), layout="constrained")
        panels = figure.subplots(2, len(base_rtts_ms), squeeze=False, sharex=True, sharey="row")
        for rtt, upper, lower in zip(base_rtts_ms, panels[0], panels[1], strict=True):
            for scheme in schemes:
                some = [row for row in rows if row["scheme"] == scheme and row["base_rtt_ms"] == rtt]
                for panel, column in ((upper, "achieved_mbps"), (lower, "jain")):
                    got = medians(some, column, lambda row: str(row["flows"]))
                    panel.plot(
                        [int(at) for at in got],
                        list(got.values()),
                        color=SCHEMES[scheme].colour,
                        marker=SCHEMES[scheme].marker,
                        markersize=4,
                        label=SCHEMES[scheme].text,
                    )
            upper.axhline(target_mbps, linestyle=":", color="0.4", label="target")
            upper.set(title=f"base round trip {rtt:g} ms", ylim=(0, 1.15 * target_mbps))
            lower.set(xscale="log", xlabel="flows in the meter", ylim=(0, 1.05))
            lower.set_xticks(numbers, [str(number) for number in numbers])
            lower.minorticks_off()
            for panel in (upper, lower):
                panel.grid(alpha=0.3)
        panels[0][0].set_ylabel("rate of all (Mbit/s)")
        panels[1][0].set_ylabel("Jain's index")
        panels[0][0].legend(loc="lower right", fontsize="small")
        figure.suptitle(f"CUBIC flows that share a meter of {target_mbps} Mbit/s")
        return figure

    cells = [(scheme, rtt, number) for rtt in base_rtts_ms for scheme in schemes for number in numbers]
    return Plan([case(*cell) for cell in cells], claims, draw)


class Spread(Controller):
    """Notes the quantiles of the meters' errors from the 10th second on; ten thousand histories would be too much."""

    period = "1 s"
    SHARES = (0.01, 0.05, 0.5, 0.95, 0.99)

    def __init__(self, target_bps: int, meters: int) -> None:
        self._target = target_bps
        self._meters = meters

    def start(self, switch: SwitchApi) -> None:
        """Nothing is known yet."""
        self._from: tuple[int, Floats] | None = None

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note it."""
        counts = switch.counter_read("passed", 0, self._meters).astype(np.float64)
        ip_bytes = counts[:, 1] - FRAME_BYTES * counts[:, 0]
        if self._from is None:
            if now >= SETTLED_S * SECOND:
                self._from = now, ip_bytes
            return
        then, before = self._from
        errors = (ip_bytes - before) * 8 / ((now - then) / SECOND) / self._target - 1
        for share, error in zip(self.SHARES, np.quantile(errors, self.SHARES), strict=True):
            switch.note(f"error_p{round(100 * share)}", float(error))
        switch.note("within_5_percent", float((np.abs(errors) <= 0.05).mean()))


@experiment("meter.scale", quick={"meters": 1000, "duration_s": 30})
def scale(
    meters: Annotated[int, AtLeast(1, 65_536)] = 10_000,
    target_mbps: int = 1,
    base_rtts_ms: tuple[float, ...] = (1.0, 10.0),
    schemes: Ours = ("plain", "default"),
    duration_s: Annotated[int, AtLeast(SETTLED_S + 1)] = 40,
) -> Plan:
    """Ten thousand flows at once, each with a meter of its own, one controller for all."""

    def measure(scheme: str, rtt: float) -> Callable[[Result], Row]:
        def row(result: Result) -> Row:
            noted = {
                name: float(result.notes.filter(result.notes["quantity"] == name)["value"][-1])
                for name in (*(f"error_p{round(100 * share)}" for share in Spread.SHARES), "within_5_percent")
            }
            return {
                "scheme": scheme,
                "base_rtt_ms": rtt,
                "target_mbps": target_mbps,
                "meters": meters,
                "goodput_mbps": float(result.flows["goodput_mbps"].sum()),
                **noted,
                "timeouts": int(result.flows["timeouts"].sum()),
            }

        return row

    def case(scheme: str, rtt: float) -> Case:
        lab = star(rtt, link_rate=f"{max(10, 4 * meters * target_mbps // 1000)} Gbit/s")
        net, (a, b) = lab.network, lab.hosts
        flows = [net.tcp(a, b, ecn="on", start=i * SECOND // meters) for i in range(meters)]
        asked = [Meter(n, target_mbps * 1_000_000, (net.five_tuple(flow),)) for n, flow in enumerate(flows)]
        way, ports = SCHEMES[scheme], net.forwarding(lab.switch)
        net.control(MeterController(asked, ports=ports, bucket=way.bucket, law=way.law))
        net.control(Spread(target_mbps * 1_000_000, meters))
        return Case(f"{scheme}-{rtt:g}ms", net, f"{duration_s} s", measure(scheme, rtt))

    def claims(rows: list[Row]) -> list[Claim]:
        ours = [row for row in rows if row["scheme"] == "default"]
        got = medians(ours, "within_5_percent", lambda row: f"{row['base_rtt_ms']:g} ms")
        return [
            between(
                "most",
                "ours",
                "friendly: at least 95 % of the flows within 5 %, from the 10th second on",
                got,
                0.95,
                why=WHY_FEW,
                form=Percents(),
            )
        ]

    def draw(runs: list[Run]) -> Figure:
        rows = [row for row in _rows(runs) if row["seed"] == runs[0].seed]
        figure = Figure(figsize=(7, 1.5 + 0.7 * len(rows)), layout="constrained")
        panel = figure.subplots()
        for place, row in enumerate(rows):
            colour = SCHEMES[row["scheme"]].colour
            p1, p5, p50, p95, p99 = (100 * row[f"error_p{p}"] for p in (1, 5, 50, 95, 99))
            panel.plot([p1, p99], [place, place], color=colour, linewidth=1)
            panel.plot([p5, p95], [place, place], color=colour, linewidth=5)
            panel.plot([p50], [place], "o", color="black", markersize=4)
        names = [f"{SCHEMES[row['scheme']].text}, {row['base_rtt_ms']:g} ms" for row in rows]
        panel.set_yticks(range(len(rows)), names)
        panel.axvline(0, linestyle=":", color="0.4")
        panel.set(
            xlabel="relative error of a flow (%): middle, 5 to 95 %, 1 to 99 %", ylim=(-0.6, len(rows) - 0.4)
        )
        panel.grid(axis="x", alpha=0.3)
        figure.suptitle(f"{meters} flows with a meter of {target_mbps} Mbit/s each")
        return figure

    return Plan([case(scheme, rtt) for rtt in base_rtts_ms for scheme in schemes], claims, draw)
