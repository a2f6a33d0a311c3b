"""Commands that show what runs have found: `report`, `view`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from tidegate._core import TidegateError
from tidegate.files import given_twice
from tidegate.options import ViewPort


def report(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR...", help="Folders of runs.")],
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.html",
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

    twice = given_twice(folders)
    if twice is not None:
        raise TidegateError(f"{twice} is given twice; give each once")
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
    from tidegate.view.finished import PERIOD_S, Finished
    from tidegate.view.page import Page

    shown = Finished(folder)
    with Page(view_port) as page:

        def begin() -> None:
            print(page.url, flush=True)
            sys.stderr.write("Ctrl-C ends it\n")
            shown.begin(page)

        page.stay(partial(shown.hear, page), PERIOD_S, begin)


@contextmanager
def watched(port: int) -> Iterator[Callable[[], None]]:
    """While this lasts, a page shows the runs of this process. Gives what keeps it until Ctrl-C when they are done."""
    from tidegate.backends import common
    from tidegate.view.page import Page
    from tidegate.view.running import Running

    with Page(port) as page, common.watching(Running(page)):
        sys.stderr.write(f"{page.url}\n")

        def say() -> None:
            if not page.gone:
                sys.stderr.write("the runs are done; Ctrl-C ends the page\n")

        def stay() -> None:
            page.stay(lambda said: None, begin=say)

        yield stay
