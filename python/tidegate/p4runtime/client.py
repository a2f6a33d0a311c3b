"""A switch behind a P4Runtime server, for controllers: `SwitchApi` by messages, so that a controller runs unchanged.

    >>> from tidegate.p4runtime import connect
    >>> with connect("127.0.0.1:9559") as switch:
    ...     switch.run(Learner(), "10 s")

Any server will do that has been told its program. What P4Runtime has no messages for (queues, packet generators, statistics)
raises `TidegateError`.
"""

from __future__ import annotations

import contextlib
import queue
import time
from collections.abc import Callable, Sequence
from typing import Any

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, Digest, PacketIn, Port, QueueState
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

    # Packets, time, and what P4Runtime has not.

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

    @property
    def statistics(self) -> dict[str, int]:
        """Not by P4Runtime."""
        self._refuse("statistics")

    def port_read(self, port: int) -> Port:
        """Not by P4Runtime."""
        self._refuse("ports and queues")

    def port_write(self, port: int, to: Port) -> None:
        """Not by P4Runtime."""
        self._refuse("ports and queues")

    def queue_read(self, port: int, queue: int = 0) -> QueueState:
        """Not by P4Runtime."""
        self._refuse("ports and queues")

    def generator_set(self, number: int, *, port: int, packet: bytes, period: units.Time) -> None:
        """Not by P4Runtime."""
        self._refuse("packet generators")

    def generator_period(self, number: int, period: units.Time) -> None:
        """Not by P4Runtime."""
        self._refuse("packet generators")

    def generator_stop(self, number: int) -> None:
        """Not by P4Runtime."""
        self._refuse("packet generators")

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
        controller.start(self)
        period = None if controller.period is None else units.time(controller.period) / units.PS_PER_S
        end = None if length is None else time.monotonic() + units.time(length) / units.PS_PER_S
        tick = None if period is None else time.monotonic() + period
        while not ended():
            now = time.monotonic()
            if end is not None and now >= end:
                return
            if tick is not None and period is not None and now >= tick:
                controller.tick(self.now, self)
                tick += period
                continue
            due = [at - now for at in (end, tick) if at is not None]
            with contextlib.suppress(queue.Empty):
                self._hear(controller, self.connection.heard.get(timeout=max(0.0, min([0.1, *due]))))

    def _hear(self, controller: Controller, message: Any) -> None:
        if isinstance(message, Exception):
            raise message
        kind = message.WhichOneof("update")
        if kind == "digest":
            ack = p4.StreamMessageRequest()
            ack.digest_ack.digest_id, ack.digest_ack.list_id = (
                message.digest.digest_id,
                message.digest.list_id,
            )
            for data in message.digest.data:
                controller.on_digest(self.now, self, self._digest(message.digest.digest_id, data))
            self.connection.send(ack)
        elif kind == "packet":
            packet = PacketIn(self.now, self._with_header(message.packet), 0)
            controller.on_packet_in(packet.at, self, packet)
        elif kind == "arbitration" and message.arbitration.status.code != 0:
            raise TidegateError(f"{self.name}: another controller is primary now")

    def _digest(self, number: int, data: Any) -> Digest:
        name, spec = self._schema.digests[number]
        kind = spec.WhichOneof("type_spec")
        if kind == "struct":
            members = self._schema.p4info.type_info.structs[spec.struct.name].members
            names = [member.name for member in members]
            values = data.struct.members
        else:
            values = data.tuple.members
            names = [f"f{index}" for index in range(len(values))]
        return Digest(name, {key: _number(value) for key, value in zip(names, values, strict=True)})

    def _with_header(self, packet: Any) -> bytes:
        given = {item.metadata_id: int.from_bytes(item.value) for item in packet.metadata}
        head, bits = 0, 0
        for field in self._header("packet_in"):
            head, bits = head << field.codec.width | given.get(field.id, 0), bits + field.codec.width
        payload: bytes = packet.payload
        return (head << (-bits % 8)).to_bytes((bits + 7) // 8) + payload


def _number(data: Any) -> int:
    kind = data.WhichOneof("data")
    return int(data.bool) if kind == "bool" else int.from_bytes(getattr(data, kind))
