"""Static mixes of CUBIC and Prague: equal numbers (the paper's Fig. 6), nine to one (Fig. 7), one to nine (Fig. 8)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, mean_below, medians
from tidegate.experiments import Case, Numbers, OrZero, Plan, Run, demand_warm_up, experiment
from tidegate.papers import of_run
from tidegate.plots import all_rows, colour, whiskers
from tidegate.results import Result
from tidegate.systems.aqm.claims import CLAIMS
from tidegate.systems.aqm.experiments.judging import (
    l4s_delay_claims,
    late,
    of,
    steady_claims,
    target_ms,
    where,
)
from tidegate.systems.aqm.experiments.measuring import WHOLE, windows
from tidegate.systems.aqm.experiments.testbed import (
    WAYS,
    Bottleneck,
    Managed,
    bottleneck,
    classic_flows,
    l4s_flows,
)

TABLE = (
    "case",
    "window",
    "control",
    "goodput_mbps",
    "error_mean",
    "error_abs_mean",
    "delay_ms_mean",
    "delay_ms_p99",
    "p_mean",
    "utilisation",
    "jain",
)
CAPACITIES = (120, 200, 1000)
RTTS = (5.0, 10.0, 20.0, 50.0, 100.0)
BOTH = ("pi2", "dualpi2")
QUICK = {"duration_s": 12, "warm_up_s": 4, "capacities_mbps": CAPACITIES[:1], "base_rtts_ms": RTTS[:4]}
WHY_SLOW = "at long RTTs flows have not converged within the run: Prague takes minutes to reach its share"
COLOURS = {control: colour(control) for control in ("cubic", "prague")}
NAMES = {"cubic": "CUBIC", "prague": "Prague"}


def mixed(
    way: str, capacity_mbps: int, base_rtt_ms: float, classic: int, l4s: int, mtu: int = 1500
) -> Bottleneck:
    """Flows that are there from the start. A plain queue is sampled more often, as it has no histogram of delays."""
    lab = bottleneck(way, capacity_mbps, base_rtt_ms, mtu=mtu)
    classic_flows(lab, classic)
    l4s_flows(lab, l4s)
    lab.network.record("500 ms" if WAYS[way].program else "100 ms", queues=[lab.link])
    return lab


def measure(lab: Bottleneck, about: Row, warm_up_s: float, duration_s: float, result: Result) -> list[Row]:
    """The rows of a run, whole and without the warm-up."""
    return windows(result, lab, about, 0, duration_s, warm_up_s)


def _plan(
    experiment: str,
    ways: Sequence[str],
    capacities: Sequence[int],
    rtts: Sequence[float],
    counts: Sequence[tuple[int, int]],
    duration_s: int,
    warm_up_s: int,
    mtu: int,
    claims: Callable[[list[Row], str], list[Claim]],
    title: str,
) -> Plan:
    demand_warm_up(warm_up_s, duration_s)
    cases = []
    for way in ways:
        for capacity in capacities:
            for rtt in rtts:
                for classic, l4s in counts:
                    lab = mixed(way, capacity, rtt, classic, l4s, mtu)
                    about = {
                        "capacity_mbps": capacity,
                        "base_rtt_ms": rtt,
                        "classic": classic,
                        "l4s": l4s,
                    }
                    name = f"{way}-{capacity}-{rtt:g}ms-{classic}-{l4s}"
                    rows_of_case = partial(measure, lab, about, warm_up_s, duration_s)
                    cases.append(Case(name, lab.network, f"{duration_s} s", rows_of_case))

    def judge(rows: list[Row]) -> list[Claim]:
        each = [[row for row in late(rows) if row["way"] == way] for way in ways]
        ours = [
            claim
            for way, own in zip(ways, each, strict=True)
            for claim in [*claims(own, way), *_common(own, way)]
        ]
        return ours + of_run(CLAIMS, experiment, rows, {"duration_s": duration_s, "mtu": mtu})

    return Plan(cases, judge, lambda runs: _draw(runs, ways, title))


def _common(rows: list[Row], way: str) -> list[Claim]:
    """What must hold in every set."""
    out = steady_claims(rows, way)
    if WAYS[way].queues == 2:
        out += l4s_delay_claims(rows, way)
    return out


def _abs_errors(rows: list[Row]) -> dict[str, float]:
    """Mean absolute error of the flows of both kinds, by case."""
    both = [medians(of(rows, control), "error_abs_mean", where) for control in NAMES]
    counts = dict.fromkeys((where(row), row["classic"], row["l4s"]) for row in rows)
    return {
        name: (both[0][name] * classic + both[1][name] * l4s) / (classic + l4s)
        for name, classic, l4s in counts
    }


def _symmetric_claims(rows: list[Row], way: str) -> list[Claim]:
    near = [row for row in rows if row["base_rtt_ms"] <= 50]
    return [
        mean_below(
            f"{way}-error-50ms",
            "ours",
            f"{WAYS[way].text}: mean absolute error of goodput below 0.2 at RTTs of up to 50 ms",
            _abs_errors(near),
            0.2,
            why="behind DualPI2 a CUBIC flow's RTT includes the C queue's delay, and Prague acts as if its RTT were at least 25 ms",
        )
    ]


@experiment("aqm.symmetric", TABLE, backends=("sim", "live"), quick={**QUICK, "flows": (10, 25)})
def symmetric(
    ways: Managed = BOTH,
    capacities_mbps: tuple[int, ...] = CAPACITIES,
    base_rtts_ms: tuple[float, ...] = RTTS,
    flows: Numbers = (1, 2, 5, 10, 25, 50),
    duration_s: int = 120,
    warm_up_s: OrZero = 10,
    mtu: int = 1500,
) -> Plan:
    """Equal numbers of CUBIC and Prague flows (Fig. 6)."""
    title = "As many flows of CUBIC as of Prague"
    counts = [(number, number) for number in flows]
    cells = capacities_mbps, base_rtts_ms, counts
    return _plan("aqm.symmetric", ways, *cells, duration_s, warm_up_s, mtu, _symmetric_claims, title)


def _classic_claims(rows: list[Row], way: str) -> list[Claim]:
    errors = medians(of(rows, "cubic"), "error_mean", where)
    statement = f"{WAYS[way].text}: mean error of the CUBIC flows from -0.2 to 0.1"
    why = "at 5 ms and 90-10 the minimum window, two packets per RTT, exceeds a Prague flow's share; other cases are not explained"
    return [between(f"{way}-cubic", "ours", statement, errors, -0.2, 0.1, why=why)]


@experiment("aqm.classic_heavy", TABLE, backends=("sim", "live"), quick={**QUICK, "l4s_flows": (1, 5)})
def classic_heavy(
    ways: Managed = BOTH,
    capacities_mbps: tuple[int, ...] = CAPACITIES,
    base_rtts_ms: tuple[float, ...] = RTTS,
    l4s_flows: Numbers = (1, 5, 10),
    duration_s: int = 120,
    warm_up_s: OrZero = 10,
    mtu: int = 1500,
) -> Plan:
    """Nine CUBIC flows to one Prague flow (Fig. 7)."""
    counts = [(9 * number, number) for number in l4s_flows]
    title = "Nine flows of CUBIC for one of Prague"
    cells = capacities_mbps, base_rtts_ms, counts
    return _plan("aqm.classic_heavy", ways, *cells, duration_s, warm_up_s, mtu, _classic_claims, title)


def _l4s_claims(rows: list[Row], way: str) -> list[Claim]:
    errors = medians(of(rows, "prague"), "error_mean", where)
    statement = f"{WAYS[way].text}: mean error of the Prague flows from -0.2 to 0.1"
    return [between(f"{way}-prague", "ours", statement, errors, -0.2, 0.1, why=WHY_SLOW)]


@experiment("aqm.l4s_heavy", TABLE, backends=("sim", "live"), quick={**QUICK, "classic_flows": (1, 5)})
def l4s_heavy(
    ways: Managed = BOTH,
    capacities_mbps: tuple[int, ...] = CAPACITIES,
    base_rtts_ms: tuple[float, ...] = RTTS,
    classic_flows: Numbers = (1, 5, 10),
    duration_s: int = 120,
    warm_up_s: OrZero = 10,
    mtu: int = 1500,
) -> Plan:
    """One CUBIC flow to nine Prague flows (Fig. 8)."""
    counts = [(number, 9 * number) for number in classic_flows]
    title = "One flow of CUBIC for nine of Prague"
    cells = capacities_mbps, base_rtts_ms, counts
    return _plan("aqm.l4s_heavy", ways, *cells, duration_s, warm_up_s, mtu, _l4s_claims, title)


def _draw(runs: list[Run], ways: Sequence[str], title: str) -> Figure:
    """Errors above, delays below, of whole runs; dots are means, bars go from the 25th to the 99th percentile."""
    rows = [row for row in all_rows(runs) if row["window"] == WHOLE]
    places = list(dict.fromkeys(where(row) for row in rows))
    figure = Figure(figsize=(max(8, 2 + 0.2 * len(places)), 1 + 4.4 * len(ways)), layout="constrained")
    panels = figure.subplots(2 * len(ways), 1, squeeze=False, sharex=True)[:, 0]
    for number, way in enumerate(ways):
        upper, lower = panels[2 * number : 2 * number + 2]
        own = [row for row in rows if row["way"] == way]
        _bars(upper, own, places, "error")
        _bars(lower, own, places, "delay_ms")
        upper.axhline(0, color="0.5", linestyle=":")
        upper.set(title=WAYS[way].text, ylabel="relative goodput error", ylim=(-1.1, 3.1))
        lower.axhline(target_ms(way), color="0.5", linestyle=":")
        lower.set(ylabel="queue delay (ms)", ylim=(0, 65))
        upper.legend(loc="upper left", fontsize="x-small", ncols=2)
    panels[-1].set_xticks(range(len(places)))
    panels[-1].set_xticklabels(places, rotation=90, fontsize="x-small")
    panels[-1].set_xlim(-1, len(places))
    figure.suptitle(title)
    return figure


def _bars(panel: Axes, rows: list[Row], places: Sequence[str], quantity: str) -> None:
    for control, shift in (("cubic", -0.15), ("prague", 0.15)):
        own = of(rows, control)
        mean, low, high = (medians(own, f"{quantity}_{end}", where) for end in ("mean", "p25", "p99"))
        at = [places.index(name) + shift for name in mean]
        panel.vlines(
            at, [low[name] for name in mean], [high[name] for name in mean], COLOURS[control], alpha=0.5
        )
        panel.plot(at, list(mean.values()), "o", color=COLOURS[control], markersize=3, label=NAMES[control])
        # Of the means, beside the bar of the distribution.
        whiskers(
            panel,
            own,
            f"{quantity}_mean",
            where,
            colour="0.2",
            places={name: places.index(name) + 1.6 * shift for name in mean},
        )
    panel.grid(axis="y", alpha=0.3)
