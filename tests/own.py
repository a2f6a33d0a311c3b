"""An experiment of a user's, for tests to change and to run."""

from __future__ import annotations

from pathlib import Path
from textwrap import dedent

import pytest

PLAN = """
from matplotlib.figure import Figure
from tidegate.experiments import Case, Plan
from tidegate.network import Network

def net():
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b)
    return net

def row(result):
    return {"goodput": result.flows["goodput_mbps"].item()}
"""
ENDS = """
def mine(duration_ms: int = 100):
    return Plan([Case("one", net(), f"{duration_ms} ms", row)], lambda rows: [], lambda runs: Figure())
"""


def written(folder: Path, text: str, name: str = "my.py") -> Path:
    file = folder / name
    file.write_text(dedent(text))
    return file


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path
