"""`make setup` before and while it builds: what it needs, and that it shows how far it is."""

from __future__ import annotations

import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
STEP = ROOT / "tools" / "step.py"
TOOLS = {
    "python3": 'case "$2" in *version_info*) echo "${PYTHON_IS:-3.12}";; esac; exit "${VENV_IS:-0}"',
    "cargo": "true",
    "rustc": 'echo "rustc ${RUST_IS:-1.90.0} (abc 2025)"',
    "cc": "true",
    "df": 'echo "Filesystem 1M-blocks Used Available"; echo "/dev/x 100 0 ${FREE_IS:-9000} 1% /"',
}


def needs(folder: Path, without: tuple[str, ...] = (), **known: str) -> subprocess.CompletedProcess[str]:
    """`tools/needs.sh` with these programs only."""
    place = folder / "bin"
    place.mkdir()
    for name, body in TOOLS.items():
        if name not in without:
            (place / name).write_text(f"#!/bin/sh\n{body}\n")
            (place / name).chmod(0o755)
    for name in ("sh", "sed", "awk", "cut"):
        found = shutil.which(name)
        assert found is not None
        (place / name).symlink_to(found)
    return subprocess.run(
        [place / "sh", ROOT / "tools" / "needs.sh"],
        cwd=folder,
        env={"PATH": str(place), **known},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nothing_is_missing(tmp_path: Path) -> None:
    done = needs(tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize(
    ("without", "known", "said"),
    [
        (("python3",), {}, ["Python 3.11 or newer (python3 is not found): apt install python3 python3-venv"]),
        ((), {"PYTHON_IS": "3.9"}, ["Python 3.11 or newer (python3 is 3.9): install it, and give it with"]),
        ((), {"VENV_IS": "1"}, ["Python's modules venv and ensurepip: apt install python3-venv"]),
        (("cargo",), {}, ["a Rust toolchain, 1.88 or newer (cargo and rustc are not found): see https"]),
        ((), {"RUST_IS": "1.75.0"}, ["Rust 1.88 or newer (rustc is 1.75.0): rustup update"]),
        (("cc",), {}, ["a C compiler (cc is not found): apt install gcc"]),
        ((), {"FREE_IS": "100"}, ["room on the disk: a build takes 3000 MB, and "]),
        (
            ("cc", "cargo", "rustc"),
            {"PYTHON_IS": "3.10"},
            ["Python 3.11", "a Rust toolchain", "a C compiler"],
        ),
    ],
)
def test_what_is_missing_is_said_in_a_line_each(
    tmp_path: Path, without: tuple[str, ...], known: dict[str, str], said: list[str]
) -> None:
    done = needs(tmp_path, without, **known)
    assert done.returncode == 1
    lines = done.stderr.splitlines()
    assert len(lines) == len(said)
    for line, begin in zip(lines, said, strict=True):
        assert line.startswith(f"missing: {begin}")


def test_make_says_it_before_it_builds_anything(tmp_path: Path) -> None:
    for name in (
        "Makefile",
        "requirements.lock",
        "requirements-uv.lock",
        "pyproject.toml",
        "Cargo.toml",
        "Cargo.lock",
    ):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "crates").mkdir()
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    make = shutil.which("make")
    if make is None:
        pytest.skip("needs make")
    done = subprocess.run(
        [make, "demo", "PYTHON=no-such-python"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    assert "missing: Python 3.11 or newer (no-such-python is not found)" in done.stderr
    assert not (tmp_path / ".venv").exists()
    assert not (tmp_path / "target").exists()


def step(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, STEP, "1/2 test", "--", "sh", "-c", script],
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_step_keeps_its_output_in_the_log(tmp_path: Path) -> None:
    done = step(tmp_path, "echo this; echo that >&2")
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.splitlines() == ["1/2 test ...", done.stderr.splitlines()[-1]]
    assert "1/2 test: done in " in done.stderr
    assert "this\nthat\n" in (tmp_path / ".venv" / "setup.log").read_text()


def test_a_step_that_fails_shows_why(tmp_path: Path) -> None:
    done = step(tmp_path, "seq 100; exit 3")
    assert done.returncode == 3
    lines = done.stderr.splitlines()
    assert lines[1].startswith("1/2 test: failed after 0:0")
    assert lines[2:-1] == [f"    {number}" for number in range(71, 101)]
    assert lines[-1] == "all of its output: .venv/setup.log"


def test_a_program_that_there_is_not(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, STEP, "x", "--", "no-such-program"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert "no-such-program: there is no such program" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_step_ends_at_once_with_its_children(tmp_path: Path, number: signal.Signals) -> None:
    # A child that does not listen.
    script = "trap '' TERM INT; echo begun; sleep 60 & echo $! > pid; wait"
    running = subprocess.Popen(
        [sys.executable, STEP, "1/2 test", "--", "sh", "-c", script],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    )
    pid = tmp_path / "pid"
    while not pid.exists() or not pid.read_text():
        time.sleep(0.01)
    running.send_signal(number)
    _, said = running.communicate(timeout=30)
    assert running.returncode == 130
    assert said.splitlines() == ["1/2 test ...", "1/2 test: interrupted; the same command goes on from here"]
    while Path(f"/proc/{pid.read_text().strip()}").exists():
        time.sleep(0.01)


def test_on_a_terminal_one_line_shows_what_goes_on(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    running = subprocess.Popen(
        [
            sys.executable,
            STEP,
            "1/2 test",
            "--",
            "sh",
            "-c",
            "echo '   Compiling one v1'; echo '   Compiling two v1'; sleep 1",
        ],
        cwd=tmp_path,
        stderr=theirs,
        env={name: value for name, value in os.environ.items() if name != "MAKEFLAGS"},
    )
    os.close(theirs)
    seen = b""
    try:
        while part := os.read(ours, 4096):
            seen += part
    except OSError:
        pass
    running.wait()
    os.close(ours)
    assert b"  2 crates, Compiling two v1" in seen
    assert seen.count(b"\n") == 1
    assert b"\r\x1b[K1/2 test: done in 0:" in seen
