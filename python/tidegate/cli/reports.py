"""Commands that show what runs have found: `report`, `view`."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer

from tidegate._core import TidegateError
from tidegate.options import ViewPort


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


def view(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")], view_port: ViewPort = 0
) -> None:
    """Show a run in the browser: a page on this machine, until Ctrl-C."""
    from tidegate.view.finished import Finished
    from tidegate.view.server import Server

    with Server(Finished(folder), view_port) as server:
        print(server.url, flush=True)
        sys.stderr.write("Ctrl-C ends it\n")
        wait_for_interrupt()


@contextmanager
def watched(backend: str, port: int) -> Iterator[None]:
    """While this lasts, a page shows the simulations of this process."""
    from tidegate.backends import common
    from tidegate.view.running import Running
    from tidegate.view.server import Server

    if backend != "sim":
        raise TidegateError(
            "--view is for the simulator; a live run shows its result with `tidegate view DIR`"
        )
    source = Running()
    with Server(source, port) as server, common.watching(source):
        sys.stderr.write(f"{server.url}\n")
        yield


def wait_for_interrupt() -> None:
    """Until Ctrl-C, SIGTERM or SIGHUP, which end the command in good order."""
    try:
        while True:
            time.sleep(3600)
    except KeyboardInterrupt:
        return
