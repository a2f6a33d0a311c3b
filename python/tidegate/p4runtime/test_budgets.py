"""Reads, writes, programs and connections that are little to ask for and much to serve."""

from __future__ import annotations

import re
import threading
import time
from typing import Any

import grpc
import pytest
from prometheus_client import CollectorRegistry, Gauge, generate_latest

from tidegate import p4 as programs
from tidegate import web
from tidegate.p4runtime import Limits, arbitration, config, digests, running, server, sharing
from tidegate.p4runtime.compiling import Compiler
from tidegate.p4runtime.conftest import TEXT, Bench, call, code, multicast, register, served, wait_for
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.errors import P4Error
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.base import INSERT, MODIFY


def test_what_groups_have_counts_for_a_read(bench: Bench) -> None:
    """A group of a thousand copies is one entity; requests that differ in what nobody reads are not the same one."""
    bench.primary.write(("INSERT", multicast(7, *[(1, instance) for instance in range(1000)])))
    asked = [multicast(7, (1, junk)) for junk in range(1100)]
    assert len(bench.primary.read(*asked[:100])) == 100
    with pytest.raises(Refused, match="or 64 MiB; read fewer at a time") as caught:
        bench.primary.read(*asked)
    assert caught.value.code == "RESOURCE_EXHAUSTED"


def test_a_read_looks_at_so_many_entries(everything: programs.Program) -> None:
    with served(everything, entities=10) as made:
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
        made.is_well()


def test_a_write_sets_so_many_cells(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_CELLS", 100)
    everywhere = register(bench, "cells", value=b"\x05")
    one = register(bench, "cells", 1, b"\x07")
    with pytest.raises(Refused) as caught:
        bench.primary.write(("MODIFY", everywhere), ("MODIFY", everywhere), ("MODIFY", one))
    said = [error.message for error in caught.value.errors]
    assert [code(caught.value, at) for at in range(3)] == [
        "OK",
        "RESOURCE_EXHAUSTED",
        "RESOURCE_EXHAUSTED",
    ], said
    assert "set 100 cells at most" in said[1]


def test_a_write_that_is_cancelled_stops(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "MOST_CELLS", 1 << 40)
    request = p4.WriteRequest(device_id=1, election_id={"low": 1})
    update = p4.Update(type=p4.Update.MODIFY, entity=register(bench, "cells", value=b"\x05"))
    request.updates.extend([update] * 4096)
    with grpc.insecure_channel(bench.server.address) as open_:
        writing = call(open_, "Write", "unary_unary").future(request.SerializeToString())
        time.sleep(0.5)
        assert writing.is_active()
        writing.cancel()
        began = time.monotonic()
        bench.primary.write(("MODIFY", register(bench, "cells", 1, b"\x07")))
        assert time.monotonic() - began < 5


def test_the_primary_of_the_default_role_compiles_next() -> None:
    compiler = Compiler(Limits(compilations=1, compile_s=20))
    done: list[str] = []
    release = threading.Event()

    def compile_(name: str, *, first: bool, wait: bool = False) -> None:
        with compiler.turn(first):
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
    for first in (False, True):
        with pytest.raises(P4Error, match="other programs are being compiled"), compiler.turn(first):
            pass
    release.set()
    for thread in threads:
        thread.join()
    assert done == ["one", "primary", "two"]


class Sockets(sharing.Shares):
    """Connections that are not there."""

    def __init__(self, peers: list[sharing.Peer], total: int) -> None:
        super().__init__(9559, 32, total)
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
    assert len(shares.ended) == 16
    assert not {*others, theirs[0]} & {*shares.ended}
    shares = Sockets(theirs[:112], 128)
    shares.look(called=set(), primary=set())
    assert shares.ended == []


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


def test_digests_without_acknowledgment_are_so_many(
    everything: programs.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Small lists first, and then large ones."""
    monkeypatch.setattr(digests, "MOST_SENT", 100)
    found = digests.Digests(Schema(parse_p4info(everything.p4info)), clock=lambda: 0)
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
