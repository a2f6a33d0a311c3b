"""What stands in for a page of the dashboard, commands that have one, browsers, and waiting."""

from __future__ import annotations

import json
import re
import signal
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
import pytest

from tidegate.backends import common
from tidegate.view.page import Page

pytest.importorskip("starlette", reason="needs the extra `view`")
pytest.importorskip("uvicorn", reason="needs the extra `view`")
sync_client = pytest.importorskip("websockets.sync.client", reason="needs the extra `view`")
closed = pytest.importorskip("websockets.exceptions", reason="needs the extra `view`").ConnectionClosed

from tidegate.view.running import Running  # noqa: E402


def read(message: bytes) -> tuple[dict[str, Any], dict[str, Any]]:
    (length,) = struct.unpack_from("<I", message)
    header = json.loads(message[4 : 4 + length])
    at, columns = 4 + length, {}
    for name, count in header["columns"]:
        columns[name] = np.frombuffer(message, "<f4", count, at)
        at += 4 * count
    assert at == len(message)
    return header, columns


class Shown:
    """A page that somebody looks at; keeps what it is shown."""

    ready, gone, readers = True, False, 1

    def __init__(self) -> None:
        self.about: dict[str, Any] = {}
        self.shown: list[tuple[Mapping[str, Any], dict[str, Any]]] = []

    def begin(self, about: dict[str, Any]) -> None:
        self.about = about

    def show(self, header: Mapping[str, Any], columns: Mapping[str, Any]) -> None:
        self.shown.append((header, {name: np.asarray(values) for name, values in columns.items()}))

    def heard(self, timeout_s: float | None = None) -> dict[str, Any]:
        return {}

    def settle(self, timeout_s: float) -> None:
        pass


def until(holds: Callable[[], Any]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.02)


def stream(page: Page, **more: Any) -> Any:
    origin = f"http://127.0.0.1:{page.port}"
    # One that has not read what it was sent does not come to the answer to its own close: it waits for this time in vain.
    return sync_client.connect(
        f"ws://127.0.0.1:{page.port}/stream?token={page.token}",
        origin=origin,
        open_timeout=60,
        close_timeout=0.2,
        **more,
    )


class Seen:
    """What a browser knows of a run that goes on."""

    def __init__(self, page: Page) -> None:
        self._connection = stream(page)
        self.about: dict[str, Any] = {}
        self.header: dict[str, Any] = {}
        self.columns: dict[str, Any] = {}
        self.messages = 0

    def __enter__(self) -> Seen:
        self.socket = self._connection.__enter__()
        return self

    def __exit__(self, *of: Any) -> None:
        self._connection.__exit__(*of)

    def say(self, **what: Any) -> None:
        self.socket.send(json.dumps(what))

    def until(self, holds: Callable[[dict[str, Any]], Any]) -> dict[str, Any]:
        while not self.header or not holds(self.header):
            message = self.socket.recv(timeout=60)
            if isinstance(message, str):
                self.about, self.header, self.columns = json.loads(message), {}, {}
                continue
            self.messages += 1
            self.header, columns = read(message)
            for name, values in columns.items():
                kind = name.split(" ")[0]
                if f"{kind} at" in columns:
                    self.columns.setdefault(name, np.full(len(self.about[f"{kind}s"]), np.nan))[
                        columns[f"{kind} at"].astype(int)
                    ] = values
                else:
                    self.columns[name] = np.array(values)
        return self.header


class InThread(threading.Thread):
    """A run in a thread of its own, looked at."""

    def __init__(self, page: Page, work: Callable[[], Any], *, paused: bool = False) -> None:
        super().__init__()
        self._watcher, self._work = Running(page), work
        self._watcher._hear({"pause": paused})
        self.result: Any = None
        self.start()

    def run(self) -> None:
        with common.watching(self._watcher):
            self.result = self._work()


@contextmanager
def command(*words: str | Path, before: tuple[str, ...] = ()) -> Iterator[subprocess.Popen[str]]:
    program = [*before, sys.executable, "-m", "tidegate.cli", *map(str, words)]
    with subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def address(said: IO[str] | None) -> str:
    """The first line that is one."""
    assert said is not None
    lines = []
    for line in said:
        lines.append(line)
        if found := re.search(r"http://127\.0\.0\.1:\d+/\?token=[\w-]{20,}$", line):
            return found[0]
    raise AssertionError("".join(lines))


def ended(process: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status after SIGTERM, and what it has said besides the address."""
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=60)
    return process.returncode, out + err


def looked(browser: Any, url: str, **more: Any) -> tuple[Any, list[str]]:
    """The page in a browser, and what it complains of."""
    made = browser.new_page(**more)
    errors: list[str] = []
    made.on("console", lambda message: errors.append(message.text))
    made.on("pageerror", lambda error: errors.append(str(error)))
    made.on("dialog", lambda dialog: errors.append("a dialog"))
    made.goto(url)
    return made, errors


def browser_in(browser: Any, netns: str, folder: Path) -> Any:
    """Another one of this kind, in a network namespace."""
    program = folder / "chromium"
    program.write_text(f'#!/bin/sh\nexec ip netns exec {netns} chromium "$@"\n')
    program.chmod(0o755)
    return browser.browser_type.launch(executable_path=program, args=["--disable-gpu", "--no-first-run"])
