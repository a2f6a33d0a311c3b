"""What a batch that is not written yet will change, for operations of the batch that read."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.translate.base import DELETE

# What identifies an entity, besides the kind: fields of it.
_KEYS = {
    "table_entry": ("table_id", "match", "priority", "is_default_action"),
    "action_profile_member": ("action_profile_id", "member_id"),
    "action_profile_group": ("action_profile_id", "group_id"),
    "value_set_entry": ("value_set_id",),
    "multicast_group_entry": ("multicast_group_id",),
    "clone_session_entry": ("session_id",),
    "counter_entry": ("counter_id", "index"),
    "meter_entry": ("meter_id", "index"),
    "register_entry": ("register_id", "index"),
}


def _opened(entity: Any) -> tuple[str, Any]:
    """Kind and message of an entity."""
    which = entity.WhichOneof("entity")
    found = getattr(entity, which)
    if which == "packet_replication_engine_entry":
        which = found.WhichOneof("type")
        found = getattr(found, which)
    return which, found


def _key(kind: str, message: Any) -> tuple[Any, ...]:
    parts: list[Any] = [kind]
    for name in _KEYS[kind]:
        value = getattr(message, name)
        if name == "match":
            value = tuple(sorted(one.SerializeToString(deterministic=True) for one in value))
        elif name == "index":
            value = value.index if message.HasField("index") else None
        parts.append(value)
    return tuple(parts)


class Overlay:
    """Updates in order, laid over what is read."""

    def __init__(self) -> None:
        self._updates: list[tuple[int, Any]] = []

    def extend(self, updates: Sequence[tuple[int, Any]]) -> None:
        """Further updates."""
        self._updates.extend(updates)

    def over(self, asked: Sequence[Any], found: Sequence[Any]) -> list[Any]:
        """Entities that were read for some requests, as they will be after the updates."""
        entities = {_key(*_opened(entity)): entity for entity in found if _opened(entity)[0] in _KEYS}
        if not entities and found:
            return list(found)
        for kind, entity in self._updates:
            which, message = _opened(entity)
            if which in ("direct_counter_entry", "direct_meter_entry"):
                self._direct(entities, which, message)
                continue
            key = _key(which, message)
            if which in ("counter_entry", "meter_entry", "register_entry") and key[-1] is None:
                self._cells(entities, which, message)
            elif kind == DELETE:
                entities.pop(key, None)
            elif any(self._asks(*_opened(one), which, message) for one in asked):
                entities[key] = entity
        return list(entities.values())

    @staticmethod
    def _asks(kind: str, asked: Any, which: str, message: Any) -> bool:
        """Whether a request asks for an entity."""
        if kind != which:
            return False
        if kind == "table_entry" and asked.is_default_action != message.is_default_action:
            return False
        key, given = _key(kind, asked), _key(kind, message)
        return all(one in (0, (), None, False, other) for one, other in zip(key[1:], given[1:], strict=True))

    @staticmethod
    def _direct(entities: dict[Any, Any], which: str, message: Any) -> None:
        entity = entities.get(_key("table_entry", message.table_entry))
        if entity is None:
            return
        changed = p4.Entity()
        changed.CopyFrom(entity)
        if which == "direct_counter_entry":
            changed.table_entry.counter_data.CopyFrom(message.data)
        elif message.HasField("config"):
            changed.table_entry.meter_config.CopyFrom(message.config)
        else:
            changed.table_entry.ClearField("meter_config")
        entities[_key("table_entry", message.table_entry)] = changed

    @staticmethod
    def _cells(entities: dict[Any, Any], which: str, message: Any) -> None:
        """An update of all cells of an array."""
        for key in [key for key in entities if key[:2] == _key(which, message)[:2]]:
            changed = p4.Entity(**{which: message})
            getattr(changed, which).index.index = key[2]
            entities[key] = changed
