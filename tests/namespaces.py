"""Network namespaces for tests: hosts with a raw socket on an interface that leads into a namespace of the switch."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import TypeVar

import pytest

T = TypeVar("T")
ETH_P_ALL = 3
SOL_PACKET, PACKET_AUXDATA = 263, 8
TAGGED = 1 << 4
_CLONE_NEWNET = 0x4000_0000
_libc = ctypes.CDLL(None, use_errno=True)
_numbers = count()
Test = TypeVar("Test", bound=Callable[..., object])


def needs_root(test: Test) -> Test:
    """A live test that measures no time, at a place of its own: others may run beside it."""
    return pytest.mark.live(pytest.mark.concurrent(test))


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def processors_of_networks() -> list[set[int]]:
    """Of each thread of this process that runs a network, the processors that it may use."""
    tasks = Path("/proc/self/task").iterdir()
    found = [task for task in tasks if (task / "comm").read_text() == "tidegate-live\n"]
    return [os.sched_getaffinity(int(task.name)) for task in found]


def within(netns: str, act: Callable[[], T]) -> T:
    """Do something in a namespace, on a thread of its own."""

    def there() -> T:
        with open(netns, "rb") as file:
            if _libc.setns(file.fileno(), _CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), netns)
        return act()

    with ThreadPoolExecutor(1) as thread:
        return thread.submit(there).result()


class Host:
    """An interface of a namespace of its own, and a raw socket on it."""

    def __init__(self, number: int, place: Place, mtu: int) -> None:
        self.number = number
        self.netns = f"{place.name}-h{number}"
        self.interface = f"p{number}"
        """At the switch's end."""
        ip("netns", "add", self.netns)
        place.names.append(self.netns)
        _quiet(self.netns)
        ip(
            "link",
            "add",
            "e0",
            "netns",
            self.netns,
            "type",
            "veth",
            "peer",
            self.interface,
            "netns",
            place.name,
        )
        for netns, interface in ((self.netns, "e0"), (place.name, self.interface)):
            ip("-n", netns, "link", "set", interface, "mtu", str(mtu), "up")
        self.socket = within(f"/run/netns/{self.netns}", self._open)

    def _open(self) -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.bind(("e0", ETH_P_ALL))
        opened.setsockopt(SOL_PACKET, PACKET_AUXDATA, 1)
        return opened

    def send(self, frame: bytes) -> None:
        """Send a frame from Ethernet on."""
        self.socket.send(frame)

    def receive(self, wanted: int, seconds: float = 5.0) -> list[bytes]:
        """The next frames that have come, at most as many as wanted."""
        frames: list[bytes] = []
        end = time.monotonic() + seconds
        while len(frames) < wanted and (left := end - time.monotonic()) > 0:
            if select.select([self.socket], [], [], left)[0]:
                frame, said, _, (_, _, kind, *_) = self.socket.recvmsg(70_000, 256)
                if kind == socket.PACKET_OUTGOING:
                    continue
                for _, _, data in said:
                    # The kernel takes VLAN tags off, and says which.
                    status, tag, protocol = struct.unpack("=I12xHH", data[:20])
                    if status & TAGGED:
                        frame = frame[:12] + struct.pack("!HH", protocol, tag) + frame[12:]
                frames.append(frame)
        return frames


class Place:
    """A namespace for the switch, and hosts around it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.names = [name]
        self.file = Path("/run/netns") / name
        ip("netns", "add", name)
        _quiet(name)
        self.hosts: list[Host] = []

    def host(self, mtu: int) -> Host:
        """Make a host, from number 1 on."""
        self.hosts.append(Host(len(self.hosts) + 1, self, mtu))
        return self.hosts[-1]

    def again(self, host: Host) -> Host:
        """A host of the same number, after its link was taken away: with a new link."""
        host.socket.close()
        ip("netns", "del", host.netns)
        self.names.remove(host.netns)
        return Host(host.number, self, 1500)


def write_within(netns: str, path: str, text: str) -> None:
    """Write a file of `/proc` as a namespace has it."""
    within(f"/run/netns/{netns}", lambda: Path(path).write_text(text))


def _quiet(netns: str) -> None:
    """Nothing is sent that was not asked for."""
    for which in ("all", "default"):
        path = f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6"
        write_within(netns, path, "1")
    # As the kernel has them, whatever this machine has, as after Mininet, which leaves others.
    for name, values in (("tcp_rmem", "4096 131072 6291456"), ("tcp_wmem", "4096 16384 4194304")):
        write_within(netns, f"/proc/sys/net/ipv4/{name}", values)
    ip("-n", netns, "link", "set", "lo", "up")


@contextmanager
def place(hosts: int = 2, mtu: int = 1500) -> Iterator[Place]:
    """A place with hosts, taken away at the end."""
    made = Place(f"tgt{os.getpid()}-{next(_numbers)}")
    try:
        for _ in range(hosts):
            made.host(mtu)
        yield made
    finally:
        for host in made.hosts:
            host.socket.close()
        for name in made.names:
            subprocess.run(["ip", "netns", "del", name], check=False, capture_output=True)
