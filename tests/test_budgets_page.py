"""The budgets of docs/security.md: each has a test that goes beyond it.

`budgets.tsv` has a line for each row of a table with the head `budget`: words that its row begins with, and the test (`FILE::NAME`, or a
file of its own); or `room`, where it is what is kept at hand, and no input is refused for it.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def budgets(text: str) -> list[str]:
    """Rows of tables of budgets, without the first bar."""
    found, inside = [], False
    for line in text.splitlines():
        if line.startswith("| budget |"):
            inside = True
        elif not line.startswith("|"):
            inside = False
        elif inside and not line.startswith("|---"):
            found.append(line.removeprefix("| "))
    return found


def table() -> list[tuple[str, str]]:
    lines = (ROOT / "tests/budgets.tsv").read_text().splitlines()
    return [(words, test) for words, test in (line.split("\t") for line in lines)]


def test_each_budget_has_a_test() -> None:
    rows = budgets((ROOT / "docs/security.md").read_text())
    known = [words for words, _ in table()]
    assert len(rows) > 100
    for row in rows:
        count = sum(row.startswith(words) for words in known)
        assert count == 1, f"docs/security.md has a budget of which tests/budgets.tsv has {count}: {row}"
    gone = [words for words in known if not any(row.startswith(words) for row in rows)]
    assert not gone, f"docs/security.md does not have these budgets: {gone}"


def test_the_tests_of_budgets_exist() -> None:
    for test in sorted({test for _, test in table()} - {"room"}):
        file, _, name = test.partition("::")
        path = ROOT / file
        assert path.is_file(), f"{test}: there is no such file"
        assert not name or re.search(rf"\b(def|fn) {name}\b", path.read_text()), (
            f"{test}: there is no such test"
        )


def test_a_budget_without_a_line_is_found() -> None:
    page = "| budget | default |\n|---|---|\n| a | 1 |\n\n| other | b |\n|---|---|\n| c | 2 |\n"
    assert budgets(page) == ["a | 1 |"]
