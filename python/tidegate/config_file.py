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
from pathlib import Path
from typing import Any

import typer

from tidegate._core import TidegateError
from tidegate.command_tree import Parameter, of_parameters
from tidegate.files import read_text, toml
from tidegate.suggest import did_you_mean

LARGEST = 1 << 20
FILES = ("FILE", "DIR", "PROG.p4")
CONFIG = "config"


def take(context: typer.Context, path: Path | None) -> Path | None:
    """The callback of an option `--config`: the file's values are what options have that are not given."""
    if path is not None:
        known = of_parameters(context.command)
        known.pop(CONFIG, None)
        found = read(path, known)
        context.default_map = {**(context.default_map or {}), **found}
    return path


def read(path: Path, known: dict[str, Parameter]) -> dict[str, Any]:
    """The values in a file, by the names of parameters; raises `TidegateError` with the place."""
    text = read_text(path, LARGEST)
    try:
        given = toml(text)
    except tomllib.TOMLDecodeError as error:
        # "Invalid value (at line 3, column 7)"
        at = re.search(r"^(.*) \(at line (\d+), column (\d+)\)$", str(error))
        raise TidegateError(f"{path}:{at[2]}:{at[3]}: {at[1]}" if at else f"{path}: {error}") from None
    found: dict[str, Any] = {}
    for name, value in given.items():
        place = f"{path}:{_line(text, name)}"
        if name not in known:
            raise TidegateError(
                f"{place}: there is no {name!r}; {did_you_mean(name, known)}known: {', '.join(known)}"
            )
        found[name] = _value(place, name, value, known[name], path.parent)
    return found


def _line(text: str, name: str) -> int:
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
            value = [f"{one}={_text(place, name, of)}" for one, of in value.items()]
        if not isinstance(value, list):
            raise TidegateError(f"{place}: {name} is a list, not {value!r}")
        return [_path(_text(place, name, one), kind, folder) for one in value]
    return _path(_text(place, name, value), kind, folder)


def _text(place: str, name: str, value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TidegateError(f"{place}: {name} is a text or a number, not {value!r}")
    return str(value)


def _path(text: str, kind: str, folder: Path) -> str:
    return str(folder / text) if kind.startswith(FILES) else text
