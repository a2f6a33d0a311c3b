"""The P4 program of a switch: given by hand, named by the topology or the runtime file, or the only one there is."""

from __future__ import annotations

from pathlib import Path

from tidegate._core import TidegateError
from tidegate.exercises.reading import load, shown
from tidegate.exercises.topology import Switch, Topology

COMPILED = (".p4.p4info.txtpb", ".p4.p4info.txt", ".p4info.txtpb", ".p4info.txt", ".p4info", ".json", ".p4")
"""Ends of files that the reference compiler makes of a program."""


def folders(topology: Topology) -> list[Path]:
    """Where the files are looked for that it names: the folder that the command is in, that of the topology, and the one above."""
    here = topology.path.resolve().parent
    return list(dict.fromkeys((Path.cwd(), here, here.parent)))


def find(topology: Topology, name: str) -> Path | None:
    """A file that the topology names."""
    return next((folder / name for folder in folders(topology) if _is_file(folder / name)), None)


def _is_file(path: Path) -> bool:
    """Whether there is a file of that name; a name that the system refuses is of none."""
    try:
        return path.is_file()
    except (OSError, ValueError):
        return False


def demand(topology: Topology, name: str, of: str) -> Path:
    """The same, which is to be there."""
    found = find(topology, name)
    if found is None:
        looked = ", ".join(map(str, folders(topology)))
        raise TidegateError(f"{topology.path}: {of} names {shown(name)}, which is in none of {looked}")
    return found


def program_of(topology: Topology, switch: Switch, given: Path | None) -> Path:
    """The program's source. The given one stands in for a file of the same name, if there is one: another solution of it."""
    name, of = _named(topology, switch)
    if given is not None:
        names = {
            one: Path(source_of(_named(topology, one)[0]) or "").name for one in topology.switches.values()
        }
        if names[switch] == given.name if given.name in names.values() else switch.program is None:
            return given
    if name is not None:
        return _source(topology, name, of)
    if switch.runtime is not None:
        demand(topology, switch.runtime, f"switches.{switch.name}.runtime_json")
    for folder in folders(topology):
        there = sorted(folder.glob("*.p4"))
        if len(there) == 1:
            return there[0]
    raise TidegateError(
        f"{topology.path}: no program is named for {switch.name}; give --program PROG.p4, or write "
        f'"program": "PROG.p4" at switches.{switch.name}'
    )


def _named(topology: Topology, switch: Switch) -> tuple[str | None, str]:
    """The program that the files name for a switch, and where."""
    if switch.program is not None:
        return switch.program, f"switches.{switch.name}.program"
    path = None if switch.runtime is None else find(topology, switch.runtime)
    if path is not None:
        about = load(path)
        for key in ("p4info", "bmv2_json"):
            if isinstance(about.get(key), str):
                return about[key], f"{switch.runtime}: {key}"
    return None, ""


def source_of(name: str | None) -> str | None:
    """The source of what a file names; `None` if that is no program and none is made of one.

    >>> source_of("build/basic.p4.p4info.txtpb")
    'build/basic.p4'
    """
    ending = next((end for end in COMPILED if name is not None and name.endswith(end)), None)
    return None if name is None or ending is None else f"{name.removesuffix(ending)}.p4"


def _source(topology: Topology, name: str, of: str) -> Path:
    """The source of what a file names: itself, or what it was compiled from."""
    source = source_of(name)
    if source is None:
        raise TidegateError(f"{topology.path}: {of}: {shown(name)} is no P4 program, and none is made of one")
    tried = [source, Path(source).name]
    for one in tried:
        found = find(topology, one)
        if found is not None:
            return found
    raise TidegateError(
        f"{topology.path}: {of} names {shown(name)}; its source {shown(tried[-1])} is in none of "
        f"{', '.join(map(str, folders(topology)))}; give --program FOLDER/{shown(tried[-1])}"
    )
