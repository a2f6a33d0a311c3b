"""What `make demo` shows."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from tidegate.systems.meter.demo import LIVE, SCHEMES, SIMULATED, Results, draw, table


def results(share: float, retransmits: int, *schemes: str, cells: tuple[str, ...]) -> Results:
    return {(cell, scheme): (share, retransmits) for cell in cells for scheme in schemes}


def shown(simulated: Results, live: Results) -> list[str]:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table(simulated, live))
    return console.export_text().splitlines()


def test_both_results_stand_beside_each_other(tmp_path: Path) -> None:
    simulated = results(0.25, 1234, *SCHEMES, cells=SIMULATED["cells"])
    live = results(0.75, 0, *LIVE["schemes"], cells=LIVE["cells"])
    lines = shown(simulated, live)
    assert sum(line.count("0.25") == 3 and "1234" in line and "simulated" in line for line in lines) == 6
    assert sum(line.count("0.75") == 2 and "real Linux" in line for line in lines) == 2
    figure = draw(simulated, live)
    figure.savefig(tmp_path / "figure.png")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 5
    assert "fair meter, real Linux, 20 s" in labels


def test_without_a_lab_there_is_the_simulation_alone() -> None:
    lines = shown(results(0.25, 1, "fair", cells=("cubic+bbr",)), {})
    assert not any("real Linux" in line for line in lines)
    assert sum("0.25" in line for line in lines) == 1
