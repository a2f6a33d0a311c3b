"""The experiments of the comparison: their claims can be broken, and short runs show what each is for."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate.claims import Claim, Row
from tidegate.experiments import run
from tidegate.measures import History
from tidegate.systems.meter.experiments import (
    bursts,
    cheating,
    congestion_controls,
    fair_sharing,
    long_rtts,
    rates,
    several_flows,
    web_mix,
)
from tidegate.systems.meter.experiments.contenders import CONTENDERS
from tidegate.systems.meter.experiments.customer import PASSED, sent


def holds(claims: list[Claim]) -> dict[str, bool]:
    return {claim.id: claim.holds for claim in claims}


def fair_row(scheme: str, flow: int = 0, **given: Any) -> Row:
    return {
        "scheme": scheme,
        "cell": "cubic+bbr",
        "flow": flow,
        "label": "cubic",
        "worst_10_s": 0.9,
        "total_error": 0.0,
        "retransmits": 0,
        "spared": False,
        **given,
    }


@pytest.mark.parametrize(
    ("ours", "broken"),
    [
        ({}, set()),
        ({"worst_10_s": 0.49}, {"fair-half", "fair-bcpqp-share"}),
        ({"worst_10_s": 0.87}, {"fair-bcpqp-share"}),
        ({"total_error": -0.021}, {"fair-rate"}),
        ({"total_error": 0.021}, {"fair-rate"}),
        ({"retransmits": 11}, {"fair-bcpqp-loss"}),
        ({"retransmits": 1, "spared": True}, {"fair-loss"}),
        # Of UDP.
        ({"retransmits": None}, set()),
    ],
)
def test_the_claims_of_fair(ours: dict[str, Any], broken: set[str]) -> None:
    rows = [
        fair_row("fair", total_error=ours.get("total_error", 0.0)),
        fair_row("fair", 1, **ours),
        *(fair_row("bcpqp", flow, retransmits=10) for flow in (0, 1)),
    ]
    judged = holds(fair_sharing.claims_of(rows))
    assert {id for id, held in judged.items() if not held} == broken
    assert {"fair-half", "fair-rate", "bcpqp-half"} <= judged.keys()


@pytest.mark.parametrize(("ours", "held"), [(0.99, True), (0.97, False)])
def test_what_a_peer_lets_pass_above_the_rate_is_no_better_share(ours: float, held: bool) -> None:
    rows = [fair_row("fair", worst_10_s=ours), fair_row("bcpqp", worst_10_s=1.38, retransmits=10)]
    assert holds(fair_sharing.claims_of(rows))["fair-bcpqp-share"] is held


def test_one_seed_of_three_breaks_the_claim_about_any_ten_seconds() -> None:
    rows = [fair_row("fair", worst_10_s=value) for value in (0.9, 0.4, 0.9)]
    assert not holds(fair_sharing.claims_of(rows))["fair-half"]


def test_a_peer_that_starves_a_flow_is_said_to() -> None:
    rows = [fair_row("drr"), fair_row("drr", 1, worst_10_s=0.3)]
    assert holds(fair_sharing.claims_of(rows)) == {"drr-half": False, "drr-rate": True}


@pytest.mark.parametrize(("error", "held"), [(0.25, False), (-0.021, False), (0.02, True)])
def test_peers_too_are_judged_by_the_rate(error: float, held: bool) -> None:
    claims = fair_sharing.claims_of([fair_row("bcpqp-1s", total_error=error)])
    (rate,) = [claim for claim in claims if claim.id == "bcpqp-1s-rate"]
    assert (rate.holds, rate.of) == (held, "peer")
    assert held or "each flow has a Q of its own" in (rate.why or "")


def test_each_claim_has_its_own_cause() -> None:
    rows = [fair_row("fair", worst_10_s=0.3, total_error=-0.1, retransmits=5, spared=True)]
    rows.append(fair_row("bcpqp"))
    causes = {claim.id: claim.why or "" for claim in fair_sharing.claims_of(rows) if not claim.holds}
    assert (
        causes["fair-half"]
        == causes["fair-bcpqp-share"]
        == CONTENDERS["fair"].why("share")
        != "not explained"
    )
    assert causes["fair-rate"].startswith("a window that grows by a packet a round trip")
    assert causes["fair-loss"].startswith("DCTCP and Prague answer by alpha / 2")
    rows = [fair_row("fair", retransmits=5, spared=False), fair_row("bcpqp", retransmits=1, spared=False)]
    causes = {claim.id: claim.why or "" for claim in fair_sharing.claims_of(rows) if not claim.holds}
    assert causes["fair-bcpqp-loss"].startswith("BBR does not heed what it is told")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("cell", "target_mbps", "rtt_ms", "worst"),
    [
        # Few flows of long round trips; many whose share is a packet in 100 ms.
        ("cubic-e+cubic", 50.0, 80.0, 0.9),
        ("two-rtts-e", 35.0, 30.0, 0.75),
        ("64-cubic-e", 8.0, 0.5, 0.75),
    ],
)
def test_shares_and_the_rate_where_they_are_hard(
    cell: str, target_mbps: float, rtt_ms: float, worst: float, tmp_path: Path
) -> None:
    settings = {
        "cells": (cell,),
        "schemes": ("fair",),
        "target_mbps": target_mbps,
        "base_rtt_ms": rtt_ms,
        "duration_s": 40,
    }
    rows = run("meter.fair", settings, seeds=[21], out=tmp_path / "out")["rows"]
    assert all(abs(row["total_error"]) < 0.02 for row in rows)
    assert min(row["worst_10_s"] for row in rows) > worst


@pytest.mark.parametrize(
    ("control", "share_mbps", "rtt_ms", "spared"),
    [
        # Two packets of 1500 bytes in 10 ms.
        ("cubic", 2.4, 10, True),
        ("cubic", 2.39, 10, False),
        ("prague", 2.4, 10, True),
        # Four, and no longer round trip than it heeds marks at.
        ("bbr3", 9.6, 5, True),
        ("bbr3", 9.59, 5, False),
        ("bbr3", 100, 6, False),
        ("bbr", 100, 1, False),
    ],
)
def test_which_flows_marks_can_spare_losses(
    control: str, share_mbps: float, rtt_ms: float, spared: bool
) -> None:
    assert fair_sharing.can_be_spared(control, share_mbps, rtt_ms) == spared


@pytest.mark.parametrize(
    ("control", "mbps", "rtt_ms"), [("cubic", 2, 0.3), ("reno", 2, 0.3), ("bbr", 1, 1.0), ("bbr3", 3, 1.0)]
)
def test_what_is_sent_first_after_a_timeout_is_not_dropped_to_tell(
    tmp_path: Path, control: str, mbps: float, rtt_ms: float
) -> None:
    given = {"controls": (control,), "rates_mbps": (mbps,), "base_rtts_ms": (rtt_ms,), "schemes": ("fair",)}
    (row,) = run("meter.longrtt", given, seeds=[63], out=tmp_path / "run")["rows"]
    assert row["timeouts"] > 50
    assert abs(row["error"]) < 0.01


@pytest.mark.slow
def test_both_bbrs_run_with_and_without_ecn(tmp_path: Path) -> None:
    settings = {
        "cells": ("cubic-e+bbr-e", "cubic+bbr3", "5-cubic-e"),
        "schemes": ("fair",),
        "target_mbps": 10.0,
        "duration_s": 20,
    }
    rows = run("meter.fair", settings, seeds=[1], out=tmp_path / "out")["rows"]
    assert [row["label"] for row in rows[:4]] == ["cubic ECN", "bbr ECN", "cubic", "bbr3"]
    # Of BBRv1 marks change nothing, and without ECN there are none.
    assert [row["spared"] for row in rows] == [True, False, False, False, *[False] * 5]
    assert [row["share_mbps"] for row in rows[4:]] == [2.0] * 5
    assert {"bbr+ECN", "bbr3"} <= set(long_rtts.CONTROLS) & set(web_mix.BULK)


@pytest.mark.slow
def test_fair_shows_who_starves_cubic_beside_udp(tmp_path: Path) -> None:
    settings = {
        "cells": ("cubic+udp3", "short"),
        "schemes": ("plain-1s", "bcpqp-1s", "drr"),
        "target_mbps": 20.0,
        "duration_s": 20,
    }
    answer = run("meter.fair", settings, seeds=[1, 2], out=tmp_path / "out")
    worst = {
        (row["scheme"], row["seed"]): row["worst_10_s"]
        for row in answer["rows"]
        if (row["cell"], row["flow"]) == ("cubic+udp3", 0)
    }
    assert {key for key, value in worst.items() if value < 0.1} == {("plain-1s", 1), ("plain-1s", 2)}
    assert all(value > 0.9 for key, value in worst.items() if key[0] != "plain-1s")
    # Two long flows, and what is left of the rate beside the short ones.
    shares = [row["share_mbps"] for row in answer["rows"] if row["cell"] == "short"]
    assert shares == pytest.approx([8.0] * 12)
    assert {row["burst_bytes"] for row in answer["rows"] if row["scheme"] == "drr"} == {50_000}
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("scheme", "given", "held"),
    [
        ("bcpqp", {"of_burst": 1.0}, True),
        ("bcpqp", {"of_burst": 1.001}, False),
        ("fair", {"of_burst": 1.0}, True),
        ("fair", {"of_burst": 1.001}, False),
    ],
)
def test_the_claims_of_cheat(scheme: str, given: dict[str, float], held: bool) -> None:
    rows: list[Row] = [
        {"scheme": scheme, "cell": "ce", "of_burst": 0.5},
        {"scheme": scheme, "cell": "ce", **given},
    ]
    assert holds(cheating.claims_of(rows)) == {f"{scheme}-bound": held}


def test_of_a_scheduler_no_bound_was_published() -> None:
    (drr,) = cheating.claims_of([{"scheme": "drr", "cell": "ce", "of_burst": 1.5}])
    assert (drr.of, drr.published, drr.why) == ("ours", None, "not explained")
    # What is known of BC-PQP's queues is a cause of this; of the fair meter's, nothing is.
    for scheme, cause in (("bcpqp", True), ("fair", False), ("fairpolicer", False)):
        (claim,) = cheating.claims_of([{"scheme": scheme, "cell": "ce", "of_burst": 1.5}])
        assert (claim.why != "not explained") == cause


@pytest.mark.slow
def test_cheat_shows_whom_a_sender_of_marks_gets_past(tmp_path: Path) -> None:
    settings = {
        "codes": ("not-ect", "ce"),
        "patterns": ("constant",),
        "packet_bytes": (1500,),
        "senders": (2,),
        "schemes": ("plain-400ms", "paper", "drr"),
        "duration_s": 12,
    }
    answer = run("meter.cheat", settings, seeds=[1], out=tmp_path / "out")
    found = {(row["scheme"], row["code"]): row for row in answer["rows"]}
    # Three times the rate fills a bucket to the byte, and no more.
    for code in ("not-ect", "ce"):
        assert 0.98 < found["plain-400ms", code]["of_burst"] <= 1
        assert found["drr", code]["of_burst"] < 0.1
    # The paper's second chance takes what is left of the bucket: what passes is not paid for.
    assert found["paper", "ce"]["passed_mbps"] > 1.1 * found["paper", "not-ect"]["passed_mbps"]
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000


@pytest.mark.slow
def test_pulses_get_more_than_its_queue_past_bcpqp(tmp_path: Path) -> None:
    settings = {
        "codes": ("not-ect",),
        "patterns": ("pulses", "on-off"),
        "packet_bytes": (1500,),
        "senders": (1,),
        "schemes": ("bcpqp-1s", "plain-1s"),
        "duration_s": 12,
    }
    answer = run("meter.cheat", settings, seeds=[1], out=tmp_path / "out")
    found = {(row["scheme"], row["pattern"]): row["of_burst"] for row in answer["rows"]}
    assert found["bcpqp-1s", "on-off"] < 0.35
    # Twice Q at most (`test_bcpqp.py`).
    assert 1 < found["bcpqp-1s", "pulses"] <= 2
    claims = {claim["id"]: claim["holds"] for claim in answer["claims"]}
    assert claims == {"bcpqp-1s-bound": False}
    assert 0.9 < found["plain-1s", "pulses"] <= 1


@pytest.mark.parametrize(
    ("start_ms", "ten_ms", "broken"),
    [
        # A packet of 1500 bytes is 0.12 ms.
        (300.1, 310.1, set()),
        (300.2, 310.1, {"fair-start-burst"}),
        (300.1, 310.2, {"fair-burst-10-ms"}),
    ],
)
def test_the_claims_of_burst(start_ms: float, ten_ms: float, broken: set[str]) -> None:
    row: Row = {"scheme": "fair", "sender": "cubic", "base_rtt_ms": 1.0, "target_mbps": 100.0}
    rows = [
        {**row, "start_burst_ms": start_ms, "burst_10_ms_ms": 10.0},
        {**row, "start_burst_ms": 1.0, "burst_10_ms_ms": ten_ms},
    ]
    judged = holds(bursts.claims_of(rows))
    assert {id for id, held in judged.items() if not held} == broken
    assert len(judged) == 2


def test_bursts_of_a_known_history() -> None:
    # 8 Mbit/s is a byte a microsecond. Nothing for 20 ms, then 30 kB at once, and from 6 s on 5 kB every 5 ms.
    time_s = np.arange(0, 7.0005, 0.001)
    count = np.where(time_s > 0.0205, 30_000.0, 0.0) + 5_000 * np.maximum(
        np.floor((time_s - 5.9999) / 0.005), 0
    )
    passed = History(time_s, count)
    assert bursts.start_burst(passed, 8) == pytest.approx(30_000 - 1_000)
    assert bursts.largest(passed) == pytest.approx(30_000)
    assert bursts.largest(passed, bursts.START_S) == pytest.approx(10_000)


@pytest.mark.slow
def test_burst_shows_the_bucket_and_the_period(tmp_path: Path) -> None:
    settings = {
        "senders": ("cubic+ECN", "udp"),
        "base_rtts_ms": (1.0,),
        "schemes": ("plain-400ms", "bcpqp", "shaper"),
        "target_mbps": 50.0,
        "duration_s": 6,
    }
    answer = run("meter.burst", settings, seeds=[1], out=tmp_path / "out")
    start = {(row["scheme"], row["sender"]): row["start_burst_ms"] for row in answer["rows"]}
    assert start["plain-400ms", "udp"] == pytest.approx(400, rel=0.01)
    # Three times the rate brings 1.5 periods' worth in half a period; two thirds of that are beyond the rate.
    assert start["bcpqp", "udp"] == pytest.approx(200, rel=0.01)
    assert start["bcpqp", "cubic+ECN"] == pytest.approx(295, abs=10)
    assert start["shaper", "udp"] < 1
    assert all(claim["holds"] for claim in answer["claims"])
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(
    ("mbps", "rtt_ms", "seconds"),
    [
        # 50 times a burst of a second; at the largest windows three epochs: W is 11 667 packets, and 12 613 at most.
        (10, 50, 53),
        (100, 200, 53),
        (700, 200, 64),
    ],
)
def test_the_windows_of_long_rtts(mbps: float, rtt_ms: float, seconds: int) -> None:
    assert long_rtts.window_s(mbps, rtt_ms) == seconds
    assert long_rtts.epoch_s(700, 200) == pytest.approx((12_613 * 0.75) ** (1 / 3), rel=1e-3)


@pytest.mark.parametrize(
    ("control", "mbps", "rtt_ms", "exceeds", "hard"),
    [
        # W RTT / 18 against 1.05 s, and 0.7 of it: 833 packets and 0.1 s are 4.6 s, 90 packets and 0.18 s 0.9 s, 83 and 0.1 s 0.46 s.
        ("reno+ECN", 100, 100, True, True),
        ("reno", 100, 100, True, True),
        ("reno", 6, 180, False, True),
        ("reno+ECN", 10, 100, False, False),
        # 0.076 K: K is 10.6 s for 1458 packets, 9.0 s for 900.
        ("cubic+ECN", 250, 70, False, True),
        ("cubic", 60, 180, False, False),
        # W / 4 round trips of 900 packets and 0.18 s are 40.5 s; of 833 packets and 40 ms 8.3 s, which are over at the tenth second.
        ("dctcp+ECN", 60, 180, False, True),
        ("dctcp+ECN", 250, 40, False, False),
        ("prague+ECN", 250, 180, False, False),
        ("bbr", 250, 180, False, False),
    ],
)
def test_the_cells_that_cannot(control: str, mbps: float, rtt_ms: float, exceeds: bool, hard: bool) -> None:
    assert long_rtts.exceeds_burst(control, mbps, rtt_ms) == exceeds
    assert long_rtts.cannot(control, mbps, rtt_ms) == hard


def test_the_swings_are_those_of_a_sawtooth_and_of_a_cubic() -> None:
    """The formulas against windows that are added up step by step."""
    at = np.linspace(0, 1, 100_001)
    packets, rtt_s = long_rtts.packets(60, 110), 0.11
    reno = 2 / 3 + 2 / 3 * at
    assert long_rtts.reno_swing_s(60, 110) == pytest.approx(
        np.maximum(reno - 1, 0).mean() * packets * 2 / 3 * rtt_s, rel=1e-3
    )
    cubic = (1 - 0.3 * (1 - at) ** 3) / (1 - 0.3 / 4)
    assert long_rtts.cubic_swing_s(60, 110) == pytest.approx(
        2 * np.maximum(cubic - 1, 0).mean() * long_rtts.epoch_s(60, 110), rel=0.01
    )
    # DCTCP from the tenth second to the end of its growth, after 15 s.
    grows_s = packets / 4 * rtt_s
    assert 10 < grows_s < 63
    time_s = np.linspace(10, grows_s, 100_001)
    lacking = (0.25 * (1 - time_s / grows_s)).mean() * (grows_s - 10)
    assert long_rtts.dctcp_loss_s(60, 110) == pytest.approx(lacking, rel=1e-3)


@pytest.mark.parametrize(
    ("given", "broken"),
    [
        ({}, set()),
        ({"error": -0.021}, {"fair-rate", "fair-fits", "fair-bcpqp"}),
        ({"error": 0.021}, {"fair-rate", "fair-fits", "fair-bcpqp"}),
        ({"error": 0.016}, {"fair-bcpqp"}),
        # A swing between the room that it has and the burst: no exception of property 2.
        ({"base_rtt_ms": 180.0, "target_mbps": 6.0, "error": -0.021}, {"fair-rate", "fair-bcpqp"}),
        ({"base_rtt_ms": 180.0, "error": -0.24}, {"fair-bcpqp"}),
        ({"base_rtt_ms": 180.0, "error": -0.26}, {"fair-reno", "fair-bcpqp"}),
        (
            {"control": "cubic", "target_mbps": 250.0, "base_rtt_ms": 70.0, "error": -0.074},
            {"fair-rate", "fair-bcpqp"},
        ),
        (
            {"control": "cubic", "target_mbps": 250.0, "base_rtt_ms": 70.0, "error": -0.076},
            {"fair-rate", "fair-cubic", "fair-bcpqp"},
        ),
        (
            {"control": "dctcp+ECN", "target_mbps": 60.0, "base_rtt_ms": 180.0, "error": -0.26},
            {"fair-rate", "fair-dctcp", "fair-bcpqp"},
        ),
        ({"retransmits": 10}, set()),
        ({"retransmits": 11}, {"fair-bcpqp-loss"}),
        ({"control": "reno+ECN", "retransmits": 1}, {"fair-loss"}),
        # Less than two packets a round trip, and a control that does not heed marks.
        ({"control": "reno+ECN", "base_rtt_ms": 2.0, "retransmits": 1}, set()),
        ({"control": "bbr+ECN", "retransmits": 11}, {"fair-bcpqp-loss"}),
    ],
)
def test_the_claims_of_longrtt(given: dict[str, Any], broken: set[str]) -> None:
    row: Row = {"control": "reno", "target_mbps": 10.0, "base_rtt_ms": 50.0, "error": 0.0, "retransmits": 0}
    row |= {"scheme": "fair"}
    hard: Row = {**row, **given}
    rows = [
        {**row, "base_rtt_ms": 100.0},
        hard,
        *(
            {**one, "scheme": "bcpqp", "error": -0.0075, "retransmits": 10}
            for one in (hard, {**row, "base_rtt_ms": 100.0})
        ),
    ]
    judged = holds(long_rtts.claims_of(rows))
    assert {id for id, held in judged.items() if not held} == broken


@pytest.mark.slow
def test_longrtt_states_its_window_and_both_layers(tmp_path: Path) -> None:
    settings = {
        "controls": ("cubic",),
        "rates_mbps": (5.0,),
        "base_rtts_ms": (50.0,),
        "schemes": ("plain-1s", "drr"),
    }
    answer = run("meter.longrtt", settings, seeds=[1], out=tmp_path / "out")
    for row in answer["rows"]:
        assert (row["from_s"], row["window_s"]) == (10, 53)
        assert row["error"] == pytest.approx(row["goodput_mbps"] * 1500 / 1448 / 5 - 1)
        # All that passes is goodput, but for what is sent twice.
        assert abs(row["error"] - row["passed_error"]) < 0.02
        assert abs(row["error"]) < 0.05
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000


@pytest.mark.parametrize(("goodput", "held"), [(-0.02, True), (-0.021, False), (0.02, True), (0.021, False)])
def test_the_rate_is_judged_by_goodput_within_2_percent(goodput: float, held: bool) -> None:
    """All IP bytes are at the rate: what is sent twice is no goodput."""
    row: Row = {"scheme": "fair", "base_rtt_ms": 1.0, "target_mbps": 10, "case": "fair", "flow": 0}
    row |= {"settled_error": 0.0, "settled_excess_10_s": 0.0, "settled_goodput_error": goodput}
    single = rates.rates(rates_mbps=(10,), base_rtts_ms=(1.0,), schemes=("fair",))
    cells = congestion_controls.matrix(controls=("reno",), base_rtts_ms=(1.0,), rates_mbps=(10,))
    of_cells = [{**row, "congestion_control": "reno", "excess_10_s": 0.0}]
    assert holds(single.claims([row])) == {"fair-1ms-settled": held, "fair-1ms-excess": True}
    assert holds(several_flows.flow_claims("meter.flows", [row], ("fair",), (1.0,), 20)) == {"fair-1ms": held}
    assert holds(cells.claims(of_cells)) == {"cells": held, "excess": True}


@pytest.mark.parametrize(("excess", "held"), [(0.126, True), (0.128, False)])
def test_what_passes_in_ten_seconds_is_judged_by_the_burst(excess: float, held: bool) -> None:
    cells = congestion_controls.matrix(controls=("reno",), base_rtts_ms=(1.0,), rates_mbps=(10,))
    row: Row = {"congestion_control": "reno", "base_rtt_ms": 1.0, "target_mbps": 10, "excess_10_s": excess}
    assert holds(cells.claims([{**row, "settled_goodput_error": 0.0}]))["excess"] == held


@pytest.mark.slow
def test_goodput_is_scaled_by_the_mtu(tmp_path: Path) -> None:
    settings = {
        "rates_mbps": (20,),
        "base_rtts_ms": (1.0,),
        "schemes": ("fair",),
        "mtu": 9000,
        "duration_s": 15,
    }
    (row,) = run("meter.rates", settings, seeds=[1], out=tmp_path / "out")["rows"]
    # 52 bytes of a packet are headers; a last packet may be on its way.
    assert row["settled_goodput_error"] == pytest.approx(row["settled_error"], abs=0.002)
    assert row["goodput_error"] < row["relative_error"] - 0.005


def mix_row(scheme: str, load: float = 0.3, seed: int = 1, **given: Any) -> Row:
    """Small flows of 20 ms of which one in ten has 50 ms, others of 900 ms."""
    small = given.pop("small_ms", [*[20.0] * 90, *[50.0] * 10])
    row = {"scheme": scheme, "load": load, "seed": seed, "bulk_least_mbps": 30.0, "small_ms": small}
    return {**row, "all_ms": [*small, *[900.0] * 20], **given}


@pytest.mark.parametrize(
    ("given", "broken"),
    [
        ({}, set()),
        ({"small_ms": [*[20.3] * 90, *[50.0] * 10]}, set()),
        ({"small_ms": [*[20.5] * 90, *[50.0] * 10]}, {"fair-bcpqp-small-p50"}),
        ({"small_ms": [*[20.0] * 90, *[51.1] * 10]}, {"fair-bcpqp-small-tail"}),
        # A flow that has not ended is infinite.
        ({"small_ms": [*[20.0] * 90, *[math.inf] * 10]}, {"fair-bcpqp-small-tail", "fair-bcpqp-all-tail"}),
        ({"all_ms": [*[20.0] * 100, *[920.0] * 20]}, {"fair-bcpqp-all-tail"}),
        ({"bulk_least_mbps": 29.5}, set()),
        ({"bulk_least_mbps": 29.3}, {"fair-bcpqp-bulk"}),
    ],
)
def test_the_claims_of_mix(given: dict[str, Any], broken: set[str]) -> None:
    claims = web_mix.claims_of([mix_row("bcpqp"), mix_row("fair", **given)])
    assert {claim.why for claim in claims if not claim.holds} <= {web_mix.WHY}
    judged = holds(claims)
    assert {id for id, held in judged.items() if not held} == broken
    assert len(judged) == 4


@pytest.mark.parametrize(
    ("flows", "seeds", "said"),
    [(9, 1, None), (49, 1, None), (50, 1, "p90 of 50"), (50, 2, "p95 of 100"), (250, 2, "p99 of 500")],
)
def test_a_percentile_of_web_flows_is_one_that_their_number_supports(
    flows: int, seeds: int, said: str | None
) -> None:
    """All seeds' flows are counted together."""
    rows = [
        mix_row(scheme, seed=seed, small_ms=[20.0] * flows, all_ms=[])
        for scheme in ("fair", "bcpqp")
        for seed in range(seeds)
    ]
    statements = {claim.id: claim.statement for claim in web_mix.claims_of(rows)}
    assert ("fair-bcpqp-small-p50" in statements) == (flows >= 10)
    assert ("fair-bcpqp-small-tail" in statements) == (said is not None)
    assert said is None or said in statements["fair-bcpqp-small-tail"]


def test_what_the_peer_has_not_ended_has_no_ratio() -> None:
    endless = [*[20.0] * 90, *[math.inf] * 10]
    for mine in (endless, [20.0] * 100):
        claims = web_mix.claims_of([mix_row("bcpqp", small_ms=endless), mix_row("fair", small_ms=mine)])
        assert {claim.id for claim in claims} == {"fair-bcpqp-small-p50", "fair-bcpqp-bulk"}


@pytest.mark.slow
@pytest.mark.parametrize("apart", [False, True])
def test_short_flows_and_those_beside_them_share_the_meter(apart: bool) -> None:
    at = fair_sharing.build("fair", "short", 20.0, 10.0, 5, 1, apart=apart)
    passed = sent(at.network.run("5 s"), PASSED)
    # 1.05 s of the rate may pass in addition.
    assert 0.8 * 20 <= passed.mbps(1.0) <= 20 * (1 + 1.05 / 4)


def test_mix_counts_web_and_bulk_flows_apart(tmp_path: Path) -> None:
    settings = {
        "loads": (0.4,),
        "schemes": ("plain-1s", "drr"),
        "bulk": ("cubic", "bbr"),
        "target_mbps": 40.0,
        "duration_s": 50,
    }
    answer = run("meter.mix", settings, seeds=[1], out=tmp_path / "out")
    plain, drr = answer["rows"]
    # The same web flows for both; BBR leaves nothing to who heeds losses, unless queues are by flow.
    assert plain["web_flows"] == drr["web_flows"] > 10
    assert plain["small_ms_p50"] > 2 * drr["small_ms_p50"]
    assert plain["bulk_least_mbps"] < 0.1 * drr["bulk_least_mbps"]
    assert drr["bulk_mbps"] + 0.4 * 40 == pytest.approx(40, rel=0.3)
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000


@pytest.mark.slow
def test_web_flows_that_do_not_end_are_infinite(tmp_path: Path) -> None:
    settings = {"loads": (0.9,), "schemes": ("drr",), "target_mbps": 20.0, "duration_s": 60}
    (row,) = run("meter.mix", settings, seeds=[2], out=tmp_path / "out")["rows"]
    assert row["unfinished"] > 0
    assert row["all_ms"].count(math.inf) == row["unfinished"]
    assert len(row["all_ms"]) == row["web_flows"]
