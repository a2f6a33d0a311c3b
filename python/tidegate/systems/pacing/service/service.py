"""The service itself: starts the programs, waits for what they say, and ends without leaving anything."""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import struct
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from typing import Any

from tidegate import addresses, logs
from tidegate._core import TidegateError
from tidegate.systems.pacing.service import left, metrics
from tidegate.systems.pacing.service.keeper import Keeper
from tidegate.systems.pacing.service.pacer import (
    COUNTERS_HELP,
    PacedFlow,
    Pacer,
    demand_capabilities,
    lift_left,
)
from tidegate.systems.pacing.service.settings import Settings
from tidegate.systems.pacing.service.shaper import Classes

# In the abstract namespace, which each network namespace has one of: it goes with the process.
ADDRESS = "\0tidegate-agent"
TICK_S = 0.25
PAUSE_S = 0.001
LONGEST_S = 1.0
SHARE = 0.003
"""A visit to the sockets goes through the kernel's table of connections, which takes 0.1 to 3 ms. Where it takes longer, pauses between
visits are longer, so that they have this part of a processor."""
LOOK_S = 1.0
NOTED_S = 60.0
"""What has been refused is noted once in so long."""
KEEPER_S = 2.0
"""A keeper has so long for its work."""
ANSWER_S = 1.0
"""A client of the status socket has so long."""
REFUSED = (
    "malformed",
    "bad_version",
    "bad_check",
    "not_ours",
    "too_often",
    "out_of_bounds",
    "too_many_links",
)
WHY = {
    "asking": "no switch has answered",
    "paced": "link {link} gives it the least",
    "silent": "its switches have stopped answering",
}
GONE = {
    "interface": "its flows are not told any more",
    "cgroup": "its flows are paced again when it is there",
}
log = logs.logger("tidegate.agent")


class Claim:
    """What one service of a network namespace can have at a time, and where it answers.

    The keeper has it, too, so that no other service begins before it has done its work.
    """

    def __init__(self, patience_s: float = KEEPER_S) -> None:
        """Raises TidegateError."""
        end = time.monotonic() + patience_s
        while (lock := left.lock()) is None:
            if time.monotonic() > end:
                raise TidegateError(
                    "an agent runs already in this network namespace; see tidegate agent status"
                )
            time.sleep(0.02)
        self._lock = lock
        self.socket: socket.socket | None = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            self.socket.bind(ADDRESS)
        except OSError:
            # Anybody can take a name in the abstract namespace. The agent works without.
            log.warning("the agent has no status: another process has taken the name tidegate-agent")
            self.socket.close()
            self.socket = None
        else:
            self.socket.listen()
            self.socket.setblocking(False)

    def close(self) -> None:
        """Give it back."""
        if self.socket is not None:
            self.socket.close()
        left.unlock(self._lock)


def clean() -> list[str]:
    """Take back what a service has left; gives what there was. Does nothing while one runs."""
    before = left.found()
    if before is None:
        return []
    try:
        here = Claim()
    except TidegateError:
        return []
    with closing(here):
        lift_left()
        left.put_back(before)
    return ["limits of sockets", *(f"{name} = {value}" for name, value in before.items())]


def ask() -> dict[str, Any]:
    """What the service of this network namespace says of itself."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as there:
        there.settimeout(10)
        try:
            there.connect(ADDRESS)
            _demand_agent(there)
            parts = list(iter(lambda: there.recv(1 << 16), b""))
        except OSError:
            raise TidegateError(
                "no agent runs in this network namespace; start one with tidegate agent -i INTERFACE"
            ) from None
    text = b"".join(parts)
    if not text:
        raise TidegateError("the agent belongs to another user; ask as that user, or as root")
    answer: dict[str, Any] = json.loads(text)
    return answer


def _peer(there: socket.socket) -> tuple[int, int]:
    """Process and user at the other end."""
    process, user, _ = struct.unpack("=iII", there.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12))
    return process, user


def _demand_agent(there: socket.socket) -> None:
    """Anybody can take the name in the abstract namespace: what another user says is not the agent's word."""
    process, user = _peer(there)
    if user not in (0, os.geteuid(), left.owner()):
        raise TidegateError(
            f"process {process} of user {user} has taken the name of the agent's status, and is no agent of this machine's; end it"
        )


class Service:
    """Paces flows until it is told to stop."""

    def __init__(self, settings: Settings, reread: Callable[[], Settings]) -> None:
        self._settings = settings
        self._reread = reread
        self._pacer: Pacer | None = None
        self._classes: Classes | None = None
        self._seen: Counter[str] = Counter()
        self._looked = 0.0
        self._noted = 0.0
        self._lost: dict[str, list[str]] = {"interface": [], "cgroup": []}
        self._began = time.time()

    def run(self) -> None:
        """Raises TidegateError where this machine cannot."""
        demand_capabilities()
        with ExitStack() as stack:
            claim = Claim()
            stack.callback(claim.close)
            before = left.found()
            if before is not None:
                log.warning("an agent has ended without its keeper: its limits are lifted")
                lift_left()
                left.put_back(before)
            if self._settings.metrics_addr is not None:
                # Before programs are compiled and checked, which takes seconds on a busy machine.
                addresses.demand_free_metrics(self._settings.metrics_addr)
            pacer = self._pacer = Pacer(self._settings)
            stack.callback(pacer.close)
            by = self._settings.pace_by
            before = left.change(None if by == "socket" else by, self._settings.interfaces)
            if by == "htb":
                self._classes = Classes(self._settings.interfaces)
            stack.callback(left.put_back, before)
            stack.callback(pacer.lift)
            woken = stack.enter_context(_signals())
            keeper = Keeper(pacer, before)
            try:
                if self._settings.metrics_addr is not None:
                    page = metrics.serve(self._settings.metrics_addr, self.status, self._settings.insecure)
                    stack.callback(page.stop)
                    log.info("metrics at http://%s/metrics", page.address)
                log.info("paces flows at %s", ", ".join(self._settings.interfaces))
                if "ipv4/tcp_tso_rtt_log" in before:
                    log.info(
                        "net.ipv4.tcp_tso_rtt_log is 0 while it runs, so that paced sockets send small bursts"
                    )
                keeper = self._loop(pacer, keeper, claim.socket, woken, before)
            finally:
                with suppress(OSError):
                    keeper.dismiss()

    def _loop(
        self, pacer: Pacer, keeper: Keeper, here: socket.socket | None, woken: int, before: dict[str, str]
    ) -> Keeper:
        with selectors.DefaultSelector() as ready:
            ready.register(pacer.descriptor, selectors.EVENT_READ, "visit")
            if here is not None:
                ready.register(here, selectors.EVENT_READ, "status")
            ready.register(woken, selectors.EVENT_READ, "signal")
            ready.register(keeper.descriptor, selectors.EVENT_READ, "keeper")
            tick = free = time.monotonic()
            wanted = False
            while True:
                wait = max(0.0, min(tick, free if wanted else tick) - time.monotonic())
                events = [key.data for key, _ in ready.select(wait)]
                if "visit" in events:
                    pacer.heard()
                    wanted = True
                if "signal" in events:
                    told = os.read(woken, 64)
                    if any(number in (signal.SIGINT, signal.SIGTERM) for number in told):
                        log.info("stops: limits are lifted")
                        return keeper
                    self._reload(pacer)
                if "keeper" in events:
                    ready.unregister(keeper.descriptor)
                    log.warning("the keeper has ended; another is started")
                    keeper.forget()
                    keeper = Keeper(pacer, before)
                    ready.register(keeper.descriptor, selectors.EVENT_READ, "keeper")
                if here is not None and "status" in events:
                    self._answer(here)
                due = time.monotonic() >= tick
                if due or (wanted and time.monotonic() >= free):
                    begin = time.thread_time()
                    pacer.visit()
                    if self._classes is not None:
                        self._classes.follow(pacer.flows())
                    pause = (time.thread_time() - begin) / SHARE
                    now = time.monotonic()
                    wanted, free = False, now + min(max(PAUSE_S, pause), LONGEST_S)
                    tick = now + min(max(TICK_S, pause), LONGEST_S)
                    self._look(pacer)

    def _reload(self, pacer: Pacer) -> None:
        try:
            settings = self._reread()
            if settings.most_flows != self._settings.most_flows:
                raise TidegateError("most_flows cannot change while the agent runs; restart it")
            for name in ("metrics_addr", "insecure", "pace_by"):
                if getattr(settings, name) != getattr(self._settings, name):
                    raise TidegateError(f"{name} cannot change while the agent runs; restart it")
            if settings.pace_by != "socket" and settings.interfaces != self._settings.interfaces:
                raise TidegateError("interfaces with a qdisc cannot change while the agent runs; restart it")
            pacer.use(settings)
        except TidegateError as error:
            log.error("not reloaded, all stays as it was: %s", error)
            return
        self._settings = settings
        logs.serve(log.name, as_json=settings.log_format == "json")
        log.info("reloaded")

    def _look(self, pacer: Pacer) -> None:
        """Note what an operator should know."""
        now = time.monotonic()
        if now - self._looked < LOOK_S:
            return
        self._looked = now
        self._note_lost("interface", pacer.lost_interfaces(), self._settings.interfaces)
        self._note_lost("cgroup", pacer.lost_cgroups(), self._settings.cgroups)
        if now - self._noted < NOTED_S:
            return
        self._noted = now
        counts = Counter(pacer.counts())
        for name in (*REFUSED, "full", "no_room", "no_class", "silent", "not_set"):
            if counts[name] > self._seen[name]:
                log.warning("%s: %d more", COUNTERS_HELP[name], counts[name] - self._seen[name])
        self._seen = counts

    def _note_lost(self, kind: str, lost: list[str], chosen: Collection[str]) -> None:
        for name in lost:
            if name not in self._lost[kind]:
                log.error("%s %s is gone; %s", kind, name, GONE[kind])
        for name in self._lost[kind]:
            if name in chosen and name not in lost:
                log.info("%s %s is back", kind, name)
        self._lost[kind] = lost

    def _answer(self, here: socket.socket) -> None:
        """Give the status to who asks, if it is the same user or root."""
        with suppress(OSError):
            client, _ = here.accept()
            with client:
                client.settimeout(ANSWER_S)
                if _peer(client)[1] in (0, os.geteuid()):
                    client.sendall(json.dumps(self.status()).encode())

    def status(self) -> dict[str, Any]:
        """What is paced, and why at that rate."""
        assert self._pacer is not None
        flows = [_told(flow) for flow in self._pacer.flows()]
        return {
            "pid": os.getpid(),
            "running_s": round(time.time() - self._began, 1),
            "interfaces": list(self._settings.interfaces),
            "lost_interfaces": self._lost["interface"],
            "lost_cgroups": self._lost["cgroup"],
            "keyed": self._settings.keys is not None,
            "flows": flows,
            "counts": self._pacer.counts(),
        }


def _end(of: tuple[str, int]) -> str:
    address, port = of
    return f"[{address}]:{port}" if ":" in address else f"{address}:{port}"


def _told(flow: PacedFlow) -> dict[str, Any]:
    return {
        "local": _end(flow.local),
        "remote": _end(flow.remote),
        "state": flow.state,
        "opened": flow.opened,
        "weight": flow.weight,
        "payload_mbps": None if flow.payload_bps is None else round(flow.payload_bps / 1e6, 6),
        "frames_mbps": None if flow.frames_kbps is None else flow.frames_kbps / 1e3,
        "used_mbps": None if flow.used_kbps is None else flow.used_kbps / 1e3,
        "why": WHY[flow.state].format(link=flow.link)
        + ("; its application takes less" if flow.state == "paced" and flow.used_kbps is not None else ""),
        "links": {str(share.link): round(share.kbps * flow.weight / 1e3, 6) for share in flow.shares},
        "heard_s": None if flow.heard_s is None else round(flow.heard_s, 3),
    }


@contextmanager
def _signals() -> Iterator[int]:
    """What can be read from when SIGINT, SIGTERM or SIGHUP has come: their numbers."""
    woken, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    kept = {
        number: signal.signal(number, lambda *_: None)
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    }
    signal.set_wakeup_fd(wake)
    try:
        yield woken
    finally:
        signal.set_wakeup_fd(-1)
        for number, old in kept.items():
            signal.signal(number, old)
        os.close(woken)
        os.close(wake)
