"""Names of labs' namespaces, for `ip netns`: links in /run/netns to the processes that hold them.

A name is `tidegate-PID-START-SPACE-RANDOM-HOST`, with the process that runs the lab, when it started (both as /proc has them), and the
PID namespace that these are of, so that names of ended labs are recognised even if their PID is reused, and nobody takes a lab for
dead whose processes he cannot see. Links that are not of this form, or of another user than root and oneself, are somebody else's.
"""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterable
from pathlib import Path

FOLDER = Path("/run/netns")
_NAME = re.compile(r"tidegate-(\d+)-(\d+)-(\d+)-[0-9a-f]{6}-[A-Za-z0-9._-]+")
_TARGET = re.compile(r"/proc/\d+/ns/net")
FIRST_SPACE = 0xEFFFFFFC
"""The number of the first PID namespace, whose processes see all others (PROC_PID_INIT_INO)."""


def _space(pid: int | str = "self") -> int | None:
    """The PID namespace of a process, by the kernel's number."""
    try:
        return os.stat(f"/proc/{pid}/ns/pid").st_ino
    except OSError:
        return None


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
    return f"tidegate-{pid}-{_started(pid)}-{_space()}-{secrets.token_hex(3)}"


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


def _is_ours(path: Path) -> bool:
    """Whether a lab has made this name, and not just anybody."""
    if _NAME.fullmatch(path.name) is None:
        return False
    try:
        return path.lstat().st_uid in (0, os.geteuid()) and _TARGET.fullmatch(os.readlink(path)) is not None
    except OSError:
        return False


def _links() -> list[Path]:
    try:
        return [path for path in FOLDER.iterdir() if _is_ours(path)]
    except FileNotFoundError:
        return []


def _spaces() -> Iterable[int | None]:
    """The PID namespaces of all processes; `None`: one that may not be known."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal():
            space = _space(entry.name)
            if space is not None or entry.exists():
                yield space


def _lives(pid: int, started: int, space: int) -> bool:
    """Whether a lab's process runs; yes, where that cannot be seen from here."""
    own = _space()
    if space == own:
        return _started(pid) == started
    if own != FIRST_SPACE:
        return True
    # From here all processes are seen, so a namespace without any is gone.
    return any(one in (space, None) for one in _spaces())


def sort() -> tuple[list[Path], list[Path]]:
    """Names of running labs, and of labs whose process has ended."""
    alive: list[Path] = []
    dead: list[Path] = []
    for path in sorted(_links()):
        match = _NAME.fullmatch(path.name)
        assert match is not None
        (alive if _lives(*map(int, match.groups())) else dead).append(path)
    return alive, dead


def remove_dead() -> list[str]:
    """Remove the names that ended labs have left; return them."""
    _, dead = sort()
    for path in dead:
        path.unlink(missing_ok=True)
    return [path.name for path in dead]
