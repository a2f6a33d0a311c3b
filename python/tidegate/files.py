"""Atomic writes under unpredictable temporary names, and size-limited reads of users' files."""

from __future__ import annotations

import json
import math
import os
import stat
import tomllib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

from tidegate._core import TidegateError

BEYOND = "a number has too many digits, or values are nested too deeply"
"""What parsers of JSON and TOML fail at with ValueError and RecursionError, without a place."""

NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def beside(path: Path) -> Path:
    """A name in the folder of `path` that nobody can know beforehand."""
    return path.with_name(f".{path.name[:200]}.{os.urandom(8).hex()}.part")


def why(error: OSError) -> str:
    """What the system says of an error, without its number and the file."""
    return error.strerror or str(error)


def json_text(value: object, **how: Any) -> str:
    """JSON text; NaN and infinite numbers, which JSON does not have, are null. `how` is of `json.dumps`.

    >>> json_text({"rtt_ms": [1.5, float("nan")]})
    '{"rtt_ms": [1.5, null]}'
    """
    return json.dumps(_finite(value), allow_nan=False, **how)


def _finite(value: Any) -> Any:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(one) for key, one in value.items()}
    return [_finite(one) for one in value] if isinstance(value, list | tuple) else value


def limited(path: Path, most: int) -> bytes:
    """A file of so many bytes at most. Raises `OSError`, and `ValueError` for a longer one."""
    with path.open("rb") as file:
        data = file.read(most + 1)
    if len(data) > most:
        raise ValueError(f"has more than {most} bytes")
    return data


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


def toml(text: str) -> dict[str, Any]:
    """What TOML says. Raises `tomllib.TOMLDecodeError`, also for what its parser fails at with other errors."""
    try:
        found = tomllib.loads(text)
        # Messages show values; hexadecimal numbers can have more digits than can be shown.
        repr(found)
    except tomllib.TOMLDecodeError:
        raise
    except (ValueError, RecursionError):
        raise tomllib.TOMLDecodeError(BEYOND) from None
    return found


def demand_secret(file: BinaryIO, path: Path) -> None:
    """Refuse an open key file that others can read, or that is of another user."""
    about = os.fstat(file.fileno())
    if about.st_mode & 0o077:
        raise TidegateError(
            f"key file {path} can be read by others (mode {about.st_mode & 0o777:o}): chmod 600 {path}"
        )
    if about.st_uid not in (0, os.geteuid()):
        raise TidegateError(
            f"key file {path} is of user {about.st_uid}, who knows the keys: chown {os.geteuid()} {path}"
        )


def invoker() -> int:
    """The user who has become root by sudo: he may do all that root may."""
    given = os.environ.get("SUDO_UID", "")
    return int(given) if given.isdecimal() else 0


def demand_replaceable(path: Path) -> None:
    """Refuse a device, a pipe or a socket, and a link to one: a file would take its place, as that of /dev/stdout for everybody."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
        raise TidegateError(f"{path}: cannot be written: it is a device or a pipe; give a file")


@contextmanager
def replacing(path: Path) -> Iterator[BinaryIO]:
    """A temporary file that replaces `path` when the block ends; a symbolic link there is replaced, not followed.

    Raises `TidegateError` where that is not possible. What there is stays until then; a device or a pipe stays.
    """
    demand_replaceable(path)
    try:
        with exchanged(path) as file:
            yield file
    except OSError as error:
        raise TidegateError(f"{path}: cannot be written: {why(error)}") from None


@contextmanager
def exchanged(path: Path) -> Iterator[BinaryIO]:
    """`replacing` of a file in a folder of ours: raises `OSError`."""
    part = beside(path)
    try:
        with os.fdopen(os.open(part, NEW | os.O_WRONLY, 0o666), "wb") as file:
            yield file
        part.replace(path)
    except BaseException:
        part.unlink(missing_ok=True)
        raise


def given_twice(paths: Iterable[str | Path]) -> str | Path | None:
    """The first path to what was given before, by whatever path or link (as os.path.samefile has it). The word `-` is standard input."""
    known = set()
    for one in paths:
        try:
            found = os.fstat(0) if one == "-" else os.stat(one)
        except OSError:
            # Reading it says why.
            continue
        if (found.st_dev, found.st_ino) in known:
            return one
        known.add((found.st_dev, found.st_ino))
    return None
