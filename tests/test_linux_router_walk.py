"""The section `A Linux router` of flow separation's page: its commands, one after the other, in namespaces that nobody else sees."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from live import needs_agents, needs_iperf3, needs_namespaces, wait_for
from test_pages import ROOT

PAGE = ROOT / "python/tidegate/systems/separation/README.md"
ROUTER = "router"
LINK_KBIT = 50_000 * 1514 / 1500
"""HTB counts frames."""
QUEUES = [1, 0x10, 0x11, 0x12]
"""Classes of HTB: the link, flows that are not known, 10 ms, 40 ms."""
GIVEN = {"queue_1_flows": 2, "queue_2_flows": 1}
"""Flows of 10 ms, and of 40 ms."""


def blocks(language: str) -> list[str]:
    section = re.search(r"^## A Linux router\n(.*?)^## ", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert section is not None
    return re.findall(rf"^```{language}\n(.*?)^```", section[1], re.MULTILINE | re.DOTALL)


class Machine:
    """A network and mount namespace of the test's own, in which the page's namespaces are, and a folder for its reader."""

    def __init__(self, folder: Path, kept: ExitStack) -> None:
        self.folder = folder
        for name in ("examples", "python"):
            (folder / name).symlink_to(ROOT / name)
        tidegate = folder / ".venv/bin/tidegate"
        tidegate.parent.mkdir(parents=True)
        state = folder / "state"
        state.mkdir()
        tidegate.write_text(
            f'#!/bin/sh\nexport RUNTIME_DIRECTORY={state}\nexec {sys.executable} -m tidegate "$@"\n'
        )
        tidegate.chmod(0o755)
        holder = subprocess.Popen(
            ["unshare", "--mount", "--net", "sh", "-c", "mount -t tmpfs none /run/netns && exec sleep 600"]
        )
        kept.callback(holder.wait)
        kept.callback(holder.kill)
        kept.callback(self._end)
        self._inside = ["nsenter", f"--target={holder.pid}", "--mount", "--net", f"--wd={folder}"]
        self._kept = kept
        mounts = Path(f"/proc/{holder.pid}/mounts")
        assert wait_for(lambda: " /run/netns tmpfs " in mounts.read_text())

    def _words(self, at: str | None) -> list[str]:
        return [*self._inside, *(("nsenter", f"--net=/run/netns/{at}") if at else ()), "bash", "-es"]

    def run(self, text: str, at: str | None = None) -> str:
        """Type something into a shell, in one of the page's namespaces; what it printed."""
        # What goes on in the background has the output still.
        said = self.folder / "said"
        with said.open("w") as file:
            done = subprocess.run(
                self._words(at), input=text, stdout=file, stderr=file, text=True, timeout=60, check=False
            )
        assert done.returncode == 0, f"{text}: {said.read_text()}"
        return said.read_text()

    def begin(self, text: str, at: str | None = None, says: str = "running") -> subprocess.Popen[bytes]:
        """Type a command that stays, when it says that it is running."""
        log = self.folder / "log"
        with log.open("wb") as file:
            process = subprocess.Popen(
                [*self._words(at)[:-1], "-c", f"exec {text}"], stdout=file, stderr=file, cwd=self.folder
            )
        self._kept.callback(process.wait)
        self._kept.callback(process.terminate)
        assert wait_for(lambda: says in log.read_text() or process.poll() is not None), log.read_text()
        assert process.poll() is None, log.read_text()
        return process

    def _end(self) -> None:
        """End what still runs in the page's namespaces."""
        self.run("for name in $(ls /run/netns); do ip netns pids $name | xargs -r kill; done")


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Machine]:
    with ExitStack() as kept:
        yield Machine(tmp_path, kept)


def notes(shown: str) -> dict[str, float]:
    return {name: float(value) for name, value in re.findall(r'note\{quantity="(\w+)"\} (\S+)', shown)}


def cells(shown: str, register: str) -> list[float]:
    """What is not zero in a register."""
    found = re.findall(rf'^tidegate_register\{{.*"{register}".*\}} (\S+)', shown, re.MULTILINE)
    return [float(value) for value in found]


def classes(shown: str) -> dict[int, tuple[float, float, int]]:
    """Of each class of HTB: its rate and ceiling in kbit/s, and the bytes that it has sent."""
    kbit = {"bit": 1e-3, "Kbit": 1, "Mbit": 1e3}
    found = re.findall(
        r"class htb 7d1e:(\w+) .*?rate (\d+)(\w+) ceil (\d+)(\w+) .*\n *Sent (\d+) bytes", shown
    )
    return {
        int(name, 16): (int(rate) * kbit[unit], int(ceil) * kbit[of], int(sent))
        for name, rate, unit, ceil, of, sent in found
    }


@needs_namespaces
@needs_iperf3
@needs_agents
@pytest.mark.skipif(shutil.which("ethtool") is None, reason="needs ethtool")
def test_the_linux_router_of_the_page(machine: Machine) -> None:
    around, net, port, copies, monitor, traffic, look, undo, end = blocks("sh")
    (controller,) = blocks("python")
    (machine.folder / controller.split()[1]).write_text(controller)
    machine.run(around)
    machine.begin(net)
    machine.run(port + copies, ROUTER)
    before = machine.run("tc qdisc show dev wan", ROUTER)
    assert "htb" not in before
    running = machine.begin(monitor, ROUTER)
    machine.run(traffic)

    table = look.splitlines()[-1]

    def kernel() -> dict[int, tuple[float, float, int]]:
        return classes(machine.run(table, ROUTER))

    def are_separated() -> bool:
        time.sleep(1)
        shown = machine.run(look, ROUTER)
        found = classes(shown)
        # Two flows have twice the rate of one.
        return (
            notes(shown).items() >= GIVEN.items()
            and sorted(found) == QUEUES
            and found[0x11][0] == pytest.approx(2 * found[0x12][0], rel=0.02)
        )

    assert wait_for(are_separated), machine.run(look, ROUTER)
    found = kernel()
    assert all(ceil == pytest.approx(LINK_KBIT, rel=0.01) for _, ceil, _ in found.values())
    assert sum(found[number][0] for number in QUEUES[1:]) <= LINK_KBIT * 1.01
    # Frames that come while somebody reads all registers keep their times.
    metrics = "curl -s http://127.0.0.1:9100/metrics"
    machine.run(f"for n in $(seq 100); do {metrics} > all; done", ROUTER)
    measured = machine.run(metrics, ROUTER)
    # The third copies are made behind the queues.
    assert max(cells(measured, "queued_last")) > 1000
    bases = [us for us in cells(measured, "rtt_base") if us > 100]
    assert sorted(bases) == pytest.approx([10_000, 10_000, 40_000], abs=3000)
    # Packets of both go through their queues. Nothing is merged, so these are as short as planned.
    assert wait_for(lambda: all(kernel()[one][2] > found[one][2] + 10**6 for one in (0x11, 0x12)))
    # Of 128 kB and more tc says "128Kb".
    assert re.search(r"parent 7d1e:11 limit \d{5}b", machine.run("tc qdisc show dev wan", ROUTER))
    assert "merged" not in (machine.folder / "log").read_text()

    running.send_signal(signal.SIGKILL)
    running.wait()
    assert sorted(kernel()) == QUEUES
    running = machine.begin(monitor, ROUTER)
    assert sorted(kernel()) == QUEUES[:2]
    assert wait_for(are_separated), machine.run(look, ROUTER)

    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 0
    assert machine.run("tc qdisc show dev wan", ROUTER) == before
    machine.run(undo, ROUTER)
    assert "clsact" not in machine.run("tc qdisc show", ROUTER)
    shown = machine.run("ls /proc/sys/net/ipv4/conf", ROUTER)
    assert set(shown.split()) - {"all", "default"} == {"lo", "lan", "eth1"}
    machine.run(end)
    assert not machine.run("ip netns list")
