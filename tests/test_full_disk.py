"""Studies and comparisons on file systems that get full: real ones, which are small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("optuna", reason="needs the extra `tune`")

pytestmark = pytest.mark.live

PAGE = os.sysconf("SC_PAGE_SIZE")
COMMAND = (
    "tune meter.rates --range mtu=800:1500 --set rates_mbps=10 --set schemes=plain --set base_rtts_ms=10 "
    "--set duration_s=2 --maximise goodput_mbps --trials 6 --batch 2"
)
SMALL = "--set rates_mbps=10 --set base_rtts_ms=10 --set duration_s=2 --set schemes=plain"


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    folder = tmp_path / "disk"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64M", "tmpfs", folder], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", folder], check=True)


def size(disk: Path, wanted: int) -> None:
    subprocess.run(["mount", "-o", f"remount,size={wanted}", disk], check=True)


def tune(*words: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidegate.cli", *COMMAND.split(), *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)


def trials(folder: Path) -> list[str]:
    record = json.loads((folder / "tune.json").read_text())
    return [(folder / "trials.csv").read_text(), json.dumps([record["trials"], record["best"]])]


@pytest.fixture(scope="module")
def serial(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The study where there is room."""
    folder = tmp_path_factory.mktemp("serial")
    done = tune("--out", folder)
    assert done.returncode == 0, done.stderr
    return folder


def full(done: subprocess.CompletedProcess[str], place: Path) -> None:
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert str(place) in line
    assert "No space left on device" in line or "database or disk is full" in line
    assert "the same command" in line


def room(*files: Path) -> int:
    return sum(-(-file.stat().st_size // PAGE) * PAGE for file in files)


@pytest.mark.parametrize("place", ["study.db", "report.html"])
def test_a_study_of_which_a_file_has_no_room_goes_on(place: str, serial: Path, disk: Path) -> None:
    of_all = room(
        *(serial / name for name in ("study.db", "tune.json", "trials.csv", "figure.png", "report.html"))
    )
    size(disk, room(serial / "study.db") // 2 if place == "study.db" else of_all - PAGE)
    full(tune("--out", disk / "out"), disk / "out" / place)
    size(disk, 64 << 20)
    done = tune("--out", disk / "out")
    assert done.returncode == 0, done.stderr
    assert trials(disk / "out") == trials(serial)


def test_a_journal_with_a_line_that_was_cut_off_goes_on(serial: Path, disk: Path, tmp_path: Path) -> None:
    journal = disk / "journal"
    where = ("--out", tmp_path / "out", "--storage", journal)
    size(disk, PAGE)
    full(tune(*where), journal)
    assert not journal.read_bytes().endswith(b"\n")
    size(disk, 64 << 20)
    done = tune(*where)
    assert done.returncode == 0, done.stderr
    assert trials(tmp_path / "out") == trials(serial)
    journal.write_bytes(journal.read_bytes() + b'{"op_code":6,"wor{"op_code":6}\n')
    done = tune(*where)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert "does not hold studies of Optuna's" in done.stderr


def test_runs_of_a_batch_that_have_no_room_are_run_again(serial: Path, disk: Path, tmp_path: Path) -> None:
    where = ("--out", disk / "out", "--storage", tmp_path / "journal")
    size(disk, PAGE)
    (disk / "others").write_bytes(bytes(PAGE))
    full(tune(*where), disk / "out" / "runs.jsonl")
    (disk / "others").unlink()
    size(disk, 64 << 20)
    done = tune(*where)
    assert done.returncode == 0, done.stderr
    assert trials(disk / "out") == trials(serial)


def test_a_comparison_without_room_for_its_page_goes_on(disk: Path, tmp_path: Path) -> None:
    def tidegate(*words: str | Path) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "tidegate.cli", *map(str, words)]
        return subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)

    sides = [tmp_path / "one", tmp_path / "other"]
    for seed, side in enumerate(sides):
        ran = tidegate("run", "meter.rates", *SMALL.split(), "--seed", str(seed + 1), "--out", side)
        assert ran.returncode == 0, ran.stderr
    out = disk / "out"
    done = tidegate("compare", *sides, "--out", out)
    assert done.returncode == 0, done.stderr
    names = ("compare.json", "compare.png", "report.html")
    of_all = room(*(out / name for name in names))
    for name in names:
        (out / name).unlink()
    size(disk, of_all - PAGE)
    done = tidegate("compare", *sides, "--out", out)
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1)
    assert f"{out / 'report.html'}: cannot be written: No space left on device; mend that, or" in done.stderr
    assert sorted(path.name for path in out.iterdir()) == ["compare.json", "compare.png"]
    size(disk, 64 << 20)
    done = tidegate("compare", *sides, "--out", out)
    assert done.returncode == 0, done.stderr
