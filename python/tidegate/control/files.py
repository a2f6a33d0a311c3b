"""Controllers from a Python file, as the command line takes them."""

from __future__ import annotations

import os
import runpy
import stat
import traceback
from collections.abc import Sequence
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.control.controller import Controller
from tidegate.files import read_start

NAME = "controllers"


def load(path: Path) -> list[Controller]:
    """The controllers that a file has made: one, or a list of them, by the name `controllers`.

    Raises `TidegateError` for a file that cannot be run or makes none.
    """
    if path.is_dir():
        raise TidegateError(f"{path}: is a folder; give a file of Python that makes `{NAME}`")
    if not path.is_file():
        raise TidegateError(f"{path}: there is no such file; give a file of Python that makes `{NAME}`")
    demand_own(path)
    # What the file itself cannot open is its own affair, and is told with the line.
    read_start(path, 1)
    try:
        made = runpy.run_path(str(path)).get(NAME)
    except TidegateError as error:
        raise TidegateError(f"{path}: {error}") from None
    except (Exception, SystemExit) as error:
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
    """As root, refuse to run what others can change: the file, or the folder that has its name."""
    if os.geteuid() != 0:
        return
    there = path.resolve()
    for one in (there, there.parent):
        about = one.stat()
        sticky = one != there and about.st_mode & stat.S_ISVTX
        if about.st_uid not in (0, _invoker()):
            raise TidegateError(
                f"{path}: {one} is of user {about.st_uid}, who decides what root would run; chown root {one}, or copy the file "
                "to a folder of root's"
            )
        if about.st_mode & 0o022 and not sticky:
            raise TidegateError(
                f"{path}: {one} can be written by others (mode {about.st_mode & 0o7777:o}), who would decide what root runs; "
                f"chmod go-w {one}"
            )


def _invoker() -> int:
    """The user who has become root by sudo: he may do all that root may."""
    given = os.environ.get("SUDO_UID", "")
    return int(given) if given.isdecimal() else 0
