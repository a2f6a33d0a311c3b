"""`make bench-pairs`: the ratios of turns."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

TOOL = Path(__file__).parent.parent / "tools/bench_pairs.py"
SPEC = importlib.util.spec_from_file_location("bench_pairs", TOOL)
assert SPEC is not None
assert SPEC.loader is not None
bench_pairs = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(bench_pairs)


def test_figures_are_told_apart_by_their_unit() -> None:
    rows = [
        {"name": "router", "value": 50.0, "unit": "ns/packet"},
        {"name": "router", "value": 20.0, "unit": "Mpps", "goal": "at least 8"},
        {"name": "never", "value": 0.0, "unit": "ns"},
    ]
    assert bench_pairs.figures_of("packets", json.dumps(rows)) == {
        "router, ns/packet": 50.0,
        "router, Mpps": 20.0,
    }
    speed = [{"what": "dumbbell", "value": 75.5, "unit": "ns"}]
    assert bench_pairs.figures_of("speed", json.dumps(speed)) == {"dumbbell, ns": 75.5}


def test_a_ratio_is_the_median_of_those_of_turns() -> None:
    turns = [({"a": 10.0, "gone": 1.0}, {"a": other, "new": 1.0}) for other in (5.0, 20.0, 8.0)]
    (row,) = bench_pairs.compared(turns)
    assert row == {"figure": "a", "other": 10.0, "this": 8.0, "ratio": 0.8, "least": 0.5, "most": 2.0}


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["no-such-revision"], "bench-pairs: git rev-parse --verify no-such-revision^{commit}: "),
        (["HEAD", "--rounds", "0"], "--rounds is 1 or more"),
    ],
)
def test_bad_words_are_refused_before_anything_is_built(words: list[str], why: str) -> None:
    done = subprocess.run([sys.executable, TOOL, *words], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert why in done.stderr
    assert "Traceback" not in done.stderr
