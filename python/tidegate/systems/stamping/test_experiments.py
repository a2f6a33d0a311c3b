"""The experiments in short runs, and the networks that they are made of."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.experiments import Row, find
from tidegate.experiments import run as run_experiment
from tidegate.systems.stamping.experiments.bits import (
    MANTISSA,
    Tree,
    gbps,
    path,
    reading,
    stamp_format,
)
from tidegate.systems.stamping.experiments.burst import Disturbed
from tidegate.systems.stamping.experiments.parking_lot import (
    MIN_RTT_US,
    Lot,
    author_s_constants,
)

pytestmark = pytest.mark.slow

FIVE = (1, 1, 1, 3, 6)


def lot_row(signal: str, counts: tuple[int, ...] = FIVE, seed: int = 1, ms: int = 100) -> Row:
    lot = Lot(signal, counts, author_s_constants())
    return lot.rows({}, 20, lot.network(seed).run(f"{ms} ms", seed=seed))


def test_more_weight_to_the_longest_queue_gives_the_primary_flow_more() -> None:
    """Section 4.1, Fig. 4, with the author's constants."""
    rates = [lot_row(signal)["of_fair"] for signal in ("rtt", "sum_squ", "max")]
    assert rates == sorted(rates)
    assert rates[0] < 0.55
    assert rates[2] > 0.85


def test_without_queues_all_round_trips_are_the_same() -> None:
    for counts in ((6,), FIVE, (1,) * 11 + (6,)):
        lot = Lot("rtt", counts, author_s_constants(start_gbps=0.001, delta_mbps=0.001))
        samples = lot.network(1).run("5 ms").flow_samples
        rtts_us = samples.group_by("flow").agg(pl.col("srtt_ms").last())["srtt_ms"] * 1e3
        assert len(rtts_us) == sum(counts) + 1
        # ACKs have the echo; the option is part of the packet.
        assert max(abs(rtt - MIN_RTT_US) for rtt in rtts_us) < 1, counts


def test_there_are_no_more_queues_than_links_for_them() -> None:
    with pytest.raises(
        TidegateError, match="cross_flows has 61 numbers, one for each shared queue; give at most 60"
    ):
        find("stamping.noise").plan(cross_flows=(1,) * 61)


def test_the_rtt_beside_the_largest_queue_takes_from_long_paths(tmp_path: Path) -> None:
    """Section 5: the more the RTT counts, the less a flow through many queues has, and the shorter these are."""
    one = find("stamping.both")
    rows = run_experiment(one.name, one.parameters(quick=True), seeds=[1], out=tmp_path / "out")["rows"]
    for column in ("throughput_gbps", "rtt_us_p50"):
        values = [row[column] for row in rows]
        assert values == sorted(values, reverse=True)
    assert rows[0]["of_fair"] > 0.7
    assert rows[-1]["of_fair"] < 0.2
    assert (tmp_path / "out" / "figure.png").exists()


def test_a_queue_stands_before_steps_and_between_them() -> None:
    one = Disturbed("dctcp", 3, 60, 5.0, 80, 2)
    assert one.steps_ms.tolist() == [46, 54]
    clock = np.arange(0.0, one.until_ms, 0.5)
    calm = clock[one.undisturbed(clock)]
    assert (calm[0], calm[-1], len(calm)) == (15.5, 45.5, 29 + 2 * 11)
    assert set(calm[29:].tolist()).isdisjoint(
        np.concatenate((np.arange(30, 32.5, 0.5), np.arange(38, 40.5, 0.5)))
    )
    assert clock[one.between_steps(clock)].tolist() == [51.5, 52, 52.5, 53, 53.5, 59.5, 60, 60.5, 61, 61.5]


def test_a_burst_that_is_not_at_the_bottleneck_slows_those_who_follow_the_rtt() -> None:
    """Section 3. The burst is shorter than the bottleneck's queue."""
    changes = {}
    for control in ("timely-rtt", "timely-max"):
        one = Disturbed(control, 3, 60, 5.0, 80, 6)
        row = one.rows(one.network(1).run(f"{one.until_ms} ms"))
        assert 30 < row["burst_us"] < row["queue_us_mean"]
        changes[control] = row["change"] - row["change_idle"]
    assert changes["timely-rtt"] < -0.05
    assert abs(changes["timely-max"]) < 0.05


def test_dctcp_keeps_the_queue_at_its_threshold() -> None:
    one = Disturbed("dctcp", 3, 60, 5.0, 80, 2)
    row = one.rows(one.network(1).run(f"{one.until_ms} ms"))
    assert 0.8 * row["mark_above_us"] < row["queue_us_mean"] < 1.1 * row["mark_above_us"]


def test_paths_of_the_tree() -> None:
    assert path("h0", "h23", 24) == ["h0", "tor0", "h23"]
    assert path("h0", "h24", 24) == ["h0", "tor0", "agg0", "tor1", "h24"]
    ends = path("h0", "h191", 24)
    assert ends == ["h0", "tor0", "agg0", "core0", "agg3", "tor7", "h191"]
    assert [gbps(a, b) for a, b in pairwise(ends)] == [1, 10, 40, 40, 10, 1]


@pytest.mark.parametrize("bits", [1, 4, 8, 16, 32])
@pytest.mark.parametrize("bins", ["equal", "log"])
def test_hosts_read_bytes_as_times_at_10_gbps(bits: int, bins: str) -> None:
    if bins == "log" and bits not in MANTISSA:
        return
    form = stamp_format(bits, bins, 200)
    options = reading(form)
    unit_ps = int(str(options["stamp_unit"]).removesuffix(" ps")) / 2 ** int(options.get("stamp_shift", 0))
    # Of the full buffer of 300 kB, 240 us.
    steps = 300_000 * form.range / form.full
    assert abs(unit_ps * float(steps) / 240e6 - 1) < 0.002


def test_hosts_own_queues_are_shorter_if_their_ports_stamp() -> None:
    waits = {}
    for stamps in (True, False):
        tree = Tree(32, sender_stamps=stamps, hosts=8, duration_ms=20, edge_ms=1.0)
        result = tree.network(1).run("20 ms")
        row = tree.rows(result)
        assert 1 < row["throughput_gbps"] <= 8
        assert row["rtt_us_p50"] > 2 * 2 * 5 + 2 * 12
        own = result.queues.filter(pl.col("queue").str.contains(r"^(nic|h)\d+ -> tor"))
        assert len(own) == 8
        waits[stamps] = float(np.mean(own["queue_delay_ms_mean"].to_numpy()))
    assert waits[True] < 0.8 * waits[False]


def test_runs_that_leave_nothing_and_racks_that_are_not_full_are_refused() -> None:
    with pytest.raises(TidegateError, match="nothing to measure"):
        find("stamping.bits").plan(duration_ms=40, edge_ms=20.0)
    with pytest.raises(TidegateError, match="a multiple of 8"):
        find("stamping.bits").plan(hosts=12)


def test_a_seed_gives_the_same_rows_and_another_one_others() -> None:
    rows = [lot_row("max", (1, 2), seed, 40) for seed in (1, 1, 2)]
    assert rows[0] == rows[1] != rows[2]


@pytest.mark.parametrize(
    ("name", "settings", "cases"),
    [
        ("noise", {"duration_ms": 40}, 6),
        ("noise", {"duration_ms": 40, "signals": ("sum", "max"), "thresholds_on": "signal"}, 2),
        (
            "constants",
            {
                "deltas_mbps": (20.0, 30.0),
                "betas": (0.6,),
                "alphas": (0.3,),
                "t_lows_us": (120.0,),
                "duration_ms": 30,
            },
            6,
        ),
        (
            "constants",
            {
                "deltas_mbps": (20.0, 30.0),
                "betas": (0.6,),
                "alphas": (0.3,),
                "t_lows_us": (120.0,),
                "sendings": ("window",),
                "whole": True,
                "duration_ms": 30,
            },
            4,
        ),
        ("hops", {"hops": (1, 2, 3), "duration_ms": 40}, 9),
        (
            "bits",
            {
                "bits": (1, 4, 8, 32),
                "buffers_packets": (50, 200),
                "hosts": 16,
                "duration_ms": 12,
                "edge_ms": 2.0,
                "sender_stamps": False,
            },
            12,
        ),
        ("burst", {"times": 1, "controls": ("timely-rtt", "timely-max", "dctcp", "cubic")}, 4),
    ],
)
def test_they_run_are_drawn_and_judged(
    name: str, settings: dict[str, Any], cases: int, tmp_path: Path
) -> None:
    answer = run_experiment(f"stamping.{name}", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    assert len(answer["rows"]) == cases
    ids = [claim["id"] for claim in answer["claims"]]
    assert len(ids) == len(set(ids)) > 0
    assert "nan" not in " ".join(claim["measured"] for claim in answer["claims"])
    assert all(claim["why"] for claim in answer["claims"] if not claim["holds"])


def test_cross_flows_with_too_short_a_round_trip_are_refused() -> None:
    plan = find("stamping.noise").plan(cross_rtt_us=10.0)
    network = plan.cases[0].network
    assert callable(network)
    with pytest.raises(TidegateError, match="give more"):
        network(1)
