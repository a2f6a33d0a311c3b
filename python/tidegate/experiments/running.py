"""Runs experiments: every case with every seed, each in a process of its own; keeps what is done, however it ends.

A process that dies loses its own run. Ctrl-C, SIGTERM and SIGHUP end a run early, and what is done is saved. If this process is killed,
the kernel kills the others, and `--resume` finds what they had done.
"""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.experiments import digests, folder, user_code
from tidegate.experiments.answer import Answer
from tidegate.experiments.executors import for_machine
from tidegate.experiments.input_file import identity, recorded
from tidegate.experiments.jobs import ENDING, Ended, Executor, Jobs, OfExperiment, Recipe
from tidegate.experiments.plan import Plan, Run
from tidegate.experiments.registry import demand_backend, find
from tidegate.lab.death import handled
from tidegate.network import Network

CORRECTED = "the experiment's files have changed since its runs were done: claims and figure are of the files as they are now"


class Interrupted(KeyboardInterrupt):
    """Ctrl-C; the results so far are saved, and the text says where."""


@dataclass(frozen=True)
class Status:
    """How far an experiment is."""

    done: float
    """Runs that are done, with the parts of those that are under way."""
    total: int
    running: tuple[str, ...]
    """The cases under way."""
    finished: tuple[Run, ...]
    """The runs that have ended since the last call, without their tables."""


@contextmanager
def _undisturbed() -> Iterator[None]:
    """What ends this process waits until this is done, or has failed: that ends it too.

    The signals are not blocked, as that is for one thread, and the kernel gives them to another one, of Polars' say.
    """
    came: list[int] = []
    with handled(lambda number, _: came.append(number), ENDING):
        yield
    if came:
        signal.raise_signal(came[0])


def run(
    name: str,
    parameters: dict[str, Any],
    *,
    backend: str = "sim",
    seeds: list[int],
    quick: bool = False,
    out: Path,
    progress: Callable[[float, int], None] | None = None,
    watch: Callable[[Status], None] | None = None,
    processes: int = 1,
    resume: bool = False,
    executor: Executor | None = None,
    live_profile: str | None = None,
    threads: int = 1,
) -> Answer:
    """Run every case with every seed, write the folder `out`, and return the contents of `--json`.

    Parameters that are not given have their defaults, with `quick` those for less time, and the backend's where it has its own.

    The folder holds `run.json` (parameters, seeds, versions, rows, claims), the tables of every run, and the figure. It
    appears when all is done. A run that is there is replaced, and what else is in its folder stays; a folder of something
    else is refused, as is one that cannot be written, before anything runs. On Ctrl-C, SIGTERM and SIGHUP the folder holds the
    tables up to then, `run.json` says `"interrupted": true`, and `Interrupted` is raised; a whole run that is there stays, and the
    folder's name has `.interrupted` at its end. The same holds where a run fails, or its process dies: the error says where the
    complete runs are.

    `resume` takes the complete runs of an interrupted one there, which has to have the same parameters and version, and does the
    others; of a complete one with the same files there is nothing to do. `processes` is how many run at once, or fewer, so that they
    use no more threads in all; where this process has worked with Polars already, it is one. `executor` takes the place of these
    processes (`tidegate.experiments.executors.cluster` has one for Dask), with the same results. `progress` hears of how many runs
    are done, with the part of those that are under way, and of how many there are; `watch` also hears of which cases
    run and of the runs that have ended. `live_profile` and `threads` are those of `Network.run`; results do not
    depend on `threads`.
    """
    one = find(name)
    name = one.name
    demand_backend(one, backend)
    parameters = one.with_files({**one.parameters(quick, backend), **parameters})
    one.check(parameters)
    about: dict[str, Any] = {
        "experiment": name,
        "backend": backend,
        "parameters": recorded({**parameters, "quick": quick}),
        "seeds": seeds,
    }
    if live_profile is not None:
        about["live_profile"] = live_profile
    if one.source is not None:
        about["source"] = one.source
    return carry_out(
        OfExperiment(one.source or name, parameters),
        about,
        out=out,
        progress=progress,
        watch=watch,
        processes=processes,
        resume=resume,
        executor=executor,
        threads=threads,
    )


def carry_out(
    recipe: Recipe,
    about: dict[str, Any],
    *,
    out: Path,
    progress: Callable[[float, int], None] | None = None,
    watch: Callable[[Status], None] | None = None,
    processes: int = 1,
    resume: bool = False,
    executor: Executor | None = None,
    table: bool = False,
    threads: int = 1,
) -> Answer:
    """Run the cases of a recipe's plan with the seeds of `about`, as `run` does; `about` says what is run, for the record.

    With `table`, the folder has the rows as a table, `rows.csv`, too.
    """
    name, backend, seeds = about["experiment"], about["backend"], about["seeds"]
    plan = recipe.plan()
    about = {**about, "files": digests.of_experiment(recipe.name)}
    if not plan.cases:
        raise TidegateError(f"{name}: with these parameters there is nothing to run")
    order = {case.name: index for index, case in enumerate(plan.cases)}
    for case in order:
        folder.demand_name(case, max(seeds, default=0))
    if len(order) < len(plan.cases):
        twice = next(case.name for index, case in enumerate(plan.cases) if order[case.name] != index)
        raise TidegateError(f"{name}: two cases are {twice}; give each value once")
    if backend == "live":
        from tidegate.lab.plan import demand_controls

        # Those made from a seed are looked at when it is their turn.
        demand_controls({case.name: case.network for case in plan.cases if isinstance(case.network, Network)})
    work = folder.Work(out, table=table)
    ended = Ended()
    corrected: list[str] = []
    try:
        source = folder.to_go_on(out) if resume else None
        earlier: list[Run] = []
        if source is not None:
            earlier, files = folder.resumed(source, about, order)
            if source == out and (there := _as_it_is(source, about)) is not None:
                work.discard()
                return there
            if files != about["files"]:
                about, corrected = {**about, "files": files}, [CORRECTED]
        for one in earlier:
            if one.case not in order:
                raise TidegateError(
                    f"{source} has a case {one.case}, which {name} does not have; leave out --resume to begin again"
                )
        work.begin(about)
        if source is not None:
            work.take_over(source, earlier)
        had = {(one.case, one.seed) for one in earlier}
        jobs = [
            (index, seed)
            for seed in seeds
            for index, case in enumerate(plan.cases)
            if (case.name, seed) not in had
        ]
        total = len(earlier) + len(jobs)

        def tell(done: float, under_way: list[int], ended: list[Run]) -> None:
            done += len(earlier)
            if progress is not None:
                progress(done, total)
            if watch is not None:
                running = (plan.cases[jobs[number][0]].name for number in under_way)
                watch(Status(done, total, tuple(running), tuple(ended)))

        carrier = executor or for_machine(processes, len(jobs), backend)
        carrier.run(
            Jobs(recipe, plan.cases, jobs, backend, work, about.get("live_profile"), threads), tell, ended
        )
    except BaseException as error:
        if not ended.runs or not isinstance(error, KeyboardInterrupt):
            work.discard()
            raise
        # It came between two steps.
        ended.interrupted = True
    with _undisturbed():
        answer = _kept(plan, about, order, earlier, ended, work, source, total, table, corrected)
    # They are for --resume.
    answer.pop("files", None)
    return answer


def _as_it_is(source: Path, about: dict[str, Any]) -> Answer | None:
    """A whole run in which there is nothing to do again."""
    there = folder.read_record(source)
    same = identity(json.loads(json.dumps(about)))
    if there.get("interrupted") or any(identity(there.get(name)) != value for name, value in same.items()):
        return None
    answer = Answer(
        {name: value for name, value in there.items() if name not in ("files", "interrupted", "versions")}
    )
    answer["out"] = str(source)
    answer.complete_before = True
    return answer


def warnings(runs: list[Run]) -> list[str]:
    """What runs warn of; what all of several do, once."""
    said = [set(run.warnings) for run in runs]
    by_all = set.intersection(*said) if len(runs) > 1 else set()
    once = dict.fromkeys(warning for run in runs for warning in run.warnings if warning in by_all)
    return [
        *(f"all {len(runs)} runs: {warning}" for warning in once),
        *(
            f"{run.case}, seed {run.seed}: {warning}"
            for run in runs
            for warning in run.warnings
            if warning not in by_all
        ),
    ]


def _report(answer: dict[str, Any], runs: list[Run], figure: bytes) -> str | None:
    """The run's report. A fault in it costs the report, not the run: a warning says so."""
    from tidegate import report

    try:
        return report.of_run({**answer, "versions": folder.versions()}, runs, figure)
    except Exception as error:
        answer["warnings"].append(
            f"{folder.REPORT} could not be made: {type(error).__name__}: {error}; `tidegate report` on the run's folder shows why"
        )
        return None


def _kept(
    plan: Plan,
    about: dict[str, Any],
    order: dict[str, int],
    earlier: list[Run],
    ended: Ended,
    work: folder.Work,
    source: Path | None,
    total: int,
    table: bool,
    corrected: list[str],
) -> Answer:
    """Write what there is, and return it or raise why it is not all."""
    runs = sorted((*earlier, *ended.runs), key=lambda r: (r.seed, order[r.case]))
    rows = [row for r in runs if r.rows is not None for row in r.rows]
    done = sum(r.rows is not None for r in runs)
    figure, claims = None, []
    complete: list[Run] = []
    if done == total:
        # Whatever has come in the meantime: all is done.
        ended.interrupted = False
        try:
            with user_code.blamed():
                claims = [asdict(claim) for claim in plan.judged(rows)]
                # A sweep is drawn from its rows.
                complete = runs if table else work.read_tables(runs)
                figure = plan.picture(complete)
        except Exception as error:
            ended.error = error
    new = [r for r in ended.runs if ended.interrupted or r.rows is not None]
    if figure is None and not new:
        work.discard()
        if ended.error is not None:
            raise ended.error
        if ended.lost:
            raise TidegateError(f"{'; '.join(ended.lost)}; no run was done, and nothing is saved")
        raise Interrupted(f"interrupted with 0 of {total - len(earlier)} runs done; nothing is saved")
    answer = {
        **about,
        "rows": rows,
        "claims": claims if figure is not None else [],
        "warnings": [*warnings(runs), *corrected],
    }
    report = _report(answer, [] if table else complete, figure) if figure is not None else None
    shown = work.finish(answer, figure, report)
    if source is not None and source != shown:
        folder.remove(source)
    if figure is not None:
        folder.remove_left(work.out)
        return Answer(answer, out=str(shown))
    there = f"{done} of {total} runs are done and in {shown}; the same command with --resume does the others"
    if done == total:
        all_of_them = "the only run is done" if total == 1 else f"all {total} runs are done"
        there = f"{all_of_them} and in {shown}; correct that, and --resume runs nothing again"
    if isinstance(ended.error, TidegateError):
        raise TidegateError(f"{ended.error}; {there}")
    if ended.error is not None:
        ended.error.add_note(there)
        raise ended.error
    if ended.lost:
        raise TidegateError(f"{'; '.join(ended.lost)}; {there}")
    raise Interrupted(
        f"interrupted with {done} of {total} runs done; tables up to then are in {shown}; "
        "the same command with --resume goes on"
    )
