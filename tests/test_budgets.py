"""Each budget of docs/security.md has a test that goes beyond it, named in `budgets.tsv`: section of the page, words of the row, test.

A row may have several lines, of its parts.
"""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "security.md"
Line = tuple[str, str, str]


def budgets(text: str) -> list[tuple[str, str]]:
    """Section and row of each budget: rows of tables whose first column is called so."""
    found = []
    section, inside = "", False
    for line in text.splitlines():
        if line.startswith("#"):
            section = line.lstrip("# ")
        if not line.startswith("|"):
            inside = False
        elif line.startswith("| budget |"):
            inside = True
        elif inside and not line.startswith("|--"):
            found.append((section, line))
    return found


def table() -> list[Line]:
    lines = []
    for line in (ROOT / "tests" / "budgets.tsv").read_text().splitlines():
        section, words, test = line.split("\t")
        lines.append((section, words, test))
    return lines


def without_test(rows: list[tuple[str, str]], lines: list[Line]) -> list[tuple[str, str]]:
    return [
        (section, row)
        for section, row in rows
        if not any(of == section and words in row for of, words, _ in lines)
    ]


def test_each_budget_has_a_test() -> None:
    rows = budgets(PAGE.read_text())
    assert len(rows) > 110
    assert not without_test(rows, table()), "name the test that goes beyond it in tests/budgets.tsv"


def test_each_line_is_of_one_budget() -> None:
    rows = budgets(PAGE.read_text())
    for section, words, _ in table():
        found = [row for of, row in rows if of == section and words in row]
        assert len(found) == 1, f"{words!r} is in {len(found)} rows of {section!r} in docs/security.md"
    assert max(Counter(table()).values()) == 1


@pytest.mark.parametrize("test", sorted({test for _, _, test in table()}))
def test_the_tests_exist(test: str) -> None:
    file, name = test.split("::")
    path = ROOT / file
    assert path.is_file(), f"{test}: there is no such file"
    # A Rust test has its attribute.
    form = (
        rf"^def {name}\(" if path.suffix == ".py" else rf"#\[test\]\n(?:\s*(?:#\[|//).*\n)*\s*fn {name}\(\)"
    )
    assert re.search(form, path.read_text(), re.MULTILINE), f"{test}: there is no such test"


def test_a_budget_without_a_line_is_found() -> None:
    text = "## A\n\n| budget | default |\n|---|---|\n| bytes of a thing | 1 |\n| things | 2 |\n\n| what |\n|---|\n| else |\n"
    rows = budgets(text)
    assert rows == [("A", "| bytes of a thing | 1 |"), ("A", "| things | 2 |")]
    lines = [("A", "bytes of a thing", "test"), ("B", "things", "test")]
    assert without_test(rows, lines) == [("A", "| things | 2 |")]
