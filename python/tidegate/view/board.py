"""What a page is shown: the newest value of each row, and since which message it has it.

A reader is sent the rows that have changed since its last message, so it can be slow or come late.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.view.frames import Columns, pack

KINDS = {"flow": "flows", "queue": "queues", "port": "ports"}
"""Kinds of rows, and where what is shown has their names."""


class Board:
    """What is shown now."""

    def __init__(self) -> None:
        self.epoch = 0
        """Changes with what is shown."""
        self.number = 0
        """Of the newest message."""
        self.about = json.dumps({"title": "waiting for the run", "kind": "running"})
        self._clear({})

    def _clear(self, about: Mapping[str, Any]) -> None:
        self._sizes = {kind: len(about.get(names, ())) for kind, names in KINDS.items()}
        self._header: dict[str, Any] | None = None
        self._rows: Columns = {}
        self._changed = {kind: np.zeros(size, np.int64) for kind, size in self._sizes.items()}
        self._whole: dict[str, tuple[int, npt.NDArray[np.float32]]] = {}

    def begin(self, about: Mapping[str, Any]) -> None:
        """Something else is shown from now on."""
        self.epoch += 1
        self.about = json.dumps(about)
        self._clear(about)

    def update(self, header: Mapping[str, Any], columns: Columns) -> None:
        """A message has come."""
        self.number += 1
        self._header = dict(header)
        for name, values in columns.items():
            kind, _, field = name.partition(" ")
            if kind not in KINDS:
                self._whole[name] = (self.number, values)
            elif field != "at":
                at = self._at(kind, columns)
                if name not in self._rows:
                    self._rows[name] = np.full(self._sizes[kind], np.nan, "<f4")
                self._rows[name][at] = values
                self._changed[kind][at] = self.number

    def _at(self, kind: str, columns: Columns) -> Any:
        at = columns.get(f"{kind} at")
        return slice(None) if at is None else at.astype(np.int64)

    def since(self, number: int) -> bytes | None:
        """A message with what has changed since the one of this number; `None` if nothing has."""
        if self._header is None or number >= self.number:
            return None
        columns: Columns = {name: values for name, (at, values) in self._whole.items() if at > number}
        for kind, changed in self._changed.items():
            of_kind = {name: values for name, values in self._rows.items() if name.startswith(f"{kind} ")}
            if not of_kind:
                continue
            (at,) = np.nonzero(changed > number)
            if len(at) < len(changed):
                columns[f"{kind} at"] = at.astype("<f4")
                of_kind = {name: values[at] for name, values in of_kind.items()}
            columns |= of_kind
        return pack(self._header, columns)
