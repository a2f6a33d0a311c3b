"""Incast in short runs, and the contenders of all experiments at 25 Gbit/s."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate import TidegateError
from tidegate.experiments import Row, find
from tidegate.experiments import run as run_experiment
from tidegate.systems.stamping.experiments.contenders import CONTENDERS, T0_US
from tidegate.systems.stamping.experiments.incast import NAMES, Fan


def row(contender: str, senders: int, **more: int) -> Row:
    fan = Fan(contender, senders, more.get("size_kb", 100), more.get("buffer", 1000), 1.0)
    return fan.rows(fan.network(1).run(f"{fan.until_us:.0f} us", seed=1, progress=False))


def test_the_round_trip_without_queues_is_t0() -> None:
    fan = Fan("hpcc_free", 1, 1000, 1000, 1.0)
    samples = fan.network(1).run("300 us", progress=False).flow_samples
    assert samples["srtt_ms"].drop_nulls()[-1] * 1e3 == pytest.approx(T0_US, abs=0.2)


def test_timely_s_constants_are_in_proportion_to_rate_and_round_trip() -> None:
    """Author's: T_low is 1.53, T_high 6.4 of the RTT without queues; delta is 0.2 %, the first rate 20 % of the line's rate."""
    for name in ("timely-max", "timely-rtt"):
        options = CONTENDERS[name].keywords["control_options"]
        times = [float(options[key].removesuffix(" us")) / T0_US for key in ("t_low", "t_high")]
        assert times == pytest.approx([120 / 78.6, 500 / 78.6], rel=0.001)
        assert (options["delta"], options["start_rate"]) == ("50 Mbit/s", "5 Gbit/s")
    assert CONTENDERS["timely-max"].keywords["control_options"]["signal"] == "stamp"
    assert "signal" not in CONTENDERS["timely-rtt"].keywords["control_options"]


@pytest.mark.parametrize("name", NAMES)
def test_all_data_arrives_and_no_queue_is_longer_than_the_buffer(name: str) -> None:
    got = row(name, 6, size_kb=30)
    assert got["unfinished"] == 0
    assert got["slowdown_last"] > 1
    assert got["goodput_gbps"] == pytest.approx(6 * 30e3 * 8e-3 / got["last_us"])
    assert 0 < got["queue_kb_p99"] <= 1.02 * got["queue_kb_max"] <= 1.02 * 1538


def test_a_small_buffer_drops_what_starts_at_the_line_s_rate() -> None:
    """Six windows of 19 packets do not fit 40; a seventh of them does."""
    assert row("stamp", 6, buffer=40)["dropped"] > 0
    assert row("timely-max", 6, buffer=40)["dropped"] == 0


def test_a_buffer_of_nothing_is_refused() -> None:
    with pytest.raises(TidegateError, match="buffer_packets"):
        find("stamping.incast").check({"buffer_packets": 1})


@pytest.mark.slow
def test_it_runs_is_drawn_and_judged(tmp_path: Path) -> None:
    settings = {"senders": (4, 16), "contenders": ("stamp", "hpcc", "dctcp", "cubic")}
    answer = run_experiment("stamping.incast", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    assert len(answer["rows"]) == 8
    assert [claim["id"] for claim in answer["claims"]] == ["last", "timeouts", "last-hpcc", "last-dctcp"]
    assert all(claim["why"] for claim in answer["claims"] if not claim["holds"])
    assert {row["senders"] for row in answer["rows"]} == {4, 16}
