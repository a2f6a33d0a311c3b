"""The engine, programs that Tidegate runs, and Python packages of its extras."""

from __future__ import annotations

import importlib.util
import re
import shutil
import subprocess
import sysconfig
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

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
    ("sbatch", "slurm-client", "--cluster slurm"),
    ("squeue", "slurm-client", "--cluster slurm"),
    ("munge", "munge", "keys of SLURM"),
    ("chromium", "chromium", "tests of the dashboard, which Playwright drives"),
)
SLURM_S = 3
"""For SLURM to answer in."""
MININET = Path("/usr/lib/python3/dist-packages/mininet")
"""Debian's."""


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


def slurm() -> Iterator[Finding]:
    """Whether a controller of SLURM answers, where there are its programs."""
    if (squeue := shutil.which("squeue")) is None:
        said, cure = "there is no squeue", "on Debian and Ubuntu: apt install slurm-client"
    else:
        cure = "run munged and slurmctld, with /etc/slurm/slurm.conf; or use a machine that submits to SLURM"
        try:
            done = subprocess.run(
                [squeue, "--noheader"], capture_output=True, text=True, timeout=SLURM_S, check=False
            )
        except (OSError, subprocess.TimeoutExpired):
            said = f"squeue has no answer within {SLURM_S} s"
        else:
            said = (done.stderr.strip().splitlines() or ["squeue has failed"])[-1]
            if done.returncode == 0:
                yield Finding("programs", "SLURM", State.WORKS, "its controller answers")
                return
    yield Finding("programs", "SLURM", State.MISSING, said, cure)


def modules() -> Iterator[Finding]:
    """Python modules that are no packages of an extra."""
    where = sysconfig.get_path("purelib")
    mininet = f"ln -s {MININET} {where}/" if MININET.is_dir() else "on Debian and Ubuntu: apt install mininet"
    for name, use, cure in (
        ("mininet", "tidegate.mininet", mininet),
        ("playwright", "tests of the dashboard", "pip install playwright"),
    ):
        there = importlib.util.find_spec(name) is not None
        yield Finding(
            "Python packages",
            f"import {name}",
            State.WORKS if there else State.MISSING,
            "" if there else f"for {use}",
            "" if there else cure,
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
