"""Controllers of a switch that runs: a Python file says which."""

from __future__ import annotations

import heapq
import runpy
import sys
import threading
import traceback
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control import Controller
from tidegate.control.controller import news_of, period_of
from tidegate.switch.running import LiveSwitch

NAME = "controllers"

PATIENCE_S = 2.0
"""How long the end waits for a start or a tick."""
TURN_S = 0.2
"""How long news waits for one, and how often the beginning looks whether all is to end."""


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


class Controlled:
    """A running switch with its controllers, while the `with` block runs.

    They tick by the clock on a thread of their own, one at a time. One that fails is told of and stops; the switch goes on with
    what it has set last. One that does not come back is told of at the end, which does not wait for it; nor does the beginning,
    once `told` says that all is to end.
    """

    def __init__(
        self, live: LiveSwitch, controllers: Sequence[Controller], told: Callable[[], bool] = lambda: False
    ) -> None:
        self._live = live
        self._running = list(controllers)
        self._turn = threading.RLock()
        self._ended = threading.Event()
        self._told = told
        self._started = threading.Event()
        self._failure: TidegateError | None = None
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def __enter__(self) -> Self:
        """Start them. Raises `TidegateError` for one that fails."""
        for controller in self._running:
            period_of(controller)
        self._thread.start()
        while not (self._started.wait(TURN_S) or self._told()):
            pass
        if self._failure is not None:
            raise self._failure
        self._live.listen(self._deliver)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop them; the switch keeps what they have set."""
        self._ended.set()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            sys.stderr.write("warning: a controller has not come back; ending without it\n")

    def _run(self) -> None:
        for controller in self._running:
            try:
                controller.start(self._live.api)
            except (Exception, SystemExit) as error:
                self._failure = TidegateError(_failed(controller, "start", error))
                self._failure.__cause__ = error
                break
        self._started.set()
        if self._failure is None:
            self._tick()

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
        if not self._turn.acquire(timeout=TURN_S):
            # A tick takes long. The news waits; whoever wants to end the switch does not.
            return
        try:
            for method, message in news_of(self._live.control):
                for controller in list(self._running):
                    self._do(controller, method, message)
        finally:
            self._turn.release()

    def _do(self, controller: Controller, method: str, *what: object) -> None:
        api = self._live.api
        try:
            getattr(controller, method)(api.now, api, *what)
        except (Exception, SystemExit) as error:
            self._running.remove(controller)
            sys.stderr.write(
                f"error: {_failed(controller, method, error)}; the switch goes on with what it has set last\n"
            )


def _failed(controller: Controller, method: str, error: BaseException) -> str:
    name = type(controller).__name__
    where = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.name == method]
    place = f" ({where[-1].filename}:{where[-1].lineno})" if where else ""
    what = str(error) if isinstance(error, TidegateError) else f"{type(error).__name__}: {error}"
    return f"the controller {name} failed in {method}{place}: {what}"
