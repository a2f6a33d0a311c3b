"""Frames that a host of an exercise sends and hears, in hexadecimal; run there.

frames.py send FRAME [COUNT]   COUNT times (1), 20 ms apart
frames.py hear SECONDS         a line for each that arrives, after the line `ready`
frames.py ask FRAME            sends it, and prints what arrives in the next second
"""

from __future__ import annotations

import socket
import struct
import sys
import time

INTERFACE = "eth0"
ALL, OUTGOING = 3, 4


def checksum(data: bytes) -> int:
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def ipv4(
    source: str, target: str, protocol: int, payload: bytes, *, tos: int = 0, options: bytes = b""
) -> bytes:
    """A packet; its options have a whole number of words."""
    words = 5 + len(options) // 4
    head = struct.pack(
        "!BBHHHBBH", 0x40 | words, tos, 4 * words + len(payload), 7, 0, 64, protocol, 0
    ) + b"".join(map(socket.inet_aton, (source, target)))
    head += options
    return head[:10] + struct.pack("!H", checksum(head)) + head[12:] + payload


def udp(source: int, target: int, payload: bytes = b"hello") -> bytes:
    return struct.pack("!HHHH", source, target, 8 + len(payload), 0) + payload


def syn(source: int, target: int) -> bytes:
    return struct.pack("!HHIIBBHHH", source, target, 1, 0, 0x50, 2, 1024, 0, 0)


def ethernet(target: str, source: str, kind: int, payload: bytes) -> bytes:
    return (
        bytes.fromhex(target.replace(":", "") + source.replace(":", "")) + struct.pack("!H", kind) + payload
    )


def print_arrivals(one: socket.socket, seconds: float) -> None:
    end = time.monotonic() + seconds
    while (left := end - time.monotonic()) > 0:
        one.settimeout(left)
        try:
            frame, about = one.recvfrom(4096)
        except TimeoutError:
            return
        if about[2] != OUTGOING:
            print(frame.hex(), flush=True)


def main(what: str, *words: str) -> None:
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ALL)) as one:
        one.bind((INTERFACE, ALL))
        if what == "hear":
            print("ready", flush=True)
            print_arrivals(one, float(words[0]))
            return
        for _ in range(int(words[1]) if len(words) > 1 else 1):
            one.send(bytes.fromhex(words[0]))
            time.sleep(0.02)
        if what == "ask":
            print_arrivals(one, 1)


if __name__ == "__main__":
    main(*sys.argv[1:])
