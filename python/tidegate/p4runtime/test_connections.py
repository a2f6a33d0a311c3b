"""Connections to the server, and what it grants on each: beyond it they wait, are refused or are closed, and others are served."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import grpc
import pytest

from tidegate import p4 as programs
from tidegate.p4runtime import sharing
from tidegate.p4runtime.conftest import call, channel, served, wait_for
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.sharing import peer_of

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


def test_connections_that_say_nothing_are_closed(everything: programs.Program) -> None:
    with served(everything, handshake_s=1) as made:
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


# Shares.


def opened(address: str, stack: ExitStack, source: str = "127.0.0.1") -> socket.socket:
    """A connection on which nothing is called."""
    host, _, port = address.rpartition(":")
    raw = stack.enter_context(socket.create_connection((host, int(port)), source_address=(source, 0)))
    raw.sendall(HELLO)
    return raw


def stream(over: grpc.Channel, stop: threading.Event, election: int | None = None) -> Any:
    """A stream on a connection of its own, once it has heard of its election: gRPC joins the connections of `Connection`."""
    update = p4.MasterArbitrationUpdate(device_id=1)
    if election is not None:
        update.election_id.low = election

    def requests() -> Iterator[bytes]:
        yield p4.StreamMessageRequest(arbitration=update).SerializeToString()
        stop.wait(PATIENCE_S)

    made = call(over, "StreamChannel")(requests())
    status = p4.StreamMessageResponse.FromString(next(made)).arbitration.status
    assert (status.code == 0) == (election is not None)
    return made


def is_open(raw: socket.socket) -> bool:
    raw.setblocking(False)
    try:
        while raw.recv(4096):
            pass
    except BlockingIOError:
        return True
    except ConnectionResetError:
        pass
    return False


def test_an_address_has_its_share_of_the_connections(
    everything: programs.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes all keeps out neither others nor a primary that comes back from the same address."""
    # All addresses of this host that a test has are of the loopback, and count as one.
    monkeypatch.setattr(sharing, "network_of", lambda host: host)
    with served(everything, connections=16, connections_per_address=4) as made, ExitStack() as stack:
        elsewhere = [opened(made.server.address, stack, "127.0.0.2") for _ in range(3)]
        old = [opened(made.server.address, stack) for _ in range(3)]
        wait_for(lambda: len(made.server._shares._since) == 7)
        here = [opened(made.server.address, stack) for _ in range(9)]
        wait_for(lambda: sum(map(is_open, here)) == 3)
        assert not any(map(is_open, old)), "the oldest make way"
        assert all(map(is_open, elsewhere))
        made.is_well()
        stop = threading.Event()
        stack.callback(stop.set)
        again = stack.enter_context(channel(made.server.address))
        primary = stream(again, stop, election=9)
        wait_for(lambda: sum(map(is_open, here)) == 2)
        assert primary.is_active()
        assert call(again, "Capabilities", "unary_unary")(b"", timeout=PATIENCE_S)


def test_connections_with_calls_are_not_closed_before_others(everything: programs.Program) -> None:
    with served(everything, connections_per_address=3) as made, ExitStack() as stack:
        stop = threading.Event()
        stack.callback(stop.set)
        backup = stream(stack.enter_context(channel(made.server.address)), stop)
        idle = [opened(made.server.address, stack) for _ in range(6)]
        wait_for(lambda: sum(map(is_open, idle)) == 1)
        assert backup.is_active()
        made.is_well()


@pytest.mark.parametrize(
    ("name", "peer"),
    [
        ("ipv4:127.0.0.1:55", ("127.0.0.1", 55)),
        ("ipv6:%5B::1%5D:55", ("::1", 55)),
        ("ipv6:%5Bfe80::1%252%5D:55", ("fe80::1", 55)),
        ("ipv6:%5B::ffff:10.0.0.1%5D:55", ("10.0.0.1", 55)),
        ("unix:/tmp/x", None),
    ],
)
def test_names_of_connections(name: str, peer: Any) -> None:
    assert peer_of(name) == peer
