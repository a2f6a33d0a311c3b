"""Shared parts of the experiments with several flows: claims and bars for each flow."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import Run
from tidegate.papers import of_run
from tidegate.plots import all_rows
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.experiments.scheme_grid import LIMIT, WHY_FAIR, rows_of
from tidegate.systems.meter.experiments.testbed import SCHEMES


def flow_claims(
    experiment: str, rows: list[Row], schemes: Sequence[str], base_rtts_ms: Sequence[float], duration_s: int
) -> list[Claim]:
    """The paper's claims about this experiment; and ours, that each flow is close to its target behind the fair meter."""
    out = of_run(CLAIMS, experiment, rows, {"duration_s": duration_s})
    if "fair" not in schemes:
        return out
    for rtt in base_rtts_ms:
        settled = medians(
            rows_of(rows, "fair", rtt),
            "settled_goodput_error",
            lambda row: f"{row['case']}, flow {row['flow']}",
        )
        statement = (
            f"{SCHEMES['fair'].text}, {rtt:g} ms: the goodput of every flow, scaled to IP bytes, at most 2 % from its target, "
            "from the 10th second on"
        )
        out.append(
            between(
                f"fair-{rtt:g}ms",
                "ours",
                statement,
                settled,
                -LIMIT,
                LIMIT,
                why=WHY_FAIR,
                form=Percents(),
            )
        )
    return out


def _together(targets: Sequence[int]) -> str:
    """`4 x 400`, or each by itself if they differ."""
    if len(set(targets)) == 1:
        return f"{len(targets)} x {targets[0]}"
    return ", ".join(map(str, targets))


def draw_flows(
    runs: list[Run],
    schemes: Sequence[str],
    base_rtts_ms: Sequence[float],
    sets: Sequence[Sequence[int]],
    title: str,
) -> Figure:
    """Bars: the goodput of each flow, a group for each set of targets."""
    figure = Figure(figsize=(2 + 2.9 * len(schemes), 1 + 2.6 * len(base_rtts_ms)), layout="constrained")
    panels = figure.subplots(len(base_rtts_ms), len(schemes), squeeze=False, sharex=True, sharey=True)
    rows = all_rows(runs)
    for line, rtt in zip(panels, base_rtts_ms, strict=True):
        for panel, scheme in zip(line, schemes, strict=True):
            achieved = medians(
                rows_of(rows, scheme, rtt), "goodput_mbps", lambda row: f"{row['case']} {row['flow']}"
            )
            for place, targets in enumerate(sets):
                case = f"{scheme}-{rtt:g}ms-{'-'.join(map(str, targets))}"
                for flow, target in enumerate(targets):
                    at = place + 0.8 * ((flow + 0.5) / len(targets) - 0.5)
                    width = 0.7 / len(targets)
                    panel.bar(at, achieved.get(f"{case} {flow}", 0.0), width, color=f"C{flow}")
                    ends = [at - width / 2, at + width / 2]
                    panel.plot(ends, [target, target], color="black", linewidth=1.2)
            panel.set(title=f"{SCHEMES[scheme].text}, {rtt:g} ms", xticks=range(len(sets)))
            panel.set_xticklabels([_together(targets) for targets in sets], fontsize="x-small")
            panel.grid(axis="y", alpha=0.3)
        line[0].set_ylabel("goodput (Mbit/s); black: target")
    for panel in panels[-1]:
        panel.set_xlabel("targets of the flows (Mbit/s)")
    figure.suptitle(title)
    return figure
