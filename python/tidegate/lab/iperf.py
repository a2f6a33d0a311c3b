"""Ends of flows by iperf3: a server for each receiver, a client for each sender, both with answers in JSON.

The kernel reports more about a TCP flow than iperf3 (`sampler.py`); iperf3 reports errors. For UDP flows iperf3 reports datagrams
sent and received.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from functools import partial
from pathlib import Path
from typing import Any

from tidegate.lab.death import die_with
from tidegate.lab.loop import Loop
from tidegate.lab.messages import UNKNOWN, FlowPlan, FlowReport
from tidegate.lab.sampler import Sampler
from tidegate.lab.tcp_info import LISTEN, Diag

PROGRAM = "iperf3"
IP_UDP_BYTES = 28
IP_TCP_BYTES = 40
# The least that fits iperf3's number and time of a datagram.
LEAST_PAYLOAD = 16
# Bytes/s: more than anything here can carry. The kernel paces what has a limit, at the rate of its congestion control.
NO_PACING_LIMIT_BITS = 32_000_000_000

# A server waits so long for the client's goodbye, and a process so long for its own end.
PATIENCE_NS = 300_000_000
LAST_WAIT_NS = 2_000_000_000


class Process:
    """An iperf3 that does not outlive this process."""

    def __init__(self, arguments: list[str]) -> None:
        # Files in memory: unlike a pipe they do not fill up.
        self._answer, self._complaint = (os.memfd_create(name) for name in ("answer", "complaint"))
        self._process = subprocess.Popen(
            [PROGRAM, *arguments, "--json", "--interval", "0"],
            stdin=subprocess.DEVNULL,
            stdout=self._answer,
            stderr=self._complaint,
            preexec_fn=partial(die_with, os.getpid()),
        )

    def terminate(self) -> None:
        """Ask it to end."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)

    def kill(self) -> None:
        """End it."""
        if self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    @property
    def ended(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def answer(self) -> dict[str, Any]:
        """Its JSON output, once it has ended."""
        answer, complaint = (
            Path(f"/proc/self/fd/{file}").read_text(errors="replace")
            for file in (self._answer, self._complaint)
        )
        os.close(self._answer)
        os.close(self._complaint)
        try:
            found: dict[str, Any] = json.loads(answer)
        except ValueError:
            return {"error": (complaint or answer).strip() or "it said nothing"}
        return found


def _problem(answer: dict[str, Any]) -> str | None:
    """The error, unless iperf3 was ended on purpose."""
    error = answer.get("error")
    return None if error is None or error == "interrupt - the client has terminated" else f"iperf3: {error}"


class Client:
    """Sends."""

    def __init__(self, plan: FlowPlan, loop: Loop) -> None:
        self._plan = plan
        self._process: Process | None = None
        self._started = 0
        self._stopped: int | None = None

    def arguments(self) -> list[str]:
        """Arguments of iperf3."""
        plan = self._plan
        ends = ["--client", plan.target, "--port", str(plan.target_port)]
        ends += ["--bind", plan.source, "--cport", str(plan.source_port), "--time", "0"]
        if plan.kind == "tcp":
            options = ["--congestion", plan.congestion_control]
            if plan.mss is not None:
                options += ["--set-mss", str(plan.mss)]
            if plan.pacing:
                options += ["--fq-rate", str(NO_PACING_LIMIT_BITS)]
            return ends + options
        rate = max(1, round(plan.rate * plan.payload / (plan.payload + IP_UDP_BYTES)))
        gap_us = (plan.payload + IP_UDP_BYTES) * 8_000_000 // max(1, plan.rate)
        # It looks up at this period and sends what is due: in bursts, if the period is long.
        timer = min(max(gap_us, 100), 1000)
        udp = ["--udp", "--length", str(plan.payload), "--bitrate", str(rate), "--pacing-timer", str(timer)]
        return [*ends, *udp, "--tos", str(plan.tos)]

    def start(self) -> None:
        """Begin."""
        self._process = Process(self.arguments())

    def stop(self) -> None:
        """End it; once is enough."""
        if self._process is not None and self._stopped is None:
            self._stopped = time.monotonic_ns()
            self._process.terminate()

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The sender's results."""
        report = FlowReport(self._plan.number)
        if self._process is None:
            return report
        if self._stopped is None:
            return None
        if not self._process.ended:
            if time.monotonic_ns() < self._stopped + LAST_WAIT_NS:
                return None
            self._process.kill()
        answer = self._process.answer()
        report.problem = _problem(answer)
        if self._plan.kind == "tcp":
            seen = sampler.seen(self._plan.number)
            if seen is not None:
                report.started = seen.first
                report.retransmits = seen.info.retransmits
                report.timeouts = None if seen.info.timeouts == UNKNOWN else seen.info.timeouts
        elif "sum" in answer.get("end", {}):
            sent = answer["end"]["sum"]
            report.started = sampler.since_start(self._stopped - round(sent["seconds"] * 1e9))
            report.datagrams = sent["packets"]
        return report


class Server:
    """Receives one flow."""

    def __init__(self, plan: FlowPlan, loop: Loop) -> None:
        self._plan = plan
        self._process: Process | None = None
        self._asked: int | None = None

    def start(self) -> None:
        """Listen."""
        where = ["--port", str(self._plan.target_port), "--bind", self._plan.target]
        self._process = Process(["--server", "--one-off", *where])

    def stop(self) -> None:
        """A server ends with its client."""

    def finish(self, sampler: Sampler) -> FlowReport | None:
        """The receiver's results."""
        assert self._process is not None
        if not self._process.ended:
            now = time.monotonic_ns()
            self._asked = self._asked or now
            if now < self._asked + PATIENCE_NS:
                return None
            self._process.terminate()
            if now < self._asked + LAST_WAIT_NS:
                return None
            self._process.kill()
        answer = self._process.answer()
        report = FlowReport(self._plan.number, bytes=0)
        if self._plan.kind == "tcp":
            seen = sampler.seen_by_receiver(self._plan.number)
            report.bytes = 0 if seen is None else seen.info.bytes_received
            if seen is None or not sampler.is_there(seen):
                # It ended before the last look.
                read = answer.get("end", {}).get("sum_received", {}).get("bytes", 0)
                report.bytes = max(report.bytes, read)
            return report
        report.datagrams = 0
        if "sum" in answer.get("end", {}):
            came = answer["end"]["sum"]
            report.datagrams = max(0, came["packets"] - came["lost_packets"])
            report.bytes = report.datagrams * self._plan.payload
        return report


def wait_for_listeners(ports: list[int]) -> None:
    """Until something listens at all of these ports."""
    missing = set(ports)
    diag = Diag()
    deadline = time.monotonic() + 10
    while missing:
        missing -= {connection.local_port for connection in diag.dump(LISTEN)}
        if missing and time.monotonic() > deadline:
            raise OSError(f"iperf3 does not listen at the ports {sorted(missing)}")
        if missing:
            time.sleep(0.002)
    diag.close()
