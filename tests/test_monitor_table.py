"""The table of `tidegate monitor` on terminals of several widths, and in a pipe."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from contextlib import suppress
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from conftest import Run
from test_monitor import Talk, bulk, later, written
from tidegate.monitor_table import LEAST_FIRST, table

LONG = ("fd00:1111:2222:3333:4444:5555:6666:7777", "fd00:1111:2222:3333:4444:5555:6666:8888")
COLUMNS = ("", "from", "to", "packets", "bytes", "RTT min", "p50", "p95", "p99 ms")
ROWS = [
    ("tcp", "10.0.0.1:1000", "10.0.0.2:80", "44,715", "67,068,233", "21.901", "29.278", "59.081", "131.924")
]


@pytest.mark.parametrize(
    ("width", "left_out"),
    [
        (86, []),
        (85, ["p95"]),
        (77, ["packets", "p95"]),
        (56, ["packets", "bytes", "p50", "p95"]),
        (20, list(COLUMNS[3:])),
    ],
)
def test_numbers_are_whole_or_left_out(width: int, left_out: list[str]) -> None:
    said = StringIO()
    found, without = table(COLUMNS, ROWS, width)
    Console(file=said, width=width).print(found)
    assert without == left_out
    header, first = said.getvalue().splitlines()
    assert max(len(header), len(first)) <= width
    numbers = dict(zip(COLUMNS, ROWS[0], strict=True))
    assert first.split()[3 if width > 20 else 2 :] == [
        numbers[name] for name in COLUMNS[3:] if name not in left_out
    ]


def test_each_number_can_be_left_out() -> None:
    from tidegate.monitor_taps import HEADINGS

    assert {*COLUMNS[3:], *HEADINGS, "Mbit/s", "resent", "samples", "Mbit/s now"} == set(LEAST_FIRST)


def test_a_terminal_has_what_there_is_room_for(tmp_path: Path) -> None:
    mine, theirs = pty.openpty()
    words = [sys.executable, "-m", "tidegate", "monitor", str(written(bulk().packets, tmp_path))]
    with os.fdopen(mine, "rb", buffering=0) as terminal:
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, 80, 0, 0))
        # Which would come before the terminal's own size.
        environment = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
        environment["TERM"] = "xterm"
        with subprocess.Popen(
            words, stdout=theirs, stdin=theirs, stderr=subprocess.DEVNULL, env=environment
        ) as ran:
            os.close(theirs)
            said = bytearray()
            # A terminal whose last user is gone gives an error.
            with suppress(OSError):
                while part := terminal.read(1 << 16):
                    said += part
            assert ran.wait(60) == 0
    lines = re.sub(r"\x1b\[[0-9;]*m", "", said.decode()).splitlines()
    assert lines[0].split() == ["from", "to", "Mbit/s", "resent", "RTT", "min", "p50", "p99", "ms"]
    assert "10.000" in lines[1].split()
    assert lines[-1] == "without packets, bytes, samples, p95: the terminal has 80 columns"


def test_a_pipe_has_all_of_it(tidegate: Run, tmp_path: Path) -> None:
    talk = Talk(addresses=LONG)
    at = talk.open()
    for number in range(20):
        talk.send(at + number, 0, 1000 * number, 0, 1000)
    before = written(talk.packets, tmp_path, "before.pcap")
    after = written(later(talk.packets, 3), tmp_path, "after.pcap")
    ran = tidegate("monitor", before, "--after", after)
    header, first, *_ = ran.out.splitlines()
    assert len(header) > 200
    assert "…" not in ran.out
    assert header.split()[-2:] == ["ms", "lost"]
    assert f"[{LONG[0]}]:1000" in first
