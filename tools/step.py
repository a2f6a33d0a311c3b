"""Runs one step of a build, and shows that it goes on.

    python3 tools/step.py "2/4 Python packages" -- pip install ...

The command's output goes to `.venv/setup.log`. On a terminal one line shows how long the step has taken and what it last said;
elsewhere there is a line every four seconds. A step that fails shows the end of its output. Ctrl-C ends it, with what it has started.
It has to run before anything is installed, so it uses the standard library only.
"""

from __future__ import annotations

import os
import re
import selectors
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO

LOG = Path(".venv") / "setup.log"
AGAIN_S = 4.0
TICK_S = 0.5
SHOWN_LINES = 30
INTERRUPTED = 130
# Of make: it kills by itself, and waits.
KILL_AFTER_S = 0.3


def clock(seconds: float) -> str:
    """`1:05`."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02}"


def last_words(output: str) -> str:
    """What a step said last, without colours; of cargo also how many crates there have been."""
    lines = [line.strip() for line in re.split(r"[\r\n]", re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", output))]
    said = next((line for line in reversed(lines) if line), "")
    crates = sum(line.startswith("Compiling ") for line in lines)
    return f"{crates} crates, {said}" if crates else said


class Shown:
    """The line of a step."""

    def __init__(self, name: str, out: IO[str]) -> None:
        self.name = name
        self.out = out
        self.begun = self.said = time.monotonic()
        # Two steps of `make -j` cannot share a line.
        self.in_place = out.isatty() and "jobserver" not in os.environ.get("MAKEFLAGS", "")
        if not self.in_place:
            self._print(f"{name} ...")

    def _print(self, line: str) -> None:
        self.out.write(line + "\n")
        self.out.flush()

    def tick(self, output: str) -> None:
        """Show that it goes on."""
        now = time.monotonic()
        if not self.in_place and now - self.said < AGAIN_S:
            return
        self.said = now
        line = f"{self.name}: {clock(now - self.begun)}  {last_words(output)}"
        if self.in_place:
            width = (os.get_terminal_size(self.out.fileno()).columns or 80) - 1
            self.out.write(f"\r\x1b[K{line[:width]}")
            self.out.flush()
        else:
            self._print(line)

    def end(self, how: str) -> None:
        """The last line."""
        self.out.write("\r\x1b[K" if self.in_place else "")
        self._print(f"{self.name}: {how}")


def stop(running: subprocess.Popen[bytes]) -> None:
    """End a step with all that it has started."""
    for how in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(running.pid, how)
            running.wait(KILL_AFTER_S)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def main(name: str, command: list[str]) -> int:
    """Run a step; gives its exit code."""
    # make ends its children with SIGTERM.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    LOG.parent.mkdir(exist_ok=True)
    shown = Shown(name, sys.stderr)
    output = ""
    running: subprocess.Popen[bytes] | None = None
    with LOG.open("ab") as log:
        log.write(f"== {name}: {' '.join(command)}\n".encode())
        try:
            running = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            assert running.stdout is not None
            with selectors.DefaultSelector() as ready:
                ready.register(running.stdout, selectors.EVENT_READ)
                while True:
                    if ready.select(TICK_S):
                        data = os.read(running.stdout.fileno(), 65536)
                        if not data:
                            break
                        log.write(data)
                        log.flush()
                        output += data.decode(errors="replace")
                    shown.tick(output)
            code = running.wait()
        except KeyboardInterrupt:
            signal.signal(signal.SIGINT, signal.SIG_IGN)
            if running is not None:
                stop(running)
            shown.end("interrupted; the same command goes on from here")
            return INTERRUPTED
    if code:
        shown.end(f"failed after {clock(time.monotonic() - shown.begun)}")
        lines = output.rstrip().splitlines()[-SHOWN_LINES:]
        sys.stderr.write("".join(f"    {line}\n" for line in lines) + f"all of its output: {LOG}\n")
        return code if code > 0 else 1
    shown.end(f"done in {clock(time.monotonic() - shown.begun)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], sys.argv[sys.argv.index("--") + 1 :]))
    except FileNotFoundError as error:
        sys.exit(f"{error.filename}: there is no such program")
