"""Files that are written completely or not at all, and never through a name that somebody else has prepared."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from tidegate._core import TidegateError

NEW = os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def beside(path: Path) -> Path:
    """A name in the folder of `path` that nobody can know beforehand."""
    return path.with_name(f".{path.name[:200]}.{secrets.token_hex(8)}.part")


def why(error: OSError) -> str:
    """What the system says of an error, without its number and the file."""
    return error.strerror or str(error)


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
