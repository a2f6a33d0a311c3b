"""The experiments that vary one setting of the paper's meter, in short runs; and how their rows are judged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tidegate.claims import Row
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.papers import Finding, Missing
from tidegate.systems.meter.claims import CLAIMS
from tidegate.systems.meter.controller import PAPER, UNBOUNDED
from tidegate.systems.meter.experiments.testbed import flow_rows, metered_flows
from tidegate.systems.meter.experiments.variants import varied_flow, varied_row

LONG = {"duration_s": 180}


def rows_of(tmp_path: Path, name: str, **settings: Any) -> tuple[list[Row], dict[str, bool]]:
    """Rows of an experiment, and whether its claims hold."""
    parameters = {**find(f"meter.{name}").parameters(quick=True), **settings}
    answer = run_experiment(f"meter.{name}", parameters, seeds=[1], out=tmp_path / name)
    assert (tmp_path / name / "figure.png").stat().st_size > 10_000
    return answer["rows"], {claim["id"]: claim["holds"] for claim in answer["claims"]}


@pytest.mark.slow
def test_a_variant_with_the_papers_values_is_the_papers_meter() -> None:
    varied = varied_row(varied_flow(PAPER, UNBOUNDED, 1.0, 50).run("5 s"), "paper", 1.0, 50)
    (paper,) = flow_rows(metered_flows("paper-unbounded", 1.0, [50]).run("5 s"), "paper-unbounded", 1.0, [50])
    assert {name: varied[name] for name in ("goodput_mbps", "drops", "ce_marks")} == {
        name: paper[name] for name in ("goodput_mbps", "drops", "ce_marks")
    }


@pytest.mark.slow
def test_buckets_below_a_packet_pass_none(tmp_path: Path) -> None:
    settings = {"sizes_kib": (1, 32), "rates_mbps": (50,), "base_rtts_ms": (1.0,), "duration_s": 5}
    rows, holds = rows_of(tmp_path, "buckets", **settings)
    assert [row["goodput_mbps"] > 0 for row in rows] == [False, True]
    assert holds == {"whole": True}


@pytest.mark.slow
def test_gains_are_the_papers_and_others(tmp_path: Path) -> None:
    rows, _ = rows_of(tmp_path, "tuning", rates_mbps=(20,), base_rtts_ms=(1.0,), duration_s=5)
    gains = [(row["kp"], row["ki"], row["kd"]) for row in rows]
    assert gains == [(0.1, 0, 0), (0.7, 0, 0), (0.7, 0.15, 0), (0.7, 0.15, 0.5)]
    assert len({row["goodput_mbps"] for row in rows}) == 4


@pytest.mark.slow
def test_a_second_chance_spares_packets_and_breaks_the_bound(tmp_path: Path) -> None:
    settings = {"rates_mbps": (20,), "base_rtts_ms": (0.1,), "duration_s": 5, "flood_s": 5}
    rows, holds = rows_of(tmp_path, "second_chance", **settings)
    floods = {row["setting"]: row for row in rows if row["kind"] == "flood"}
    assert floods["second chance off"]["spared"] == 0
    assert floods["second chance off"]["over_bound"] <= 0
    # One in five packets of a flood is marked, and passes for half of its length.
    assert floods["second chance on"]["spared"] > 0
    assert floods["second chance on"]["over_bound"] > 0.1
    assert not holds["bound"]


@pytest.mark.slow
def test_an_average_is_another_meter(tmp_path: Path) -> None:
    rows, _ = rows_of(tmp_path, "marking", rates_mbps=(50,), base_rtts_ms=(1.0,), duration_s=5)
    cubic = {row["setting"]: row["ce_marks"] for row in rows if row["congestion_control"] == "cubic"}
    assert cubic.keys() == {"R' 0.5", "R' 0.75", "average 2^-6"}
    assert len(set(cubic.values())) == 3
    assert {row["setting"] for row in rows if row["congestion_control"] == "reno"} == {"R' 0.5", "R' 0.75"}


@pytest.mark.slow
def test_timer_packets_refill_as_well(tmp_path: Path) -> None:
    rows, holds = rows_of(tmp_path, "refill", rates_mbps=(20,), base_rtts_ms=(5.0,), duration_s=5)
    # 20 Mbit/s are 2.5 million tokens a second. With 1 ms the bucket collapses, and 5 s have five timeouts, or four.
    assert [row["timer_packets_per_s"] for row in rows] == [0, 2.5e6 / 128, 2.5e6 / 8192]
    assert holds["lazy"]


@pytest.mark.slow
def test_datagrams_near_their_rate(tmp_path: Path) -> None:
    rows, holds = rows_of(tmp_path, "udp_near", rates_mbps=(20,), duration_s=10, schemes=("plain", "rfc2698"))
    above = [row for row in rows if row["offered"] == 1.05 and row["pattern"] == "constant"]
    # The bucket of 128 KiB passes once: 0.5 % of ten seconds at 20 Mbit/s.
    assert [row["relative_error"] for row in above] == pytest.approx([0.005, 0.005], abs=0.001)
    assert holds == {"c2": True, "whole": True, "held": True}


def judged(id: str, rows: list[Row], parameters: dict[str, Any] = LONG) -> Finding:
    (claim,) = [claim for claim in CLAIMS if claim.id == id]
    assert claim.judge is not None
    return claim.judge(rows, parameters)


def row(rtt: float = 1.0, target: int = 100, **columns: object) -> Row:
    return {
        "base_rtt_ms": rtt,
        "target_mbps": target,
        "seed": 1,
        "goodput_error": 0.0,
        "deviation": 0.0,
        **columns,
    }


def test_every_claim_s_experiment_exists() -> None:
    for claim in CLAIMS:
        if claim.experiment is not None:
            find(claim.experiment)


def buckets(errors: dict[int, float], rtt: float = 1.0) -> list[Row]:
    return [row(rtt, size_kib=size, goodput_error=error) for size, error in errors.items()]


def gains(of: dict[tuple[float, float, float], tuple[float, float]]) -> list[Row]:
    return [
        row(kp=kp, ki=ki, kd=kd, goodput_error=error, deviation=deviation)
        for (kp, ki, kd), (error, deviation) in of.items()
    ]


def tuned(alone: float = 0.3, both: float = 0.1, derived: float = 0.2) -> list[Row]:
    """Deviations with Kp alone, with Ki beside it, and with Kd as well."""
    return gains(
        {
            (0.1, 0, 0): (-0.8, 0.05),
            (0.7, 0, 0): (-0.2, alone),
            (0.7, 0.15, 0): (-0.05, both),
            (0.7, 0.15, 1): (-0.06, derived),
        }
    )


def chances(spared: int) -> list[Row]:
    common: dict[str, Any] = {"ce_marks": 1000, "drops": 10, "kind": "tcp"}
    flood: dict[str, Any] = {"ce_marks": 1000, "drops": 10, "kind": "flood", "goodput_error": None}
    return [
        row(setting="second chance on", spared=900, **flood),
        row(setting="second chance on", spared=spared, **common),
        row(setting="second chance off", spared=0, **common),
    ]


def marks(miss: dict[str, float], reno: dict[str, float]) -> list[Row]:
    return [
        row(congestion_control=control, setting=setting, goodput_error=-value)
        for control, values in (("cubic", miss), ("reno", reno))
        for setting, value in values.items()
    ]


def thresholds(fine: float, average: float, reno: float) -> list[Row]:
    return marks(
        {"R' 0.25": 0.2, "R' 0.5": 0.1, "R' 0.6": fine, "average 2^-6": average},
        {"R' 0.5": 0.1, "R' 0.6": reno},
    )


def refills(errors: dict[int | None, float]) -> list[Row]:
    return [
        row(tokens=tokens, goodput_error=error, timer_packets_per_s=1e8 / 8 / tokens if tokens else 0.0)
        for tokens, error in errors.items()
    ]


@pytest.mark.parametrize(
    ("id", "rows", "found"),
    [
        ("C3", buckets({1: -1.0, 32: -0.9, 128: -0.8}), True),
        ("C3", buckets({1: -1.0, 32: -0.7, 128: -0.8}), False),
        # At one of the RTTs.
        ("C3", buckets({1: -1.0, 128: -1.0}, 0.1) + buckets({1: -1.0, 128: -0.8}), True),
        ("C24a", tuned(), True),
        ("C24a", tuned(alone=0.04), False),
        ("C24b", tuned(), True),
        ("C24b", tuned(both=0.4), False),
        ("C24c", tuned(), True),
        ("C24c", tuned(derived=0.05), False),
        ("C25", chances(3), True),
        ("C25", chances(0), False),
        ("C26a", thresholds(0.1, 0.05, 0.1), True),
        ("C26a", thresholds(0.1, 0.098, 0.1), False),
        ("C26b", thresholds(0.05, 0.1, 0.1), True),
        ("C26b", thresholds(0.098, 0.1, 0.1), False),
        ("C26c", thresholds(0.1, 0.1, 0.05), True),
        ("C26c", thresholds(0.1, 0.1, 0.09), False),
        ("C23", refills({None: -0.03, 128: -0.035, 65_536: -0.3}), True),
        ("C23", refills({None: -0.03, 128: -0.035, 65_536: -0.03}), False),
        ("C23", refills({None: -0.03, 128: -0.3, 65_536: -0.3}), False),
    ],
)
def test_judges(id: str, rows: list[Row], found: bool) -> None:
    assert judged(id, rows).found == found


def udp(errors: dict[float, float]) -> list[Row]:
    return [
        row(
            scheme="plain",
            pattern="constant",
            offered=offered,
            loss=0.0,
            relative_error=0.0,
            goodput_error=error,
        )
        for offered, error in errors.items()
    ]


def test_datagrams_are_judged_on_both_sides() -> None:
    assert judged("C2", udp({0.9: -0.02, 1.1: -0.02})).found
    assert not judged("C2", udp({0.9: -0.06, 1.1: -0.02})).found
    assert not judged("C2", udp({0.9: -0.02, 1.1: 0.06})).found
    with pytest.raises(Missing, match="no constant rates up to the target and above it"):
        judged("C2", udp({1.1: -0.02}))


@pytest.mark.parametrize(
    ("id", "rows", "says"),
    [
        ("C3", lambda: buckets({32: -0.5}), "no bucket of 128 KiB beside smaller ones"),
        ("C24a", lambda: tuned()[1:], "no smaller Kp beside the paper's"),
        ("C24c", lambda: tuned()[:3], "no Kd above 0"),
        ("C25", lambda: chances(3)[:2], "on or off alone"),
        ("C26a", lambda: marks({"R' 0.5": 0.1}, {}), "no averaged level"),
        ("C26c", lambda: marks({"R' 0.5": 0.1}, {}), "CUBIC alone"),
        ("C23", lambda: refills({None: 0.0, 128: 0.0}), "no larger N beside 128"),
    ],
)
def test_runs_that_lack_a_setting_cannot_tell(id: str, rows: Callable[[], list[Row]], says: str) -> None:
    with pytest.raises(Missing, match=says):
        judged(id, rows())


def test_short_runs_cannot_tell() -> None:
    with pytest.raises(Missing, match="the run has 40 s; the paper's means are of 180 s"):
        judged("C3", buckets({1: -1.0, 128: -0.8}), {"duration_s": 40})
