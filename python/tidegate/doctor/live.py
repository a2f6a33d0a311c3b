"""What makes live networks fast, and fair to what they are compared with: where their work runs, and settings of their hosts."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.doctor.report import Finding, State
from tidegate.lab import kernel
from tidegate.lab.placement import placement
from tidegate.lab.plan import OUTPUT_LIMIT
from tidegate.processors import processors
from tidegate.units import counted

GROUP = "live networks"
MANY = 2
"""With more processors than these a live network looks for packets without sleeping."""


def speed() -> Iterator[Finding]:
    """Each of the settings."""
    yield _placement()
    yield _receiving()
    yield _output_limit()
    yield _tables()
    yield _priority()
    yield _looking()
    yield _threads()


def _finding(name: str, works: bool, said: str, cure: str) -> Finding:
    return Finding(GROUP, name, State.WORKS if works else State.MISSING, said, "" if works else cure)


def _placement() -> Finding:
    where = placement()
    return _finding(
        "placement",
        where.network is not None,
        "network and hosts share one processor"
        if where.network is None
        else f"the network's thread stays on processor {where.network}",
        "two processors or more",
    )


def _receiving() -> Finding:
    there = Path("/proc/sys/net/core/rps_default_mask").exists()
    where = placement()
    numbers = ", ".join(map(str, where.senders))
    others = "" if where.receivers else "; those that only receive, on the network's"
    return _finding(
        "receive processing (RPS)",
        there,
        f"hosts receive on {numbers}{others}" if there else "hosts receive on the network's thread",
        "a kernel from 6.3 on with CONFIG_RPS",
    )


def _output_limit() -> Finding:
    try:
        own = int(Path("/proc/sys/net/ipv4/tcp_limit_output_bytes").read_text())
    except OSError:
        own = 0
    return _finding(
        "tcp_limit_output_bytes",
        own > 0,
        f"{OUTPUT_LIMIT} bytes at a lab's hosts; {own} in this namespace, so set it at hosts of tidegate switch"
        if own > OUTPUT_LIMIT
        else f"{OUTPUT_LIMIT} bytes at a lab's hosts; {own} in this namespace",
        "a kernel with CONFIG_INET",
    )


def _tables() -> Finding:
    there = Path("/proc/sys/net/ipv4/tcp_child_ehash_entries").exists()
    return _finding(
        "tables of connections",
        there,
        "of a host's own, and small" if there else "the machine's, which each sample of a flow walks",
        "Linux 6.1 or newer",
    )


def _priority() -> Finding:
    refused: list[str] = []

    def attempt() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))
        except OSError as error:
            refused.append(error.strerror or str(error))

    # It ends with its priority.
    thread = threading.Thread(target=attempt)
    thread.start()
    thread.join()
    return _finding(
        "real-time priority",
        not refused,
        refused[0] if refused else "for the network's thread while it has little to do",
        "run as root, or with CAP_SYS_NICE, and with kernel.sched_rt_runtime_us not 0",
    )


def _looking() -> Finding:
    count = processors()
    return _finding(
        "busy polling",
        count > MANY,
        "for 50 us after a packet"
        if count > MANY
        else f"off with {counted(count, 'processor')}: the hosts need them",
        f"more than {MANY} processors: shorter delays",
    )


def _threads() -> Finding:
    name = "threaded NAPI"
    try:
        kernel.demand_privilege()
    except TidegateError:
        return Finding(GROUP, name, State.UNKNOWN, "needs root", "run as root: sudo tidegate doctor")
    from tidegate import p4, program
    from tidegate.lab.lab import SWITCH, Lab
    from tidegate.lab.messages import MakeLinks
    from tidegate.switch.ports import SwitchPort
    from tidegate.switch.running import LiveSwitch

    try:
        with Lab(["probe"]) as lab:
            lab.ask(SWITCH, MakeLinks((("probe0", lab.pid("probe"), 1500, "eth0"),)))
            port = SwitchPort(1, "probe0", "xdp", lab.namespace(SWITCH))
            with LiveSwitch(p4.compile(program("meter")), [port], napi_threads=True) as live:
                (status,) = live.statistics()["ports"]
    except (TidegateError, OSError) as error:
        return _finding(name, False, str(error), "a kernel with CONFIG_XDP_SOCKETS, 5.12 or newer")
    why = status["notice"]
    return _finding(
        name,
        why is None,
        why or "with --napi-threads, or with --live-profile throughput and more than two processors",
        "Linux 5.12 or newer, sysfs writable",
    )
