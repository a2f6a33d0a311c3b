"""Experiments between real hosts, in short runs. What flows do to each other there is in tests/test_live_controls.py."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tidegate.experiments import all_experiments
from tidegate.experiments import run as run_experiment
from tidegate.hosts import libbpf
from tidegate.lab import kernel

SIMULATED_ALONE = {"rates", "burst", "rtts", "rfc7928", "queues", "settings", "period"}

no_prague = not kernel.congestion_controls(["prague"]) and (
    libbpf.missing() or (shutil.which(libbpf.COMPILER) is None and "needs clang")
)


def test_those_of_the_paper_run_live() -> None:
    ours = {name: one.backends for name, one in all_experiments().items() if name.startswith("aqm.")}
    assert {
        name.removeprefix("aqm.") for name, backends in ours.items() if "live" not in backends
    } == SIMULATED_ALONE


@pytest.mark.live
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")
@pytest.mark.skipif(bool(no_prague), reason=f"{no_prague}, or a kernel that has prague")
@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("symmetric", {"ways": ("dualpi2-inside",), "flows": (2,), "duration_s": 4, "warm_up_s": 1}),
        (
            "overload",
            {"ways": ("rfc",), "loads": (0.5,), "code_points": ("ect1",), "flows": 2, "duration_s": 6},
        ),
    ],
)
def test_rows_are_as_simulated_ones(name: str, settings: dict[str, object], tmp_path: Path) -> None:
    capacity = 40
    if name == "overload":
        settings = {**settings, "capacity_mbps": capacity}
    else:
        settings = {**settings, "capacities_mbps": (capacity,), "base_rtts_ms": (10.0,)}
    live, simulated = (
        run_experiment(f"aqm.{name}", settings, seeds=[1], backend=backend, out=tmp_path / backend)
        for backend in ("live", "sim")
    )
    assert [list(row) for row in live["rows"]] == [list(row) for row in simulated["rows"]]
    assert [claim["id"] for claim in live["claims"]] == [claim["id"] for claim in simulated["claims"]]
    assert (tmp_path / "live" / "figure.png").stat().st_size > 10_000
    for row in live["rows"]:
        assert row["utilisation"] > 0.5
        assert 0 < row["p_mean"] < 0.5
    if name == "symmetric":
        cubic, prague = (row for row in live["rows"] if row["window"] == "late")
        assert cubic["ce_told"] == 0 < prague["ce_told"]
        assert prague["delay_ms_mean"] < cubic["delay_ms_mean"]
    else:
        (row,) = live["rows"]
        assert row["udp_mbps"] == pytest.approx(20 * 1472 / 1514, rel=0.15)
