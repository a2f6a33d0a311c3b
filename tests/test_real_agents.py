"""Agents of real hosts, without hosts: what is refused, and what becomes of errors of the kernel."""

from __future__ import annotations

import errno
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate._core import TidegateError
from tidegate.hosts import libbpf
from tidegate.hosts.agents import Agent
from tidegate.hosts.real_agents import (
    _CONNECTION,
    ESTABLISHED,
    MOST_CONNECTIONS,
    RealAgents,
    _inside,
    refusals,
)
from tidegate.network import Network, Node


def network() -> tuple[Network, Node, Node]:
    """Two hosts and a link; the first has an agent."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="100 Mbit/s", delay="1 ms")
    net.agent(a, Agent())
    return net, a, b


def test_flows_beyond_the_room_of_the_maps_are_refused() -> None:
    net, a, b = network()
    for _ in range(MOST_CONNECTIONS // 2):
        net.tcp(a, b)
    assert list(refusals(net)) == []
    net.tcp(b, a)
    assert [why.partition(";")[0] for why in refusals(net)] == ["flow 8192 is of a host with agents"]


@pytest.mark.parametrize("error", [errno.ENETUNREACH, errno.ENETDOWN, errno.ENOBUFS, errno.EMSGSIZE])
def test_what_cannot_leave_the_host_is_lost(monkeypatch: pytest.MonkeyPatch, error: int) -> None:
    """As on a link that is down in the simulator. What no network would lose is an error."""

    def send(packet: bytes, to: Any) -> None:
        raise OSError(error, os.strerror(error))

    net, a, b = network()
    net.tcp(a, b)
    real = RealAgents(net)
    real.add(a.number, ())
    there = _CONNECTION.pack(0, ESTABLISHED, *bytes(8))
    real._maps = {"connections": {real._ends[0].key: there}}  # type: ignore[dict-item]
    monkeypatch.setattr(real, "_raw_socket", lambda host: SimpleNamespace(sendto=send))
    if error == errno.EMSGSIZE:
        with pytest.raises(TidegateError, match="cannot be sent: Message too long"):
            real.send(0, 0, "tcp", 253, b"")
    else:
        assert real.send(0, 0, "tcp", 253, b"")


def test_a_namespace_that_is_gone() -> None:
    with (
        pytest.raises(TidegateError, match="the network namespace /run/netns/none: No such file"),
        _inside("/run/netns/none"),
    ):
        pass


def test_a_compiler_that_cannot_be_started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def run(*words: Any, **options: Any) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))

    monkeypatch.setattr(subprocess, "run", run)
    with pytest.raises(libbpf.BpfError, match="clang cannot be started: Permission denied"):
        libbpf.compiled(tmp_path / "none.c")
