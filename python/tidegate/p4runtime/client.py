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
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller
from tidegate.control.runner import DigestFields, Managed, Packet, Runner
from tidegate.p4runtime.client_objects import RemoteObjects
from tidegate.p4runtime.connection import ClientTls, Connection, Refused
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Field
from tidegate.p4runtime.values import Translations, canonical


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


class RemoteSwitch(RemoteObjects):
    """A switch that is asked by P4Runtime."""

    # Packets, time, and what P4Runtime has no messages for.

    def _header(self, direction: str) -> tuple[Field, ...]:
        """Fields of a controller header, whose widths are those on the wire."""
        fields = self._schema.headers.get(direction, ())
        for field in fields:
            if field.codec.translated:
                raise TidegateError(
                    f"field {field.name} of the {direction} header is translated, so that its bits are not known "
                    "here; use tidegate.p4runtime.Connection"
                )
        return fields

    def packet_out(self, packet: bytes) -> None:
        """Send a packet into the switch by the controller's port, with the controller header if the program takes one off."""
        message = p4.StreamMessageRequest()
        at = 0
        fields = self._header("packet_out")
        size = sum(field.codec.width for field in fields)
        head = int.from_bytes(packet[: (size + 7) // 8]) >> (-size % 8)
        for field in fields:
            at += field.codec.width
            value = head >> (size - at) & ((1 << field.codec.width) - 1)
            message.packet.metadata.add(metadata_id=field.id, value=canonical(value))
        message.packet.payload = packet[(size + 7) // 8 :]
        self.connection.send(message)

    @property
    def now(self) -> int:
        """The switch's time, in picoseconds; of a server that does not tell it, the time since the connection."""
        told = self.connection.now()
        return (time.monotonic_ns() - self._started) * 1000 if told is None else told

    def command(self, line: str) -> str:
        """Not by P4Runtime."""
        self._refuse("command lines")

    @property
    def drops(self) -> dict[str, int]:
        """Not by P4Runtime."""
        self._refuse("counts of dropped packets")

    # Running a controller.

    def run(
        self,
        controller: Controller,
        length: units.Time | None = None,
        ended: Callable[[], bool] = lambda: False,
    ) -> None:
        """Run a controller by the real clock: for so long, or until `ended` says so, or the server ends the stream."""
        for number in self._schema.digests:
            entry = p4.DigestEntry(digest_id=number)
            entry.config.max_list_size, entry.config.ack_timeout_ns = 1, 1_000_000_000
            with contextlib.suppress(Refused):
                # It may be wanted already, by a controller before.
                self.connection.write(("INSERT", p4.Entity(digest_entry=entry)))
        stream = _Stream(self)
        runner = Runner([Managed(self, stream, [controller])], stream)
        runner.start()
        runner.run(None if length is None else stream.now() + units.time(length), ended)

    def digest_fields(self, number: int, data: Any) -> DigestFields:
        """A digest as switches give it."""
        name, spec = self._schema.digests[number]
        kind = spec.WhichOneof("type_spec")
        if kind == "struct":
            members = self._schema.p4info.type_info.structs[spec.struct.name].members
            names = [member.name for member in members]
            values = data.struct.members
        else:
            values = data.tuple.members
            names = [f"f{index}" for index in range(len(values))]
        return name, [(key, _number(value)) for key, value in zip(names, values, strict=True)]

    def with_header(self, packet: Any) -> bytes:
        """A packet for the controller, with its controller header."""
        given = {item.metadata_id: int.from_bytes(item.value) for item in packet.metadata}
        head, bits = 0, 0
        for field in self._header("packet_in"):
            head, bits = head << field.codec.width | given.get(field.id, 0), bits + field.codec.width
        payload: bytes = packet.payload
        return (head << (-bits % 8)).to_bytes((bits + 7) // 8) + payload


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


def _number(data: Any) -> int:
    kind = data.WhichOneof("data")
    return int(data.bool) if kind == "bool" else int.from_bytes(getattr(data, kind))
