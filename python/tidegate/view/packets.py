"""The newest packets of a flow, from a capture that grows."""

from __future__ import annotations

import io
import ipaddress
import struct
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

SHOWN = 40
HEAD, RECORD = 24, 16
FLAGS = (
    (0x02, "SYN"),
    (0x01, "FIN"),
    (0x04, "RST"),
    (0x08, "PSH"),
    (0x10, "ACK"),
    (0x40, "ECE"),
    (0x80, "CWR"),
)
ECN = ("", "ECT(1)", "ECT(0)", "CE")


def tcp_of(transport: bytes) -> tuple[str, int, int]:
    """Flags, sequence and acknowledgement number of a TCP header; raises `struct.error` if it is cut."""
    seq, ack, _, bits = struct.unpack_from(">IIBB", transport, 4)
    return " ".join(name for bit, name in FLAGS if bits & bit), seq, ack


class Records:
    """The packets of a pcap file with nanoseconds that grows."""

    def __init__(self, file: str) -> None:
        self._file = io.FileIO(file)
        self._left = b""
        self._head = HEAD

    def read(self, newest_first: bool = False) -> Iterator[tuple[float, bytes, int]]:
        """What has come since the last time: time in seconds, the bytes that are there, and the length that the packet had."""
        data = self._left + self._file.read()
        at = min(self._head, len(data))
        self._head -= at
        places = []
        while at + RECORD <= len(data):
            end = at + RECORD + int.from_bytes(data[at + 8 : at + 12], "little")
            if end > len(data):
                break
            places.append(at)
            at = end
        self._left = data[at:]
        for at in reversed(places) if newest_first else places:
            seconds, nanoseconds, length, wire = struct.unpack_from("<IIII", data, at)
            yield seconds + nanoseconds / 1e9, data[at + RECORD : at + RECORD + length], wire

    def close(self) -> None:
        """Read no more."""
        self._file.close()


class Packets:
    """Reads what a run says of a trace: `file`, a pcap file with nanoseconds, and `ends`, addresses and ports of the flow."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.number = said["number"]
        self._records = None if said["file"] is None else Records(said["file"])
        self._ends = {(int(ipaddress.IPv4Address(address)), port) for address, port in said["ends"]}
        self._packets: deque[list[Any]] = deque(maxlen=SHOWN)

    def look(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The newest packets: time in seconds, ports, flags, sequence and acknowledgement numbers, bytes, ECN."""
        # A fast simulation has a hundred thousand of them between two looks.
        new: list[list[Any]] = []
        for record in () if self._records is None else self._records.read(newest_first=True):
            with suppress(struct.error, IndexError):
                new += self._packet(*record)
            if len(new) == SHOWN:
                break
        self._packets.extend(reversed(new))
        return {"packets": list(self._packets)}

    def close(self) -> None:
        """Read no more."""
        if self._records is not None:
            self._records.close()

    def _packet(self, time_s: float, frame: bytes, wire: int) -> list[list[Any]]:
        """What is shown of it; nothing of another flow's."""
        if frame[12:14] != b"\x08\x00":
            return []
        ip = frame[14:]
        transport = ip[4 * (ip[0] & 15) :]
        (source, target), ports = struct.unpack_from(">II", ip, 12), struct.unpack_from(">HH", transport)
        if {(source, ports[0]), (target, ports[1])} != self._ends:
            return []
        seq = ack = None
        flags = ""
        if ip[9] == 6:
            flags, seq, ack = tcp_of(transport)
        return [[time_s, f"{ports[0]} > {ports[1]}", flags, seq, ack, wire, ECN[ip[1] & 3]]]
