"""What experiments' parameters can be, and what is said of others."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from tidegate import experiments
from tidegate._core import TidegateError
from tidegate.experiments import all_experiments, clock_time, demand_warm_up, find, sweep, with_settings

# Numbers that may be 0.
MAY_BE_0 = (
    "warm_up_s",
    "mark_above",
    "fractions",
    "losses_percent",
    "routers",
    "random_chains",
    "rtt_weights",
    "latencies",
    "size_mb",
)
# Names that the network knows, the kernel, and the file system.
OPEN = ("congestion_control", "ecn", "queue", "link_rate", "flow_list")


def wrong(name: str, default: Any) -> list[Any]:
    """Values that a parameter with this default cannot have."""
    one = default[0] if isinstance(default, tuple) else default
    if isinstance(one, str):
        values: list[Any] = [] if name in OPEN else ["nonsense"]
    else:
        values = [-1] if name in MAY_BE_0 else [0, -1]
        values += [math.nan, math.inf] if isinstance(one, float) else []
    return [(value,) for value in values] + [()] if isinstance(default, tuple) else values


WRONG = [
    (name, parameter, value)
    for name, one in all_experiments().items()
    for parameter, default in one.parameters().items()
    for value in wrong(parameter, default)
]


@pytest.mark.parametrize(("name", "parameter", "value"), WRONG)
def test_values_that_make_no_sense(name: str, parameter: str, value: Any) -> None:
    one = find(name)
    one.check(one.parameters())
    with pytest.raises(TidegateError, match=rf"{name}: {parameter} (is|has nothing)"):
        one.check({**one.parameters(), parameter: value})


def test_the_message_says_what_to_give(tmp_path: Path) -> None:
    def said(name: str, **given: Any) -> str:
        with pytest.raises(TidegateError) as refused:
            experiments.run(name, {**find(name).parameters(), **given}, seeds=[1], out=tmp_path / "out")
        assert list(tmp_path.iterdir()) == []
        return str(refused.value)

    assert said("aqm.rates", homes=("here",)) == (
        "aqm.rates: homes is 'here'; known are data plane, control plane"
    )
    assert said("meter.rates", duration_s=1) == "meter.rates: duration_s is 1; give a number from 2 to 1e+09"
    assert (
        said("meter.rates", rates_mbps=(0,))
        == "meter.rates: rates_mbps is 0; give a number above 0 and up to 1e+09"
    )
    assert said("aqm.symmetric", flows=(2, 1, 2)) == "aqm.symmetric: flows has a value twice; give each once"
    assert said("aqm.symmetric", base_rtts_ms=(5.0, 5.0000001)) == (
        "aqm.symmetric: two cases are pi2-120-5ms-1-1; give each value once"
    )
    assert said("aqm.symmetric", warm_up_s=120) == (
        "a warm-up of 120 s leaves nothing of 120 s; give a smaller warm_up_s, or a larger duration_s"
    )
    assert said("stamping.hops", warm_up_ms=500, duration_ms=400) == (
        "a warm-up of 500 ms leaves nothing of 400 ms; give a smaller warm_up_ms, or a larger duration_ms"
    )
    assert said("reference.dumbbell", ecn="much", flows=(1, 2)) == (
        "the TCP flow a0 -> b0: there is no ECN mode `much`; known: off, passive, on, accurate"
    )


def test_values_and_settings_are_given_once() -> None:
    one = find("reference.policer")
    with pytest.raises(TidegateError, match="rates_mbps has a value twice; give each once"):
        one.check({**one.parameters(), "rates_mbps": (100, 100)})
    with pytest.raises(TidegateError, match="rates_mbps is set twice; a list is written as rates_mbps=1,2"):
        with_settings(one, ["rates_mbps=100", "rates_mbps=200"])


def test_words_for_true_and_false_and_names_in_lists() -> None:
    one = find("pacing.attack")
    assert with_settings(one, ["keyed=false"])["keyed"] == (False,)
    assert with_settings(one, [" keyed = no, TRUE "])["keyed"] == (False, True)
    assert sweep.read_over(one, ["keyed=false,true"]) == {"keyed": [(False,), (True,)]}
    with pytest.raises(TidegateError, match="'maybe' is not true or false"):
        with_settings(one, ["keyed=maybe"])
    assert with_settings(find("meter.rates"), ["schemes=plain, fair"])["schemes"] == ("plain", "fair")
    assert with_settings(find("meter.rates"), ["ecn= off"])["ecn"] == "off"


def test_how_long_cases_take_by_the_clock() -> None:
    one = find("meter.step")
    parameters = one.parameters(quick=True)
    few = {**parameters, "base_rtts_ms": (0.5,), "schemes": ("fair",)}
    assert clock_time(one, few, 1) == "60 s"
    assert clock_time(one, parameters, 1) == "6 min"
    assert clock_time(one, parameters, 25) == "2 h 30 min"


def test_a_warm_up_may_be_nothing() -> None:
    demand_warm_up(0, 1)


def test_errors_come_from_other_processes_as_they_are() -> None:
    error = pickle.loads(pickle.dumps(TidegateError("why")))
    assert isinstance(error, TidegateError)
    assert str(error) == "why"


@pytest.mark.parametrize(
    ("name", "parameter"),
    [
        (name, parameter)
        for name, one in all_experiments().items()
        for parameter in one.parameters()
        if parameter.endswith("flows") or parameter in ("numbers", "most", "meters", "long")
    ],
)
def test_there_are_no_more_flows_than_memory_for_them(name: str, parameter: str) -> None:
    one = find(name)
    many: Any = (10**6,) if isinstance(one.parameters()[parameter], tuple) else 10**6
    with pytest.raises(
        TidegateError, match=rf"{parameter} is 1000000; give a number from 1 to (1000|10000|65536)$"
    ):
        one.check({**one.parameters(), parameter: many})


@pytest.mark.parametrize("name", all_experiments())
def test_quick_changes_defaults_and_nothing_else(name: str) -> None:
    one = find(name)
    assert one.quick
    assert one.quick.keys() <= one.parameters().keys()
    one.check(one.parameters(quick=True))
    assert one.live.keys() <= one.parameters().keys()
    assert one.live_quick.keys() <= one.parameters().keys()
    assert "live" in one.backends or not (one.live or one.live_quick)
    one.check(one.parameters(quick=True, backend="live"))


@pytest.mark.slow
def test_what_is_set_holds_with_quick_too_and_is_what_ran(tmp_path: Path) -> None:
    one = find("reference.dumbbell")
    parameters = with_settings(one, ["flows=1", "duration_s=3"], quick=True)
    answer = experiments.run(one.name, parameters, seeds=[1], quick=True, out=tmp_path / "out")
    assert (answer["parameters"]["duration_s"], answer["parameters"]["warm_up_s"]) == (3, 2)
    flows = pl.read_parquet(tmp_path / "out" / "tables" / "n1-1" / "queue_samples.parquet")
    assert flows["time_s"].max() == pytest.approx(3, abs=0.02)
    assert experiments.replot(tmp_path / "out").exists()


def test_parameters_that_leave_nothing_to_run(tmp_path: Path) -> None:
    # Prague is not run over drop tail.
    with pytest.raises(TidegateError, match=r"aqm\.burst: with these parameters there is nothing to run"):
        experiments.run(
            "aqm.burst", {"ways": ("droptail",), "controls": ("prague",)}, seeds=[1], out=tmp_path / "out"
        )
    assert list(tmp_path.iterdir()) == []


def test_a_run_in_which_nothing_gets_through(tmp_path: Path) -> None:
    given = {"homes": ("data plane",), "base_rtt_ms": 1e6}
    with pytest.raises(TidegateError, match=r"no flow got anything through from .* give a longer run"):
        experiments.run("aqm.rates", given, seeds=[1], quick=True, out=tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_second_name_finds_the_same_experiment() -> None:
    known = all_experiments()
    second = {one.also: name for name, one in known.items() if one.also}
    assert not second.keys() & known.keys()
    assert second["aqm.controller_placement"] == "aqm.homes"
    for also, name in second.items():
        assert also is not None
        assert find(also) is known[name]
