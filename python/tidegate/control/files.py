"""Controllers from a Python file, as the command line takes them."""

from __future__ import annotations

import runpy
import traceback
from collections.abc import Sequence
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.control.controller import Controller

NAME = "controllers"


def load(path: Path) -> list[Controller]:
    """The controllers that a file has made: one, or a list of them, by the name `controllers`.

    Raises `TidegateError` for a file that cannot be run or makes none.
    """
    if not path.is_file():
        raise TidegateError(f"{path}: there is no such file")
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
