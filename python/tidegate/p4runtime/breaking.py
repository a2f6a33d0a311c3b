"""Messages of P4Runtime that make sense, and the same ones broken: for tests and for the fuzzer of the server.

Everything comes from a `random.Random`, so that one seed gives one message.
"""

from __future__ import annotations

from random import Random
from typing import Any

from tidegate.p4runtime.conftest import (
    Entities,
    clone_session,
    exact,
    group,
    led,
    member,
    multicast,
    one_shot,
    register,
    value_set,
)
from tidegate.p4runtime.messages import p4

CANONICAL = {3, 5, 6, 7, 8, 9, 11, 12}
BYTES = [b"", b"\0", b"\x01", b"\x07", b"\xff", b"\x01\0", b"\0\0\x05", b"\xff" * 6, b"\xff" * 20, b"red"]
TEXTS = ["", "x", "red", "0", "7", "\0", "*", "[", "a" * 300, "\u00e9\U0001f600", "choices", "r" * 70_000]
NUMBERS = [0, 1, 2, 5, 8, 10, 20, 100, 510, 511, 512, 65_535, 65_536, (1 << 31) - 1]


def filled(bench: Entities) -> list[Any]:
    """What makes sense, of every kind."""
    action = bench.action("forward", b"\x02")
    return [
        bench.entry(
            "exact_table",
            exact(b"\x01"),
            action=action,
            idle_timeout_ns=1000,
            counter_data={"packet_count": 3},
        ),
        bench.entry(
            "lpm_table",
            {"lpm": {"value": b"\x0a\0\0\0", "prefix_len": 8}},
            action=bench.action("mark", b"\x01"),
        ),
        bench.entry("ternary_table", {}, exact(b"\x05"), action=bench.action("mark", b"\x01"), priority=3),
        bench.entry(
            "range_table",
            {"range": {"low": b"\x01", "high": b"\x05"}},
            action=bench.action("NoAction"),
            priority=3,
        ),
        bench.entry("vrfs", exact(b"red"), action=bench.action("NoAction")),
        bench.entry("exact_table", is_default_action=True, action=action),
        member(bench, "choices", 1, "forward", b"\x01"),
        group(bench, 1, (1, 2)),
        led(bench, "selected", action_profile_group_id=1),
        one_shot(bench, (1, 1)),
        register(bench, "cells", 5, b"\x09"),
        register(bench, "signed_cells", None, b"\x09"),
        multicast(5, (1, 1), (2, 1)),
        clone_session(9, (2, 1)),
        value_set(bench, b"\x12", b"\x13"),
        p4.Entity(
            counter_entry={
                "counter_id": bench.ids("packets"),
                "index": {"index": 1},
                "data": {"byte_count": 4},
            }
        ),
        p4.Entity(
            meter_entry={
                "meter_id": bench.ids("rates"),
                "index": {"index": 1},
                "config": {"cir": 1, "pir": 2},
            }
        ),
        p4.Entity(digest_entry={"digest_id": bench.ids("seen_t"), "config": {"max_list_size": 1}}),
        p4.Entity(
            direct_counter_entry={
                "table_entry": bench.entry("exact_table", exact(b"\x01")).table_entry,
                "data": {},
            }
        ),
        p4.Entity(
            direct_meter_entry={
                "table_entry": bench.entry("exact_table", exact(b"\x01")).table_entry,
                "config": {},
            }
        ),
    ]


class Breaker:
    """Changes messages anywhere."""

    def __init__(self, random: Random, ids: list[int]) -> None:
        self.random = random
        self.ids = ids

    def value(self, field: Any) -> Any:
        """Something of a scalar's type."""
        random = self.random
        if field.cpp_type == field.CPPTYPE_STRING:
            if field.type == field.TYPE_BYTES:
                long = random.random() < 0.05
                return random.randbytes(random.choice([100, 1025, 70_000])) if long else random.choice(BYTES)
            return random.choice(TEXTS)
        if field.cpp_type == field.CPPTYPE_BOOL:
            return random.random() < 0.5
        if field.cpp_type == field.CPPTYPE_ENUM:
            return random.choice([-1, 0, 1, 2, 3, 4, 5, 6, 1 << 30])
        if field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            return random.choice([0.0, -1.0, 1e300, float("inf"), float("nan")])
        number = random.choice(self.ids if random.random() < 0.3 else NUMBERS)
        wide = field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64)
        signed = field.cpp_type in (field.CPPTYPE_INT32, field.CPPTYPE_INT64)
        most = (1 << (64 if wide else 32) - signed) - 1
        if random.random() < 0.1:
            number = most
        if signed and random.random() < 0.3:
            number = -number - random.randrange(2)
        return min(number, most)

    def breaks(self, message: Any, depth: int = 0) -> None:
        """Changes one field, here or below."""
        random = self.random
        below = [f for f, _ in message.ListFields() if f.message_type is not None and not _is_map(f)]
        if below and depth < 8 and random.random() < 0.75:
            field = random.choice(below)
            value = getattr(message, field.name)
            if hasattr(value, "add"):
                if random.random() < 0.2:
                    self._repeats(value)
                    return
                value = random.choice(list(value))
            self.breaks(value, depth + 1)
            return
        fields = message.DESCRIPTOR.fields
        if not fields:
            return
        field = random.choice(fields)
        if random.random() < 0.2:
            message.ClearField(field.name)
        else:
            self._sets(message, field, depth)

    def _repeats(self, values: Any) -> None:
        """Of repeated messages, one more, or one of them again, and now and then very often."""
        if self.random.random() < 0.5:
            values.add()
            return
        copied = self.random.choice(list(values))
        values.extend([copied] * self.random.choice([1] * 20 + [300, 5000]))

    def _sets(self, message: Any, field: Any, depth: int) -> None:
        value = getattr(message, field.name)
        if _is_map(field):
            key = self.random.choice(TEXTS)
            if field.message_type.fields_by_name["value"].message_type is not None and depth < 8:
                self.breaks(value[key], depth + 1)
        elif field.message_type is not None:
            if depth < 8:
                made = value.add() if hasattr(value, "add") else value
                made.SetInParent()
                self.breaks(made, depth + 1)
        elif hasattr(value, "append"):
            value.append(self.value(field))
        else:
            setattr(message, field.name, self.value(field))

    def fills(self, message: Any, depth: int = 0) -> None:
        """Sets fields of a message at random, those of messages in it, too."""
        for field in message.DESCRIPTOR.fields:
            if self.random.random() < (0.5 if depth else 0.7) and not _is_map(field):
                if field.message_type is None or depth >= 6:
                    self._sets(message, field, 8)
                    continue
                value = getattr(message, field.name)
                if hasattr(value, "add"):
                    for _ in range(self.random.randrange(3)):
                        self.fills(value.add(), depth + 1)
                else:
                    value.SetInParent()
                    self.fills(value, depth + 1)

    def wire(self, data: bytes) -> bytes:
        """Changes a message's bytes."""
        random = self.random
        at, size = random.randrange(len(data) + 1), random.choice([1, 1, 2, 4, 16])
        other = random.randrange(len(data) + 1)
        changed = (data[at] ^ 1 << random.randrange(8)) if at < len(data) else 0
        long = b"\xff" * random.choice([1, 9, 10, 11]) + b"\x01"
        found: bytes = random.choice(
            [
                data[:at] + bytes([random.randrange(256)]) + data[at + 1 :],
                data[:at] + bytes([changed]) + data[at + 1 :],
                data[:at],
                data[:at] + data[at + size :],
                data[:at] + random.randbytes(size) + data[at:],
                data[:at] + long + data[at + size :],
                data[:at] + data[other : other + 4 * size] + data[at:],
                data + data,
            ]
        )
        return found


def _is_map(field: Any) -> bool:
    return bool(field.message_type is not None and field.message_type.GetOptions().map_entry)
