"""Dask workers on which something is wrong: the user's code, other versions, and no Tidegate at all."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from clusters import dask
from tidegate import __version__

pytest.importorskip("distributed", reason="needs the extra `cluster`")

pytestmark = pytest.mark.slow

MINE = """
from pathlib import Path
from matplotlib.figure import Figure
from tidegate.experiments import Case, Plan
from tidegate.network import Network

class Wrong(Exception):
    def __init__(self, what, seed):
        super().__init__(f"{what} of seed {seed}")

def row(result):
    if result.seed == 2 and not Path(__file__).with_name("right").exists():
        raise RAISED
    return {"x": result.end_s}

def mine(duration_ms: int = 100):
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b)
    return Plan([Case("one", net, f"{duration_ms} ms", row)], lambda rows: [], lambda runs: Figure())
"""


def run(folder: Path, *words: str, code: int = 0) -> str:
    """The last line that four runs of the user's experiment say on standard error."""
    command = [sys.executable, "-m", "tidegate", "run", f"{folder}/my.py:mine", "--repeat", "4"]
    done = subprocess.run(
        [*command, "--out", folder / "run", *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr.splitlines()[-1]


def seeds(folder: Path) -> list[int]:
    """Of the runs that are done."""
    return sorted(row["seed"] for row in json.loads((folder / "run" / "run.json").read_text())["rows"])


# The first comes as it is, the second cannot be read by another process.
@pytest.mark.parametrize(
    ("raised", "said"),
    [
        ("ValueError('a loss of -1')", "ValueError: a loss of -1"),
        ("Wrong('a loss', 2)", "Wrong: a loss of seed 2"),
    ],
)
def test_an_error_of_the_user_s_code_is_told_and_what_is_done_kept(
    raised: str, said: str, tmp_path: Path
) -> None:
    (tmp_path / "my.py").write_text(MINE.replace("RAISED", raised))
    with dask(tmp_path, 1) as (address, _):
        last = run(tmp_path, "--cluster", address, code=1)
    assert said in last
    assert 2 not in seeds(tmp_path)
    (tmp_path / "right").touch()
    run(tmp_path, "--resume")
    assert seeds(tmp_path) == [1, 2, 3, 4]


def first(folder: Path) -> str:
    """The address of the first worker."""
    (address,) = re.findall(r"Start worker at: +(\S+)", (folder / "worker0.log").read_text())
    return str(address)


OTHER = """
from tidegate.experiments.executors import cluster
there = {**cluster.versions(), "polars": "0.1"}
cluster.versions = lambda: there
"""


def test_one_worker_of_two_with_another_version_ends_the_run(tmp_path: Path) -> None:
    (tmp_path / "my.py").write_text(MINE.replace("RAISED", "ValueError"))
    with dask(tmp_path, 2, before=OTHER) as (address, _):
        last = run(tmp_path, "--cluster", address, code=1)
    assert last.startswith(f"worker {first(tmp_path)} has polars 0.1 instead of ")
    assert "install the same there" in last


NONE = "import sys; sys.modules['tidegate'] = None"
OLDER = "from tidegate.experiments.executors import cluster; del cluster.versions"


@pytest.mark.parametrize(("before", "lacks"), [(NONE, "tidegate"), (OLDER, "versions")])
def test_a_worker_that_cannot_read_a_run_is_told_before_it_gets_one(
    before: str, lacks: str, tmp_path: Path
) -> None:
    (tmp_path / "my.py").write_text(MINE.replace("RAISED", "ValueError"))
    with dask(tmp_path, 2, before=before) as (address, _):
        last = run(tmp_path, "--cluster", address, code=1)
    assert last.startswith(f"worker {first(tmp_path)} cannot run Tidegate {__version__}: ")
    assert lacks in last
    assert last.endswith("; install the same there")
    assert not (tmp_path / "run").exists()
