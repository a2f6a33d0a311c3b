"""Parser value sets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tidegate.control import operations as op
from tidegate.control.objects import Key
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import ValueSet, known, named
from tidegate.p4runtime.translate import fields
from tidegate.p4runtime.translate.base import INSIDE, MODIFY, Part, Translation, Updates
from tidegate.p4runtime.translate.entries import Op
from tidegate.p4runtime.translate.matches import add_matches, matches
from tidegate.units import counted

MOST_COMPARED = 2048
"""Fields that the members of a value set have together, as the engine has it."""


class ValueSets(Translation):
    """Members of value sets."""

    def write(self, kind: int, entry: Any) -> Op:
        """All members of a set, in place of what was in it."""
        found = known(self._schema.value_sets, entry.value_set_id, "value set")
        if kind != MODIFY:
            raise invalid("a value set can only be modified")
        most = MOST_COMPARED // max(1, len(found.fields))
        if len(entry.members) > most:
            why = f"{len(entry.members)} members are too many for value set {found.name}; packets are compared with {most} at most"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        return op.ValueSetFill(found.name, self._members(found, entry))

    @staticmethod
    def _members(found: ValueSet, entry: Any) -> list[list[Any]]:
        where = f"value set {found.name}"
        return [matches(found.fields, member.match, where) for member in entry.members]

    def read(self, entry: Any) -> Iterator[Part]:
        """The sets that a request asks for."""
        sets = self._schema.value_sets
        if entry.value_set_id:
            sets = {entry.value_set_id: known(sets, entry.value_set_id, "value set")}
        for found in sets.values():
            members = self._act(op.ValueSetRead(found.name))
            size = INSIDE * len(members) * max(1, len(found.fields))
            yield Part(1, partial(self._entities, found, members), size)

    def _entities(self, found: ValueSet, members: Sequence[Any]) -> Iterator[Any]:
        yield self._entity(found, members)

    @staticmethod
    def _entity(found: ValueSet, members: Sequence[Any]) -> Any:
        message = p4.ValueSetEntry(value_set_id=found.id)
        for member in members:
            add_matches(message.members.add().match, found.fields, member)
        return p4.Entity(value_set_entry=message)

    # Operations as updates, and entities as answers.

    def _named(self, name: str) -> ValueSet:
        return named(self._schema.value_sets, name, "value set")

    @staticmethod
    def _member(found: ValueSet, name: str, given: Sequence[Key]) -> list[Any]:
        if len(given) != len(found.fields):
            fields_of_it = counted(len(found.fields), "field")
            raise invalid(f"a member of value set `{name}` has {fields_of_it}, not {len(given)}")
        return fields.key(found.fields, given, f"value set `{found.name}`")

    def _present(self, found: ValueSet) -> list[list[Any]]:
        (entity,) = self._look(p4.Entity(value_set_entry={"value_set_id": found.id}))
        return self._members(found, entity.value_set_entry)

    def value_set_add(self, operation: op.ValueSetAdd) -> Updates:
        """A `MODIFY` of the set, which is read before."""
        found = self._named(operation.value_set)
        member, members = self._member(found, operation.value_set, operation.member), self._present(found)
        if member in members:
            why = f"value set `{found.name}` has this member already"
            raise P4Error(Code.ALREADY_EXISTS, why)
        return Updates([(MODIFY, self._entity(found, [*members, member]))])

    def value_set_remove(self, operation: op.ValueSetRemove) -> Updates:
        """A `MODIFY` of the set, which is read before."""
        found = self._named(operation.value_set)
        member, members = self._member(found, operation.value_set, operation.member), self._present(found)
        if member not in members:
            why = f"value set `{operation.value_set}` has no such member"
            raise P4Error(Code.NOT_FOUND, why)
        return Updates([(MODIFY, self._entity(found, [one for one in members if one != member]))])

    def value_set_fill(self, operation: op.ValueSetFill) -> Updates:
        """A `MODIFY`."""
        found = self._named(operation.value_set)
        members = [self._member(found, operation.value_set, member) for member in operation.members]
        return Updates([(MODIFY, self._entity(found, members))])

    def value_set_read(self, operation: op.ValueSetRead) -> Any:
        """Matches of each member."""
        return self._present(self._named(operation.value_set))
