"""`separation.mix`: all its contenders, flows of a size, and classes that the monitor tells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate.claims import Row
from tidegate.experiments import run
from tidegate.experiments.registry import find
from tidegate.network import FiveTuple
from tidegate.systems.separation import behaviour
from tidegate.systems.separation.behaviour import FIGURES, Observed, told
from tidegate.systems.separation.experiments.mix import CONTENDERS, TOLD_EACH_S, Teller
from tidegate.units import PS_PER_S


def rows(out: Path, **settings: Any) -> dict[str, Row]:
    """By contender, nine flows on 30 Mbit/s."""
    small = {"flows": (1,), "rate_mbps": 30.0, "duration_s": 12.0, "warm_up_s": 4.0}
    given = {**find("separation.mix").parameters(), **small, **settings}
    return {row["contender"]: row for row in run("separation.mix", given, seeds=[1], out=out)["rows"]}


@pytest.mark.slow
def test_all_contenders_share_the_link_each_in_its_way(tmp_path: Path) -> None:
    found = rows(tmp_path / "out")
    assert set(found) == set(CONTENDERS)
    for row in found.values():
        assert row["link_use"] > 0.97
        assert row["jain"] == pytest.approx(
            np.sum(row["rates_mbps"]) ** 2 / (9 * np.sum(np.square(row["rates_mbps"]))), rel=1e-3
        )
    # BBR has the link where nothing holds it back: in one queue, with CoDel, and in DualPI2's classic queue.
    for contender in ("fifo", "codel", "dualpi2"):
        assert found[contender]["part_bbr"] > 2
    # By flow there is no such thing.
    for contender in ("fq_codel", "drr", "meter"):
        assert found[contender]["jain"] > 0.98
    # Classes are between the two; by congestion control each of these has its share.
    for contender in ("hash", "rtt", "cca"):
        assert found["fifo"]["jain"] < found[contender]["jain"] < found["drr"]["jain"]
    assert all(0.85 < found["cca"][f"part_{control}"] < 1.15 for control in ("reno", "cubic", "bbr"))
    # In 12 s nobody can be told.
    assert found["told"]["told_right"] == 0
    assert "fct_s_mean" not in found["fifo"]


@pytest.mark.slow
def test_flows_of_a_size_have_completion_times(tmp_path: Path) -> None:
    contenders = ("fifo", "drr")
    found = rows(tmp_path / "out", contenders=contenders, size_mb=2.0, duration_s=20.0, warm_up_s=1.0)
    for contender in contenders:
        row = found[contender]
        flows = pl.read_parquet(tmp_path / "out" / "tables" / f"{contender}-1-1" / "flows.parquet")
        times = flows["completion_ms"].to_numpy() / 1e3
        assert row["unfinished"] == 0
        assert row["fct_s_mean"] == pytest.approx(times.mean())
        assert row["fct_s_p95"] == pytest.approx(np.percentile(times, 95))
        assert sorted(row["rates_mbps"]) == pytest.approx(sorted(2e6 * 8 / times / 1e6), abs=1e-3)
        # The link has been idle since the last end, which is no matter: of 20 s it would be 0.24.
        assert row["link_use"] > 0.3
    # Nobody finishes first at the others' cost.
    assert found["drr"]["jain"] > 0.95 > found["fifo"]["jain"]
    cut = rows(tmp_path / "cut", contenders=("drr",), size_mb=8.0)["drr"]
    assert cut["unfinished"] == 9
    assert cut["fct_s_mean"] == pytest.approx(12, abs=0.5)


class Seen(Teller):
    """One that is shown series, in place of a monitor's."""

    def look(self, seconds: float) -> None:
        """Have it look at a time."""
        self._look(round(seconds * PS_PER_S))


def test_a_flow_has_the_class_of_what_it_looks_like(monkeypatch: pytest.MonkeyPatch) -> None:
    controls, points, middle, spread = behaviour._known()
    kinds = ("cubic", "bbr")
    flows = {
        name: FiveTuple("10.0.0.1", "10.0.0.2", 6, 1000 + n, 80) for n, name in enumerate((*kinds, "new"))
    }
    known = {name: points[controls.index(name)] * spread + middle for name in kinds}
    classes: dict[FiveTuple, int] = {}
    teller = Seen(kinds, classes)
    shown = {id(teller.seen.setdefault(flow, Observed())): name for name, flow in flows.items()}
    monkeypatch.setattr(
        "tidegate.systems.separation.experiments.mix.figures",
        lambda seen: known.get(shown[id(seen)]),
    )
    teller.look(TOLD_EACH_S - 0.1)
    assert classes == {}
    teller.look(TOLD_EACH_S)
    assert classes == {flows["cubic"]: 0, flows["bbr"]: 1}


def test_who_is_not_there_is_not_told() -> None:
    controls, points, middle, spread = behaviour._known()
    assert len(points[0]) == len(FIGURES)
    for at, control in enumerate(controls):
        others = {"reno", "cubic", "bbr"} - {control}
        assert told(points[at] * spread + middle, others) in others
