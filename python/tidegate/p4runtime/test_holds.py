"""What one request does while packets, or other requests, wait: operations, cells and bytes are counted, not time."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate import p4 as programs
from tidegate.control import operations as op
from tidegate.p4runtime.conftest import (
    TEXT,
    Bench,
    exact,
    group,
    member,
    multicast,
    refused,
    register,
    value_set,
)
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.translate.base import MODIFY

SIZES = {"Work.cells": 65_536, "Work.wide": 3000, "Work.packets": 8, "Work.rates": 8}
CELLS, WORDS, OPERATIONS, UPDATES, BYTES, FIELDS = 4096, 32_768, 64, 128, 64 << 10, 2048


@pytest.fixture(scope="module")
def wide() -> programs.Program:
    """With a register whose cells are 16 words."""
    text = TEXT.replace("register<int<8>>(4)", "register<bit<1024>>(3000) wide; register<int<8>>(4)")
    return programs.Program.from_text(text)


@dataclass
class Hold:
    """What is done in one go."""

    operations: int = 0
    cells: int = 0
    words: int = 0

    def add(self, done: Sequence[Any]) -> None:
        self.operations += len(done)
        for one in done:
            if isinstance(one, op.RegisterSet | op.CounterSet | op.MeterSet):
                name = next(
                    getattr(one, key) for key in ("register", "counter", "meter") if hasattr(one, key)
                )
                cells = one.at[1] if isinstance(one.at, tuple) else SIZES[name] if one.at is None else 1
                self.cells += cells
                self.words += cells * (16 if name == "Work.wide" else 1)


@dataclass
class Holds:
    """Of the data plane and of control, one after another."""

    core: Any
    packets: list[Hold] = field(default_factory=list)
    control: list[Hold] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)
    """What is read."""

    def __getattr__(self, name: str) -> Any:
        return getattr(self.core, name)

    def act(self, operation: Any) -> Any:
        self.asked.append(operation)
        return self.core.act(operation)

    def act_each(self, operations: Sequence[Any]) -> list[Any]:
        self.packets.append(Hold())
        for hold in (self.packets[-1], self.control[-1]):
            hold.add(operations)
        answers: list[Any] = self.core.act_each(operations)
        return answers


@contextmanager
def watched(made: Bench) -> Iterator[Holds]:
    """What the present program is asked to do."""
    running = made.server._config.committed
    assert running is not None
    holds, busy = Holds(running.device._core), running._busy

    @contextmanager
    def turn() -> Iterator[None]:
        with busy:
            holds.control.append(Hold())
            yield

    class Turns:
        def __enter__(self) -> None:
            self.now = turn()
            self.now.__enter__()

        def __exit__(self, *error: Any) -> None:
            self.now.__exit__(*error)

    running.device._core, running._busy = holds, Turns()
    yield holds
    running.device._core, running._busy = holds.core, busy


def all_of(made: Bench, kind: str, name: str, **more: Any) -> Any:
    number = f"{kind.removesuffix('_entry')}_id"
    return p4.Entity(**{kind: {number: made.ids(name), **more}})


def test_a_write_of_all_cells_gives_way_in_between(wide: programs.Program) -> None:
    with Bench(wide) as made, watched(made) as holds:
        everywhere = [
            register(made, "cells", value=b"\x07"),
            register(made, "wide", value=b"\x08"),
            all_of(made, "counter_entry", "packets", data={"packet_count": 3}),
            all_of(made, "meter_entry", "rates", config={"cir": 1, "cburst": 2, "pir": 3, "pburst": 4}),
        ]
        made.primary.write(*[("MODIFY", entity) for entity in everywhere * 40])
        for hold in holds.packets + holds.control:
            assert hold.cells <= CELLS + OPERATIONS, hold
            assert hold.words <= WORDS, hold
        assert all(hold.operations <= OPERATIONS for hold in holds.packets)
        assert all(hold.operations <= UPDATES for hold in holds.control)
        assert sum(hold.cells for hold in holds.packets) == 40 * sum(SIZES.values())
        cells = made.pipeline.register_read("cells")
        assert len(cells) == 65_536
        assert (cells == 7).all()
        assert (made.pipeline.register_read("wide")[:, 0] == 8).all()
        assert (made.pipeline.counter_read("packets")[:, 0] == 3).all()
        assert all(rates == (1000, 2, 3000, 4) for rates in made.pipeline.meter_read("rates", 0))


def test_updates_of_small_arrays_share_a_slice(bench: Bench) -> None:
    with watched(bench) as holds:
        update = ("MODIFY", all_of(bench, "counter_entry", "packets", data={"packet_count": 3}))
        bench.primary.write(*[update] * 100)
        assert [hold.operations for hold in holds.packets] == [64, 36]


def test_a_batch_of_too_many_cells_is_not_done_whole(bench: Bench) -> None:
    everywhere = register(bench, "cells", value=b"\x07")
    one = register(bench, "cells", 5, b"\x01")
    with pytest.raises(Refused) as caught:
        bench.primary.write_updates([(MODIFY, one), (MODIFY, everywhere)], "DATAPLANE_ATOMIC")
    assert caught.value.code == "UNIMPLEMENTED"
    assert "set 16384 at most, or let each be done by itself" in str(caught.value)
    assert not bench.pipeline.register_read("cells").any()


def test_large_updates_are_few_in_a_slice(bench: Bench) -> None:
    """Control waits for so many bytes of updates, or for one."""

    def entry(key: int, note: int) -> Any:
        match = exact(key.to_bytes(6))
        return bench.entry("exact_table", match, action=bench.action("drop"), metadata=bytes(note))

    updates = [("INSERT", entry(key, 1000)) for key in range(1, 301)]
    most = max(entity.ByteSize() for _, entity in updates)
    with watched(bench) as holds:
        bench.primary.write(*updates)
        assert sum(hold.operations for hold in holds.control) == 300
        assert all(hold.operations * most <= BYTES + 300 * 16 for hold in holds.control)
    assert len(bench.pipeline.table_entries("exact_table")) == 300


def test_members_of_a_value_set_count_as_cells() -> None:
    text = TEXT.replace("value_set<bit<16>>(4)", "value_set<bit<16>>(65535)")
    with Bench(programs.Program.from_text(text)) as made, watched(made) as holds:
        full = value_set(made, *[key.to_bytes(2) for key in range(FIELDS)])
        made.primary.write(*[("MODIFY", full)] * 10)
        assert [hold.operations for hold in holds.packets] == [1] * 10
        assert len(made.pipeline.value_set_read("probes")) == FIELDS
        beyond = value_set(made, *[key.to_bytes(2) for key in range(FIELDS + 1)])
        assert refused(made, "MODIFY", beyond) == "RESOURCE_EXHAUSTED"
        assert len(holds.packets) == 10, "nothing of it came to the switch"


@pytest.fixture
def roomy() -> Iterator[Bench]:
    """With room for many members."""
    text = TEXT.replace("action_profile(32w8) hops", "action_profile(32w4096) hops")
    with Bench(programs.Program.from_text(text)) as made:
        yield made


READS = [
    ("action_profile_member", "member_id", op.MembersRead, 1024, 3001),
    ("action_profile_group", "group_id", op.GroupsRead, 16, 40),
    ("multicast_group_entry", "multicast_group_id", op.MulticastRead, 16, 40),
    ("clone_session_entry", "session_id", op.MirrorRead, 16, 40),
]


@pytest.mark.parametrize(("kind", "key", "read", "most", "there"), READS)
def test_numbered_parts_are_read_some_at_a_time_or_one_alone(
    roomy: Bench, kind: str, key: str, read: Any, most: int, there: int
) -> None:
    bench, pipeline = roomy, roomy.pipeline
    for number in range(1, 3001):
        pipeline.act(op.MemberAdd("hops", ("mark", [1]), number))
    pipeline.act(op.MemberAdd("choices", ("drop", []), 1))
    for number in range(1, 41):
        pipeline.act(op.GroupSet("choices", number, [(1, 1, b"")], 8, "new"))
        pipeline.multicast_set(number, [1, (2, number)])
        pipeline.mirror_set(number, 3)

    def entity(**asked: int) -> Any:
        if kind.startswith("action_profile"):
            return p4.Entity(**{kind: asked})
        return p4.Entity(packet_replication_engine_entry={kind: asked})

    with watched(bench) as holds:
        found = bench.primary.read(entity())
        assert len({one.SerializeToString() for one in found}) == len(found) == there
        assert all(isinstance(asked, read) and asked.count == most for asked in holds.asked)
        holds.asked.clear()
        owner = {"action_profile_id": bench.ids("choices")} if kind.startswith("action_profile") else {}
        number = 1 if kind == "action_profile_member" else 7
        (one,) = bench.primary.read(entity(**owner, **{key: number}))
        assert one in found
        assert [(asked.start, asked.count) for asked in holds.asked] == [(number, 1)]
        with pytest.raises(Refused, match="4000"):
            bench.primary.read(entity(**owner, **{key: 4000}))


def test_members_of_groups_and_copies_count_as_cells() -> None:
    text = TEXT.replace("@max_group_size(8)", "@max_group_size(4096)").replace(
        "32w16, 32w8)", "32w8192, 32w8)"
    )
    with Bench(programs.Program.from_text(text)) as made:
        members = [("INSERT", member(made, "choices", number, "drop")) for number in range(1, CELLS + 2)]
        for at in range(0, len(members), CELLS):
            made.primary.write(*members[at : at + CELLS])
        shares = [(number, 1) for number in range(1, CELLS // 2 + 1)]
        groups = [("INSERT", group(made, number, *shares, size=CELLS)) for number in range(1, 7)]
        copies = [("INSERT", multicast(1, *[(port, 0) for port in range(100)]))]
        with watched(made) as holds:
            made.primary.write(*groups, *copies)
            assert [hold.operations for hold in holds.control] == [2, 2, 2, 1]
            too_many = group(made, 9, *[(number, 1) for number in range(1, CELLS + 2)], size=CELLS)
            assert refused(made, "INSERT", too_many) == "RESOURCE_EXHAUSTED"
            holds.asked.clear()
            read = made.primary.read(
                p4.Entity(action_profile_group={"action_profile_id": made.ids("choices")})
            )
            assert [len(one.action_profile_group.members) for one in read] == [CELLS // 2] * 6
            assert [asked.start for asked in holds.asked] == [0, 3, 5, 7], (
                "two at a time have so many members"
            )
        all_of_them = [(number, 1, b"") for number in range(1, CELLS + 2)]
        with pytest.raises(TidegateError, match="4097 members are more than 4096"):
            made.pipeline.act(op.GroupSet("choices", 9, all_of_them, CELLS, "new"))
        assert len(made.pipeline.groups_read("choices")) == 6
