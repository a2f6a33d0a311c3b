"""A host's process: it is in the host's namespace, sets it up, runs the host's ends of the flows, and samples its connections."""

from __future__ import annotations

import os
import selectors
import time
import traceback
from array import array
from collections.abc import Callable, Iterable
from multiprocessing.connection import Connection
from typing import Any, Protocol

from pyroute2.netlink.exceptions import NetlinkError

from tidegate.lab import interfaces, iperf, names, traffic
from tidegate.lab.loop import Loop
from tidegate.lab.messages import (
    Attach,
    Failed,
    Finish,
    FlowPlan,
    FlowReport,
    Go,
    Look,
    Looked,
    MakeLinks,
    Prepare,
    Ready,
    Report,
    SetUp,
    SetUpRouter,
)
from tidegate.lab.sampler import Sampler

LINGER_NS = 50_000_000
"""How long iperf3's connections stay at the end of a run, so that a receiver whose last sample is late still has its own."""


class End(Protocol):
    """One end of a flow."""

    def start(self) -> None:
        """Begin. Called when the flow starts; of a receiver, when it is prepared."""

    def stop(self) -> None:
        """Send no more. Not called for receivers."""

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The result at the end of the run; `None`: not known yet, ask again."""


SENDERS: dict[tuple[str, str], Callable[..., End]] = {
    ("tcp", "iperf3"): iperf.Client,
    ("udp", "iperf3"): iperf.Client,
    ("tcp", "own"): traffic.TcpSender,
    ("udp", "own"): traffic.UdpSender,
}
RECEIVERS: dict[tuple[str, str], Callable[..., End]] = {
    ("tcp", "iperf3"): iperf.Server,
    ("udp", "iperf3"): iperf.Server,
    ("tcp", "own"): traffic.TcpReceiver,
    ("udp", "own"): traffic.UdpReceiver,
}


class Agent:
    """The host's part of a run: its ends of the flows, and its report."""

    def __init__(self, lab: Connection) -> None:
        self._lab = lab
        self._loop = Loop()
        self._loop.watch(lab.fileno(), selectors.EVENT_READ, self._hear)
        self._sampler = Sampler()
        self._sends: list[tuple[FlowPlan, End]] = []
        self._receives: list[tuple[FlowPlan, End]] = []
        self._period: int | None = None
        self._ended = False

    def run(self) -> None:
        """Serve requests until the lab ends."""
        while True:
            try:
                self._loop.turn()
            except Exception:
                self._fail()
                return

    def _fail(self) -> None:
        """Report a bug to the lab, as the answer to its next request."""
        self._lab.send(Failed(f"this is a bug in Tidegate:\n{traceback.format_exc()}"))

    def _hear(self) -> None:
        try:
            message = self._lab.recv()
        except (EOFError, ConnectionResetError):
            raise SystemExit from None
        try:
            self._do(message)
        except NetlinkError as error:
            self._lab.send(Failed(str(error.args[-1])))
        except OSError as error:
            self._lab.send(Failed(str(error)))

    def _do(self, message: Any) -> None:
        if isinstance(message, MakeLinks):
            interfaces.make_links(message)
            self._lab.send(None)
        elif isinstance(message, SetUp):
            interfaces.set_up(message)
            self._lab.send(None)
        elif isinstance(message, SetUpRouter):
            interfaces.set_up_router(message)
            self._lab.send(None)
        elif isinstance(message, Attach):
            self._lab.send(interfaces.attach(message))
        elif isinstance(message, Prepare):
            self._prepare(message)
            self._lab.send(None)
        elif isinstance(message, Go):
            self._go(message)
            self._lab.send(None)
        elif isinstance(message, Look):
            self._lab.send(self._looked())
        elif isinstance(message, Finish):
            self._end()
            self._finish([], [])
        else:
            raise ValueError(f"an agent does not know {message!r}")

    def _prepare(self, request: Prepare) -> None:
        # Without TCP there is nothing to sample.
        tcp = any(plan.kind == "tcp" for plan in (*request.sends, *request.receives))
        self._period = request.period if tcp else None
        for plan in request.sends:
            self._sends.append((plan, SENDERS[plan.kind, plan.tool](plan, self._loop)))
            if plan.kind == "tcp":
                self._sampler.add_sender(plan)
        for plan in request.receives:
            end = RECEIVERS[plan.kind, plan.tool](plan, self._loop)
            self._receives.append((plan, end))
            if plan.kind == "tcp":
                self._sampler.add_receiver(plan)
            end.start()
        iperf.wait_for_listeners([plan.target_port for plan in request.receives if plan.tool == "iperf3"])

    def _go(self, request: Go) -> None:
        origin = request.origin
        self._sampler.begin(origin)
        for plan, end in self._sends:
            if plan.start >= request.end:
                continue
            self._loop.at(origin + plan.start, self._start(end))
            if plan.tool == "iperf3" and plan.kind == "tcp":
                self._loop.at(origin + plan.start, self._look_for(plan, 1_000_000))
            if plan.stop is not None and plan.stop < request.end:
                self._loop.at(origin + plan.stop, self._stop(plan, end))
        for plan, _ in self._receives:
            if plan.tool == "iperf3" and plan.kind == "tcp" and plan.stop is not None:
                # What it had when the sender stopped: the server does not stay for what is on its way.
                self._loop.at(origin + plan.stop, self._look)
        if self._period is not None:
            self._loop.at(origin + self._period, self._sample)
        self._loop.at(origin + request.end, self._end)

    def _start(self, end: End) -> Callable[[], None]:
        def start() -> None:
            # A run can end before a flow that was to start has had its turn.
            if not self._ended:
                end.start()

        return start

    def _look_for(self, plan: FlowPlan, wait: int) -> Callable[[], None]:
        """Polls for iperf3's data connection, at growing intervals."""

        def look() -> None:
            self._sampler.look()
            if not self._ended and not self._sampler.seen(plan.number):
                self._loop.at(time.monotonic_ns() + wait, self._look_for(plan, min(2 * wait, 50_000_000)))

        return look

    def _look(self) -> None:
        self._sampler.look()

    def _stop(self, plan: FlowPlan, end: End) -> Callable[[], None]:
        def stop() -> None:
            if plan.kind == "tcp":
                self._sampler.look()
            end.stop()

        return stop

    def _sample(self) -> None:
        assert self._period is not None
        if not self._ended:
            self._loop.at(self._sampler.sample(self._period), self._sample)

    def _looked(self) -> Looked:
        began = time.monotonic_ns()
        sent, received = array("Q"), array("Q")
        for now, flow, sends, info in self._sampler.look():
            if sends:
                sent.extend((flow, info.cwnd, info.srtt, info.retransmits))
            else:
                received.extend((flow, now, info.bytes_received))
        for plan, end in self._receives:
            if isinstance(end, traffic.UdpReceiver):
                received.extend((plan.number, self._sampler.since_start(began), end.bytes))
        return Looked(sent, received, time.monotonic_ns() - began)

    def _end(self) -> None:
        """Stop sending and sampling."""
        if self._ended:
            return
        self._ended = True
        if self._period is None:
            self._sampler.look()
        else:
            self._sampler.sample(self._period)
        later = time.monotonic_ns() + LINGER_NS
        for plan, end in self._sends:
            if plan.kind == "tcp" and plan.tool == "iperf3":
                self._loop.at(later, end.stop)
            else:
                end.stop()

    def _finish(self, sent: list[FlowReport], received: list[FlowReport]) -> None:
        """Polls all ends until their results are known, then reports them to the lab."""
        for ends, reports in ((self._sends, sent), (self._receives, received)):
            while ends:
                report = ends[0][1].finish(self._sampler)
                if report is None:
                    self._loop.at(time.monotonic_ns() + 5_000_000, lambda: self._finish(sent, received))
                    return
                reports.append(report)
                ends.pop(0)
        sampler = self._sampler
        self._lab.send(Report(sent, received, sampler.sender_rows, sampler.receiver_rows, sampler.late))


def serve(number: int, name: str, receive_on: Iterable[int], failure: str | None) -> None:
    """Run the agent of this name at a socket until the other end is closed; `receive_on` are processors."""
    lab = Connection(number)
    try:
        if failure is not None:
            raise OSError(failure)
        interfaces.before_interfaces(receive_on)
        names.link(name, os.getpid())
    except OSError as error:
        lab.send(Failed(str(error)))
        return
    lab.send(Ready(os.getpid()))
    Agent(lab).run()
