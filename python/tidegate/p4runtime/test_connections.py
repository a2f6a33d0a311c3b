"""Connections to the server, and what it grants on each: beyond it they wait, are refused or are closed, and others are served."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tidegate import p4 as programs
from tidegate.p4runtime.conftest import call, channel, served, wait_for

PATIENCE_S = 20.0
HELLO = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0"
"""With which a client of HTTP/2 begins, with no settings."""
PING = 6
"""Type of a frame (RFC 9113 section 6.7)."""


def closed(raw: socket.socket) -> bool:
    raw.settimeout(PATIENCE_S)
    try:
        while raw.recv(4096):
            pass
    except ConnectionResetError:
        return True
    except TimeoutError:
        return False
    return True


def test_connections_that_say_nothing_are_closed(
    everything: programs.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tidegate.p4runtime import listening

    monkeypatch.setattr(listening, "HANDSHAKE_MS", 500)
    with served(everything) as made:
        host, _, port = made.server.address.rpartition(":")
        with socket.create_connection((host, int(port))) as raw:
            assert closed(raw)
        made.is_well()


def test_connections_have_a_number_and_idle_ones_are_closed(everything: programs.Program) -> None:
    with (
        served(everything, connections=3, idle_s=1) as made,
        channel(made.server.address) as one,
        channel(made.server.address) as two,
    ):
        for over in (one, two):
            grpc.channel_ready_future(over).result(PATIENCE_S)
        with channel(made.server.address) as three:
            capabilities = call(three, "Capabilities", "unary_unary")
            with pytest.raises(grpc.RpcError) as caught:
                capabilities(b"", timeout=0.5)
            assert caught.value.code().name in ("DEADLINE_EXCEEDED", "UNAVAILABLE")
            made.is_well()
            # The others, which are idle, make way.
            wait_for(lambda: answers(capabilities))


def answers(capabilities: Any) -> bool:
    try:
        capabilities(b"", timeout=1)
    except grpc.RpcError:
        return False
    return True


# What is granted on each.


def test_a_connection_has_so_many_calls_and_more_wait_at_the_client(everything: programs.Program) -> None:
    stop = threading.Event()

    def silent() -> Iterator[bytes]:
        stop.wait(PATIENCE_S)
        yield from ()

    with (
        served(everything, calls_per_connection=3, request_s=60) as made,
        channel(made.server.address) as over,
    ):
        calls = [call(over, "Read")(silent()) for _ in range(3)]
        wait_for(lambda: made.server._clients.count == 3)
        waits = call(over, "Capabilities", "unary_unary").future(b"", timeout=PATIENCE_S)
        with pytest.raises(grpc.FutureTimeoutError):
            waits.result(timeout=0.5)
        assert made.server._clients.count == 3
        made.is_well()
        calls[0].cancel()
        assert waits.result(), "there is room"
        stop.set()


def test_header_fields_have_a_size(everything: programs.Program) -> None:
    with served(everything) as made, channel(made.server.address) as over:
        capabilities = call(over, "Capabilities", "unary_unary")
        assert capabilities(b"", metadata=[("note", "x" * 7000)])
        with pytest.raises(grpc.RpcError) as caught:
            capabilities(b"", metadata=[("note", "x" * 8200)])
        assert caught.value.code().name == "RESOURCE_EXHAUSTED"
        made.is_well()


def test_a_client_that_does_not_answer_is_cut_off(everything: programs.Program) -> None:
    """It takes what is sent to it, the question whether it is there too, and says nothing."""
    with served(everything, keepalive_s=1, idle_s=600) as made:
        host, _, port = made.server.address.rpartition(":")
        with socket.create_connection((host, int(port))) as raw:
            raw.sendall(HELLO)
            raw.settimeout(PATIENCE_S)
            heard = b""
            while more := raw.recv(4096):
                heard += more
        kinds = []
        while heard:
            kinds.append((heard[3], heard[4]))
            heard = heard[9 + int.from_bytes(heard[:3]) :]
        assert (PING, 0) in kinds
        # The primary answers.
        made.is_well()
