"""Binary messages of the dashboard: the length of a header (32 bits, little-endian), the header in JSON, and columns of 32-bit floats.

The header's `columns` has names and lengths; spaces behind it bring the columns to a multiple of four bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt


def pack(header: Mapping[str, Any], columns: Mapping[str, npt.ArrayLike]) -> bytes:
    """A message.

    >>> pack({"t": 1.0}, {"x": [1.0, 2.0]})[-8:].hex()
    '0000803f00000040'
    """
    arrays = {name: np.asarray(values, dtype="<f4") for name, values in columns.items()}
    about = {**header, "columns": [[name, len(values)] for name, values in arrays.items()]}
    text = json.dumps(about).encode()
    text += b" " * (-len(text) % 4)
    return b"".join(
        [len(text).to_bytes(4, "little"), text, *(values.tobytes() for values in arrays.values())]
    )
