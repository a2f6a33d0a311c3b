"""Classes of flows by their round-trip times."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.systems.separation.classes import NOISE, Classifier, breaks, goodness_of_fit


def test_natural_breaks() -> None:
    times = np.array([1.0, 1.1, 1.2, 10.0, 10.5, 50.0])
    ends = breaks(times, 3)
    assert 1.2 < ends[0] < 10 < 10.5 < ends[1] < 50
    assert goodness_of_fit(times, ends) > 0.99
    assert goodness_of_fit(times, []) == 0
    assert breaks(times, 1) == breaks(np.array([3.0, 3.0]), 4) == []
    # Classes whose means are nearly the same are one.
    assert breaks(np.array([10.0, 10.01, 10.02]), 3) == []


@given(st.lists(st.floats(0.001, 1.0), min_size=1, max_size=60), st.integers(1, 8))
def test_breaks_are_the_best_or_fewer(times: list[float], classes: int) -> None:
    values = np.array(times)
    ends = breaks(values, classes)
    assert ends == sorted(ends)
    assert len(ends) < classes or classes == 1
    sizes = np.bincount(np.searchsorted(ends, values), minlength=len(ends) + 1)
    assert sizes.min() > 0


def test_classes_stay_while_they_fit() -> None:
    classifier = Classifier(2)
    times = {"a": 10.0, "b": 11.0, "c": 40.0, "d": 42.0}
    assert classifier.classify(times) == {"a": 0, "b": 0, "c": 1, "d": 1}
    ends = list(classifier.ends)
    # A flow that comes a little beyond the break stays; one that goes far does not.
    assert classifier.classify(times | {"b": ends[0] * 1.05})["b"] == 0
    assert classifier.ends == ends
    assert classifier.classify(times | {"b": 41.0})["b"] == 1
    # When the times are others, so are the classes.
    assert classifier.classify({"a": 100.0, "b": 110.0, "c": 400.0, "d": 420.0}) == {
        "a": 0,
        "b": 0,
        "c": 1,
        "d": 1,
    }
    assert classifier.classify({}) == {}


@pytest.mark.parametrize("classes", [4, 7])
def test_breaks_follow_the_flows(classes: int) -> None:
    """As flows are found, those of short round-trip times first, and as they end."""
    times = np.sort(np.exp(np.random.default_rng(classes).uniform(0, np.log(224), 300)))
    classifier = Classifier(classes)
    changes = 0
    for first, last in [(0, n) for n in range(20, 301, 5)] + [(n, 300) for n in range(5, 281, 5)]:
        values, before = times[first:last], list(classifier.ends)
        classifier.classify(dict(enumerate(values)))
        changes += classifier.ends != before
        best = 1 - goodness_of_fit(values, breaks(values, classes))
        assert 1 - goodness_of_fit(values, classifier.ends) <= 1.1 * best + NOISE
    assert 10 < changes < 100, "of 113 sets of flows"


def test_breaks_stay_while_no_flow_comes_or_goes() -> None:
    rng = np.random.default_rng(1)
    times = np.exp(rng.uniform(0, np.log(224), 100))
    classifier = Classifier(4)
    classifier.classify(dict(enumerate(times)))
    ends = list(classifier.ends)
    for _ in range(50):
        classifier.classify(dict(enumerate(times * rng.uniform(0.98, 1.0, len(times)))))
    assert classifier.ends == ends


def test_a_time_that_has_fallen_below_a_break_counts_at_once() -> None:
    """The first samples of a flow may be too long. With its true time it would stay in the wrong class to its end."""
    classifier = Classifier(2)
    times = {"a": 10.0, "b": 11.0, "c": 27.0, "d": 30.0}
    assert classifier.classify(times) == {"a": 0, "b": 0, "c": 1, "d": 1}
    assert classifier.ends == [19.0]
    assert classifier.classify(times | {"c": 18.9})["c"] == 0
    # It was found anew, and has few samples.
    assert classifier.classify(times | {"c": 20.5})["c"] == 0
    assert classifier.classify(times | {"c": 21.0})["c"] == 1
    assert classifier.ends == [19.0]


def test_as_few_classes_as_fit() -> None:
    times = {n: 10.0 + n / 100 for n in range(10)} | {100 + n: 80.0 + n / 100 for n in range(10)}
    assert len(set(Classifier(8, by_fit=True).classify(times).values())) == 2
