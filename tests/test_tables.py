"""Tables on a terminal: what has no room is below, and nothing is cut off."""

from __future__ import annotations

import re
import sys

import pytest

from tidegate.cli.output import print_rows
from tidegate.cli.tables import show
from tidegate.compare.comparison import Comparison

ROWS = [
    {"case": f"access-{scheme}", "seed": seed, "scheme": scheme}
    | {
        f"column_{letter}_ms_mean": value * 1.2345678
        for letter, value in zip("abcdefg", range(7), strict=True)
    }
    for scheme in ("fifo", "fq_codel")
    for seed in (1, 2)
]


def terminal(width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """From now on standard output is one."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for name, value in {"TERM": "xterm", "NO_COLOR": "1", "COLUMNS": str(width)}.items():
        monkeypatch.setenv(name, value)


def printed(capsys: pytest.CaptureFixture[str]) -> str:
    """Without what makes headings bold."""
    return re.sub(r"\x1b\[[0-9;]*m", "", capsys.readouterr().out)


@pytest.mark.parametrize("width", [60, 80, 120, 400])
def test_no_number_and_no_heading_is_cut_off(
    width: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(width, monkeypatch)
    print_rows(ROWS, ())
    said = printed(capsys)
    assert max(map(len, said.splitlines())) <= width
    for name, value in ROWS[-1].items():
        assert name in said
        assert (f"{value:.4g}" if isinstance(value, float) else str(value)) in said
    # Each part says which runs it is of.
    parts = said.split("┏")[1:]
    assert len(parts) == 1 if width == 400 else len(parts) > 1
    for part in parts:
        found = re.findall(r"^│ (\S+) +│ +(\d) │", part, re.MULTILINE)
        assert found == [(row["case"], str(row["seed"])) for row in ROWS]


def test_a_word_that_is_wider_than_the_terminal_is_folded(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    terminal(30, monkeypatch)
    show(["case", "text"], [["one", "x" * 90]], keys=1)
    said = printed(capsys)
    assert said.count("x") - said.count("tex") == 90
    assert max(map(len, said.splitlines())) <= 30


def test_a_pipe_has_one_table_however_wide(capsys: pytest.CaptureFixture[str]) -> None:
    wide = [{"case": "a"} | {f"a_column_with_a_long_name_{number}": 0.123456 for number in range(20)}]
    print_rows(wide, ())
    said = printed(capsys)
    assert len(said.splitlines()) == 5
    assert all(name in said for name in wide[0])
    assert said.count("0.1235") == 20


def test_a_comparison_of_many_sides(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from tidegate.cli.compare import _print

    terminal(80, monkeypatch)
    names = [f"scheme_number_{number}" for number in range(9)]
    side = {
        "median": 123.456,
        "least": 101.2,
        "most": 145.6,
        "difference": -17.5,
        "interval": (-20.25, -11.5),
    }
    row = {"case": "access", "label": "", "quantity": "short_ms", "unit": "ms"}
    sides = [{"name": name, "differs": True, "paired": 6, **side} for name in names]
    _print(Comparison(sides=sides, rows=[{**row, "sides": sides}], confidence=0.95))
    said = printed(capsys)
    assert all(name in said for name in names)
    assert said.count("145.6];") == said.count("(-20.2") == 9
