"""The table of runs of `meter.fair` beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.claims import Row
from tidegate.experiments import run
from tidegate.systems.meter.side_by_side import main, repeats, table


def row(seed: int, worst: float, retransmits: int | None, **given: Any) -> Row:
    about = {"cell": "cubic+bbr", "scheme": "fair", **given}
    return {"seed": seed, "worst_10_s": worst, "retransmits": retransmits, **about}


def test_the_median_of_the_repeats_of_the_worst_flow_and_of_all_losses() -> None:
    live = [
        row(1, 0.9, 10),
        row(1, 0.8, None),
        row(2, 0.7, 30),
        row(2, 0.9, 5),
        row(3, 0.85, 20),
        row(3, 0.95, 0),
        row(1, 1.0, 0, scheme="drr"),
    ]
    assert table({"live": repeats(live), "sim": repeats([row(1, 0.99, 7)])}) == [
        "| flows | meter | worst 10 s, live | worst 10 s, sim | retransmissions, live | retransmissions, sim |",
        "|---|---|---|---|---|---|",
        "| CUBIC, BBRv1 | fair meter | 0.80 (0.70 to 0.85) | 0.99 | 20 (10 to 35) | 7 |",
    ]


def test_runs_without_a_common_cell_are_refused() -> None:
    with pytest.raises(TidegateError, match="the runs have no cell and contender in common"):
        table({"live": repeats([row(1, 1, 0)]), "sim": repeats([row(1, 1, 0, cell="8-cubic")])})


@pytest.mark.slow
def test_it_reads_folders_of_runs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    settings = {"cells": ("cubic+udp3",), "schemes": ("plain-1s",), "target_mbps": 5.0, "duration_s": 20}
    for name in ("one", "two"):
        run("meter.fair", settings, seeds=[1], out=tmp_path / name)
    main([str(tmp_path / "one"), str(tmp_path / "two")])
    said = capsys.readouterr().out.splitlines()
    assert said[0].startswith("| flows | meter | worst 10 s, one | worst 10 s, two |")
    assert len(said) == 3
    assert said[2].startswith("| CUBIC, UDP of 3x | plain, 1 s | 0.00 | 0.00 |")
    with pytest.raises(
        TidegateError, match="the folders' last names are the heads: one, one are not all different"
    ):
        main([str(tmp_path / "one"), str(tmp_path / "one")])


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="does not hold a run"):
        main([str(tmp_path)])
    with pytest.raises(TidegateError, match="give folders of runs of meter"):
        main([])
