"""The packet replication engine: multicast groups and clone sessions."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from tidegate.control import operations as op
from tidegate.control.objects import Put
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.base import (
    DELETE,
    GROUPS,
    INSERT,
    INSIDE,
    MODIFY,
    Act,
    Look,
    Part,
    Updates,
    pages,
    some,
)
from tidegate.p4runtime.translate.entries import Op
from tidegate.p4runtime.translate.matches import bounded
from tidegate.p4runtime.values import canonical

PORTS = 511
"""Ports are numbers below this one, which drops."""
# `mcast_grp` and `egress_rid` have 16 bits, `priority` has 3.
MOST_GROUPS = 65_535
MOST_INSTANCES = 65_535
MOST_CLASSES = 7
# Copies that one packet may turn into.
MOST_COPIES = 4096

Then = Callable[[], None]


def demand_platform(properties: Any) -> None:
    """Refuse a P4Info that asks for more multicast groups, or copies of one, than there can be."""
    total = properties.multicast_group_table_total_replicas
    for what, asked, most in (
        ("multicast groups", properties.multicast_group_table_size, MOST_GROUPS),
        (
            "copies of a multicast group",
            properties.multicast_group_table_max_replicas_per_entry or total,
            MOST_COPIES,
        ),
    ):
        if asked > most:
            raise invalid(
                f"the P4Info's platform_properties ask for {asked} {what}; there are {most} at most"
            )


class Replication:
    """Multicast groups and clone sessions."""

    def __init__(self, schema: Schema, act: Act, look: Look | None = None) -> None:
        self._port = schema.port
        self._act = act
        self._look = look
        # What only a controller knows: metadata of groups, and which entries it wrote with ports as plain numbers.
        self._metadata: dict[int, bytes] = {}
        self._plain: set[tuple[str, int]] = set()

    def keep(self, before: Replication) -> None:
        """Go on with what another one remembers."""
        self._metadata, self._plain = before._metadata, before._plain

    def write(self, kind: int, entry: Any) -> tuple[Op, Then | None]:
        """An update, and what is to be remembered when it is done."""
        which = entry.WhichOneof("type")
        if which == "multicast_group_entry":
            return self._write_group(kind, entry.multicast_group_entry)
        if which == "clone_session_entry":
            return self._write_session(kind, entry.clone_session_entry)
        raise invalid("a multicast group or a clone session must be given")

    def _write_group(self, kind: int, entry: Any) -> tuple[Op, Then]:
        group: int = entry.multicast_group_id
        if not 1 <= group <= MOST_GROUPS:
            raise invalid(f"{group} is not a multicast group; there are 1 to {MOST_GROUPS}")
        if kind == DELETE:
            return op.MulticastDelete(group, "known", nodes=True), partial(
                self._remember, "multicast", group, None
            )
        bounded(entry.metadata)
        copies, remember = self._replicas(entry.replicas), partial(self._remember, "multicast", group, entry)
        return op.MulticastSet(group, copies, "new" if kind == INSERT else "known"), remember

    def _remember(self, kind: str, number: int, entry: Any) -> None:
        self._plain.discard((kind, number))
        if kind == "multicast":
            self._metadata.pop(number, None)
        if entry is None:
            return
        if any(replica.WhichOneof("port_kind") == "egress_port" for replica in entry.replicas):
            self._plain.add((kind, number))
        if kind == "multicast" and entry.metadata:
            self._metadata[number] = entry.metadata

    def _write_session(self, kind: int, entry: Any) -> tuple[Op, Then]:
        session: int = entry.session_id
        if not 1 <= session <= MOST_GROUPS:
            raise invalid(f"{session} is not a clone session; there are 1 to {MOST_GROUPS}")
        if kind == DELETE:
            return op.MirrorDelete(session, "known"), partial(self._remember, "clone", session, None)
        if not 0 <= entry.class_of_service <= MOST_CLASSES:
            raise invalid(f"the class of service is {entry.class_of_service}; there are 0 to {MOST_CLASSES}")
        if entry.packet_length_bytes < 0:
            raise invalid("the packet length is negative")
        length = entry.packet_length_bytes or None
        copies = [(instance, port) for port, instance in self._replicas(entry.replicas)]
        to = (None, None, copies, entry.class_of_service, length)
        remember = partial(self._remember, "clone", session, entry)
        return op.MirrorSet(session, to, "new" if kind == INSERT else "known"), remember

    def read(self, entry: Any) -> Iterator[Part]:
        """The groups or sessions that a request asks for; both if it does not say."""
        which = entry.WhichOneof("type")
        if which != "clone_session_entry":
            number = entry.multicast_group_entry.multicast_group_id
            for rows in self._rows(op.MulticastRead, "multicast group", number):
                known = [self._metadata.get(row[0], b"") for row in rows]
                plain = [("multicast", row[0]) in self._plain for row in rows]
                size = INSIDE * sum(max(1, len(ports)) for _, nodes in rows for _, _, ports in nodes)
                size += sum(map(len, known))
                yield Part(len(rows), partial(self._group_messages, rows, known, plain), size)
        if which != "multicast_group_entry":
            for rows in self._rows(op.MirrorRead, "clone session", entry.clone_session_entry.session_id):
                plain = [("clone", row[0]) in self._plain for row in rows]
                size = INSIDE * sum(len(row[2]) for row in rows)
                yield Part(len(rows), partial(self._session_messages, rows, plain), size)

    def _rows(self, read: Any, what: str, asked: int) -> Iterator[Sequence[Any]]:
        """All, some at a time, or the one that is asked for."""
        if not asked:
            yield from pages(lambda start, count: self._act(read(start, count)), GROUPS)
            return
        rows = self._act(read(asked, 1))
        if not rows or rows[0][0] != asked:
            raise P4Error(Code.NOT_FOUND, f"there is no {what} {asked}")
        yield rows

    def _group_messages(
        self, rows: Sequence[Any], metadata: Sequence[bytes], plain: Sequence[bool]
    ) -> Iterator[Any]:
        for (group, nodes), known, bare in zip(rows, metadata, plain, strict=True):
            copies = [(port, rid) for _, rid, ports in nodes for port in ports]
            message = p4.MulticastGroupEntry(multicast_group_id=group, metadata=known)
            self._add(message.replicas, copies, bare)
            wrapped = p4.PacketReplicationEngineEntry(multicast_group_entry=message)
            yield p4.Entity(packet_replication_engine_entry=wrapped)

    def _session_messages(self, rows: Sequence[Any], plain: Sequence[bool]) -> Iterator[Any]:
        for (session, (_, _, _, priority, length), copies), bare in zip(rows, plain, strict=True):
            message = p4.CloneSessionEntry(
                session_id=session, class_of_service=priority, packet_length_bytes=length or 0
            )
            self._add(message.replicas, copies, bare)
            wrapped = p4.PacketReplicationEngineEntry(clone_session_entry=message)
            yield p4.Entity(packet_replication_engine_entry=wrapped)

    def _add(self, to: Any, copies: list[tuple[int, int]], plain: bool) -> None:
        for port, instance in copies:
            if plain:
                to.add(egress_port=port, instance=instance)
            else:
                to.add(port=self._port.to_client(canonical(port)), instance=instance)

    def _replicas(self, found: Any) -> list[tuple[int, int]]:
        """Ports and instances, each pair once."""
        copies = []
        for replica in found:
            if replica.backup_replicas:
                raise P4Error.unsupported("ports do not go down here: there are no backup replicas")
            kind = replica.WhichOneof("port_kind")
            if kind is None:
                raise invalid("a replica has no port")
            port = replica.egress_port
            if kind == "port":
                if not replica.port:
                    raise invalid("the port of a replica is empty")
                port = int.from_bytes(self._port.to_switch(replica.port, "the port of a replica"))
            if port >= PORTS:
                raise invalid(f"{port} is not a port that copies can go to; there are 0 to {PORTS - 1}")
            if replica.instance > MOST_INSTANCES:
                raise invalid(f"the instance {replica.instance} is more than {MOST_INSTANCES}")
            copies.append((port, replica.instance))
        if len(set(copies)) != len(copies):
            raise invalid("a pair of port and instance is there twice")
        if len(copies) > MOST_COPIES:
            raise P4Error(Code.RESOURCE_EXHAUSTED, f"{len(copies)} copies are more than {MOST_COPIES}")
        return copies

    # Operations as updates, and entities as answers.

    def _read(self, kind: str, number: str, asked: int = 0) -> list[Any]:
        assert self._look is not None, "only a client reads over P4Runtime"
        entity = p4.Entity(packet_replication_engine_entry={kind: {number: asked}})
        return [getattr(one.packet_replication_engine_entry, kind) for one in self._look(entity)]

    def _groups(self, asked: int = 0) -> list[Any]:
        return self._read("multicast_group_entry", "multicast_group_id", asked)

    def _sessions(self, asked: int = 0) -> list[Any]:
        return self._read("clone_session_entry", "session_id", asked)

    @staticmethod
    def _kind(put: Put, there: Callable[[], list[Any]]) -> int:
        if put == "either":
            return MODIFY if there() else INSERT
        return INSERT if put == "new" else MODIFY

    def multicast_set(self, operation: op.MulticastSet) -> Updates:
        """An `INSERT` or a `MODIFY`; a group that is changed keeps its metadata."""
        entry = p4.MulticastGroupEntry(multicast_group_id=operation.group)
        self._add(entry.replicas, list(operation.copies), False)
        there = [] if operation.put == "new" else self._groups(operation.group)
        for present in there:
            entry.metadata = present.metadata
        kind = self._kind(operation.put, lambda: there)
        return Updates([(kind, wrapped(multicast_group_entry=entry))])

    def multicast_delete(self, operation: op.MulticastDelete) -> Updates:
        """A `DELETE`."""
        if not operation.nodes:
            raise no_nodes("a multicast group without its nodes cannot be removed")
        if operation.put == "either" and not self._groups(operation.group):
            return Updates([])
        entry = p4.MulticastGroupEntry(multicast_group_id=operation.group)
        return Updates([(DELETE, wrapped(multicast_group_entry=entry))])

    def multicast_read(self, operation: op.MulticastRead) -> Any:
        """Groups with their copies by replication id. Nodes have no handles in P4Runtime: they are counted here."""
        groups, number = [], 0
        for entry in self._groups():
            ports: dict[int, list[int]] = {}
            for port, instance in self._replicas(entry.replicas):
                ports.setdefault(instance, []).append(port)
            nodes = [(number + at, rid, found) for at, (rid, found) in enumerate(ports.items())]
            number += len(nodes)
            groups.append((entry.multicast_group_id, nodes))
        return some(groups, operation.start, operation.count)

    def mirror_set(self, operation: op.MirrorSet) -> Updates:
        """An `INSERT` or a `MODIFY`."""
        port, group, copies, priority, truncate = operation.to
        if group is not None:
            raise P4Error.unsupported(
                "P4Runtime has no mirror sessions that follow a multicast group",
                "give the copies of the group, as `RemoteSwitch.mirror_set` does",
            )
        entry = p4.CloneSessionEntry(
            session_id=operation.session, class_of_service=priority, packet_length_bytes=truncate or 0
        )
        replicated: Sequence[tuple[int, int]] = [*copies, *([] if port is None else [(0, port)])]
        self._add(entry.replicas, [(number, instance) for instance, number in replicated], False)
        kind = self._kind(operation.put, lambda: self._sessions(operation.session))
        return Updates([(kind, wrapped(clone_session_entry=entry))])

    def mirror_delete(self, operation: op.MirrorDelete) -> Updates:
        """A `DELETE`."""
        if operation.put == "either" and not self._sessions(operation.session):
            return Updates([])
        entry = p4.CloneSessionEntry(session_id=operation.session)
        return Updates([(DELETE, wrapped(clone_session_entry=entry))])

    def mirror_read(self, operation: op.MirrorRead) -> Any:
        """Sessions, what is set of each, and port and replication id of its copies."""
        found = []
        for entry in self._sessions():
            copies = self._replicas(entry.replicas)
            to = (
                None,
                None,
                [(instance, port) for port, instance in copies],
                entry.class_of_service,
                entry.packet_length_bytes or None,
            )
            found.append((entry.session_id, to, copies))
        return some(found, operation.start, operation.count)


def wrapped(**entry: Any) -> Any:
    """`p4.Entity` of an entry of the engine."""
    return p4.Entity(packet_replication_engine_entry=entry)


def no_nodes(why: str) -> P4Error:
    """P4Runtime has groups, and no nodes apart from them."""
    return P4Error.unsupported(why, "P4Runtime has no nodes apart from groups; set the copies of each group")
