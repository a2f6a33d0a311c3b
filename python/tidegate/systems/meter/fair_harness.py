"""For the tests of `fair.p4`: a meter in a switch to send packets through, and the packets."""

from __future__ import annotations

import itertools
from functools import cache
from pathlib import Path
from typing import cast

from scapy.layers.inet import IP, TCP, UDP
from scapy.layers.inet6 import IPv6

from tidegate import p4, units
from tidegate.control import SwitchApi
from tidegate.systems.meter.fair import FairMeters
from tidegate.systems.meter.packet_harness import MAC, NOT_ECT, TABLES, Engine, raw, sent
from tidegate.systems.meter.tables import Meter, Prefix

PROGRAM = p4.compile(Path(__file__).with_name("fair.p4"))
SWITCHES: dict[Engine, p4.Pipeline] = {engine: PROGRAM.pipeline(engine) for engine in ("interp", "jit")}
NUMBERS = itertools.count()
US = 10**6
MS = 10**9
S = 10**12


class Fair:
    """A meter of its own for 10.0.0.0/8 and fd00::/8, in a switch that forwards to port 1."""

    def __init__(
        self,
        rate: units.Rate,
        engine: Engine = "jit",
        *,
        burst: units.Time = "1 s",
        peak: units.Time = "300 ms",
        queues: int = 8,
    ) -> None:
        self.index = next(NUMBERS) % 4096
        self.switch = SWITCHES[engine]
        for table in TABLES:
            self.switch.table_clear(table)
        matches = (Prefix("10.0.0.0/8", "to"), Prefix("fd00::/8", "to"))
        self.controller = FairMeters(
            [Meter(self.index, rate, matches)], ports={MAC: 1}, burst=burst, peak=peak, queues=queues
        )
        # A pipeline alone has all that this controller asks of a switch.
        self.controller.start(cast(SwitchApi, self.switch))
        # Tests share the switch: the range of queues is made new.
        for register in ("finish", "state", "lowest", "reference", "amount"):
            self.switch.register_write(register, [0] * queues, 0)

    def send(self, at: int, packet: bytes) -> bytes | None:
        """What leaves, at a time in picoseconds."""
        return sent(self.switch, at, 0, packet)

    def counts(self) -> dict[str, int]:
        """Packets that each counter has."""
        return {
            name: int(self.switch.counter_read(name, self.index, 1)[0][0])
            for name in ("passed", "dropped", "marked", "told")
        }

    def registers(self) -> dict[str, list[int]]:
        """The meter's state, and that of its queues."""
        of_meter = {
            name: self.switch.register_read(name, self.index, 1) for name in ("total", "peak", "flows")
        }
        of_flows = {
            name: self.switch.register_read(name, 0, 8)
            for name in ("finish", "state", "lowest", "reference", "amount")
        }
        return {name: [int(cell) for cell in cells] for name, cells in {**of_meter, **of_flows}.items()}


@cache
def datagram(flow: int, length: int, ecn: int = NOT_ECT) -> bytes:
    """UDP of so many bytes of IP."""
    return raw(
        IP(src="192.0.2.1", dst="10.0.0.1", tos=ecn) / UDP(sport=1000 + flow, dport=9) / bytes(length - 28)
    )


@cache
def datagram6(flow: int, length: int, ecn: int = NOT_ECT) -> bytes:
    """The same over IPv6."""
    return raw(
        IPv6(src="2001:db8::1", dst="fd00::1", tc=ecn) / UDP(sport=1000 + flow, dport=9) / bytes(length - 48)
    )


@cache
def segment(flow: int, length: int, ecn: int = NOT_ECT, flags: str = "A") -> bytes:
    """TCP of so many bytes of IP."""
    return raw(
        IP(src="192.0.2.1", dst="10.0.0.1", tos=ecn)
        / TCP(sport=1000 + flow, dport=80, flags=flags)
        / bytes(length - 40)
    )
