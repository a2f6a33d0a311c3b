"""What a controller is."""

from __future__ import annotations

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control.api import Digest, PacketIn, SwitchApi


class Controller:
    """The slow loop of a switch. Overrides what it needs; what is not overridden does nothing.

    One object can serve several switches, and can be run again: `start` begins anew. It keeps nothing that it could not read
    back from the switch, so that it can be started again while the switch runs. An exception ends the run; `tidegate switch`
    stops only this controller.
    """

    period: units.Time | None = None
    """Time from tick to tick; `None`: no ticks."""
    clock: units.Time | None = None
    """The unit of timestamps that the program is written for, `1 us` or `1 ns`; `None`: any. A switch with another clock is refused."""

    def start(self, switch: SwitchApi) -> None:
        """Called at the beginning of a run, when the switch has its ports."""

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Called every `period`, for the first time one period after the start. `now` is in picoseconds."""

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        """Called for each message that the program sends with `digest`."""

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        """Called for each packet that comes to the switch's `cpu_port`."""


LIVE_CLOCK = units.PS_PER_S // 1_000_000
"""The unit of a program's timestamps outside the simulator, in picoseconds: 1 us, as the reference switch has it."""


def demand_clock(controller: Controller, clock: int, switch: str, cure: str = "") -> None:
    """Raise `TidegateError` if a controller's program is written for timestamps in another unit than `clock`, in picoseconds.

    `cure` may have `{asked}` for the unit that it is written for.
    """
    if controller.clock is None or units.time(controller.clock) == clock:
        return
    asked = units.show_time(units.time(controller.clock))
    raise TidegateError(
        f"the switch {switch} has the clock {units.show_time(clock)}, and the program of its controller counts in {asked}; "
        f"{cure.format(asked=asked)}"
    )


def period_of(controller: Controller) -> int | None:
    """Picoseconds from tick to tick; `None`: it does not tick. Raises `TidegateError` for 0."""
    if controller.period is None:
        return None
    try:
        period = units.given_time(controller.period)
    except TidegateError as error:
        raise TidegateError(f"the period of the controller {type(controller).__name__}: {error}") from None
    if period == 0:
        raise TidegateError(f"the period of the controller {type(controller).__name__} is 0")
    return period
