"""Table entries for a client: operations as updates, and entities as answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate._core import TidegateError
from tidegate.control import operations as op
from tidegate.control.objects import Call, Entry, Key, Leads
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Table, named
from tidegate.p4runtime.translate import fields
from tidegate.p4runtime.translate.base import DELETE, INSERT, MODIFY, Updates
from tidegate.p4runtime.translate.entries import ANYWHERE, TOP_PRIORITY, Entries
from tidegate.p4runtime.translate.fields import NS
from tidegate.p4runtime.translate.matches import add_matches, carried, fill_watch, matches, note, note_parts
from tidegate.p4runtime.translate.meters import config_of, rates_of
from tidegate.units import counted


class Tables(Entries):
    """Entries of tables, as a client and a server need them."""

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
            takes = f"{counted(len(action.params), 'value')} ({names})" if names else "no values"
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

    def table_totals(self, operation: op.TableTotals) -> Any:
        """Size, entries and sums of direct counters of each table, or of one; all entries are read whatever is asked for."""
        totals = []
        tables = self._schema.tables.values()
        for table in tables if operation.table is None else [self._named(operation.table)]:
            found = self._all(table)
            packets, size = None, None
            if table.counter:
                packets = sum(entry.counter_data.packet_count for entry in found)
                size = sum(entry.counter_data.byte_count for entry in found)
            totals.append((table.name, table.size, len(found), packets, size, None))
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
