"""Arguments and options that several commands of `tidegate` have."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate._core import TidegateError

Program = Annotated[Path, typer.Argument(metavar="PROG.p4", help="P4_16 program.", show_default=False)]
Include = Annotated[
    list[str] | None, typer.Option("-I", metavar="DIR", help="Search DIR for includes.", show_default=False)
]
Define = Annotated[
    list[str] | None,
    typer.Option("-D", metavar="NAME[=TEXT]", help="Define a macro.", show_default=False),
]
Limit = Annotated[
    list[str] | None,
    typer.Option(
        "--limit",
        metavar="NAME=VALUE",
        help="Limit of a program, as state_bytes=4294967296; docs/security.md lists them.",
        show_default=False,
    ),
]
QueueLimit = Annotated[
    str,
    typer.Option(
        "--queue-limit", metavar="N|SIZE", help="Limit of each queue, in packets or in bytes with a unit."
    ),
]
Settings = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="NAME=VALUE", help="Set a parameter of the experiment.", show_default=False
    ),
]
FirstSeed = Annotated[int, typer.Option(metavar="N", min=0, max=2**63, help="First seed.")]
Repeat = Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Number of seeds.")]
Quick = Annotated[bool, typer.Option("--quick", help="Shorter runs with fewer cases.")]
Resume = Annotated[bool, typer.Option("--resume", help="Continue an interrupted run in that folder.")]

Threads = Annotated[
    int,
    typer.Option(
        "--threads",
        metavar="N",
        min=1,
        max=256,
        help="Threads of each simulation; the results are those of one. A run that cannot gain uses fewer, and says why.",
    ),
]


def parse_queue_limit(text: str) -> tuple[int | None, int | None]:
    """Packets or bytes of `--queue-limit`."""
    from tidegate import units

    try:
        if text.isascii() and text.isdecimal():
            if len(text) > units.MOST_DIGITS:
                text = f"{text[: units.MOST_DIGITS]}..."
                raise TidegateError(f"{text} is not a number of packets: give one from 1 to {2**32 - 1}")
            return units.below(int(text), 1, 2**32, "a number of packets"), None
        size = units.size(text)
        return None, units.below(size, 1, 2**63, "a size")
    except TidegateError as error:
        raise TidegateError(f"--queue-limit {text}: {error}") from None


def program_limits(given: list[str] | None) -> dict[str, int]:
    """What `--limit` means."""
    from tidegate import p4

    try:
        return p4.parse_limits(given or [])
    except TidegateError as error:
        raise TidegateError(f"--limit: {error}") from None


def results_folder(default: str) -> Any:
    """The option `--out` of commands whose folder has a name by what they run."""
    return typer.Option(
        metavar="DIR", help=f"Folder for the results.  [default: {default}]", show_default=False
    )


Json = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


class LiveProfile(StrEnum):
    """What live networks are tuned for."""

    LATENCY = "latency"
    THROUGHPUT = "throughput"


LiveProfileOption = Annotated[
    LiveProfile,
    typer.Option(
        "--live-profile",
        help="Tune live ports for short, even delays or for packets per second.",
    ),
]


class LogFormat(StrEnum):
    """What a service's lines on standard error are."""

    TEXT = "text"
    JSON = "json"


LogFormatOption = Annotated[LogFormat, typer.Option(help="Form of the lines on standard error.")]


class Engine(StrEnum):
    """Executors of P4 programs."""

    AUTO = "auto"
    INTERP = "interp"
    JIT = "jit"


EngineOption = Annotated[
    Engine,
    typer.Option(
        "--engine", help="Executor: native code (jit) or the interpreter; auto falls back to interp."
    ),
]
Seed = Annotated[int, typer.Option(metavar="N", min=0, max=2**64 - 1, help="Seed of the program's random().")]
Commands = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="Control-plane commands, in the language of simple_switch_CLI.",
        show_default=False,
    ),
]
ControllerFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE.py", help="Python file that defines `controllers`.", show_default=False),
]
CpuPort = Annotated[
    int | None,
    typer.Option(
        metavar="PORT",
        min=0,
        max=510,
        help="Port whose packets go to and come from controllers.",
        show_default=False,
    ),
]
Insecure = Annotated[
    bool,
    typer.Option("--insecure", help="Listen without TLS at addresses that other machines reach."),
]
ViewPort = Annotated[
    int,
    typer.Option(
        "--view-port", metavar="N", min=0, max=65_535, help="Port of the page; 0: any that is free."
    ),
]
