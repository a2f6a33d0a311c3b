"""The objects of a P4Info by id, and how their values are encoded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Protocol, TypeVar

from tidegate.control import MatchKind
from tidegate.p4runtime.errors import Code, P4Error, invalid
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.values import PORTS, Codec, Names, Translations, is_port

# A value of the switch never has more bits; what does not fit is refused where it is written.
MOST_BITS = 1 << 16
PORT_BITS = 9
KINDS: dict[int, MatchKind] = {2: "exact", 3: "lpm", 4: "ternary", 5: "range", 6: "optional"}
T = TypeVar("T")


@dataclass(frozen=True)
class Field:
    """A key, a parameter, a field of metadata."""

    id: int
    name: str
    codec: Codec
    kind: MatchKind = "exact"


@dataclass(frozen=True)
class Action:
    """An action, its parameters in the program's order."""

    id: int
    name: str
    params: tuple[Field, ...]


@dataclass(frozen=True)
class Table:
    """A table."""

    id: int
    name: str
    fields: tuple[Field, ...]
    actions: dict[int, int]
    """The scope of each, by id."""
    const: bool
    const_default: bool
    profile: int
    """Id, or 0."""
    counter: int
    meter: int
    timeouts: bool
    size: int
    initial: bool
    """Whether the program gives it entries."""

    @cached_property
    def prioritised(self) -> bool:
        """Whether entries have priorities."""
        return any(f.kind in ("ternary", "range", "optional") for f in self.fields)


@dataclass(frozen=True)
class Profile:
    """An action profile or selector."""

    id: int
    name: str
    tables: tuple[int, ...]
    selector: bool
    largest: int
    """Maximum size of a group; 0: not specified."""
    counts_members: bool
    """Whether its size is its members, and not their weights."""


@dataclass(frozen=True)
class Array:
    """A counter, meter or register: so many cells. A direct one has a table."""

    id: int
    name: str
    size: int
    spec: Any
    table: int = 0


@dataclass(frozen=True)
class ValueSet:
    """A parser value set."""

    id: int
    name: str
    fields: tuple[Field, ...]


@dataclass
class Schema:
    """All of a program's objects."""

    p4info: Any
    tables: dict[int, Table] = field(default_factory=dict)
    actions: dict[int, Action] = field(default_factory=dict)
    profiles: dict[int, Profile] = field(default_factory=dict)
    counters: dict[int, Array] = field(default_factory=dict)
    direct_counters: dict[int, Array] = field(default_factory=dict)
    meters: dict[int, Array] = field(default_factory=dict)
    direct_meters: dict[int, Array] = field(default_factory=dict)
    registers: dict[int, Array] = field(default_factory=dict)
    value_sets: dict[int, ValueSet] = field(default_factory=dict)
    digests: dict[int, tuple[str, Any]] = field(default_factory=dict)
    headers: dict[str, tuple[Field, ...]] = field(default_factory=dict)
    """Metadata of `packet_in` and `packet_out`."""
    translations: Translations = field(default_factory=dict)

    def __post_init__(self) -> None:
        info = self.p4info
        for action in info.actions:
            made = Action(action.preamble.id, action.preamble.name, self._fields(action.params))
            self.actions[made.id] = made
        direct = {c.preamble.id: "counter" for c in info.direct_counters}
        direct |= {m.preamble.id: "meter" for m in info.direct_meters}
        for table in info.tables:
            resources = {direct.get(i, ""): i for i in table.direct_resource_ids}
            self.tables[table.preamble.id] = Table(
                id=table.preamble.id,
                name=table.preamble.name,
                fields=self._fields(table.match_fields),
                actions={ref.id: ref.scope for ref in table.action_refs},
                const=table.is_const_table,
                const_default=table.const_default_action_id != 0,
                profile=table.implementation_id,
                counter=resources.get("counter", 0),
                meter=resources.get("meter", 0),
                timeouts=table.idle_timeout_behavior == p4.Table.NOTIFY_CONTROL,
                size=table.size,
                initial=table.is_const_table or table.has_initial_entries,
            )
        for profile in info.action_profiles:
            self.profiles[profile.preamble.id] = Profile(
                profile.preamble.id,
                profile.preamble.name,
                tuple(profile.table_ids),
                profile.with_selector,
                profile.max_group_size,
                profile.HasField("sum_of_members"),
            )
        self._arrays(info)
        for value_set in info.value_sets:
            number, name = value_set.preamble.id, value_set.preamble.name
            self.value_sets[number] = ValueSet(number, name, self._fields(value_set.match))
        for digest in info.digests:
            self.digests[digest.preamble.id] = (digest.preamble.name, digest.type_spec)
        for header in info.controller_packet_metadata:
            self.headers[header.preamble.name] = self._fields(header.metadata)
        self.by_name = {table.name: table for table in self.tables.values()}
        """Tables. One that is `@hidden` is not there."""

    def _arrays(self, info: Any) -> None:
        for kind, found in (
            ("counters", info.counters),
            ("meters", info.meters),
            ("registers", info.registers),
        ):
            for item in found:
                spec = item.type_spec if kind == "registers" else item.spec
                getattr(self, kind)[item.preamble.id] = Array(
                    item.preamble.id, item.preamble.name, item.size, spec
                )
        for kind, found in (("direct_counters", info.direct_counters), ("direct_meters", info.direct_meters)):
            for item in found:
                getattr(self, kind)[item.preamble.id] = Array(
                    item.preamble.id, item.preamble.name, 0, item.spec, item.direct_table_id
                )

    def _fields(self, found: Any) -> tuple[Field, ...]:
        return tuple(
            Field(
                item.id,
                item.name,
                self.codec(item.type_name.name if hasattr(item, "type_name") else "", item.bitwidth),
                KINDS.get(getattr(item, "match_type", 2), "exact"),
            )
            for item in found
        )

    def codec(self, type_name: str, width: int) -> Codec:
        """How values of a type are read."""
        types = self.p4info.type_info.new_types
        if type_name in types and types[type_name].HasField("translated_type"):
            translated = types[type_name].translated_type
            if translated.WhichOneof("sdn_type") == "sdn_string":
                key = translated.uri
                port = is_port(key, type_name)
                if port and (not key or key not in self.translations) and PORTS in self.translations:
                    key = PORTS
                return Names(MOST_BITS, True, translated.uri or type_name, self.translations.get(key, {}))
            return Codec(width or MOST_BITS, True)
        return Codec(width or MOST_BITS)

    @cached_property
    def port(self) -> Codec:
        """How ports are read that have no type in the P4Info: as names, if the program has a type of ports that are names."""
        types = self.p4info.type_info.new_types
        for name in sorted(types):
            translated = types[name].translated_type
            if is_port(translated.uri, name) and translated.WhichOneof("sdn_type") == "sdn_string":
                return self.codec(name, 0)
        return Codec(PORT_BITS)

    def counter(self, name: str) -> Array:
        """The counter of a name: an array before a direct counter of which it is a suffix only."""
        return self._array(name, "counter", self.counters, self.direct_counters)

    def meter(self, name: str) -> Array:
        """As `counter`."""
        return self._array(name, "meter", self.meters, self.direct_meters)

    @staticmethod
    def _array(name: str, what: str, arrays: dict[int, Array], direct: dict[int, Array]) -> Array:
        for array in (*direct.values(), *arrays.values()):
            if array.name == name:
                return array
        if not any(is_suffix(array.name, name) for array in arrays.values()):
            for array in direct.values():
                if is_suffix(array.name, name):
                    return array
        return named(arrays, name, what)

    def table(self, number: int) -> Table:
        """The table with an id."""
        return known(self.tables, number, "table")

    def action_of(self, table: Table, number: int) -> Action:
        """An action of a table."""
        if number not in table.actions:
            raise invalid(f"table {table.name} has no action with the id {number}")
        return self.actions[number]


def known(objects: dict[int, T], number: int, what: str) -> T:
    """The object with an id."""
    found = objects.get(number)
    if found is None:
        raise invalid(f"there is no {what} with the id {number}; ids are those of the P4Info that is set")
    return found


class _Named(Protocol):
    @property
    def name(self) -> str: ...


N = TypeVar("N", bound=_Named)


def is_suffix(full: str, name: str) -> bool:
    """Whether a name is the last parts of a full name."""
    return full.endswith(f".{name}")


def named(objects: Mapping[int, N], name: str, what: str) -> N:
    """The object of a full name, or of a suffix of whole parts that only one object has."""
    for one in objects.values():
        if one.name == name:
            return one
    found = [one for one in objects.values() if is_suffix(one.name, name)]
    if len(found) > 1:
        why = f"`{name}` could be any of {len(found)} {what}s"
        raise P4Error.about(f"{what} `{name}`", why, cure="give its full name")
    if not found:
        there = ", ".join(f"`{one.name}`" for one in list(objects.values())[:20])
        cure = f"there are {there}" if there else "the program has none"
        raise P4Error.about(f"{what} `{name}`", f"no {what} `{name}`", code=Code.NOT_FOUND, cure=cure)
    return found[0]


def difference(ours: Any, theirs: Any) -> str | None:
    """Where two P4Infos would have the same messages mean different things; `None`: nowhere."""
    for name in (
        "tables",
        "actions",
        "action_profiles",
        "counters",
        "direct_counters",
        "meters",
        "direct_meters",
        "controller_packet_metadata",
        "value_sets",
        "registers",
        "digests",
    ):
        mine, other = (_by_name(info, name) for info in (ours, theirs))
        what = name.replace("_", " ").removesuffix("s")
        for key in mine.keys() | other.keys():
            if key not in other:
                return f"{what} {key} is not in it"
            if key not in mine:
                return f"{what} {key} is not in the program"
            a, b = (essence(found[key]) for found in (mine, other))
            if a != b:
                return f"{what} {key} is another one (its id, or a part of it)"
    if len(theirs.externs):
        return "it has externs, which this switch does not support"
    return None


def _by_name(info: Any, name: str) -> dict[str, Any]:
    """Objects of a kind. Of actions only those of tables: no message names one that is called only directly."""
    listed = {ref.id for table in info.tables for ref in table.action_refs}
    found = getattr(info, name)
    return {i.preamble.name: i for i in found if name != "actions" or i.preamble.id in listed}


def essence(message: Any) -> Any:
    """A message without what is for people, or is not in the P4Info of every compiler."""
    copy = type(message)()
    copy.CopyFrom(message)
    _strip(copy)
    return copy


_SAID = frozenset(
    {
        "annotations",
        "annotation_locations",
        "structured_annotations",
        "doc",
        "alias",
        "initial_default_action",
        "has_initial_entries",
        "type_name",
        "index_type_name",
        "other_properties",
    }
)


def _strip(message: Any) -> None:
    for descriptor, value in message.ListFields():
        if descriptor.name in _SAID:
            message.ClearField(descriptor.name)
        elif descriptor.message_type is not None:
            parts = value if hasattr(value, "add") else [value]
            for part in parts:
                _strip(part)


__all__ = ["Action", "Array", "Field", "P4Error", "Profile", "Schema", "Table", "difference", "known"]
