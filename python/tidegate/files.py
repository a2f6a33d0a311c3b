"""Files that are written completely or not at all, and never through a name that somebody else has prepared; and users' files, read with a bound."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tidegate._core import TidegateError

NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def beside(path: Path) -> Path:
    """A name in the folder of `path` that nobody can know beforehand."""
    return path.with_name(f".{path.name[:200]}.{os.urandom(8).hex()}.part")


def why(error: OSError) -> str:
    """What the system says of an error, without its number and the file."""
    return error.strerror or str(error)


def read_start(path: Path, most: int) -> bytes:
    """The first bytes of a user's file, so many at most; raises `TidegateError` where it cannot be read."""
    try:
        with path.open("rb") as file:
            return file.read(most)
    except OSError as error:
        raise TidegateError(f"{path}: {why(error)}") from None


def read_text(path: Path, most: int) -> str:
    """A user's file of so many bytes at most, in UTF-8; raises `TidegateError` for another one."""
    data = read_start(path, most + 1)
    if len(data) > most:
        raise TidegateError(f"{path}: has more than {most} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise TidegateError(f"{path}: is not UTF-8: {error.reason} at byte {error.start}") from None


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A new file that takes the place of `path` when the block is done: of a symbolic link's own, not of what it leads to.

    Raises `TidegateError` where that is not possible. What there is stays until then.
    """
    part = beside(path)
    try:
        with os.fdopen(os.open(part, NEW | os.O_WRONLY, 0o666), "wb") as file:
            yield file
        part.replace(path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise TidegateError(f"{path}: cannot be written: {why(error)}") from None
    except BaseException:
        part.unlink(missing_ok=True)
        raise
