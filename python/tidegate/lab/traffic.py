"""Ends of flows without iperf3: TCP flows of a known size, of which iperf3's receiver does not see the end; those that are to end with
a FIN or a RST of their sender; those whose congestion control has to be there before the handshake, at both ends, where iperf3 sets it
later; and UDP flows that are not even.
"""

from __future__ import annotations

import random
import selectors
import socket
import struct
import time
from collections.abc import Iterator

from tidegate.lab.datagrams import AT_ONCE, SO_TIMESTAMPNS, Batch
from tidegate.lab.iperf import IP_UDP_BYTES, NO_PACING_LIMIT_BITS
from tidegate.lab.loop import Loop
from tidegate.lab.messages import UNKNOWN, FlowPlan, FlowReport
from tidegate.lab.sampler import Sampler
from tidegate.lab.tcp_info import TcpInfo, parse

SO_MAX_PACING_RATE = 47
SO_RCVBUFFORCE = 33
ENDLESS = 1 << 62
# Of tcp_info, with room for what later kernels add.
INFO_BYTES = 512

_ZEROS = bytes(1 << 18)
_ROOM = bytearray(1 << 20)
# What one socket may do before the others have their turn.
_AT_ONCE = 1 << 20
_BATCHES_AT_ONCE = 4

# Number and time of a datagram.
_STAMP = struct.Struct("=QQ")


class TcpSender:
    """Connects, writes a number of bytes and waits until the other end has them all, or writes until stopped."""

    def __init__(self, plan: FlowPlan, loop: Loop) -> None:
        self._plan = plan
        self._loop = loop
        self._socket: socket.socket | None = None
        self._left = ENDLESS if plan.size is None else plan.size
        self._started: int | None = None
        self._info: TcpInfo | None = None
        self._problem: str | None = None

    def start(self) -> None:
        """Connect."""
        plan = self._plan
        one = self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, plan.congestion_control.encode())
        if plan.mss is not None:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG, plan.mss)
        if plan.pacing:
            limit = struct.pack("=Q", NO_PACING_LIMIT_BITS // 8)
            one.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, limit)
        one.bind((plan.source, plan.source_port))
        self._started = time.monotonic_ns()
        one.connect_ex((plan.target, plan.target_port))
        self._loop.watch(one, selectors.EVENT_WRITE, self._write)

    def _write(self) -> None:
        assert self._socket is not None
        try:
            done = 0
            while self._left and done < _AT_ONCE:
                sent = self._socket.send(_ZEROS[: self._left] if self._left < len(_ZEROS) else _ZEROS)
                self._left -= sent
                done += sent
            if not self._left:
                self._say_end()
        except BlockingIOError:
            return
        except OSError as error:
            self._close(f"TCP: {error.strerror}")

    def _say_end(self) -> None:
        assert self._socket is not None
        self._socket.shutdown(socket.SHUT_WR)
        self._loop.watch(self._socket, selectors.EVENT_READ, self._read_end)

    def _read_end(self) -> None:
        assert self._socket is not None
        try:
            if self._socket.recv(1) == b"":
                self._close()
        except OSError as error:
            self._close(f"TCP: {error.strerror}")

    def _close(self, problem: str | None = None) -> None:
        assert self._socket is not None
        self._problem = problem
        self._info = parse(self._socket.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, INFO_BYTES))
        self._loop.forget(self._socket)
        self._socket.close()
        self._socket = None

    @property
    def ended(self) -> bool:
        """Whether it has started and finished."""
        return self._started is not None and self._socket is None

    def stop(self) -> None:
        """Stop writing."""
        if self._socket is None:
            return
        if self._plan.ends == "reset" or (self._plan.size is None and self._plan.ends is None):
            # A RST. What the kernel still holds is thrown away, as with iperf3.
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("=ii", 1, 0))
            self._close()
        elif self._left:
            self._left = 0
            try:
                self._say_end()
            except OSError:
                # It is not connected.
                self._close()

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The sender's results."""
        if self._socket is not None:
            self._close()
        report = FlowReport(self._plan.number, problem=self._problem)
        if self._started is not None:
            report.started = sampler.since_start(self._started)
        if self._info is not None:
            report.retransmits = self._info.retransmits
            report.timeouts = None if self._info.timeouts == UNKNOWN else self._info.timeouts
        return report


class TcpReceiver:
    """Reads a connection to its end."""

    def __init__(self, plan: FlowPlan, loop: Loop) -> None:
        self._plan = plan
        self._loop = loop
        self._socket: socket.socket | None = None
        self._bytes = 0
        self._finished: int | None = None

    def start(self) -> None:
        """Listen."""
        one = self._socket = socket.socket(socket.AF_INET, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
        one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if self._plan.both_ends:
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, self._plan.congestion_control.encode())
        one.bind((self._plan.target, self._plan.target_port))
        one.listen(1)
        self._loop.watch(one, selectors.EVENT_READ, self._accept)

    def _accept(self) -> None:
        assert self._socket is not None
        try:
            came, _ = self._socket.accept()
        except OSError:
            # Gone again; another may come.
            return
        self._close()
        came.setblocking(False)
        self._socket = came
        self._loop.watch(came, selectors.EVENT_READ, self._read)

    def _read(self) -> None:
        assert self._socket is not None
        try:
            # Data is counted and thrown away by the kernel, not copied.
            size = self._socket.recv_into(_ROOM, len(_ROOM), socket.MSG_TRUNC)
        except BlockingIOError:
            return
        except OSError:
            # A RST.
            self._close()
            return
        self._bytes += size
        ended = self._bytes == self._plan.size or (size == 0 and self._plan.ends == "fin")
        if ended and self._finished is None:
            self._finished = time.monotonic_ns()
        if size == 0:
            self._close()

    def _close(self) -> None:
        assert self._socket is not None
        self._loop.forget(self._socket)
        self._socket.close()
        self._socket = None

    def stop(self) -> None:
        """It ends with its sender."""

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The receiver's results."""
        if self._socket is not None:
            self._close()
        finished = None if self._finished is None else sampler.since_start(self._finished)
        return FlowReport(self._plan.number, finished=finished, bytes=self._bytes)


class UdpSender:
    """Sends datagrams by a pattern, as the simulator's sources do."""

    def __init__(self, plan: FlowPlan, loop: Loop) -> None:
        self._plan = plan
        self._loop = loop
        self._random = random.Random(plan.seed)
        self._gap = (plan.payload + IP_UDP_BYTES) * 8e9 / plan.rate
        self._started: int | None = None
        self._sent = 0
        self._stopped = False

    def start(self) -> None:
        """Begin."""
        plan = self._plan
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.IPPROTO_IP, socket.IP_TOS, plan.tos)
        self._socket.bind((plan.source, plan.source_port))
        self._socket.connect((plan.target, plan.target_port))
        self._batch = Batch(self._socket, plan.payload)
        self._started = time.monotonic_ns()
        self._times = self.times(self._started)
        self._next = next(self._times)
        self._send()

    def times(self, now: float) -> Iterator[float]:
        """When datagrams are sent, in nanoseconds, from `now` on."""
        pattern, on, off = self._plan.pattern, self._plan.on, self._plan.off
        on_until = now + self._draw(on)
        while True:
            yield now
            if pattern == "poisson":
                now += self._random.expovariate(1 / self._gap)
                continue
            now += self._gap
            while pattern != "constant" and now > on_until:
                now = max(now, on_until + self._draw(off))
                on_until = now + max(1.0, self._draw(on))

    def _draw(self, mean: int) -> float:
        random = mean > 0 and self._plan.pattern == "on-off exponential"
        return self._random.expovariate(1 / mean) if random else mean

    def _send(self) -> None:
        if self._stopped:
            return
        size, stamped, data = self._plan.payload, self._plan.payload >= _STAMP.size, self._batch.data
        for _ in range(_BATCHES_AT_ONCE):
            count, now = 0, time.monotonic_ns()
            while count < AT_ONCE and self._next <= now:
                if stamped:
                    _STAMP.pack_into(data, count * size, self._sent, time.time_ns())
                self._sent += 1
                count += 1
                self._next = next(self._times)
            if count:
                self._batch.send(count)
            if count < AT_ONCE:
                break
        self._loop.at(round(self._next), self._send)

    def stop(self) -> None:
        """Stop sending."""
        self._stopped = True

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The sender's results."""
        if self._started is None:
            return FlowReport(self._plan.number)
        self._socket.close()
        started = sampler.since_start(self._started)
        return FlowReport(self._plan.number, started=started, datagrams=self._sent)


class UdpReceiver:
    """Counts datagrams and measures their delay by the kernel's receive timestamp."""

    def __init__(self, plan: FlowPlan, loop: Loop) -> None:
        self._plan = plan
        self._loop = loop
        self.bytes = 0
        """That have come."""
        self._datagrams = 0
        self._delay_sum = 0
        self._delay_max = 0

    def start(self) -> None:
        """Listen."""
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 1 << 24)
        self._socket.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        self._socket.bind((self._plan.target, self._plan.target_port))
        self._socket.connect((self._plan.source, self._plan.source_port))
        # Room for one byte more: what is too long is not taken for the flow's.
        self._batch = Batch(self._socket, self._plan.payload + 1)
        self._loop.watch(self._socket, selectors.EVENT_READ, self._read)

    def _read(self) -> None:
        batch, size, stamped = self._batch, self._plan.payload + 1, self._plan.payload >= _STAMP.size
        for _ in range(_BATCHES_AT_ONCE):
            count = batch.receive()
            self._datagrams += count
            for number in range(count):
                self.bytes += batch.length(number)
                came = batch.came(number)
                if stamped and came is not None:
                    delay = max(0, came - _STAMP.unpack_from(batch.data, number * size)[1])
                    self._delay_sum += delay
                    self._delay_max = max(self._delay_max, delay)
            if count < AT_ONCE:
                break

    def stop(self) -> None:
        """It ends with the run."""

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The receiver's results."""
        self._read()
        report = FlowReport(self._plan.number, bytes=self.bytes, datagrams=self._datagrams)
        if self._datagrams and self._plan.payload >= _STAMP.size:
            report.delay_sum, report.delay_max = self._delay_sum, self._delay_max
        self._loop.forget(self._socket)
        self._socket.close()
        return report
