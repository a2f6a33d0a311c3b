"""What is installed from a wheel runs without Rust: of this tree, packed as maturin packs it, and of `make wheel` and `make wheels`.

The wheel of this tree has the extension that the tests run with, unstripped. What is said of size, C library and stripping is tested of
the others, where they have been built (soak).
"""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tomllib
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterable
from pathlib import Path

import pytest

from tidegate import _core

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = "python/tidegate"
MOST_BYTES = 15_000_000
MACHINES = {"x86_64": 62, "aarch64": 183}
"""`e_machine` of ELF."""
CLEAN = {"PATH": "/usr/bin:/bin", "HOME": os.environ.get("HOME", "/")}
"""Nothing of this tree, and no cargo."""
BIN = Path(sys.prefix) / "bin"
TOOLS = {**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def in_package() -> set[str]:
    """Files of the package that git knows, by their name in a wheel: all but what pyproject.toml excludes."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["maturin"]
    left_out = {path for each in about["exclude"] for path in ROOT.glob(each["path"])}
    listed = subprocess.run(
        ["git", "ls-files", PACKAGE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout.split()
    return {name.removeprefix("python/") for name in listed if ROOT / name not in left_out}


def demand_no_tests(names: Iterable[str]) -> None:
    """But for the template's, which goes with the template."""
    tests = [name for name in names if Path(name).name.startswith(("test_", "conftest"))]
    assert [name for name in tests if "/templates/" not in name] == []


def installed(wheel: Path, folder: Path, extras: str = "") -> Path:
    """The programs of an empty environment with a wheel, and with the packages that it and its extras name, as they are pinned here."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    locks = ["requirements-run.lock", *(["requirements-extras.lock"] if extras else [])]
    pinned = [word for lock in locks for word in ("--constraint", ROOT / lock)]
    wanted = f"tidegate[{extras}] @ {wheel.as_uri()}" if extras else wheel
    by_uv = [BIN / "uv", "pip", "install", "--quiet", "--python", folder / "bin" / "python", *pinned, wanted]
    # uv has their files in its cache. Where it cannot reach the registry, its settings not being pip's, pip does it.
    if subprocess.run(by_uv, capture_output=True, check=False).returncode:
        by_pip = [sys.executable, "-m", "pip", "--python", folder / "bin" / "python", "install", "--quiet"]
        subprocess.run([*by_pip, *pinned, wanted], check=True)
    return folder / "bin"


def run(programs: Path, words: str, folder: Path) -> str:
    """What a command of such an environment prints."""
    command = [programs / "tidegate", *words.split()]
    done = subprocess.run(command, cwd=folder, env=CLEAN, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def packed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A wheel of this tree, without a build: the metadata are maturin's, the extension is the one that runs here."""
    folder = tmp_path_factory.mktemp("packed")
    about = [BIN / "maturin", "pep517", "write-dist-info", "--metadata-directory", folder]
    subprocess.run(
        [*about, "--interpreter", sys.executable], cwd=ROOT, env=TOOLS, capture_output=True, check=True
    )
    (info,) = folder.glob("*.dist-info")
    tag = re.search(r"^Tag: (.*)$", (info / "WHEEL").read_text(), re.MULTILINE)
    assert tag
    wheel = folder / f"{info.name.removesuffix('.dist-info')}-{tag[1]}.whl"
    files = {name: ROOT / "python" / name for name in in_package()}
    files["tidegate/_core.abi3.so"] = Path(_core.__file__)
    files |= {str(path.relative_to(folder)): path for path in info.rglob("*") if path.is_file()}
    record = f"{info.name}/RECORD"
    with zipfile.ZipFile(wheel, "w") as into:
        for name, path in files.items():
            into.write(path, name)
        into.writestr(record, "".join(f"{name},,\n" for name in (*files, record)))
    return wheel


def test_the_package_has_programs_and_no_tests() -> None:
    names = in_package()
    demand_no_tests(names)
    assert {"tidegate/__main__.py", "tidegate/systems/meter/fair.p4", "tidegate/hosts/agent.c"} <= names


@pytest.mark.slow
def test_this_tree_runs_from_an_empty_environment(packed: Path, tmp_path: Path) -> None:
    programs = installed(packed, tmp_path / "venv")
    here = tmp_path / "here"
    here.mkdir()
    assert "meter.rates" in run(programs, "list", here)
    assert "complete" in run(programs, "completion bash", here)
    assert "made/switch.json" in run(programs, "grafana made", here)
    run(programs, "new system mark", here)
    assert "mark" in run(programs, "list ./mark:threshold", here)
    run(programs, "run meter.rates --quick", here)
    assert (here / "runs" / "meter.rates" / "figure.png").exists()
    run(programs, "demo --sim --out demo", here)
    assert (here / "demo" / "figure.png").stat().st_size > 10_000
    # Their scripts and styles are in the wheel.
    reports = list((here / "demo").rglob("report.html"))
    assert reports
    assert all("uPlot" in report.read_text() for report in reports)


def answered(url: str) -> tuple[int, str]:
    """Status and body."""
    try:
        with urllib.request.urlopen(url, timeout=60) as page:
            return page.status, page.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


@pytest.mark.slow
def test_the_extras_run_from_an_empty_environment(packed: Path, tmp_path: Path) -> None:
    """A sweep on Dask, a study, the dashboard, and what commands print for a shell and for systemd."""
    programs = installed(packed, tmp_path / "venv", "cluster,tune,view")
    here = tmp_path / "here"
    here.mkdir()
    found = json.loads(run(programs, "doctor --json", here))
    works = {one["name"] for one in found["findings"] if one["state"] == "works"}
    assert {"cluster", "tune", "view"} <= works
    cluster = "--cluster local --cluster-option n_workers=1"
    run(
        programs,
        f"sweep reference.dumbbell --over flows=1,2 --set duration_s=3 --out swept {cluster}",
        here,
    )
    assert len((here / "swept" / "rows.csv").read_text().splitlines()) == 3
    fixed = "--set schemes=plain --set rates_mbps=20 --set base_rtts_ms=10 --set duration_s=3"
    tuned = f"tune meter.rates --range mtu=600:9000 {fixed} --minimise drops --trials 2 --out tuned"
    run(programs, tuned, here)
    assert len((here / "tuned" / "trials.csv").read_text().splitlines()) == 3
    with subprocess.Popen(
        [programs / "tidegate", "view", "swept"], cwd=here, env=CLEAN, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            (url,) = re.findall(r"http://127\.0\.0\.1:\d+/\?token=\S+", process.stdout.readline())
            status, body = answered(url)
            assert (status, "<html" in body) == (200, True)
            assert answered(url.partition("?")[0])[0] in (401, 403)
        finally:
            process.terminate()
    pages = run(programs, "man pages", here).split()
    assert any(page.endswith("tidegate-sweep.1") for page in pages)
    for shell in ("bash", "zsh", "fish"):
        assert "tidegate" in run(programs, f"completion {shell}", here)
    for unit in ("switch", "agent"):
        assert f"ExecStart={tmp_path}" in run(programs, f"unit {unit}", here)


@pytest.fixture
def wheels() -> list[Path]:
    """The newest last."""
    built = sorted((ROOT / "dist").glob("tidegate-*.whl"), key=lambda path: path.stat().st_mtime)
    if not built:
        pytest.skip("there is no wheel; make wheel builds it")
    return built


@pytest.mark.soak
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
        demand_no_tests(names)
        # Everything else of the package is there: programs, C sources, distributions, the template.
        assert in_package() <= set(names)
        (core,) = [name for name in names if name.startswith("tidegate/_core") and name.endswith(".so")]
        data = packed.read(core)
    # With symbols and line tables it has 70 MB.
    assert len(data) < 20_000_000
    # For the processor and the C library of its name.
    assert data[:5] == b"\x7fELF\x02"
    assert struct.unpack_from("<H", data, 18)[0] == MACHINES[named[2]]
    wants = [int(minor) for minor in re.findall(rb"GLIBC_2\.(\d+)", data)]
    assert max(wants) <= int(named[1])


@pytest.mark.soak
def test_it_installs_and_runs_without_rust(wheels: list[Path], tmp_path: Path) -> None:
    ours = [wheel for wheel in wheels if platform.machine() in wheel.name]
    if not ours:
        pytest.skip("there is no wheel of this machine's processor")
    wheel = ours[-1]
    run(installed(wheel, tmp_path / "venv"), "run meter.rates --quick", tmp_path)
    assert (tmp_path / "runs" / "meter.rates" / "figure.png").exists()


@pytest.mark.soak
def test_the_aarch64_wheel_runs_under_an_emulator(wheels: list[Path]) -> None:
    ours = [wheel for wheel in wheels if "aarch64" in wheel.name]
    if not ours or platform.machine() == "aarch64" or shutil.which("qemu-aarch64") is None:
        pytest.skip("there is no wheel for aarch64 (make wheels), or no qemu-user")
    command = [sys.executable, ROOT / "tools" / "emulated.py", ours[-1]]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
