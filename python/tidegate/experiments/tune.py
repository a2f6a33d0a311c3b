"""Tuning: Optuna looks for the parameters of an experiment with which columns of its rows are least or greatest.

Trials are asked for and told in batches: the runs of a batch are carried out together, as an experiment's are, so that the study is the
same however many runs go on at once. With pruning, a batch runs seed by seed, and a trial that is worse than the median of the others
after as many seeds is given up. The study is in a storage of Optuna's; what it has is not run again. The trials and runs of a batch that
was interrupted are taken up again (`tune_batch`): the study is that of a command that was not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError, __version__
from tidegate.claims import Row
from tidegate.experiments import digests
from tidegate.experiments.answer import Answer
from tidegate.experiments.columns import Column, chosen
from tidegate.experiments.executors import for_machine
from tidegate.experiments.folder import versions
from tidegate.experiments.input_file import File, differences, identity, recorded
from tidegate.experiments.jobs import Ended, Executor, Jobs, NotCarriedOut
from tidegate.experiments.plan import Run, as_png
from tidegate.experiments.registry import Experiment, converted, find
from tidegate.experiments.running import Interrupted
from tidegate.experiments.sweep import Points
from tidegate.experiments.tune_batch import BATCH, JOURNAL, WHO, Journal, here, is_left, sampler
from tidegate.experiments.tune_figure import draw
from tidegate.experiments.tune_storage import goes_on, journal_file
from tidegate.files import json_text, replacing, why
from tidegate.units import counted

EXTRA = 'tuning needs more packages: pip install "tidegate[tune]"'
RECORD, TABLE, FIGURE, REPORT, STUDY = "tune.json", "trials.csv", "figure.png", "report.html", "study.db"
ABOUT = "tidegate"
"""The attribute of a study that says what it is of."""
JUDGED_BY = ("objectives", "where")
"""Of what a study is of: what no trial depends on before it has a value."""
OTHER_FILE = "does not hold studies of Optuna's; give another file, or one that is not there yet"
WHY = "no value"
"""The attribute of a trial whose objectives are not finite: why."""


@dataclass(frozen=True)
class Range:
    """The values of a parameter that are tried: numbers from `low` to `high`, or `choices`."""

    name: str
    low: float = 0
    high: float = 0
    log: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()

    @classmethod
    def parse(cls, text: str, one: Experiment) -> Range:
        """Read `NAME=LO:HI[:log]`, or `NAME=V1,V2,...` of values that are no range."""
        name, sign, values = text.partition("=")
        if not sign or not values:
            raise TidegateError(
                f"--range {text}: write it as name=low:high, name=low:high:log or name=value,value"
            )
        name, defaults = name.strip(), one.samples()
        if name not in defaults:
            raise TidegateError(one.no_parameter(name))
        if isinstance(defaults[name], File):
            raise TidegateError(
                f"--range {text}: {name} is a file; --set one, or `tidegate sweep` over several"
            )
        if ":" not in values or one.owners().get(name):
            choices = tuple(value.strip() for value in values.split(","))
            for choice in choices:
                one.check(one.with_files({name: converted(name, choice, defaults[name], "--range")}))
            if len(set(choices)) < len(choices):
                raise TidegateError(f"--range {text}: a value is given twice")
            return cls(name, choices=choices)
        low, high, *rest = values.split(":")
        if rest not in ([], ["log"]):
            raise TidegateError(f"--range {text}: after low:high stands `log` or nothing")
        ends = [converted(name, end, defaults[name], "--range") for end in (low, high)]
        for end in ends:
            one.check({name: end})
        ends = [end[0] if isinstance(end, tuple) else end for end in ends]
        if any(isinstance(end, bool | str) for end in ends):
            raise TidegateError(
                f"--range {text}: {name} is not a number; give its values as {name}=value,value"
            )
        if not ends[0] < ends[1] or (rest and ends[0] <= 0):
            raise TidegateError(f"--range {text}: low is to be below high, and above 0 with log")
        return cls(name, ends[0], ends[1], bool(rest), isinstance(ends[0], int))

    def __str__(self) -> str:
        if self.choices:
            return f"{self.name}={','.join(self.choices)}"
        return f"{self.name}={self.low}:{self.high}{':log' * self.log}"

    def distribution(self) -> Any:
        """As Optuna takes it."""
        from optuna import distributions

        if self.choices:
            return distributions.CategoricalDistribution(self.choices)
        if self.whole:
            return distributions.IntDistribution(int(self.low), int(self.high), log=self.log)
        return distributions.FloatDistribution(self.low, self.high, log=self.log)

    def suggest(self, trial: Any) -> None:
        """Have a trial's value suggested, if it has none."""
        if self.choices:
            trial.suggest_categorical(self.name, self.choices)
        elif self.whole:
            trial.suggest_int(self.name, int(self.low), int(self.high), log=self.log)
        else:
            trial.suggest_float(self.name, self.low, self.high, log=self.log)

    def value(self, tried: Any, default: Any) -> Any:
        """A value that Optuna tries, as the experiment takes it."""
        return converted(self.name, tried if isinstance(tried, str) else repr(tried), default, "--range")


@dataclass(frozen=True)
class Objective:
    """A column of the rows that is to be least or greatest."""

    column: Column
    maximise: bool

    @property
    def direction(self) -> str:
        """As Optuna says it."""
        return "maximize" if self.maximise else "minimize"


@dataclass(frozen=True)
class Task:
    """What is tuned."""

    experiment: str
    parameters: dict[str, Any]
    ranges: tuple[Range, ...]
    objectives: tuple[Objective, ...]
    seeds: tuple[int, ...]
    where: tuple[tuple[str, str], ...] = ()
    prune: bool = False

    def check(self) -> None:
        """Raise `TidegateError` for what cannot be tuned."""
        if not self.ranges or not self.objectives:
            raise TidegateError(
                "give a --range of a parameter at least, and a column to --minimise or --maximise"
            )
        names = [one.name for one in self.ranges]
        if len(set(names)) < len(names):
            raise TidegateError("two --range are of one parameter; give each once")
        if self.prune and len(self.objectives) > 1:
            raise TidegateError(
                "--prune is for one objective: of several, no trial is worse than the others by one number"
            )
        if self.prune and len(self.seeds) < 2:
            raise TidegateError("--prune gives trials up between seeds; give --repeat 2 or more")
        columns = [one.column for one in self.objectives]
        for column in columns:
            if columns.count(column) > 1:
                raise TidegateError(f"{column} is in --minimise and --maximise twice in all; give it once")

    def about(self) -> dict[str, Any]:
        """What has to be the same for trials to be of one study."""
        return {
            "experiment": self.experiment,
            "parameters": recorded(
                {name: value for name, value in self.parameters.items() if name not in self.tuned}
            ),
            "objectives": [[str(one.column), one.direction] for one in self.objectives],
            "seeds": list(self.seeds),
            "where": [list(one) for one in self.where],
            "tidegate": __version__,
            "files": digests.of_experiment(self.experiment),
        }

    @property
    def tuned(self) -> set[str]:
        """Names of the parameters that are tried."""
        return {one.name for one in self.ranges}

    def demand(self, rows: list[Row]) -> None:
        """Raise `TidegateError` for an objective that is no column of any row, or one of text."""
        rows = chosen(rows, self.where)
        for one in self.objectives:
            found = [row[one.column.name] for row in rows if one.column.name in row]
            if rows and (not found or any(isinstance(value, str | bool) for value in found)):
                one.column.demand(rows)

    def values(self, rows: list[Row]) -> list[float]:
        """The objectives of a trial's rows. Raises `TidegateError` for what is not finite."""
        rows = chosen(rows, self.where)
        values = [one.column.of(rows) for one in self.objectives]
        for one, value in zip(self.objectives, values, strict=True):
            if not math.isfinite(value):
                raise TidegateError(f"{one.column} is {value:g}, of which nothing is least or greatest")
        return values


class _OfRuns(Exception):
    """Carries what has ended the runs out of `_kept_by`: the storage has no part in it."""

    def __init__(self, error: BaseException) -> None:
        super().__init__()
        self.error = error


@contextmanager
def _kept_by(storage: str) -> Iterator[None]:
    """What a storage does not do is said in one message."""
    import sqlalchemy
    from optuna.exceptions import OptunaError

    try:
        yield
    except (OptunaError, sqlalchemy.exc.SQLAlchemyError, ImportError) as error:
        cause = error.__cause__ or error
        cause = getattr(cause, "orig", None) or cause
        raise TidegateError(f"--storage {storage}: {str(cause).splitlines()[0]}{goes_on(cause)}") from None
    except OSError as error:
        raise TidegateError(f"--storage {storage}: {why(error)}{goes_on(error)}") from None
    except json.JSONDecodeError:
        raise TidegateError(f"--storage {storage}: {OTHER_FILE}") from None
    except _OfRuns as ended:
        raise ended.error from ended.error.__cause__


def _storage(text: str) -> Any:
    """A URL of a database, or a file that is written at its end only, which folders of networks carry too."""
    if "://" in text:
        return text
    try:
        # It reads what is there.
        return journal_file(text)
    except (ValueError, KeyError, TypeError, AttributeError):
        raise TidegateError(f"--storage {text}: {OTHER_FILE}") from None


def run(
    task: Task,
    *,
    trials: int,
    out: Path,
    storage: str | None = None,
    study: str | None = None,
    batch: int = 4,
    processes: int = 1,
    progress: Callable[[float, int], None] | None = None,
    executor: Executor | None = None,
    threads: int = 1,
    resume: bool = False,
) -> Answer:
    """Go on with a study until it has so many trials; writes `tune.json`, `trials.csv`, the figure and a report to `out`.

    `resume` refuses to begin a study. `processes`, `progress`, `executor` and `threads` are those of `experiments.run`; no result depends on them. What the runs warn of is in
    `warnings`, each text once.
    """
    try:
        import optuna
    except ImportError:
        raise TidegateError(EXTRA) from None
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    task.check()
    task = _planned(task)
    name = study or task.experiment
    if resume:
        _demand_there(out, storage, name)
    _demand_folder(out)
    storage = storage or f"sqlite:///{(out / STUDY).resolve()}"
    with _kept_by(storage):
        store = _storage(storage)
        _remove_without_values(store, task, name)
        found = optuna.create_study(
            storage=store,
            study_name=name,
            directions=[one.direction for one in task.objectives],
            pruner=optuna.pruners.MedianPruner(n_startup_trials=batch)
            if task.prune
            else optuna.pruners.NopPruner(),
            load_if_exists=True,
        )
        _demand_same(found, task, name)
        _demand_same_ranges(found, task, name)
        of_runs = {key: value for key, value in identity(task.about()).items() if key not in JUDGED_BY}
        journal = Journal(out, {**of_runs, "study": name})
        search = _Search(
            task,
            found,
            trials,
            batch,
            executor,
            processes,
            progress or (lambda done, total: None),
            threads,
            journal,
        )
        before = len(found.get_trials(deepcopy=False))
        search.run()
        answer = _written(task, found, out, storage, list(search.warnings), batch)
        answer.complete_before = before == len(answer["trials"])
        return answer


def _planned(task: Task) -> Task:
    """The task with the reference of its experiment, by which a worker finds it too."""
    one = find(task.experiment)
    return replace(task, experiment=one.source or one.name, parameters=one.with_files(task.parameters))


def _demand_there(out: Path, storage: str | None, name: str) -> None:
    """Refuse a study that would begin."""
    from optuna import get_all_study_names

    file = out / STUDY if storage is None else Path(storage) if "://" not in storage else None
    if file is None or file.exists():
        url = storage or f"sqlite:///{(out / STUDY).resolve()}"
        with _kept_by(url):
            if name in get_all_study_names(_storage(url)):
                return
    raise TidegateError(f"{storage or out} has no study {name} to go on with; leave out --resume")


def _demand_folder(out: Path) -> None:
    try:
        ours = any((out / name).exists() for name in (STUDY, RECORD, JOURNAL))
        if out.exists() and any(out.iterdir()) and not ours:
            raise TidegateError(f"{out} exists and does not hold a study; give another folder with --out")
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise TidegateError(
            f"{out}: a study cannot be written there: {why(error)}; give another --out"
        ) from None


def _remove_without_values(storage: Any, task: Task, name: str) -> None:
    """Remove a study of other objectives none of whose trials has a value or is under way: it begins anew with these.

    Its trials have the same numbers again, and so the same parameters: the runs that are done are in the journal.
    """
    import optuna
    from optuna.trial import TrialState

    if name not in optuna.get_all_study_names(storage):
        return
    study = optuna.load_study(study_name=name, storage=storage)
    differing = _differing(study, task)
    if not differing or not set(differing) <= set(JUDGED_BY):
        return
    open_states = (TrialState.RUNNING, TrialState.WAITING)
    if all(
        one.state == TrialState.FAIL or (one.state in open_states and is_left(one))
        for one in study.get_trials(deepcopy=False)
    ):
        optuna.delete_study(study_name=name, storage=storage)


def _differing(study: Any, task: Task) -> list[str]:
    """In what a study that has begun is of something else; what a study without values takes anew comes last."""
    there, about = study.user_attrs.get(ABOUT), _about(task)
    if there is None:
        return []
    other = [key for key in about if identity(there.get(key)) != identity(about[key])]
    return sorted(other, key=JUDGED_BY.__contains__)


def _about(task: Task) -> dict[str, Any]:
    """What a study is of, as a study gives it back."""
    about: dict[str, Any] = json.loads(json.dumps(task.about()))
    return about


def _demand_same(study: Any, task: Task, name: str) -> None:
    there = study.user_attrs.get(ABOUT)
    if there is None:
        study.set_user_attr(ABOUT, _about(task))
    elif differing := _differing(study, task):
        other = differing[0]
        if other == "files":
            raise TidegateError(
                f"the files of Tidegate or of the experiment have changed since the study {name} was begun; "
                "give another --study or --out"
            )
        had, wanted = there.get(other), _about(task)[other]
        said = f"other {other}: {had} and not {wanted}"
        if other == "parameters":
            said = differences(had, wanted)
        raise TidegateError(f"the study {name} is of {said}; give the same, or another --study or --out")


def _demand_same_ranges(study: Any, task: Task, name: str) -> None:
    """Optuna takes other ends of a range in one study, but no other choices and no other kind."""
    from optuna.distributions import check_distribution_compatibility

    for trial in study.get_trials(deepcopy=False):
        for one in task.ranges:
            if (had := trial.distributions.get(one.name)) is None:
                continue
            try:
                check_distribution_compatibility(had, one.distribution())
            except ValueError:
                choices = getattr(had, "choices", None)
                said = f"{had.low}:{had.high}{':log' * had.log}" if choices is None else ",".join(choices)
                raise TidegateError(
                    f"the study {name} has a trial with {one.name}={said}; give the same choices, or a range of "
                    "the same kind, or another --study or --out"
                ) from None


class _Search:
    """Batches of trials, until there are enough."""

    def __init__(
        self,
        task: Task,
        study: Any,
        trials: int,
        batch: int,
        executor: Executor | None,
        processes: int,
        progress: Callable[[float, int], None],
        threads: int,
        journal: Journal,
    ) -> None:
        self._task, self._study, self._total, self._batch = task, study, trials, batch
        self._executor, self._processes, self._progress = executor, processes, progress
        self._threads, self._journal = threads, journal
        self.warnings: dict[str, None] = {}
        """What the runs warn of, each text once."""
        self._defaults = find(task.experiment).samples()

    def _finished(self) -> int:
        from optuna.trial import TrialState

        ended = (TrialState.COMPLETE, TrialState.PRUNED, TrialState.FAIL)
        # Of those that have failed, a trial that ran to its end counts.
        return sum(
            trial.state != TrialState.FAIL or WHY in trial.user_attrs
            for trial in self._study.get_trials(deepcopy=False, states=ended)
        )

    def run(self) -> None:
        """Ask, run, tell."""
        import optuna

        self._study.sampler = sampler(self._task.seeds[0])
        failed: str | None = None
        while (finished := self._finished()) < self._total:
            asked: list[Any] = []
            told = failed is None
            try:
                self._ask(asked, finished)
                failed = self._evaluate(asked, finished)
            except BaseException as error:
                self._end(asked, error)
                raise
            self._journal.clear()
            if failed is not None and not told:
                raise TidegateError(f"two batches of trials have failed, the last with: {failed}")
        if failed is not None and not self._study.get_trials(
            deepcopy=False, states=(optuna.trial.TrialState.COMPLETE,)
        ):
            raise TidegateError(f"no trial has a value, the last as {failed}")

    def _ask(self, asked: list[Any], finished: int) -> None:
        """A batch of trials: what an interrupted one has left, or else a new one."""
        import optuna
        from optuna.trial import TrialState

        there = self._study.get_trials(deepcopy=False)
        open_states = (TrialState.RUNNING, TrialState.WAITING)
        left = [one for one in there if one.state in open_states and is_left(one)]
        of = (
            left[0].user_attrs[BATCH]
            if left
            else [here(), len(there), min(self._batch, self._total - finished)]
        )
        for one in left:
            if one.user_attrs[BATCH] == of and one.state == TrialState.RUNNING:
                self._begin(optuna.trial.Trial(self._study, one._trial_id), of, asked)
        begun = sum(one.user_attrs.get(BATCH) == of and one.state != TrialState.WAITING for one in there)
        waiting = any(one.user_attrs[BATCH] == of and one.state == TrialState.WAITING for one in left)
        for number in range(of[2] - begun):
            if number or not waiting:
                # It says from its beginning whose it is.
                self._study.enqueue_trial({}, user_attrs={WHO: here(), BATCH: of})
            self._begin(self._study.ask(), of, asked)

    def _begin(self, trial: Any, of: list[Any], asked: list[Any]) -> None:
        asked.append(trial)
        for name, value in ((WHO, here()), (BATCH, of)):
            if trial.user_attrs.get(name) != value:
                trial.set_user_attr(name, value)
        for one in self._task.ranges:
            one.suggest(trial)

    def _evaluate(self, asked: list[Any], finished: int) -> str | None:
        """Run the trials of a batch; why all of them have failed, if they have."""
        from optuna.trial import TrialState

        there = self._study.get_trials(deepcopy=False)
        reported = {one.number: one.intermediate_values for one in there}
        # Of a batch that is complete in part, none is given up any more: that was decided without those.
        decided = any(
            one.state == TrialState.COMPLETE and one.user_attrs.get(BATCH) == asked[0].user_attrs[BATCH]
            for one in there
        )
        points = [
            find(self._task.experiment).with_files(
                {
                    one.name: one.value(trial.params[one.name], self._defaults[one.name])
                    for one in self._task.ranges
                }
            )
            for trial in asked
        ]
        fixed = {name: v for name, v in self._task.parameters.items() if name not in self._task.tuned}
        rows: dict[int, list[Row]] = {}
        why_failed = ""
        for number in range(len(asked)):
            try:
                Points(self._task.experiment, fixed, points).cases(number)
                rows[number] = []
            except TidegateError as error:
                # Values that do not go together.
                why_failed = str(error)
                self._study.tell(asked[number], state=TrialState.FAIL)
        steps = [(seed,) for seed in self._task.seeds] if self._task.prune else [self._task.seeds]
        for step, seeds in enumerate(steps):
            begin, part = step / len(steps), len(rows) / len(steps)
            alive = list(rows)
            # By their numbers: two trials may have the same values.
            labels = [f"trial {asked[number].number}:" for number in alive]
            recipe = Points(self._task.experiment, fixed, [points[number] for number in alive], labels=labels)
            lost = self._carry_out(recipe, alive, seeds, rows, finished + begin * len(rows), part)
            self._task.demand([row for number in alive for row in rows[number]])
            for number in alive:
                if number in lost:
                    why_failed = lost[number]
                    self._study.tell(asked[number], state=TrialState.FAIL)
                    del rows[number]
                    continue
                try:
                    values = self._task.values(rows[number])
                except TidegateError as error:
                    why_failed = str(error)
                    asked[number].set_user_attr(WHY, why_failed)
                    self._study.tell(asked[number], state=TrialState.FAIL)
                    del rows[number]
                    continue
                if step + 1 == len(steps):
                    self._study.tell(asked[number], values)
                elif self._task.prune:
                    if step not in reported[asked[number].number]:
                        asked[number].report(values[0], step)
                    if not decided and asked[number].should_prune():
                        self._study.tell(asked[number], state=TrialState.PRUNED)
                        del rows[number]
            if not rows:
                break
        return why_failed if not rows and why_failed else None

    def _carry_out(
        self,
        recipe: Points,
        alive: list[int],
        seeds: tuple[int, ...],
        rows: dict[int, list[Row]],
        before: float,
        part: float,
    ) -> dict[int, str]:
        """Run the cases of trials with seeds, and add their rows; which trials have lost a run, and why."""
        each = [recipe.cases(at) for at in range(len(alive))]
        owners = [number for number, cases in zip(alive, each, strict=True) for _ in cases]
        cases = [case for one in each for case in one]
        places = {case.name: index for index, case in enumerate(cases)}
        points = {case.name: recipe.points[at] for at, own in enumerate(each) for case in own}
        self._journal.begin(points)
        runs = [self._journal.had(case.name, seed) for seed in seeds for case in cases]
        earlier = [one for one in runs if one is not None]
        had = {(places[one.case], one.seed) for one in earlier}
        every = [(index, seed) for seed in seeds for index in range(len(cases))]
        wanted = [job for job in every if job not in had]
        ended = Ended()

        def tell(done: float, under_way: list[int], runs: list[Run]) -> None:
            self._progress(before + part * (len(earlier) + done) / len(every), self._total)

        executor = self._executor or for_machine(self._processes, len(wanted), "sim")
        jobs = Jobs(recipe, cases, wanted, "sim", self._journal, threads=self._threads)
        try:
            if wanted:
                executor.run(jobs, tell, ended)
        except (OSError, ImportError) as error:
            raise _OfRuns(error) from None
        ended.runs[:0] = earlier
        self.warnings |= dict.fromkeys(warning for one in ended.runs for warning in one.warnings)
        if ended.error is not None:
            raise _OfRuns(ended.error)
        if ended.interrupted:
            raise Interrupted(
                f"interrupted with {self._finished()} of {self._total} trials done; the study has them, and {counted(len(ended.runs), 'run')} "
                "of the next; the same command goes on"
            )
        missing = set(every)
        for one in sorted(ended.runs, key=lambda one: (one.seed, places[one.case])):
            missing.discard((places[one.case], one.seed))
            rows[owners[places[one.case]]] += one.rows or []
        lost = "; ".join(ended.lost) or "a run has not ended"
        return {owners[index]: lost for index, _ in missing}

    def _end(self, asked: list[Any], error: BaseException) -> None:
        """Leave the trials of a batch to who goes on, or fail those whose runs have ended it."""
        from optuna.trial import TrialState

        of_runs = error.error if isinstance(error, _OfRuns) else error
        goes_on = isinstance(of_runs, KeyboardInterrupt | NotCarriedOut | OSError | ImportError)
        numbers = {trial.number: trial for trial in asked}
        for trial in self._study.get_trials(deepcopy=False, states=(TrialState.RUNNING,)):
            if trial.number not in numbers:
                continue
            if goes_on:
                numbers[trial.number].set_user_attr(WHO, "")
            else:
                self._study.tell(trial.number, state=TrialState.FAIL)


def _written(task: Task, study: Any, out: Path, storage: str, warnings: list[str], batch: int) -> Answer:
    """The files of a study, and the contents of `tune.json`."""
    import polars as pl

    from tidegate import report

    trials = [
        {
            "trial": trial.number,
            "state": trial.state.name.lower(),
            **trial.params,
            **{
                str(one.column): trial.values[index] if trial.values else None
                for index, one in enumerate(task.objectives)
            },
        }
        for trial in study.get_trials(deepcopy=False)
    ]
    best = [
        {"trial": trial.number, "parameters": trial.params, "values": trial.values}
        for trial in study.best_trials
    ]
    answer = {
        **task.about(),
        "ranges": [str(one) for one in task.ranges],
        "batch": batch,
        "prune": task.prune,
        "storage": storage,
        "study": study.study_name,
        "trials": trials,
        "best": best,
        "warnings": warnings,
        "versions": versions(),
        "out": str(out),
    }
    try:
        with replacing(out / RECORD) as file:
            file.write((json_text(answer, indent=1) + "\n").encode())
        with replacing(out / TABLE) as file:
            pl.DataFrame(trials, infer_schema_length=None).write_csv(file)
        figure = as_png(draw(study, [str(one.column) for one in task.objectives]))
        with replacing(out / FIGURE) as file:
            file.write(figure)
        with replacing(out / REPORT) as file:
            file.write(report.of_study(answer, figure).encode())
    except TidegateError as error:
        raise TidegateError(
            f"{error}; nothing is lost: the trials are in {storage}, and the same command writes the files"
        ) from None
    return Answer(answer)
