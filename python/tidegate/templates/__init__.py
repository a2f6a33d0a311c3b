"""What new systems and experiments begin with: `system` is a smallest whole one, `experiment` one without a program of its own."""

from __future__ import annotations

import ast
import keyword
import re
import shutil
import sys
from collections.abc import Callable
from importlib.machinery import PathFinder
from pathlib import Path

from tidegate import scenarios, systems
from tidegate._core import TidegateError
from tidegate.files import why

SYSTEM = Path(__file__).with_name("system")
EXPERIMENT = Path(__file__).with_name("experiment")
MOST_NAME = 64
"""Characters: it is in file names, which have 255 bytes at most."""
_MARKER = "marker"
_BUFFERS = "buffers"


def new_system(name: str, folder: Path) -> Path:
    """Make the folder of a system in `folder`, and give it.

    It is found where `tidegate.systems` looks: in its own folder, and in those that the environment variable TIDEGATE_SYSTEMS names; and
    `tidegate run ./NAME:threshold` finds it wherever it is.
    """
    _demand_name("system", name)
    own = Path(systems.__file__).parent
    if any((own / file).exists() for file in (name, f"{name}.py")):
        raise TidegateError(
            f"{name} is a system or a module of Tidegate's own, which would hide it; give another name"
        )
    if name in scenarios.SCHEMES:
        # Its `scheme` would be refused beside the others.
        raise TidegateError(f"{name} is a scheme of Tidegate's own; give another name")
    place = folder / name
    title = "".join(part.capitalize() for part in name.split("_"))
    _copy(
        SYSTEM,
        folder,
        [place],
        lambda path: f"{name}/{path.replace(_MARKER, name)}",
        lambda text: text.replace(_MARKER, name).replace(_MARKER.capitalize(), title),
    )
    return place


def new_experiment(name: str, folder: Path) -> Path:
    """Write an experiment and its test into `folder`, and give the experiment's file."""
    _demand_name("experiment", name)
    if name != _BUFFERS and any(name in _defined(source) for source in EXPERIMENT.glob("*.py")):
        raise TidegateError(f"{name} is a name that the experiment's file has already; give another")
    place = folder / f"{name}.py"
    _copy(
        EXPERIMENT,
        folder,
        [place, folder / f"test_{name}.py"],
        lambda path: path.replace(_BUFFERS, name),
        lambda text: re.sub(rf"\b{_BUFFERS}\b(?!_bdp)", name, text),
    )
    return place


def _defined(source: Path) -> set[str]:
    """The names that a file defines or imports."""
    names: set[str] = set()
    for statement in ast.parse(source.read_text()).body:
        match statement:
            case ast.Import(names=found) | ast.ImportFrom(names=found):
                names |= {one.asname or one.name for one in found}
            case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                names.add(name)
    return names


def _demand_name(what: str, name: str) -> None:
    if re.fullmatch(r"[a-z][a-z0-9_]*", name) is None:
        raise TidegateError(
            f"a{'n' if what[0] in 'aeiou' else ''} {what} cannot be named {name!r}; "
            "give lower-case letters, digits and _, a letter first"
        )
    if len(name) > MOST_NAME:
        raise TidegateError(f"the name of the {what} has {len(name)} characters; give at most {MOST_NAME}")
    if keyword.iskeyword(name) or name in sys.stdlib_module_names:
        kind = "a keyword" if keyword.iskeyword(name) else "a module of the standard library"
        raise TidegateError(f"{name} is {kind} of Python; give another name")
    # In its folder Python would find it in place of the package. What is found in the working directory is no package of the
    # environment.
    here = Path.cwd()
    found = PathFinder.find_spec(name, [path for path in sys.path if path and Path(path).resolve() != here])
    if found is not None and found.origin is not None:
        raise TidegateError(
            f"{name} is a package that this Python has, and would be hidden by it; give another name"
        )


def _copy(
    template: Path,
    folder: Path,
    places: list[Path],
    named: Callable[[str], str],
    changed: Callable[[str], str],
) -> None:
    """Copy the files of a template under other names, with other texts; all of them or none."""
    for place in places:
        if place.exists():
            raise TidegateError(f"{place} is there already; give another name or folder")
    try:
        for source in sorted(template.rglob("*")):
            if source.is_dir() or "__pycache__" in source.parts:
                continue
            file = folder / named(str(source.relative_to(template)))
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(changed(source.read_text()))
    except OSError as error:
        for place in places:
            if place.is_dir():
                shutil.rmtree(place, ignore_errors=True)
            elif place.is_file():
                place.unlink()
        raise TidegateError(f"{places[0]} cannot be written: {why(error)}") from None
