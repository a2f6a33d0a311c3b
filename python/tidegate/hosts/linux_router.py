"""A Linux router: HTB classes with byte-limited queues at an interface, and a classifier by flow in BPF.

    with LinuxRouter("eth1", "1 Gbit/s") as router:
        SeparationController(router, ...)

The root of the interface is taken while it lasts. A flow is moved by one write into the classifier's map; rates and limits change
while packets wait, and none is lost by it. When the router is closed, its qdisc is removed, and the interface has the kernel's default
again. While it lasts, a second one at the interface is refused. What a killed process has left is known by its handle, and replaced by the
next one that starts; meanwhile the queues go on as they were.

Without BPF there is a filter of `u32` for each flow: IPv4 without options, and a search through all of them for each packet. Without
either, plans with flows are refused.

Segments that the kernel has merged (GRO, or TSO of a sender on this machine) are one frame of up to 64 kB here, which a shorter queue
drops, again and again. Once the classifier in BPF has seen such a frame, the queues of all plans have room for two, and a warning says how
merging is turned off. `u32` does not see them.

HTB counts frames, from the Ethernet header on, and more if the link's framing is longer. Rates of a plan are of IP packets of the full
size.
"""

from __future__ import annotations

import errno
import ipaddress
import logging
import os
import struct
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, get_args

from pyroute2 import IPRoute
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import tcmsg

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts import libbpf
from tidegate.hosts.interface_lock import InterfaceLock
from tidegate.hosts.port_plan import Plan, QueuePlan
from tidegate.network import FiveTuple

log = logging.getLogger("tidegate.router")

# A bfifo has pfifo's message (`struct tc_fifo_qopt`), and pyroute2 knows the latter alone.
tcmsg.plugins.setdefault("bfifo", tcmsg.plugins["pfifo"])

SOURCE = Path(__file__).with_name("classify.c")
HANDLE = 0x7D1E0000
"""Of the qdisc, by which it is known again: 7d1e:."""
ROOT_CLASS = HANDLE | 1
FIRST_CLASS = 0x10
"""The class of queue 0, within the qdisc; its queue's handle is 7d20:, the others follow."""
FIRST_QUEUE = 0x7D20
TC_ROOT = 0xFFFF_FFFF
ETH_P_ALL, ETH_P_IP = 3, 0x0800
BPF_PRIORITY = 1
MTU, FRAMING, TAG = 1500, 14, 4
LEAST_BPS = 8000
MOST_BPS = 34_000_000_000
"""More does not fit the kernel's 32 bits of bytes in a second; a link that is faster has this rate."""
BURST_FRAMES = 10
LEAST_FRAMES = 32
FIRST_BUFFER_S = 0.1
"""Of the queue that is there before the first plan, at the link's rate."""
MOST_MERGED = 64 * 1024
"""A frame of merged segments (`gso_max_size`, `gro_max_size`), if these have not been set higher."""
MERGED_FRAMES = 2
"""That fit a queue where frames are merged."""
MOST_QUANTUM_FRAMES = 8
DEFAULTS = ("noqueue", "pfifo_fast", "fq_codel", "mq", "pfifo")
"""Qdiscs that a kernel gives an interface by itself; with the handle 0."""
U32_OFFSETS = {"source": 12, "target": 16, "protocol": 8, "ports": 20}
"""In an IPv4 packet without options."""
U32_PRIORITIES = range(2, 1 << 15)
"""Of the filters, one for each flow, and one more while a flow is moved."""
NO_FLOW = FiveTuple("0.0.0.0", "0.0.0.0", 0, 0, 0)
"""Nothing is sent by it: a filter of this flow shows whether the kernel takes such filters."""
MOST_BYTES = (1 << 32) - 1
"""More does not fit a queue's limit."""

MOST_INTERFACE = 15
"""Bytes of an interface's name."""
MOST_QUEUES = 4096
LEAST_MTU, MOST_MTU = 68, 65_535
"""Of IPv4 (RFC 791)."""
MOST_FRAMING = 1024

Classifier = Literal["bpf", "u32"]
CLASSIFIERS = get_args(Classifier)


def _said(error: NetlinkError | OSError) -> str:
    """What the kernel says."""
    if isinstance(error, OSError) and error.errno == errno.E2BIG:
        return "the classifier's map is full"
    return str(error.args[-1]) if isinstance(error, NetlinkError) else error.strerror or str(error)


def _key(flow: FiveTuple) -> bytes:
    """`struct flow` of classify.c."""

    def address(text: str) -> bytes:
        known = ipaddress.ip_address(text)
        return (
            known.packed
            if known.version == 6
            else ipaddress.IPv6Address(0xFFFF_0000_0000 + int(known)).packed
        )

    return (
        address(flow.source)
        + address(flow.target)
        + struct.pack("!HHB3x", flow.source_port, flow.target_port, flow.protocol)
    )


def _u32_keys(flow: FiveTuple) -> list[str]:
    """Matches of words of the IPv4 header and the ports."""
    source, target = (int(ipaddress.IPv4Address(one)) for one in (flow.source, flow.target))
    ports = flow.source_port << 16 | flow.target_port
    return [
        f"0x{source:08x}/0xffffffff+{U32_OFFSETS['source']}",
        f"0x{target:08x}/0xffffffff+{U32_OFFSETS['target']}",
        f"0x{flow.protocol << 16:08x}/0x00ff0000+{U32_OFFSETS['protocol']}",
        f"0x{ports:08x}/0xffffffff+{U32_OFFSETS['ports']}",
    ]


def _demand(
    interface: str, most_queues: int, classifier: str | None, namespace: str | None, mtu: int, framing: int
) -> None:
    """Refuse what no router can have."""
    for what, text in (("an interface", interface), ("a network namespace", namespace or "x")):
        if not isinstance(text, str) or not text or "\0" in text or not units.is_text(text):
            raise TidegateError(f"{text!r} is not the name of {what}")
    if len(os.fsencode(interface)) > MOST_INTERFACE:
        raise TidegateError(
            f"there is no interface {interface[:40]!r}: names have {MOST_INTERFACE} bytes at most"
        )
    if classifier not in (None, *CLASSIFIERS):
        raise TidegateError(
            f"{interface}: there is no classifier {classifier!r}; known: {', '.join(CLASSIFIERS)}"
        )
    try:
        units.below(most_queues, 1, MOST_QUEUES + 1, "a number of queues")
        units.below(mtu, LEAST_MTU, MOST_MTU + 1, "an MTU in bytes")
        units.below(framing, 0, MOST_FRAMING + 1, "a number of bytes that a link adds")
    except TidegateError as error:
        raise TidegateError(f"{interface}: {error}") from None


class LinuxRouter:
    """The port of this namespace's router at an interface."""

    def __init__(
        self,
        interface: str,
        rate: units.Rate,
        *,
        most_queues: int = 8,
        classifier: Classifier | None = None,
        namespace: str | None = None,
        mtu: int = MTU,
        framing: int = FRAMING,
    ) -> None:
        """`rate` is that of the link, in bit/s of IP packets of the full size. `classifier`: BPF if it can be loaded, if not given.
        `namespace`: the name or path of the interface's network namespace, if it is not this process's. `mtu`: bytes of an IP packet
        of the full size; `framing`: bytes that the link adds to each.

        Raises `TidegateError` if a value cannot be, if there is no such interface, if it has a router or somebody has configured its qdisc, and if the kernel
        lacks HTB or the classifier that is asked for.
        """
        _demand(interface, most_queues, classifier, namespace, mtu, framing)
        self.interface = interface
        self.most_queues = most_queues
        self._mtu = mtu
        self._frame = mtu + FRAMING
        self._overhead = max(0, framing - FRAMING)
        self._rate = min(units.rate(rate), MOST_BPS * mtu // (self._frame + self._overhead))
        if self._rate < LEAST_BPS:
            raise TidegateError(
                f"{interface}: a rate of {units.show_rate(self._rate)}; give 8 kbit/s or more"
            )
        # What each class has, and what was asked for last: a queue that is no longer in the plan stays.
        self._queues: list[QueuePlan] = []
        self._applied: list[QueuePlan] = []
        self._flows: dict[FiveTuple, int] = {}
        self._filters: dict[FiveTuple, int] = {}
        self._loaded: libbpf.Loaded | None = None
        self._floor, self._warned = 0, False
        try:
            self._netlink = IPRoute() if namespace is None else IPRoute(netns=namespace, flags=0)
        except OSError as error:
            raise TidegateError(f"the network namespace {namespace}: {error.strerror or error}") from None
        found = self._netlink.link_lookup(ifname=interface)
        if not found:
            self._netlink.close()
            raise TidegateError(f"there is no interface {interface!r} here; `ip link` lists those there are")
        (self._index,) = found
        try:
            self._lock = InterfaceLock(interface, self._index, namespace)
        except BaseException as error:
            self._netlink.close()
            if isinstance(error, OSError):
                raise TidegateError(f"{interface}: its network namespace: {_said(error)}") from None
            raise
        self.classifier: Classifier | None = None
        """`None`: this machine has neither, and flows are refused."""
        self._lacking = ""
        try:
            self._take_root()
            self._classify(classifier)
        except BaseException:
            # Whoever may not set a qdisc may not remove it.
            with suppress(TidegateError):
                self.close()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Give the interface back to the kernel's default. Raises `TidegateError` if the kernel keeps the qdisc."""
        try:
            if self._root() == HANDLE:
                self._netlink.tc("del", index=self._index, parent=TC_ROOT, handle=HANDLE)
        except (NetlinkError, OSError) as error:
            # The interface may go meanwhile, and its qdisc with it.
            if not isinstance(error, NetlinkError) or error.code not in (errno.ENODEV, errno.ENOENT):
                raise TidegateError(
                    f"{self.interface}: its qdisc cannot be removed: {_said(error)}"
                ) from None
        finally:
            self._netlink.close()
            if self._loaded is not None:
                self._loaded.close()
                self._loaded = None
            self._lock.close()

    def _root(self) -> int | None:
        """The handle of the root qdisc; 0 for the kernel's own."""
        for found in self._netlink.get_qdiscs(self._index):
            if found["parent"] == TC_ROOT:
                return (
                    0 if found.get_attr("TCA_KIND") in DEFAULTS and found["handle"] == 0 else found["handle"]
                )
        return None

    def _take_root(self) -> None:
        there = self._root()
        if there and there != HANDLE:
            raise TidegateError(
                f"{self.interface} has a qdisc {there >> 16:x}: that somebody has set; remove it with `tc qdisc del dev "
                f"{self.interface} root`, or give another interface"
            )
        try:
            if there:
                # Of a process that was killed.
                self._netlink.tc("del", index=self._index, parent=TC_ROOT, handle=HANDLE)
            self._netlink.tc("add", "htb", self._index, handle=HANDLE, default=FIRST_CLASS)
            self._class(ROOT_CLASS, HANDLE, self._rate, self._rate, self._frame)
            # HTB sends what has no class at once, however fast: until the first plan all is in queue 0.
            size = max(LEAST_FRAMES * self._frame, int(self._rate * FIRST_BUFFER_S / 8))
            self._applied = [QueuePlan(self._rate, size)]
            self._set_queues(self._applied)
        except NetlinkError as error:
            why = "CONFIG_NET_SCH_HTB" if error.code == errno.ENOENT else _said(error)
            raise TidegateError(f"{self.interface}: the kernel takes no HTB qdisc: {why}") from None

    def _class(self, handle: int, parent: int, rate: int, ceil: int, quantum: int) -> None:
        """Add a class, or set it anew: rates in bit/s of IP packets."""
        sent = self._frame + self._overhead
        frames = [max(each, LEAST_BPS) * sent // self._mtu // 8 for each in (rate, ceil)]
        # What HTB's clock of a millisecond or so takes, and some frames.
        bursts = [max(BURST_FRAMES * sent, each // 1000) for each in frames]
        options = {"rate": frames[0], "ceil": frames[1], "burst": bursts[0], "cburst": bursts[1]}
        options["overhead"] = self._overhead
        self._netlink.tc(
            "replace-class", "htb", self._index, handle=handle, parent=parent, quantum=quantum, **options
        )

    def _classify(self, asked: Classifier | None) -> None:
        """Attach a classifier."""
        attaching: dict[Classifier, Callable[[], None]] = {"bpf": self._attach_bpf, "u32": self._try_u32}
        lacking = {}
        for name, attach in attaching.items():
            if asked not in (None, name):
                continue
            try:
                attach()
            except (libbpf.BpfError, NetlinkError) as error:
                lacking[name] = _said(error) if isinstance(error, NetlinkError) else str(error)
            else:
                self.classifier = name
                for other, why in lacking.items():
                    log.warning(
                        "%s: no classifier in %s: %s; it is %s, which knows IPv4 alone and looks through all flows for each packet",
                        self.interface,
                        other.upper(),
                        why,
                        name,
                    )
                return
        self._lacking = "; ".join(f"no classifier in {name.upper()}: {why}" for name, why in lacking.items())
        if asked is not None:
            raise TidegateError(f"{self.interface}: {self._lacking}")

    def _attach_bpf(self) -> None:
        why = libbpf.missing()
        if why is not None:
            raise libbpf.BpfError(why)
        self._loaded = libbpf.Loaded(libbpf.compiled(SOURCE))
        self._map, self._longest = self._loaded.map("classes", 4), self._loaded.map("longest", 4)
        self._netlink.tc(
            "add-filter",
            "bpf",
            self._index,
            parent=HANDLE,
            prio=BPF_PRIORITY,
            protocol=ETH_P_ALL,
            fd=self._loaded.program("classify"),
            name="tidegate-classify",
        )

    def _try_u32(self) -> None:
        """The module is loaded with the first filter, and a kernel without it says so then."""
        try:
            self._add_u32(NO_FLOW, 0, U32_PRIORITIES[0])
        except NetlinkError as error:
            why = "CONFIG_NET_CLS_U32" if error.code == errno.ENOENT else str(error.args[-1])
            raise NetlinkError(error.code, why) from None
        self._delete_u32(U32_PRIORITIES[0])

    def apply(self, plan: Plan) -> None:
        """Set the queues that differ, and move the flows that are elsewhere.

        Raises `TidegateError` if the kernel refuses something. Queues and flows are as before then, and the error says so if the
        kernel refuses that too.
        """
        self._check(plan)
        self._heed_merged(plan)
        existed, queues, flows = len(self._queues), self._applied, dict(self._flows)
        try:
            self._set_queues(plan.queues)
            self._set_flows(plan.flows)
        except (NetlinkError, OSError) as error:
            left = self._restore(existed, queues, flows)
            but = "" if left is None else f"; they are not as before, either: {left}"
            raise TidegateError(
                f"{self.interface}: the kernel refuses the queues or flows: {_said(error)}{but}"
            ) from None
        self._applied = list(plan.queues)

    def _check(self, plan: Plan) -> None:
        """Raise `TidegateError` for a plan that cannot be."""
        if not plan.queues:
            raise TidegateError(f"{self.interface}: a plan without queues; give one or more")
        if len(plan.queues) > self.most_queues:
            raise TidegateError(
                f"{self.interface}: {len(plan.queues)} queues; it may have {self.most_queues}"
            )
        if plan.flows and self.classifier is None:
            raise TidegateError(f"{self.interface}: flows cannot be told apart: {self._lacking}")
        if self.classifier == "u32" and len(plan.flows) >= len(U32_PRIORITIES):
            raise TidegateError(
                f"{self.interface}: {len(plan.flows)} flows; filters of u32 are for {len(U32_PRIORITIES) - 1} at most"
            )

    def _heed_merged(self, plan: Plan) -> None:
        """Where frames come merged, queues have room for them; warn, once, of a queue that is longer than planned by it."""
        if self._loaded is None:
            return
        (longest,) = struct.unpack("=I", self._longest[bytes(4)])
        if longest <= self._frame + TAG:
            return
        self._floor = MERGED_FRAMES * max(longest, MOST_MERGED)
        short = min(queue.buffer_bytes for queue in plan.queues)
        if short < self._floor and not self._warned:
            self._warned = True
            log.warning(
                "%s: frames of %d bytes have come, of merged segments, and a queue of %d bytes has no room for two: it gets %d bytes; "
                "to have it as short as planned, run `ethtool -K IF gro off gso off tso off` for the router's interfaces, and for "
                "those of senders on this machine, and start again",
                self.interface,
                longest,
                short,
                self._floor,
            )

    def _restore(self, existed: int, queues: list[QueuePlan], flows: Mapping[FiveTuple, int]) -> str | None:
        """Set queues and flows as they were, `existed` classes; what the kernel says if it refuses that, too."""
        left = None
        steps: tuple[Callable[[], None], ...] = (
            partial(self._set_flows, flows),
            partial(self._remove_queues, existed),
            partial(self._set_queues, queues),
        )
        for step in steps:
            try:
                step()
            except (NetlinkError, OSError) as error:
                left = _said(error)
        return left

    def _remove_queues(self, first: int) -> None:
        """Remove this queue and those behind it."""
        while len(self._queues) > first:
            minor = FIRST_CLASS + len(self._queues) - 1
            self._netlink.tc("del-class", index=self._index, parent=ROOT_CLASS, handle=HANDLE | minor)
            self._queues.pop()

    def _set_queues(self, queues: Sequence[QueuePlan]) -> None:
        if not queues:
            return
        shown = [replace(queue, buffer_bytes=max(queue.buffer_bytes, self._floor)) for queue in queues]
        # A class that is not held to its rate may pass it beside others: together they have the link's at most.
        asked = sum(queue.rate_bps for queue in shown)
        part = min(1.0, self._rate / asked) if asked else 1.0
        most = max(queue.rate_bps for queue in shown)
        # A queue that is not in the plan stays, empty: packets may wait in it.
        shown += [QueuePlan(LEAST_BPS, self._frame * LEAST_FRAMES)] * (len(self._queues) - len(shown))
        for number, queue in enumerate(shown):
            minor = FIRST_CLASS + number
            ceil = self._rate if queue.cap_bps is None else min(int(queue.cap_bps), self._rate)
            share = queue.rate_bps / most if most else 1.0
            quantum = max(self._frame, int(MOST_QUANTUM_FRAMES * self._frame * share))
            self._class(HANDLE | minor, ROOT_CLASS, min(int(queue.rate_bps * part), ceil), ceil, quantum)
            if number == len(self._queues):
                # The kernel has given it a queue of its own.
                self._queues.append(replace(queue, buffer_bytes=-1))
            if self._queues[number].buffer_bytes != queue.buffer_bytes:
                self._netlink.tc(
                    "replace",
                    "bfifo",
                    self._index,
                    handle=(FIRST_QUEUE + number) << 16,
                    parent=HANDLE | minor,
                    limit=min(queue.buffer_bytes, MOST_BYTES),
                )
            self._queues[number] = queue

    def _set_flows(self, flows: Mapping[FiveTuple, int]) -> None:
        for flow in [flow for flow in self._flows if flow not in flows]:
            self._assign(flow, None)
        for flow, queue in flows.items():
            if self._flows.get(flow) != queue:
                self._assign(flow, queue)

    def _assign(self, flow: FiveTuple, queue: int | None) -> None:
        if self.classifier == "bpf":
            if queue is not None:
                self._map[_key(flow)] = struct.pack("=I", HANDLE | FIRST_CLASS + queue)
            else:
                # It may be gone already.
                with suppress(KeyError):
                    del self._map[_key(flow)]
        elif ":" not in flow.source:
            self._assign_u32(flow, queue)
        if queue is None:
            self._flows.pop(flow, None)
        else:
            self._flows[flow] = queue

    def _assign_u32(self, flow: FiveTuple, queue: int | None) -> None:
        before, now = self._filters.get(flow), None
        if queue is not None:
            # A priority for each, by which it can be removed.
            taken = set(self._filters.values())
            now = next(number for number in U32_PRIORITIES if number not in taken)
            self._add_u32(flow, queue, now)
        if before is not None:
            # After the new one is there.
            try:
                self._delete_u32(before)
            except NetlinkError:
                if now is not None:
                    self._delete_u32(now)
                raise
        if now is None:
            self._filters.pop(flow, None)
        else:
            self._filters[flow] = now

    def _add_u32(self, flow: FiveTuple, queue: int, priority: int) -> None:
        self._netlink.tc(
            "add-filter",
            "u32",
            self._index,
            parent=HANDLE,
            prio=priority,
            protocol=ETH_P_IP,
            target=HANDLE | FIRST_CLASS + queue,
            keys=_u32_keys(flow),
        )

    def _delete_u32(self, priority: int) -> None:
        try:
            self._netlink.tc(
                "del-filter", "u32", self._index, parent=HANDLE, prio=priority, protocol=ETH_P_IP, target=0
            )
        except NetlinkError as error:
            # It may be gone already.
            if error.code != errno.ENOENT:
                raise

    def counts(self) -> list[dict[str, Any]]:
        """What each queue's class has sent, and what waits and was dropped: `bytes`, `packets`, `dropped`, `waiting_bytes`, `waiting_packets`."""
        found: dict[int, dict[str, Any]] = {}
        for one in self._netlink.get_classes(self._index):
            number = (one["handle"] & 0xFFFF) - FIRST_CLASS
            if number < 0:
                continue
            stats = one.get_attr("TCA_STATS2")
            basic, queue = stats.get_attr("TCA_STATS_BASIC"), stats.get_attr("TCA_STATS_QUEUE")
            found[number] = {
                "bytes": basic["bytes"],
                "packets": basic["packets"],
                "dropped": queue["drops"],
                "waiting_bytes": queue["backlog"],
                "waiting_packets": queue["qlen"],
            }
        return [found[number] for number in sorted(found)]
