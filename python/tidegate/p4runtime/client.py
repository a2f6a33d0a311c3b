"""A switch behind a P4Runtime server, for controllers: `SwitchApi` by messages, so that a controller runs unchanged.

    >>> from tidegate.p4runtime import connect
    >>> with connect("127.0.0.1:9559") as switch:
    ...     switch.run(Learner(), "10 s")

Any server will do that has been told its program. What P4Runtime has no messages for (queues, packet generators, statistics)
raises `TidegateError`.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NoReturn, Self

import numpy as np
import numpy.typing as npt

from tidegate import units
from tidegate._core import TidegateError, parse_match, parse_value
from tidegate.control import Controller, Digest, Match, PacketIn, Port, QueueState, SwitchApi, TableEntry
from tidegate.control.api import Value, Words
from tidegate.p4runtime.connection import ClientTls, Connection, Refused
from tidegate.p4runtime.device import TOP_PRIORITY
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Action, Array, Field, Profile, Schema, Table
from tidegate.p4runtime.tables import add_matches
from tidegate.p4runtime.values import Codec, Translations, canonical

# Updates of one message.
BATCH = 2000
NOT_FOUND = "NOT_FOUND"


def connect(
    address: str,
    *,
    name: str = "switch",
    ports: Sequence[str] = (),
    device_id: int = 1,
    election_id: tuple[int, int] | int = 1,
    role: str = "",
    tls: ClientTls | None = None,
    translations: Translations | None = None,
) -> RemoteSwitch:
    """Connect to a server and become primary.

    `ports` are the names of what is at the other end of each port; `translations` are the server's, for programs that have names
    for numbers.
    """
    connection = Connection(address, device_id=device_id, election_id=election_id, role=role, tls=tls)
    try:
        return RemoteSwitch(connection, name, ports, translations=translations)
    except TidegateError:
        connection.close()
        raise


class RemoteSwitch(SwitchApi):
    """A switch that is asked by P4Runtime."""

    def __init__(
        self,
        connection: Connection,
        name: str = "switch",
        ports: Sequence[str] = (),
        note: Callable[[int, str, str, float], None] = lambda *_: None,
        translations: Translations | None = None,
    ) -> None:
        """Stand for the switch of a connection that takes part in an election; raises if it is not won."""
        self.name = name
        self.ports = tuple(ports)
        self._note = note
        self.connection = connection
        status = connection.next("arbitration").status
        if status.code != 0:
            raise TidegateError(f"{name}: another controller is primary ({status.message})")
        info = connection.get_config("P4INFO_AND_COOKIE").p4info
        self._schema = Schema(info, translations=translations or {})
        # Entries by handle, and handles by what identifies an entry.
        self._keys: dict[tuple[str, int], Any] = {}
        self._handles: dict[tuple[str, bytes], int] = {}
        self._started = time.monotonic_ns()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self.connection.close()

    # Names.

    def _object(self, objects: dict[int, Any], name: str, what: str) -> Any:
        found = [o for o in objects.values() if o.name == name]
        found = found or [o for o in objects.values() if o.name.endswith(f".{name}")]
        if len(found) != 1:
            known = ", ".join(o.name for o in list(objects.values())[:20]) or "the program has none"
            raise TidegateError(f"no {what} {name!r}, or more than one; there are: {known}")
        return found[0]

    def _table(self, name: str) -> Table:
        table: Table = self._object(self._schema.tables, name, "table")
        return table

    def _profile(self, name: str) -> Profile:
        profile: Profile = self._object(self._schema.profiles, name, "action profile")
        return profile

    def _register(self, name: str) -> Array:
        array: Array = self._object(self._schema.registers, name, "register")
        return array

    def _refuse(self, what: str) -> NoReturn:
        raise TidegateError(f"{self.name} is asked by P4Runtime, which has no message for {what}")

    # Messages.

    def _write(self, kind: str, *entities: Any) -> None:
        for at in range(0, len(entities), BATCH):
            try:
                self.connection.write(*[(kind, entity) for entity in entities[at : at + BATCH]])
            except Refused as refused:
                wrong = next((e for e in refused.errors if e.canonical_code), None)
                if wrong is None:
                    raise
                raise TidegateError(wrong.message) from None

    def _value(self, value: Value, codec: Codec) -> bytes:
        """A value as the switch would have it."""
        if not isinstance(value, int):
            return parse_value(value, codec.width)
        if value < 0:
            raise TidegateError(f"{value} is negative")
        return canonical(value)

    def _action(self, actions: Iterable[int], name: str, values: Iterable[Value]) -> Any:
        listed = {number: self._schema.actions[number] for number in actions}
        action: Action = self._object(listed, name, "action")
        given = list(values)
        if len(given) != len(action.params):
            raise TidegateError(f"action {action.name} takes {len(action.params)} values, not {len(given)}")
        message = p4.Action(action_id=action.id)
        for param, value in zip(action.params, given, strict=True):
            message.params.add(
                param_id=param.id, value=param.codec.to_client(self._value(value, param.codec))
            )
        return message

    # Tables.

    def _match(self, field: Field, value: Value) -> Any:
        if isinstance(value, int) and field.kind in ("exact", "optional"):
            return self._value(value, field.codec)
        return parse_match(str(value), field.kind, field.codec.width)

    def _entry(self, table: Table, match: Iterable[Value], priority: int | None) -> Any:
        given = list(match)
        if len(given) != len(table.fields):
            raise TidegateError(f"table {table.name} has {len(table.fields)} keys, not {len(given)}")
        entry = p4.TableEntry(table_id=table.id)
        found = [self._match(field, value) for field, value in zip(table.fields, given, strict=True)]
        add_matches(entry.match, table.fields, found)
        if table.prioritised:
            if priority is None:
                raise TidegateError(f"table {table.name} has keys that need a priority")
            entry.priority = TOP_PRIORITY - priority
        return entry

    def _remember(self, table: Table, entry: Any) -> int:
        key = p4.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)
        text = key.SerializeToString(deterministic=True)
        handle = self._handles.get((table.name, text))
        if handle is None:
            handle = len(self._handles)
            self._handles[table.name, text] = handle
            self._keys[table.name, handle] = key
        return handle

    def _by_handle(self, table: Table, handle: int) -> Any:
        key = self._keys.get((table.name, handle))
        if key is None:
            raise TidegateError(f"table {table.name} has no entry {handle} that this controller knows")
        entry = p4.TableEntry()
        entry.CopyFrom(key)
        return entry

    def _add(self, table: Table, entry: Any) -> int:
        self._write("INSERT", p4.Entity(table_entry=entry))
        return self._remember(table, entry)

    def table_add(
        self,
        table: str,
        match: Iterable[Value],
        action: str,
        values: Iterable[Value] = (),
        priority: int | None = None,
    ) -> int:
        """Add an entry and return its handle. The smaller priority wins."""
        found = self._table(table)
        entry = self._entry(found, match, priority)
        entry.action.action.CopyFrom(self._action(found.actions, action, values))
        return self._add(found, entry)

    def table_modify(self, table: str, handle: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what an entry does."""
        found = self._table(table)
        entry = self._by_handle(found, handle)
        entry.action.action.CopyFrom(self._action(found.actions, action, values))
        self._write("MODIFY", p4.Entity(table_entry=entry))

    def table_delete(self, table: str, handle: int) -> None:
        """Remove an entry."""
        found = self._table(table)
        key = self._by_handle(found, handle)
        self._write("DELETE", p4.Entity(table_entry=key))
        del self._keys[found.name, handle]
        del self._handles[found.name, key.SerializeToString(deterministic=True)]

    def table_clear(self, table: str) -> None:
        """Remove all entries but those of the program that are const."""
        found = self._table(table)
        entries = self.connection.read(p4.Entity(table_entry={"table_id": found.id}))
        self._write("DELETE", *[entity for entity in entries if not entity.table_entry.is_const])

    def table_set_default(self, table: str, action: str, values: Iterable[Value] = ()) -> None:
        """Set what happens on a miss."""
        found = self._table(table)
        entry = p4.TableEntry(table_id=found.id, is_default_action=True)
        entry.action.action.CopyFrom(self._action(found.actions, action, values))
        self._write("MODIFY", p4.Entity(table_entry=entry))

    def table_entries(self, table: str) -> list[TableEntry]:
        """All entries of a table."""
        found = self._table(table)
        asked = p4.TableEntry(table_id=found.id)
        if found.counter:
            asked.counter_data.SetInParent()
        entities = self.connection.read(p4.Entity(table_entry=asked))
        return [self._table_entry(found, entity.table_entry) for entity in entities]

    def _table_entry(self, table: Table, entry: Any) -> TableEntry:
        matches = {match.field_id: match for match in entry.match}
        kind = entry.action.WhichOneof("type")
        action, values = str(kind).removeprefix("action_profile_").removesuffix("_id"), []
        if kind == "action":
            declared = self._schema.actions[entry.action.action.action_id]
            given = {param.param_id: param.value for param in entry.action.action.params}
            action, values = declared.name, [param.codec.number(given[param.id]) for param in declared.params]
        elif kind in ("action_profile_member_id", "action_profile_group_id"):
            values = [getattr(entry.action, kind)]
        return TableEntry(
            handle=self._remember(table, entry),
            match=tuple(_match_of(field, matches.get(field.id)) for field in table.fields),
            priority=TOP_PRIORITY - entry.priority if table.prioritised else 0,
            action=action,
            values=tuple(values),
            packets=entry.counter_data.packet_count,
            bytes=entry.counter_data.byte_count,
        )

    # Action profiles and selectors.

    def _actions_of(self, profile: Profile) -> Iterable[int]:
        return self._schema.tables[profile.tables[0]].actions

    def _member(self, profile: str, member: int, action: Any = None) -> Any:
        number = self._profile(profile).id
        message = p4.ActionProfileMember(action_profile_id=number, member_id=member)
        if action is not None:
            message.action.CopyFrom(action)
        return p4.Entity(action_profile_member=message)

    def member_add(self, profile: str, action: str, values: Iterable[Value] = ()) -> int:
        """Add a member to an action profile and return its handle."""
        found = self._profile(profile)
        there = self.connection.read(p4.Entity(action_profile_member={"action_profile_id": found.id}))
        number = 1 + max((e.action_profile_member.member_id for e in there), default=0)
        made = self._action(self._actions_of(found), action, values)
        self._write("INSERT", self._member(profile, number, made))
        return number

    def member_modify(self, profile: str, member: int, action: str, values: Iterable[Value] = ()) -> None:
        """Change what a member does."""
        made = self._action(self._actions_of(self._profile(profile)), action, values)
        self._write("MODIFY", self._member(profile, member, made))

    def member_delete(self, profile: str, member: int) -> None:
        """Remove a member that nothing uses."""
        self._write("DELETE", self._member(profile, member))

    def _groups(self, profile: str, group: int = 0) -> list[Any]:
        asked = {"action_profile_id": self._profile(profile).id, "group_id": group}
        found = self.connection.read(p4.Entity(action_profile_group=asked))
        return [entity.action_profile_group for entity in found]

    def group_add(self, profile: str, members: Iterable[int] = ()) -> int:
        """Add a group of members to an action selector and return its handle."""
        number = 1 + max((g.group_id for g in self._groups(profile)), default=0)
        found = self._profile(profile)
        info = next(p for p in self._schema.p4info.action_profiles if p.preamble.id == found.id)
        group = p4.ActionProfileGroup(
            action_profile_id=found.id, group_id=number, max_size=info.max_group_size
        )
        for member in members:
            group.members.add(member_id=member, weight=1)
        self._write("INSERT", p4.Entity(action_profile_group=group))
        return number

    def group_join(self, profile: str, group: int, member: int) -> None:
        """Put a member in a group."""
        (found,) = self._groups(profile, group)
        found.members.add(member_id=member, weight=1)
        self._write("MODIFY", p4.Entity(action_profile_group=found))

    def group_leave(self, profile: str, group: int, member: int) -> None:
        """Take a member out of a group."""
        (found,) = self._groups(profile, group)
        kept = [share for share in found.members if share.member_id != member]
        if len(kept) == len(found.members):
            raise TidegateError(f"member {member} is not in group {group}")
        del found.members[:]
        found.members.extend(kept)
        self._write("MODIFY", p4.Entity(action_profile_group=found))

    def group_delete(self, profile: str, group: int) -> None:
        """Remove a group that nothing uses."""
        message = p4.ActionProfileGroup(action_profile_id=self._profile(profile).id, group_id=group)
        self._write("DELETE", p4.Entity(action_profile_group=message))

    def table_add_member(
        self, table: str, match: Iterable[Value], member: int, priority: int | None = None
    ) -> int:
        """Add an entry that leads to a member, and return its handle."""
        found = self._table(table)
        entry = self._entry(found, match, priority)
        entry.action.action_profile_member_id = member
        return self._add(found, entry)

    def table_add_group(
        self, table: str, match: Iterable[Value], group: int, priority: int | None = None
    ) -> int:
        """Add an entry that leads to a group, and return its handle."""
        found = self._table(table)
        entry = self._entry(found, match, priority)
        entry.action.action_profile_group_id = group
        return self._add(found, entry)

    # Registers, counters, meters.

    def _span(self, array: Array, start: int, count: int | None) -> range:
        end = array.size if count is None else start + count
        if not 0 <= start <= end <= array.size:
            raise TidegateError(f"{array.name} has {array.size} cells; {start} to {end} are too many")
        return range(start, end)

    def _cells(self, kind: str, field: str, array: Array, span: range) -> list[Any]:
        """Entries of some cells of an array: by one request if they are most of it, or one for each."""
        if len(span) * 4 > array.size:
            found = self.connection.read(p4.Entity(**{kind: {field: array.id}}))
            return [getattr(entity, kind) for entity in found[span.start : span.stop]]
        asked = [p4.Entity(**{kind: {field: array.id, "index": {"index": index}}}) for index in span]
        found = self.connection.read(*asked) if asked else []
        return [getattr(entity, kind) for entity in found]

    def register_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells: shape (cells,), or (cells, words) with the least significant word first if wider than 64 bits."""
        array = self._register(name)
        bits = array.spec.bitstring
        width = bits.int.bitwidth or bits.bit.bitwidth
        words, signed = -(-width // 64), bits.WhichOneof("type_spec") == "int"
        cells = self._cells("register_entry", "register_id", array, self._span(array, start, count))
        mask = (1 << width) - 1
        numbers = [int.from_bytes(cell.data.bitstring, signed=signed) & mask for cell in cells]
        if words == 1:
            return np.array(numbers, dtype=np.uint64)
        data = b"".join(number.to_bytes(8 * words, "little") for number in numbers)
        return np.frombuffer(data, dtype="<u8").astype(np.uint64).reshape(-1, words)

    def register_write(self, name: str, values: npt.ArrayLike, start: int = 0) -> None:
        """Write cells from `start` on, in the shape in which `register_read` gives them."""
        array = self._register(name)
        given = np.asarray(values)
        if given.size and (given.dtype.kind not in "iu" or (given < 0).any()):
            raise TidegateError("register cells are whole numbers that are not negative")
        bits = array.spec.bitstring
        width, signed = bits.int.bitwidth or bits.bit.bitwidth, bits.WhichOneof("type_spec") == "int"
        words = -(-width // 64)
        rows = given.astype("<u8").reshape(-1, words)
        span = self._span(array, start, len(rows))
        numbers = [int.from_bytes(row.tobytes(), "little") for row in rows]
        if any(number >> width for number in numbers):
            raise TidegateError(f"a value does not fit in the {width} bits of register {array.name}")
        if signed:
            numbers = [number - (1 << width) if number >> (width - 1) else number for number in numbers]
        self._write(
            "MODIFY",
            *[
                p4.Entity(
                    register_entry={
                        "register_id": array.id,
                        "index": {"index": index},
                        "data": {"bitstring": _signed(number) if signed else canonical(number)},
                    }
                )
                for index, number in zip(span, numbers, strict=True)
            ],
        )

    def counter_read(self, name: str, start: int = 0, count: int | None = None) -> Words:
        """Read cells of a counter: shape (cells, 2), packets and bytes."""
        array: Array = self._object(self._schema.counters, name, "counter")
        cells = self._cells("counter_entry", "counter_id", array, self._span(array, start, count))
        pairs = [(cell.data.packet_count, cell.data.byte_count) for cell in cells]
        return np.array(pairs, dtype=np.uint64).reshape(-1, 2)

    def counter_reset(self, name: str) -> None:
        """Set all cells of a counter to zero; of a direct counter, too."""
        with contextlib.suppress(TidegateError):
            array: Array = self._object(self._schema.counters, name, "counter")
            self._write("MODIFY", p4.Entity(counter_entry={"counter_id": array.id, "data": {}}))
            return
        direct: Array = self._object(self._schema.direct_counters, name, "counter")
        asked = p4.Entity(direct_counter_entry={"table_entry": {"table_id": direct.table}})
        found = self.connection.read(asked)
        for entity in found:
            entity.direct_counter_entry.data.CopyFrom(p4.CounterData())
        self._write("MODIFY", *found)

    def _meter(
        self, name: str, index: int | None, committed: float, burst: int, peak: float, peak_burst: int
    ) -> None:
        config = p4.MeterConfig(cir=round(committed), cburst=burst, pir=round(peak), pburst=peak_burst)
        known = [
            m for m in self._schema.direct_meters.values() if m.name == name or m.name.endswith(f".{name}")
        ]
        if known and not any(m.name == name for m in self._schema.meters.values()):
            table = self._schema.tables[known[0].table]
            if index is not None:
                entries = [self._by_handle(table, index)]
            else:
                found = self.connection.read(p4.Entity(table_entry={"table_id": table.id}))
                entries = [entity.table_entry for entity in found]
            self._write(
                "MODIFY",
                *[p4.Entity(direct_meter_entry={"table_entry": e, "config": config}) for e in entries],
            )
            return
        array: Array = self._object(self._schema.meters, name, "meter")
        entry = p4.MeterEntry(meter_id=array.id, config=config)
        if index is not None:
            entry.index.index = index
            entry.index.SetInParent()
        self._write("MODIFY", p4.Entity(meter_entry=entry))

    # Copies.

    def multicast_set(self, group: int, copies: Iterable[int | tuple[int, int]]) -> None:
        """Make a multicast group: ports, or pairs of port and replication id; in place of what the group was."""
        entry = p4.MulticastGroupEntry(multicast_group_id=group)
        for copy in copies:
            port, instance = (copy, 0) if isinstance(copy, int) else copy
            entry.replicas.add(port=canonical(port), instance=instance)
        self._put("multicast_group_entry", entry)

    def _put(self, kind: str, entry: Any) -> None:
        """Writes an entry of the replication engine, whether or not there is one."""
        entity = p4.Entity(packet_replication_engine_entry={kind: entry})
        try:
            self.connection.write(("MODIFY", entity))
        except Refused as refused:
            if not refused.errors or refused.errors[0].canonical_code != 5:
                raise
            self._write("INSERT", entity)

    def _drop(self, kind: str, entry: Any) -> None:
        entity = p4.Entity(packet_replication_engine_entry={kind: entry})
        try:
            self.connection.write(("DELETE", entity))
        except Refused as refused:
            if not refused.errors or refused.errors[0].canonical_code != 5:
                raise

    def multicast_delete(self, group: int) -> None:
        """Remove a multicast group."""
        self._drop("multicast_group_entry", p4.MulticastGroupEntry(multicast_group_id=group))

    def mirror_set(
        self, session: int, port: int | None = None, *, group: int | None = None, truncate: int | None = None
    ) -> None:
        """Set where the clones of a mirror session go, cut to `truncate` bytes; without port and group, nowhere.

        The copies of a group are those that it has now: P4Runtime has no sessions that follow a group.
        """
        entry = p4.CloneSessionEntry(session_id=session, packet_length_bytes=truncate or 0)
        if port is None and group is None:
            self._drop("clone_session_entry", entry)
            return
        if group is not None:
            asked = {"multicast_group_entry": {"multicast_group_id": group}}
            (found,) = self.connection.read(p4.Entity(packet_replication_engine_entry=asked))
            entry.replicas.extend(found.packet_replication_engine_entry.multicast_group_entry.replicas)
        if port is not None:
            entry.replicas.add(port=canonical(port))
        self._put("clone_session_entry", entry)

    # Packets, time, and what P4Runtime has not.

    def packet_out(self, packet: bytes) -> None:
        """Send a packet into the switch by the controller's port, with the controller header if the program takes one off."""
        message = p4.StreamMessageRequest()
        at = 0
        size = sum(field.codec.width for field in self._schema.headers.get("packet_out", ()))
        head = int.from_bytes(packet[: (size + 7) // 8]) >> (-size % 8)
        for field in self._schema.headers.get("packet_out", ()):
            at += field.codec.width
            value = head >> (size - at) & ((1 << field.codec.width) - 1)
            message.packet.metadata.add(metadata_id=field.id, value=canonical(value))
        message.packet.payload = packet[(size + 7) // 8 :]
        self.connection.send(message)

    @property
    def now(self) -> int:
        """The switch's time, in picoseconds; of a server that does not tell it, the time since the connection."""
        told = self.connection.now()
        return (time.monotonic_ns() - self._started) * 1000 if told is None else told

    def command(self, line: str) -> str:
        """Not by P4Runtime."""
        self._refuse("command lines")

    @property
    def drops(self) -> dict[str, int]:
        """Not by P4Runtime."""
        self._refuse("counts of dropped packets")

    @property
    def statistics(self) -> dict[str, int]:
        """Not by P4Runtime."""
        self._refuse("statistics")

    def port_read(self, port: int) -> Port:
        """Not by P4Runtime."""
        self._refuse("ports and queues")

    def port_write(self, port: int, to: Port) -> None:
        """Not by P4Runtime."""
        self._refuse("ports and queues")

    def queue_read(self, port: int, queue: int = 0) -> QueueState:
        """Not by P4Runtime."""
        self._refuse("ports and queues")

    def generator_set(self, number: int, *, port: int, packet: bytes, period: units.Time) -> None:
        """Not by P4Runtime."""
        self._refuse("packet generators")

    def generator_period(self, number: int, period: units.Time) -> None:
        """Not by P4Runtime."""
        self._refuse("packet generators")

    def generator_stop(self, number: int) -> None:
        """Not by P4Runtime."""
        self._refuse("packet generators")

    # Running a controller.

    def run(
        self,
        controller: Controller,
        length: units.Time | None = None,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run a controller by the real clock: for so long, or until `ended` says so, or the server ends the stream."""
        for number in self._schema.digests:
            entry = p4.DigestEntry(digest_id=number)
            entry.config.max_list_size, entry.config.ack_timeout_ns = 1, 1_000_000_000
            with contextlib.suppress(Refused):
                # It may be wanted already, by a controller before.
                self.connection.write(("INSERT", p4.Entity(digest_entry=entry)))
        controller.start(self)
        period = None if controller.period is None else units.time(controller.period) / units.PS_PER_S
        end = None if length is None else time.monotonic() + units.time(length) / units.PS_PER_S
        tick = None if period is None else time.monotonic() + period
        while not ended():
            now = time.monotonic()
            if end is not None and now >= end:
                return
            if tick is not None and period is not None and now >= tick:
                controller.tick(self.now, self)
                tick += period
                continue
            due = [at - now for at in (end, tick) if at is not None]
            with contextlib.suppress(queue.Empty):
                self._hear(controller, self.connection.heard.get(timeout=max(0.0, min([0.1, *due]))))

    def _hear(self, controller: Controller, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        kind = message.WhichOneof("update")
        if kind == "digest":
            ack = p4.StreamMessageRequest()
            ack.digest_ack.digest_id, ack.digest_ack.list_id = (
                message.digest.digest_id,
                message.digest.list_id,
            )
            for data in message.digest.data:
                controller.on_digest(self.now, self, self._digest(message.digest.digest_id, data))
            self.connection.send(ack)
        elif kind == "packet":
            packet = PacketIn(self.now, self._with_header(message.packet), 0)
            controller.on_packet_in(packet.at, self, packet)
        elif kind == "arbitration" and message.arbitration.status.code != 0:
            raise TidegateError(f"{self.name}: another controller is primary now")

    def _digest(self, number: int, data: Any) -> Digest:
        name, spec = self._schema.digests[number]
        kind = spec.WhichOneof("type_spec")
        if kind == "struct":
            members = self._schema.p4info.type_info.structs[spec.struct.name].members
            names = [member.name for member in members]
            values = data.struct.members
        else:
            values = data.tuple.members
            names = [f"f{index}" for index in range(len(values))]
        return Digest(name, {key: _number(value) for key, value in zip(names, values, strict=True)})

    def _with_header(self, packet: Any) -> bytes:
        given = {item.metadata_id: int.from_bytes(item.value) for item in packet.metadata}
        head, bits = 0, 0
        for field in self._schema.headers.get("packet_in", ()):
            head, bits = head << field.codec.width | given.get(field.id, 0), bits + field.codec.width
        payload: bytes = packet.payload
        return (head << (-bits % 8)).to_bytes((bits + 7) // 8) + payload


def _number(data: Any) -> int:
    kind = data.WhichOneof("data")
    return int(data.bool) if kind == "bool" else int.from_bytes(getattr(data, kind))


def _signed(number: int) -> bytes:
    bits = (number if number >= 0 else ~number).bit_length() + 1
    return number.to_bytes((bits + 7) // 8, signed=True)


def _match_of(field: Field, match: Any) -> Match:
    """A key as `SwitchApi` has it; one that is left out matches anything."""
    number = field.codec.number
    if field.kind == "exact":
        return Match("exact", number(match.exact.value), None)
    if field.kind == "optional":
        return Match("optional", None if match is None else number(match.optional.value), None)
    if field.kind == "lpm":
        return Match("lpm", *((0, 0) if match is None else (number(match.lpm.value), match.lpm.prefix_len)))
    if field.kind == "ternary":
        pair = (0, 0) if match is None else (number(match.ternary.value), number(match.ternary.mask))
    elif match is None:
        pair = (0, (1 << field.codec.width) - 1)
    else:
        pair = (number(match.range.low), number(match.range.high))
    return Match(field.kind, *pair)
