"""The switch or pipeline behind a server, one call at a time."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

from tidegate._core import Leftover, TidegateError
from tidegate.control import PipelineApi, SwitchApi
from tidegate.control import operations as op
from tidegate.control.switch import SLICE
from tidegate.p4 import Pipeline, Program

READ_SLICES = 16
"""Slices of entries that are read in one go; packets go between them."""


class Device:
    """The switch behind a server. `lock` is held for each call; other threads that use the switch must hold it too."""

    def __init__(self, api: PipelineApi, lock: AbstractContextManager[Any] | None = None) -> None:
        self._core: Any = api._core
        self.pipeline = api if isinstance(api, Pipeline) else None
        self._lock = threading.RLock() if lock is None else lock
        self.packets = isinstance(api, SwitchApi)
        """Whether packets can go to the controller and come from it."""

    def become(self, other: Device) -> None:
        """Stand for another device from now on."""
        self._core, self._lock = other._core, other._lock
        self.packets, self.pipeline = other.packets, other.pipeline

    @property
    def now(self) -> int:
        """The switch's time, in picoseconds."""
        with self._lock:
            return int(self._core.now())

    def write(self, operations: Sequence[op.Operation]) -> list[Any]:
        """Do operations in order; for each its answer, or a `TidegateError`.

        Packets go between them now and then, so that none waits long.
        """
        answers: list[Any] = []
        for at in range(0, len(operations), SLICE):
            with self._lock:
                answers.extend(self._core.act_each(operations[at : at + SLICE]))
        return answers

    def write_all(self, operations: Sequence[op.Operation]) -> list[Any]:
        """Do all operations, or none; the error of the one that is refused has its number as `index`."""
        with self._lock:
            answers: list[Any] = self._core.act_all(operations)
            return answers

    def act(self, operation: op.Operation) -> Any:
        """Do an operation; return its answer. Of entries it gives more at once, which are tuples when they are asked for."""
        with self._lock:
            if isinstance(operation, op.TableRead) and operation.only is None:
                return self._core.table_entries(operation, READ_SLICES)
            return self._core.act(operation)

    def install(self, pipeline: Pipeline, keep_state: bool) -> Leftover:
        """Run another pipeline's program, with its state or the present one's. What it takes the place of is to be freed."""
        with self._lock:
            left: Leftover = self._core.install(pipeline.engine, keep_state)
            return left

    def take_idle(self) -> list[tuple[str, tuple[Any, ...]]]:
        """Entries whose idle timeout has come."""
        with self._lock:
            found: list[tuple[str, tuple[Any, ...]]] = self._core.take_idle()
            return found

    def take_digests(self) -> list[tuple[str, list[tuple[str, int]]]]:
        """Digests that are waiting."""
        with self._lock:
            found: list[tuple[str, list[tuple[str, int]]]] = self._core.take_digests()
            return found

    def take_packet_in(self) -> tuple[int, bytes, int] | None:
        """The next packet that waits for the controller: time of arrival, bytes, and number of zero bytes behind them."""
        if not self.packets:
            return None
        with self._lock:
            found: tuple[int, bytes, int] | None = self._core.take_packet_in()
            return found

    def packet_out(self, packet: bytes) -> None:
        """Send a packet from the controller."""
        if not self.packets:
            raise TidegateError("a pipeline alone takes no packets from a controller")
        self.act(op.PacketOut(packet))


def pipeline_of(program: Program) -> Pipeline:
    """A program ready to be installed, or to be looked at before it is."""
    return program.pipeline(engine="auto")
