"""The command `tidegate`.

Results go to standard output, progress and messages to standard error. With `--json`, standard output holds
exactly one JSON object, of an error too: `{"error": {"message": ..., "place": ...}}`. Exit codes: 0 success, 1 the
input, the run or the machine is at fault, 2 wrong usage, 3 a bug in Tidegate, 130 interrupted.
"""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from rich.console import Console
from rich.table import Table

from tidegate import INCLUDE, _core
from tidegate._core import TidegateError
from tidegate.files import why
from tidegate.lab.death import handled, interrupting
from tidegate.monitor import monitor
from tidegate.options import (
    Commands,
    ControllerFile,
    CpuPort,
    Define,
    Engine,
    EngineOption,
    Include,
    Json,
    Program,
    Seed,
)
from tidegate.suggest import did_you_mean
from tidegate.switch.command import switch
from tidegate.systems.pacing.service.command import agent

if TYPE_CHECKING:
    from tidegate.experiments import Experiment

app = typer.Typer(
    name="tidegate",
    help="P4 data planes that help TCP: compile, test and run P4_16 programs, simulate networks, run experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _include_dirs(given: list[str] | None) -> list[str]:
    """Those that are asked for, and last the one with `tidegate/p4`."""
    return [*(given or []), INCLUDE]


FAILED = 1
BUG = 3
INTERRUPTED = 130
OF_THE_MACHINE = {
    getattr(errno, name)
    for name in [
        "ENOSPC",
        "EDQUOT",
        "EROFS",
        "EFBIG",
        "EIO",
        "EACCES",
        "EPERM",
        "ENOENT",
        "ENOTDIR",
        "EISDIR",
        "EEXIST",
        "ENOTEMPTY",
        "ELOOP",
        "ENAMETOOLONG",
        "EXDEV",
        "ETXTBSY",
        "EBUSY",
        "EMFILE",
        "ENFILE",
        "ENOMEM",
        "EAGAIN",
        "ENOSYS",
        "EOPNOTSUPP",
        "EPROTONOSUPPORT",
        "EAFNOSUPPORT",
        "ENODEV",
        "ENXIO",
        "EADDRINUSE",
        "ENETDOWN",
        "EADDRNOTAVAIL",
        "ENOBUFS",
        "ETIMEDOUT",
        "ECONNREFUSED",
        "ECONNRESET",
        "ENETUNREACH",
        "EHOSTUNREACH",
    ]
}
"""Errors of the system that say something of the machine; others are of wrong calls."""
PLACE = re.compile(r"([^\s:]+:\d+(?::\d+)?): ")


class _Told(SystemExit):
    """Exit of a command that has already printed the reason."""


def _print_json(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer, ensure_ascii=False) + "\n")


def _color() -> bool:
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ


def _version(value: bool) -> None:
    if value:
        print(f"tidegate {_core.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


@app.command()
def check(
    program: Program,
    include: Include = None,
    define: Define = None,
    p4info: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write P4Info (protobuf text).", show_default=False)
    ] = None,
    as_json: Json = False,
) -> None:
    """Compile a program and print diagnostics or a summary."""
    answer = json.loads(
        _core.check(program, _include_dirs(include), define or [], p4info, color=_color() and not as_json)
    )
    rendered = answer.pop("rendered")
    sys.stderr.write(rendered)
    if as_json:
        _print_json(answer)
    elif "summary" in answer:
        _print_summary(answer)
    if not answer["ok"]:
        raise typer.Exit(FAILED)


@app.command()
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
    answer = json.loads(_core.stf(program, test, _include_dirs(include), define or [], engine, trace, seed))
    text = answer.pop("text")
    if as_json:
        _print_json(answer)
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
    if not equals or not path or not (port.isascii() and port.isdigit()) or int(port) >= 2**32:
        raise typer.BadParameter(f"{text!r} is not PORT=FILE", param_hint="--in")
    return int(port), path


@app.command()
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
        int, typer.Option("--trace", metavar="N", min=0, help="Show each step of the first N packets.")
    ] = 0,
    seed: Seed = 0,
    as_json: Json = False,
) -> None:
    """Send the packets of captures through a program at their timestamps."""
    from tidegate import p4
    from tidegate.control.files import load
    from tidegate.replay import replay as play

    if cpu_port is not None and controller is None:
        raise TidegateError("--cpu-port is for --controller; give it too")
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
        _print_json(answer)
        return
    sys.stdout.write(trace_text)
    _print_replay(answer)


def _print_replay(answer: dict[str, Any]) -> None:
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
        print(f"{len(answer['controller_notes'])} notes of controllers in {answer['notes_file']}")
    if answer["ns_per_packet"] is not None:
        print(f"{answer['ns_per_packet']} ns per packet in the program")


def _print_summary(answer: dict[str, Any]) -> None:
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
            f"  {header['name']}  {header['type']}, {header['bits']} bits in {header['fields']} fields{varbit}"
        )
    parser = summary["parser"]
    say(f"\nparser {parser['name']}\n  {', '.join(parser['states'])}")
    say(f"\ncontrols\n  {', '.join(summary['controls'])}")
    if summary["tables"]:
        say("\ntables")
    for table in summary["tables"]:
        entries = f", {table['entries']} entries" if table["entries"] else ""
        say(f"  {table['name']}  size {table['size']}{entries}")
        for key in table["keys"]:
            say(f"    {key['name']}: {key['match']}, {key['bits']} bits")
        for action in table["actions"]:
            parameters = ", ".join(f"{p['name']}: {p['bits']} bits" for p in action["parameters"])
            default = "  (default)" if action["name"] == table["default_action"] else ""
            say(f"    {action['name']}({parameters}){default}")
    for kind in ("action_profiles", "counters", "meters", "registers", "value_sets"):
        if summary[kind]:
            say(f"\n{kind.replace('_', ' ')}")
        for item in summary[kind]:
            bits = f" of {item['bits']} bits" if "bits" in item else ""
            say(f"  {item['name']}  size {item['size']}{bits}")
    if summary["digests"]:
        say(f"\ndigests\n  {', '.join(summary['digests'])}")


app.command()(monitor)
app.command()(switch)
app.add_typer(agent)


@app.command(name="list")
def list_experiments(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="[NAME]",
            help="An experiment, to see all of it, or a system.  [default: all]",
            show_default=False,
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """List the experiments and their parameters; of one, what it shows, and each parameter's type, unit and values."""
    from tidegate.experiments import all_experiments, of_system

    found = list(all_experiments().values()) if name is None else of_system(name)
    if as_json:
        _print_json(
            {
                "experiments": [
                    {
                        "name": e.name,
                        "also": e.also,
                        "summary": e.summary,
                        "backends": list(e.backends),
                        "parameters": e.parameters(),
                        "live": dict(e.live),
                        "quick": dict(e.quick),
                        "about": e.about(),
                    }
                    for e in found
                ]
            }
        )
        return
    if len(found) == 1:
        _print_experiment(found[0])
        return
    for one in found:
        also = f", {one.also}" if one.also else ""
        print(f"{one.name}{also}  ({', '.join(one.backends)})\n    {one.summary}")
        for name, default in one.parameters().items():
            live = f" (live: {_shown(one.live[name])})" if name in one.live else ""
            print(f"      {name}={_shown(default)}{live}")


def _print_experiment(one: Experiment) -> None:
    """All of an experiment."""
    from tidegate.experiments import MOST

    also = f", {one.also}" if one.also else ""
    print(f"{one.name}{also}  ({', '.join(one.backends)})\n\n{one.text}\n")
    for name, about in one.about().items():
        unit = f", {about['unit']}" if about["unit"] else ""
        print(f"{name}: {about['type']}{unit}")
        if "known" in about:
            print(f"    of {', '.join(map(str, about['known']))}")
        if "least" in about:
            most = f" to {about['most']:g}" if about["most"] < MOST else " on"
            print(f"    from {about['least']:g}{most}")
        print(f"    default: {_shown(one.parameters()[name])}")
        for text, others in (
            ("--quick", one.quick),
            ("--backend live", one.live),
            ("--backend live --quick", one.live_quick),
        ):
            if name in others:
                print(f"    {text}: {_shown(others[name])}")
    print(f"\ntidegate run {one.name} --quick")


def _shown(value: object) -> str:
    """A parameter's value as `--set` takes it."""
    return ",".join(str(item) for item in value) if isinstance(value, tuple) else str(value)


@app.command()
def run(
    experiment: Annotated[
        str, typer.Argument(metavar="SYSTEM.EXPERIMENT", help="An experiment of `tidegate list`.")
    ],
    backend: Annotated[
        str, typer.Option(metavar="sim|live", help="Simulator, or real Linux hosts (needs root).")
    ] = "sim",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="NAME=VALUE", help="Set a parameter of the experiment.", show_default=False
        ),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, max=2**63, help="First seed.")] = 1,
    repeat: Annotated[int, typer.Option(metavar="N", min=1, max=10_000, help="Number of seeds.")] = 1,
    quick: Annotated[bool, typer.Option("--quick", help="Shorter runs with fewer cases.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR",
            help="Folder for the results.  [default: runs/SYSTEM.EXPERIMENT]",
            show_default=False,
        ),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run that was interrupted there.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Run an experiment: prints tables and claims beside measured values; writes a figure."""
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    from tidegate import backends, experiments
    from tidegate.progress import Estimate

    if backend not in backends.NAMES:
        known = ", ".join(backends.NAMES)
        raise typer.BadParameter(
            f"there is no backend {backend!r}; {did_you_mean(backend, backends.NAMES)}known: {known}",
            param_hint="--backend",
        )
    one = experiments.find(experiment)
    parameters = experiments.with_settings(one, settings or [], quick, backend)
    experiments.demand_backend(one, backend)
    if backend == "live":
        length = experiments.clock_time(one, parameters, repeat)
        sys.stderr.write(f"live runs take real time, one case after another: at least {length}\n")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    console = Console(stderr=True)
    say = Estimate(lambda text: sys.stderr.write(f"{experiment}: {text}\n"))
    if not quick and backend == "sim":
        cases, simulated = experiments.size(one, parameters, repeat)
        sys.stderr.write(
            f"{experiment}: {cases} runs of {simulated} of simulated time in all, on {os.cpu_count()} processors; "
            "--quick has fewer and shorter ones\n"
        )

    def progress(done: float, total: int) -> None:
        bar.update(task, completed=done, total=total)
        if not quick and backend == "sim":
            say(done, total)

    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task(experiment, total=None)
        try:
            answer = experiments.run(
                experiment,
                parameters,
                backend=backend,
                seeds=list(range(seed, seed + repeat)),
                quick=quick,
                out=out if out is not None else Path("runs") / experiment,
                progress=progress,
                processes=os.cpu_count() or 1,
                resume=resume,
            )
        except experiments.Interrupted as stopped:
            # The command line's parser turns the exception into an exit without its text.
            bar.stop()
            _report(str(stopped))
            raise _Told(INTERRUPTED) from None
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")
    if as_json:
        _print_json(answer)
        return
    _print_rows(answer["rows"], one.table)
    for claim in answer["claims"]:
        verdict = "holds" if claim["holds"] else "DOES NOT HOLD"
        said = "ours" if claim["published"] is None else f"{claim['of']}: {claim['published']}"
        why = "" if claim["holds"] else f"; why: {claim['why'] or 'not known'}"
        print(f"{verdict}: {claim['statement']}: {claim['measured']} ({said}){why}")
    print(f"{answer['out']}/figure.png")


@app.command()
def clean(as_json: Json = False) -> None:
    """Remove what killed live runs and killed agents have left behind; what is in use stays."""
    from tidegate.lab import names
    from tidegate.systems.pacing.service import service

    removed = names.remove_dead() + service.clean()
    running = sorted(path.name for path in names.sort()[0])
    if as_json:
        _print_json({"removed": removed, "running": running})
        return
    for kind, found in (("removed", removed), ("in use", running)):
        for name in found:
            print(f"{kind}: {name}")


@app.command()
def plot(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder of a run.")],
) -> None:
    """Redraw the figure of a run from its tables."""
    from tidegate.experiments import replot

    print(replot(folder))


@app.command()
def claims(
    folders: Annotated[list[Path], typer.Argument(metavar="DIR", help="Folders of runs.")],
    as_json: Json = False,
) -> None:
    """Judge the claims of a system's paper by runs: found, not found, cannot tell; of black boxes, like it or not like it."""
    from tidegate import papers

    rows = papers.judge_runs(folders)
    if as_json:
        _print_json({"papers": {name: paper for name, (paper, _) in papers.papers().items()}, "claims": rows})
        return
    _print_rows(rows, ("system", "id", "where", "statement", "verdict", "measured"))


def _print_rows(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    table = Table()
    names = columns or tuple(rows[0])
    for name in names:
        table.add_column(name, justify="left" if isinstance(rows[0][name], str) else "right")
    for row in rows:
        values = [row[name] for name in names]
        table.add_row(*(f"{value:.4g}" if isinstance(value, float) else str(value) for value in values))
    # A file or a pipe has no width to fit into.
    (Console() if sys.stdout.isatty() else Console(width=240)).print(table)


def _report_bug(error: BaseException) -> None:
    _report(
        f"tidegate: this is a bug in Tidegate: {type(error).__name__}: {error}\n"
        f"Please report it with the command, its input files, and this version: {_core.__version__}."
    )
    for note in getattr(error, "__notes__", ()):
        sys.stderr.write(f"{note}\n")


def _report(text: str) -> None:
    """Say what went wrong: to standard error, and with `--json` as the one object."""
    sys.stderr.write(f"{text}\n")
    if "--json" in sys.argv[1:]:
        place = PLACE.match(text)
        found: dict[str, Any] = {"message": text}
        if place is not None:
            found["place"] = place[1]
        with suppress(OSError):
            _print_json({"error": found})
            sys.stdout.flush()


def _machine_s(error: OSError) -> str:
    """What to say of an error that the machine gives, and not a mistake in Tidegate."""
    return why(error) if error.filename is None else f"{error.filename}: {why(error)}"


def _run_app() -> None:
    if "--json" not in sys.argv[1:]:
        app()
        return
    try:
        code = app(standalone_mode=False)
    except Exception as error:
        # Wrong usage, of which the parser has a class of its own.
        if not hasattr(error, "format_message"):
            raise
        error.show()  # type: ignore[attr-defined]
        with suppress(OSError):
            _print_json({"error": {"message": error.format_message()}})
        sys.exit(error.exit_code)  # type: ignore[attr-defined]
    if isinstance(code, int) and code:
        sys.exit(code)


def main() -> None:
    """Entry point; never shows a traceback."""
    try:
        # They end a command as Ctrl-C does, so that nothing half-made is left. Some have their own way.
        with handled(interrupting(), (signal.SIGTERM, signal.SIGHUP), only_default=True):
            _run_app()
        _leave(0)
    except _core.TidegateError as error:
        _report(str(error))
        _leave(FAILED)
    except KeyboardInterrupt as stopped:
        _report(str(stopped) or "interrupted")
        _leave(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has closed the pipe.
        _silence()
        sys.exit(FAILED)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED and not isinstance(leaving, _Told):
            _report("interrupted")
        _leave(leaving.code)
    except OSError as error:
        if error.errno not in OF_THE_MACHINE:
            _report_bug(error)
            _leave(BUG)
        _report(_machine_s(error))
        _leave(FAILED)
    except MemoryError:
        _report("there is not enough memory")
        _leave(FAILED)
    except BaseException as error:
        _report_bug(error)
        _leave(BUG)


def _silence() -> None:
    """What is still to be written to standard output goes nowhere."""
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, sys.stdout.fileno())
    os.close(null)


def _leave(code: Any) -> NoReturn:
    """Exit, after what is still to be written; where that fails, with one message."""
    sys.exit((code or FAILED) if _output_fails() else code)


def _output_fails() -> bool:
    """Whether standard output does not take what is to be written there; says so."""
    try:
        sys.stdout.flush()
    except OSError as error:
        if not isinstance(error, BrokenPipeError):
            sys.stderr.write(f"standard output: {_machine_s(error)}\n")
        _silence()
        return True
    return False


if __name__ == "__main__":
    main()
