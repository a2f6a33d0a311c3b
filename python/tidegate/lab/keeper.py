"""The parent process of a lab's agents: starts one for each namespace, and ends them when the lab's process ends.

Cleanup does not depend on the lab. The lab holds the other ends of the sockets. When it ends, for any reason, the agents and the
keeper read end-of-file, and the kernel signals the keeper as well. If the keeper is killed, the kernel kills the agents, and with
an agent the processes that it has started.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import socket
import sys
from contextlib import suppress
from pathlib import Path

from tidegate.lab import names
from tidegate.lab.agent import serve
from tidegate.lab.death import die_with

PR_SET_NAME, PR_SET_CHILD_SUBREAPER = 15, 36
CLONE_NEWNET = 0x4000_0000
NICENESS = -10
# Of a host's table of TCP connections. A sample goes through all of it, and the machine's own has hundreds of thousands: 2.4 ms.
TCP_BUCKETS = 2048
ENDING = (signal.SIGHUP, signal.SIGTERM, signal.SIGINT)

_libc = ctypes.CDLL(None, use_errno=True)


def _call_it(name: str) -> None:
    _libc.prctl(PR_SET_NAME, name[:15].encode(), 0, 0, 0)


def _hurry() -> None:
    """Give the lab's processes priority over other work, as far as that is permitted."""
    with suppress(OSError):
        os.nice(NICENESS)
    # Where the kernel divides its time among sessions, a niceness counts only within one; this session is the lab's own.
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(NICENESS))


def _unshare() -> str | None:
    """Move this process to a new network namespace; return the error, if any."""
    if _libc.unshare(CLONE_NEWNET) == 0:
        return None
    return f"no network namespace: {os.strerror(ctypes.get_errno())}"


def _make_room_for_few() -> None:
    """Namespaces that are made from here on have small tables of TCP connections, where the kernel (6.1) can do that.

    It is a setting of the namespace that they are made in, so the keeper has one of its own.
    """
    with suppress(OSError):
        if _unshare() is None:
            Path("/proc/sys/net/ipv4/tcp_child_ehash_entries").write_text(str(TCP_BUCKETS))


def main() -> None:
    """Arguments: the lab's process and name, the number of its socket; of each agent name, socket, and where it receives."""
    parent, run, mine, *rest = sys.argv[1:]
    # A signal is something to read, never an exception: that would stop the cleaning as well.
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake)
    for number in ENDING:
        signal.signal(number, lambda *_: None)
    die_with(int(parent), signal.SIGHUP)
    lab = socket.socket(fileno=int(mine))
    sockets = {name: int(number) for name, number in zip(rest[::3], rest[1::3], strict=True)}
    receive_on = {
        name: [int(one) for one in numbers.split(",") if one]
        for name, numbers in zip(rest[::3], rest[2::3], strict=True)
    }
    _call_it("tidegate-keeper")
    _hurry()
    _make_room_for_few()
    # Orphans of agents become children of the keeper, so that it can wait for all of them.
    _libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    keeper = os.getpid()
    agents: dict[int, str] = {}
    try:
        for name in list(sockets):
            pid = os.fork()
            if pid == 0:
                _agent(run, name, keeper, lab, sockets, receive_on[name])
            agents[pid] = name
            os.close(sockets.pop(name))
        _wait([lab.fileno(), woken], list(agents))
    finally:
        for pid in agents:
            os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while True:
                os.waitpid(-1, 0)
        names.unlink(run)


def _agent(
    run: str,
    name: str,
    keeper: int,
    lab: socket.socket,
    sockets: dict[str, int],
    receive_on: list[int],
) -> None:
    """Run as an agent; never returns."""
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for signum in ENDING:
            signal.signal(signum, signal.SIG_DFL)
        die_with(keeper)
        lab.close()
        for other, number in sockets.items():
            if other != name:
                os.close(number)
        _call_it(f"tg-{name}")
        serve(sockets[name], f"{run}-{name}", receive_on, _unshare())
        status = 0
    finally:
        os._exit(status)


def _wait(ends: list[int], agents: list[int]) -> None:
    """Wait until the lab or one of its agents ends. The end of an agent ends the lab, which notices it by its socket."""
    poll = select.poll()
    for end in ends:
        poll.register(end, select.POLLIN)
    handles = [os.pidfd_open(pid) for pid in agents]
    for handle in handles:
        poll.register(handle, select.POLLIN)
    poll.poll()
    for handle in handles:
        os.close(handle)


if __name__ == "__main__":
    main()
