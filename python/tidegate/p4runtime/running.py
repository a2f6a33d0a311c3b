"""The program that is set: reads and writes of its objects."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from tidegate._core import TidegateError
from tidegate.control import operations as op
from tidegate.p4 import Program
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.digests import Digests
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.arrays import SLICE as CELLS
from tidegate.p4runtime.translate.arrays import Arrays
from tidegate.p4runtime.translate.base import Part
from tidegate.p4runtime.translate.entries import Op
from tidegate.p4runtime.translate.packets import Packets
from tidegate.p4runtime.translate.profiles import Profiles
from tidegate.p4runtime.translate.replication import Replication
from tidegate.p4runtime.translate.tables import Tables
from tidegate.p4runtime.translate.value_sets import ValueSets
from tidegate.p4runtime.values import Translations

Allowed = Callable[[str], bool]
"""Whether a controller may touch the object of a name."""

# Entities and bytes of one message of an answer: some tens of milliseconds to make it.
MOST_ENTITIES = 1024
MOST_BYTES = 256 << 10
SLICE = 128
"""Updates that are done while others wait: some ten milliseconds. Fewer if they have more than so many bytes, or cells."""
SLICE_BYTES = 64 << 10
SMALL, SMALL_BYTES = 4096, 1 << 20
"""Entities of a small answer, and bytes of what counts by bytes; one with more has to wait for a place."""
LOOK = 64
"""Entities after which it is looked whether the client still waits."""


class Stopped(P4Error):
    """A read or write does not go on, whatever is left of it."""


@dataclass(frozen=True, slots=True)
class Step:
    """An update or a part of one, to be done."""

    update: int
    operation: Op | None
    then: Callable[[], None] | None
    """To be called when it is done."""


class Large(Exception):
    """There is more to read than a small answer has."""


class Nobody(Exception):
    """The client of a read is gone."""


@dataclass
class Snapshot:
    """What a read has found, before messages are made of it."""

    errors: list[P4Error | None]
    """What came of each request."""
    parts: list[tuple[Part, Allowed | None]] = field(default_factory=list)
    count: int = 0
    size: int = 0


class Reading(threading.local):
    """The read that a thread is at; without one, the thread asks as much as it likes."""

    alive: Callable[[], bool] | None = None
    """Whether its client still waits."""
    looks = 0
    """How many entries it has gone through, and how often it has asked."""


class Running:
    """A program on a device."""

    def __init__(
        self,
        program: Program,
        device: Device,
        config: Any,
        translations: Translations,
        busy: AbstractContextManager[Any],
        limits: Limits,
    ) -> None:
        """`busy` is held for each use of the device, and not for long, so that others have their turn."""
        self.program = program
        self.device = device
        self._busy = busy
        self._limits = limits
        self.replaced = False
        """Another program has taken its place: what is being read or written of it stops."""
        self._reading = Reading()
        self.config = config
        """`p4.ForwardingPipelineConfig`, as it was given."""
        self.schema = Schema(parse_p4info(program.p4info), translations=translations)
        self.tables = Tables(self.schema, self._act)
        self.digests = Digests(self.schema, limits)
        widths = {direction: dict(fields) for direction, fields in program.core.controller_headers()}
        self.packets = Packets(self.schema, widths)
        self._profiles = Profiles(self.schema, self._act, self.tables)
        self._arrays = Arrays(self.schema, self._act, self.tables)
        self._replication = Replication(self.schema, self._act)
        self._value_sets = ValueSets(self.schema, self._act)
        schema = self.schema
        self._objects: dict[str, tuple[str, dict[int, Any]]] = {
            "table_entry": ("table_id", schema.tables),
            "action_profile_member": ("action_profile_id", schema.profiles),
            "action_profile_group": ("action_profile_id", schema.profiles),
            "counter_entry": ("counter_id", schema.counters),
            "meter_entry": ("meter_id", schema.meters),
            "register_entry": ("register_id", schema.registers),
            "value_set_entry": ("value_set_id", schema.value_sets),
            "digest_entry": ("digest_id", schema.digests),
        }
        self._writers: dict[str, Callable[[int, Any], Op | None]] = {
            "table_entry": self.tables.write,
            "direct_counter_entry": self.tables.write_counter,
            "direct_meter_entry": self.tables.write_meter,
            "action_profile_member": self._profiles.write_member,
            "action_profile_group": self._profiles.write_group,
            "counter_entry": self._arrays.write_counter,
            "meter_entry": self._arrays.write_meter,
            "register_entry": self._arrays.write_register,
            "value_set_entry": self._value_sets.write,
        }

    def _act(self, operation: Op) -> Any:
        """Do an operation, of a read whose client still waits and that has not looked at too much."""
        reading = self._reading
        if reading.alive is not None and not reading.alive():
            raise Nobody
        with self._busy:
            self._go_on()
            answer = self.device.act(operation)
        if reading.alive is not None:
            reading.looks += 1 + (len(answer[0]) if isinstance(operation, op.TableRead) else 0)
            if reading.looks > self._limits.looks:
                why = f"the answer takes a look at more than {self._limits.looks} entries"
                raise Stopped(Code.RESOURCE_EXHAUSTED, f"{why}; ask for fewer, or for all at once")
        return answer

    def _go_on(self) -> None:
        if self.replaced:
            raise Stopped(Code.ABORTED, "another program was set meanwhile; read or write again")

    def keep(self, before: Running) -> None:
        """Take over the state that controllers have set with the program before."""
        self.digests.keep(before.digests)
        self._replication.keep(before._replication)
        self.tables.large = before.tables.large

    def name_of(self, which: str, entity: Any) -> str:
        """The object that an entity is of, for roles; empty: all of its kind."""
        if which == "packet_replication_engine_entry":
            return {"multicast_group_entry": "multicast", "clone_session_entry": "clone"}.get(
                entity.WhichOneof("type"), ""
            )
        if which.startswith("direct_"):
            return self.name_of("table_entry", entity.table_entry)
        field, objects = self._objects[which]
        found = objects.get(getattr(entity, field))
        if found is None:
            return ""
        name: str = found[0] if isinstance(found, tuple) else found.name
        return name

    # Writing.

    def write_all(
        self, updates: Sequence[Any], allowed: Allowed, demand: Callable[[], None] = lambda: None
    ) -> list[P4Error | None]:
        """Do all updates, or none: the error of the one that is refused, and `ABORTED` for all others.

        `demand` raises if they are not to be done any more. Raises `UNIMPLEMENTED`, of the whole batch, if it is one that cannot
        be undone (specification 1.5, "Batch Atomicity").
        """
        most = self._limits.updates_at_once
        if len(updates) > most:
            why = f"a batch of {len(updates)} updates is too large to be done whole"
            raise P4Error.unsupported(why, f"give {most} at most, or CONTINUE_ON_ERROR")
        if any(update.entity.WhichOneof("entity") == "digest_entry" for update in updates):
            raise P4Error.unsupported(
                "digest entries cannot be in a batch that is done whole", "give CONTINUE_ON_ERROR"
            )
        ops: list[Op] = []
        done: list[Callable[[], None]] = []
        try:
            for update in updates:
                operation, then = self._prepare(update, allowed)
                # An update of which nothing is to be done keeps its number.
                ops.append(op.DropsRead() if operation is None else operation)
                if then is not None:
                    done.append(then)
            with self._busy:
                self._go_on()
                demand()
                self.device.write_all(ops)
                for then in done:
                    then()
        except Stopped:
            raise
        except TidegateError as error:
            if getattr(error, "kind", None) == "unsupported" and not isinstance(error, P4Error):
                # The engine can do each: it is the batch that it cannot do whole.
                raise P4Error.of(error) from None
            at = getattr(error, "index", len(ops))
            errors: list[P4Error | None] = [
                P4Error(Code.ABORTED, f"not done: update {at} of the batch was refused") for _ in updates
            ]
            errors[at] = P4Error.of(error).bare()
            return errors
        return [None] * len(updates)

    def write(
        self, updates: Sequence[Any], allowed: Allowed, demand: Callable[[], None] = lambda: None
    ) -> list[P4Error | None]:
        """Do updates in order, and go on after an error; return the error of each.

        Others have their turn now and then. `demand` raises if the rest is not to be done any more.
        """
        errors: list[P4Error | None] = [None] * len(updates)
        for steps in self._slices(updates, allowed, errors):
            with self._busy:
                try:
                    self._go_on()
                    demand()
                except Stopped as error:
                    at = steps[0].update
                    errors[at:] = [error.bare()] * (len(updates) - at)
                    break
                self._do(steps, errors)
        return errors

    def _slices(
        self, updates: Sequence[Any], allowed: Allowed, errors: list[P4Error | None]
    ) -> Iterator[list[Step]]:
        """What is done of updates while others wait, one turn after another. Updates that are refused before have their errors."""
        steps: list[Step] = []
        size = cells = total = 0
        for index, update in enumerate(updates):
            try:
                operation, then = self._prepare(update, allowed)
            except P4Error as error:
                errors[index] = error.bare()
                continue
            own = update.ByteSize()
            own_cells = 0 if operation is None else self._arrays.cells(operation)
            # All cells of an array can be set at once, however many it has.
            if own_cells and total and total + own_cells > self._limits.cells:
                why = f"the updates of a write set {self._limits.cells} cells at most; give fewer at a time"
                errors[index] = P4Error(Code.RESOURCE_EXHAUSTED, why)
                continue
            total += own_cells
            parts = [(None, 0)] if operation is None else self._arrays.parts(operation)
            for part, count in parts:
                full = size + own > SLICE_BYTES or cells + count > CELLS or len(steps) == SLICE
                if steps and full:
                    yield steps
                    steps, size, cells = [], 0, 0
                steps.append(Step(index, part, then))
                size, cells = size + own, cells + count
        if steps:
            yield steps

    def _do(self, steps: Sequence[Step], errors: list[P4Error | None]) -> None:
        answers = iter(self.device.write([step.operation for step in steps if step.operation is not None]))
        for step in steps:
            answer = None if step.operation is None else next(answers)
            if isinstance(answer, TidegateError):
                errors[step.update] = P4Error.of(answer)
            elif step.then is not None:
                try:
                    step.then()
                except P4Error as error:
                    errors[step.update] = error.bare()

    def _prepare(self, update: Any, allowed: Allowed) -> tuple[Op | None, Callable[[], None] | None]:
        """The operation that an update is, and what is to be done after it; the device is not used."""
        if update.type not in (1, 2, 3):
            raise invalid("an update is to insert, to modify or to delete")
        which = update.entity.WhichOneof("entity")
        if which is None:
            raise invalid("an update has no entity, or one that is not known here")
        if which == "extern_entry":
            raise P4Error.unsupported("the program has no externs beyond those of P4Runtime")
        entity = getattr(update.entity, which)
        name = self.name_of(which, entity)
        if name and not allowed(name):
            raise P4Error(Code.PERMISSION_DENIED, f"the role may not write {name}")
        kind = update.type
        if which == "packet_replication_engine_entry":
            return self._replication.write(kind, entity)
        if which == "digest_entry":
            return None, partial(self.digests.write, kind, entity)
        return self._writers[which](kind, entity), None

    # Reading.

    def snapshot(
        self,
        entities: Sequence[Any],
        allowed: Allowed,
        alive: Callable[[], bool] = lambda: True,
        small: bool = False,
    ) -> Snapshot:
        """What requests ask for, as it is now; to be taken while nobody writes. The device is given back now and then.

        Raises `Large` if it is to be `small` and is not, and `Nobody` when `alive` says that nobody waits; that may raise
        `Stopped`, too.
        """
        found = Snapshot([None] * len(entities))
        # What is asked for several times is read once.
        known: dict[bytes, list[tuple[Part, bool]]] = {}
        self._reading.alive, self._reading.looks = alive, 0
        try:
            for index, entity in enumerate(entities):
                asked = entity.SerializeToString(deterministic=True)
                parts: list[tuple[Part, bool]] = []
                try:
                    before = known.get(asked)
                    for part, check in self._read(entity, allowed) if before is None else before:
                        if not part.count:
                            continue
                        parts.append((part, check))
                        found.count += part.count
                        found.size += part.size
                        if small and (found.count > SMALL or found.size > SMALL_BYTES):
                            raise Large
                        most, bytes_ = self._limits.entities, self._limits.answer_bytes
                        if found.count > most or found.size > bytes_:
                            why = "the answer has more than {} entities, or {} MiB; read fewer at a time"
                            why = why.format(most, bytes_ >> 20)
                            raise Stopped(Code.RESOURCE_EXHAUSTED, why)
                        found.parts.append((part, allowed if check else None))
                    known[asked] = parts
                except Stopped:
                    raise
                except P4Error as error:
                    found.errors[index] = error.bare()
        finally:
            self._reading.alive = None
        return found

    def answers(self, snapshot: Snapshot, alive: Callable[[], bool] = lambda: True) -> Iterator[bytes]:
        """Bytes of each `p4.ReadResponse`, made as they are asked for. It ends early when `alive` says that nobody waits."""
        message = p4.ReadResponse()
        size = count = 0
        for part, allowed in snapshot.parts:
            for found in part.make():
                count += 1
                if count % LOOK == 0 and not alive():
                    return
                if allowed is not None and not allowed(self._name(found)):
                    continue
                message.entities.append(found)
                size += found.ByteSize()
                if len(message.entities) >= MOST_ENTITIES or size >= MOST_BYTES:
                    yield message.SerializeToString()
                    message, size = p4.ReadResponse(), 0
        if message.entities:
            yield message.SerializeToString()

    def _name(self, entity: Any) -> str:
        which = entity.WhichOneof("entity")
        return self.name_of(which, getattr(entity, which))

    def _read(self, entity: Any, allowed: Allowed) -> Iterator[tuple[Part, bool]]:
        """Parts of what a request asks for; whether each entity of one is still to be checked for the role."""
        which = entity.WhichOneof("entity")
        if which is None:
            raise invalid("a request has no entity, or one that is not known here")
        asked = getattr(entity, which)
        if which == "extern_entry":
            if asked.extern_type_id:
                raise P4Error.unsupported("the program has no externs beyond those of P4Runtime")
            # All there are.
            return
        tables, profiles, arrays = self.tables, self._profiles, self._arrays
        found: Iterator[Part] = {
            "table_entry": tables.read,
            "direct_counter_entry": lambda entry: tables.read_direct("counter", entry),
            "direct_meter_entry": lambda entry: tables.read_direct("meter", entry),
            "action_profile_member": profiles.read_members,
            "action_profile_group": profiles.read_groups,
            "counter_entry": arrays.read_counters,
            "meter_entry": arrays.read_meters,
            "register_entry": arrays.read_registers,
            "packet_replication_engine_entry": self._replication.read,
            "value_set_entry": self._value_sets.read,
            "digest_entry": self.digests.read,
        }[which](asked)
        # The role is checked once for one object, and for each object of a wildcard read.
        name = self.name_of(which, asked)
        if not name or allowed(name):
            for part in found:
                yield part, not name

    def idle_message(self, table_name: str, row: tuple[Any, ...]) -> Any:
        """`p4.TableEntry` of an entry whose timeout has come; `None` if controllers do not see its table."""
        table = self.schema.by_name.get(table_name)
        return None if table is None else self.tables.entry_message(table, row)
