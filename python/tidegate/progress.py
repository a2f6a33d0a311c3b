"""A progress bar for long runs: simulated time, speed, and time left."""

from __future__ import annotations

import time
from types import TracebackType

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from tidegate.units import PS_PER_S


class _Speed(ProgressColumn):
    """Simulated seconds for each second."""

    def render(self, task: Task) -> Text:
        spent = task.elapsed or 0.0
        return Text(f"{task.completed / PS_PER_S / spent:.3g} s/s" if spent > 0 else "")


class Bar:
    """Shows how far a run is, on standard error, once it has taken `wait_s` seconds."""

    def __init__(self, wait_s: float, what: str = "simulating") -> None:
        self._what = what
        self._begun = time.monotonic()
        self._wait = wait_s
        self._shown: Progress | None = None

    def __call__(self, done: int, total: int) -> None:
        """Show the number of simulated picoseconds."""
        if self._shown is None:
            if time.monotonic() - self._begun < self._wait or done >= total:
                return
            self._shown = Progress(
                TextColumn("{task.description}"),
                BarColumn(),
                TextColumn("{task.fields[time]}"),
                _Speed(),
                TimeRemainingColumn(),
                console=Console(stderr=True),
                transient=True,
            )
            self._task = self._shown.add_task(self._what, total=total, time="")
            self._shown.start()
        text = f"{done / PS_PER_S:.3g} of {total / PS_PER_S:.3g} s"
        self._shown.update(self._task, completed=done, time=text)

    def __enter__(self) -> Bar:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._shown is not None:
            self._shown.stop()
