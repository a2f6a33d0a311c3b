"""A switch behind P4Runtime does the same operations as one of this process: the same answers, the same errors."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate import p4 as programs
from tidegate.control import PipelineApi
from tidegate.control import operations as op
from tidegate.control.fixed import Unsupported
from tidegate.control.objects import Bits
from tidegate.p4runtime import RemoteSwitch, Server, connect
from tidegate.p4runtime.conftest import LOOPBACK, VRFS
from tidegate.p4runtime.translate.arms import ARMS, Arm, Reason, table

Pair = tuple[PipelineApi, RemoteSwitch]
FORWARD: tuple[str, Sequence[Bits]] = ("forward", [b"\x03"])
DROP: tuple[str, Sequence[Bits]] = ("drop", [])
ROW_RATES = (1_000_000, 500, 2_000_000, 600)


@pytest.fixture
def pair(everything: programs.Program) -> Iterator[Pair]:
    """Two switches with the same program, one of them behind a server."""
    far = everything.pipeline("interp")
    with (
        Server(far, everything, address=LOOPBACK, translations=VRFS) as server,
        connect(server.address, translations=VRFS) as remote,
    ):
        yield everything.pipeline("interp"), remote


def said(answer: Any) -> Any:
    """An answer, or what an error is made of."""
    if isinstance(answer, TidegateError):
        parts: Any = answer
        return "error", parts.kind, str(answer)
    return answer


def without_age(rows: list[tuple[Any, ...]]) -> list[tuple[Any, ...]]:
    """Rows of a table but for the time since the last hit, which goes on."""
    return [(*row[:7], *row[8:]) for row in rows]


SEQUENCE: list[op.Operation] = [
    op.TableAdd("exact_table", [7], FORWARD),
    op.TableAdd(
        "exact_table", ["02:00:00:00:00:01"], ("clone_to", ["3", "0x10"]), counter=(5, 50), meter=ROW_RATES
    ),
    op.TableAdd("exact_table", [7], DROP),
    op.TableAdd("exact_table", [7, 8], DROP),
    op.TableAdd("exact_table", [7], ("forward", [1, 2])),
    op.TableAdd("exact_table", [7], ("learn", [])),
    op.TableAdd("nothing", [7], DROP),
    op.TableAdd("exact_table", [9], DROP, idle_timeout=5_000_000_000, note=b"\0\0\0\0\0\0\0\x01more"),
    op.TableSet("exact_table", 1, DROP),
    op.TableSet("exact_table", 0, counter=(1, 2)),
    op.TableSet("exact_table", ([9], None), FORWARD),
    op.TableSet("exact_table", 17, FORWARD),
    op.TableSet("exact_table", ([17], None), FORWARD),
    op.TableRead("exact_table", 1, 1),
    op.TableRead("exact_table", 0, ([b"\x07"], None)),
    op.CounterRead("exact_hits", 1, 1),
    op.CounterSet("exact_hits", 1, 7, 70),
    op.CounterSet("exact_hits", 99, 7, 70),
    op.CounterRead("exact_hits", 0),
    op.CounterRead("exact_hits", 99, 1),
    op.MeterRead("exact_rates", 99, 1),
    op.MeterSet("exact_rates", 99, ROW_RATES),
    op.MeterRead("exact_rates", 1, 1),
    op.MeterSet("exact_rates", 0, ROW_RATES),
    op.MeterSet("exact_rates", None, ROW_RATES),
    op.TableDelete("exact_table", 0),
    op.TableDelete("exact_table", 0),
    op.TableAdd("exact_table", [10], DROP),
    op.TableAdd("lpm_table", ["10.0.0.0/8"], ("mark", [1])),
    op.TableAdd("lpm_table", [(b"\x0b\0\0\0", 8)], ("mark", ["0x2a"])),
    op.TableAdd("lpm_table", [None], ("NoAction", [])),
    op.TableAdd("lpm_table", ["10.0.0.0"], ("NoAction", [])),
    op.TableAdd("ternary_table", [("0x0100", 0xFF00), 7], ("mark", [1]), 5),
    op.TableAdd("ternary_table", [None, 7], ("mark", [2]), 0),
    op.TableAdd("ternary_table", [None, 8], ("mark", [2])),
    op.TableAdd("ternary_table", [None, None], ("mark", [2]), 1),
    op.TableAdd("exact_table", [(1, 2)], DROP),
    op.TableAdd("range_table", [(5, 256)], ("mark", [2]), 0),
    op.TableAdd("range_table", ["0->65535"], ("mark", [3]), 9),
    op.TableAdd("range_table", ["9->5"], ("mark", [3]), 9),
    op.TableAdd("optional_table", [None], ("mark", [3]), 1),
    op.TableAdd("vrfs", [1], ("in_vrf", [900])),
    op.TableAdd("const_table", [9], ("mark", [3]), 1),
    op.TableAdd("initial_table", [9], ("mark", [3]), 1),
    op.TableDelete("initial_table", 0),
    op.TableRead("initial_table", 0),
    op.TableRead("const_table", 0),
    op.TableClear("lpm_table"),
    op.TableClear("initial_table"),
    op.TableDefaultSet("exact_table", ("forward", [4]), b"\0\0\0\0\0\0\0\x01"),
    op.TableDefaultRead("exact_table"),
    op.TableDefaultSet("exact_table", DROP),
    op.TableDefaultRead("exact_table"),
    op.TableDefaultReset("exact_table"),
    op.TableDefaultRead("exact_table"),
    op.TableDefaultSet("const_table", ("mark", [1])),
    op.TableTotals(),
    op.MemberAdd("choices", FORWARD, 4),
    op.MemberAdd("choices", DROP, 5),
    op.MemberAdd("choices", DROP, 5),
    op.MemberAdd("nothing", DROP, 5),
    op.MemberSet("choices", 4, ("forward", [9])),
    op.MemberSet("choices", 6, DROP),
    op.MembersRead("choices"),
    op.GroupSet("choices", 3, [(4, 1, b""), (5, 2, b"p")], 8, "new"),
    op.GroupSet("choices", 3, [(4, 1, b"")], 8, "new"),
    op.GroupSet("choices", 9, [(4, 1, b"")], 8, "known"),
    op.GroupSet("choices", 8, [(4, 1, b"")], 8, "either"),
    op.GroupJoin("choices", 8, 5),
    op.GroupJoin("choices", 8, 5),
    op.GroupJoin("choices", 7, 5),
    op.GroupLeave("choices", 8, 4),
    op.GroupLeave("choices", 8, 4),
    op.GroupSet("hops", 3, [], 8, "new"),
    op.GroupsRead("choices"),
    op.TableAdd("selected", [1], ("group", 3)),
    op.TableAdd("selected", [2], ("member", 4)),
    op.TableAdd("selected", [3], ("group", 77)),
    op.GroupDelete("choices", 3),
    op.MemberDelete("choices", 5),
    op.TableRead("selected", 0),
    op.TableClear("selected"),
    op.GroupDelete("choices", 3),
    op.GroupDelete("choices", 8),
    op.MemberDelete("choices", 4),
    op.MemberDelete("choices", 4),
    op.RegisterWrite("cells", 2, (1).to_bytes(8, "little") + (2**48 - 1).to_bytes(8, "little")),
    op.RegisterWrite("cells", 2, (2**48).to_bytes(8, "little")),
    op.RegisterWrite("cells", 65535, bytes(16)),
    op.RegisterRead("cells", 1, 4),
    op.RegisterWrite("cells", 65535, (2**48).to_bytes(8, "little") * 2),
    op.RegisterWrite("cells", 1, bytes(7)),
    op.RegisterRead("cells", 65535, 2),
    op.RegisterRead("Work.cells", 65536, 1),
    op.RegisterRead("cells", 65537),
    op.RegisterSet("signed_cells", None, "0x9d"),
    op.RegisterSet("signed_cells", 1, 5),
    op.RegisterSet("signed_cells", 4, 5),
    op.RegisterSet("signed_cells", 1, 256),
    op.RegisterRead("signed_cells", 0),
    op.RegisterRead("nothing", 0),
    op.CounterSet("packets", 3, 5, 50),
    op.CounterSet("packets", 8, 5, 50),
    op.CounterRead("packets", 2, 3),
    op.CounterRead("packets", 2, 7),
    op.CounterSet("packets", None, 1, 1),
    op.CounterRead("packets", 0),
    op.MeterSet("rates", 3, ROW_RATES),
    op.MeterSet("rates", 3, (2_000, 1, 1_000, 1)),
    op.MeterRead("rates", 0),
    op.MeterSet("rates", None, ()),
    op.MeterRead("rates", 3, 1),
    op.MeterRead("rates", 99, 1),
    op.MeterSet("rates", 99, ROW_RATES),
    op.ValueSetAdd("probes", [None]),
    op.ValueSetAdd("probes", [5, 6]),
    op.ValueSetAdd("probes", [5]),
    op.ValueSetAdd("probes", [5]),
    op.ValueSetAdd("probes", ["0x9000"]),
    op.ValueSetRemove("probes", [5]),
    op.ValueSetRemove("probes", [5]),
    op.ValueSetRead("probes"),
    op.ValueSetFill("probes", [[1], [2]]),
    op.ValueSetFill("probes", [[1], [2], [3], [4], [5]]),
    op.ValueSetRead("probes"),
    op.MulticastSet(5, [(1, 0), (2, 0), (3, 7)], "either"),
    op.MulticastSet(5, [(1, 0)], "new"),
    op.MulticastSet(6, [(1, 0)], "known"),
    op.MulticastRead(),
    op.MulticastSet(5, [(4, 0)], "either"),
    op.MirrorSet(9, (1, None, [], 0, 100), "either"),
    op.MirrorSet(9, (None, None, [(3, 2)], 1, None), "known"),
    op.MirrorSet(9, (1, None, [], 0, None), "new"),
    op.MirrorSet(10, (1, None, [], 0, None), "known"),
    op.MirrorRead(),
    op.MirrorDelete(9, "known"),
    op.MirrorDelete(9, "known"),
    op.MirrorDelete(9, "either"),
    op.MulticastDelete(5, "known", nodes=True),
    op.MulticastDelete(5, "known", nodes=True),
    op.MulticastDelete(5, "either", nodes=True),
    op.MulticastRead(),
]


def compared(operation: op.Operation, answer: Any) -> Any:
    """What must be the same on both sides."""
    if isinstance(answer, TidegateError):
        return said(answer)
    if isinstance(operation, op.TableRead):
        return without_age(answer[0]), answer[1]
    if isinstance(operation, op.MulticastRead):
        # There are no nodes in P4Runtime: replication ids and ports.
        return [(g, sorted((rid, port) for _, rid, ports in nodes for port in ports)) for g, nodes in answer]
    if isinstance(operation, op.MirrorRead):
        # A port is one of the copies there.
        return [(session, to[3:], copies) for session, to, copies in answer]
    return answer


def test_the_same_answers_and_errors(pair: Pair) -> None:
    """One by one. The texts of errors are the engine's, whichever side of the connection finds them."""
    local, remote = pair
    errors = 0
    for operation in SEQUENCE:
        near, far = (compared(operation, one(side, operation)) for side in (local, remote))
        errors += alike(operation, near, far)
    assert errors > 30


def alike(operation: op.Operation, near: Any, far: Any) -> bool:
    """Whether both are errors. Answers and errors are the same, to the word."""
    assert far == near, operation
    return isinstance(near, tuple) and near[:1] == ("error",)


def one(side: PipelineApi, operation: op.Operation) -> Any:
    try:
        return side.act(operation)
    except TidegateError as error:
        return error


def test_batches_are_the_same(pair: Pair) -> None:
    local, remote = pair
    near, far = local.batch(SEQUENCE), remote.batch(SEQUENCE)
    for operation, here, there in zip(SEQUENCE, near, far, strict=True):
        alike(operation, compared(operation, here), compared(operation, there))


def reads() -> list[op.Operation]:
    return [
        op.TableRead("exact_table", 0),
        op.GroupsRead("choices"),
        op.MembersRead("choices"),
        op.RegisterRead("cells", 0, 8),
        op.ValueSetRead("probes"),
        op.MulticastRead(),
        op.MirrorRead(),
    ]


def state(side: PipelineApi) -> list[Any]:
    return [compared(operation, side.act(operation)) for operation in reads()]


WHOLE: list[op.Operation] = [
    op.TableAdd("exact_table", [7], FORWARD, counter=(1, 2), meter=ROW_RATES, note=bytes(7) + b"\x01"),
    op.TableSet("exact_table", ([7], None), DROP),
    op.TableAdd("exact_table", [8], DROP),
    op.TableDelete("exact_table", 1),
    op.MemberAdd("choices", DROP, 1),
    op.MemberAdd("choices", FORWARD),
    op.GroupSet("choices", 1, [(1, 1, b"")], 8, "either"),
    op.GroupJoin("choices", 1, 2),
    op.RegisterSet("cells", 3, 9),
    op.ValueSetAdd("probes", [5]),
    op.ValueSetAdd("probes", [6]),
    op.ValueSetRemove("probes", [5]),
    op.MulticastSet(5, [(1, 0)], "either"),
    op.MulticastSet(5, [(1, 0), (2, 0)], "either"),
    op.MirrorSet(9, (1, None, [], 0, 100), "either"),
]


@pytest.mark.parametrize("bad", [None, *range(len(WHOLE) + 1)])
def test_all_or_nothing_is_the_same(pair: Pair, bad: int | None) -> None:
    """What reads before it writes sees what the batch has written before it."""
    local, remote = pair
    local.act(op.MemberAdd("choices", DROP, 2))
    remote.act(op.MemberAdd("choices", DROP, 2))
    before = state(local)
    batch: list[op.Operation] = [
        # Which numbers are free is each side's own.
        op.MemberAdd("choices", FORWARD, 3) if operation == op.MemberAdd("choices", FORWARD) else operation
        for operation in WHOLE
    ]
    if bad is None:
        assert local.batch(batch, "all") == remote.batch(batch, "all")
        assert state(remote) == state(local) != before
        return
    batch.insert(bad, op.TableDelete("lpm_table", (["10.0.0.0/8"], None)))
    for side in (local, remote):
        with pytest.raises(TidegateError) as caught:
            side.batch(batch, "all")
        error = vars(caught.value)
        assert (error["index"], error["kind"]) == (bad, "not found")
        assert state(side) == before


def test_an_error_comes_with_its_parts(pair: Pair) -> None:
    local, remote = pair
    for operation in (
        op.TableAdd("exact", [7], DROP),
        op.TableAdd("ternary_table", [None, 8], ("mark", [2])),
        op.TableAdd("exact_table", [7], ("learn", [])),
        op.CounterRead("packets", 7, 3),
    ):
        parts = []
        for side in (local, remote):
            with pytest.raises(TidegateError) as caught:
                side.act(operation)
            error = vars(caught.value)
            parts.append((error["kind"], error["field"], error["cure"].split(",")[0]))
        assert parts[0] == parts[1], operation


def test_what_p4runtime_does_not_carry_says_why_and_what_to_do(pair: Pair) -> None:
    _, remote = pair
    mirror = op.MirrorSet(9, (None, 5, [], 0, None), "either")
    refused: Sequence[op.Operation] = [
        op.DropsRead(),
        op.PortRead(1),
        op.DigestsTake(),
        op.NodeAdd(1, [2]),
        op.MeterSet("rates", 0, (1, 1, 1, 1)),
        op.TableAdd("exact_table", [7], DROP, note=b"short"),
        op.MulticastDelete(5, "either", nodes=False),
        mirror,
    ]
    for operation in refused:
        with pytest.raises(Unsupported) as caught:
            remote.act(operation)
        error: Any = caught.value
        assert error.kind == "unsupported"
        assert len(error.cure) > 10
        assert error.cure in str(error)
    answers = remote.batch([op.DropsRead(), op.TableAdd("exact_table", [7], DROP)])
    assert [type(answer).__name__ for answer in answers] == ["NotCarried", "int"]


def test_who_is_not_primary_does_nothing(pair: Pair) -> None:
    """An error of the whole call is that of each operation, whatever reads among them."""
    _, remote = pair
    target = remote.connection._channel._channel.target().decode()
    with connect(target, election_id=2):
        operations = [
            op.RegisterSet("cells", 1, 1),
            op.RegisterRead("cells", 1, 1),
            op.RegisterSet("cells", 2, 1),
        ]
        answers = remote.batch(operations)
        assert [getattr(answer, "kind", None) for answer in answers] == ["denied", None, "denied"]
        with pytest.raises(TidegateError, match="PERMISSION_DENIED"):
            remote.batch([operations[0]], "all")
        assert remote.register_read("cells", 1, 2).tolist() == [0, 0]


def test_each_operation_has_messages_or_a_reason() -> None:
    # A class with slots is made twice, and the first may not be collected yet.
    kinds = {kind for kind in op.Operation.__subclasses__() if getattr(op, kind.__name__) is kind}
    assert kinds == set(ARMS), (
        "python/tidegate/p4runtime/translate/arms.py has what P4Runtime says of each operation"
    )
    page = Path(__file__).parents[3] / "docs" / "p4runtime.md"
    assert table() in page.read_text(), f"put this table into {page}:\n{table()}"
    done = {type(operation) for operation in SEQUENCE} | {op.GroupAdd, op.PacketOut}
    missing = [kind.__name__ for kind, arm in ARMS.items() if isinstance(arm, Arm) and kind not in done]
    assert missing == [], "operations with messages that no test compares"
    assert all(arm.cure and arm.why for arm in ARMS.values() if isinstance(arm, Reason))
