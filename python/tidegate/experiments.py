"""Experiments: what one is, how it is found, and how it is run.

An experiment is a function with typed, defaulted parameters that gives a `Plan`: cases to run, how to measure each, what to
claim of all, and what to draw. It is pure: parameters in, description out. So runs can be spread over processes, and a run's
folder can be drawn again without running anything.
"""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import json
import multiprocessing
import pkgutil
import platform
import shutil
import signal
import statistics
import tempfile
from collections.abc import Callable, Collection, Iterable, Mapping
from concurrent.futures import FIRST_COMPLETED, ProcessPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from itertools import groupby
from multiprocessing.synchronize import Event as EventType
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import numpy as np
import polars as pl

from tidegate import _core, backends, systems, units
from tidegate._core import TidegateError
from tidegate.network import Network
from tidegate.results import TABLES, Result

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]

MOST = 1e9
"""The largest number that a parameter can have: so many milliseconds are eleven days."""

RECORD = "run.json"
FIGURE = "figure.png"
TABLES_FOLDER = "tables"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; what there was is saved, and the text says where."""


@dataclass(frozen=True)
class Claim:
    """A published figure beside the one measured (the median over the seeds)."""

    id: str
    statement: str
    published: str
    measured: str
    holds: bool


@dataclass(frozen=True)
class Case:
    """One network of an experiment; `measure` makes a row of the table from what came of it, or several (one a flow, say)."""

    name: str
    network: Network
    until: str
    measure: Callable[[Result], Row | list[Row]]


@dataclass(frozen=True)
class Run:
    """What is left of a case that has run: its rows, and its tables."""

    case: str
    seed: int
    rows: list[Row] | None
    """`None`: the run was interrupted, and its tables end where it was."""
    tables: dict[str, pl.DataFrame] = field(repr=False)
    warnings: tuple[str, ...] = ()


@dataclass(frozen=True)
class Plan:
    """What an experiment does."""

    cases: list[Case]
    claims: Callable[[list[Row]], list[Claim]]
    draw: Callable[[list[Run]], Figure]


@dataclass(frozen=True)
class OneOf:
    """In a parameter's annotation: the names that it takes."""

    names: Collection[str]


@dataclass(frozen=True)
class AtLeast:
    """In a parameter's annotation: the smallest number that makes sense, and the largest. Without, it is all above 0."""

    least: float
    most: float = MOST


OrZero = Annotated[int, AtLeast(0)]
Number = Annotated[int, AtLeast(1, 10_000)]
"""Of flows: each takes memory."""
Numbers = Annotated[tuple[int, ...], AtLeast(1, 10_000)]


def demand_warm_up(warm_up_s: float, duration_s: float) -> None:
    """Refuse a warm-up that leaves nothing to look at."""
    if warm_up_s >= duration_s:
        raise TidegateError(
            f"a warm-up of {warm_up_s:g} s leaves nothing of {duration_s:g} s; give less, or a longer run"
        )


@dataclass(frozen=True)
class Experiment:
    """An experiment by name."""

    name: str
    summary: str
    plan: Callable[..., Plan]
    table: tuple[str, ...] = ()
    """Columns that a terminal shows; all if there are none."""
    backends: tuple[str, ...] = ("sim",)
    """Where it can run."""
    quick: Mapping[str, Any] = field(default_factory=dict)
    """Parameters that have other defaults for less time and coarser figures."""

    def parameters(self, quick: bool = False) -> dict[str, Any]:
        """Names and defaults."""
        signature = inspect.signature(self.plan)
        defaults = {p.name: p.default for p in signature.parameters.values()}
        return {**defaults, **self.quick} if quick else defaults

    def check(self, parameters: dict[str, Any]) -> None:
        """Raise `TidegateError` for values that make no sense."""
        annotations = get_type_hints(self.plan, include_extras=True)
        for name, value in parameters.items():
            values = value if isinstance(value, tuple) else (value,)
            if not values:
                raise TidegateError(f"{self.name}: {name} has nothing in it; give a value or several")
            if len(set(values)) < len(values):
                raise TidegateError(f"{self.name}: {name} has a value twice; give each once")
            bounds = getattr(annotations[name], "__metadata__", ())
            for one in values:
                why = _wrong(one, bounds)
                if why is not None:
                    raise TidegateError(f"{self.name}: {name} is {one!r}; {why}")


def _wrong(value: Any, bounds: Collection[OneOf | AtLeast]) -> str | None:
    """What to give instead of a value that a parameter cannot have."""
    for bound in bounds:
        if isinstance(bound, OneOf):
            known = ", ".join(bound.names)
            return None if value in bound.names else f"known are {known}"
        right = bound.least <= value <= bound.most
        return None if right else f"give a number from {bound.least:g} to {bound.most:g}"
    if isinstance(value, int | float) and not isinstance(value, bool) and not 0 < value <= MOST:
        return f"give a number above 0 and up to {MOST:g}"
    return None


_registry: dict[str, Experiment] = {}


def experiment(
    name: str,
    table: tuple[str, ...] = (),
    backends: tuple[str, ...] = ("sim",),
    quick: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Plan]], Callable[..., Plan]]:
    """Makes a function an experiment; the first line of its docstring says what it shows.

    `table` says which columns a terminal shows, `backends` where it can run: in the simulator alone, or live as well. `quick`
    has the defaults that are others with `--quick`.
    """

    def register(plan: Callable[..., Plan]) -> Callable[..., Plan]:
        summary = (plan.__doc__ or "").strip().splitlines()[0]
        _registry[name] = Experiment(name, summary, plan, table, backends, quick or {})
        return plan

    return register


def all_experiments() -> dict[str, Experiment]:
    """Every experiment of every system, by name."""
    for module in pkgutil.iter_modules(systems.__path__):
        name = f"{systems.__name__}.{module.name}.experiments"
        if importlib.util.find_spec(name) is not None:
            importlib.import_module(name)
    return dict(sorted(_registry.items()))


def find(name: str) -> Experiment:
    """The experiment of that name."""
    known = all_experiments()
    if name not in known:
        raise TidegateError(f"there is no experiment {name!r}; known: {', '.join(known)}")
    return known[name]


def with_settings(one: Experiment, settings: list[str], quick: bool = False) -> dict[str, Any]:
    """The parameters, with those set by `name=value` converted to the types of their defaults."""
    parameters = one.parameters(quick)
    names = [setting.partition("=")[0] for setting in settings]
    for setting in settings:
        name, sign, text = setting.partition("=")
        if not sign:
            raise TidegateError(f"--set {setting}: write it as name=value")
        if name not in parameters:
            raise TidegateError(f"{one.name} has no parameter {name!r}; it has {', '.join(parameters)}")
        if names.count(name) > 1:
            raise TidegateError(f"--set {setting}: {name} is set twice; a list is written as {name}=1,2")
        parameters[name] = _convert(name, text, parameters[name])
    return parameters


def _convert(name: str, text: str, default: Any) -> Any:
    try:
        if isinstance(default, bool):
            return {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}[
                text.lower()
            ]
        if isinstance(default, int):
            return int(text)
        if isinstance(default, float):
            return float(text)
        if isinstance(default, tuple):
            kind = type(default[0]) if default else str
            return tuple(kind(item.strip()) for item in text.split(","))
    except (ValueError, KeyError):
        one = default[0] if isinstance(default, tuple) else default
        number = "whole number" if isinstance(one, int) else "number"
        wanted = f"a list of {number}s" if isinstance(default, tuple) else f"a {number}"
        if isinstance(one, bool):
            wanted = "true or false"
        raise TidegateError(f"--set {name}={text}: {text!r} is not {wanted}") from None
    return text


def clock_time(one: Experiment, parameters: dict[str, Any], repeat: int) -> str:
    """How long its cases take if they run by the clock, one after the other: `2 h 5 min`, `40 s`."""
    one.check(parameters)
    cases = one.plan(**parameters).cases
    seconds = repeat * sum(units.time(case.until) for case in cases) // units.PS_PER_S
    minutes = -(-seconds // 60)
    if seconds < 120:
        return f"{seconds} s"
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def demand_backend(one: Experiment, backend: str) -> None:
    """Refuse a backend that the experiment does not run on, or this machine does not have."""
    backends.find(backend)
    if backend not in one.backends:
        raise TidegateError(
            f"{one.name} runs on {' and '.join(one.backends)}, not on {backend}; "
            f"on {backend} run: {', '.join(name for name, other in all_experiments().items() if backend in other.backends)}"
        )
    if backend == "live":
        from tidegate.lab import kernel

        kernel.demand_privilege()


# Set in a worker process when it is to end early.
_stop: EventType | None = None


def _begin(stop: EventType) -> None:
    """In a worker process: Ctrl-C is for the parent, which sets `stop`."""
    global _stop
    _stop = stop
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _look_up(done: int, total: int) -> None:
    if _stop is not None and _stop.is_set():
        raise KeyboardInterrupt


def _run_case(name: str, parameters: dict[str, Any], index: int, seed: int, backend: str) -> Run:
    case = find(name).plan(**parameters).cases[index]
    result = case.network.run(case.until, backend=backend, seed=seed, progress=_look_up)
    rows = None
    if not result.interrupted:
        measured = case.measure(result)
        each = measured if isinstance(measured, list) else [measured]
        rows = [{"case": case.name, "seed": seed, **row} for row in each]
    tables = {table: getattr(result, table) for table in TABLES}
    return Run(case.name, seed, rows, tables, result.warnings)


def _run_all(
    jobs: list[tuple[Any, ...]], processes: int, progress: Callable[[int, int], None] | None
) -> tuple[list[Run], bool]:
    """The runs, and whether they were interrupted: then those that had begun, up to where they were."""
    runs: list[Run] = []

    def tell() -> None:
        if progress is not None:
            progress(len(runs), len(jobs))

    if processes == 1 or len(jobs) == 1:
        for job in jobs:
            try:
                runs.append(_run_case(*job))
            except KeyboardInterrupt:
                # It came while the case was being set up or taken down.
                return runs, True
            if runs[-1].rows is None:
                return runs, True
            tell()
        return runs, False
    stop = multiprocessing.Event()
    interrupted = False
    with ProcessPoolExecutor(min(processes, len(jobs)), initializer=_begin, initargs=(stop,)) as pool:
        pending = {pool.submit(_run_case, *job) for job in jobs}
        while pending:
            try:
                # Looks up now and then: a library's signal handler may restart the wait when Ctrl-C comes.
                done, pending = wait(pending, timeout=0.1, return_when=FIRST_COMPLETED)
                runs.extend(future.result() for future in done)
                tell()
            except KeyboardInterrupt:
                interrupted = True
                stop.set()
                pending = {future for future in pending if not future.cancel()}
            except BaseException:
                stop.set()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
    return runs, interrupted


def run(
    name: str,
    parameters: dict[str, Any],
    *,
    backend: str = "sim",
    seeds: list[int],
    quick: bool = False,
    out: Path,
    progress: Callable[[int, int], None] | None = None,
    processes: int = 1,
) -> dict[str, Any]:
    """Run every case with every seed, write the folder `out`, and give what `--json` prints.

    Parameters that are not given have their defaults, with `quick` those for less time.

    The folder holds `run.json` (parameters, seeds, versions, rows, claims), the tables of every run, and the figure. It
    appears when all is done. A run that is there is replaced, and what else is in its folder stays; a folder of something
    else is refused, as is one that cannot be written, before anything runs. On Ctrl-C the folder holds the tables up to then,
    `run.json` says `"interrupted": true`, and `Interrupted` is raised; a whole run that is there stays, and the folder's name
    has `.interrupted` at its end.
    """
    one = find(name)
    demand_backend(one, backend)
    parameters = {**one.parameters(quick), **parameters}
    one.check(parameters)
    plan = one.plan(**parameters)
    if not plan.cases:
        raise TidegateError(f"{name}: with these parameters there is nothing to run")
    order = {case.name: index for index, case in enumerate(plan.cases)}
    if len(order) < len(plan.cases):
        twice = next(case.name for index, case in enumerate(plan.cases) if order[case.name] != index)
        raise TidegateError(f"{name}: two cases are {twice}; give each value once")
    _demand_folder(out)
    jobs = [(name, parameters, index, seed, backend) for seed in seeds for index in range(len(plan.cases))]
    # By the real clock, one at a time: they would take time from each other.
    runs, interrupted = _run_all(jobs, processes if backend == "sim" else 1, progress)
    runs.sort(key=lambda r: (r.seed, order[r.case]))
    rows = [row for r in runs if r.rows is not None for row in r.rows]
    done = sum(r.rows is not None for r in runs)
    if interrupted and not runs:
        raise Interrupted(f"interrupted with 0 of {len(jobs)} runs done; nothing is saved")
    if interrupted and _is_whole(out):
        out = out.with_name(f"{out.name}.interrupted")
    answer = {
        "experiment": name,
        "backend": backend,
        "parameters": {**parameters, "quick": quick},
        "seeds": seeds,
        "rows": rows,
        "claims": [] if interrupted else [asdict(claim) for claim in plan.claims(rows)],
        "warnings": [f"{r.case}, seed {r.seed}: {warning}" for r in runs for warning in r.warnings],
        "out": str(out),
    }
    _write(out, answer, runs, None if interrupted else plan)
    if interrupted:
        raise Interrupted(f"interrupted with {done} of {len(jobs)} runs done; tables up to then are in {out}")
    return answer


def _demand_folder(out: Path) -> None:
    """Refuse a folder that cannot be written, or that holds something else than a run."""
    try:
        if out.exists() and not (out / RECORD).exists() and any(out.iterdir()):
            raise TidegateError(f"{out} is there and holds no earlier run; give another folder with --out")
        there = next(folder for folder in out.absolute().parents if folder.exists())
        with tempfile.TemporaryDirectory(dir=there, prefix=f".{out.name}."):
            pass
    except OSError as error:
        raise TidegateError(
            f"{out}: a run cannot be written there: {error.strerror}; give another folder with --out"
        ) from None


def _write(out: Path, answer: dict[str, Any], runs: list[Run], plan: Plan | None) -> None:
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


def _record(folder: Path) -> dict[str, Any]:
    """What `run.json` says of a run."""
    try:
        record = json.loads((folder / RECORD).read_text())
        if not isinstance(record, dict):
            raise ValueError("it is no JSON object")
        if missing := {"experiment", "parameters", "rows"} - record.keys():
            raise ValueError(f"{RECORD} has no {', '.join(sorted(missing))}")
    except (OSError, ValueError) as error:
        raise TidegateError(f"{folder} holds no run: {error}") from None
    return record


def _is_whole(folder: Path) -> bool:
    """Whether a folder holds a run that was not interrupted."""
    try:
        return not _record(folder).get("interrupted")
    except TidegateError:
        return False


def redraw(folder: Path) -> Figure:
    """The figure of a run's folder, from its tables."""
    answer = _record(folder)
    if answer.get("interrupted"):
        raise TidegateError(f"{folder} holds a run that was interrupted; run it again to draw it")
    parameters = _tuples(answer["parameters"])
    parameters.pop("quick", None)
    plan = find(answer["experiment"]).plan(**parameters)
    runs = []
    for (case, seed), rows in groupby(answer["rows"], key=lambda row: (row["case"], row["seed"])):
        tables = folder / TABLES_FOLDER / f"{case}-{seed}"
        frames = {table: pl.read_parquet(tables / f"{table}.parquet") for table in TABLES}
        runs.append(Run(case, seed, list(rows), frames))
    return plan.draw(runs)


def replot(folder: Path) -> Path:
    """Draw the figure of a run's folder again, from its tables."""
    figure = folder / FIGURE
    redraw(folder).savefig(figure, dpi=150)
    return figure


def _tuples(parameters: dict[str, Any]) -> dict[str, Any]:
    return {name: tuple(value) if isinstance(value, list) else value for name, value in parameters.items()}


def median(rows: list[Row], case: str, column: str) -> float:
    """The median of a column over the seeds."""
    return float(statistics.median(row[column] for row in rows if row["case"] == case))


def medians(rows: Iterable[Row], column: str, label: Callable[[Row], str]) -> dict[str, float]:
    """The medians of a column over the rows of one label (that is, over the seeds)."""
    groups: dict[str, list[float]] = {}
    for row in rows:
        groups.setdefault(label(row), []).append(row[column])
    return {name: float(np.median(values)) for name, values in groups.items()}


def spread(rows: list[Row], case: str, column: str) -> tuple[float, float]:
    """Smallest and largest of a column over the seeds."""
    values = [row[column] for row in rows if row["case"] == case]
    return min(values), max(values)
