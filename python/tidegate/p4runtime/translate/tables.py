"""Table entries: matches of every kind, priorities, actions, direct counters and meters, idle timeouts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import Any

from tidegate._core import TidegateError
from tidegate.control import operations as op
from tidegate.control.objects import Call, Entry, Key, Leads
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Table, known, named
from tidegate.p4runtime.translate import fields
from tidegate.p4runtime.translate.base import DELETE, INSERT, MODIFY, Translation, Updates
from tidegate.p4runtime.translate.fields import NS
from tidegate.p4runtime.translate.matches import (
    add_matches,
    carried,
    counts,
    fill_note,
    fill_watch,
    matches,
    note,
    note_parts,
    watch_of,
)
from tidegate.p4runtime.translate.meters import config_message, config_of, meter_rates, rates_of

LONGEST_NS = 200 * 24 * 3600 * 10**9
"""Of an idle timeout: its picoseconds have 64 bits."""
DEFAULT_ONLY, TABLE_ONLY, ANYWHERE = 2, 1, -1
TOP_PRIORITY = (1 << 31) - 1
"""P4Runtime's priority p is this less p in the engine, where the smaller one wins."""

Op = op.Operation


def misses() -> P4Error:
    """The default entry of a table has no direct counter or meter."""
    return P4Error.unsupported("misses are not counted: the default entry has no direct resources")


def colours() -> P4Error:
    """Meters have no counters."""
    return P4Error.unsupported("meters do not count by colour")


class Tables(Translation):
    """Entries of tables."""

    def _entries(self, table: Table, only: tuple[list[Any], int] | None = None) -> list[tuple[Any, ...]]:
        """Rows of a table: all, or the one with this match and priority."""
        found: list[tuple[Any, ...]] = []
        start: int | None = 0
        while start is not None:
            page, start = self._act(op.TableRead(table.name, start, only))
            found.extend(page)
        return found

    # Keys.

    def _priority(self, table: Table, priority: int) -> int:
        """The engine's priority for P4Runtime's, and the other way round."""
        if not table.const:
            return TOP_PRIORITY - priority
        # Entries that are const count down to 1, in the order in which they stand.
        if table.id not in self._const_sizes:
            self._const_sizes[table.id] = self._const_size(table)
        return self._const_sizes[table.id] + 1 - priority

    @cached_property
    def _const_sizes(self) -> dict[int, int]:
        return {}

    def _const_size(self, table: Table) -> int:
        if self._serves:
            return len(self._entries(table))
        return len(self._look(p4.Entity(table_entry={"table_id": table.id})))

    def _key(self, entry: Any) -> tuple[Table, list[Any], int]:
        """Table, match and priority of an entry that is named whole."""
        table = self._schema.table(entry.table_id)
        found = matches(table.fields, entry.match, f"table {table.name}")
        priority = entry.priority
        if not table.prioritised:
            if priority != 0:
                raise invalid(f"entries of table {table.name} have no priority; give 0")
            return table, found, 0
        if priority <= 0:
            raise invalid(f"entries of table {table.name} need a priority above 0")
        wanted = self._priority(table, priority)
        if wanted < 0:
            raise P4Error(Code.NOT_FOUND, f"table {table.name} has no entry of priority {priority}")
        return table, found, wanted

    # Actions.

    def call(self, table: Table, action: Any, scope: int = DEFAULT_ONLY) -> tuple[str, list[bytes]]:
        """Name and values of an action; `scope` is the one that is out of place here."""
        declared = self._schema.action_of(table, action.action_id)
        if table.actions[declared.id] == scope:
            where = "as a default" if scope == DEFAULT_ONLY else "in entries"
            raise P4Error(Code.PERMISSION_DENIED, f"action {declared.name} may be used only {where}")
        given = {param.param_id: param.value for param in action.params}
        if len(given) != len(action.params) or len(given) != len(declared.params):
            wanted = ", ".join(f"{param.id} ({param.name})" for param in declared.params) or "none"
            raise invalid(f"action {declared.name} takes the parameters {wanted}, each once")
        values = []
        for param in declared.params:
            if param.id not in given:
                raise invalid(f"action {declared.name}: parameter {param.id} ({param.name}) is missing")
            values.append(
                param.codec.to_switch(given[param.id], f"parameter {param.name} of {declared.name}")
            )
        return declared.name, values

    def _target(self, table: Table, action: Any) -> Any:
        kind = action.WhichOneof("type")
        if table.profile == 0:
            if kind != "action":
                raise invalid(f"entries of table {table.name} lead to actions")
            return self.call(table, action.action)
        if kind == "action_profile_member_id":
            return "member", action.action_profile_member_id
        selector = known(self._schema.profiles, table.profile, "action profile").selector
        if kind == "action_profile_group_id" and selector:
            return "group", action.action_profile_group_id
        if kind == "action_profile_action_set" and selector:
            return self._set(table, action.action_profile_action_set)
        what = "members or groups of its action selector, or sets of actions" if selector else "members"
        raise invalid(f"entries of table {table.name} lead to {what}")

    def _set(self, table: Table, found: Any) -> list[Any]:
        for name in ("group_action", "action_selection_mode", "size_semantics"):
            if getattr(found, name, 0) and (name != "group_action" or found.HasField(name)):
                raise P4Error.unsupported(f"{name} of a set of actions is not supported")
        actions = []
        for one in found.action_profile_actions:
            if one.weight <= 0:
                raise invalid("an action of a set has a weight of 0 or less; give 1 or more")
            actions.append((self.call(table, one.action), one.weight, watch_of(one)))
        return actions

    def action_message(self, call: tuple[str, list[bytes]], table: Table) -> Any:
        """`p4.Action` of a name and values."""
        name, values = call
        number = next(i for i in table.actions if self._schema.actions[i].name == name)
        declared = self._schema.actions[number]
        message = p4.Action(action_id=number)
        for param, value in zip(declared.params, values, strict=True):
            message.params.add(param_id=param.id, value=param.codec.to_client(value))
        return message

    # Writing.

    def write(self, kind: int, entry: Any) -> Op:
        """What an update of an entry means for the engine."""
        if entry.is_default_action:
            return self._write_default(kind, entry)
        table, found, priority = self._key(entry)
        if entry.HasField("time_since_last_hit") and not table.timeouts:
            raise invalid(f"table {table.name} has no idle timeouts")
        if entry.HasField("meter_counter_data"):
            raise colours()
        if table.const:
            return self._write_const(kind, table, entry, found, priority)
        if kind == DELETE:
            return op.TableDelete(table.name, (found, priority))
        extras = self._extras(kind, table, entry)
        if kind == INSERT:
            if not entry.HasField("action"):
                raise invalid("a new entry needs an action")
            return op.TableAdd(table.name, found, self._target(table, entry.action), priority, *extras)
        target = self._target(table, entry.action) if entry.HasField("action") else None
        return op.TableSet(table.name, (found, priority), target, *extras)

    def _extras(self, kind: int, table: Table, entry: Any) -> tuple[Any, ...]:
        counter = counts(entry.counter_data) if entry.HasField("counter_data") else None
        meter: list[int] | None = [] if table.meter else None
        if entry.HasField("meter_config"):
            meter = self._meter(table, entry.meter_config)
        if entry.idle_timeout_ns < 0:
            raise invalid("the idle timeout is negative")
        if entry.idle_timeout_ns > LONGEST_NS:
            raise P4Error(Code.OUT_OF_RANGE, "the idle timeout is longer than 200 days; 0 is for ever")
        idle = entry.idle_timeout_ns * NS if entry.idle_timeout_ns or kind == MODIFY else None
        return counter, meter, idle, note(entry)

    def _meter(self, table: Table, config: Any) -> list[int]:
        if not table.meter:
            raise invalid(f"table {table.name} has no direct meter")
        return meter_rates(config, self._schema.direct_meters[table.meter].spec)

    def _write_const(self, kind: int, table: Table, entry: Any, found: list[Any], priority: int) -> Op:
        direct = entry.HasField("counter_data") or entry.HasField("meter_config")
        if kind != MODIFY or entry.HasField("action") or not direct:
            raise P4Error(
                Code.PERMISSION_DENIED,
                f"the entries of table {table.name} are const: only their direct counters and meters can change",
            )
        counter = counts(entry.counter_data) if entry.HasField("counter_data") else None
        meter = self._meter(table, entry.meter_config) if entry.HasField("meter_config") else None
        return op.TableSet(table.name, (found, priority), None, counter, meter)

    def _write_default(self, kind: int, entry: Any) -> Op:
        table = self._schema.table(entry.table_id)
        if kind != MODIFY:
            raise invalid("a table always has its default entry: it can only be modified")
        if entry.match or entry.priority:
            raise invalid("the default entry has no match and no priority")
        if entry.idle_timeout_ns or entry.HasField("time_since_last_hit"):
            raise invalid("the default entry has no idle timeout")
        if entry.HasField("counter_data") or entry.HasField("meter_config"):
            raise misses()
        if table.const_default:
            raise P4Error(Code.PERMISSION_DENIED, f"the default action of table `{table.name}` is const")
        if not entry.HasField("action"):
            return op.TableDefaultReset(table.name)
        if entry.action.WhichOneof("type") != "action":
            raise invalid("the default entry leads to an action")
        if table.profile:
            raise invalid(f"table `{table.name}` has an action profile: its default stays as it is")
        return op.TableDefaultSet(table.name, self.call(table, entry.action.action, TABLE_ONLY), note(entry))

    def write_counter(self, kind: int, entry: Any) -> Op:
        """An update of a direct counter."""
        data = counts(entry.data) if entry.HasField("data") else None
        return self._direct(kind, entry, "counter", (data, None, None, None))

    def write_meter(self, kind: int, entry: Any) -> Op:
        """An update of a direct meter; without a configuration all packets are green."""
        if entry.HasField("counter_data"):
            raise colours()
        table = self._schema.table(entry.table_entry.table_id)
        meter = self._meter(table, entry.config) if entry.HasField("config") else []
        return self._direct(kind, entry, "meter", (None, meter, None, None))

    def _direct(self, kind: int, entry: Any, what: str, extras: tuple[Any, ...]) -> Op:
        if kind != MODIFY:
            raise invalid(f"a direct {what} can only be modified")
        if entry.table_entry.is_default_action:
            raise misses()
        table, found, priority = self._key(entry.table_entry)
        if not getattr(table, what):
            raise invalid(f"table {table.name} has no direct {what}")
        return op.TableSet(table.name, (found, priority), None, *extras)

    # Reading.

    def read(self, entry: Any) -> Iterator[Any]:
        """The entries that a request asks for."""
        if entry.table_id == 0:
            for table in self._schema.tables.values():
                yield from self._read_table(table, entry, filtered=False)
            return
        yield from self._read_table(self._schema.table(entry.table_id), entry, filtered=True)

    def _read_table(self, table: Table, entry: Any, filtered: bool) -> Iterator[Any]:
        if filtered and entry.HasField("time_since_last_hit") and not table.timeouts:
            raise invalid(f"table {table.name} has no idle timeouts")
        if entry.HasField("meter_counter_data") and filtered:
            raise colours()
        if entry.is_default_action:
            yield p4.Entity(table_entry=self._default_message(table))
            return
        for row in self._rows(table, entry if filtered else None):
            message = self.entry_message(table, row)
            if entry.HasField("counter_data") and table.counter:
                packets, size = row[4]
                message.counter_data.packet_count, message.counter_data.byte_count = packets, size
                message.counter_data.SetInParent()
            if entry.HasField("meter_config") and row[5] is not None:
                message.meter_config.CopyFrom(config_message(row[5]))
            if entry.HasField("time_since_last_hit") and table.timeouts:
                message.time_since_last_hit.elapsed_ns = row[7] // NS
                message.time_since_last_hit.SetInParent()
            yield p4.Entity(table_entry=message)

    def _rows(self, table: Table, entry: Any) -> list[tuple[Any, ...]]:
        """Rows of a table; of those, the ones that an entry asks for."""
        if entry is None:
            return self._entries(table)
        if entry.match and (entry.priority or not table.prioritised):
            _, found, priority = self._key(entry)
            rows = self._entries(table, (found, priority))
        else:
            rows = self._entries(table)
            if entry.match:
                found = matches(table.fields, entry.match, f"table {table.name}")
                rows = [row for row in rows if row[1] == found]
            if entry.priority:
                wanted = self._priority(table, entry.priority)
                rows = [row for row in rows if row[2] == wanted]
        kept = note(entry)
        if kept:
            rows = [row for row in rows if row[9] == kept]
        if entry.HasField("action") and entry.action.action.action_id:
            name = self._schema.action_of(table, entry.action.action.action_id).name
            rows = [row for row in rows if row[3][0] == name]
        return rows

    def entry_message(self, table: Table, row: tuple[Any, ...]) -> Any:
        """An entry with its key, action, timeout and metadata."""
        _, found, priority, target, _, _, idle, _, is_const, kept = row
        message = p4.TableEntry(table_id=table.id)
        add_matches(message.match, table.fields, found)
        if table.prioritised:
            message.priority = max(1, self._priority(table, priority))
        self._fill_action(message.action, table, target)
        message.idle_timeout_ns = idle // NS
        message.is_const = is_const
        fill_note(message, kept)
        return message

    def _fill_action(self, message: Any, table: Table, target: Any) -> None:
        if isinstance(target, list):
            message.action_profile_action_set.SetInParent()
            for (name, values), weight, watch in target:
                one = message.action_profile_action_set.action_profile_actions.add(weight=weight)
                one.action.CopyFrom(self.action_message((name, values), table))
                fill_watch(one, watch)
        elif target[0] == "member" and isinstance(target[1], int):
            message.action_profile_member_id = target[1]
        elif target[0] == "group" and isinstance(target[1], int):
            message.action_profile_group_id = target[1]
        else:
            message.action.CopyFrom(self.action_message(target, table))

    def _default_message(self, table: Table) -> Any:
        target, kept = self._act(op.TableDefaultRead(table.name))
        message = p4.TableEntry(table_id=table.id, is_default_action=True, is_const=table.const_default)
        self._fill_action(message.action, table, target)
        fill_note(message, kept)
        return message

    def read_direct(self, what: str, entry: Any) -> Iterator[Any]:
        """Direct counters or meters of the entries that a request asks for."""
        asked = entry.table_entry
        if what == "meter" and entry.HasField("counter_data"):
            raise colours()
        tables = (
            [self._schema.table(asked.table_id)] if asked.table_id else list(self._schema.tables.values())
        )
        for table in tables:
            if not getattr(table, what):
                if asked.table_id:
                    raise invalid(f"table {table.name} has no direct {what}")
                continue
            rows = self._rows(table, asked if asked.table_id else None)
            if asked.match and not rows:
                raise P4Error(Code.NOT_FOUND, f"table {table.name} has no such entry")
            for row in rows:
                yield self._direct_message(what, table, row)

    def _direct_message(self, what: str, table: Table, row: tuple[Any, ...]) -> Any:
        key = self.entry_message(table, row)
        if what == "counter":
            packets, size = row[4]
            return p4.Entity(
                direct_counter_entry=p4.DirectCounterEntry(
                    table_entry=key, data=p4.CounterData(packet_count=packets, byte_count=size)
                )
            )
        message = p4.DirectMeterEntry(table_entry=key)
        if row[5] is not None:
            message.config.CopyFrom(config_message(row[5]))
        return p4.Entity(direct_meter_entry=message)

    # Operations as updates, and entities as answers.

    def _named(self, name: str) -> Table:
        return named(self._schema.tables, name, "table")

    def _keyed(self, table: Table, key: Sequence[Key], priority: int | None) -> Any:
        """`p4.TableEntry` with a key."""
        owner = f"table `{table.name}`"
        found = fields.key(table.fields, key, owner)
        entry = p4.TableEntry(table_id=table.id)
        add_matches(entry.match, table.fields, found)
        if table.prioritised:
            if priority is None:
                why = f"{owner} has keys that need a priority"
                raise P4Error.about(owner, why, field="priority", cure="end with one")
            if not 0 <= priority < TOP_PRIORITY:
                why, cure = f"the priority {priority} is too large", f"give 0 to {TOP_PRIORITY - 1}"
                raise P4Error.about(owner, why, code=Code.OUT_OF_RANGE, field="priority", cure=cure)
            entry.priority = self._priority(table, priority)
        elif priority:
            why = f"entries of {owner} have no priority"
            raise P4Error.about(owner, why, field="priority", cure="leave it out")
        return entry

    def entry_key(self, table: Table, entry: Entry) -> Any:
        """`p4.TableEntry` with the key of an entry that is named by handle or by key."""
        if not isinstance(entry, int):
            return self._keyed(table, *entry)
        if table.initial and not self._handles.known(table.id):
            self._all(table)
        key = self._handles.find(table.id, entry)
        if key is None:
            # It may be the handle of an entry that waits to be written.
            self._look()
            key = self._handles.find(table.id, entry)
        if key is None:
            raise no_entry(table, entry)
        return self._handles.key(key)

    def _all(self, table: Table) -> list[Any]:
        found = [e.table_entry for e in self._look(p4.Entity(table_entry=self._whole(table)))]
        for entry in found:
            self._handles.of(entry)
        return found

    def entries(self, table: int) -> list[Any]:
        """All entries of the table of an id, with all that they have."""
        return self._all(self._schema.tables[table])

    def _whole(self, table: Table, key: Any = None) -> Any:
        """A request for all that entries have."""
        asked = p4.TableEntry(table_id=table.id) if key is None else self._handles.key(key)
        if table.counter:
            asked.counter_data.SetInParent()
        if table.meter:
            asked.meter_config.SetInParent()
        if table.timeouts:
            asked.time_since_last_hit.SetInParent()
        return asked

    def call_message(self, table: Table, call: Call) -> Any:
        """`p4.Action` of an action by name, with values as operations have them."""
        name, values = call
        if not isinstance(name, str):
            raise invalid(f"the action {name!r} is not a name")
        action = named(
            {i: self._schema.actions[i] for i in table.actions}, name, f"action of table `{table.name}`"
        )
        given = list(values)
        if len(given) != len(action.params):
            names = ", ".join(param.name for param in action.params)
            takes = f"{len(action.params)} values ({names})" if names else "no values"
            why = f"action `{action.name}` takes {takes}, not {len(given)}"
            raise P4Error.about(f"action `{action.name}`", why)
        message = p4.Action(action_id=action.id)
        for param, value in zip(action.params, given, strict=True):
            what = f"`{param.name}`"
            message.params.add(param_id=param.id, value=fields.encoded(value, param.codec, what))
        return message

    def _fill(self, message: Any, table: Table, to: Leads) -> None:
        """A `p4.TableAction` of where an entry leads."""
        if isinstance(to, list):
            message.action_profile_action_set.SetInParent()
            for call, weight, watch in to:
                one = message.action_profile_action_set.action_profile_actions.add(weight=weight)
                one.action.CopyFrom(self.call_message(table, call))
                fill_watch(one, carried(watch))
            return
        what, number = to
        if not isinstance(number, int):
            message.action.CopyFrom(self.call_message(table, (what, number)))
        elif what == "member":
            message.action_profile_member_id = number
        elif what == "group":
            message.action_profile_group_id = number
        else:
            raise invalid(f"the to {what!r} is not `member` or `group`")

    def _fill_extras(self, entry: Any, operation: op.TableAdd | op.TableSet) -> None:
        """What an operation gives of an entry beside its action."""
        if operation.counter is not None:
            entry.counter_data.packet_count, entry.counter_data.byte_count = operation.counter
            entry.counter_data.SetInParent()
        if operation.meter is not None:
            if operation.meter:
                entry.meter_config.CopyFrom(config_of(operation.meter))
            else:
                entry.ClearField("meter_config")
        if operation.idle_timeout is not None:
            entry.idle_timeout_ns = fields.nanoseconds(operation.idle_timeout)
        if operation.note is not None:
            entry.controller_metadata, entry.metadata = note_parts(operation.note)

    def table_add(self, operation: op.TableAdd) -> Updates:
        """An `INSERT`; the answer is a handle of this client's."""
        table = self._named(operation.table)
        entry = self._keyed(table, operation.key, operation.priority)
        self._fill(entry.action, table, operation.to)
        self._fill_extras(entry, operation)
        if table.initial and not self._handles.known(table.id):
            self._all(table)
        return Updates([(INSERT, p4.Entity(table_entry=entry))], lambda: self._handles.of(entry))

    def table_set(self, operation: op.TableSet) -> Updates:
        """A `MODIFY`, which sets all fields of an entry. The fields that the operation does not give are read first."""
        table = self._named(operation.table)
        key = self.entry_key(table, operation.entry)
        absent = absent_of(table, operation.entry)
        if operation.to is None and operation.idle_timeout is None and operation.note is None:
            direct = self._direct_updates(key, operation)
            if direct:
                return Updates(direct, no_entry=absent)
        entry = self._present(table, key)
        for name in ("counter_data", "time_since_last_hit", "is_const"):
            entry.ClearField(name)
        if operation.to is not None:
            entry.ClearField("action")
            self._fill(entry.action, table, operation.to)
        self._fill_extras(entry, operation)
        return Updates([(MODIFY, p4.Entity(table_entry=entry))], no_entry=absent)

    @staticmethod
    def _direct_updates(key: Any, operation: op.TableSet) -> list[tuple[int, Any]]:
        updates = []
        if operation.counter is not None:
            packets, size = operation.counter
            updates.append((MODIFY, counter_entity(key, packets, size)))
        if operation.meter is not None:
            updates.append((MODIFY, meter_entity(key, operation.meter)))
        return updates

    def _present(self, table: Table, key: Any) -> Any:
        """The entry with a key, as it is."""
        found = self._look(p4.Entity(table_entry=self._whole(table, key)))
        if not found:
            why = f"table `{table.name}` {NO_MATCH}"
            raise P4Error.about(f"table `{table.name}`", why, code=Code.NOT_FOUND)
        entry = p4.TableEntry()
        entry.CopyFrom(found[0].table_entry)
        return entry

    def table_delete(self, operation: op.TableDelete) -> Updates:
        """A `DELETE`."""
        table = self._named(operation.table)
        key, absent = self.entry_key(table, operation.entry), absent_of(table, operation.entry)
        return Updates([(DELETE, p4.Entity(table_entry=key))], lambda: self._handles.forget(key), absent)

    def table_clear(self, operation: op.TableClear) -> Updates:
        """A `DELETE` of each entry that is not const."""
        keys = [
            self._handles.key(entry)
            for entry in self._all(self._named(operation.table))
            if not entry.is_const
        ]

        def done() -> None:
            for key in keys:
                self._handles.forget(key)

        return Updates([(DELETE, p4.Entity(table_entry=key)) for key in keys], done)

    def _default(self, table: Table) -> Any:
        (found,) = self._look(p4.Entity(table_entry={"table_id": table.id, "is_default_action": True}))
        return found.table_entry

    def table_default_set(self, operation: op.TableDefaultSet) -> Updates:
        """A `MODIFY` of the default entry."""
        table = self._named(operation.table)
        entry = p4.TableEntry(table_id=table.id, is_default_action=True)
        self._fill(entry.action, table, operation.to)
        if operation.note is None:
            now = self._default(table)
            entry.controller_metadata, entry.metadata = now.controller_metadata, now.metadata
        else:
            entry.controller_metadata, entry.metadata = note_parts(operation.note)
        return Updates([(MODIFY, p4.Entity(table_entry=entry))])

    def table_default_reset(self, operation: op.TableDefaultReset) -> Updates:
        """A `MODIFY` of the default entry, without an action."""
        entry = p4.TableEntry(table_id=self._named(operation.table).id, is_default_action=True)
        return Updates([(MODIFY, p4.Entity(table_entry=entry))])

    def table_default_read(self, operation: op.TableDefaultRead) -> Any:
        """Where a miss leads, and the note."""
        table = self._named(operation.table)
        entry = self._default(table)
        return self.call(table, entry.action.action, ANYWHERE), note(entry)

    def table_read(self, operation: op.TableRead) -> Any:
        """All rows from a handle on, in one page."""
        table = self._named(operation.table)
        if operation.only is None:
            found = self._all(table)
        else:
            asked = self._whole(table, self.entry_key(table, operation.only))
            found = [entity.table_entry for entity in self._look(p4.Entity(table_entry=asked))]
            if not found:
                why = f"table `{table.name}` {NO_MATCH}"
                raise P4Error.about(f"table `{table.name}`", why, code=Code.NOT_FOUND)
        rows = [self.row(table, entry) for entry in found]
        return [row for row in rows if row[0] >= operation.start], None

    def row(self, table: Table, entry: Any) -> tuple[Any, ...]:
        """An entry as `table_read` gives it."""
        return (
            self._handles.of(entry),
            matches(table.fields, entry.match, f"table {table.name}"),
            self._priority(table, entry.priority) if table.prioritised else 0,
            self._target(table, entry.action),
            (entry.counter_data.packet_count, entry.counter_data.byte_count),
            rates_of(entry.meter_config) if entry.HasField("meter_config") else None,
            entry.idle_timeout_ns * NS,
            entry.time_since_last_hit.elapsed_ns * NS,
            entry.is_const,
            note(entry),
        )

    def table_totals(self, _: op.TableTotals) -> Any:
        """Size, entries and sums of direct counters of each table."""
        totals = []
        for table in self._schema.tables.values():
            found = self._all(table)
            packets, size = None, None
            if table.counter:
                packets = sum(entry.counter_data.packet_count for entry in found)
                size = sum(entry.counter_data.byte_count for entry in found)
            totals.append((table.name, table.size, len(found), packets, size))
        return totals


NO_MATCH = "has no entry with this match"


def no_match(error: TidegateError) -> bool:
    """Whether a table has no entry with a key."""
    return str(error).endswith(NO_MATCH)


def no_entry(table: Table, handle: int) -> P4Error:
    """A table has no entry with a handle."""
    owner = f"table `{table.name}`"
    return P4Error.about(owner, f"{owner} has no entry {handle}", code=Code.NOT_FOUND)


def absent_of(table: Table, entry: Entry) -> P4Error | None:
    """The error if an entry that is named by its handle is not there."""
    return no_entry(table, entry) if isinstance(entry, int) else None


def counter_entity(key: Any, packets: int, size: int) -> Any:
    """`p4.Entity` of a direct counter."""
    data = p4.CounterData(packet_count=packets, byte_count=size)
    return p4.Entity(direct_counter_entry=p4.DirectCounterEntry(table_entry=key, data=data))


def meter_entity(key: Any, rates: Sequence[int]) -> Any:
    """`p4.Entity` of a direct meter; without rates all packets are green."""
    message = p4.DirectMeterEntry(table_entry=key)
    if rates:
        message.config.CopyFrom(config_of(rates))
    return p4.Entity(direct_meter_entry=message)
