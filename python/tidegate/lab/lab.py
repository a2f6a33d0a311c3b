"""A lab: the keeper, an agent for each host and one for the switches' side, and requests to them."""

from __future__ import annotations

import os
import select
import socket
import subprocess
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection
from types import TracebackType
from typing import Any

from tidegate._core import TidegateError
from tidegate.lab import names
from tidegate.lab.messages import Failed, Look, Looked, Ready

SWITCH = "switch"
# Setting up a host, or the end of iperf3, does not take so long on any machine.
PATIENCE_S = 60.0
LAST_WAIT_S = 10.0


class Lab:
    """Namespaces for hosts, as long as the context lasts.

    An agent's name is its host's, as far as it can be part of a file's name; `SWITCH` is the other side of all links. `shared`
    are file descriptors of this process that agents have under the same numbers. `receiving` are the processors that each host
    receives on; without it all that this process may use.
    """

    def __init__(
        self,
        hosts: Iterable[str],
        shared: Collection[int] = (),
        receiving: Sequence[Collection[int]] | None = None,
    ) -> None:
        self.hosts = names.host_names(hosts)
        everywhere = os.sched_getaffinity(0)
        places = [everywhere] * len(self.hosts) if receiving is None else receiving
        self._receiving = {**dict(zip(self.hosts, places, strict=True)), SWITCH: everywhere}
        self._shared = shared
        self._agents: dict[str, Connection] = {}
        self._pids: dict[str, int] = {}
        self._looking: set[str] = set()
        """Agents that have been asked to look and have not answered."""

    def __enter__(self) -> Lab:
        names.remove_dead()
        self.run = names.new_run()
        self._socket, keepers = socket.socketpair()
        theirs: dict[str, socket.socket] = {}
        for name in (*self.hosts, SWITCH):
            mine, theirs[name] = socket.socketpair()
            self._agents[name] = Connection(mine.detach())
        passed = [keepers, *theirs.values()]
        arguments = [
            part
            for name, one in theirs.items()
            for part in (name, str(one.fileno()), ",".join(map(str, sorted(self._receiving[name]))))
        ]
        # -P: what lies in the working directory is not to be taken for a module.
        python = [sys.executable, "-P", "-m", "tidegate.lab.keeper"]
        try:
            self._keeper = subprocess.Popen(
                [*python, str(os.getpid()), self.run, str(keepers.fileno()), *arguments],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=[*(one.fileno() for one in passed), *self._shared],
                # Ctrl-C is for the lab's process, which ends the others.
                start_new_session=True,
            )
        finally:
            for one in passed:
                one.close()
        try:
            for name in self._agents:
                ready = self._hear(name)
                assert isinstance(ready, Ready)
                self._pids[name] = ready.pid
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End all processes of the lab, and wait for them."""
        for connection in self._agents.values():
            connection.close()
        self._socket.close()
        try:
            self._keeper.wait(LAST_WAIT_S)
        except subprocess.TimeoutExpired:
            # With it the kernel kills the others.
            self._keeper.kill()
            self._keeper.wait()
        names.unlink(self.run)

    def namespace(self, name: str) -> str:
        """A path to an agent's namespace."""
        return f"/proc/{self._pids[name]}/ns/net"

    def pid(self, name: str) -> int:
        """The process that is in a namespace."""
        return self._pids[name]

    def ask(self, name: str, message: Any) -> Any:
        """Send a request to an agent, and wait for the answer."""
        return self.ask_all({name: message})[name]

    def ask_all(self, messages: Mapping[str, Any]) -> dict[str, Any]:
        """Send requests to several agents at once, and wait for the answers."""
        for name, message in messages.items():
            with suppress(BrokenPipeError):
                self._agents[name].send(message)
        return {name: self._hear(name) for name in messages}

    def look(self, names: Iterable[str]) -> Iterator[tuple[str, Looked]]:
        """Ask these agents what their flows are doing; give the answers that are there by now. Nothing waits."""
        for name in names:
            connection = self._agents[name]
            try:
                if name in self._looking:
                    if not connection.poll(0):
                        continue
                    yield name, self._hear(name, looking=True)
                connection.send(Look())
            except BrokenPipeError:
                raise self._end() from None
            self._looking.add(name)

    def _hear(self, name: str, *, looking: bool = False) -> Any:
        connection = self._agents[name]
        try:
            while True:
                if not connection.poll(PATIENCE_S):
                    raise TidegateError(f"the lab: {name} does not answer; the machine may be overloaded")
                answer = connection.recv()
                if not isinstance(answer, Looked):
                    break
                # Another request comes before its answer is taken.
                self._looking.discard(name)
                if looking:
                    return answer
        except (EOFError, ConnectionResetError):
            raise self._end() from None
        if isinstance(answer, Failed):
            raise TidegateError(f"the lab: {name}: {answer.why}")
        return answer

    def check(self) -> None:
        """Raise `TidegateError` if the lab has ended."""
        # Not select(): it takes no descriptors above 1023.
        poll = select.poll()
        poll.register(self._socket, select.POLLIN)
        if poll.poll(0):
            raise self._end()

    def _end(self) -> TidegateError:
        """The reason for an unexpected end: all processes end when one does, and that one may have reported an error."""
        for name, connection in self._agents.items():
            with suppress(EOFError, OSError):
                while connection.poll():
                    last = connection.recv()
                    if isinstance(last, Failed):
                        return TidegateError(f"the lab: {name}: {last.why}")
        return TidegateError(
            "the lab was ended from outside: its keeper or one of its agents has been killed"
        )
