"""What the words of `tidegate compare` mean: folders of runs, schemes, experiments, revisions of this repository."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate import experiments
from tidegate._core import TidegateError
from tidegate._core import __version__ as version
from tidegate.compare import revisions
from tidegate.compare.alike import Side
from tidegate.experiments import digests, files
from tidegate.experiments.folder import RECORD, interrupted, read_record, versions
from tidegate.experiments.input_file import identity, recorded
from tidegate.scenarios import own
from tidegate.suggest import did_you_mean

if TYPE_CHECKING:
    from tidegate.experiments.jobs import Executor

ON_SCENARIOS = "reference.scenarios"
OF_SCENARIOS = ("scenario", "scheme")
"""Columns that each of its rows has."""


@dataclass(frozen=True)
class Asked:
    """How experiments are run that are not there yet."""

    settings: Sequence[str] = ()
    seeds: Sequence[int] = (1, 2, 3)
    quick: bool = False
    out: Path = Path("runs/compare")
    experiment: str | None = None
    """What revisions run."""
    progress: Callable[[float, int], None] | None = None
    tell: Callable[[str], None] = print
    processes: int = 1
    threads: int = 1
    """Of each run."""
    executor: Executor | None = None
    """Of `experiments.run`; not for revisions, whose files its workers do not have."""
    resume: bool = False
    """Take the runs that an interrupted comparison has done."""


def sides(words: Sequence[str], asked: Asked) -> list[Side]:
    """The sides of a comparison, in order; what has not been run is run, in folders below `asked.out`."""
    for word in words:
        # Everything is known to be possible before anything runs.
        _demand_known(word, asked)
    schemes = [word for word in words if own.is_scheme(word)]
    if schemes:
        for word in filter(is_folder, words):
            _demand_on_scenarios(word, schemes[0])
    on = _schemes(schemes, asked) if schemes else {}
    found = []
    alike: Counter[str] = Counter()
    for word in words:
        if word in on:
            found.append(on[word])
        elif is_folder(word):
            found.append(_of_folder(word))
        elif word.startswith(revisions.PREFIX):
            assert asked.experiment is not None
            there = revisions.run(
                word,
                asked.experiment,
                asked.settings,
                asked.seeds,
                asked.quick,
                asked.out,
                asked.tell,
                asked.threads,
                asked.resume,
            )
            record = read_record(there)
            _warn(word, record, asked)
            found.append(_of_record(word, record))
        else:
            # Experiments of one name, as of two versions of a file, have a folder each.
            name = experiments.find(word).name
            alike[name] += 1
            folder = name if alike[name] == 1 else f"{name}-{alike[name]}"
            found.append(_of_record(word, _run(word, list(asked.settings), asked, folder)))
    return found


def is_folder(word: str) -> bool:
    """Whether a word is the folder of a run, for which nothing is run."""
    return word not in own.names() and (Path(word) / RECORD).exists()


def _demand_known(word: str, asked: Asked) -> None:
    if word in own.names() or is_folder(word):
        return
    if word.startswith(revisions.PREFIX):
        if asked.experiment is None:
            raise TidegateError(f"{word}: say what revisions are to run with --experiment NAME")
        if asked.executor is not None:
            raise TidegateError(f"{word}: a cluster's workers have the files of now; leave out --cluster")
        revisions.demand_possible(word)
        return
    if Path(word).is_dir() and not files.is_system(Path(word)):
        read_record(Path(word))
    known = (
        f"give a run's folder, an experiment, a revision (rev:HASH), or a scheme: {', '.join(own.names())}"
    )
    if files.is_reference(word) and not files.path_of(word).exists():
        raise TidegateError(f"{word}: there is no such folder or file; {known}")
    if own.is_scheme(word):
        own.given(word)
        return
    if "." in word or files.is_reference(word):
        _demand_experiment(word)
        return
    raise TidegateError(
        f"there is nothing to compare called {word!r}; {did_you_mean(word, own.names())}{known}"
    )


def _demand_on_scenarios(word: str, scheme: str) -> None:
    """Refuse a run that a scheme on the scenarios cannot be compared with, before it is run."""
    run = _of_folder(word)
    missing = [name for name in OF_SCENARIOS if name not in run.rows[0]]
    if missing:
        raise TidegateError(
            f"{word} and {scheme} cannot be compared: {word} is a run of {run.experiment}, and {scheme} runs {ON_SCENARIOS}, whose rows "
            f"have other columns: {', '.join(missing)}"
        )


def _demand_experiment(word: str) -> None:
    """Refuse what is no experiment; of a file that has schemes, those are named too."""
    schemes = own.schemes_beside(word)
    try:
        experiments.find(word)
    except TidegateError as error:
        path = files.parted(word)[0]
        also = f"; its schemes are {', '.join(f'{path}:{name}' for name in schemes)}" if schemes else ""
        raise TidegateError(f"{error}{also}") from None


def _of_folder(word: str) -> Side:
    record = read_record(Path(word))
    if record.get("interrupted"):
        raise TidegateError(f"{word} holds a run that was interrupted; end it with --resume first")
    return _of_record(word.rstrip("/"), record)


def _of_record(name: str, record: dict[str, Any]) -> Side:
    if not record["rows"]:
        raise TidegateError(f"{name} has no rows; there is nothing to compare")
    if any("case" not in row for row in record["rows"]):
        raise TidegateError(
            f"{name}: its {RECORD} has rows without a case, which have nothing to be paired by"
        )
    said = record.get("versions", {}).get("tidegate", version)
    return Side(
        name, record["experiment"], record.get("backend", "sim"), record["parameters"], record["rows"], said
    )


def _run(name: str, settings: list[str], asked: Asked, folder: str | None = None) -> dict[str, Any]:
    one = experiments.find(name)
    parameters = experiments.with_settings(one, settings, asked.quick)
    out = asked.out / (folder or one.name)
    if asked.resume and (done := _done(one, parameters, out, asked)) is not None:
        return done
    record = experiments.run(
        name,
        parameters,
        seeds=list(asked.seeds),
        quick=asked.quick,
        out=out,
        progress=asked.progress,
        processes=asked.processes,
        resume=asked.resume and _is_interrupted(out),
        executor=asked.executor,
        threads=asked.threads,
    )
    _warn(one.name, record, asked)
    return record


def _is_interrupted(out: Path) -> bool:
    try:
        interrupted(out)
    except TidegateError:
        return False
    return True


def _done(
    one: experiments.Experiment, parameters: dict[str, Any], out: Path, asked: Asked
) -> dict[str, Any] | None:
    """The record of a complete run of just this that is there."""
    if not (out / RECORD).exists() or _is_interrupted(out):
        return None
    record = read_record(out)
    wanted = {
        "experiment": one.name,
        "backend": "sim",
        "parameters": recorded({**one.parameters(asked.quick), **parameters, "quick": asked.quick}),
        "seeds": list(asked.seeds),
        "interrupted": False,
        "versions": versions(),
        "files": digests.of_experiment(one.source or one.name),
    }
    same = identity(json.loads(json.dumps(wanted)))
    return record if all(identity(record.get(name)) == value for name, value in same.items()) else None


def _warn(name: str, record: dict[str, Any], asked: Asked) -> None:
    for warning in record.get("warnings", []):
        asked.tell(f"warning: {name}: {warning}")


def _schemes(names: list[str], asked: Asked) -> dict[str, Side]:
    """All schemes on the same scenarios, in one run; a case is then a scenario."""
    if any(setting.startswith("schemes=") for setting in asked.settings):
        raise TidegateError("the schemes are those that are compared; leave --set schemes out")
    record = _run(ON_SCENARIOS, [*asked.settings, f"schemes={','.join(names)}"], asked)
    shared = {name: value for name, value in record["parameters"].items() if name != "schemes"}
    found = {}
    for name, scheme in zip(names, own.distinct(map(own.given, names)), strict=True):
        rows = [
            {**{k: v for k, v in row.items() if k not in ("scheme", "scenario")}, "case": row["scenario"]}
            for row in record["rows"]
            if row["scheme"] == str(scheme)
        ]
        found[name] = Side(name, ON_SCENARIOS, "sim", shared, rows, version)
    return found
