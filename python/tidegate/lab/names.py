"""Names of labs' namespaces, for `ip netns`: links in /run/netns to the processes that hold them.

A name is `tidegate-PID-START-RANDOM-HOST`, with the process that runs the lab and when it started (both as /proc has them), so
that names of ended labs are recognised even if their PID is reused.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path("/run/netns")
_NAME = re.compile(r"tidegate-(\d+)-(\d+)-[0-9a-f]{6}-.+")


def _started(pid: int) -> int | None:
    """Start time of a process in kernel ticks; `None`: no such process."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    # The second field, in brackets, may hold anything.
    return int(text.rpartition(")")[2].split()[19])


def new_run() -> str:
    """A unique name for a lab of this process."""
    pid = os.getpid()
    return f"tidegate-{pid}-{_started(pid)}-{secrets.token_hex(3)}"


def host_names(hosts: Iterable[str]) -> list[str]:
    """The hosts' names as far as they can be parts of file names, all different."""
    names: list[str] = []
    for number, host in enumerate(hosts):
        name = re.sub(r"[^A-Za-z0-9._-]", "_", host)[:64]
        names.append(name if name == host and name not in names and name != "switch" else f"{name}-{number}")
    return names


def link(name: str, pid: int) -> None:
    """Let `ip netns` find the namespace of a process."""
    FOLDER.mkdir(mode=0o755, exist_ok=True)
    (FOLDER / name).symlink_to(f"/proc/{pid}/ns/net")


def unlink(run: str) -> None:
    """Remove the names of a lab."""
    for path in _links():
        if path.name.startswith(f"{run}-"):
            path.unlink(missing_ok=True)


def _links() -> list[Path]:
    try:
        return [path for path in FOLDER.iterdir() if path.is_symlink() and _NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []


def sort() -> tuple[list[Path], list[Path]]:
    """Names of running labs, and of labs whose process has ended."""
    alive: list[Path] = []
    dead: list[Path] = []
    for path in sorted(_links()):
        match = _NAME.fullmatch(path.name)
        assert match is not None
        (alive if _started(int(match[1])) == int(match[2]) else dead).append(path)
    return alive, dead


def remove_dead() -> list[str]:
    """Remove the names that ended labs have left; return them."""
    _, dead = sort()
    for path in dead:
        path.unlink(missing_ok=True)
    return [path.name for path in dead]
