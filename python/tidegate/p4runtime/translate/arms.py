"""For each operation the messages of P4Runtime that say it, or why there are none.

A test compares this list with the operations that there are, and the table in `docs/p4runtime.md` is made from it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tidegate.control import operations as op
from tidegate.p4runtime.errors import NotCarried, P4Error
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.arrays import Arrays
from tidegate.p4runtime.translate.base import Act, Look
from tidegate.p4runtime.translate.handles import Handles
from tidegate.p4runtime.translate.packets import Packets
from tidegate.p4runtime.translate.profiles import Profiles
from tidegate.p4runtime.translate.replication import Replication
from tidegate.p4runtime.translate.tables import Tables
from tidegate.p4runtime.translate.value_sets import ValueSets


class Families:
    """The translations of a client: operations as updates, entities as answers."""

    def __init__(self, schema: Schema, act: Act, look: Look) -> None:
        self.handles = Handles()
        self.tables = Tables(schema, act, look, self.handles)
        self.profiles = Profiles(schema, act, self.tables, look)
        self.arrays = Arrays(schema, act, self.tables, look)
        self.value_sets = ValueSets(schema, act, look)
        self.replication = Replication(schema, act, look)
        self.packets = Packets(schema)


@dataclass(frozen=True)
class Arm:
    """The messages of an operation."""

    messages: str
    do: Callable[[Families, Any], Any]
    """Gives `Updates` of a write, the answer of a read, or a `p4.StreamMessageRequest`."""


@dataclass(frozen=True)
class Reason:
    """Why an operation has no messages, and what to do instead."""

    why: str
    cure: str

    def refusal(self, operation: op.Operation) -> P4Error:
        """The error that a client raises."""
        return NotCarried.unsupported(f"P4Runtime has no message for `{operation.op}`: {self.why}", self.cure)


_NODES = Reason("it has no nodes apart from groups", "use `multicast_set`, which sets all copies of a group")
_FIXED = Reason(
    "it covers the program's objects, and not what a switch has around them",
    "use the switch directly, as a controller of `tidegate switch` does",
)
_COUNTS = Reason("it has no entity for it", "read the metrics of `tidegate switch`")

ARMS: dict[type[op.Operation], Arm | Reason] = {
    op.TableAdd: Arm("`INSERT` of a `TableEntry`", lambda f, o: f.tables.table_add(o)),
    op.TableSet: Arm(
        "`MODIFY` of a `TableEntry`, read before for what stays; of a `DirectCounterEntry` or `DirectMeterEntry` if"
        " nothing else changes",
        lambda f, o: f.tables.table_set(o),
    ),
    op.TableDelete: Arm("`DELETE` of a `TableEntry`", lambda f, o: f.tables.table_delete(o)),
    op.TableClear: Arm("read, and `DELETE` of each `TableEntry`", lambda f, o: f.tables.table_clear(o)),
    op.TableDefaultSet: Arm(
        "`MODIFY` of the `TableEntry` with `is_default_action`", lambda f, o: f.tables.table_default_set(o)
    ),
    op.TableDefaultReset: Arm(
        "`MODIFY` of the `TableEntry` with `is_default_action`, without an action",
        lambda f, o: f.tables.table_default_reset(o),
    ),
    op.TableDefaultRead: Arm(
        "read of the `TableEntry` with `is_default_action`", lambda f, o: f.tables.table_default_read(o)
    ),
    op.TableRead: Arm("read of `TableEntry`", lambda f, o: f.tables.table_read(o)),
    op.TableIdleTake: Reason(
        "a server sends `IdleTimeoutNotification` by itself", "take it from `Connection.heard`"
    ),
    op.TableTotals: Arm("read of `TableEntry`, counted", lambda f, o: f.tables.table_totals(o)),
    op.MemberAdd: Arm("`INSERT` of an `ActionProfileMember`", lambda f, o: f.profiles.member_add(o)),
    op.MemberSet: Arm("`MODIFY` of an `ActionProfileMember`", lambda f, o: f.profiles.member_set(o)),
    op.MemberDelete: Arm("`DELETE` of an `ActionProfileMember`", lambda f, o: f.profiles.member_delete(o)),
    op.MembersRead: Arm("read of `ActionProfileMember`", lambda f, o: f.profiles.members_read(o)),
    op.GroupAdd: Arm("`INSERT` of an `ActionProfileGroup`", lambda f, o: f.profiles.group_add(o)),
    op.GroupSet: Arm("`INSERT` or `MODIFY` of an `ActionProfileGroup`", lambda f, o: f.profiles.group_set(o)),
    op.GroupJoin: Arm(
        "`MODIFY` of an `ActionProfileGroup`, read before", lambda f, o: f.profiles.group_join(o)
    ),
    op.GroupLeave: Arm(
        "`MODIFY` of an `ActionProfileGroup`, read before", lambda f, o: f.profiles.group_leave(o)
    ),
    op.GroupDelete: Arm("`DELETE` of an `ActionProfileGroup`", lambda f, o: f.profiles.group_delete(o)),
    op.GroupsRead: Arm("read of `ActionProfileGroup`", lambda f, o: f.profiles.groups_read(o)),
    op.RegisterRead: Arm("read of `RegisterEntry`", lambda f, o: f.arrays.register_read(o)),
    op.RegisterWrite: Arm(
        "`MODIFY` of a `RegisterEntry` for each cell", lambda f, o: f.arrays.register_write(o)
    ),
    op.RegisterSet: Arm("`MODIFY` of a `RegisterEntry`", lambda f, o: f.arrays.register_set(o)),
    op.CounterRead: Arm(
        "read of `CounterEntry` or `DirectCounterEntry`", lambda f, o: f.arrays.counter_read(o)
    ),
    op.CounterSet: Arm(
        "`MODIFY` of a `CounterEntry` or of each `DirectCounterEntry`", lambda f, o: f.arrays.counter_set(o)
    ),
    op.MeterRead: Arm("read of `MeterEntry` or `DirectMeterEntry`", lambda f, o: f.arrays.meter_read(o)),
    op.MeterSet: Arm(
        "`MODIFY` of a `MeterEntry` or `DirectMeterEntry`; rates are whole bytes or packets a second",
        lambda f, o: f.arrays.meter_set(o),
    ),
    op.ValueSetAdd: Arm(
        "`MODIFY` of a `ValueSetEntry`, read before", lambda f, o: f.value_sets.value_set_add(o)
    ),
    op.ValueSetRemove: Arm(
        "`MODIFY` of a `ValueSetEntry`, read before", lambda f, o: f.value_sets.value_set_remove(o)
    ),
    op.ValueSetFill: Arm("`MODIFY` of a `ValueSetEntry`", lambda f, o: f.value_sets.value_set_fill(o)),
    op.ValueSetRead: Arm("read of `ValueSetEntry`", lambda f, o: f.value_sets.value_set_read(o)),
    op.MulticastSet: Arm(
        "`INSERT` or `MODIFY` of a `MulticastGroupEntry`", lambda f, o: f.replication.multicast_set(o)
    ),
    op.MulticastDelete: Arm(
        "`DELETE` of a `MulticastGroupEntry`, with its nodes", lambda f, o: f.replication.multicast_delete(o)
    ),
    op.NodeAdd: _NODES,
    op.NodeSet: _NODES,
    op.NodeDelete: _NODES,
    op.NodeJoin: _NODES,
    op.NodeLeave: _NODES,
    op.MulticastRead: Arm("read of `MulticastGroupEntry`", lambda f, o: f.replication.multicast_read(o)),
    op.MirrorSet: Arm(
        "`INSERT` or `MODIFY` of a `CloneSessionEntry`; not for a session that follows a group",
        lambda f, o: f.replication.mirror_set(o),
    ),
    op.MirrorDelete: Arm("`DELETE` of a `CloneSessionEntry`", lambda f, o: f.replication.mirror_delete(o)),
    op.MirrorRead: Arm("read of `CloneSessionEntry`", lambda f, o: f.replication.mirror_read(o)),
    op.DigestsTake: Reason(
        "a server sends `DigestList` by itself",
        "run a controller (`RemoteSwitch.run`), or take it from `Connection.heard`",
    ),
    op.DigestsLost: _COUNTS,
    op.DropsRead: _COUNTS,
    op.CrcSet: Reason(
        "it has no entity for hash functions", "set it where the switch is started (`--commands`)"
    ),
    op.StateReset: Reason(
        "a server resets its state with its program", "set the program again: `Connection.set_config`"
    ),
    op.PortRead: _FIXED,
    op.PortSet: _FIXED,
    op.QueueRead: _FIXED,
    op.GeneratorSet: _FIXED,
    op.GeneratorStop: _FIXED,
    op.GeneratorRead: _FIXED,
    op.PacketOut: Arm("`PacketOut` on the stream", lambda f, o: f.packets.message(o)),
    op.PacketTake: Reason(
        "a server sends `PacketIn` by itself",
        "run a controller (`RemoteSwitch.run`), or take it from `Connection.heard`",
    ),
    op.StatisticsRead: _COUNTS,
}


def arm_of(operation: op.Operation) -> Arm:
    """The messages of an operation; raises if there are none."""
    found = ARMS.get(type(operation))
    if found is None:
        raise P4Error.about(
            "", f"{operation!r} is not an operation", cure="see docs/operations.md for those there are"
        )
    if isinstance(found, Reason):
        raise found.refusal(operation)
    return found


def table() -> str:
    """The table of `docs/p4runtime.md`."""
    lines = ["| operation | P4Runtime |", "|---|---|"]
    for kind, found in ARMS.items():
        what = found.messages if isinstance(found, Arm) else f"none: {found.why}; {found.cure}"
        lines.append(f"| `{kind.op}` | {what} |")
    return "\n".join(lines) + "\n"
