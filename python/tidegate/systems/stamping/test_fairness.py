"""Shares of `stamp` flows: measures, the simulated experiment, and its live form."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate.experiments import run as run_experiment
from tidegate.hosts import libbpf
from tidegate.systems.stamping.experiments.fairness import (
    CONTROLS,
    joins,
    settled_ms,
    shares,
)


def test_the_oldest_flow_leaves_first() -> None:
    spans = joins(2.0)
    assert spans.ends == (0, 2, 4, 6, 8, 10, 12, 14)
    assert spans.flows == ((0,), (0, 1), (0, 1, 2), (0, 1, 2, 3), (1, 2, 3), (2, 3), (3,))


def test_shares_are_those_of_equal_intervals() -> None:
    times = [0.05, 0.15, 0.25, 0.35]
    samples = pl.DataFrame(
        {"flow": [0] * 4, "time_s": times, "bytes_received": [0, 125_000, 375_000, 375_000]}
    )
    # From 0.1 s on: half of 10 Mbit/s and half of 20, then half of 20.
    assert shares(samples, 2, 0.3)[0] == pytest.approx([5, 15, 10])
    assert not shares(samples, 2, 0.3)[1].any()


def test_a_share_has_settled_when_it_does_not_leave_again() -> None:
    even, uneven = [50.0, 50.0], [70.0, 30.0]
    for intervals, expected in (
        ([even, even], 0),
        ([uneven, even, even], 100),
        ([even, uneven, even], 200),
        ([even, uneven], 200),
    ):
        assert settled_ms(np.array(intervals).T) == expected


def fairness(backend: str, out: Path, **settings: Any) -> dict[str, Any]:
    return run_experiment("stamping.fairness", settings, seeds=[1], backend=backend, out=out)


def by_case(result: dict[str, Any]) -> dict[tuple[str, str], dict[str, Any]]:
    return {(row["scenario"], row["flows"]): row for row in result["rows"]}


@pytest.mark.slow
def test_stamps_give_equal_shares_and_a_short_queue(tmp_path: Path) -> None:
    result = fairness("sim", tmp_path, duration_s=6.0, step_s=1.0)
    rows = by_case(result)
    assert {row["flows"] for row in result["rows"]} == {*CONTROLS, "stamp+cubic", "stamp+stamp"}
    assert rows["round_trips", "stamp"]["jain"] > 0.99 > rows["round_trips", "dctcp"]["jain"]
    assert rows["joins", "stamp"]["jain"] > rows["joins", "cubic"]["jain"]
    for scenario in ("round_trips", "joins"):
        assert rows[scenario, "stamp"]["queue_ms_p99"] < rows[scenario, "dctcp"]["queue_ms_p99"]
        assert rows[scenario, "stamp"]["utilisation"] > 0.99
    # A flow that yields to queues gets none of what CUBIC takes.
    assert rows["beside", "stamp+cubic"]["first_share"] < 0.1
    held = {claim["id"]: claim["holds"] for claim in result["claims"]}
    assert held == {
        "round-trips": True,
        "joins": True,
        "queue": True,
        "utilisation": True,
        "beside-unmanaged": False,
    }
    assert (tmp_path / "figure.png").stat().st_size > 50_000


@pytest.mark.live
@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")
@pytest.mark.skipif(shutil.which(libbpf.COMPILER) is None, reason="needs clang")
@pytest.mark.skipif(libbpf.missing() is not None, reason=str(libbpf.missing()))
def test_live_rows_are_as_simulated_ones(tmp_path: Path) -> None:
    settings = {"controls": ("stamp", "cubic"), "duration_s": 2.5, "step_s": 0.5}
    live, simulated = (fairness(backend, tmp_path / backend, **settings) for backend in ("live", "sim"))
    assert [list(row) for row in live["rows"]] == [list(row) for row in simulated["rows"]]
    assert [claim["id"] for claim in live["claims"]] == [claim["id"] for claim in simulated["claims"]]
    assert (tmp_path / "live" / "figure.png").stat().st_size > 50_000
    rows = by_case(live)
    # However busy the machine: its queue is a small part of CUBIC's.
    assert rows["beside", "stamp"]["queue_ms_p99"] < 4
    assert rows["joins", "cubic"]["queue_ms_p99"] > 20
    for scenario, flows in (("beside", "stamp"), ("beside", "stamp+stamp")):
        assert rows[scenario, flows]["utilisation"] > 0.4
        assert rows[scenario, flows]["retransmits"] < 50


@pytest.mark.slow
def test_joins_at_25_gbit_s(tmp_path: Path) -> None:
    """A newcomer has its share within a millisecond or so, and the queue stays short; CUBIC's does not."""
    given = {"contenders": ("stamp", "cubic")}
    made = run_experiment("stamping.join", given, seeds=[1], quick=True, out=tmp_path / "out")
    stamp, cubic = made["rows"]
    assert stamp["join_ms_mean"] < 1
    assert stamp["jain_least"] > 0.97
    assert stamp["link_use"] > 0.99
    assert stamp["drops"] == 0
    assert stamp["queue_kb_p99"] < cubic["queue_kb_p99"] / 10
    assert [claim["id"] for claim in made["claims"]] == ["joins", "fair"]
    assert (tmp_path / "out" / "figure.png").exists()
