"""Operations done over a connection to a P4Runtime server: what the engine offers of a switch, by messages."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from tidegate._core import TidegateError
from tidegate.control import MatchKind
from tidegate.control import operations as op
from tidegate.p4runtime.connection import Connection, Refused
from tidegate.p4runtime.errors import Code, P4Error, told
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.overlay import Overlay
from tidegate.p4runtime.schema import Schema, named
from tidegate.p4runtime.translate.arms import Families, arm_of
from tidegate.p4runtime.translate.base import Updates
from tidegate.p4runtime.translate.tables import no_match

BATCH = 2000
"""Updates of one message."""


class RemoteCore:
    """Does operations by P4Runtime. Errors have the same parts as the engine's."""

    def __init__(self, connection: Connection, schema: Schema) -> None:
        self._connection = connection
        self._schema = schema
        self._families = Families(schema, self.act, self._look)
        self._waiting: list[tuple[int, Updates]] = []
        self._answers: list[Any] = []
        self._overlay: Overlay | None = None
        self._started = time.monotonic_ns()

    def now(self) -> int:
        """The switch's time in picoseconds; of a server that does not tell it, the time since the connection."""
        told = self._connection.now()
        return (time.monotonic_ns() - self._started) * 1000 if told is None else told

    def act(self, operation: object) -> Any:
        """Do an operation; return its answer."""
        (answer,) = self.act_each([operation])
        if isinstance(answer, TidegateError):
            raise answer
        return answer

    def act_each(self, operations: Sequence[object]) -> list[Any]:
        """Do operations in order; for each its answer, or the error that `act` would have raised."""
        self._answers = [None] * len(operations)
        self._waiting = []
        for index, operation in enumerate(operations):
            try:
                made = self._translate(operation)
            except TidegateError as error:
                self._answers[index] = error
                continue
            if isinstance(made, Updates):
                self._waiting.append((index, made))
            else:
                self._answers[index] = made
        self._flush()
        return self._answers

    def _translate(self, operation: Any) -> Any:
        made = arm_of(operation).do(self._families, operation)
        if isinstance(made, p4.StreamMessageRequest):
            self._flush()
            self._connection.send(made)
            return None
        return made

    def _flush(self) -> None:
        """Write the updates that wait with `CONTINUE_ON_ERROR`, and store the answer or the error of each operation."""
        waiting, self._waiting = self._waiting, []
        if self._overlay is not None:
            return
        updates = [update for _, made in waiting for update in made.updates]
        errors: list[TidegateError | None] = []
        for at in range(0, len(updates), BATCH):
            part = updates[at : at + BATCH]
            try:
                self._connection.write_updates(part)
                errors += [None] * len(part)
            except Refused as refused:
                errors += _each(refused, len(part))
        at = 0
        for index, made in waiting:
            own = errors[at : at + len(made.updates)]
            at += len(made.updates)
            wrong = next((error for error in own if error is not None), None)
            if wrong is None:
                self._answers[index] = made.done()
            else:
                self._answers[index] = made.no_entry if made.no_entry and no_match(wrong) else wrong

    def act_all(self, operations: Sequence[object]) -> list[Any]:
        """Do all operations, or none, without a packet between them (`DATAPLANE_ATOMIC`).

        The error of the one that is refused has its number as `index`. What reads, reads the switch as the operations before it
        leave it.
        """
        handles = self._families.handles.saved()
        try:
            answers, updates = self._prepare(operations)
            self._write_all(updates)
        except BaseException:
            self._families.handles.restore(handles)
            raise
        return answers

    def _prepare(self, operations: Sequence[object]) -> tuple[list[Any], list[tuple[int, Any]]]:
        """Answers of operations, and their updates with the number of the operation."""
        self._overlay = overlay = Overlay()
        answers: list[Any] = []
        updates: list[tuple[int, Any]] = []
        try:
            for index, operation in enumerate(operations):
                try:
                    if isinstance(operation, op.PacketOut):
                        cure = "leave it out of a batch that is to be done whole"
                        raise P4Error.unsupported(f"`{operation.op}` cannot be undone", cure)
                    made = self._translate(operation)
                except TidegateError as error:
                    raise _at(index, error) from None
                if isinstance(made, Updates):
                    overlay.extend(made.updates)
                    updates += [(index, update) for update in made.updates]
                    made = made.done()
                answers.append(made)
        finally:
            self._overlay = None
        return answers, updates

    def _write_all(self, updates: Sequence[tuple[int, Any]]) -> None:
        if not updates:
            return
        try:
            self._connection.write_updates([update for _, update in updates], "DATAPLANE_ATOMIC")
        except Refused as refused:
            for (index, _), error in zip(updates, _each(refused, len(updates)), strict=True):
                if error is not None and getattr(error, "code", None) != Code.ABORTED:
                    raise _at(index, error) from None
            raise

    def _look(self, *entities: Any) -> list[Any]:
        """Entities like those that are given, as they are after what was asked for before."""
        if self._overlay is None:
            self._flush()
        if not entities:
            return []
        try:
            found = self._connection.read(*entities)
        except Refused as refused:
            wrong = [one for one in refused.errors if one.canonical_code]
            if not wrong:
                raise
            if any(one.canonical_code != Code.NOT_FOUND for one in wrong):
                raise told(wrong[0]) from None
            found = []
        return found if self._overlay is None else self._overlay.over(entities, found)

    def table_keys(self, table: str) -> list[tuple[str, MatchKind, int]]:
        """Name, match kind and width of each key of a table."""
        found = named(self._schema.tables, table, "table")
        return [(field.name, field.kind, field.codec.width) for field in found.fields]

    def command(self, line: str) -> str:
        """Not by P4Runtime."""
        raise P4Error.unsupported(
            f"P4Runtime has no message for the command line `{line}`", "give the operation: `act`"
        )


def _each(refused: Refused, count: int) -> list[TidegateError | None]:
    """The error of each of so many updates; if the server gives one for the whole call, that is each one's."""
    if len(refused.errors) == count:
        return [told(detail) if detail.canonical_code else None for detail in refused.errors]
    if refused.code == Code.UNIMPLEMENTED.name:
        return [P4Error.unsupported(refused.reason)] * count
    return [refused] * count


def _at(index: int, error: TidegateError) -> TidegateError:
    """An error with the number of its operation."""
    error.index = index  # type: ignore[attr-defined]
    return error
