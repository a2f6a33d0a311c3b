"""Cells of registers and fields of digests that are not plain numbers, and which P4Infos are taken for one another."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate import p4 as programs
from tidegate.p4runtime import Server, connect
from tidegate.p4runtime.conftest import LOOPBACK, Bench, refused
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema, difference
from tidegate.p4runtime.translate.digests import data_fields, data_message

TEXT = """
#include <v1model.p4>
enum bit<12> Kind { a = 1, b = 0x800 }
enum Plain { one, two }
@p4runtime_translation("tidegate/vrf", string) type bit<10> vrf_t;
type bit<9> port_t;
struct H {}
struct M { bit<8> x; }
struct told_t { Plain plain; error e; int<8> s; bool yes; Kind kind; vrf_t vrf; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    register<bool>(4) flags;
    register<Kind>(4) kinds;
    register<port_t>(4) ports;
    register<vrf_t>(4) vrfs;
    register<int<8>>(4) signed;
    action called(in bit<8> x) { m.x = x; }
    apply {
        called(3);
        flags.write(0, true); kinds.write(0, Kind.b);
        digest<told_t>(1, { Plain.two, s.parser_error, -3, true, Kind.b, (vrf_t) 2 });
        digest<bit<8>>(1, m.x);
        s.egress_spec = 2;
    }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@pytest.fixture(scope="module")
def program() -> programs.Program:
    return programs.Program.from_text(TEXT)


@pytest.fixture
def bench(program: programs.Program) -> Iterator[Bench]:
    with Bench(program) as made:
        yield made


def cell(bench: Bench, name: str, index: int, **data: Any) -> Any:
    made = p4.Entity(register_entry={"register_id": bench.ids(name), "index": {"index": index}})
    if data:
        made.register_entry.data.CopyFrom(p4.P4Data(**data))
    return made


@pytest.mark.parametrize(
    ("name", "data", "bits"),
    [
        ("flags", {"bool": True}, 1),
        ("kinds", {"enum_value": b"\x08\x00"}, 0x800),
        ("ports", {"bitstring": b"\x01\x00"}, 256),
        ("vrfs", {"bitstring": b"blue"}, 2),
        ("signed", {"bitstring": b"\xfd"}, 0xFD),
    ],
)
def test_cells_are_written_and_read_in_their_type(
    bench: Bench, name: str, data: dict[str, Any], bits: int
) -> None:
    written = cell(bench, name, 1, **data)
    bench.primary.write(("MODIFY", written))
    assert bench.pipeline.register_read(name, 1, 1).tolist() == [bits]
    assert bench.primary.read(cell(bench, name, 1)) == [written]
    wrong = cell(bench, name, 1, varbit={"bitstring": b"\x01", "bitwidth": 1})
    assert refused(bench, "MODIFY", wrong) == "INVALID_ARGUMENT"


def test_a_client_reads_and_sets_such_cells(program: programs.Program) -> None:
    pipeline = program.pipeline()
    server = Server(pipeline, program, address=LOOPBACK)
    server.start()
    try:
        with connect(server.address) as switch:
            for name, value in (("flags", 1), ("kinds", 0x800), ("ports", 256), ("signed", 0xFD)):
                switch.register_write(name, [value], 3)
                assert pipeline.register_read(name, 3, 1).tolist() == [value]
                assert switch.register_read(name, 3, 1).tolist() == [value]
    finally:
        server.stop()


def test_digests_have_names_for_enums_and_errors_and_signed_numbers(program: programs.Program) -> None:
    schema = Schema(parse_p4info(program.p4info), translations={"tidegate/vrf": {"blue": 2}})
    number = next(i for i, (name, _) in schema.digests.items() if name == "told_t")
    values = [1, 0, 0xFD, 1, 0x800, 2]
    data = data_message(schema, schema.digests[number][1], values)
    members = data.struct.members
    assert (members[0].enum, members[1].error, members[2].bitstring) == ("two", "NoError", b"\xfd")
    assert (members[3].bool, members[4].enum_value, members[5].bitstring) == (True, b"\x08\x00", b"blue")
    name, fields = data_fields(schema, number, data)
    assert (name, [value for _, value in fields]) == ("told_t", values)


def test_a_digest_of_one_number_is_that_number(program: programs.Program) -> None:
    schema = Schema(parse_p4info(program.p4info))
    number = next(i for i, (name, _) in schema.digests.items() if name != "told_t")
    data = data_message(schema, schema.digests[number][1], [3])
    assert data.bitstring == b"\x03"
    assert data_fields(schema, number, data)[1] == [("f0", 3)]


HEADERS = """
#include <v1model.p4>
header h_t { bit<8> a; int<8> s; }
struct inner_t { h_t one; bit<8> x; }
struct told_t { inner_t inner; h_t two; }
struct H { h_t h; h_t none; }
struct M { }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    apply { digest<told_t>(1, { { h.h, 7 }, h.none }); digest<h_t>(1, h.h); s.egress_spec = 2; }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def test_digests_have_headers_as_such() -> None:
    """With whether they are valid; one that is not has no fields."""
    program = programs.Program.from_text(HEADERS)
    with Bench(program) as bench:
        for name in ("told_t", "h_t"):
            entry = p4.DigestEntry(digest_id=bench.ids(name), config={"max_list_size": 1})
            bench.primary.write(("INSERT", p4.Entity(digest_entry=entry)))
        bench.pipeline.process(1, 1, b"\x05\xfd")
        bench.server.poll()
        (told,), (alone,) = (bench.primary.next("digest").data for _ in range(2))
        header = p4.P4Header(is_valid=True, bitstrings=[b"\x05", b"\xfd"])
        assert alone.header == header
        inner, two = told.struct.members
        assert (inner.struct.members[0].header, inner.struct.members[1].bitstring) == (header, b"\x07")
        assert two.header == p4.P4Header()
        schema = Schema(parse_p4info(program.p4info))
        assert data_fields(schema, bench.ids("told_t"), told)[1] == [
            *(("inner.one.$valid$", 1), ("inner.one.a", 5), ("inner.one.s", 0xFD), ("inner.x", 7)),
            *(("two.$valid$", 0), ("two.a", 0), ("two.s", 0)),
        ]


def test_entries_that_lead_to_hidden_actions_are_read() -> None:
    table = """@hidden action secret() {}
    table t { key = { h.h.a: exact @name("a"); } actions = { secret; NoAction; } default_action = secret(); }
    apply { t.apply(); """
    with Bench(programs.Program.from_text(HEADERS.replace("apply { digest", f"{table} digest"))) as bench:
        entry = bench.entry("t", {"exact": {"value": b"\x05"}}, action=bench.action("secret"))
        bench.primary.write(("INSERT", entry))
        assert bench.primary.read(bench.entry("t")) == [entry]
        (default,) = bench.primary.read(bench.entry("t", is_default_action=True))
        assert default.table_entry.action.action.action_id == bench.ids("secret")


def test_value_sets_of_new_types_have_names() -> None:
    text = HEADERS.replace(
        "header h_t {",
        '@p4runtime_translation("tidegate/vrf", string) type bit<8> vrf_t; header h_t { vrf_t v;',
    )
    text = text.replace(
        "{ state start { p.extract(h.h); transition accept; }",
        """{
        value_set<vrf_t>(4) vrfs;
        state start { p.extract(h.h); transition select(h.h.v) { vrfs: accept; default: accept; } }""",
    )
    with Bench(programs.Program.from_text(text)) as bench:
        entry = p4.ValueSetEntry(value_set_id=bench.ids("vrfs"))
        entry.members.add().match.add(field_id=1, exact={"value": b"blue"})
        bench.primary.write(("MODIFY", p4.Entity(value_set_entry=entry)))
        assert bench.pipeline.value_set_read("vrfs") == [[b"\x02"]]
        asked = p4.ValueSetEntry(value_set_id=entry.value_set_id)
        assert bench.primary.read(p4.Entity(value_set_entry=asked)) == [p4.Entity(value_set_entry=entry)]


def test_actions_that_no_table_has_make_no_difference(program: programs.Program) -> None:
    ours = parse_p4info(program.p4info)
    assert [action.preamble.name for action in ours.actions] == ["I.called"]
    assert not ours.actions[0].params
    theirs = parse_p4info(program.p4info)
    del theirs.actions[:]
    assert difference(ours, theirs) is None
    assert difference(theirs, ours) is None
    theirs.registers[0].size += 1
    assert difference(ours, theirs) is not None
