"""Table entries for a server: updates as operations, and rows as entities.

Matches of every kind, priorities, actions, direct counters and meters, idle timeouts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, partial
from typing import Any

from tidegate.control import operations as op
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Table, known
from tidegate.p4runtime.translate.base import DELETE, INSERT, INSIDE, MODIFY, Part, Translation
from tidegate.p4runtime.translate.fields import NS
from tidegate.p4runtime.translate.matches import (
    add_matches,
    counts,
    demand_unwatched,
    few,
    fill_note,
    fill_watch,
    matches,
    note,
    watch_of,
)
from tidegate.p4runtime.translate.meters import config_message, meter_rates

USUAL = 256
"""Bytes of an entry that count with the entity."""
LARGE = 128
"""Bytes of an update, beyond which it may give an entry much metadata."""
LONGEST_NS = 200 * 24 * 3600 * 10**9
"""Of an idle timeout: its picoseconds have 64 bits."""
DEFAULT_ONLY, TABLE_ONLY, ANYWHERE = 2, 1, -1
TOP_PRIORITY = (1 << 31) - 1
"""P4Runtime's priority p is this less p in the engine, where the smaller one wins."""

Op = op.Operation
Row = tuple[Any, ...]
"""An entry, as the engine gives it."""


def misses() -> P4Error:
    """The default entry of a table has no direct counter or meter."""
    return P4Error.unsupported("misses are not counted: the default entry has no direct resources")


def _demand_default(entry: Any) -> None:
    """Refuse fields that the default entry does not have (specification 1.5, "Default Entry" and "Idle-timeout")."""
    if entry.match or entry.priority:
        raise invalid("the default entry has no match and no priority")
    if entry.idle_timeout_ns or entry.HasField("time_since_last_hit"):
        raise invalid("the default entry has no idle timeout")


def _has_more(entry: Any) -> bool:
    """Whether an update sets more of an entry than direct resources and its action."""
    return bool(entry.metadata or entry.controller_metadata or entry.idle_timeout_ns)


def _demand_direct(kind: int, entry: Any, why: str) -> None:
    """Refuse a change of const entries but of direct resources (specification 1.5, "Constant Tables" and "Preinitialized tables")."""
    direct = entry.HasField("counter_data") or entry.HasField("meter_config")
    if kind != MODIFY or entry.HasField("action") or _has_more(entry) or not direct:
        raise P4Error(Code.PERMISSION_DENIED, f"{why}: only direct counters and meters can change")


def _demand_no_filter(entry: Any) -> None:
    """Refuse to filter the entries of all tables (specification 1.5, "Wildcard Reads" of tables)."""
    if (
        entry.match
        or entry.priority
        or entry.HasField("action")
        or entry.controller_metadata
        or entry.metadata
    ):
        raise invalid("a read of all tables has no filter; give a table_id, or leave the other fields out")


def colours() -> P4Error:
    """Meters have no counters."""
    return P4Error.unsupported("meters do not count by colour")


class Entries(Translation):
    """Entries of tables, as a server needs them."""

    large = False
    """An entry may have much metadata: then each is looked at when it is read."""

    def _pages(self, table: Table, only: tuple[list[Any], int] | None = None) -> Iterator[list[Row]]:
        """Rows of a table, page by page: all, or the one with this match and priority."""
        start: int | None = 0
        while start is not None:
            page, start = self._act(op.TableRead(table.name, start, only))
            yield page

    def longest(self, table: Table) -> int:
        """Bytes of the values of an action, at most."""
        actions = (self._schema.actions[action].params for action in table.actions)
        return max((sum(param.codec.width for param in params) for params in actions), default=0) // 8

    def _size(self, table: Table, rows: Sequence[Row]) -> int:
        """Bytes, about, of what rows have that is beyond usual ones."""
        values = self.longest(table)
        keys = 2 * sum(field.codec.width for field in table.fields) // 8
        size = len(rows) * max(0, keys + values - USUAL)
        if self.large:
            size += sum(len(row[9]) for row in rows)
        if table.profile:
            size += (INSIDE + values) * sum(len(row[3]) for row in rows if isinstance(row[3], list))
        return size

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
            return sum(len(page) for page in self._pages(table))
        return len(self._look(p4.Entity(table_entry={"table_id": table.id})))

    @cached_property
    def _const_keys(self) -> dict[int, list[tuple[Any, int]]]:
        return {}

    def _is_const(self, table: Table, found: list[Any], priority: int) -> bool:
        """Whether an entry is one of the program's that are const. They stay, so that they are looked for once."""
        if not table.initial:
            return False
        if table.id not in self._const_keys:
            rows = (row for page in self._pages(table) for row in page if row[8])
            self._const_keys[table.id] = [(row[1], row[2]) for row in rows]
        return (found, priority) in self._const_keys[table.id]

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
            few(action.action_profile_action_set.action_profile_actions)
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
            if self._serves:
                demand_unwatched(one)
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
        self.large = self.large or entry.ByteSize() > LARGE
        if entry.is_const:
            raise invalid("only the program makes entries const; leave is_const out")
        if entry.is_default_action:
            return self._write_default(kind, entry)
        if self._schema.table(entry.table_id).const:
            _demand_direct(
                kind, entry, f"the entries of table {self._schema.table(entry.table_id).name} are const"
            )
        table, found, priority = self._key(entry)
        if kind == DELETE:
            # Nothing but the key counts.
            return op.TableDelete(table.name, (found, priority))
        if entry.HasField("time_since_last_hit"):
            raise invalid("time_since_last_hit is only read; leave it out")
        if entry.HasField("meter_counter_data"):
            raise colours()
        if table.const:
            counter = counts(entry.counter_data) if entry.HasField("counter_data") else None
            meter = self._meter(table, entry.meter_config) if entry.HasField("meter_config") else None
            return op.TableSet(table.name, (found, priority), None, counter, meter)
        if kind == MODIFY and _has_more(entry) and self._is_const(table, found, priority):
            _demand_direct(kind, entry, f"this entry of table {table.name} is const")
        extras = self._extras(kind, table, entry)
        if kind == INSERT:
            if not table.fields:
                raise invalid(f"table {table.name} has no key: it has its default entry alone")
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

    def _write_default(self, kind: int, entry: Any) -> Op:
        table = self._schema.table(entry.table_id)
        if kind != MODIFY:
            raise invalid("a table always has its default entry: it can only be modified")
        _demand_default(entry)
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

    def read(self, entry: Any) -> Iterator[Part]:
        """The entries that a request asks for."""
        if entry.table_id == 0:
            _demand_no_filter(entry)
            for table in self._schema.tables.values():
                yield from self._read_table(table, entry, filtered=False)
            return
        yield from self._read_table(self._schema.table(entry.table_id), entry, filtered=True)

    def _read_table(self, table: Table, entry: Any, filtered: bool) -> Iterator[Part]:
        if filtered and entry.HasField("time_since_last_hit") and not table.timeouts:
            raise invalid(f"table {table.name} has no idle timeouts")
        if entry.HasField("meter_counter_data") and filtered:
            raise colours()
        if entry.is_default_action:
            _demand_default(entry)
            target, kept = self._act(op.TableDefaultRead(table.name))
            if filtered and not self._filter(table, entry)(target, kept):
                return
            message = p4.Entity(table_entry=self._default_message(table, target, kept))
            yield Part(1, lambda: (message,), message.ByteSize())
            return
        for rows in self._rows(table, entry if filtered else None):
            yield Part(len(rows), partial(self._messages, table, entry, rows), self._size(table, rows))

    def _messages(self, table: Table, entry: Any, rows: list[Row]) -> Iterator[Any]:
        for row in rows:
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

    def _rows(self, table: Table, entry: Any) -> Iterator[list[Row]]:
        """Rows of a table, page by page; of those, the ones that an entry asks for."""
        if entry is None:
            return self._pages(table)
        match = wanted = None
        if entry.match and (entry.priority or not table.prioritised):
            _, found, priority = self._key(entry)
            pages = self._pages(table, (found, priority))
        else:
            match = matches(table.fields, entry.match, f"table {table.name}") if entry.match else None
            wanted = self._priority(table, entry.priority) if entry.priority else None
            pages = self._pages(table)
        fits = self._filter(table, entry)

        def asked(row: Row) -> bool:
            return match in (None, row[1]) and wanted in (None, row[2]) and fits(row[3], row[9])

        filters = entry.controller_metadata or entry.metadata or entry.HasField("action")
        if match is None and wanted is None and not filters:
            return pages
        return ([row for row in page if asked(row)] for page in pages)

    def _filter(self, table: Table, entry: Any) -> Callable[[Any, bytes], bool]:
        """Whether a request asks for entries that lead somewhere and have a note (specification 1.5, "Wildcard Reads" of tables)."""
        number, metadata = entry.controller_metadata, entry.metadata
        name = ""
        kind = entry.action.WhichOneof("type")
        if kind is not None:
            action = entry.action.action
            if kind != "action" or table.profile or action.params:
                why = "entries are filtered by the action of a table without an action profile, and by nothing else of it"
                raise P4Error.unsupported(why, "give action_id alone, or no action")
            if action.action_id:
                name = self._schema.action_of(table, action.action_id).name

        def fits(target: Any, kept: bytes) -> bool:
            return (
                number in (0, int.from_bytes(kept[:8]))
                and metadata in (b"", kept[8:])
                and name in ("", target[0])
            )

        return fits

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

    def _default_message(self, table: Table, target: Any, kept: bytes) -> Any:
        message = p4.TableEntry(table_id=table.id, is_default_action=True, is_const=table.const_default)
        self._fill_action(message.action, table, target)
        fill_note(message, kept)
        return message

    def read_direct(self, what: str, entry: Any) -> Iterator[Part]:
        """Direct counters or meters of the entries that a request asks for."""
        asked = entry.table_entry
        if asked.is_default_action:
            raise misses()
        if what == "meter" and entry.HasField("counter_data"):
            raise colours()
        tables = (
            [self._schema.table(asked.table_id)] if asked.table_id else list(self._schema.tables.values())
        )
        if not asked.table_id:
            _demand_no_filter(asked)
        for table in tables:
            if not getattr(table, what):
                if asked.table_id:
                    raise invalid(f"table {table.name} has no direct {what}")
                continue
            found = 0
            for rows in self._rows(table, asked if asked.table_id else None):
                found += len(rows)
                make = partial(self._direct_messages, what, table, rows)
                yield Part(len(rows), make, self._size(table, rows))
            if asked.match and not found:
                raise P4Error(Code.NOT_FOUND, f"table {table.name} has no such entry")

    def _direct_messages(self, what: str, table: Table, rows: list[Row]) -> Iterator[Any]:
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
