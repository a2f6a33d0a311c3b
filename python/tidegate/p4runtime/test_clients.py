"""Calls of others give way to those of a primary of the default role; large reads are consistent and complete."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any

import pytest

from tidegate.p4runtime.clients import GIVE_WAY_S, SERVED_S, Clients
from tidegate.p4runtime.conftest import Bench
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import p4


def context(peer: str) -> Any:
    return SimpleNamespace(peer=lambda: peer, peer_identities=lambda: None, is_active=lambda: True)


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


def test_a_large_table_is_read_whole_and_in_order(bench: Bench) -> None:
    table = bench.ids("exact_table")

    def entry(key: int) -> Any:
        made = p4.TableEntry(table_id=table)
        made.match.add(field_id=1, exact={"value": key.to_bytes(6).lstrip(b"\0")})
        made.action.action.action_id = bench.ids("forward")
        made.action.action.params.add(param_id=1, value=b"\x01")
        return p4.Entity(table_entry=made)

    # More than are read in one go, and no multiple of it.
    keys = [0x0200_0000_0000 + number for number in range(9001)]
    for at in range(0, len(keys), 1000):
        bench.primary.write(*[("INSERT", entry(key)) for key in keys[at : at + 1000]])
    asked = p4.Entity(table_entry={"table_id": table})
    found = bench.primary.read(asked)
    values = [int.from_bytes(one.table_entry.match[0].exact.value) for one in found]
    assert [value for value in values if value in set(keys)] == keys
    only = bench.primary.read(entry(keys[5000]))
    assert [one.table_entry.match[0].exact.value for one in only] == [keys[5000].to_bytes(6)]
    filtered = p4.Entity(table_entry={"table_id": table})
    filtered.table_entry.action.action.action_id = bench.ids("forward")
    assert len(bench.primary.read(filtered)) >= len(keys)
