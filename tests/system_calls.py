"""System calls that a unit of systemd permits, and those that a traced program has made."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

needs_strace = pytest.mark.skipif(shutil.which("strace") is None, reason="needs strace")
needs_systemd = pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="needs systemd-analyze")
STRACE = ["strace", "-f", "-qq", "-o"]
"""With a file for the calls, and the command."""


def permitted(unit: str) -> set[str]:
    """Calls of a unit's filter, with those of the groups that it names."""
    (named,) = re.findall(r"^SystemCallFilter=(.*)$", unit, re.MULTILINE)
    found, groups = set(), named.split()
    while groups:
        name = groups.pop()
        found.add(name)
        if name.startswith("@"):
            listed = ["systemd-analyze", "syscall-filter", name]
            out = subprocess.run(listed, capture_output=True, text=True, check=True).stdout
            lines = [line.strip() for line in out.splitlines()[1:]]
            groups += [line for line in lines if line and not line.startswith("#")]
    return found


def made(calls: Path) -> set[str]:
    """Calls in a file of strace's."""
    return set(re.findall(r"^\d+ +(\w+)\(", calls.read_text(), re.MULTILINE))


def traced(strace: int) -> int:
    """The process that strace, a process too, has started."""
    (child,) = Path(f"/proc/{strace}/task/{strace}/children").read_text().split()
    return int(child)
