"""The controller of the paper's meter and of the plain bucket (`meter.p4`): one object for all meters of a switch.

Each period it reads how many bytes of IP every meter let pass, and sets how fast tokens come. Two laws are there:

- `Pid`, the paper's (section IV-C): rate = target + Kp e + Ki (sum of e) + Kd (change of e).
- `Fixed`: the rate is the target.

Meters are kept as arrays, so that ten thousand of them cost one read and one write a period.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
import numpy.typing as npt

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import SwitchApi
from tidegate.systems.meter.tables import (
    METERS,
    IngressPort,
    Match,
    Meter,
    MeterTables,
    Prefix,
    table_entry,
    target_of,
)

__all__ = ["METERS", "Bucket", "IngressPort", "Match", "Meter", "MeterController", "Prefix", "table_entry"]

Floats = npt.NDArray[np.float64]
Bools = npt.NDArray[np.bool_]

# Of an untagged Ethernet frame: counters count frames, rates are of IP. A VLAN tag counts as four bytes of IP here.
FRAME_BYTES = 14
# A level of the data plane is in 1/65536 byte, a rate in 1/65536 byte a microsecond.
SCALE = 65_536
BPS_OF_RATE = 8e6 / SCALE
"""What 1 is in a register of a rate, 122.07 bit/s; exact in binary, and so are its products with such a rate."""
MOST_BPS = 0xFFFF_FFFF * BPS_OF_RATE


def target_rate(meter: Meter) -> int:
    """A meter's target as a register holds it, in 1/65536 byte a microsecond: rounded down, so that no more than the target passes.

    Raises `TidegateError` for one below `LEAST_BPS` or too large for the register.
    """
    return target_of(meter, MOST_BPS) * SCALE // 8_000_000


@dataclass(frozen=True)
class Bucket:
    """Settings of the data plane's bucket. The defaults are those of the paper's meter with RED_ECN."""

    burst: units.Size = "128 KiB"
    burst_time: units.Time = 0
    """The bucket holds at least the target rate times this time."""
    refill: Literal["lazy", "timer"] = "lazy"
    marks: bool = True
    threshold: float = 0.5
    """R: packets are marked while the bucket is filled to less than this share."""
    probability: float = 0.2
    """P_M: probability of a mark there."""
    second_chance: bool = True
    averages: bool = False
    """Whether a moving average of the level is compared with the threshold, with weight 2^-`average_shift`."""
    average_shift: int = 6
    tokens: int = 128
    """N: tokens per packet of the generator, for `timer`."""

    def bytes(self, target: float) -> int:
        """Size of the bucket in bytes, for a target in bit/s."""
        return max(units.size(self.burst), round(target / 8 * units.time(self.burst_time) / units.PS_PER_S))

    def check(self) -> None:
        """Raise `TidegateError` if a value makes no sense."""
        for name, value in (("threshold", self.threshold), ("probability", self.probability)):
            if not 0 <= value <= 1:
                raise TidegateError(f"the bucket's {name} is {value}; give a share from 0 to 1")
        if units.size(self.burst) == 0:
            raise TidegateError(f"the bucket's burst is {self.burst}; give it at least a packet")
        if self.refill not in ("lazy", "timer"):
            raise TidegateError(f"there is no refill {self.refill!r}; known: lazy, timer")
        if not 0 <= self.average_shift < 64 or self.tokens < 1:
            raise TidegateError("the bucket's average_shift must be 0 to 63, its tokens at least 1")


PLAIN = Bucket(marks=False, second_chance=False)
"""The paper's plain two-colour meter (Fig. 2): a token bucket."""
PAPER = Bucket()
"""The paper's meter with RED_ECN."""


@dataclass(frozen=True)
class Seen:
    """Measurements of a period, by meter: bit/s of IP, and whether the meter was limiting lately."""

    target: Floats
    achieved: Floats
    limited: Bools
    seconds: float


class Law(Protocol):
    """A control law: the next rate from the achieved rate. Keeps arrays by meter number in `state`."""

    def begin(self, target: float, rate: float) -> dict[str, Any]:
        """The initial state of a meter whose rate is this: the target for a new meter, another rate after a restart."""
        ...

    def rates(self, state: dict[str, Floats], seen: Seen) -> Floats:
        """New rates in bit/s; changes the state."""
        ...


@dataclass(frozen=True)
class Fixed:
    """The rate is always the target."""

    def begin(self, target: float, rate: float) -> dict[str, Any]:
        """No state."""
        return {}

    def rates(self, state: dict[str, Floats], seen: Seen) -> Floats:
        """The targets."""
        return seen.target


@dataclass(frozen=True)
class Pid:
    """The paper's controller (section IV-C) with its gains (V-A), and bounds that the paper does not speak of.

    A meter that is not limiting (its flows are idle, or limited elsewhere) does not add to the integral; nor does one whose
    rate is at its bound, in that direction. `UNBOUNDED` has neither: the equations as they are published.
    """

    kp: float = 0.7
    ki: float = 0.15
    kd: float = 0.0
    least: float = 0.1
    most: float = 8.0
    """Bounds of the rate, as multiples of the target."""
    anti_windup: bool = True
    """Whether the integral stays at a bound, and while the meter is not limiting."""

    def begin(self, target: float, rate: float) -> dict[str, Any]:
        """State at which the rate stays constant while the error is zero."""
        return {"integral": (rate - target) / self.ki if self.ki else 0.0, "error": 0.0}

    def rates(self, state: dict[str, Floats], seen: Seen) -> Floats:
        """Equations (4) to (7) of the paper."""
        error = seen.target - seen.achieved
        integral = state["integral"] + error * seen.seconds
        change = (error - state["error"]) / seen.seconds

        def rate(integral: Floats) -> Floats:
            return seen.target + self.kp * error + self.ki * integral + self.kd * change

        wanted = rate(integral)
        low, high = self.least * seen.target, self.most * seen.target
        if self.anti_windup:
            stays = (
                ((wanted > high) & (error > 0))
                | ((wanted < low) & (error < 0))
                | ~(seen.limited | (error < 0))
            )
            integral = np.where(stays, state["integral"], integral)
        state["integral"], state["error"] = integral, error
        return np.clip(rate(integral), low, high)


BOUNDED = Pid()
"""The paper's controller, with our bounds and anti-windup."""
UNBOUNDED = Pid(least=0.0, most=math.inf, anti_windup=False)
"""The paper's controller as published. R + u of 0 and less, where equation (7) gives no period, is the least rate that the data plane
has; the largest is what its register holds (524 Gbit/s)."""


class MeterController(MeterTables):
    """Keeps the meters of one switch that runs `meter.p4` at their targets: see `MeterTables`."""

    def __init__(
        self,
        meters: Iterable[Meter] = (),
        *,
        ports: Mapping[str, int] | Callable[[], Mapping[str, int]] | None = None,
        wires: Mapping[int, int] | None = None,
        bucket: Bucket = PAPER,
        law: Law = BOUNDED,
        period: units.Time = "1 s",
        patience: units.Time = "30 s",
        generator_port: int = 500,
    ) -> None:
        super().__init__(meters, ports=ports, wires=wires)
        bucket.check()
        self.period = period
        self._bucket = bucket
        self._law = law
        self._patience_s = units.time(patience) / units.PS_PER_S
        self._generator_port = generator_port

    def start(self, switch: SwitchApi) -> None:
        """Fill the tables; of a switch that has meters already, take them over."""
        self._state: dict[str, Floats] = {}
        self._counts = {name: np.zeros((METERS, 2), np.int64) for name in ("passed", "dropped", "marked")}
        self._quiet = np.full(METERS, np.inf)
        self._then: int | None = None
        if self._bucket.refill == "timer" and not switch.table_entries("generators"):
            switch.table_add("generators", [self._generator_port], "pass")
        super().start(switch)
        self._note_counts(switch)

    def _adopted(self, switch: SwitchApi, targets: Mapping[int, int]) -> None:
        rates = switch.register_read("rate", 0, max(targets) + 1)
        for number, target in targets.items():
            rate = int(rates[number]) * BPS_OF_RATE
            self._remember(number, target * BPS_OF_RATE, rate)
            if self._bucket.refill == "timer":
                self._set_timer(switch, number, rate)

    def _configured(self, switch: SwitchApi, number: int, old: list[int], new: list[int]) -> None:
        if old[-1] and not new[-1]:
            # Its tokens come by the time from now on.
            switch.generator_stop(number)
            switch.register_write("updated", [switch.now // 1_000_000], number)

    def _remember(self, number: int, target: float, rate: float) -> None:
        self._targets[number] = target
        for name, value in self._law.begin(target, rate).items():
            self._state.setdefault(name, np.zeros((METERS, *np.shape(value))))[number] = value
        # A new meter counts as not limiting until it is seen to drop or mark.
        self._quiet[number] = np.inf

    def _held(self, meter: Meter) -> float:
        return target_rate(meter) * BPS_OF_RATE

    def _set_up(self, switch: SwitchApi, number: int, target: float) -> None:
        burst = self._bucket.bytes(target) * SCALE
        switch.register_write("level", [burst], number)
        switch.register_write("average", [burst], number)
        switch.register_write("updated", [switch.now // 1_000_000], number)
        # Counters go on from what an earlier meter of that number has counted. At the start those of all are read together.
        if self._then is not None:
            for name, counts in self._counts.items():
                counts[number] = switch.counter_read(name, number, 1)[0]
        self._change(switch, number, target)

    def _change(self, switch: SwitchApi, number: int, target: float) -> None:
        self._set(switch, number, target)
        self._remember(number, target, target)
        if self._bucket.refill == "timer":
            self._set_timer(switch, number, target)

    def _forget(self, switch: SwitchApi, number: int) -> None:
        if self._bucket.refill == "timer":
            switch.generator_stop(number)
        super()._forget(switch, number)

    def _set(self, switch: SwitchApi, number: int, target: float) -> None:
        rate = round(target / BPS_OF_RATE)
        switch.register_write("target", [rate], number)
        switch.register_write("rate", [rate], number)

    def _set_timer(self, switch: SwitchApi, number: int, rate: float) -> None:
        """The packet generator: `tokens` each period, equation (1) of the paper."""
        tokens = self._bucket.tokens
        packet = bytes(12) + b"\x08\x80" + number.to_bytes(2) + tokens.to_bytes(4)
        period = max(round(tokens * 8 * units.PS_PER_S / rate), 1)
        switch.generator_set(number, port=self._generator_port, packet=packet, period=period)

    def _configuration(self, number: int, target: float) -> list[int]:
        bucket = self._bucket
        burst = bucket.bytes(target) * SCALE
        return [
            burst,
            round(bucket.threshold * burst),
            round(bucket.probability * 65_536),
            bucket.average_shift,
            int(bucket.marks),
            int(bucket.second_chance),
            int(bucket.averages),
            int(bucket.refill == "timer"),
        ]

    def _note_counts(self, switch: SwitchApi) -> Any:
        """Seconds since the last call, and by meter since then, or since it was added: bytes of IP passed, packets dropped or marked."""
        size = max(self._targets, default=-1) + 1
        since = {}
        for name, before in self._counts.items():
            now = switch.counter_read(name, 0, size).astype(np.int64)
            since[name] = now - before[:size]
            before[:size] = now
        seconds = 0.0 if self._then is None else (switch.now - self._then) / units.PS_PER_S
        self._then = switch.now
        passed = since["passed"]
        return (
            seconds,
            passed[:, 1] - FRAME_BYTES * passed[:, 0],
            since["dropped"][:, 0] + since["marked"][:, 0],
        )

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Read the achieved rates, and set the next ones."""
        seconds, passed, signals = self._note_counts(switch)
        numbers = np.array(sorted(self._targets), dtype=np.int64)
        if not len(numbers) or seconds <= 0:
            return
        quiet = np.where(signals[numbers] > 0, 0.0, self._quiet[numbers] + seconds)
        self._quiet[numbers] = quiet
        seen = Seen(
            target=np.array([self._targets[number] for number in numbers]),
            achieved=passed[numbers] * 8 / seconds,
            # A meter without packets is not limiting.
            limited=(quiet <= self._patience_s) & ((passed[numbers] > 0) | (signals[numbers] > 0)),
            seconds=seconds,
        )
        state = {name: values[numbers] for name, values in self._state.items()}
        rates = self._law.rates(state, seen)
        for name, values in state.items():
            self._state[name][numbers] = values
        self._write(switch, numbers, rates)
        for number, rate in zip(numbers[:16], rates, strict=False):
            switch.note(f"rate_{number}_mbps", rate / 1e6)

    def _write(self, switch: SwitchApi, numbers: npt.NDArray[np.int64], rates: Floats) -> None:
        rates = np.clip(rates, BPS_OF_RATE, MOST_BPS)
        if self._bucket.refill == "timer":
            for number, rate in zip(numbers.tolist(), rates.tolist(), strict=True):
                switch.generator_period(
                    number, max(round(self._bucket.tokens * 8 * units.PS_PER_S / rate), 1)
                )
        first, last = int(numbers[0]), int(numbers[-1]) + 1
        words = switch.register_read("rate", first, last - first)
        words[numbers - first] = np.round(rates / BPS_OF_RATE).astype(np.uint64)
        switch.register_write("rate", words, first)
