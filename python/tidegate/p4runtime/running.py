"""The program that is set: reads and writes of its objects."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from tidegate._core import TidegateError
from tidegate.control import operations as op
from tidegate.p4 import Program
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.digests import Digests
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema
from tidegate.p4runtime.translate.arrays import Arrays
from tidegate.p4runtime.translate.entries import Op
from tidegate.p4runtime.translate.packets import Packets
from tidegate.p4runtime.translate.profiles import Profiles
from tidegate.p4runtime.translate.replication import Replication
from tidegate.p4runtime.translate.tables import Tables
from tidegate.p4runtime.translate.value_sets import ValueSets
from tidegate.p4runtime.values import Translations

Allowed = Callable[[str], bool]
"""Whether a controller may touch the object of a name."""

# Entities and bytes of one message of an answer; a client takes 4 MB.
MOST_ENTITIES = 4096
MOST_BYTES = 1 << 20
MOST_IN_ALL = 4096
"""Updates of a batch that is done whole: the engine's limit."""


class Running:
    """A program on a device."""

    def __init__(self, program: Program, device: Device, config: Any, translations: Translations) -> None:
        self.program = program
        self.device = device
        self.config = config
        """`p4.ForwardingPipelineConfig`, as it was given."""
        self.schema = Schema(parse_p4info(program.p4info), translations=translations)
        self.tables = Tables(self.schema, device.act)
        self.digests = Digests(self.schema)
        widths = {direction: dict(fields) for direction, fields in program.core.controller_headers()}
        self.packets = Packets(self.schema, widths)
        self._profiles = Profiles(self.schema, device.act, self.tables)
        self._arrays = Arrays(self.schema, device.act, self.tables)
        self._replication = Replication(device.act)
        self._value_sets = ValueSets(self.schema, device.act)
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

    def keep(self, before: Running) -> None:
        """Take over the state that controllers have set with the program before."""
        self.digests.keep(before.digests)
        self._replication.keep(before._replication)

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

    def write_all(self, updates: Sequence[Any], allowed: Allowed) -> list[P4Error | None]:
        """Do all updates, or none: the error of the one that is refused, and `ABORTED` for all others.

        Raises `UNIMPLEMENTED`, of the whole batch, if it is one that cannot be undone (specification 1.5, "Batch Atomicity").
        """
        if len(updates) > MOST_IN_ALL:
            why = f"a batch of {len(updates)} updates is too large to be done whole"
            raise P4Error.unsupported(why, f"give {MOST_IN_ALL} at most, or CONTINUE_ON_ERROR")
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
            self.device.write_all(ops)
        except TidegateError as error:
            at: int = getattr(error, "index", len(ops))
            errors: list[P4Error | None] = [
                P4Error(Code.ABORTED, f"not done: update {at} of the batch was refused") for _ in updates
            ]
            errors[at] = P4Error.of(error)
            return errors
        for then in done:
            then()
        return [None] * len(updates)

    def write(self, updates: Sequence[Any], allowed: Allowed) -> list[P4Error | None]:
        """Do updates in order, and go on after an error; return the error of each."""
        errors: list[P4Error | None] = [None] * len(updates)
        ops: list[Op] = []
        places: list[tuple[int, Callable[[], None] | None]] = []
        for index, update in enumerate(updates):
            try:
                op, then = self._prepare(update, allowed)
            except P4Error as error:
                errors[index] = error
            else:
                if op is not None:
                    ops.append(op)
                    places.append((index, then))
        for (index, then), answer in zip(places, self.device.write(ops), strict=True):
            if isinstance(answer, TidegateError):
                errors[index] = P4Error.of(answer)
            elif then is not None:
                then()
        return errors

    def _prepare(self, update: Any, allowed: Allowed) -> tuple[Op | None, Callable[[], None] | None]:
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
            self.digests.write(kind, entity)
            return None, None
        return self._writers[which](kind, entity), None

    # Reading.

    def read(self, entities: Sequence[Any], allowed: Allowed) -> tuple[list[bytes], list[P4Error | None]]:
        """Answers, as bytes of `p4.ReadResponse`, and what came of each request."""
        errors: list[P4Error | None] = [None] * len(entities)
        answers: list[bytes] = []
        message = p4.ReadResponse()
        size = 0
        for index, entity in enumerate(entities):
            try:
                for found in self._read(entity, allowed):
                    message.entities.append(found)
                    size += found.ByteSize()
                    if len(message.entities) >= MOST_ENTITIES or size >= MOST_BYTES:
                        answers.append(message.SerializeToString())
                        message, size = p4.ReadResponse(), 0
            except P4Error as error:
                errors[index] = error
        if message.entities:
            answers.append(message.SerializeToString())
        return answers, errors

    def _read(self, entity: Any, allowed: Allowed) -> Iterator[Any]:
        which = entity.WhichOneof("entity")
        if which is None:
            raise invalid("a request has no entity, or one that is not known here")
        if which == "extern_entry":
            raise P4Error.unsupported("the program has no externs beyond those of P4Runtime")
        asked = getattr(entity, which)
        tables, profiles, arrays = self.tables, self._profiles, self._arrays
        found: Iterator[Any] = {
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
        if name:
            if allowed(name):
                yield from found
            return
        for one in found:
            if allowed(self.name_of(which, getattr(one, which))):
                yield one

    def idle_message(self, table_name: str, row: tuple[Any, ...]) -> Any:
        """`p4.TableEntry` of an entry whose timeout has come; `None` if controllers do not see its table."""
        table = self.schema.by_name.get(table_name)
        return None if table is None else self.tables.entry_message(table, row)
