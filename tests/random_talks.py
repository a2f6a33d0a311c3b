"""Captures of random connections whose numbers pass where two quarters of the sequence numbers meet, as tcptrace divides them."""

from __future__ import annotations

import random
import struct
from dataclasses import dataclass, field
from pathlib import Path

QUARTER = 2**30
SYN, ACK = 2, 16
MSS = 1448


@dataclass
class Segment:
    """What one side sends: offsets in the bytes of either, SYN being before the first."""

    seq: int
    length: int
    ack: int | None
    flags: int = 0
    window: int = 5000


@dataclass
class Side:
    """One end of a connection: what it has sent, and what has come."""

    unacked: int = -1
    """The first byte without acknowledgment; SYN is byte -1."""
    next: int = -1
    got: int = -1
    apart: list[tuple[int, int]] = field(default_factory=list)
    """Of what came behind a hole: first byte, and the one behind the last."""
    owes: bool = False
    on_the_way: list[Segment] = field(default_factory=list)

    def take(self, seq: int, end: int) -> None:
        self.apart.append((seq, end))
        self.apart.sort()
        while self.apart and self.apart[0][0] <= self.got:
            self.got = max(self.got, self.apart.pop(0)[1])


def talk(draw: random.Random, steps: int) -> list[tuple[int, int, Segment]]:
    """What a tap beside the first side sees: microseconds, side, segment. Packets are lost in both directions and come in another order;
    what is sent again need not begin or end where what was sent before does; of what was sent as one segment a part may come."""
    sides = (Side(), Side())
    seen: list[tuple[int, int, Segment]] = []
    now = 0
    losses, again, large = draw.choice((0, 0.02, 0.2)), draw.choice((0, 0.02, 0.2)), draw.random()
    closing = draw.choice((0, 0, 0.1))

    def send(side: int, seq: int, length: int, flags: int = 0) -> None:
        mine = sides[side]
        window = 0 if draw.random() < closing and not flags else 5000
        segment = Segment(seq, length, mine.got if mine.got >= 0 else None, flags, window)
        mine.next = max(mine.next, seq + length + bool(flags))
        mine.owes = False
        mine.on_the_way.append(segment)
        if side == 0:
            seen.append((now, side, segment))

    def come(side: int) -> None:
        mine, other = sides[side], sides[1 - side]
        segment = mine.on_the_way.pop(draw.randrange(len(mine.on_the_way)) if draw.random() < 0.1 else 0)
        if draw.random() < loss:
            return
        if side == 1:
            seen.append((now, side, segment))
        if segment.ack is not None:
            other.unacked = max(other.unacked, segment.ack)
        begin, end = segment.seq, segment.seq + segment.length + bool(segment.flags)
        if segment.length > MSS and draw.random() < loss:
            begin += MSS * draw.randrange(segment.length // MSS + 1)
        if begin < end:
            other.take(begin, end)
            other.owes = True

    # The handshake arrives.
    loss = 0.0
    send(0, -1, 0, SYN)
    come(0)
    send(1, -1, 0, SYN)
    now += draw.randrange(100, 20_000)
    come(1)
    loss = losses
    for _ in range(steps):
        now += draw.choice((0, 1, 10, 100, 1000, 5000)) * draw.randrange(1, 10)
        side = draw.randrange(2)
        mine = sides[side]
        what = draw.random()
        if what < 0.3 and mine.next - mine.unacked < 300_000:
            short = draw.randrange(1, 700)
            size = draw.choice((MSS, MSS * draw.randrange(1, 45), short)) if draw.random() < large else short
            send(side, mine.next, size)
        elif what < 0.3 + again and max(mine.unacked, 0) < mine.next:
            begin = draw.choice((mine.unacked, draw.randrange(max(mine.unacked, 0), mine.next)))
            begin = begin if draw.random() < 0.9 else max(0, begin - draw.randrange(5000))
            send(side, max(begin, 0), min(draw.choice((1, 100, MSS, 10 * MSS)), mine.next - max(begin, 0)))
        elif what < 0.75 and mine.on_the_way:
            come(side)
        elif mine.owes and mine.got >= 0:
            send(side, mine.next, 0)
    return [
        (at, side, segment)
        for at, side, segment in seen
        if segment.length or segment.flags or segment.ack is not None
    ]


def capture(path: Path, seed: int, talks: int, steps: int = 120) -> Path:
    """Connections one after the other, of ports of their own; of each segment the first 54 bytes."""
    draw = random.Random(seed)
    data = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, 128, 1)]
    begin = 1_700_000_000 * 10**6
    number = 0
    for port in range(talks):
        segments = talk(draw, draw.randrange(20, steps))
        first = []
        for side in (0, 1):
            # Where the quarters meet is at an end of what was sent, or somewhere in it.
            mine = [segment for _, of, segment in segments if of == side and segment.length]
            ends = [one for segment in mine for one in (segment.seq, segment.seq + segment.length)] or [0]
            meets = draw.choice(ends) if draw.random() < 0.5 else draw.randrange(max(ends) + 1)
            first.append((draw.randrange(4) * QUARTER - meets) % 2**32)
        for at, side, segment in segments:
            time = begin + at
            addresses, ports = (0x0A000001, 0x0A000002), (2000 + port, 80)
            tcp = struct.pack(
                "!HHIIBBHHH",
                ports[side],
                ports[1 - side],
                (first[side] + segment.seq) % 2**32,
                0 if segment.ack is None else (first[1 - side] + segment.ack) % 2**32,
                5 << 4,
                segment.flags | (0 if segment.ack is None else ACK),
                segment.window,
                0,
                0,
            )
            number = (number + 1) % 2**16
            ip = struct.pack(
                "!BBHHHBBHII",
                0x45,
                0,
                40 + segment.length,
                number,
                0x4000,
                64,
                6,
                0,
                addresses[side],
                addresses[1 - side],
            )
            frame = bytes(12) + b"\x08\x00" + ip + tcp
            data.append(
                struct.pack("<IIII", time // 10**6, time % 10**6, len(frame), len(frame) + segment.length)
            )
            data.append(frame)
        begin += segments[-1][0] + 10**6
    path.write_bytes(b"".join(data))
    return path
