"""`tidegate monitor --after`: both sides of a Linux router with a queue and losses, beside what tshark reads, joined here."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import urllib.request
from collections import defaultdict, deque
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from itertools import count
from math import ceil
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from lab_captures import captured, needs_dumpcap, run_in
from live import needs_iperf3
from namespaces import ip, needs_root, within, write_within
from rtt_tools import Flow, fields, needs_tshark
from tidegate.monitor import Interfaces, watch

_numbers = count()
A, B = "10.12.1.1", "10.12.2.1"
SLOW = ["tbf", "rate", "20mbit", "burst", "5kb", "limit", "60kb"]
SLOW_BACK = ["tbf", "rate", "15mbit", "burst", "5kb", "limit", "30kb"]


@dataclass(frozen=True)
class Lab:
    """Namespaces: a host, a router with `to1` and `to2`, and another host."""

    a: str
    router: str
    b: str

    def dropped(self) -> dict[str, int]:
        """By interface of the router, what its qdisc has dropped."""
        words = ["ip", "netns", "exec", self.router, "tc", "-s", "-j", "qdisc", "show"]
        found = json.loads(subprocess.run(words, check=True, capture_output=True).stdout)
        return {one["dev"]: one["drops"] for one in found if one.get("root") and one["dev"] != "lo"}

    def iperf3(self, *words: str, port: int) -> subprocess.Popen[bytes]:
        """A client in the first namespace, whose server in the second one is there."""
        server = ["ip", "netns", "exec", self.b, "iperf3", "-s", "-1", "-p", str(port), "--forceflush"]
        listening = subprocess.Popen(server, stdout=subprocess.PIPE)
        assert listening.stdout is not None
        while b"listening" not in (line := listening.stdout.readline()):
            assert line, "iperf3 did not begin"
        client = ["ip", "netns", "exec", self.a, "iperf3", "-c", B, "-p", str(port), *words]
        return subprocess.Popen(client, stdout=subprocess.DEVNULL)

    def udp(self) -> subprocess.Popen[bytes]:
        """A client of 15 Mbit/s, once it sends: iperf3 gives up if its first datagram is lost."""
        client = self.iperf3("-u", "-b", "15M", "-l", "1000", "-t", "3", port=5203)
        time.sleep(0.7)
        return client

    def talk(self) -> None:
        """TCP and UDP, more than fits; and later some packets, so that both taps go on after the last loss."""
        clients = [self.udp()]
        clients += [self.iperf3("-t", "3", port=5201), self.iperf3("-t", "2", "-R", port=5202)]
        assert [client.wait(timeout=60) for client in clients] == [0, 0, 0]
        time.sleep(1)
        self.talk_on()
        # What waits for a capture when it is stopped is not in it.
        time.sleep(1)

    def talk_on(self) -> None:
        """Some packets in both directions."""
        for netns, to in ((self.a, B), (self.b, A)):
            send = f"import socket; s = socket.socket(2, 2); [s.sendto(b'%d' % n, ('{to}', 9)) for n in range(20)]"
            run_in(netns, "python3", "-c", send)


@pytest.fixture
def lab() -> Iterator[Lab]:
    """A queue of 20 Mbit/s towards the second host, and of 15 Mbit/s towards the first; no offloads."""
    lab = Lab(*(f"tgo{os.getpid()}-{next(_numbers)}" for _ in range(3)))
    with ExitStack() as stack:
        for name in (lab.a, lab.router, lab.b):
            ip("netns", "add", name)
            stack.callback(ip, "netns", "del", name)
            write_within(name, "/proc/sys/net/ipv6/conf/all/disable_ipv6", "1")
            write_within(name, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
        for number, name in enumerate((lab.a, lab.b), 1):
            near, far = f"10.12.{number}.1", f"10.12.{number}.254"
            link = ["link", "add", "dev", "eth", "type", "veth", "peer", "name", f"to{number}"]
            ip("-n", name, *link, "netns", lab.router)
            for netns, device, address in ((name, "eth", near), (lab.router, f"to{number}", far)):
                ip("-n", netns, "addr", "add", f"{address}/24", "dev", device)
                run_in(netns, "ethtool", "-K", device, "gro", "off", "tso", "off", "gso", "off")
                ip("-n", netns, "link", "set", "dev", device, "up")
            ip("-n", name, "route", "add", "default", "via", far)
        ip("-n", lab.router, "link", "set", "dev", "lo", "up")
        write_within(lab.router, "/proc/sys/net/ipv4/ip_forward", "1")
        run_in(lab.a, "ping", "-q", "-c", "1", B)
        for device, qdisc in (("to1", SLOW_BACK), ("to2", SLOW)):
            run_in(lab.router, "tc", "qdisc", "add", "dev", device, "root", *qdisc)
        yield lab


Packet = tuple[Flow, tuple[str, ...], int]
"""Flow, what a packet's copies have in common, and nanoseconds."""


def packets_of(path: Path) -> list[Packet]:
    names = ("frame.time_epoch", "ip.src", "ip.dst", "ip.id", "ip.proto")
    names += (
        "tcp.srcport",
        "tcp.dstport",
        "tcp.seq_raw",
        "tcp.ack_raw",
        "tcp.len",
        "tcp.options.timestamp.tsval",
    )
    names += ("udp.srcport", "udp.dstport", "udp.length", "udp.payload")
    found = []
    for row in fields(path, *names, only="tcp || udp"):
        stamp, src, dst, number, protocol, *rest = row
        ports = rest[0:2] if protocol == "6" else rest[6:8]
        seconds, part = stamp.split(".")
        flow = (src, int(ports[0]), dst, int(ports[1]))
        found.append((flow, (number, protocol, *rest), int(seconds) * 10**9 + int(part)))
    return found


def joined(before: Path, after: Path) -> tuple[dict[Flow, list[tuple[int, int]]], dict[Flow, int]]:
    """By flow: microseconds of the second tap's time and nanoseconds of delay of each packet at both, and how many were at the first alone."""
    sides = [packets_of(before), packets_of(after)]
    delays, lost = defaultdict(list), defaultdict(int)
    for from_host, (first, second) in ((A, sides), (B, sides[::-1])):
        waiting: dict[Any, deque[int]] = defaultdict(deque)
        for flow, what, at in first:
            if flow[0] == from_host:
                waiting[flow, what].append(at)
        for flow, what, at in second:
            if flow[0] == from_host and waiting[flow, what]:
                delays[flow].append((at // 1000, at - waiting[flow, what].popleft()))
        for (flow, _), rest in waiting.items():
            lost[flow] += len(rest)
    return delays, lost


def flow_of(row: dict[str, Any]) -> Flow:
    return row["src"], row["src_port"], row["dst"], row["dst_port"]


@needs_root
@needs_tshark
@needs_dumpcap
@needs_iperf3
def test_a_linux_router(lab: Lab, tmp_path: Path) -> None:
    before, after, out = tmp_path / "before.pcap", tmp_path / "after.pcap", tmp_path / "delays.csv"
    with captured(lab.router, before, "to1", "tcp or udp"), captured(lab.router, after, "to2", "tcp or udp"):
        lab.talk()
    answer = watch([before], after=[after], lost_after=0.5, delays=out)
    delays, lost = joined(before, after)
    ours = defaultdict(list)
    rows = pl.read_csv(out, schema_overrides={"time_s": pl.String, "queue_delay_ms": pl.Float64})
    for row in rows.iter_rows(named=True):
        seconds, part = row["time_s"].split(".")
        time_us = int(seconds) * 10**6 + int(part) // 1000
        ours[flow_of(row)].append((time_us, round(row["queue_delay_ms"] * 1e6)))
    assert set(ours) == set(delays)
    same = 0
    for flow, theirs in delays.items():
        assert set(ours[flow]) <= set(theirs)
        same += len(set(ours[flow]))
    every = sum(len(set(theirs)) for theirs in delays.values())
    assert every > 5_000
    assert same >= 0.99 * every

    flows = {flow_of(flow): flow for flow in answer["flows"]}
    assert {flow: flows[flow]["lost_at_router"] for flow in delays} == {flow: lost[flow] for flow in delays}
    dropped = lab.dropped()
    assert dropped["to2"] > 20
    assert dropped["to1"] > 0
    for host, device in ((A, "to2"), (B, "to1")):
        of_host = [flow for flow in flows if flow[0] == host]
        # A flow that the queue has taken whole is not known to come through here.
        whole = sum(lost[flow] for flow in of_host if flow not in delays)
        assert sum(flows[flow]["lost_at_router"] or 0 for flow in of_host) + whole == dropped[device]
    for flow, theirs in delays.items():
        if len(theirs) < 100:
            continue
        took_ms = sorted(took / 1e6 for _, took in theirs)
        for part in (50, 95, 99):
            there = took_ms[ceil(part / 100 * len(took_ms)) - 1]
            assert flows[flow][f"queue_delay_ms_p{part}"] == pytest.approx(there, rel=0.001, abs=1e-6)
        assert flows[flow]["queue_delay_ms_max"] == pytest.approx(took_ms[-1])
    assert {flows[flow]["first_tap"] for flow in delays if flow[0] == A} == {"before"}
    assert {flows[flow]["first_tap"] for flow in delays if flow[0] == B} == {"after"}
    assert all(flow["first_tap"] is None for name, flow in flows.items() if name not in delays)
    # A full queue of 60 kB at 20 Mbit/s is 24 ms.
    [fast] = [flow for flow in answer["flows"] if flow["dst_port"] == 5203 and flow["protocol"] == "udp"]
    assert 15 < fast["queue_delay_ms_p95"] < 30
    # Of a busy machine's two processors one may be slow to hand a packet on.
    assert [warning for warning in answer["warnings"] if "are stamped earlier" not in warning] == []

    # All else is of the first tap alone.
    alone = {flow_of(flow): flow for flow in watch([before])["flows"]}
    assert all(flows[flow].items() >= one.items() for flow, one in alone.items())


@needs_root
@needs_dumpcap
@needs_iperf3
def test_interfaces_of_a_router(lab: Lab, tmp_path: Path) -> None:
    def begin() -> Interfaces:
        return Interfaces(["to1"], after=["to2"], lost_after=0.5)

    with within(f"/run/netns/{lab.router}", begin) as watched:
        clients = [lab.udp(), lab.iperf3("-t", "2", port=5201)]
        while any(client.poll() is None for client in clients):
            watched.run(0.2)
        watched.run(1)
        lab.talk_on()
        watched.run(0.2)
        watched.settle()
        answer = watched.answer()
        assert watched.end() == []
    dropped = lab.dropped()
    assert dropped["to2"] > 20
    assert sum(flow["lost_at_router"] for flow in answer["flows"] if flow["src"] == A) == dropped["to2"]
    assert sum(flow["lost_at_router"] for flow in answer["flows"] if flow["src"] == B) == dropped["to1"]
    assert (answer["interfaces"], answer["after_interfaces"]) == (["to1"], ["to2"])


@needs_root
def test_metrics_of_both_sides(lab: Lab) -> None:
    words = [
        "-i",
        "to1",
        "--after",
        "to2",
        "--metrics-addr",
        "127.0.0.1:0",
        "--duration",
        "30",
        "--interval",
        "0.2",
    ]
    tidegate = str(Path(sys.prefix) / "bin" / "tidegate")
    command = ["ip", "netns", "exec", lab.router, tidegate, "monitor", *words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as other:
        assert other.stderr is not None
        page = other.stderr.readline().split()[-1]
        lab.talk_on()
        time.sleep(1)

        def read() -> str:
            return urllib.request.urlopen(page, timeout=10).read().decode()

        text = within(f"/run/netns/{lab.router}", read)
        other.send_signal(signal.SIGINT)
        said, _ = other.communicate(timeout=30)
    found = {line.split("{")[0] for line in text.splitlines() if f'src="{A}"' in line}
    assert "tidegate_monitor_flow_queue_delay_samples_total" in found
    assert "tidegate_monitor_flow_lost_at_router_total" in found
    delays = [line for line in text.splitlines() if line.startswith("tidegate_monitor_flow_queue_delay_ms{")]
    assert sorted(re.findall(r'quantile="(\w+)"', " ".join(delays))) == sorted(
        ["min", "p50", "p95", "p99", "max"] * 2
    )
    assert all(0 < float(line.split()[-1]) < 50 for line in delays)
    assert "(40 at both taps)" in said
