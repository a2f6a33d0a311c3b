"""`tidegate man DIR`: man pages, one for each command, made from the commands; and the agent's, which operators read.

Roff of the macro set `man`, which every reader of man pages takes. Each text comes from the help of a command.
"""

from __future__ import annotations

import os
import textwrap
import time
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from tidegate import _core
from tidegate.command_tree import Command, Parameter, tree
from tidegate.files import replacing, why

EXIT_STATUS = (
    ("0", "Success."),
    ("1", "The input, the run or the machine is at fault; one message says what is wrong."),
    ("2", "Wrong usage."),
    ("3", "A bug in Tidegate."),
    ("130", "Interrupted."),
)


AGENT = "tidegate-agent.8"
WIDTH = 72
MOST_IN_SYNOPSIS = 40
"""Characters of a value there; longer ones stand in full at their options."""


def escape(text: str) -> str:
    r"""Text as roff takes it.

    >>> escape("--set a\\b")
    '\\-\\-set a\\eb'
    >>> escape(".P4 is a suffix")
    '\\&.P4 is a suffix'
    """
    out = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("^", "\\(ha")
    out = out.replace("~", "\\(ti")
    return f"\\&{out}" if out.startswith((".", "'")) else out


def _lines(text: str) -> list[str]:
    """Text of a paragraph in lines of roff. A line that begins with a control character would be a request."""
    return [
        escape(line) for line in textwrap.wrap(text, WIDTH, break_on_hyphens=False, break_long_words=False)
    ]


def page_name(command: Command) -> str:
    """The name of its page: `tidegate-agent-status`."""
    return "-".join(command.path)


def _synopsis(command: Command) -> Iterator[str]:
    words = [f"\\fB{escape(command.name)}\\fR"]
    for one in command.options:
        text = "|".join(f"\\fB{escape(name)}\\fR" for name in (one.names[0], *one.negative[:1]))
        if one.value is not None:
            value = one.value if len(one.value) <= MOST_IN_SYNOPSIS else "VALUE"
            text += f" \\fI{escape(value)}\\fR"
        if not one.required:
            text = f"[{text}]"
        words.append(text + ("..." if one.multiple else ""))
    for one in command.arguments:
        text = f"\\fI{escape(one.value or '')}\\fR"
        words.append((text if one.required else f"[{text}]") + ("..." if one.multiple else ""))
    if command.invocable:
        yield from words
    if command.commands:
        if command.invocable:
            yield ".br"
        yield f"\\fB{escape(command.name)}\\fR \\fICOMMAND\\fR ..."


def _parameters(title: str, parameters: tuple[Parameter, ...]) -> Iterator[str]:
    if not parameters:
        return
    yield f".SH {title}"
    for one in parameters:
        yield ".TP"
        value = "" if one.value is None else f"\\fI{escape(one.value)}\\fR"
        names = ", ".join(f"\\fB{escape(name)}\\fR" for name in (*one.names, *one.negative))
        yield f"{names} {value}".strip()
        yield from _lines(one.help or "No description.")
        if one.multiple and one.names:
            yield "Can be given several times."
        if one.default is not None:
            yield from _lines(f"Default: {one.default}.")


def page(command: Command, version: str, pages: dict[str, Command]) -> str:
    """The page of a command."""
    name = page_name(command)
    about = _lines(command.summary.split(". ")[0].rstrip("."))
    lines = [
        f'.TH {name.upper()} 1 "{_date()}" "Tidegate {version}" "Tidegate"',
        ".SH NAME",
        f"{escape(name)} \\-",
        *about,
        ".SH SYNOPSIS",
        *_synopsis(command),
        ".SH DESCRIPTION",
    ]
    for number, paragraph in enumerate(command.help.split("\n\n")):
        lines += [*([".PP"] if number else []), *_lines(paragraph)]
    if command.commands:
        lines.append(".SH COMMANDS")
        for below in command.commands:
            lines += [".TP", f"\\fB{escape(below.name)}\\fR", *_lines(below.summary)]
    lines += _parameters("ARGUMENTS", command.arguments)
    lines += _parameters("OPTIONS", command.options)
    lines.append(".SH EXIT STATUS")
    for status, meaning in EXIT_STATUS:
        lines += [".TP", f"\\fB{status}\\fR", *_lines(meaning)]
    others = [
        f"\\fB{escape(other)}\\fR(1)"
        for other, one in pages.items()
        if one is not command and (one.path[:-1] == command.path or one.path == command.path[:-1])
    ]
    if command.path[1:2] == ("agent",):
        others.append("\\fBtidegate\\-agent\\fR(8)")
    lines += [".SH SEE ALSO", ",\n".join(others)]
    return "\n".join(lines) + "\n"


def _date() -> str:
    """The day of the build; SOURCE_DATE_EPOCH sets it where builds are to be repeatable."""
    seconds = float(os.environ.get("SOURCE_DATE_EPOCH", time.time()))
    return time.strftime("%Y-%m-%d", time.gmtime(seconds))


def write(folder: Path) -> list[Path]:
    """Write all pages into a folder; gives their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    pages = {page_name(one): one for one in tree().all()}
    written = []
    for name, command in pages.items():
        path = folder / f"{name}.1"
        with replacing(path) as file:
            file.write(page(command, _core.__version__, pages).encode())
        written.append(path)
    path = folder / AGENT
    with replacing(path) as file:
        file.write(resources.files("tidegate.systems.pacing.service").joinpath(AGENT).read_bytes())
    return [*written, path]


def man(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="Folder for the pages.", show_default=False)],
) -> None:
    """Write man pages of all commands into a folder; `man -l DIR/tidegate.1` shows one."""
    try:
        written = write(folder)
    except OSError as error:
        raise _core.TidegateError(
            f"{folder}: man pages cannot be written there: {why(error)}; give another folder"
        ) from None
    for path in written:
        print(path)
