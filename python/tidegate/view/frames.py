"""Binary messages of the dashboard: the length of a header (32 bits, little-endian), the header in JSON, and columns of 32-bit floats.

The header's `columns` has names and lengths; spaces behind it bring the columns to a multiple of four bytes. A column is named after
the kind of its rows, `flow`, `queue` or `port`; where there is a column `KIND at`, those of that kind have the rows of these numbers
alone, and the others are as they were.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from tidegate.files import json_text

Columns = dict[str, npt.NDArray[np.float32]]


def pack(header: Mapping[str, Any], columns: Mapping[str, npt.ArrayLike]) -> bytes:
    """A message; what is not finite in the header is null.

    >>> pack({"t": 1.0}, {"x": [1.0, 2.0]})[-8:].hex()
    '0000803f00000040'
    """
    arrays = {name: np.asarray(values, dtype="<f4") for name, values in columns.items()}
    about = {**header, "columns": [[name, len(values)] for name, values in arrays.items()]}
    text = json_text(about).encode()
    text += b" " * (-len(text) % 4)
    return b"".join(
        [len(text).to_bytes(4, "little"), text, *(values.tobytes() for values in arrays.values())]
    )


def unpack(message: bytes) -> tuple[dict[str, Any], Columns]:
    """The header and the columns of a message.

    >>> header, columns = unpack(pack({"t": 1.0}, {"x": [1.0, 2.0]}))
    >>> header, columns["x"].tolist()
    ({'t': 1.0}, [1.0, 2.0])
    """
    at = 4 + int.from_bytes(message[:4], "little")
    header = json.loads(message[4:at])
    columns: Columns = {}
    for name, count in header.pop("columns"):
        columns[name] = np.frombuffer(message, "<f4", count, at)
        at += 4 * count
    return header, columns
