"""Scenarios and traces."""

from __future__ import annotations

import io
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from tidegate import TidegateError, scenarios, units
from tidegate.network import Network
from tidegate.scenarios import SCENARIOS, SCHEMES, traces
from tidegate.systems.meter.fair import FairMeters
from tidegate.systems.reference.experiments import scenarios as drawing


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "t has no time above 0 ms"),
        (b"0\n0\n", "t has no time above 0 ms"),
        (b"1\n2.5\n", "t:2: '2.5' is not a time in whole milliseconds"),
        (b"5\n3\n", "t:2: 3 ms comes after 5 ms; times are in order"),
        (b"1\n-2\n", "t:2: '-2' is not a time"),
        (b"1\n\xff\xfe\n", r"t:2: '\\xff\\xfe' is not a time"),
        (b"1\n999999999\n", "t:2: 999999999 ms is more than a day"),
        (b"1\n" + b"9" * 5000, "t:2: '99999999999999999999' is not a time"),
    ],
)
def test_what_is_no_trace(data: bytes, said: str) -> None:
    with pytest.raises(TidegateError) as refused:
        traces.parse(data, "t")
    assert said in str(refused.value)


@pytest.mark.parametrize("name", SCENARIOS)
def test_a_scenario_alone_has_a_figure(name: str) -> None:
    """`wan`, `satellite` and `wifi` have no short transfers, so a panel has no value."""
    short = 2.0 if any(flow.size for flow in SCENARIOS[name].flows) else math.nan
    row = {"scenario": name, "scheme": "fifo", "of_capacity": 0.9, "queue_ms_mean": 3.0, "short_ms": short}
    run = SimpleNamespace(seed=1, rows=[row])
    figure = drawing._draw((name,), ("fifo",), [run])  # type: ignore[list-item]
    figure.savefig(io.BytesIO())
    assert figure.axes[2].get_yscale() == ("linear" if math.isnan(short) else "log")


def test_budgets(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(traces, "MOST_PACKETS", 3)
    with pytest.raises(TidegateError, match="t:4: more than 3 packets"):
        traces.parse(b"1\n1\n1\n1\n", "t")
    monkeypatch.setattr(traces, "MOST_BYTES", 4)
    (tmp_path / "t").write_bytes(b"1\n1\n1\n")
    with pytest.raises(TidegateError, match="has more than 0 MiB"):
        traces.read(tmp_path / "t")
    with pytest.raises(TidegateError, match="none: No such file"):
        traces.read(tmp_path / "none")


def test_a_run_has_so_many_changes_of_a_rate(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(traces, "MOST_CHANGES", 10)
    net = Network()
    link = net.link(net.host("a"), net.host("b"), rate="1 Mbit/s", delay="1 ms")
    trace = traces.parse(b"1\n100\n", "t")
    traces.follow(link, trace, "200 ms")
    with pytest.raises(TidegateError, match=r"t: 11 changes of a rate .* more than 10; "):
        traces.follow(link, trace, "201 ms")


def test_rates_of_windows() -> None:
    trace = traces.parse(b"1\n1\n5\n10\n12\n20\n25\n", "t")
    assert (trace.length_ms, trace.mean_rate) == (25, 7 * 12_000 * 1000 // 25)
    # Four packets up to 10 ms, two more up to 20, one in the last 5.
    assert trace.rates(10) == [4 * 1_200_000, 2 * 1_200_000, 2_400_000]
    # A window without packets has the rate of one.
    assert traces.parse(b"10\n30\n", "t").rates(10) == [1_200_000] * 3


def test_a_link_follows_a_trace_and_begins_it_again() -> None:
    """A flow gets what the trace has: 12 Mbit/s for half of the time, 48 for the other half."""
    lines = list(range(1, 201)) + [ms for ms in range(201, 401) for _ in range(4)]
    trace = traces.parse("\n".join(map(str, lines)).encode(), "t")
    net = Network()
    a, r, b = net.host("a"), net.router("r"), net.host("b")
    net.link(a, r, rate="1 Gbit/s", delay=0)
    link = net.link(r, b, rate=trace.mean_rate, delay="1 ms", queue="200 packets")
    traces.follow(link, trace, "4 s")
    net.udp(a, b, rate="100 Mbit/s")
    net.record("100 ms", queues=[link])
    samples = net.run("4 s").queue_samples.filter(queue="r -> b")
    sent = samples["sent_bytes"].to_numpy() * 8e-6
    rates = (sent[1:] - sent[:-1]) / 0.1
    assert rates[9] == pytest.approx(12, rel=0.05)
    assert rates[11] == pytest.approx(48, rel=0.05)
    assert rates[33] == pytest.approx(12, rel=0.05)
    with pytest.raises(TidegateError, match="give a longer window"):
        traces.follow(link, trace, "2000 s", window_ms=1)


@pytest.mark.parametrize("scheme", SCHEMES)
def test_each_scheme_goes_into_a_scenario(scheme: str) -> None:
    one = SCENARIOS["access"]
    net = scenarios.network(one, SCHEMES[scheme])
    result = net.run("2 s")
    flows = result.flows.filter(result.flows["label"].str.starts_with("fair"))
    assert flows["goodput_mbps"].sum() > 25
    assert scenarios.network(one, SCHEMES[scheme], 2).flows[0].spec != net.flows[0].spec


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_any_scheme_goes_into_any_scenario(scenario: str) -> None:
    """And data goes through it there."""
    duration = {"datacenter": "20 ms", "satellite": "3 s"}.get(scenario, "1 s")
    for name, scheme in SCHEMES.items():
        result = scenarios.network(SCENARIOS[scenario], scheme, 2).run(duration)
        assert result.flows["bytes_received"].sum() > 50_000, name


@pytest.mark.parametrize(("scenario", "peak"), [("satellite", "600 ms"), ("wan", "300 ms")])
def test_the_meter_lets_a_window_of_the_longest_round_trip_pass(scenario: str, peak: str) -> None:
    net = scenarios.network(SCENARIOS[scenario], SCHEMES["meter"])
    ((meters, _),) = net.controllers
    assert isinstance(meters, FairMeters)
    assert units.time(meters._peak) == units.time(peak)


def test_capacities() -> None:
    from tidegate.scenarios.build import capacity_mbps

    assert capacity_mbps(SCENARIOS["wan"]) == 200
    # The trace has 6 s; 5 to 15 s is its last second, the whole, and three seconds.
    assert 20 < capacity_mbps(SCENARIOS["wifi"]) < 35


@pytest.mark.parametrize("scheme", ["fifo", "fq_codel"])
def test_short_transfers_count_with_all_bytes(scheme: str) -> None:
    """They start after the warm-up. Most of one comes between two samples in the data centre, the more the sooner it ends."""
    from tidegate.scenarios.build import _brought, measure

    one, queue = SCENARIOS["datacenter"], SCHEMES[scheme]
    result = scenarios.network(one, queue).run(one.duration)
    is_short = result.flows["label"].str.starts_with("short")
    short = result.flows.filter(is_short)
    without = replace(result, flows=result.flows.filter(~is_short))
    brought = _brought(result, 0.03, 0.1) - _brought(without, 0.03, 0.1)
    assert brought == short["bytes_received"].sum() >= 398_000
    # From the end of a transfer on, it brings nothing.
    last = short["finish_s"].max()
    assert isinstance(last, float)
    assert _brought(result, last + 0.001, 0.1) == _brought(without, last + 0.001, 0.1)
    assert measure(one, queue, result)["short_unfinished"] == short["finish_s"].null_count()


@pytest.mark.slow
def test_a_row_is_the_same_to_the_bit_whenever_it_is_made() -> None:
    from tidegate.scenarios.build import measure

    one, scheme = SCENARIOS["access"], SCHEMES["drr"]
    result = scenarios.network(one, scheme).run(one.duration)
    assert len({measure(one, scheme, result)["queue_ms_mean"] for _ in range(40)}) == 1
