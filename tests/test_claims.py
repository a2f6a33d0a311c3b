"""Claims: whose they are, whether they hold, and why not."""

import json
from pathlib import Path
from typing import Any

import pytest

from tidegate.claims import Claim, Percents, Unit, between, mean_below, medians
from tidegate.experiments import run


def test_values_within_their_bounds() -> None:
    values = {"a": 1.0, "b": 2.0}
    claim = between("id", "ours", "all up to 2", values, 0, 2, form=Unit("ms"), why="never said")
    assert (claim.measured, claim.holds, claim.why, claim.published) == ("1 to 2 ms", True, None, None)


def test_values_that_are_not_as_claimed_are_named() -> None:
    values = {f"case {number}": float(number) for number in range(12)}
    claim = between("id", "paper", "all below 1", values, 0, 1, published="Fig. 1", why="they grow")
    assert (claim.holds, claim.why) == (False, "they grow")
    assert claim.measured.startswith("0 to 11; beyond: case 2 (2), case 3 (3)")
    assert claim.measured.endswith("case 9 (9) and 2 more of 12")
    shares = between("id", "ours", "", {"a": 0.1, "b": 0.5, "c": 0.101}, -1, 0.1, form=Percents())
    assert shares.measured == "+10.0 % to +50.0 %; beyond: b (+50.0 %), c (+10.1 %)"


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -0.1])
def test_what_is_no_number_is_not_within(value: float) -> None:
    assert not between("id", "ours", "", {"a": value}, 0, 1).holds


def test_nan_is_named_and_left_out_of_the_range() -> None:
    nan = float("nan")
    for values, measured in (
        ({"a": 0.5, "b": nan, "c": 0.25}, "0.25 to 0.5; beyond: b (nan)"),
        ({"a": nan}, "no numbers; beyond: a (nan)"),
    ):
        assert between("id", "ours", "", values, 0, 1).measured == measured


def test_without_values_nothing_holds() -> None:
    for claim in (between("id", "ours", "", {}), mean_below("id", "ours", "", {}, 1)):
        assert not claim.holds
        assert not claim.judged
    assert between("id", "ours", "", {}).why == "the run has nothing to measure it by"


def test_a_mean() -> None:
    assert mean_below("id", "ours", "", {"a": 0.0, "b": 0.9}, 0.5).measured == "0.45"
    assert not mean_below("id", "ours", "", {"a": 0.0, "b": 1.0}, 0.5).holds


def test_only_what_others_wrote_is_called_published() -> None:
    with pytest.raises(ValueError, match="a claim of ours has nothing published"):
        Claim("id", "ours", "", "Fig. 1", "", True)
    with pytest.raises(ValueError, match="every other one has"):
        Claim("id", "paper", "", None, "", True)


def test_medians_are_over_the_seeds() -> None:
    rows: list[dict[str, Any]] = [
        {"case": case, "x": x} for case, x in (("a", 1), ("a", 5), ("b", 2), ("a", 3))
    ]
    assert medians(rows, "x", lambda row: str(row["case"])) == {"a": 3.0, "b": 2.0}


def test_a_run_says_whose_its_claims_are(tmp_path: Path) -> None:
    # A queue that is never full and two seconds are not what ns-3 was measured with.
    settings = {"flows": (10,), "duration_s": 2, "warm_up_s": 1}
    answer = run("reference.dumbbell", settings, seeds=[1], out=tmp_path / "run")
    keys = {"id", "of", "statement", "published", "measured", "holds", "why"}
    claims = json.loads((tmp_path / "run" / "run.json").read_text())["claims"]
    assert claims == answer["claims"]
    assert [set(claim) for claim in claims] == [keys, keys]
    assert {claim["of"] for claim in claims} == {"peer"}
