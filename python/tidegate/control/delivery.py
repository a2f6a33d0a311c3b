"""What a switch has for its control planes is taken once, in one place, and handed to all of them: controllers and servers."""

from __future__ import annotations

import threading
import traceback
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Protocol, Self, TypeVar

from tidegate.control.runner import DigestFields, Packet
from tidegate.logs import logger

log = logger("tidegate.switch")

Taken = TypeVar("Taken")

MOST_WAITING = 65_536
"""Messages that wait for controllers which take long; more are dropped, and counted."""

MOST_PACKETS = 256
"""Packets that are handed over at a time."""
MOST_DIGESTS = 1024
"""Digests that are handed over at a time."""
MOST_IDLE = 512
"""Entries whose timeout has come that are handed over at a time."""
MOST_TURNS = 256
"""How often a poll takes messages: as many packets as wait for controllers, and no end of those that come meanwhile."""


@dataclass(frozen=True)
class Messages:
    """What a switch had, in the order in which it came."""

    digests: Sequence[DigestFields] = ()
    packets: Sequence[Packet] = ()
    idle: Sequence[tuple[str, tuple[Any, ...]]] = ()
    """Entries whose idle timeout has come, with their tables."""


class Listener(Protocol):
    """A control plane."""

    def deliver(self, messages: Messages) -> None:
        """Take what a switch has, soon: others wait meanwhile."""
        ...


class Giver(Protocol):
    """What messages are taken from."""

    def take_digests(self) -> list[DigestFields]:
        """All digests."""
        ...

    def take_packet_in(self) -> Packet | None:
        """The next packet for the controller."""
        ...

    def take_idle(self) -> list[tuple[str, tuple[Any, ...]]]:
        """All entries whose idle timeout has come."""
        ...


class Turn:
    """A lock that a thread may take again, and that others get in the order in which they asked for it.

    A thread that gives it back and wants it again at once does not get before those who wait, as with `threading.RLock`. Who asks
    `ahead` comes before those who do not; of these one has its turn after `MOST_AHEAD` others.
    """

    MOST_AHEAD = 4

    def __init__(self) -> None:
        self._state = threading.Lock()
        # A thread; 0: it is handed over to one that has not noticed yet.
        self._owner: int | None = None
        self._depth = 0
        self._waiting: deque[threading.Lock] = deque()
        self._ahead: deque[threading.Lock] = deque()
        # How many came ahead of those who wait, one after another.
        self._passed = 0
        self._mine = threading.local()

    def __enter__(self) -> Self:
        self._enter(self._ahead if getattr(self._mine, "ahead", False) else self._waiting)
        return self

    @contextmanager
    def always_ahead(self, ahead: bool = True) -> Iterator[None]:
        """What this thread asks for meanwhile, it asks for ahead."""
        before = getattr(self._mine, "ahead", False)
        self._mine.ahead = ahead
        try:
            yield
        finally:
            self._mine.ahead = before

    @contextmanager
    def ahead(self, ahead: bool = True) -> Iterator[None]:
        """The lock, for those who come before others."""
        with self.always_ahead(ahead), self:
            yield

    @property
    def wanted(self) -> bool:
        """Whether somebody waits who comes before others."""
        return bool(self._ahead)

    def _enter(self, waiting: deque[threading.Lock]) -> None:
        me = threading.get_ident()
        with self._state:
            if self._owner == me:
                self._depth += 1
                return
            if self._owner is None:
                self._owner, self._depth = me, 1
                return
            mine = threading.Lock()
            mine.acquire()
            waiting.append(mine)
        try:
            mine.acquire()
        except BaseException:
            # An interrupt: what was handed over meanwhile goes on to the next.
            with self._state:
                if mine in waiting:
                    waiting.remove(mine)
                else:
                    self._hand_over()
            raise
        self._owner, self._depth = me, 1

    def __exit__(self, *_: object) -> None:
        with self._state:
            self._depth -= 1
            if not self._depth:
                self._hand_over()

    def _hand_over(self) -> None:
        passed = self._passed + 1 if self._waiting else 0
        waiting = self._waiting if passed > self.MOST_AHEAD else self._ahead or self._waiting
        self._passed = passed if waiting is self._ahead else 0
        if waiting:
            self._owner = 0
            waiting.popleft().release()
        else:
            self._owner = None


class Distributor:
    """Takes what a switch has and hands it to its control planes. For any thread."""

    def __init__(self, switch: Giver) -> None:
        self._switch = switch
        self._listeners: list[Listener] = []
        self.turn = Turn()
        """Held while messages are taken and handed over. Who changes the program holds it too and calls `forget`, so that each
        message reaches those who know the program that sent it."""
        # Taken and not handed over.
        self._digests: deque[DigestFields] = deque()
        self._idle: deque[tuple[str, tuple[Any, ...]]] = deque()

    def listen(self, listener: Listener) -> None:
        """Hand messages to one more from now on."""
        with self.turn:
            self._listeners.append(listener)

    def leave(self, listener: Listener) -> None:
        """Hand no more to one."""
        with self.turn:
            if listener in self._listeners:
                self._listeners.remove(listener)

    def poll(self) -> None:
        """Take what there is. To be called when the switch has messages, and now and then for what timeouts bring.

        Others have their turn now and then, however fast messages come.
        """
        for turn in range(MOST_TURNS):
            with self.turn:
                packets: list[Packet] = []
                taken = [] if self._digests else self._switch.take_digests()
                self._digests.extend(taken)
                digests = first(self._digests, MOST_DIGESTS)
                if not self._idle:
                    self._idle.extend(self._switch.take_idle())
                idle = first(self._idle, MOST_IDLE)
                while len(packets) < MOST_PACKETS and (packet := self._switch.take_packet_in()) is not None:
                    packets.append(packet)
                messages = Messages(digests, packets, idle)
                if turn > 0 and not (digests or packets or idle):
                    return
                for listener in self._listeners:
                    try:
                        listener.deliver(messages)
                    except Exception:
                        # It is no reason to keep messages from the others, or to end a switch.
                        log.error("messages for a control plane were lost:\n%s", traceback.format_exc())
                # There may be more digests and entries than are taken at a time.
                waiting = len(packets) == MOST_PACKETS or self._digests or taken or idle
            if not waiting:
                return

    def forget(self) -> None:
        """Leave out what has been taken of a program that is replaced."""
        self._digests.clear()
        self._idle.clear()


def first(waiting: deque[Taken], most: int) -> list[Taken]:
    """Takes so many at most."""
    return [waiting.popleft() for _ in range(min(most, len(waiting)))]


class Mailbox:
    """Messages for controllers that run on a thread of their own: a listener of a `Distributor`, and the source of a `Runner`."""

    def __init__(self) -> None:
        self._digests: deque[DigestFields] = deque()
        self._packets: deque[Packet] = deque()
        self._changed = threading.Condition()
        self._closed = False
        self.dropped: Counter[str] = Counter()
        """Messages that came when too many were waiting, by kind."""

    def deliver(self, messages: Messages) -> None:
        """Put messages in."""
        with self._changed:
            for kind, waiting, new in (
                ("digests", self._digests, messages.digests),
                ("packet_ins", self._packets, messages.packets),
            ):
                room = max(0, MOST_WAITING - len(waiting))
                waiting.extend(new[:room])  # type: ignore[arg-type]
                if len(new) > room:
                    self.dropped[kind] += len(new) - room
            self._changed.notify_all()

    def close(self) -> None:
        """Wake up whoever waits, from now on at once."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether it has been closed."""
        return self._closed

    def wait(self, seconds: float) -> None:
        """Wait so long, or until there is something in it."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or self._digests or self._packets, seconds)

    def take_digests(self) -> list[DigestFields]:
        """All digests."""
        with self._changed:
            taken = list(self._digests)
            self._digests.clear()
            return taken

    def take_packet_in(self) -> Packet | None:
        """The next packet for the controller."""
        with self._changed:
            return self._packets.popleft() if self._packets else None
