"""What `tidegate --help` costs: every command pays it, and so does every Tab of a shell's completion."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

MOST_CPU_S = 0.25

# What a single command needs, it imports itself. These take 10 to 300 ms each.
HEAVY = {
    "asyncio",
    "dask",
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
}


def test_help_imports_nothing_that_one_command_only_needs() -> None:
    code = (
        "import sys; from tidegate.cli.commands import app; from typer.main import get_command;"
        "get_command(app).main(['--help'], standalone_mode=False); sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sweep" in done.stdout
    assert HEAVY & {name.partition(".")[0] for name in done.stderr.split()} == set()


def test_help_takes_a_quarter_of_a_second_at_most() -> None:
    def cpu_s() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        command = [sys.executable, "-m", "tidegate", "--help"]
        subprocess.run(command, env=dict(os.environ), capture_output=True, check=True)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    # Processor time, and one of some: others on the machine make it longer, nothing makes it shorter.
    taken: list[float] = []
    while not taken or (min(taken) >= MOST_CPU_S and len(taken) < 20):
        taken.append(cpu_s())
    assert min(taken) < MOST_CPU_S
