"""The slow loop of PI2 and DualPI2: tables and limits, the PI controller if it is placed in the control plane, and reports of overload.

The PI controller has two placements. In the control plane, as in the paper, `AqmController` reads the queues' delays each `period` and
writes p'. In the data plane the program does that itself, and `AqmController` only sets it up and watches. RFC 9332 appendix A
names the quantities.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

import numpy as np

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, Port, Queue, SwitchApi
from tidegate.control.api import Scheduler

Home = Literal["control plane", "data plane"]
Ports = Mapping[str, int] | Callable[[], Mapping[str, int]]
"""Where packets go: a port for each Ethernet address, or what gives that."""

# Of the data plane: a probability of 1; alpha has 20 more bits behind the point; a coupling factor of 1.
ONE = 1 << 32
ALPHA_SCALE = 1 << 20
K_ONE = 16
BINS = 512
FRAMING = 14
"""Bytes that Ethernet adds to an IP packet."""
LOW = 1
"""The L queue's number at its port; the C queue has 0."""


@dataclass(frozen=True)
class Aqm:
    """Settings of a port's queue management. The defaults are those of RFC 9332 appendix A."""

    home: Home = "data plane"
    """Placement of the PI controller."""
    target: units.Time = "15 ms"
    """Target delay of the C queue."""
    rtt_max: units.Time = "100 ms"
    """The longest RTT for which the PI controller is stable."""
    period: units.Time | None = None
    """Tupdate; by default the smaller of the target and a third of `rtt_max`."""
    gains: tuple[float, float] | None = None
    """alpha and beta in Hz; by default those that RFC 9332 computes from Tupdate and `rtt_max`."""
    k: float = 2.0
    """Coupling factor: the marking probability of scalable packets is `k` times p'."""
    p_c_max: float | None = None
    """Drop probability of Classic packets at which overload begins; by default 1/k^2."""
    ramp_from: units.Time = "800 us"
    ramp: units.Time = "400 us"
    """The L queue's native marking begins at the delay `ramp_from` and reaches 100 % at `ramp_from` + `ramp`; 0: a step."""
    ramp_packets: int | None = 1
    """No native mark for a packet with at most this many packets behind it; `None`: any packet may be marked."""
    limit: units.Time = "250 ms"
    """Buffer of both queues together, in time at the port's rate."""
    limit_packets: int | None = None
    """That buffer in packets of full size, in place of `limit`."""
    mtu: int = 1500
    """Bytes of the largest IP packet: a packet is taken if one of full size would have room, and `spares_two` goes by it."""
    random: bool = False
    """Random signals, as in the paper; otherwise RFC 9332's recurrence."""
    policed: bool = False
    """Another mechanism keeps queue-building traffic out of the L queue: packets there that are not ECN-capable are not dropped."""
    classified: bool = False
    """Whether the operator's tables `sources4`, `sources6` and `dscps` classify before the ECN field."""
    spares_two: bool = True
    """No signals of the PI controller while less than two full packets wait."""
    l4s: bool = True
    """If off, ECT(1) is treated as not ECN-capable (RFC 9331 section 5.1)."""

    @property
    def tupdate(self) -> int:
        """The period in picoseconds."""
        if self.period is not None:
            return units.time(self.period)
        return min(units.time(self.target), units.time(self.rtt_max) // 3)

    @property
    def alpha(self) -> float:
        """Integral gain, in Hz."""
        if self.gains is not None:
            return self.gains[0]
        return 0.1 * (self.tupdate / units.PS_PER_S) / (units.time(self.rtt_max) / units.PS_PER_S) ** 2

    @property
    def beta(self) -> float:
        """Proportional gain, in Hz."""
        if self.gains is not None:
            return self.gains[1]
        return 0.3 / (units.time(self.rtt_max) / units.PS_PER_S)

    @property
    def p_max(self) -> float:
        """p' at which overload begins."""
        return 1 / self.k if self.p_c_max is None else min(self.p_c_max**0.5, 1.0)

    def check(self) -> None:
        """Raise `TidegateError` if a value makes no sense, or does not fit in the data plane."""
        if self.home not in ("control plane", "data plane"):
            raise TidegateError(
                f"the PI controller's home is 'control plane' or 'data plane', not {self.home!r}"
            )
        for name in ("k", "p_c_max"):
            value = getattr(self, name)
            if value is not None and (isinstance(value, bool) or not isinstance(value, Real)):
                raise TidegateError(f"the queue management's {name} is {value!r}; give a number")
        for name in ("random", "policed", "classified", "spares_two", "l4s"):
            value = getattr(self, name)
            if not isinstance(value, (bool, np.bool_)):
                raise TidegateError(f"the queue management's {name} is {value!r}; give True or False")
        # In sixteenths, with eight bits.
        if not (1 <= self.k < 16 and round(self.k * K_ONE) < 16 * K_ONE):
            raise TidegateError(f"the coupling factor is {self.k}; give one from 1 to 15.9")
        if self.p_c_max is not None and not 0 < self.p_c_max <= 1:
            raise TidegateError(f"p_c_max is {self.p_c_max}; give a likelihood above 0 and up to 1")
        for name in ("target", "rtt_max", "limit"):
            if units.time(getattr(self, name)) == 0:
                raise TidegateError(f"the queue management's {name} is 0; give one above 0")
        if not _US <= self.tupdate <= units.PS_PER_S:
            whence = "" if self.period is not None else " by the target and rtt_max"
            raise TidegateError(
                f"the PI controller's period is {units.show_time(self.tupdate)}{whence}; give 1 us to 1 s"
            )
        check_gains(self.gains)
        if max(self._gains()) > _MOST_GAIN:
            raise TidegateError(
                f"the gains for an rtt_max of {self.rtt_max} are too large; give at least 8 ms"
                if self.gains is None
                else f"the gains {self.gains} are too large for the data plane; "
                f"give at most {_MOST_GAIN * self.tupdate / _US / _PER_US:.3g} and {_MOST_GAIN * 1e6 / ONE:.4g} Hz"
            )
        for name, least, most in (
            ("ramp_packets", 0, 2**19 - 2),
            ("limit_packets", 2, 2**31),
            ("mtu", 68, 65_535),
        ):
            value = getattr(self, name)
            if value is not None and not (isinstance(value, int) and least <= value <= most):
                raise TidegateError(f"{name} is {value!r}; give {least} to {most}")

    def _gains(self) -> tuple[int, int]:
        """Alpha and beta of the data plane: for a microsecond of delay."""
        return round(self.alpha / (self.tupdate / _US) * _PER_US), round(self.beta * ONE / 1e6)

    def values(self) -> list[int]:
        """What the data plane's action `configure` takes."""
        low = units.time(self.ramp_from) // _US
        width = units.time(self.ramp) // _US
        return [
            self.tupdate // _US if self.home == "data plane" else 0,
            units.time(self.target) // _US,
            *self._gains(),
            round(self.k * K_ONE),
            round(65_536 / self.k),
            round(self.p_max * ONE),
            low,
            low + width,
            ONE // width if width else 0,
            0 if self.ramp_packets is None else self.ramp_packets + 1,
            int(self.random),
            int(self.policed),
            2 * self.frame if self.spares_two else 0,
        ]

    @property
    def frame(self) -> int:
        """Bytes of a full frame."""
        return self.mtu + FRAMING

    def room(self, rate: int) -> int:
        """At how many waiting bytes a port of this rate in bit/s still takes a packet."""
        if self.limit_packets is None:
            held = units.time(self.limit) * rate // (8 * units.PS_PER_S)
        else:
            held = self.limit_packets * self.frame
        return min(max(held, 2 * self.frame), 2**32 - 1) - self.frame


_US = 1_000_000
_PER_US = ONE * ALPHA_SCALE / 1e6
_MOST_GAIN = (1 << 23) - 1


def check_gains(gains: tuple[float, float] | None) -> None:
    """Raise `TidegateError` unless both are numbers above 0."""
    if gains is not None and not (
        len(gains) == 2 and all(isinstance(gain, Real) and gain > 0 for gain in gains)
    ):
        raise TidegateError(f"the gains are {gains!r}; give alpha and beta in Hz, both above 0")


LINUX = Aqm(
    target="15 ms",
    period="16 ms",
    gains=(41 / 256, 819 / 256),
    ramp_from="1 ms",
    ramp="1 us",
    ramp_packets=None,
    limit_packets=10_000,
    random=True,
)
"""A model of Linux's sch_dualpi2 by the defaults of its `dualpi2_reset_default` (Linux 6.17): alpha and beta are 41 and 819 in 1/256 Hz, the
step is above 1 ms whatever waits behind. Its scheduler is `dual_port(weight=9)`: 10 % for C."""


def bin_edges_us(number: int) -> tuple[int, int]:
    """From where on, and up to where, delays are in a bin of the data plane; the last has no end, and counts as the others."""
    if number < 128:
        return 16 * number, 16 * number + 16
    if number < 368:
        return 128 * (number - 112), 128 * (number - 111)
    return 2048 * (number - 352), 2048 * (number - 351)


def dual_port(
    scheduler: Scheduler = "weighted round robin", *, weight: int = 15, time_shift: units.Time = "50 ms"
) -> Port:
    """The two queues of a port for `dualpi2.p4`.

    `weight` is the L queue's, beside 1 of the C queue, for the round robins; `time_shift` is for the time-shifted FIFO. The
    queues themselves are without limit: the program's is for both together.
    """
    return Port((Queue(), Queue(weight=weight, time_shift=time_shift)), scheduler)


@dataclass
class _Managed:
    """State of a managed port."""

    rate: int
    previous_us: int = 0
    # Overload: since when, how long since the last report and when that began, and until when no report is due.
    since: int | None = None
    first: int = 0
    total: int = 0
    quiet_until: int = 0


class AqmController(Controller):
    """Manages ports of a switch: `rates` has their rates by number, which the buffer's limit is computed from.

    `ports` says where packets go: a port for each Ethernet address, or what gives that when it starts. What it needs to go on after a restart is in the switch. Notes
    p' of each port it manages, and overload when it ends: since when and for how long, no more than one report in `hysteresis`
    (RFC 9332 section 2.5.2.3).
    """

    clock = "1 us"

    def __init__(
        self,
        rates: Mapping[int, units.Rate],
        aqm: Aqm = Aqm(),
        *,
        ports: Ports | None = None,
        watch: units.Time = "100 ms",
        hysteresis: units.Time = "5 s",
    ) -> None:
        aqm.check()
        self.aqm = aqm
        self.period = aqm.tupdate if aqm.home == "control plane" else units.time(watch)
        self._ports = ports or {}
        self._rates = {port: units.rate(rate) for port, rate in rates.items()}
        self._hysteresis = units.time(hysteresis)

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; existing entries and p' stay unchanged."""
        self._managed = {port: _Managed(rate) for port, rate in self._rates.items()}
        forward(switch, self._ports)
        for port, managed in self._managed.items():
            buffer = [self.aqm.room(managed.rate), int(self.aqm.l4s), int(self.aqm.classified)]
            set_entry(switch, "buffers", port, "manage", buffer)
            set_entry(switch, "aqm", port, "configure", self.aqm.values())
            managed.previous_us = int(switch.register_read("previous_delay", port, 1)[0])

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Run the PI controller, if it is placed here, and record notes."""
        for port, managed in self._managed.items():
            if self.aqm.home == "control plane":
                p = self._update(switch, port, managed)
            else:
                p = int(switch.register_read("p", port, 1)[0]) / ONE
            switch.note(f"p_{port}", p)
            self._watch(now, switch, port, managed, p >= self.aqm.p_max)

    def _update(self, switch: SwitchApi, port: int, managed: _Managed) -> float:
        """dualpi2_update() of RFC 9332 Fig. 8."""
        delay_us = max(switch.register_read("delay", 2 * port, 2).tolist())
        target_us = units.time(self.aqm.target) / _US
        change = self.aqm.alpha * (delay_us - target_us) + self.aqm.beta * (delay_us - managed.previous_us)
        now = int(switch.register_read("p", port, 1)[0]) / ONE
        p: float = min(max(now + change / 1e6, 0.0), 1.0)
        switch.register_write("p", [round(p * ONE)], port)
        # For a controller that takes over.
        switch.register_write("previous_delay", [delay_us], port)
        managed.previous_us = delay_us
        return p

    def _watch(self, now: int, switch: SwitchApi, port: int, managed: _Managed, overload: bool) -> None:
        if overload and managed.since is None:
            managed.since = now
            if not managed.total:
                managed.first = now
        elif not overload and managed.since is not None:
            managed.total += now - managed.since
            managed.since = None
        if managed.since is None and managed.total and now >= managed.quiet_until:
            switch.note(f"overload_{port}_since_s", managed.first / units.PS_PER_S)
            switch.note(f"overload_{port}_s", managed.total / units.PS_PER_S)
            managed.total = 0
            managed.quiet_until = now + self._hysteresis


def forward(switch: SwitchApi, ports: Ports) -> None:
    """Add the entries of the table `forward` that are not there yet."""
    known = {entry.match[0].value for entry in switch.table_entries("forward")}
    for address, port in (ports() if callable(ports) else ports).items():
        if int(address.replace(":", ""), 16) not in known:
            switch.table_add("forward", [address], "to_port", [port])


def set_entry(switch: SwitchApi, table: str, port: int, action: str, values: list[int]) -> None:
    """Set the entry of a port, replacing an existing one."""
    for entry in switch.table_entries(table):
        if entry.match[0].value == port:
            switch.table_modify(table, entry.handle, action, values)
            return
    switch.table_add(table, [port], action, values)


def __getattr__(name: str) -> Any:
    """`manage` is in `setup`, and found here as well."""
    if name == "manage":
        from tidegate.systems.aqm.setup import manage

        return manage
    raise AttributeError(f"module {__name__} has no attribute {name}")
