"""The page of the Python interface has what the pages' Python uses."""

from __future__ import annotations

import ast
import importlib
import re

import pytest

from test_pages import PAGES, ROOT

SHOWN = set(re.findall(r"^::: (\S+)$", (ROOT / "docs/api.md").read_text(), re.MULTILINE))
IMPORT = re.compile(r"^ *from (tidegate(?:\.\w+)*) import (.+)$", re.MULTILINE)


def imported() -> set[tuple[str, str]]:
    """Modules and names that blocks of Python import, but those of systems, which the systems' pages have."""
    blocks = [
        block
        for page in PAGES
        for block in re.findall(r"^```python\n(.*?)^```", page.read_text(), re.M | re.S)
    ]
    found = {
        (module, name.strip())
        for block in blocks
        for module, names in IMPORT.findall(block)
        for name in names.split(",")
    }
    return {(module, name) for module, name in found if not module.startswith("tidegate.systems")}


def test_pages_import_some() -> None:
    assert ("tidegate.network", "Network") in imported()


@pytest.mark.parametrize(("module", "name"), sorted(imported()))
def test_what_pages_import_is_on_the_page(module: str, name: str) -> None:
    whole = f"{module}.{name}"
    if whole.removeprefix("tidegate.") in ("experiments", "p4", "control"):
        # A module of which parts are shown.
        assert any(shown.startswith(f"{whole}.") for shown in SHOWN)
        return
    assert whole in SHOWN or module in SHOWN, f"docs/api.md lacks `::: {whole}`"


@pytest.mark.parametrize("shown", sorted(SHOWN))
def test_what_is_shown_is_there_and_described(shown: str) -> None:
    module, _, name = shown.rpartition(".")
    source = ROOT / "python" / f"{module.replace('.', '/')}.py"
    if source.exists():
        # Not imported: what a module needs may be missing here.
        body = ast.parse(source.read_text()).body
        (found,) = (
            part for part in body if isinstance(part, ast.ClassDef | ast.FunctionDef) and part.name == name
        )
        assert ast.get_docstring(found)
        return
    try:
        assert importlib.import_module(shown).__doc__
    except ImportError:
        assert getattr(importlib.import_module(module), name).__doc__
