"""What live runs are asked for and refused: `live_profile`, which test_switch.py tries, and congestion controls."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Run
from namespaces import needs_root
from tidegate import TidegateError
from tidegate.experiments.registry import find
from tidegate.lab import kernel
from tidegate.network import Network


def test_it_is_for_live_runs(tidegate: Run) -> None:
    done = tidegate("run", "reference.dumbbell", "--quick", "--live-profile", "throughput")
    assert done.code == 1
    assert "--live-profile is for --backend live; leave it out" in done.err
    with pytest.raises(TidegateError, match="live_profile is for backend='live'"):
        Network().run("1 s", live_profile="throughput")


def test_there_are_two() -> None:
    with pytest.raises(TidegateError, match="no live profile 'fast'; known: latency, throughput"):
        Network().run("1 s", backend="live", live_profile="fast")


@needs_root
def test_it_is_kept_with_the_run(tidegate: Run, tmp_path: object) -> None:
    words = ["--backend", "live"]
    for one in ("schemes=plain", "rates_mbps=100", "base_rtts_ms=1", "duration_s=3"):
        words += ["--set", one]
    done = tidegate(
        "run",
        "meter.rates",
        "--quick",
        *words,
        "--live-profile",
        "throughput",
        "--json",
        "--out",
        f"{tmp_path}/run",
    )
    assert done.code == 0, done.err
    assert done.json["live_profile"] == "throughput"


@needs_root
def test_a_control_that_is_not_there_is_said_before_anything_runs(
    tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "congestion_controls", lambda asked: set(asked) - {"bbr3"})
    words = ["--quick", "--backend", "live", "--set", "schemes=tcp,bbr3"]
    done = tidegate("run", "pacing.join", *words, "--out", str(tmp_path / "out"))
    assert done.code == 1
    assert "does not have the congestion control bbr3 (wan-bbr3-bbr3-32); it has " in done.err
    assert not list(tmp_path.iterdir())
    assert "bbr3" not in find("pacing.join").live["schemes"]
