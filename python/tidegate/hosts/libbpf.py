"""Load BPF programs from C: clang compiles, libbpf loads. Both are the system's; nothing is kept on disk.

File descriptors of this process, and the users of a program, keep it loaded. The kernel removes it when they end, for any reason.
"""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

LIBRARY = "libbpf.so.1"
COMPILER = "clang"
BTF = Path("/sys/kernel/btf/vmlinux")
# Since Linux 6.4: it registers while a link to it is held, and no longer.
BPF_F_LINK = 1 << 13
BPF_CGROUP_SOCK_OPS, BPF_TRACE_ITER, BPF_STRUCT_OPS = 3, 28, 44
# Since Linux 6.6.
BPF_TCX_INGRESS, BPF_TCX_EGRESS = 46, 47
WARNING = 0
TOLD_LINES = 6
# Entries of a map that are read at once, and bytes of what an iterator writes.
BATCH = 4096
ITERATED = 1 << 16

_PRINT = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p)
_SAMPLE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
_POINTER, _INT, _TEXT = ctypes.c_void_p, ctypes.c_int, ctypes.c_char_p
_FUNCTIONS: dict[str, tuple[object, list[object]]] = {
    "libbpf_set_print": (_POINTER, [_PRINT]),
    "bpf_object__open_mem": (_POINTER, [_TEXT, ctypes.c_size_t, _POINTER]),
    "bpf_object__load": (_INT, [_POINTER]),
    "bpf_object__close": (None, [_POINTER]),
    "bpf_object__find_map_by_name": (_POINTER, [_POINTER, _TEXT]),
    "bpf_object__find_program_by_name": (_POINTER, [_POINTER, _TEXT]),
    "bpf_program__fd": (_INT, [_POINTER]),
    "bpf_map__set_map_flags": (_INT, [_POINTER, ctypes.c_uint32]),
    "bpf_map__attach_struct_ops": (_POINTER, [_POINTER]),
    "bpf_map__fd": (_INT, [_POINTER]),
    "bpf_map__reuse_fd": (_INT, [_POINTER, _INT]),
    "bpf_map__set_max_entries": (_INT, [_POINTER, ctypes.c_uint32]),
    "bpf_program__set_expected_attach_type": (_INT, [_POINTER, _INT]),
    "bpf_link__fd": (_INT, [_POINTER]),
    "bpf_link_create": (_INT, [_INT, _INT, _INT, _POINTER]),
    "bpf_link_detach": (_INT, [_INT]),
    "bpf_iter_create": (_INT, [_INT]),
    "bpf_map_update_elem": (_INT, [_INT, _TEXT, _TEXT, ctypes.c_uint64]),
    "bpf_map_lookup_elem": (_INT, [_INT, _TEXT, _POINTER]),
    "bpf_map_delete_elem": (_INT, [_INT, _TEXT]),
    "bpf_map_lookup_batch": (_INT, [_INT, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER, _POINTER]),
    "ring_buffer__new": (_POINTER, [_INT, _SAMPLE, _POINTER, _POINTER]),
    "ring_buffer__consume": (_INT, [_POINTER]),
    "ring_buffer__epoll_fd": (_INT, [_POINTER]),
    "ring_buffer__free": (None, [_POINTER]),
}

_libc = ctypes.CDLL(None)


class BpfError(Exception):
    """A program cannot be loaded; the text gives the reason."""


class _Library:
    def __init__(self) -> None:
        self.calls = ctypes.CDLL(LIBRARY, use_errno=True)
        for name, (result, arguments) in _FUNCTIONS.items():
            call = getattr(self.calls, name)
            call.restype, call.argtypes = result, arguments
        self.told: list[str] = []
        # Kept: the library calls it as long as it lives.
        self._print = _PRINT(self._hear)
        self.calls.libbpf_set_print(self._print)

    def _hear(self, level: int, form: bytes, arguments: int) -> int:
        if level == WARNING:
            text = ctypes.create_string_buffer(1 << 16)
            _libc.vsnprintf(text, ctypes.c_size_t(len(text)), form, ctypes.c_void_p(arguments))
            self.told += text.value.decode(errors="replace").splitlines()
        return 0


@cache
def _library() -> _Library:
    return _Library()


def missing() -> str | None:
    """What is missing on this machine for loading BPF programs; `None`: nothing."""
    try:
        _library()
    except OSError:
        return f"{LIBRARY} is not installed; on Debian and Ubuntu: apt install libbpf1"
    if not BTF.exists():
        return f"this kernel does not describe its types ({BTF} is not there; CONFIG_DEBUG_INFO_BTF)"
    return None


@cache
def compiled(source: Path) -> bytes:
    """The program in a file, as an ELF object."""
    command = [COMPILER, "-target", "bpf", "-O2", "-g", "-Wall", "-Werror", "-c", str(source), "-o", "-"]
    try:
        return subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, check=True).stdout
    except FileNotFoundError:
        raise BpfError(f"{COMPILER} is not installed; on Debian and Ubuntu: apt install clang") from None
    except OSError as error:
        raise BpfError(f"{COMPILER} cannot be started: {error.strerror}") from None
    except subprocess.CalledProcessError as error:
        raise BpfError(f"{COMPILER} does not compile it: {error.stderr.decode().strip()}") from None


def link(program: int, to: int, attach_type: int) -> int:
    """Attach a program to an interface or a cgroup for as long as the file descriptor that this gives is open.

    Raises `OSError`.
    """
    descriptor: int = _library().calls.bpf_link_create(program, to, attach_type, None)
    if descriptor < 0:
        raise OSError(-descriptor, os.strerror(-descriptor))
    return descriptor


def unlink(descriptor: int) -> None:
    """Detach what `link` has attached, whoever else holds the link, and close it."""
    # Where the interface or cgroup is gone, it is detached already.
    _library().calls.bpf_link_detach(descriptor)
    os.close(descriptor)


def file_system(descriptor: int) -> int:
    """The kind of file system that a file is in, as `linux/magic.h` numbers them."""
    told = ctypes.create_string_buffer(256)
    if _libc.fstatfs(descriptor, told) < 0:
        return 0
    return int.from_bytes(told.raw[: ctypes.sizeof(ctypes.c_long)], sys.byteorder)


class Map:
    """A map of an object that is loaded. Keys and values are bytes of the sizes that the map has."""

    def __init__(self, descriptor: int, value_size: int) -> None:
        self.descriptor = descriptor
        self._value_size = value_size

    def __setitem__(self, key: bytes, value: bytes) -> None:
        assert len(value) == self._value_size
        error = _library().calls.bpf_map_update_elem(self.descriptor, key, value, 0)
        if error < 0:
            raise OSError(-error, os.strerror(-error))

    def push(self, value: bytes) -> None:
        """Put a value into a queue."""
        assert len(value) == self._value_size
        error = _library().calls.bpf_map_update_elem(self.descriptor, None, value, 0)
        if error < 0:
            raise OSError(-error, os.strerror(-error))

    def __getitem__(self, key: bytes) -> bytes:
        value = ctypes.create_string_buffer(self._value_size)
        if _library().calls.bpf_map_lookup_elem(self.descriptor, key, value) < 0:
            raise KeyError(key)
        return value.raw

    def __delitem__(self, key: bytes) -> None:
        if _library().calls.bpf_map_delete_elem(self.descriptor, key) < 0:
            raise KeyError(key)

    def items(self, key_size: int) -> Iterator[tuple[bytes, bytes]]:
        """All entries of a hash map, a few thousand at a time; those that change meanwhile may be missing."""
        room = BATCH
        here: bytes | None = None
        while True:
            keys = ctypes.create_string_buffer(key_size * room)
            values = ctypes.create_string_buffer(self._value_size * room)
            after = ctypes.create_string_buffer(max(key_size, 4))
            count = ctypes.c_uint32(room)
            error = _library().calls.bpf_map_lookup_batch(
                self.descriptor, here, after, keys, values, ctypes.byref(count), None
            )
            if error == -errno.ENOSPC:
                # A bucket has more entries than that.
                room *= 2
                continue
            if error not in (0, -errno.ENOENT):
                raise OSError(-error, os.strerror(-error))
            for at in range(count.value):
                key = keys.raw[at * key_size : (at + 1) * key_size]
                yield key, values.raw[at * self._value_size : (at + 1) * self._value_size]
            if error:
                return
            here = after.raw


class Ring:
    """Reads a ring buffer."""

    def __init__(self, descriptor: int, take: Callable[[bytes], None]) -> None:
        """`take` is called for each record, by `consume`."""
        self._calls = _library().calls

        def sample(_: int, data: int, size: int) -> int:
            take(ctypes.string_at(data, size))
            return 0

        # Kept: the library calls it.
        self._sample = _SAMPLE(sample)
        self._ring = self._calls.ring_buffer__new(descriptor, self._sample, None, None)
        if not self._ring:
            raise BpfError(f"no ring buffer: {os.strerror(ctypes.get_errno())}")

    @property
    def descriptor(self) -> int:
        """Can be read from when there is something to take."""
        descriptor: int = self._calls.ring_buffer__epoll_fd(self._ring)
        return descriptor

    def consume(self) -> None:
        """Take what there is."""
        self._calls.ring_buffer__consume(self._ring)

    def close(self) -> None:
        """Read no more."""
        self._calls.ring_buffer__free(self._ring)


class Loaded:
    """An object whose programs and maps are in the kernel until `close`."""

    def __init__(
        self,
        elf: bytes,
        registers: Iterable[str] = (),
        attach_types: Mapping[str, int] | None = None,
        shared: Mapping[str, int] | None = None,
        sizes: Mapping[str, int] | None = None,
    ) -> None:
        """Load it. `registers` are tables of functions (`struct_ops`) to be registered by `register`.

        `attach_types` are those of programs whose section does not say. `shared` are maps of other objects, by the names
        that they have in both; one that this object lacks is left out. `sizes` are entries of maps, or a ring's bytes.
        """
        library = _library()
        self._calls, self._told = library.calls, library.told
        self._links: list[int] = []
        self._told.clear()
        self._object = self._checked(self._calls.bpf_object__open_mem(elf, len(elf), None))
        try:
            for name in registers:
                self._calls.bpf_map__set_map_flags(self._map(name), BPF_F_LINK)
            for name, kind in (attach_types or {}).items():
                self._calls.bpf_program__set_expected_attach_type(self._program(name), kind)
            for name, size in (sizes or {}).items():
                self._calls.bpf_map__set_max_entries(self._map(name), size)
            for name, descriptor in (shared or {}).items():
                mine = self._calls.bpf_object__find_map_by_name(self._object, name.encode())
                if mine and self._calls.bpf_map__reuse_fd(mine, descriptor) < 0:
                    raise self._failure()
            if self._calls.bpf_object__load(self._object) < 0:
                raise self._failure()
        except BaseException:
            self.close()
            raise

    def _failure(self) -> BpfError:
        """The last message of the library or the kernel's verifier."""
        said = [line for line in self._told if line.strip() and not line.endswith("LOG --")]
        return BpfError("; ".join(said[-TOLD_LINES:]) or os.strerror(ctypes.get_errno()))

    def _checked(self, pointer: int | None) -> int:
        if not pointer:
            raise self._failure()
        return pointer

    def _map(self, name: str) -> int:
        return self._checked(self._calls.bpf_object__find_map_by_name(self._object, name.encode()))

    def register(self, name: str) -> None:
        """Register a table of functions (`struct_ops`) with the kernel."""
        table = self._map(name)
        attached = self._checked(self._calls.bpf_map__attach_struct_ops(table))
        descriptor: int = self._calls.bpf_link__fd(attached)
        # Before libbpf 1.2 this only fills in the table; the link is still to be made.
        if descriptor == self._calls.bpf_map__fd(table):
            descriptor = self._calls.bpf_link_create(descriptor, 0, BPF_STRUCT_OPS, None)
            if descriptor < 0:
                raise self._failure()
        self._links.append(descriptor)

    def _program(self, name: str) -> int:
        return self._checked(self._calls.bpf_object__find_program_by_name(self._object, name.encode()))

    def program(self, name: str) -> int:
        """The file descriptor of a program; it is the object's."""
        descriptor: int = self._calls.bpf_program__fd(self._program(name))
        return descriptor

    def link(self, name: str, to: int, attach_type: int) -> int:
        """Attach a program, as `link`; until `close`."""
        descriptor = link(self.program(name), to, attach_type)
        self._links.append(descriptor)
        return descriptor

    def iterate(self, over: int) -> bytes:
        """Run a program over all that the link of an iterator goes through, in this thread's namespaces; gives what it writes."""
        descriptor: int = self._calls.bpf_iter_create(over)
        if descriptor < 0:
            raise OSError(-descriptor, os.strerror(-descriptor))
        try:
            return b"".join(iter(lambda: os.read(descriptor, ITERATED), b""))
        finally:
            os.close(descriptor)

    def map(self, name: str, value_size: int) -> Map:
        """A map; it is the object's."""
        return Map(self._calls.bpf_map__fd(self._map(name)), value_size)

    def close(self) -> None:
        """Unload everything that is not in use."""
        while self._links:
            os.close(self._links.pop())
        if self._object:
            self._calls.bpf_object__close(self._object)
            self._object = 0
