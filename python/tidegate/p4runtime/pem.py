"""Files in PEM, of a server and of a client."""

from __future__ import annotations

from pathlib import Path

from tidegate._core import TidegateError
from tidegate.files import demand_secret

LARGEST_FILE = 1 << 20
"""Of a key, and of a certificate."""


def read(path: Path, secret: bool = False) -> bytes:
    """A certificate, or a key, which others must not be able to read. Raises `TidegateError`."""
    try:
        with path.open("rb") as file:
            if secret:
                demand_secret(file, path)
            data = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise TidegateError(f"{path}: cannot be read: {error.strerror}") from None
    if len(data) > LARGEST_FILE:
        raise TidegateError(f"{path}: has more than {LARGEST_FILE} bytes")
    return data
