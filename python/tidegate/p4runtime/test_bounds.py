"""Budgets of the server and of its client, each gone beyond: those that other tests of this folder do not concern."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from google.protobuf import struct_pb2

from tidegate import TidegateError
from tidegate import p4 as programs
from tidegate.p4runtime import Limits, connection
from tidegate.p4runtime.arbitration import Arbitration, Rules, Stream
from tidegate.p4runtime.clients import Call, Clients
from tidegate.p4runtime.conftest import (
    TEXT,
    Bench,
    code,
    exact,
    group,
    member,
    multicast,
    one_shot,
    refused,
    register,
    served,
    value_set,
)
from tidegate.p4runtime.connection import Connection, Refused
from tidegate.p4runtime.digests import Digests
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.base import INSERT, MODIFY

SHARES = 4096


def context(peer: str) -> Any:
    return SimpleNamespace(peer=lambda: peer, peer_identities=lambda: None, is_active=lambda: True)


# Calls.


def test_all_clients_together_have_so_many_calls() -> None:
    clients = Clients(Limits(calls=3, calls_per_client=2), lambda: {"ipv4:1.0.0.9:1": ""})
    with ExitStack() as open_:
        for host, port in ((1, 1), (1, 2), (2, 1)):
            open_.enter_context(clients.call(context(f"ipv4:1.0.0.{host}:{port}")))
        with (
            pytest.raises(P4Error, match="there are 3 calls already") as caught,
            clients.call(context("ipv4:1.0.0.3:1")),
        ):
            pass
        assert caught.value.code == Code.RESOURCE_EXHAUSTED
        # A primary's call is apart.
        open_.enter_context(clients.call(context("ipv4:1.0.0.9:1")))


def taken(clients: Clients, calls: list[Call], how: Any) -> int:
    """How many of some calls have what `how` waits for while none of them gives it back."""
    stop, counted = threading.Event(), threading.Semaphore(0)

    def take(call: Call) -> None:
        with how(call):
            counted.release()
            stop.wait(20)

    threads = [threading.Thread(target=take, args=(call,)) for call in calls]
    for thread in threads:
        thread.start()
    found = 0
    while counted.acquire(timeout=0.3):
        found += 1
    stop.set()
    for thread in threads:
        thread.join()
    return found


@pytest.mark.parametrize(
    ("role", "places", "slots"), [("", 1, 8), ("other", 2, 1), (None, 2, 2)], ids=["default", "role", "none"]
)
def test_large_answers_and_work_have_places(role: str | None, places: int, slots: int) -> None:
    """More calls than there are places for: the others wait."""
    peers = {} if role is None else {"ipv4:1.0.0.1:1": role}
    clients = Clients(Limits(calls_per_primary=8), lambda: peers)
    with ExitStack() as open_:
        calls = [open_.enter_context(clients.call(context("ipv4:1.0.0.1:1"))) for _ in range(8)]
        assert {call.role for call in calls} == {role}
        assert taken(clients, calls, clients.place) == places
        assert taken(clients, calls, lambda call: call.slot) == slots


def test_places_of_large_answers_are_a_setting() -> None:
    clients = Clients(Limits(large_answers=3), lambda: {})
    with ExitStack() as open_:
        calls = [open_.enter_context(clients.call(context(f"ipv4:1.0.0.{host}:1"))) for host in range(5)]
        assert taken(clients, calls, clients.place) == 3


# Roles.


def test_names_of_roles_have_a_length() -> None:
    arbitration = Arbitration(1, Limits(role_name=5))
    for name, why in (("fives", None), ("sixsix", "a role's name has 5 characters at most")):
        stream = Stream(client=name)
        arbitration.join(stream)
        update = p4.MasterArbitrationUpdate(device_id=1, role={"name": name})
        if why is None:
            arbitration.update(stream, update)
        else:
            with pytest.raises(P4Error, match=why) as caught:
                arbitration.update(stream, update)
            assert caught.value.code == Code.RESOURCE_EXHAUSTED


def test_configurations_of_roles_are_settings() -> None:
    def config(*names: str) -> Any:
        made = p4.Any(type_url="type.googleapis.com/google.protobuf.Struct")
        struct = struct_pb2.Struct()
        struct.update({"objects": list(names)})
        made.value = struct.SerializeToString()
        return made

    limits = Limits(role_objects=2, role_name=3, role_bytes=200)
    assert Rules.of(config("abc", "def"), limits).objects == ("abc", "def")
    for beyond in (config("a", "b", "c"), config("abcd"), config("a", "b" * 200)):
        with pytest.raises(P4Error) as caught:
            Rules.of(beyond, limits)
        assert caught.value.code == Code.RESOURCE_EXHAUSTED


# Digests.


@pytest.mark.parametrize("asked", [0, 100])
def test_a_list_has_so_many_digests(everything: programs.Program, asked: int) -> None:
    """Whatever a controller asks for."""
    digests = Digests(Schema(parse_p4info(everything.p4info)), Limits(digests_per_list=10), clock=lambda: 0)
    number = digests._ids["seen_t"]
    sizes = {"max_list_size": asked, "max_timeout_ns": 1 << 40}
    digests.write(INSERT, p4.DigestEntry(digest_id=number, config=sizes))
    sent = [
        len(message.data)
        for source in range(25)
        for _, message in digests.offer("seen_t", [("from", source), ("port", 1)])
    ]
    assert sent == [10, 10]


# What entries and groups have.


def test_sets_groups_and_copies_have_so_many_members(bench: Bench) -> None:
    bench.primary.write(("INSERT", member(bench, "choices", 1, "drop")))
    for entity in (
        one_shot(bench, *[(1, 1)] * (SHARES + 1)),
        group(bench, 1, *[(number, 1) for number in range(SHARES + 1)]),
        multicast(1, *[(1, instance) for instance in range(SHARES + 1)]),
    ):
        assert refused(bench, "INSERT", entity) == "RESOURCE_EXHAUSTED"
    bench.primary.write(("INSERT", multicast(1, *[(1, instance) for instance in range(SHARES)])))


@pytest.mark.parametrize(("semantics", "most"), [("weights", 65_536), ("members", 4096)])
def test_a_group_of_a_program_without_a_largest_size_has_one(semantics: str, most: int) -> None:
    text = TEXT.replace("@max_group_size(8)", f'@selector_size_semantics("sum_of_{semantics}")')
    with Bench(programs.Program.from_text(text)) as bench:
        assert refused(bench, "INSERT", group(bench, 1, size=most + 1)) == "RESOURCE_EXHAUSTED"
        bench.primary.write(("INSERT", group(bench, 1, size=most)), ("INSERT", group(bench, 2, size=0)))


def test_messages_name_fields_without_a_name_by_their_ids(bench: Bench) -> None:
    wrong = value_set(bench, b"")
    with pytest.raises(Refused) as caught:
        bench.primary.write(("MODIFY", wrong))
    assert "field 1 of value set" in caught.value.errors[0].message
    wrong.value_set_entry.members[0].ClearField("match")
    with pytest.raises(Refused) as caught:
        bench.primary.write(("MODIFY", wrong))
    assert "field 1 must be given" in caught.value.errors[0].message


def test_members_and_what_they_replace_count_for_a_batch(bench: Bench) -> None:
    """A batch that is done whole has 16 384 of them."""
    groups = [multicast(number, *[(1, instance) for instance in range(SHARES)]) for number in range(1, 4)]
    bench.primary.write(*[("INSERT", one) for one in groups])
    whole = [(MODIFY, one) for one in groups]
    with pytest.raises(Refused, match="16384") as caught:
        bench.primary.write_updates(whole, "ROLLBACK_ON_ERROR")
    assert caught.value.code == "UNIMPLEMENTED"
    bench.primary.write_updates(whole[:2], "ROLLBACK_ON_ERROR")


def test_an_entry_of_too_much_is_in_a_batch_of_others(bench: Bench) -> None:
    updates = [
        ("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"))),
        ("INSERT", multicast(1, *[(1, instance) for instance in range(SHARES + 1)])),
        ("MODIFY", register(bench, "cells", 1, b"\x01")),
    ]
    with pytest.raises(Refused) as caught:
        bench.primary.write(*updates)
    assert [code(caught.value, at) for at in range(3)] == ["OK", "RESOURCE_EXHAUSTED", "OK"]


# A client.


@pytest.fixture
def small(everything: programs.Program, monkeypatch: pytest.MonkeyPatch) -> Iterator[Connection]:
    """A client that takes little, of a server that sends much."""
    monkeypatch.setattr(connection, "MOST_MESSAGE", 10_000)
    monkeypatch.setattr(connection, "MOST_METADATA", 10_000)
    with served(everything) as made:
        yield made.primary


def test_a_client_takes_so_large_a_message(small: Connection) -> None:
    with pytest.raises(Refused, match="larger than max") as caught:
        small.read(p4.Entity(register_entry={}))
    assert caught.value.code == "RESOURCE_EXHAUSTED"


def test_a_client_takes_so_many_errors_of_a_batch(small: Connection) -> None:
    nothing = ("INSERT", p4.Entity())
    with pytest.raises(Refused) as caught:
        small.write(*[nothing] * 10)
    assert len(caught.value.errors) == 10
    with pytest.raises(Refused) as caught:
        small.write(*[nothing] * 4000)
    assert (caught.value.code, caught.value.errors) == ("RESOURCE_EXHAUSTED", [])


def test_a_client_waits_so_long(everything: programs.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    stop = threading.Event()

    def late(*_: Any) -> Any:
        stop.wait(20)
        return p4.CapabilitiesResponse()

    with served(everything) as made:
        monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
        monkeypatch.setattr(made.server._config, "get", late)
        with pytest.raises(Refused) as caught:
            made.primary.get_config()
        assert caught.value.code == "DEADLINE_EXCEEDED"
        stop.set()
        with pytest.raises(TidegateError, match=r"the server sent no digest in 0\.2 s"):
            made.primary.next("digest", 0.2)


def test_header_fields_are_a_setting(everything: programs.Program) -> None:
    with served(everything, header_bytes=2000) as made:
        call = made.primary._channel.unary_unary("/p4.v1.P4Runtime/Capabilities")
        assert call(b"", metadata=[("note", "x" * 1000)])
        with pytest.raises(grpc.RpcError) as caught:
            call(b"", metadata=[("note", "x" * 3000)])
        assert caught.value.code().name == "RESOURCE_EXHAUSTED"
