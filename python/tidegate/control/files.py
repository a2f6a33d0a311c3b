"""Controllers from a Python file, as the command line takes them."""

from __future__ import annotations

import os
import stat
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

from tidegate._core import TidegateError
from tidegate.control.controller import Controller
from tidegate.files import invoker, why

NAME = "controllers"
MOST_LINKS = 40
"""As many as the kernel follows."""


def load(path: Path) -> list[Controller]:
    """The controllers that a file has made: one, or a list of them, by the name `controllers`.

    Raises `TidegateError` for a file that cannot be run or makes none.
    """
    if path.is_dir():
        raise TidegateError(f"{path}: is a folder; give a file of Python that makes `{NAME}`")
    if not path.is_file():
        raise TidegateError(f"{path}: there is no such file; give a file of Python that makes `{NAME}`")
    text = _read_own(path)
    # What the file itself cannot open is its own affair, and is told with the line.
    try:
        made = _run(path, text).get(NAME)
    except TidegateError as error:
        raise TidegateError(f"{path}: {error}") from None
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        lines = [
            frame.lineno for frame in traceback.extract_tb(error.__traceback__) if frame.filename == str(path)
        ]
        line = error.lineno if isinstance(error, SyntaxError) else (lines or [None])[-1]
        where = path if line is None else f"{path}:{line}"
        raise TidegateError(f"{where}: {type(error).__name__}: {error}") from None
    controllers = [made] if isinstance(made, Controller) else made
    if (
        not isinstance(controllers, Sequence)
        or not controllers
        or not all(isinstance(controller, Controller) for controller in controllers)
    ):
        raise TidegateError(
            f"{path}: makes no controller; give the name `{NAME}` to a tidegate.control.Controller, or to a list of them"
        )
    return list(controllers)


def demand_own(path: Path) -> None:
    """As root, refuse to run what others can change: the file, or a folder that has its name or that of a link to it."""
    if os.geteuid() != 0:
        return
    at = Path(os.path.abspath(path))
    try:
        for _ in range(MOST_LINKS):
            _demand_own(path, at.parent, at.parent.stat())
            if not at.is_symlink():
                break
            at = at.parent.resolve() / at.readlink()
        there = path.resolve()
        _demand_own(path, there.parent, there.parent.stat())
        _demand_own(path, there, there.stat())
    except OSError as error:
        raise TidegateError(f"{path}: {why(error)}") from None


def _demand_own(path: Path, one: Path, about: os.stat_result) -> None:
    if about.st_uid not in (0, invoker()):
        raise TidegateError(
            f"{path}: {one} is of user {about.st_uid}, who decides what root would run; chown root {one}, or copy the file "
            "to a folder of root's"
        )
    sticky = stat.S_ISDIR(about.st_mode) and about.st_mode & stat.S_ISVTX
    if about.st_mode & 0o022 and not sticky:
        raise TidegateError(
            f"{path}: {one} can be written by others (mode {about.st_mode & 0o7777:o}), who would decide what root runs; "
            f"chmod go-w {one}"
        )


def _read_own(path: Path) -> bytes:
    """The text of the file, which is checked as it is open: its name may lead elsewhere by now."""
    demand_own(path)
    try:
        with path.open("rb") as file:
            if os.geteuid() == 0:
                _demand_own(path, path.resolve(), os.fstat(file.fileno()))
            return file.read()
    except OSError as error:
        raise TidegateError(f"{path}: {why(error)}") from None


def _run(path: Path, text: bytes) -> dict[str, Any]:
    """The names that it makes, as `runpy.run_path` does, of text that has been read."""
    module = ModuleType("<run_path>")
    module.__file__ = str(path)
    before = sys.modules.get(module.__name__)
    sys.modules[module.__name__] = module
    try:
        exec(compile(text, str(path), "exec"), vars(module))
    finally:
        del sys.modules[module.__name__]
        if before is not None:
            sys.modules[module.__name__] = before
    return vars(module)
