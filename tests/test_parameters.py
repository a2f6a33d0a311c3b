"""What experiments' parameters can be, and what is said of others."""

from __future__ import annotations

import math
import pickle
from pathlib import Path
from typing import Any

import pytest

from tidegate import experiments
from tidegate._core import TidegateError
from tidegate.experiments import all_experiments, demand_warm_up, find

# Numbers that may be 0.
MAY_BE_0 = ("warm_up_s", "mark_above")
# Names that the network knows, and the kernel.
OPEN = ("congestion_control", "ecn", "queue", "link_rate")


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
        "aqm.rates: homes is here; known are data plane, control plane"
    )
    assert said("meter.rates", duration_s=1) == "meter.rates: duration_s is 1; give a number from 2 on"
    assert said("meter.rates", rates_mbps=(0,)) == "meter.rates: rates_mbps is 0; give a number above 0"
    assert said("aqm.symmetric", flows=(2, 1, 2)) == (
        "aqm.symmetric: two cases are pi2-120-5ms-2-2; give each value once"
    )
    assert said("aqm.symmetric", warm_up_s=120) == (
        "a warm-up of 120 s leaves nothing of 120 s; give less, or a longer run"
    )
    assert said("reference.dumbbell", ecn="much", flows=(1, 2)) == (
        "there is no ECN mode `much`; known: off, passive, on, accurate"
    )


def test_a_warm_up_may_be_nothing() -> None:
    demand_warm_up(0, 1)


def test_errors_come_from_other_processes_as_they_are() -> None:
    error = pickle.loads(pickle.dumps(TidegateError("why")))
    assert isinstance(error, TidegateError)
    assert str(error) == "why"
