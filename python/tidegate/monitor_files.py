"""The files that `tidegate monitor` writes: what can be said of them before anything is read."""

from __future__ import annotations

from collections.abc import Sequence
from os import W_OK, access
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.files import demand_replaceable


def demand_writable(path: Path, suffixes: tuple[str, ...], what: str, captures: Sequence[str]) -> None:
    """Refuse a file that cannot be written, or that is read."""
    if path.suffix not in suffixes:
        raise TidegateError(f"{path}: a {what} has a name with {' or '.join(suffixes)}; give such a name")
    folder = path.parent
    if not folder.is_dir():
        raise TidegateError(f"{path}: there is no folder {folder}; make it first")
    if path.is_dir():
        raise TidegateError(f"{path}: cannot be written: it is a directory; give a file")
    if path.suffix != ".csv":
        # It is written at the end, to a file beside it.
        demand_replaceable(path)
        if not access(folder, W_OK):
            raise TidegateError(f"{path}: cannot be written: no permission for the folder {folder}")
    demand_apart(path, captures)


def demand_apart(path: Path, captures: Sequence[str | Path]) -> None:
    """Refuse a file that is read."""
    if any(path.exists() and Path(one).exists() and path.samefile(one) for one in captures if one != "-"):
        raise TidegateError(f"{path}: is one of the captures, which it would replace; give another name")
