"""Digests of the files that results depend on: Tidegate's own, and those of an experiment that is the user's.

Each is computed once a process, as the files are loaded once.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

from tidegate.experiments import user_code
from tidegate.experiments.registry import find

KINDS = (".py", ".p4", ".h", ".c", ".so", ".cdf", ".trace")
"""Sources, the compiled simulator, and data."""


def of_experiment(name: str) -> dict[str, str]:
    """Digests of what makes an experiment's results, by whose files they are."""
    file = Path(inspect.unwrap(find(name).plan).__code__.co_filename).resolve()
    if file.is_relative_to(user_code.PACKAGE):
        return {"tidegate": of_tidegate()}
    return {"tidegate": of_tidegate(), "experiment": _of_file(file)}


@cache
def of_tidegate() -> str:
    """Of Tidegate's own files, with the simulator."""
    return _digest(user_code.PACKAGE, _sources(user_code.PACKAGE))


@cache
def _of_file(file: Path) -> str:
    """Of a file, what is beside it and what it has loaded from below; or of the package that it is in."""
    top = file.parent
    while (top / "__init__.py").exists():
        top = top.parent
    if top == file.parent:
        return _digest(top, sorted({file, *_kept(top.iterdir()), *_loaded(top)}))
    return _digest(top, _sources(top / file.relative_to(top).parts[0]))


def _sources(folder: Path) -> list[Path]:
    return sorted(_kept(folder.rglob("*")))


def _kept(paths: Iterable[Path]) -> Iterator[Path]:
    """Of files, those of our kinds that are no tests."""
    found = (path for path in paths if path.suffix in KINDS and path.is_file())
    return (path for path in found if not path.name.startswith(("test_", "conftest")))


def _loaded(folder: Path) -> Iterator[Path]:
    """Users' modules below a folder, which may have an environment with libraries too."""
    files = (getattr(module, "__file__", None) for module in list(sys.modules.values()))
    for file in files:
        if file and Path(file).is_relative_to(folder) and user_code.is_users(file):
            yield from _kept([Path(file)])


def _digest(root: Path, paths: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for path in paths:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
