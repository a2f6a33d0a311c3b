"""Completion times in the leaf-spine, in a short run."""

from __future__ import annotations

from pathlib import Path

import pytest

from tidegate.experiments import run as run_experiment
from tidegate.network import Network
from tidegate.systems.stamping.experiments.contenders import CONTENDERS
from tidegate.systems.stamping.experiments.fct import Scene, alone_us

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
