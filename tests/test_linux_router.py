"""A Linux router's class of service: HTB classes, a classifier by flow, in a namespace of their own."""

from __future__ import annotations

import errno
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from namespaces import ip, needs_root, within, write_within
from tidegate._core import TidegateError
from tidegate.hosts.linux_router import FIRST_CLASS, HANDLE, Classifier, LinuxRouter
from tidegate.hosts.port_plan import Plan, QueuePlan
from tidegate.network import FiveTuple

_numbers = count()
MBIT = 10**6
NEIGHBOUR = "02:00:00:00:00:09"
QUEUE = QueuePlan(40 * MBIT, 300_000)
UDP_SEGMENT = 103
"""Of linux/udp.h: one call sends many datagrams, which are one frame until they leave."""


@pytest.fixture
def netns() -> Iterator[str]:
    """A namespace with an interface `out` at 10.9.0.1, behind which is 10.9.0.2, and a route by it to 10.9.1.0/24.

    Without IPv6, whose multicast reports and solicitations would count as packets."""
    name = f"tgr{os.getpid()}-{next(_numbers)}"
    ip("netns", "add", name)
    try:
        write_within(name, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1")
        ip("-n", name, "link", "add", "dev", "out", "type", "veth", "peer", "name", "far")
        ip("-n", name, "addr", "add", "10.9.0.1/24", "dev", "out")
        for one in ("out", "far"):
            ip("-n", name, "link", "set", "dev", one, "up")
        ip("-n", name, "neigh", "add", "10.9.0.2", "lladdr", NEIGHBOUR, "dev", "out")
        yield f"/run/netns/{name}"
    finally:
        ip("netns", "del", name)


def qdisc(netns: str, *where: str) -> str:
    """A qdisc, the root if it is not said which."""
    words = where or ("root",)
    command = ["ip", "netns", "exec", Path(netns).name, "tc", "qdisc", "show", "dev", "out", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


class Sender:
    """UDP flows out of the interface, by their ports."""

    def __init__(self, netns: str, to: str = "10.9.0.2") -> None:
        self.to, self.netns = to, netns
        self.source = "fd09::1" if ":" in to else "10.9.0.1"

    def flow(self, port: int) -> FiveTuple:
        return FiveTuple(self.source, self.to, 17, port, 9)

    def send(
        self, port: int, packets: int, size: int = 1000, hop_by_hop: bytes = b"", merged: int = 1
    ) -> None:
        """`hop_by_hop`: options that stand in an extension header of IPv6; `merged`: datagrams that are one frame in the kernel."""
        kind = socket.AF_INET6 if ":" in self.to else socket.AF_INET

        def send() -> None:
            with socket.socket(kind, socket.SOCK_DGRAM) as one:
                one.bind((self.source, port))
                one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4 << 20)
                if hop_by_hop:
                    one.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_HOPOPTS, hop_by_hop)
                one.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, size - 28)
                for _ in range(packets):
                    one.sendto(bytes(merged * (size - 28)), (self.to, 9))

        within(self.netns, send)


def packets(router: LinuxRouter) -> list[int]:
    """What each queue has sent, when nothing waits any more."""
    until = time.monotonic() + 10
    while any(queue["waiting_bytes"] for queue in router.counts()) and time.monotonic() < until:
        time.sleep(0.01)
    return [queue["packets"] for queue in router.counts()]


@needs_root
@pytest.mark.parametrize(
    ("mtu", "framing", "says"),
    [
        (1500, 14, "rate 100933Kbit ceil"),
        (9000, 14, "rate 100155Kbit ceil"),
        # IP packets need the larger rate also where the link has no framing of its own, as HTB counts the header.
        (1500, 0, "rate 100933Kbit ceil"),
        (1500, 38, "rate 102533Kbit overhead 24 ceil"),
        (9000, 38, "rate 100422Kbit overhead 24 ceil"),
    ],
)
def test_the_rate_is_that_of_the_link_s_frames(netns: str, mtu: int, framing: int, says: str) -> None:
    with LinuxRouter("out", "100 Mbit/s", namespace=netns, mtu=mtu, framing=framing):
        command = ["ip", "netns", "exec", Path(netns).name, "tc", "class", "show", "dev", "out"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert says in shown


@needs_root
def test_before_the_first_plan_all_is_in_one_queue_at_the_link_s_rate(netns: str) -> None:
    with LinuxRouter("out", "8 Mbit/s", namespace=netns) as router:
        begun = time.monotonic()
        Sender(netns).send(5000, 90)
        # 90 frames of 1014 bytes, but for the burst of ten.
        assert packets(router) == [90]
        assert time.monotonic() - begun > 0.06
        Sender(netns).send(5001, 400)
        (queue,) = router.counts()
        assert queue["waiting_bytes"] <= 100_000
        assert queue["dropped"] > 200
        command = ["ip", "netns", "exec", Path(netns).name, "tc", "-s", "qdisc", "show", "dev", "out"]
        shown = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert "direct_packets_stat 0 " in shown
        assert "limit 100000b" in shown


@needs_root
@pytest.mark.parametrize("classifier", ["bpf", "u32"])
def test_flows_are_in_their_queues_and_can_be_moved(netns: str, classifier: Classifier) -> None:
    sender = Sender(netns)
    with LinuxRouter("out", "100 Mbit/s", classifier=classifier, namespace=netns) as router:
        assert router.classifier == classifier
        one, two = sender.flow(1001), sender.flow(1002)
        router.apply(Plan((QUEUE, QUEUE, QUEUE), {one: 1, two: 2}))
        for port, number in ((1000, 3), (1001, 5), (1002, 7)):
            sender.send(port, number)
        # The kernel sends packets of its own now and then, which nobody has assigned.
        first, *others = packets(router)
        assert others == [5, 7]
        assert first >= 3
        router.apply(Plan((QUEUE, QUEUE, QUEUE), {one: 2}))
        for port, number in ((1001, 10), (1002, 20)):
            sender.send(port, number)
        first, *others = packets(router)
        assert others == [5, 17]
        assert first >= 23
    assert "noqueue" in qdisc(netns)


@needs_root
def test_flows_of_ipv6(netns: str) -> None:
    name = Path(netns).name
    write_within(name, "/proc/sys/net/ipv6/conf/out/disable_ipv6", "0")
    ip("-n", name, "addr", "add", "fd09::1/64", "dev", "out", "nodad")
    ip("-n", name, "neigh", "add", "fd09::2", "lladdr", NEIGHBOUR, "dev", "out")
    sender = Sender(netns, "fd09::2")
    with LinuxRouter("out", "100 Mbit/s", namespace=netns) as router:
        router.apply(Plan((QUEUE, QUEUE), {sender.flow(1001): 1}))
        before = packets(router)
        sender.send(1001, 6)
        assert packets(router)[1] - before[1] == 6
        # Behind a header of options (RFC 8200 section 4.3), of 8 bytes and of 16: padding.
        for length, padding in ((0, 4), (1, 12)):
            sender.send(1001, 2, hop_by_hop=bytes((0, length, 1, padding)) + bytes(padding))
        assert packets(router)[1] - before[1] == 10


@needs_root
def test_six_thousand_flows_are_moved_at_once(netns: str) -> None:
    sender = Sender(netns)
    with LinuxRouter("out", "100 Mbit/s", classifier="bpf", namespace=netns) as router:
        flows = [sender.flow(port) for port in range(1000, 7000)]
        router.apply(Plan((QUEUE, QUEUE), dict.fromkeys(flows, 1)))
        begin = time.perf_counter()
        router.apply(Plan((QUEUE, QUEUE), dict.fromkeys(flows, 0)))
        assert time.perf_counter() - begin < 1
        sender.send(6999, 4)
        assert packets(router)[0] >= 4


@needs_root
def test_settings_change_while_packets_wait_and_none_is_lost(netns: str) -> None:
    sender = Sender(netns)
    slow = QueuePlan(1 * MBIT, 500_000, 1 * MBIT)
    with LinuxRouter("out", "100 Mbit/s", namespace=netns) as router:
        router.apply(Plan((QUEUE, slow), {sender.flow(1001): 1}))
        sender.send(1001, 200)
        assert router.counts()[1]["waiting_bytes"] > 100_000
        for mbit, size in ((2, 400_000), (3, 600_000), (50, 300_000)):
            router.apply(Plan((QUEUE, QueuePlan(mbit * MBIT, size, mbit * MBIT)), {sender.flow(1001): 1}))
        # A queue that is taken out of the plan sends what it has.
        router.apply(Plan((QUEUE,), {}))
        router.apply(Plan((QUEUE, QueuePlan(50 * MBIT, 300_000, 50 * MBIT)), {}))
        assert packets(router)[1] == 200
        assert router.counts()[1]["dropped"] == 0


@needs_root
def test_a_short_queue_has_room_for_merged_segments_where_they_come(
    netns: str, caplog: pytest.LogCaptureFixture
) -> None:
    sender, short = Sender(netns), QueuePlan(10 * MBIT, 48_448)
    with LinuxRouter("out", "100 Mbit/s", classifier="bpf", namespace=netns) as router:
        flows = {sender.flow(1001): 1}
        sender.send(1001, 30, 1500)
        router.apply(Plan((QUEUE, short), flows))
        assert "limit 48448b" in qdisc(netns, "parent", f"{HANDLE >> 16:x}:{FIRST_CLASS + 1:x}")
        assert not caplog.messages
        # A frame of 56 kB is longer than the queue.
        sender.send(1001, 1, 1500, merged=38)
        packets(router)
        assert router.counts()[1]["dropped"] == 1
        for buffer_bytes in (48_448, 50_000):
            router.apply(Plan((QUEUE, QueuePlan(10 * MBIT, buffer_bytes)), flows))
        sent = packets(router)[1]
        sender.send(1001, 2, 1500, merged=38)
        assert packets(router)[1] - sent == 2 * 38
        assert router.counts()[1]["dropped"] == 1
    (warning,) = caplog.messages
    assert "out: frames of 55978 bytes have come" in warning
    assert "it gets 131072 bytes; " in warning
    assert "`ethtool -K IF gro off gso off tso off`" in warning


@needs_root
def test_a_capped_queue_sends_at_its_rate(netns: str) -> None:
    sender = Sender(netns)
    with LinuxRouter("out", "100 Mbit/s", namespace=netns) as router:
        router.apply(Plan((QUEUE, QueuePlan(8 * MBIT, 2_000_000, 8 * MBIT)), {sender.flow(1001): 1}))
        begin = time.monotonic()
        sender.send(1001, 1000)
        assert packets(router)[1] == 1000
        # A million bytes of IP at 1 MB/s, less a burst.
        assert time.monotonic() - begin == pytest.approx(1.0, abs=0.15)


@needs_root
def test_what_a_killed_router_has_left_is_replaced_by_the_next(netns: str) -> None:
    words = (
        "import time\n"
        "from tidegate.hosts.port_plan import Plan, QueuePlan\n"
        "from tidegate.hosts.linux_router import LinuxRouter\n"
        "router = LinuxRouter('out', '100 Mbit/s')\n"
        "router.apply(Plan((QueuePlan(10**6, 50000),) * 3, {}))\n"
        "print('there', flush=True)\n"
        "time.sleep(60)\n"
    )
    command = ["ip", "netns", "exec", Path(netns).name, sys.executable, "-c", words]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "there\n"
        other.send_signal(signal.SIGKILL)
    assert f"{HANDLE >> 16:x}:" in qdisc(netns)
    with LinuxRouter("out", "100 Mbit/s", namespace=netns) as router:
        router.apply(Plan((QUEUE, QUEUE), {}))
        assert len(packets(router)) == 2
    assert "noqueue" in qdisc(netns)


@needs_root
def test_a_second_router_at_an_interface_is_refused(netns: str) -> None:
    sender = Sender(netns)
    with LinuxRouter("out", "100 Mbit/s", namespace=netns) as router:
        router.apply(Plan((QUEUE, QUEUE), {sender.flow(1001): 1}))
        for namespace in (netns, Path(netns).name):
            with pytest.raises(TidegateError, match=r"out has a router already, .* close that first"):
                LinuxRouter("out", "50 Mbit/s", namespace=namespace)
        words = "from tidegate.hosts.linux_router import LinuxRouter as Router; Router('out', '50 Mbit/s')"
        command = ["ip", "netns", "exec", Path(netns).name, sys.executable, "-c", words]
        other = subprocess.run(command, capture_output=True, text=True)
        assert "out has a router already" in other.stderr
        # Another interface is free.
        with LinuxRouter("far", "50 Mbit/s", namespace=netns):
            pass
        before = packets(router)
        sender.send(1001, 6)
        assert packets(router)[1] - before[1] == 6
    assert "noqueue" in qdisc(netns)
    with LinuxRouter("out", "100 Mbit/s", namespace=netns):
        pass


@needs_root
def test_what_somebody_has_set_stays(netns: str) -> None:
    tbf = "tc qdisc add dev out root handle 5: tbf rate 1mbit burst 10k latency 50ms"
    subprocess.run(["ip", "netns", "exec", Path(netns).name, *tbf.split()], check=True)
    with pytest.raises(TidegateError, match="qdisc 5: that somebody has set; remove it"):
        LinuxRouter("out", "100 Mbit/s", namespace=netns)
    assert "tbf 5:" in qdisc(netns)


@needs_root
@pytest.mark.parametrize(
    ("interface", "rate", "namespace", "why"),
    [
        ("none", "100 Mbit/s", None, "no interface 'none' here"),
        ("out", 0, None, "give 8 kbit/s or more"),
        ("out", "100 Mbit/s", "/run/netns/none", "the network namespace /run/netns/none"),
    ],
)
def test_refused(netns: str, interface: str, rate: object, namespace: str | None, why: str) -> None:
    with pytest.raises(TidegateError, match=why):
        LinuxRouter(interface, rate, namespace=namespace or netns)  # type: ignore[arg-type]
    assert "noqueue" in qdisc(netns)


@needs_root
def test_more_queues_than_there_may_be(netns: str) -> None:
    with (
        LinuxRouter("out", "100 Mbit/s", most_queues=2, namespace=netns) as router,
        pytest.raises(TidegateError, match="it may have 2"),
    ):
        router.apply(Plan((QUEUE,) * 3, {}))


@needs_root
def test_a_refused_queue_is_removed_again(netns: str) -> None:
    sender = Sender(netns)
    with LinuxRouter("out", "100 Mbit/s", namespace=netns) as router:
        take = router._netlink.tc

        def tc(command: str, kind: str | None = None, *words: Any, **options: Any) -> Any:
            if kind == "bfifo" and options["parent"] == HANDLE | FIRST_CLASS + 2:
                raise NetlinkError(errno.ENOMEM)
            return take(command, kind, *words, **options)

        router._netlink.tc = tc
        for existed in (1, 2):
            with pytest.raises(TidegateError, match="Cannot allocate memory") as error:
                router.apply(Plan((QUEUE,) * 3, {sender.flow(1001): 2}))
            assert "as before" not in str(error.value)
            assert len(router.counts()) == existed
            router.apply(Plan((QUEUE,) * 2, {sender.flow(1001): 1}))
        before = packets(router)[1]
        sender.send(1001, 5)
        assert packets(router)[1] - before == 5


@needs_root
@pytest.mark.parametrize("classifier", ["bpf", "u32"])
def test_an_interface_that_goes(netns: str, classifier: Classifier) -> None:
    sender = Sender(netns)
    with LinuxRouter("out", "100 Mbit/s", classifier=classifier, namespace=netns) as router:
        router.apply(Plan((QUEUE,) * 2, {sender.flow(1001): 1}))
        ip("-n", Path(netns).name, "link", "del", "dev", "out")
        with pytest.raises(TidegateError, match=r"out: the kernel refuses .*: No such device"):
            router.apply(Plan((QUEUE,) * 3, {}))
        assert router.counts() == []
