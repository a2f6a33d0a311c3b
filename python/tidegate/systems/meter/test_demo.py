"""What `make demo` shows."""

from __future__ import annotations

import io
from pathlib import Path

from rich.console import Console

from tidegate.experiments import Row
from tidegate.systems.meter.demo import RATES, Key, draw, table


def rows(error: float, *schemes: str) -> dict[Key, Row]:
    return {(0.012, scheme, rate): {"relative_error": error} for scheme in schemes for rate in RATES}


def shown(simulated: dict[Key, Row], live: dict[Key, Row]) -> list[str]:
    console = Console(width=120, record=True, file=io.StringIO())
    console.print(table(simulated, live))
    return console.export_text().splitlines()


def test_both_results_stand_beside_each_other(tmp_path: Path) -> None:
    simulated, live = rows(-0.5, "plain", "paper", "friendly"), rows(0.01, "plain", "friendly")
    lines = shown(simulated, live)
    assert sum("-50.0 %" in line and "simulated" in line for line in lines) == 3
    assert sum("+1.0 %" in line and "real Linux" in line for line in lines) == 2
    figure = draw(simulated, live)
    figure.savefig(tmp_path / "figure.png")
    labels = [text.get_text() for text in figure.legends[0].get_texts()]
    assert len(labels) == 5
    assert "friendly meter, real Linux" in labels


def test_without_a_lab_there_is_the_simulation_alone() -> None:
    lines = shown(rows(-0.5, "plain"), {})
    assert not any("real Linux" in line for line in lines)
    assert sum("-50.0 %" in line for line in lines) == 1
