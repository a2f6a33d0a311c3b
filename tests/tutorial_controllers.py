"""Controllers for the exercises whose tables the files leave empty: what those of the public P4 tutorials send."""

from __future__ import annotations

import queue
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

from tidegate import p4 as programs
from tidegate.exercises import running
from tidegate.p4runtime import Connection
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import p4, parse_p4info

CPU, SESSION, TO_PORT = 510, 57, 1
IDLE_S = 3
MACS = {f"10.0.{number}.{number}": f"08:00:00:00:0{number}:{number}{number}" for number in (1, 2, 3)}
WAYS = {
    "s1": {"10.0.1.1": 1, "10.0.2.2": 2, "10.0.3.3": 3},
    "s2": {"10.0.2.2": 1, "10.0.1.1": 2, "10.0.3.3": 3},
    "s3": {"10.0.3.3": 1, "10.0.1.1": 2, "10.0.2.2": 3},
}
ADDRESS, MAC = 4, 6
"""Bytes."""


class Pushed:
    """A switch, with the program that this controller has pushed."""

    def __init__(self, name: str, number: int, source: Path) -> None:
        self.name = name
        self.info = parse_p4info(programs.compile(source).p4info)
        self.connection = Connection(f"127.0.0.1:{running.FIRST_GRPC + number}", device_id=number)
        self.connection.next("arbitration")
        config = p4.ForwardingPipelineConfig(p4info=self.info, p4_device_config=source.read_bytes())
        self.connection.set_config("VERIFY_AND_COMMIT", config)

    def _id(self, kind: str, name: str) -> Any:
        return next(one for one in getattr(self.info, kind) if one.preamble.name == name)

    def entry(
        self, table: str, match: Mapping[str, bytes | tuple[bytes, int]], action: str = "",
        values: Mapping[str, bytes] | None = None, idle_s: int = 0,
    ) -> Any:  # fmt: skip
        """An entity with a table's entry."""
        about = self._id("tables", table)
        made = p4.TableEntry(table_id=about.preamble.id, idle_timeout_ns=idle_s * 10**9)
        fields = {field.name: field.id for field in about.match_fields}
        for name, value in match.items():
            one = made.match.add(field_id=fields[name])
            if isinstance(value, tuple):
                one.lpm.value, one.lpm.prefix_len = value
            else:
                one.exact.value = value
        if action:
            does = self._id("actions", action)
            made.action.action.action_id = does.preamble.id
            numbers = {param.name: param.id for param in does.params}
            for name, value in (values or {}).items():
                made.action.action.params.add(param_id=numbers[name], value=value)
        return p4.Entity(table_entry=made)

    def packets(self, counter: str, index: int) -> int:
        """What a cell of a counter has counted."""
        entry = p4.CounterEntry(counter_id=self._id("counters", counter).preamble.id)
        entry.index.index = index
        [found] = self.connection.read(p4.Entity(counter_entry=entry))
        return int(found.counter_entry.data.packet_count)


@contextmanager
def pushed(source: Path) -> Iterator[dict[str, Pushed]]:
    """The three switches of the triangle, programmed anew."""
    with ExitStack() as stack:
        found = {}
        for number, name in enumerate(WAYS):
            found[name] = Pushed(name, number, source)
            stack.callback(found[name].connection.close)
        yield found


def number(value: int, width: int) -> bytes:
    return value.to_bytes(width, "big")


def mac(text: str) -> bytes:
    return bytes.fromhex(text.replace(":", ""))


def write_tunnel(way_in: Pushed, way_out: Pushed, tunnel: int, target: str) -> None:
    """Three entries: into the tunnel, through, and out of it."""
    for switch, entry in (
        (way_in, way_in.entry("MyIngress.ipv4_lpm", {"hdr.ipv4.dstAddr": (IPv4Address(target).packed, 32)},
                              "MyIngress.myTunnel_ingress", {"dst_id": number(tunnel, 2)})),
        (way_in, way_in.entry("MyIngress.myTunnel_exact", {"hdr.myTunnel.dst_id": number(tunnel, 2)},
                              "MyIngress.myTunnel_forward", {"port": number(2, 2)})),
        (way_out, way_out.entry("MyIngress.myTunnel_exact", {"hdr.myTunnel.dst_id": number(tunnel, 2)},
                                "MyIngress.myTunnel_egress", {"dstAddr": mac(MACS[target]), "port": number(1, 2)})),
    ):  # fmt: skip
        switch.connection.write(("INSERT", entry))


class FlowCache(threading.Thread):
    """Writes an entry for each flow that a switch does not know; deletes those that the switch calls idle."""

    def __init__(self, switch: Pushed) -> None:
        super().__init__(name=switch.name, daemon=True)
        self.switch = switch
        self.deleted: list[bytes] = []
        self._ended = threading.Event()
        session = p4.CloneSessionEntry(session_id=SESSION)
        session.replicas.add(egress_port=CPU, instance=1)
        engine = p4.PacketReplicationEngineEntry(clone_session_entry=session)
        switch.connection.write(("INSERT", p4.Entity(packet_replication_engine_entry=engine)))

    def run(self) -> None:
        while not self._ended.is_set():
            try:
                message = self.switch.connection.heard.get(timeout=0.1)
            except queue.Empty:
                continue
            if isinstance(message, Refused):
                return
            if message.HasField("packet"):
                self._new(message.packet.payload)
            elif message.HasField("idle_timeout_notification"):
                for entry in message.idle_timeout_notification.table_entry:
                    gone = p4.TableEntry(table_id=entry.table_id, match=entry.match)
                    self.switch.connection.write(("DELETE", p4.Entity(table_entry=gone)))
                    self.deleted += [
                        one.exact.value for one in entry.match if len(one.exact.value) == ADDRESS
                    ]

    def end(self) -> None:
        self._ended.set()
        self.join()

    def _new(self, frame: bytes) -> None:
        source, target = frame[26:30], frame[30:34]
        address = socket.inet_ntoa(target)
        port = WAYS[self.switch.name][address]
        message = p4.StreamMessageRequest()
        message.packet.payload = frame
        # Wider than the fields, as the tutorials' library writes them.
        for at, (value, width) in enumerate(((TO_PORT, 8), (0, 8), (port, 32)), 1):
            message.packet.metadata.add(metadata_id=at, value=number(value, width))
        self.switch.connection.send(message)
        match = {
            "hdr.ipv4.protocol": frame[23:24],
            "hdr.ipv4.srcAddr": source,
            "hdr.ipv4.dstAddr": target,
        }
        values = {
            "port": number(port, 2),
            "decrement_ttl": b"\1",
            "new_dscp": b"\5",
            "dst_eth_addr": mac(MACS[address]),
        }
        entry = self.switch.entry("MyIngress.flow_cache", match, "MyIngress.cached_action", values, IDLE_S)
        # A second packet may come before the entry is there.
        with suppress(Refused):
            self.switch.connection.write(("INSERT", entry))
