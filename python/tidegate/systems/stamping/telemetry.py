"""In-band telemetry (INT): each switch on the way adds what a host needs to compute the load of the port, 8 bytes for each hop.

The widths are those of HPCC (Li et al., SIGCOMM 2019): the code of the link's rate (3 bits), the time in nanoseconds (24), bytes sent
in units of 128 (20), bytes in the queue in units of 80 (17). The simulated congestion controls `hpcc` and `powertcp` read it.
"""

from __future__ import annotations

from dataclasses import dataclass

from tidegate import units
from tidegate._core import TidegateError
from tidegate.systems.stamping.field import MOST_HOPS, Carrier, Field, Scale

RATES_GBPS = (1, 10, 25, 40, 50, 100, 200, 400)
"""Rates of links, by code."""


@dataclass(frozen=True)
class Telemetry(Field):
    """The format of telemetry: room for so many hops. The place in a packet is as that of a stamp that is a vector."""

    capacity: int = 3
    carrier: Carrier = "option"

    def __post_init__(self) -> None:
        units.below(self.capacity, 1, MOST_HOPS + 1, "the hops of telemetry")
        self.demand_carrier()

    @property
    def fold(self) -> str:
        """Each hop has its own entry."""
        return "vector"

    @property
    def width(self) -> int:
        """Bytes of a hop's entry."""
        return 8

    @property
    def defines(self) -> list[str]:
        """Definitions that specialise `stamp.p4`."""
        return [
            f"STAMP_CARRIER=CARRIER_{self.carrier.upper()}",
            "STAMP_SOURCE=SOURCE_TELEMETRY",
            "STAMP_FOLD=FOLD_VECTOR",
            "STAMP_BITS=64",
            "STAMP_BYTES=8",
            f"STAMP_ENTRIES={self.capacity}",
        ]

    def scale(self, rate: units.Rate, *, tick: units.Time = "1 ns", mtu: int = 1500) -> Scale:
        """What a port of a link of this rate needs to know."""
        if units.time(tick) != 1000:
            raise TidegateError(
                f"telemetry has nanoseconds, and the switch's clock ticks in {units.show_time(units.time(tick))}; "
                'give the switch clock="1 ns"'
            )
        gbps = units.rate(rate) / 1e9
        if gbps not in RATES_GBPS:
            known = ", ".join(str(known) for known in RATES_GBPS)
            raise TidegateError(f"telemetry has no code for a link of {rate}; there are {known} Gbit/s")
        return Scale(1, 0, mtu + 14, 0, RATES_GBPS.index(int(gbps)))

    @property
    def control_options(self) -> dict[str, str | int]:
        """The format, for the `control_options` of `hpcc` and `powertcp`."""
        return {"telemetry_kind": self.echo.kind}
