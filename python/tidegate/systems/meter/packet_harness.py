"""For the tests of `meter.p4`: a meter in a switch to send packets through, the packets, and a bucket of exact fractions beside it."""

from __future__ import annotations

import itertools
import struct
from dataclasses import dataclass
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any, Literal

from hypothesis import strategies as st
from scapy.layers.inet import IP, UDP
from scapy.layers.inet6 import IPv6
from scapy.layers.l2 import Ether

from tidegate import p4

Engine = Literal["interp", "jit"]
ENGINES: list[Engine] = ["interp", "jit"]
PROGRAM = p4.compile(Path(__file__).with_name("meter.p4"))
# A switch takes longer to make than a test to run: tests share these, each with a meter of its own.
SWITCHES: dict[Engine, p4.Pipeline] = {engine: PROGRAM.pipeline(engine) for engine in ENGINES}
METERS = itertools.count()
US = 10**6
UNIT = 65536
MAC, GENERATOR = "02:00:00:00:00:02", 500


NOT_ECT, ECT1, ECT0, CE = range(4)
TABLES = (
    "forward",
    "wires",
    "flows4",
    "flows6",
    "sources4",
    "sources6",
    "targets4",
    "targets6",
    "ports",
    "meters",
)
"""Of `common.p4`, and the meters."""


def sent(switch: p4.Pipeline, at: int, port: int, packet: bytes) -> bytes | None:
    """What leaves by port 1 of a packet at a time in picoseconds; nothing leaves by another port."""
    match switch.process(at, port, packet):
        case []:
            return None
        case [(1, out)]:
            return out
        case other:
            raise AssertionError(other)


@dataclass(frozen=True)
class Config:
    """A meter: bytes, and bytes a microsecond in 1/65536."""

    rate: int = 0
    burst: int = 128_000
    mark_below: Fraction = Fraction(0)
    probability: int = UNIT
    shift: int = 0
    marks: bool = False
    second_chance: bool = False
    averages: bool = False
    timer: bool = False

    @property
    def values(self) -> list[int]:
        """What the action `configure` takes."""
        return [
            self.burst * UNIT,
            int(self.mark_below * UNIT),
            self.probability,
            self.shift,
            *(int(flag) for flag in (self.marks, self.second_chance, self.averages, self.timer)),
        ]


class Meter:
    """A meter of its own in a switch that forwards to port 1, for everything sent to 10.0.0.0/8 and fd00::/8."""

    def __init__(
        self, config: Config, engine: Engine = "jit", *, level: Fraction | int | None = None
    ) -> None:
        self.index = next(METERS)
        self.switch = SWITCHES[engine]
        for table in (*TABLES, "generators"):
            self.switch.table_clear(table)
        self.switch.table_add("forward", [MAC], "to_port", [1])
        self.switch.table_add("targets4", ["10.0.0.0/8"], "use", [self.index])
        self.switch.table_add("targets6", ["fd00::/8"], "use", [self.index])
        self.switch.table_add("generators", [GENERATOR], "pass")
        self.handle = self.switch.table_add("meters", [self.index], "configure", config.values)
        self.write("level", config.burst if level is None else level)
        self.write("average", config.burst if level is None else level)
        self.switch.register_write("rate", [config.rate], self.index)

    def write(self, register: str, size: Fraction | int) -> None:
        """Set a size, in bytes."""
        self.switch.register_write(register, [int(size * UNIT)], self.index)

    def read(self, register: str) -> Fraction:
        """A size, in bytes."""
        return Fraction(int(self.switch.register_read(register, self.index, 1)[0]), UNIT)

    def count(self, counter: str) -> tuple[int, int]:
        """Packets and bytes."""
        packets, size = self.switch.counter_read(counter, self.index, 1)[0]
        return int(packets), int(size)

    def counts(self) -> list[int]:
        """Packets passed, dropped, marked, spared."""
        return [self.count(name)[0] for name in ("passed", "dropped", "marked", "spared")]

    def send(self, at: int, packet: bytes, port: int = 0) -> bytes | None:
        """What leaves, at a time in picoseconds."""
        return sent(self.switch, at, port, packet)


@cache
def udp(length: int, ecn: int = NOT_ECT) -> bytes:
    """A packet of so many bytes of IP."""
    return raw(IP(src="192.0.2.1", dst="10.0.0.1", tos=ecn) / UDP(dport=9) / bytes(length - 28))


@cache
def udp6(length: int, ecn: int = NOT_ECT) -> bytes:
    """The same over IPv6."""
    return raw(IPv6(src="2001:db8::1", dst="fd00::1", tc=ecn) / UDP(dport=9) / bytes(length - 48))


@cache
def tokens(meter: int, count: int) -> bytes:
    """A packet of the generator."""
    return bytes(Ether(dst=MAC, src="02:00:00:00:00:01", type=0x0880) / struct.pack("!HI", meter, count))


def raw(layers: Any) -> bytes:
    """In an Ethernet frame to the port that the switch forwards to."""
    return bytes(Ether(dst=MAC, src="02:00:00:00:00:01") / layers)


def ecn_of(packet: bytes) -> int:
    """The ECN field of a frame."""
    parsed = Ether(packet)
    return int(parsed[IP].tos if IP in parsed else parsed[IPv6].tc) & 3


def folded(header: bytes | bytearray) -> int:
    """The ones' complement sum over a header: 0xffff if its checksum is right."""
    total: int = sum(struct.unpack(f"!{len(header) // 2}H", header))
    while total > 0xFFFF:
        total = (total & 0xFFFF) + (total >> 16)
    return total


class Ideal:
    """A token bucket of exact fractions that is filled all the time; times are microseconds."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.rate, self.level = Fraction(config.rate, UNIT), Fraction(config.burst)
        self.then = 0

    def passes(self, now: int, length: int, ecn: int = NOT_ECT) -> bool:
        """Whether a packet passes."""
        self.level = min(self.level + (now - self.then) * self.rate, Fraction(self.config.burst))
        self.then = now
        if length <= self.level:
            self.level -= length
            return True
        if self.config.second_chance and ecn == CE and self.level > Fraction(length, 2):
            self.level = Fraction(0)
            return True
        return False


# From 15 B/s to 17 Gbit/s, and up to 64 packets with gaps of up to some milliseconds, rarely of minutes.
RATES = st.integers(1, 2**27)
LENGTHS = st.integers(28, 9000)
GAPS = st.integers(0, 5 * US) | st.integers(0, 5_000 * US) | st.integers(0, 10**9 * US)
ARRIVALS = st.lists(
    st.tuples(GAPS, LENGTHS, st.sampled_from([NOT_ECT, ECT1, ECT0, CE])), min_size=1, max_size=64
)


def timed(arrivals: list[tuple[int, int, int]]) -> list[tuple[int, int, int]]:
    """Gaps to times of arrival."""
    times = itertools.accumulate(gap for gap, _, _ in arrivals)
    return [(at, length, ecn) for at, (_, length, ecn) in zip(times, arrivals, strict=True)]
