"""The runner of controllers, and who hands it messages."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.control import Controller, Digest, PacketIn, SwitchApi
from tidegate.control.delivery import MOST_IDLE, MOST_WAITING, Distributor, Mailbox, Messages
from tidegate.control.runner import Managed, Runner, failure
from tidegate.hosts.agents import Agent, Connection, HostAgents
from tidegate.network import Network

MS = 1_000_000_000


class Switch:
    """Messages that come at times."""

    def __init__(self) -> None:
        self.digests: list[tuple[str, list[tuple[str, int]]]] = []
        self.packets: list[tuple[int, bytes, int]] = []
        self.idle: list[tuple[str, tuple[Any, ...]]] = []

    def take_digests(self) -> list[tuple[str, list[tuple[str, int]]]]:
        taken, self.digests = self.digests, []
        return taken

    def take_packet_in(self) -> tuple[int, bytes, int] | None:
        return self.packets.pop(0) if self.packets else None

    def take_idle(self) -> list[tuple[str, tuple[Any, ...]]]:
        taken, self.idle = self.idle, []
        return taken


class Time:
    """A clock that stands while controllers work, or that they move; `coming` are messages at times."""

    def __init__(self) -> None:
        self.time = 0
        self.coming: list[tuple[int, Callable[[], None]]] = []

    def now(self) -> int:
        return self.time

    def wait(self, until: int) -> int:
        if self.coming and self.coming[0][0] <= until:
            at, come = self.coming.pop(0)
            self.time = max(self.time, at)
            come()
        else:
            self.time = max(self.time, until)
        return self.time


class Api(SwitchApi):
    """A switch that knows the time."""

    def __init__(self, name: str, clock: Time) -> None:
        super().__init__(name, None, (), lambda *_: None)  # type: ignore[arg-type]
        self._clock = clock

    @property
    def now(self) -> int:
        return self._clock.time


class Logs(Controller):
    """Writes down what it is called for; may take long, or fail."""

    def __init__(
        self, log: list[tuple[Any, ...]], name: str = "", clock: Time | None = None, takes: int = 0
    ) -> None:
        self.log, self.name, self.clock, self.takes = log, name, clock, takes
        self.period = 10 * MS
        self.fails: str | None = None

    def _say(self, now: int, what: str, *more: Any) -> None:
        self.log.append((now // MS, f"{self.name}{what}", *more))
        if self.clock is not None:
            self.clock.time += self.takes
        if self.fails == what:
            raise ValueError("enough")

    def start(self, switch: SwitchApi) -> None:
        self._say(switch.now, "start")

    def tick(self, now: int, switch: SwitchApi) -> None:
        self._say(now, "tick")

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        self._say(now, "digest", switch.name, digest.fields)

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        self._say(now, "packet", switch.name, packet.data)


def times(log: list[tuple[Any, ...]], what: str = "tick") -> list[int]:
    return [entry[0] for entry in log if entry[1] == what]


def test_order_at_one_time() -> None:
    """Messages switch by switch, digests before packets, each to all controllers in turn; then actions, then ticks."""
    clock, log = Time(), []
    one, two = Switch(), Switch()
    a, b = Logs(log, "a "), Logs(log, "b ")
    runner = Runner([Managed(Api("s1", clock), one, [a, b]), Managed(Api("s2", clock), two, [b])], clock)

    def come() -> None:
        two.digests.append(("d", [("x", 1)]))
        one.packets += [(0, b"p", 0)]
        one.digests += [("d", [("x", 2)]), ("d", [("x", 3)])]

    clock.coming.append((10 * MS, come))
    runner.start()
    runner.at(10 * MS, lambda: log.append((10, "action")))
    runner.run(10 * MS)
    assert log == [
        (0, "a start"), (0, "b start"), (0, "b start"),
        (10, "a digest", "s1", {"x": 2}), (10, "b digest", "s1", {"x": 2}),
        (10, "a digest", "s1", {"x": 3}), (10, "b digest", "s1", {"x": 3}),
        (10, "a packet", "s1", b"p"), (10, "b packet", "s1", b"p"),
        (10, "b digest", "s2", {"x": 1}),
        (10, "action"), (10, "a tick"), (10, "b tick"), (10, "b tick"),
    ]  # fmt: skip


def test_a_message_that_a_tick_causes_comes_before_the_next_tick() -> None:
    clock, log, switch = Time(), [], Switch()

    class Sends(Logs):
        def tick(self, now: int, switch_: SwitchApi) -> None:
            super().tick(now, switch_)
            switch.digests.append(("d", []))

    runner = Runner([Managed(Api("s", clock), switch, [Sends(log, "a "), Logs(log, "b ")])], clock)
    runner.start()
    runner.run(10 * MS)
    assert [entry[1] for entry in log[2:]] == ["a tick", "a digest", "b digest", "b tick"]


@pytest.mark.parametrize(
    ("takes", "ticks"),
    [(0, [10, 20, 30, 40, 50, 60]), (9 * MS, [10, 20, 30, 40, 50, 60]), (25 * MS, [10, 40, 70])],
)
def test_ticks_that_a_slow_controller_misses_are_left_out(takes: int, ticks: list[int]) -> None:
    """The first case is virtual time: a controller takes none."""
    clock, log = Time(), []
    controller = Logs(log, clock=clock)
    runner = Runner([Managed(Api("s", clock), Switch(), [controller])], clock)
    runner.start()
    controller.takes = takes
    runner.run(60 * MS)
    assert times(log) == [tick for tick in ticks if tick <= 60]


def test_a_tick_that_is_late_by_whole_periods_is_followed_by_the_next_that_is_to_come() -> None:
    clock, log = Time(), []
    controller = Logs(log, clock=clock, takes=0)
    runner = Runner([Managed(Api("s", clock), Switch(), [controller])], clock)
    runner.start()
    runner.at(10 * MS, lambda: setattr(clock, "time", 30 * MS))
    runner.run(50 * MS)
    assert times(log) == [30, 40, 50]


@pytest.mark.parametrize(
    ("takes", "late", "ticks"),
    [(0, 0, [10, 20, 30, 40]), (25 * MS, 0, [10, 40]), (0, 32 * MS, [32, 40])],
    ids=["virtual time", "a slow agent", "a late tick"],
)
def test_ticks_that_a_host_agent_misses_are_left_out(takes: int, late: int, ticks: list[int]) -> None:
    clock, told = Time(), []

    class Slow(Agent):
        period = "10 ms"

        def tick(self, now: int, connections: Sequence[Connection]) -> None:
            told.append(now // MS)
            clock.time += takes

    net = Network()
    net.agent(net.host("a"), Slow())
    runner = Runner([], clock)
    runner.at(5 * MS, lambda: setattr(clock, "time", max(clock.time, late)))
    HostAgents(net, SimpleNamespace(add=lambda host, shims: 0)).plan(runner)  # type: ignore[arg-type]
    runner.run(45 * MS)
    assert told == ticks


def test_without_on_error_an_exception_ends_the_run() -> None:
    clock, log = Time(), []
    controller = Logs(log)
    controller.fails = "tick"
    runner = Runner([Managed(Api("s", clock), Switch(), [controller])], clock)
    runner.start()
    with pytest.raises(ValueError, match="enough"):
        runner.run(100 * MS)


@pytest.mark.parametrize("method", ["start", "tick", "digest", "packet"])
def test_with_on_error_the_one_that_fails_is_called_no_more(method: str) -> None:
    clock, log, said, switch = Time(), [], [], Switch()
    bad, good = Logs([]), Logs(log)
    bad.fails = method
    runner = Runner(
        [Managed(Api("s", clock), switch, [bad, good])], clock, lambda *failed: said.append(failure(*failed))
    )
    for at in (5, 15, 25):
        clock.coming.append((at * MS, lambda: switch.digests.append(("d", []))))
        clock.coming.append((at * MS, lambda: switch.packets.append((0, b"", 0))))
    runner.start()
    runner.run(30 * MS)
    assert [entry[1] for entry in bad.log].count(method) == 1
    assert times(log) == [10, 20, 30]
    assert times(log, "digest") == times(log, "packet") == [5, 15, 25]
    (told,) = said
    called = method if method in ("start", "tick") else f"on_{'packet_in' if method == 'packet' else method}"
    assert f"the controller Logs failed in {called} (" in str(told)
    assert str(told).endswith("ValueError: enough")


def test_one_that_is_stopped_comes_back() -> None:
    """It starts anew on all its switches, and ticks from then on; what came meanwhile is gone."""
    clock, log, switch = Time(), [], Switch()
    controller = Logs(log)
    runner = Runner(
        [Managed(Api("s1", clock), switch, [controller]), Managed(Api("s2", clock), Switch(), [controller])],
        clock,
    )
    runner.start()
    clock.coming.append((15 * MS, lambda: switch.digests.append(("d", []))))
    runner.at(12 * MS, lambda: runner.stop(controller))
    runner.at(25 * MS, lambda: runner.restart(controller))
    runner.run(46 * MS)
    assert times(log, "start") == [0, 0, 25, 25]
    assert times(log) == [10, 10, 35, 35, 45, 45]
    assert times(log, "digest") == []


def test_a_restart_while_it_runs_begins_its_period_anew() -> None:
    clock, log = Time(), []
    controller = Logs(log)
    runner = Runner([Managed(Api("s", clock), Switch(), [controller])], clock)
    runner.start()
    runner.at(14 * MS, lambda: runner.restart(controller))
    runner.run(40 * MS)
    assert times(log) == [10, 24, 34]


def test_messages_are_taken_once_and_reach_all() -> None:
    switch = Switch()
    distributor = Distributor(switch)
    box = Mailbox()
    heard: list[Messages] = []

    class Server:
        def deliver(self, messages: Messages) -> None:
            heard.append(messages)

    server = Server()
    distributor.listen(box)
    distributor.listen(server)
    switch.digests, switch.packets, switch.idle = [("d", [("x", 1)])], [(7, b"p", 0)], [("t", ())]
    distributor.poll()
    assert heard == [Messages([("d", [("x", 1)])], [(7, b"p", 0)], [("t", ())])]
    assert (box.take_digests(), box.take_packet_in(), box.take_packet_in()) == (
        [("d", [("x", 1)])],
        (7, b"p", 0),
        None,
    )
    distributor.leave(server)
    switch.digests = [("d", [])]
    distributor.poll()
    assert len(heard) == 1
    assert box.take_digests() == [("d", [])]


def test_many_entries_whose_timeout_has_come_are_handed_over_some_at_a_time() -> None:
    """Others have their turn in between, and what a program that is replaced has left is forgotten."""
    switch = Switch()
    distributor = Distributor(switch)
    came: list[int] = []
    free: list[bool] = []

    class Server:
        def deliver(self, messages: Messages) -> None:
            came.extend(row[0] for _, row in messages.idle)
            free.append(len(messages.idle) <= MOST_IDLE)

    distributor.listen(Server())
    switch.idle = [("t", (number,)) for number in range(3 * MOST_IDLE + 7)]
    distributor.poll()
    assert came == list(range(3 * MOST_IDLE + 7))
    assert free == [True] * 4

    def again(messages: Messages) -> None:
        distributor.forget()
        came.extend(row[0] for _, row in messages.idle)

    came.clear()
    Server.deliver = lambda _, messages: again(messages)  # type: ignore[method-assign,assignment,misc]
    switch.idle = [("t", (number,)) for number in range(2 * MOST_IDLE)]
    distributor.poll()
    assert came == list(range(MOST_IDLE))


def test_a_control_plane_that_fails_keeps_no_messages_from_others(capfd: pytest.CaptureFixture[str]) -> None:
    switch, box = Switch(), Mailbox()
    distributor = Distributor(switch)

    class Broken:
        def deliver(self, messages: Messages) -> None:
            raise KeyError(0)

    distributor.listen(Broken())
    distributor.listen(box)
    switch.digests = [("d", [])]
    distributor.poll()
    assert box.take_digests() == [("d", [])]
    assert "KeyError: 0" in capfd.readouterr().err


def test_a_full_mailbox_drops_and_counts() -> None:
    box = Mailbox()
    box.deliver(Messages([("d", [])] * (MOST_WAITING - 1)))
    box.deliver(Messages([("d", [])] * 3, [(0, b"", 0)] * (MOST_WAITING + 5)))
    assert box.dropped == {"digests": 2, "packet_ins": 5}
    assert len(box.take_digests()) == MOST_WAITING
    box.deliver(Messages([("d", [])]))
    assert len(box.take_digests()) == 1


def test_a_period_of_nothing_is_refused() -> None:
    clock = Time()
    controller = Logs([])
    controller.period = 0
    runner = Runner([Managed(Api("s", clock), Switch(), [controller])], clock)
    with pytest.raises(TidegateError, match="the period of the controller Logs is 0"):
        runner.start()
