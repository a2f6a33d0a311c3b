"""A field that switches fill on a packet's way: its place in the packet, its size, what has room for it. README.md has the layout to the bit."""

from __future__ import annotations

from typing import Literal, NamedTuple

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts.shims import Option

Carrier = Literal["option", "shim"]

OPTION_KIND = 30
"""Of the IPv4 option (RFC 4727)."""
ECHO_KIND = 253
"""Of the TCP option that brings the field back (RFC 6994)."""
SHIM_TYPE = 0x88B5
"""EtherType of the shim header (IEEE 802, for local experiments)."""
MOST_HOPS = 63
VERSION = 0
IP_OPTIONS = 40
"""Bytes of options in an IPv4 header."""
ECHO_ROOM = 24
"""Bytes of data for an echo: 40 of TCP options, less 12 for timestamps, less kind, length and identifier (RFC 6994)."""


class Stamp(NamedTuple):
    """A field that has been read."""

    codes: tuple[int, ...]
    """One code; of a vector, one of each hop that has stamped, in order."""
    hops: int
    """Switches that have stamped, at most 63. 0: the packet is not stamped, which differs from an idle path."""

    @property
    def code(self) -> int:
        """The largest code."""
        return max(self.codes, default=0)


class Scale(NamedTuple):
    """Scale of a port, as the action `stamp` of `stamp.p4` takes it."""

    multiplier: int
    """The scaled quantity is `(quantity * multiplier) >> shift`."""
    shift: int
    frame: int
    """Bytes of the largest Ethernet frame."""
    window: int = 0
    """A window of the utilisation is 2^window ticks of the switch's clock."""
    ratio: int = 0
    """Windows in a base RTT, in 1/65536."""


class Field:
    """What all formats have in common."""

    carrier: Carrier
    """An IPv4 `option`, or a `shim` header behind Ethernet."""
    capacity: int
    """Hops that a vector has room for."""

    @property
    def fold(self) -> str:
        """How the codes of several hops become one; `vector`: each has its own."""
        raise NotImplementedError

    @property
    def width(self) -> int:
        """Bytes of a code."""
        raise NotImplementedError

    @property
    def defines(self) -> list[str]:
        """Definitions that specialise `stamp.p4`."""
        raise NotImplementedError

    def scale(self, rate: units.Rate, *, tick: units.Time, mtu: int) -> Scale:
        """The scale of a port at a link of a rate, in a switch that measures times in units of `tick`."""
        raise NotImplementedError

    @property
    def control_options(self) -> dict[str, str | int]:
        """The format, for the `control_options` of a simulated congestion control."""
        raise NotImplementedError

    @property
    def size(self) -> int:
        """Bytes of the field: the value, and the byte with version and hops."""
        return self.width * self.capacity + 1

    def demand_carrier(self) -> None:
        """Raise `TidegateError` if the carrier has no room for the field."""
        if self.carrier == "option" and 2 + self.size > IP_OPTIONS:
            raise TidegateError(
                f"the stamp is an option of {2 + self.size} bytes; an IPv4 header has room for {IP_OPTIONS}. "
                "Give fewer hops or bits, or the carrier shim"
            )

    @property
    def option(self) -> Option:
        """The field's option or shim header, for the shims of a host."""
        return Option("ip", OPTION_KIND) if self.carrier == "option" else Option("shim", SHIM_TYPE)

    @property
    def echo(self) -> Option:
        """The option that brings the field back to the sender."""
        return Option("tcp", ECHO_KIND)

    @property
    def blank(self) -> bytes:
        """The field as the sender writes it."""
        return bytes(self.size)

    def read(self, data: bytes) -> Stamp:
        """The field in the data of an option. Raises `TidegateError` if it has not this format."""
        if len(data) != self.size or data[-1] >> 6 != VERSION:
            raise TidegateError(f"{data.hex()} is not a stamp of {self.size} bytes, version {VERSION}")
        hops = data[-1] & MOST_HOPS
        codes = [int.from_bytes(data[at : at + self.width]) for at in range(0, self.size - 1, self.width)]
        return Stamp(tuple(codes[:hops] if self.fold == "vector" else codes), hops)

    @property
    def wire_bytes(self) -> int:
        """Bytes that the field adds to a packet: with type, length and padding."""
        return -(-(2 + self.size) // 4) * 4 if self.carrier == "option" else 3 + self.size

    @property
    def echo_bytes(self) -> int:
        """Bytes that the echo adds to an ACK: with kind, length and padding."""
        return -(-(2 + self.size) // 4) * 4

    def overhead(self, packet: units.Size) -> float:
        """The field's share of a packet, of a size without it."""
        return self.wire_bytes / units.size(packet)

    def demand_room(self, *, mtu: int = 1500, ip_options: int = 0) -> None:
        """Raise `TidegateError` if the field or its echo has no room beside other IPv4 options and TCP's timestamps."""
        if self.carrier == "option" and 2 + self.size > IP_OPTIONS - ip_options:
            raise TidegateError(
                f"the stamp is an option of {2 + self.size} bytes; other options leave {IP_OPTIONS - ip_options} "
                f"of the {IP_OPTIONS} bytes in an IPv4 header"
            )
        if self.size > ECHO_ROOM:
            raise TidegateError(
                f"the echo of a stamp has {self.size} bytes; beside timestamps a TCP header has room for {ECHO_ROOM}"
            )
        if mtu < 52 + ip_options + self.wire_bytes + 8:
            raise TidegateError(
                f"an MTU of {mtu} has no room for payload behind headers of {52 + ip_options + self.wire_bytes} bytes"
            )

    def demand_hops(self, hops: int) -> None:
        """Raise `TidegateError` if a path has more hops than the field has room for."""
        if self.fold == "vector" and hops > self.capacity:
            raise TidegateError(
                f"a path has {hops} stamping switches, and the vector room for {self.capacity}; give more capacity"
            )
