"""The entry point: runs a command, and turns what ends it into an exit status and one message."""

from __future__ import annotations

import os
import signal
import sys
from contextlib import suppress
from itertools import pairwise
from typing import Any, NoReturn

import typer

from tidegate import _core, logs
from tidegate.cli.commands import app
from tidegate.cli.output import (
    BUG,
    FAILED,
    INTERRUPTED,
    OF_THE_MACHINE,
    Told,
    kept_for_answers,
    machine_s,
    print_json,
    report,
    report_bug,
)
from tidegate.lab.death import handled, interrupting


def _run_app() -> None:
    logs.listen(logs.ERRORS, as_json=logs.asked(sys.argv) == "json")
    try:
        _demand_words(sys.argv[1:])
        with kept_for_answers("--json" in sys.argv[1:]):
            code = app(standalone_mode=False)
    except Exception as error:
        # Wrong usage, of which the parser has a class of its own.
        if not hasattr(error, "format_message"):
            raise
        if logs.is_json(logs.ERRORS):
            report(error.format_message())
        else:
            error.show()  # type: ignore[attr-defined]
            if "--json" in sys.argv[1:]:
                with suppress(OSError):
                    print_json({"error": {"message": error.format_message()}})
        sys.exit(error.exit_code)  # type: ignore[attr-defined]
    if isinstance(code, int) and code:
        sys.exit(code)


def _demand_words(words: list[str]) -> None:
    """Refuse empty words, which would stand for the current folder: mostly a variable of the shell that is not set."""
    if words[:1] == ["complete"]:
        return
    for before, word in pairwise(["", *words]):
        # An empty line of a lab's prompt is one.
        if word == "" and before != "-c":
            raise typer.BadParameter(
                f"the word after {before or 'tidegate'!r} is empty; is a variable of the shell not set?"
            )


def main() -> None:
    """Entry point; never shows a traceback."""
    try:
        # They end a command as Ctrl-C does, so that nothing half-made is left. Some have their own way.
        with handled(interrupting(), (signal.SIGTERM, signal.SIGHUP), only_default=True):
            _run_app()
        _leave(0)
    except _core.TidegateError as error:
        report("\n".join([str(error), *getattr(error, "__notes__", ())]))
        _leave(FAILED)
    except KeyboardInterrupt as stopped:
        report(str(stopped) or "interrupted")
        _leave(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has closed the pipe.
        _silence()
        sys.exit(FAILED)
    except SystemExit as leaving:
        if leaving.code == INTERRUPTED and not isinstance(leaving, Told):
            report("interrupted")
        _leave(leaving.code)
    except OSError as error:
        if error.errno not in OF_THE_MACHINE:
            report_bug(error)
            _leave(BUG)
        report(machine_s(error))
        _leave(FAILED)
    except MemoryError:
        report("there is not enough memory")
        _leave(FAILED)
    except BaseException as error:
        report_bug(error)
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
            sys.stderr.write(f"standard output: {machine_s(error)}\n")
        _silence()
        return True
    return False
