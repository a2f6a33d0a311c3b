"""What PI2 and DualPI2 do to flows, in short runs."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate.experiments import Row
from tidegate.experiments import run as run_experiment
from tidegate.network import Network
from tidegate.systems.aqm import packet_harness as rig
from tidegate.systems.aqm.controller import LINUX, Aqm
from tidegate.systems.aqm.experiments.flow_history import FlowHistory
from tidegate.systems.aqm.experiments.measuring import QueueNotes, expected_p, rows_of
from tidegate.systems.aqm.experiments.overload import _overload_claims, overload_reports, overloaded
from tidegate.systems.aqm.experiments.testbed import (
    BASELINES,
    BOTTLENECK,
    INSIDE,
    WAYS,
    Bottleneck,
    bottleneck,
    classic_flows,
    l4s_flows,
)
from tidegate.systems.aqm.paper_mixes import loop_is_too_slow
from tidegate.systems.aqm.rfc9332_pseudocode import CE, ECT1
from tidegate.systems.aqm.setup import manage

pytestmark = pytest.mark.slow


def mixed(
    way: str, flows: int = 10, rtt_ms: float = 10, mbps: float = 120, aqm: Aqm | None = None
) -> Bottleneck:
    lab = bottleneck(way, mbps, rtt_ms, aqm=aqm)
    classic_flows(lab, flows)
    l4s_flows(lab, flows)
    lab.network.record("500 ms", queues=[lab.link])
    return lab


def measured(lab: Bottleneck, seconds: int = 12, seed: int = 1) -> tuple[Row, Row]:
    """Rows of CUBIC and of Prague, without the first third."""
    result = lab.network.run(f"{seconds} s", seed=seed)
    cubic, prague = rows_of(result, lab, {}, seconds / 3, seconds)
    assert (cubic["control"], prague["control"]) == ("cubic", "prague")
    return cubic, prague


@pytest.mark.parametrize("way", sorted(set(WAYS) - set(BASELINES)))
def test_the_classic_queue_is_at_its_target_and_flows_are_fair(way: str) -> None:
    cubic, prague = measured(mixed(way))
    target = 15.0 if way.startswith("rfc") or way == "linux" else 20.0
    assert abs(cubic["delay_ms_mean"] / target - 1) < 0.15
    assert cubic["utilisation"] > 0.97
    assert 0.6 < cubic["goodput_mbps"] / prague["goodput_mbps"] < 1.7
    if WAYS[way].queues == 2:
        assert prague["delay_ms_p99"] < 1.5
    # Nothing that is ECN-capable is dropped.
    assert prague["dropped_share"] == 0 or WAYS[way].queues == 1


def test_drops_of_a_plain_queue_are_those_of_the_window() -> None:
    """CUBIC's first overshoot is dropped; in windows without a drop the share is 0."""
    lab = bottleneck("droptail", 120, 10)
    classic_flows(lab, 1)
    lab.network.record("100 ms", queues=[lab.link])
    result = lab.network.run("6 s")
    samples = result.queue_samples.filter(queue=BOTTLENECK)
    drops = dict(samples.select("time_s", "dropped").iter_rows())
    shares = {begin: rows_of(result, lab, {}, begin, begin + 1)[0]["dropped_share"] for begin in range(6)}
    for begin, share in shares.items():
        assert (share > 0) == (drops[begin + 1] > drops[begin])
    assert 0 in shares.values()
    assert max(shares.values()) > 0
    queue = result.queues.filter(queue=BOTTLENECK).row(0, named=True)
    (whole,) = rows_of(result, lab, {}, 0, 6)
    # What still waits at the end has not been sent.
    sent = queue["packets"] - samples["packets"][-1]
    assert whole["dropped_share"] == pytest.approx(queue["dropped"] / (sent + queue["dropped"]), rel=1e-3)


@pytest.mark.parametrize("way", ["rfc", "dualpi2"])
def test_drops_by_the_buffer_count_whoever_has_it(way: str) -> None:
    """Of the program's buffer, and of the queue's limit with the paper's form: datagrams of twice the link, L's buffer of 10 ms."""
    aqm = replace(WAYS[way].aqm, limit="10 ms")
    lab = bottleneck(way, 20, 10, aqm=aqm)
    classic_flows(lab, 1)
    l4s_flows(lab, 1)
    lab.network.udp(lab.source, lab.sink, rate="40 Mbit/s", start=0, ecn="ect1")
    lab.network.record("500 ms", queues=[lab.link])
    result = lab.network.run("6 s")
    _, prague = rows_of(result, lab, {}, 2, 6, flows={0, 1})
    noted = QueueNotes(result.notes)
    arrived, forwarded = (noted.since(f"q1_{name}_packets", 2, 6) for name in ("arrived", "forwarded"))
    # All that has come and has not left, but for what waits.
    assert prague["dropped_share"] == pytest.approx(1 - forwarded / arrived, abs=0.01)
    assert prague["dropped_share"] > 0.3


def test_quantiles_of_errors_are_over_the_flows_and_of_one_flow_over_its_seconds() -> None:
    one = mixed("pi2", 1, 10, 20)
    result = one.network.run("12 s")
    history = FlowHistory(result)
    rows = rows_of(result, one, {}, 4, 12)
    fair = sum(row["goodput_mbps"] for row in rows) / 2
    for flow, row in enumerate(rows):
        seconds = history.intervals_mbps(flow, 4, 12) / fair - 1
        assert len(seconds) == 8
        assert row["error_p25"] == pytest.approx(np.quantile(seconds, 0.25))
        assert row["error_p99"] == pytest.approx(np.quantile(seconds, 0.99))
        assert row["error_p25"] < row["error_mean"] < row["error_p99"]
    for row in measured(mixed("pi2", 3, 10, 20)):
        assert len(row["goodputs_mbps"]) == 3
        each = np.array(row["goodputs_mbps"]) * (1 + row["error_mean"]) / row["goodput_mbps"] - 1
        assert row["error_p25"] == pytest.approx(np.quantile(each, 0.25), abs=1e-3)
        assert row["error_p99"] == pytest.approx(np.quantile(each, 0.99), abs=1e-3)


@pytest.mark.parametrize(("flows", "rtt_ms"), [(5, 10.0), (10, 10.0), (25, 10.0), (10, 50.0)])
def test_p_is_what_the_window_laws_give(flows: int, rtt_ms: float) -> None:
    cubic, _ = measured(mixed("pi2", flows, rtt_ms), seconds=20)
    rtt = rtt_ms + cubic["delay_ms_mean"]
    expected = expected_p(120, rtt, rtt, flows, flows)
    assert 0.75 < cubic["p_mean"] / expected < 1.33


@pytest.mark.parametrize("way", ["pi2", "dualpi2"])
def test_both_homes_of_the_controller_have_the_same_steady_state(way: str) -> None:
    ends = [mixed(name, flows=20) for name in (way, f"{way}-inside")]
    (outside, _), (inside, _) = (measured(lab, seconds=20) for lab in ends)
    for column in ("delay_ms_mean", "p_mean"):
        assert abs(inside[column] / outside[column] - 1) < 0.05, column


def test_at_0_p_nothing_is_signalled_and_without_l4s_prague_is_dropped() -> None:
    # A link that is never full.
    lab = bottleneck("dualpi2", 120, 10)
    classic_flows(lab, 1, size="100 kB")
    l4s_flows(lab, 1, size="100 kB")
    lab.network.record("500 ms", queues=[lab.link])
    result = lab.network.run("2 s")
    counts = {row["quantity"]: row["value"] for row in result.notes.iter_rows(named=True)}
    assert counts["q0_presented_packets"] > 60
    assert counts["q0_dropped_not_ect_packets"] == 0
    assert result.flows["finish_s"].null_count() == 0
    without = mixed("dualpi2-inside", aqm=replace(INSIDE, l4s=False))
    last = {row["quantity"]: row["value"] for row in without.network.run("5 s").notes.iter_rows(named=True)}
    assert last["q1_presented_packets"] == 0
    # As if not ECN-capable: dropped, which `dropped_ect` counts, as the code point is there.
    assert last["q0_marked_packets"] == 0
    assert last["q0_dropped_ect_packets"] > 0


@pytest.mark.parametrize("name", ["symmetric", "classic_heavy", "l4s_heavy", "phases"])
def test_experiments_run_and_draw(name: str, tmp_path: Path) -> None:
    settings: dict[str, object] = {"capacities_mbps": (20,), "base_rtts_ms": (10.0,)}
    settings |= {"phase_s": 3} if name == "phases" else {"duration_s": 4, "warm_up_s": 1}
    answer = run_experiment(f"aqm.{name}", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    ids = [claim["id"] for claim in answer["claims"]]
    assert len(ids) == len(set(ids)) > 3
    assert [row["window"] for row in answer["rows"][:4]] == ["whole", "whole", "late", "late"]
    for row in answer["rows"]:
        assert len(row["goodputs_mbps"]) == row["flows"]
        # A flow's goodput is that of its own time: here the last one comes after half a second at most.
        assert sum(row["goodputs_mbps"]) <= row["goodput_total_mbps"] * 1.001 <= 20 * 4 / 3.5
        assert 0 <= row["delay_ms_p25"] <= row["delay_ms_p99"]


@pytest.mark.parametrize(
    ("name", "settings", "cases"),
    [
        ("overload", {"ways": ("rfc",), "loads": (0.5, 2.0), "capacity_mbps": 20, "duration_s": 9}, 4),
        ("burst", {"ways": ("droptail", "rfc"), "capacity_mbps": 20, "duration_s": 8}, 3),
        ("rates", {"capacities_gbps": (1,), "flows": 4, "duration_s": 1.0}, 2),
        (
            "queues",
            {
                "ways": ("pi2", "rfc", "linux", "step", "droptail", "codel", "fq_codel"),
                "capacities_mbps": (20,),
                "base_rtts_ms": (10.0,),
                "mixes": ("2-2",),
                "duration_s": 4,
                "warm_up_s": 1,
            },
            28,
        ),
        (
            "settings",
            {"capacity_mbps": 20, "base_rtts_ms": (10.0,), "flows": (3,), "duration_s": 3, "warm_up_s": 1},
            28,
        ),
        (
            "period",
            {"capacities_gbps": (1,), "periods_ms": (16.0, 64.0), "flow_mbps": 250.0, "duration_s": 2.0},
            5,
        ),
        ("homes", {"capacities_mbps": (20,), "base_rtts_ms": (10.0,), "flows": (5,), "duration_s": 8}, 8),
        ("rtts", {"ways": ("rfc",), "capacity_mbps": 50, "duration_s": 9}, 10),
        ("rfc7928", {"ways": ("pie", "pi2"), "scenarios": ("5.3", "8.2.6", "9"), "duration_s": 8}, 6),
    ],
)
def test_those_beyond_the_paper_too(
    name: str, settings: dict[str, object], cases: int, tmp_path: Path
) -> None:
    answer = run_experiment(f"aqm.{name}", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    ids = [claim["id"] for claim in answer["claims"]]
    assert len(ids) == len(set(ids)) > 0
    assert len(answer["rows"]) >= cases
    measured = " ".join(claim["measured"] for claim in answer["claims"])
    assert "nan" not in measured
    assert "nothing to measure" not in measured


def test_claims_about_flows_that_a_run_does_not_have_are_left_out(tmp_path: Path) -> None:
    settings: dict[str, object] = {
        "flows": (3,),
        "capacities_mbps": (12,),
        "base_rtts_ms": (20.0,),
        "duration_s": 15,
    }
    answer = run_experiment("aqm.symmetric", settings, seeds=[1], out=tmp_path / "out")
    assert answer["claims"]
    # The paper's statements are about one flow of each kind.
    assert not any("nothing to measure" in claim["measured"] for claim in answer["claims"])


def test_frames_of_9000_bytes_fill_the_link_and_share_it() -> None:
    """With an MTU of 9000 a full frame takes 0.6 ms of 120 Mbit/s: the buffer, the two-packet minimum and the quantum go by it."""
    for way in ("dualpi2", "rfc", "pi2", "codel"):
        lab = bottleneck(way, 120, 10, mtu=9000)
        classic_flows(lab, 2)
        l4s_flows(lab, 2)
        lab.network.record("100 ms", queues=[lab.link])
        cubic, prague = measured(lab)
        assert cubic["utilisation"] > 0.95
        # 8948 bytes of payload in frames of 9014.
        assert cubic["goodput_total_mbps"] == pytest.approx(
            120 * 8948 / 9014 * cubic["utilisation"], rel=0.01
        )
        assert prague["goodput_mbps"] > 5


def test_the_model_of_linux_has_its_defaults() -> None:
    """The constants of dualpi2_reset_default() in net/sched/sch_dualpi2.c."""
    assert (LINUX.target, LINUX.tupdate, LINUX.k, LINUX.p_max) == ("15 ms", 16 * 10**9, 2.0, 0.5)
    assert (round(256 * LINUX.alpha), round(256 * LINUX.beta)) == (41, 819)
    assert LINUX.room(10**9) == 9_999 * 1514
    port = WAYS["linux"].port
    assert (port.scheduler, [queue.weight for queue in port.queues]) == ("weighted round robin", [1, 9])
    # Above 1 ms, whatever waits behind: of two packets the second is marked from 1001 us on.
    for wait_us, ecn in ((1000, ECT1), (1001, CE)):
        pair = [rig.Sent(1, 1400, ECT1), rig.Sent(2, 1400, ECT1)]
        rate = round(1400 * 8 * 10**12 / ((wait_us + 0.5) * 10**6))
        assert rig.through_program("dualpi2", LINUX, pair, port=port, rate=rate).left[1].ecn == ecn


def flow_samples(bytes_received: list[float], retransmits: list[int], slow_start: int = 0) -> Any:
    """A result with one flow, sampled every half second; the first so many samples are in slow start."""
    times = [0.5 * number for number in range(len(bytes_received))]
    frame = pl.DataFrame(
        {
            "flow": [0] * len(times),
            "time_s": times,
            "bytes_received": bytes_received,
            "retransmits": retransmits,
            "cwnd_packets": [100] * len(times),
            "ssthresh_packets": [None] * slow_start + [70] * (len(times) - slow_start),
        }
    )
    return SimpleNamespace(flow_samples=frame)


def test_what_a_single_loss_costs_and_how_long_a_ramp_takes() -> None:
    # 8 Mbit/s for 6 s, then 5.6 for 6 s; a loss at 6 s.
    rates = [0.5e6] * 12 + [0.35e6] * 12
    history = FlowHistory(flow_samples(np.cumsum([0, *rates]).tolist(), [0] * 12 + [1] * 13))
    assert history.loss_costs(0, 0, 12) == [pytest.approx(0.3)]
    assert history.loss_costs(0, 5, 12) == []
    assert history.intervals_mbps(0, 0, 2) == pytest.approx([8, 8])
    assert history.intervals_mbps(0, 0, 0.5) == pytest.approx([8])
    assert history.ramp_s(0, 0.0, 12, 8.0) == 1.0
    assert history.ramp_s(0, 5.0, 12, 20.0) == 7.0
    # Two losses within two seconds are not single ones.
    twice = FlowHistory(flow_samples(np.cumsum([0, *rates]).tolist(), [0] * 12 + [1] * 2 + [2] * 11))
    assert twice.loss_costs(0, 0, 12) == []
    # Nor are several packets between two samples, or one that ends slow start.
    received = np.cumsum([0, *rates]).tolist()
    assert FlowHistory(flow_samples(received, [0] * 12 + [80] * 13)).loss_costs(0, 0, 12) == []
    single = [0] * 12 + [1] * 13
    assert FlowHistory(flow_samples(received, single, slow_start=12)).loss_costs(0, 0, 12) == []
    assert len(FlowHistory(flow_samples(received, single, slow_start=11)).loss_costs(0, 0, 12)) == 1


def test_a_report_of_overload_counts_once() -> None:
    quantities = ["overload_1_since_s", "overload_1_s", "p_1", "overload_1_since_s", "overload_1_s"]
    assert overload_reports(pl.DataFrame({"quantity": quantities, "value": [1.0] * 5})) == 2


def test_overload_is_judged_by_the_target_of_each_way() -> None:
    """1.5 times 15 ms by RFC 9332 and in Linux, 1.5 times 20 ms with the paper's settings."""
    held = {}
    for way in ("rfc", "rfc-fifo", "linux", "pi2", "dualpi2", "dualpi2-inside"):
        row = {
            "way": way,
            "load": 2.0,
            "ecn": "not-ect",
            "c_delay_ms_mean": 25.0,
            "l_delay_ms_mean": 1.0,
            "udp_got_share": 0.5,
            "cubic_mbps": 1.0,
            "prague_mbps": 1.0,
        }
        held[way] = next(c.holds for c in _overload_claims([row], way) if c.id == f"{way}-delay")
    assert held == {
        "rfc": False,
        "rfc-fifo": False,
        "linux": False,
        "pi2": True,
        "dualpi2": True,
        "dualpi2-inside": True,
    }


def test_unresponsive_traffic_gains_nothing_by_ect1_and_delay_stays() -> None:
    """RFC 9332 section 4.2.3: twice what the link carries, in either queue."""
    got = {}
    for ecn in ("not-ect", "ect1"):
        lab = overloaded("rfc", 50, 2.0, ecn, 3)
        result = lab.network.run("10 s")
        got[ecn] = int(result.flows["datagrams_received"].drop_nulls().sum())
        low = int(ecn == "ect1")
        delays = QueueNotes(result.notes).delays(low, 6, 10)
        assert abs(delays.mean_ms / 15 - 1) < 0.2
        others = rows_of(result, lab, {}, 6, 10, flows=range(6))
        assert all(row["goodput_mbps"] > 0 for row in others)
    assert 0.9 < got["ect1"] / got["not-ect"] < 1.1


def test_hosts_may_be_linked_after_their_queue_is_managed() -> None:
    net = Network()
    switch = net.switch("s", Path(__file__).with_name("dualpi2.p4"))
    a, b, late = net.host("a"), net.host("b"), net.host("late")
    net.link(a, switch, rate="100 Mbit/s", delay="1 ms")
    manage(net, switch, net.link(switch, b, rate="10 Mbit/s", delay="1 ms"))
    net.link(late, switch, rate="100 Mbit/s", delay="1 ms")
    net.tcp(late, b)
    assert net.run("1 s").flows["bytes_received"][0] > 0.8e6


@pytest.mark.parametrize(
    ("slow", "found"), [((40, 1), True), ((40, 3), True), ((100, 2), True), (None, False)]
)
def test_a_loop_is_too_slow_if_it_is_at_one_capacity(slow: tuple[int, int] | None, found: bool) -> None:
    """At 40 or at 100 Gbit/s, with most of the seeds."""
    rows = [
        {
            "seed": seed,
            "home": home,
            "capacity_gbps": capacity,
            "period_ms": 16.0,
            "latency_ms": 0.0,
            "steady_delay_ms_p99": 1.0
            if home == "data plane" or slow is None or capacity != slow[0] or seed == slow[1]
            else 2.0,
        }
        for seed in (1, 2, 3)
        for capacity in (40, 100)
        for home in ("data plane", "control plane")
    ]
    judged = loop_is_too_slow(rows, {})
    assert judged.found is found
    assert (f"most at {slow[0]} Gbit/s, T 16 ms" in judged.measured) if slow else True
