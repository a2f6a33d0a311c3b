"""Partial deployments and wrong stamps, in short runs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest
from scapy.utils import RawPcapReader

from tidegate import TidegateError
from tidegate.claims import Row
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.network import Network
from tidegate.systems.stamping.experiments.contenders import T0_US
from tidegate.systems.stamping.experiments.lies import LIES, Court, lying
from tidegate.systems.stamping.experiments.partial import SWITCHES, Deployment, against_full
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.model import find as find_stamp
from tidegate.systems.stamping.model import with_checksum

pytestmark = pytest.mark.slow


def court(place: str, lie: str, contender: str = "stamp", buffer: int = 200) -> Row:
    one = Court(contender, place, lie, 4, buffer, 3.0, 1.5)
    return one.rows(one.network(1).run("3 ms", seed=1, progress=False))


@pytest.mark.parametrize("place", ["host", "switch", "bottleneck"])
def test_the_truth_is_fair_wherever_the_liar_would_be(place: str) -> None:
    row = court(place, "none")
    assert row["liar_of_fair"] == pytest.approx(1, abs=0.1)
    assert row["honest_of_fair"] is None if place == "bottleneck" else row["honest_of_fair"] > 0.9


@pytest.mark.parametrize("number", [0, 3])
def test_flows_have_the_same_round_trip_with_or_without_the_liar(number: int) -> None:
    one = Court("stamp", "switch", "none", 4, 200, 3.0, 1.5)
    network = one.network(1)
    hosts = {node.name: node for node in network.nodes}
    network.flows.clear()
    network.tcp(hosts[f"from{number}"], hosts[f"to{number}"], **one.who.keywords)
    samples = network.run("400 us", progress=False).flow_samples
    assert -0.1 < samples["srtt_ms"].drop_nulls()[-1] * 1e3 - T0_US < 0.08 * T0_US


def test_a_flow_that_reads_no_queue_gains_and_one_that_reads_a_full_one_loses() -> None:
    zero, full = court("host", "zero"), court("host", "full")
    assert zero["liar_of_fair"] > 1.5
    assert zero["honest_of_fair"] < 0.7
    assert full["liar_of_fair"] < 0.2
    assert full["honest_of_fair"] > 1
    assert court("bottleneck", "full")["utilisation"] < 0.2


def test_what_a_liar_has_in_flight_is_bounded_by_its_own_link() -> None:
    """All four keep a base RTT at the rate of the link in flight: three of these wait."""
    row = court("bottleneck", "zero", buffer=1000)
    assert row["queue_us_mean"] == pytest.approx(3 * T0_US, rel=0.1)
    assert row["dropped"] == 0


@pytest.mark.parametrize(("lie", "codes"), LIES.items())
def test_lies_are_written_with_right_checksums(lie: str, codes: tuple[int, int], tmp_path: Path) -> None:
    if lie == "none":
        return
    one = Court("stamp", "host", lie, 2, 200, 1.0, 0.5)
    network = one.network(1)
    hosts = {node.name: node for node in network.nodes}
    (link,) = [link for link in network.links if hosts["to0"] in (link.a, link.b)]
    network.capture(link, hosts["to0"], tmp_path / "seen.pcap")
    network.run("200 us", progress=False)
    form = one.who.form
    assert isinstance(form, Format)
    seen = set()
    for frame, _ in RawPcapReader(str(tmp_path / "seen.pcap")):
        at = find_stamp(form, frame)
        if isinstance(at, int):
            assert frame == with_checksum(frame)
            stamp = form.read(frame[at : at + form.size])
            # The bottleneck, the fork and the liar.
            assert stamp.hops == 3
            seen.add(stamp.code)
    low, high = codes
    assert all(low <= code <= high for code in seen)
    assert len(seen) == 1 if low == high else len(seen) > 20


def test_packets_without_a_stamp_pass_a_liar() -> None:
    network = Network()
    a, b = network.host("a"), network.host("b")
    switch = lying(network, "liar", (255, 255))
    network.link(a, switch, rate="1 Gbit/s", delay="1 us")
    network.link(switch, b, rate="1 Gbit/s", delay="1 us")
    network.tcp(a, b, size="50 kB")
    (took,) = network.run("100 ms", progress=False).flows["completion_ms"]
    assert took is not None


def test_one_flow_has_nobody_to_lie_to() -> None:
    with pytest.raises(TidegateError, match="give 2 or more"):
        find("stamping.lies").plan(flows=1)


def deployment(fraction: float, contender: str = "stamp") -> Row:
    one = Deployment(contender, fraction, 200, 2.0, 1.0)
    return one.rows(one.network(1).run("2 ms", seed=1, progress=False))


def test_a_smaller_fraction_s_switches_are_among_those_of_a_larger_one() -> None:
    chosen = [Deployment("stamp", fraction / 10, 200, 2.0, 1.0).stamping(3) for fraction in range(11)]
    assert [len(names) for names in chosen] == list(range(SWITCHES + 1))
    assert all(small < large for small, large in pairwise(chosen))
    assert Deployment("stamp", 0.5, 200, 2.0, 1.0).stamping(4) != chosen[5]


def test_only_the_chosen_switches_stamp() -> None:
    none, every = deployment(0.0), deployment(1.0)
    assert (none["queue_us_p99_stamping"], every["queue_us_p99_others"]) == (None, None)
    assert none["rtt_us_mean"] > 2 * every["rtt_us_mean"]
    half = deployment(0.5)
    assert half["switches"] == 5
    assert half["queue_us_p99_stamping"] < half["queue_us_p99_others"]


def test_ratios_are_of_the_same_seed() -> None:
    rows = [
        {"contender": "stamp", "fraction": fraction, "seed": seed, "rtt_us_mean": value}
        for seed, values in ((1, (40.0, 10.0)), (2, (60.0, 20.0)))
        for fraction, value in zip((0.5, 1.0), values, strict=True)
    ]
    assert against_full(rows, "stamp", "rtt_us_mean") == {0.5: 3.5, 1.0: 1.0}


@pytest.mark.parametrize(
    ("name", "settings", "cases"),
    [
        ("partial", {"fractions": (0.0, 0.8, 1.0), "duration_ms": 2.0, "warm_up_ms": 1.0}, 6),
        ("lies", {"buffers_packets": (100,), "flows": 4, "duration_ms": 2.0, "warm_up_ms": 1.0}, 24),
    ],
)
def test_they_run_are_drawn_and_judged(
    name: str, settings: dict[str, object], cases: int, tmp_path: Path
) -> None:
    answer = run_experiment(f"stamping.{name}", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    assert len(answer["rows"]) == cases
    ids = [claim["id"] for claim in answer["claims"]]
    assert len(ids) == len(set(ids)) > 0
    assert all(claim["of"] == "ours" for claim in answer["claims"])
    assert all(claim["why"] for claim in answer["claims"] if not claim["holds"])
    assert {row["contender"] for row in answer["rows"]} == {"stamp", "timely-max"}
