"""Parts of table entries and of others: matches, counts, a controller's metadata, ports that are watched."""

from __future__ import annotations

from typing import Any

from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.schema import Field
from tidegate.p4runtime.values import canonical


def matches(fields: tuple[Field, ...], found: Any, where: str) -> list[Any]:
    """One match for each field: a value, a value and another, or `None` for what matches anything."""
    given = {match.field_id: match for match in found}
    if len(given) != len(found):
        raise invalid(f"{where}: a field is matched twice")
    out: list[Any] = []
    for field in fields:
        match = given.pop(field.id, None)
        if match is not None:
            out.append(_match(field, match, f"field {field.name or field.id} of {where}"))
        elif field.kind == "exact":
            named = f" ({field.name})" if field.name else ""
            raise invalid(f"{where}: field {field.id}{named} must be given, it is exact")
        else:
            out.append(None)
    if given:
        raise invalid(f"{where} has no field with the id {next(iter(given))}")
    return out


def _match(field: Field, match: Any, what: str) -> Any:
    kind = match.WhichOneof("field_match_type")
    if kind != field.kind:
        raise invalid(f"{what} is matched by {field.kind}, not by {kind or 'nothing'}")
    codec = field.codec
    if kind == "exact":
        return codec.to_switch(match.exact.value, what)
    if kind == "optional":
        return codec.to_switch(match.optional.value, what)
    if kind == "lpm":
        if match.lpm.prefix_len < 0:
            raise invalid(f"{what}: the prefix length {match.lpm.prefix_len} is negative")
        if match.lpm.prefix_len == 0:
            raise invalid(f"{what}: a prefix of length 0 matches anything; leave the field out")
        return codec.to_switch(match.lpm.value, what), canonical(match.lpm.prefix_len)
    if kind == "ternary":
        value, mask = (codec.to_switch(v, what) for v in (match.ternary.value, match.ternary.mask))
        bits = int.from_bytes(mask)
        if bits == 0:
            raise invalid(f"{what}: a mask of 0 matches anything; leave the field out")
        if int.from_bytes(value) & ~bits:
            raise invalid(f"{what}: the value has bits that the mask has not")
        return value, mask
    low, high = (codec.to_switch(v, what) for v in (match.range.low, match.range.high))
    first, last = int.from_bytes(low), int.from_bytes(high)
    if first > last:
        raise invalid(f"{what}: the range ends before it starts")
    if first == 0 and last == (1 << codec.width) - 1:
        raise invalid(f"{what}: the whole range matches anything; leave the field out")
    return low, high


def add_matches(to: Any, fields: tuple[Field, ...], found: list[Any]) -> None:
    """Adds a `p4.FieldMatch` for each field that does not match anything."""
    for field, match in zip(fields, found, strict=True):
        if match is None:
            continue
        message, codec = to.add(field_id=field.id), field.codec
        if field.kind == "exact":
            message.exact.value = codec.to_client(match)
        elif field.kind == "optional":
            message.optional.value = codec.to_client(match)
        elif field.kind == "lpm":
            message.lpm.value = codec.to_client(match[0])
            message.lpm.prefix_len = int.from_bytes(match[1])
        elif field.kind == "ternary":
            message.ternary.value, message.ternary.mask = map(codec.to_client, match)
        else:
            message.range.low, message.range.high = map(codec.to_client, match)


def counts(data: Any) -> tuple[int, int]:
    """Packets and bytes."""
    if data.packet_count < 0 or data.byte_count < 0:
        raise invalid("a count is negative")
    return data.packet_count, data.byte_count


MOST_METADATA = 1024
"""Bytes of a controller's metadata of an entry or a group, which are kept as they are."""


MOST_SHARES = 4096
"""Members of a group, or actions of an entry's set, as the engine has it."""
MOST_WEIGHT = 65_536
"""Their weights together."""


def few(shares: Any) -> None:
    """Refuse more members or actions than a group or a set has room for."""
    if len(shares) > MOST_SHARES:
        why = f"{len(shares)} members or actions of a group are more than {MOST_SHARES}"
        raise P4Error(Code.RESOURCE_EXHAUSTED, why)


def bounded(metadata: bytes) -> bytes:
    """A controller's metadata, refused if there is too much of it."""
    if len(metadata) > MOST_METADATA:
        raise P4Error(
            Code.RESOURCE_EXHAUSTED, f"{len(metadata)} bytes of metadata are more than {MOST_METADATA}"
        )
    return metadata


def note(entry: Any) -> bytes:
    """Controller metadata, as the engine keeps it."""
    if not entry.controller_metadata and not entry.metadata:
        return b""
    kept: bytes = entry.controller_metadata.to_bytes(8) + bounded(entry.metadata)
    return kept


def fill_note(entry: Any, kept: bytes) -> None:
    """The reverse."""
    if kept:
        entry.controller_metadata, entry.metadata = int.from_bytes(kept[:8]), kept[8:]


def note_parts(kept: bytes) -> tuple[int, bytes]:
    """`controller_metadata` and `metadata` of a note: its first 8 bytes, and the rest."""
    if kept and (len(kept) < 8 or kept == bytes(8)):
        raise P4Error.unsupported(
            f"a note of {kept!r} has no form in P4Runtime", "give 8 bytes or more, and not 8 zeros"
        )
    return int.from_bytes(kept[:8]), kept[8:]


def demand_unwatched(share: Any) -> None:
    """Refuse a member that depends on a port: ports do not go down here, so that it would be chosen all the same."""
    if share.watch_port or share.watch:
        raise P4Error.unsupported("ports do not go down here: none can be watched", "leave watch_port empty")


def watch_of(share: Any) -> bytes:
    """The port that a member depends on, as it was written."""
    kind = share.WhichOneof("watch_kind")
    if kind == "watch":
        number: int = share.watch
        return b"w" + number.to_bytes(4, signed=True)
    return b"p" + share.watch_port if kind == "watch_port" else b""


def fill_watch(share: Any, kept: bytes) -> None:
    """The reverse."""
    if kept[:1] == b"w" and len(kept) == 5:
        share.watch = int.from_bytes(kept[1:], signed=True)
    elif kept[:1] == b"p":
        share.watch_port = kept[1:]


def carried(watch: bytes) -> bytes:
    """A port that a member depends on, if P4Runtime has a form for it."""
    if watch and watch[:1] != b"p" and not (watch[:1] == b"w" and len(watch) == 5):
        raise P4Error.unsupported(f"{watch!r} is not a port that P4Runtime watches", "leave it empty")
    return watch
