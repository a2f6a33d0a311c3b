"""The kernel's data on the TCP connections of a namespace, by sock_diag.

One dump for each namespace and sample. pyroute2 reads these too, but lacks the newest fields (timeouts) and takes six times as long.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from tidegate.lab.messages import UNKNOWN

NETLINK_SOCK_DIAG = 4
SOCK_DIAG_BY_FAMILY = 20
REQUEST_DUMP = 0x301
DONE, ERROR = 3, 2
INET_DIAG_INFO = 2

LISTEN = 1 << 10
# Established, FIN-WAIT-1 and -2, CLOSE-WAIT, LAST-ACK, CLOSING.
CONNECTED = 1 << 1 | 1 << 4 | 1 << 5 | 1 << 8 | 1 << 9 | 1 << 11

# struct tcp_info up to what Linux 4.18 has; later fields are looked for by the length.
_INFO = struct.Struct("=8x24I4Q6I4Q2I")
_TOTAL_RTO = struct.Struct("=H")
_TOTAL_RTO_AT = 240


class TcpInfo(NamedTuple):
    """The part of `struct tcp_info` that is used; counts since the start, rates in bytes/s, times in microseconds."""

    rto: int
    srtt: int
    ssthresh: int
    cwnd: int
    in_flight: int
    retransmits: int
    pacing_rate: int
    bytes_acked: int
    bytes_received: int
    delivery_rate: int
    delivered_ce: int
    timeouts: int
    """`UNKNOWN` before Linux 6.7."""


def parse(data: bytes | memoryview) -> TcpInfo:
    """The fields of a `struct tcp_info`."""
    f = _INFO.unpack_from(data)
    (unacked, sacked, lost, retransmitted) = f[4:8]
    told = len(data) >= _TOTAL_RTO_AT + _TOTAL_RTO.size
    timeouts = _TOTAL_RTO.unpack_from(data, _TOTAL_RTO_AT)[0] if told else UNKNOWN
    return TcpInfo(
        rto=f[0],
        srtt=f[15],
        ssthresh=f[17],
        cwnd=f[18],
        in_flight=max(0, unacked - sacked - lost + retransmitted),
        retransmits=f[23],
        pacing_rate=f[24],
        bytes_acked=f[26],
        bytes_received=f[27],
        delivery_rate=f[34],
        delivered_ce=f[39],
        timeouts=timeouts,
    )


@dataclass(frozen=True)
class Connection:
    """One end of a connection."""

    local_port: int
    remote_port: int
    info: memoryview | None
    """`struct tcp_info`."""


class Diag:
    """Queries the TCP connections of the namespace in which it was created."""

    def __init__(self) -> None:
        self._socket = socket.socket(
            socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_SOCK_DIAG
        )
        self._buffer = bytearray(1 << 18)

    def close(self) -> None:
        """Close the socket."""
        self._socket.close()

    def dump(self, states: int = CONNECTED) -> Iterator[Connection]:
        """All connections in these states; read each before the next."""
        extensions = 1 << (INET_DIAG_INFO - 1)
        body = struct.pack("=BBBxI48x", socket.AF_INET, socket.IPPROTO_TCP, extensions, states)
        header = struct.pack("=IHHII", 16 + len(body), SOCK_DIAG_BY_FAMILY, REQUEST_DUMP, 0, 0)
        self._socket.sendto(header + body, (0, 0))
        while True:
            length = self._socket.recv_into(self._buffer)
            view = memoryview(self._buffer)[:length]
            at = 0
            while at < length:
                size, kind = struct.unpack_from("=IH", view, at)
                if kind == DONE:
                    return
                if kind == ERROR:
                    raise OSError(-struct.unpack_from("=i", view, at + 16)[0], "sock_diag")
                yield _connection(view[at + 16 : at + size])
                at += size + 3 & ~3


def _connection(message: memoryview) -> Connection:
    local, remote = struct.unpack_from("!HH", message, 4)
    at, info = 72, None
    while at + 4 <= len(message):
        size, kind = struct.unpack_from("=HH", message, at)
        if kind == INET_DIAG_INFO:
            info = message[at + 4 : at + size]
        at += max(size, 4) + 3 & ~3
    return Connection(local, remote, info)
