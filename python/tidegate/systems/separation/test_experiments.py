"""Quick runs of the experiments, whose claims hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.experiments import run
from tidegate.experiments.registry import find

NAMES = ("rebalance", "bufferbloat", "udp")


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_quick_runs_hold(name: str, tmp_path: Path) -> None:
    experiment = find(f"separation.{name}")
    made = run(experiment.name, experiment.parameters(quick=True), seeds=[1], out=tmp_path / "out")
    assert [claim["id"] for claim in made["claims"] if not claim["holds"]] == []
    assert (tmp_path / "out" / "figure.png").exists()
