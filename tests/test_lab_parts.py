"""Parts of the lab by themselves, over the loopback interface: nothing here needs root."""

from __future__ import annotations

import socket
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import pytest

from tidegate.lab import iperf, traffic
from tidegate.lab.loop import Loop
from tidegate.lab.messages import UNKNOWN, FlowPlan
from tidegate.lab.sampler import Sampler
from tidegate.lab.tcp_info import LISTEN, Diag, parse

MS = 1_000_000
LOOPBACK = "127.0.0.1"


def free_port(kind: socket.SocketKind) -> int:
    with socket.socket(socket.AF_INET, kind) as one:
        one.bind((LOOPBACK, 0))
        return int(one.getsockname()[1])


def flow(**of: object) -> FlowPlan:
    kind = socket.SOCK_STREAM if of["kind"] == "tcp" else socket.SOCK_DGRAM
    ports = {"source_port": free_port(kind), "target_port": free_port(kind)}
    common = {"number": 7, "label": "it", "tool": "own", "source": LOOPBACK, "target": LOOPBACK}
    return FlowPlan(**{**common, **ports, "start": 0, "stop": None, "congestion_control": "reno", **of})  # type: ignore[arg-type]


def turn(loop: Loop, until: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not until():
        assert time.monotonic() < deadline
        loop.at(time.monotonic_ns() + MS, lambda: None)
        loop.turn()


def test_what_the_kernel_knows_of_a_connection() -> None:
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        port, diag = client.getsockname()[1], Diag()
        assert server.getsockname()[1] in {one.local_port for one in diag.dump(LISTEN)}
        client.sendall(bytes(10_000))
        accepted, _ = server.accept()
        assert len(accepted.recv(10_000, socket.MSG_WAITALL)) == 10_000
        (sent,) = (parse(one.info) for one in diag.dump() if one.local_port == port and one.info)
        (came,) = (parse(one.info) for one in diag.dump() if one.remote_port == port and one.info)
        whole = client.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 512)
        accepted.close()
        diag.close()
    assert came.bytes_received == sent.bytes_acked - 1 == 10_000
    assert sent.in_flight == sent.retransmits == sent.delivered_ce == 0
    assert sent.cwnd >= 10
    assert 0 < sent.srtt < 1_000_000
    assert sent.rto >= 200_000
    assert parse(whole).bytes_acked == sent.bytes_acked
    # Kernels before 6.7 say less.
    assert parse(whole[:232]).timeouts == UNKNOWN
    assert parse(whole[:200])._replace(timeouts=0) == parse(whole)._replace(timeouts=0)


@pytest.mark.parametrize(
    ("length", "timeouts"),
    [(240, UNKNOWN), (248, 3), (256, 3)],
    ids=["Linux 6.6", "Linux 6.7", "Linux 6.18"],
)
def test_timeouts_are_known_from_the_first_kernel_on_that_has_them(length: int, timeouts: int) -> None:
    info = bytearray(length)
    info[240:242] = (3).to_bytes(2, sys.byteorder)[: length - 240]
    assert parse(bytes(info)).timeouts == timeouts


def test_samples_hold_the_flows_that_are_known() -> None:
    with (
        socket.create_server((LOOPBACK, 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        accepted, _ = server.accept()
        plan = flow(kind="tcp", source_port=client.getsockname()[1], target_port=server.getsockname()[1])
        sampler = Sampler()
        sampler.add_sender(plan)
        sampler.add_receiver(plan)
        # Seconds, so that the second sample is of the same tick whatever else the machine does.
        period = 1000 * MS
        begun = time.monotonic_ns() - 2 * period - period // 10
        sampler.begin(begun)
        assert sampler.sample(period) - begun == 3 * period
        # Twice for one tick is once.
        sampler.sample(period)
        assert list(sampler.sender_rows[:1]) == [2]
        assert list(sampler.sender_rows[2:3]) == [7]
        assert len(sampler.sender_rows) == 14
        assert sampler.receiver_rows[3] == 0
        seen = sampler.seen(7)
        assert seen is not None
        assert 2 * period <= seen.first < 3 * period
        assert sampler.is_there(seen)
        client.close()
        accepted.close()
        sampler.look()
        assert not sampler.is_there(seen)
        # As if the next sample came five ticks later: four are missing.
        assert sampler.late == 0
        sampler.begin(time.monotonic_ns() - 75 * MS)
        sampler.sample(10 * MS)
        assert sampler.late == 4


def test_a_transfer_over_sockets_of_its_own() -> None:
    plan, loop, sampler = flow(kind="tcp", size=3_000_000), Loop(), Sampler()
    sender, receiver = traffic.TcpSender(plan, loop), traffic.TcpReceiver(plan, loop)
    sampler.begin(time.monotonic_ns())
    receiver.start()
    sender.start()
    turn(loop, lambda: sender.ended)
    sent, came = sender.finish(sampler), receiver.finish(sampler)
    assert (came.bytes, sent.problem) == (3_000_000, None)
    assert sent.started < came.finished
    assert sent.timeouts in (0, None)


def test_a_transfer_that_is_stopped() -> None:
    plan, loop, sampler = flow(kind="tcp", size=10**12), Loop(), Sampler()
    sender, receiver = traffic.TcpSender(plan, loop), traffic.TcpReceiver(plan, loop)
    sampler.begin(time.monotonic_ns())
    receiver.start()
    sender.start()
    for _ in range(20):
        loop.turn()
    sender.stop()
    turn(loop, lambda: sender.ended)
    came = receiver.finish(sampler)
    assert came.finished is None
    assert 0 < came.bytes < 10**12


def test_nobody_listens() -> None:
    plan, loop, sampler = flow(kind="tcp", size=1000), Loop(), Sampler()
    sender = traffic.TcpSender(plan, loop)
    sampler.begin(time.monotonic_ns())
    sender.start()
    turn(loop, lambda: sender.ended)
    assert sender.finish(sampler).problem == "TCP: Connection refused"


@pytest.mark.parametrize(
    ("pattern", "share"),
    [("constant", 1.0), ("poisson", 1.0), ("on-off", 0.25), ("on-off exponential", 0.25)],
)
def test_datagrams_have_the_patterns_rate(pattern: str, share: float) -> None:
    # A thousand packets a second while it sends.
    plan = flow(kind="udp", rate=8_000_000, payload=972, pattern=pattern, on=10 * MS, off=30 * MS, seed=3)
    sender = traffic.UdpSender(plan, Loop())
    times = sender.times(0)
    sent = [next(times) for _ in range(40_000)]
    assert sent == sorted(sent)
    assert len(sent) / sent[-1] * 1e6 == pytest.approx(share, rel=0.12)
    gaps = [after - before for before, after in pairwise(sent)]
    if pattern == "constant":
        assert set(gaps) == {1e6}
    elif pattern == "poisson":
        assert statistics.stdev(gaps) == pytest.approx(1e6, rel=0.05)
    else:
        # Ten or eleven packets, then silence.
        assert sum(gap > 5 * MS for gap in gaps) == pytest.approx(3_600, rel=0.12)


@pytest.mark.parametrize("pattern", ["on-off", "on-off exponential"])
def test_a_pattern_may_have_no_time_on_or_off(pattern: str) -> None:
    """As in the simulator: one datagram each time, or no silence."""
    common = {"kind": "udp", "rate": 8_000_000, "payload": 972, "pattern": pattern, "seed": 3}

    def sent(on: int, off: int) -> list[float]:
        times = traffic.UdpSender(flow(**common, on=on, off=off), Loop()).times(0)
        return [next(times) for _ in range(10_000)]

    assert sent(10 * MS, 0) == sent(0, 0) == [number * 1e6 for number in range(10_000)]
    assert sent(0, 30 * MS)[-1] == pytest.approx(10_000 * 30 * MS, rel=0.05)


def test_datagrams_are_counted_and_timed() -> None:
    plan, loop, sampler = (
        flow(kind="udp", rate=8_000_000, payload=972, pattern="poisson", tos=1),
        Loop(),
        Sampler(),
    )
    sender, receiver = traffic.UdpSender(plan, loop), traffic.UdpReceiver(plan, loop)
    sampler.begin(time.monotonic_ns())
    receiver.start()
    sender.start()
    turn(loop, lambda: time.monotonic_ns() > sampler.start + 100 * MS)
    sender.stop()
    turn(loop, lambda: time.monotonic_ns() > sampler.start + 120 * MS)
    sent, came = sender.finish(sampler), receiver.finish(sampler)
    assert sent.datagrams == came.datagrams
    assert 50 < came.datagrams < 200
    assert came.bytes == 972 * came.datagrams
    assert 0 < came.delay_sum / came.datagrams <= came.delay_max < 10**9


def test_small_datagrams_are_counted_alone() -> None:
    plan, loop, sampler = flow(kind="udp", rate=400_000, payload=8, pattern="constant"), Loop(), Sampler()
    sender, receiver = traffic.UdpSender(plan, loop), traffic.UdpReceiver(plan, loop)
    sampler.begin(time.monotonic_ns())
    receiver.start()
    sender.start()
    turn(loop, lambda: time.monotonic_ns() > sampler.start + 20 * MS)
    sender.stop()
    came = receiver.finish(sampler)
    assert came.bytes == 8 * came.datagrams > 0
    assert (came.delay_sum, came.delay_max) == (None, None)


def test_iperf3_is_asked_for_what_the_flow_is() -> None:
    tcp = flow(kind="tcp", tool="iperf3", source_port=10_000, target_port=26_000, mss=500, pacing=True)
    asked = " ".join(iperf.Client(tcp, Loop()).arguments())
    assert asked == (
        "--client 127.0.0.1 --port 26000 --bind 127.0.0.1 --cport 10000 --time 0 "
        "--congestion reno --set-mss 500 --fq-rate 32000000000"
    )
    udp = flow(kind="udp", tool="iperf3", rate=15_000_000, payload=1472, tos=2)
    asked = " ".join(iperf.Client(udp, Loop()).arguments())
    # 1250 packets a second.
    assert asked.endswith("--udp --length 1472 --bitrate 14720000 --pacing-timer 800 --tos 2")
    slow = iperf.Client(replace(udp, rate=1_000_000), Loop()).arguments()
    fast = iperf.Client(replace(udp, rate=1_000_000_000), Loop()).arguments()
    assert slow[slow.index("--pacing-timer") + 1] == "1000"
    assert fast[fast.index("--pacing-timer") + 1] == "100"
