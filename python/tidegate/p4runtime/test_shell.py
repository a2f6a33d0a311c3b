"""p4runtime-shell, as it is, does everything that it can do."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import p4 as programs
from tidegate.control import operations as op
from tidegate.p4runtime import Server
from tidegate.p4runtime.conftest import LOOPBACK, TEXT, Simulated, frame, lldp

SHELL = Path(sys.prefix) / "shell" / "bin" / "python"
SCRIPT = Path(__file__).with_name("shell_client.py")


@pytest.mark.skipif(
    not SHELL.exists(), reason="p4runtime-shell is not there; `make .venv/shell/.packages` brings it"
)
def test_p4runtime_shell(everything: programs.Program, tmp_path: Path) -> None:
    (tmp_path / "p4info.txt").write_text(everything.p4info)
    (tmp_path / "everything.p4").write_text(TEXT)
    with (
        Simulated(everything) as simulated,
        Server(simulated.api, everything, address=LOOPBACK, lock=simulated.lock, poll_every=0.005) as server,
    ):
        with simulated.lock:
            simulated.surface.act(op.GeneratorSet(1, (3, lldp(), 20_000_000_000)))
            simulated.surface.act(op.GeneratorSet(2, (3, frame(to=77), 20_000_000_000)))
        command: list[str | Path] = [
            SHELL,
            SCRIPT,
            server.address,
            tmp_path / "p4info.txt",
            tmp_path / "everything.p4",
        ]
        ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert ran.returncode == 0, ran.stdout + ran.stderr
        assert ran.stdout.endswith("done\n"), ran.stdout + ran.stderr
        with simulated.lock:
            assert simulated.surface.act(op.StatisticsRead())["packet_outs"] == 1
