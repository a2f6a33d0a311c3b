"""Commands that need a program alone: `check`, `stf` and `replay`."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate import INCLUDE, _core
from tidegate.cli.output import FAILED, color, print_json
from tidegate.options import (
    Commands,
    ControllerFile,
    CpuPort,
    Define,
    Engine,
    EngineOption,
    Include,
    Json,
    Limit,
    Program,
    Seed,
    program_limits,
)
from tidegate.switch.ports import LAST_PORT
from tidegate.units import counted


def include_dirs(given: list[str] | None) -> list[str]:
    """Those that are asked for, and last the one with `tidegate/p4`."""
    return [*(given or []), INCLUDE]


def check(
    program: Program,
    include: Include = None,
    define: Define = None,
    limit: Limit = None,
    p4info: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write P4Info (protobuf text).", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Compile a program and print diagnostics or a summary."""
    limits, colored = program_limits(limit), color() and not as_json
    answer = json.loads(
        _core.check(program, include_dirs(include), define or [], limits, p4info, color=colored)
    )
    rendered = answer.pop("rendered")
    sys.stderr.write(rendered)
    if as_json:
        print_json(answer)
    elif "summary" in answer:
        _print_summary(answer)
    if not answer["ok"]:
        raise typer.Exit(FAILED)


def stf(
    program: Program,
    test: Annotated[Path, typer.Argument(metavar="TEST.stf", help="STF test file.", show_default=False)],
    include: Include = None,
    define: Define = None,
    engine: EngineOption = Engine.AUTO,
    trace: Annotated[bool, typer.Option("--trace", help="Show each step of each packet.")] = False,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Run a test in the format of the Simple Test Framework (STF)."""
    answer = json.loads(_core.stf(program, test, include_dirs(include), define or [], engine, trace, seed))
    text = answer.pop("text")
    if as_json:
        print_json(answer)
    elif answer["ok"]:
        for item in answer["answers"]:
            print(f"{test}:{item['line']}: {item['answer']}")
        sys.stdout.write(text)
    if as_json:
        sys.stderr.writelines(f"note: {note}\n" for note in answer["notes"])
    if not answer["ok"]:
        sys.stderr.write(text)
        raise typer.Exit(FAILED)


def _input(text: str) -> tuple[int, str]:
    port, equals, path = text.partition("=")
    if not equals or not path or not (port.isascii() and port.isdigit()):
        raise typer.BadParameter(f"{text!r} is not PORT=FILE, as 0=trace.pcap", param_hint="--in")
    if int(port[:20]) > LAST_PORT:
        raise typer.BadParameter(
            f"{text!r}: port {port[:20]} is not possible: ports are 0 to {LAST_PORT}", param_hint="--in"
        )
    return int(port), path


def replay(
    program: Program,
    inputs: Annotated[
        list[str],
        typer.Option(
            "--in",
            metavar="PORT=FILE",
            help="Capture (pcap or pcapng) that arrives by PORT.",
            show_default=False,
        ),
    ],
    out: Annotated[
        Path,
        typer.Option(
            metavar="DIR", help="Folder for the captures portN.pcap of the output ports.", show_default=False
        ),
    ],
    commands: Commands = None,
    controller: ControllerFile = None,
    cpu_port: CpuPort = None,
    include: Include = None,
    define: Define = None,
    engine: EngineOption = Engine.AUTO,
    trace: Annotated[
        int,
        typer.Option(
            "--trace", metavar="N", min=0, max=2**64 - 1, help="Show each step of the first N packets."
        ),
    ] = 0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Send the packets of captures through a program at their timestamps."""
    from tidegate import p4
    from tidegate.control.files import load
    from tidegate.replay import replay as play

    if cpu_port is not None and controller is None:
        raise typer.BadParameter("it is for --controller; give that too", param_hint="--cpu-port")
    ports = [_input(text) for text in inputs]

    def progress(count: int) -> None:
        sys.stderr.write(f"\r{count:,} packets ")
        sys.stderr.flush()

    show = sys.stderr.isatty()
    answer = play(
        p4.compile(program, includes=include or [], defines=define or []),
        ports,
        out,
        commands=commands,
        controllers=[] if controller is None else load(controller),
        cpu_port=cpu_port,
        name=program.stem,
        engine=engine.value,
        trace=trace,
        seed=seed,
        progress=progress if show else None,
    ).answer
    if show:
        sys.stderr.write("\r\x1b[K")
    trace_text = answer.pop("trace_text")
    for note in answer["notes"]:
        sys.stderr.write(f"note: {note}\n")
    if as_json:
        print_json(answer)
        return
    sys.stdout.write(trace_text)
    _print_replay(answer)


def _print_replay(answer: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    for reading in answer["readings"]:
        print(f"{reading['command']}\n  before: {reading['before']}\n  after:  {reading['after']}")
    table = Table(box=None, pad_edge=False)
    for name in ("", "port", "packets", "bytes", "file"):
        table.add_column(name, justify="right" if name in ("port", "packets", "bytes") else "left")
    for direction, items in (("in", answer["inputs"]), ("out", answer["outputs"])):
        for item in items:
            table.add_row(
                direction, str(item["port"]), f"{item['packets']:,}", f"{item['bytes']:,}", item["file"]
            )
    for reason, packets in answer["drops"].items():
        table.add_row("dropped", "", f"{packets:,}", "", reason)
    Console(highlight=False, soft_wrap=True, markup=False).print(table)
    if answer["controller_notes"]:
        print(f"{counted(len(answer['controller_notes']), 'note')} of controllers in {answer['notes_file']}")
    if answer["ns_per_packet"] is not None:
        print(f"{answer['ns_per_packet']} ns per packet in the program")


def _print_summary(answer: dict[str, Any]) -> None:
    from rich.console import Console

    summary = answer["summary"]
    console = Console(highlight=False, soft_wrap=True)

    def say(text: str = "") -> None:
        console.print(text, markup=False)

    say(f"{answer['program']}: {summary['architecture']} program")
    if summary["headers"]:
        say("\nheaders")
    for header in summary["headers"]:
        varbit = " and a varbit" if header["varbit"] else ""
        say(
            f"  {header['name']}  {header['type']}, {counted(header['bits'], 'bit')} in {counted(header['fields'], 'field')}{varbit}"
        )
    parser = summary["parser"]
    say(f"\nparser {parser['name']}\n  {', '.join(parser['states'])}")
    say(f"\ncontrols\n  {', '.join(summary['controls'])}")
    if summary["tables"]:
        say("\ntables")
    for table in summary["tables"]:
        entries = f", {counted(table['entries'], 'entry', 'entries')}" if table["entries"] else ""
        say(f"  {table['name']}  size {table['size']}{entries}")
        for key in table["keys"]:
            say(f"    {key['name']}: {key['match']}, {counted(key['bits'], 'bit')}")
        for action in table["actions"]:
            parameters = ", ".join(f"{p['name']}: {counted(p['bits'], 'bit')}" for p in action["parameters"])
            default = "  (default)" if action["name"] == table["default_action"] else ""
            say(f"    {action['name']}({parameters}){default}")
    for kind in ("action_profiles", "counters", "meters", "registers", "value_sets"):
        if summary[kind]:
            say(f"\n{kind.replace('_', ' ')}")
        for item in summary[kind]:
            bits = f" of {counted(item['bits'], 'bit')}" if "bits" in item else ""
            say(f"  {item['name']}  size {item['size']}{bits}")
    if summary["digests"]:
        say(f"\ndigests\n  {', '.join(summary['digests'])}")
