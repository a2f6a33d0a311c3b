"""`tidegate grafana`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate._core import TidegateError
from tidegate.files import why


def grafana(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the files.", show_default=False)],
) -> None:
    """Write dashboards for Grafana and alert rules for Prometheus into a folder; README.md there says how to load them."""
    from tidegate.grafana import write

    try:
        written = write(folder)
    except OSError as error:
        raise TidegateError(
            f"{folder}: the files cannot be written there: {why(error)}; give another folder"
        ) from None
    for path in written:
        print(path)
