"""Messages over a socket between a run and the process that serves its page: the length (32 bits, little-endian), then the message.

An end does not wait for the other one: what cannot be sent yet is kept, and goes when `flush` is called again.
"""

from __future__ import annotations

import select
import socket

AT_ONCE = 1 << 16
LENGTH = 4


class Channel:
    """The run's end."""

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._out = bytearray()
        self._in = bytearray()
        self.gone = False
        """The other end is closed."""

    def send(self, message: bytes) -> None:
        """Send a message, now or with a later `flush`."""
        self._out += len(message).to_bytes(LENGTH, "little") + message
        self.flush()

    def flush(self) -> bool:
        """Send what is left; says whether all has been sent."""
        try:
            while self._out and not self.gone:
                sent = self._end.send(self._out)
                del self._out[:sent]
        except BlockingIOError:
            return False
        except OSError:
            self.gone = True
        return not self.gone

    def receive(self) -> list[bytes]:
        """The messages that have come."""
        try:
            while not self.gone:
                data = self._end.recv(AT_ONCE)
                self._in += data
                self.gone = not data
        except BlockingIOError:
            pass
        except OSError:
            self.gone = True
        messages = []
        while len(self._in) >= LENGTH:
            end = LENGTH + int.from_bytes(self._in[:LENGTH], "little")
            if len(self._in) < end:
                break
            messages.append(bytes(self._in[LENGTH:end]))
            del self._in[:end]
        return messages

    def wait(self, timeout_s: float) -> None:
        """Until something has come or there is room for what is left."""
        poll = select.poll()
        poll.register(self._end, select.POLLIN | (select.POLLOUT if self._out else 0))
        poll.poll(timeout_s * 1000)

    def close(self) -> None:
        """Close this end."""
        self._end.close()
