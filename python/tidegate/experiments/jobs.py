"""What an executor does: runs cases with seeds, hands each to a store as it ends, and says how far it is."""

from __future__ import annotations

import pickle
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from tidegate._core import TidegateError
from tidegate.experiments import user_code
from tidegate.experiments.plan import Case, Plan, Run
from tidegate.experiments.registry import find
from tidegate.lab.death import handled
from tidegate.results import TABLES

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
AGAIN_S = 2.0
"""A signal so long after the first is another one: `timeout` and terminals send one twice."""
LOOK_S = 0.1
"""How often an executor that waits looks whether it is to end."""

Job = tuple[int, int]
"""The number of a case, and a seed."""
Tell = Callable[[float, list[int], list[Run]], None]
"""Hears of the runs done with parts of those under way, of the jobs under way, and of the runs that have ended."""


class NotCarriedOut(TidegateError):
    """What runs jobs, or keeps them, has failed: the fault is of no run."""


class Recipe(Protocol):
    """Makes the plan of what is run. It can be pickled, so that another process or machine makes the same cases."""

    @property
    def name(self) -> str:
        """The experiment, as `find` takes it."""

    def plan(self) -> Plan:
        """The whole plan."""

    def case(self, index: int) -> Case:
        """A case of it that nobody has run."""


@dataclass(frozen=True)
class OfExperiment:
    """The recipe of one experiment with its parameters."""

    name: str
    parameters: dict[str, Any]

    def plan(self) -> Plan:
        """The plan of the experiment."""
        return find(self.name).planned(self.parameters)

    def case(self, index: int) -> Case:
        """One of its cases, which a run leaves its traces in: controllers and agents have state."""
        return self.plan().cases[index]


class Store(Protocol):
    """Where runs go as they end."""

    def write_tables(self, run: Run) -> None:
        """Write the tables of a run, in the process that has run it."""

    def write_files(self, run: Run, files: dict[str, bytes]) -> None:
        """Write the tables of a run that come from another machine, as `encoded` gives them."""

    def add(self, run: Run) -> None:
        """Note a run whose tables are written: it is not lost from now on."""


@dataclass(frozen=True)
class Jobs:
    """What is to be run."""

    recipe: Recipe
    cases: Sequence[Case]
    """Those of the recipe's plan; nobody has run them."""
    jobs: list[Job]
    backend: str
    store: Store
    live_profile: str | None = None
    """Of `Network.run`, where it is given."""
    threads: int = 1
    """Of each run."""

    def named(self, number: int) -> str:
        """A job as messages name it."""
        index, seed = self.jobs[number]
        return f"{self.cases[index].name}, seed {seed}"


@dataclass
class Ended:
    """What has come of the runs."""

    runs: list[Run] = field(default_factory=list)
    """Without their tables; those that were interrupted have no rows."""
    interrupted: bool = False
    lost: list[str] = field(default_factory=list)
    """Why others have not come to their end."""
    error: BaseException | None = None
    """What has ended the rest."""


class Executor(Protocol):
    """One way to carry out jobs. Whatever ends it, the runs that are done are in `ended` and in the store."""

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        """Run all; fewer if something ends it, which `ended` says."""


def run_case(
    progress: Callable[[int, int], None],
    case: Case,
    seed: int,
    backend: str,
    live_profile: str | None = None,
    threads: int = 1,
) -> Run:
    """Run a case."""
    with user_code.blamed():
        network = case.made(seed)
        result = network.run(
            case.until,
            backend=backend,
            seed=seed,
            progress=progress,
            live_profile=live_profile,
            threads=threads,
        )
        measured = [] if result.interrupted else case.rows(result)
    rows = None if result.interrupted else [{"case": case.name, "seed": seed, **row} for row in measured]
    tables = {table: getattr(result, table) for table in TABLES}
    return Run(case.name, seed, rows, tables, result.warnings)


def written(
    store: Store,
    progress: Callable[[int, int], None],
    case: Case,
    seed: int,
    backend: str,
    live_profile: str | None = None,
    threads: int = 1,
) -> Run:
    """Run a case and write its tables; give the rest."""
    run = run_case(progress, case, seed, backend, live_profile, threads)
    store.write_tables(run)
    return replace(run, tables={})


def sendable(error: BaseException) -> BaseException:
    """An error that can be sent to another process."""
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error


@contextmanager
def told() -> Iterator[list[float]]:
    """When signals have come, while it lasts. An exception could come in the middle of what belongs together."""
    came: list[float] = []
    with handled(lambda number, _: came.append(time.monotonic()), ENDING):
        yield came
