"""The pacing option, as bytes and as numbers. README.md describes it to the bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from ipaddress import ip_address
from typing import Literal

from tidegate._core import TidegateError
from tidegate.hosts.shims import Option

OPTION = Option("ip", 94)
OPTION6 = 0x3E
"""Its type in IPv6's hop-by-hop options header."""
LENGTH = 12
"""Bytes of the option in the packet."""
VERSION = 0
MANTISSA = 11
LARGEST = 0x7FF << 20
"""The largest rate in kbit/s, of the exponents that 32 bits hold."""
MOST_WEIGHT = 65_535
CONSUMED = (0xB8, VERSION << 7 | 2 << 3)
"""Mask and value of the data's first byte of a notice, which TCP does not see."""
FOR_ALL = 1
"""In place of a NOTICE's hops: it is for all flows of the host; see `PacingOption.hops`."""
APPLICATION = 255
"""In place of a link's number: the application limits the flow."""


class Kind(IntEnum):
    """What an option says."""

    JOIN = 0
    """A host's SYN: this flow wants to be paced."""
    TRACE = 1
    """A switch's, on the SYN-ACK: what the narrowest link gives."""
    NOTICE = 2
    """A switch's: what a link gives has changed."""
    UPDATE = 3
    """A host's: what the flow takes, and which link has told it so."""
    SEEN = 4
    """A host's: a link's notice has come."""


def packed(value: int, *, up: bool = False) -> int:
    """A number in 16 bits: 5 of exponent, 11 of mantissa; rounded down or up.

    Raises TidegateError where it is negative or too large.
    """
    if not 0 <= value <= LARGEST:
        raise TidegateError(f"{value} is no number for a pacing option; give one from 0 to {LARGEST}")
    exponent = max(0, value.bit_length() - MANTISSA)
    mantissa = value >> exponent
    if up and mantissa << exponent != value:
        mantissa += 1
        if mantissa >> MANTISSA:
            mantissa, exponent = mantissa >> 1, exponent + 1
    return exponent << MANTISSA | mantissa


def number(bits: int) -> int:
    """What 16 bits say."""
    return (bits & 0x7FF) << (bits >> MANTISSA)


@dataclass(frozen=True)
class PacingOption:
    """An option's fields. Rates are in kbit/s of frames."""

    kind: Kind
    rate: int = 0
    """JOIN: 0. UPDATE: what the flow takes. TRACE, NOTICE: what the link's flows share."""
    weight: int = 1
    """JOIN, UPDATE: the flow's. TRACE, NOTICE: the sum of those of the flows that share."""
    link: int = 0
    """The link that says it, or that the flow is limited by; 0: none, 255: the application."""
    sequence: int = 0
    """NOTICE, SEEN: counts the link's changes, in 8 bits."""
    hops: int = 0
    """Of a trace: the managed links that it has passed; 7 stands for more. Of a NOTICE and a SEEN, `FOR_ALL`: it is for all flows of
    the host that have a share of the link."""
    key: int = 0
    """Which of two keys the check is made with."""
    check: int = 0
    """24 bits; see `checked`."""

    @property
    def data(self) -> bytes:
        """What stands behind the option's type and length: 10 bytes."""
        return self._words() + bytes([self.sequence]) + self.check.to_bytes(3)

    def _words(self) -> bytes:
        head = bytes([VERSION << 7 | self.key << 6 | self.kind << 3 | self.hops, self.link])
        return head + packed(self.rate).to_bytes(2) + packed(self.weight, up=True).to_bytes(2)

    def checked(self, key: int, host: tuple[str, int], peer: tuple[str, int], bound: int = 0) -> PacingOption:
        """The option with its check, for a flow from a host to its peer (addresses and ports).

        Addresses are of IPv4 or of IPv6. `bound` is a SYN's sequence number, or a SYN-ACK's acknowledgment number; 0 for other packets.
        """
        words = (
            *(*_words(host[0]), host[1] << 16 | peer[1]),
            *(*_words(peer[0]), bound),
            int.from_bytes(self._words()[:4]),
            int.from_bytes(self._words()[4:]) << 16 | self.sequence << 8,
        )
        return replace(self, check=halfsiphash(key, words) & 0xFFFFFF)

    @staticmethod
    def of(data: bytes) -> PacingOption | None:
        """Read an option's data; None where it has another length or version, or a kind that there is not."""
        kind = data[0] >> 3 & 7 if data else 0
        if len(data) != LENGTH - 2 or data[0] >> 7 != VERSION or kind > max(Kind):
            return None
        return PacingOption(
            Kind(kind),
            number(int.from_bytes(data[2:4])),
            number(int.from_bytes(data[4:6])),
            link=data[1],
            sequence=data[6],
            hops=data[0] & 7,
            key=data[0] >> 6 & 1,
            check=int.from_bytes(data[7:10]),
        )


@dataclass(frozen=True)
class Keys:
    """The keys of a network: two, so that one can be changed while the other is used."""

    values: tuple[int, int]
    """64 bits each."""
    signing: Literal[0, 1] = 0
    """Which one checks are made with."""

    def __post_init__(self) -> None:
        if not all(0 <= key < 2**64 for key in self.values):
            raise TidegateError("a key has 64 bits; give two numbers from 0 to 2^64 - 1")


def _words(address: str) -> list[int]:
    """The 32-bit words of an address: one of IPv4, four of IPv6."""
    packed = ip_address(address).packed
    return [int.from_bytes(packed[at : at + 4]) for at in range(0, len(packed), 4)]


def halfsiphash(key: int, words: Sequence[int]) -> int:
    """HalfSipHash-2-4 of 32-bit words, with 32 bits of result. `key` has 64 bits; its first word is the high half."""
    high, low = key >> 32, key & 0xFFFFFFFF
    v = [high, low, high ^ 0x6C796765, low ^ 0x74656462]
    for word in (*words, 4 * len(words) << 24 & 0xFFFFFFFF):
        v[3] ^= word
        _rounds(v, 2)
        v[0] ^= word
    v[2] ^= 0xFF
    _rounds(v, 4)
    return v[1] ^ v[3]


def _rounds(v: list[int], count: int) -> None:
    for _ in range(count):
        for a, b, c, d, first, second in ((0, 1, 2, 3, 5, 8), (2, 1, 0, 3, 13, 7)):
            v[a], v[c] = v[a] + v[b] & 0xFFFFFFFF, v[c] + v[d] & 0xFFFFFFFF
            v[b] = _left(v[b], first) ^ v[a]
            v[d] = _left(v[d], second) ^ v[c]
            v[a] = _left(v[a], 16)


def _left(word: int, by: int) -> int:
    return (word << by | word >> 32 - by) & 0xFFFFFFFF
