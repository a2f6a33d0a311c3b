"""Progress of long runs, on standard error: of one network simulated time, speed and time left; of an experiment its cases."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from html import escape
from types import TracebackType
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, ProgressColumn, Task, TextColumn, TimeRemainingColumn
from rich.text import Text

from tidegate.units import PS_PER_S


class _Speed(ProgressColumn):
    """Simulated seconds for each second."""

    def render(self, task: Task) -> Text:
        spent = task.elapsed or 0.0
        return Text(f"{task.completed / PS_PER_S / spent:.3g} s/s" if spent > 0 else "")


def clock(seconds: float) -> str:
    """`0:07`, `1:02:30`.

    >>> clock(7.2), clock(3750)
    ('0:07', '1:02:30')
    """
    whole = max(0, round(seconds))
    hours, minutes = divmod(whole // 60, 60)
    return f"{hours}:{minutes:02}:{whole % 60:02}" if hours else f"{minutes}:{whole % 60:02}"


class Pace:
    """Time left, from how long what is done has taken."""

    LEAST_S = 2.0
    """Before that nothing is said: the first cases are still being set up."""

    def __init__(self, now: Callable[[], float] = time.monotonic) -> None:
        self._now = now
        self._begun = now()
        self._first: float | None = None

    @property
    def spent_s(self) -> float:
        """Since the beginning."""
        return self._now() - self._begun

    def left_s(self, done: float, total: int) -> float | None:
        """Seconds that the rest takes, if it goes on so; `None` while it is too early to say.

        What was done before the first call, in an earlier run, took none of this time.
        """
        if self._first is None:
            self._first = done
        fresh = done - self._first
        if self.spent_s < self.LEAST_S or fresh <= 0:
            return None
        return self.spent_s / fresh * (total - done)


class Estimate:
    """Says once, soon after the start, how long an experiment will take: from what its first seconds have got done.

    With `again`, where no bar is shown, it says later how much is done and how long the rest will take: after a twentieth more, or
    ten minutes, and once a minute at most.
    """

    ENOUGH = 0.005
    """Share of the work that is enough for an estimate at the first deadline."""
    AT_S = (3.0, 30.0)
    """Deadlines: with that share done; in any case."""
    WORTH_S = 10.0
    """Shorter totals are not announced."""
    AGAIN_S = (60.0, 600.0)
    """Least and most time between two lines."""
    AGAIN = 0.05
    """Share of the work that is worth another line."""

    def __init__(
        self, say: Callable[[str], object], now: Callable[[], float] = time.monotonic, *, again: bool = False
    ) -> None:
        self._now = now
        self._again = again
        self._last: tuple[float, float] | None = None
        """Time spent and runs done when something was said last, or would have been of a longer total."""
        self._begun = now()
        self._before: float | None = None
        self._pace: Pace | None = None
        self._say = say

    def __call__(self, done: float, total: int) -> None:
        """Report progress: runs done, with fractions, of the total."""
        if self._pace is None:
            # Runs may have to wait for a cluster's workers: time counts from when something has been done.
            self._before = done if self._before is None else self._before
            if done <= self._before:
                return
            self._pace = Pace(self._now)
        left = self._pace.left_s(done, total)
        spent = self._pace.spent_s
        if left is None or spent < self.AT_S[0]:
            return
        if self._last is not None:
            waited, more = spent - self._last[0], done - self._last[1]
            if self._again and done < total and self._worth(waited, more / total):
                self._last = (spent, done)
                self._say(f"{100 * done / total:.0f} % done, about {clock(left)} left")
            return
        if spent < self.AT_S[1] and done < self.ENOUGH * total:
            return
        self._last = (spent, done)
        whole = self._now() - self._begun + left
        if whole >= self.WORTH_S:
            self._say(f"about {clock(whole)} in all, by what the first {spent:.0f} s have got done")

    def _worth(self, waited: float, more: float) -> bool:
        """Whether another line is: after so many seconds, with this share of the work done in them."""
        least, most = self.AGAIN_S
        return waited >= least and (more >= self.AGAIN or waited >= most)


def in_notebook() -> bool:
    """Whether a notebook's kernel runs this."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return type(shell).__name__ == "ZMQInteractiveShell"


class NotebookBar:
    """A bar in a notebook's output, which goes when all is done: for `progress` of a network's or an experiment's run."""

    EACH_S = 0.2
    """How often it is drawn."""

    def __init__(self, what: str, wait_s: float = 0.0) -> None:
        self._what = what
        self._drawn = time.monotonic() + wait_s - self.EACH_S
        self._shown: Any = None

    def __call__(self, done: float, total: float) -> None:
        """Report progress: done, of the total."""
        if done >= total:
            self.close()
        elif time.monotonic() - self._drawn >= self.EACH_S:
            self._drawn = time.monotonic()
            part = done / total
            self._show(f'{escape(self._what)} <progress value="{part:.4f}" max="1"></progress> {part:.0%}')

    def close(self) -> None:
        """Take it away."""
        if self._shown is not None:
            self._show("")
            self._shown = None

    def _show(self, text: str) -> None:
        from IPython.display import HTML, display

        if self._shown is None:
            self._shown = display(HTML(text), display_id=True)
        else:
            self._shown.update(HTML(text))


class Bar:
    """Shows how far a run is, on standard error, once it has taken `wait_s` seconds."""

    def __init__(self, wait_s: float, what: str = "simulating") -> None:
        self._what = what
        self._begun = time.monotonic()
        self._wait = wait_s
        self._shown: Progress | None = None
        self._notebook = NotebookBar(what, wait_s) if in_notebook() else None

    def __call__(self, done: int, total: int) -> None:
        """Show the number of simulated picoseconds."""
        if self._notebook is not None:
            self._notebook(done, total)
            return
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
        if self._notebook is not None:
            self._notebook.close()
        if self._shown is not None:
            self._shown.stop()
