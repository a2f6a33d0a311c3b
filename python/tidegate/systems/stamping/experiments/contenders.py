"""Congestion controls that are compared at 25 Gbit/s, and what each needs of switches and hosts.

None of their constants was set by a run of these experiments. Those of `stamp` are its prototype's; TIMELY's are those of the paper's
first author, in proportion to the link's rate and to the RTT; Swift's paper gives few.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidegate.network import Network, Node
from tidegate.systems.stamping.experiments.parking_lot import MIN_RTT_US, RATE_GBPS
from tidegate.systems.stamping.experiments.testbed import PLAIN, author_s_timely
from tidegate.systems.stamping.field import Field
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.setup import stamping
from tidegate.systems.stamping.telemetry import Telemetry

EDGE_GBPS = 25.0
FRAMING = 38
"""Bytes of Ethernet around an IP packet, with preamble and gap."""
MTU, HEADERS = 1500, 40
T0_US = 9.5
"""Base RTT between hosts of two leaves, of full packets and their ACKs: the controls' one constant of time."""
FULL_US = (MTU + FRAMING) * 8e-3 / EDGE_GBPS
"""How long a host's link takes for a full packet."""
ACK_US = (HEADERS + FRAMING) * 8e-3 / EDGE_GBPS

TELEMETRY = Telemetry(3)


def queue_stamp(bits: int, fold: str = "max") -> Format:
    """Time in queue up to 32 T0. MAX: 8 bits in steps of T0/128, doubling; 4 bits in steps of T0/8, doubling. Others: equal bins."""
    full = round(32 * T0_US * 1e6)
    if fold != "max":
        return Format(full, bits=bits, fold=fold)  # type: ignore[arg-type]
    return Format(full, bits=bits, bins="log", mantissa={8: 5, 4: 1}[bits])


def _timely(signal: str) -> dict[str, Any]:
    """TIMELY's constants in proportion."""
    rate, rtt = EDGE_GBPS / RATE_GBPS, T0_US / MIN_RTT_US
    constants = {
        "delta": f"{20 * rate:g} Mbit/s",
        "beta": 0.6,
        "alpha": 0.3,
        "t_low": f"{120 * rtt:.3f} us",
        "t_high": f"{500 * rtt:.3f} us",
        "start_rate": f"{2 * rate:g} Gbit/s",
    }
    return dict(author_s_timely(signal, {}, T0_US, **constants)["control_options"])


@dataclass(frozen=True)
class Contender:
    """A congestion control with what it needs of switches and hosts."""

    text: str
    control: str
    form: Field | None = None
    options: dict[str, str | int | float] = field(default_factory=dict)
    mark_above: int | None = None
    ecn: str = "off"
    imaginary: int = 0
    """Bytes of each packet that are not counted on the wire."""
    own_port: bool = False
    """Hosts' own ports are switches, too."""

    @property
    def mss(self) -> int:
        """Bytes of payload in a full packet."""
        return MTU + self.imaginary - HEADERS - (self.form.wire_bytes if self.form else 0)

    @property
    def keywords(self) -> dict[str, Any]:
        """Keywords of `Network.tcp`."""
        options = dict(self.options)
        if self.control in WINDOWS:
            options |= {"line_rate": f"{EDGE_GBPS:g} Gbit/s", "rtt": f"{T0_US} us"}
            options["overhead"] = MTU + FRAMING - self.mss
        if self.form is not None:
            options |= self.form.control_options
        return {"congestion_control": self.control, "control_options": options, "ecn": self.ecn, **PLAIN}

    def switch(self, network: Network, name: str) -> Node:
        """Add a switch as the control needs it: one that stamps, or a plain router."""
        return stamping(network, name, self.form, clock="1 ns") if self.form else network.router(name)

    def port(self, network: Network, name: str) -> Node:
        """Add a host's own port, which stamps what the host sends."""
        assert self.form is not None
        return stamping(network, name, self.form, clock="1 ns", to_hosts=False)


WINDOWS = ("stamp", "hpcc", "powertcp")

# A stamp takes 4 bytes of a packet and 4 of an ACK, telemetry 28 of each.
LESS = TELEMETRY.wire_bytes - 4
STAMP = {"base_rtt": f"{T0_US} us"}
SWIFT: dict[str, str | int | float] = {"target": f"{2 * T0_US} us", "scaling_range": "10 us"}

CONTENDERS = {
    "stamp": Contender("stamp, 8 bits", "stamp", queue_stamp(8), dict(STAMP)),
    "stamp4": Contender("stamp, 4 bits", "stamp", queue_stamp(4), dict(STAMP)),
    "hpcc": Contender("HPCC, telemetry", "hpcc", TELEMETRY),
    "hpcc_free": Contender("HPCC, telemetry of a stamp's size", "hpcc", TELEMETRY, imaginary=LESS),
    "powertcp": Contender("PowerTCP, telemetry", "powertcp", TELEMETRY),
    "swift": Contender("Swift", "swift", None, SWIFT),
    "dctcp": Contender("DCTCP", "dctcp", None, {}, 13, "on"),
    "cubic": Contender("CUBIC", "cubic"),
    "bbr": Contender("BBR", "bbr"),
    "timely-max": Contender("TIMELY, MAX", "timely", queue_stamp(8), _timely("max")),
    "timely-sum": Contender("TIMELY, SUM", "timely", queue_stamp(32, "sum"), _timely("sum")),
    "timely-sum_squ": Contender("TIMELY, SUM_SQU", "timely", queue_stamp(32, "sum_squ"), _timely("sum_squ")),
    "timely-rtt": Contender("TIMELY, RTT", "timely", None, _timely("rtt")),
}
