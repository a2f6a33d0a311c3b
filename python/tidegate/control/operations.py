# Made from crates/control/src/ops by `cargo run -p control --example generate`. Do not edit.
"""Every operation on a switch, as `SwitchApi.act` and `PipelineApi.batch` take it: what `docs/operations.md` lists."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from tidegate.control.objects import (
    Bits,
    Call,
    Crc,
    Entry,
    GeneratorSpec,
    Key,
    Leads,
    MirrorSpec,
    PortSpec,
    Put,
    Rates,
    Share,
)


class Operation:
    """What can be asked of a switch."""

    __slots__ = ()
    op: ClassVar[str]


@dataclass(slots=True)
class TableAdd(Operation):
    """Add an entry; the answer is its handle."""

    op: ClassVar[str] = "table_add"
    table: str
    """The table."""
    key: Sequence[Key]
    """One match for each key."""
    to: Leads
    """An action with its values, or a member, a group or a set of actions."""
    priority: int | None = None
    """The smaller one wins; for tables with ternary, range or optional keys alone."""
    counter: tuple[int, int] | None = None
    """Packets and bytes of the direct counter; `None` leaves them."""
    meter: Rates | None = None
    """Rates of the direct meter, `()` for none; `None` leaves them."""
    idle_timeout: int | None = None
    """Picoseconds without a packet, 0 for none; `None` leaves it."""
    note: bytes | None = None
    """The control plane's own note; `None` leaves it."""


@dataclass(slots=True)
class TableSet(Operation):
    """Change an entry."""

    op: ClassVar[str] = "table_set"
    table: str
    """The table."""
    entry: Entry
    """Its handle, or its match and priority."""
    to: Leads | None = None
    """The new action with its values, or a member or group; `None` leaves it."""
    counter: tuple[int, int] | None = None
    """Packets and bytes of the direct counter; `None` leaves them."""
    meter: Rates | None = None
    """Rates of the direct meter, `()` for none; `None` leaves them."""
    idle_timeout: int | None = None
    """Picoseconds without a packet, 0 for none; `None` leaves it."""
    note: bytes | None = None
    """The control plane's own note; `None` leaves it."""


@dataclass(slots=True)
class TableDelete(Operation):
    """Remove an entry."""

    op: ClassVar[str] = "table_delete"
    table: str
    """The table."""
    entry: Entry
    """Its handle, or its match and priority."""


@dataclass(slots=True)
class TableClear(Operation):
    """Remove all entries but the program's const entries."""

    op: ClassVar[str] = "table_clear"
    table: str
    """The table."""


@dataclass(slots=True)
class TableDefaultSet(Operation):
    """Set the default action, which a miss runs."""

    op: ClassVar[str] = "table_default_set"
    table: str
    """The table."""
    to: Leads
    """The default action with its values, or a member or group."""
    note: bytes | None = None
    """The control plane's own note; `None` leaves it."""


@dataclass(slots=True)
class TableDefaultReset(Operation):
    """Reset the default action to the program's."""

    op: ClassVar[str] = "table_default_reset"
    table: str
    """The table."""


@dataclass(slots=True)
class TableDefaultRead(Operation):
    """Read the default action."""

    op: ClassVar[str] = "table_default_read"
    table: str
    """The table."""


@dataclass(slots=True)
class TableRead(Operation):
    """Read entries: one, or those of some handles in order, which may be none."""

    op: ClassVar[str] = "table_read"
    table: str
    """The table."""
    start: int
    """The handle from which on."""
    only: Entry | None = None
    """Only this one."""


@dataclass(slots=True)
class TableIdleTake(Operation):
    """Take the entries of all tables whose idle timeout has expired, and restart their timeouts."""

    op: ClassVar[str] = "table_idle_take"


@dataclass(slots=True)
class TableTotals(Operation):
    """Read how many entries each table has, and the sums of its direct counter: of all entries, or of some at a time."""

    op: ClassVar[str] = "table_totals"
    table: str | None = None
    """Only of this table."""
    start: int | None = None
    """The handle from which on some entries are summed; `None`: all are."""


@dataclass(slots=True)
class MemberAdd(Operation):
    """Add a member; the answer is its number."""

    op: ClassVar[str] = "member_add"
    profile: str
    """The action profile."""
    to: Call
    """An action with its values."""
    member: int | None = None
    """Its number; `None`: the next that is free."""


@dataclass(slots=True)
class MemberSet(Operation):
    """Change what a member does."""

    op: ClassVar[str] = "member_set"
    profile: str
    """The action profile."""
    member: int
    """Its number."""
    to: Call
    """An action with its values."""


@dataclass(slots=True)
class MemberDelete(Operation):
    """Remove a member that nothing uses."""

    op: ClassVar[str] = "member_delete"
    profile: str
    """The action profile."""
    member: int
    """Its number."""


@dataclass(slots=True)
class MembersRead(Operation):
    """Read members."""

    op: ClassVar[str] = "members_read"
    profile: str
    """The action profile."""
    start: int | None = None
    """The number from which on; `None`: from the first."""
    count: int | None = None
    """How many, in the order of their numbers; `None`: all from there on."""


@dataclass(slots=True)
class GroupAdd(Operation):
    """Add an empty group; the answer is its number."""

    op: ClassVar[str] = "group_add"
    profile: str
    """The action selector."""


@dataclass(slots=True)
class GroupSet(Operation):
    """Make a group, or replace its members."""

    op: ClassVar[str] = "group_set"
    profile: str
    """The action selector."""
    group: int
    """Its number."""
    shares: Sequence[Share]
    """Its members."""
    max_size: int
    """The most members that it may have; 0: not stated."""
    put: Put
    """Whether it is made or changed."""


@dataclass(slots=True)
class GroupJoin(Operation):
    """Put a member in a group."""

    op: ClassVar[str] = "group_join"
    profile: str
    """The action selector."""
    group: int
    """The group."""
    member: int
    """The member."""


@dataclass(slots=True)
class GroupLeave(Operation):
    """Take a member out of a group."""

    op: ClassVar[str] = "group_leave"
    profile: str
    """The action selector."""
    group: int
    """The group."""
    member: int
    """The member."""


@dataclass(slots=True)
class GroupDelete(Operation):
    """Remove a group that nothing uses."""

    op: ClassVar[str] = "group_delete"
    profile: str
    """The action selector."""
    group: int
    """Its number."""


@dataclass(slots=True)
class GroupsRead(Operation):
    """Read groups."""

    op: ClassVar[str] = "groups_read"
    profile: str
    """The action selector."""
    start: int | None = None
    """The number from which on; `None`: from the first."""
    count: int | None = None
    """How many at most, in the order of their numbers, fewer if they are large; `None`: all from there on."""


@dataclass(slots=True)
class RegisterRead(Operation):
    """Read cells of a register."""

    op: ClassVar[str] = "register_read"
    register: str
    """The register."""
    start: int
    """The first cell."""
    count: int | None = None
    """How many; `None`: all from there on."""


@dataclass(slots=True)
class RegisterWrite(Operation):
    """Write cells of a register, from one on."""

    op: ClassVar[str] = "register_write"
    register: str
    """The register."""
    start: int
    """The first cell."""
    words: bytes
    """Words of 64 bits, each little-endian, the least significant word of a cell first."""


@dataclass(slots=True)
class RegisterSet(Operation):
    """Set one cell of a register, several, or all, to one value."""

    op: ClassVar[str] = "register_set"
    register: str
    """The register."""
    at: int | tuple[int, int] | None
    """The cell; a pair: the first of several and how many; `None`: all."""
    value: Bits
    """The value."""


@dataclass(slots=True)
class CounterRead(Operation):
    """Read cells of a counter; of a direct counter, that of the entry of a handle."""

    op: ClassVar[str] = "counter_read"
    counter: str
    """The counter."""
    start: int
    """The first cell."""
    count: int | None = None
    """How many; `None`: all from there on."""


@dataclass(slots=True)
class CounterSet(Operation):
    """Set one cell of a counter, several, or all; of a direct counter, that of the entry of a handle."""

    op: ClassVar[str] = "counter_set"
    counter: str
    """The counter."""
    at: int | tuple[int, int] | None
    """The cell; a pair: the first of several and how many; `None`: all."""
    packets: int
    """Packets."""
    bytes: int
    """Bytes."""


@dataclass(slots=True)
class MeterRead(Operation):
    """Read cells of a meter; of a direct meter, that of the entry of a handle."""

    op: ClassVar[str] = "meter_read"
    meter: str
    """The meter."""
    start: int
    """The first cell."""
    count: int | None = None
    """How many; `None`: all from there on."""


@dataclass(slots=True)
class MeterSet(Operation):
    """Set the rates of one cell of a meter, of several, or of all; of a direct meter, that of the entry of a handle."""

    op: ClassVar[str] = "meter_set"
    meter: str
    """The meter."""
    at: int | tuple[int, int] | None
    """The cell; a pair: the first of several and how many; `None`: all."""
    rates: Rates
    """Thousandths of a byte or packet a second, and bursts; `()`: all packets are green."""


@dataclass(slots=True)
class ValueSetAdd(Operation):
    """Add a member to a value set."""

    op: ClassVar[str] = "value_set_add"
    value_set: str
    """The value set."""
    member: Sequence[Key]
    """One match for each field."""


@dataclass(slots=True)
class ValueSetRemove(Operation):
    """Remove a member of a value set."""

    op: ClassVar[str] = "value_set_remove"
    value_set: str
    """The value set."""
    member: Sequence[Key]
    """One match for each field."""


@dataclass(slots=True)
class ValueSetFill(Operation):
    """Replace the members of a value set."""

    op: ClassVar[str] = "value_set_fill"
    value_set: str
    """The value set."""
    members: Sequence[Sequence[Key]]
    """Of each member one match for each field."""


@dataclass(slots=True)
class ValueSetRead(Operation):
    """Read all members of a value set."""

    op: ClassVar[str] = "value_set_read"
    value_set: str
    """The value set."""


@dataclass(slots=True)
class MulticastSet(Operation):
    """Set all copies of a multicast group."""

    op: ClassVar[str] = "multicast_set"
    group: int
    """The group."""
    copies: Sequence[tuple[int, int]]
    """Port and replication id of each."""
    put: Put
    """Whether it is made or changed."""


@dataclass(slots=True)
class MulticastDelete(Operation):
    """Remove a multicast group."""

    op: ClassVar[str] = "multicast_delete"
    group: int
    """The group."""
    put: Put
    """`known`: there must be one."""
    nodes: bool
    """Whether its nodes go as well, but for those that other groups have."""


@dataclass(slots=True)
class NodeAdd(Operation):
    """Make a node: copies that have one replication id; the answer is its handle."""

    op: ClassVar[str] = "node_add"
    rid: int
    """Replication id."""
    ports: Sequence[int]
    """Ports."""


@dataclass(slots=True)
class NodeSet(Operation):
    """Set the ports of a node."""

    op: ClassVar[str] = "node_set"
    node: int
    """Its handle."""
    ports: Sequence[int]
    """Ports."""


@dataclass(slots=True)
class NodeDelete(Operation):
    """Remove a node."""

    op: ClassVar[str] = "node_delete"
    node: int
    """Its handle."""


@dataclass(slots=True)
class NodeJoin(Operation):
    """Put a node in a multicast group."""

    op: ClassVar[str] = "node_join"
    group: int
    """The group."""
    node: int
    """The node."""


@dataclass(slots=True)
class NodeLeave(Operation):
    """Take a node out of a multicast group."""

    op: ClassVar[str] = "node_leave"
    group: int
    """The group."""
    node: int
    """The node."""


@dataclass(slots=True)
class MulticastRead(Operation):
    """Read multicast groups."""

    op: ClassVar[str] = "multicast_read"
    start: int | None = None
    """The number from which on; `None`: from the first."""
    count: int | None = None
    """How many at most, in the order of their numbers, fewer if they are large; `None`: all from there on."""


@dataclass(slots=True)
class MirrorSet(Operation):
    """Set where the copies of a mirror session go."""

    op: ClassVar[str] = "mirror_set"
    session: int
    """The session."""
    to: MirrorSpec
    """Ports and groups."""
    put: Put
    """Whether it is made or changed."""


@dataclass(slots=True)
class MirrorDelete(Operation):
    """Remove a mirror session."""

    op: ClassVar[str] = "mirror_delete"
    session: int
    """The session."""
    put: Put
    """`known`: there must be one."""


@dataclass(slots=True)
class MirrorRead(Operation):
    """Read mirror sessions."""

    op: ClassVar[str] = "mirror_read"
    start: int | None = None
    """The number from which on; `None`: from the first."""
    count: int | None = None
    """How many at most, in the order of their numbers, fewer if they are large; `None`: all from there on."""


@dataclass(slots=True)
class DigestsTake(Operation):
    """Take the digests that the program has sent since they were last taken."""

    op: ClassVar[str] = "digests_take"


@dataclass(slots=True)
class DigestsLost(Operation):
    """Count the digests that were dropped because too many waited."""

    op: ClassVar[str] = "digests_lost"


@dataclass(slots=True)
class DropsRead(Operation):
    """Count the packets dropped so far, by reason."""

    op: ClassVar[str] = "drops_read"


@dataclass(slots=True)
class CrcSet(Operation):
    """Set the polynomial of `crc16_custom` or `crc32_custom`."""

    op: ClassVar[str] = "crc_set"
    to: Crc
    """Width, polynomial, initial value, final XOR, what is reflected."""


@dataclass(slots=True)
class StateReset(Operation):
    """Set all tables, registers, counters and so on to the program's initial state, without multicast groups."""

    op: ClassVar[str] = "state_reset"


@dataclass(slots=True)
class PortRead(Operation):
    """Read a port's configuration."""

    op: ClassVar[str] = "port_read"
    port: int
    """The port."""


@dataclass(slots=True)
class PortSet(Operation):
    """Configure a port. Packets in a queue that is removed go to the last remaining queue."""

    op: ClassVar[str] = "port_set"
    port: int
    """The port."""
    to: PortSpec
    """Queues, scheduler, shaper."""


@dataclass(slots=True)
class QueueRead(Operation):
    """Read the packets and bytes that wait in a queue, and its counts."""

    op: ClassVar[str] = "queue_read"
    port: int
    """The port."""
    queue: int
    """The queue."""


@dataclass(slots=True)
class GeneratorSet(Operation):
    """Start a packet generator, or change it while it runs."""

    op: ClassVar[str] = "generator_set"
    generator: int
    """The generator."""
    to: GeneratorSpec
    """Ingress port, packet, and period in picoseconds."""


@dataclass(slots=True)
class GeneratorStop(Operation):
    """Stop a packet generator."""

    op: ClassVar[str] = "generator_stop"
    generator: int
    """The generator."""


@dataclass(slots=True)
class GeneratorRead(Operation):
    """Read what a packet generator does."""

    op: ClassVar[str] = "generator_read"
    generator: int
    """The generator."""


@dataclass(slots=True)
class PacketOut(Operation):
    """Send a packet into the switch by the controller's port."""

    op: ClassVar[str] = "packet_out"
    packet: bytes
    """From the controller header on, if the program takes one off."""


@dataclass(slots=True)
class PacketTake(Operation):
    """Take the next packet for the controller."""

    op: ClassVar[str] = "packet_take"


@dataclass(slots=True)
class StatisticsRead(Operation):
    """Read the counts of packets: received, sent, dropped, held."""

    op: ClassVar[str] = "statistics_read"


class Methods:
    """A method for each operation but those that `control/switch.py` writes with units and arrays."""

    def act(self, operation: Operation) -> Any:
        """Do an operation; return its answer."""
        raise NotImplementedError

    def table_set(
        self,
        table: str,
        entry: Entry,
        to: Leads | None = None,
        counter: tuple[int, int] | None = None,
        meter: Rates | None = None,
        idle_timeout: int | None = None,
        note: bytes | None = None,
    ) -> None:
        """Change an entry."""
        self.act(TableSet(table, entry, to, counter, meter, idle_timeout, note))

    def table_clear(self, table: str) -> None:
        """Remove all entries but the program's const entries."""
        self.act(TableClear(table))

    def table_default_set(self, table: str, to: Leads, note: bytes | None = None) -> None:
        """Set the default action, which a miss runs."""
        self.act(TableDefaultSet(table, to, note))

    def table_default_reset(self, table: str) -> None:
        """Reset the default action to the program's."""
        self.act(TableDefaultReset(table))

    def table_default_read(self, table: str) -> Any:
        """Read the default action."""
        return self.act(TableDefaultRead(table))

    def table_read(self, table: str, start: int, only: Entry | None = None) -> Any:
        """Read entries: one, or those of some handles in order, which may be none."""
        return self.act(TableRead(table, start, only))

    def table_totals(self, table: str | None = None, start: int | None = None) -> Any:
        """Read how many entries each table has, and the sums of its direct counter: of all entries, or of some at a time."""
        return self.act(TableTotals(table, start))

    def member_set(self, profile: str, member: int, to: Call) -> None:
        """Change what a member does."""
        self.act(MemberSet(profile, member, to))

    def member_delete(self, profile: str, member: int) -> None:
        """Remove a member that nothing uses."""
        self.act(MemberDelete(profile, member))

    def members_read(self, profile: str, start: int | None = None, count: int | None = None) -> Any:
        """Read members."""
        return self.act(MembersRead(profile, start, count))

    def group_set(self, profile: str, group: int, shares: Sequence[Share], max_size: int, put: Put) -> None:
        """Make a group, or replace its members."""
        self.act(GroupSet(profile, group, shares, max_size, put))

    def group_join(self, profile: str, group: int, member: int) -> None:
        """Put a member in a group."""
        self.act(GroupJoin(profile, group, member))

    def group_leave(self, profile: str, group: int, member: int) -> None:
        """Take a member out of a group."""
        self.act(GroupLeave(profile, group, member))

    def group_delete(self, profile: str, group: int) -> None:
        """Remove a group that nothing uses."""
        self.act(GroupDelete(profile, group))

    def groups_read(self, profile: str, start: int | None = None, count: int | None = None) -> Any:
        """Read groups."""
        return self.act(GroupsRead(profile, start, count))

    def register_set(self, register: str, at: int | tuple[int, int] | None, value: Bits) -> None:
        """Set one cell of a register, several, or all, to one value."""
        self.act(RegisterSet(register, at, value))

    def counter_set(self, counter: str, at: int | tuple[int, int] | None, packets: int, bytes: int) -> None:
        """Set one cell of a counter, several, or all; of a direct counter, that of the entry of a handle."""
        self.act(CounterSet(counter, at, packets, bytes))

    def meter_read(self, meter: str, start: int, count: int | None = None) -> Any:
        """Read cells of a meter; of a direct meter, that of the entry of a handle."""
        return self.act(MeterRead(meter, start, count))

    def value_set_add(self, value_set: str, member: Sequence[Key]) -> None:
        """Add a member to a value set."""
        self.act(ValueSetAdd(value_set, member))

    def value_set_remove(self, value_set: str, member: Sequence[Key]) -> None:
        """Remove a member of a value set."""
        self.act(ValueSetRemove(value_set, member))

    def value_set_fill(self, value_set: str, members: Sequence[Sequence[Key]]) -> None:
        """Replace the members of a value set."""
        self.act(ValueSetFill(value_set, members))

    def value_set_read(self, value_set: str) -> Any:
        """Read all members of a value set."""
        return self.act(ValueSetRead(value_set))

    def node_add(self, rid: int, ports: Sequence[int]) -> int:
        """Make a node: copies that have one replication id; the answer is its handle."""
        found: int = self.act(NodeAdd(rid, ports))
        return found

    def node_set(self, node: int, ports: Sequence[int]) -> None:
        """Set the ports of a node."""
        self.act(NodeSet(node, ports))

    def node_delete(self, node: int) -> None:
        """Remove a node."""
        self.act(NodeDelete(node))

    def node_join(self, group: int, node: int) -> None:
        """Put a node in a multicast group."""
        self.act(NodeJoin(group, node))

    def node_leave(self, group: int, node: int) -> None:
        """Take a node out of a multicast group."""
        self.act(NodeLeave(group, node))

    def multicast_read(self, start: int | None = None, count: int | None = None) -> Any:
        """Read multicast groups."""
        return self.act(MulticastRead(start, count))

    def mirror_delete(self, session: int, put: Put) -> None:
        """Remove a mirror session."""
        self.act(MirrorDelete(session, put))

    def mirror_read(self, start: int | None = None, count: int | None = None) -> Any:
        """Read mirror sessions."""
        return self.act(MirrorRead(start, count))

    def digests_lost(self) -> int:
        """Count the digests that were dropped because too many waited."""
        found: int = self.act(DigestsLost())
        return found

    def drops_read(self) -> Any:
        """Count the packets dropped so far, by reason."""
        return self.act(DropsRead())

    def crc_set(self, to: Crc) -> None:
        """Set the polynomial of `crc16_custom` or `crc32_custom`."""
        self.act(CrcSet(to))

    def state_reset(self) -> None:
        """Set all tables, registers, counters and so on to the program's initial state, without multicast groups."""
        self.act(StateReset())

    def port_set(self, port: int, to: PortSpec) -> None:
        """Configure a port. Packets in a queue that is removed go to the last remaining queue."""
        self.act(PortSet(port, to))

    def generator_read(self, generator: int) -> Any:
        """Read what a packet generator does."""
        return self.act(GeneratorRead(generator))

    def statistics_read(self) -> Any:
        """Read the counts of packets: received, sent, dropped, held."""
        return self.act(StatisticsRead())
