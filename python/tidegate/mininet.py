"""Nodes for Mininet: a switch that runs `tidegate switch`, and a host that `tidegate agent` paces.

    from mininet.net import Mininet
    from tidegate.mininet import PacedHost, TidegateSwitch

    net = Mininet(controller=None, waitConnected=True)
    s1 = net.addSwitch("s1", cls=TidegateSwitch, program="router.p4", commands="s1-commands.txt")

Mininet (2.3) is Debian's package `mininet`; Tidegate does not need it (`tidegate lab` runs topologies without). Ports
have Mininet's numbers: `s1-eth2` is port 2.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from typing import Any

from tidegate._core import TidegateError
from tidegate.lab.death import die_with

try:
    from mininet.node import Host, Switch
except ImportError:
    raise TidegateError(
        "Mininet is not installed for this Python; on Debian and Ubuntu: apt install mininet, and let this Python see "
        "/usr/lib/python3/dist-packages/mininet"
    ) from None

READY = "running"
"""How the line begins by which a switch says that its ports are open."""
PATIENCE_S = 60.0
END_S = 10.0
TIDEGATE = (sys.executable, "-m", "tidegate")


class _Service:
    """A process of Tidegate at a node; what it says is kept in a file. It ends with this process, however that ends."""

    def __init__(self, node: Any, words: list[str]) -> None:
        self._node = node
        # Its own file, which has no name: nothing stays of it.
        self._said = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._process: Popen[bytes] = node.popen(
            [*TIDEGATE, *words],
            stdout=self._said,
            stderr=self._said,
            preexec_fn=partial(die_with, os.getpid()),
        )

    @property
    def said(self) -> str:
        """All that it has said."""
        return Path(f"/proc/self/fd/{self._said.fileno()}").read_text(errors="replace")

    @property
    def runs(self) -> bool:
        """Whether it has not ended."""
        return self._process.poll() is None

    def wait_for(self, start: str) -> None:
        """Until a line begins so; raises `TidegateError` with what it has said where it does not come."""
        end = time.monotonic() + PATIENCE_S
        while not any(line.startswith(start) for line in self.said.splitlines()):
            if not self.runs or time.monotonic() > end:
                said = self.said.strip() or "it said nothing"
                self.end()
                raise TidegateError(f"{self._node.name}: {said}")
            time.sleep(0.02)

    def end(self) -> None:
        """End it, and wait for that."""
        if self.runs:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(END_S)
            except TimeoutExpired:
                self._process.kill()
                self._process.wait()


class TidegateSwitch(Switch):  # type: ignore[misc]
    """A P4 switch: `tidegate switch` between the node's interfaces.

    `program` is the P4 source, `commands` a file of commands of simple_switch_CLI, `options` are further words of the command line, as
    `["--mode", "packet"]`.
    """

    def __init__(
        self,
        name: str,
        program: str | os.PathLike[str] | None = None,
        commands: str | os.PathLike[str] | None = None,
        options: tuple[str, ...] | list[str] = (),
        **parameters: Any,
    ) -> None:
        if program is None:
            raise TidegateError(f"{name}: no program is given; write program='PROG.p4'")
        super().__init__(name, **parameters)
        self._program, self._commands, self._options = program, commands, options
        self._service: _Service | None = None

    def start(self, controllers: list[Any]) -> None:
        """Start it; its ports are open when this returns. It has no OpenFlow controllers."""
        words = ["switch", str(self._program), *self._options]
        for number, interface in sorted(self.intfs.items()):
            if interface.name != "lo":
                words += ["-i", f"{number}@{interface.name}"]
        if self._commands is not None:
            words += ["--commands", str(self._commands)]
        self._service = _Service(self, words)
        self._service.wait_for(READY)

    def connected(self) -> bool:
        """Whether it runs."""
        return self._service is not None and self._service.runs

    @property
    def said(self) -> str:
        """All that the switch has said."""
        return "" if self._service is None else self._service.said

    def stop(self, deleteIntfs: bool = True) -> None:
        """End it."""
        if self._service is not None:
            self._service.end()
            self._service = None
        super().stop(deleteIntfs)


class PacedHost(Host):  # type: ignore[misc]
    """A host whose TCP flows `tidegate agent` paces at the rates that pacing switches tell.

    `agent` are further words of its command line, as `["--direction", "both"]`.
    """

    def __init__(self, name: str, agent: tuple[str, ...] | list[str] = (), **parameters: Any) -> None:
        super().__init__(name, **parameters)
        self._words = agent
        self._service: _Service | None = None

    def config(self, **parameters: Any) -> Any:
        """Configure the host, then start its agent: by then it has its interfaces."""
        found = super().config(**parameters)
        names = [interface.name for interface in self.intfs.values() if interface.name != "lo"]
        if self._service is None and names:
            words = [word for name in names for word in ("-i", name)]
            self._service = _Service(self, ["agent", *words, *self._words])
            self._service.wait_for("paces flows at")
        return found

    @property
    def said(self) -> str:
        """All that the agent has said."""
        return "" if self._service is None else self._service.said

    def terminate(self) -> None:
        """End the agent, then the host."""
        if self._service is not None:
            self._service.end()
            self._service = None
        super().terminate()
