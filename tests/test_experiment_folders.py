"""Folders of runs: what a run replaces, what it leaves alone, and what there is when it ends early."""

from __future__ import annotations

import errno
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from conftest import Run
from tidegate import TidegateError, experiments
from tidegate.cli.compare import RESULT
from tidegate.experiments import digests, folder, jobs, replot, sweep, tune
from tidegate.experiments import run as run_experiment
from tidegate.experiments.answer import Answer
from tidegate.experiments.jobs import Ended, Jobs, Tell
from tidegate.experiments.landscape import Landscape

QUICK: dict[str, Any] = {"flows": (1,), "duration_s": 2.1}
NAME = "reference.dumbbell"


def run_at(out: Path, **given: Any) -> Answer:
    parameters = {**QUICK, **given.pop("parameters", {})}
    return run_experiment(NAME, parameters, **{"seeds": [1], "quick": True, "out": out, **given})


def written(out: Path) -> list[str]:
    return sorted(one.name for one in out.iterdir())


# How a message of a run that could not take its place ends: the hint, then the folder.
RESUME = "the same command with --resume goes on; what is done is in"

WHOLE = [".tidegate-run", "figure.png", "report.html", "run.json", "tables"]


class Nobody:
    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        raise AssertionError("nothing is to be run")


def test_to_go_on_with_a_complete_run_is_to_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out = tmp_path / "run"
    whole = run_at(out)
    files = {name: (out / name).stat().st_mtime_ns for name in written(out)}
    again = run_at(out, resume=True, executor=Nobody())
    assert json.dumps(again, sort_keys=True) == json.dumps(whole, sort_keys=True)
    assert (whole.complete_before, again.complete_before) == (False, True)
    assert files == {name: (out / name).stat().st_mtime_ns for name in written(out)}
    for other, said in (
        ({"seeds": [1, 2]}, "holds a complete run with seeds=1 and not seeds=1,2"),
        ({"seeds": [2]}, "holds a complete run with seeds=1 and not seeds=2"),
        (
            {"parameters": {"flows": (1, 2), "duration_s": 3.0}},
            "flows=1 and not flows=1,2, duration_s=2.1 and not",
        ),
        ({"quick": False}, "quick=True and not quick=False"),
    ):
        with pytest.raises(TidegateError, match=f"{said}.*leave out --resume to begin again"):
            run_at(out, resume=True, **other)
    monkeypatch.setattr(digests, "of_tidegate", lambda: "other")
    with pytest.raises(TidegateError, match="Tidegate's files have changed since"):
        run_at(out, resume=True)
    assert written(tmp_path) == ["run"]


def test_the_command_says_that_a_run_is_complete(tidegate: Run, tmp_path: Path) -> None:
    words = ["run", NAME, "--quick", "--set", "flows=1", "--set", "duration_s=3", "--out", tmp_path / "run"]
    first, again = tidegate(*words), tidegate(*words, "--resume")
    assert (again.code, again.out) == (0, first.out)
    assert f"{tmp_path / 'run'} is complete: nothing was run" in again.err


def test_what_is_one_is_said_as_one(tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: {0})
    monkeypatch.chdir(tmp_path)
    short = ["--set", "duration_s=3"]
    ran = tidegate("run", NAME, *short, "--set", "flows=1")
    assert f"{NAME}: 1 run of 3 s of simulated time in all, on 1 processor; " in ran.err
    assert tidegate("sweep", NAME, "--quick", *short, "--over", "flows=1").out.startswith("1 row: ")
    two = tidegate("sweep", NAME, "--quick", *short, "--over", "flows=1,2")
    assert two.out.startswith("2 rows: ")


@pytest.mark.parametrize(
    ("name", "what", "command"),
    [(tune.RECORD, "a study", "tidegate tune"), (RESULT, "a comparison", "tidegate compare")],
)
@pytest.mark.parametrize("words", [["report"], ["plot"], ["view"], ["claims"], ["compare", "codel"]])
def test_a_folder_of_no_run_says_where_its_page_is(
    tidegate: Run, tmp_path: Path, name: str, what: str, command: str, words: list[str]
) -> None:
    (tmp_path / name).write_text("{}")
    said = tidegate(*words, tmp_path)
    assert (said.code, len(said.err.splitlines())) == (1, 1)
    assert f"holds {what} and no run: its page is {tmp_path / 'report.html'}" in said.err
    assert command in said.err


@pytest.mark.parametrize("text", ["{}", '{"experiment": "mine", "parameters": {}, "rows": []}'])
def test_a_file_called_run_json_does_not_make_a_folder_a_run_s(tmp_path: Path, text: str) -> None:
    out = tmp_path / "mine"
    (out / "tables").mkdir(parents=True)
    (out / "tables" / "thesis.csv").write_text("...")
    (out / "run.json").write_text(text)
    with pytest.raises(TidegateError, match=r"does not hold an earlier run: it has no \.tidegate-run; give"):
        run_at(out)
    assert (out / "run.json").read_text() == text
    assert (out / "tables" / "thesis.csv").exists()
    assert written(tmp_path) == ["mine"]


def test_runs_of_versions_without_the_marker_are_replaced(tmp_path: Path) -> None:
    run_at(tmp_path / "run")
    (tmp_path / "run" / folder.MARKER).unlink()
    run_at(tmp_path / "run")
    assert written(tmp_path / "run") == WHOLE


@pytest.mark.parametrize(
    "name", ["tables/mine.csv", "tables/n1-1/mine.parquet", "figure.png", "report.html", "tables"]
)
def test_what_is_not_of_a_run_is_never_replaced(tmp_path: Path, name: str) -> None:
    out, precious = tmp_path / "run", tmp_path / "precious"
    run_at(out)
    precious.mkdir()
    (precious / "data").write_text("...")
    if name in ("figure.png", "report.html"):
        (out / name).unlink()
        (out / name).symlink_to(precious / "data")
    elif name == "tables":
        shutil.rmtree(out / name)
        (out / name).symlink_to(precious)
    else:
        (out / name).write_text("mine")
    asked: list[float] = []
    with pytest.raises(
        TidegateError, match=r"a run cannot be written there: .* is not .*; give another folder"
    ):
        run_at(out, progress=lambda done, _: asked.append(done))
    assert asked == []
    assert (precious / "data").read_text() == "..."
    assert os.path.lexists(out / name)
    assert written(tmp_path) == ["precious", "run"]


def test_names_that_somebody_has_prepared_lead_nowhere(tmp_path: Path) -> None:
    """Before, `.run.part` was removed, or written to."""
    target = tmp_path / "target"
    target.mkdir()
    (target / "mine").write_text("...")
    (tmp_path / ".run.part").symlink_to(target)
    other = tmp_path / ".other.part"
    other.mkdir()
    (other / "mine").write_text("...")
    run_at(tmp_path / "run")
    run_at(tmp_path / "other")
    assert written(tmp_path / "run") == written(tmp_path / "other") == WHOLE
    assert (target / "mine").exists()
    assert (other / "mine").exists()


def test_the_folder_one_is_in_and_one_that_a_link_leads_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = tmp_path / "here", tmp_path / "elsewhere" / "there"
    here.mkdir()
    monkeypatch.chdir(here)
    for _ in range(2):
        assert run_at(Path("."))["out"] == "."
        assert written(here) == WHOLE == sorted(os.listdir("."))
    there.mkdir(parents=True)
    (tmp_path / "link").symlink_to(there)
    for _ in range(2):
        run_at(tmp_path / "link")
        assert written(there) == WHOLE
    assert (tmp_path / "link").is_symlink()
    assert written(there.parent) == ["there"]


@pytest.mark.skipif(not Path("/dev/shm").is_mount(), reason="needs another file system")
def test_another_file_system(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="it is the root of a file system"):
        run_at(Path("/dev/shm"))
    there = Path("/dev/shm") / f"tidegate-test-{os.getpid()}"
    (tmp_path / "link").symlink_to(there / "run")
    try:
        there.mkdir()
        for _ in range(2):
            run_at(tmp_path / "link")
            assert written(there / "run") == WHOLE
    finally:
        shutil.rmtree(there)


def test_no_space_is_noticed_before_anything_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda _: shutil._ntuple_diskusage(1 << 30, 1 << 30, 1 << 20))
    with pytest.raises(TidegateError, match="its file system has 1024 KiB left; give another folder"):
        run_at(tmp_path / "a" / "run")
    assert written(tmp_path) == []


def test_no_space_on_the_way_keeps_what_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = folder.Work.write_tables

    def full(work: folder.Work, run: experiments.Run) -> None:
        if run.seed == 2:
            with folder._writing(work.out):
                raise OSError(errno.ENOSPC, "No space left on device")
        write(work, run)

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(folder.Work, "write_tables", full)
        with pytest.raises(
            TidegateError, match=r"No space left on device; 1 of 3 runs are done and in .*--resume"
        ):
            run_at(out, seeds=[1, 2, 3])
    assert written(tmp_path) == ["run"]
    with pytest.raises(
        TidegateError, match=r"runs with seed 1 that are done, and would be lost; give the same, or"
    ):
        run_at(out, seeds=[2, 3], resume=True)
    assert [row["seed"] for row in run_at(out, seeds=[1, 2, 3], resume=True)["rows"]] == [1, 2, 3]


def test_no_space_for_the_record_at_the_end_keeps_what_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    move = Path.replace

    def full(path: Path, to: Path) -> Path:
        # What is run was written at the beginning.
        if to.name == folder.RECORD and to.exists():
            raise OSError(errno.ENOSPC, "No space left on device")
        return move(path, to)

    out = tmp_path / "run"
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", full)
        with pytest.raises(
            TidegateError,
            match=rf"run: the run could not be written: No space left on device; {RESUME} .*\.part/run$",
        ):
            run_at(out, seeds=[1, 2])
    assert not out.exists()
    assert [row["seed"] for row in run_at(out, seeds=[1, 2], resume=True)["rows"]] == [1, 2]
    assert written(tmp_path) == ["run"]


def test_a_place_that_cannot_be_taken_at_the_end_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    run_at(out)
    before = (out / "run.json").read_bytes()
    rename = Path.rename

    def fails(path: Path, to: Path) -> Path:
        if path.name == "run.json" and Path(to).parent == out and "old" not in path.parts:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(TidegateError, match=rf"Input/output error; {RESUME} .*\.part/run$") as told:
            run_at(out, seeds=[2])
    assert (out / "run.json").read_bytes() == before
    assert written(out) == WHOLE
    left = Path(str(told.value).rpartition(" is in ")[2])
    assert json.loads((left / "run.json").read_text())["seeds"] == [2]


class Nothing:
    """All is done already."""

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        assert jobs.jobs == []


@pytest.mark.parametrize("old", [False, True])
@pytest.mark.parametrize(("what", "name"), [("write_bytes", "figure.png"), ("rename", "run.json")])
def test_what_could_not_be_finished_goes_on_without_another_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, what: str, name: str, old: bool
) -> None:
    out = tmp_path / "run"
    if old:
        run_at(out, seeds=[9])
    real = getattr(Path, what)

    def fails(path: Path, *given: Any) -> Any:
        if path.name in (name, "run" if what == "rename" else name) and path.parent.parent != out:
            raise OSError(errno.EIO, "Input/output error")
        return real(path, *given)

    with monkeypatch.context() as patch:
        patch.setattr(Path, what, fails)
        with pytest.raises(TidegateError, match=rf"Input/output error; {RESUME} "):
            run_at(out, seeds=[1, 2])
    again = run_at(out, seeds=[1, 2], resume=True, executor=Nothing())
    assert [row["seed"] for row in again["rows"]] == [1, 2]
    assert written(out) == WHOLE
    assert written(tmp_path) == ["run"]


def test_what_an_interrupted_run_could_not_put_in_its_place_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its rows are in the record and in the journal then."""

    def stop(status: experiments.Status) -> None:
        if status.finished:
            raise KeyboardInterrupt

    out, rename = tmp_path / "run", Path.rename

    def fails(path: Path, to: Path) -> Path:
        if Path(to) == out:
            raise OSError(errno.EIO, "Input/output error")
        return rename(path, to)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", fails)
        with pytest.raises(TidegateError, match=rf"Input/output error; {RESUME} .*\.part/run$") as told:
            run_at(out, seeds=[1, 2], watch=stop)
    left = Path(str(told.value).rpartition(" is in ")[2])
    assert [row["seed"] for row in folder.read_record(left)["rows"]] == [1]
    assert [row["seed"] for row in run_at(out, seeds=[1, 2], resume=True)["rows"]] == [1, 2]


def swept(out: Path, **given: Any) -> dict[str, Any]:
    return sweep.run(
        NAME, QUICK, {"flows": [(1,)]}, landscape=Landscape(("flows",)), seeds=[1], out=out, **given
    )


def test_a_file_rows_csv_of_the_user_s_stays(tmp_path: Path) -> None:
    out = tmp_path / "run"
    for _ in range(2):
        run_at(out)
        (out / "rows.csv").write_text("mine")
    run_at(out)
    assert (out / "rows.csv").read_text() == "mine"
    with pytest.raises(
        TidegateError, match=r"rows\.csv is not of a sweep, which would replace it; give another"
    ):
        swept(out)
    folder.remove(out)
    assert written(out) == ["rows.csv"]


def test_a_sweep_s_table_is_replaced_and_has_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    measure = jobs.run_case

    def measured(*given: Any) -> experiments.Run:
        run = measure(*given)
        return replace(run, rows=[{**row, "each": [1, None, "a"]} for row in run.rows or []])

    monkeypatch.setattr(jobs, "run_case", measured)
    for _ in range(2):
        swept(tmp_path / "run")
    table = pl.read_csv(tmp_path / "run" / "rows.csv")
    assert table["each"].to_list() == ['[1, null, "a"]']
    run_at(tmp_path / "run")
    assert written(tmp_path / "run") == WHOLE


def test_two_runs_do_not_write_one_folder(tmp_path: Path) -> None:
    work = folder.Work(tmp_path / "run")
    with pytest.raises(TidegateError, match="another run is being written there"):
        run_at(tmp_path / "run")
    work.discard()
    run_at(tmp_path / "run")
    assert written(tmp_path) == ["run"]


Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def start() -> Iterator[Start]:
    """Starts the command with two processes at once, and ends it with the test."""
    begun: list[subprocess.Popen[str]] = []
    # Signals that are ignored, as after `nohup` and in background jobs of a shell, stay so: what is run would not hear them.
    code = (
        "import os, runpy, signal, sys; os.sched_getaffinity = lambda pid: {0, 1}; sys.argv = sys.argv[1:]; "
        "signal.signal(signal.SIGINT, signal.default_int_handler); "
        "[signal.signal(each, signal.SIG_DFL) for each in (signal.SIGTERM, signal.SIGHUP)]; "
        "runpy.run_module('tidegate.cli', run_name='__main__')"
    )

    def start(out: Path, *more: str) -> subprocess.Popen[str]:
        words = [sys.executable, "-c", code, "tidegate", "run", NAME, "--out", str(out), *more]
        begun.append(subprocess.Popen(words, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True))
        return begun[-1]

    yield start
    for one in begun:
        one.kill()
        one.communicate()


def children(pid: int) -> list[int]:
    try:
        return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def wait_until(condition: Any, seconds: float = 100.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def done_in(tmp_path: Path) -> int:
    """Runs that are noted beside the folder."""
    return sum(len(one.read_text().splitlines()) for one in tmp_path.glob(".run.*.part/runs.jsonl"))


MANY = ["--set", "flows=1", "--set", "duration_s=20", "--repeat", "400"]


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_signals_save_what_is_done_and_leave_no_process(
    tmp_path: Path, start: Start, how: signal.Signals
) -> None:
    out = tmp_path / "run"
    parent = start(out, *MANY)
    # Between one run and the next there may be no process.
    wait_until(lambda: (done_in(tmp_path) >= 1 and children(parent.pid)) or parent.poll() is not None)
    workers = children(parent.pid)
    parent.send_signal(how)
    _, said = parent.communicate(timeout=60)
    assert (parent.returncode, said.count("interrupted with")) == (130, 1), said
    assert "of 400 runs done" in said.splitlines()[-1]
    assert not [pid for pid in workers if Path(f"/proc/{pid}").exists()]
    about = json.loads((out / "run.json").read_text())
    assert about["interrupted"] is True
    assert len(about["rows"]) >= 1
    assert written(tmp_path) == ["run"]


@pytest.mark.slow
def test_a_killed_parent_takes_its_workers_along_and_resume_finds_what_was_done(
    tmp_path: Path, start: Start
) -> None:
    out = tmp_path / "run"
    parent = start(out, *MANY)
    wait_until(lambda: done_in(tmp_path) >= 2)
    workers = children(parent.pid)
    parent.kill()
    parent.communicate(timeout=60)
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in workers), 10)
    assert not out.exists()
    done = done_in(tmp_path)
    few = [*MANY[:-1], str(done + 1)]
    again = start(out, *few, "--resume", "--json")
    answer, said = again.communicate(timeout=100)
    assert again.returncode == 0, said
    assert done >= 2
    assert [row["seed"] for row in json.loads(answer)["rows"]] == list(range(1, done + 2))
    assert pl.read_parquet(out / "tables" / "n1-1" / "flows.parquet").height == 1
    assert written(tmp_path) == ["run"]


BREAKING = """
import json, os, signal, sys
from pathlib import Path
from tidegate import TidegateError, experiments
from tidegate.experiments import jobs

run_case = jobs.run_case
out, how = Path(sys.argv[1]), sys.argv[2]


def breaking(progress, case, seed, *how_live):
    if seed == 3 and how == "dies":
        os.kill(os.getpid(), signal.SIGKILL)
    if seed == 3 and how == "fails":
        raise TidegateError("there is no way")
    return run_case(progress, case, seed, *how_live)


def again(out, seeds, processes, resume=False):
    given = {"flows": (1,), "duration_s": 2.1}
    try:
        answer = experiments.run(
            "reference.dumbbell", given, seeds=seeds, quick=True, out=out, processes=processes, resume=resume
        )
        print(json.dumps([row["seed"] for row in answer["rows"]]))
    except TidegateError as error:
        print(json.dumps(str(error)))


jobs.run_case = breaking
again(out, [1, 2, 3, 4], int(sys.argv[3]))
again(out.with_name("nothing"), [3, 5][: 1 if how == "fails" else 2], int(sys.argv[3]))
how = ""
again(out, [1, 2, 3, 4], 2, resume=True)
"""


def broken(out: Path, how: str, processes: int) -> list[Any]:
    """What is said of four runs of which the third breaks, of others elsewhere, and of the four when they go on."""
    command = [sys.executable, "-c", BREAKING, str(out), how, str(processes)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


@pytest.mark.slow
def test_a_worker_that_dies_loses_its_own_run_alone(tmp_path: Path) -> None:
    out = tmp_path / "run"
    why = "n1, seed 3: its process was killed by SIGKILL, as the kernel does when memory runs out; "
    there = "{} runs are done and in {}; the same command with --resume does the others"
    first, second, last = broken(out, "dies", 2)
    assert first == why + there.format("3 of 4", out)
    assert second == why + there.format("1 of 2", tmp_path / "nothing")
    assert last == [1, 2, 3, 4]
    assert written(tmp_path) == ["nothing", "run"]
    assert written(out) == WHOLE


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_run_that_fails_keeps_the_others(tmp_path: Path, processes: int) -> None:
    first, second, last = broken(tmp_path / "run", "fails", processes)
    assert re.fullmatch(r"there is no way; [123] of 4 runs are done and in .*--resume does the others", first)
    assert second == "there is no way"
    assert last == [1, 2, 3, 4]
    assert written(tmp_path) == ["run"]


def test_an_error_of_who_watches_keeps_what_is_done(tmp_path: Path) -> None:
    def watch(status: experiments.Status) -> None:
        if status.finished and status.done == 2:
            raise ValueError("as asked")

    with pytest.raises(ValueError, match="as asked") as told:
        run_at(tmp_path / "run", seeds=[1, 2, 3], watch=watch)
    assert "2 of 3 runs are done and in" in told.value.__notes__[0]
    assert written(tmp_path) == ["run"]


@pytest.mark.slow
def test_one_after_the_other_where_polars_has_worked(tmp_path: Path) -> None:
    """A process that is forked then would wait for Polars' threads for ever."""
    pl.DataFrame({"a": [1]}).write_parquet(tmp_path / "x.parquet")
    assert len(run_at(tmp_path / "run", seeds=[1, 2], processes=2)["rows"]) == 2


def test_rows_of_no_run_are_not_drawn(tmp_path: Path) -> None:
    record = {"experiment": "reference.dumbbell", "parameters": {}, "rows": [{"goodput_mbps": 1.0}]}
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(TidegateError, match=r"^reference.dumbbell: its run.json has rows without a case"):
        replot(tmp_path)


def test_a_record_and_a_figure_that_are_too_long_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "run.json").symlink_to("/dev/zero")
    with pytest.raises(TidegateError, match=r"does not hold a run: run\.json has more than 134217728 bytes"):
        folder.read_record(tmp_path)
    (tmp_path / "figure.png").symlink_to("/dev/zero")
    with pytest.raises(TidegateError, match=r"figure\.png: has more than 134217728 bytes"):
        folder.figure_of(tmp_path)


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"parameters": {"flows": "x"}}, "flows is 'x', which is no value of this parameter"),
        ({"parameters": {"flows": ["x"]}}, "flows is ('x',), which is no value of this parameter"),
        ({"rows": [{"case": "a", "seed": 1, "n": 10**30}]}, "a whole number has 31 digits"),
        ({"landscape": {}}, "landscape has no over"),
        ({"landscape": {"over": ["n"], "more": 1}}, "landscape has 'more', which no landscape has"),
        ({"landscape": {"over": "n"}}, "landscape: over has the wrong type"),
        ({"landscape": {"over": ["n"], "where": [["a"]]}}, "landscape has a value of the wrong type"),
        ({"landscape": {"over": ["n"]}}, "a row has no of"),
    ],
)
def test_a_record_that_somebody_has_changed_is_refused(
    changed: dict[str, Any], said: str, tmp_path: Path
) -> None:
    record = {
        "experiment": "reference.dumbbell",
        "parameters": {},
        "rows": [{"case": "a", "seed": 1}],
        **changed,
    }
    (tmp_path / "run.json").write_text(json.dumps(record))
    with pytest.raises(TidegateError, match=f"does not hold a run: run.json.*{re.escape(said)}"):
        replot(tmp_path)
