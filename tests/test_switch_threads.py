"""A switch of several threads, each with a group of the ports: what a program sees is one packet after the other."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from namespaces import Host, Place, ip, needs_root, place, processors_of_networks
from switches import (
    LEARNING,
    MACS,
    between,
    frame,
    interfaces,
    ports,
    run,
    until_running,
    wait_for,
    waited_for,
)
from tidegate import p4, p4runtime
from tidegate._core import TidegateError
from tidegate.control.delivery import Messages
from tidegate.switch.remote import served
from tidegate.switch.running import LiveSwitch

CPU = 100
SO_RCVBUFFORCE = 33
PLAIN, TO_ALL, CLONED, TWICE, TO_CONTROLLER = range(5)
CLONE, SECOND, OUT = 0x20, 0x30, 0x40
"""What the program makes of the kind of a clone, and of a packet that has come twice; and that of a packet-out."""
EACH = 1500
"""Frames of each host to each other one."""
WRITES = 200
"""Entries written, and packet-outs, meanwhile."""

# One register cell for all packets: an addition that is not one piece would lose some. The table changes nothing but takes writes.
SOURCE = """
#include <core.p4>
#include <v1model.p4>
header frame_t { bit<48> to; bit<48> from; bit<16> type; bit<8> kind; bit<8> by; bit<8> port; bit<32> number; }
struct headers_t { frame_t frame; }
struct metadata_t { }
parser Parse(packet_in p, out headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    state start { p.extract(h.frame); transition accept; }
}
control Verify(inout headers_t h, inout metadata_t m) { apply { } }
control Work(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    register<bit<32>>(4) seen;
    counter(512, CounterType.packets) by_port;
    action none() { }
    table written { key = { h.frame.number: exact; } actions = { none; } default_action = none(); size = 65536; }
    apply {
        bit<32> count;
        seen.read(count, 0);
        seen.write(0, count + 1);
        by_port.count((bit<32>)s.ingress_port);
        written.apply();
        s.egress_spec = (bit<9>)h.frame.port;
        if (s.instance_type == 4) {
            seen.read(count, 1);
            seen.write(1, count + 1);
            h.frame.kind = 0x30;
        } else if (h.frame.kind == 1) {
            s.mcast_grp = 1;
        } else if (h.frame.kind == 2) {
            clone(CloneType.I2E, 5);
        } else if (h.frame.kind == 4) {
            s.egress_spec = 100;
        }
    }
}
control Leave(inout headers_t h, inout metadata_t m, inout standard_metadata_t s) {
    register<bit<32>>(1) left;
    apply {
        bit<32> count;
        left.read(count, 0);
        left.write(0, count + 1);
        if (s.instance_type == 1) { h.frame.kind = 0x20; }
        else if (h.frame.kind == 3) { recirculate_preserving_field_list(0); }
    }
}
control Compute(inout headers_t h, inout metadata_t m) { apply { } }
control Deparse(packet_out p, in headers_t h) { apply { p.emit(h.frame); } }
V1Switch(Parse(), Verify(), Work(), Leave(), Compute(), Deparse()) main;
"""


def numbered(kind: int, by: int, port: int, number: int) -> bytes:
    head = MACS[0] + MACS[0] + b"\x88\xb5" + bytes([kind, by, port])
    return head + number.to_bytes(4) + bytes(39)


def read(data: bytes) -> tuple[tuple[int, int, int], int]:
    """Kind, sender and receiver, and the number among these."""
    return (data[14], data[15], data[16]), int.from_bytes(data[17:21])


def in_order(packets: Iterable[tuple[tuple[int, int, int], int]]) -> bool:
    """Whether those of each flow have come as they were sent."""
    last: dict[tuple[int, int, int], int] = {}
    for flow, number in packets:
        if number <= last.get(flow, -1):
            return False
        last[flow] = number
    return True


@pytest.fixture
def three() -> Iterator[Place]:
    with place(3) as made:
        yield made


class Hears:
    """Keeps the packets for controllers."""

    def __init__(self) -> None:
        self.packets: list[tuple[tuple[int, int, int], int]] = []

    def deliver(self, messages: Messages) -> None:
        self.packets.extend(read(data) for _, data, _ in messages.packets)


@contextmanager
def handing_over(live: LiveSwitch) -> Iterator[Hears]:
    """The switch runs, and hands its packets over."""
    hears = Hears()
    live.listen(hears)
    with live, waited_for(live):
        yield hears


def send_kinds(host: Host, others: list[int]) -> None:
    for number in range(EACH):
        for other in others:
            host.send(numbered(number % 5, host.number, other, number))
        if number % 4 == 0:
            time.sleep(0.001)


@needs_root
@pytest.mark.parametrize(("threads", "kind"), [(2, "xdp"), (3, "xdp"), (3, "packet")])
def test_all_kinds_of_packets_are_handled_one_after_the_other(
    three: Place, tmp_path: Path, threads: int, kind: str
) -> None:
    path = tmp_path / "all.p4"
    path.write_text(SOURCE)
    live = LiveSwitch(p4.compile(path), ports(three, kind), cpu_port=CPU, threads=threads)
    live.api.multicast_set(1, [1, 2, 3])
    live.api.mirror_set(5, 1)
    numbers = [host.number for host in three.hosts]
    sent = Counter(
        (number % 5, by, to) for number in range(EACH) for by in numbers for to in numbers if by != to
    )
    copies = {number: Counter[int]() for number in numbers}
    for (sort, _, to), count in sent.items():
        for number in numbers if sort == TO_ALL else () if sort == TO_CONTROLLER else (to,):
            copies[number][SECOND if sort == TWICE else sort] += count
        if sort == CLONED:
            copies[1][CLONE] += count
    for entry in range(WRITES):
        copies[numbers[entry % 3]][OUT] += 1
    for host in three.hosts:
        host.socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 64 << 20)
    with (
        handing_over(live) as hears,
        served(live, "127.0.0.1:0", 1, None) as server,
        p4runtime.connect(server.address) as remote,
    ):
        senders = [
            threading.Thread(target=send_kinds, args=(host, [n for n in numbers if n != host.number]))
            for host in three.hosts
        ]
        for sender in senders:
            sender.start()
        for entry in range(WRITES):
            remote.table_add("written", [1_000_000 + entry], "none")
            live.api.packet_out(numbered(OUT, CPU, numbers[entry % 3], entry))
        for sender in senders:
            sender.join()
        came = {host.number: host.receive(copies[host.number].total()) for host in three.hosts}
        to_controller = sum(count for (sort, _, _), count in sent.items() if sort == TO_CONTROLLER)
        wait_for(lambda: len(hears.packets) == to_controller)
        assert len(live.api.table_entries("written")) == WRITES
        assert live.api.drops == {}
        twice = sum(count for (sort, _, _), count in sent.items() if sort == TWICE)
        handled = sent.total() + twice + WRITES
        assert list(live.api.register_read("seen", 0, 2)) == [handled, twice]
        left = sum(each.total() for each in copies.values()) + twice + to_controller
        assert list(live.api.register_read("left")) == [left]
        by = Counter(by for (_, by, _), count in sent.items() for _ in range(count))
        counted = live.api.counter_read("by_port")
        assert [int(counted[n, 0]) for n in (0, *numbers, CPU)] == [twice, *(by[n] for n in numbers), WRITES]
        counts = live.statistics()["ports"]
        assert [port["received"] for port in counts] == [by[n] for n in numbers]
        assert [port["sent"] for port in counts] == [copies[n].total() for n in numbers]
    for number, frames in came.items():
        assert Counter(data[14] for data in frames) == copies[number]
        if kind == "xdp":
            assert in_order(read(data) for data in frames)
    assert kind != "xdp" or in_order(hears.packets)


@needs_root
def test_each_thread_has_ports_and_a_processor(three: Place) -> None:
    allowed = os.sched_getaffinity(0)
    for asked, has in ((1, 1), (2, 2), (3, 3), (7, 3)):
        live = LiveSwitch(p4.compile(LEARNING), ports(three, "xdp"), threads=asked)
        between(live)
        with live:
            three.hosts[0].send(frame(1, 2))
            assert three.hosts[1].receive(1) == [frame(1, 2)]
            # A thread has its name once it runs.
            wait_for(lambda has=has: processors_of_networks() == [allowed] * has)
        assert processors_of_networks() == []
    first = max(allowed) - 1
    if first not in allowed:
        return
    live = LiveSwitch(p4.compile(LEARNING), ports(three, "xdp"), processor=first, threads=2)
    with live:
        wait_for(lambda: sorted(map(min, processors_of_networks())) == [first, first + 1])
    said = f"processor {first + 2} is not one that this process may use"
    live = LiveSwitch(p4.compile(LEARNING), ports(three, "xdp"), processor=first, threads=3)
    with pytest.raises(TidegateError, match=said), live:
        pass


@needs_root
@pytest.mark.parametrize("threads", [2, 3])
def test_a_port_is_taken_away_and_comes_back(three: Place, threads: int) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(three, "xdp"), threads=threads)
    for number in (1, 2, 3):
        live.api.table_add("destination", [bytes([2, 0, 0, 0, 0, number]).hex(":")], "forward", [number])
        live.api.table_add("source", [bytes([2, 0, 0, 0, 0, number]).hex(":")], "NoAction")
    third = bytes([2, 0, 0, 0, 0, 3]) + frame(1, 2)[6:]

    def ports_up() -> list[bool]:
        return [port["up"] for port in live.statistics()["ports"]]

    with live:
        three.hosts[0].send(third)
        assert three.hosts[2].receive(1) == [third]
        ip("-n", three.name, "link", "del", "p3")
        wait_for(lambda: ports_up() == [True, True, False])
        three.hosts[0].send(third)
        three.hosts[0].send(frame(1, 2))
        assert three.hosts[1].receive(1) == [frame(1, 2)]
        wait_for(lambda: live.statistics()["ports"][2]["refused"] == 1)
        three.hosts[2] = three.again(three.hosts[2])
        wait_for(lambda: ports_up() == [True, True, True])
        three.hosts[0].send(third)
        assert three.hosts[2].receive(1) == [third]
        # Nothing keeps a thread awake.
        before = live.statistics()["wakeups"]
        time.sleep(0.3)
        assert live.statistics()["wakeups"] - before < 20


@pytest.mark.live
def test_frames_leave_at_the_port_s_rate_whichever_thread_they_came_by(three: Place) -> None:
    first, second, third = ports(three, "xdp")
    live = LiveSwitch(p4.compile(LEARNING), [first, replace(second, rate="8 Mbit/s"), third], threads=3)
    between(live)
    count = 100
    with live:
        began = time.monotonic()
        for number in range(count):
            three.hosts[number % 2 * 2].send(frame(1, 2, 1000))
        assert len(three.hosts[1].receive(count)) == count
        spent = time.monotonic() - began
        late = live.statistics()["lateness"]
    # A millisecond each; the other threads sleep meanwhile.
    assert 0.099 <= spent < 0.5
    assert late["frames"] == count
    assert late["p50"] < 1_000_000_000


@needs_root
def test_the_command_says_how_many_threads_there_are(three: Place) -> None:
    given = [word for number in (1, 2) for word in ("-i", f"{number}@p{number}")]
    before = interfaces(three)
    process = run(three, str(LEARNING), *given, "--threads", "9")
    assert "--threads 9: 2 threads, one for each port\n" in until_running(process)
    process.send_signal(signal.SIGTERM)
    _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (0, "")
    assert interfaces(three) == before
    refused = run(three, str(LEARNING), *given, "--threads", "65")
    assert "'--threads': Input should be less than or equal to 64" in refused.communicate(timeout=20)[1]
