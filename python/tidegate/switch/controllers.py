"""Controllers of a switch that runs: a Python file says which."""

from __future__ import annotations

import heapq
import runpy
import sys
import threading
import traceback
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller
from tidegate.control.controller import news_of, period_of
from tidegate.switch.running import LiveSwitch

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
    except Exception as error:
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


class Controlled:
    """A running switch with its controllers, while the `with` block runs.

    They tick by the clock on a thread of their own, one at a time. One that fails is told of and stops; the switch goes on with
    what it has set last.
    """

    def __init__(self, live: LiveSwitch, controllers: Sequence[Controller]) -> None:
        self._live = live
        self._running = list(controllers)
        self._turn = threading.RLock()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._tick, name="controllers", daemon=True)

    def __enter__(self) -> Self:
        """Start them. Raises what one of them raises."""
        for controller in self._running:
            period_of(controller)
            controller.start(self._live.api)
        self._live.listen(self._deliver)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop them; the switch keeps what they have set."""
        self._ended.set()
        self._thread.join()

    def _tick(self) -> None:
        start = self._live.api.now
        agenda = [
            (start + period, number, period)
            for number, controller in enumerate(self._running)
            if (period := period_of(controller)) is not None
        ]
        heapq.heapify(agenda)
        every = list(self._running)
        while agenda:
            due, number, period = agenda[0]
            if self._ended.wait(max(0, due - self._live.api.now) / units.PS_PER_S):
                return
            controller = every[number]
            with self._turn:
                if controller in self._running:
                    self._do(controller, "tick")
                gone = controller not in self._running
            if gone:
                heapq.heappop(agenda)
                continue
            # Ticks that a slow one has missed are left out.
            missed = max(0, self._live.api.now - due) // period
            heapq.heapreplace(agenda, (due + (missed + 1) * period, number, period))

    def _deliver(self) -> None:
        with self._turn:
            for method, message in news_of(self._live.control):
                for controller in list(self._running):
                    self._do(controller, method, message)

    def _do(self, controller: Controller, method: str, *what: object) -> None:
        api = self._live.api
        try:
            getattr(controller, method)(api.now, api, *what)
        except Exception as error:
            self._running.remove(controller)
            sys.stderr.write(
                f"error: the controller {type(controller).__name__} failed in {method}: {type(error).__name__}: {error}; "
                "the switch goes on with what it has set last\n"
            )
