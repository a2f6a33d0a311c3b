"""Shared parts of the experiments with several flows: claims and bars for each flow."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from tidegate.claims import Claim, Percents, Row, between, medians
from tidegate.experiments import Run
from tidegate.plots import all_rows
from tidegate.systems.meter.experiments.scheme_grid import WHY_FRIENDLY, WHY_PAPER, WHY_PLAIN, rows_of
from tidegate.systems.meter.experiments.testbed import SCHEMES


def flow_claims(rows: list[Row], schemes: Sequence[str], base_rtts_ms: Sequence[float]) -> list[Claim]:
    """Claims about each flow: close to its target behind the friendly meter."""
    out = []
    for rtt in base_rtts_ms:
        for scheme in schemes:
            settled = medians(
                rows_of(rows, scheme, rtt), "settled_error", lambda row: f"{row['case']}, flow {row['flow']}"
            )
            where = f"{SCHEMES[scheme].text}, {rtt:g} ms"
            if scheme == "friendly":
                statement = f"{where}: every flow at most 5 % from its target, from the 10th second on"
                out.append(
                    between(
                        f"{scheme}-{rtt:g}ms",
                        "ours",
                        statement,
                        settled,
                        -0.05,
                        0.05,
                        why=WHY_FRIENDLY,
                        form=Percents(),
                    )
                )
            elif scheme == "paper":
                statement = f"{where}: every flow from -2 % to -10 %, from the 10th second on"
                out.append(
                    between(
                        f"{scheme}-{rtt:g}ms",
                        "paper",
                        statement,
                        settled,
                        -0.10,
                        -0.02,
                        published="about its target (Figs. 13, 17 and 21)",
                        why=WHY_PAPER,
                        form=Percents(),
                    )
                )
        if "plain" in schemes:
            plain = medians(
                rows_of(rows, "plain", rtt), "relative_error", lambda row: f"{row['case']}, {row['flow']}"
            )
            statement = f"plain meter, {rtt:g} ms: far below the targets, -40 % (a bound of ours) or worse"
            out.append(
                between(
                    f"plain-{rtt:g}ms",
                    "paper",
                    statement,
                    plain,
                    -1,
                    -0.4,
                    published="far below, without a figure (Figs. 14 to 16 and 18 to 20)",
                    why=WHY_PLAIN,
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
    """Bars: what each flow achieved, a group for each set of targets."""
    figure = Figure(figsize=(2 + 2.9 * len(schemes), 1 + 2.6 * len(base_rtts_ms)), layout="constrained")
    panels = figure.subplots(len(base_rtts_ms), len(schemes), squeeze=False, sharex=True, sharey=True)
    rows = all_rows(runs)
    for line, rtt in zip(panels, base_rtts_ms, strict=True):
        for panel, scheme in zip(line, schemes, strict=True):
            achieved = medians(
                rows_of(rows, scheme, rtt), "achieved_mbps", lambda row: f"{row['case']} {row['flow']}"
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
        line[0].set_ylabel("achieved (Mbit/s); black: target")
    for panel in panels[-1]:
        panel.set_xlabel("targets of the flows (Mbit/s)")
    figure.suptitle(title)
    return figure
