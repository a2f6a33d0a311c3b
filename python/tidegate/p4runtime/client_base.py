"""What every part of a switch behind a P4Runtime server needs: names, values, messages."""

from __future__ import annotations

import operator
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count
from typing import Any, Self

from tidegate._core import TidegateError, parse_value
from tidegate.control.api import Value
from tidegate.control.fixed import WithoutFixedParts
from tidegate.p4runtime.connection import Connection, Refused
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.schema import Action, Array, Profile, Schema, Table
from tidegate.p4runtime.values import Codec, Translations, canonical

# Updates of one message.
BATCH = 2000


class Remote(WithoutFixedParts):
    """A switch that is asked by P4Runtime."""

    reason = "is asked by P4Runtime, which has no message for"

    def __init__(
        self,
        connection: Connection,
        name: str = "switch",
        ports: Sequence[str] = (),
        note: Callable[[int, str, str, float], None] = lambda *_: None,
        translations: Translations | None = None,
    ) -> None:
        """Stand for the switch of a connection that takes part in an election; raises if it is not won."""
        self.name = name
        self.ports = tuple(ports)
        self._note = note
        self.connection = connection
        status = connection.next("arbitration").status
        if status.code != 0:
            raise TidegateError(f"{name}: another controller is primary ({status.message})")
        info = connection.get_config("P4INFO_AND_COOKIE").p4info
        self._schema = Schema(info, translations=translations or {})
        # Entries by handle, and handles by what identifies an entry.
        self._keys: dict[tuple[str, int], Any] = {}
        self._handles: dict[tuple[str, bytes], int] = {}
        self._numbers = count()
        self._started = time.monotonic_ns()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave."""
        self.connection.close()

    # Names.

    def _object(self, objects: dict[int, Any], name: str, what: str) -> Any:
        found = [o for o in objects.values() if o.name == name]
        found = found or [o for o in objects.values() if o.name.endswith(f".{name}")]
        if len(found) != 1:
            known = ", ".join(o.name for o in list(objects.values())[:20]) or "the program has none"
            raise TidegateError(f"no {what} {name!r}, or more than one; there are: {known}")
        return found[0]

    def _table(self, name: str) -> Table:
        table: Table = self._object(self._schema.tables, name, "table")
        return table

    def _profile(self, name: str) -> Profile:
        profile: Profile = self._object(self._schema.profiles, name, "action profile")
        return profile

    def _register(self, name: str) -> Array:
        array: Array = self._object(self._schema.registers, name, "register")
        return array

    # Messages.

    def _write(self, kind: str, *entities: Any) -> None:
        for at in range(0, len(entities), BATCH):
            try:
                self.connection.write(*[(kind, entity) for entity in entities[at : at + BATCH]])
            except Refused as refused:
                wrong = next((e for e in refused.errors if e.canonical_code), None)
                if wrong is None:
                    raise
                raise TidegateError(wrong.message) from None

    def _value(self, value: Value, codec: Codec) -> bytes:
        """A value as the switch would have it."""
        if isinstance(value, str):
            return parse_value(value, codec.width)
        try:
            number = operator.index(value)
        except TypeError:
            raise TidegateError(f"{value!r} is not a value; give a whole number, or text") from None
        if number < 0:
            raise TidegateError(f"{value} is negative")
        return canonical(number)

    def _action(self, actions: Iterable[int], name: str, values: Iterable[Value]) -> Any:
        listed = {number: self._schema.actions[number] for number in actions}
        action: Action = self._object(listed, name, "action")
        given = list(values)
        if len(given) != len(action.params):
            raise TidegateError(f"action {action.name} takes {len(action.params)} values, not {len(given)}")
        message = p4.Action(action_id=action.id)
        for param, value in zip(action.params, given, strict=True):
            message.params.add(
                param_id=param.id, value=param.codec.to_client(self._value(value, param.codec))
            )
        return message
