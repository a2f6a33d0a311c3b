"""Connections and streams that end, and those that must not."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from typing import Any

import grpc
import pytest

from tidegate import p4 as programs
from tidegate.control.delivery import Messages
from tidegate.p4runtime import Connection, Limits, Server
from tidegate.p4runtime.arbitration import Stream
from tidegate.p4runtime.conftest import LOOPBACK, VRFS, Bench, wait_for
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.messages import SERVICE, p4


def pinging(address: str) -> grpc.Channel:
    """A connection that asks each second whether the server is there; gRPC's clients do not ask more often."""
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.keepalive_time_ms", 1000),
        ("grpc.keepalive_permit_without_calls", 1),
        ("grpc.http2.max_pings_without_data", 0),
    ]
    return grpc.insecure_channel(address, options=options)


def backup(over: grpc.Channel, stop: threading.Event) -> Any:
    """A stream on which nothing is sent after its first messages."""

    def requests() -> Iterator[bytes]:
        yield p4.StreamMessageRequest(arbitration={"device_id": 1}).SerializeToString()
        stop.wait(20)

    made = over.stream_stream(f"/{SERVICE}/StreamChannel")(requests())
    next(made)
    return made


def test_a_controller_may_ping_each_second(bench: Bench) -> None:
    stop = threading.Event()
    with pinging(bench.server.address) as over:
        stream = backup(over, stop)
        # Without leave for it this is cut off at the third ping.
        until = time.monotonic() + 3.5
        while time.monotonic() < until:
            assert stream.is_active(), stream.details()
            time.sleep(0.05)
        stop.set()


def test_who_pings_all_the_time_is_cut_off(bench: Bench) -> None:
    host, _, port = bench.server.address.rpartition(":")
    ping = b"\0\0\x08\x06\0\0\0\0\0" + bytes(8)
    with socket.create_connection((host, int(port))) as raw:
        raw.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\0\0\0\x04\0\0\0\0\0" + 20 * ping)
        raw.settimeout(20)
        heard = b""
        while more := raw.recv(4096):
            heard += more
        assert b"too_many_pings" in heard


def test_a_stream_that_has_left_is_not_elected(bench: Bench) -> None:
    """What it has sent is read on another thread, and may come after it has gone."""
    update = p4.StreamMessageRequest(arbitration={"device_id": 1, "election_id": {"low": 9}})
    gone, failed = Stream(), Stream()
    arbitration = bench.server._arbitration
    with bench.server._busy:
        arbitration.join(gone)
        arbitration.leave(gone)
        arbitration.join(failed)
        failed.fail(P4Error(Code.ABORTED, "begin anew"))
    for stream in (gone, failed):
        bench.server._hear(stream, update.SerializeToString())
        assert stream.role is None
    with Connection(bench.server.address, election_id=9) as other:
        assert other.next("arbitration").status.code == 0


@pytest.mark.parametrize("half_closed", [False, True])
def test_a_stream_that_has_failed_ends_though_its_controller_reads_nothing(
    everything: programs.Program, half_closed: bool
) -> None:
    limits = Limits(stalled_s=1)
    stalled = Connection.__new__(Connection)
    stalled._listen = lambda: None  # type: ignore[method-assign]
    with Server(
        everything.pipeline(), everything, address=LOOPBACK, translations=VRFS, limits=limits
    ) as server:
        Connection.__init__(stalled, server.address)
        wait_for(lambda: bool(server._arbitration.primaries()))
        (stream,) = server._arbitration.streams

        def stuck() -> bool:
            server.deliver(Messages(packets=[(0, bytes(4000), 0)] * 500))
            time.sleep(0.2)
            return len(stream._waiting) == limits.messages_per_stream

        wait_for(stuck)
        if half_closed:
            stalled._said.put(None)
        else:
            server.reset_elections()
        wait_for(lambda: server.statistics["streams"] == 0)
        stalled.close()
