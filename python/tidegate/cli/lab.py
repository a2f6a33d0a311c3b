"""`tidegate lab`: a topology of P4 exercises as a live network."""

from __future__ import annotations

import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Annotated

import typer

from tidegate.cli.output import FAILED
from tidegate.options import CpuPort, Define, Include, QueueLimit, parse_queue_limit


def lab(
    topology: Annotated[
        Path,
        typer.Argument(
            metavar="topology.json",
            help="Network, as the public P4 tutorials or p4-utils (p4app.json) write it.",
            show_default=False,
        ),
    ],
    program: Annotated[
        Path | None,
        typer.Option(
            metavar="PROG.p4",
            help="P4_16 program of switches that name none.  [default: what the files name]",
            show_default=False,
        ),
    ] = None,
    command: Annotated[
        list[str] | None,
        typer.Option(
            "-c",
            metavar="LINE",
            help="Carry out this line instead of asking; exit status 1 if it fails.",
            show_default=False,
        ),
    ] = None,
    grpc: Annotated[
        bool, typer.Option("--grpc", help="Serve P4Runtime at 127.0.0.1, a port for each switch from 50051.")
    ] = False,
    cpu_port: CpuPort = None,
    queue_limit: QueueLimit = "1000",
    include: Include = None,
    define: Define = None,
) -> None:
    """Run a topology of P4 exercises as a live network: hosts in namespaces, P4 switches, and a prompt. Needs root."""
    from tidegate.exercises import prompt
    from tidegate.exercises.files import read
    from tidegate.exercises.running import LiveTopology
    from tidegate.lab.death import handled

    def told(number: int, frame: FrameType | None) -> None:
        raise prompt.Told

    net = LiveTopology(
        read(topology),
        program,
        includes=include,
        defines=define,
        grpc=grpc,
        cpu_port=cpu_port,
        queue_limit=parse_queue_limit(queue_limit),
        say=lambda text: print(text, file=sys.stderr),
    )
    with handled(told, (signal.SIGTERM, signal.SIGHUP)), net:
        good = prompt.interact(net) if command is None else prompt.carry_out(net, command)
    if not good:
        raise typer.Exit(FAILED)
