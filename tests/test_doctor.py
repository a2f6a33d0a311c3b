"""`tidegate doctor`: what it looks for, what it says against it, and the cures."""

from __future__ import annotations

import errno
import importlib
import os
import subprocess
import sys
import sysconfig
from importlib import metadata
from pathlib import Path

import pytest

from conftest import Run
from namespaces import needs_root
from tidegate.doctor import kernel, live, programs, report
from tidegate.doctor.report import Finding, State
from tidegate.lab import kernel as lab_kernel


def states(findings: list[Finding]) -> dict[str, State]:
    return {one.name: one.state for one in findings}


def test_without_root_nothing_is_tried_that_needs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab_kernel, "capabilities", lambda: 0)
    found = [*kernel.privileges(), *kernel.features(), *kernel.qdiscs(), *kernel.congestion_controls()]
    said = states(found)
    assert said["privileges"] is said["privileges of the agent"] is State.MISSING
    assert said["lab"] is said["AF_XDP, generic"] is said["cake"] is State.UNKNOWN
    assert {one.cure for one in found if one.state is State.UNKNOWN} == {kernel.SUDO}
    assert said["reno"] is State.WORKS
    assert states([*live.speed()])["threaded NAPI"] is State.UNKNOWN


def test_a_program_that_is_missing_has_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = {one.name: one for one in programs.tools()}
    assert not any(one.works for one in found.values())
    assert found["iperf3"].cure == "on Debian and Ubuntu: apt install iperf3"
    assert found["ip"].cure.endswith("apt install iproute2")


@pytest.mark.parametrize(
    ("script", "state", "said"),
    [
        ("exit 0", State.WORKS, "its controller answers"),
        ("echo one >&2; echo no controller >&2; exit 1", State.MISSING, "no controller"),
        ("sleep 20", State.MISSING, "squeue has no answer within 0.2 s"),
        (None, State.MISSING, "there is no squeue"),
    ],
)
def test_slurm_is_asked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, state: State, said: str
) -> None:
    if script is not None:
        (tmp_path / "squeue").write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n")
        (tmp_path / "squeue").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(programs, "SLURM_S", 0.2 if script == "sleep 20" else 20)
    (found,) = programs.slurm()
    assert (found.state, found.said, found.cure == "") == (state, said, state is State.WORKS)


def test_the_cure_for_mininet_lets_python_see_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    debian, site = tmp_path / "debian" / "mininet", tmp_path / "site"
    debian.mkdir(parents=True)
    site.mkdir()
    (debian / "__init__.py").touch()
    monkeypatch.setattr(programs, "MININET", debian)
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(site))
    monkeypatch.setattr(sys, "path", [str(site)])
    for name in ("mininet", "playwright"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    found = {one.name: one for one in programs.modules()}["import mininet"]
    assert found.state is State.MISSING
    subprocess.run(found.cure, shell=True, check=True)
    importlib.invalidate_caches()
    assert {one.name: one for one in programs.modules()}["import mininet"].works
    monkeypatch.setattr(programs, "MININET", tmp_path / "none")
    (site / "mininet").unlink()
    importlib.invalidate_caches()
    cures = {one.name: one.cure for one in programs.modules()}
    assert cures["import mininet"] == "on Debian and Ubuntu: apt install mininet"
    assert cures["import playwright"] == "pip install playwright"


def test_extras_are_those_of_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    needs = ["typer>=0.15", 'no-such-package>=1; extra == "one"', "typer>=0.15 ; extra == 'two'"]
    monkeypatch.setattr(metadata, "requires", lambda name: needs)
    one, two = programs.packages()
    assert (one.name, one.state, one.said) == ("one", State.MISSING, "without no-such-package")
    assert one.cure == 'pip install "tidegate[one]"'
    assert (two.name, two.state) == ("two", State.WORKS)


def test_uses_say_what_they_lack() -> None:
    names = {name for use in report.USES for name in use.needs}
    findings = [Finding("g", name, State.MISSING if name == "clang" else State.WORKS) for name in names]
    against = {use.name: [one.name for one in lacks] for use, lacks in report.uses(findings)}
    assert against["tidegate agent (pacing of this host)"] == ["clang"]
    assert against["tidegate switch"] == []


def test_settings_that_are_too_small_have_a_cure(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {"/proc/sys/net/ipv4/tcp_rmem": "4096 131072 212992", "/proc/sys/kernel/sched_rt_runtime_us": "0"}
    monkeypatch.setattr(kernel, "_text", lambda path: texts.get(path, "1 1 99999999"))
    found = {one.name: one for one in kernel.settings()}
    assert found["net.ipv4.tcp_rmem"].cure.startswith("sysctl -w net.ipv4.tcp_rmem='4096 131072")
    assert found["net.ipv4.tcp_wmem"].works
    assert found["kernel.sched_rt_runtime_us"].cure == "sysctl -w kernel.sched_rt_runtime_us=950000"


@pytest.mark.parametrize(
    ("allowed", "network", "hosts", "looks"),
    [
        ({0}, State.MISSING, "hosts receive on 0", State.MISSING),
        ({0, 1}, State.WORKS, "hosts receive on 0; those that only receive, on the network's", State.MISSING),
        ({0, 1, 2, 3}, State.WORKS, "hosts receive on 0, 1, 2", State.WORKS),
    ],
)
def test_it_says_where_a_live_network_runs(
    monkeypatch: pytest.MonkeyPatch, allowed: set[int], network: State, hosts: str, looks: State
) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda pid: allowed)
    monkeypatch.setattr(lab_kernel, "capabilities", lambda: 0)
    found = {one.name: one for one in live.speed()}
    assert (found["placement"].state, found["busy polling"].state) == (network, looks)
    if found["receive processing (RPS)"].works:
        assert found["receive processing (RPS)"].said == hosts
    many = "for 50 us after a packet" if looks is State.WORKS else "off with"
    assert found["busy polling"].said.startswith(many)
    assert "1 processors" not in found["busy polling"].said
    if network is State.WORKS:
        assert found["placement"].said == f"the network's thread stays on processor {max(allowed)}"
    assert found["tcp_limit_output_bytes"].said.startswith("131072 bytes at a lab's hosts; ")
    for one in found.values():
        assert (one.cure == "") == one.works


def test_it_says_what_slows_a_live_network_down(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    monkeypatch.setattr(Path, "exists", lambda path: False)
    monkeypatch.setattr(lab_kernel, "capabilities", lambda: 0)
    found = {one.name: one for one in live.speed()}
    for name, said, cure in (
        ("receive processing (RPS)", "hosts receive on the network's thread", "a kernel from 6.3 on"),
        ("tables of connections", "the machine's", "Linux 6.1 or newer"),
        ("real-time priority", "Operation not permitted", "run as root, or with CAP_SYS_NICE"),
    ):
        assert found[name].state is State.MISSING
        assert found[name].said.startswith(said)
        assert found[name].cure.startswith(cure)


@needs_root
def test_all_of_it_on_this_machine(tidegate: Run) -> None:
    said = tidegate("doctor", "--json", process=True)
    assert said.code == 0, said.err
    findings = {one["name"]: one for one in said.json["findings"]}
    assert len(findings) == len(said.json["findings"])
    assert {name for use in report.USES for name in use.needs} <= findings.keys()
    # As root each feature has been tried, and each that is missing has a cure.
    assert findings["lab"]["state"] == findings["AF_PACKET"]["state"] == "works"
    for one in findings.values():
        assert one["state"] in ("works", "missing") or one["group"] == "Python packages", one
        assert (one["cure"] == "") == (one["state"] == "works"), one
    text = tidegate("doctor", process=True).out
    assert text.startswith("ok compile, test and replay P4; simulate\n")
