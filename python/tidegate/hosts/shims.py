"""Stock shims: what an agent does with each packet of its host.

They are written in Rust for the simulator, and in C (BPF) for real hosts; Python only says which, with what parameters.
The first of an agent's shims is next to TCP: packets that are sent pass them from first to last, packets that come from
last to first.

| shim | what it does |
|---|---|
| `Insert` | puts an option on packets that the host sends |
| `Echo` | reads an option of packets that come, and sends its data back in another |
| `Report` | tells the agent of an option's data, whenever it changes; can keep packets that are for the agent from TCP |
| `Check` | puts a keyed check into an option, and takes options with a wrong one off; in the simulator only |
| `Signal` | hands an option's data to the connection's congestion control, before the ACK that it came with |

An option can also be a header of its own between Ethernet and IP, which all hosts of a closed network know: see `Option`. Room for
options on data packets comes off the connection's MSS; the MSS that a SYN says stays, as in Linux. TCP's own options come
first: on an ACK with SACK blocks there may be no room, and the option is left out and counted (`Attached.counts`).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

from tidegate._core import TidegateError

Kind = Literal["syn", "syn-ack", "data", "ack", "udp"]
"""Kinds of packets: `data` is TCP with payload, `ack` TCP with neither payload nor SYN."""


SHIM_DATA = 64
"""Bytes of data that a shim header has room for."""
TAG_DATA = 2
"""Bytes of data of a tag."""


class Option(NamedTuple):
    """An option: the header that it stands in, and its kind; or a header of its own between Ethernet and IP, and its EtherType.

    `shim`: EtherType, the payload's EtherType, length in a byte, data. `tag`: EtherType, two bytes of data, the payload's EtherType.
    A packet has one of them at most, and a host that does not know it drops the packet, as a router does. In the simulator only.
    """

    place: Literal["ip", "tcp", "shim", "tag"]
    kind: int

    @property
    def room(self) -> int:
        """Bytes of data that it has room for, if no other option is there."""
        return {"shim": SHIM_DATA, "tag": TAG_DATA}.get(self.place, 38)


@dataclass(frozen=True)
class Insert:
    """Puts an option on each packet of some kinds: `data`, or with `clock` the time of sending in nanoseconds, in 8 bytes.

    With `once`, a connection's first packet of these kinds alone has it: a SYN that is sent again goes without, in case somebody on
    the path drops packets with options.
    """

    what: ClassVar[str] = "insert"
    option: Option
    data: bytes = b""
    clock: bool = False
    on: tuple[Kind, ...] = ("data",)
    once: bool = False

    def __post_init__(self) -> None:
        if self.clock and self.data:
            raise TidegateError("an Insert has either `data` or `clock`; leave one out")
        length, room = 8 if self.clock else len(self.data), self.option.room
        if self.option.place == "tag" and length != TAG_DATA:
            raise TidegateError(f"a tag has {TAG_DATA} bytes of data, not {length}")
        if length > room:
            what = "a shim header" if self.option.place == "shim" else "an option"
            raise TidegateError(f"{what} has room for {room} bytes of data, not for {length}")


@dataclass(frozen=True)
class Echo:
    """Reads `read` of packets that come, and puts its data into `write` on packets of some kinds that leave by the same connection.

    `latest` echoes the last value on every packet, `max` the largest since the last echo, once. `longest` is how many bytes are
    echoed at most; longer data is left alone.
    """

    what: ClassVar[str] = "echo"
    read: Option
    write: Option
    keep: Literal["latest", "max"] = "latest"
    longest: int = 8
    on: tuple[Kind, ...] = ("ack",)


@dataclass(frozen=True)
class Report:
    """Tells the agent of an option's data (`Agent.on_report`) when it is another than the connection's last.

    `consume` is a mask and a value: TCP does not see a packet of which the data's first byte, masked, is that value.
    """

    what: ClassVar[str] = "report"
    option: Option
    consume: tuple[int, int] | None = None
    each: bool = False
    """Tells of each option, not only of one that differs; of several in a packet, too, up to three in an IPv4 header."""

    def __post_init__(self) -> None:
        if self.consume is not None and not all(0 <= byte < 256 for byte in self.consume):
            raise TidegateError(
                f"consume={self.consume} is a mask and a value of one byte; give two from 0 to 255"
            )


@dataclass(frozen=True)
class Signal:
    """Hands an option's data to the connection's congestion control."""

    what: ClassVar[str] = "signal"
    option: Option


@dataclass(frozen=True)
class Check:
    """Puts a keyed check into an option that the host sends, and takes options with a wrong one off packets that come.

    The option has 10 bytes of data, of which the last 3 are the check: HalfSipHash-2-4 (see `crates/transport/src/host/check.rs`).
    The second bit of the data says which of two keys, of 64 bits, it is made with; `signing` is that of what is sent.
    """

    what: ClassVar[str] = "check"
    option: Option
    keys: tuple[int, int]
    signing: Literal[0, 1] = 0

    def __post_init__(self) -> None:
        if not all(0 <= key < 2**64 for key in self.keys):
            raise TidegateError("a key has 64 bits; give two numbers from 0 to 2^64 - 1")


Shim = Insert | Echo | Report | Signal | Check
