"""Whose calls are served: how many at a time, for how long, and with room kept for primaries.

Every call has a thread while it lasts. So it begins by being counted, before anything of it is read; one too many ends at once. A
thread looks at all calls now and then, and ends those whose client sends no request, leaves answers unread, or takes too long.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager

import grpc

from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.limits import Limits
from tidegate.p4runtime.running import Nobody
from tidegate.p4runtime.sharing import network_of, peer_of

LOOK_S = 0.25
"""How often calls are looked at."""
MOST_WORK = 2
"""Calls of others than primaries that are worked on at a time: the others wait, and are not sent more meanwhile."""


def client_of(context: grpc.ServicerContext) -> str:
    """Who calls: the name in its certificate, or the address that it calls from, or the network that it may have all addresses of."""
    names = context.peer_identities()
    if names:
        return "certificate " + b", ".join(names).decode(errors="replace")
    name: str = context.peer()
    peer = peer_of(name)
    return name if peer is None else f"address {network_of(peer[0])}"


MOST_SMALL = 64 << 10
"""Bytes of a request that needs no room."""
GIVE_WAY_S = 0.05
"""While a primary of the default role is served, one of the others goes on each time that this has passed."""
SERVED_S = 1.0
"""A call of such a primary that has lasted longer waits for its client, not for others."""


class Call:
    """A call that is served."""

    def __init__(
        self, context: grpc.ServicerContext, client: str, role: str | None, slot: threading.Semaphore
    ):
        self.context = context
        self.client = client
        self.peer: str = context.peer()
        self.role = role
        """The role that this connection's stream is primary of, if it is of any and the call is one of those that it has room for."""
        self.slot = slot
        """To be held while the call is worked on, not while its client takes its time."""
        self.began = time.monotonic()
        self.requested = False
        self.sending: float | None = None
        """Since when the client has left what was sent unread."""

    def alive(self) -> bool:
        """Whether somebody waits for the answer."""
        active: bool = self.context.is_active()
        return active


class Clients:
    """The calls of one server. For any thread."""

    def __init__(self, limits: Limits, primaries: Callable[[], Mapping[str, str]]) -> None:
        """`primaries` gives the connections of primaries, and what role each is primary of."""
        self._limits = limits
        self._primaries = primaries
        self._changed = threading.Lock()
        self._calls: set[Call] = set()
        self._by_client: Counter[str] = Counter()
        self._by_primary: Counter[str] = Counter()
        # A primary of the default role waits for nobody else; those of other roles and all others have slots of their own.
        self._slots = (
            threading.Semaphore(limits.calls_per_primary),
            threading.Semaphore(1),
            threading.Semaphore(MOST_WORK),
        )
        self._places = (threading.Semaphore(1), threading.Semaphore(limits.large_answers))
        # Bytes of large requests that are worked on: of those who have slots of one kind, and of a client.
        self._bytes: Counter[threading.Semaphore | tuple[threading.Semaphore, str]] = Counter()
        self._waiting = 0
        self._room = threading.Condition()
        # When the calls of primaries of the default role began.
        self._first: dict[Call, float] = {}
        self._first_ended = threading.Condition(self._changed)
        self._one_goes_on = threading.Lock()
        self._stopping = threading.Event()
        self._watch = threading.Thread(target=self._look, name="p4runtime-watch", daemon=True)
        self._each: Callable[[], None] = lambda: None

    def start(self, each: Callable[[], None]) -> None:
        """Begin to look at calls, and call `each` as often."""
        self._each = each
        self._watch.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()
        if self._watch.is_alive():
            self._watch.join()

    @property
    def threads(self) -> int:
        """As many as there can be calls, streams and streams that are ending, and some for those that are refused."""
        limits = self._limits
        return limits.calls + limits.streams * (2 + limits.calls_per_primary) + 16

    @property
    def count(self) -> int:
        """Calls that are served now."""
        with self._changed:
            return len(self._calls)

    @property
    def peers(self) -> set[str]:
        """Connections on which calls are served now, by gRPC's names of them."""
        with self._changed:
            return {call.peer for call in self._calls}

    @contextmanager
    def call(self, context: grpc.ServicerContext) -> Iterator[Call]:
        """A call while it is served. Raises `RESOURCE_EXHAUSTED`."""
        call = self._enter(context)
        try:
            yield call
        finally:
            with self._changed:
                self._calls.discard(call)
                if self._first.pop(call, None) is not None:
                    self._first_ended.notify_all()
                counted, name = self._counter(call)
                counted[name] -= 1
                if not counted[name]:
                    del counted[name]

    @contextmanager
    def place(self, call: Call) -> Iterator[None]:
        """Room for a large answer; waited for as long as the client does. Raises `Nobody`."""
        places = self._places[0 if call.role == "" else 1]
        while not places.acquire(timeout=LOOK_S):
            if not call.alive():
                raise Nobody
        try:
            yield
        finally:
            places.release()

    @contextmanager
    def room(self, call: Call, size: int) -> Iterator[None]:
        """Room for a request of so many bytes as a message, which takes many times as much; waited for as long as the client does.

        A client has half of it at most, or one request. Raises `Nobody`, and `RESOURCE_EXHAUSTED` where too much waits already.
        """
        if size <= MOST_SMALL:
            yield
            return
        most, own = self._limits.parsed_bytes, (call.slot, call.client)

        def free() -> bool:
            of_all, of_client = self._bytes[call.slot], self._bytes[own]
            return not of_all or (of_all + size <= most and not (of_client and of_client + size > most // 2))

        with self._room:
            if not free():
                self._wait(call, size, free)
            self._bytes.update({call.slot: size, own: size})
        try:
            yield
        finally:
            with self._room:
                self._bytes[call.slot] -= size
                self._bytes[own] -= size
                if not self._bytes[own]:
                    del self._bytes[own]
                self._room.notify_all()

    def _wait(self, call: Call, size: int, free: Callable[[], bool]) -> None:
        # A primary of the default role has few calls, which are its own.
        counted = size if call.role != "" else 0
        if counted and self._waiting + counted > self._limits.waiting_bytes:
            why = f"{self._waiting} bytes of large requests wait already; try again"
            raise P4Error(Code.RESOURCE_EXHAUSTED, why)
        self._waiting += counted
        try:
            while not self._room.wait_for(free, LOOK_S):
                if not call.alive():
                    raise Nobody
        finally:
            self._waiting -= counted

    def give_way(self, call: Call) -> None:
        """Wait, but not for long, while a primary of the default role is served: what it waits for needs the processor.

        However many others there are, one of them goes on each time. To be called without locks, where the call could as well go
        on later.
        """

        def free() -> bool:
            since = time.monotonic() - SERVED_S
            return all(began < since for began in self._first.values())

        if call.role != "" and self._first:
            with self._one_goes_on, self._first_ended:
                self._first_ended.wait_for(free, GIVE_WAY_S)

    def _enter(self, context: grpc.ServicerContext) -> Call:
        limits, client = self._limits, client_of(context)
        role = self._primaries().get(context.peer())
        with self._changed:
            if role is not None and self._by_primary[context.peer()] >= limits.calls_per_primary:
                # Beyond its room it is a client like others.
                role = None
            if role is None and self._by_client[client] >= limits.calls_per_client:
                why = f"this client has {limits.calls_per_client} calls already; wait for one to end"
                raise P4Error(Code.RESOURCE_EXHAUSTED, why)
            if role is None and sum(self._by_client.values()) >= limits.calls:
                raise P4Error(Code.RESOURCE_EXHAUSTED, f"there are {limits.calls} calls already; try again")
            call = Call(context, client, role, self._slots[2 if role is None else 1 if role else 0])
            counted, name = self._counter(call)
            counted[name] += 1
            self._calls.add(call)
            if role == "":
                self._first[call] = call.began
        return call

    def _counter(self, call: Call) -> tuple[Counter[str], str]:
        return (self._by_client, call.client) if call.role is None else (self._by_primary, call.peer)

    def _look(self) -> None:
        while not self._stopping.wait(LOOK_S):
            self._each()
            now = time.monotonic()
            with self._changed:
                late = [call for call in self._calls if self._is_late(call, now)]
            for call in late:
                # Its thread waits in gRPC, and goes on when the call is ended.
                call.context.cancel()

    def _is_late(self, call: Call, now: float) -> bool:
        limits = self._limits
        return (
            now - call.began > limits.call_s
            or (not call.requested and now - call.began > limits.request_s)
            or (call.sending is not None and now - call.sending > limits.stalled_s)
        )
