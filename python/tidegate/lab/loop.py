"""The loop of an agent: sockets, processes and timers."""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from heapq import heappop, heappush

# A timer that is nearer than this is waited for by sleeping: epoll counts milliseconds.
NEAR_NS = 2_000_000
LONGEST_SLEEP_NS = 500_000


class Loop:
    """Sockets, processes and timers. Times are nanoseconds of the monotonic clock."""

    def __init__(self) -> None:
        self._selector = selectors.EpollSelector()
        self._timers: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0

    def at(self, when: int, call: Callable[[], None]) -> None:
        """Call it at a time, or soon after."""
        heappush(self._timers, (when, self._order, call))
        self._order += 1

    def watch(self, of: int | socket.socket, events: int, call: Callable[[], None]) -> None:
        """Call it when there is data to read or room to write; replaces an earlier callback."""
        try:
            self._selector.modify(of, events, call)
        except KeyError:
            self._selector.register(of, events, call)

    def forget(self, of: int | socket.socket) -> None:
        """Stop watching it."""
        try:
            self._selector.unregister(of)
        except KeyError:
            return

    def turn(self) -> None:
        """Wait for events and handle them."""
        wait = self._timers[0][0] - time.monotonic_ns() if self._timers else None
        if wait is not None and wait < NEAR_NS:
            if wait > 0:
                # The lab can wait, the flows' sockets cannot.
                alone = len(self._selector.get_map()) <= 1
                time.sleep((wait if alone else min(wait, LONGEST_SLEEP_NS)) / 1e9)
            timeout: float | None = 0
        else:
            timeout = None if wait is None else (wait - NEAR_NS // 2) / 1e9
        for key, _ in self._selector.select(timeout):
            # An earlier one may have closed it, or watch it for something else now.
            if self._selector.get_map().get(key.fd) == key:
                key.data()
        # Not those that come while these are called: sockets have their turn in between.
        due = time.monotonic_ns()
        ready = []
        while self._timers and self._timers[0][0] <= due:
            ready.append(heappop(self._timers)[2])
        for call in ready:
            call()
