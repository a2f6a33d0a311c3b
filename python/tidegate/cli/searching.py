"""Commands that run an experiment with many values of its parameters: `sweep` and `tune`."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from tidegate._core import TidegateError
from tidegate.cli.carrying import ClusterOption, ClusterSettings, beside, carrying
from tidegate.cli.output import print_json, warn
from tidegate.options import FirstSeed, Json, Quick, Repeat, Resume, Settings, Threads, results_folder
from tidegate.units import counted

ExperimentName = Annotated[
    str,
    typer.Argument(
        metavar="SYSTEM.EXPERIMENT",
        help="An experiment of `tidegate list`, or one of yours: ./my.py:function.",
    ),
]
Where = Annotated[
    list[str] | None,
    typer.Option(
        "--where", metavar="NAME=VALUE", help="Of the rows, those with this value only.", show_default=False
    ),
]


def _demand_apart(settings: list[str] | None, varied: Iterable[str], option: str) -> None:
    """Refuse a parameter that is both set and varied: only one of them would count."""
    given = {text.partition("=")[0].strip() for text in settings or []}
    for name in varied:
        if name in given:
            raise TidegateError(f"{name} is in {option} and in --set; leave one of them out")


def sweep(
    experiment: ExperimentName,
    over: Annotated[
        list[str],
        typer.Option(
            "--over", metavar="NAME=V1,V2,...", help="Values of a parameter; of several, all combinations."
        ),
    ],
    settings: Settings = None,
    seed: FirstSeed = 1,
    repeat: Repeat = 1,
    quick: Quick = False,
    column: Annotated[
        str | None,
        typer.Option(
            metavar="NAME[:AGGREGATE]",
            help="The column that the figure shows, and of its rows median, mean, min, max or p1..p99.  "
            "[default: the first measured, median]",
            show_default=False,
        ),
    ] = None,
    by: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="The column that names lines or panels of the figure.", show_default=False
        ),
    ] = None,
    where: Where = None,
    out: Annotated[Path | None, results_folder("runs/sweep-EXPERIMENT")] = None,
    resume: Resume = False,
    threads: Threads = 1,
    cluster: ClusterOption = None,
    cluster_options: ClusterSettings = None,
    as_json: Json = False,
) -> None:
    """Run an experiment with each combination of parameters' values: one long table and a figure of the landscape."""
    from tidegate import experiments
    from tidegate.experiments import sweep as sweeps
    from tidegate.experiments.columns import Column, condition
    from tidegate.experiments.landscape import Landscape

    one = experiments.find(experiment)
    experiments.demand_backend(one, "sim")
    parameters = experiments.with_settings(one, settings or [], quick)
    values = sweeps.read_over(one, over, quick)
    _demand_apart(settings, values, "--over")
    if column is not None:
        Column.parse(column)
    conditions = tuple(condition(text) for text in where or [])
    landscape = Landscape(tuple(values), column, by, conditions, one.table)
    name = f"sweep-{one.name}"
    most = beside(threads, cluster)
    with carrying(name, cluster, cluster_options, estimate=not quick) as carried:
        answer = sweeps.run(
            experiment,
            parameters,
            values,
            landscape=landscape,
            seeds=list(range(seed, seed + repeat)),
            quick=quick,
            out=out if out is not None else Path("runs") / name,
            progress=carried.progress,
            processes=most,
            resume=resume,
            executor=carried.executor,
            threads=threads,
        )
    warn(answer)
    if as_json:
        print_json(answer)
        return
    print(f"{counted(len(answer['rows']), 'row')}: {answer['out']}/rows.csv\n{answer['out']}/figure.png")


def tune(
    experiment: ExperimentName,
    ranges: Annotated[
        list[str],
        typer.Option(
            "--range",
            metavar="NAME=LO:HI[:log]",
            help="Numbers of a parameter that are tried, or its values: NAME=V1,V2.",
        ),
    ],
    minimise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:AGGREGATE]",
            help="A column of the rows to be least; its median, mean, min, max or p1..p99.",
            show_default=False,
        ),
    ] = None,
    maximise: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:AGGREGATE]", help="A column of the rows to be greatest.", show_default=False
        ),
    ] = None,
    trials: Annotated[
        int, typer.Option(metavar="N", min=1, max=1_000_000, help="Trials of the study in all.")
    ] = 40,
    settings: Settings = None,
    seed: FirstSeed = 1,
    repeat: Repeat = 1,
    quick: Quick = False,
    prune: Annotated[
        bool, typer.Option("--prune", help="Give bad trials up after some of their seeds.")
    ] = False,
    batch: Annotated[
        int, typer.Option(metavar="N", min=1, max=10_000, help="Trials that are run together.")
    ] = 4,
    where: Where = None,
    storage: Annotated[
        str | None,
        typer.Option(
            metavar="URL|FILE",
            help="Optuna's storage: sqlite:////path.db, another database, or a journal file.  [default: study.db in the folder]",
            show_default=False,
        ),
    ] = None,
    study: Annotated[
        str | None,
        typer.Option(
            metavar="NAME", help="Name of the study.  [default: the experiment's]", show_default=False
        ),
    ] = None,
    out: Annotated[Path | None, results_folder("runs/tune-EXPERIMENT")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a study that is there; do not begin one.")
    ] = False,
    threads: Threads = 1,
    cluster: ClusterOption = None,
    cluster_options: ClusterSettings = None,
    as_json: Json = False,
) -> None:
    """Look for an experiment's best parameters with Optuna; the same command goes on with the study that is there."""
    from tidegate import experiments
    from tidegate.experiments import tune as tuning
    from tidegate.experiments.columns import Column, condition

    one = experiments.find(experiment)
    experiments.demand_backend(one, "sim")
    varied = tuple(tuning.Range.parse(text, one) for text in ranges)
    _demand_apart(settings, [one.name for one in varied], "--range")
    objectives = [tuning.Objective(Column.parse(text), False) for text in minimise or []]
    objectives += [tuning.Objective(Column.parse(text), True) for text in maximise or []]
    task = tuning.Task(
        experiment,
        experiments.with_settings(one, settings or [], quick),
        varied,
        tuple(objectives),
        tuple(range(seed, seed + repeat)),
        tuple(condition(text) for text in where or []),
        prune,
    )
    name = f"tune-{one.name}"
    most = beside(threads, cluster)
    with carrying(name, cluster, cluster_options) as carried:
        answer = tuning.run(
            task,
            trials=trials,
            out=out if out is not None else Path("runs") / name,
            storage=storage,
            study=study,
            batch=batch,
            processes=most,
            progress=carried.progress,
            executor=carried.executor,
            threads=threads,
            resume=resume,
        )
    warn(answer)
    if as_json:
        print_json(answer)
        return
    for best in answer["best"]:
        values = ", ".join(
            f"{name} {value:.4g}"
            for (name, _), value in zip(answer["objectives"], best["values"], strict=True)
        )
        given = " ".join(f"{name}={value}" for name, value in best["parameters"].items())
        print(f"trial {best['trial']}: {values}: {given}")
    print(f"{answer['out']}/trials.csv\n{answer['out']}/figure.png")
