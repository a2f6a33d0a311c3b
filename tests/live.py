"""What tests of the live backend need."""

from __future__ import annotations

import ctypes
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import ParamSpec

import pytest

from tidegate.hosts import libbpf
from tidegate.lab import kernel, names
from tidegate.results import Result

P = ParamSpec("P")

needs_namespaces = pytest.mark.live
untimed = pytest.mark.untimed
"""Of a live test that asserts nothing that a busy machine changes. Tests of what labs leave cannot run beside each other."""
no_bpf = libbpf.missing() if shutil.which(libbpf.COMPILER) else "needs clang"
"""Why no BPF program can be loaded, if it cannot."""


def needs_control(name: str) -> pytest.MarkDecorator:
    """Of a test with a congestion control that Tidegate brings for kernels without it."""
    return pytest.mark.skipif(
        not kernel.congestion_controls([name]) and no_bpf is not None,
        reason=f"{no_bpf}, or a kernel that has {name}",
    )


needs_dctcp, needs_prague = needs_control("dctcp"), needs_control("prague")
needs_agents = pytest.mark.skipif(no_bpf is not None, reason=str(no_bpf))
needs_iperf3 = pytest.mark.skipif(shutil.which("iperf3") is None, reason="needs iperf3")


missing_parts = pytest.mark.parametrize(
    ("what", "value", "why"),
    [
        ("COMPILER", "no-such-clang", "no-such-clang is not installed; .*apt install clang"),
        ("BTF", Path("/nowhere"), "this kernel does not describe its types"),
        ("LIBRARY", "libno-such.so", r"libno-such\.so is not installed; .*apt install libbpf1"),
    ],
)
"""What BPF programs need and a machine may lack: see `without`; `why` is what is to be said."""


@contextmanager
def without(what: str, value: object, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """As on a machine that lacks it."""
    if what != "LIBRARY" and libbpf.missing() is not None:
        pytest.skip(str(libbpf.missing()))
    monkeypatch.setattr(libbpf, what, value)
    kept = (libbpf.compiled, libbpf._library)
    for one in kept:
        one.cache_clear()
    try:
        yield
    finally:
        for one in kept:
            one.cache_clear()


def wait_for(condition: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Whether it comes true within a time."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.01)
    return True


def is_disturbed(result: Result, late_ms: float = 8) -> bool:
    """Whether the machine did not keep the time in a run: p99 of how late packets were above `late_ms`, or one by thrice that, for one thing."""
    values = {(where, quantity): value for where, quantity, value in result.live.iter_rows()}
    lost = sum(value for (_, quantity), value in values.items() if quantity in ("overrun", "refused"))
    late = values["", "lateness_ms_p99"] > late_ms or values["", "lateness_ms_max"] > 3 * late_ms
    # Where the lab's own samples are late, so are its hosts.
    return bool(lost or late or any("too slow" in warning for warning in result.warnings))


TRIES = 5
"""How often what a busy machine can spoil is tried."""


def undisturbed(run: Callable[[], Result], late_ms: float = 8) -> Result:
    """What comes of a run in which the machine kept the time, more or less. One that does not in five runs is of no use here."""
    for _ in range(TRIES):
        result = run()
        if not is_disturbed(result, late_ms):
            return result
    pytest.skip(f"the machine has too much else to do to keep the time: {'; '.join(result.warnings)}")


class Disturbed(Exception):
    """The machine had too much else to do for what a case measures."""


class Attempt:
    """A try of the test that runs: its number from 0 on, and what disturbed its live runs."""

    number = 0
    disturbed: str | None = None


def watched(result: Result, late_ms: float = 8) -> Result:
    """A live run of a test of `again_if_disturbed`, which fails only if the machine kept the time: see `is_disturbed`."""
    if is_disturbed(result, late_ms):
        Attempt.disturbed = "; ".join(result.warnings) or "packets were late"
    return result


def again_if_disturbed(test: Callable[P, None]) -> Callable[P, None]:
    """A test that a busy machine can make fail is tried up to five times. What it asserts holds of disturbed runs too, or mostly."""

    @wraps(test)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> None:
        why: str | None = None
        for Attempt.number in range(TRIES):
            Attempt.disturbed = None
            try:
                return test(*args, **kwargs)
            except Disturbed as error:
                why = str(error)
            except Exception:
                if Attempt.disturbed is None:
                    raise
                why = Attempt.disturbed
        pytest.skip(f"the machine has too much else to do to keep the time: {why}")

    return repeated


def namespaces() -> set[str]:
    """Network namespaces that any process is in or holds, by what the kernel calls them."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        try:
            found.add(os.readlink(process / "ns/net"))
            files = list((process / "fd").iterdir())
        except OSError:
            continue
        for file in files:
            try:
                target = os.readlink(file)
            except OSError:
                continue
            if target.startswith("net:["):
                found.add(target)
    return found


def processes(text: str) -> list[int]:
    """Processes with this in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if text.encode() in (process / "cmdline").read_bytes():
                found.append(int(process.name))
        except OSError:
            continue
    return found


def labs_of(pid: int) -> list[Path]:
    """Names of the labs that a process runs."""
    if not names.FOLDER.is_dir():
        return []
    return [path for path in names.FOLDER.iterdir() if path.name.startswith(f"tidegate-{pid}-")]


def spaces_of(pid: int) -> set[str]:
    """The namespaces of a process's labs."""
    found = set()
    for path in labs_of(pid):
        with suppress(OSError):
            found.add(os.readlink(os.readlink(path)))
    return found


def has_ended(pid: int, of_lab: set[str]) -> bool:
    """Whether nothing is left of a process's lab, whose namespaces these were."""
    return not labs_of(pid) and not processes(f"tidegate-{pid}-") and not namespaces() & of_lab


def held(pid: int) -> set[tuple[str, int]]:
    """BPF programs and maps that a process holds, by the kernel's numbers."""
    found = set()
    for file in Path(f"/proc/{pid}/fdinfo").iterdir():
        try:
            text = file.read_text()
        except OSError:
            continue
        found.update(
            (kind, int(number)) for kind, number in re.findall(r"^(prog|map)_id:\s*(\d+)$", text, re.M)
        )
    return found


def is_there(kind: str, number: int) -> bool:
    """Whether the kernel has a BPF program or a map still."""
    library = ctypes.CDLL(libbpf.LIBRARY)
    file = int(getattr(library, f"bpf_{kind}_get_fd_by_id")(ctypes.c_uint32(number)))
    if file >= 0:
        os.close(file)
    return file >= 0
