"""What `run`, `sweep` and `tune` share: where runs are carried out, and the bar that says how far they are."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate._core import TidegateError
from tidegate.cli.output import INTERRUPTED, Told, report
from tidegate.processors import processors
from tidegate.units import counted

if TYPE_CHECKING:
    from tidegate.experiments.jobs import Executor

ClusterOption = Annotated[
    str | None,
    typer.Option(
        "--cluster",
        metavar="local|slurm|tls://HOST:PORT",
        help="Run as tasks of Dask: on workers of this machine, as jobs of SLURM, or of a scheduler that is there.  "
        "[default: processes of this machine]",
        show_default=False,
    ),
]
ClusterSettings = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster-option",
        metavar="NAME=VALUE",
        help="A setting of Dask's LocalCluster or SLURMCluster; for slurm also jobs=N; for tcp:// on another machine insecure=true.",
        show_default=False,
    ),
]


def beside(threads: int, cluster: str | None = None) -> int:
    """How many threads this machine runs at once; says how many runs of so many threads that are, where they are several."""
    if threads == 1:
        return processors()
    if cluster is not None:
        raise TidegateError("--threads is for simulations of this machine; leave it out")
    most = max(1, processors() // threads)
    turns = "; its threads take turns" if threads > processors() else ""
    sys.stderr.write(
        f"--threads {threads}: {counted(most, 'run')} at a time on {counted(processors(), 'processor')}{turns}; "
        "more if the first uses fewer\n"
    )
    return processors()


@dataclass(frozen=True)
class Carrying:
    """Where runs are carried out, and who hears of it."""

    executor: Executor | None
    """`None`: in processes of this machine."""
    progress: Callable[[float, int], None]


@contextmanager
def carrying(
    what: str, cluster: str | None, options: list[str] | None, *, estimate: bool = True
) -> Iterator[Carrying]:
    """Carry out runs with a bar, on the cluster if one is asked for; an interruption is said and ends the command."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tidegate import experiments
    from tidegate.progress import Estimate

    if options and cluster is None:
        raise TidegateError("--cluster-option is for --cluster; give it too")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    estimated = Estimate(lambda text: sys.stderr.write(f"{what}: {text}\n"), again=not console.is_terminal)

    def progress(done: float, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if estimate:
            estimated(done, total)

    with (
        _executor(cluster, options or []) as executor,
        Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar,
    ):
        task = bar.add_task(what, total=None)
        try:
            yield Carrying(executor, progress)
        except experiments.Interrupted as stopped:
            # The command line's parser turns the exception into an exit without its text.
            bar.stop()
            report(str(stopped))
            raise Told(INTERRUPTED) from None


@contextmanager
def _executor(cluster: str | None, options: list[str]) -> Iterator[Executor | None]:
    if cluster is None:
        yield None
        return
    from tidegate.experiments.executors.cluster import opened

    with opened(cluster, options, processors(), lambda text: sys.stderr.write(f"{text}\n")) as executor:
        yield executor
