"""`tidegate unit`."""

from __future__ import annotations

import sys
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


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
    sys.stdout.write(text.replace("@TIDEGATE@", str(Path(sys.argv[0]).absolute())))
