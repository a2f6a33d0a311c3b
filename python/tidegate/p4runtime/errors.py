"""Canonical errors: one of a whole call, or one for each update of a batch."""

from __future__ import annotations

import bisect
import itertools
import urllib.parse
from collections.abc import Iterable, Sequence
from enum import IntEnum
from typing import Any, NoReturn

import grpc

from tidegate._core import TidegateError
from tidegate.control.fixed import Unsupported
from tidegate.p4runtime.messages import p4


class Code(IntEnum):
    """google.rpc.Code, as far as it is used."""

    OK = 0
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    FAILED_PRECONDITION = 9
    ABORTED = 10
    OUT_OF_RANGE = 11
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14


STATUS = {code: next(s for s in grpc.StatusCode if s.value[0] == code) for code in Code}
SPACE = "tidegate"
"""Of `p4.Error`: whose details they are."""
# Codes of the engine's kinds of errors.
KINDS = {
    "invalid": Code.INVALID_ARGUMENT,
    "out of range": Code.OUT_OF_RANGE,
    "not found": Code.NOT_FOUND,
    "exists": Code.ALREADY_EXISTS,
    "full": Code.RESOURCE_EXHAUSTED,
    "denied": Code.PERMISSION_DENIED,
    "in use": Code.FAILED_PRECONDITION,
    "unsupported": Code.UNIMPLEMENTED,
}


KIND_OF = {code: kind for kind, code in KINDS.items()}

# By default gRPC's clients accept 8 KB of metadata, which includes errors and their details.
MOST_TEXT = 2000
MOST_MESSAGE = 300
PLAIN = "".join(chr(code) for code in range(0x20, 0x7F) if chr(code) != "%")
"""Letters that gRPC sends as they are in a message."""
MOST_DETAILS = 7700
IN_BASE64 = MOST_DETAILS * 3 // 4
"""Of clients that get binary metadata as text: all that are not made with gRPC's C library, as those in Python and C++ are."""
ROOM = "tidegate-details-bytes"
"""Metadata of a call: how many bytes of details its client takes."""
LARGEST_DETAILS = 2 << 20
"""Of a client that says so: codes of each of the requests of a read."""
MOST_TEXTS, MOST_REPEATED = 256 << 10, 200
"""Bytes of the texts in it; characters of each, if not all fit."""


class P4Error(TidegateError):
    """A request is refused: with what code, and what would be right.

    It has the parts of every refused operation: `kind`, `object`, `field` and `cure`.
    """

    def __init__(
        self, code: Code, message: str, *, object: str = "", field: str | None = None, cure: str = ""
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.kind = KIND_OF.get(code, "invalid")
        self.object = object
        self.field = field
        self.cure = cure

    @staticmethod
    def about(
        object: str, why: str, *, code: Code = Code.INVALID_ARGUMENT, field: str | None = None, cure: str = ""
    ) -> P4Error:
        """An error with its parts; the text is the reason and the cure."""
        return P4Error(code, f"{why}; {cure}" if cure else why, object=object, field=field, cure=cure)

    @staticmethod
    def unsupported(why: str, cure: str = "") -> P4Error:
        """What P4Runtime cannot carry, or this switch cannot do."""
        return NotCarried(Code.UNIMPLEMENTED, f"{why}; {cure}" if cure else why, cure=cure)

    @staticmethod
    def of(error: TidegateError) -> P4Error:
        """The engine's error, with its code."""
        if isinstance(error, P4Error):
            return error
        parts: Any = error
        return P4Error(
            KINDS[getattr(error, "kind", "invalid")],
            str(error),
            object=getattr(parts, "object", ""),
            field=getattr(parts, "field", None),
            cure=getattr(parts, "cure", ""),
        )

    def bare(self) -> P4Error:
        """Without where it was raised: an error that is kept would keep all that was at hand there, in a cycle where it is kept there."""
        self.__traceback__ = self.__context__ = self.__cause__ = None
        return self

    def detail(self, room: int) -> Any:
        """`p4.Error`; its words and parts as far as there is room for them."""
        detail = p4.Error(canonical_code=self.code, message=self.message[:room], space=SPACE)
        parts = p4.Struct()
        for name in ("object", "field", "cure"):
            if getattr(self, name):
                parts.fields[name].string_value = getattr(self, name)
        if parts.fields and len(self.message) + parts.ByteSize() <= room:
            detail.details.Pack(parts)
        return detail


class NotCarried(P4Error, Unsupported):
    """An operation that P4Runtime has no message for, or not with all of its fields."""


def told(detail: Any) -> P4Error:
    """The error in a `p4.Error` from a server; its parts, if the server sends them."""
    parts = p4.Struct()
    given = {}
    if detail.details.Unpack(parts):
        given = {name: parts.fields[name].string_value for name in parts.fields}
    made = NotCarried if detail.canonical_code == Code.UNIMPLEMENTED else P4Error
    known = {code.value for code in Code}
    code = Code(detail.canonical_code) if detail.canonical_code in known else Code.UNKNOWN
    return made(
        code,
        detail.message or code.name,
        object=given.get("object", ""),
        field=given.get("field"),
        cure=given.get("cure", ""),
    )


def invalid(message: str) -> P4Error:
    """INVALID_ARGUMENT."""
    return P4Error(Code.INVALID_ARGUMENT, message)


def abort(context: grpc.ServicerContext, error: P4Error) -> NoReturn:
    """End a call with an error that is of all of it."""
    context.abort(STATUS[error.code], error.message[:MOST_TEXT])
    raise AssertionError("gRPC ends the call")


def room_of(metadata: Iterable[tuple[str, str | bytes]]) -> int:
    """Bytes of details and message that a call's client takes, as its metadata say it."""
    room = IN_BASE64
    for key, value in metadata:
        if key == ROOM and isinstance(value, str) and value.isascii() and value.isdecimal():
            return min(int(value[:12]), LARGEST_DETAILS)
        if key == "user-agent" and "grpc-c/" in str(value):
            room = MOST_DETAILS
    return room


def abort_batch(context: grpc.ServicerContext, what: str, errors: Sequence[P4Error | None]) -> NoReturn:
    """End a call with what came of each of its parts: `None` is what was done."""
    status = batch_status(what, errors, room_of(context.invocation_metadata()))
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, status.message)
    raise AssertionError("gRPC ends the call")


def batch_status(what: str, errors: Sequence[P4Error | None], room: int = MOST_DETAILS) -> Any:
    """`google.rpc.Status` of a batch, of so many bytes at most with its message, which is sent twice.

    If not all texts fit, each is said once, of the first parts that have it, as long as there is room. If not all codes fit, those
    of the last parts are left out, and the message says which parts were refused.
    """
    failed = [index for index, error in enumerate(errors) if error is not None]
    first = errors[failed[0]]
    assert first is not None, "a batch of which nothing was refused has no status"
    message = f"{len(failed)} of {len(errors)} {what} were refused"
    status = p4.Status(code=Code.UNKNOWN, message=_short(f"{message}; the first: {first.message}"))
    left = room - _taken(status)
    whole = [_any(error and error.detail(MOST_TEXT)) for error in errors]
    if sum(map(_size, whole)) <= min(left, MOST_TEXTS):
        status.details.extend(whole)
        return status
    coded = [_any(error and p4.Error(canonical_code=error.code)) for error in errors]
    ends = list(itertools.accumulate(map(_size, coded)))
    count = bisect.bisect_right(ends, left)
    if count < len(errors):
        message += f" (those counted from 0: {_ranges(failed)}); details are of the first"
        status.message = _short(f"{message} {count}; the first: {first.message}")
        count = min(count, bisect.bisect_right(ends, room - _taken(status)))
        status.message = _short(f"{message} {count}; the first: {first.message}")
        left = room - _taken(status)
    left = min(left - ends[count - 1], MOST_TEXTS) if count else 0
    said: set[str] = set()
    for error, detail in zip(errors, coded[:count], strict=False):
        if error is not None and error.message not in said:
            told = _any(error.detail(MOST_REPEATED))
            more = _size(told) - _size(detail)
            if more <= left:
                said.add(error.message)
                left -= more
                detail = told
        status.details.append(detail)
    return status


def _any(detail: Any) -> Any:
    """A `p4.Error` as `google.protobuf.Any`, without a domain, which would be most of it; OK if there is none."""
    packed = p4.Any()
    packed.Pack(detail or p4.Error(canonical_code=Code.OK), type_url_prefix="")
    return packed


def _taken(status: Any) -> int:
    """Bytes of a status without details, and of its message in gRPC's own form."""
    return int(status.ByteSize()) + len(_encoded(status.message))


def _encoded(message: str) -> str:
    """A message as gRPC sends it."""
    return urllib.parse.quote(message, safe=PLAIN)


def _short(message: str) -> str:
    """The start of a message."""
    sizes = itertools.accumulate(len(_encoded(letter)) for letter in message)
    return message[: sum(size <= MOST_MESSAGE for size in sizes)]


def _size(detail: Any) -> int:
    """Bytes of a detail in a status, at most."""
    size: int = detail.ByteSize()
    return size + (2 if size < 128 else 3)


def _ranges(numbers: Sequence[int]) -> str:
    """Ascending numbers as text, some of them if they are many."""
    parts: list[str] = []
    at = 0
    while at < len(numbers):
        end = at
        while end + 1 < len(numbers) and numbers[end + 1] == numbers[end] + 1:
            end += 1
        parts.append(str(numbers[at]) if end == at else f"{numbers[at]}-{numbers[end]}")
        at = end + 1
        if sum(map(len, parts)) > MOST_REPEATED // 2 and at < len(numbers):
            return ", ".join([*parts, "..."])
    return ", ".join(parts)


def details(error: grpc.RpcError) -> list[Any]:
    """The `p4.Error` of each part of a batch, from the metadata that `abort_batch` sends."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            found = []
            for detail in p4.Status.FromString(value).details:
                one = p4.Error()
                detail.Unpack(one)
                found.append(one)
            return found
    return []
