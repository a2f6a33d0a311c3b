"""Commands of experiments: `list`, `run`, `plot`, `claims`, and `clean`, which removes what killed runs have left."""

from __future__ import annotations

import shlex
import sys
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate._core import TidegateError
from tidegate.cli.carrying import ClusterOption, ClusterSettings, beside, carrying
from tidegate.cli.output import print_json, print_rows, warn
from tidegate.cli.reports import watched
from tidegate.options import (
    FirstSeed,
    Json,
    LiveProfile,
    Quick,
    Repeat,
    Resume,
    Settings,
    Threads,
    ViewPort,
    results_folder,
)
from tidegate.processors import processors
from tidegate.suggest import did_you_mean
from tidegate.units import counted

if TYPE_CHECKING:
    from tidegate.experiments import Experiment


def list_experiments(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="An experiment, to see all of it, a system, or a file or folder of yours (./my.py).  [default: all]",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the experiments and their parameters; of one, what it shows, and each parameter's type, unit and values."""
    from tidegate.experiments import all_experiments, of_system

    found = list(all_experiments().values()) if name is None else of_system(name)
    warn_of_packages(name)
    if as_json:
        print_json(
            {
                "experiments": [
                    {
                        "name": e.name,
                        "also": e.also,
                        "summary": e.summary,
                        "backends": list(e.backends),
                        "parameters": e.parameters(),
                        "live": dict(e.live),
                        "quick": dict(e.quick),
                        "about": e.about(),
                    }
                    for e in found
                ],
                "left_out": list(broken_packages(name)),
            }
        )
        return
    if len(found) == 1:
        _print_experiment(found[0])
        return
    for one in found:
        also = f", {one.also}" if one.also else ""
        print(f"{one.name}{also}  ({', '.join(one.backends)})\n    {one.summary}".rstrip())
        for name, default in one.parameters().items():
            live = f" (live: {_shown(one.live[name])})" if name in one.live else ""
            print(f"      {name}={_shown(default)}{live}")


def broken_packages(name: str | None) -> tuple[str, ...]:
    """Packages that could not be loaded, in words; a file or folder of the user's needs none."""
    from tidegate.experiments import files, packages

    return () if name is not None and files.is_reference(name) else packages.load()


def warn_of_packages(name: str | None) -> None:
    """Say which packages are left out."""
    for text in broken_packages(name):
        sys.stderr.write(f"warning: {text}\n")


def _print_experiment(one: Experiment) -> None:
    """All of an experiment."""
    from tidegate.experiments import MOST

    also = f", {one.also}" if one.also else ""
    print(f"{one.name}{also}  ({', '.join(one.backends)})\n\n{one.text}\n")
    for name, about in one.about().items():
        unit = f", {about['unit']}" if about["unit"] else ""
        print(f"{name}: {about['type']}{unit}")
        if "known" in about:
            print(f"    of {', '.join(map(str, about['known']))}")
        if "least" in about:
            most = f" to {about['most']:g}" if about["most"] < MOST else " on"
            print(f"    from {about['least']:g}{most}")
        print(f"    default: {_shown(one.parameters()[name])}")
        for text, others in (
            ("--quick", one.quick),
            ("--backend live", one.live),
            ("--backend live --quick", one.live_quick),
        ):
            if name in others:
                print(f"    {text}: {_shown(others[name])}")
    print(f"\ntidegate run {shlex.quote(one.shown_name)} --quick")


def _shown(value: object) -> str:
    """A parameter's value as `--set` takes it."""
    if value is None:
        return "(no file)"
    return ",".join(str(item) for item in value) if isinstance(value, tuple) else str(value)


def run(
    experiment: Annotated[
        str,
        typer.Argument(
            metavar="SYSTEM.EXPERIMENT",
            help="An experiment of `tidegate list`, or one of a file or folder of yours: ./my.py, ./my.py:function, ./folder:function.",
        ),
    ],
    backend: Annotated[
        str, typer.Option(metavar="sim|live", help="Simulator, or real Linux hosts (needs root).")
    ] = "sim",
    settings: Settings = None,
    seed: FirstSeed = 1,
    repeat: Repeat = 1,
    quick: Quick = False,
    out: Annotated[Path | None, results_folder("runs/SYSTEM.EXPERIMENT")] = None,
    resume: Resume = False,
    live_profile: Annotated[
        LiveProfile | None,
        typer.Option(
            "--live-profile",
            metavar="latency|throughput",
            help="Tune live ports for short, even delays or for packets per second.  [default: latency]",
            show_default=False,
        ),
    ] = None,
    threads: Threads = 1,
    cluster: ClusterOption = None,
    cluster_options: ClusterSettings = None,
    view: Annotated[
        bool,
        typer.Option("--view", help="Show the runs in the browser while they go on, one after the other."),
    ] = False,
    view_port: ViewPort = 0,
    as_json: Json = False,
) -> None:
    """Run an experiment: prints tables and claims beside measured values; writes a figure."""
    from tidegate import backends, experiments

    if backend not in backends.NAMES:
        known = ", ".join(backends.NAMES)
        raise typer.BadParameter(
            f"there is no backend {backend!r}; {did_you_mean(backend, backends.NAMES)}known: {known}",
            param_hint="--backend",
        )
    one = experiments.find(experiment)
    warn_of_packages(experiment)
    name = experiment if one.source is None else one.name
    parameters = experiments.with_settings(one, settings or [], quick, backend)
    experiments.demand_backend(one, backend)
    if live_profile is not None and backend != "live":
        raise TidegateError("--live-profile is for --backend live; leave it out")
    if threads > 1 and backend == "live":
        raise TidegateError("--threads is for simulations of this machine; leave it out")
    if backend == "live" and cluster is not None:
        raise TidegateError(
            "--cluster is for the simulator: live runs need a machine to themselves; leave it out"
        )
    if backend == "live":
        length = experiments.clock_time(one, parameters, repeat)
        sys.stderr.write(f"live runs take real time, one case after another: at least {length}\n")
    if not quick and backend == "sim":
        cases, simulated = experiments.size(one, parameters, repeat)
        sys.stderr.write(
            f"{name}: {counted(cases, 'run')} of {simulated} of simulated time in all, "
            f"on {counted(processors(), 'processor')}; --quick has fewer and shorter ones\n"
        )

    most = beside(threads, cluster)
    if view_port and not view:
        raise TidegateError("--view-port is for --view; give it too")
    if view and cluster is not None:
        raise TidegateError("--view shows runs of this process; leave out --cluster")
    with ExitStack() as stack:
        stay = stack.enter_context(watched(view_port)) if view else None
        with carrying(name, cluster, cluster_options, estimate=not quick and backend == "sim") as carried:
            answer = experiments.run(
                experiment,
                parameters,
                backend=backend,
                seeds=list(range(seed, seed + repeat)),
                quick=quick,
                out=out if out is not None else Path("runs") / name,
                progress=carried.progress,
                processes=1 if view else most,
                resume=resume,
                executor=carried.executor,
                live_profile=None if live_profile is None else live_profile.value,
                threads=threads,
            )
        if stay is not None:
            stay()
    warn(answer)
    if as_json:
        print_json(answer)
        return
    print_rows(answer["rows"], one.table)
    for claim in answer["claims"]:
        verdict = "holds" if claim["holds"] else "DOES NOT HOLD"
        said = "ours" if claim["published"] is None else f"{claim['of']}: {claim['published']}"
        why = "" if claim["holds"] else f"; why: {claim['why'] or 'not known'}"
        print(f"{verdict}: {claim['statement']}: {claim['measured']} ({said}){why}")
    print(f"{answer['out']}/figure.png")


def clean(
    revisions: Annotated[
        bool, typer.Option("--revisions", help="Remove also what compare has built of other revisions.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Remove what killed live runs, agents and switches have left behind; what is in use stays."""
    from tidegate.compare import revisions as built
    from tidegate.hosts import left_locks
    from tidegate.lab import names
    from tidegate.systems.pacing.service import service

    removed = names.remove_dead() + service.clean() + left_locks.remove()
    running = sorted(path.name for path in names.sort()[0])
    kept = [] if revisions else [str(path) for path in built.kept()]
    if revisions:
        removed += [str(path) for path in built.clear()]
    if as_json:
        print_json({"removed": removed, "running": running, "kept": kept})
        return
    for kind, found in (("removed", removed), ("in use", running), ("kept without --revisions", kept)):
        for name in found:
            print(f"{kind}: {name}")


def plot(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
    source: Annotated[
        str | None,
        typer.Option(
            metavar="FILE.py:FUNCTION",
            help="The experiment, if it is of a file or folder of yours; its code is run.",
        ),
    ] = None,
) -> None:
    """Redraw the figure of a run from its tables."""
    from tidegate.experiments import replot

    print(replot(folder, source))


def claims(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of runs.")],
    as_json: Json = False,
) -> None:
    """Judge the claims of a system's paper by runs: found, not found, cannot tell; of black boxes, like it or not like it."""
    from tidegate import papers

    rows = papers.judge_runs(folders)
    if as_json:
        print_json({"papers": {name: paper for name, (paper, _) in papers.papers().items()}, "claims": rows})
        return
    print_rows(rows, ("system", "id", "where", "statement", "verdict", "measured"))
