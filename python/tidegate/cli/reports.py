"""Commands that show what runs have found: `report`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate._core import TidegateError


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="The page.  [default: report.html in the run's folder; of several runs in this folder]",
            show_default=False,
        ),
    ] = None,
    flent: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Write flent's data files instead, one for each case and seed.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Make the report of a run, or join several into one: an HTML page that needs nothing else."""
    from tidegate import report as reports

    if flent is not None:
        if out is not None:
            raise TidegateError("--out is a page and --flent a folder; give one of them")
        for place in folders:
            for path in reports.write_flent(place, flent):
                print(path)
        return
    if len(folders) == 1 and out is None:
        print(reports.write(folders[0]))
        return
    print(reports.join(folders, Path("report.html") if out is None else out))
