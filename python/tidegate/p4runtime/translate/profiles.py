"""Action profiles: members and groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from tidegate.control import operations as op
from tidegate.control.objects import Call, Put, Share
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Profile, Schema, Table, known, named
from tidegate.p4runtime.translate.base import (
    DELETE,
    GROUPS,
    INSERT,
    INSIDE,
    MEMBERS,
    MODIFY,
    Act,
    Look,
    Part,
    Translation,
    Updates,
    pages,
    some,
)
from tidegate.p4runtime.translate.entries import ANYWHERE, Op
from tidegate.p4runtime.translate.matches import (
    MOST_SHARES,
    MOST_WEIGHT,
    carried,
    demand_unwatched,
    few,
    fill_watch,
    watch_of,
)
from tidegate.p4runtime.translate.tables import Tables


class Profiles(Translation):
    """Members and groups of action profiles and selectors."""

    def __init__(self, schema: Schema, act: Act, tables: Tables, look: Look | None = None) -> None:
        super().__init__(schema, act, look)
        self._tables = tables

    def _profile(self, number: int) -> Profile:
        return known(self._schema.profiles, number, "action profile")

    def _table(self, profile: Profile) -> Table:
        """A table of the profile: its actions are the profile's."""
        if not profile.tables:
            raise P4Error(Code.FAILED_PRECONDITION, f"no table uses action profile {profile.name}")
        return self._schema.table(profile.tables[0])

    def write_member(self, kind: int, member: Any) -> Op:
        """An update of a member."""
        profile = self._profile(member.action_profile_id)
        if not member.member_id:
            raise invalid("a member's id is not 0")
        if kind == DELETE:
            return op.MemberDelete(profile.name, member.member_id)
        if not member.HasField("action"):
            raise invalid("a member needs an action")
        call = self._tables.call(self._table(profile), member.action)
        if kind == INSERT:
            return op.MemberAdd(profile.name, call, member.member_id)
        return op.MemberSet(profile.name, member.member_id, call)

    def write_group(self, kind: int, group: Any) -> Op:
        """An update of a group."""
        profile = self._profile(group.action_profile_id)
        if not profile.selector:
            raise invalid(f"action profile {profile.name} has no selector, and so no groups")
        if not group.group_id:
            raise invalid("a group's id is not 0")
        if kind == DELETE:
            return op.GroupDelete(profile.name, group.group_id)
        if group.max_size < 0:
            raise invalid("a group's size is negative")
        few(group.members)
        most = MOST_SHARES if profile.counts_members else MOST_WEIGHT
        if not profile.largest and group.max_size > most:
            why = f"group {group.group_id} wants a size of {group.max_size}; a group has {most} at most"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        shares = []
        for share in group.members:
            if share.weight <= 0:
                raise invalid(f"member {share.member_id} has a weight of 0 or less; give 1 or more")
            demand_unwatched(share)
            shares.append((share.member_id, share.weight, watch_of(share)))
        put: Put = "new" if kind == INSERT else "known"
        return op.GroupSet(profile.name, group.group_id, shares, group.max_size, put)

    def _asked(self, number: int) -> list[Profile]:
        return [self._profile(number)] if number else list(self._schema.profiles.values())

    def read_members(self, member: Any) -> Iterator[Part]:
        """The members that a request asks for."""
        for profile in self._asked(member.action_profile_id):
            if not profile.tables:
                continue
            for rows in self._rows(op.MembersRead, "member", profile.name, member.member_id, MEMBERS):
                size = len(rows) * self._tables.longest(self._table(profile))
                yield Part(len(rows), partial(self._member_messages, profile, rows), size)

    def _rows(self, read: Any, what: str, profile: str, asked: int, size: int) -> Iterator[Sequence[Any]]:
        """Those of a profile, some at a time, or the one that is asked for."""
        if not asked:
            yield from pages(lambda start, count: self._act(read(profile, start, count)), size)
            return
        rows = self._act(read(profile, asked, 1))
        if not rows or rows[0][0] != asked:
            raise P4Error(Code.NOT_FOUND, f"{profile} has no {what} {asked}")
        yield rows

    def _member_messages(self, profile: Profile, rows: Sequence[Any]) -> Iterator[Any]:
        table = self._table(profile)
        for number, call in rows:
            yield p4.Entity(
                action_profile_member=p4.ActionProfileMember(
                    action_profile_id=profile.id,
                    member_id=number,
                    action=self._tables.action_message(call, table),
                )
            )

    def read_groups(self, group: Any) -> Iterator[Part]:
        """The groups that a request asks for."""
        for profile in self._asked(group.action_profile_id):
            if not profile.selector:
                if group.action_profile_id:
                    raise invalid(f"action profile {profile.name} has no selector, and so no groups")
                continue
            for rows in self._rows(op.GroupsRead, "group", profile.name, group.group_id, GROUPS):
                size = INSIDE * sum(len(shares) for _, shares, _ in rows)
                yield Part(len(rows), partial(self._group_messages, profile, rows), size)

    @staticmethod
    def _group_messages(profile: Profile, rows: Sequence[Any]) -> Iterator[Any]:
        for number, shares, size in rows:
            message = p4.ActionProfileGroup(action_profile_id=profile.id, group_id=number, max_size=size)
            for member, weight, watch in shares:
                fill_watch(message.members.add(member_id=member, weight=weight), watch)
            yield p4.Entity(action_profile_group=message)

    # Operations as updates, and entities as answers.

    def _named(self, name: str) -> Profile:
        return named(self._schema.profiles, name, "action profile")

    def _selector(self, name: str) -> Profile:
        profile = self._named(name)
        if not profile.selector:
            raise invalid(f"`{profile.name}` is an action profile without a selector: it has no groups")
        return profile

    def _member(self, profile: Profile, member: int, to: Call | None = None) -> Any:
        message = p4.ActionProfileMember(action_profile_id=profile.id, member_id=member)
        if to is not None:
            message.action.CopyFrom(self._tables.call_message(self._table(profile), to))
        return p4.Entity(action_profile_member=message)

    def _members(self, profile: Profile) -> list[Any]:
        return [entity.action_profile_member for entity in self._look(self._member(profile, 0))]

    def member_add(self, operation: op.MemberAdd) -> Updates:
        """An `INSERT`; without a number, of the one after the largest."""
        profile, number = self._named(operation.profile), operation.member
        if number is None:
            number = 1 + max((member.member_id for member in self._members(profile)), default=0)
        return Updates([(INSERT, self._member(profile, number, operation.to))], lambda: number)

    def member_set(self, operation: op.MemberSet) -> Updates:
        """A `MODIFY`."""
        member = self._member(self._named(operation.profile), operation.member, operation.to)
        return Updates([(MODIFY, member)])

    def member_delete(self, operation: op.MemberDelete) -> Updates:
        """A `DELETE`."""
        return Updates([(DELETE, self._member(self._named(operation.profile), operation.member))])

    def members_read(self, operation: op.MembersRead) -> Any:
        """Numbers and actions."""
        profile = self._named(operation.profile)
        table = self._table(profile)
        found = [
            (member.member_id, self._tables.call(table, member.action, ANYWHERE))
            for member in self._members(profile)
        ]
        return some(found, operation.start, operation.count)

    @staticmethod
    def _group(profile: Profile, group: int, shares: Sequence[Share] = (), size: int = 0) -> Any:
        message = p4.ActionProfileGroup(action_profile_id=profile.id, group_id=group, max_size=size)
        for member, weight, watch in shares:
            fill_watch(message.members.add(member_id=member, weight=weight), carried(watch))
        return p4.Entity(action_profile_group=message)

    def _groups(self, profile: Profile, group: int = 0) -> list[tuple[int, list[Share], int]]:
        found = [entity.action_profile_group for entity in self._look(self._group(profile, group))]
        return [
            (one.group_id, [(s.member_id, s.weight, watch_of(s)) for s in one.members], one.max_size)
            for one in found
        ]

    def group_add(self, operation: op.GroupAdd) -> Updates:
        """An `INSERT` of the number after the largest, as large as the program allows."""
        profile = self._selector(operation.profile)
        number = 1 + max((group for group, *_ in self._groups(profile)), default=0)
        return Updates([(INSERT, self._group(profile, number, (), profile.largest))], lambda: number)

    def group_set(self, operation: op.GroupSet) -> Updates:
        """An `INSERT` or a `MODIFY`."""
        profile, kind = self._selector(operation.profile), MODIFY
        if operation.put == "new" or (
            operation.put == "either" and not self._groups(profile, operation.group)
        ):
            kind = INSERT
        group = self._group(profile, operation.group, operation.shares, operation.max_size)
        return Updates([(kind, group)])

    def _present(self, profile: Profile, group: int) -> tuple[list[Share], int]:
        for _, shares, size in self._groups(profile, group):
            return shares, size
        raise P4Error(Code.NOT_FOUND, f"there is no group {group}")

    def group_join(self, operation: op.GroupJoin) -> Updates:
        """A `MODIFY` of the group, which is read before."""
        profile, member = self._selector(operation.profile), operation.member
        shares, size = self._present(profile, operation.group)
        if any(share[0] == member for share in shares):
            raise P4Error(Code.ALREADY_EXISTS, f"member {member} is in group {operation.group} already")
        return Updates([(MODIFY, self._group(profile, operation.group, [*shares, (member, 1, b"")], size))])

    def group_leave(self, operation: op.GroupLeave) -> Updates:
        """A `MODIFY` of the group, which is read before."""
        profile, member = self._selector(operation.profile), operation.member
        shares, size = self._present(profile, operation.group)
        kept = [share for share in shares if share[0] != member]
        if len(kept) == len(shares):
            raise P4Error(Code.NOT_FOUND, f"member {member} is not in group {operation.group}")
        return Updates([(MODIFY, self._group(profile, operation.group, kept, size))])

    def group_delete(self, operation: op.GroupDelete) -> Updates:
        """A `DELETE`."""
        return Updates([(DELETE, self._group(self._selector(operation.profile), operation.group))])

    def groups_read(self, operation: op.GroupsRead) -> Any:
        """Numbers, members and sizes."""
        return some(self._groups(self._selector(operation.profile)), operation.start, operation.count)
