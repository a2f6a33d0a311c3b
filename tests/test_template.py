"""A sixth system: a folder, made from the template, and nothing else."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import tidegate.systems
from conftest import Run
from live import needs_dctcp, needs_iperf3, needs_namespaces
from tidegate import TidegateError
from tidegate.experiments import registry
from tidegate.scenarios import SCHEMES
from tidegate.templates import SYSTEM, new_experiment, new_system

PACKAGE = Path(tidegate.__file__).parent
NAME = "queue_blink"


@pytest.fixture(scope="module")
def systems(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of systems with one in it."""
    folder = tmp_path_factory.mktemp("systems")
    assert new_system(NAME, folder) == folder / NAME
    return folder


def files() -> dict[Path, int]:
    """What Tidegate has, and when it was written."""
    return {
        path: path.stat().st_mtime_ns
        for path in PACKAGE.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }


def python(systems: Path, *words: str | Path) -> str:
    """What a process prints that looks for systems there too."""
    environment = {**os.environ, "TIDEGATE_SYSTEMS": str(systems)}
    command = [sys.executable, "-m", *map(str, words)]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=systems, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return ran.stdout


def run(systems: Path, out: Path, *words: str) -> dict[str, Any]:
    """The answer of its experiment."""
    name = f"{NAME}.threshold"
    answer: dict[str, Any] = json.loads(
        python(systems, "tidegate", "run", name, "--quick", "--json", "--out", out, *words)
    )
    assert answer["experiment"] == name
    assert [row["threshold_ms"] for row in answer["rows"]] == [2, 5, 20]
    assert all(0 < row["marked"] < row["forwarded"] for row in answer["rows"])
    assert (out / "figure.png").stat().st_size > 10_000
    return answer


def test_it_is_found_and_runs_simulated_and_nothing_else_had_to_change(systems: Path, tmp_path: Path) -> None:
    before = files()
    listed = json.loads(python(systems, "tidegate", "list", "--json"))["experiments"]
    (one,) = [one for one in listed if one["name"].startswith(NAME)]
    assert (one["name"], one["backends"]) == (f"{NAME}.threshold", ["sim", "live"])
    answer = run(systems, tmp_path / "run")
    assert [(claim["id"], claim["of"], claim["holds"]) for claim in answer["claims"]] == [
        ("delay", "ours", True),
        ("goodput", "ours", True),
    ]
    again = run(systems, tmp_path / "again")
    assert again["rows"] == answer["rows"]
    figure = python(systems, "tidegate", "plot", tmp_path / "run").strip()
    assert figure == str(tmp_path / "run" / "figure.png")
    assert files() == before


@needs_namespaces
@needs_iperf3
@needs_dctcp
def test_it_runs_live(systems: Path, tmp_path: Path) -> None:
    answer = run(systems, tmp_path / "run", "--backend", "live", "--set", "duration_s=4")
    assert all(row["goodput_mbps"] > 25 for row in answer["rows"])


def test_the_python_of_its_readme_runs_beside_it(systems: Path) -> None:
    (block,) = re.findall(
        r"^```python\n(.*?)^```", (systems / NAME / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    environment = {name: value for name, value in os.environ.items() if name != "TIDEGATE_SYSTEMS"}
    ran = subprocess.run(
        [sys.executable, "-c", block],
        capture_output=True,
        text=True,
        env=environment,
        cwd=systems,
        timeout=300,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout


def test_its_own_tests_pass_and_its_program_compiles(systems: Path) -> None:
    python(systems, "pytest", "-q", "-p", "no:cacheprovider", systems / NAME)
    summary = json.loads(python(systems, "tidegate", "check", systems / NAME / f"{NAME}.p4", "--json"))
    assert summary["summary"]["parser"]["name"] == "QueueBlinkParser"
    names = [str(path.relative_to(systems / NAME)) for path in (systems / NAME).rglob("*.py")]
    assert f"test_{NAME}.py" in names
    for path in (systems / NAME).rglob("*"):
        assert "__pycache__" in path.parts or path.is_dir() or "marker" not in path.read_text().lower()


def test_it_has_the_chapters_of_a_system() -> None:
    chapters = {
        "README.md",
        "marker.p4",
        "controller.py",
        "setup.py",
        "experiments",
        "test_marker.py",
        "__init__.py",
    }
    assert {path.name for path in SYSTEM.iterdir()} - {"__pycache__"} == chapters


def test_a_name_that_is_too_long_for_files(tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match="the name of the system has 300 characters; give at most 64"):
        new_system("a" * 300, tmp_path)


@pytest.mark.parametrize("name", ["", "Blink", "1a", "a-b", "../a", "a.b"])
def test_names_that_cannot_be(name: str, tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=r"a system cannot be named .* give lower-case letters"):
        new_system(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("name", "said"), [("class", "a keyword"), ("random", "a module of the standard")])
def test_names_that_python_has(name: str, said: str, tmp_path: Path) -> None:
    for new in (new_system, new_experiment):
        with pytest.raises(TidegateError, match=f"{name} is {said}"):
            new(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["tidegate", "numpy"])
def test_names_of_packages_that_it_would_hide(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for new in (new_system, new_experiment):
        with pytest.raises(
            TidegateError, match=f"{name} is a package that this Python has, and would be hidden"
        ):
            new(name, tmp_path)
    assert list(tmp_path.iterdir()) == []
    # What is only in the working directory is no package of the environment.
    (tmp_path / "blink").mkdir()
    (tmp_path / "blink/__init__.py").write_text("")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(TidegateError, match="blink is there already"):
        new_system("blink", Path())


@pytest.mark.parametrize("name", ["meter", "register_accesses"])
def test_names_of_tidegate_s_own_systems(name: str, tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=f"{name} is a system or a module of Tidegate's own"):
        new_system(name, tmp_path)
    assert list(tmp_path.iterdir()) == []
    # An experiment has no place among them.
    assert new_experiment(name, tmp_path).exists()


@pytest.mark.parametrize("name", sorted(SCHEMES))
def test_names_of_tidegate_s_own_schemes(name: str, tmp_path: Path) -> None:
    # A comparison would refuse its scheme, and `tidegate new` prints one to begin with.
    with pytest.raises(TidegateError, match=f"{name} is a (scheme|system or a module) of Tidegate's own"):
        new_system(name, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["measure", "claims", "bottleneck", "partial", "experiment"])
def test_names_that_the_experiment_s_file_has_for_something_else(name: str, tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=f"{name} is a name that the experiment's file has already"):
        new_experiment(name, tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert new_experiment("buffers", tmp_path).exists()


@pytest.mark.parametrize(
    ("command", "first"),
    [("system", "other folder/blink:threshold"), ("experiment", "other folder/blink.py")],
)
def test_commands_to_go_on_with_are_a_shell_s(
    tidegate: Run, tmp_path: Path, command: str, first: str
) -> None:
    made = tidegate("new", command, "blink", "--dir", tmp_path / "other folder", "--json")
    commands = [shlex.split(line) for line in json.loads(made.out)["next"]]
    assert commands[0] == ["tidegate", "run", str(tmp_path / first), "--quick"]
    for words in commands:
        (path,) = [word for word in words if word.startswith("/")]
        assert Path(path.partition(":")[0]).exists()
    own = tidegate("list", commands[0][2], process=True)
    assert shlex.split(own.out.splitlines()[-1])[:2] == ["tidegate", "run"]
    again = shlex.split(own.out.splitlines()[-1])[2]
    assert tidegate("list", again, process=True).out == own.out


def test_what_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "blink").mkdir()
    with pytest.raises(TidegateError, match="is there already"):
        new_system("blink", tmp_path)


def test_a_folder_of_systems_that_is_not_there(tmp_path: Path) -> None:
    environment = {**os.environ, "TIDEGATE_SYSTEMS": str(tmp_path / "none")}
    command = [sys.executable, "-m", "tidegate", "list"]
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert ran.returncode == 1
    assert "TIDEGATE_SYSTEMS names" in ran.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_runs_no_system_that_others_can_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "systems"
    folder.mkdir()
    new_system("blink", folder)
    monkeypatch.setattr(tidegate.systems, "ELSEWHERE", [str(folder)])
    monkeypatch.delenv("SUDO_UID", raising=False)
    registry.system_names()
    (file, *_) = (folder / "blink" / "experiments").glob("*.py")
    for path in (folder, folder / "blink", folder / "blink" / "__init__.py", file.parent, file):
        os.chown(path, 12345, -1)
        with pytest.raises(TidegateError, match=f"{path} is of user 12345, who decides what root would run"):
            registry.system_names()
        os.chown(path, 0, -1)
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        with pytest.raises(TidegateError, match=f"{path} can be written by others"):
            registry.system_names()
        path.chmod(mode)
    registry.system_names()
