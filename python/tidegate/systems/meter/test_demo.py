"""What `make demo` shows."""

from __future__ import annotations

import io
import itertools
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from tidegate.experiments import Run, Status
from tidegate.systems.meter.demo import (
    LIVE,
    SCHEMES,
    SIMULATED,
    Board,
    Results,
    draw,
    keys,
    run,
    shown,
    table,
)
from tidegate.systems.meter.experiments.contenders import CONTENDERS
from tidegate.systems.meter.experiments.fair_sharing import CELLS

SIMULATED_KEYS = keys(SIMULATED)
CHEAPEST = "two-rtts-e"
"""The cell that takes the least time to simulate: a second. The others' rows of the README are compared before a release."""


def results(share: float, retransmits: int, *schemes: str, cells: tuple[str, ...]) -> Results:
    return {(cell, scheme): (share, retransmits) for cell in cells for scheme in schemes}


def text_of(simulated: Results, live: Results, *, with_live: bool) -> list[str]:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table(simulated, live, with_live=with_live))
    return console.export_text().splitlines()


def test_both_results_stand_beside_each_other(tmp_path: Path) -> None:
    simulated = results(0.25, 1234, *SCHEMES, cells=SIMULATED["cells"])
    live = results(0.75, 0, *LIVE["schemes"], cells=LIVE["cells"])
    lines = text_of(simulated, live, with_live=True)
    assert sum(line.count("0.25") == 3 and "1234" in line and "simulated" in line for line in lines) == 6
    assert sum(line.count("0.75") == 2 and "real Linux" in line for line in lines) == 2
    figure = draw(simulated, live)
    figure.savefig(tmp_path / "figure.png")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 5
    assert "fair meter, real Linux, 20 s" in labels
    # Runs of different lengths stand on one axis: of 55 and 15 s.
    assert "in 10 s" in figure.axes[1].get_xlabel()
    drawn = {float(np.asarray(line.get_xdata())[0]) for line in figure.axes[1].lines[:3]}
    assert drawn == {1234 * 10 / 55, 0.0}


def test_without_a_lab_there_is_the_simulation_alone() -> None:
    lines = text_of(results(0.25, 1, "fair", cells=("cubic+bbr",)), {}, with_live=False)
    assert not any("real Linux" in line for line in lines)
    assert sum("0.25" in line for line in lines) == 1


def test_the_head_says_the_layer() -> None:
    said = " ".join(" ".join(text_of({}, {}, with_live=False)).split())
    assert "Rate of IP packets (layer 3)" in said
    assert "30 Mbit/s of IP, 28 ms" in said
    assert "from the 10th second on" in said


def readme() -> list[list[str]]:
    """The rows of the table in the README, head first."""
    lines = (Path(__file__).resolve().parents[4] / "README.md").read_text().splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("| flows in the meter"))
    rows = itertools.takewhile(lambda line: line.startswith("|"), lines[begin:])
    return [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]


def test_the_readme_has_the_cases_of_the_demo() -> None:
    head, _, *rows = readme()
    assert head[1:] == [CONTENDERS[scheme].text for scheme in SCHEMES]
    assert [row[0] for row in rows] == [CELLS[cell].text for cell in SIMULATED["cells"]]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "row"),
    [
        pytest.param(cell, row, marks=() if cell == CHEAPEST else pytest.mark.soak, id=cell)
        for cell, row in zip(SIMULATED["cells"], readme()[2:], strict=True)
    ],
)
def test_the_readme_has_the_figures_that_the_demo_prints(cell: str, row: list[str], tmp_path: Path) -> None:
    found = run("sim", {**SIMULATED, "cells": (cell,)}, tmp_path, lambda status: None)
    assert row[1:] == [", ".join(shown(found[cell, scheme]).split()) for scheme in SCHEMES]


def test_what_is_still_to_come_has_dots() -> None:
    lines = text_of(results(0.25, 1, "fair", cells=("cubic+bbr",)), {}, with_live=True)
    assert "\n".join(lines).count("...") == len(SIMULATED_KEYS) + len(keys(LIVE)) - 1


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def ran(cell: str, scheme: str) -> Run:
    row = {"cell": cell, "scheme": scheme, "worst_10_s": 0.5, "retransmits": 7}
    return Run(f"{scheme}-{cell}", 1, [row], {})


def test_a_line_for_each_case_and_when_nothing_ends() -> None:
    out, now = io.StringIO(), Clock()
    cell, scheme = SIMULATED_KEYS[0]
    running = (f"{scheme}-{cell}",)
    with Board(Console(file=out), with_live=False, now=now) as board:
        hear = board.watch("sim")
        for tick in range(60):
            now.now += 0.1
            hear(Status(0.1 + tick / 60, 18, running, ()))
        hear(Status(1.0, 18, (), (ran(cell, scheme),)))
    lines = out.getvalue().splitlines()
    assert len(lines) == 2
    said = (
        r"simulated: 0 of 18 cases done, about [0-9:]+ left; running: CUBIC with and without ECN / plain, 1 s"
    )
    assert re.fullmatch(said, lines[0])
    assert lines[1] == "simulated: CUBIC with and without ECN / plain, 1 s: 0.50       7"


def test_on_a_terminal_the_table_is_there_from_the_beginning() -> None:
    out, now = io.StringIO(), Clock()
    cell, scheme = SIMULATED_KEYS[0]
    console = Console(file=out, force_terminal=True, width=120, height=60)
    with Board(console, with_live=False, now=now) as board:
        assert "flows in the meter" in out.getvalue()
        assert "0.50" not in out.getvalue()
        board.watch("sim")(Status(1.0, 18, (f"fair-{cell}",), (ran(cell, scheme),)))
        assert "0.50" in out.getvalue()
        assert "1 of 18 cases done" in out.getvalue()


@pytest.mark.parametrize("given", [["--help"], ["a", "b"]])
def test_options_are_no_folder(given: list[str], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tidegate.systems.meter", *given]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "usage: python -m tidegate.systems.meter [FOLDER]\n"
    assert list(tmp_path.iterdir()) == []


@pytest.mark.slow
@pytest.mark.parametrize("wait_for", ["", "running: "])
def test_an_interrupt_ends_it_with_one_line(tmp_path: Path, wait_for: str) -> None:
    """While modules are loaded, and while cases run."""
    command = [sys.executable, "-m", "tidegate.systems.meter", str(tmp_path / "demo")]
    running = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert running.stderr is not None
    begin = []
    if wait_for:
        while wait_for not in (line := running.stderr.readline()):
            assert line
            begin.append(line)
    else:
        # Its handler stands before it has loaded what takes time.
        status = Path(f"/proc/{running.pid}/status")
        while not int(re.search(r"SigCgt:\s*(\w+)", status.read_text())[1], 16) & 1 << (signal.SIGTERM - 1):  # type: ignore[index]
            time.sleep(0.005)
    os.killpg(running.pid, signal.SIGINT)
    out, said = running.communicate(timeout=60)
    assert running.returncode == 130
    assert out == ""
    lines = [line for line in said.splitlines() if "simulated" not in line]
    assert lines == ["interrupted; the demo can be begun again with `make demo`"]
