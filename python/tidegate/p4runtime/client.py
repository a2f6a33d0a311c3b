"""A switch behind a P4Runtime server, for controllers: `SwitchApi` by messages, so that a controller runs unchanged.

    >>> from tidegate.p4runtime import connect
    >>> with connect("127.0.0.1:9559") as switch:
    ...     switch.run(Learner(), "10 s")

Any server will do that has been told its program. What P4Runtime has no messages for (queues, packet generators, statistics)
raises `Unsupported`, a `TidegateError`.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Self

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.control import operations as op
from tidegate.control.runner import DigestFields, Managed, Packet, Runner
from tidegate.p4runtime.connection import ClientTls, Connection, Refused
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.remote import RemoteCore
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.digests import data_fields
from tidegate.p4runtime.translate.packets import Packets
from tidegate.p4runtime.values import Translations


def connect(
    address: str,
    *,
    name: str = "switch",
    ports: Sequence[str] = (),
    device_id: int = 1,
    election_id: tuple[int, int] | int = 1,
    role: str = "",
    tls: ClientTls | None = None,
    translations: Translations | None = None,
) -> RemoteSwitch:
    """Connect to a server and become primary.

    `ports` are the names of what is at the other end of each port; `translations` are the server's, for programs that have names
    for numbers.
    """
    connection = Connection(address, device_id=device_id, election_id=election_id, role=role, tls=tls)
    try:
        return RemoteSwitch(connection, name, ports, translations=translations)
    except TidegateError:
        connection.close()
        raise


class RemoteSwitch(SwitchApi):
    """A switch that is asked by P4Runtime.

    Methods, `act` and `batch` do the same operations as on a switch of this process: `docs/p4runtime.md` lists the messages of
    each. Handles of entries, members and groups are this client's own.
    """

    def __init__(
        self,
        connection: Connection,
        name: str = "switch",
        ports: Sequence[str] = (),
        note: Callable[[int, str, str, float], None] = lambda *_: None,
        translations: Translations | None = None,
    ) -> None:
        """Stand for the switch of a connection that takes part in an election; raises if it is not won."""
        self.connection = connection
        status = connection.next("arbitration").status
        if status.code != 0:
            raise TidegateError(f"{name}: another controller is primary ({status.message})")
        info = connection.get_config("P4INFO_AND_COOKIE").p4info
        self._schema = Schema(info, translations=translations or {})
        self._packets = Packets(self._schema)
        super().__init__(name, RemoteCore(connection, self._schema), ports, note)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self.connection.close()

    def _meter(
        self, name: str, index: int | None, committed: float, burst: int, peak: float, peak_burst: int
    ) -> None:
        """Rates are rounded to whole bytes or packets a second, which P4Runtime has."""
        if index is None and self._schema.meter(name).table:
            table = self._schema.tables[self._schema.meter(name).table].name
            for entry in self.table_entries(table):
                super()._meter(name, entry.handle, round(committed), burst, round(peak), peak_burst)
            return
        super()._meter(name, index, round(committed), burst, round(peak), peak_burst)

    def mirror_set(
        self, session: int, port: int | None = None, *, group: int | None = None, truncate: int | None = None
    ) -> None:
        """As for a switch of this process, but for the copies of a group: they are those that it has now."""
        if group is None:
            super().mirror_set(session, port, truncate=truncate)
            return
        found = dict(self.act(op.MulticastRead())).get(group)
        if found is None:
            raise P4Error(Code.NOT_FOUND, f"there is no multicast group {group}")
        copies = [(rid, number) for _, rid, ports in found for number in ports]
        self.act(op.MirrorSet(session, (port, None, copies, 0, truncate), "either"))

    # Running a controller.

    def run(
        self,
        controller: Controller,
        length: units.Time | None = None,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run a controller in real time: for a length of time, until `ended()` is true, or until the server ends the stream."""
        for number in self._schema.digests:
            entry = p4.DigestEntry(digest_id=number)
            entry.config.max_list_size, entry.config.ack_timeout_ns = 1, 1_000_000_000
            with contextlib.suppress(Refused):
                # It may be wanted already, by a controller before.
                self.connection.write(("INSERT", p4.Entity(digest_entry=entry)))
        stream = _Stream(self)
        runner = Runner([Managed(self, stream, [controller])], stream)
        runner.start()
        runner.run(None if length is None else stream.now() + units.given_time(length), ended)

    def digest_fields(self, number: int, data: Any) -> DigestFields:
        """A digest as switches give it."""
        return data_fields(self._schema, number, data)

    def with_header(self, packet: Any) -> bytes:
        """A packet for the controller, with its controller header."""
        return self._packets.data(packet)


class _Stream:
    """The stream of a connection as a runner sees it: the real clock, and what the server sends."""

    LOOK_S = 0.1
    """How often a wait looks whether all is to end."""

    def __init__(self, switch: RemoteSwitch) -> None:
        self._switch = switch
        self._heard = switch.connection.heard
        self._lists: list[Any] = []
        self._packets: deque[Any] = deque()
        self._handed: list[Any] = []

    def now(self) -> int:
        """The real clock, which is not the switch's."""
        return time.monotonic_ns() * 1000

    def wait(self, until: int) -> int:
        """Wait until a time, or for a message."""
        left = max(0, until - self.now()) / units.PS_PER_S
        with contextlib.suppress(queue.Empty):
            self._take(self._heard.get(timeout=min(self.LOOK_S, left)))
        return self.now()

    def _take(self, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        kind = message.WhichOneof("update")
        if kind == "digest":
            self._lists.append(message.digest)
        elif kind == "packet":
            self._packets.append(message.packet)
        elif kind == "arbitration" and message.arbitration.status.code != 0:
            raise TidegateError(f"{self._switch.name}: another controller is primary now")

    def take_digests(self) -> list[DigestFields]:
        """All digests that came. Those that were taken before have been seen to: they are acknowledged now."""
        for listed in self._handed:
            ack = p4.StreamMessageRequest()
            ack.digest_ack.digest_id, ack.digest_ack.list_id = listed.digest_id, listed.list_id
            self._switch.connection.send(ack)
        self._handed, self._lists = self._lists, []
        return [
            self._switch.digest_fields(listed.digest_id, data)
            for listed in self._handed
            for data in listed.data
        ]

    def take_packet_in(self) -> Packet | None:
        """The next packet that came."""
        if not self._packets:
            return None
        return self._switch.now, self._switch.with_header(self._packets.popleft()), 0
