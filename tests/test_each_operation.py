"""Each operation does the same as an `Operation`, as a method of `SwitchApi`, as text, and over P4Runtime.

A case has one operation in its forms, what is there before, and what is read back. A new operation needs a case here.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate import p4 as programs
from tidegate.control import PipelineApi, Port, Queue, SwitchApi
from tidegate.control import operations as op
from tidegate.control.fixed import Unsupported
from tidegate.control.objects import port_spec
from tidegate.p4runtime import Server, connect
from tidegate.p4runtime.conftest import LOOPBACK, TEXT, VRFS, Simulated, lldp, wait_for
from tidegate.p4runtime.test_surface import compared
from tidegate.p4runtime.translate.arms import ARMS, Reason

EVERYTHING = programs.Program.from_text(TEXT)
ENTRY = op.TableAdd("exact_table", [7], ("forward", [3]))
KEY = ([7], None)
MEMBER, OTHER = op.MemberAdd("choices", ("forward", [3]), 4), op.MemberAdd("choices", ("drop", []), 5)
GROUP = op.GroupSet("choices", 2, [(4, 1, b"")], 8, "new")
RATES = (125_000_000, 100, 250_000_000, 200)
ROWS, MEMBERS, GROUPS = op.TableRead("exact_table", 0), op.MembersRead("choices"), op.GroupsRead("choices")
CELLS, METER = op.RegisterRead("cells", 0, 8), op.MeterRead("rates", 0)
PROBES, COPIES, MIRRORS = op.ValueSetRead("probes"), op.MulticastRead(), op.MirrorRead()
COPY = op.MulticastSet(5, [(1, 0), (2, 7)], "new")
NODE = op.NodeAdd(7, [1, 2])
EMPTY_GROUP = op.MulticastSet(6, [], "new")
MIRROR = op.MirrorSet(9, (1, None, [], 0, 100), "new")
PORT = Port(
    queues=(Queue(packets=10), Queue(packets=20, bytes="3 kB", weight=9, time_shift="5 ms")),
    scheduler="deficit round robin",
    quantum="2 kB",
)
PORT_TEXT = "scheduler:deficit_round_robin,quantum:2kB;packets:10;packets:20,bytes:3kB,weight:9,shift:5ms"
PACKET = lldp(5)
GENERATOR = (3, PACKET, 20_000_000_000)


@dataclass(frozen=True)
class Case:
    """An operation in its forms."""

    operation: op.Operation
    method: Callable[[SwitchApi], Any]
    """What a method gives, in the form of the operation's answer."""
    text: str
    """Fields for a line `op NAME ...`."""
    command: str | None = None
    """A command of simple_switch_CLI that does the same, if there is one."""
    before: tuple[op.Operation, ...] = ()
    reads: tuple[op.Operation, ...] = ()
    """What is read back; none for an operation that itself reads, or whose effect cannot be read."""


CASES = [
    Case(
        ENTRY,
        lambda s: s.table_add("exact_table", [7], "forward", [3]),
        "table=exact_table key=7 to=forward(3)",
        "table_add exact_table forward 7 => 3",
        reads=(ROWS,),
    ),
    Case(
        op.TableAdd("selected", [1], [(("forward", [1]), 2, b""), (("forward", [2]), 1, b"p")]),
        lambda s: s.act(
            op.TableAdd("selected", [1], [(("forward", ["1"]), 2, b""), (("forward", ["2"]), 1, b"p")])
        ),
        "table=selected key=1 to=forward(1)*2;forward(2)*1@70",
        reads=(op.TableRead("selected", 0),),
    ),
    Case(
        op.TableSet("exact_table", KEY, ("drop", [])),
        lambda s: s.table_modify("exact_table", 0, "drop"),
        "table=exact_table entry=0 to=drop()",
        "table_modify exact_table drop 0 =>",
        (ENTRY,),
        (ROWS,),
    ),
    Case(
        op.TableSet("exact_table", KEY, None, (5, 50), RATES, 7_000_000, bytes(7) + b"\x01x"),
        lambda s: s.table_set("exact_table", 0, None, (5, 50), RATES, 7_000_000, bytes(7) + b"\x01x"),
        "table=exact_table entry=0 counter=5:50 meter=0.125:100,0.25:200 idle_timeout=7000000 note=000000000000000178",
        None,
        (ENTRY,),
        (ROWS,),
    ),
    Case(
        op.TableDelete("exact_table", KEY),
        lambda s: s.table_delete("exact_table", 0),
        "table=exact_table entry=0",
        "table_delete exact_table 0",
        (ENTRY,),
        (ROWS,),
    ),
    Case(
        op.TableClear("exact_table"),
        lambda s: s.table_clear("exact_table"),
        "table=exact_table",
        "table_clear exact_table",
        (ENTRY,),
        (ROWS,),
    ),
    Case(
        op.TableDefaultSet("exact_table", ("forward", [4])),
        lambda s: s.table_set_default("exact_table", "forward", [4]),
        "table=exact_table to=forward(4)",
        "table_set_default exact_table forward => 4",
        reads=(op.TableDefaultRead("exact_table"),),
    ),
    Case(
        op.TableDefaultReset("exact_table"),
        lambda s: s.table_default_reset("exact_table"),
        "table=exact_table",
        "table_reset_default exact_table",
        (op.TableDefaultSet("exact_table", ("forward", [4])),),
        (op.TableDefaultRead("exact_table"),),
    ),
    Case(
        op.TableDefaultRead("exact_table"), lambda s: s.table_default_read("exact_table"), "table=exact_table"
    ),
    Case(ROWS, lambda s: s.table_read("exact_table", 0), "table=exact_table start=0", before=(ENTRY,)),
    Case(op.TableIdleTake(), lambda s: s.act(op.TableIdleTake()), ""),
    Case(op.TableTotals(), lambda s: s.table_totals(), "", before=(ENTRY,)),
    Case(
        MEMBER,
        lambda s: s.act(op.MemberAdd("choices", ("forward", ["3"]), 4)),
        "profile=choices member=4 to=forward(3)",
        reads=(MEMBERS,),
    ),
    Case(
        op.MemberSet("choices", 4, ("drop", [])),
        lambda s: s.member_modify("choices", 4, "drop"),
        "profile=choices member=4 to=drop()",
        "act_prof_modify_member choices drop 4",
        (MEMBER,),
        (MEMBERS,),
    ),
    Case(
        op.MemberDelete("choices", 4),
        lambda s: s.member_delete("choices", 4),
        "profile=choices member=4",
        "act_prof_delete_member choices 4",
        (MEMBER,),
        (MEMBERS,),
    ),
    Case(MEMBERS, lambda s: s.members_read("choices"), "profile=choices", before=(MEMBER,)),
    Case(
        op.GroupAdd("choices"),
        lambda s: s.group_add("choices"),
        "profile=choices",
        "act_prof_create_group choices",
        (MEMBER, GROUP),
        (GROUPS,),
    ),
    Case(
        op.GroupSet("choices", 2, [(4, 3, b"p"), (5, 1, b"")], 8, "either"),
        lambda s: s.group_set("choices", 2, [(4, 3, b"p"), (5, 1, b"")], 8, "either"),
        "profile=choices group=2 shares=4:3@70,5:1 max_size=8 put=either",
        None,
        (MEMBER, OTHER, GROUP),
        (GROUPS,),
    ),
    Case(
        op.GroupJoin("choices", 2, 5),
        lambda s: s.group_join("choices", 2, 5),
        "profile=choices group=2 member=5",
        "act_prof_add_member_to_group choices 5 2",
        (MEMBER, OTHER, GROUP),
        (GROUPS,),
    ),
    Case(
        op.GroupLeave("choices", 2, 4),
        lambda s: s.group_leave("choices", 2, 4),
        "profile=choices group=2 member=4",
        "act_prof_remove_member_from_group choices 4 2",
        (MEMBER, GROUP),
        (GROUPS,),
    ),
    Case(
        op.GroupDelete("choices", 2),
        lambda s: s.group_delete("choices", 2),
        "profile=choices group=2",
        "act_prof_delete_group choices 2",
        (MEMBER, GROUP),
        (GROUPS,),
    ),
    Case(GROUPS, lambda s: s.groups_read("choices"), "profile=choices", before=(MEMBER, GROUP)),
    Case(
        op.RegisterRead("cells", 1, 2),
        lambda s: (s.register_read("cells", 1, 2).astype("<u8").tobytes(), 1),
        "register=cells start=1 count=2",
        before=(op.RegisterSet("cells", 2, 9),),
    ),
    Case(
        op.RegisterWrite("cells", 2, (9).to_bytes(8, "little")),
        lambda s: s.register_write("cells", [9], 2),
        "register=cells start=2 words=9",
        "register_write cells 2 9",
        reads=(CELLS,),
    ),
    Case(
        op.RegisterSet("cells", None, 9),
        lambda s: s.register_set("cells", None, 9),
        "register=cells at=all value=9",
        reads=(CELLS,),
    ),
    Case(
        op.RegisterSet("cells", (1, 2), 9),
        lambda s: s.register_set("cells", (1, 2), 9),
        "register=cells at=1:2 value=9",
        reads=(CELLS,),
    ),
    Case(
        op.CounterSet("packets", (1, 2), 5, 50),
        lambda s: s.counter_set("packets", (1, 2), 5, 50),
        "counter=packets at=1:2 packets=5 bytes=50",
        reads=(op.CounterRead("packets", 0),),
    ),
    Case(
        op.MeterSet("rates", (1, 2), RATES),
        lambda s: s.act(op.MeterSet("rates", (1, 2), RATES)),
        "meter=rates at=1:2 rates=0.125:100,0.25:200",
        reads=(op.MeterRead("rates", 0, 4),),
    ),
    Case(
        op.CounterRead("packets", 2, 2),
        lambda s: s.counter_read("packets", 2, 2).astype("<u8").tobytes(),
        "counter=packets start=2 count=2",
        before=(op.CounterSet("packets", 3, 5, 50),),
    ),
    Case(
        op.CounterSet("packets", 3, 5, 50),
        lambda s: s.counter_set("packets", 3, 5, 50),
        "counter=packets at=3 packets=5 bytes=50",
        "counter_write packets 3 5 50",
        reads=(op.CounterRead("packets", 0),),
    ),
    Case(
        METER,
        lambda s: s.meter_read("rates", 0),
        "meter=rates start=0",
        before=(op.MeterSet("rates", 3, RATES),),
    ),
    Case(
        op.MeterSet("rates", 3, RATES),
        lambda s: s.meter_set(
            "rates",
            3,
            committed_rate="1 Mbit/s",
            committed_burst=100,
            peak_rate="2 Mbit/s",
            peak_burst=200,
        ),
        "meter=rates at=3 rates=0.125:100,0.25:200",
        "meter_set_rates rates 3 0.125:100 0.25:200",
        reads=(METER,),
    ),
    Case(
        op.ValueSetAdd("probes", [5]),
        lambda s: s.value_set_add("probes", [5]),
        "value_set=probes member=5",
        "pvs_add probes 5",
        reads=(PROBES,),
    ),
    Case(
        op.ValueSetRemove("probes", [5]),
        lambda s: s.value_set_remove("probes", [5]),
        "value_set=probes member=5",
        "pvs_remove probes 5",
        (op.ValueSetAdd("probes", [5]),),
        (PROBES,),
    ),
    Case(
        op.ValueSetFill("probes", [[5], [6]]),
        lambda s: s.value_set_fill("probes", [[5], [6]]),
        "value_set=probes members=5;6",
        None,
        (op.ValueSetAdd("probes", [9]),),
        (PROBES,),
    ),
    Case(
        PROBES,
        lambda s: s.value_set_read("probes"),
        "value_set=probes",
        before=(op.ValueSetAdd("probes", [9]),),
    ),
    Case(
        op.MulticastSet(5, [(1, 0), (2, 7)], "either"),
        lambda s: s.multicast_set(5, [1, (2, 7)]),
        "group=5 copies=1:0,2:7 put=either",
        reads=(COPIES,),
    ),
    Case(
        op.MulticastDelete(5, "either", nodes=True),
        lambda s: s.multicast_delete(5),
        "group=5 put=either nodes=true",
        None,
        (COPY,),
        (COPIES,),
    ),
    Case(NODE, lambda s: s.node_add(7, [1, 2]), "rid=7 ports=1,2", "mc_node_create 7 1 2"),
    Case(
        op.NodeSet(0, [3]),
        lambda s: s.node_set(0, [3]),
        "node=0 ports=3",
        "mc_node_update 0 3",
        (NODE, EMPTY_GROUP, op.NodeJoin(6, 0)),
        (COPIES,),
    ),
    Case(
        op.NodeDelete(0),
        lambda s: s.node_delete(0),
        "node=0",
        "mc_node_destroy 0",
        (NODE, EMPTY_GROUP, op.NodeJoin(6, 0)),
        (COPIES,),
    ),
    Case(
        op.NodeJoin(6, 0),
        lambda s: s.node_join(6, 0),
        "group=6 node=0",
        "mc_node_associate 6 0",
        (NODE, EMPTY_GROUP),
        (COPIES,),
    ),
    Case(
        op.NodeLeave(6, 0),
        lambda s: s.node_leave(6, 0),
        "group=6 node=0",
        "mc_node_dissociate 6 0",
        (NODE, EMPTY_GROUP, op.NodeJoin(6, 0)),
        (COPIES,),
    ),
    Case(COPIES, lambda s: s.multicast_read(), "", before=(COPY,)),
    Case(
        op.MirrorSet(9, (1, None, [], 0, 100), "either"),
        lambda s: s.mirror_set(9, 1, truncate=100),
        "session=9 to=port:1,truncate:100 put=either",
        "mirroring_add_truncate 9 1 100",
        reads=(MIRRORS,),
    ),
    Case(
        op.MirrorDelete(9, "known"),
        lambda s: s.mirror_set(9),
        "session=9 put=known",
        "mirroring_delete 9",
        (MIRROR,),
        (MIRRORS,),
    ),
    Case(MIRRORS, lambda s: s.mirror_read(), "", before=(MIRROR,)),
    Case(op.DigestsTake(), lambda s: s.act(op.DigestsTake()), ""),
    Case(op.DigestsLost(), lambda s: s.digests_lost(), ""),
    Case(op.DropsRead(), lambda s: list(s.drops.items()), ""),
    Case(
        op.CrcSet((16, 0x1021, 0xFFFF, 0, False, True)),
        lambda s: s.crc_set((16, 0x1021, 0xFFFF, 0, False, True)),
        "to=16:0x1021:0xffff:0:false:true",
        "set_crc16_parameters any 0x1021 0xffff 0 false true",
    ),
    Case(op.StateReset(), lambda s: s.state_reset(), "", "reset_state", (ENTRY,), (ROWS,)),
    Case(
        op.PortRead(1),
        lambda s: port_spec(s.port_read(1)),
        "port=1",
        before=(op.PortSet(1, port_spec(PORT)),),
    ),
    Case(
        op.PortSet(1, port_spec(PORT)),
        lambda s: s.port_write(1, PORT),
        f"port=1 to={PORT_TEXT}",
        reads=(op.PortRead(1),),
    ),
    Case(op.QueueRead(1, 0), lambda s: vars(s.queue_read(1)), "port=1 queue=0"),
    Case(
        op.GeneratorSet(1, GENERATOR),
        lambda s: s.generator_set(1, port=3, packet=PACKET, period="20 ms"),
        f"generator=1 to=3:20ms:{PACKET.hex()}",
        reads=(op.GeneratorRead(1),),
    ),
    Case(
        op.GeneratorStop(1),
        lambda s: s.generator_stop(1),
        "generator=1",
        None,
        (op.GeneratorSet(1, GENERATOR),),
        (op.GeneratorRead(1),),
    ),
    Case(
        op.GeneratorRead(1),
        lambda s: s.generator_read(1),
        "generator=1",
        before=(op.GeneratorSet(1, GENERATOR),),
    ),
    Case(
        op.PacketOut(bytes(2) + PACKET),
        lambda s: s.packet_out(bytes(2) + PACKET),
        f"packet={(bytes(2) + PACKET).hex()}",
        reads=(op.StatisticsRead(),),
    ),
    Case(op.PacketTake(), lambda s: s.act(op.PacketTake()), ""),
    Case(op.StatisticsRead(), lambda s: s.statistics, ""),
]


def one_of(case: Case) -> str:
    return case.operation.op


@contextmanager
def switch(case: Case) -> Iterator[Simulated]:
    """A switch whose clock stands still, with what is there before."""
    made = Simulated(EVERYTHING)
    for operation in case.before:
        made.api.act(operation)
    yield made


def state(api: PipelineApi, case: Case) -> list[Any]:
    return [api.act(read) for read in case.reads]


@pytest.mark.parametrize("case", CASES, ids=one_of)
def test_a_method_and_text_do_what_the_operation_does(case: Case) -> None:
    with switch(case) as made:
        before = state(made.api, case)
        answer = made.api.act(case.operation)
        after = state(made.api, case)
        assert (before != after) is bool(case.reads), "what is read back shows the effect"
    with switch(case) as made:
        assert case.method(made.api) == answer
        assert state(made.api, case) == after
    with switch(case) as made:
        said = made.api.command(f"op {case.operation.op} {case.text}")
        assert state(made.api, case) == after
        if answer is None and case.reads:
            assert said == ""
        elif said:
            json.loads(said)
    if case.command is not None:
        with switch(case) as made:
            made.api.command(case.command)
            assert state(made.api, case) == after


@pytest.mark.parametrize("case", CASES, ids=one_of)
def test_p4runtime_does_what_the_operation_does(case: Case) -> None:
    with switch(case) as made:
        answer = made.api.act(case.operation)
        after = [compared(read, found) for read, found in zip(case.reads, state(made.api, case), strict=True)]
    with (
        switch(case) as made,
        Server(made.api, EVERYTHING, address=LOOPBACK, lock=made.lock, translations=VRFS) as server,
        connect(server.address, translations=VRFS) as remote,
    ):
        before = state(made.api, case)
        if isinstance(ARMS[type(case.operation)], Reason):
            with pytest.raises(Unsupported, match="P4Runtime has no message for"):
                remote.act(case.operation)
            assert state(made.api, case) == before
            return
        far = remote.act(case.operation)
        if isinstance(case.operation, op.PacketOut):
            # It goes by the stream.
            wait_for(lambda: state(made.api, case) == after)
            return
        found = state(made.api, case)
        if isinstance(case.operation, op.GroupAdd):
            # Numbers and sizes of groups are the client's choice.
            assert [len(groups) for groups in found] == [2]
            return
        assert [compared(read, one) for read, one in zip(case.reads, found, strict=True)] == after
        assert compared(case.operation, far) == compared(case.operation, answer)


def test_each_operation_has_a_case() -> None:
    # A class with slots is made twice, and the first may not be collected yet.
    kinds = {kind for kind in op.Operation.__subclasses__() if getattr(op, kind.__name__) is kind}
    missing = kinds - {type(case.operation) for case in CASES}
    assert not missing, f"write a case for {', '.join(sorted(kind.__name__ for kind in missing))}"


def test_text_of_ports_and_generators_says_what_is_wrong() -> None:
    made = Simulated(EVERYTHING)
    for line, why in [
        ("op port_set port=1 to=scheduler:round;packets:1", "there is no scheduler `round`"),
        ("op port_set port=1 to=scheduler:strict_priority", "has no queue"),
        ("op port_set port=1 to=;length:1", "`length` is not `packets`"),
        ("op port_set port=1 to=;bytes:1lb", "size"),
        ("op generator_set generator=1 to=3:20ms", "expected `PERIOD:PACKET`"),
        ("op generator_set generator=1 to=3:20ms:0", "expected pairs of hexadecimal digits"),
    ]:
        with pytest.raises(TidegateError, match=why):
            made.api.command(line)
