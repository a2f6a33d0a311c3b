"""Many datagrams in one system call: Python lacks sendmmsg and recvmmsg, and one call for each datagram takes too long."""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct

AT_ONCE = 64
# A control message with a time: struct cmsghdr, struct timespec.
_CONTROL = struct.Struct("=qiiqq")
SO_TIMESTAMPNS = 35
# Nothing has come; or what was sent from this socket has been refused.
NOTHING_NOW = (errno.EAGAIN, errno.EINTR, errno.ECONNREFUSED, errno.EHOSTUNREACH, errno.ENETUNREACH)

_libc = ctypes.CDLL(None, use_errno=True)


class _Vector(ctypes.Structure):
    _fields_ = (("base", ctypes.c_void_p), ("length", ctypes.c_size_t))


class _Message(ctypes.Structure):
    """`struct mmsghdr`."""

    _fields_ = (
        ("name", ctypes.c_void_p),
        ("name_length", ctypes.c_uint32),
        ("vectors", ctypes.POINTER(_Vector)),
        ("vector_count", ctypes.c_size_t),
        ("control", ctypes.c_void_p),
        ("control_length", ctypes.c_size_t),
        ("flags", ctypes.c_int),
        ("padding", ctypes.c_int),
        ("length", ctypes.c_uint),
    )


class Batch:
    """Room for `AT_ONCE` datagrams, one after the other in `data`, each of the same size."""

    def __init__(self, of: socket.socket, size: int) -> None:
        self._file = of.fileno()
        self._size = size
        self.data = bytearray(AT_ONCE * size)
        self._controls = bytearray(AT_ONCE * _CONTROL.size)
        base = ctypes.addressof(ctypes.c_char.from_buffer(self.data))
        control = ctypes.addressof(ctypes.c_char.from_buffer(self._controls))
        self._vectors = (_Vector * AT_ONCE)()
        self._messages = (_Message * AT_ONCE)()
        for number, (vector, message) in enumerate(zip(self._vectors, self._messages, strict=True)):
            vector.base, vector.length = base + number * size, size
            message.vectors, message.vector_count = ctypes.pointer(vector), 1
            message.control = control + number * _CONTROL.size

    def send(self, count: int) -> int:
        """Send the first ones; return how many went. Datagrams for which the host has no buffer are lost, as they would be on the path."""
        for message in self._messages[:count]:
            message.control_length = 0
        return max(int(_libc.sendmmsg(self._file, self._messages, count, socket.MSG_DONTWAIT)), 0)

    def receive(self) -> int:
        """Receive pending datagrams; return their number."""
        for message in self._messages:
            message.control_length = _CONTROL.size
        count: int = _libc.recvmmsg(self._file, self._messages, AT_ONCE, socket.MSG_DONTWAIT, None)
        if count < 0 and ctypes.get_errno() not in NOTHING_NOW:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return max(count, 0)

    def length(self, number: int) -> int:
        """Bytes of a received datagram."""
        length: int = self._messages[number].length
        return length

    def came(self, number: int) -> int | None:
        """Receive timestamp by the kernel's wall clock, in nanoseconds."""
        if self._messages[number].control_length < _CONTROL.size:
            return None
        _, level, kind, seconds, nanoseconds = _CONTROL.unpack_from(self._controls, number * _CONTROL.size)
        if (level, kind) != (socket.SOL_SOCKET, SO_TIMESTAMPNS):
            return None
        return int(seconds) * 1_000_000_000 + int(nanoseconds)
