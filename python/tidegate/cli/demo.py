"""`tidegate demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from tidegate.cli.output import INTERRUPTED, Told, report


def demo(
    out: Annotated[Path, typer.Option(metavar="DIR", help="Folder for the tables and the figure.")] = Path(
        "runs/demo"
    ),
    sim: Annotated[bool, typer.Option("--sim", help="Only the simulator, as root too.")] = False,
) -> None:
    """Run flows that share a meter through three meters: in the simulator, and as root between real Linux hosts."""
    from tidegate.systems.meter import demo as of_meter

    try:
        of_meter.main(out, live=not sim)
    except KeyboardInterrupt:
        # What is half done is of no use: the demo has no --resume.
        report("interrupted; the demo can be begun again with the same command")
        raise Told(INTERRUPTED) from None
