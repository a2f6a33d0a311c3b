"""Claims and figures of several seeds have a value for all of them: no seed takes the place of those before it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from tidegate.claims import Row
from tidegate.experiments import run
from tidegate.experiments.registry import find

PACKAGE = Path(__file__).resolve().parent.parent / "python" / "tidegate"
FILES = [
    file
    for folder in ("systems", "templates")
    for file in sorted((PACKAGE / folder).rglob("*.py"))
    if not file.name.startswith("test_")
]


def overwritten(text: str) -> list[int]:
    """Lines that make a dictionary of rows' values by keys without the seed: of several seeds it keeps the last.

    In `{label(row): row["x"] for row in rows}` and in `for row in rows: found[label(row)] = row["x"]`. `medians`, `least` and `most`
    (`tidegate.claims`) are for that.
    """
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.DictComp):
            targets = [generator.target for generator in node.generators]
            parts = [(node.key, node.value)]
        elif isinstance(node, ast.For):
            targets = [node.target]
            parts = [
                (step.targets[0].slice, step.value)
                for step in ast.walk(node)
                if isinstance(step, ast.Assign) and isinstance(step.targets[0], ast.Subscript)
            ]
        else:
            continue
        names = {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}
        found += [
            value.lineno
            for key, value in parts
            if "seed" not in ast.unparse(key) and _reads_row(value, names) and not _keeps_worst(value)
        ]
    return found


def _reads_row(value: ast.expr, names: set[str]) -> bool:
    return any(
        isinstance(part, ast.Subscript)
        and isinstance(part.value, ast.Name)
        and part.value.id in names
        and part.value.id.startswith("row")
        for part in ast.walk(value)
    )


def _keeps_worst(value: ast.expr) -> bool:
    """`max(found.get(label(row), 0.0), row["x"])`."""
    return (
        isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in ("max", "min")
    )


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("off = {row['case']: row['off'] - 1 for row in rows if row['off']}", [1]),
        ("of = {name: row[column] for name, row in zip(names, rows)}", [1]),
        ("for row in rows:\n    found[row['case']] = row['off']", [2]),
        ("full = {row['seed']: row['off'] for row in rows}", []),
        ("for row in rows:\n    most[row['case']] = max(most.get(row['case'], 0.0), row['off'])", []),
        ("ratios = {name: own[name] / other[name] for name in own}", []),
        ("off = medians(rows, 'off', lambda row: row['case'])", []),
    ],
)
def test_what_overwrites_seeds_is_seen(text: str, lines: list[int]) -> None:
    assert overwritten(text) == lines


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_no_seed_overwrites_another(file: Path) -> None:
    assert overwritten(file.read_text()) == []


SHORT: dict[str, dict[str, Any]] = {
    "aqm.burst": {"duration_s": 8},
    "combined.together": {"duration_s": 8},
    "meter.step": {"base_rtts_ms": (1.0,), "each_s": 6},
    "pacing.attack": {"attacks": ("none", "update"), "duration_s": 4.0},
    "pacing.hosts": {"flows": (3, 1), "duration_s": 3.0},
    "pacing.join": {"schemes": ("fq",), "settings": ("wan",), "buffers": (32,), "period_s": 2.0},
    "pacing.leave": {"rtts_ms": (5.0,)},
    "pacing.legacy": {"routers": (1,), "duration_s": 3.0},
    "pacing.reroute": {"delay_ms": 2.0},
    "pacing.unmanaged": {"cross_mbps": (20.0,)},
    "pacing.weights": {"weights": (1, 3), "duration_s": 3.0},
    "reference.policer": {},
    "separation.bufferbloat": {},
    "separation.mix": {"rate_mbps": 20.0, "duration_s": 12.0},
    "separation.rebalance": {"schemes": ("cap",), "rate_mbps": 20.0, "unit_s": 6.0},
    "separation.udp": {"schemes": ("cap",), "rate_mbps": 20.0, "unit_s": 6.0, "fair_s": 10.0},
    "stamping.join": {},
}
"""Experiments that take a second or two with these parameters."""


def as_seed(seed: int, rows: list[Row], parameters: dict[str, Any]) -> list[Row]:
    """These rows with another seed: what was measured is so many times as much."""
    given = {
        item for value in parameters.values() for item in (value if isinstance(value, tuple) else (value,))
    }

    def other(value: Any) -> Any:
        return value * seed if isinstance(value, float) and value not in given else value

    return [{**{column: other(value) for column, value in row.items()}, "seed": seed} for row in rows]


@pytest.mark.slow
@pytest.mark.parametrize("name", SHORT)
def test_claims_do_not_depend_on_the_order_of_the_seeds(name: str, tmp_path: Path) -> None:
    parameters = {**find(name).parameters(quick=True), **SHORT[name]}
    rows = run(name, parameters, seeds=[1], out=tmp_path / "out")["rows"]
    seeds = [rows, *(as_seed(seed, rows, parameters) for seed in (2, 3))]
    claims = find(name).planned(parameters).claims
    in_order, reversed_order = (
        claims([row for each in order for row in each]) for order in (seeds, seeds[::-1])
    )
    assert in_order
    assert in_order == reversed_order
    assert in_order != claims(rows)


RATES = {
    "scheme": "fair",
    "base_rtt_ms": 1.0,
    "target_mbps": 100,
    "relative_error": 0.0,
    "settled_error": 0.0,
    "settled_goodput_error": 0.0,
}
DATAGRAMS = {"scheme": "fair", "pattern": "constant", "target_mbps": 100, "relative_error": 0.0}
SHARE = {"scheme": "fair", "cell": "a", "flow": 0, "label": "cubic", "worst_10_s": 1.0, "total_error": 0.0}
STAMPS = {"parts": "stamps alone", "prague_mbps": 1.0, "cubic_mbps": 1.0, "stamp_mbps": 1.0}
ONE_RATE = {"schemes": ("fair",), "base_rtts_ms": (1.0,), "rates_mbps": (100,)}
ONE_POLICER = {"round_trips_us": (1000,), "rates_mbps": (100,)}
NEVER: dict[str, tuple[str, dict[str, Any], Row, str, float, float]] = {
    "excess": ("meter.rates", ONE_RATE, RATES, "settled_excess_10_s", 0.0, 0.06),
    "held": ("meter.udp", {}, {**DATAGRAMS, "offered": 2.0}, "excess_10_s", 0.0, 0.06),
    "whole": ("meter.udp", {}, {**DATAGRAMS, "offered": 0.5}, "loss", 0.0, 0.01),
    "near": ("meter.udp_near", {}, {**DATAGRAMS, "offered": 0.9, "goodput_error": 0.0}, "loss", 0.0, 0.01),
    "runs away": ("meter.matrix", {}, {**RATES, "congestion_control": "cubic"}, "excess_10_s", 0.1, 0.2),
    "overshoot": ("meter.step", {}, RATES, "overshoot", 0.0, 0.6),
    "bound": (
        "meter.second_chance",
        {},
        {**RATES, "kind": "flood", "setting": "on"},
        "over_bound",
        0.0,
        0.01,
    ),
    "bucket": ("meter.buckets", {}, {"case": "1", "size_kib": 1}, "goodput_error", -1.0, -0.9),
    "loss": ("meter.fair", {}, {**SHARE, "spared": True}, "retransmits", 0, 1),
    "stamps": ("combined.together", {}, {**STAMPS, "stamp_queue_ms_mean": 0.0}, "unstamped", 0, 1),
    "incast": (
        "stamping.incast",
        {"contenders": ("stamp",)},
        {"contender": "stamp", "senders": 8, "slowdown_last": 1.0},
        "timeouts",
        0,
        1,
    ),
    "policer": (
        "reference.policer",
        ONE_POLICER,
        {"case": "rtt1000us-100", "goodput_mbps": 95.0},
        "timeouts",
        0,
        1,
    ),
}
"""An experiment and its parameters, a row whose other columns break no claim, and a value of a column that breaks one."""


@pytest.mark.parametrize("what", NEVER)
def test_what_never_happens_happens_with_no_seed(what: str) -> None:
    name, parameters, row, column, good, bad = NEVER[what]
    one = find(name)
    claims = one.planned({**one.parameters(quick=True), **parameters}).claims

    def broken(*values: float) -> int:
        rows = [{**row, column: value, "seed": seed} for seed, value in enumerate(values, 1)]
        return sum(not claim.holds for claim in claims(rows))

    before = broken(good, good, good)
    assert broken(good, bad, good) == before + 1
    assert broken(bad, bad, bad) == before + 1
