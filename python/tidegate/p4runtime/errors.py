"""Canonical errors: one of a whole call, or one for each update of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NoReturn

import grpc

from tidegate._core import TidegateError
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
# What the engine says of a refused write.
KINDS = {
    "invalid": Code.INVALID_ARGUMENT,
    "out of range": Code.OUT_OF_RANGE,
    "not found": Code.NOT_FOUND,
    "exists": Code.ALREADY_EXISTS,
    "full": Code.RESOURCE_EXHAUSTED,
    "denied": Code.PERMISSION_DENIED,
    "in use": Code.FAILED_PRECONDITION,
}


# gRPC's clients take 8 KB of metadata, with errors and their details in it, unless they are told to take more.
MOST_TEXT = 2000
MOST_DETAILS = 3000


class P4Error(TidegateError):
    """A request is refused: with what code, and what would be right."""

    def __init__(self, code: Code, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


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
            detail = p4.Error(canonical_code=error.code, message=error.message[:words], space="tidegate")
        status.details.add().Pack(detail)
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(grpc.StatusCode.UNKNOWN, status.message)
    raise AssertionError("gRPC ends the call")


def details(error: grpc.RpcError) -> list[Any]:
    """A client's view of what `abort_batch` said: a `p4.Error` for each part."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            found = []
            for detail in p4.Status.FromString(value).details:
                one = p4.Error()
                detail.Unpack(one)
                found.append(one)
            return found
    return []
