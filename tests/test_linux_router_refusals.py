"""What a Linux router does when the kernel refuses something: queues and flows are as before, and the error is a `TidegateError`."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from pyroute2.netlink.exceptions import NetlinkError

from tidegate._core import TidegateError
from tidegate.control import Port, Queue
from tidegate.hosts import libbpf, linux_router
from tidegate.hosts.linux_port import LinuxPort
from tidegate.hosts.linux_router import FIRST_CLASS, HANDLE, LinuxRouter
from tidegate.hosts.port_plan import Plan, QueuePlan
from tidegate.network import FiveTuple

MBIT = 10**6
QUEUE = QueuePlan(40 * MBIT, 300_000)
DRR = "deficit round robin"
Refusal = Callable[[str, "str | None", int, dict[str, Any]], int | None]


class Kernel:
    """In the place of `IPRoute`: classes, queues and filters of an interface, and what is refused."""

    def __init__(self) -> None:
        self.classes: dict[int, tuple[int, int]] = {}
        self.limits: dict[int, int] = {}
        self.filters: dict[int, tuple[int, tuple[str, ...]]] = {}
        self.refuses: Refusal = lambda command, kind, handle, options: None

    def link_lookup(self, ifname: str) -> list[int]:
        return [7]

    def get_qdiscs(self, index: int) -> list[Any]:
        return []

    def close(self) -> None:
        pass

    def tc(
        self, command: str, kind: str | None = None, index: int = 0, handle: int = 0, **options: Any
    ) -> None:
        error = self.refuses(command, kind, handle, options)
        if error is not None:
            raise NetlinkError(error)
        match command:
            case "replace-class":
                self.classes[handle] = (options["rate"], options["ceil"])
            case "del-class":
                del self.classes[handle]
                self.limits.pop(handle, None)
            case "replace":
                self.limits[options["parent"]] = options["limit"]
            case "add-filter" if kind == "u32":
                self.filters[options["prio"]] = (options["target"], tuple(options["keys"]))
            case "del-filter":
                if options["prio"] not in self.filters:
                    raise NetlinkError(errno.ENOENT)
                del self.filters[options["prio"]]

    @property
    def state(self) -> Any:
        """What is there; of filters the class by the flow."""
        return dict(self.classes), dict(self.limits), {keys: to for to, keys in self.filters.values()}


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Kernel:
    """One without BPF."""
    found = Kernel()
    monkeypatch.setattr(linux_router, "IPRoute", lambda: found)
    monkeypatch.setattr(linux_router, "InterfaceLock", lambda *names: SimpleNamespace(close=lambda: None))
    monkeypatch.setattr(libbpf, "missing", lambda: "libbpf.so.1 is not installed")
    return found


FLOWS = [FiveTuple("10.9.0.1", "10.9.0.2", 17, port, 9) for port in range(4)]
BEFORE = Plan((QUEUE, QUEUE), {FLOWS[0]: 0, FLOWS[1]: 1})
AFTER = Plan(
    (QUEUE, QueuePlan(20 * MBIT, 100_000, 30 * MBIT), QUEUE), {FLOWS[1]: 2, FLOWS[2]: 2, FLOWS[3]: 1}
)


def port_of(keys: list[str]) -> int:
    """The source port that a filter is for."""
    return int(keys[-1].split("/")[0], 16) >> 16


REFUSALS: dict[str, Refusal] = {
    "a class": lambda command, kind, handle, options: (
        errno.EINVAL if command == "replace-class" and handle == HANDLE | FIRST_CLASS + 2 else None
    ),
    "a queue": lambda command, kind, handle, options: (
        errno.ENOMEM if kind == "bfifo" and options["parent"] == HANDLE | FIRST_CLASS + 2 else None
    ),
    "a flow": lambda command, kind, handle, options: (
        errno.ENOMEM if command == "add-filter" and port_of(options["keys"]) == 3 else None
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
@pytest.mark.parametrize("first", [True, False])
def test_a_plan_that_is_refused_leaves_queues_and_flows_as_they_were(
    kernel: Kernel, what: str, first: bool
) -> None:
    with LinuxRouter("out", "100 Mbit/s") as router:
        assert router.classifier == "u32"
        if not first:
            router.apply(BEFORE)
        before = kernel.state
        kernel.refuses = REFUSALS[what]
        with pytest.raises(TidegateError, match="out: the kernel refuses the queues or flows: ") as error:
            router.apply(AFTER)
        assert "as before" not in str(error.value)
        assert kernel.state == before
        # The same plan is tried again.
        kernel.refuses = lambda command, kind, handle, options: None
        router.apply(AFTER)
        tried = kernel.state
    kernel.classes, kernel.limits, kernel.filters = {}, {}, {}
    with LinuxRouter("out", "100 Mbit/s") as router:
        router.apply(AFTER)
        assert kernel.state == tried


def test_a_filter_that_cannot_be_removed_is_not_left_with_a_second_one(kernel: Kernel) -> None:
    with LinuxRouter("out", "100 Mbit/s") as router:
        router.apply(BEFORE)
        before = kernel.state
        (kept,) = (priority for priority, (_, keys) in kernel.filters.items() if port_of(list(keys)) == 1)
        kernel.refuses = lambda command, kind, handle, options: (
            errno.EBUSY if command == "del-filter" and options["prio"] == kept else None
        )
        with pytest.raises(TidegateError, match="Device or resource busy"):
            router.apply(Plan(BEFORE.queues, {**BEFORE.flows, FLOWS[1]: 0}))
        assert kernel.state == before
        # One that somebody else has removed is no reason to stop.
        kernel.refuses = lambda command, kind, handle, options: None
        kernel.filters.clear()
        router.apply(Plan(BEFORE.queues, {}))


def test_the_error_says_that_the_queues_are_not_as_before(kernel: Kernel) -> None:
    with LinuxRouter("out", "100 Mbit/s") as router:
        router.apply(BEFORE)
        kernel.refuses = lambda command, kind, handle, options: errno.ENODEV
        with pytest.raises(TidegateError, match="No such device; they are not as before, either: No such"):
            router.apply(AFTER)


@pytest.mark.parametrize(("error", "why"), [(errno.E2BIG, "map is full"), (errno.ENOMEM, "allocate memory")])
def test_a_map_that_takes_no_more_flows_leaves_them_as_they_were(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch, error: int, why: str
) -> None:
    class Flows(dict[bytes, bytes]):
        most = 10

        def __setitem__(self, key: bytes, value: bytes) -> None:
            if key not in self and len(self) == self.most:
                raise OSError(error, os.strerror(error))
            super().__setitem__(key, value)

    def attach(router: LinuxRouter) -> None:
        router._map = Flows()  # type: ignore[assignment]

    monkeypatch.setattr(LinuxRouter, "_attach_bpf", attach)
    with LinuxRouter("out", "100 Mbit/s") as router:
        assert router.classifier == "bpf"
        router.apply(BEFORE)
        before, there = kernel.state, dict(router._map)  # type: ignore[call-overload]
        router._map.most = 2  # type: ignore[attr-defined]
        with pytest.raises(TidegateError, match=why):
            router.apply(AFTER)
        assert (kernel.state, router._map) == (before, there)
        # A flow that is gone already is no reason to stop.
        router._map.clear()  # type: ignore[attr-defined]
        router.apply(Plan(BEFORE.queues, {}))


def test_a_classifier_that_is_second_best_is_told_of(
    kernel: Kernel, caplog: pytest.LogCaptureFixture
) -> None:
    with LinuxRouter("out", "100 Mbit/s"):
        pass
    (told,) = caplog.messages
    assert told.startswith(
        "out: no classifier in BPF: libbpf.so.1 is not installed; it is u32, which knows IPv4 alone"
    )
    caplog.clear()
    with LinuxRouter("out", "100 Mbit/s", classifier="u32"):
        pass
    assert not caplog.messages


def test_without_any_classifier_queues_work_and_flows_are_refused(kernel: Kernel) -> None:
    kernel.refuses = lambda command, kind, handle, options: errno.ENOENT if kind == "u32" else None
    lacking = "no classifier in U32: CONFIG_NET_CLS_U32"
    with LinuxRouter("out", "100 Mbit/s") as router:
        assert router.classifier is None
        router.apply(Plan((QUEUE,), {}))
        before = kernel.state
        with pytest.raises(TidegateError, match=f"in BPF: libbpf.so.1 is not installed; {lacking}"):
            router.apply(BEFORE)
        assert kernel.state == before
    with pytest.raises(TidegateError, match=lacking):
        LinuxRouter("out", "100 Mbit/s", classifier="u32")


MANY = [FiveTuple("10.9.0.1", "10.9.0.2", 6, 1, port) for port in range(1 << 15)]


@pytest.mark.parametrize(
    ("plan", "why"),
    [
        (Plan((), {}), "without queues"),
        (Plan((QUEUE,), dict.fromkeys(MANY, 0)), "32768 flows; filters of u32 are for 32765 at most"),
    ],
)
def test_plans_that_cannot_be_are_refused(kernel: Kernel, plan: Plan, why: str) -> None:
    with LinuxRouter("out", "100 Mbit/s") as router, pytest.raises(TidegateError, match=why):
        router.apply(plan)


def test_a_port_that_is_refused_is_the_one_before(kernel: Kernel) -> None:
    with LinuxRouter("out", "100 Mbit/s") as router:
        port = LinuxPort(router, 100 * MBIT, Port((Queue(), Queue()), DRR))
        port.assign([FLOWS[0]], 1)
        kernel.refuses = REFUSALS["a queue"]
        with pytest.raises(TidegateError, match="refuses"):
            port.set(Port((Queue(), Queue(), Queue()), DRR))
        port.assign([FLOWS[1]], 1)
        assert len(kernel.classes) == 3
        kernel.refuses = REFUSALS["a flow"]
        with pytest.raises(TidegateError, match="refuses"):
            port.assign([FLOWS[2], FLOWS[3]], 0)
        port.assign([FLOWS[0]], None)
        assert {port_of(list(keys)) for _, keys in kernel.filters.values()} == {1}


def test_without_root_what_a_killed_router_has_left_stays(kernel: Kernel) -> None:
    class Root(dict[str, int]):
        def get_attr(self, name: str) -> str:
            return "htb"

    kernel.get_qdiscs = lambda index: [Root(parent=linux_router.TC_ROOT, handle=HANDLE)]  # type: ignore[method-assign]
    kernel.refuses = lambda command, kind, handle, options: errno.EPERM
    with pytest.raises(TidegateError, match="takes no HTB qdisc: Operation not permitted"):
        LinuxRouter("out", "100 Mbit/s")


@pytest.mark.parametrize(
    ("how", "why"),
    [
        ({"classifier": "xx"}, "s1: there is no classifier 'xx'; known: bpf, u32"),
        ({"mtu": -5}, "s1: -5 is not an MTU in bytes: give a whole number from 68 to 65535"),
        ({"mtu": 1500.5}, "s1: 1500.5 is not an MTU in bytes"),
        ({"framing": -1}, "s1: -1 is not a number of bytes that a link adds"),
        ({"most_queues": 0}, "s1: 0 is not a number of queues: give a whole number from 1 to 4096"),
        ({"interface": "s1\0"}, "'s1\\x00' is not the name of an interface"),
        ({"interface": ""}, "'' is not the name of an interface"),
        ({"interface": "s" * 16}, f"there is no interface '{'s' * 16}': names have 15 bytes at most"),
        ({"namespace": "a\0b"}, "'a\\x00b' is not the name of a network namespace"),
    ],
)
def test_values_that_cannot_be_are_refused(kernel: Kernel, how: dict[str, Any], why: str) -> None:
    with pytest.raises(TidegateError) as caught:
        LinuxRouter(**{"interface": "s1", "rate": "100 Mbit/s", **how})
    assert str(caught.value).startswith(why)
    assert kernel.classes == {}
