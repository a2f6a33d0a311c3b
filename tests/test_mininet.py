"""Mininet's nodes, in Mininet."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from namespaces import needs_root

ROOT = Path(__file__).resolve().parent.parent
DEBIANS = Path("/usr/lib/python3/dist-packages/mininet")
NETWORK = """
import sys
from mininet.log import setLogLevel
from mininet.net import Mininet
from tidegate.mininet import PacedHost, TidegateSwitch

setLogLevel("critical")
program, commands = sys.argv[1:3]
net = Mininet(controller=None, autoStaticArp=True)
try:
    s1 = net.addSwitch("s1", cls=TidegateSwitch, program=program, commands=commands)
    for number in (1, 2):
        net.addLink(net.addHost(f"h{number}", cls=PacedHost), s1)
    net.start()
    assert s1.connected()
    print("lost", net.pingAll(timeout="2"))
    print(s1.said)
    print(net["h1"].said)
finally:
    net.stop()
assert not s1.connected()
try:
    TidegateSwitch("s2")
except Exception as error:
    print(error)
"""


LEARNING_SWITCH = ROOT / "examples/p4/learning_switch/learning_switch.p4"
FLOOD = "mc_mgrp_create 1\nmc_node_create 0 1 2\nmc_node_associate 1 0\n"


@pytest.fixture
def python(tmp_path: Path) -> dict[str, str]:
    """The environment of a Python that sees Debian's Mininet, and nothing else of Debian's."""
    if not DEBIANS.is_dir():
        pytest.skip("Mininet is not installed: apt install mininet")
    for program in ("mnexec", "ping", "ifconfig"):
        if shutil.which(program) is None:
            pytest.skip(f"Mininet needs {program}, which is not installed")
    (tmp_path / "only").mkdir()
    (tmp_path / "only" / "mininet").symlink_to(DEBIANS)
    return os.environ | {"PYTHONPATH": f"{ROOT / 'python'}:{tmp_path / 'only'}"}


def alone(
    words: list[Path], env: dict[str, str], cwd: Path | None = None
) -> subprocess.CompletedProcess[str]:
    """Run Python in a network namespace of its own: Mininet names interfaces s1-eth1, and that of two tests at once would be the same."""
    command = ["unshare", "--net", sys.executable, *map(str, words)]
    return subprocess.run(command, env=env, cwd=cwd, capture_output=True, text=True, timeout=180, check=False)


@needs_root
def test_a_network_of_mininet(tmp_path: Path, python: dict[str, str]) -> None:
    script, commands = tmp_path / "network.py", tmp_path / "flood.txt"
    script.write_text(NETWORK)
    commands.write_text(FLOOD)
    done = alone([script, LEARNING_SWITCH, commands], python)
    assert done.returncode == 0, done.stderr
    assert "lost 0.0" in done.stdout
    assert "port 1: s1-eth1" in done.stdout
    assert "paces flows at h1-eth0" in done.stdout
    assert "s2: no program is given; write program='PROG.p4'" in done.stdout
    left = subprocess.run(["pgrep", "-f", str(commands)], capture_output=True, text=True, check=False)
    assert left.stdout == ""


@needs_root
def test_the_page_s_example_runs(tmp_path: Path, python: dict[str, str]) -> None:
    (block,) = re.findall(
        r"```python\n(from mininet\.net.*?)```", (ROOT / "docs/exercises.md").read_text(), re.S
    )
    (tmp_path / "page.py").write_text("from mininet.log import setLogLevel; setLogLevel('info')\n" + block)
    (tmp_path / "router.p4").write_text(LEARNING_SWITCH.read_text())
    (tmp_path / "s1-commands.txt").write_text(FLOOD)
    done = alone([tmp_path / "page.py"], python, tmp_path)
    assert done.returncode == 0, done.stderr
    assert "0% dropped (2/2 received)" in done.stdout + done.stderr


def test_without_mininet_the_cure_is_said() -> None:
    code = "import sys; sys.modules['mininet.node'] = None; import tidegate.mininet"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (
        "Mininet is not installed for this Python; on Debian and Ubuntu: apt install mininet" in done.stderr
    )
