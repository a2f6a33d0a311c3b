"""The prompt of a topology: lines of a person or of a file, until `exit`."""

from __future__ import annotations

import io
import sys
from collections.abc import Iterable, Iterator

from tidegate._core import TidegateError
from tidegate.exercises import commands
from tidegate.exercises.running import LiveTopology

PROMPT = "tidegate> "


def _typed() -> Iterator[str]:
    """Lines of a terminal. Ctrl-C leaves the line, Ctrl-D ends."""
    # Editing and history; without the module lines can be typed as well.
    try:
        import readline  # noqa: F401
    except ImportError:
        sys.stderr.write("no line editing: this Python has no readline\n")
    while True:
        try:
            yield input(PROMPT)
        except EOFError:
            print()
            return
        except Told:
            raise
        except KeyboardInterrupt:
            print()


class Told(KeyboardInterrupt):
    """A signal other than Ctrl-C: all is to end."""


def interact(net: LiveTopology) -> bool:
    """Lines of standard input; gives whether all succeeded, which counts where no person types."""
    person = sys.stdin.isatty()
    if isinstance(sys.stdin, io.TextIOWrapper):
        # A line that is no text costs that line.
        sys.stdin.reconfigure(errors="surrogateescape")
    if person:
        print("`help` shows what one can type; Ctrl-D ends")
    good = True
    for number, line in enumerate(_typed() if person else sys.stdin, 1):
        try:
            _demand_text(line, number)
            good = commands.run(net, line, interactive=person) and good
        except commands.Done:
            break
        except TidegateError as error:
            net.check()
            sys.stderr.write(f"{error}\n")
            good = False
        except Told:
            raise
        except KeyboardInterrupt:
            if not person:
                raise
            print()
    return person or good


def _demand_text(line: str, number: int) -> None:
    try:
        line.encode()
    except UnicodeEncodeError:
        raise TidegateError(f"line {number} of standard input is not text in UTF-8; it is left out") from None


def carry_out(net: LiveTopology, lines: Iterable[str]) -> bool:
    """These lines (`-c`); gives whether all succeeded. Ends at the first that cannot be."""
    good = True
    for line in lines:
        try:
            good = commands.run(net, line) and good
        except commands.Done:
            break
    return good
