"""Controllers of a switch that runs."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Self

from tidegate import logs, units
from tidegate._core import TidegateError
from tidegate.control import Controller
from tidegate.control.controller import LIVE_CLOCK, demand_clock, period_of
from tidegate.control.delivery import Mailbox
from tidegate.control.runner import Managed, Runner, failure
from tidegate.switch.running import LiveSwitch

log = logs.logger("tidegate.switch")

PATIENCE_S = 2.0
"""How long the end waits for a start or a tick."""
TURN_S = 0.2
"""How often the beginning looks whether all is to end."""


class _RealTime:
    """A switch's clock, which waits for messages too."""

    def __init__(self, live: LiveSwitch, mailbox: Mailbox) -> None:
        self._api = live.api
        self._mailbox = mailbox

    def now(self) -> int:
        """The switch's time."""
        return self._api.now

    def wait(self, until: int) -> int:
        """Wait until a time, a message, or the end."""
        self._mailbox.wait(max(0, until - self.now()) / units.PS_PER_S)
        return self.now()


class Controlled:
    """A running switch with its controllers, while the `with` block runs.

    They work by the clock on a thread of their own, one at a time. One that fails is told of and stops; the switch goes on with
    what it has set last. One that does not come back is told of at the end, which does not wait for it; nor does the beginning,
    once `told` says that all is to end.
    """

    def __init__(
        self, live: LiveSwitch, controllers: Sequence[Controller], told: Callable[[], bool] = lambda: False
    ) -> None:
        self._live = live
        self._controllers = list(controllers)
        self._mailbox = Mailbox()
        self._runner = Runner(
            [Managed(live.api, self._mailbox, self._controllers, live.subject)],
            _RealTime(live, self._mailbox),
            self._failed,
        )
        self._told = told
        self._started = threading.Event()
        self._failure: TidegateError | None = None
        self._thread = threading.Thread(target=self._run, name="controllers", daemon=True)

    def __enter__(self) -> Self:
        """Start them. Raises `TidegateError` for one that fails."""
        for controller in self._controllers:
            period_of(controller)
            demand_clock(controller, LIVE_CLOCK, self._live.api.name, "run it in the simulator")
        self._thread.start()
        while not (self._started.wait(TURN_S) or self._told()):
            pass
        if self._failure is not None:
            raise self._failure
        self._live.listen(self._mailbox)
        self._live.dropped = lambda: dict(self._mailbox.dropped)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop them; the switch keeps what they have set."""
        self._mailbox.close()
        self._thread.join(PATIENCE_S)
        if self._thread.is_alive():
            log.warning("warning: a controller has not come back; ending without it")

    def _run(self) -> None:
        try:
            self._runner.start()
        except TidegateError as error:
            self._failure = error
            return
        finally:
            self._started.set()
        self._runner.run(ended=lambda: self._mailbox.closed)

    def _failed(self, controller: Controller, method: str, error: BaseException) -> None:
        told = failure(controller, method, error)
        if not self._started.is_set():
            raise told
        log.error("error: %s; the switch goes on with what it has set last", told)
