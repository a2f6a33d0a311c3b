"""Completion times in the leaf-spine, in a short run."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.claims import Row
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.network import Network
from tidegate.papers import Missing
from tidegate.systems.stamping.claims import _completion
from tidegate.systems.stamping.experiments.contenders import CONTENDERS
from tidegate.systems.stamping.experiments.fct import (
    CLASSES,
    Scene,
    _at_most,
    _ratios,
    alone_us,
    quantile,
)

SCENE = Scene(0.5, "web-search", 100, 2)


@pytest.mark.parametrize("name", ["stamp", "cubic"])
def test_a_flow_alone_takes_its_ideal_time(name: str) -> None:
    """A flow that is not limited by a window takes what the formula says, and what the header of a stamp costs."""
    for other, links in [("h1", [25.0, 25.0]), ("h9", [25.0, 100.0, 100.0, 25.0])]:
        network: Network = SCENE.network(CONTENDERS[name], 1)
        network.flows.clear()
        hosts = {node.name: node for node in network.nodes}
        size = 14_000
        network.tcp(hosts["h0"], hosts[other], size=size, **CONTENDERS[name].keywords)
        (took,) = network.run("2 ms", progress=False).flows["completion_ms"]
        assert took * 1e3 == pytest.approx(alone_us(size, links), rel=0.05)


@pytest.mark.parametrize("name", list(CONTENDERS))
def test_packets_of_all_contenders_carry_the_same_on_the_wire(name: str) -> None:
    """But for headers that are compared: 38 bytes around the packet, of which imaginary bytes are taken back."""
    who = CONTENDERS[name]
    header = who.form.wire_bytes if who.form else 0
    assert who.mss + header + 40 - who.imaginary == 1500
    assert who.imaginary in (0, 24)


@pytest.mark.parametrize("name", ["stamp", "dctcp"])
@pytest.mark.parametrize("spines", [1, 2, 3])
def test_all_controls_have_the_same_paths_over_all_spines(name: str, spines: int) -> None:
    """Hosts take turns at the spines: no control has more of the fabric than another."""
    scene = Scene(0.3, "web-search", 100, spines)
    network = scene.network(CONTENDERS[name], 1)
    network.flows.clear()
    hosts = {node.name: node for node in network.nodes}
    for number in range(8, 32):
        network.tcp(hosts["h0"], hosts[f"h{number}"], size=1000, **CONTENDERS[name].keywords)
    queues = network.run("1 ms", progress=False).queues
    own = queues.filter(pl.col("queue").str.starts_with("leaf0 -> spine")).sort("queue")
    packets = own["packets"].to_list()
    assert len(packets) == spines
    assert max(packets) == min(packets) > 0


@pytest.mark.parametrize(("spines", "load"), [(1, 0.5), (2, 0.9)])
def test_loads_that_the_fabric_carries(spines: int, load: float) -> None:
    plan = find("stamping.fct").plan(spines=spines, loads=(load,), contenders=("stamp", "cubic"))
    assert [case.name for case in plan.cases] == [f"stamp-{load:g}", f"cubic-{load:g}"]


def test_a_load_that_one_spine_does_not_carry_is_refused() -> None:
    with pytest.raises(TidegateError, match=r"a load of 80% is 124% of what 1 spine\(s\) carry"):
        find("stamping.fct").plan(spines=1, loads=(0.8,))


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{"sizes": "data-mining"}, {"spines": 1}])
def test_sizes_and_oversubscription_are_choices(settings: dict[str, object], tmp_path: Path) -> None:
    whole = {"contenders": ("stamp", "dctcp"), "arrivals": 100, "loads": (0.4,), **settings}
    answer = run_experiment("stamping.fct", whole, seeds=[1], out=tmp_path / "out")
    rows = answer["rows"]
    assert len(rows) == 8
    # Data mining has flows of up to 1 GB: the largest do not end with the run.
    assert sum(row["unfinished"] for row in rows) <= 4
    assert all(row["slowdown_p50"] >= 1 for row in rows)
    assert sum(row["flows"] for row in rows if row["contender"] == "stamp") > 60


def test_c13_compares_timely_on_max_with_timely_on_the_rtt() -> None:
    def rows(slowdown: float, used: float) -> list[Row]:
        values = {"timely-max": (slowdown, used), "timely-rtt": (2.0, 0.4)}
        return [
            {
                "contender": name,
                "load": 0.5,
                "size": size,
                "unfinished": 0,
                "slowdown_mean": slow,
                "utilisation": share,
            }
            for name, (slow, share) in values.items()
            for size in ("below 10 kB", "from 1 MB")
        ]

    assert _completion(rows(1.8, 0.41), {}).found
    assert not _completion(rows(2.1, 0.41), {}).found
    assert not _completion(rows(1.8, 0.39), {}).found
    with pytest.raises(Missing):
        _completion(rows(1.8, 0.41)[:2], {})
    # A mean without those that did not end says nothing.
    left = [row | {"unfinished": 3, "slowdown_mean": None} for row in rows(1.8, 0.41)[:1]]
    with pytest.raises(Missing, match="3 flows did not end"):
        _completion(left + rows(1.8, 0.41)[1:], {})


def test_a_flow_that_does_not_end_is_slower_than_all_others() -> None:
    ended = np.array([3.0, 1.0, 2.0, 4.0])
    assert [quantile(ended, share) for share in (0.5, 0.99)] == np.quantile(ended, (0.5, 0.99)).tolist()
    some = np.array([3.0, 1.0, np.inf, 2.0, 4.0])
    assert [quantile(some, share) for share in (0.5, 0.75, 0.76, 0.99)] == [3.0, 4.0, None, None]


def test_claims_count_flows_that_do_not_end() -> None:
    def rows(ours: float | None, theirs: float | None) -> list[Row]:
        return [
            {"contender": name, "load": 0.5, "size": size, "slowdown_mean": mean}
            for name, mean in (("stamp", ours), ("dctcp", theirs))
            for size in CLASSES
        ]

    def judged(ours: float | None, theirs: float | None) -> tuple[bool, str | None]:
        ratios = _ratios(rows(ours, theirs), "stamp", "dctcp", ["slowdown_mean"], list(CLASSES))
        claim = _at_most("mean", "a lower mean slowdown", ratios, 0.0, "known")
        return claim.holds, claim.why

    assert judged(1.0, 2.0) == (True, None)
    assert judged(1.0, None) == (True, None)
    why = "flows that did not end count as infinite; beside them: known"
    assert judged(None, 2.0) == (False, why)
    assert judged(None, None) == (False, why)


@pytest.mark.slow
def test_it_runs_is_drawn_and_judged(tmp_path: Path) -> None:
    contenders = ("stamp", "stamp4", "hpcc", "hpcc_free", "powertcp", "swift", "dctcp")
    settings = {"contenders": contenders, "arrivals": 100, "loads": (0.5,)}
    answer = run_experiment("stamping.fct", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    rows = answer["rows"]
    assert len(rows) == 4 * len(contenders)
    assert sum(row["unfinished"] for row in rows) == 0
    assert all(1 <= row["slowdown_p50"] <= row["slowdown_p99"] for row in rows)
    assert all(0.05 < row["utilisation"] < 0.6 for row in rows)
    by = {(row["contender"], row["size"]): row for row in rows}
    # The same flows for all.
    assert {by[name, "from 1 MB"]["flows"] for name in contenders} == {by["stamp", "from 1 MB"]["flows"]}
    assert len(answer["claims"]) == 11
    assert all(claim["of"] == "ours" for claim in answer["claims"])
    assert all(claim["why"] for claim in answer["claims"] if not claim["holds"])
