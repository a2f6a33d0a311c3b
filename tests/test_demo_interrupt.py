"""Ctrl-C in the demo's live half: it ends with one line, and nothing of its hosts is left."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from live import has_ended, needs_iperf3, needs_namespaces, spaces_of, untimed, wait_for

SHORT = """
import runpy, sys
from tidegate.systems.meter import demo
demo.SIMULATED.update(cells=("cubic+udp3",), schemes=("plain-1s",), duration_s=20)
demo.LIVE.update(cells=("cubic+udp3",), schemes=("plain-1s",), duration_s=3600)
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv.pop(1), run_name="__main__", alter_sys=True)
"""
"""The demo with one simulated case, and one live case of an hour."""


@needs_namespaces
@untimed
@needs_iperf3
@pytest.mark.parametrize(
    ("module", "words", "line"),
    [
        ("tidegate.systems.meter", [], "interrupted; the demo can be begun again with `make demo`"),
        ("tidegate", ["demo", "--out"], "interrupted; the demo can be begun again with the same command"),
    ],
    ids=["make demo", "tidegate demo"],
)
def test_an_interrupt_of_a_live_case_leaves_nothing(
    module: str, words: list[str], line: str, tmp_path: Path
) -> None:
    command = [sys.executable, "-c", SHORT, "demo", module, *words, str(tmp_path / "demo")]
    demo = subprocess.Popen(
        command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True
    )
    assert demo.stderr is not None
    try:
        # Its hosts are there, and time has passed between them.
        while not re.match("real Linux: 0 of 1 cases done, about .* left", said := demo.stderr.readline()):
            assert said
        made = spaces_of(demo.pid)
        assert made
        # A terminal sends it to all processes of the demo's group.
        os.killpg(demo.pid, signal.SIGINT)
        out, said = demo.communicate(timeout=60)
    finally:
        demo.kill()
        demo.wait()
    assert demo.returncode == 130
    assert out == ""
    *before, last = said.splitlines()
    assert last == line
    assert all("real Linux: 0 of 1 cases done" in one for one in before)
    assert wait_for(lambda: has_ended(demo.pid, made))
