"""`tidegate new`: writes a system or an experiment of the standard shape, which runs, tests and plots at once."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.output import print_json
from tidegate.options import Json

new = typer.Typer(
    name="new",
    help="Write a system or an experiment of your own to begin with: it runs, tests and plots at once.",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[
    str, typer.Argument(metavar="NAME", help="Lower-case letters, digits and _, a letter first.")
]
Dir = Annotated[
    Path, typer.Option("--dir", metavar="DIR", help="Folder to write it in; it is made if it is not there.")
]


@new.command()
def system(name: Name, folder: Dir = Path(), as_json: Json = False) -> None:
    """Write the folder of a system: P4 program, controller, setup, experiment, test and README."""
    from tidegate.templates import new_system

    place = new_system(name, folder)
    _tell(
        place,
        [
            f"tidegate run {_command(place, ':threshold')} --quick",
            f"tidegate compare {_command(place, ':scheme')} fifo codel --set scenarios=access",
            f"python -m pytest {shlex.quote(str(place))}",
        ],
        as_json,
    )


@new.command()
def experiment(name: Name, folder: Dir = Path(), as_json: Json = False) -> None:
    """Write an experiment and its test: two files."""
    from tidegate.templates import new_experiment

    place = new_experiment(name, folder)
    test = place.with_name(f"test_{place.name}")
    _tell(
        place,
        [f"tidegate run {_command(place)} --quick", f"python -m pytest {shlex.quote(str(test))}"],
        as_json,
    )


def _command(place: Path, within: str = "") -> str:
    """A path that the command line takes for one, and what is meant in it, as a shell takes them."""
    path = str(place) if place.is_absolute() or str(place).startswith("..") else f"./{place}"
    return shlex.quote(path + within)


def _tell(place: Path, commands: list[str], as_json: bool) -> None:
    if as_json:
        print_json({"written": str(place), "next": commands})
        return
    print(f"{place} is written; next:")
    for command in commands:
        print(f"  {command}")
