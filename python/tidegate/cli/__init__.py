"""The command `tidegate`.

Results go to standard output, progress and messages to standard error. With `--json`, standard output holds
exactly one JSON object, of an error too: `{"error": {"message": ..., "place": ...}}`. Exit codes: 0 success, 1 the
input, the run or the machine is at fault, 2 wrong usage, 3 a bug in Tidegate, 130 interrupted.
"""

from tidegate.cli.commands import app
from tidegate.cli.entry import main
from tidegate.cli.output import BUG, FAILED, INTERRUPTED, OF_THE_MACHINE

__all__ = ["BUG", "FAILED", "INTERRUPTED", "OF_THE_MACHINE", "app", "main"]
