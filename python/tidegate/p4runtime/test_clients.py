"""Calls of others give way to those of a primary of the default role; large reads are consistent and complete."""

from __future__ import annotations

import threading
import time
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.control import operations as op
from tidegate.p4runtime.clients import GIVE_WAY_S, MOST_SMALL, SERVED_S, Clients
from tidegate.p4runtime.conftest import Bench, call, channel
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.running import Nobody


def context(peer: str) -> Any:
    return SimpleNamespace(peer=lambda: peer, peer_identities=lambda: None, is_active=lambda: True)


def exact(bench: Bench, key: bytes) -> Any:
    """An entry of the exact table."""
    made = p4.TableEntry(table_id=bench.ids("exact_table"))
    made.match.add(field_id=1, exact={"value": key})
    made.action.action.action_id = bench.ids("forward")
    made.action.action.params.add(param_id=1, value=b"\x01")
    return p4.Entity(table_entry=made)


def waited(clients: Clients, call: Any) -> float:
    began = time.monotonic()
    clients.give_way(call)
    return time.monotonic() - began


def test_others_give_way_while_the_primary_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.p4runtime.clients.GIVE_WAY_S", 30.0)
    clients = Clients(Limits(), lambda: {"ipv4:1": "", "ipv4:2": "other"})
    with clients.call(context("ipv4:3")) as call, clients.call(context("ipv4:2")) as of_role:
        assert waited(clients, call) < 10
        with clients.call(context("ipv4:1")) as first:
            assert waited(clients, first) < 10
            passed = [threading.Event(), threading.Event()]

            def go(one: Any, event: threading.Event) -> None:
                clients.give_way(one)
                event.set()

            for one, event in zip((call, of_role), passed, strict=True):
                threading.Thread(target=go, args=(one, event), daemon=True).start()
            assert not any(event.wait(0.1) for event in passed)
        # Its call has ended.
        assert all(event.wait(20) for event in passed)


def test_they_do_not_wait_for_long_or_for_its_client(monkeypatch: pytest.MonkeyPatch) -> None:
    clients = Clients(Limits(), lambda: {"ipv4:1": ""})
    with clients.call(context("ipv4:3")) as call, clients.call(context("ipv4:1")) as first:
        assert GIVE_WAY_S / 2 < waited(clients, call) < 20
        monkeypatch.setattr("tidegate.p4runtime.clients.GIVE_WAY_S", 30.0)
        first.began -= 2 * SERVED_S
        clients._first[first] = first.began
        assert waited(clients, call) < 10


def test_one_of_them_goes_on_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are: each would go on as often as one alone."""
    monkeypatch.setattr("tidegate.p4runtime.clients.GIVE_WAY_S", 0.2)
    clients = Clients(Limits(), lambda: {"ipv4:1": ""})
    began: list[float] = []
    with clients.call(context("ipv4:3")) as call, clients.call(context("ipv4:1")):

        def go() -> None:
            clients.give_way(call)
            began.append(time.monotonic())

        start = time.monotonic()
        threads = [threading.Thread(target=go) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert all(at - start >= 0.2 * number for number, at in enumerate(sorted(began), 1))


def test_calls_of_others_are_worked_on_two_at_a_time() -> None:
    clients = Clients(Limits(), lambda: {"ipv4:1": "", "ipv4:2": "other"})
    with ExitStack() as open_:
        calls = [open_.enter_context(clients.call(context(f"ipv4:{port}"))) for port in (3, 4, 5, 2, 2, 1, 1)]
        taken = [one.slot.acquire(blocking=False) for one in calls]
    assert taken == [True, True, False, True, False, True, True]


def test_what_is_asked_for_several_times_is_read_once(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    reads: list[Any] = []
    act = Device.act

    def noted(device: Device, operation: Any) -> Any:
        reads.append(operation)
        return act(device, operation)

    monkeypatch.setattr(Device, "act", noted)
    key = b"\x02\0\0\0\0\x09"
    bench.primary.write(("INSERT", exact(bench, key)))
    asked = p4.Entity(table_entry={"table_id": bench.ids("exact_table")})
    found = bench.primary.read(asked, p4.Entity(counter_entry={}), asked, asked)
    of_key = [
        one for one in found if one.HasField("table_entry") and one.table_entry.match[0].exact.value == key
    ]
    assert len(of_key) == 3
    # Small answers are read once, large ones are begun and then read.
    assert len([one for one in reads if isinstance(one, op.TableRead)]) <= 2


def test_a_large_table_is_read_whole_and_in_order(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegate.p4runtime.device.READ_SLICES", 2)
    table = bench.ids("exact_table")

    def entry(key: int) -> Any:
        return exact(bench, key.to_bytes(6).lstrip(b"\0"))

    # More than are read in one go, and no multiple of it.
    keys = [0x0200_0000_0000 + number for number in range(4501)]
    for at in range(0, len(keys), 1000):
        bench.primary.write(*[("INSERT", entry(key)) for key in keys[at : at + 1000]])
    asked = p4.Entity(table_entry={"table_id": table})
    found = bench.primary.read(asked)
    values = [int.from_bytes(one.table_entry.match[0].exact.value) for one in found]
    assert [value for value in values if value in set(keys)] == keys
    by_key = entry(keys[3000])
    by_key.table_entry.ClearField("action")
    only = bench.primary.read(by_key)
    assert [one.table_entry.match[0].exact.value for one in only] == [keys[3000].to_bytes(6)]
    filtered = p4.Entity(table_entry={"table_id": table})
    filtered.table_entry.action.action.action_id = bench.ids("forward")
    assert len(bench.primary.read(filtered)) >= len(keys)


def test_large_requests_wait_for_room_before_they_are_parsed() -> None:
    """A client has half of it or one request; primaries have their own; small ones do not wait."""
    clients = Clients(Limits(parsed_bytes=4 << 20), lambda: {"ipv4:1.0.0.1:1": ""})
    peers = [f"ipv4:1.0.0.{host}:{port}" for host, port in ((1, 1), (2, 1), (2, 2), (3, 1), (4, 1))]
    with ExitStack() as open_:
        first, one, again, other, late = (open_.enter_context(clients.call(context(peer))) for peer in peers)
        running = open_.enter_context(ExitStack())
        done = {call: threading.Event() for call in (again, late)}

        def go(call: Any) -> None:
            with clients.room(call, 1 << 20):
                done[call].set()

        running.enter_context(clients.room(one, 2 << 20))
        threading.Thread(target=go, args=(again,), daemon=True).start()
        assert not done[again].wait(0.1)
        running.enter_context(clients.room(other, 2 << 20))
        threading.Thread(target=go, args=(late,), daemon=True).start()
        assert not done[late].wait(0.1)
        # Neither of these waits.
        running.enter_context(clients.room(late, MOST_SMALL))
        running.enter_context(clients.room(first, 4 << 20))
        running.close()
        assert all(event.wait(20) for event in done.values())
        # One that is larger than all room is done alone.
        with clients.room(one, 5 << 20):
            gone = context("ipv4:1.0.0.5:1")
            gone.is_active = lambda: False
            lost = open_.enter_context(clients.call(gone))
            with pytest.raises(Nobody), clients.room(lost, 1 << 20):
                pass


def test_large_requests_that_wait_have_a_budget_of_bytes() -> None:
    """Of all but primaries of the default role; what waits no longer counts no longer."""
    limits = Limits(parsed_bytes=1 << 20, waiting_bytes=2 << 20)
    clients = Clients(limits, lambda: {"ipv4:1.0.0.1:1": "", "ipv4:1.0.0.1:2": "x"})
    with ExitStack() as open_:

        def entered(host: int, port: int = 1) -> Any:
            return open_.enter_context(clients.call(context(f"ipv4:1.0.0.{host}:{port}")))

        first, second, role, *others = (entered(*of) for of in ((1,), (1,), (1, 2), (2,), (3,), (4,), (5,)))
        running = [ExitStack(), ExitStack()]
        for stack, call in zip(running, (others[0], first), strict=True):
            open_.enter_context(stack).enter_context(clients.room(call, 1 << 20))
        waiting = []

        def wait(call: Any) -> None:
            with clients.room(call, 1 << 20):
                pass

        for call in (second, others[1], others[2]):
            waiting.append(threading.Thread(target=wait, args=(call,), daemon=True))
            waiting[-1].start()
        end = time.monotonic() + 20
        while clients._waiting < 2 << 20 and time.monotonic() < end:
            time.sleep(0.01)
        assert clients._waiting == 2 << 20
        with pytest.raises(P4Error, match="2097152 bytes of large requests wait") as caught:
            wait(others[3])
        assert caught.value.code == Code.RESOURCE_EXHAUSTED
        # A role's primary has a slot of its own, which is free.
        wait(role)
        for stack in running:
            stack.close()
        for thread in waiting:
            thread.join(20)
            assert not thread.is_alive()
        assert clients._waiting == 0
        wait(others[3])


def test_a_server_parses_few_large_requests_at_a_time(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes: list[int] = []
    room = Clients.room

    def counted(self: Clients, call: Any, size: int) -> Any:
        sizes.append(size)
        return room(self, call, size)

    monkeypatch.setattr(Clients, "room", counted)
    request = p4.ReadRequest(device_id=1)
    asked = exact(bench, b"\x01")
    asked.table_entry.ClearField("action")
    request.entities.extend([asked] * 4000)
    with channel(bench.server.address) as other:
        list(call(other, "Read")(iter([request.SerializeToString()])))
    assert sizes == [request.ByteSize()]
    assert sizes[0] > MOST_SMALL
