"""Mininet's nodes, in Mininet."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from live import needs_agents
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

CONTROLLER = """
from tidegate.systems.pacing.controller import ManagedLink, PacingController

controllers = PacingController({}, {2: ManagedLink("20 Mbit/s", number=1)}, wires={1: 2, 2: 1})
"""
PACED = """
import subprocess
import sys
from mininet.log import setLogLevel
from mininet.net import Mininet
from tidegate.mininet import PacedHost, TidegateSwitch

setLogLevel("critical")
program, controller, sender, receiver = sys.argv[1:5]
net = Mininet(controller=None, autoStaticArp=True)
try:
    s1 = net.addSwitch("s1", cls=TidegateSwitch, program=program, options=["--controller", controller])
    h1, h2 = net.addHost("h1", cls=PacedHost, agent=["--no-lend"]), net.addHost("h2")
    for host in (h1, h2):
        net.addLink(host, s1)
    net.start()
    for source, sink in ((h1, h2), (h2, h1)):
        with sink.popen([sys.executable, receiver], stdout=subprocess.PIPE, text=True) as listening:
            listening.stdout.readline()
            with source.popen([sys.executable, sender, sink.IP()]):
                print(source.name, listening.stdout.read().strip())
finally:
    net.stop()
"""
SENDER = """
import socket
import sys

with socket.create_connection((sys.argv[1], 5201)) as one:
    try:
        while True:
            one.sendall(bytes(1 << 16))
    except OSError:
        pass
"""
RECEIVER = """
import socket
import time

with socket.create_server(("", 5201)) as server:
    print("ready", flush=True)
    one, _ = server.accept()
    begin, got, since = time.monotonic(), 0, None
    while (now := time.monotonic() - begin) < 4:
        size = len(one.recv(1 << 16))
        if now > 2:
            since = since or now
            got += size
    print(got * 8 / (now - since) / 1e6)
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
@needs_agents
def test_the_agent_of_a_host_of_mininet_paces_its_flows(tmp_path: Path, python: dict[str, str]) -> None:
    """The switch gives its link of 20 Mbit/s to the host; nothing else limits it, as a flow the other way shows."""
    texts = (PACED, CONTROLLER, SENDER, RECEIVER)
    files = [tmp_path / f"{name}.py" for name in ("network", "controller", "sender", "receiver")]
    for file, text in zip(files, texts, strict=True):
        file.write_text(text)
    network, *others = files
    done = alone([network, ROOT / "python/tidegate/systems/pacing/pacing.p4", *others], python)
    assert done.returncode == 0, done.stderr
    rates = {name: float(rate) for name, rate in (line.split() for line in done.stdout.splitlines())}
    assert rates["h1"] == pytest.approx(20 * 1448 / 1514, rel=0.1)
    assert rates["h2"] > 2 * rates["h1"]


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
