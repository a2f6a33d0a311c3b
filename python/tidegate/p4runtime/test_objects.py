"""Action profiles, arrays, copies and value sets; batches of anything."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from tidegate import p4 as programs
from tidegate.p4runtime.conftest import (
    TEXT,
    Bench,
    clone_session,
    code,
    exact,
    frame,
    group,
    led,
    member,
    multicast,
    one_shot,
    p4_code,
    refused,
    register,
    value_set,
)
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import p4


def test_members_and_groups(bench: Bench) -> None:
    write = bench.primary.write
    write(*[("INSERT", member(bench, "choices", i, "forward", bytes([i]))) for i in (1, 2, 3)])
    assert refused(bench, "INSERT", member(bench, "choices", 1, "drop")) == "ALREADY_EXISTS"
    assert refused(bench, "INSERT", member(bench, "choices", 0, "drop")) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", member(bench, "choices", 4)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", member(bench, "choices", 4, "mark", b"\x01")) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", member(bench, "choices", 4, "drop")) == "NOT_FOUND"
    assert bench.primary.read(member(bench, "choices", 2)) == [
        member(bench, "choices", 2, "forward", b"\x02")
    ]
    write(("INSERT", group(bench, 9, (1, 1), (2, 3))))
    assert bench.primary.read(group(bench, 9)) == [group(bench, 9, (1, 1), (2, 3))]
    assert refused(bench, "INSERT", group(bench, 9)) == "ALREADY_EXISTS"
    assert refused(bench, "INSERT", group(bench, 10, (7, 1))) == "NOT_FOUND"
    assert refused(bench, "INSERT", group(bench, 10, (1, 0))) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", group(bench, 10, (1, 1), (1, 1))) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", group(bench, 10, (1, 9))) == "RESOURCE_EXHAUSTED"
    assert refused(bench, "INSERT", group(bench, 10, size=9)) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", group(bench, 9, size=4)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", group(bench, 1, profile="hops")) == "INVALID_ARGUMENT"
    write(("INSERT", led(bench, "selected", action_profile_group_id=9)))
    assert bench.primary.read(bench.entry("selected")) == [led(bench, "selected", action_profile_group_id=9)]
    write(("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\x07"))))
    ports = [0, 0, 0, 0]
    for source in Random(1).sample(range(1 << 48), 400):
        ((port, _),) = bench.pipeline.process(1, 1, frame(source=source, probe=b"\0\x01" + bytes(6)))
        ports[port] += 1
    # One weighs three times as much as the other.
    assert ports[1] + ports[2] == 400
    assert 2.2 < ports[2] / ports[1] < 4
    assert refused(bench, "DELETE", group(bench, 9)) == "FAILED_PRECONDITION"
    assert refused(bench, "DELETE", member(bench, "choices", 1)) == "FAILED_PRECONDITION"
    write(("MODIFY", led(bench, "selected", action_profile_member_id=3)), ("DELETE", group(bench, 9)))
    assert refused(bench, "DELETE", member(bench, "choices", 3)) == "FAILED_PRECONDITION"
    assert refused(bench, "MODIFY", led(bench, "selected", action_profile_group_id=9)) == "NOT_FOUND"
    write(("DELETE", bench.entry("selected", exact(b"\x01"))), ("DELETE", member(bench, "choices", 3)))
    assert len(bench.primary.read(p4.Entity(action_profile_member={}))) == 2
    assert bench.primary.read(p4.Entity(action_profile_group={})) == []


def test_action_profiles_without_a_selector(bench: Bench) -> None:
    bench.primary.write(("INSERT", member(bench, "hops", 4_000_000_000, "forward", b"\x05")))
    entry = led(bench, "indirect", action_profile_member_id=4_000_000_000)
    bench.primary.write(("INSERT", entry))
    assert bench.primary.read(bench.entry("indirect")) == [entry]
    assert refused(bench, "MODIFY", led(bench, "indirect", action_profile_member_id=6)) == "NOT_FOUND"
    assert refused(bench, "MODIFY", led(bench, "indirect", action_profile_group_id=6)) == "INVALID_ARGUMENT"
    direct = bench.entry("indirect", exact(b"\x01"), action=bench.action("forward", b"\x01"))
    assert refused(bench, "MODIFY", direct) == "INVALID_ARGUMENT"
    for number in range(1, 8):
        bench.primary.write(("INSERT", member(bench, "hops", number, "forward", b"\x05")))
    assert refused(bench, "INSERT", member(bench, "hops", 8, "forward", b"\x05")) == "RESOURCE_EXHAUSTED"


def test_one_shot_sets_of_actions(bench: Bench) -> None:
    bench.primary.write(("INSERT", one_shot(bench, (1, 1), (2, 2))))
    assert bench.primary.read(bench.entry("selected")) == [one_shot(bench, (1, 1), (2, 2))]
    assert bench.primary.read(p4.Entity(action_profile_member={})) == []
    bench.primary.write(
        ("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\x07")))
    )
    probe = b"\0\x01" + bytes(6)
    ports = {bench.pipeline.process(1, 1, frame(source=n, probe=probe))[0][0] for n in range(50)}
    assert ports == {1, 2}
    assert refused(bench, "MODIFY", one_shot(bench, (1, 0))) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", one_shot(bench, (1, 9))) == "INVALID_ARGUMENT"
    # A profile has either those or members.
    assert refused(bench, "INSERT", member(bench, "choices", 1, "drop")) == "INVALID_ARGUMENT"
    bench.primary.write(("MODIFY", one_shot(bench, (3, 1))))
    assert bench.pipeline.process(1, 1, frame(probe=probe))[0][0] == 3
    bench.primary.write(("DELETE", one_shot(bench)), ("INSERT", member(bench, "choices", 1, "drop")))
    assert refused(bench, "INSERT", one_shot(bench, (1, 1))) == "INVALID_ARGUMENT"


def test_counters(bench: Bench) -> None:
    def counter(index: int | None = None, **data: int) -> Any:
        entry = p4.CounterEntry(counter_id=bench.ids("packets"))
        if index is not None:
            entry.index.index = index
            entry.index.SetInParent()
        if data:
            entry.data.CopyFrom(p4.CounterData(**data))
        return p4.Entity(counter_entry=entry)

    bench.pipeline.process(1, 3, frame())
    (seen,) = bench.primary.read(counter(3))
    assert (seen.counter_entry.data.packet_count, seen.counter_entry.data.byte_count) == (1, len(frame()))
    bench.primary.write(("MODIFY", counter(3, packet_count=9, byte_count=8)))
    cells = [e.counter_entry for e in bench.primary.read(counter())]
    assert [c.index.index for c in cells] == list(range(8))
    assert [c.data.packet_count for c in cells] == [0, 0, 0, 9, 0, 0, 0, 0]
    bench.primary.write(("MODIFY", counter(packet_count=1, byte_count=1)), ("MODIFY", counter(2)))
    assert {e.counter_entry.data.packet_count for e in bench.primary.read(p4.Entity(counter_entry={}))} == {1}
    assert refused(bench, "MODIFY", counter(8, packet_count=1)) == "OUT_OF_RANGE"
    assert refused(bench, "MODIFY", counter(-1, packet_count=1)) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", counter(1, packet_count=-1)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", counter(1, packet_count=1)) == "INVALID_ARGUMENT"


def test_meters(bench: Bench) -> None:
    def meter(index: int | None = None, **config: int) -> Any:
        entry = p4.MeterEntry(meter_id=bench.ids("rates"))
        if index is not None:
            entry.index.index = index
            entry.index.SetInParent()
        if config:
            entry.config.CopyFrom(p4.MeterConfig(**config))
        return p4.Entity(meter_entry=entry)

    rates = {"cir": 10, "cburst": 70, "pir": 20, "pburst": 130}
    bench.primary.write(("MODIFY", meter(1, **rates)))
    assert bench.primary.read(meter(1)) == [meter(1, **rates)]
    bench.primary.write(
        ("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\x02")))
    )
    passed = [len(bench.pipeline.process(1, 1, frame())) for _ in range(4)]
    assert passed == [1, 1, 0, 0], "two frames of 62 bytes fit in the peak's burst"
    bench.primary.write(("MODIFY", meter(1)))
    assert bench.primary.read(meter(1)) == [meter(1)]
    assert len(bench.pipeline.process(1, 1, frame())) == 1
    bench.primary.write(("MODIFY", meter(**rates)))
    assert bench.primary.read(meter()) == [meter(i, **rates) for i in range(8)]
    assert refused(bench, "MODIFY", meter(8, **rates)) == "OUT_OF_RANGE"
    assert refused(bench, "MODIFY", meter(1, **{**rates, "cir": -1})) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", meter(1, **{**rates, "eburst": 1})) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", meter(1, **{**rates, "pir": 1 << 62})) == "OUT_OF_RANGE"
    assert refused(bench, "DELETE", meter(1)) == "INVALID_ARGUMENT"


@pytest.mark.slow
def test_registers_single_and_whole(bench: Bench) -> None:
    bench.pipeline.process(1, 5, frame(source=0xABCDEF))
    (seen,) = bench.primary.read(register(bench, "cells", 5))
    assert seen == register(bench, "cells", 5, b"\xab\xcd\xef")
    bench.primary.write(("MODIFY", register(bench, "cells", 6, b"\0\0\x09")))
    assert bench.pipeline.register_read("cells", 4, 4).tolist() == [0, 0xABCDEF, 9, 0]
    bench.primary.write(("MODIFY", register(bench, "cells", None, b"\x07")))
    cells = [e.register_entry for e in bench.primary.read(register(bench, "cells"))]
    assert len(cells) == 65_536
    assert [c.index.index for c in cells] == list(range(65_536))
    assert {c.data.bitstring for c in cells} == {b"\x07"}
    assert refused(bench, "MODIFY", register(bench, "cells", 65_536, b"\x01")) == "OUT_OF_RANGE"
    assert refused(bench, "MODIFY", register(bench, "cells", -1, b"\x01")) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", register(bench, "cells", 1, b"\x01" + bytes(6))) == "OUT_OF_RANGE"
    assert refused(bench, "MODIFY", register(bench, "cells", 1)) == "INVALID_ARGUMENT"
    assert refused(bench, "DELETE", register(bench, "cells", 1, b"\x01")) == "INVALID_ARGUMENT"
    # As in the specification's example.
    bench.primary.write(("INSERT", register(bench, "cells", 1, b"\x01")))
    assert len(bench.primary.read(p4.Entity(register_entry={}))) == 65_536 + 4


@pytest.mark.parametrize(
    ("value", "bits", "read"),
    [
        (b"\x9d", 0x9D, b"\x9d"),
        (b"\xff\x9d", 0x9D, b"\x9d"),
        (b"\x7f", 0x7F, b"\x7f"),
        (b"\0\x05", 5, b"\x05"),
        (b"\xff", 255, b"\xff"),
    ],
)
def test_signed_registers_are_two_s_complement(bench: Bench, value: bytes, bits: int, read: bytes) -> None:
    bench.primary.write(("MODIFY", register(bench, "signed_cells", 1, value)))
    assert bench.pipeline.register_read("signed_cells", 1, 1).tolist() == [bits]
    assert bench.primary.read(register(bench, "signed_cells", 1)) == [
        register(bench, "signed_cells", 1, read)
    ]
    assert refused(bench, "MODIFY", register(bench, "signed_cells", 1, b"\0\x9d")) == "OUT_OF_RANGE"


def test_multicast_groups(bench: Bench) -> None:
    bench.primary.write(("INSERT", multicast(5, (1, 0), (2, 7), metadata=b"five")))
    assert bench.primary.read(multicast(5)) == [multicast(5, (1, 0), (2, 7), metadata=b"five")]
    entry = bench.entry("exact_table", exact(b"\x01"), action=bench.action("to_group", b"\x05"))
    bench.primary.write(("INSERT", entry))
    assert sorted(port for port, _ in bench.pipeline.process(1, 3, frame())) == [1, 2]
    bench.primary.write(("MODIFY", multicast(5, (3, 1))))
    assert bench.primary.read(multicast(0)) == [multicast(5, (3, 1))]
    assert [port for port, _ in bench.pipeline.process(1, 1, frame())] == [3]
    assert refused(bench, "INSERT", multicast(5)) == "ALREADY_EXISTS"
    assert refused(bench, "MODIFY", multicast(6)) == "NOT_FOUND"
    assert refused(bench, "INSERT", multicast(0)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", multicast(65_536)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", multicast(6, (1, 1), (1, 1))) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", multicast(6, (1, 70_000))) == "INVALID_ARGUMENT"
    backed = multicast(6, (1, 1))
    backed.packet_replication_engine_entry.multicast_group_entry.replicas[0].backup_replicas.add(port=b"\x02")
    assert refused(bench, "INSERT", backed) == "UNIMPLEMENTED"
    bench.primary.write(("DELETE", multicast(5)))
    assert bench.pipeline.process(1, 1, frame()) == []
    assert refused(bench, "DELETE", multicast(5)) == "NOT_FOUND"


def test_ports_of_older_clients_are_plain_numbers_and_read_as_such(bench: Bench) -> None:
    old = p4.MulticastGroupEntry(multicast_group_id=7)
    old.replicas.add(egress_port=2, instance=1)
    entity = p4.Entity(packet_replication_engine_entry={"multicast_group_entry": old})
    bench.primary.write(("INSERT", entity))
    assert bench.primary.read(entity) == [entity]
    bench.primary.write(("MODIFY", multicast(7, (2, 1))))
    assert bench.primary.read(entity) == [multicast(7, (2, 1))]


def test_clone_sessions(bench: Bench) -> None:
    session = clone_session(9, (2, 1), (3, 1), packet_length_bytes=20, class_of_service=2)
    bench.primary.write(("INSERT", session))
    assert bench.primary.read(clone_session(9)) == [session]
    entry = bench.entry("exact_table", exact(b"\x01"), action=bench.action("clone_to", b"\x01", b"\x09"))
    bench.primary.write(("INSERT", entry))
    out = sorted((port, len(data)) for port, data in bench.pipeline.process(1, 4, frame()))
    assert out == [(1, len(frame())), (2, 20), (3, 20)]
    bench.primary.write(("MODIFY", clone_session(9, (4, 0))))
    assert sorted(port for port, _ in bench.pipeline.process(1, 4, frame())) == [1, 4]
    assert refused(bench, "INSERT", session) == "ALREADY_EXISTS"
    assert refused(bench, "INSERT", clone_session(0)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", clone_session(1, class_of_service=8)) == "INVALID_ARGUMENT"
    assert refused(bench, "INSERT", clone_session(1, packet_length_bytes=-1)) == "INVALID_ARGUMENT"
    bench.primary.write(("DELETE", clone_session(9)))
    assert bench.primary.read(clone_session(0)) == []
    assert len(bench.pipeline.process(1, 4, frame())) == 1


def test_value_sets(bench: Bench) -> None:
    bench.primary.write(
        ("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\x01")))
    )
    other = frame(kind=0x9999, probe=b"\x01" + bytes(7))
    assert bench.pipeline.process(1, 1, other)[0][1][15] == 0
    bench.primary.write(("MODIFY", value_set(bench, b"\x99\x99", b"\x12")))
    assert bench.primary.read(value_set(bench)) == [value_set(bench, b"\x99\x99", b"\x12")]
    assert bench.pipeline.process(1, 1, other)[0][1][15] == 11
    assert refused(bench, "MODIFY", value_set(bench, b"\x01", b"\x01")) == "ALREADY_EXISTS"
    assert (
        refused(bench, "MODIFY", value_set(bench, *[bytes([i]) for i in range(1, 6)])) == "RESOURCE_EXHAUSTED"
    )
    assert refused(bench, "INSERT", value_set(bench, b"\x01")) == "INVALID_ARGUMENT"
    assert bench.primary.read(p4.Entity(value_set_entry={})) == [value_set(bench, b"\x99\x99", b"\x12")]
    bench.primary.write(("MODIFY", value_set(bench)))
    assert bench.pipeline.process(1, 1, other)[0][1][15] == 0


def test_a_batch_goes_on_after_an_error_and_says_what_came_of_each(bench: Bench) -> None:
    good = [bench.entry("exact_table", exact(bytes([i])), action=bench.action("drop")) for i in (1, 2)]
    bad = bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\xff\xff"))
    extern = p4.Entity(extern_entry={})
    with pytest.raises(Refused) as caught:
        bench.primary.write(
            ("INSERT", good[0]),
            ("INSERT", bad),
            ("INSERT", good[0]),
            ("INSERT", extern),
            ("INSERT", p4.Entity()),
            ("INSERT", good[1]),
        )
    codes = [p4_code(e.canonical_code) for e in caught.value.errors]
    assert codes == ["OK", "OUT_OF_RANGE", "ALREADY_EXISTS", "UNIMPLEMENTED", "INVALID_ARGUMENT", "OK"]
    assert len(bench.primary.read(bench.entry("exact_table"))) == 2


@pytest.mark.parametrize("atomicity", ["ROLLBACK_ON_ERROR", "DATAPLANE_ATOMIC"])
def test_batches_that_are_done_whole_or_not_at_all(bench: Bench, atomicity: str) -> None:
    drop = bench.action("drop")
    first, second, third = (bench.entry("exact_table", exact(bytes([i])), action=drop) for i in (1, 2, 3))
    bench.primary.write(("INSERT", first))

    def write(*updates: tuple[str, Any]) -> None:
        request = p4.WriteRequest(
            device_id=1, election_id={"low": 1}, atomicity=getattr(p4.WriteRequest, atomicity)
        )
        for kind, entity in updates:
            request.updates.add(type=getattr(p4.Update, kind)).entity.CopyFrom(entity)
        bench.primary.call("Write", request)

    digest = p4.Entity(digest_entry={"digest_id": 1})
    for updates, expected in [
        ((("INSERT", second), ("DELETE", first), ("DELETE", third)), ["ABORTED", "ABORTED", "NOT_FOUND"]),
        ((("INSERT", p4.Entity()), ("INSERT", second)), ["INVALID_ARGUMENT", "ABORTED"]),
        ((("INSERT", multicast(4, (1, 1))), ("INSERT", first)), ["ABORTED", "ALREADY_EXISTS"]),
    ]:
        with pytest.raises(Refused) as caught:
            write(*updates)
        assert [p4_code(error.canonical_code) for error in caught.value.errors] == expected
        assert len(bench.primary.read(bench.entry("exact_table"))) == 1
    # What this switch cannot do whole is refused as such, before any of it is tried.
    for batch in ([("INSERT", second), ("INSERT", digest)], [("INSERT", second)] * 257):
        with pytest.raises(Refused) as caught:
            write(*batch)
        assert (caught.value.code, caught.value.errors) == ("UNIMPLEMENTED", [])
        assert len(bench.primary.read(bench.entry("exact_table"))) == 1
    write(("INSERT", second), ("DELETE", first), ("INSERT", multicast(4, (1, 1))))
    assert bench.pipeline.table_entries("exact_table")[0].match[0].value == 2


def test_errors_of_large_batches(bench: Bench) -> None:
    """One code for each update, and the words."""
    entry = bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"))
    for count in (20, 4000):
        refused = [("DELETE", entry)] * count
        with pytest.raises(Refused) as caught:
            bench.primary.write(*refused)
        assert [error.canonical_code for error in caught.value.errors] == [5] * count
        assert "no entry with this match" in caught.value.errors[0].message
        assert f"{count} of {count} updates" in str(caught.value)


def test_reads_of_everything_and_errors_of_reads(bench: Bench) -> None:
    kinds = [
        "table_entry",
        "action_profile_member",
        "action_profile_group",
        "counter_entry",
        "meter_entry",
        "direct_counter_entry",
        "direct_meter_entry",
        "packet_replication_engine_entry",
        "value_set_entry",
        "digest_entry",
        "extern_entry",
    ]
    found = bench.primary.read(*[p4.Entity(**{kind: {}}) for kind in kinds])
    assert {e.WhichOneof("entity") for e in found} == {
        "table_entry",
        "counter_entry",
        "meter_entry",
        "value_set_entry",
    }
    wrong = [
        p4.Entity(table_entry={"table_id": 1}),
        p4.Entity(),
        p4.Entity(counter_entry={"counter_id": bench.ids("packets"), "index": {"index": 99}}),
        p4.Entity(extern_entry={"extern_type_id": 0x81}),
    ]
    with pytest.raises(Refused) as caught:
        bench.primary.read(*wrong, p4.Entity(table_entry={}))
    assert [p4_code(e.canonical_code) for e in caught.value.errors] == [
        "INVALID_ARGUMENT",
        "INVALID_ARGUMENT",
        "OUT_OF_RANGE",
        "UNIMPLEMENTED",
        "OK",
    ]


@pytest.mark.parametrize("what", ["group", "multicast group"])
def test_what_clients_add_is_within_the_state_of_the_program(what: str) -> None:
    """Until there is no room, which deleting gives back; a batch that is refused leaves nothing."""
    text = TEXT.replace("@max_group_size(8) ", "")
    assert text != TEXT
    limits = {"state_bytes": 96 << 20, "queue_bytes": 1 << 20}
    with Bench(programs.Program.from_text(text, limits=limits)) as bench:

        def entity(number: int) -> Any:
            if what == "group":
                return group(bench, number, (1, 65_536), size=0)
            return multicast(number, *[(1, rid) for rid in range(2048)])

        def fill() -> tuple[int, Refused]:
            for number in range(1, 1000):
                try:
                    bench.primary.write(("INSERT", entity(number)))
                except Refused as error:
                    return number, error
            raise AssertionError("there is no end to it")

        bench.primary.write(("INSERT", member(bench, "choices", 1, "drop")))
        count, error = fill()
        assert code(error) == "RESOURCE_EXHAUSTED"
        for part in (f"{what} {count} ", "bytes more", "`state_bytes`"):
            assert part in error.errors[0].message
        bench.primary.write(*[("DELETE", entity(number)) for number in range(1, count)])
        whole = [(p4.Update.INSERT, entity(number)) for number in range(1, count + 1)]
        with pytest.raises(Refused):
            bench.primary.write_updates(whole, "ROLLBACK_ON_ERROR")
        assert fill()[0] == count
