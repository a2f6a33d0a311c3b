"""The engine, programs that Tidegate runs, and Python packages of its extras."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from importlib import metadata

from tidegate import _core
from tidegate.doctor.report import Finding, State

TOOLS = (
    # Program, package, what it is for.
    ("ip", "iproute2", "tidegate lab"),
    ("tc", "iproute2", "qdiscs of Linux routers"),
    ("nsenter", "util-linux", "qdiscs of Linux routers, tidegate lab"),
    ("unshare", "util-linux", "qdiscs of Linux routers, tidegate lab"),
    ("iperf3", "iperf3", "traffic of live networks"),
    ("ping", "iputils-ping", "h1 ping h2 in tidegate lab"),
    ("clang", "clang", "BPF: tidegate agent, Prague and DCTCP between real hosts"),
    ("ethtool", "ethtool", "offloads of interfaces by hand"),
    ("tshark", "tshark", "tests of tidegate monitor"),
    ("tcptrace", "tcptrace", "tests of tidegate monitor"),
    ("mn", "mininet", "tidegate.mininet"),
)


def engine() -> Iterator[Finding]:
    """The compiler and both executors, with a program that comes with Tidegate."""
    from tidegate import p4, program

    try:
        compiled = p4.compile(program("meter"))
        for executor in ("interp", "jit"):
            compiled.pipeline(executor)
    except _core.TidegateError as error:
        yield Finding(
            "machine",
            "P4 engine",
            State.MISSING,
            str(error).splitlines()[0],
            "install Tidegate again, for this processor",
        )
        return
    yield Finding(
        "machine", "P4 engine", State.WORKS, f"tidegate {_core.__version__}, native code and interpreter"
    )


def tools() -> Iterator[Finding]:
    """Programs, where they are."""
    for name, package, use in TOOLS:
        path = shutil.which(name)
        yield Finding(
            "programs",
            name,
            State.MISSING if path is None else State.WORKS,
            f"for {use}" if path is None else path,
            f"on Debian and Ubuntu: apt install {package}" if path is None else "",
        )


def packages() -> Iterator[Finding]:
    """The extras of this installation, by its own metadata."""
    try:
        wanted = metadata.requires("tidegate") or []
    except metadata.PackageNotFoundError:
        yield Finding(
            "Python packages",
            "tidegate",
            State.UNKNOWN,
            "runs from its source folder",
            "pip install tidegate",
        )
        return
    extras: dict[str, list[str]] = {}
    for text in wanted:
        found = re.match(r"([A-Za-z0-9._-]+).*;.*extra == ['\"]([\w-]+)['\"]", text)
        if found:
            extras.setdefault(found[2], []).append(found[1])
    for extra, names in extras.items():
        missing = [name for name in names if not _installed(name)]
        yield Finding(
            "Python packages",
            extra,
            State.MISSING if missing else State.WORKS,
            f"without {', '.join(missing)}" if missing else ", ".join(names),
            f'pip install "tidegate[{extra}]"' if missing else "",
        )


def _installed(name: str) -> bool:
    try:
        metadata.version(name)
    except metadata.PackageNotFoundError:
        return False
    return True
