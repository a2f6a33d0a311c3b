"""The first process of a command's PID namespace: starts the command, tells how it has ended, and waits for what it has started.

It is run by its path, as `first_process.py SOCKET COMMAND`, and imports nothing of Tidegate, so that commands start in some 20 ms.
With it the kernel ends all that the command has started. Ctrl-C is for the command alone, which has SIGINT as by default.

To the socket goes one line when the command has ended: its exit status as a shell gives it, and `left` if processes of it go on, as
those of `iperf3 -s -D` do. A byte from the socket asks all of them to end (SIGTERM); its end ends them.
"""

import os
import select
import signal
import sys
from contextlib import suppress

LEFT = "left"
NO_SHELL = 127
RESTORED = ("SIGINT", "SIGTERM", "SIGPIPE", "SIGXFSZ")
"""Ignored here: by what started this process, or by Python."""


def main() -> None:
    """Arguments: the socket's number and the command."""
    lab = int(sys.argv[1])
    os.set_inheritable(lab, False)
    woken, wake = os.pipe()
    for end in (woken, wake):
        os.set_blocking(end, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    command = os.fork()
    if command == 0:
        _carry_out(sys.argv[2])
    status: int | None = None
    told = False
    while True:
        left, ended = _reap(command)
        if ended is not None:
            status = ended
        if status is not None and not told:
            told = True
            with suppress(OSError):
                os.write(lab, f"{status} {LEFT if left else ''}\n".encode())
        if not left:
            os._exit(NO_SHELL if status is None else status)
        ready = select.select([lab, woken], [], [])[0]
        if woken in ready:
            os.read(woken, 4096)
        if lab in ready:
            try:
                asked = os.read(lab, 1)
            except OSError:
                asked = b""
            with suppress(ProcessLookupError):
                os.kill(-1, signal.SIGTERM if asked else signal.SIGKILL)
            if not asked:
                os._exit(NO_SHELL)


def _carry_out(text: str) -> None:
    """Become the command; never returns."""
    signal.set_wakeup_fd(-1)
    for name in RESTORED:
        signal.signal(signal.Signals[name], signal.SIG_DFL)
    try:
        os.execvp("sh", ["sh", "-c", text])
    finally:
        os._exit(NO_SHELL)


def _reap(command: int) -> tuple[bool, int | None]:
    """Take notice of processes that have ended: whether there are others, and the command's status if it is one of them."""
    status = None
    while True:
        try:
            pid, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return False, status
        if pid == 0:
            return True, status
        if pid == command:
            code = os.waitstatus_to_exitcode(how)
            status = code if code >= 0 else 128 - code


if __name__ == "__main__":
    main()
