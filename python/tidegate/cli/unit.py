"""`tidegate unit`."""

from __future__ import annotations

import os
import re
import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from tidegate._core import TidegateError


class Service(StrEnum):
    """Services that there is a unit for."""

    SWITCH = "switch"
    AGENT = "agent"


UNITS = {
    Service.SWITCH: ("tidegate.switch", "tidegate-switch@.service"),
    Service.AGENT: ("tidegate.systems.pacing.service", "tidegate-agent.service"),
}


def unit(
    service: Annotated[
        Service, typer.Argument(metavar="switch|agent", help="The service.", show_default=False)
    ],
) -> None:
    """Print a unit for systemd: tidegate unit switch > /etc/systemd/system/tidegate-switch@.service."""
    from importlib.resources import files

    package, name = UNITS[service]
    text = files(package).joinpath(name).read_text()
    sys.stdout.write(text.replace("@TIDEGATE@", _command()))


def _command() -> str:
    """What starts Tidegate, as `ExecStart=` has it: the command that was called, or this Python with the module."""
    called = Path(sys.argv[0]).absolute()
    if called.name == "tidegate" and os.access(called, os.X_OK):
        return _quoted(str(called))
    return f"{_quoted(sys.executable)} -P -m tidegate"


def _quoted(path: str) -> str:
    """A path as one word (systemd.service(5), "Command lines")."""
    if re.search(r"[\"'\\]", path):
        raise TidegateError(
            f"systemd starts no program with a quote or a backslash in its path: {path}; move it"
        )
    path = path.replace("%", "%%")
    return path if re.fullmatch(r"[\w@%+=:,./-]+", path) else f'"{path}"'
