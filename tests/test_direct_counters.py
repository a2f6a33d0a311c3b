"""Direct counters: each hit of an entry is counted, whatever the action then does with the packet, and nothing else is."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import p4

SOURCE = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> kind; bit<8> other; }
struct headers { h_t h; }
struct metadata {}
parser P(packet_in p, out headers hdr, inout metadata m, inout standard_metadata_t s) {
    state start { p.extract(hdr.h); transition accept; }
}
control V(inout headers hdr, inout metadata m) { apply {} }
control I(inout headers hdr, inout metadata m, inout standard_metadata_t s) {
    direct_counter(CounterType.packets_and_bytes) exact_hits;
    direct_counter(CounterType.packets_and_bytes) ternary_hits;
    action pass() { s.egress_spec = 1; }
    action deny() { mark_to_drop(s); }
    action leave() { s.egress_spec = 1; exit; }
    action again() { s.egress_spec = 1; if (s.instance_type == 0) { resubmit_preserving_field_list(0); } }
    action change() { hdr.h.other = hdr.h.other + 1; s.egress_spec = 1; }
    action hide() { hdr.h.setInvalid(); s.egress_spec = 1; }
    table exacts {
        key = { hdr.h.kind: exact; }
        actions = { pass; deny; leave; again; change; hide; }
        default_action = change();
        counters = exact_hits;
    }
    table ternaries {
        key = { hdr.h.other: ternary; }
        actions = { pass; deny; leave; again; change; hide; }
        default_action = pass();
        counters = ternary_hits;
    }
    apply {
        exacts.apply();
        if (hdr.h.isValid()) { ternaries.apply(); }
    }
}
control E(inout headers hdr, inout metadata m, inout standard_metadata_t s) { apply {} }
control C(inout headers hdr, inout metadata m) { apply {} }
control D(packet_out p, in headers hdr) { apply { p.emit(hdr.h); } }
V1Switch(P(), V(), I(), E(), C(), D()) main;
"""
ACTIONS = ["pass", "deny", "leave", "again", "change", "hide"]
KINDS = st.integers(0, 7)


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> p4.Program:
    file = tmp_path_factory.mktemp("p4") / "hits.p4"
    file.write_text(SOURCE)
    return p4.compile(file)


@pytest.mark.parametrize("engine", ["interp", "jit"])
@settings(max_examples=60, deadline=None)
@given(
    exact=st.dictionaries(KINDS, st.sampled_from(ACTIONS)),
    ternary=st.lists(st.tuples(KINDS, KINDS, st.sampled_from(ACTIONS)), max_size=5),
    packets=st.lists(st.tuples(KINDS, KINDS, st.integers(0, 30)), max_size=40),
)
def test_every_hit_is_counted(
    program: p4.Program,
    engine: Literal["interp", "jit"],
    exact: dict[int, str],
    ternary: list[tuple[int, int, str]],
    packets: list[tuple[int, int, int]],
) -> None:
    switch = program.pipeline(engine)
    handles = {kind: switch.table_add("exacts", [kind], action) for kind, action in exact.items()}
    # Masks are of bits; the smaller priority wins.
    entries = [(value & mask, mask, action) for value, mask, action in ternary]
    rows = {}
    for at, (value, mask, action) in enumerate(entries):
        if (value, mask) not in [one[:2] for one in entries[:at]]:
            rows[at] = switch.table_add("ternaries", [f"{value}&&&{mask}"], action, priority=at + 1)
    hits: dict[tuple[str, int], list[int]] = {}

    def hit(table: str, at: int, length: int) -> None:
        count = hits.setdefault((table, at), [0, 0])
        count[0] += 1
        count[1] += length

    def ingress(kind: int, other: int, length: int, first: bool) -> None:
        if kind in exact:
            hit("exact_hits", handles[kind], length)
        action = exact.get(kind, "change")
        again = action == "again"
        other = (other + (action == "change")) % 256
        if action not in ("leave", "hide"):
            found = next((at for at in rows if other & entries[at][1] == entries[at][0]), None)
            if found is not None:
                hit("ternary_hits", rows[found], length)
                again |= entries[found][2] == "again"
        if again and first:
            ingress(kind, original, length, first=False)

    for now, (kind, original, rest) in enumerate(packets):
        packet = bytes([kind, original]) + bytes(rest)
        switch.process(now * 10**6, 0, packet)
        ingress(kind, original, len(packet), first=True)
    for name, handle_list in (("exact_hits", handles.values()), ("ternary_hits", rows.values())):
        for handle in handle_list:
            found_counts = [int(cell) for cell in switch.counter_read(name, handle, 1)[0]]
            assert found_counts == hits.get((name, handle), [0, 0])
