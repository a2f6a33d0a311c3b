"""Canonical errors: one of a whole call, or one for each update of a batch."""

from __future__ import annotations

from collections.abc import Sequence
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
MOST_DETAILS = 3000


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


def abort_batch(context: grpc.ServicerContext, what: str, errors: Sequence[P4Error | None]) -> NoReturn:
    """End a call with what came of each of its parts: `None` is what was done."""
    failed = [error for error in errors if error is not None]
    message = f"{len(failed)} of {len(errors)} {what} were refused; the first: {failed[0].message}"
    status = p4.Status(code=Code.UNKNOWN, message=message[:500])
    # What does not fit is left out: first the words, never the codes.
    words = MOST_DETAILS // len(failed)
    for error in errors:
        detail = p4.Error(canonical_code=Code.OK)
        if error is not None:
            detail = error.detail(words)
        # Without a domain, which would be most of it.
        status.details.add().Pack(detail, type_url_prefix="")
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, status.message)
    raise AssertionError("gRPC ends the call")


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
