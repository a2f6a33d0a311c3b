"""Packets that the programs of real hosts' agents cannot make longer: the kernel refuses that above 16 KiB without segmentation offload."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from live import needs_agents
from namespaces import ip, needs_root, place, within
from tidegate.hosts import libbpf
from tidegate.hosts.real_agents import (
    _CONNECTION,
    _COUNT,
    _HOST,
    _KEY,
    _NUMBER,
    _SHIM,
    MOST_SHIMS,
    NO_SHIM,
    SOURCE,
    _packed,
)
from tidegate.hosts.shims import Insert, Option, Shim

HERE, THERE = "10.0.0.1", "10.0.0.2"
PORTS = (1000, 80)


class Rig:
    """A connection over a loopback interface, whose first end has an agent; nothing is segmented there below 64 KiB."""

    def __init__(self, shim: Shim, stack: ExitStack) -> None:
        netns = stack.enter_context(place(1)).hosts[0].netns
        ip("-n", netns, "link", "set", "lo", "mtu", "65536")
        for one in (HERE, THERE):
            ip("-n", netns, "addr", "add", f"{one}/32", "dev", "lo")
        types = {"leaving": libbpf.BPF_TCX_EGRESS, "came": libbpf.BPF_TCX_INGRESS}
        loaded = libbpf.Loaded(libbpf.compiled(SOURCE), attach_types=types)
        stack.callback(loaded.close)
        self._counts = loaded.map("counts", _COUNT.size)
        self._connections = loaded.map("connections", _CONNECTION.size)
        address = socket.inet_aton(HERE)
        self._key = _KEY.pack(address, socket.inet_aton(THERE), *PORTS)
        self._connections[self._key] = _CONNECTION.pack(0, *bytes(7), 1, 0)
        hosts = loaded.map("hosts", _HOST.size + MOST_SHIMS * _SHIM.size)
        shims = [_packed(0, shim), *[NO_SHIM] * (MOST_SHIMS - 1)]
        hosts[address] = _HOST.pack(0, 1, 0) + b"".join(shims)

        def connect() -> tuple[socket.socket, socket.socket]:
            index = socket.if_nametoindex("lo")
            loaded.link("leaving", index, libbpf.BPF_TCX_EGRESS)
            with socket.create_server((THERE, PORTS[1])) as server:
                one = socket.create_connection((THERE, PORTS[1]), 10, (HERE, PORTS[0]))
                return one, server.accept()[0]

        self._one, self._other = within(f"/run/netns/{netns}", connect)
        for end in (self._one, self._other):
            stack.callback(end.close)
            end.settimeout(10)

    def send(self, size: int) -> None:
        """In one packet."""
        self._one.sendall(bytes(size))
        while size:
            size -= len(self._other.recv(size))

    @property
    def no_room(self) -> int:
        return int(_COUNT.unpack(self._counts[_NUMBER.pack(0)])[0])

    @property
    def has_had_it(self) -> bool:
        """Of an option for the first packet."""
        return self._connections[self._key][40] == 1


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@needs_root
@needs_agents
@pytest.mark.parametrize("once", [False, True])
def test_an_option_that_a_packet_is_too_long_for_is_counted(once: bool, stack: ExitStack) -> None:
    rig = Rig(Insert(Option("ip", 30), b"\1\2", once=once), stack)
    rig.send(30_000)
    assert (rig.no_room, rig.has_had_it) == (1, False)
    rig.send(100)
    assert (rig.no_room, rig.has_had_it) == (1, once)
