"""Distributions of flow sizes, for `Network.workload`.

A distribution is a file of two columns: a size in bytes, and the share of flows up to this size (CDF). Between two lines sizes
are uniform. The last share is 1. `#` begins a comment. `web-search` and `data-mining` come with Tidegate.
"""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from tidegate._core import Sizes, TidegateError
from tidegate.files import limited
from tidegate.suggest import did_you_mean

FOLDER = Path(__file__).parent
MOST_BYTES = 1 << 20
"""Of a file."""


def known() -> list[str]:
    """Names of the distributions that come with Tidegate."""
    return sorted(path.stem for path in FOLDER.glob("*.cdf"))


def sizes(which: str | PathLike[str] | Sizes) -> Sizes:
    """The distribution of that name or file; raises `TidegateError` if there is none."""
    if isinstance(which, Sizes):
        return which
    path = FOLDER / f"{which}.cdf" if which in known() else Path(which)
    try:
        text = limited(path, MOST_BYTES).decode()
    except OSError:
        raise TidegateError(
            f"there is no distribution of flow sizes {str(which)!r}; {did_you_mean(which, known())}known: {', '.join(known())}, or a file"
        ) from None
    except UnicodeDecodeError:
        raise TidegateError(f"{path}: is not text") from None
    except ValueError as error:
        raise TidegateError(f"{path}: {error}") from None
    try:
        return Sizes(text)
    except TidegateError as error:
        raise TidegateError(f"{path}: {error}") from None
