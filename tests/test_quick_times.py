"""What says whether each `--quick` ends in a minute on two processors; `quick_times.py` itself runs before a release."""

from __future__ import annotations

import os

import pytest

import quick_times
from quick_times import Took, main


@pytest.mark.parametrize(
    ("clock_s", "processor_s", "verdict"),
    [
        (50, 95, "in time"),
        (300, 55, "in time"),  # on a machine with other work
        (70, 110, "slow here"),
        (70, 121, "too long"),
        (59, 121, "in time"),
        (70, 69, "too long"),  # one process, which a second processor does not help
        (70, 64, "too long"),
        (66, 70, "too long"),
        (90, 70, "slow here"),
        (61, 59, "in time"),
    ],
)
def test_a_verdict_is_of_a_machine_with_nothing_else_to_do(
    clock_s: float, processor_s: float, verdict: str
) -> None:
    assert Took(clock_s, processor_s).verdict == verdict


def test_an_experiment_that_takes_too_long_fails(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(os, "sched_setaffinity", lambda *given: None)
    took = {"meter.rates": Took(200, 300)}
    monkeypatch.setattr(quick_times, "measure", lambda name: took.get(name, Took(9, 9)))
    assert main(["--only", "meter."]) == 1
    shown = capsys.readouterr()
    assert "meter.rates: 200 s, 300 s of processor time, too long" in shown.out
    assert "meter.fair: 9 s, 9 s of processor time, in time" in shown.out
    assert shown.err == "not in a minute on two processors: meter.rates\n"
    assert main(["--only", "meter.fair"]) == 0


@pytest.mark.slow
def test_a_run_is_measured_with_its_processes() -> None:
    took = quick_times.measure("reference.dumbbell")
    assert took.processor_s > 0.1
    assert took.clock_s > 0
