"""The order of the test files where several processes run them."""

from __future__ import annotations

from pathlib import Path

import pytest

import conftest


def test_files_that_take_long_are_there() -> None:
    assert [name for name in conftest.LONGEST if not (conftest.ROOT / name).is_file()] == []


def test_they_begin_first_and_the_others_stay_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    class Item:
        def __init__(self, name: str) -> None:
            self.path = conftest.ROOT / Path(name)

    monkeypatch.setattr(conftest, "LONGEST", ("tests/d.py", "tests/b.py"))
    items = [Item(f"tests/{name}.py") for name in "aabbccdde"]
    before = list(items)
    conftest.pytest_collection_modifyitems(items)  # type: ignore[arg-type]
    assert items == [before[place] for place in (6, 7, 2, 3, 0, 1, 4, 5, 8)]
