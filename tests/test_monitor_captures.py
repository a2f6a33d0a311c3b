"""`tidegate monitor` beside tshark and tcptrace on captures of real hosts with GRO and TSO, of AccECN with marks, and where numbers wrap."""

from __future__ import annotations

import os
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import count
from pathlib import Path

import pytest

from lab_captures import captured, needs_dumpcap, run_in
from namespaces import ip, needs_root, within, write_within
from random_talks import capture
from rtt_tools import (
    by_flow,
    compare,
    compare_exact,
    compare_timestamps,
    fields,
    needs_tcptrace,
    needs_tshark,
    of_tcptrace,
    ours,
)
from tidegate.network import Network

_numbers = count()
A, B = "10.11.1.1", "10.11.2.1"
FLOWS, BYTES = 4, 4_000_000


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Namespaces of two hosts, `eth` in both, with segmentation and receive offload; between them a router with 100 Mbit/s and a queue
    of 10 ms to the second host, which drops what is more."""
    a, router, b = (f"tgo{os.getpid()}-{next(_numbers)}" for _ in range(3))
    with ExitStack() as stack:
        for name in (a, router, b):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
        for number, name in enumerate((a, b), 1):
            peer = ["peer", "name", f"to{number}", "netns", router]
            ip("-n", name, "link", "add", "dev", "eth", "type", "veth", *peer)
            ip("-n", name, "addr", "add", f"10.11.{number}.1/24", "dev", "eth")
            ip("-n", router, "addr", "add", f"10.11.{number}.254/24", "dev", f"to{number}")
            run_in(name, "ethtool", "-K", "eth", "gro", "on", "tso", "on", "gso", "on")
            run_in(router, "ethtool", "-K", f"to{number}", "gro", "on", "tso", "on", "gso", "on")
            ip("-n", name, "link", "set", "dev", "eth", "up")
            ip("-n", router, "link", "set", "dev", f"to{number}", "up")
            ip("-n", name, "route", "add", "default", "via", f"10.11.{number}.254")
        write_within(router, "/proc/sys/net/ipv4/ip_forward", "1")
        shaper = ["tbf", "rate", "100mbit", "burst", "16kb", "latency", "10ms"]
        run_in(router, "tc", "qdisc", "add", "dev", "to2", "root", *shaper)
        yield a, b


def serve(listener: socket.socket) -> None:
    """Takes what a client sends, and answers as much in its turn for each hundred bytes."""
    one, _ = listener.accept()
    with one:
        one.settimeout(30)
        while data := one.recv(1 << 16):
            one.sendall(bytes(len(data) // 100 + 1))


def talk(a: str, b: str) -> None:
    """Connections at once, with data in both directions."""
    listeners = within(
        f"/run/netns/{b}", lambda: [socket.create_server((B, 5000 + number)) for number in range(FLOWS)]
    )

    def send(number: int) -> None:
        with socket.create_connection((B, 5000 + number), timeout=30) as one:
            one.settimeout(30)
            reader = threading.Thread(target=lambda: [None for _ in iter(lambda: one.recv(1 << 16), b"")])
            reader.start()
            for at in range(0, BYTES, 100_000):
                one.sendall(bytes(min(100_000, BYTES - at)))
            one.shutdown(socket.SHUT_WR)
            reader.join(timeout=30)

    def client(number: int) -> None:
        within(f"/run/netns/{a}", lambda: send(number))

    threads = [threading.Thread(target=serve, args=(listener,)) for listener in listeners]
    threads += [threading.Thread(target=client, args=(number,)) for number in range(FLOWS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for listener in listeners:
        listener.close()


def shifted(path: Path) -> Path:
    """The capture with other sequence numbers: those of each direction reach 2^32 after a half of its bytes."""
    data = bytearray(path.read_bytes())
    order = "<" if data[:4] in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1") else ">"

    def packets() -> Iterator[tuple[tuple[bytes, bytes], int, int]]:
        """Ends of a packet, and where its TCP header is and ends."""
        at = 24
        while at < len(data):
            (size,) = struct.unpack_from(order + "I", data, at + 8)
            start = at + 16 + 14
            header = start + (data[start] & 15) * 4
            ends = data[start + 12 : start + 16] + data[header : header + 2]
            other = data[start + 16 : start + 20] + data[header + 2 : header + 4]
            yield (bytes(ends), bytes(other)), header, at + 16 + size
            at += 16 + size

    first: dict[tuple[bytes, bytes], int] = {}
    span: dict[tuple[bytes, bytes], int] = {}
    for flow, at, _ in packets():
        (seq,) = struct.unpack_from("!I", data, at + 4)
        begin = first.setdefault(flow, seq)
        if (ahead := (seq - begin) % 2**32) < 2**31:
            span[flow] = max(span.get(flow, 0), ahead)
    add = {flow: -begin - span[flow] // 2 for flow, begin in first.items()}

    def change(at: int, flow: tuple[bytes, bytes]) -> None:
        (number,) = struct.unpack_from("!I", data, at)
        struct.pack_into("!I", data, at, (number + add.get(flow, 0)) % 2**32)

    for flow, at, end in packets():
        back = (flow[1], flow[0])
        change(at + 4, flow)
        if data[at + 13] & 16:
            change(at + 8, back)
        option, end = at + 20, min(end, at + (data[at + 12] >> 4) * 4)
        while option < end and data[option] != 0:
            if data[option] == 1:
                option += 1
                continue
            length = data[option + 1]
            if data[option] == 5:
                for edge in range(option + 2, option + length, 4):
                    change(edge, back)
            option += max(length, 2)
    out = path.with_name(f"shifted-{path.name}")
    out.write_bytes(data)
    return out


def wraps(path: Path) -> int:
    """Flows whose numbers pass 2^32."""
    low, high = set(), set()
    for src, sport, dst, dport, seq in fields(
        path, "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.seq_raw"
    ):
        near = low if int(seq) < 2**30 else high if int(seq) > 3 * 2**30 else set()
        near.add((src, sport, dst, dport))
    return len(low & high)


@needs_root
@needs_tshark
@needs_tcptrace
@needs_dumpcap
def test_large_segments_of_real_hosts(hosts: tuple[str, str], tmp_path: Path) -> None:
    """Segments as the sender gives them to its interface (TSO), and as the receiver puts them together (GRO)."""
    a, b = hosts
    sender, receiver = tmp_path / "sender.pcap", tmp_path / "receiver.pcap"
    with captured(a, sender), captured(b, receiver):
        talk(a, b)
    for path, begin in ((sender, A), (receiver, A)):
        sizes = [int(size) for (size,) in fields(path, "frame.len", only=f"ip.src == {begin} && tcp.len > 0")]
        assert sum(size > 3000 for size in sizes) > 20, f"{path.name} has large segments"
        for each in (path, shifted(path)):
            tshark, tcptrace = compare(each)
            exact, _ = compare_exact(each)
            assert min(tshark, tcptrace, exact, compare_timestamps(each)) > 100, each.name
        assert wraps(shifted(path)) >= FLOWS
    again = len(fields(sender, "tcp.seq", only="tcp.analysis.retransmission"))
    assert again > 0, "the queue drops"


@needs_tshark
@needs_tcptrace
@pytest.mark.slow
def test_accurate_ecn_with_marks_and_losses(tmp_path: Path) -> None:
    """Counts of marks in the flags of acknowledgments, duplicate ones among them."""
    net = Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r")
    path = tmp_path / "lab.pcap"
    first = net.link(a, router, rate="1 Gbit/s", delay="1 ms")
    net.capture(first, router, path, snap="96 B")
    net.link(router, b, rate="20 Mbit/s", delay="9 ms", queue="60 packets", mark_above=15, loss=0.003)
    for number in range(4):
        net.tcp(
            a,
            b,
            size="2 MB",
            start=f"{100 * number} ms",
            congestion_control="prague" if number % 2 else "cubic",
            ecn="accurate",
        )
    net.run("6 s", seed=3)
    counts = {
        ace for (ace,) in fields(path, "tcp.flags.ace", only="tcp.srcport != 0 && tcp.flags.syn == 0") if ace
    }
    assert len(counts) == 8, counts
    assert len(fields(path, "tcp.ack", only="tcp.analysis.duplicate_ack")) > 50
    for each in (path, shifted(path)):
        tshark, tcptrace = compare(each)
        exact, _ = compare_exact(each)
        assert tshark > 2000
        assert min(tcptrace, exact, compare_timestamps(each)) > 1000
    assert wraps(shifted(path)) >= 4


@needs_tshark
@needs_tcptrace
@pytest.mark.slow
def test_losses_where_numbers_wrap(tmp_path: Path) -> None:
    from test_monitor import simulated

    path = shifted(simulated(tmp_path, 0.01))
    assert wraps(path) >= 4
    tshark, tcptrace = compare(path)
    exact, _ = compare_exact(path)
    assert tshark > 3000
    assert min(tcptrace, exact, compare_timestamps(path)) > 1000


@needs_tcptrace
@pytest.mark.parametrize("seed", [0, 6])
def test_where_quarters_of_the_numbers_meet(tmp_path: Path, seed: int) -> None:
    """tcptrace looks at one of four quarters of the numbers: its rule has the samples that it has there, and no others."""
    path = capture(tmp_path / "talks.pcap", seed, talks=200)
    mine, theirs = by_flow(ours(path, "tcptrace")), of_tcptrace(path)
    assert {flow: len(mine.get(flow, [])) for flow in theirs} == {
        flow: count for flow, (_, count, _) in theirs.items()
    }
    for flow, (samples, _, _) in theirs.items():
        # It cuts them to milliseconds, and writes none of 0.
        assert [rtt for rtt in mine.get(flow, []) if rtt] == pytest.approx(
            [one + 0.5 for one in samples], abs=0.502
        ), flow
    assert sum(count for _, count, _ in theirs.values()) > 1000
