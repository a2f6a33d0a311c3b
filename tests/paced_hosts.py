"""Real sockets of two namespaces, with a pacing switch between them: for tests of `tidegate agent`."""

from __future__ import annotations

import signal
import socket
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from namespaces import Place, ip, place, within, write_within
from switches import ports
from tidegate.switch.controllers import Controlled
from tidegate.switch.running import LiveSwitch
from tidegate.systems.pacing.controller import ManagedLink, PacingController
from tidegate.systems.pacing.format import Keys
from tidegate.systems.pacing.service import service
from tidegate.systems.pacing.setup import program

SO_MAX_PACING_RATE = 47
KEYS = Keys((0x0123456789ABCDEF, 0x1122334455667788))
GIVEN = 50e6 / 8 * 0.9975 * 1448 / 1514
"""Bytes/s of payload of the link to the second host."""
GIVEN6 = 50e6 / 8 * 0.9975 * 1428 / 1514
"""The same over IPv6."""
AGENT = [sys.executable, "-m", "tidegate", "agent"]


def cgroup2() -> str | None:
    lines = Path("/proc/mounts").read_text().splitlines()
    return next((line.split()[1] for line in lines if line.split()[2] == "cgroup2"), None)


def address(number: int) -> str:
    return f"10.9.0.{number}"


def address6(number: int) -> str:
    return f"fd09::{number}"


class Net:
    """Two hosts and a switch that paces what goes to the second one, at 50 Mbit/s."""

    def __init__(self, at: Place, stack: ExitStack, keys: Keys | None) -> None:
        self.at = at
        self.stack = stack
        self._keys = keys
        macs: dict[int, str] = {}
        for host in at.hosts:
            macs[host.number] = f"02:00:00:00:00:{host.number:02x}"
            ip("-n", host.netns, "link", "set", "e0", "address", macs[host.number])
            ip("-n", host.netns, "addr", "add", f"{address(host.number)}/24", "dev", "e0")
        for host in at.hosts:
            other = 3 - host.number
            words = ("neigh", "add", address(other), "lladdr", macs[other], "dev", "e0")
            ip("-n", host.netns, *words)
        self._macs = macs
        self.run_switch()

    def use_ipv6(self) -> None:
        """Give the hosts addresses of IPv6, too."""
        for host in self.at.hosts:
            for what in ("accept_dad", "disable_ipv6"):
                write_within(host.netns, f"/proc/sys/net/ipv6/conf/e0/{what}", "0")
            ip("-n", host.netns, "addr", "add", f"{address6(host.number)}/64", "dev", "e0", "nodad")
        for host in self.at.hosts:
            other = 3 - host.number
            words = (
                "neigh",
                "replace",
                address6(other),
                "lladdr",
                self._macs[other],
                "dev",
                "e0",
                "nud",
                "permanent",
            )
            ip("-n", host.netns, *words)

    def run_switch(self) -> None:
        self.switch = self.stack.enter_context(ExitStack())
        live = LiveSwitch(program(), ports(self.at, "packet"))
        self.switch.enter_context(live)
        links = {2: ManagedLink("50 Mbit/s", 7)}
        controller = PacingController({}, links, wires={1: 2, 2: 1}, keys=self._keys)
        self.switch.enter_context(Controlled(live, [controller]))
        self.live = live

    def agent(
        self, *words: str, host: int = 1, until: str = "paces flows", **more: Any
    ) -> subprocess.Popen[str]:
        """The service in a host's namespace."""
        command = ["nsenter", f"--net=/run/netns/{self.at.hosts[host - 1].netns}", *AGENT, "-i", "e0", *words]
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, **more)
        self.stack.callback(self.end, process)
        assert process.stderr is not None
        said = ""
        for line in process.stderr:
            said += line
            if until in line:
                return process
        raise AssertionError(f"the agent has ended with {process.wait()}: {said}")

    @staticmethod
    def end(process: subprocess.Popen[str]) -> int:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
        with process:
            return process.wait(10)

    def command(self, *words: str, host: int = 1) -> subprocess.CompletedProcess[str]:
        netns = self.at.hosts[host - 1].netns
        command = ["nsenter", f"--net=/run/netns/{netns}", sys.executable, "-m", "tidegate", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def status(self) -> dict[str, Any]:
        return within(f"/run/netns/{self.at.hosts[0].netns}", service.ask)

    def server(self, port: int = 5001, *, ipv6: bool = False) -> socket.socket:
        def listen() -> socket.socket:
            family = socket.AF_INET6 if ipv6 else socket.AF_INET
            where = (address6 if ipv6 else address)(2)
            made = socket.create_server((where, port), family=family, backlog=64)
            made.settimeout(30)
            return made

        made = within(f"/run/netns/{self.at.hosts[1].netns}", listen)
        self.stack.callback(made.close)
        return made

    def connect(self, port: int = 5001, family: int = socket.AF_INET, *, ipv6: bool = False) -> socket.socket:
        """A connection that the first host opens; one of IPv4 may be in a socket of IPv6."""

        def begin() -> socket.socket:
            made = socket.socket(socket.AF_INET6 if ipv6 else family, socket.SOCK_STREAM)
            made.settimeout(30)
            if ipv6:
                made.connect((address6(2), port))
                return made
            made.connect((address(2) if family == socket.AF_INET else f"::ffff:{address(2)}", port))
            return made

        made = within(f"/run/netns/{self.at.hosts[0].netns}", begin)
        self.stack.callback(made.close)
        return made


@contextmanager
def net(keys: Keys | None = None) -> Iterator[Net]:
    with ExitStack() as stack:
        yield Net(stack.enter_context(place()), stack, keys)


def limit(of: socket.socket) -> int:
    """Bytes/s."""
    value: int = struct.unpack("=Q", of.getsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, 8))[0]
    return value


def paced_at(of: socket.socket, rate: float) -> Callable[[], bool]:
    return lambda: limit(of) == pytest.approx(rate, rel=0.002)


def unlimited(of: socket.socket) -> Callable[[], bool]:
    return lambda: limit(of) >= 2**32 - 1


def tso_rtt_log(at: Net) -> str:
    path = Path("/proc/sys/net/ipv4/tcp_tso_rtt_log")
    return within(f"/run/netns/{at.at.hosts[0].netns}", lambda: path.read_text().strip())


def listening(pid: int, netns: str) -> int:
    """The port that a process listens at, in a namespace."""

    def look() -> int:
        done = subprocess.run(["ss", "-Hltnp"], capture_output=True, text=True, check=True)
        (line,) = [line for line in done.stdout.splitlines() if f"pid={pid}," in line]
        return int(line.split()[3].rpartition(":")[2])

    return within(f"/run/netns/{netns}", look)
