"""Which tests a change concerns: those that import, directly or not, what has changed since a time.

A test of a module that only runs it in another process (`tidegate check` as a command, say) is not found by its imports. `make dev`
uses this for the time between two edits; `make test` runs all tests.
"""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PYTHON, TESTS = ROOT / "python", ROOT / "tests"
SYSTEMS = PYTHON / "tidegate" / "systems"
ALWAYS = tuple(TESTS / name for name in ("test_pages.py", "test_sizes.py", "test_same_results.py"))
"""They look at all pages, all files, and at what the compiled code computes."""


def files() -> Iterator[Path]:
    """What people write: sources, data beside them and pages."""
    for folder in (PYTHON, TESTS, ROOT / "docs", ROOT / "examples"):
        yield from (path for path in folder.rglob("*") if path.is_file() and _written(path))
    yield from (path for path in ROOT.iterdir() if path.suffix in (".md", ".py", ".toml"))


def _written(path: Path) -> bool:
    return path.suffix not in (".pyc", ".so") and not any(
        part.startswith((".", "__py")) for part in path.parts[-2:]
    )


def changed_since(time: float) -> set[Path]:
    """Files written later than `time` (seconds of the epoch)."""
    return {path for path in files() if path.stat().st_mtime > time}


def _module_file(module: str) -> Path | None:
    for base in (PYTHON, TESTS):
        place = base.joinpath(*module.split("."))
        for path in (place.with_suffix(".py"), place / "__init__.py"):
            if path.exists():
                return path
    return None


@cache
def imports(path: Path) -> frozenset[Path]:
    """Files that a Python file imports anywhere in it; none, if it is not Python yet. A file is read once."""
    found: set[Path] = set()
    try:
        tree = ast.parse(path.read_text())
    except SyntaxError:
        return frozenset()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{name.name}" for name in node.names)]
        else:
            continue
        for name in names:
            if file := _module_file(name):
                found.add(file)
    return frozenset(found)


def affected(changed: Iterable[Path]) -> set[Path]:
    """Test files that the change of these files concerns.

    A file of a system concerns all tests of the system: experiments are found by their folder, not by imports. A file that is not
    Python (P4, C, data) concerns the modules of its folder, and test files that have its name in them. The `conftest.py` of a folder
    concerns its tests.
    """
    importers: dict[Path, set[Path]] = defaultdict(set)
    sources = [path for path in files() if path.suffix == ".py"]
    for path in sources:
        for imported in imports(path):
            importers[imported].add(path)
    reached: set[Path] = set()
    waiting = list(changed)
    while waiting:
        path = waiting.pop()
        if path in reached:
            continue
        reached.add(path)
        waiting += importers[path]
        if path.is_relative_to(SYSTEMS):
            waiting += SYSTEMS.joinpath(path.relative_to(SYSTEMS).parts[0]).rglob("test_*.py")
        if path.name == "conftest.py":
            waiting += path.parent.rglob("test_*.py")
        elif path.suffix != ".py" and path.is_relative_to(PYTHON):
            waiting += path.parent.glob("*.py")
        if path.suffix != ".py":
            waiting += [
                source
                for source in sources
                if source.name.startswith("test_") and path.name in source.read_text()
            ]
    tests = {path for path in reached if path.name.startswith("test_") and path.suffix == ".py"}
    return tests | set(ALWAYS)
