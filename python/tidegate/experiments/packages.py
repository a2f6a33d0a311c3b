"""Experiments, systems and schemes of other packages that are installed, by their entry points.

    [project.entry-points."tidegate.systems"]
    blink = "blink"                      # a package of the shape of a system: its experiments are in blink.experiments

    [project.entry-points."tidegate.experiments"]
    rates = "mylab.rates"                # a module with @experiment, or a function: mylab.rates:rates

    [project.entry-points."tidegate.schemes"]
    red = "mylab.red:scheme"             # a tidegate.scenarios.Scheme

A package that cannot be loaded is left out, with one message; the others are there all the same.
"""

from __future__ import annotations

import importlib
import importlib.util
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.experiments import registry, roots, user_code

SYSTEMS = "tidegate.systems"
EXPERIMENTS = "tidegate.experiments"
SCHEMES = "tidegate.schemes"


@cache
def load() -> tuple[str, ...]:
    """Load what other packages bring, once; what could not be loaded, in words."""
    broken = []
    for group, one in [
        (kind, entry) for kind in (SYSTEMS, EXPERIMENTS, SCHEMES) for entry in entry_points(group=kind)
    ]:
        before = dict(registry._registry)
        try:
            _load(group, one)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            # Half of a package would be a riddle.
            registry._registry.clear()
            registry._registry.update(before)
            broken.append(f"{_package(one)} is left out ({group}: {one.name} = {one.value}): {_why(error)}")
    return tuple(broken)


def _load(group: str, one: EntryPoint) -> None:
    if group == SCHEMES:
        there = schemes().get(one.name)
        if there is None or there != one:
            raise TidegateError(f"there is a scheme {one.name} already")
        return
    _demand_there(one)
    if group == SYSTEMS:
        if one.name in registry.system_names():
            raise TidegateError(f"there is a system {one.name} already")
        registry.import_experiments(f"{one.module}.experiments")
        _adopt(one)
        return
    loaded = one.load()
    if one.attr and loaded not in [known.plan for known in registry._registry.values()]:
        if not callable(loaded):
            raise TidegateError(f"{one.value} is not a function")
        registry.experiment(one.name)(loaded)


@cache
def schemes() -> dict[str, EntryPoint]:
    """Schemes by their names: the first of each, but for names of Tidegate's own."""
    from tidegate.scenarios.schemes import SCHEMES as own

    found: dict[str, EntryPoint] = {}
    for one in entry_points(group=SCHEMES):
        if one.name not in own:
            found.setdefault(one.name, one)
    return found


def scheme_of(name: str) -> tuple[Path, Any]:
    """The file of a package's scheme, and what the entry point names."""
    one = schemes()[name]
    roots.enter(None)
    try:
        _demand_there(one)
        found = one.load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise TidegateError(f"{_package(one)} ({SCHEMES}: {one.name} = {one.value}): {_why(error)}") from None
    return Path(importlib.import_module(one.module).__file__ or ""), found


def _demand_there(one: EntryPoint) -> None:
    """Refuse a package that is not there; its files are users' code from now on."""
    spec = importlib.util.find_spec(one.module.partition(".")[0])
    if spec is None:
        raise TidegateError(f"there is no module {one.module}")
    for folder in spec.submodule_search_locations or [str(Path(spec.origin or "").parent)]:
        user_code.add_root(Path(folder))


def _adopt(one: EntryPoint) -> None:
    """What is registered under another system's name is a mistake that would be hard to find."""
    names = [
        name
        for name, known in registry._registry.items()
        if known.plan.__module__.startswith(f"{one.module}.")
    ]
    strange = [name for name in names if not name.startswith(f"{one.name}.")]
    if strange:
        raise TidegateError(
            f"it has an experiment {strange[0]}; the names in {one.name} begin with {one.name}."
        )
    if not names:
        raise TidegateError(f"{one.module}.experiments has no experiment")


def _package(one: EntryPoint) -> str:
    return "a package" if one.dist is None else f"the package {one.dist.name} {one.dist.version}"


def _why(error: BaseException) -> str:
    told = user_code.told(error)
    return str(told) if isinstance(told, TidegateError) else f"{type(error).__name__}: {error}"
