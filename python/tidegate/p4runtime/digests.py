"""Digests: which are wanted, lists of them, and what was acknowledged."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Schema, known
from tidegate.p4runtime.translate.base import DELETE, INSERT, Part
from tidegate.p4runtime.translate.digests import data_message

# Lists that are forgotten at a time after their timeout; calls wait meanwhile.
MOST_FORGOTTEN = 4096


@dataclass
class _Digest:
    """One that is wanted."""

    config: Any
    waiting: dict[bytes, Any] = field(default_factory=dict)
    since: int = 0
    sent: set[bytes] = field(default_factory=set)
    """Messages that were sent and not acknowledged."""
    lists: OrderedDict[int, tuple[int, list[bytes]]] = field(default_factory=OrderedDict)
    """When each list of those was sent, and its messages."""


class Digests:
    """Collects digests in lists, without those that were sent and are not acknowledged yet."""

    def __init__(
        self, schema: Schema, limits: Limits | None = None, clock: Callable[[], int] = time.monotonic_ns
    ) -> None:
        self._schema = schema
        self._limits = limits or Limits()
        self._clock = clock
        self._wanted: dict[int, _Digest] = {}
        self._ids = {name: number for number, (name, _) in schema.digests.items()}
        self._next_list = 1

    def write(self, kind: int, entry: Any) -> None:
        """Subscribe to a digest, change or end the subscription. It is the server's alone: the engine has no part in it."""
        number = entry.digest_id
        known(self._schema.digests, number, "digest")
        if kind == INSERT and number in self._wanted:
            raise P4Error(Code.ALREADY_EXISTS, "this digest is configured already")
        if kind != INSERT and number not in self._wanted:
            raise P4Error(Code.NOT_FOUND, "this digest is not configured")
        if kind == DELETE:
            del self._wanted[number]
            return
        config = p4.DigestEntry.Config()
        config.CopyFrom(entry.config)
        if min(config.max_timeout_ns, config.max_list_size, config.ack_timeout_ns) < 0:
            raise invalid("a digest's timeout or size is negative")
        if kind == INSERT:
            self._wanted[number] = _Digest(config)
        else:
            self._wanted[number].config = config

    def read(self, entry: Any) -> Iterator[Part]:
        """The configurations that a request asks for."""
        if entry.digest_id:
            known(self._schema.digests, entry.digest_id, "digest")
            if entry.digest_id not in self._wanted:
                raise P4Error(Code.NOT_FOUND, "this digest is not configured")
        found = [
            p4.Entity(digest_entry=p4.DigestEntry(digest_id=number, config=digest.config))
            for number, digest in list(self._wanted.items())
            if entry.digest_id in (0, number)
        ]
        yield Part(len(found), lambda: found)

    def offer(self, name: str, fields: list[tuple[str, int]]) -> Iterator[tuple[str, Any]]:
        """Takes a digest of the data plane; gives the lists that are full by it, with their digest's name."""
        number = self._ids.get(name, 0)
        digest = self._wanted.get(number)
        if digest is None:
            return
        data = data_message(self._schema, self._schema.digests[number][1], [v for _, v in fields])
        key = data.SerializeToString(deterministic=True)
        if key in digest.waiting or key in digest.sent:
            return
        if not digest.waiting:
            digest.since = self._clock()
        digest.waiting[key] = data
        most = self._limits.digests_per_list
        if (
            len(digest.waiting) >= min(digest.config.max_list_size or most, most)
            or digest.config.max_timeout_ns == 0
        ):
            yield name, self._send(number, digest)

    def due(self) -> Iterator[tuple[str, Any]]:
        """Lists that have waited long enough. What was sent long ago and not acknowledged may be sent again."""
        now = self._clock()
        for number, digest in self._wanted.items():
            if digest.waiting and now - digest.since >= digest.config.max_timeout_ns:
                yield self._schema.digests[number][0], self._send(number, digest)
            # Lists are in the order of sending. What is left is forgotten the next time.
            for sent, (at, _) in list(islice(digest.lists.items(), MOST_FORGOTTEN)):
                if now - at < digest.config.ack_timeout_ns:
                    break
                self._forget(digest, sent)

    def _send(self, number: int, digest: _Digest) -> Any:
        message = p4.DigestList(
            digest_id=number,
            list_id=self._next_list,
            data=digest.waiting.values(),
            timestamp=time.time_ns(),
        )
        if digest.config.ack_timeout_ns:
            while digest.lists and len(digest.sent) + len(digest.waiting) > self._limits.digests_sent:
                self._forget(digest, next(iter(digest.lists)))
            digest.sent.update(digest.waiting)
            digest.lists[self._next_list] = self._clock(), list(digest.waiting)
        self._next_list += 1
        digest.waiting = {}
        return message

    @staticmethod
    def _forget(digest: _Digest, sent: int) -> None:
        # A message is in one list alone.
        _, keys = digest.lists.pop(sent, (0, []))
        digest.sent.difference_update(keys)

    def acknowledge(self, ack: Any) -> None:
        """The controller has a list."""
        known(self._schema.digests, ack.digest_id, "digest")
        digest = self._wanted.get(ack.digest_id)
        if digest is not None:
            self._forget(digest, ack.list_id)

    def keep(self, before: Digests) -> None:
        """Go on with what was wanted of another program."""
        kept = {number: digest.config for number, digest in before._wanted.items()}
        self._wanted = {n: _Digest(config) for n, config in kept.items() if n in self._schema.digests}
        self._next_list = before._next_list

    def forget_sent(self) -> None:
        """Another controller is primary: it has nothing yet."""
        for digest in self._wanted.values():
            digest.sent.clear()
            digest.lists.clear()
