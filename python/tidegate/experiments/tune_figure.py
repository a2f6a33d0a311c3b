"""The figure of a study: its history, how much each parameter matters, each parameter's slice, and of two objectives the Pareto front."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from tidegate.experiments.columns import axis_label
from tidegate.plots import CYCLE

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SLICES = 6
"""Parameters whose slices are drawn: those that matter most."""
ENOUGH = 4
"""Trials from which on it is asked how much parameters matter."""


def draw(study: Any, names: list[str]) -> Figure:
    """A row of panels for each objective; `names` are theirs."""
    from matplotlib.figure import Figure
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    matter = [_importances(study, index) for index in range(len(names))]
    parameters = sorted(
        {name for trial in trials for name in trial.params}, key=lambda p: -matter[0].get(p, 0.0)
    )
    shown = parameters[:SLICES]
    front = len(names) == 2
    across, down = 2 + len(shown), len(names) + front
    figure = Figure(figsize=(3.4 * across, 3.2 * down), layout="constrained")
    panels = figure.subplots(down, across, squeeze=False)
    for index, name in enumerate(names):
        history, importance, *slices = panels[index]
        maximise = study.directions[index].name == "MAXIMIZE"
        _history(history, trials, index, name, maximise)
        _bars(importance, matter[index], name)
        for axes, parameter in zip(slices, shown, strict=True):
            _slice(axes, trials, study, index, name, parameter)
    if front:
        _front(panels[-1][0], trials, study, names)
        for axes in panels[-1][1:]:
            axes.set_axis_off()
    return figure


def _importances(study: Any, index: int) -> dict[str, float]:
    """How much of the difference between good and other trials each parameter makes, by PED-ANOVA; nothing of too few trials."""
    from optuna.importance import PedAnovaImportanceEvaluator, get_param_importances
    from optuna.trial import TrialState

    trials = study.get_trials(deepcopy=False, states=(TrialState.COMPLETE,))
    if len(trials) < ENOUGH or len({trial.values[index] for trial in trials}) < 2:
        return {}
    evaluator = PedAnovaImportanceEvaluator()
    sign = 1 if study.directions[index].name == "MINIMIZE" else -1
    # The evaluator takes a target to be least.
    with warnings.catch_warnings():
        # It reminds of just that.
        warnings.simplefilter("ignore")
        found = get_param_importances(
            study, evaluator=evaluator, target=lambda trial: sign * trial.values[index]
        )
    return dict(found)


def _history(axes: Axes, trials: list[Any], index: int, name: str, maximise: bool) -> None:
    from matplotlib.ticker import MaxNLocator

    best: list[float] = []
    for trial in trials:
        value = trial.values[index]
        best.append(value if not best else (max if maximise else min)(best[-1], value))
    numbers = [trial.number for trial in trials]
    axes.plot(numbers, [trial.values[index] for trial in trials], "o", color=CYCLE[5], label="trial")
    axes.step(numbers, best, where="post", color=CYCLE[3], label="best so far")
    axes.xaxis.set_major_locator(MaxNLocator("auto", integer=True))
    axes.set(xlabel="trial", ylabel=axis_label(name), title="history")
    axes.legend(fontsize="small")


def _bars(axes: Axes, importances: dict[str, float], name: str) -> None:
    axes.set(title=f"importance for\n{name}", xlabel="share", xlim=(0, 1))
    axes.set_xticks([0, 0.5, 1])
    if not importances:
        axes.text(0.5, 0.5, "too few trials", ha="center", va="center", transform=axes.transAxes)
        axes.set_yticks([])
        return
    names = list(importances)[::-1]
    axes.barh(names, [importances[one] for one in names], color=CYCLE[0])


def _slice(axes: Axes, trials: list[Any], study: Any, index: int, name: str, parameter: str) -> None:
    from matplotlib.ticker import NullFormatter

    there = [trial for trial in trials if parameter in trial.params]
    best = {trial.number for trial in study.best_trials}
    values = [trial.params[parameter] for trial in there]
    axes.scatter(
        values,
        [trial.values[index] for trial in there],
        c=[trial.number for trial in there],
        cmap="cividis",
        s=22,
    )
    marked = [trial for trial in there if trial.number in best]
    axes.plot(
        [trial.params[parameter] for trial in marked],
        [trial.values[index] for trial in marked],
        "o",
        mfc="none",
        mec=CYCLE[3],
        ms=10,
    )
    if there and getattr(there[0].distributions[parameter], "log", False):
        axes.set_xscale("log")
        axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set(xlabel=axis_label(parameter), ylabel=axis_label(name), title="slice; lighter: later")


def _front(axes: Axes, trials: list[Any], study: Any, names: list[str]) -> None:
    axes.plot(*zip(*(trial.values for trial in trials), strict=True), "o", color=CYCLE[5], label="trial")
    best = sorted(trial.values for trial in study.best_trials)
    axes.plot(*zip(*best, strict=True), "o-", color=CYCLE[3], label="Pareto front")
    axes.set(xlabel=axis_label(names[0]), ylabel=axis_label(names[1]), title="Pareto front")
    axes.legend(fontsize="small")
