"""Congestion controls for kernels that lack them.

A congestion control is visible to the whole kernel, not to one namespace. So each lab registers its own under a unique name
(`prague_1a2b3c`), and the kernel removes it when the lab's process ends.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import NamedTuple

from tidegate.hosts import libbpf, stamp, timely
from tidegate.hosts.libbpf import BpfError, Loaded

Given = tuple[tuple[str, str], ...]

ACCURATE_ECN = frozenset({"prague"})
"""Those that ask for accurate ECN, by themselves and always."""
BOTH_ENDS = frozenset({"prague", "dctcp"})
"""Those that the receiver takes part in: from the handshake on, and in what it tells of CE."""
SOURCES = {name: Path(__file__).with_name(f"{name}.c") for name in ("prague", "dctcp", "stamp", "timely")}
# Linux versions that have what they need: registration that ends with its owner; accurate ECN.
SINCE = {"prague": "6.18", "dctcp": "6.4", "stamp": "6.4", "timely": "6.4"}
# In an object, as long as what comes in its place.
PLACEHOLDER = "XXXXXX"
# The program for the egress of interfaces that marks packets ECT(1), where there is one.
MARKERS = {"prague": "ect1"}
# Those that have parameters: what cannot be done of them, and the value of the map `given`.
PARAMETERS: dict[str, tuple[Callable[[Given], Iterator[str]], Callable[[Given], bytes], int]] = {
    "stamp": (stamp.refusals, stamp.packed, stamp.SIZE),
    "timely": (timely.refusals, timely.packed, timely.SIZE),
}
FIRST = bytes(4)


class Control(NamedTuple):
    """A congestion control with its parameters, names and values."""

    name: str
    options: Given = ()


def refusals(control: Control) -> Iterator[str]:
    """What a real host's congestion control cannot do of the parameters."""
    if control.name in PARAMETERS:
        yield from (
            f"the {control.name} of real hosts: {why}" for why in PARAMETERS[control.name][0](control.options)
        )
    elif control.options:
        yield f"the {control.name} of real hosts has no parameters; leave out {control.options[0][0]}"


class Controls:
    """Congestion controls that are registered while the context lasts."""

    def __init__(self, asked: Iterable[Control], shared: Mapping[str, int] | None = None) -> None:
        """Those of `asked` that Tidegate has; the caller handles the others, and `refusals`.

        Each set of parameters is a congestion control of its own. `shared` are maps that programs besides them have too, by name (`RealAgents.shared`).
        """
        self._asked = sorted(one for one in set(asked) if one.name in SOURCES and not list(refusals(one)))
        self._shared = shared
        self._stack = ExitStack()
        self.names: dict[Control, str] = {}
        """What a congestion control is called in the kernel."""
        self.markers: dict[str, int] = {}
        """The program that marks its packets at the egress of an interface."""
        self.problems: dict[Control, str] = {}
        """Why one is not there."""

    def __enter__(self) -> Controls:
        with ExitStack() as stack:
            for control in self._asked:
                try:
                    self._register(control, stack)
                except BpfError as error:
                    self.problems[control] = str(error)
            self._stack = stack.pop_all()
        return self

    def _register(self, control: Control, stack: ExitStack) -> None:
        name = control.name
        why = libbpf.missing()
        if why is not None:
            raise BpfError(why)
        elf, suffix = libbpf.compiled(SOURCES[name]), secrets.token_hex(len(PLACEHOLDER) // 2)
        mine = f"{name}_{suffix}"
        try:
            elf = elf.replace(f"{name}_{PLACEHOLDER}".encode(), mine.encode())
            loaded = Loaded(elf, registers=[name], shared=self._shared)
            stack.callback(loaded.close)
            if name in PARAMETERS:
                _, packed, size = PARAMETERS[name]
                loaded.map("given", size)[FIRST] = packed(control.options)
            loaded.register(name)
        except BpfError as error:
            raise BpfError(f"{error} (it needs Linux {SINCE[name]} or newer)") from None
        self.names[control] = mine
        if name in MARKERS:
            self.markers[name] = loaded.program(MARKERS[name])

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()
