"""Table entries, with the codes of what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate.p4runtime.conftest import Bench, code, exact, frame, refused
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import p4

MATCHES: list[tuple[str, list[dict[str, Any]], int]] = [
    ("exact_table", [exact(b"\x0a\x0b")], 0),
    ("lpm_table", [{"lpm": {"value": b"\x0a\x00\x00\x00", "prefix_len": 8}}], 0),
    ("lpm_table", [{}], 0),
    ("ternary_table", [{"ternary": {"value": b"\x01\x00", "mask": b"\xff\x00"}}, exact(b"\x07")], 10),
    ("ternary_table", [{}, exact(b"\x00")], 1),
    ("range_table", [{"range": {"low": b"\x05", "high": b"\x01\x00"}}], 2_147_483_647),
    ("optional_table", [{"optional": {"value": b"\x09"}}], 3),
    ("optional_table", [{}], 4),
    ("vrfs", [exact(b"red")], 0),
    ("vrfs", [exact(b"17")], 0),
]


@pytest.mark.parametrize(("table", "found", "priority"), MATCHES)
def test_entries_of_every_match_kind_are_read_as_they_were_written(
    bench: Bench, table: str, found: list[dict[str, Any]], priority: int
) -> None:
    action = {"exact_table": ("forward", b"\x02"), "vrfs": ("in_vrf", b"blue")}.get(table, ("mark", b"\x2a"))
    more = {"priority": priority, "controller_metadata": 7, "metadata": b"mine"}
    entry = bench.entry(table, *found, action=bench.action(*action), **more)
    bench.primary.write(("INSERT", entry))
    (read,) = bench.primary.read(bench.entry(table))
    assert read == entry
    # By its key, and by other keys.
    assert bench.primary.read(bench.entry(table, *found, priority=priority)) == [entry]
    assert bench.primary.read(bench.entry(table, controller_metadata=8)) == []
    assert bench.primary.read(bench.entry(table, metadata=b"mine", controller_metadata=7)) == [entry]
    assert refused(bench, "INSERT", entry) == "ALREADY_EXISTS"
    changed = bench.entry(table, *found, action=bench.action(*action), priority=priority)
    bench.primary.write(("MODIFY", changed))
    assert bench.primary.read(bench.entry(table)) == [changed]
    bench.primary.write(("DELETE", bench.entry(table, *found, priority=priority)))
    assert bench.primary.read(bench.entry(table)) == []
    assert refused(bench, "DELETE", changed) == "NOT_FOUND"
    assert refused(bench, "MODIFY", changed) == "NOT_FOUND"


def test_values_need_not_be_canonical_and_are_read_canonical(bench: Bench) -> None:
    entry = bench.entry(
        "exact_table", exact(b"\0\0\0\0\0\0\0\x05"), action=bench.action("forward", b"\0\x03")
    )
    bench.primary.write(("INSERT", entry))
    (read,) = bench.primary.read(bench.entry("exact_table"))
    assert read.table_entry.match[0].exact.value == b"\x05"
    assert read.table_entry.action.action.params[0].value == b"\x03"
    assert refused(bench, "INSERT", entry) == "ALREADY_EXISTS"


@pytest.mark.parametrize(
    ("table", "found", "action", "more", "wanted"),
    [
        ("exact_table", [exact(b"")], ("drop",), {}, "OUT_OF_RANGE"),
        ("exact_table", [exact(b"\x01\0\0\0\0\0\0")], ("drop",), {}, "OUT_OF_RANGE"),
        ("exact_table", [exact(b"\x01")], ("forward", b"\x02\0"), {}, "OUT_OF_RANGE"),
        ("exact_table", [], ("drop",), {}, "INVALID_ARGUMENT"),
        ("exact_table", [{"lpm": {"value": b"\x01", "prefix_len": 3}}], ("drop",), {}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01"), exact(b"\x01")], ("drop",), {}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01")], ("drop",), {"priority": 1}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01")], ("mark", b"\x01"), {}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01")], ("forward",), {}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01")], ("only_default",), {}, "PERMISSION_DENIED"),
        ("exact_table", [exact(b"\x01")], ("drop",), {"idle_timeout_ns": -1}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01")], ("drop",), {"idle_timeout_ns": 1 << 62}, "OUT_OF_RANGE"),
        ("lpm_table", [{"lpm": {"value": b"\x01", "prefix_len": 8}}], ("NoAction",), {}, "INVALID_ARGUMENT"),
        ("lpm_table", [{"lpm": {"value": b"\x00", "prefix_len": 0}}], ("NoAction",), {}, "INVALID_ARGUMENT"),
        ("lpm_table", [{"lpm": {"value": b"\x00", "prefix_len": 33}}], ("NoAction",), {}, "INVALID_ARGUMENT"),
        ("lpm_table", [{"lpm": {"value": b"\x00", "prefix_len": -1}}], ("NoAction",), {}, "INVALID_ARGUMENT"),
        ("lpm_table", [{}], ("NoAction",), {"idle_timeout_ns": 5}, "INVALID_ARGUMENT"),
        ("ternary_table", [{}, exact(b"\x01")], ("NoAction",), {}, "INVALID_ARGUMENT"),
        ("ternary_table", [{}, exact(b"\x01")], ("NoAction",), {"priority": -4}, "INVALID_ARGUMENT"),
        (
            "ternary_table",
            [{"ternary": {"value": b"\x01", "mask": b"\x02"}}, exact(b"\x01")],
            ("NoAction",),
            {"priority": 1},
            "INVALID_ARGUMENT",
        ),
        (
            "ternary_table",
            [{"ternary": {"value": b"\0", "mask": b"\0"}}, exact(b"\x01")],
            ("NoAction",),
            {"priority": 1},
            "INVALID_ARGUMENT",
        ),
        (
            "range_table",
            [{"range": {"low": b"\x05", "high": b"\x04"}}],
            ("NoAction",),
            {"priority": 1},
            "INVALID_ARGUMENT",
        ),
        (
            "range_table",
            [{"range": {"low": b"\0", "high": b"\xff\xff"}}],
            ("NoAction",),
            {"priority": 1},
            "INVALID_ARGUMENT",
        ),
        ("exact_table", [exact(b"\x01")], ("drop",), {"is_const": True}, "INVALID_ARGUMENT"),
        ("exact_table", [exact(b"\x01")], ("drop",), {"time_since_last_hit": {}}, "INVALID_ARGUMENT"),
        ("keyless", [], ("learn",), {}, "INVALID_ARGUMENT"),
        ("vrfs", [exact(b"green")], ("NoAction",), {}, "INVALID_ARGUMENT"),
        ("vrfs", [exact(b"1024")], ("NoAction",), {}, "OUT_OF_RANGE"),
        ("const_table", [{}], ("NoAction",), {"priority": 1}, "PERMISSION_DENIED"),
        ("const_table", [{}], ("NoAction",), {}, "PERMISSION_DENIED"),
        ("const_table", [{}], ("NoAction",), {"priority": 100}, "PERMISSION_DENIED"),
    ],
)
def test_wrong_entries_are_refused_and_change_nothing(
    bench: Bench, table: str, found: list[Any], action: Any, more: dict[str, Any], wanted: str
) -> None:
    before = bench.primary.read(bench.entry(table))
    entry = bench.entry(table, *found, action=bench.action(*action), **more)
    assert refused(bench, "INSERT", entry) == wanted
    assert bench.primary.read(bench.entry(table)) == before


def test_an_entry_is_deleted_by_its_key_whatever_else_is_given(bench: Bench) -> None:
    key, entry = [exact(b"\x01")], bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"))
    ignored: list[dict[str, Any]] = [
        {"meter_counter_data": {}},
        {"time_since_last_hit": {}},
        {"idle_timeout_ns": -1},
    ]
    for more in ignored:
        bench.primary.write(("INSERT", entry))
        bench.primary.write(("DELETE", bench.entry("exact_table", *key, **more)))
    other = bench.entry("lpm_table", action=bench.action("NoAction"))
    bench.primary.write(("INSERT", other))
    bench.primary.write(("DELETE", bench.entry("lpm_table", time_since_last_hit={})))
    for kind in ("INSERT", "MODIFY", "DELETE"):
        const = bench.entry("exact_table", *key, action=bench.action("drop"), is_const=True)
        assert refused(bench, kind, const) == "INVALID_ARGUMENT"
    default = bench.entry("exact_table", action=bench.action("drop"), is_default_action=True, is_const=True)
    assert refused(bench, "MODIFY", default) == "INVALID_ARGUMENT"


def test_entries_are_filtered_by_each_field_that_is_given(bench: Bench) -> None:
    for number, metadata, action in (
        (1, b"x", ("forward", b"\x01")),
        (2, b"x", ("drop",)),
        (2, b"", ("drop",)),
    ):
        key = exact(bytes([len(bench.primary.read(bench.entry("exact_table"))) + 1]))
        entry = bench.entry(
            "exact_table", key, action=bench.action(*action), controller_metadata=number, metadata=metadata
        )
        bench.primary.write(("INSERT", entry))

    def found(**given: Any) -> list[int]:
        rows = bench.primary.read(bench.entry("exact_table", **given))
        return [row.table_entry.match[0].exact.value[0] for row in rows]

    assert found(controller_metadata=2) == [2, 3]
    assert found(metadata=b"x") == [1, 2]
    assert found(controller_metadata=2, metadata=b"x") == [2]
    assert found(controller_metadata=2, action=bench.action("drop")) == [2, 3]
    assert found(controller_metadata=3) == []
    # Of all tables there is no filter.
    filters: list[dict[str, Any]] = [
        {"priority": 3},
        {"controller_metadata": 2},
        {"metadata": b"x"},
        {"action": {"action": bench.action("drop")}},
        {"match": [{"field_id": 1, **exact(b"\x01")}]},
    ]
    for given in filters:
        for asked in ({"table_entry": given}, {"direct_counter_entry": {"table_entry": given}}):
            with pytest.raises(Refused) as caught:
                bench.primary.read(p4.Entity(**asked))
            assert code(caught.value) == "INVALID_ARGUMENT"


def test_entries_are_not_filtered_by_more_of_their_actions(bench: Bench) -> None:
    key = exact(b"\x01")
    bench.primary.write(("INSERT", bench.entry("exact_table", key, action=bench.action("forward", b"\x01"))))
    actions: list[tuple[str, dict[str, Any]]] = [
        ("exact_table", {"action": bench.action("forward", b"\x02")}),
        ("exact_table", {"action_profile_member_id": 1}),
        ("selected", {"action": bench.action("forward")}),
        ("selected", {"action_profile_member_id": 1}),
        ("selected", {"action_profile_group_id": 1}),
        ("selected", {"action_profile_action_set": {}}),
    ]
    for table, action in actions:
        for default in (False, True):
            asked = bench.entry(table, is_default_action=default)
            asked.table_entry.action.CopyFrom(p4.TableAction(**action))
            with pytest.raises(Refused) as caught:
                bench.primary.read(asked)
            assert code(caught.value) == "UNIMPLEMENTED"
    asked = p4.Entity(direct_counter_entry={"table_entry": bench.entry("exact_table").table_entry})
    asked.direct_counter_entry.table_entry.action.action.CopyFrom(bench.action("forward", b"\x02"))
    with pytest.raises(Refused) as caught:
        bench.primary.read(asked)
    assert code(caught.value) == "UNIMPLEMENTED"


def test_a_change_without_an_action_sets_all_else(bench: Bench) -> None:
    """What an update does not give is empty, but for the action and the counter."""
    key = exact(b"\x01")
    more: dict[str, Any] = {"metadata": b"x", "controller_metadata": 2, "idle_timeout_ns": 10**15}
    entry = bench.entry(
        "exact_table", key, action=bench.action("drop"), counter_data={"packet_count": 3}, **more
    )
    bench.primary.write(("INSERT", entry), ("MODIFY", bench.entry("exact_table", key)))
    (read,) = bench.primary.read(bench.entry("exact_table", key, counter_data={}))
    wanted = bench.entry("exact_table", key, action=bench.action("drop"), counter_data={"packet_count": 3})
    assert read == wanted


def test_the_default_entry_is_read_without_what_it_does_not_have(bench: Bench) -> None:
    given: list[dict[str, Any]] = [{"priority": 1}, {"idle_timeout_ns": 1}, {"time_since_last_hit": {}}]
    for more in given:
        with pytest.raises(Refused) as caught:
            bench.primary.read(bench.entry("exact_table", is_default_action=True, **more))
        assert code(caught.value) == "INVALID_ARGUMENT"


def test_larger_priorities_win_and_so_does_the_program_s_own_entry_by_its_priority(bench: Bench) -> None:
    """`initial_table` has 7 with priority 10, and 8, const, with 20."""
    rows = {
        r.table_entry.match[0].ternary.value: r.table_entry
        for r in bench.primary.read(bench.entry("initial_table"))
    }
    assert (rows[b"\x07"].priority, rows[b"\x07"].is_const) == (10, False)
    assert (rows[b"\x08"].priority, rows[b"\x08"].is_const) == (20, True)
    bench.primary.write(
        ("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\x01")))
    )

    def marked(kind: int) -> int:
        ((_, out),) = bench.pipeline.process(1, 1, frame(probe=bytes([kind]) + bytes(7)))
        return out[15]

    assert marked(7) == 21
    for priority, value in ((9, b"\x63"), (11, b"\x64")):
        entry = bench.entry("initial_table", {}, action=bench.action("mark", value), priority=priority)
        bench.primary.write(("INSERT", entry))
    assert (marked(7), marked(8), marked(9)) == (100, 22, 100)
    const = bench.entry(
        "initial_table",
        {"ternary": {"value": b"\x08", "mask": b"\xff"}},
        priority=20,
        action=bench.action("NoAction"),
    )
    assert refused(bench, "MODIFY", const) == "PERMISSION_DENIED"
    assert refused(bench, "DELETE", const) == "PERMISSION_DENIED"
    # Nor more of it, but for direct resources; of other entries all can change.
    given: list[dict[str, Any]] = [{"metadata": b"x"}, {"controller_metadata": 1}, {"idle_timeout_ns": 1}]
    for more in given:
        const = bench.entry(
            "initial_table", {"ternary": {"value": b"\x08", "mask": b"\xff"}}, priority=20, **more
        )
        assert refused(bench, "MODIFY", const) == "PERMISSION_DENIED"
    key = {"ternary": {"value": b"\x07", "mask": b"\xff"}}
    bench.primary.write(("MODIFY", bench.entry("initial_table", key, priority=10, metadata=b"x")))
    (read,) = bench.primary.read(bench.entry("initial_table", metadata=b"x"))
    assert (read.table_entry.priority, marked(7)) == (10, 100)


def test_const_tables_are_read_with_the_priorities_of_their_order(bench: Bench) -> None:
    rows = [row.table_entry for row in bench.primary.read(bench.entry("const_table"))]
    assert [(r.priority, r.match[0].ternary.value, r.is_const) for r in rows] == [
        (2, b"\x01", True),
        (1, b"\x02", True),
    ]
    found = bench.entry("const_table", {"ternary": {"value": b"\x02", "mask": b"\x03"}}, priority=1)
    assert bench.primary.read(found)[0].table_entry.action.action.params[0].value == b"\x0c"
    assert refused(bench, "MODIFY", found) == "PERMISSION_DENIED"


def test_default_entries(bench: Bench) -> None:
    def default(table: str, *action: Any, **more: Any) -> Any:
        made = bench.action(*action) if action else None
        return bench.entry(table, action=made, is_default_action=True, **more)

    (initial,) = bench.primary.read(default("exact_table"))
    assert initial.table_entry.action.action.action_id == bench.ids("drop")
    changed = default("exact_table", "forward", b"\x03", metadata=b"x")
    bench.primary.write(("MODIFY", changed))
    assert bench.primary.read(default("exact_table")) == [changed]
    assert [port for port, _ in bench.pipeline.process(1, 1, frame())] == [3]
    bench.primary.write(("MODIFY", default("exact_table")))
    assert bench.primary.read(default("exact_table")) == [initial]
    assert refused(bench, "INSERT", changed) == "INVALID_ARGUMENT"
    assert refused(bench, "DELETE", changed) == "INVALID_ARGUMENT"
    assert refused(bench, "MODIFY", default("const_table", "NoAction")) == "PERMISSION_DENIED"
    assert refused(bench, "MODIFY", default("exact_table", "only_entries")) == "PERMISSION_DENIED"
    assert refused(bench, "MODIFY", default("exact_table", "drop", priority=3)) == "INVALID_ARGUMENT"
    bench.primary.write(("MODIFY", changed))
    for fits, more in (
        (True, {"metadata": b"x"}),
        (True, {"action": bench.action("forward")}),
        (False, {"metadata": b"y"}),
        (False, {"controller_metadata": 1}),
        (False, {"action": bench.action("drop")}),
    ):
        found = bench.primary.read(bench.entry("exact_table", is_default_action=True, **more))
        assert found == ([changed] if fits else [])
    every = bench.primary.read(p4.Entity(table_entry=p4.TableEntry(is_default_action=True)))
    assert len(every) == len(bench.ids.info.tables)


def test_direct_counters_and_meters(bench: Bench) -> None:
    config = {"cir": 1, "cburst": 2, "pir": 3, "pburst": 4}
    entry = bench.entry(
        "exact_table",
        exact(b"\x01"),
        action=bench.action("forward", b"\x02"),
        counter_data={"packet_count": 5, "byte_count": 500},
        meter_config=config,
    )
    bench.primary.write(("INSERT", entry))
    bench.pipeline.process(1, 1, frame())
    asked = bench.entry("exact_table", exact(b"\x01"), counter_data={}, meter_config={})
    (read,) = bench.primary.read(asked)
    assert (read.table_entry.counter_data.packet_count, read.table_entry.counter_data.byte_count) == (6, 562)
    assert read.table_entry.meter_config == p4.MeterConfig(**config)
    plain = bench.primary.read(bench.entry("exact_table"))[0].table_entry
    assert not plain.HasField("counter_data")
    assert not plain.HasField("meter_config")
    # By themselves.
    key = bench.entry("exact_table", exact(b"\x01")).table_entry
    counter = p4.Entity(
        direct_counter_entry=p4.DirectCounterEntry(table_entry=key, data={"packet_count": 1, "byte_count": 2})
    )
    bench.primary.write(("MODIFY", counter))
    (seen,) = bench.primary.read(p4.Entity(direct_counter_entry=p4.DirectCounterEntry(table_entry=key)))
    assert seen.direct_counter_entry.data == counter.direct_counter_entry.data
    meter = p4.Entity(direct_meter_entry=p4.DirectMeterEntry(table_entry=key))
    bench.primary.write(("MODIFY", meter))
    (seen,) = bench.primary.read(meter)
    assert not seen.direct_meter_entry.HasField("config")
    meter.direct_meter_entry.config.CopyFrom(p4.MeterConfig(**config))
    bench.primary.write(("MODIFY", meter))
    # A change of the entry without a configuration is one to none.
    bench.primary.write(("MODIFY", bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"))))
    (seen,) = bench.primary.read(p4.Entity(direct_meter_entry=p4.DirectMeterEntry(table_entry=key)))
    assert not seen.direct_meter_entry.HasField("config")
    (seen,) = bench.primary.read(p4.Entity(direct_counter_entry=p4.DirectCounterEntry(table_entry=key)))
    assert seen.direct_counter_entry.data.packet_count == 1
    missing = bench.entry("exact_table", exact(b"\x02")).table_entry
    wrong = p4.Entity(direct_counter_entry=p4.DirectCounterEntry(table_entry=missing, data={}))
    assert refused(bench, "MODIFY", wrong) == "NOT_FOUND"
    assert refused(bench, "INSERT", counter) == "INVALID_ARGUMENT"
    with pytest.raises(Refused) as caught:
        bench.primary.read(wrong)
    assert code(caught.value) == "NOT_FOUND"
    default = p4.TableEntry(table_id=bench.ids("exact_table"), is_default_action=True)
    for what in ("direct_counter_entry", "direct_meter_entry"):
        with pytest.raises(Refused) as caught:
            bench.primary.read(p4.Entity(**{what: {"table_entry": default}}))
        assert code(caught.value) == "UNIMPLEMENTED"
    none = p4.Entity(direct_counter_entry={"table_entry": bench.entry("lpm_table").table_entry, "data": {}})
    assert refused(bench, "MODIFY", none) == "INVALID_ARGUMENT"
    assert len(bench.primary.read(p4.Entity(direct_counter_entry={}))) == 1
