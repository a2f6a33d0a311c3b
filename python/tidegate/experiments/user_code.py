"""Code that is not Tidegate's: which it is, and errors in it as one message with the file and line.

Users' code runs in the middle of ours: experiments, controllers, measurements. What it raises is not a bug of Tidegate's, and a traceback
through our files would hide the one line that matters.
"""

from __future__ import annotations

import functools
import inspect
import os
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import CodeType
from typing import Any, TypeVar

from tidegate import systems
from tidegate._core import TidegateError

T = TypeVar("T")

PACKAGE = Path(__file__).resolve().parents[1]
LIBRARIES = {
    PACKAGE,
    *(Path(sysconfig.get_path(name)).resolve() for name in ("stdlib", "platstdlib", "purelib", "platlib")),
}
HELPERS = {str(PACKAGE / name) for name in ("claims.py", "measures.py", "plots.py")}
"""Our functions for users' code that only compute from what they are given: as with NumPy's, their errors are at whoever called them."""
_roots: set[Path] = {Path(folder).resolve() for folder in systems.ELSEWHERE}


def add_root(folder: Path) -> None:
    """Files in this folder are users' code from now on."""
    _roots.add(folder.resolve())


def is_users(name: str) -> bool:
    """Whether a file is a user's: the innermost folder that is known, above it, is one of theirs."""
    if name.startswith("<"):
        # Made by code, as methods of dataclasses are.
        return False
    for folder in Path(name).resolve().parents:
        if folder in _roots:
            return True
        if folder in LIBRARIES:
            return False
    return False


def shown(path: str | Path) -> str:
    """A file as a message names it: from here on if it is below, and in full elsewhere."""
    name = os.path.relpath(path)
    return str(path) if name.startswith("..") else name


def defined(function: Any) -> str:
    """File, line and name of a function, or of what can be called as one."""
    name, code = _named(function)
    return name if code is None else f"{shown(code.co_filename)}:{code.co_firstlineno}: {name}"


def is_defined(function: Any) -> bool:
    """Whether a function, or what can be called as one, is in a user's file."""
    _, code = _named(function)
    return code is not None and is_users(code.co_filename)


def called(function: Callable[..., T], *given: Any) -> T:
    """What a user's function returns. Raises `TidegateError` for one that does not take so many arguments."""
    try:
        inspect.signature(function).bind(*given)
    except TypeError as error:
        count = "one argument" if len(given) == 1 else f"{len(given)} arguments"
        kinds = ", ".join(type(one).__name__ for one in given)
        raise TidegateError(f"{defined(function)} is called with {count} ({kinds}): {error}") from None
    except ValueError:
        # Some of C do not say what they take.
        pass
    return function(*given)


def _named(function: Any) -> tuple[str, CodeType | None]:
    while isinstance(function, functools.partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None:
        function = type(function)
        code = getattr(function.__call__, "__code__", None)
    return getattr(function, "__name__", repr(function)), code


def place(error: BaseException) -> str | None:
    """File and line in users' code that an error comes from; `None` if it comes from ours."""
    if isinstance(error, SyntaxError) and error.filename is not None and is_users(error.filename):
        return f"{shown(error.filename)}:{error.lineno}"
    frames = traceback.extract_tb(error.__traceback__)
    users = [frame for frame in frames if is_users(frame.filename)]
    if not users:
        return None
    if not isinstance(error, TidegateError):
        # Numpy and the like are at whoever called them.
        ours = [
            frame
            for frame in frames
            if is_users(frame.filename)
            or (Path(frame.filename).is_relative_to(PACKAGE) and frame.filename not in HELPERS)
        ]
        if ours[-1] is not users[-1]:
            return None
    return f"{shown(users[-1].filename)}:{users[-1].lineno}"


def told(error: BaseException) -> BaseException:
    """The error, or a `TidegateError` that says where in users' code it comes from."""
    if isinstance(error, KeyboardInterrupt | MemoryError) or getattr(error, "placed", False):
        return error
    where = place(error)
    if where is None:
        return error
    if isinstance(error, SystemExit):
        text = f"{where}: ends the process ({error!r}); raise an error, and put what a script does under `if __name__ == '__main__'`"
    elif isinstance(error, TidegateError):
        text = f"{where}: {error}"
    elif isinstance(error, SyntaxError):
        text = f"{where}: {type(error).__name__}: {error.msg}"
    else:
        text = f"{where}: {type(error).__name__}: {_text(error)}".rstrip(": ")
    made = TidegateError(text)
    made.placed = True  # type: ignore[attr-defined]
    return made


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception as other:
        return f"(its text cannot be made: {type(other).__name__})"


@contextmanager
def blamed() -> Iterator[None]:
    """Errors of users' code come out of this as `TidegateError` with their place."""
    try:
        yield
    except BaseException as error:
        other = told(error)
        if other is error:
            raise
        raise other from None
