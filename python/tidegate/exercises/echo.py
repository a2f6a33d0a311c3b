"""ICMP echo (RFC 792) from sockets in namespaces: what `pingall` sends. It needs no `ping`."""

from __future__ import annotations

import ctypes
import os
import select
import socket
import struct
import threading
import time
from collections.abc import Collection

CLONE_NEWNET = 0x4000_0000
ECHO_REQUEST, ECHO_REPLY = 8, 0
HEADER = struct.Struct("!BBHHH")
PAYLOAD = bytes(range(32))

_libc = ctypes.CDLL(None, use_errno=True)


def socket_in(namespace: str) -> socket.socket:
    """A raw ICMP socket in a network namespace, which is given by its file. Raises `OSError`."""
    made: list[socket.socket | OSError] = []

    def there() -> None:
        try:
            with open(namespace, "rb") as file:
                if _libc.setns(file.fileno(), CLONE_NEWNET) != 0:
                    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
            made.append(
                socket.socket(socket.AF_INET, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.IPPROTO_ICMP)
            )
        except OSError as error:
            made.append(error)

    # A thread of its own, which ends with the namespace that it has entered.
    thread = threading.Thread(target=there)
    thread.start()
    thread.join()
    if isinstance(made[0], OSError):
        raise made[0]
    return made[0]


def checksum(data: bytes) -> int:
    """The Internet checksum (RFC 1071).

    >>> checksum(bytes.fromhex("00010203"))
    65019
    """
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def request(identifier: int, sequence: int) -> bytes:
    """An echo request."""
    plain = HEADER.pack(ECHO_REQUEST, 0, 0, identifier, sequence) + PAYLOAD
    return HEADER.pack(ECHO_REQUEST, 0, checksum(plain), identifier, sequence) + PAYLOAD


def answering(namespace: str, addresses: Collection[str], patience_s: float) -> set[str]:
    """Those of the addresses that answer one request each, within so many seconds."""
    identifier = os.getpid() & 0xFFFF
    waiting = set(addresses)
    with socket_in(namespace) as one:
        for number, address in enumerate(addresses):
            try:
                one.sendto(request(identifier, number), (address, 0))
            except OSError:
                # No route, or nobody there: no answer either.
                continue
        end = time.monotonic() + patience_s
        while waiting and (left := end - time.monotonic()) > 0:
            if not select.select([one], [], [], left)[0]:
                break
            packet, (source, _) = one.recvfrom(2048)
            header = packet[(packet[0] & 15) * 4 :][: HEADER.size]
            if len(header) < HEADER.size:
                continue
            kind, _, _, whose, _ = HEADER.unpack(header)
            if kind == ECHO_REPLY and whose == identifier:
                waiting.discard(source)
    return set(addresses) - waiting
