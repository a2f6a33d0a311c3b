"""Congestion controls for kernels that lack them.

A congestion control is visible to the whole kernel, not to one namespace. So each lab registers its own under a unique name
(`prague_1a2b3c`), and the kernel removes it when the lab's process ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from tidegate.hosts import libbpf
from tidegate.hosts.libbpf import BpfError, Loaded

ACCURATE_ECN = frozenset({"prague"})
"""Those that ask for accurate ECN, by themselves and always."""
BOTH_ENDS = frozenset({"prague", "dctcp"})
"""Those that the receiver takes part in: from the handshake on, and in what it tells of CE."""
SOURCES = {name: Path(__file__).with_name(f"{name}.c") for name in ("prague", "dctcp")}
# Linux versions that have what they need: registration that ends with its owner; accurate ECN.
SINCE = {"prague": "6.18", "dctcp": "6.4"}
# In an object, as long as what comes in its place.
PLACEHOLDER = "XXXXXX"
# The program for the egress of interfaces that marks packets ECT(1), where there is one.
MARKERS = {"prague": "ect1"}


class Controls:
    """Congestion controls that are registered while the context lasts."""

    def __init__(self, asked: Iterable[str], shared: Mapping[str, int] | None = None) -> None:
        """Those of `asked` that Tidegate has; the caller handles the others.

        `shared` are maps that programs besides them have too, by name (`RealAgents.shared`).
        """
        self._asked = sorted(set(asked) & set(SOURCES))
        self._shared = shared
        self._stack = ExitStack()
        self.names: dict[str, str] = {}
        """What a congestion control is called in the kernel."""
        self.markers: dict[str, int] = {}
        """The program that marks its packets at the egress of an interface."""
        self.problems: dict[str, str] = {}
        """Why one is not there."""

    def __enter__(self) -> Controls:
        with ExitStack() as stack:
            for name in self._asked:
                try:
                    self._register(name, stack)
                except BpfError as error:
                    self.problems[name] = str(error)
            self._stack = stack.pop_all()
        return self

    def _register(self, name: str, stack: ExitStack) -> None:
        why = libbpf.missing()
        if why is not None:
            raise BpfError(why)
        elf, suffix = libbpf.compiled(SOURCES[name]), secrets.token_hex(len(PLACEHOLDER) // 2)
        mine = f"{name}_{suffix}"
        try:
            elf = elf.replace(f"{name}_{PLACEHOLDER}".encode(), mine.encode())
            loaded = Loaded(elf, registers=[name], shared=self._shared)
            stack.callback(loaded.close)
            loaded.register(name)
        except BpfError as error:
            raise BpfError(f"{error} (it needs Linux {SINCE[name]} or newer)") from None
        self.names[name] = mine
        if name in MARKERS:
            self.markers[name] = loaded.program(MARKERS[name])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
