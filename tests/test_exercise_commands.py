"""Commands of hosts in `tidegate lab`: what Ctrl-C ends, what goes on in the background, and what cannot be a command."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from conftest import Run
from namespaces import needs_root
from switches import wait_for
from tidegate._core import TidegateError
from tidegate.exercises import commands, host_commands
from tidegate.exercises.files import read
from tidegate.exercises.running import LiveTopology

ROOT = Path(__file__).resolve().parent.parent
EXAMPLE = ROOT / "examples/exercises/two_routers/topology.json"
PATIENCE_S = 30
IGNORES = "trap '' TERM; echo ready; while true; do sleep 1; done"


@pytest.fixture(autouse=True)
def signals_as_by_default() -> Iterator[None]:
    """Of what runs in the background some are ignored, which what it starts inherits: SIGHUP under nohup, SIGQUIT behind a shell's &."""
    before = {one: signal.signal(one, signal.SIG_DFL) for one in (signal.SIGHUP, signal.SIGQUIT)}
    yield
    for one, how in before.items():
        signal.signal(one, how)


def with_commands(path: Path, host: str, *lines: Any) -> Path:
    """The example with these commands of a host."""
    topology = json.loads(EXAMPLE.read_text())
    topology["hosts"][host]["commands"] += lines
    for switch in topology["switches"].values():
        switch["program"] = str(ROOT / "examples/p4/ipv4_router/ipv4_router.p4")
        switch["runtime_json"] = str(EXAMPLE.parent / switch["runtime_json"])
    path.write_text(json.dumps(topology))
    return path


def processes(marker: str) -> list[str]:
    """Processes with this in their command line."""
    return subprocess.run(["pgrep", "-f", marker], capture_output=True, text=True).stdout.split()


class Terminal:
    """A lab at a terminal of its own."""

    def __init__(self, *words: str) -> None:
        self.pid, self._end = pty.fork()
        if self.pid == 0:
            try:
                for number in (signal.SIGINT, signal.SIGTERM):
                    signal.signal(number, signal.SIG_DFL)
                python = [sys.executable, "-m", "tidegate.cli", "lab", str(EXAMPLE), *words]
                os.execve(sys.executable, python, {**os.environ, "TERM": "dumb"})
            finally:
                os._exit(1)
        self.said = ""

    def wait_for(self, text: str, patience_s: float = PATIENCE_S) -> str:
        """All that it says until this."""
        limit = time.monotonic() + patience_s
        while text not in self.said:
            assert time.monotonic() < limit, self.said
            if select.select([self._end], [], [], 0.1)[0]:
                self.said += os.read(self._end, 4096).decode()
        before, _, self.said = self.said.partition(text)
        return before

    def type(self, text: str) -> None:
        """Keys."""
        os.write(self._end, text.encode())

    def repeat(self, keys: str, text: str) -> None:
        """Keys until it says this: what is typed between a command's end and the reading of the next one is lost at times."""
        for _ in range(10):
            self.type(keys)
            with suppress(AssertionError):
                self.wait_for(text, PATIENCE_S / 10)
                return
        pytest.fail(f"no {text!r}: {self.said}")

    def close(self) -> int:
        """End it; gives its exit status."""
        with suppress(OSError):
            self.type("\x04")
        limit = time.monotonic() + PATIENCE_S
        while (found := os.waitpid(self.pid, os.WNOHANG))[0] == 0 and time.monotonic() < limit:
            with suppress(OSError):
                if select.select([self._end], [], [], 0.1)[0]:
                    os.read(self._end, 4096)
        if found[0] == 0:
            os.kill(self.pid, signal.SIGKILL)
            found = os.waitpid(self.pid, 0)
        os.close(self._end)
        return os.waitstatus_to_exitcode(found[1])


@pytest.fixture
def terminal() -> Iterator[Terminal]:
    one = Terminal()
    try:
        yield one
    finally:
        with suppress(ChildProcessError):
            one.close()


@needs_root
def test_ctrl_c_leaves_what_goes_on_in_the_background(terminal: Terminal) -> None:
    marker = f"27.1{os.getpid()}"
    terminal.wait_for("tidegate> ")
    terminal.type(f"h2 sleep {marker} &\n")
    terminal.wait_for("tidegate> ")
    # What a command has left behind goes on, too.
    terminal.type(f"h3 setsid sleep {marker} & true\n")
    terminal.wait_for("tidegate> ")
    terminal.type("h1 echo re''ady; sleep 100\n")
    terminal.wait_for("ready")
    terminal.repeat("\x03", "tidegate> ")
    terminal.repeat("\x03", "tidegate> ")
    terminal.repeat("jobs\n", f"1: h2 sleep {marker}")
    terminal.wait_for(f"2: h3 setsid sleep {marker} & true")
    assert terminal.close() == 0
    assert processes(f"^sleep {marker}") == []


@needs_root
def test_servers_of_a_host_go_on_with_the_network(tmp_path: Path, tidegate: Run) -> None:
    """By `&` in the file, and daemons, in the file and at the prompt; `kill` ends all that a command has left."""
    marker = f"27.2{os.getpid()}"
    path = with_commands(
        tmp_path / "topology.json",
        "h2",
        f"sleep {marker}1 &",
        f"setsid sleep {marker}2 >/dev/null 2>&1 </dev/null & true",
        # It keeps the pipe from which errors are read.
        f"setsid sleep {marker}3 & true",
    )
    with LiveTopology(read(path)) as live:
        assert commands.run(live, f"h1 sh -c 'setsid sleep {marker}4 &'")
        assert [job.host for job in live.jobs().values()] == ["h2", "h2", "h2", "h1"]
        # What a shell has put into the background may not have begun yet.
        wait_for(lambda: len(processes(f"^sleep {marker}")) == 4)
        assert commands.run(live, "kill 2 4")
        assert list(live.jobs()) == [1, 3]
        assert len(processes(f"^sleep {marker}")) == 2
    assert processes(f"^sleep {marker}") == []


@needs_root
def test_the_statuses_of_commands() -> None:
    with LiveTopology(read(EXAMPLE)) as live:
        assert [live.run("h1", text) for text in ("exit 3", "kill -9 $$", "no-such-command 2>/dev/null")] == [
            3,
            128 + 9,
            127,
        ]
        # Python ignores two signals; a command has them as by default. Signals 32 and 33 are the C library's own, and are ignored in
        # what its `posix_spawn` starts, as make is.
        ignored = int(live.output("h1", "grep SigIgn /proc/self/status")[1].split()[1], 16)
        assert ignored & ~(0b11 << 31) == 0, hex(ignored)
        assert live.output("h1", "ls /proc/self/fd | wc -l")[1] == "4\n"
        assert live.jobs() == {}


@needs_root
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGHUP])
def test_commands_in_the_background_are_asked_to_end(how: signal.Signals) -> None:
    """By SIGTERM, and where they ignore it by SIGKILL."""
    lines = [word for _ in range(3) for word in ("-c", f"h1 {IGNORES} &")]
    command = [sys.executable, "-m", "tidegate.cli", "lab", str(EXAMPLE), *lines]
    marker = f"27.3{os.getpid()}"
    last = f"trap 'echo asked; exit' TERM; echo ready; while true; do sleep 0.1; done; : {marker}"
    with subprocess.Popen(
        [*command, "-c", f"h2 {last} &", "-c", "h1 sleep 1000"], stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        for _ in range(4):
            assert process.stdout.readline() == "ready\n"
        process.send_signal(how)
        rest = process.stdout.read()
        process.wait(PATIENCE_S)
    assert "asked" in rest
    assert processes(marker) == []


class Deaf:
    """A command that ignores SIGTERM."""

    def __init__(self, clock: list[float], events: list[str]) -> None:
        self.process = self
        self.runs = True
        self._clock, self._events = clock, events

    def ask_to_end(self) -> None:
        self._events.append("asked")

    def wait(self, seconds: float | None = None) -> None:
        if seconds is not None:
            self._clock[0] += seconds
            raise subprocess.TimeoutExpired("deaf", seconds)

    def send_signal(self, number: signal.Signals) -> None:
        self._events.append(number.name)
        self.runs = False

    def close(self) -> None:
        pass


def test_all_commands_have_two_seconds_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, events = [100.0], list[str]()
    monkeypatch.setattr(host_commands, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    host_commands.end_all([cast(host_commands.Command, Deaf(clock, events)) for _ in range(3)])
    assert clock == [102.0]
    assert events == ["asked"] * 3 + ["SIGKILL"] * 3


WRONG = [
    ("ip addr\0", r"a command cannot have the character \x00"),
    ("echo \ud800", r"the character '\ud800' is not text that can be written in UTF-8"),
    ("echo " + "x" * 300_000, "a command of 300005 bytes is too long for Linux, which takes 131071"),
]


@pytest.mark.parametrize(("text", "why"), WRONG, ids=["nul", "surrogate", "long"])
def test_what_cannot_be_a_command_is_refused_with_its_place(tmp_path: Path, text: str, why: str) -> None:
    path = with_commands(tmp_path / "topology.json", "h1", text)
    with pytest.raises(TidegateError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: hosts.h1.commands[2]: {why}"


@needs_root
def test_a_line_that_cannot_be_a_command_costs_that_line() -> None:
    lines = [f"h1 {WRONG[0][0]}", f"h1 {WRONG[2][0]}", f"h1 {WRONG[2][0]} &", "s1 show_tables\0", "pingall\0"]
    said = subprocess.run(
        [sys.executable, "-m", "tidegate.cli", "lab", str(EXAMPLE)],
        input="\n".join([*lines, "h1 echo still there"]),
        capture_output=True,
        text=True,
    )
    assert said.stdout == "still there\n"
    assert said.returncode == 1
    assert r"a command cannot have the character \x00" in said.stderr
    assert said.stderr.count("a command of 300005 bytes is too long for Linux") == 2
    assert "bug" not in said.stderr
