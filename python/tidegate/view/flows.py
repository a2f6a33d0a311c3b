"""The flows of a switch's port and their newest packets, from captures that follow each other."""

from __future__ import annotations

import ipaddress
import struct
from collections import deque
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from tidegate.view.packets import ECN, SHOWN, Records, tcp_of

MOST_FLOWS = 500
"""That are kept: the ones whose newest packet is the oldest go."""
LISTED = 20
WINDOW_S = 1.0
"""Rates are those of so long a time of captures."""
TAGS = (0x8100, 0x88A8)
PROTOCOLS = {1: "ICMP", 2: "IGMP", 6: "TCP", 17: "UDP", 58: "ICMPv6", 132: "SCTP"}
TYPES = {0x0800: "IPv4", 0x0806: "ARP", 0x86DD: "IPv6", 0x88CC: "LLDP"}
EXTENSIONS = (0, 43, 60)
"""Headers of IPv6 with a length: hop-by-hop, routing, destination."""
MOST_EXTENSIONS = 6


@dataclass
class _Flow:
    packets: int = 0
    octets: int = 0
    window: int = 0
    rate_mbps: float | None = None
    newest: deque[list[Any]] = field(default_factory=lambda: deque(maxlen=SHOWN))


class PortFlows:
    """Reads what a switch says of a port's captures: `file`, a pcap file, `segment`, its number, and `active_s`, how long they took."""

    def __init__(self, said: Mapping[str, Any]) -> None:
        self.number = said["number"]
        self._segment = 0
        self._records: Records | None = None
        self._newest: deque[list[Any]] = deque(maxlen=SHOWN)
        # In the order of their newest packets.
        self._flows: dict[str, _Flow] = {}
        self._since = 0.0

    def look(self, said: Mapping[str, Any]) -> dict[str, Any]:
        """The newest packets of the port, or of the flow that is `only` shown, and the flows of the highest rates."""
        self._read()
        if said["segment"] != self._segment:
            self.close()
            self._segment = said["segment"]
            self._records = None if said["file"] is None else Records(said["file"])
            self._read()
        span = said["active_s"] - self._since
        if span >= WINDOW_S:
            self._since = said["active_s"]
            for flow in self._flows.values():
                flow.rate_mbps, flow.window = flow.window * 8e-6 / span, 0
        one = self._flows.get(said["only"])
        listed = sorted(
            self._flows.items(), key=lambda named: (-(named[1].rate_mbps or 0.0), -named[1].octets)
        )
        return {
            "packets": list(self._newest if one is None else one.newest),
            "only": "" if one is None else said["only"],
            "flows": [[name, flow.rate_mbps, flow.packets, flow.octets] for name, flow in listed[:LISTED]],
            "left_out": len(listed[LISTED:]),
        }

    def close(self) -> None:
        """Read no more."""
        if self._records is not None:
            self._records.close()
            self._records = None

    def _read(self) -> None:
        if self._records is None:
            return
        for time_s, frame, wire in self._records.read():
            name, flags, seq, ack, ecn = described(frame)
            flow = self._flows.pop(name, None) or _Flow()
            self._flows[name] = flow
            flow.packets += 1
            flow.octets += wire
            flow.window += wire
            packet = [time_s, name, flags, seq, ack, wire, ecn]
            flow.newest.append(packet)
            self._newest.append(packet)
            if len(self._flows) > MOST_FLOWS:
                del self._flows[next(iter(self._flows))]


def described(frame: bytes) -> tuple[str, str, int | None, int | None, str]:
    """The flow of a frame by name, and what its headers say: flags, sequence and acknowledgement number, ECN.

    >>> described(bytes(12) + bytes.fromhex("0806") + bytes(28))[0]
    'ARP 00:00:00:00:00:00 > 00:00:00:00:00:00'
    """
    at = 12
    name = f"{frame[6:12].hex(':')} > {frame[:6].hex(':')}"
    with suppress(struct.error):
        (kind,) = struct.unpack_from(">H", frame, at)
        while kind in TAGS and at < 20:
            at += 4
            (kind,) = struct.unpack_from(">H", frame, at)
        name = f"{TYPES.get(kind, f'0x{kind:04x}')} {name}"
        if kind == 0x0800:
            return _of_ipv4(frame[at + 2 :])
        if kind == 0x86DD:
            return _of_ipv6(frame[at + 2 :])
    return name, "", None, None, ""


def _of_ipv4(ip: bytes) -> tuple[str, str, int | None, int | None, str]:
    first, tos, fragment, _, protocol, source, target = struct.unpack_from(">BBxxxxHBBxxII", ip)
    ends = str(ipaddress.IPv4Address(source)), str(ipaddress.IPv4Address(target))
    transport = b"" if fragment & 0x1FFF else ip[4 * (first & 15) :]
    return _of_transport(protocol, ends, transport, tos & 3)


def _of_ipv6(ip: bytes) -> tuple[str, str, int | None, int | None, str]:
    word, protocol, source, target = struct.unpack_from(">IxxBx16s16s", ip)
    ends = f"[{ipaddress.IPv6Address(source)}]", f"[{ipaddress.IPv6Address(target)}]"
    transport = ip[40:]
    for _ in range(MOST_EXTENSIONS):
        if protocol not in EXTENSIONS or len(transport) < 2:
            break
        protocol, transport = transport[0], transport[8 + 8 * transport[1] :]
    return _of_transport(protocol, ends, transport, word >> 20 & 3)


def _of_transport(
    protocol: int, ends: tuple[str, str], transport: bytes, ecn: int
) -> tuple[str, str, int | None, int | None, str]:
    seq = ack = None
    flags, between = "", " > ".join(ends)
    with suppress(struct.error):
        if protocol in (6, 17, 132):
            ports = struct.unpack_from(">HH", transport)
            between = " > ".join(f"{end}:{port}" for end, port in zip(ends, ports, strict=True))
        if protocol == 6:
            flags, seq, ack = tcp_of(transport)
    return f"{PROTOCOLS.get(protocol, f'IP {protocol}')} {between}", flags, seq, ack, ECN[ecn]
