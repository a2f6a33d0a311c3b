"""The model of Linux's sch_dualpi2 (`tidegate.systems.aqm.controller.LINUX`) beside the kernel's own, where a kernel has it (from 6.17 on).

Four flows of CUBIC through 50 Mbit/s between two namespaces, HTB with dualpi2 as its leaf; datagrams that are not ECT and ECT(1) show
the delays of both queues. A kernel without it skips these tests and says so.
"""

from __future__ import annotations

import shutil
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Iterator

import numpy as np
import pytest

from namespaces import ip, place, within
from tidegate.systems.aqm.controller import LINUX
from tidegate.systems.aqm.experiments.measuring import rows_of
from tidegate.systems.aqm.experiments.testbed import bottleneck, classic_flows

RATE_MBPS = 50
FLOWS = 4
SECONDS = 12
JUDGED_S = 4.0
"""From here on."""
NOT_ECT, ECT1 = 0, 1
RTM_GETQDISC, NLM_F_REQUEST, NLM_F_DUMP, NLMSG_DONE = 38, 1, 0x300, 3
TCA_KIND, TCA_OPTIONS = 1, 2
NAMES = (
    "unspec",
    "limit",
    "memory_limit",
    "target",
    "tupdate",
    "alpha",
    "beta",
    "step_thresh_pkts",
    "step_thresh_us",
    "min_qlen_step",
    "coupling",
    "drop_overload",
    "drop_early",
    "c_protection",
    "ecn_mask",
    "split_gso",
)
"""TCA_DUALPI2_... of linux/pkt_sched.h, in their order."""

pytestmark = pytest.mark.live


class Pair:
    """A sender and a receiver, in namespaces of their own."""

    def __init__(self, sender: str, receiver: str) -> None:
        self.sender, self.receiver = sender, receiver

    def tc(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["ip", "netns", "exec", self.sender, "tc", *words], capture_output=True, text=True, check=False
        )

    def shape(self, leaf: str) -> subprocess.CompletedProcess[str]:
        """HTB at the rate before the receiver, and a leaf in it."""
        for words in (
            "qdisc add dev p1 root handle 1: htb default 1",
            f"class add dev p1 parent 1: classid 1:1 htb rate {RATE_MBPS}mbit burst 3k",
        ):
            done = self.tc(*words.split())
            assert done.returncode == 0, done.stderr
        return self.tc(*f"qdisc add dev p1 parent 1:1 handle 2: {leaf}".split())


@pytest.fixture
def pair() -> Iterator[Pair]:
    with place(hosts=1) as made:
        (host,) = made.hosts
        ip("-n", made.name, "address", "add", "10.9.0.1/24", "dev", "p1")
        ip("-n", host.netns, "address", "add", "10.9.0.2/24", "dev", "e0")
        yield Pair(made.name, host.netns)


@pytest.fixture
def dualpi2(pair: Pair) -> Pair:
    """With the kernel's dualpi2 as it is by default."""
    if shutil.which("tc") is None:
        pytest.skip("needs tc (iproute2)")
    done = pair.shape("dualpi2")
    if done.returncode != 0:
        pytest.skip(
            f"the kernel has no sch_dualpi2 (CONFIG_NET_SCH_DUALPI2): tc says {done.stderr.strip()!r}"
        )
    return pair


def attributes(data: bytes) -> dict[int, bytes]:
    """Netlink attributes by their type."""
    found, at = {}, 0
    while at + 4 <= len(data):
        length, kind = struct.unpack_from("=HH", data, at)
        found[kind & 0x3FFF] = data[at + 4 : at + length]
        at += max((length + 3) & ~3, 4)
    return found


def messages(data: bytes) -> Iterator[tuple[int, bytes]]:
    """Netlink messages: types and bodies."""
    at = 0
    while at + 16 <= len(data):
        length, kind = struct.unpack_from("=IH", data, at)
        yield kind, data[at + 16 : at + length]
        at += (length + 3) & ~3


def queues(netns: str) -> dict[str, dict[int, bytes]]:
    """The options of each kind of queue in a namespace, by RTM_GETQDISC."""

    def ask() -> bytes:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, socket.NETLINK_ROUTE) as asked:
            body = struct.pack("=BxxxiIII", 0, 0, 0, 0, 0)
            asked.send(
                struct.pack("=IHHII", 16 + len(body), RTM_GETQDISC, NLM_F_REQUEST | NLM_F_DUMP, 1, 0) + body
            )
            data = b""
            while not any(kind == NLMSG_DONE for kind, _ in messages(data)):
                data += asked.recv(65536)
            return data

    found = {}
    for kind, body in messages(within(f"/run/netns/{netns}", ask)):
        if kind != NLMSG_DONE:
            # Behind struct tcmsg.
            held = attributes(body[20:])
            found[held[TCA_KIND].rstrip(b"\0").decode()] = attributes(held.get(TCA_OPTIONS, b""))
    return found


def one_way_ms(pair: Pair, seconds: float) -> dict[int, list[tuple[float, float]]]:
    """Times in s and one-way delays in ms of datagrams by their ECN field: every 5 ms one of each kind."""
    found: dict[int, list[tuple[float, float]]] = {NOT_ECT: [], ECT1: []}
    end = time.monotonic() + seconds

    def bound(netns: str) -> socket.socket:
        return within(f"/run/netns/{netns}", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))

    receiver, senders = bound(pair.receiver), {ecn: bound(pair.sender) for ecn in found}
    receiver.bind(("10.9.0.2", 7007))
    receiver.settimeout(0.5)

    def receive() -> None:
        while time.monotonic() < end + 0.5:
            try:
                data = receiver.recv(100)
            except TimeoutError:
                continue
            ecn, sent = struct.unpack("=Bd", data)
            found[ecn].append((sent, (time.monotonic() - sent) * 1e3))

    thread = threading.Thread(target=receive)
    thread.start()
    for ecn, sender in senders.items():
        sender.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, ecn)
    while time.monotonic() < end:
        for ecn, sender in senders.items():
            sender.sendto(struct.pack("=Bd", ecn, time.monotonic()), ("10.9.0.2", 7007))
        time.sleep(0.005)
    thread.join()
    for opened in (receiver, *senders.values()):
        opened.close()
    return found


def delays_under_load(
    pair: Pair, seconds: int = SECONDS, judged_s: float = JUDGED_S
) -> dict[int, list[float]]:
    """One-way delays in ms beside the flows of CUBIC, from `judged_s` on."""
    run = ["ip", "netns", "exec"]
    server = subprocess.Popen([*run, pair.receiver, "iperf3", "-s", "-1"], stdout=subprocess.DEVNULL)
    time.sleep(0.5)
    words = ["iperf3", "-c", "10.9.0.2", "-C", "cubic", "-P", str(FLOWS), "-t", str(seconds)]
    client = subprocess.Popen([*run, pair.sender, *words], stdout=subprocess.DEVNULL)
    try:
        begun = time.monotonic()
        found = one_way_ms(pair, seconds - 1)
    finally:
        client.kill()
        server.kill()
        client.wait()
        server.wait()
    return {ecn: [ms for at, ms in seen if at - begun > judged_s] for ecn, seen in found.items()}


def test_the_kernels_defaults_are_those_of_the_model(dualpi2: Pair) -> None:
    options = {
        NAMES[kind]: int.from_bytes(value, "little")
        for kind, value in queues(dualpi2.sender)["dualpi2"].items()
    }
    assert (options["limit"], options["coupling"], options["c_protection"]) == (
        LINUX.limit_packets,
        LINUX.k,
        10,
    )
    assert (options["target"], options["tupdate"], options["step_thresh_us"]) == (15_000, 16_000, 1_000)
    assert (options["alpha"] / 256, options["beta"] / 256) == LINUX.gains
    assert (options["min_qlen_step"], options["drop_overload"], options["drop_early"]) == (0, 1, 0)


@pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")
def test_the_delays_of_both_queues_are_those_of_the_model(dualpi2: Pair) -> None:
    lab = bottleneck("linux", RATE_MBPS, 0.1)
    classic_flows(lab, FLOWS)
    lab.network.record("500 ms", queues=[lab.link])
    (cubic,) = rows_of(lab.network.run(f"{SECONDS} s"), lab, {}, JUDGED_S, SECONDS)
    seen = delays_under_load(dualpi2)
    assert float(np.mean(seen[NOT_ECT])) == pytest.approx(cubic["delay_ms_mean"], rel=0.25)
    # A few packets of the flows, whatever waits in C.
    assert float(np.median(seen[ECT1])) < 2


@pytest.mark.skipif(
    shutil.which("iperf3") is None or shutil.which("tc") is None, reason="needs iperf3 and tc"
)
def test_a_queue_that_is_not_managed_would_be_seen(pair: Pair) -> None:
    """The measurement itself, on any kernel: a FIFO of 100 packets delays both kinds alike, by what it holds."""
    done = pair.shape("pfifo limit 100")
    assert done.returncode == 0, done.stderr
    assert {"htb", "pfifo"} <= queues(pair.sender).keys()
    # It is full when slow start ends, and stays so.
    seen = delays_under_load(pair, seconds=4, judged_s=1.0)
    for ecn in (NOT_ECT, ECT1):
        assert len(seen[ecn]) > 100
        assert float(np.median(seen[ecn])) > 10
