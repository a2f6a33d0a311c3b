"""What the commands print, and how they end: results to standard output, messages to standard error."""

from __future__ import annotations

import errno
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stdout, suppress
from functools import partial
from typing import TYPE_CHECKING, Any

from tidegate import _core, logs
from tidegate.files import json_text, why

if TYPE_CHECKING:
    from tidegate.experiments.answer import Answer

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


class Told(SystemExit):
    """Exit of a command that has already printed the reason."""


_answer: Callable[[str], object] | None = None
"""Writes the one object while standard output is kept for it."""


@contextmanager
def kept_for_answers(asked: bool) -> Iterator[None]:
    """While this lasts, standard output has the object of `--json` alone: what else is printed, as by code of the user's in this process
    and in those of runs, goes to standard error."""
    global _answer
    if not asked or _answer is not None:
        yield
        return
    before = sys.stdout
    before.flush()
    try:
        number = before.fileno()
    except (OSError, ValueError):
        number = None
    with ExitStack() as stack:
        stack.enter_context(redirect_stdout(sys.stderr))
        if number is None:
            _answer = before.write
        else:
            kept = os.dup(number)
            stack.callback(os.close, kept)
            stack.callback(os.dup2, kept, number)
            os.dup2(2, number)
            _answer = partial(_write, kept, before.encoding)
        try:
            yield
        finally:
            _answer = None


def _write(number: int, encoding: str, text: str) -> None:
    """All of a text to a descriptor."""
    left = text.encode(encoding, "backslashreplace")
    while left:
        left = left[os.write(number, left) :]


def print_json(answer: dict[str, Any]) -> None:
    """The one object of `--json`; what is not finite is null."""
    text = json_text(answer, ensure_ascii=False) + "\n"
    (_answer or sys.stdout.write)(text)


def color() -> bool:
    """Whether messages are coloured."""
    return sys.stderr.isatty() and "NO_COLOR" not in os.environ


def warn(answer: Answer) -> None:
    """Say what is to be known of an answer beside its rows."""
    if answer.complete_before:
        sys.stderr.write(f"{answer['out']} is complete: nothing was run\n")
    for warning in answer["warnings"]:
        sys.stderr.write(f"warning: {warning}\n")


def print_rows(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> None:
    """A table of `columns`, or of all that a row has where none are named."""
    if not rows:
        print("no rows")
        return
    from tidegate.cli import tables

    names = columns or tuple(dict.fromkeys(name for row in rows for name in row))
    right = [at for at, name in enumerate(names) if not any(isinstance(row.get(name), str) for row in rows)]
    cells = []
    for row in rows:
        values = ["-" if value is None else value for value in (row.get(name, "") for name in names)]
        cells.append([f"{value:.4g}" if isinstance(value, float) else str(value) for value in values])
    # The first columns that tell the rows apart.
    keys = next((n for n in range(1, len(names)) if len({tuple(row[:n]) for row in cells}) == len(cells)), 1)
    tables.show(names, cells, right, keys)


def report_bug(error: BaseException) -> None:
    """Say that Tidegate is at fault."""
    report(
        f"tidegate: this is a bug in Tidegate: {type(error).__name__}: {error}\n"
        f"Please report it with the command, its input files, and this version: {_core.__version__}."
    )
    for note in getattr(error, "__notes__", ()):
        sys.stderr.write(f"{note}\n")


def report(text: str) -> None:
    """Say what went wrong: to standard error, in the form of `--log-format`, and with `--json` as the one object."""
    logs.report(text)
    if "--json" in sys.argv[1:]:
        place = PLACE.match(text)
        found: dict[str, Any] = {"message": text}
        if place is not None:
            found["place"] = place[1]
        with suppress(OSError):
            print_json({"error": found})
            sys.stdout.flush()


def machine_s(error: OSError) -> str:
    """What to say of an error that the machine gives, and not a mistake in Tidegate."""
    return why(error) if error.filename is None else f"{error.filename}: {why(error)}"
