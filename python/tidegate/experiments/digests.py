"""Digests of the files that results depend on: Tidegate's own, and those of an experiment that is the user's.

Each is computed once a process, as the files are loaded once.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import itertools
import os
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from importlib.machinery import all_suffixes
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
    return {"tidegate": of_tidegate(), "experiment": of_file(file)}


@cache
def of_tidegate() -> str:
    """Of Tidegate's own files, with the simulator."""
    return _digest(user_code.PACKAGE, _sources(user_code.PACKAGE))


@cache
def of_file(file: Path) -> str:
    """Of a file, what is beside it and what it imports from below; or of the package that it is in."""
    top = file.parent
    while (top / "__init__.py").exists():
        top = top.parent
    if top == file.parent:
        return _digest(top, sorted({file, *_kept(top.iterdir()), *_kept(_imported(file, top))}))
    return _digest(top, _sources(top / file.relative_to(top).parts[0]))


def _sources(folder: Path) -> list[Path]:
    return sorted(_kept(folder.rglob("*")))


def _kept(paths: Iterable[Path]) -> Iterator[Path]:
    """Of files, those of our kinds that are no tests."""
    found = (path for path in paths if path.suffix in KINDS and path.is_file())
    return (path for path in found if not path.name.startswith(("test_", "conftest")))


def _imported(file: Path, top: Path) -> set[Path]:
    """Users' modules below a folder that a file imports, and those that these import. They are found in the text, whether they have
    been imported in this process or not: what a function imports when it is called belongs to the experiment too.
    """
    folders = [
        top,
        *(Path(one).resolve() for one in sys.path if one and Path(one).resolve().is_relative_to(top)),
    ]
    found, new = {file}, [file]
    while new:
        for module in _modules(new.pop(), folders):
            if module not in found and module.is_relative_to(top) and user_code.is_users(str(module)):
                found.add(module)
                new.append(module)
    return found


def _modules(file: Path, folders: list[Path]) -> Iterator[Path]:
    """The files of the modules that a file imports from these folders, or relative to itself."""
    try:
        tree = ast.parse(file.read_bytes()) if file.suffix == ".py" else None
    except (OSError, SyntaxError, ValueError, RecursionError):
        return
    for node in ast.walk(tree) if tree is not None else ():
        match node:
            case ast.Import():
                names, places = [one.name for one in node.names], folders
            case ast.ImportFrom():
                begin = f"{node.module}." if node.module else ""
                names = [f"{begin}{one.name}" for one in node.names]
                places = list(file.parents)[node.level - 1 : node.level] if node.level else folders
            case ast.Call(
                func=ast.Name(id="import_module") | ast.Attribute(attr="import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                names, places = [name.lstrip(".")], [file.parent] if name.startswith(".") else folders
            case _:
                continue
        for name, place in itertools.product(names, places):
            yield from _files(place, name.split("."))


def _files(folder: Path, names: list[str]) -> Iterator[Path]:
    """The files of a module and of the packages that it is in."""
    for name in names:
        folder /= name
        for suffix in all_suffixes():
            for path in (folder.with_name(f"{name}{suffix}"), folder / f"__init__{suffix}"):
                if os.path.isfile(path):
                    yield path.resolve()


def _digest(root: Path, paths: Iterable[Path]) -> str:
    digest = hashlib.blake2b(digest_size=6)
    for path in paths:
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()
