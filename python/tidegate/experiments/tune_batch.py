"""What a batch of trials leaves, so that a study that was interrupted in it goes on as if it had not been.

A suggestion depends on the study's seed, the trial's number, the parameter's name and the trials that are there, on no state of a
process. A trial says from its beginning whose it is and of which batch. Its runs are in a journal in the study's folder until the
batch is told.
"""

from __future__ import annotations

import hashlib
import json
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate.experiments.input_file import recorded
from tidegate.experiments.jobs import NotCarriedOut
from tidegate.experiments.plan import Run
from tidegate.experiments.record import MOST_BYTES, NOT_FINITE, not_finite, restore
from tidegate.experiments.tune_storage import goes_on
from tidegate.files import json_text, limited, why

JOURNAL = "runs.jsonl"
WHO = "process"
"""The attribute of a trial that says which process runs it: `HOST:PID`, or nothing where that was interrupted."""
BATCH = "batch"
"""The attribute of a trial that says with which it is run: the process that began the batch, the first trial's number, the size."""


def here() -> str:
    """This process, as an attribute of a trial names it."""
    return f"{socket.gethostname()}:{os.getpid()}"


def is_left(trial: Any) -> bool:
    """Whether nobody runs a trial any more: its process was interrupted, or is of this machine and no longer there."""
    if (who := trial.user_attrs.get(WHO)) is None:
        return False
    host, _, process = str(who).rpartition(":")
    return not who or (host == socket.gethostname() and not Path(f"/proc/{process}").exists())


def sampler(first_seed: int) -> Any:
    """Optuna's TPE with a seed of its own for each parameter of each trial."""
    from optuna.samplers import BaseSampler, TPESampler

    class PerParameter(BaseSampler):  # type: ignore[misc]
        def infer_relative_search_space(self, study: Any, trial: Any) -> dict[str, Any]:
            return {}

        def sample_relative(self, study: Any, trial: Any, search_space: Any) -> dict[str, Any]:
            return {}

        def sample_independent(self, study: Any, trial: Any, param_name: str, param_distribution: Any) -> Any:
            text = json.dumps([first_seed, trial.number, param_name]).encode()
            seed = int.from_bytes(hashlib.sha256(text).digest()[:4], "big")
            tpe = TPESampler(seed=seed, constant_liar=True)
            return tpe.sample_independent(study, trial, param_name, param_distribution)

    return PerParameter()


class Journal:
    """Runs of a batch, as a store of runs: rows and warnings. Tables of trials are not kept.

    A run is found again by what it is of: the study, its trial's parameters, its case and seed.
    """

    def __init__(self, folder: Path, of: dict[str, Any]) -> None:
        self._path, self._of = folder / JOURNAL, of
        self._points: dict[str, dict[str, Any]] = {}
        self._there: dict[str, dict[str, Any]] = {}
        try:
            text = limited(self._path, MOST_BYTES).decode() if self._path.exists() else ""
        except (OSError, ValueError) as error:
            raise self._refused(error) from None
        for line in text.splitlines():
            # The last may be cut off.
            with suppress(ValueError, KeyError, TypeError):
                one = json.loads(line)
                restore(one["rows"], one.pop(NOT_FINITE))
                self._there[one["of"]] = one

    def begin(self, points: dict[str, dict[str, Any]]) -> None:
        """Take runs of these cases, each of the parameters of its trial."""
        self._points = recorded(points)

    def had(self, case: str, seed: int) -> Run | None:
        """A run that is done."""
        one = self._there.get(self._key(case, seed))
        return None if one is None else Run(case, seed, one["rows"], {}, tuple(one["warnings"]))

    def _key(self, case: str, seed: int) -> str:
        text = json_text([self._of, self._points[case], case, seed])
        return hashlib.sha256(text.encode()).hexdigest()

    def write_tables(self, run: Run) -> None:
        """Not kept."""

    def write_files(self, run: Run, files: dict[str, bytes]) -> None:
        """Not kept."""

    def add(self, run: Run) -> None:
        """Note a run: it is not lost from now on."""
        if run.rows is None:
            return
        line = {"of": self._key(run.case, run.seed), "rows": run.rows, "warnings": run.warnings}
        line[NOT_FINITE] = list(not_finite(run.rows))
        try:
            with self._path.open("a") as file:
                # A line that was cut off ends here.
                file.write(f"\n{json_text(line)}\n")
        except OSError as error:
            raise self._refused(error) from None

    def clear(self) -> None:
        """The study has the batch."""
        self._there.clear()
        try:
            self._path.unlink(missing_ok=True)
        except OSError as error:
            raise self._refused(error) from None

    def _refused(self, error: Exception) -> NotCarriedOut:
        reason = f"{why(error)}{goes_on(error)}" if isinstance(error, OSError) else str(error)
        return NotCarriedOut(f"{self._path}: the runs of a batch cannot be kept there: {reason}")
