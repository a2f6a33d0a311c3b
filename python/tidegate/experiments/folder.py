"""The folder of a run: written completely or not at all, read, redrawn."""

from __future__ import annotations

import json
import platform
import shutil
import tempfile
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.experiments.plan import Plan, Run
from tidegate.experiments.registry import find
from tidegate.results import TABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


RECORD = "run.json"


FIGURE = "figure.png"


TABLES_FOLDER = "tables"


def demand(out: Path) -> None:
    """Refuse a folder that cannot be written or that holds something other than a run."""
    try:
        if out.exists() and not (out / RECORD).exists() and any(out.iterdir()):
            raise TidegateError(
                f"{out} exists and does not hold an earlier run; give another folder with --out"
            )
        there = next(folder for folder in out.absolute().parents if folder.exists())
        with tempfile.TemporaryDirectory(dir=there, prefix=f".{out.name}."):
            pass
    except OSError as error:
        raise TidegateError(
            f"{out}: a run cannot be written there: {error.strerror}; give another folder with --out"
        ) from None


def write(out: Path, answer: dict[str, Any], runs: list[Run], plan: Plan | None) -> None:
    """Without a plan, for runs that were interrupted, there is no figure."""
    part = out.with_name(f".{out.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    try:
        part.mkdir(parents=True)
        versions = {"tidegate": _core.__version__, "python": platform.python_version()}
        about = {**answer, "interrupted": plan is None, "versions": versions}
        (part / RECORD).write_text(json.dumps(about, indent=1) + "\n")
        for one in runs:
            folder = part / TABLES_FOLDER / f"{one.case}-{one.seed}"
            folder.mkdir(parents=True)
            for table, frame in one.tables.items():
                frame.write_parquet(folder / f"{table}.parquet")
        if plan is not None:
            plan.draw(runs).savefig(part / FIGURE, dpi=150)
        if not out.exists():
            part.rename(out)
            return
        # What is ours alone is replaced; the record is there only while the rest is.
        (out / RECORD).unlink(missing_ok=True)
        (out / FIGURE).unlink(missing_ok=True)
        shutil.rmtree(out / TABLES_FOLDER, ignore_errors=True)
        for name in (TABLES_FOLDER, FIGURE, RECORD):
            if (part / name).exists():
                (part / name).rename(out / name)
    except OSError as error:
        raise TidegateError(f"{out}: the run could not be written: {error.strerror or error}") from None
    finally:
        shutil.rmtree(part, ignore_errors=True)


def remove(out: Path) -> None:
    """Remove a run: what is ours of its folder, and the folder if nothing else is in it."""
    (out / RECORD).unlink(missing_ok=True)
    (out / FIGURE).unlink(missing_ok=True)
    shutil.rmtree(out / TABLES_FOLDER, ignore_errors=True)
    if not any(out.iterdir()):
        out.rmdir()


def read_record(folder: Path) -> dict[str, Any]:
    """The contents of `run.json`."""
    try:
        record = json.loads((folder / RECORD).read_text())
        if not isinstance(record, dict):
            raise ValueError("it is not a JSON object")
        if missing := {"experiment", "parameters", "rows"} - record.keys():
            raise ValueError(f"{RECORD} has no {', '.join(sorted(missing))}")
    except (OSError, ValueError) as error:
        raise TidegateError(f"{folder} does not hold a run: {error}") from None
    return record


def is_whole(folder: Path) -> bool:
    """Whether a folder holds a complete run."""
    try:
        return not read_record(folder).get("interrupted")
    except TidegateError:
        return False


def runs_of(folder: Path, answer: dict[str, Any]) -> list[Run]:
    """The complete runs of a folder, with their tables."""
    runs = []
    for (case, seed), rows in groupby(answer["rows"], key=lambda row: (row["case"], row["seed"])):
        tables = folder / TABLES_FOLDER / f"{case}-{seed}"
        try:
            frames = {table: pl.read_parquet(tables / f"{table}.parquet") for table in TABLES}
        except (OSError, pl.exceptions.PolarsError) as error:
            raise TidegateError(
                f"{folder}: the tables of {case}, seed {seed}, cannot be read: {error}"
            ) from None
        about = f"{case}, seed {seed}: "
        warnings = [one for one in answer.get("warnings", []) if one.startswith(about)]
        said = tuple(one.removeprefix(about) for one in warnings)
        runs.append(Run(case, seed, list(rows), frames, said))
    return runs


def interrupted(out: Path) -> Path:
    """Where an interrupted run is that was to be in `out`. Raises `TidegateError` if there is none."""
    beside = out.with_name(f"{out.name}.interrupted")
    for folder in (beside, out):
        if (folder / RECORD).exists() and not is_whole(folder):
            return folder
    raise TidegateError(f"{out} and {beside} hold no interrupted run; leave out --resume")


def resumed(out: Path, answer: dict[str, Any]) -> list[Run]:
    """The runs that an interrupted run has done already, of the experiment, backend, parameters and seeds of `answer`.

    Raises `TidegateError` if it is a run of something else, or of another version.
    """
    folder = interrupted(out)
    there = read_record(folder)
    version = there.get("versions", {}).get("tidegate")
    if version != _core.__version__:
        raise TidegateError(
            f"{folder} is of version {version}, and this is {_core.__version__}; leave out --resume to begin again"
        )
    wanted = json.loads(json.dumps(answer))
    for what in ("experiment", "backend", "parameters"):
        if there.get(what) != wanted[what]:
            raise TidegateError(
                f"{folder} is a run with another {what}: {there.get(what)}; give the same, or leave out --resume to begin again"
            )
    return [one for one in runs_of(folder, there) if one.seed in answer["seeds"]]


def redraw(folder: Path) -> Figure:
    """The figure of a run's folder, from its tables."""
    answer = read_record(folder)
    if answer.get("interrupted"):
        raise TidegateError(f"{folder} holds a run that was interrupted; run it again to draw it")
    parameters = _tuples(answer["parameters"])
    parameters.pop("quick", None)
    plan = find(answer["experiment"]).plan(**parameters)
    return plan.draw(runs_of(folder, answer))


def replot(folder: Path) -> Path:
    """Redraw the figure of a run's folder from its tables."""
    figure = folder / FIGURE
    redraw(folder).savefig(figure, dpi=150)
    return figure


def _tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}
