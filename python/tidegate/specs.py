"""Links and flows of a description in the units of the simulator, with all defaults filled in.

Picoseconds, bit/s and bytes throughout.
"""

from __future__ import annotations

import operator
from dataclasses import dataclass
from functools import lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import numpy as np

from tidegate import _core
from tidegate._core import TidegateError

Count = Annotated[int, 2**32]
"""A number of packets or bytes; the annotation is its exclusive upper bound."""


@dataclass(frozen=True)
class Wire:
    """One direction of a link, and the queue in front of it. Picoseconds, bit/s and bytes."""

    rate: int
    delay: int
    packets: int | None
    bytes: int | None
    mark_above: int | None = None
    aqm: str | None = None
    aqm_salt: int = 0
    framing: Count = 14
    loss: float = 0.0
    burst_loss: tuple[float, float, float, float] | None = None
    jitter: int = 0
    reorder: float = 0.0
    reorder_by: int = 0
    duplicate: float = 0.0
    mtu: Count = 1500
    most: int | None = None
    """Bytes of queue and wire together."""


@dataclass(frozen=True)
class TcpSpec:
    """A TCP flow, in the units of the simulator."""

    source: int
    target: int
    start: int
    stop: int | None
    ends: str | None
    size: int | None
    congestion_control: str
    control_options: tuple[tuple[str, str], ...]
    mss: Count
    ecn: str
    initial_cwnd: Count
    rto_min: int
    delayed_ack: int
    quick_ack: bool
    segmentation_offload: int | None
    limit_output: int | None
    ticks_per_second: int | None
    receive_buffer_max: int
    sack: bool
    timestamps: bool
    pacing: bool
    extra_delay: int


@dataclass(frozen=True)
class PageSpec:
    """A request-response connection, in the units of the simulator."""

    connection: TcpSpec
    request: int
    response: int
    objects: int
    think: int
    persistent: bool
    stop: int | None = None


@dataclass(frozen=True)
class UdpSpec:
    """A UDP flow, in the units of the simulator."""

    source: int
    target: int
    start: int
    stop: int | None
    rate: int
    payload: Count
    pattern: str
    on: int
    off: int
    ecn: int


_WORDS = {float: "a number", bool: "True or False", str: "a name", NoneType: "None"}


def _fields(spec: type) -> tuple[tuple[str, str, int, tuple[Any, ...]], ...]:
    """For each field its name, accepted values in words, upper end of numbers, and types."""
    found = []
    for name, hint in get_type_hints(spec, include_extras=True).items():
        end = hint.__metadata__[0] if hasattr(hint, "__metadata__") else 2**64
        bare = hint.__origin__ if hasattr(hint, "__metadata__") else hint
        types = get_args(bare) if get_origin(bare) is UnionType else (bare,)
        known = {**_WORDS, int: f"a whole number from 0 to {end - 1}"}
        words = [known.get(kind, "a tuple of four numbers") for kind in types]
        found.append((name, " or ".join(words), end, types))
    return tuple(found)


_FIELDS = {spec: _fields(spec) for spec in (Wire, TcpSpec, UdpSpec)}


def _is(value: object, kind: Any, end: int) -> bool:
    if get_origin(kind) is tuple:
        parts = get_args(kind)
        if parts[-1] is Ellipsis:
            return isinstance(value, tuple) and all(_is(one, parts[0], end) for one in value)
        return (
            isinstance(value, tuple)
            and len(value) == len(parts)
            and all(_is(one, part, end) for one, part in zip(value, parts, strict=True))
        )
    if kind is int:
        try:
            return not isinstance(value, bool) and 0 <= operator.index(value) < end  # type: ignore[arg-type]
        except TypeError:
            return False
    if kind is float:
        return isinstance(value, int | float | np.number) and not isinstance(value, bool)
    if kind is bool:
        return isinstance(value, bool | np.bool_)
    return isinstance(value, kind)


def demand(spec: Wire | TcpSpec | UdpSpec, where: str) -> None:
    """Refuse invalid values where they are given; the simulator would refuse them only at the start of a run."""
    for name, words, end, types in _FIELDS[type(spec)]:
        value = getattr(spec, name)
        if not any(_is(value, one, end) for one in types):
            raise TidegateError(f"{where}: {name} is {value!r}; give {words}")


def demand_possible(spec: Wire | TcpSpec | UdpSpec | PageSpec, where: str, ends: tuple[str, str]) -> None:
    """Raise here what the simulator would raise when a run starts, by building a trial network of two hosts with these names.

    Flows have their ends at the nodes 0 and 1, and links have to be possible between hosts.
    """
    if not _possible(spec):
        try:
            _attempt(spec, ends)
        except TidegateError as error:
            said = str(error)
            raise TidegateError(
                f"{where}{said.removeprefix('flow 0')}"
                if said.startswith("flow 0")
                else said
                if said.startswith(where)
                else f"{where}: {said}"
            ) from None


@lru_cache(maxsize=1024)
def _possible(spec: Wire | TcpSpec | UdpSpec | PageSpec) -> bool:
    """Whether the simulator takes it: most networks have many of a kind."""
    try:
        _attempt(spec, ("a", "b"))
    except TidegateError:
        return False
    return True


def _attempt(spec: Wire | TcpSpec | UdpSpec | PageSpec, ends: tuple[str, str]) -> None:
    trial = _core.Simulation(0)
    a, b = (trial.host(name) for name in ends)
    if isinstance(spec, Wire):
        trial.link(a, b, spec, spec)
    elif isinstance(spec, TcpSpec):
        trial.tcp(spec)
    elif isinstance(spec, UdpSpec):
        trial.udp(spec)
    else:
        trial.page(spec)
