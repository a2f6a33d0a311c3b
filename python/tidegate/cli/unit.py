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

HIDDEN = ("/home", "/root", "/run/user", "/tmp", "/var/tmp")
"""Folders that the units keep from what they start."""


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
    if (path := _hidden()) is not None:
        sys.stderr.write(
            f"warning: the service cannot see {path}: its unit hides /home, /root and /tmp; install Tidegate, and the Python that it runs "
            "with, in another folder, for example in /opt\n"
        )


def _hidden() -> Path | None:
    """What it runs with that `ProtectHome=` and `PrivateTmp=` hide: the command, this Python, or the package."""
    ours = (_called(), Path(sys.executable), Path(sys.executable).resolve(), Path(__file__))
    return next((path for path in ours if path for folder in HIDDEN if path.is_relative_to(folder)), None)


def _called() -> Path | None:
    """The command that was called, where it was not this Python with the module."""
    called = Path(sys.argv[0]).absolute()
    return called if called.name == "tidegate" and os.access(called, os.X_OK) else None


def _command() -> str:
    """What starts Tidegate, as `ExecStart=` has it: the command that was called, or this Python with the module."""
    if (called := _called()) is not None:
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
