"""The newest packets of a flow, from a capture that grows."""

from __future__ import annotations

import io
import ipaddress
import struct
from collections import deque
from collections.abc import Mapping
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


class Packets:
    """Reads what a run says of a trace: `file`, a pcap file with nanoseconds, and `ends`, addresses and ports of the flow."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.number = said["number"]
        self._file = None if said["file"] is None else io.FileIO(said["file"])
        self._ends = {(int(ipaddress.IPv4Address(address)), port) for address, port in said["ends"]}
        self._packets: deque[list[Any]] = deque(maxlen=SHOWN)
        self._left = b""
        self._head = HEAD

    def look(self) -> list[list[Any]]:
        """The newest packets: time in seconds, ports, flags, sequence and acknowledgement numbers, bytes, ECN."""
        if self._file is not None:
            data = self._left + self._file.read()
            begin = min(self._head, len(data))
            self._head -= begin
            self._left = data[begin + self._parse(data[begin:]) :]
        return list(self._packets)

    def close(self) -> None:
        """Read no more."""
        if self._file is not None:
            self._file.close()

    def _parse(self, data: bytes) -> int:
        at = 0
        while at + RECORD <= len(data):
            seconds, nanoseconds, length, wire = struct.unpack_from("<IIII", data, at)
            end = at + RECORD + length
            if end > len(data):
                break
            with suppress(struct.error, IndexError):
                self._packet(seconds + nanoseconds / 1e9, data[at + RECORD : end], wire)
            at = end
        return at

    def _packet(self, time_s: float, frame: bytes, wire: int) -> None:
        if frame[12:14] != b"\x08\x00":
            return
        ip = frame[14:]
        transport = ip[4 * (ip[0] & 15) :]
        (source, target), ports = struct.unpack_from(">II", ip, 12), struct.unpack_from(">HH", transport)
        if {(source, ports[0]), (target, ports[1])} != self._ends:
            return
        seq = ack = None
        flags = ""
        if ip[9] == 6:
            seq, ack, _, bits = struct.unpack_from(">IIBB", transport, 4)
            flags = " ".join(name for bit, name in FLAGS if bits & bit)
        self._packets.append([time_s, f"{ports[0]} > {ports[1]}", flags, seq, ack, wire, ECN[ip[1] & 3]])
