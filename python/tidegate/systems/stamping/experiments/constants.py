"""How the result of Figs. 2 to 4 depends on the constants of TIMELY, which the paper does not give."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import product
from typing import Annotated, Any

import numpy as np
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, medians
from tidegate.experiments import Case, Number, OneOf, Plan, Run, demand_warm_up, experiment
from tidegate.plots import all_rows, colour
from tidegate.systems.stamping.experiments.parking_lot import (
    CrossFlows,
    Lot,
    author_s_constants,
    demand_queues,
    measured,
)
from tidegate.systems.stamping.experiments.testbed import SIGNALS

Sendings = Annotated[tuple[str, ...], OneOf(("window", "paced"))]

WHY_MAP = "the primary flow's rate is sensitive to TIMELY's constants, which the paper does not give; see the README"
Values = dict[str, tuple[Any, ...]]
"""Values of each constant, by its name in `Setting`."""


@dataclass(frozen=True)
class Setting:
    """Constants of TIMELY; the defaults are those of the paper's first author."""

    delta_mbps: float = 20.0
    beta: float = 0.6
    alpha: float = 0.3
    t_low_us: float = 120.0
    sending: str = "window"

    @property
    def name(self) -> str:
        """All of them."""
        return "-".join(
            f"{value:g}" if isinstance(value, float) else str(value) for value in asdict(self).values()
        )


LABELS = {
    "delta_mbps": "delta (Mbit/s)",
    "beta": "beta",
    "alpha": "EWMA weight of a new difference",
    "t_low_us": "T_low (us)",
    "sending": "sending",
}


def _settings(values: Values, whole: bool) -> list[Setting]:
    """The whole grid, or each constant alone."""
    if whole:
        points: list[dict[str, Any]] = [
            dict(zip(values, point, strict=True)) for point in product(*values.values())
        ]
    else:
        points = [{}, *({name: value} for name, listed in values.items() for value in listed)]
    # The author's own setting is in each list.
    return list(dict.fromkeys(replace(Setting(), **point) for point in points))


@experiment(
    "stamping.constants",
    ("signal", *LABELS, "throughput_gbps", "of_fair", "rtt_us_p95"),
    quick={"duration_ms": 60},
)
def constants(
    deltas_mbps: tuple[float, ...] = (5.0, 10.0, 20.0, 30.0),
    betas: tuple[float, ...] = (0.4, 0.6, 0.8),
    alphas: tuple[float, ...] = (0.2, 0.3, 0.5, 0.875),
    t_lows_us: tuple[float, ...] = (80.0, 100.0, 120.0, 150.0),
    sendings: Sendings = ("window", "paced"),
    whole: bool = False,
    cross_flows: CrossFlows = (1, 1, 1, 3, 6),
    duration_ms: Number = 400,
    warm_up_ms: float = 20.0,
) -> Plan:
    """The primary flow of Figs. 2 to 4 with RTT and MAX, over TIMELY's constants: each alone, or all together (`whole`)."""
    demand_warm_up(warm_up_ms, duration_ms, "ms")
    demand_queues(cross_flows)
    values: Values = {
        "delta_mbps": deltas_mbps,
        "beta": betas,
        "alpha": alphas,
        "t_low_us": t_lows_us,
        "sending": sendings,
    }
    cases = []
    for setting in _settings(values, whole):
        about = asdict(setting)
        options: dict[str, Any] = {**about, "send": setting.sending}
        del options["sending"]
        for signal in ("rtt", "max"):
            lot = Lot(signal, cross_flows, author_s_constants(**options))
            measure = measured(lot, about, warm_up_ms)
            cases.append(Case(f"{signal}-{setting.name}", lot.network, f"{duration_ms} ms", measure))
    fair = Lot("max", cross_flows).fair_gbps
    return Plan(cases, _claims, partial(_draw_whole if whole else _draw_each, values, fair))


def _setting(row: Row) -> Setting:
    return Setting(**{name: row[name] for name in LABELS})


def _by_setting(rows: list[Row], column: str = "throughput_gbps") -> dict[str, dict[Setting, float]]:
    """Medians over the seeds, by signal and setting."""
    settings = {_setting(row).name: _setting(row) for row in rows}
    out: dict[str, dict[Setting, float]] = {}
    for signal in ("rtt", "max"):
        own = [row for row in rows if row["signal"] == signal]
        values = medians(own, column, lambda row: _setting(row).name)
        out[signal] = {settings[name]: value for name, value in values.items()}
    return out


def _claims(rows: list[Row]) -> list[Claim]:
    rates, shares = _by_setting(rows), _by_setting(rows, "of_fair")["max"]
    ratios = {setting: value / rates["rtt"][setting] for setting, value in rates["max"].items()}
    out = []
    for sending in ("window", "paced"):
        own = {setting.name: ratio for setting, ratio in ratios.items() if setting.sending == sending}
        if not own:
            continue
        fair = {setting.name: share for setting, share in shares.items() if setting.sending == sending}
        out += [
            between(
                f"{sending}-more",
                "ours",
                f"{sending}: MAX gives the primary flow more than RTT at every setting",
                own,
                1.0,
                why=WHY_MAP,
            ),
            between(
                f"{sending}-twice",
                "ours",
                f"{sending}: MAX gives the primary flow 2 times what RTT gives, as in the paper, at every setting",
                own,
                2.0,
                why=WHY_MAP,
            ),
            between(
                f"{sending}-fair",
                "ours",
                f"{sending}: with MAX the primary flow has 0.9 to 1.1 of its fair share, as in the paper, at every setting",
                fair,
                0.9,
                1.1,
                why=WHY_MAP,
            ),
        ]
    return out


def _draw_each(values: Values, fair: float, runs: list[Run]) -> Figure:
    """Throughput over each constant, the others being the author's."""
    rates = _by_setting(all_rows(runs))
    figure = Figure(figsize=(3.0 * len(values), 3.4), layout="constrained")
    panels = figure.subplots(1, len(values), sharey=True, squeeze=False)[0]
    for panel, (name, listed) in zip(panels, values.items(), strict=True):
        at = [replace(Setting(), **{name: value}) for value in listed]
        places = range(len(at))
        for signal in ("rtt", "max"):
            shown = [rates[signal][setting] for setting in at]
            panel.plot(places, shown, "o-", color=colour(signal), label=SIGNALS[signal])
        for place, setting in zip(places, at, strict=True):
            ratio = rates["max"][setting] / rates["rtt"][setting]
            panel.annotate(
                f"{ratio:.2f}x", (place, max(rates["max"][setting], rates["rtt"][setting])), (0, 6),
                textcoords="offset points", ha="center", fontsize="x-small",
            )  # fmt: skip
        panel.axhline(fair, color="0.4", linestyle=":")
        panel.set_xticks(places, [f"{value:g}" if isinstance(value, float) else value for value in listed])
        panel.set(xlabel=LABELS[name], xlim=(-0.4, len(at) - 0.6))
        panel.grid(alpha=0.3)
    panels[0].set_ylim(0, 1.12 * max(*rates["rtt"].values(), *rates["max"].values()))
    panels[0].set_ylabel("primary flow (Gbit/s)")
    panels[0].legend(fontsize="small", title="dotted: fair share", title_fontsize="x-small")
    return figure


def _draw_whole(values: Values, fair: float, runs: list[Run]) -> Figure:
    """MAX over RTT, and MAX over the fair share, at all settings."""
    rates = _by_setting(all_rows(runs))
    sendings = values["sending"]
    figure = Figure(figsize=(11, 0.6 + 4.2 * len(sendings)), layout="constrained")
    panels = figure.subplots(len(sendings), 2, squeeze=False)
    across = list(product(values["delta_mbps"], values["beta"]))
    down = list(product(values["t_low_us"], values["alpha"]))
    for sending, pair in zip(sendings, panels, strict=True):
        for kind, panel in zip(("MAX over RTT", "MAX over its fair share"), pair, strict=True):
            shown = np.zeros((len(down), len(across)))
            for line, (t_low, alpha) in enumerate(down):
                for column, (delta, beta) in enumerate(across):
                    setting = Setting(delta, beta, alpha, t_low, sending)
                    below = rates["rtt"][setting] if kind == "MAX over RTT" else fair
                    shown[line, column] = rates["max"][setting] / below
            image = panel.imshow(
                shown, vmin=0, vmax=3 if kind == "MAX over RTT" else 2, cmap="RdYlGn", aspect="auto"
            )
            figure.colorbar(image, ax=panel)
            panel.set_xticks(
                range(len(across)), [f"{a:g}, {b:g}" for a, b in across], rotation=90, fontsize="x-small"
            )
            panel.set_yticks(range(len(down)), [f"{a:g}, {b:g}" for a, b in down], fontsize="x-small")
            panel.set(title=f"{sending}: {kind}", xlabel="delta (Mbit/s), beta", ylabel="T_low (us), EWMA")
    return figure
