"""Who may write: streams, elections and roles (P4Runtime, section 5)."""

from __future__ import annotations

import fnmatch
import re
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from google.protobuf import struct_pb2
from google.protobuf.message import DecodeError

from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import p4

MOST_KNOWN = 16_384
"""Names of objects of which it is remembered whether a role may have them."""
RULES_TYPE = "google.protobuf.Struct"

Election = tuple[int, int]


class Stream:
    """A controller's stream: what waits to be sent to it."""

    def __init__(
        self,
        limit: int = Limits().messages_per_stream,
        peer: str = "",
        client: str = "",
        size: int = Limits().bytes_per_stream,
        cancel: Callable[[], object] = lambda: None,
    ) -> None:
        """`limit` and `size`: messages that wait for the controller, and their bytes; more of those that may be lost are dropped and counted.

        `cancel` ends the call, whatever has been sent.
        """
        self.limit = limit
        self.size = size
        self.peer = peer
        """The connection that it is on."""
        self.client = client
        """Who it is of, as limits see it."""
        self.cancel = cancel
        self.since = time.monotonic()
        self.closed: float | None = None
        """Since when nothing more is to be sent."""
        self.role: str | None = None
        """`None` until it has taken part in an election."""
        self.election: Election | None = None
        self.error: P4Error | None = None
        self.dropped: Counter[str] = Counter()
        self._waiting: deque[tuple[Any, int]] = deque()
        self._bytes = 0
        self._changed = threading.Condition()

    def send(self, message: Any, what: str | None = None) -> bool:
        """Have a message sent. One that has a name may be dropped if the controller does not keep up."""
        size = message.ByteSize()
        with self._changed:
            if self.closed is not None:
                return False
            waiting, total = len(self._waiting), self._bytes + size
            if what is not None and (waiting >= self.limit or total > self.size):
                self.dropped[what] += 1
                return False
            if waiting >= 2 * self.limit or total > 2 * self.size:
                self.error = P4Error(Code.RESOURCE_EXHAUSTED, "the controller does not read what it is sent")
                self._close()
            else:
                self._waiting.append((message, size))
                self._bytes = total
            self._changed.notify()
            return True

    def fail(self, error: P4Error) -> None:
        """End the stream with an error."""
        with self._changed:
            self.error = self.error or error
        self.close()

    def close(self) -> None:
        """End the stream when what waits has been sent."""
        with self._changed:
            self._close()
            self._changed.notify()

    def _close(self) -> None:
        if self.closed is None:
            self.closed = time.monotonic()

    def __iter__(self) -> Iterator[Any]:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._waiting or self.closed is not None)
                if not self._waiting or self.error is not None:
                    return
                message, size = self._waiting.popleft()
                self._bytes -= size
            yield message


@dataclass(frozen=True)
class Rules:
    """What a role may do."""

    objects: tuple[str, ...] = ("*",)
    packet_in: bool = True
    packet_out: bool = True
    pipeline: bool = True
    _known: dict[str, bool] = field(default_factory=dict, compare=False, repr=False)
    _patterns: tuple[re.Pattern[str], ...] = ()

    def allows(self, name: str) -> bool:
        """Whether the object of a name is the role's."""
        if self.objects == ("*",):
            return True
        # Names are those of programs' objects, and asked for over and over.
        if name not in self._known:
            if len(self._known) >= MOST_KNOWN:
                # Of programs that were replaced.
                self._known.clear()
            self._known[name] = any(p.match(name) for p in self._patterns)
        return self._known[name]

    @classmethod
    def of(cls, config: Any, limits: Limits | None = None) -> Rules:
        """The rules in a role's configuration: a `google.protobuf.Struct`."""
        limits = limits or Limits()
        names, characters = limits.role_objects, limits.role_name
        if config.ByteSize() > limits.role_bytes:
            why = f"a role's configuration has {limits.role_bytes} bytes at most"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        if config.TypeName() != RULES_TYPE:
            raise invalid(f"a role's configuration is a {RULES_TYPE}; see docs/p4runtime.md")
        try:
            found = dict(struct_pb2.Struct.FromString(config.value))
        except (DecodeError, ValueError):
            # A value without a kind is a ValueError.
            raise invalid("a role's configuration cannot be read") from None
        rules: dict[str, Any] = {}
        for key, value in found.items():
            if key == "objects" and isinstance(value, struct_pb2.ListValue):
                # Names are looked at only if there are not too many of them.
                if len(value) > names or any(len(name) > characters for name in _names(value)):
                    raise P4Error(
                        Code.RESOURCE_EXHAUSTED,
                        f"a role's configuration has {names} objects at most, "
                        f"and their names have {characters} characters at most",
                    )
                rules[key] = _names(value)
                rules["_patterns"] = tuple(re.compile(fnmatch.translate(name)) for name in rules[key])
            elif key in ("packet_in", "packet_out", "pipeline") and isinstance(value, bool):
                rules[key] = value
            else:
                raise invalid(
                    f"a role's configuration has no {key!r} of this kind; it has objects (a list of names), "
                    "packet_in, packet_out and pipeline (true or false)"
                )
        return cls(**rules)


@dataclass
class Role:
    """The controllers of a role."""

    name: str
    highest: Election | None = None
    """Of all election ids that there ever were, until the role makes way for another one, or elections are reset."""
    primary: Stream | None = None
    config: Any = None
    rules: Rules = field(default_factory=Rules)
    streams: list[Stream] = field(default_factory=list)
    writes: int = 0
    """Calls of `Write` that have begun and go on, whoever is primary by now."""
    accepted: bool = True
    """Whether the primary may write: a new one may not before the writes of the one before are done."""


class Arbitration:
    """Elections of one device. Used under the server's lock."""

    def __init__(self, device_id: int, limits: Limits | None = None) -> None:
        self._device_id = device_id
        self._limits = limits or Limits()
        # In the order in which they were used last.
        self._roles: dict[str, Role] = {"": Role("")}
        self.streams: list[Stream] = []
        self.primary_peers: dict[str, str] = {}
        """Connections of primaries, with a role that each is primary of, the default one before others. To be read by any thread."""

    def join(self, stream: Stream) -> None:
        """A stream is open. If there are too many, one that has not taken part in an election makes way.

        Else it is refused (specification 1.5, "Rules for Handling MasterArbitrationUpdate Messages"), but for one of a client that has
        fewer streams than another: so no client has all of them. Raises `RESOURCE_EXHAUSTED`, also if too many that have ended are
        still there.
        """
        limits = self._limits
        there = [other for other in self.streams if other.closed is None]
        ended = [other for other in self.streams if other.closed is not None]
        if len(ended) >= limits.streams:
            # Their controllers do not read how they end.
            for other in ended:
                other.cancel()
            raise P4Error(Code.RESOURCE_EXHAUSTED, f"{len(ended)} streams are ending; try again")
        counts = Counter(other.client for other in there)
        own = counts[stream.client]
        if own >= limits.streams_per_client:
            why = f"this client has {own} streams already"
            self._make_way([other for other in there if other.client == stream.client], why)
        elif len(there) >= limits.streams:
            primaries = {id(role.primary) for role in self._roles.values()}
            # The newest first of those of clients that have more than this one will have.
            others = sorted(
                (other for other in reversed(there) if counts[other.client] > own + 1),
                key=lambda other: -counts[other.client],
            )
            more = [other for other in others if id(other) not in primaries]
            self._make_way(there, f"there are {limits.streams} streams already", more)
        self.streams.append(stream)

    @staticmethod
    def _make_way(streams: list[Stream], why: str, more: Sequence[Stream] = ()) -> None:
        """End the first stream that has not taken part in an election, or of more streams the first."""
        ended = next((stream for stream in streams if stream.role is None), next(iter(more), None))
        if ended is None:
            raise P4Error(Code.RESOURCE_EXHAUSTED, f"{why}; close one")
        ended.fail(P4Error(Code.RESOURCE_EXHAUSTED, f"{why}; another one has its place"))

    def reset(self, why: str) -> None:
        """End all streams, and forget all roles and election ids."""
        for stream in list(self.streams):
            stream.fail(P4Error(Code.ABORTED, why))
            stream.role = None
        for role in self._roles.values():
            role.primary = None
        self._roles = {"": Role("")}
        self._note_primaries()

    def end_late(self) -> None:
        """End streams that have not taken part in an election in time, or whose controller does not read how they end."""
        allowed, now = self._limits.request_s, time.monotonic()
        for stream in self.streams:
            if stream.closed is not None:
                if now - stream.closed >= self._limits.stalled_s:
                    stream.cancel()
            elif stream.role is None and now - stream.since >= allowed:
                why = f"a stream begins with an arbitration update; none came within {allowed} s"
                stream.fail(P4Error(Code.FAILED_PRECONDITION, why))

    def _note_primaries(self) -> None:
        peers: dict[str, str] = {}
        for role in self._roles.values():
            if role.primary is not None and role.primary.peer not in peers:
                peers[role.primary.peer] = role.name
        default = self._roles[""].primary
        if default is not None:
            peers[default.peer] = ""
        self.primary_peers = peers

    def _make_room(self) -> None:
        """Let the role that was left first make way for another one."""
        left = (name for name, role in self._roles.items() if name and not role.streams and not role.writes)
        empty = next(left, None)
        if empty is None:
            why = f"there are {self._limits.roles} roles already, and all have streams"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        del self._roles[empty]

    def leave(self, stream: Stream) -> None:
        """A stream is closed, or its controller is gone."""
        if stream in self.streams:
            self.streams.remove(stream)
        role = self._roles.get(stream.role) if stream.role is not None else None
        if role is None or stream not in role.streams:
            return
        role.streams.remove(stream)
        if not role.streams and role.name:
            del self._roles[role.name]
            # A role that never had a primary has nothing to be remembered.
            if role.highest is not None:
                self._roles[role.name] = role
        if role.primary is stream:
            role.primary = None
            self._note_primaries()
            self._tell(role)

    def update(self, stream: Stream, message: Any, rules: Rules | None = None) -> bool:
        """Apply an arbitration update of a controller; return whether the primary has changed.

        `rules` are those of its configuration, if that was read before. While a write of the primary before goes on, the new one is
        not told that it is primary (specification 1.5, "Rules for Handling MasterArbitrationUpdate Messages").
        """
        first = stream.role is None
        if message.device_id != self._device_id:
            code = Code.NOT_FOUND if first else Code.FAILED_PRECONDITION
            raise P4Error(code, f"there is no device {message.device_id}; this is {self._device_id}")
        name = role_name(message.role)
        if not first and stream.role != name:
            raise P4Error(Code.FAILED_PRECONDITION, "a stream keeps its role; open another one")
        if len(name) > self._limits.role_name:
            why = f"a role's name has {self._limits.role_name} characters at most"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        given = message.role.HasField("config")
        if rules is None:
            rules = Rules.of(message.role.config, self._limits) if given else Rules()
        if given and not name:
            raise invalid("the default role has no configuration: it may do everything")
        election = election_of(message)
        role = self._roles.get(name) or Role(name)
        if election is not None and any(s.election == election for s in role.streams if s is not stream):
            raise invalid("another controller has this election id")
        if first:
            if name not in self._roles and len(self._roles) >= self._limits.roles:
                self._make_room()
            role.streams.append(stream)
            self._roles[name] = role
        stream.role, stream.election = name, election
        if election is not None and (role.highest is None or election >= role.highest):
            changed = role.primary is not stream
            role.highest, role.primary, role.rules = election, stream, rules
            role.accepted = not role.writes
            role.config = message.role.config if given else None
            self._note_primaries()
            self._tell(role)
            return changed
        if role.primary is stream:
            role.primary = None
            self._note_primaries()
            self._tell(role)
        else:
            stream.send(self._advice(role, stream))
        return False

    def begin_write(self, role: Role) -> None:
        """A write of a role's primary begins."""
        role.writes += 1

    def end_write(self, role: Role) -> None:
        """It has ended: a primary that waits for it may write now."""
        role.writes -= 1
        if not role.writes and not role.accepted:
            role.accepted = True
            if role.primary is not None:
                role.primary.send(self._advice(role, role.primary))

    def _tell(self, role: Role) -> None:
        """Tells all controllers of a role how it stands, the primary last, unless it has to wait."""
        for stream in sorted(role.streams, key=lambda s: s is role.primary):
            if role.accepted or stream is not role.primary:
                stream.send(self._advice(role, stream))

    def _advice(self, role: Role, stream: Stream) -> Any:
        update = p4.MasterArbitrationUpdate(device_id=self._device_id)
        if role.name:
            update.role.name = role.name
            if role.name.isdecimal():
                update.role.id = int(role.name) & 0xFFFF_FFFF_FFFF_FFFF
        if role.config is not None:
            update.role.config.CopyFrom(role.config)
        if role.highest is not None:
            update.election_id.high, update.election_id.low = role.highest
            update.election_id.SetInParent()
        if role.primary is stream:
            update.status.code, update.status.message = Code.OK, "is primary"
        elif role.primary is not None:
            update.status.code, update.status.message = Code.ALREADY_EXISTS, "another one is primary"
        else:
            update.status.code, update.status.message = Code.NOT_FOUND, "there is no primary"
        return p4.StreamMessageResponse(arbitration=update)

    def check(self, request: Any) -> Role:
        """The role that a request is sent for; refused if its sender is not primary."""
        if request.device_id != self._device_id:
            raise P4Error(
                Code.NOT_FOUND, f"there is no device {request.device_id}; this is {self._device_id}"
            )
        name = request.role or (str(request.role_id) if request.role_id else "")
        role = self._roles.get(name)
        if role is None:
            raise P4Error(Code.NOT_FOUND, f"there is no role {name[:100]!r}; open a stream for it first")
        election = election_of(request)
        if role.primary is None or election is None or role.primary.election != election:
            raise P4Error(Code.PERMISSION_DENIED, "the controller of this election id is not primary")
        if not role.accepted:
            why = "a write of the primary before goes on; wait for the arbitration update that says that this one is primary"
            raise P4Error(Code.PERMISSION_DENIED, why)
        return role

    def rules(self, name: str) -> Rules:
        """What a role may read."""
        if name not in self._roles:
            raise P4Error(Code.NOT_FOUND, f"there is no role {name[:100]!r}")
        return self._roles[name].rules

    def primary_rules(self, stream: Stream) -> Rules | None:
        """What a stream's controller may do; `None` if it is not primary."""
        role = self._roles.get(stream.role) if stream.role is not None else None
        return role.rules if role is not None and role.primary is stream and role.accepted else None

    def primaries(self) -> list[tuple[Stream, Rules]]:
        """The primary of each role that has one."""
        return [
            (role.primary, role.rules)
            for role in self._roles.values()
            if role.primary is not None and role.accepted
        ]


def _names(values: struct_pb2.ListValue) -> tuple[str, ...]:
    try:
        return tuple(str(name) for name in values)
    except ValueError:
        raise invalid("a name in a role's configuration has no value") from None


def election_of(message: Any) -> Election | None:
    """An election id, in order of size."""
    if not message.HasField("election_id"):
        return None
    return message.election_id.high, message.election_id.low


def role_name(role: Any) -> str:
    """A role's name; older clients give it a number."""
    name: str = role.name or (str(role.id) if role.id else "")
    return name
