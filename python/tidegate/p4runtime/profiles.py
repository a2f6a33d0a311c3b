"""Action profiles: members and groups."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tidegate.control import operations as op
from tidegate.control.objects import Put
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.matches import fill_watch, watch_of
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Profile, Schema, Table, known
from tidegate.p4runtime.tables import DELETE, INSERT, Op, Tables


class Profiles:
    """Reads and writes of action profiles and selectors."""

    def __init__(self, schema: Schema, device: Device, tables: Tables) -> None:
        self._schema = schema
        self._device = device
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
        shares = []
        for share in group.members:
            if share.weight <= 0:
                raise invalid(f"member {share.member_id} has a weight of 0 or less; give 1 or more")
            shares.append((share.member_id, share.weight, watch_of(share)))
        put: Put = "new" if kind == INSERT else "known"
        return op.GroupSet(profile.name, group.group_id, shares, group.max_size, put)

    def _asked(self, number: int) -> list[Profile]:
        return [self._profile(number)] if number else list(self._schema.profiles.values())

    def read_members(self, member: Any) -> Iterator[Any]:
        """The members that a request asks for."""
        for profile in self._asked(member.action_profile_id):
            if not profile.tables:
                continue
            table = self._table(profile)
            rows = self._device.act(op.MembersRead(profile.name))
            if member.member_id:
                rows = [row for row in rows if row[0] == member.member_id]
                if not rows:
                    raise P4Error(Code.NOT_FOUND, f"{profile.name} has no member {member.member_id}")
            for number, call in rows:
                yield p4.Entity(
                    action_profile_member=p4.ActionProfileMember(
                        action_profile_id=profile.id,
                        member_id=number,
                        action=self._tables.action_message(call, table),
                    )
                )

    def read_groups(self, group: Any) -> Iterator[Any]:
        """The groups that a request asks for."""
        for profile in self._asked(group.action_profile_id):
            if not profile.selector:
                if group.action_profile_id:
                    raise invalid(f"action profile {profile.name} has no selector, and so no groups")
                continue
            rows = self._device.act(op.GroupsRead(profile.name))
            if group.group_id:
                rows = [row for row in rows if row[0] == group.group_id]
                if not rows:
                    raise P4Error(Code.NOT_FOUND, f"{profile.name} has no group {group.group_id}")
            for number, shares, size in rows:
                message = p4.ActionProfileGroup(action_profile_id=profile.id, group_id=number, max_size=size)
                for member, weight, watch in shares:
                    fill_watch(message.members.add(member_id=member, weight=weight), watch)
                yield p4.Entity(action_profile_group=message)
