"""What is the user's own and named by a parameter, as a scheme by `./my.py:scheme`.

It is found where it is given, and known from then on by where it is and by the digest of its files. So a record can be read and drawn again
without running its code, and other processes and machines load it where they need it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Own:
    """Something of a user's file, or of an installed package."""

    name: str
    """In rows, cases and figures."""
    source: str
    """`/home/me/my.py:scheme`, or the name of an entry point."""
    files: str
    """The digest of what it depends on."""

    def __str__(self) -> str:
        return self.name

    def recorded(self) -> dict[str, str]:
        """As a record has it."""
        return asdict(self)


def is_recorded(value: Any) -> bool:
    """Whether a value of a record is one."""
    return (
        isinstance(value, Mapping)
        and value.keys() == {"name", "source", "files"}
        and all(isinstance(one, str) for one in value.values())
    )
