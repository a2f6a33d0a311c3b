"""What `tidegate --help` costs: every command pays it, and so does every Tab of a shell's completion.

A quarter of a second where Python takes 70 ms to start with some modules of its own."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

MOST = 3.5
"""Times what Python takes to start with modules of its own."""

# What a single command needs, it imports itself. These take 10 to 300 ms each.
HEAVY = {
    "asyncio",
    "dask",
    "distributed",
    "grpc",
    "http",
    "lxml",
    "matplotlib",
    "numpy",
    "optuna",
    "polars",
    "prometheus_client",
    "pyroute2",
    "rich",
    "ssl",
    "starlette",
    "uvicorn",
}


def test_help_imports_nothing_that_one_command_only_needs() -> None:
    code = (
        "import sys; from tidegate.cli.commands import app; from typer.main import get_command;"
        "get_command(app).main(['--help'], standalone_mode=False); sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sweep" in done.stdout
    assert HEAVY & {name.partition(".")[0] for name in done.stderr.split()} == set()


def test_help_takes_little_more_than_python_s_own_start() -> None:
    def cpu_s(*words: str) -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, *words], env=dict(os.environ), capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, and the least of some: others on the machine make it longer, nothing makes it shorter.
    helps: list[float] = []
    starts: list[float] = []
    while not helps or (min(helps) >= MOST * min(starts) and len(helps) < 20):
        helps.append(cpu_s("-m", "tidegate", "--help"))
        starts.append(cpu_s("-c", "import argparse, asyncio, email, json"))
    assert min(helps) < MOST * min(starts)
