"""Configuration files (TOML) beside the options of a command: each key is an option's long name with `_` for `-`.

    program = "meter.p4"
    interface = ["1@eth1", "2@eth2"]
    metrics_addr = "127.0.0.1:9100"

Command-line options take precedence. Unknown keys and values of the wrong type are refused with file and line.
Options `NAME=VALUE` can be tables, as `rate = {1 = "100 Mbit/s"}`. Files and folders are relative to the folder of the file.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import typer

from tidegate import logs
from tidegate._core import TidegateError
from tidegate.command_tree import Parameter, of_parameters
from tidegate.files import read_text, toml
from tidegate.suggest import did_you_mean

LARGEST = 1 << 20
NUMBERS = ("N", "N|SIZE", "PORT", "SECONDS", "MIB")
"""Values that can be numbers; those of `NAME=VALUE` in a table can too."""
FILES = ("FILE", "DIR", "PROG.p4")
CONFIG = "config"


def take(context: typer.Context, path: Path | None) -> Path | None:
    """The callback of an option `--config`: the file's values are what options have that are not given."""
    if path is not None:
        known = of_parameters(context.command)
        known.pop(CONFIG, None)
        found = read(path, known, partial(_demand_converted, context))
        context.default_map = {**(context.default_map or {}), **found}
    return path


def _demand_converted(context: typer.Context, name: str, value: Any) -> None:
    """Refuse, with a `ValueError`, what the parser would refuse: it would name neither the file nor the key."""
    one: Any = next(one for one in context.command.params if one.name == name)
    try:
        one.process_value(context, value)
    except typer.BadParameter as error:
        said = str(error.message or "there is nothing in it")
        raise ValueError(said.removeprefix("Value error, ").rstrip(".")) from None
    except TidegateError as error:
        raise ValueError(str(error)) from None


def read(
    path: Path, known: dict[str, Parameter], demand: Callable[[str, Any], None] = lambda name, value: None
) -> dict[str, Any]:
    """The values in a file, by the names of parameters; raises `TidegateError` with the place, also for what `demand` refuses.

    From then on errors have the form that the file gives as `log_format`, unless the command line gives one.
    """
    text = read_text(path, LARGEST)
    try:
        given = toml(text)
    except tomllib.TOMLDecodeError as error:
        # "Invalid value (at line 3, column 7)"
        at = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error))
        raise TidegateError(f"{path}:{at[2]}:{at[3]}: {at[1]}" if at else f"{path}: {error}") from None
    if "log_format" in known:
        logs.of_file(given.get("log_format"))
    found: dict[str, Any] = {}
    for name, value in given.items():
        place = f"{path}:{line_of(text, name)}"
        if name not in known:
            raise TidegateError(
                f"{place}: there is no {name!r}; {did_you_mean(name, known)}known: {', '.join(known)}"
            )
        found[name] = _value(place, name, value, known[name], path.parent)
        try:
            demand(name, found[name])
        except ValueError as error:
            raise TidegateError(f"{place}: {name} is {found[name]!r}: {error}") from None
    return found


def line_of(text: str, name: str) -> int:
    """Where a key stands."""
    key = re.compile(rf"""\s*\[?\s*["']?{re.escape(name)}["']?\s*[=.\]]""")
    return next((number for number, line in enumerate(text.splitlines(), 1) if key.match(line)), 1)


def _value(place: str, name: str, value: Any, parameter: Parameter, folder: Path) -> Any:
    """A value as the command line would have it."""
    kind = parameter.value
    if kind is None:
        if not isinstance(value, bool):
            raise TidegateError(f"{place}: {name} is true or false, not {value!r}")
        return value
    if parameter.multiple:
        if isinstance(value, dict) and "=" in kind:
            value = [f"{one}={_text(place, f'{name}.{one}', of, True)}" for one, of in value.items()]
        if not isinstance(value, list):
            table = " or a table" if "=" in kind else ""
            raise TidegateError(f"{place}: {name} is a list{table}, not {value!r}")
        return [_path(_text(place, name, one, kind in NUMBERS), kind, folder) for one in value]
    return _path(_text(place, name, value, kind in NUMBERS), kind, folder)


def _text(place: str, name: str, value: Any, number: bool) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float if number else str):
        wanted = "a text or a number" if number else "a text in quotes"
        raise TidegateError(f"{place}: {name} is {wanted}, not {value!r}")
    return str(value)


def _path(text: str, kind: str, folder: Path) -> str:
    return str(folder / text) if kind.startswith(FILES) else text
