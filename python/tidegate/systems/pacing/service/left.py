"""What a service changes outside its programs, and how that is taken back when it has ended without doing so.

A file in /run says what is to be put back in this network namespace. It is there as long as a service runs.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.systems.pacing.service import shaper

SYSCTLS = Path("/proc/sys/net")
# Below 1 ms of round trip, Linux sends bursts of up to 64 KiB however slow the pacing rate is, unless this is 0.
WANTED = {"ipv4/tcp_tso_rtt_log": "0"}


def folder() -> Path:
    """Where the file is: systemd's `RuntimeDirectory`, or /run/tidegate."""
    return Path(os.environ.get("RUNTIME_DIRECTORY", "/run/tidegate").split(":")[0])


def path() -> Path:
    """The file of this network namespace."""
    return folder() / f"agent-{os.stat('/proc/thread-self/ns/net').st_ino}.json"


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
    file = path()
    try:
        file.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        partial = file.with_suffix(".partial")
        partial.write_text(
            json.dumps({"pid": os.getpid(), "sysctls": before, "interfaces": list(interfaces)})
        )
        partial.replace(file)
    except OSError as error:
        raise TidegateError(f"{file} cannot be written: {error.strerror}") from None
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
    file = path()
    with suppress(OSError, ValueError, KeyError, TypeError):
        shaper.remove([str(name) for name in json.loads(file.read_text())["interfaces"]])
    file.unlink(missing_ok=True)


def found() -> dict[str, str] | None:
    """What a service has left in this network namespace that ended together with its keeper; None: nothing."""
    try:
        said = json.loads(path().read_text())
        sysctls = said["sysctls"]
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    if not isinstance(sysctls, dict):
        return {}
    return {name: value for name, value in sysctls.items() if name in WANTED and isinstance(value, str)}
