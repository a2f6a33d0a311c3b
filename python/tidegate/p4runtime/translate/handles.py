"""Handles of table entries at a client: P4Runtime names an entry by its key alone."""

from __future__ import annotations

from typing import Any

from tidegate.p4runtime.messages import p4


class Handles:
    """Numbers of entries, for each table from 0. A number that has become free is used again, the last one first."""

    def __init__(self) -> None:
        self._keys: dict[int, dict[int, Any]] = {}
        self._numbers: dict[int, dict[bytes, int]] = {}
        self._free: dict[int, list[int]] = {}

    def saved(self) -> Handles:
        """A copy."""
        made = Handles()
        made.restore(self)
        return made

    def restore(self, saved: Handles) -> None:
        """Be what a copy is."""
        self._keys = {table: dict(keys) for table, keys in saved._keys.items()}
        self._numbers = {table: dict(numbers) for table, numbers in saved._numbers.items()}
        self._free = {table: list(free) for table, free in saved._free.items()}

    @staticmethod
    def key(entry: Any) -> Any:
        """`p4.TableEntry` with the key of an entry alone."""
        return p4.TableEntry(table_id=entry.table_id, match=entry.match, priority=entry.priority)

    def of(self, entry: Any) -> int:
        """The handle of an entry."""
        key = self.key(entry)
        keys, numbers = self._keys.setdefault(key.table_id, {}), self._numbers.setdefault(key.table_id, {})
        text = key.SerializeToString(deterministic=True)
        number = numbers.get(text)
        if number is None:
            free = self._free.get(key.table_id)
            number = free.pop() if free else len(keys)
            numbers[text], keys[number] = number, key
        return number

    def find(self, table: int, handle: int) -> Any:
        """The key of a handle's entry; `None`: this client knows no such entry."""
        return self._keys.get(table, {}).get(handle)

    def known(self, table: int) -> bool:
        """Whether an entry of this table has ever had a handle."""
        return table in self._keys

    def forget(self, entry: Any) -> None:
        """An entry is gone."""
        text = self.key(entry).SerializeToString(deterministic=True)
        number = self._numbers.get(entry.table_id, {}).pop(text, None)
        if number is not None:
            del self._keys[entry.table_id][number]
            self._free.setdefault(entry.table_id, []).append(number)
