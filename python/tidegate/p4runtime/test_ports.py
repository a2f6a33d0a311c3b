"""Ports in messages: names of a translated type, replicas, and ports that are watched."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tidegate import p4 as programs
from tidegate.p4runtime import Server, connect
from tidegate.p4runtime.conftest import (
    LOOPBACK,
    Bench,
    Entities,
    code,
    exact,
    group,
    member,
    one_shot,
    refused,
)
from tidegate.p4runtime.connection import Connection, Refused
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.values import PORTS, Translations, is_port

PROGRAM = """
#include <v1model.p4>
@p4runtime_translation("URI", string) type bit<9> port_id_t;
@p4runtime_translation("", string) type bit<10> vrf_id_t;
@p4runtime_translation("tidegate/hop", string) type bit<8> hop_id_t;
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { vrf_id_t vrf; hop_id_t hop; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action send(port_id_t port, vrf_id_t vrf, hop_id_t hop) { s.egress_spec = (bit<9>) port; m.vrf = vrf; m.hop = hop; }
    table t { key = { h.h.a: exact; } actions = { send; NoAction; } }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""
NAMES: Translations = {PORTS: {"s1": 1, "s2": 2}}


class Named(Entities):
    """A server whose ports have names, and its primary."""

    def __init__(self, program: programs.Program, server: Server, primary: Connection) -> None:
        super().__init__(parse_p4info(program.p4info))
        self.server, self.primary = server, primary

    def sent(self, *values: bytes) -> Any:
        return self.entry("t", exact(b"\x01"), action=self.action("send", *values))

    def code_of(self, entity: Any, kind: str = "INSERT") -> str:
        with pytest.raises(Refused) as caught:
            self.primary.write((kind, entity))
        return code(caught.value)


@contextmanager
def named(uri: str = "", translations: Translations = NAMES) -> Iterator[Named]:
    program = programs.Program.from_text(PROGRAM.replace("URI", uri))
    with (
        Server(program.pipeline(), program, address=LOOPBACK, translations=translations) as server,
        Connection(server.address) as primary,
    ):
        primary.next("arbitration")
        yield Named(program, server, primary)


@pytest.mark.parametrize(
    ("uri", "name", "holds"),
    [
        ("", "port_id_t", True),
        ("", "PortId_t", True),
        ("p4.org/psa/v1/PortIdInHeader_t", "any", True),
        ("example/port", "any", True),
        ("", "vrf_id_t", False),
        ("tidegate/transport", "support_t", False),
    ],
)
def test_which_types_are_those_of_ports(uri: str, name: str, holds: bool) -> None:
    assert is_port(uri, name) is holds


@pytest.mark.parametrize("uri", ["", "example/port_id"])
def test_names_of_ports_are_those_of_types_of_ports_alone(uri: str) -> None:
    with named(uri) as made:
        entity = made.sent(b"s1", b"1", b"2")
        made.primary.write(("INSERT", entity))
        assert made.primary.read(made.entry("t")) == [entity]
        for values in ((b"s1", b"s1", b"2"), (b"s1", b"1", b"s2"), (b"s3", b"1", b"2")):
            assert made.code_of(made.sent(*values), "MODIFY") == "INVALID_ARGUMENT"


def test_a_value_has_one_form() -> None:
    with named() as made:
        for values in ((b"1", b"1", b"1"), (b"s1", b"01", b"1"), (b"s1", b"1", b"")):
            assert made.code_of(made.sent(*values)) == "INVALID_ARGUMENT"
        with pytest.raises(Refused) as caught:
            made.primary.write(("INSERT", made.sent(b"1", b"1", b"1")))
        assert "'1' is written 's1' in port_id_t" in caught.value.errors[0].message
        # A port without a name is a number.
        entity = made.sent(b"3", b"3", b"3")
        made.primary.write(("INSERT", entity))
        assert made.primary.read(made.entry("t")) == [entity]


def test_names_of_a_uri_are_those_of_no_other() -> None:
    with named("example/port", {"example/port": {"a": 1}, "": {"blue": 1}, PORTS: {"s1": 1}}) as made:
        made.primary.write(("INSERT", made.sent(b"a", b"blue", b"1")))
        for values in ((b"s1", b"2", b"2"), (b"2", b"2", b"blue")):
            assert made.code_of(made.sent(*values), "MODIFY") == "INVALID_ARGUMENT"


def replicated(kind: str, *ports: dict[str, Any]) -> Any:
    """A multicast group or a clone session with copies."""
    entity = p4.Entity()
    entry = getattr(entity.packet_replication_engine_entry, kind)
    if kind == "multicast_group_entry":
        entry.multicast_group_id = 1
    else:
        entry.session_id = 1
    for port in ports:
        entry.replicas.add(instance=1, **port)
    return entity


KINDS = ["multicast_group_entry", "clone_session_entry"]


@pytest.mark.parametrize("kind", KINDS)
def test_replicas_have_the_names_of_ports(kind: str) -> None:
    with named() as made:
        entity = replicated(kind, {"port": b"s1"}, {"port": b"s2"}, {"port": b"7"})
        made.primary.write(("INSERT", entity))
        assert made.primary.read(p4.Entity(packet_replication_engine_entry={})) == [entity]
        for wrong in (b"\x01", b"1", b"s3", b"511", b""):
            assert made.code_of(replicated(kind, {"port": wrong}), "MODIFY") == "INVALID_ARGUMENT"
        # The field that it had before has a number.
        entity = replicated(kind, {"egress_port": 1})
        made.primary.write(("MODIFY", entity))
        assert made.primary.read(p4.Entity(packet_replication_engine_entry={})) == [entity]


@pytest.mark.parametrize("kind", KINDS)
def test_a_replica_has_a_port(bench: Bench, kind: str) -> None:
    for wrong in ({}, {"port": b""}, {"port": b"\x01\xff"}):
        assert refused(bench, "INSERT", replicated(kind, wrong)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", replicated(kind, {"port": b"\xff\xff"})) == "OUT_OF_RANGE"


def test_a_client_writes_names_of_ports() -> None:
    with named() as made:
        made.primary.close()
        with connect(made.server.address, translations=NAMES, election_id=2) as switch:
            switch.multicast_set(1, [1, 3])
            switch.mirror_set(1, 2)
            (groups, sessions) = switch.connection.read(p4.Entity(packet_replication_engine_entry={}))
            entry = groups.packet_replication_engine_entry.multicast_group_entry
            assert [one.port for one in entry.replicas] == [b"s1", b"3"]
            entry = sessions.packet_replication_engine_entry.clone_session_entry
            assert [one.port for one in entry.replicas] == [b"s2"]


def test_no_port_can_be_watched(bench: Bench) -> None:
    """Ports do not go down, and so a member would be chosen whatever becomes of the port."""
    bench.primary.write(("INSERT", member(bench, "choices", 1, "drop")))
    in_group, in_set = group(bench, 1, (1, 1)), one_shot(bench, (1, 1))
    (share,) = in_group.action_profile_group.members
    (choice,) = in_set.table_entry.action.action_profile_action_set.action_profile_actions
    for entity, one in ((in_group, share), (in_set, choice)):
        for field, value in (("watch_port", b"\x01"), ("watch_port", bytes(65)), ("watch", 1)):
            setattr(one, field, value)
            assert refused(bench, "INSERT", entity) == "UNIMPLEMENTED"
        one.watch_port = b""
    bench.primary.write(("INSERT", in_group))
    (read,) = bench.primary.read(group(bench, 1))
    assert read.action_profile_group.members == in_group.action_profile_group.members
