"""What a switch has for its control planes is taken once, in one place, and handed to all of them: controllers and servers."""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from tidegate.control.runner import DigestFields, Packet

MOST_WAITING = 65_536
"""Messages that wait for controllers which take long; more are dropped, and counted."""


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


class Distributor:
    """Takes what a switch has and hands it to its control planes. For any thread."""

    def __init__(self, switch: Giver) -> None:
        self._switch = switch
        self._listeners: list[Listener] = []
        self.turn = threading.RLock()
        """Held while messages are taken and handed over. Who changes the program holds it too, so that each message reaches those
        who know the program that sent it."""

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
        """Take what there is. To be called when the switch has messages, and now and then for what timeouts bring."""
        with self.turn:
            packets = []
            digests = self._switch.take_digests()
            while (packet := self._switch.take_packet_in()) is not None:
                packets.append(packet)
            messages = Messages(digests, packets, self._switch.take_idle())
            for listener in self._listeners:
                listener.deliver(messages)


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
