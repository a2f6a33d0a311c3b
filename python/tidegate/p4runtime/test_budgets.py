"""Reads, writes, programs and connections that are little to ask for and much to serve."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tidegate import p4 as programs
from tidegate import web
from tidegate.control import operations as op
from tidegate.p4runtime import Limits, arbitration, config, digests, running, server, sharing
from tidegate.p4runtime.clients import client_of
from tidegate.p4runtime.compiling import Compiler
from tidegate.p4runtime.conftest import (
    TEXT,
    Bench,
    Served,
    call,
    channel,
    code,
    exact,
    member,
    multicast,
    one_shot,
    served,
    wait_for,
)
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.errors import P4Error
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate import arrays
from tidegate.p4runtime.translate.base import INSERT, MODIFY


def limited(bench: Bench, **given: int) -> None:
    """Limits of the program that runs, and of those that take its place."""
    configuration = bench.server._config
    configuration._limits = configuration.current()._limits = Limits(**given)


def test_what_groups_have_counts_for_a_read(bench: Bench) -> None:
    """A group of a thousand copies is one entity; requests that differ in what nobody reads are not the same one."""
    limited(bench, answer_bytes=1 << 20)
    bench.primary.write(("INSERT", multicast(7, *[(1, instance) for instance in range(1000)])))
    asked = [multicast(7, (1, junk)) for junk in range(20)]
    assert len(bench.primary.read(*asked[:15])) == 15
    with pytest.raises(Refused, match="or 1 MiB; read fewer at a time") as caught:
        bench.primary.read(*asked)
    assert caught.value.code == "RESOURCE_EXHAUSTED"


NOTED = bytes(1000)


def noted(bench: Bench) -> None:
    """An entry and a default entry with metadata, a set of actions, a group with metadata, and one with a node of many ports."""
    entry = bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"), metadata=NOTED)
    default = bench.entry("exact_table", action=bench.action("drop"), metadata=NOTED, is_default_action=True)
    chosen = one_shot(bench, *[(1, 1)] * 8)
    chosen.table_entry.metadata = bytes(800)
    bench.primary.write(("INSERT", entry), ("MODIFY", default), ("INSERT", chosen))
    bench.primary.write(("INSERT", multicast(8, metadata=NOTED)), ("INSERT", multicast(9)))
    node = bench.pipeline.act(op.NodeAdd(1, list(range(100))))
    bench.pipeline.act(op.NodeJoin(9, node))


@pytest.mark.parametrize(
    "asked",
    [
        lambda bench, junk: bench.entry("exact_table", exact(b"\x01"), idle_timeout_ns=junk),
        lambda bench, junk: bench.entry(
            "exact_table", is_default_action=True, counter_data={"packet_count": junk}
        ),
        lambda bench, junk: bench.entry("selected", exact(b"\x01"), idle_timeout_ns=junk),
        lambda bench, junk: p4.Entity(
            direct_counter_entry={
                "table_entry": bench.entry("exact_table", exact(b"\x01"), idle_timeout_ns=junk).table_entry
            }
        ),
        lambda _, junk: multicast(8, (1, junk)),
        lambda _, junk: multicast(9, (1, junk)),
    ],
    ids=[
        "metadata",
        "a default's metadata",
        "a set",
        "by its counter",
        "a group's metadata",
        "ports of a node",
    ],
)
def test_what_is_large_counts_for_a_read(bench: Bench, asked: Callable[[Bench, int], Any]) -> None:
    """Requests that differ in what nobody reads give the same large thing again."""
    limited(bench, answer_bytes=100_000)
    noted(bench)
    assert len(bench.primary.read(*[asked(bench, junk) for junk in range(15)])) == 15
    with pytest.raises(Refused, match="read fewer at a time") as caught:
        bench.primary.read(*[asked(bench, junk) for junk in range(110)])
    assert caught.value.code == "RESOURCE_EXHAUSTED"


def test_what_is_large_counts_behind_a_program_that_keeps_it(bench: Bench) -> None:
    limited(bench, answer_bytes=100_000)
    noted(bench)
    bench.primary.set_config("RECONCILE_AND_COMMIT", bench.primary.get_config())
    asked = [bench.entry("exact_table", exact(b"\x01"), idle_timeout_ns=junk) for junk in range(110)]
    (found,) = bench.primary.read(asked[0])
    assert found.table_entry.metadata == NOTED
    with pytest.raises(Refused, match="read fewer at a time"):
        bench.primary.read(*asked)


def test_values_of_members_count_for_a_read() -> None:
    text = TEXT.replace("action drop()", "action wide(bit<8000> value) { }\n    action drop()")
    text = text.replace("{ forward; mark; }", "{ forward; mark; wide; }")
    with Bench(programs.Program.from_text(text)) as made:
        limited(made, answer_bytes=100_000)
        made.primary.write(("INSERT", member(made, "hops", 1, "wide", b"\x01")))

        def asked(junk: int) -> Any:
            entity = member(made, "hops", 1)
            entity.action_profile_member.action.action_id = junk
            return entity

        assert len(made.primary.read(*map(asked, range(50)))) == 50
        with pytest.raises(Refused, match="read fewer at a time"):
            made.primary.read(*map(asked, range(110)))


def test_an_answer_of_many_bytes_waits_for_a_place(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few entities with much in each take as much memory as many, until the client has taken them."""
    monkeypatch.setattr(running, "SMALL_BYTES", 10_000)
    bench.primary.write(("INSERT", multicast(7, *[(1, instance) for instance in range(100)])))
    asked = [multicast(7, (1, junk)) for junk in range(10)]
    taken: list[Any] = []
    place = bench.server._clients.place

    def take(call: Any) -> Any:
        taken.append(call)
        return place(call)

    monkeypatch.setattr(bench.server._clients, "place", take)
    assert len(bench.primary.read(asked[0])) == 1
    assert not taken
    assert len(bench.primary.read(*asked)) == 10
    assert len(taken) == 1


def test_a_read_looks_at_so_many_entries(everything: programs.Program) -> None:
    with served(everything, looks=40) as made:
        made.primary.write(*[("INSERT", made.entry(key)) for key in range(1, 10)])
        asked = [
            p4.Entity(table_entry={"table_id": made.ids("exact_table"), "metadata": bytes([note])})
            for note in range(1, 6)
        ]
        assert made.primary.read(*asked[:4]) == []
        with pytest.raises(Refused, match="takes a look at more than 40 entries") as caught:
            made.primary.read(*asked)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
        # The same request is read once, though it finds nothing.
        assert made.primary.read(*asked[:1] * 100) == []
        # Tables without entries, and profiles without members, take time too.
        nothing = [
            p4.Entity(action_profile_member={"member_id": 0, "action": {"action_id": junk}})
            for junk in range(30)
        ]
        assert made.primary.read(*nothing[:20]) == []
        with pytest.raises(Refused, match="takes a look at more than 40 entries"):
            made.primary.read(*nothing)
        made.is_well()


def test_a_long_read_makes_way_for_the_primary(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    device = bench.server._config.current().device
    act, asked = device.act, threading.Event()

    def slow(operation: Any) -> Any:
        asked.set()
        time.sleep(0.02)
        return act(operation)

    request = p4.ReadRequest(device_id=1)
    request.entities.extend(multicast(0, (1, junk)) for junk in range(1000))
    with channel(bench.server.address) as other:
        monkeypatch.setattr(device, "act", slow)
        reading = call(other, "Read")(iter([request.SerializeToString()]))
        assert asked.wait(20)
        began = time.monotonic()
        bench.primary.write(("INSERT", multicast(7)))
        assert time.monotonic() - began < 5
        with pytest.raises(grpc.RpcError, match="a call of the primary waits for this read") as caught:
            list(reading)
        assert caught.value.code().name == "ABORTED"
        request = p4.ReadRequest(device_id=1, entities=request.entities[:100])
        assert list(call(other, "Read")(iter([request.SerializeToString()])))


def whole(made: Served, name: str) -> Any:
    """All cells of a register."""
    return p4.Entity(register_entry={"register_id": made.ids(name), "data": {"bitstring": b"\x05"}})


def test_a_write_sets_so_many_cells(everything: programs.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    taken: list[int] = []
    slices = arrays.slices

    def counted(*given: int) -> Iterator[tuple[int, int]]:
        for first, some in slices(*given):
            taken.append(some)
            yield first, some

    monkeypatch.setattr(arrays, "slices", counted)
    with served(everything, cells=100) as made:
        small, large = whole(made, "signed_cells"), whole(made, "cells")
        # An array that is larger than the budget is set, and what has no cells is done beyond it, too.
        with pytest.raises(Refused) as caught:
            made.primary.write(("MODIFY", large), ("MODIFY", small), ("INSERT", made.entry(1)))
        assert [code(caught.value, at) for at in range(3)] == ["OK", "RESOURCE_EXHAUSTED", "OK"]
        assert "set 100 cells at most" in caught.value.errors[1].message
        assert sum(taken) == 65_536
        # Groups that are replaced or removed are not cells, whatever they count for a slice.
        groups = [("INSERT", multicast(number)) for number in range(1, 11)]
        made.primary.write(*groups, ("MODIFY", small), *[("DELETE", entity) for _, entity in groups])
        # What is refused takes no time.
        taken.clear()
        with pytest.raises(Refused) as caught:
            made.primary.write(*[("MODIFY", small)] * 25, *[("MODIFY", large)] * 100)
        codes = [code(caught.value, at) for at in range(125)]
        assert codes == ["OK"] * 25 + ["RESOURCE_EXHAUSTED"] * 100
        assert sum(taken) == 100


def test_a_write_that_is_cancelled_stops(everything: programs.Program) -> None:
    with served(everything, cells=(1 << 40) - 1) as made:
        request = p4.WriteRequest(device_id=1, election_id={"low": 1})
        update = p4.Update(type=p4.Update.MODIFY, entity=whole(made, "cells"))
        request.updates.extend([update] * 4096)
        with channel(made.server.address) as open_:
            writing = call(open_, "Write", "unary_unary").future(request.SerializeToString())
            time.sleep(0.5)
            assert writing.is_active()
            writing.cancel()
            began = time.monotonic()
            made.primary.write(("MODIFY", whole(made, "signed_cells")))
            assert time.monotonic() - began < 5
        made.is_well()


def test_the_primary_of_the_default_role_compiles_next() -> None:
    compiler = Compiler(Limits(compilations=1, compile_s=20))
    done: list[str] = []
    release = threading.Event()

    def compile_(name: str, *, first: bool, wait: bool = False) -> None:
        with compiler.turn(name, first):
            done.append(name)
            if wait:
                release.wait(20)

    threads = [threading.Thread(target=compile_, args=("one",), kwargs={"first": False, "wait": True})]
    threads[0].start()
    wait_for(lambda: done == ["one"])
    for name, first in (("two", False), ("primary", True)):
        threads.append(threading.Thread(target=compile_, args=(name,), kwargs={"first": first}))
        threads[-1].start()
        wait_for(lambda first=first: compiler._waiting[first] == 1)  # type: ignore[misc]
    for name, first, said in (
        ("three", False, "other programs are"),
        ("primary", True, "other programs are"),
        ("two", False, "another program of this client is"),
    ):
        with pytest.raises(P4Error, match=f"{said} being compiled"), compiler.turn(name, first):
            pass
    release.set()
    for thread in threads:
        thread.join()
    assert done == ["one", "primary", "two"]


def test_a_client_has_one_program_compiled_at_a_time() -> None:
    """The other place to wait is for somebody else."""
    compiler = Compiler(Limits(compilations=1))
    with compiler.turn("one"):
        with pytest.raises(P4Error, match="another program of this client") as caught, compiler.turn("one"):
            pass
        assert caught.value.code.name == "RESOURCE_EXHAUSTED"
    with compiler.turn("one"):
        pass


class Sockets(sharing.Shares):
    """Connections that are not there."""

    def __init__(self, peers: list[sharing.Peer], total: int) -> None:
        super().__init__(9559, 32, total, total // 8)
        self.peers = peers
        self.ended: list[sharing.Peer] = []

    def _open(self) -> dict[sharing.Peer, int]:
        return {peer: number for number, peer in enumerate(self.peers)}

    def _end(self, file: int, peer: sharing.Peer) -> None:
        assert self.peers[file] == peer
        self.ended.append(peer)


@pytest.mark.parametrize("many", ["127.0.0.{}", "2001:db8::{}"])
def test_a_host_with_many_addresses_leaves_connections_for_others(many: str) -> None:
    theirs = [(many.format(1 + number % 5), number) for number in range(125)]
    others: list[Any] = [("10.0.0.1", 1), ("10.0.0.2", 1), ("2001:db8:1::1", 1)]
    shares = Sockets([*others, *theirs], 128)
    shares.look(called={theirs[0]}, primary=set())
    assert len(shares.ended) == 125 - 32
    assert not {*others, theirs[0]} & {*shares.ended}
    shares = Sockets(theirs[:32], 128)
    shares.look(called=set(), primary=set())
    assert shares.ended == []


def test_some_connections_are_kept_free() -> None:
    """Those of several networks have their share each, and there are too many together."""
    theirs = [(f"10.0.0.{1 + number % 4}", number) for number in range(125)]
    shares = Sockets([("10.0.0.9", 1), *theirs], 128)
    shares.look(called={theirs[0]}, primary=set())
    assert len(shares.ended) == 126 - 112
    assert not {("10.0.0.9", 1), theirs[0]} & {*shares.ended}
    shares = Sockets(theirs[:112], 128)
    shares.look(called=set(), primary=set())
    assert shares.ended == []


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("ipv4:127.0.0.1:5", "ipv4:127.0.0.2:6", True),
        ("ipv4:127.0.0.1:5", "ipv6:%5B::1%5D:6", True),
        ("ipv4:10.0.0.1:5", "ipv6:%5B::ffff:10.0.0.1%5D:6", True),
        ("ipv6:%5B2001:db8::1%5D:5", "ipv6:%5B2001:db8::7:0:2%5D:6", True),
        ("ipv6:%5B2001:db8::1%5D:5", "ipv6:%5B2001:db8:0:1::1%5D:6", False),
        ("ipv4:10.0.0.1:5", "ipv4:10.0.0.2:5", False),
        ("unix:/a", "unix:/b", False),
    ],
)
def test_who_is_one_client(one: str, other: str, same: bool) -> None:
    def client(peer: str) -> str:
        context: Any = SimpleNamespace(peer=lambda: peer, peer_identities=lambda: None)
        return client_of(context)

    assert (client(one) == client(other)) is same


def test_a_p4info_that_cannot_be_that_of_the_program_is_not_looked_at(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    def parsed(text: str) -> Any:
        raise AssertionError(f"{len(text)} bytes are parsed")

    monkeypatch.setattr(config, "parse_p4info", parsed)
    small = p4.ForwardingPipelineConfig(p4_device_config=TEXT.encode())
    small.p4info.pkg_info.arch = "v1model"
    with pytest.raises(Refused, match="whose own is much longer"):
        bench.primary.set_config("VERIFY", small)
    small.ClearField("p4info")
    monkeypatch.setattr(Compiler, "p4info", parsed)
    with pytest.raises(Refused, match="needs P4Info"):
        bench.primary.set_config("VERIFY", small)


def test_metadata_of_a_refused_packet_is_cut() -> None:
    packet = p4.PacketOut(metadata=[p4.PacketMetadata()] * 100_000)
    echoed = p4.PacketOut()
    server._echo(packet, echoed)
    assert len(echoed.metadata) <= 64


def test_digests_without_acknowledgment_are_so_many(everything: programs.Program) -> None:
    """Small lists first, and then large ones."""
    schema = Schema(parse_p4info(everything.p4info))
    found = digests.Digests(schema, Limits(digests_sent=100), clock=lambda: 0)
    number = found._ids["seen_t"]

    def config(most: int) -> Any:
        sizes = {"max_list_size": most, "max_timeout_ns": 1 << 40, "ack_timeout_ns": 1 << 60}
        return p4.DigestEntry(digest_id=number, config=sizes)

    found.write(INSERT, config(1))
    for source in range(101):
        assert len(list(found.offer("seen_t", [("from", source), ("port", 1)]))) == 1
    found.write(MODIFY, config(20))
    for source in range(1000, 3000):
        list(found.offer("seen_t", [("from", source), ("port", 1)]))
    wanted = found._wanted[number]
    assert len(wanted.sent) <= 120
    assert len(wanted.sent) == sum(len(keys) for _, keys in wanted.lists.values())


def test_names_that_a_role_may_have_are_forgotten() -> None:
    rules = arbitration.Rules(objects=("a*",), _patterns=(re.compile("a.*"),))
    for number in range(40_000):
        assert rules.allows(f"a{number}")
        assert not rules.allows(f"b{number}")
    assert len(rules._known) <= arbitration.MOST_KNOWN


def test_parts_and_content_types_of_metrics_are_few() -> None:
    registry = CollectorRegistry()
    for number in range(20):
        Gauge(f"g{number}", "A number.", registry=registry)
    snapshot = web.Snapshot(registry)
    snapshot.renew()
    parts = {id(snapshot.only([f"g{number}"])) for number in range(20)}
    assert len(parts) <= web.MOST_PARTS + 1
    for version in range(20):
        kind = f"application/openmetrics-text; version=1.0.{version}"
        if snapshot.has_room(kind):
            snapshot.text(kind, generate_latest, packed=False)
    assert len(snapshot._texts) == web.MOST_KINDS
