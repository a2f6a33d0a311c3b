"""The packets of a switch's port, while a browser shows them: short captures, one after the other, which the page's process reads.

A capture's file has no name: nothing is left of it however this process ends. On a busy port there are pauses between captures, so that
what is written stays below `MOST_PER_S` on average: what is shown is then a sample.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate import _core
from tidegate._core import TidegateError

SNAP = 128
"""Bytes of a packet: its headers."""
LONG = 1 << 18
"""Bytes after which a capture is followed by another one."""
MOST_PER_S = 1 << 20


class Capturing:
    """Captures what goes over a port, both ways, from now on."""

    def __init__(
        self,
        core: _core.Simulation,
        wire: int,
        about: dict[str, Any],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """`about`: what readers are told of it in any case."""
        self._core, self._wire, self._about, self._clock = core, wire, about, clock
        self._file: int | None = None
        self._segment = 0
        self._begun = self._active = self._resume = 0.0
        self._problem = ""
        self._runs = self._sampled = False
        self._begin()

    def say(self) -> dict[str, Any]:
        """What the page's process needs to read it; called often, it goes on to the next capture where it is time."""
        now = self._clock()
        if self._runs and self._file is not None:
            self._core.flush_captures()
            size, lasted = os.fstat(self._file).st_size, now - self._begun
            if size > LONG:
                self._end(now)
                self._resume = now + size / MOST_PER_S - lasted
                self._sampled = self._resume > now
        if not self._runs and not self._problem and now >= self._resume:
            self._close()
            self._begin()
        active = self._active + (now - self._begun if self._runs else 0.0)
        file = None if self._file is None else f"/proc/{os.getpid()}/fd/{self._file}"
        return {
            **self._about,
            "file": file,
            "segment": self._segment,
            "active_s": active,
            "problem": self._problem,
            "sampled": self._sampled,
        }

    def _begin(self) -> None:
        self._segment += 1
        try:
            with tempfile.TemporaryDirectory(prefix="tidegate-trace-") as folder:
                file = Path(folder) / "trace.pcap"
                self._core.capture(self._wire, file, SNAP)
                self._runs = True
                self._file = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
        except (TidegateError, OSError) as error:
            self._end(self._clock())
            self._problem = str(error)
        self._begun = self._clock()

    def _end(self, now: float) -> None:
        if self._runs:
            self._runs = False
            self._active += now - self._begun
            with suppress(TidegateError):
                self._core.end_capture(self._wire)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def close(self) -> None:
        """End it."""
        self._end(self._clock())
        self._close()
