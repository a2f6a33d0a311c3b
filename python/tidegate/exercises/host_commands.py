"""Commands of hosts: each in a PID namespace of its own, in the host's network namespace. They end with this process, however it ends."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Collection
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

from tidegate._core import TidegateError
from tidegate.exercises import first_process

# A command ends with the process that started it, and does not begin where that is gone already. With `preexec_fn` Popen would fork
# beside the threads of gRPC, whose handler of forks aborts some of the children.
WITH_PARENT = 'test "$PPID" = "$0" && exec "$@"'
# `/sys` with the host's own interfaces, as `ip netns exec` has it, and what is mounted there besides. Containers may refuse it.
OWN_SYS = (
    "{ mount --rbind /sys /mnt && mount -t sysfs sysfs /sys && "
    "for one in cgroup bpf; do mount --rbind /mnt/fs/$one /sys/fs/$one; done; umount -l /mnt; } 2>/dev/null"
)
# Python would raise an exception for a Ctrl-C that comes while it starts.
FIRST = f"""{OWN_SYS}; trap '' INT; exec "$@" """
END_S = 2.0
LONGEST = 131_071
"""Bytes of a command: what Linux takes as one argument (MAX_ARG_STRLEN)."""


class Command:
    """A command of the shell that runs at a host, and what it has started."""

    def __init__(
        self,
        namespace: str,
        text: str,
        *,
        stdin: int | None = subprocess.DEVNULL,
        stdout: int | IO[Any] | None = None,
        stderr: int | IO[Any] | None = None,
        background: bool = False,
    ) -> None:
        """Start it. With `background` Ctrl-C does not reach it. Raises `TidegateError` where that is impossible."""
        problem = why_not(text)
        if problem is not None:
            raise TidegateError(problem)
        self._socket, theirs = socket.socketpair()
        self._said = b""
        python = (sys.executable, "-I", "-S", str(Path(first_process.__file__)), str(theirs.fileno()))
        try:
            self.process: subprocess.Popen[bytes] = subprocess.Popen(
                [
                    *("setpriv", "--pdeathsig", "KILL", "sh", "-c", WITH_PARENT, str(os.getpid())),
                    *("nsenter", f"--net={namespace}"),
                    *("unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"),
                    *("sh", "-c", FIRST, "sh", *python, text),
                ],
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                pass_fds=(theirs.fileno(),),
                process_group=0 if background else None,
            )
        except OSError as error:
            self._socket.close()
            raise TidegateError(f"the command cannot be started: {error.strerror}") from None
        finally:
            theirs.close()

    def wait(self) -> int:
        """Wait for the command's end, and give its exit status; what it has left behind may go on."""
        while not self._said.endswith(b"\n"):
            with suppress(ConnectionResetError):
                said = self._socket.recv(64)
                if said:
                    self._said += said
                    continue
            # Its namespace has ended before it: somebody has killed that.
            return self.process.wait()
        if not self.left:
            self.process.wait()
        return int(self._said.split()[0])

    @property
    def left(self) -> bool:
        """Whether the command has ended, and processes that it has started had not by then."""
        return self._said.endswith(f" {first_process.LEFT}\n".encode())

    @property
    def runs(self) -> bool:
        """Whether it, or what it has started, has not ended."""
        return self.process.poll() is None

    def ask_to_end(self) -> None:
        """SIGTERM to all its processes."""
        with suppress(OSError):
            self._socket.send(b"T")

    def close(self) -> None:
        """Forget a command that has ended."""
        self._socket.close()


def end_all(commands: Collection[Command], *, told: bool = False) -> None:
    """End commands, and what they have started: by SIGTERM, or they have been `told` to (Ctrl-C). After 2 s for all, by SIGKILL."""
    limit = time.monotonic() + END_S
    try:
        if not told:
            for one in commands:
                one.ask_to_end()
        for one in commands:
            with suppress(subprocess.TimeoutExpired):
                one.process.wait(max(0.0, limit - time.monotonic()))
    finally:
        for one in commands:
            if one.runs:
                one.process.send_signal(signal.SIGKILL)
        for one in commands:
            one.process.wait()
            one.close()


def why_not(text: str) -> str | None:
    """Why this text cannot be a command, if so.

    >>> why_not("ip addr"), why_not("a\\0b")
    (None, 'a command cannot have the character \\\\x00')
    """
    if "\0" in text:
        return r"a command cannot have the character \x00"
    try:
        length = len(os.fsencode(text))
    except UnicodeEncodeError as error:
        return f"the character {text[error.start]!a} is not text that can be written in UTF-8"
    if length > LONGEST:
        return f"a command of {length} bytes is too long for Linux, which takes {LONGEST}"
    return None


def in_background(text: str) -> str | None:
    """The command of a line that ends in `&`, as in a shell; `None`: it is not for the background.

    >>> in_background("iperf3 -s &"), in_background("true &&"), in_background("true")
    ('iperf3 -s', None, None)
    """
    text = text.rstrip()
    if not text.endswith("&") or text.endswith("&&"):
        return None
    return text[:-1].rstrip()
