"""`tidegate compare`: runs, schemes, experiments and revisions side by side."""

from __future__ import annotations

import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate.cli.carrying import ClusterOption, ClusterSettings, beside, carrying
from tidegate.cli.output import print_json
from tidegate.options import FirstSeed, Json, Quick, Repeat, Resume, Settings, Threads

if TYPE_CHECKING:
    from tidegate.compare import Comparison

RESULT = "compare.json"
FIGURE = "compare.png"
REPORT = "report.html"


def compare(
    context: typer.Context,
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="A B...",
            help="Folders of runs, schemes (fifo, codel, fq_codel, drr, meter, aqm, pacing, stamping, separation, "
            "also ./my.py:scheme), experiments (also ./my.py:function), or revisions (rev:HASH). The others are compared with the first.",
        ),
    ],
    experiment: Annotated[
        str | None,
        typer.Option(
            "--experiment", metavar="SYSTEM.EXPERIMENT", help="What revisions run.", show_default=False
        ),
    ] = None,
    quantities: Annotated[
        list[str] | None,
        typer.Option(
            "--quantity", metavar="NAME", help="Columns to compare.  [default: all]", show_default=False
        ),
    ] = None,
    settings: Settings = None,
    seed: FirstSeed = 1,
    repeat: Repeat = 6,
    quick: Quick = False,
    threads: Threads = 1,
    bootstrap_seed: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**31, help="Seed of the intervals.")
    ] = 1,
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for table, figure and new runs.")] = Path(
        "runs/compare"
    ),
    resume: Resume = False,
    cluster: ClusterOption = None,
    cluster_options: ClusterSettings = None,
    as_json: Json = False,
) -> None:
    """Compare runs: medians, spread over seeds, paired differences by seed with bootstrap intervals; a table and a figure."""
    from tidegate import compare as comparing
    from tidegate import report
    from tidegate._core import TidegateError
    from tidegate.compare.alike import demand_several
    from tidegate.compare.operands import is_folder
    from tidegate.experiments.plan import as_png
    from tidegate.files import given_twice, json_text, replacing, why
    from tidegate.suggest import did_you_mean

    demand_several(words)
    twice = given_twice([word for word in words if is_folder(word)])
    if twice is not None:
        raise TidegateError(f"{twice} is given twice; give each once")
    _demand_use(context, words)
    names = tuple(quantities or ())
    if len(set(names)) < len(names):
        raise TidegateError(
            f"--quantity {next(n for n in names if names.count(n) > 1)} is given twice; give each once"
        )
    _demand_place(out)
    again = "" if all(map(is_folder, words)) else "; with --resume nothing is run again that is done"
    most = beside(threads, cluster)
    with carrying("compare", cluster, cluster_options, estimate=not quick) as carried:
        asked = comparing.Asked(
            settings or (),
            range(seed, seed + repeat),
            quick,
            out,
            experiment,
            progress=carried.progress,
            tell=lambda text: print(text, file=sys.stderr),
            processes=most,
            threads=threads,
            executor=carried.executor,
            resume=resume,
        )
        found = comparing.sides(words, asked)
    for name in names:
        if name not in (known := found[0].columns):
            raise TidegateError(
                f"--quantity {name}: {found[0].name} has no such column of numbers; {did_you_mean(name, known)}"
                f"it has {', '.join(known)}{again}"
            )
    answer = comparing.compare(found, names, bootstrap_seed)
    try:
        out.mkdir(parents=True, exist_ok=True)
        with replacing(out / RESULT) as file:
            file.write((json_text(answer, indent=1) + "\n").encode())
        figure = as_png(answer.figure())
        with replacing(out / FIGURE) as file:
            file.write(figure)
        with replacing(out / REPORT) as file:
            file.write(report.of_comparison(answer, figure, _command(context)).encode())
    except (OSError, TidegateError) as error:
        said = f"{out}: {why(error)}" if isinstance(error, OSError) else str(error)
        raise TidegateError(f"{said}; mend that, or give another --out{again}") from None
    if as_json:
        print_json({**answer, "out": str(out)})
        return
    _print(answer)
    print(out / FIGURE)


def _command(context: typer.Context) -> str:
    """The command as it was given, but for where and in what form its results go."""
    words = ["tidegate", "compare", *map(str, context.params["words"])]
    for one in context.command.params:
        source = getattr(context.get_parameter_source(one.name or ""), "name", "")
        if source != "COMMANDLINE" or one.name in ("words", "resume", "as_json"):
            continue
        value = context.params[one.name or ""]
        for each in value if isinstance(value, list | tuple) else [value]:
            words += [one.opts[0]] if each is True else [one.opts[0], str(each)]
    return shlex.join(words)


def _demand_use(context: typer.Context, words: list[str]) -> None:
    """Refuse options that would not count: those of runs where every word is the folder of a run that is done, and `--experiment`
    where none is a revision.
    """
    from tidegate.compare.operands import is_folder
    from tidegate.compare.revisions import PREFIX

    options = {"settings": "--set", "seed": "--seed", "repeat": "--repeat", "quick": "--quick"}
    options |= {"resume": "--resume", "cluster": "--cluster", "threads": "--threads"}
    given = [
        option
        for name, option in options.items()
        if getattr(context.get_parameter_source(name), "name", "") == "COMMANDLINE"
    ]
    if given and all(is_folder(word) for word in words):
        raise typer.BadParameter(
            f"{', '.join(given)}: folders of runs are compared as they are; leave it out"
        )
    if context.params["experiment"] is not None and not any(word.startswith(PREFIX) for word in words):
        raise typer.BadParameter(
            "--experiment: it is what revisions run (rev:HASH), and none is given; leave it out"
        )


def _demand_place(out: Path) -> None:
    """Refuse a folder whose page or figure is not of a comparison, before anything runs."""
    from tidegate._core import TidegateError
    from tidegate.experiments.record import RECORD

    reason = None
    if out.exists() and not out.is_dir():
        reason = "it is not a folder"
    elif (out / RECORD).exists():
        reason = f"it holds a run, whose {REPORT} a comparison would replace"
    elif not (out / RESULT).exists():
        there = next((name for name in (FIGURE, REPORT) if (out / name).exists()), None)
        reason = there and f"its {there} is not of a comparison, which would replace it"
    if reason is not None:
        raise TidegateError(
            f"{out}: a comparison cannot be written there: {reason}; give another folder with --out"
        )


def _print(answer: Comparison) -> None:
    from tidegate.cli import tables

    for remark in answer.remarks():
        print(remark)
    names = answer.columns()
    tables.show(names, answer.cells(), range(2, len(names)), keys=2, pipe=60 + 44 * len(answer["sides"]))
    print(answer.legend())
    if answer.lacks_intervals():
        print("an interval needs six seeds or more that both have: --repeat 6")
