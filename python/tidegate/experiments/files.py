"""Experiments of a file or a folder of the user's: `my.py`, `my.py:function`, `./blink`, `./blink:threshold`.

A file's experiments are the functions that `@experiment` is at, and those that say that they return a `Plan`; a function that is named is
taken as it is. A folder is that of a system, whose experiments are in its `experiments`. What is loaded so is in no registry: two
versions of one experiment can be told apart by their files.
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import inspect
import re
import sys
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate._core import TidegateError
from tidegate.control.files import demand_own
from tidegate.experiments import registry, roots, user_code
from tidegate.experiments.registry import Experiment
from tidegate.files import read_start
from tidegate.suggest import did_you_mean

SETUP = "setup.py"
"""The file of a system's folder that puts the system into a network."""


def is_reference(name: str) -> bool:
    """Whether a name is that of a file or a folder, and not of an experiment that is registered."""
    return re.search(r"\.py(:\w+)?$", name) is not None or "/" in name


def path_of(name: str) -> Path:
    """The file or folder of a reference."""
    return Path(parted(name)[0])


def parted(name: str) -> tuple[str, str]:
    """The path of a reference, and the name behind `:` or nothing."""
    text, _, function = name.partition(":") if re.search(r":\w+$", name) else (name, "", "")
    return text, function


def is_system(path: Path) -> bool:
    """Whether a folder is that of a system."""
    return (path / "experiments").is_dir()


def of_reference(name: str) -> list[Experiment]:
    """The experiments of a file or folder, or the one that is named behind `:`."""
    text, function = parted(name)
    path = Path(text)
    found: dict[str, Experiment] = {}
    for file in _files(path):
        found |= _of_file(file.resolve(), function if path.is_file() else "")
    if function:
        if function not in found:
            near = did_you_mean(function, found)
            known = f"known: {', '.join(found)}" if found else "it has none"
            raise TidegateError(f"{path} has no experiment {function!r}; {near}{known}")
        return [found[function]]
    if not found:
        raise TidegateError(
            f"{path} has no experiment; put @experiment at a function that returns a Plan, or give its name: {path}:FUNCTION"
        )
    return list(found.values())


def one_of_reference(name: str) -> Experiment:
    """The experiment of a file or folder that has only one, or the one that is named."""
    found = of_reference(name)
    if len(found) > 1:
        names = ", ".join(f"{name}:{one.plan.__name__}" for one in found)
        raise TidegateError(f"{name} has {len(found)} experiments; give one of {names}")
    return found[0]


def module_of(name: str) -> tuple[Path, ModuleType]:
    """The file of a reference, of a system's folder its `setup.py`, and its module. The folder is entered."""
    path = path_of(name)
    _files(path)
    file = path / SETUP if path.is_dir() else path
    if not file.is_file():
        raise TidegateError(f"{path} has no {SETUP}; give a file of Python")
    file = file.resolve()
    demand_own(file)
    roots.enter(_top(file))
    return file, _module(file)[0]


def _files(path: Path) -> list[Path]:
    if path.is_file():
        if path.suffix != ".py":
            raise TidegateError(f"{path} is not a file of Python: its name does not end in .py")
        read_start(path, 1)
        return [path]
    if not path.exists():
        raise TidegateError(f"{path}: there is no such file")
    folder = path / "experiments"
    if not is_system(path):
        raise TidegateError(
            f"{path} is not the folder of a system: it has no folder `experiments`; give a file of Python"
        )
    return sorted(file for file in folder.glob("*.py") if file.name != "__init__.py")


def _top(file: Path) -> Path:
    """The folder that a file's module, or its package, is in."""
    top = file.parent
    while (top / "__init__.py").exists():
        top = top.parent
    return top


@cache
def _module(file: Path) -> tuple[ModuleType, dict[str, Experiment]]:
    """The module of a file, and what it has registered. A file of a package is imported as such, so that relative imports work.

    Its folder has been entered.
    """
    top = _top(file)
    user_code.add_root(file.parent if top == file.parent else top / file.relative_to(top).parts[0])
    with registry.loading(file) as registered, user_code.blamed():
        if top != file.parent:
            names = file.relative_to(top).with_suffix("").parts
            there = importlib.import_module(names[0]).__file__
            if there is None or Path(there).resolve() != top / names[0] / "__init__.py":
                raise TidegateError(
                    f"{file}: Python has another {names[0]} already: {there}; give the package another name"
                )
            return importlib.import_module(".".join(names)), registered
        # Its name says which file it is of: there may be two of one name.
        name = f"{roots.OF_FILE}{hashlib.sha256(bytes(file)).hexdigest()[:8]}_{file.stem}"
        spec = importlib.util.spec_from_file_location(name, file)
        assert spec is not None, "the name ends in .py"
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module
        spec.loader.exec_module(module)
    return module, registered


def _of_file(file: Path, function: str) -> dict[str, Experiment]:
    """Experiments by the names of their functions."""
    demand_own(file)
    roots.enter(_top(file))
    module, registered = _module(file)
    found = {one.plan.__name__: one for one in registered.values()}
    for name, value in vars(module).items():
        own = inspect.isfunction(value) and value.__module__ == module.__name__
        if own and name not in found and (name == function or _gives_plan(value)):
            found[name] = _plain(f"{file.stem}.{name}", value)
    for name, one in found.items():
        _demand_parameters(file, one)
        found[name] = replace(one, source=f"{file}:{name}")
    return found


def _gives_plan(function: Any) -> bool:
    said = function.__annotations__.get("return")
    return said == "Plan" or getattr(said, "__name__", "") == "Plan"


def _plain(name: str, function: Any) -> Experiment:
    """An experiment from a function without the decorator."""
    return Experiment(name, next(iter((function.__doc__ or "").strip().splitlines()), ""), function)


def _demand_parameters(file: Path, one: Experiment) -> None:
    """Refuse parameters that `--set` could not set."""
    where = f"{user_code.shown(file)}:{one.plan.__code__.co_firstlineno}: {one.plan.__name__}"
    files = one.files()
    for parameter in inspect.signature(one.plan).parameters.values():
        default = parameter.default
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise TidegateError(
                f"{where} takes {parameter}; an experiment's parameters have names and defaults"
            )
        if default is parameter.empty:
            raise TidegateError(f"{where}: the parameter {parameter.name} has no default; give it one")
        if default is None and parameter.name in files:
            continue
        kinds = {type(item) for item in (default if isinstance(default, tuple) else (default,))}
        if len(kinds) != 1 or not kinds <= {bool, int, float, str}:
            raise TidegateError(
                f"{where}: the default of {parameter.name} is {default!r}; give a number, a name, true or false, or a tuple of one kind"
            )
