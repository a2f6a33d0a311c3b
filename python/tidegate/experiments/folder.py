"""The folder of a run: written beside its place while the run lasts, put there when it is done; read, redrawn.

A folder of ours has a file by which it is known (`MARKER`); of what is in it, only what a run writes is ever replaced or removed. The
folder beside it, `.NAME.RANDOM.part`, is locked by the process that writes it. What a killed process has left there is taken up by
`--resume`.
"""

from __future__ import annotations

import fcntl
import io
import json
import os
import platform
import re
import shlex
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polars as pl

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.experiments import user_code
from tidegate.experiments.files import is_reference
from tidegate.experiments.input_file import differences
from tidegate.experiments.plan import Plan, Run
from tidegate.experiments.record import MOST_BYTES, NOT_FINITE, add_journal, not_finite, other, read
from tidegate.experiments.record import RECORD as RECORD
from tidegate.experiments.registry import find
from tidegate.files import NEW, exchanged, json_text, limited, replacing, why
from tidegate.results import TABLES

if TYPE_CHECKING:
    from matplotlib.figure import Figure


FIGURE = "figure.png"
REPORT = "report.html"
TABLES_FOLDER = "tables"
MARKER = ".tidegate-run"
ROWS = "rows.csv"
OURS = (MARKER, TABLES_FOLDER, FIGURE, REPORT, ROWS, RECORD)
"""In the order in which they are put in place: the record is there only while the rest is."""
MARKED = "Tidegate has made this folder. The next run there replaces run.json, figure.png, report.html, tables and a sweep's rows.csv.\n"
JOURNAL = "runs.jsonl"
LOCK = "lock"
LEAST_FREE = 16 << 20
"""Bytes that a file system has to have left for a run to begin."""
MOST_NAME = 255
"""Bytes of a file's name."""
PARQUET = b"PAR1"
LEFT = r"\.[a-z0-9_]{8}\.part"
"""How the name of a folder beside a run's place ends: `tempfile` makes it."""


class Work:
    """Where a run is written while it lasts: a folder beside its place, which other users cannot enter."""

    def __init__(self, out: Path, *, table: bool = False) -> None:
        """Raises `TidegateError` unless a run can be put there; with `table`, one whose rows are a table too."""
        self.out = out
        self._table = table
        self._made: list[Path] = []
        self._lock: int | None = None
        try:
            self.place = _resolved(out)
            _demand_ours(out, self.place, table)
            _demand_no_other(out, self.place)
            try:
                self._make_parents()
                self._base = Path(
                    tempfile.mkdtemp(dir=self.place.parent, prefix=f".{self.place.name}.", suffix=".part")
                )
                try:
                    self._lock = os.open(self._base / LOCK, NEW | os.O_RDWR, 0o600)
                    fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    self.folder = self._base / "run"
                    self.folder.mkdir()
                    (self.folder / MARKER).write_text(MARKED)
                    (self.folder / TABLES_FOLDER).mkdir()
                    self._demand_room()
                except BaseException:
                    shutil.rmtree(self._base, ignore_errors=True)
                    if self._lock is not None:
                        os.close(self._lock)
                    raise
            except BaseException:
                self._remove_parents()
                raise
        except OSError as error:
            raise _refused(out, why(error)) from None

    def _make_parents(self) -> None:
        missing = []
        for parent in self.place.parents:
            if parent.exists():
                break
            missing.append(parent)
        for parent in reversed(missing):
            parent.mkdir()
            self._made.append(parent)

    def _remove_parents(self) -> None:
        """As long as they are empty."""
        with suppress(OSError):
            for parent in reversed(self._made):
                parent.rmdir()

    def _demand_room(self) -> None:
        if self.place.exists():
            # Another file system is mounted there, or the folder cannot be written: better to learn that now.
            probe = self.place / self._base.name
            (self.folder / MARKER).rename(probe)
            probe.rename(self.folder / MARKER)
        free = shutil.disk_usage(self._base).free
        if free < LEAST_FREE:
            raise _refused(self.out, f"its file system has {free >> 10} KiB left")

    def begin(self, about: dict[str, Any]) -> None:
        """Write what is run, so that what is done can be found again however this process ends."""
        with _writing(self.out):
            self._record({**about, "rows": [], "claims": [], "warnings": []}, interrupted=True)

    def add(self, run: Run) -> None:
        """Note a run whose tables are written: it is not lost from now on."""
        if run.rows is None:
            return
        line = {"case": run.case, "seed": run.seed, "rows": run.rows, "warnings": run.warnings}
        line[NOT_FINITE] = list(not_finite(run.rows))
        with _writing(self.out), (self._base / JOURNAL).open("a") as file:
            file.write(json_text(line) + "\n")

    def write_tables(self, run: Run) -> None:
        """Write the tables of a run. This is done in the process that has run it."""
        with _writing(self.out):
            folder = _tables_of(self.folder, run.case, run.seed)
            folder.mkdir()
            for table, frame in run.tables.items():
                with (folder / f"{table}.parquet").open("xb") as file:
                    frame.write_parquet(file)

    def write_files(self, run: Run, files: dict[str, bytes]) -> None:
        """Write the tables of a run that come from another machine. Polars is not used for it."""
        with _writing(self.out):
            folder = _tables_of(self.folder, run.case, run.seed)
            folder.mkdir()
            for table, content in files.items():
                with (folder / f"{table}.parquet").open("xb") as file:
                    file.write(content)

    def take_over(self, there: Path, runs: list[Run]) -> None:
        """Copy runs of an interrupted one."""
        for run in runs:
            with _writing(self.out):
                shutil.copytree(
                    _tables_of(there, run.case, run.seed), _tables_of(self.folder, run.case, run.seed)
                )
            self.add(run)

    def read_tables(self, runs: list[Run]) -> list[Run]:
        """The same runs, with their tables."""
        return with_tables(self.folder, runs)

    def finish(self, answer: dict[str, Any], figure: bytes | None, report: str | None = None) -> Path:
        """Put the run in its place, with its figure (PNG) and report. Without a figure it is one that was interrupted, and does not
        take a complete one's place. If that fails, it is left beside its place for `--resume`.
        """
        try:
            return self._finish(answer, figure, report)
        except BaseException:
            self._unlock()
            raise

    def _finish(self, answer: dict[str, Any], figure: bytes | None, report: str | None) -> Path:
        with _writing(
            self.out, f"; the same command with --resume goes on; what is done is in {self.folder}"
        ):
            place = self.place
            if figure is None and is_whole(place):
                place = _interrupted_beside(place)
            shown = self.out if place == self.place else place
            try:
                _demand_ours(shown, place, self._table)
            except TidegateError as error:
                raise TidegateError(f"{error}; what is done is in {self.folder}") from None
            if figure is not None:
                (self.folder / FIGURE).write_bytes(figure)
            if report is not None:
                (self.folder / REPORT).write_text(report, encoding="utf-8")
            if self._table:
                _as_table(answer["rows"]).write_csv(self.folder / ROWS)
            self._record({**answer, "out": str(shown)}, interrupted=figure is None)
            if place.exists():
                self._exchange(place)
            else:
                self.folder.rename(place)
            self.discard()
            return shown

    def _record(self, answer: dict[str, Any], *, interrupted: bool) -> None:
        about = {**answer, "interrupted": interrupted, "versions": versions()}
        if places := list(not_finite(answer["rows"])):
            about[NOT_FINITE] = places
        with exchanged(self.folder / RECORD) as file:
            file.write((json_text(about, indent=1) + "\n").encode())

    def _exchange(self, place: Path) -> None:
        """What is ours goes, what has come takes its place, and what is not ours stays. If it fails, all is as it was."""
        old = self._base / "old"
        old.mkdir()
        there = OURS if _is_sweep(place) else [name for name in OURS if name != ROWS]
        moved: list[tuple[Path, Path]] = []
        try:
            for name in reversed(there):
                if (place / name).exists():
                    (place / name).rename(old / name)
                    moved.append((old / name, place / name))
            for name in OURS:
                if (self.folder / name).exists():
                    (self.folder / name).rename(place / name)
                    moved.append((place / name, self.folder / name))
        except BaseException:
            for at, before in reversed(moved):
                at.rename(before)
            raise

    def discard(self) -> None:
        """Remove what is beside the run's place."""
        shutil.rmtree(self._base, ignore_errors=True)
        self._unlock()
        self._remove_parents()

    def _unlock(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _as_table(rows: list[dict[str, Any]]) -> pl.DataFrame:
    """Lists, which CSV does not have, are their JSON text."""
    flat = [
        {name: json_text(one) if isinstance(one, list | dict) else one for name, one in row.items()}
        for row in rows
    ]
    return pl.DataFrame(flat, infer_schema_length=None)


def versions() -> dict[str, str]:
    """What runs are made by."""
    return {"tidegate": _core.__version__, "python": platform.python_version()}


def _refused(out: Path, reason: str) -> TidegateError:
    return TidegateError(f"{out}: a run cannot be written there: {reason}; give another folder with --out")


@contextmanager
def _writing(out: Path, left: str = "") -> Iterator[None]:
    try:
        yield
    except (OSError, pl.exceptions.PolarsError) as error:
        reason = why(error) if isinstance(error, OSError) else str(error)
        raise TidegateError(f"{out}: the run could not be written: {reason}{left}") from None


def _resolved(out: Path) -> Path:
    """Where a folder is in the end."""
    try:
        place = out.resolve()
    except RuntimeError:
        raise _refused(out, "its symbolic links lead in a circle") from None
    if place == place.parent or place.is_mount():
        raise _refused(out, "it is the root of a file system, and a run is written beside its folder first")
    return place


def _demand_ours(out: Path, place: Path, table: bool) -> None:
    """Refuse what a run does not replace."""
    if not place.exists():
        return
    if not place.is_dir():
        raise _refused(out, "it is not a folder")
    if not any(place.iterdir()):
        return
    if not _is_kind(place / MARKER, stat.S_ISREG) and not _is_of_earlier_version(place):
        raise TidegateError(
            f"{out} exists and does not hold an earlier run: it has no {MARKER}; give another folder with --out"
        )
    if table and os.path.lexists(place / ROWS) and not _is_sweep(place):
        raise _refused(out, f"{place / ROWS} is not of a sweep, which would replace it")
    for name in (RECORD, FIGURE, REPORT, *((ROWS,) if table else ())):
        if os.path.lexists(place / name) and not _is_kind(place / name, stat.S_ISREG):
            raise _refused(out, f"{place / name} is not a file of a run's")
    if os.path.lexists(place / TABLES_FOLDER):
        for foreign in _foreign(place / TABLES_FOLDER):
            raise _refused(out, f"{foreign} is not of a run, which would replace it")


def _is_sweep(place: Path) -> bool:
    """Whether a folder has a sweep's run: only then is `rows.csv` of ours."""
    from tidegate.experiments import sweep

    try:
        return sweep.is_sweep(read_record(place))
    except TidegateError:
        return False


def _is_of_earlier_version(place: Path) -> bool:
    """Whether a folder is of a version that made no marker: `run.json` has what only Tidegate writes."""
    try:
        about = read_record(place)
    except TidegateError:
        return False
    versions = about.get("versions")
    return isinstance(versions, dict) and isinstance(versions.get("tidegate"), str) and "interrupted" in about


def _is_kind(path: Path, kind: Any) -> bool:
    """Whether a path is of a kind itself; a symbolic link is of none."""
    try:
        return bool(kind(path.lstat().st_mode))
    except OSError:
        return False


def _foreign(tables: Path) -> Iterator[Path]:
    """What a run does not write, in the folder of its tables."""
    if not _is_kind(tables, stat.S_ISDIR):
        yield tables
        return
    for folder in tables.iterdir():
        if not _is_kind(folder, stat.S_ISDIR):
            yield folder
            continue
        for file in folder.iterdir():
            if file.suffix != ".parquet" or file.stem not in TABLES or not _is_kind(file, stat.S_ISREG):
                yield file


def _parts(place: Path) -> list[Path]:
    """Folders beside a run's place that this user's processes have made for runs there."""
    name = re.compile(rf"\.{re.escape(place.name)}{LEFT}")
    try:
        found = [one for one in place.parent.iterdir() if name.fullmatch(one.name)]
    except OSError:
        return []
    return sorted(one for one in found if _is_kind(one, stat.S_ISDIR) and one.lstat().st_uid == os.geteuid())


def _is_locked(part: Path) -> bool:
    """Whether the process that made it is there; one that is not has left it."""
    try:
        file = os.open(part / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(file)
    return False


def _demand_no_other(out: Path, place: Path) -> None:
    if any(_is_locked(part) for part in _parts(place)):
        raise _refused(out, "another run is being written there")


def remove(folder: Path) -> None:
    """Remove a run: what is ours of its folder, and the folder if nothing else is in it."""
    if _is_left(folder):
        shutil.rmtree(folder.parent, ignore_errors=True)
        return
    for name in (*((ROWS,) if _is_sweep(folder) else ()), RECORD, FIGURE, REPORT):
        (folder / name).unlink(missing_ok=True)
    if not any(_foreign(folder / TABLES_FOLDER)):
        shutil.rmtree(folder / TABLES_FOLDER, ignore_errors=True)
    (folder / MARKER).unlink(missing_ok=True)
    if not any(folder.iterdir()):
        folder.rmdir()


def _is_left(folder: Path) -> bool:
    """Whether a folder is one that a killed process has left."""
    return (
        folder.name == "run"
        and re.fullmatch(rf"\..+{LEFT}", folder.parent.name) is not None
        and _is_kind(folder.parent / LOCK, stat.S_ISREG)
    )


def remove_left(out: Path) -> None:
    """Remove what killed processes have left beside a run's place."""
    for part in _parts(_resolved(out)):
        if not _is_locked(part):
            shutil.rmtree(part, ignore_errors=True)


def read_record(folder: Path) -> dict[str, Any]:
    """The contents of `run.json`."""
    try:
        record = read(folder / RECORD)
        journal = folder.parent / JOURNAL
        if _is_left(folder) and record.get("interrupted") and journal.exists():
            # Of a process that was killed: what it had done is in its journal. Of one that could not put it in its place, in the record too.
            add_journal(record, journal)
    except OSError as error:
        if (said := other(folder)) is not None:
            raise TidegateError(said) from None
        raise _no_run(folder, _why_no_record(folder, error)) from None
    except ValueError as error:
        raise _no_run(folder, str(error)) from None
    return record


def is_whole(folder: Path) -> bool:
    """Whether a folder holds a complete run."""
    try:
        return not read_record(folder).get("interrupted")
    except TidegateError:
        return False


def _no_run(folder: Path, reason: str) -> TidegateError:
    return TidegateError(
        f"{folder} does not hold a run: {reason}; give the folder of a run, which `tidegate run` names in its last line"
    )


def _why_no_record(folder: Path, error: OSError) -> str:
    """Why a record cannot be read, in words."""
    if isinstance(error, FileNotFoundError):
        return f"it has no {RECORD}" if folder.is_dir() else "there is no such folder"
    if isinstance(error, NotADirectoryError):
        return "it is not a folder" if os.path.lexists(folder) else "there is no such folder"
    return f"{RECORD} cannot be read: {why(error)}"


def _interrupted_beside(place: Path) -> Path:
    """Where an interrupted run goes if a complete one is in its place."""
    return place.with_name(f"{place.name}.interrupted")


def ends(out: Path) -> tuple[Path, Path]:
    """Where a run to `out` goes when it ends: a complete one, and an interrupted one if a complete one is there."""
    place = _resolved(out)
    return place, _interrupted_beside(place)


def _tables_of(folder: Path, case: str, seed: int) -> Path:
    return folder / TABLES_FOLDER / f"{case}-{seed}"


def demand_name(case: str, seed: int) -> None:
    """Refuse a case whose name cannot be that of the folder of its tables."""
    reason = None
    if not case.strip() or case in (".", ".."):
        reason = "is no name"
    elif "/" in case or not case.isprintable():
        reason = "has a / or a character that is not printed"
    elif len(f"{case}-{seed}".encode(errors="surrogatepass")) > MOST_NAME:
        reason = f"has more than {MOST_NAME} bytes with the seed"
    if reason is not None:
        raise TidegateError(
            f"the case {case!r} {reason}; its tables are in a folder of that name: give another"
        )


def encoded(run: Run) -> dict[str, bytes]:
    """The tables of a run as the files that a run's folder has of them."""
    files = {}
    for table, frame in run.tables.items():
        buffer = io.BytesIO()
        frame.write_parquet(buffer)
        files[table] = buffer.getvalue()
    return files


def _tables(folder: Path, case: str, seed: int) -> dict[str, pl.DataFrame]:
    try:
        tables = _tables_of(folder, case, seed)
        return {table: pl.read_parquet(tables / f"{table}.parquet", glob=False) for table in TABLES}
    except (OSError, pl.exceptions.PolarsError) as error:
        raise _unreadable(folder, case, seed, error) from None


def _unreadable(folder: Path, case: str, seed: int, error: Exception) -> TidegateError:
    reason = why(error) if isinstance(error, OSError) else str(error)
    if isinstance(error, FileNotFoundError):
        reason = "a file of them is not there"
    return TidegateError(
        f"{folder}: the tables of {case}, seed {seed}, cannot be read: {reason}; run the experiment again"
    )


def _demand_tables(folder: Path, case: str, seed: int) -> None:
    """Refuse tables that are not there or were cut off. They are not read: worker processes are forked after this, which cannot
    use the threads that Polars has then.
    """
    try:
        for table in TABLES:
            with (_tables_of(folder, case, seed) / f"{table}.parquet").open("rb") as file:
                begin = file.read(len(PARQUET))
                file.seek(-len(PARQUET), os.SEEK_END)
                if (begin, file.read()) != (PARQUET, PARQUET):
                    raise OSError(f"{table}.parquet is cut off")
    except OSError as error:
        raise _unreadable(folder, case, seed, error) from None


def complete(answer: dict[str, Any]) -> list[Run]:
    """The complete runs of a record, without their tables. Raises `TidegateError` if its rows do not say of which run they are."""
    runs = []
    if any("case" not in row for row in answer["rows"]):
        raise TidegateError(
            f"{answer['experiment']}: its {RECORD} has rows without a case, so that they are of no run"
        )
    for (case, seed), rows in groupby(answer["rows"], key=lambda row: (row["case"], row["seed"])):
        begin = re.compile(rf"all \d+ runs: |{re.escape(f'{case}, seed {seed}: ')}")
        said = tuple(one[match.end() :] for one in answer.get("warnings", []) if (match := begin.match(one)))
        runs.append(Run(case, seed, list(rows), {}, said))
    return runs


def runs_of(folder: Path, answer: dict[str, Any]) -> list[Run]:
    """The complete runs of a folder, with their tables."""
    return with_tables(folder, complete(answer))


def with_tables(folder: Path, runs: list[Run]) -> list[Run]:
    """The same runs of a folder, with their tables."""
    return [replace(one, tables=_tables(folder, one.case, one.seed)) for one in runs]


def interrupted(out: Path) -> Path:
    """Where an interrupted run is that was to be in `out`. Raises `TidegateError` if there is none."""
    place, beside = ends(out)
    left = [part / "run" for part in _parts(place) if not _is_locked(part)]
    for folder in (beside, place, *left):
        # A run that is left is whole where it could not be put in its place.
        if (folder / RECORD).exists() and (folder in left or not is_whole(folder)):
            return out if folder == place else folder
    raise TidegateError(f"{out} and {beside} hold no interrupted run; leave out --resume")


def to_go_on(out: Path) -> Path:
    """Where the run is that `--resume` goes on with: an interrupted one, or else the whole one in `out`."""
    try:
        return interrupted(out)
    except TidegateError:
        if is_whole(out):
            return out
        raise


def being_written(out: Path) -> Path | None:
    """Where the run is, up to now, that a process is writing to `out`; `None` if none is."""
    try:
        parts = _parts(_resolved(out))
    except TidegateError:
        return None
    return next((part / "run" for part in parts if _is_locked(part)), None)


def resumed(folder: Path, answer: dict[str, Any], cases: Iterable[str]) -> tuple[list[Run], dict[str, str]]:
    """The runs that an interrupted run, or a whole one, has done already, of the experiment, backend, parameters and seeds of `answer`, without their
    tables; and the digests of the files that they are of.

    Raises `TidegateError` if it is a run of something else, or of another version. Where each of `cases` is done with each seed, the
    experiment's files may have changed: what is wrong in its claims or its figure is corrected there.
    """
    there = read_record(folder)
    version = there.get("versions", {}).get("tidegate")
    if version != _core.__version__:
        raise TidegateError(
            f"{folder} is of version {version}, and this is {_core.__version__}; leave out --resume to begin again"
        )
    wanted = json.loads(json.dumps(answer))
    again = "give the same, or leave out --resume to begin again"
    for what in ("experiment", "source", "backend", "live_profile"):
        if there.get(what) != wanted.get(what):
            raise TidegateError(
                f"{folder} is a run with another {what}: {there.get(what)} and not {wanted.get(what)}; {again}"
            )
    if other := differences(there["parameters"], wanted["parameters"]):
        raise TidegateError(f"{folder} is a run with {other}; {again}")
    if not there.get("interrupted") and there.get("seeds") != wanted["seeds"]:
        raise TidegateError(
            f"{folder} holds a complete run with {differences(there, {**there, 'seeds': wanted['seeds']})}; {again}"
        )
    found = complete(there)
    if lost := sorted({one.seed for one in found} - set(answer["seeds"])):
        few = f"{', '.join(map(str, lost[:5]))}{', ...' * (len(lost) > 5)}"
        raise TidegateError(f"{folder} has runs with seed {few} that are done, and would be lost; {again}")
    done = {(one.case, one.seed) for one in found}
    whole = all((case, seed) in done for case in cases for seed in answer["seeds"])
    _demand_files(folder, there.get("files"), wanted["files"], ("tidegate",) if whole else wanted["files"])
    for one in found:
        _demand_tables(folder, one.case, one.seed)
    return found, there["files"]


def _demand_files(folder: Path, there: Any, wanted: dict[str, str], same: Iterable[str]) -> None:
    """Refuse a run of other code: with the rest of one of this code it would be a mixture."""
    if not isinstance(there, dict):
        raise TidegateError(
            f"{folder} does not say of which files it is, as earlier versions did not; leave out --resume to begin again"
        )
    changed = [whose for whose in same if there.get(whose) != wanted.get(whose)]
    if changed:
        whose = " and ".join(
            {"tidegate": "Tidegate's files", "experiment": "the experiment's files"}.get(one, one)
            for one in sorted(changed)
        )
        raise TidegateError(f"{whose} have changed since {folder} was run; leave out --resume to begin again")


def redraw(folder: Path, source: str | None = None) -> Figure:
    """The figure of a run's folder, from its tables; `source` is the file and function of an experiment of the user's own.

    The file that a record names is not run by itself: the folder may be a stranger's. Raises `TidegateError`.
    """
    with user_code.blamed():
        plan, runs = _read_again(folder, source)
        return plan.drawn(runs)


def replot(folder: Path, source: str | None = None) -> Path:
    """Redraw the figure of a run's folder from its tables, as `redraw` does, into its file."""
    with user_code.blamed():
        plan, runs = _read_again(folder, source)
        drawn = plan.picture(runs)
    with replacing(folder / FIGURE) as file:
        file.write(drawn)
    return folder / FIGURE


def _read_again(folder: Path, source: str | None) -> tuple[Plan, list[Run]]:
    """What a run's folder holds, to be drawn."""
    answer = read_record(folder)
    if answer.get("interrupted"):
        raise TidegateError(f"{folder} holds a run that was interrupted; run it again to draw it")
    from tidegate.experiments import sweep

    if not answer["rows"]:
        raise _no_run(folder, f"{RECORD} has no rows")
    if sweep.is_sweep(answer):
        if "landscape" not in answer:
            raise _no_run(folder, f"{RECORD} is a sweep's and has no landscape")
        return sweep.recorded_plan(answer, source), []
    parameters = {name: value for name, value in answer["parameters"].items() if name != "quick"}
    named = answer.get("source") or answer["experiment"]
    if source is None and is_reference(named):
        raise TidegateError(
            f"{folder} is a run of {named}, which is not run unless you name it; if you trust that file: "
            f"tidegate plot {shlex.quote(str(folder))} --source {shlex.quote(named)}"
        )
    one = find(source or named)
    backend = answer.get("backend", "sim")
    for name in parameters.keys() - one.parameters(False, backend).keys():
        raise TidegateError(f"{folder}: {one.no_parameter(name)}")
    try:
        parameters = one.recalled(parameters)
    except TidegateError as error:
        raise _no_run(folder, f"{RECORD}: {error}") from None
    return one.planned(parameters), runs_of(folder, answer)


def figure_of(folder: Path) -> bytes | None:
    """The figure in a run's folder; `None` where there is none, as of a run that was interrupted."""
    path = folder / FIGURE
    try:
        return limited(path, MOST_BYTES) if path.exists() else None
    except OSError as error:
        raise TidegateError(f"{path}: cannot be read: {why(error)}") from None
    except ValueError as error:
        raise TidegateError(f"{path}: {error}") from None


def write_report(folder: Path, text: str) -> Path:
    """Put a report into a run's folder, in place of the one that is there. Raises `TidegateError` where something else has its name."""
    path = folder / REPORT
    if os.path.lexists(path) and not _is_kind(path, stat.S_ISREG):
        raise TidegateError(
            f"{path} is not a file of a run's; move it away, or give a file's name with --out"
        )
    with replacing(path) as file:
        file.write(text.encode())
    return path
