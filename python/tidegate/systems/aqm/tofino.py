"""The slow loop of `pi2_tofino.p4` and `dualpi2_tofino.p4`: the PI controller in the control plane, as on Tofino.

Source: G. Gombos et al., NOMS 2022 (the paper), sections II-A and III. Every T the controller reads the delay of the last Classic packet
(R1), computes p' and writes it for both kinds of packets (R2, R3). Delays are in microseconds, gains in Hz.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller, SwitchApi
from tidegate.systems.aqm.controller import ONE, Ports, check_gains, forward, set_entry

_US = 1_000_000


@dataclass(frozen=True)
class TofinoAqm:
    """Settings of a port's queue management, in the form that the paper has on Tofino.

    Each says where its default is from: the paper's section, or open, which means that the paper does not say. What other values of
    the open ones change is measured by `aqm.settings` (DualPI2, 120 Mbit/s, 10 ms, 1-1 and 10-10 flows, 120 s) and `aqm.period`.
    """

    target: units.Time = "20 ms"
    """Target delay of Classic packets. Section IV, for PI2 and DualPI2."""
    step: units.Time = "1 ms"
    """L packets that have waited longer are marked, whatever waits behind them. Sections III-B and IV. A multiple of 1 us."""
    period: units.Time = "16 ms"
    """T, from one run of the PI controller to the next. Open; RFC 9332's for a target of 15 ms, rounded as in Linux. 4 or 32 ms change C's
    mean delay by less than 1 % and CUBIC's goodput by at most 3 %."""
    gains: tuple[float, float] = (0.16, 3.0)
    """alpha and beta in Hz. Open; RFC 9332 appendix A.1 computes these from T and an RTT of at most 100 ms. Half of both
    changes C's p99 by +7 to +10 %, twice both by -4 to -6 %; means and goodputs change by at most 5 %."""
    read_latency: units.Time = 0
    """From the time at which R1 is read to when the controller has its value. Open; the paper fears that it is long (section VI).
    Up to T in sum it changes the p99 of C by at most 5 % in the steady state."""
    write_latency: units.Time = 0
    """From then to when p' is in R2 and R3. Open, as `read_latency`."""
    limit: units.Time = "250 ms"
    """Buffer of each queue, in time at the port's rate, in the traffic manager. Open; RFC 9332's for both queues together.
    50 ms change nothing: no queue is full."""

    @property
    def latency(self) -> int:
        """Picoseconds from when R1 is read to when p' is in R2 and R3."""
        return units.time(self.read_latency) + units.time(self.write_latency)

    def check(self) -> None:
        """Raise `TidegateError` if a value makes no sense, or does not fit in the data plane."""
        check_gains(self.gains)
        for name, least, most in (("target", 1, 2**32), ("step", 0, 2**32), ("limit", 1, 2**32)):
            value = units.time(getattr(self, name)) // _US
            if not least <= value < most:
                raise TidegateError(
                    f"the queue management's {name} is {getattr(self, name)}; give {least} to {most - 1} us"
                )
        period = units.time(self.period)
        if not _US <= period <= units.PS_PER_S:
            raise TidegateError(f"the PI controller's period is {units.show_time(period)}; give 1 us to 1 s")
        if self.latency > period:
            raise TidegateError(
                f"reading and writing take {units.show_time(self.latency)}, longer than the period of {units.show_time(period)}; "
                "the controller does one after the other: give a longer period"
            )


PAPER = TofinoAqm()
"""The paper's settings."""


@dataclass
class _Managed:
    """State of a managed port: the delay at the last run, and p' that is on its way to the switch."""

    previous_us: int = 0
    pending: float | None = None


class TofinoController(Controller):
    """Manages ports of a switch that runs `pi2_tofino.p4` or `dualpi2_tofino.p4`; notes p' of each.

    `rates` has the ports by number, `ports` says where packets go. p' is in the switch and survives a restart; the first run after
    one takes the delay for unchanged.
    """

    clock = "1 us"

    def __init__(
        self, rates: Mapping[int, units.Rate], aqm: TofinoAqm = PAPER, *, ports: Ports | None = None
    ) -> None:
        aqm.check()
        self.aqm = aqm
        self._ports = ports or {}
        self._numbers = list(rates)
        period, latency = units.time(aqm.period), aqm.latency
        # Ticks come at both of its times: when R1 is read, and when p' is there.
        self.period = math.gcd(period, latency)
        self._every, self._later = period // self.period, latency // self.period

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; existing entries and p' stay unchanged."""
        self._ticks = 0
        self._managed = {port: _Managed() for port in self._numbers}
        forward(switch, self._ports)
        for port, managed in self._managed.items():
            set_entry(switch, "steps", port, "manage", [units.time(self.aqm.step) // _US])
            managed.previous_us = int(switch.register_read("classic_delay", port, 1)[0])

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Write what is due, then read R1 if a period is over."""
        self._ticks += 1
        if self._later and self._ticks % self._every == self._later % self._every:
            self._write(switch)
        if self._ticks % self._every == 0:
            for port, managed in self._managed.items():
                managed.pending = self._next(switch, port, managed)
            if not self._later:
                self._write(switch)

    def _next(self, switch: SwitchApi, port: int, managed: _Managed) -> float:
        """p' by the law of section II-A, whose signs are reversed there: p' rises with the delay and its growth."""
        delay_us = int(switch.register_read("classic_delay", port, 1)[0])
        alpha, beta = self.aqm.gains
        target_us = units.time(self.aqm.target) / _US
        change = alpha * (delay_us - target_us) + beta * (delay_us - managed.previous_us)
        managed.previous_us = delay_us
        now = int(switch.register_read("p_squared", port, 1)[0]) / ONE
        return min(max(now + change / 1e6, 0.0), 1.0)

    def _write(self, switch: SwitchApi) -> None:
        for port, managed in self._managed.items():
            if managed.pending is not None:
                value = min(round(managed.pending * ONE), ONE - 1)
                switch.register_write("p_coupled", [value], port)
                switch.register_write("p_squared", [value], port)
                switch.note(f"p_{port}", managed.pending)
                managed.pending = None
