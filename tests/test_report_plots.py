"""What reports of sweeps, studies and comparisons draw: places, values, spread and names, from the rows."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np
import pytest

from tidegate.experiments.landscape import Landscape
from tidegate.report import page
from tidegate.report.plots import Line, comparison_plots, row_axes, row_plots, study_plots, sweep_plots


def values(line: Line) -> list[float | None]:
    return [None if np.isnan(one) else float(one) for one in line.y]


def sweep(over: dict[str, list[Any]], **how: Any) -> dict[str, Any]:
    """A sweep whose column is the product of its numbers and seeds."""
    rows: list[dict[str, Any]] = [{}]
    for name, each in {**over, "seed": [1, 3, 2]}.items():
        rows = [{**row, name: one} for row in rows for one in each]
    for row in rows:
        numbers = [value for value in row.values() if not isinstance(value, str)]
        row |= {"of": "case", "y_ms": float(np.prod(numbers))}
    return {"landscape": Landscape(tuple(over), column="y_ms", **how).as_json(), "rows": rows}


def test_a_sweep_over_numbers_is_a_line_with_its_spread() -> None:
    (plot,) = sweep_plots(sweep({"n": [40, 1, 2]}))
    assert (plot.title, plot.unit, plot.over, plot.log) == ("y_ms", "ms", "n", True)
    assert plot.x.tolist() == [1.0, 2.0, 40.0]
    (line,) = plot.lines
    assert values(line) == [2.0, 4.0, 80.0]
    assert line.ends is not None
    assert [end.tolist() for end in line.ends] == [[1.0, 2.0, 40.0], [3.0, 6.0, 120.0]]
    assert line.texts[0] == "[1 to 3; 3]"
    assert not line.points


def test_a_sweep_over_names_has_places_and_over_two_parameters_a_line_for_each_value() -> None:
    (plot,) = sweep_plots(sweep({"control": ["reno", "cubic"], "n": [1, 2], "m": [1, 5]}))
    assert (list(plot.ticks), plot.x.tolist(), plot.log) == (["reno", "cubic"], [0.0, 1.0], False)
    assert [(line.name, values(line), line.points) for line in plot.lines] == [
        ("n 1", [4.0, 4.0], True),
        ("n 2", [8.0, 8.0], True),
    ]
    assert plot.note == "Medians over m."


def test_a_sweep_of_many_values_says_what_it_leaves_out() -> None:
    (plot,) = sweep_plots(sweep({"n": [1, 2], "m": list(range(1, 21))}))
    assert (len(plot.lines), plot.note) == (12, "The first 12 of 20 values.")


def ran(**parameters: list[Any]) -> dict[str, Any]:
    """A run whose column is the product of its numbers and seeds; the parameter `rates_mbps` is a column `target_mbps`."""
    rows: list[dict[str, Any]] = [{"case": ""}]
    for name, each in parameters.items():
        column = {"rates_mbps": "target_mbps", "schemes": "scheme"}.get(name, name)
        rows = [{**row, "case": f"{row['case']}-{one}", column: one} for row in rows for one in each]
    rows = [{**row, "seed": seed} for row in rows for seed in (1, 3)]
    for row in rows:
        product = float(np.prod([value for value in row.values() if not isinstance(value, str)]))
        row |= {"burst_kib": len(str(row.get("scheme"))), "count": product, "y_ms": product, "same": 5}
    return {"parameters": {**parameters, "duration_s": 2}, "rows": rows}


def test_a_run_s_rows_are_over_the_number_with_most_values_and_words_are_lines() -> None:
    record = ran(base_ms=[1, 2], schemes=["a", "bb"], rates_mbps=[10, 20, 30])
    assert row_axes(record) == ["target_mbps", "scheme", "base_ms"]
    found = row_plots(record)
    assert list(found) == ["y_ms", "burst_kib", "count"]
    first, second = found["y_ms"]
    assert (first.title, second.title) == ("y_ms, base_ms 1", "y_ms, base_ms 2")
    assert (first.unit, first.over, first.x.tolist()) == ("ms", "target_mbps (Mbit/s)", [10.0, 20.0, 30.0])
    assert [(line.name, values(line)) for line in second.lines] == [
        ("scheme a", [40.0, 80.0, 120.0]),
        ("scheme bb", [40.0, 80.0, 120.0]),
    ]
    assert second.lines[0].texts[0] == "[20 to 60; 2]"


def test_further_parameters_are_told_in_a_note() -> None:
    record = ran(m=[1, 2], n=[1, 2, 3], o=[4, 5], schemes=["a", "bb"])
    assert row_axes(record) == ["n", "scheme", "m", "o"]
    assert {plot.note for plot in row_plots(record)["y_ms"]} == {"Medians over o."}


def test_cases_that_no_column_tells_apart_are_places() -> None:
    record = ran(n=[1, 2], schemes=["a", "bb"])
    for row in record["rows"]:
        del row["n"]
    assert row_axes(record) == ["case"]
    (plot,) = row_plots(record)["y_ms"]
    assert list(plot.ticks) == ["-1-a", "-1-bb", "-2-a", "-2-bb"]


@pytest.mark.parametrize("rows", [[], [{"case": "a", "seed": 1, "y": 1}], [{"y": 1}, {"y": 2}]])
def test_a_run_of_one_case_has_no_charts_of_rows(rows: list[dict[str, Any]]) -> None:
    record = {"parameters": {"n": [1]}, "rows": rows}
    assert (row_axes(record), row_plots(record)) == ([], {})


@pytest.mark.parametrize("landscape", [Landscape(("n",), column="no"), Landscape(("n",), by="no")])
def test_a_sweep_without_its_column_has_none(landscape: Landscape) -> None:
    record = sweep({"n": [1, 2]})
    assert sweep_plots({**record, "landscape": landscape.as_json()}) == []
    assert sweep_plots({**record, "rows": []}) == []


def test_a_study_has_its_history_its_slices_and_its_front() -> None:
    trials = [
        {"trial": 0, "state": "complete", "mtu": 900, "control": "reno", "drops": 5.0, "y_mbps": 1.0},
        {"trial": 1, "state": "fail", "mtu": 950, "control": "reno", "drops": None, "y_mbps": None},
        {"trial": 2, "state": "complete", "mtu": 600, "control": "cubic", "drops": 7.0, "y_mbps": 3.0},
        {"trial": 3, "state": "complete", "mtu": 700, "control": "reno", "drops": 6.0, "y_mbps": 2.0},
    ]
    record = {
        "objectives": [["drops", "minimize"], ["y_mbps", "maximize"]],
        "ranges": ["mtu=600:900:log", "control=reno,cubic"],
        "trials": trials,
        "best": [{"trial": 0}, {"trial": 2}],
    }
    plots = study_plots(record)
    assert [(one.title, one.over, one.log) for one in plots] == [
        ("drops", "trial", False),
        ("drops", "mtu", True),
        ("drops", "control", False),
        ("y_mbps", "trial", False),
        ("y_mbps", "mtu", True),
        ("y_mbps", "control", False),
        ("y_mbps", "drops", False),
    ]
    history, by_mtu, by_control, *_, front = plots
    assert [values(line) for line in history.lines] == [[5.0, 7.0, 6.0], [5.0, 5.0, 5.0]]
    assert [values(line) for line in plots[3].lines][1] == [1.0, 3.0, 3.0]
    assert by_mtu.x.tolist() == [600.0, 700.0, 900.0]
    assert [values(line) for line in by_mtu.lines] == [[None, 6.0, None], [7.0, None, 5.0]]
    assert list(by_mtu.lines[0].texts) == ["(trial 2)", "(trial 3)", "(trial 0)"]
    assert (list(by_control.ticks), by_control.x.tolist()) == (["reno", "cubic"], [-0.15, 0.15, 1.0])
    assert (front.x.tolist(), values(front.lines[1])) == ([5.0, 6.0, 7.0], [1.0, None, 3.0])
    assert study_plots({**record, "trials": trials[1:2]}) == []


def test_an_objective_with_an_aggregate_has_its_unit() -> None:
    record = {
        "objectives": [["queue_ms, p95", "minimize"]],
        "ranges": [],
        "trials": [{"trial": 0, "state": "complete", "queue_ms, p95": 2.0, "n": 1}],
        "best": [{"trial": 0}],
    }
    assert [(one.title, one.unit) for one in study_plots(record)] == [("queue_ms, p95", "ms")] * 2


def test_what_has_no_place_on_an_axis_is_a_gap() -> None:
    record = sweep({"n": [1, 2]})
    record["rows"][0]["y_ms"] = float("inf")
    record["landscape"]["column"] = "y_ms:max"
    (plot,) = sweep_plots(record)
    drawn = page._drawn(plot)
    for packed in (drawn["series"][0][1], drawn["over"]["ends"][0][1]):
        assert np.isnan(np.frombuffer(base64.b64decode(packed), "<f4")).tolist() == [True, False]


def test_a_comparison_has_each_side_beside_the_other_at_each_case() -> None:
    def row(case: str, *medians: float | None) -> dict[str, Any]:
        sides: list[dict[str, Any]] = [
            {"median": one, "least": one and one - 1, "most": one and one + 1} for one in medians
        ]
        sides[1] |= {"difference": 2.0, "interval": [1.0, 3.0]}
        return {"case": case, "label": "", "quantity": "rtt_ms", "unit": "ms", "sides": sides}

    record = {"sides": [{"name": "a"}, {"name": "b"}], "rows": [row("x", 4.0, 6.0), row("y", None, 5.0)]}
    (plot,) = comparison_plots(record)
    assert (plot.title, plot.unit, list(plot.ticks)) == ("rtt_ms", "ms", ["x", "y"])
    assert plot.x.tolist() == pytest.approx([-0.15, 0.15, 0.85, 1.15])
    assert [values(line) for line in plot.lines] == [[4.0, None, None, None], [None, 6.0, None, 5.0]]
    assert plot.lines[1].texts[1] == "[5 to 7]; difference +2 (+1 to +3)"
    assert all(line.points for line in plot.lines)
