"""Judges the claims of a system's paper by folders of runs: a table of claims and verdicts.

A system lists the claims of its paper in `systems/NAME/claims.py`: `PAPER`, a text that names it, and `CLAIMS`. Each says
where the paper has it, which experiment's rows show it, and how it is judged; one that no experiment can show says why.
The verdicts are `found`, `not found` and `cannot tell`; of a closed product, which a run only models, they are `like it`
and `not like it`. They are apart from the claims of a run (`tidegate.claims`): a run is judged by those, a paper by these,
in the paper's own unit and over the paper's own time; where a judge does not demand that time, its measured value names the run's.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from tidegate import systems
from tidegate._core import TidegateError
from tidegate.claims import Claim, Row
from tidegate.experiments import folder, registry

FOUND, NOT_FOUND, CANNOT_TELL = "found", "not found", "cannot tell"
LIKE_IT, NOT_LIKE_IT = "like it", "not like it"
"""Of a black box: whether the model behaves as the paper says of the product."""

Parameters = dict[str, Any]


class Missing(Exception):
    """The run lacks data that a claim is judged by; the text says which."""


def need(there: object, what: str) -> None:
    """Raise `Missing` unless it exists."""
    if not there:
        raise Missing(what)


@dataclass(frozen=True)
class Finding:
    """A verdict: whether the claim was found, and the measured value."""

    found: bool
    measured: str
    why: str | None = None
    """The cause in these rows where it is not found, in place of what the claim says of any."""


Judge = Callable[[list[Row], Parameters], Finding]


@dataclass(frozen=True)
class PaperClaim:
    """A claim of a paper."""

    id: str
    where: str
    """Section or figure."""
    statement: str
    experiment: str | None = None
    """The experiment whose rows show it."""
    judge: Judge | None = None
    cannot: str | None = None
    """Why no run can judge it."""
    why: str | None = None
    """The cause where it is not found."""
    black_box: bool = False
    """The paper measured a closed product, which a run only models."""
    published: str | None = None
    """What the paper says, where the statement is not that: a bound of ours is in it."""

    def __post_init__(self) -> None:
        judged = self.experiment is not None and self.judge is not None
        if judged == (self.cannot is not None):
            raise ValueError(f"claim {self.id}: give an experiment and a judge, or say why it cannot be told")


def of_run(
    claims: Iterable[PaperClaim], experiment: str, rows: list[Row], parameters: Parameters
) -> list[Claim]:
    """The claims that the rows of one run can judge, for the run itself.

    Of a closed product a run has a model, which is like it or not: the statement says so, and what holds is that it is like it.
    """
    out = []
    for claim in claims:
        if claim.experiment != experiment or claim.judge is None:
            continue
        try:
            finding = claim.judge(rows, parameters)
        except Missing:
            continue
        out.append(
            Claim(
                claim.id.lower(),
                "paper",
                f"a model of a closed product is like it: {claim.statement}"
                if claim.black_box
                else claim.statement,
                f"{claim.published or claim.statement} ({claim.where})",
                finding.measured,
                finding.found,
                why=finding.why or claim.why,
            )
        )
    return out


def papers() -> dict[str, tuple[str, Sequence[PaperClaim]]]:
    """The paper of each system that lists claims, and those claims, by the system's name."""
    found: dict[str, tuple[str, Sequence[PaperClaim]]] = {}
    for name in registry.system_names():
        module = f"{systems.__name__}.{name}.claims"
        if importlib.util.find_spec(module) is not None:
            listed = importlib.import_module(module)
            found[name] = (listed.PAPER, listed.CLAIMS)
    return found


@dataclass(frozen=True)
class _Run:
    """What claims are judged by: folders, rows and parameters of an experiment."""

    places: str
    rows: list[Row]
    parameters: Parameters
    backend: str
    version: str | None

    def joined(self, other: _Run, name: str) -> _Run:
        """With the rows of another run of this experiment."""
        apart = [
            f"{what} {ours} and {theirs}"
            for what, ours, theirs in (
                ("backend", self.backend, other.backend),
                ("Tidegate", self.version, other.version),
            )
            if ours != theirs
        ]
        parameters = {**self.parameters, **other.parameters}
        for key, value in parameters.items():
            before = self.parameters.get(key, value)
            if isinstance(value, list):
                parameters[key] = list(dict.fromkeys([*before, *value]))
            elif value != before:
                apart.append(f"{key} {before} and {value}")
        if apart:
            raise TidegateError(
                f"{self.places} and {other.places} are runs of {name} with {', '.join(apart)}; give one of them"
            )
        again = {(row["case"], row["seed"]) for row in other.rows}
        kept = [row for row in self.rows if (row["case"], row["seed"]) not in again]
        return replace(
            self, places=f"{self.places}, {other.places}", rows=kept + other.rows, parameters=parameters
        )


def judge_runs(folders: Iterable[Path]) -> list[dict[str, Any]]:
    """A row for each claim of the papers of the systems whose runs these are: system, id, where, statement, verdict, measured, run.

    If several folders hold the same experiment, their rows are joined; of a case and seed that both have, the last counts. They may
    differ in the lists of their parameters (the cases and seeds that were run), not in a single value, the backend or the version.
    """
    runs: dict[str, _Run] = {}
    for place in folders:
        record = folder.read_record(place)
        if record.get("interrupted"):
            raise TidegateError(f"{place} holds a run that was interrupted; run it again to judge by it")
        name = record["experiment"]
        one = _Run(
            str(place),
            record["rows"],
            record["parameters"],
            record.get("backend", "sim"),
            record.get("versions", {}).get("tidegate"),
        )
        runs[name] = runs[name].joined(one, name) if name in runs else one
    known = papers()
    asked = {name.partition(".")[0] for name in runs}
    if not asked & known.keys():
        raise TidegateError(
            f"no system of these runs lists the claims of a paper; those that do: {', '.join(known)}"
        )
    return [
        {"system": name, **_row(claim, runs)}
        for name, (_, claims) in known.items()
        if name in asked
        for claim in claims
    ]


def _row(claim: PaperClaim, runs: dict[str, _Run]) -> dict[str, Any]:
    verdict, measured, place = CANNOT_TELL, claim.cannot, None
    if claim.experiment is not None and claim.judge is not None:
        run = runs.get(claim.experiment)
        if run is None:
            measured = f"needs a run of {claim.experiment}"
        else:
            place = run.places
            try:
                finding = claim.judge(run.rows, run.parameters)
                found, missed = (LIKE_IT, NOT_LIKE_IT) if claim.black_box else (FOUND, NOT_FOUND)
                verdict, measured = found if finding.found else missed, finding.measured
                if (why := finding.why or claim.why) and not finding.found:
                    measured += f": {why}"
            except Missing as missing:
                measured = str(missing)
    return {
        "id": claim.id,
        "where": claim.where,
        "statement": claim.statement,
        "verdict": verdict,
        "measured": measured,
        "run": place,
    }
