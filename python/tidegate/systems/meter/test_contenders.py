"""The contenders' registry, and a customer's network: bursts, shares, and what is counted where."""

from __future__ import annotations

import numpy as np
import pytest

from tidegate import TidegateError, units
from tidegate.measures import History
from tidegate.systems.meter.experiments.contenders import CONTENDERS, SIMULATED, burst_bytes, burst_columns
from tidegate.systems.meter.experiments.customer import (
    PASSED,
    Customer,
    excess,
    max_min,
    retransmits_since,
    sent,
)
from tidegate.systems.meter.fair import FairMeters


@pytest.mark.parametrize(
    ("name", "mbps", "rtt_ms", "size"),
    [
        ("plain-128k", 100, 10, 131_072),
        ("plain-bdp", 100, 10, 125_000),
        ("plain-bdp", 100, 0.01, 3_000),
        ("plain-400ms", 100, 10, 5_000_000),
        ("plain-1s", 100, 10, 13_107_200),
        ("plain-1s", 0.1, 10, 52_429),
        ("rfc2697-1s", 100, 10, 13_107_200),
        ("rfc2698-1s", 100, 10, 13_107_200),
        ("v1model-1s", 100, 10, 13_107_200),
        ("paper", 100, 10, 131_072),
        ("paper-unbounded", 100, 10, 131_072),
        ("paper-1s", 100, 10, 13_107_200),
        # 10 M and M, of CUBIC: 7.2 x 125 000^(4/3).
        ("bcpqp", 100, 10, 450_000_000),
        ("bcpqp-1s", 100, 10, 13_107_200),
        ("fairpolicer", 100, 10, 45_000_000),
        ("fairpolicer-1s", 100, 10, 13_107_200),
        ("shaper", 100, 10, 125_000),
        ("fair", 100, 10, 13_107_200),
        ("drr", 100, 10, 250_000),
        ("drr-1s", 100, 10, 13_107_200),
        ("linux-police", 100, 10, 13_107_200),
        ("linux-tbf", 100, 10, 125_000),
        ("linux-tbf", 10, 1, 30_000),
        ("linux-htb", 100, 10, 125_000),
        ("linux-fq_codel", 100, 10, 15_140_000),
        ("linux-cake", 100, 10, 15_140_000),
    ],
)
def test_the_bursts(name: str, mbps: float, rtt_ms: float, size: int) -> None:
    assert burst_bytes(name, mbps, rtt_ms) == size
    assert burst_columns(name, mbps, rtt_ms) == {
        "scheme": name,
        "burst_bytes": size,
        "burst_ms": pytest.approx(size * 8 / (mbps * 1e6) * 1e3),
    }


def test_every_contender_s_burst_is_tested() -> None:
    (marks,) = [mark for mark in test_the_bursts.pytestmark if mark.name == "parametrize"]  # type: ignore[attr-defined]
    assert {case[0] for case in marks.args[1]} == set(CONTENDERS)


@pytest.mark.parametrize(
    ("demands", "shares"),
    [
        ([1e9, 1e9], [50, 50]),
        ([float("inf")] * 4, [25] * 4),
        ([10, 1e9, 1e9], [10, 45, 45]),
        ([1e9, 30, 10], [60, 30, 10]),
        ([20, 30], [20, 30]),
        ([], []),
    ],
)
def test_max_min_shares(demands: list[float], shares: list[float]) -> None:
    assert max_min(100, demands) == pytest.approx(shares)


def test_excess_is_the_bucket_that_would_pass_all() -> None:
    # 1 Mbit/s is 125 000 byte/s: a burst, a second at half of the rate, and one at twice of it.
    time_s = np.array([0.0, 0.1, 1.1, 2.1])
    passed = History(time_s, np.array([0.0, 50_000, 112_500, 362_500]))
    assert excess(passed, 1) == pytest.approx(125_000)
    assert excess(passed, 2) == pytest.approx(25_000)


@pytest.mark.parametrize(("rtt_ms", "peak"), [(10, "300 ms"), (400, "400 ms")])
def test_the_peak_of_the_fair_meter_holds_the_longest_round_trip(rtt_ms: float, peak: str) -> None:
    at = Customer("fair", 20, 5, longest_rtt_ms=rtt_ms)
    at.udp(2)
    ((meters, _),) = at.attach("1 s").controllers
    assert isinstance(meters, FairMeters)
    assert units.time(meters._peak) == units.time(peak)


@pytest.mark.slow
@pytest.mark.parametrize("name", SIMULATED)
def test_each_holds_datagrams_to_the_rate_and_its_burst(name: str) -> None:
    at = Customer(name, 20, 5)
    at.udp(10, start="10 ms")
    result = at.attach("100 ms").run("6 s")
    passed = sent(result, PASSED)
    # The paper's controller moves its rate; with a large bucket it has not come back yet.
    slack = 1.1 if name.startswith("paper") else 1.0
    assert passed.mbps(2) == pytest.approx(20, rel=0.03 if name == "paper-1s" else 0.01)
    (own,) = at.histories(result)
    assert own.bytes[-1] == pytest.approx(passed.bytes[-1], abs=1_500 * 10)
    assert passed.bytes[-1] <= slack * 20e6 / 8 * 6 + at.burst + 1_500


@pytest.mark.slow
def test_what_is_counted_of_a_tcp_flow() -> None:
    at = Customer("plain-1s", 20, 5)
    near, far = at.tcp("cubic", start="10 ms"), at.tcp("cubic", rtt_ms=25, start="10 ms")
    result = at.attach("1 s").run("10 s")
    passed, flows = sent(result, PASSED), at.histories(result)
    # All that passes is first-time payload in full packets, but for headers of the handshakes and what is sent twice.
    assert sum(history.bytes[-1] for history in flows) == pytest.approx(passed.bytes[-1], rel=0.02)
    rtts = result.flow_samples.filter(result.flow_samples["time_s"] == 1)["srtt_ms"].to_list()
    assert rtts == pytest.approx([5, 25], abs=0.5)
    total = result.flows["retransmits"].to_list()
    assert [retransmits_since(result, flow, 0) for flow in (near, far)] == total
    assert [retransmits_since(result, flow, 10) for flow in (near, far)] == [0, 0]
    assert sum(total) > 0


def test_a_flow_that_has_not_begun_has_nothing() -> None:
    at = Customer("drr", 20, 5)
    at.tcp("cubic", start="1500 ms")
    at.udp(0.1, start="1500 ms")
    histories = at.histories(at.attach("500 ms").run("2 s"))
    for history in histories:
        assert isinstance(history, History)
        assert history.time_s[0] == 0
        assert history.mbps() > 0
        assert history.windows_mbps(1).min() == 0


@pytest.mark.parametrize("name", [name for name in CONTENDERS if name not in SIMULATED])
def test_the_simulator_has_no_qdisc_of_linux(name: str) -> None:
    at = Customer(name, 20, 5)
    at.udp(2)
    with pytest.raises(
        TidegateError,
        match="a qdisc of the kernel, which the simulator does not have; run it with --backend live",
    ):
        at.attach("1 s").run("1 s")
