"""The example of docs/p4runtime.md does what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tidegate import p4 as programs
from tidegate.control import operations as op
from tidegate.p4runtime import Server
from tidegate.p4runtime.conftest import LOOPBACK, Simulated

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs" / "p4runtime.md"


@pytest.mark.skipif(
    not DOCS.exists(), reason="the documentation is in the repository, not in what is installed"
)
def test_the_client_of_the_documentation(tmp_path: Path) -> None:
    found = re.search(r"<!-- test: client -->\n```python\n(.*?)```", DOCS.read_text(), re.DOTALL)
    assert found is not None
    program = programs.compile(ROOT / "examples" / "p4" / "learning_switch" / "learning_switch.p4")
    frames = {port: (10 - port).to_bytes(6) + port.to_bytes(6) + b"\x88\xb5" + bytes(46) for port in (1, 2)}
    with (
        Simulated(program) as simulated,
        Server(simulated.api, program, address=LOOPBACK, lock=simulated.lock, poll_every=0.005) as server,
    ):
        with simulated.lock:
            for port, frame in frames.items():
                simulated.surface.act(op.GeneratorSet(port, (port, frame, 20_000_000_000)))
        script = tmp_path / "client.py"
        script.write_text(found[1].replace("127.0.0.1:9559", server.address).replace('"2 s"', '"30 s"'))
        ran = subprocess.run(
            [sys.executable, script], capture_output=True, text=True, timeout=60, check=False
        )
    assert ran.returncode == 0, ran.stderr
    assert sorted(ran.stdout.splitlines()) == ["000000000001 is at port 1", "000000000002 is at port 2"]
