"""What a service changes outside its programs, and how that is taken back when it has ended without doing so.

A file in /run says what is to be put back in this network namespace. It is there as long as a service runs. What is in it is acted on
only if the folder and the file are root's or of the service's user, nobody else can write them, and it is of this network namespace:
the number in its name can come again.
"""

from __future__ import annotations

import fcntl
import json
import os
import stat
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from tidegate._core import TidegateError
from tidegate.files import replacing, why
from tidegate.lab.interfaces import namespace_cookie
from tidegate.systems.pacing.service import shaper

SYSCTLS = Path("/proc/sys/net")
# Below 1 ms of round trip, Linux sends bursts of up to 64 KiB however slow the pacing rate is, unless this is 0.
WANTED = {"ipv4/tcp_tso_rtt_log": "0"}
MOST_BYTES = 1 << 16


def folder() -> Path:
    """Where the file is: systemd's `RuntimeDirectory`, or /run/tidegate-agent."""
    return Path(os.environ.get("RUNTIME_DIRECTORY", "/run/tidegate-agent").split(":")[0])


def _number() -> int:
    return os.stat("/proc/thread-self/ns/net").st_ino


def path() -> Path:
    """The file of this network namespace."""
    return folder() / f"agent-{_number()}.json"


def owner() -> int | None:
    """The user whose folder it is, who is trusted: root or systemd has made it. `None`: there is none, or others can write it."""
    try:
        about = folder().stat()
    except OSError:
        return None
    private = stat.S_ISDIR(about.st_mode) and not about.st_mode & 0o022
    # Whoever is not root has to be told by root where it is.
    told = about.st_uid in (0, os.geteuid()) or folder().parent.stat().st_uid == 0
    return about.st_uid if private and told else None


def lock() -> int | None:
    """A file that one service of this network namespace can have at a time; `None`: one has it. It goes with its last process.

    Raises `TidegateError` where it cannot be made. Other users have no way to it.
    """
    file = path().with_suffix(".lock")
    try:
        folder().mkdir(mode=0o755, parents=True, exist_ok=True)
        if owner() is None:
            raise TidegateError(
                f"{folder()} can be written by others, who could keep the agent from starting; chmod go-w {folder()}"
            )
        while True:
            found = os.open(file, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            try:
                fcntl.flock(found, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The one who had it removes its name.
                if os.stat(file).st_ino == os.fstat(found).st_ino:
                    return found
            except FileNotFoundError:
                pass
            except BlockingIOError:
                os.close(found)
                return None
            os.close(found)
    except OSError as error:
        raise TidegateError(f"{file} cannot be written: {why(error)}") from None


def unlock(found: int) -> None:
    """Give the lock back, and remove its name."""
    remove_lock_name()
    os.close(found)


def remove_lock_name() -> None:
    """To be called by a process that has the lock."""
    with suppress(OSError):
        path().with_suffix(".lock").unlink()


def change(qdisc: str | None, interfaces: Sequence[str]) -> dict[str, str]:
    """Change what is to be changed; gives what sysctls were before. Raises TidegateError where it is not permitted.

    `qdisc` is what these interfaces get at their root; None: they keep theirs.
    """
    before = {}
    for name in WANTED:
        try:
            before[name] = (SYSCTLS / name).read_text().strip()
        except OSError:
            # Before Linux 5.19 there are no such bursts.
            continue
    record = {
        "pid": os.getpid(),
        "namespace": namespace_cookie(),
        "sysctls": before,
        "interfaces": list(interfaces),
    }
    with replacing(path()) as file:
        file.write(json.dumps(record).encode())
    try:
        for name in before:
            (SYSCTLS / name).write_text(WANTED[name])
    except OSError as error:
        put_back(before)
        raise TidegateError(
            f"{SYSCTLS / name} cannot be set: {error.strerror} (it needs CAP_NET_ADMIN)"
        ) from None
    if qdisc is not None:
        try:
            shaper.install(qdisc, interfaces)
        except BaseException:
            put_back(before)
            raise
    return before


def put_back(before: Mapping[str, str]) -> None:
    """As it was. What somebody else has changed meanwhile stays."""
    for name, value in before.items():
        with suppress(OSError):
            if (SYSCTLS / name).read_text().strip() == WANTED.get(name):
                (SYSCTLS / name).write_text(value)
    record = _record()
    if record is not None:
        shaper.remove(record["interfaces"])
    path().unlink(missing_ok=True)


def _record() -> dict[str, Any] | None:
    """What the file of this namespace says, if it can be believed."""
    try:
        trusted = owner()
        file = os.open(path(), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(file, "rb") as opened:
            about = os.fstat(opened.fileno())
            if (
                trusted is None
                or not stat.S_ISREG(about.st_mode)
                or about.st_uid not in (0, os.geteuid(), trusted)
                or about.st_mode & 0o022
            ):
                return None
            said = json.loads(opened.read(MOST_BYTES))
        sysctls, interfaces = said["sysctls"], said["interfaces"]
        if said["namespace"] != namespace_cookie():
            return None
        return {
            "sysctls": {
                name: value for name, value in sysctls.items() if name in WANTED and _is_number(value)
            },
            "interfaces": [name for name in interfaces if isinstance(name, str) and "/" not in name],
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def _is_number(value: object) -> bool:
    return isinstance(value, str) and value.isascii() and value.isdecimal() and len(value) < 4


def found() -> dict[str, str] | None:
    """What a service has left in this network namespace that ended together with its keeper; None: nothing."""
    if not os.path.lexists(path()):
        return None
    record = _record()
    return {} if record is None else record["sysctls"]
