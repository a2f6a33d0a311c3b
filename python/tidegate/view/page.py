"""The page, as the process that runs something has it: another process serves it, and ends with this one.

Where the other process is slow or gone, the run goes on: there is a message, and nothing waits.
"""

from __future__ import annotations

import importlib.util
import json
import secrets
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Self

import numpy.typing as npt

from tidegate import logs
from tidegate._core import TidegateError
from tidegate.view.channel import Channel
from tidegate.view.frames import pack

PACKAGES = ("starlette", "uvicorn", "websockets")
BACKLOG = 64
WORTH = 40
"""Whoever shows something looks when it has gone on for so many times the time of the last look: looking takes 2.5 % at most."""
LAST_WAIT_S = 3.0
ABSENT_S = 10.0
"""Nobody looks at a run that is paused for so long: it goes on."""
PATIENCE_S = 20.0
"""A browser that does not take a message for so long is gone."""
ENDED = "the process that serves the page has ended"


class Page:
    """A page while the `with` block runs."""

    def __init__(self, port: int = 0, *, absent_s: float = ABSENT_S, patience_s: float = PATIENCE_S) -> None:
        """Raises `TidegateError` where packages are missing or nothing can listen at the port."""
        for package in PACKAGES:
            if importlib.util.find_spec(package) is None:
                raise TidegateError(
                    f'the page needs {package}; install it with: pip install "tidegate[view]"'
                )
        self.token = secrets.token_urlsafe(24)
        self._listening = socket.socket()
        try:
            self._listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            self._listening.bind(("127.0.0.1", port))
            self._listening.listen(BACKLOG)
        except OSError as error:
            self._listening.close()
            raise TidegateError(f"port {port}: {error.strerror}; give another one with --view-port") from None
        self.port = self._listening.getsockname()[1]
        self._times = {"absent_s": absent_s, "patience_s": patience_s}
        self.readers = 0
        """Browsers that show it now."""
        self._told = False

    @property
    def url(self) -> str:
        """Where it is, with its token."""
        return f"http://127.0.0.1:{self.port}/?token={self.token}"

    def __enter__(self) -> Self:
        mine, theirs = socket.socketpair()
        self._channel = Channel(mine)
        try:
            # -P: what lies in the working directory is not to be taken for a module.
            self._process = subprocess.Popen(
                [
                    sys.executable,
                    "-P",
                    "-m",
                    "tidegate.view.serving",
                    *(str(one.fileno()) for one in (self._listening, theirs)),
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[self._listening.fileno(), theirs.fileno()],
                # Ctrl-C is for this process, which ends the other one.
                process_group=0,
            )
        except BaseException:
            self._channel.close()
            raise
        finally:
            theirs.close()
            self._listening.close()
        about = {"token": self.token, "port": self.port, **self._times}
        self._channel.send(json.dumps(about).encode())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._channel.close()
        try:
            self._process.wait(LAST_WAIT_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    @property
    def ready(self) -> bool:
        """Whether somebody looks, and what was shown last is on its way."""
        return self.readers > 0 and self._channel.flush()

    @property
    def gone(self) -> bool:
        """Whether the process that serves it has ended."""
        if self._channel.gone and not self._told:
            self._told = True
            self.readers = 0
            logs.report(ENDED)
        return self._told

    def begin(self, about: Mapping[str, Any]) -> None:
        """Show something else from now on: what it is."""
        self._channel.send(pack({"about": about}, {}))

    def show(self, header: Mapping[str, Any], columns: Mapping[str, npt.ArrayLike]) -> None:
        """Show how it is now: as `frames` has it."""
        self._channel.send(pack(header, columns))

    def heard(self, timeout_s: float | None = None) -> dict[str, Any]:
        """What readers have asked for since the last time; waits for it for so long."""
        if timeout_s is not None and not self.gone:
            self._channel.wait(timeout_s)
        said: dict[str, Any] = {}
        for message in self._channel.receive():
            said |= json.loads(message)
        self._channel.flush()
        self.readers = said.pop("readers", self.readers)
        return {} if self.gone else said

    def settle(self, timeout_s: float) -> None:
        """Wait for so long at most until what was shown last is on its way."""
        end = time.monotonic() + timeout_s
        while not self._channel.flush() and not self.gone and time.monotonic() < end:
            self._channel.wait(end - time.monotonic())

    def stay(
        self,
        hear: Callable[[dict[str, Any]], None],
        period_s: float = 1.0,
        begin: Callable[[], None] = lambda: None,
    ) -> None:
        """Until Ctrl-C, SIGTERM or SIGHUP, or until the process that serves it has ended: `hear` hears what readers ask for, and
        nothing once in a period. Who is told of the page by `begin` can end it from then on, within a period: a signal that comes
        just before the wait is handled when the wait ends.
        """
        try:
            begin()
            while not self.gone:
                hear(self.heard(period_s))
        except KeyboardInterrupt:
            return
