"""What readers ask for: checked, and put together until the run hears of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

MOST_WATCHED = 256
"""Flows that are looked at each time because somebody is shown them."""
MOST_NAME = 200
"""Characters of a flow's name."""
MOST_STEP = 40
"""Characters of a step."""


def _number(value: Any) -> bool:
    return type(value) is int and -1 <= value < 2**31


COMMANDS: dict[str, Callable[[Any], bool]] = {
    "pause": lambda value: type(value) is bool,
    "step": lambda value: isinstance(value, str) and len(value) <= MOST_STEP,
    "trace": _number,
    "only": lambda value: isinstance(value, str) and len(value) <= MOST_NAME,
    "case": _number,
    "watch": lambda value: (
        isinstance(value, list) and len(value) <= MOST_WATCHED and all(_number(one) for one in value)
    ),
}


def understood(text: str | None) -> dict[str, Any]:
    """The commands in a message of a reader; what makes no sense is none."""
    try:
        said = json.loads(text or "null")
    except (ValueError, RecursionError):
        return {}
    if not isinstance(said, dict):
        return {}
    return {name: said[name] for name, fits in COMMANDS.items() if name in said and fits(said[name])}


class Asked:
    """What readers have asked for that the run has not heard of: of each command the newest."""

    def __init__(self) -> None:
        self._said: dict[str, Any] = {}
        self._watched: dict[object, list[int]] = {}

    def hear(self, reader: object, text: str | None) -> None:
        """A reader has said something."""
        said = understood(text)
        if "watch" in said:
            self._watched[reader] = said.pop("watch")
            self._watch()
        self._said |= said

    def come(self, reader: object) -> None:
        """A reader has come."""
        self._watched[reader] = []
        self._said["readers"] = len(self._watched)

    def leave(self, reader: object) -> None:
        """A reader is gone."""
        self._watched.pop(reader, None)
        self._said["readers"] = len(self._watched)
        self._watch()

    def say(self, **what: Any) -> None:
        """Ask for something in no reader's name."""
        self._said |= what

    def _watch(self) -> None:
        every = dict.fromkeys(flow for flows in self._watched.values() for flow in flows)
        self._said["watch"] = list(every)[:MOST_WATCHED]

    def take(self) -> bytes | None:
        """All of it as a message; `None` if there is nothing."""
        said, self._said = self._said, {}
        return json.dumps(said).encode() if said else None
