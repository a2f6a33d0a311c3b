"""The wheels of `make wheel` and `make wheels`, where they have been built: what is in them, and that this machine's runs without Rust."""

from __future__ import annotations

import os
import platform
import re
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
MOST_BYTES = 15_000_000

pytestmark = pytest.mark.soak


MACHINES = {"x86_64": 62, "aarch64": 183}
"""`e_machine` of ELF."""


@pytest.fixture
def wheels() -> list[Path]:
    """The newest last."""
    built = sorted((ROOT / "dist").glob("tidegate-*.whl"), key=lambda path: path.stat().st_mtime)
    if not built:
        pytest.skip("there is no wheel; make wheel builds it")
    return built


def test_they_have_what_is_needed_and_no_more(wheels: list[Path]) -> None:
    for wheel in wheels:
        demand_whole(wheel)


def demand_whole(wheel: Path) -> None:
    assert wheel.stat().st_size < MOST_BYTES
    # Both tags are of one C library: manylinux2014_x86_64.manylinux_2_17_x86_64.
    named = re.search(r"-cp311-abi3-(?:manylinux2014_\w+\.)?manylinux_2_(\d+)_(x86_64|aarch64)", wheel.name)
    assert named, wheel.name
    with zipfile.ZipFile(wheel) as packed:
        names = packed.namelist()
        tests = [name for name in names if Path(name).name.startswith(("test_", "conftest"))]
        assert [name for name in tests if "/templates/" not in name] == []
        # Everything else of the package is there: programs, C sources, distributions, the template.
        listed = subprocess.run(
            ["git", "ls-files", "python/tidegate"], cwd=ROOT, capture_output=True, text=True, check=True
        ).stdout.split()
        wanted = {name.removeprefix("python/") for name in listed}
        wanted = {name for name in wanted if not Path(name).name.startswith(("test_", "conftest"))}
        assert wanted <= set(names)
        (core,) = [name for name in names if name.startswith("tidegate/_core") and name.endswith(".so")]
        data = packed.read(core)
    # With symbols and line tables it has 70 MB.
    assert len(data) < 20_000_000
    # For the processor and the C library of its name.
    assert data[:5] == b"\x7fELF\x02"
    assert struct.unpack_from("<H", data, 18)[0] == MACHINES[named[2]]
    wants = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", data)]
    assert max(wants) <= int(named[1])


def test_it_installs_and_runs_without_rust(wheels: list[Path], tmp_path: Path) -> None:
    ours = [wheel for wheel in wheels if platform.machine() in wheel.name]
    if not ours:
        pytest.skip("there is no wheel of this machine's processor")
    wheel = ours[-1]
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    # Nothing of this tree, and no cargo.
    clean = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
    install = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel]
    subprocess.run(install, cwd=tmp_path, env=clean, check=True)
    command = [tmp_path / "venv" / "bin" / "tidegate", "run", "meter.rates", "--quick"]
    done = subprocess.run(command, cwd=tmp_path, env=clean, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "runs" / "meter.rates" / "figure.png").exists()
