"""Tables and action profiles of a switch behind a P4Runtime server."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from tidegate._core import TidegateError, parse_match
from tidegate.control import Match, TableEntry
from tidegate.control.api import Value
from tidegate.p4runtime.client_base import Remote
from tidegate.p4runtime.device import TOP_PRIORITY
from tidegate.p4runtime.matches import add_matches
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Field, Profile, Table


class RemoteTables(Remote):
    """Its tables and action profiles."""

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
            handle = next(self._numbers)
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
