"""What `stamp.p4` does to a packet, in plain Python, for its tests. It has its own parser, and computes checksums anew."""

from __future__ import annotations

from typing import Literal

from tidegate.systems.stamping.field import MOST_HOPS, OPTION_KIND, SHIM_TYPE, VERSION, Scale
from tidegate.systems.stamping.format import Format

Reason = Literal["malformed", "repeated", "full", "version"]
REASONS: tuple[Reason, ...] = ("malformed", "repeated", "full", "version")
"""Why a packet is not stamped: in the order of the counter's cells."""


def folded(form: Format, field: bytes, quantity: int, scale: Scale) -> bytes:
    """A field after a switch has stamped it."""
    code = form.code(quantity * scale.multiplier >> scale.shift)
    hops = field[-1] & MOST_HOPS
    if form.fold == "vector":
        at = hops * form.width
        value = field[:at] + code.to_bytes(form.width) + field[at + form.width : -1]
    else:
        before = int.from_bytes(field[:-1])
        after = max(before, code) if form.fold in ("max", "ind") else min(before + code, form.largest)
        value = after.to_bytes(form.width)
    return value + bytes([VERSION << 6 | min(hops + 1, MOST_HOPS)])


def stamped(form: Format, frame: bytes, quantity: int, scale: Scale) -> tuple[bytes, Reason | None]:
    """A frame after it has left by a port that stamps, and why it is not stamped although it has a field, or something like one."""
    at = find(form, frame)
    if not isinstance(at, int):
        return frame, at
    field = frame[at : at + form.size]
    if field[-1] >> 6 != VERSION:
        return frame, "version"
    if form.fold == "vector" and field[-1] & MOST_HOPS >= form.capacity:
        return frame, "full"
    out = frame[:at] + folded(form, field, quantity, scale) + frame[at + form.size :]
    return (with_checksum(out) if form.carrier == "option" else out), None


def find(form: Format, frame: bytes) -> int | Reason | None:
    """Where the field begins, why it is of no use, or `None` if there is none."""
    at = 14
    if len(frame) < at:
        return None
    kind = int.from_bytes(frame[12:14])
    if kind == 0x8100 and len(frame) >= 18:
        kind, at = int.from_bytes(frame[16:18]), 18
    if form.carrier == "shim":
        if kind != SHIM_TYPE:
            return None
        if len(frame) < at + 3:
            return "malformed"
        if int.from_bytes(frame[at : at + 2]) == SHIM_TYPE:
            return "repeated"
        return at + 3 if frame[at + 2] == form.size and len(frame) >= at + 3 + form.size else "malformed"
    if kind != 0x0800 or len(frame) < at + 20 or frame[at] >> 4 != 4 or frame[at] & 15 <= 5:
        return None
    end = at + (frame[at] & 15) * 4
    if len(frame) < end:
        return "malformed"
    return _find_option(form, frame, at + 20, end)


def _find_option(form: Format, frame: bytes, at: int, end: int) -> int | Reason | None:
    found = None
    while at < end and frame[at] != 0:
        if frame[at] == 1:
            at += 1
            continue
        if frame[at] == OPTION_KIND and found is not None:
            return "repeated"
        length = frame[at + 1] if at + 1 < end else 0
        if length < 2 or at + length > end:
            return "malformed"
        if frame[at] == OPTION_KIND:
            if length != 2 + form.size:
                return "malformed"
            found = at + 2
        at += length
    return found


def with_checksum(frame: bytes) -> bytes:
    """A frame with the right checksum in its IPv4 header."""
    at = 18 if frame[12:14] == b"\x81\x00" else 14
    header = bytearray(frame[at : at + (frame[at] & 15) * 4])
    header[10:12] = bytes(2)
    total = sum(int.from_bytes(header[i : i + 2]) for i in range(0, len(header), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    header[10:12] = (total ^ 0xFFFF).to_bytes(2)
    return frame[:at] + bytes(header) + frame[at + len(header) :]
