"""JSON files that people write: read with the place of what is wrong in them."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection
from pathlib import Path
from typing import Any, TypeVar

from tidegate._core import TidegateError
from tidegate.files import BEYOND, read_text
from tidegate.suggest import did_you_mean

T = TypeVar("T")
LARGEST = 16 << 20
KINDS = {dict: "an object", list: "a list", str: "a text", int: "a whole number", bool: "true or false"}


def load(path: Path) -> dict[str, Any]:
    """The object in a file; raises `TidegateError` with line and column."""
    text = read_text(path, LARGEST)
    if not text.strip():
        raise TidegateError(f"{path}: is empty; it is to hold an object of JSON")
    twice: list[tuple[dict[str, Any], str]] = []

    def made(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """An object; JSON's parser would take the last of two values of a key."""
        one = dict(pairs)
        if len(one) < len(pairs):
            counts = Counter(name for name, _ in pairs)
            twice.append((one, next(name for name, count in counts.items() if count > 1)))
        return one

    try:
        found = json.loads(text, object_pairs_hook=made)
    except json.JSONDecodeError as error:
        raise TidegateError(f"{path}:{error.lineno}:{error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError):
        raise TidegateError(f"{path}: {BEYOND}") from None
    if twice:
        raise _of_object(Place(path), found, twice)
    return Place(path).expect(found, dict)


def _of_object(place: Place, found: object, twice: list[tuple[dict[str, Any], str]]) -> TidegateError:
    """What is wrong with the first of these objects, of which each has a key twice."""
    known = {id(one): key for one, key in twice}
    waiting = [(place, found)]
    while waiting:
        at, value = waiting.pop()
        if id(value) in known:
            return (at / known[id(value)]).wrong("this key is there twice; leave one of them out")
        parts = (
            value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
        )
        waiting += reversed([(at / key, part) for key, part in parts])
    # It stood in a value that another of the same key has replaced.
    return place.wrong(f"the key {twice[0][1]!r} is there twice; leave one of them out")


def shown(text: str) -> str:
    r"""Text of a file for a message: what a terminal would carry out, or that is no text, is escaped.

    >>> shown("h\x1b[2J1\n")
    'h\\x1b[2J1\\n'
    """
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode("ascii") for one in text)


class Place:
    """Where in a file a value stands, for messages: `topology.json: hosts.h1.ip`."""

    def __init__(self, path: Path, *keys: object) -> None:
        self._path = path
        self._keys = keys

    def __truediv__(self, key: object) -> Place:
        return Place(self._path, *self._keys, key)

    def __str__(self) -> str:
        text = ""
        for key in self._keys:
            text += f"[{key}]" if isinstance(key, int) else f".{key}" if text else str(key)
        return f"{self._path}: {shown(text)}" if text else str(self._path)

    def wrong(self, what: str) -> TidegateError:
        """The error of what stands here."""
        return TidegateError(f"{self}: {shown(what)}")

    def expect(self, value: object, kind: type[T]) -> T:
        """The value, which is to be of this kind."""
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"{json.dumps(value)[:60]} is not {KINDS[kind]}")
        return value

    def known(self, found: dict[str, Any], names: Collection[str]) -> None:
        """Refuse what has another name than these."""
        for name in found:
            if name not in names:
                raise self.wrong(
                    f"there is no {name!r}; {did_you_mean(name, names)}known: {', '.join(names)}"
                )
