"""A reader's way through a page: its commands run one after the other, as written, in a folder of the page's own.

`test_page_commands.py` runs what is soon over. Here is what takes files or seconds: each command of a page is walked, or is in
`NOT_WALKED` with the reason. What would take minutes gets words that make it shorter (`SHORTER`); what does so still is marked `soak`:
`make test-docs` runs it, `make test` does not.
"""

from __future__ import annotations

import gzip
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

import tidegate
from conftest import pcap
from live import needs_iperf3, needs_namespaces, untimed
from test_page_commands import COMMANDS, RUN, understood
from test_pages import PAGES, ROOT, name
from tidegate.templates import new_system

NOT_WALKED = {
    ("*", "tidegate agent *"): "paces the flows of the reader's host: test_agent*.py",
    (
        "*",
        "tidegate switch *",
    ): "interfaces of the reader's; those of `Try it` are walked below",
    ("*", "tidegate lab topology.json"): "a file of the reader's",
    ("docs/exercises.md", "tidegate lab pod-topo/topology.json"): "a file of the public tutorials",
    ("*", "tidegate run *--backend live*"): "in real time between real hosts: test_live*.py",
    ("docs/install.md", "tidegate demo*"): "of an installed wheel: test_wheel.py",
    ("docs/view.md", "tidegate run *--view"): "stays until Ctrl-C: test_view*.py",
    ("docs/*", "* --cluster slurm *"): "needs SLURM: test_cluster.py starts one",
    ("docs/research.md", "tidegate view runs/first"): "stays until Ctrl-C: test_view*.py",
    ("docs/cluster.md", "* --cluster tls://*"): "a scheduler of the reader's: test_cluster_tls.py starts one",
    (
        "docs/operate.md",
        "tidegate monitor -i eth1",
    ): "an interface of the reader's: test_monitor_interface.py",
    ("docs/monitor.md", "tidegate monitor -i lan0 *"): "interfaces of the reader's: test_monitor_taps.py",
    ("python/tidegate/systems/*", "tidegate run *"): (
        "minutes to hours, as the paper's: what they name is checked in test_page_commands.py"
    ),
    ("python/tidegate/systems/*", "tidegate claims *"): "judges those runs: test_claims.py",
    ("python/tidegate/systems/*", "tidegate monitor --rtt-rule exact"): "an option without its file",
}
"""Patterns of pages and commands, and why these are not run."""

SHORTER = {
    "tidegate compare fifo fq_codel aqm*": "--set scenarios=wifi --quick --repeat 1",
    "tidegate run aqm.phases --quick": "--set ways=pi2 --set capacities_mbps=120 --set base_rtts_ms=10",
    "tidegate run aqm.phases --repeat 20 --cluster local": (
        "--repeat 1 --set phase_s=9 --set ways=pi2 --set capacities_mbps=120 --set base_rtts_ms=10"
    ),
    "tidegate run meter.rates --quick --repeat 20 --cluster local*": (
        "--repeat 1 --set rates_mbps=100 --set schemes=plain --set duration_s=2"
    ),
    "tidegate run meter.rates --quick --repeat 3 --out runs/first": "--set rates_mbps=50 --set duration_s=10",
    "tidegate sweep reference.scenarios *": "--repeat 1 --set schemes=fifo",
    "tidegate sweep meter.rates *": "--repeat 1 --set duration_s=2",
    "tidegate tune meter.rates *": "--trials 4 --set duration_s=2",
}
"""What the test adds to a command of a page."""
WHOLE = ("README.md", "docs/peers.md", "docs/simulator.md", "docs/compare.md")
"""Pages whose `tidegate run` is run with `--quick`, which takes tens of seconds."""
NEEDS = {"tidegate tune": "optuna", "--cluster": "distributed"}
"""Packages of extras."""


def capture(path: Path) -> None:
    """Two flows, as a capture in the middle sees them."""
    net = tidegate.Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="20 Mbit/s", delay="10 ms", queue="1 BDP")
    net.tcp(a, b)
    net.tcp(b, a, size="50 kB")
    net.capture(link, a, path)
    net.run("1 s")


def side(path: Path) -> None:
    """The same on either side of a router."""
    net = tidegate.Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r")
    links = [net.link(one, router, rate="20 Mbit/s", delay="5 ms") for one in (a, b)]
    net.tcp(a, b)
    net.capture(links[path.stem == "wan"], router, path)
    net.run("1 s")


def packed(path: Path) -> None:
    capture(path.with_suffix(""))
    path.write_bytes(gzip.compress(path.with_suffix("").read_bytes()))


def frames(path: Path) -> None:
    """Between two addresses, so that a switch can learn them."""
    ends = bytes([2, 0, 0, 0, 0, 1]), bytes([2, 0, 0, 0, 0, 2])
    one, other = ends if path.stem == "left" else ends[::-1]
    path.write_bytes(pcap([(at * 10**6, one + other + b"\x08\x00" + bytes(46)) for at in range(5)]))


def example(path: Path) -> None:
    shutil.copy(ROOT / "examples/p4/ipv4_router" / f"ipv4_router{path.suffix}", path)


def trace(path: Path) -> None:
    """Each with other content: of the same content two files are one."""
    path.write_text("".join(f"{at}\n" for at in range(1, 1001, 2 + path.stem.count("a"))))


def small_run(path: Path) -> None:
    words = ["--set", "flows=1", "--set", "duration_s=3", "--out", str(path)]
    walk("tidegate run reference.dumbbell " + shlex.join(words), path.parents[1])


def new(path: Path) -> None:
    """The scheme of a new system."""
    if not path.with_name("step").exists():
        new_system("step", path.parent)


FILES: dict[str, Callable[[Path], None]] = {
    "prog.p4": example,
    "test.stf": example,
    "trace.pcap": capture,
    "trace.pcap.gz": packed,
    "lan.pcap": side,
    "wan.pcap": side,
    "left.pcap": frames,
    "right.pcap": frames,
    "my.trace": trace,
    "a.trace": trace,
    "b.trace": trace,
    "step:scheme": new,
    "runs/a": small_run,
    "runs/b": small_run,
    "runs/meter.rates": small_run,
}
"""What the pages take the reader to have."""


def walk(command: str, folder: Path, typed: str = "") -> str:
    """Run a command in a folder; what it printed."""
    words = [sys.executable, "-m", *shlex.split(command)]
    done = subprocess.run(
        words, cwd=folder, input=typed, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
    return done.stdout


def is_whole(command: str) -> bool:
    """Whether one can type it: no placeholders, and more than the name of a command or an option of it."""
    if re.search(r"[A-Z]{3,}|[\[\]|]|\.\.\.| X ", command):
        return False
    _, words = understood(command)
    return any(not word.startswith("-") for word in words)


def why_not(page: str, command: str) -> str | None:
    """Why a command is not walked."""
    return next(
        (
            why
            for (pages, pattern), why in NOT_WALKED.items()
            if fnmatchcase(page, pages) and fnmatchcase(command, pattern)
        ),
        None,
    )


TYPED = [(page, command) for page, command in COMMANDS if is_whole(command) and (page, command) not in RUN]
LIVE = [one for one in TYPED if one[1].startswith("tidegate lab examples/")]
WALKED = [one for one in TYPED if one not in LIVE and why_not(*one) is None]
LONG = sorted({command for page, command in WALKED if page in WHOLE and command.startswith("tidegate run ")})
ON_THE_WAY = {
    page: [command for on, command in WALKED if on == page] for page in PAGES for page in [name(page)]
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("examples", "python"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


def test_each_reason_is_needed() -> None:
    """Patterns of what is not walked, and words for what is, that stand for no command of a page are of the past."""
    for pages, pattern in NOT_WALKED:
        assert any(fnmatchcase(page, pages) and fnmatchcase(command, pattern) for page, command in TYPED), (
            pattern
        )
    for pattern in SHORTER:
        assert any(fnmatchcase(command, pattern) for _, command in WALKED), pattern
    for file in FILES:
        assert any(
            file in shlex.split(command) or re.search(f"[=,/]{file}", command) for _, command in WALKED
        ), file
    assert len(WALKED) > 15
    assert len(LIVE) > 1


def shorter(command: str) -> str:
    """With other values for settings that make it long."""
    words = next((words for pattern, words in SHORTER.items() if fnmatchcase(command, pattern)), "")
    for setting in re.findall(r"--set (\w+)=", words):
        command = re.sub(rf" --set {setting}=\S+", "", command)
    return f"{command} {words}"


def make_files(command: str, place: Path) -> None:
    """What a command reads."""
    for file, make in FILES.items():
        made = place / file
        if re.search(rf"(?:^|[ =,]|\./){re.escape(file)}(?:[ ,]|$)", command) and not made.exists():
            made.parent.mkdir(exist_ok=True)
            make(made)


@pytest.mark.slow
@pytest.mark.parametrize("page", [page for page, way in ON_THE_WAY.items() if set(way) - set(LONG)])
def test_a_page_is_walked(page: str, place: Path) -> None:
    for command in ON_THE_WAY[page]:
        if command in LONG:
            continue
        for part, package in NEEDS.items():
            if part in command:
                pytest.importorskip(package, reason="needs an extra")
        make_files(command, place)
        walk(shorter(command), place)


@pytest.mark.soak
@pytest.mark.parametrize("command", LONG)
def test_an_experiment_of_a_page_is_run(command: str, place: Path) -> None:
    make_files(command, place)
    walk(f"{command} --quick", place)


@needs_namespaces
@untimed
@needs_iperf3
@pytest.mark.parametrize(("page", "command"), LIVE)
def test_a_lab_of_a_page_is_run(page: str, command: str, place: Path) -> None:
    shown = walk(command, place, typed="pingall\niperf h1 h2 1\n")
    assert "0 of 6 lost (6 received)" in shown


@needs_namespaces
@untimed
@needs_iperf3
def test_two_hosts_meet_over_the_switch_of_try_it(place: Path) -> None:
    page = (ROOT / "docs/switch.md").read_text()
    block = re.search(r"^## Try it\n.*?^```\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    assert block is not None
    try:
        shown = shell(block[1], place)
    finally:
        for host in (1, 2):
            subprocess.run(["ip", "netns", "del", f"tidegate-h{host}"], capture_output=True, check=False)
    assert "iperf Done." in shown
    packets = re.findall(r"^tidegate_port_packets\w*\{[^}]*\} (\S+)$", shown, re.MULTILINE)
    assert packets, shown
    assert max(map(float, packets)) > 100


def shell(text: str, folder: Path) -> str:
    """Type something into a shell in a folder with `.venv/bin/tidegate`; what it printed."""
    programs = folder / ".venv" / "bin"
    programs.mkdir(parents=True)
    for program, words in {"tidegate": f"{sys.executable} -m tidegate", "sudo": ""}.items():
        (programs / program).write_text(f'#!/bin/sh\nexec {words} "$@"\n')
        (programs / program).chmod(0o755)
    environment = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        ["bash", "-s"], cwd=folder, input=text, capture_output=True, text=True, env=environment, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
