"""What a switch's tables are to hold, as the public P4 tutorials write it (`sN-runtime.json`).

Entries of tables, defaults, multicast groups and clone sessions. In these files the larger priority wins, as in P4Runtime.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tidegate import p4
from tidegate._core import TidegateError
from tidegate.control import PipelineApi
from tidegate.control import operations as op
from tidegate.exercises.reading import Place, load
from tidegate.suggest import did_you_mean

KEYS = ("target", "p4info", "bmv2_json", "table_entries", "multicast_group_entries", "clone_session_entries")
ENTRY = ("table", "match", "action_name", "action_params", "default_action", "priority")
LAST_PRIORITY = 2**31 - 1
WITH_PRIORITY = ("ternary", "range", "optional")
PAIRS = {"lpm": ("/", "its length"), "ternary": ("&&&", "its mask"), "range": ("->", "its last value")}


def write(path: Path, program: p4.Program, api: PipelineApi) -> int:
    """Write what the file says into a switch; gives the number of entries. Raises `TidegateError` with the place."""
    about, place = load(path), Place(path)
    place.known(about, KEYS)
    tables = {table["name"]: table for table in program.summary["tables"]}
    count = 0
    parts: dict[str, Callable[[Place, dict[str, Any]], None]] = {
        "table_entries": lambda at, one: _entry(at, one, tables, api),
        "multicast_group_entries": lambda at, one: _group(at, one, api),
        "clone_session_entries": lambda at, one: _session(at, one, api),
    }
    for name, act in parts.items():
        for number, one in enumerate((place / name).expect(about.get(name, []), list)):
            at = place / name / number
            given = at.expect(one, dict)
            try:
                act(at, given)
            except TidegateError as error:
                if str(error).startswith(str(path)):
                    raise
                raise at.wrong(str(error)) from None
            count += 1
    return count


def _named(place: Place, name: object, known: Sequence[str], what: str) -> str:
    """The one of these that is meant: by its full name, or by an end of it that only one has."""
    text = place.expect(name, str)
    found = [one for one in known if one == text] or [one for one in known if one.endswith(f".{text}")]
    if len(found) != 1:
        raise place.wrong(
            f"there is no {what} {text!r}; {did_you_mean(text, known)}known: {', '.join(known)}"
        )
    return found[0]


def _entry(place: Place, given: dict[str, Any], tables: dict[str, Any], api: PipelineApi) -> None:
    place.known(given, ENTRY)
    given = {key: value for key, value in given.items() if value is not None}
    for needed in ("table", "action_name"):
        if needed not in given:
            raise place.wrong(f"there is no {needed}")
    table = tables[_named(place / "table", given["table"], list(tables), "table")]
    actions = {action["name"]: action for action in table["actions"]}
    action = actions[_named(place / "action_name", given["action_name"], list(actions), "action")]
    values = _values(place / "action_params", given.get("action_params", {}), action["parameters"])
    match = (place / "match").expect(given.get("match", {}), dict)
    if given.get("default_action", False) or (not match and table["keys"] == []):
        if match:
            raise place.wrong("a default action has no match")
        api.table_set_default(table["name"], action["name"], values)
        return
    keys = {key["name"]: key for key in table["keys"]}
    (place / "match").known(match, list(keys))
    written = [_match(place / "match" / name, key, match.get(name)) for name, key in keys.items()]
    priority = None
    if any(key["match"] in WITH_PRIORITY for key in keys.values()):
        if "priority" not in given:
            raise place.wrong("there is no priority, which this table needs; the larger one wins")
        larger = (place / "priority").expect(given["priority"], int)
        if not 0 <= larger <= LAST_PRIORITY:
            raise (place / "priority").wrong(f"{larger} is not a priority: 0 to {LAST_PRIORITY}")
        priority = LAST_PRIORITY - larger
    api.table_add(table["name"], written, action["name"], values, priority)


def _values(place: Place, given: object, parameters: list[dict[str, Any]]) -> list[int | str]:
    values = place.expect(given, dict)
    names = [one["name"] for one in parameters]
    place.known(values, names)
    missing = [name for name in names if name not in values]
    if missing:
        raise place.wrong(f"there is no {', '.join(missing)}")
    return [_value(place / one["name"], values[one["name"]], one["bits"]) for one in parameters]


def _value(place: Place, value: object, bits: int) -> int | str:
    """A value; a negative number is written as its two's complement."""
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    if isinstance(value, bool) or not isinstance(value, int | str):
        raise place.wrong(f"{value!r} is neither a number nor an address")
    if isinstance(value, int) and -(1 << bits) >> 1 <= value < 0:
        value += 1 << bits
    return value


def _match(place: Place, key: dict[str, Any], given: object) -> int | str:
    """A match as tables take it; a key that is not mentioned matches anything."""
    kind, bits = key["match"], key["bits"]
    if given is None:
        if kind == "exact":
            raise place.wrong("an exact key needs a value")
        return {"lpm": "0/0", "ternary": "0&&&0", "range": f"0->{2**bits - 1}"}.get(kind, "*")
    if kind not in PAIRS:
        return _value(place, given, bits)
    between, second = PAIRS[kind]
    if not isinstance(given, list) or len(given) != 2:
        raise place.wrong(f"a match of kind {kind} is a list of a value and {second}")
    return f"{_value(place, given[0], bits)}{between}{_value(place, given[1], bits)}"


def _replicas(place: Place, given: object) -> list[tuple[int, int]]:
    copies = []
    for number, one in enumerate(place.expect(given, list)):
        at = place / number
        replica = at.expect(one, dict)
        at.known(replica, ("egress_port", "instance"))
        port = (at / "egress_port").expect(replica.get("egress_port"), int)
        copies.append((port, (at / "instance").expect(replica.get("instance", 0), int)))
    return copies


def _group(place: Place, given: dict[str, Any], api: PipelineApi) -> None:
    place.known(given, ("multicast_group_id", "replicas"))
    group = (place / "multicast_group_id").expect(given.get("multicast_group_id"), int)
    api.multicast_set(group, _replicas(place / "replicas", given.get("replicas")))


def _session(place: Place, given: dict[str, Any], api: PipelineApi) -> None:
    place.known(given, ("clone_session_id", "replicas", "packet_length_bytes", "class_of_service"))
    session = (place / "clone_session_id").expect(given.get("clone_session_id"), int)
    copies = [(instance, port) for port, instance in _replicas(place / "replicas", given.get("replicas"))]
    length = (place / "packet_length_bytes").expect(given.get("packet_length_bytes", 0), int)
    priority = (place / "class_of_service").expect(given.get("class_of_service", 0), int)
    api.act(op.MirrorSet(session, (None, None, copies, priority, length or None), "either"))
