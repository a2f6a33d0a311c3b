"""How long runs are said to take."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import Run
from tidegate.experiments import Status, find, run, size
from tidegate.progress import Estimate, Pace


class Clock:
    """A clock that is set by hand."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def test_the_time_left_comes_from_what_is_done() -> None:
    now = Clock()
    pace = Pace(now)
    assert pace.left_s(0, 10) is None
    now.now += 1
    assert pace.left_s(1, 10) is None
    now.now += 3
    assert pace.left_s(2, 10) == pytest.approx(16)


def test_what_an_earlier_run_has_done_took_no_time() -> None:
    now = Clock()
    pace = Pace(now)
    assert pace.left_s(8, 10) is None
    now.now += 4
    assert pace.left_s(9, 10) == pytest.approx(4)


def test_the_estimate_is_said_once_and_only_of_long_runs() -> None:
    now, said = Clock(), list[str]()
    estimate = Estimate(said.append, now)
    estimate(0, 100)
    for _ in range(40):
        now.now += 0.1
        estimate((now.now - 50) / 4, 100)
    assert len(said) == 1
    assert re.fullmatch(r"about 6:40 in all, by what the first 3 s have got done", said[0])
    short = list[str]()
    now.now = 50
    estimate = Estimate(short.append, now)
    estimate(0, 4)
    now.now += 3.5
    estimate(2, 4)
    now.now += 3.5
    estimate(3.9, 4)
    assert short == []


def test_a_slow_beginning_is_waited_for() -> None:
    now, said = Clock(), list[str]()
    estimate = Estimate(said.append, now)
    estimate(0, 1000)
    # Nothing is done for ten minutes, as where a cluster has no worker yet; that says nothing of how long a run takes.
    now.now += 600
    estimate(0.5, 1000)
    assert said == []
    now.now += 26
    estimate(3, 1000)
    assert said == []
    now.now += 5
    estimate(3.6, 1000)
    assert said == ["about 2:56:35 in all, by what the first 31 s have got done"]


def test_without_a_bar_it_is_said_again_how_long_the_rest_takes() -> None:
    now, said = Clock(), list[str]()
    estimate = Estimate(said.append, now, again=True)
    estimate(0, 100)
    for _ in range(3600):
        now.now += 1
        estimate((now.now - 50) / 36, 100)
    assert said[:3] == [
        "about 1:00:00 in all, by what the first 17 s have got done",
        "6 % done, about 56:42 left",
        "10 % done, about 53:42 left",
    ]
    assert len(said) == 20
    now, said = Clock(), list[str]()
    estimate = Estimate(said.append, now, again=True)
    estimate(0, 10)
    for done in range(1, 11):
        now.now += 300 if done == 1 else 20
        estimate(done, 10)
    assert said == [
        "about 8:00 in all, by what the first 20 s have got done",
        "50 % done, about 1:40 left",
        "80 % done, about 0:40 left",
    ]


def test_how_much_there_is_to_do() -> None:
    one = find("meter.rates")
    assert size(
        one, {**one.parameters(), "rates_mbps": (10,), "base_rtts_ms": (1.0,), "schemes": ("plain",)}, 3
    ) == (
        3,
        "9 min",
    )
    one = find("stamping.noise")
    assert size(one, one.parameters(), 1)[1].endswith(" s")


def test_a_run_says_at_the_start_how_much_there_is_to_do(tidegate: Run, tmp_path: Path) -> None:
    few = ("run", "reference.policer", "--set", "duration_s=2", "--set", "rates_mbps=10")
    done = tidegate(*few, "--out", tmp_path / "out", process=True)
    assert done.code == 0
    assert re.match(
        r"reference.policer: \d+ runs of \d+ s of simulated time in all, on \d+ processors; --quick", done.err
    )
    done = tidegate(*few, "--quick", "--out", tmp_path / "out", process=True)
    assert done.err == ""


@pytest.mark.slow
def test_who_watches_hears_of_each_run_once(tmp_path: Path) -> None:
    heard: list[Status] = []
    parameters = {"flows": (1, 2), "duration_s": 2, "warm_up_s": 1}
    answer = run("reference.dumbbell", parameters, seeds=[1], out=tmp_path / "out", watch=heard.append)
    ended = [one for status in heard for one in status.finished]
    assert [one.case for one in ended] == ["n1", "n2"]
    assert [row for one in ended for row in one.rows or ()] == answer["rows"]
    assert {name for status in heard for name in status.running} == {"n1", "n2"}
    assert [status.done for status in heard] == sorted(status.done for status in heard)
    assert (heard[-1].done, heard[-1].total) == (2, 2)
