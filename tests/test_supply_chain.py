"""What is installed and built in: pinned, from the public registries alone, under licences that are allowed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


@pytest.mark.parametrize("path", sorted(ROOT.glob("requirements*.lock")), ids=lambda path: path.name)
def test_python_packages_are_pinned_with_hashes_and_come_from_no_folder(path: Path) -> None:
    text = re.sub(r"\\\n\s*", " ", path.read_text())
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    assert len(lines) > 1 or "uv" in path.name
    for line in lines:
        assert re.match(r"[A-Za-z0-9._-]+==[^ ]+ ", line), line
        assert "--hash=sha256:" in line, line
    options = re.findall(r"^\s*(?:-[-a-z]+|.*(?:file:|://|@ /).*)$", path.read_text(), re.M)
    assert [option for option in options if "--hash" not in option and "#" not in option] == []
    commands = [line for line in path.read_text().splitlines() if "pip-compile" in line or "uv pip" in line]
    assert all("--find-links" not in line.replace("--no-emit-find-links", "") for line in commands)


def names(requirements: list[str]) -> set[str]:
    """Of packages, without versions."""
    return {re.split(r"[\[<>=!~; ]", one)[0] for one in requirements}


def base() -> set[str]:
    """Packages of each install."""
    return names(tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"])


def extras() -> set[str]:
    """Packages of all extras."""
    about = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return names([one for packages in about["optional-dependencies"].values() for one in packages])


def test_the_packages_of_each_extra_are_pinned_for_the_tests() -> None:
    assert len(extras()) > 3
    lines = (ROOT / "requirements-extras.in").read_text().splitlines()
    asked = names([line for line in lines if line and not line.startswith("#")])
    assert extras() <= asked
    assert asked <= set(re.findall(r"^([\w.-]+)==", (ROOT / "requirements-extras.lock").read_text(), re.M))


def pins(name: str) -> dict[str, str]:
    """Version and hashes of each package of a lock file, without the comments."""
    found = re.findall(r"^([\w.-]+)==([^ ]+)((?:.|\n    --hash)*)", (ROOT / name).read_text(), re.M)
    return {
        package: version + " " + " ".join(sorted(re.findall(r"sha256:\w+", rest)))
        for package, version, rest in found
    }


def test_what_is_needed_to_run_is_locked_as_for_the_tests() -> None:
    run, tested = pins("requirements-run.lock"), pins("requirements.lock")
    assert run.items() <= tested.items()
    assert len(base()) > 10
    assert base() <= set(run)
    assert "pytest" not in run


def test_no_package_of_an_extra_is_in_all_installs() -> None:
    assert base() & extras() == set()
    # paramiko needs it too.
    assert pins("requirements-run.lock").keys() & extras() == {"cryptography"}


@pytest.mark.slow
@pytest.mark.parametrize("words", ["list", "run reference.dumbbell --set flows=1 --set duration_s=3"])
def test_no_package_of_an_extra_is_imported_without_need(words: str, tmp_path: Path) -> None:
    """`tidegate --help` is in test_startup.py."""
    code = (
        "import atexit, sys; from tidegate.cli import main;"
        "atexit.register(lambda: print('imported', *sys.modules)); main()"
    )
    command = [sys.executable, "-c", code, *words.split()]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=tmp_path)
    imported = {name.partition(".")[0] for name in done.stdout.rpartition("imported ")[2].split()}
    assert "typer" in imported
    assert {name.replace("-", "_") for name in extras()} & imported == set()


def test_the_container_installs_nothing_without_a_hash() -> None:
    text = re.sub(r"\\\n\s*", " ", (ROOT / "Dockerfile").read_text())
    commands = [
        command.strip()
        for line in text.splitlines()
        if line.startswith("RUN ")
        for command in line.removeprefix("RUN ").split("&&")
    ]
    installs = [command for command in commands if re.search(r"pip (install|wheel)", command)]
    assert len(installs) == 4
    for command in installs:
        words = command.split()
        files = [word for word in words if word.endswith(".lock")]
        if files:
            assert "--require-hashes" in words
            assert all((ROOT / Path(file).name).exists() for file in files)
        else:
            # The wheels of the first stage.
            assert {"--no-index", "--find-links", "/dist"} <= set(words)
        assert not {"--constraint", "-c", "--index-url", "--extra-index-url"} & set(words)
    for image in re.findall(r"^FROM (\S+)", text, re.M):
        assert re.search(r":\d+\.\d+", image), f"{image} has a version"


def test_hadolint_finds_nothing_in_the_dockerfile() -> None:
    hadolint = shutil.which("hadolint", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    if hadolint is None:
        pytest.skip("hadolint is not installed; `make extras` installs it")
    done = subprocess.run([hadolint, "--no-color", str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize("name", ["Cargo.lock", "fuzz/Cargo.lock"])
def test_crates_come_from_the_registry_with_checksums(name: str) -> None:
    packages = tomllib.loads((ROOT / name).read_text())["package"]
    others = [one for one in packages if "source" in one]
    assert len(others) > 50
    assert {one["source"] for one in others} == {REGISTRY}
    assert all(re.fullmatch(r"[0-9a-f]{64}", one["checksum"]) for one in others)
    # What has no source is of this repository.
    names = {one["name"] for one in packages} - {one["name"] for one in others}
    there = [
        tomllib.loads(path.read_text())
        for path in [*ROOT.glob("crates/*/Cargo.toml"), ROOT / "fuzz/Cargo.toml"]
    ]
    assert names <= {one["package"]["name"] for one in there}
    assert not [one["package"]["name"] for one in there if one["package"].get("publish") is not False]


def test_no_dependency_is_open_to_every_version() -> None:
    def open_ones(table: dict[str, Any]) -> list[str]:
        return [
            name
            for name, wanted in table.items()
            if wanted == "*"
            or (
                isinstance(wanted, dict)
                and ("git" in wanted or not wanted.keys() & {"version", "path", "workspace"})
            )
        ]

    for path in [ROOT / "Cargo.toml", *ROOT.glob("crates/*/Cargo.toml")]:
        manifest = tomllib.loads(path.read_text())
        for table in ("dependencies", "dev-dependencies", "build-dependencies"):
            assert open_ones(manifest.get(table, {})) == [], path
        assert open_ones(manifest.get("workspace", {}).get("dependencies", {})) == []


def test_the_toolchain_is_pinned_and_new_enough() -> None:
    toolchain = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]
    assert re.fullmatch(r"\d+\.\d+\.\d+", toolchain["channel"])
    assert toolchain["components"] == ["clippy", "rustfmt"]
    least = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["rust-version"]
    numbers = [[int(part) for part in text.split(".")] for text in (toolchain["channel"], least)]
    assert numbers[0] >= numbers[1]


def test_sources_that_cargo_deny_allows() -> None:
    sources = tomllib.loads((ROOT / "deny.toml").read_text())["sources"]
    assert sources["unknown-registry"] == sources["unknown-git"] == "deny"
    assert sources["allow-git"] == []


UNREACHABLE = (
    "echo '[ERROR] failed to fetch advisory database https://github.com/RustSec/advisory-db' >&2; exit 1"
)
VULNERABLE = "echo 'error[vulnerability]: a crate' >&2; exit 1"


@pytest.mark.parametrize(
    ("offline", "advisories", "code", "said"),
    [
        ("true", "echo advisories ok", 0, "advisories ok\nadvisories ok\n"),
        (
            "true",
            UNREACHABLE,
            0,
            "crates are not checked for known vulnerabilities: the RustSec database cannot be reached\n",
        ),
        ("true", VULNERABLE, 1, "error[vulnerability]: a crate\n"),
        ("exit 4", UNREACHABLE, 4, ""),
        ("[ -z $fuzz ] || exit 5", UNREACHABLE, 5, ""),
        ("true", f"[ -z $fuzz ] || {{ {VULNERABLE}; }}", 1, "error[vulnerability]: a crate\n"),
    ],
)
def test_what_lint_makes_of_cargo_deny(
    tmp_path: Path, offline: str, advisories: str, code: int, said: str
) -> None:
    """Of the crates, and of the fuzzers', which have a lock file of their own."""
    deny = tmp_path / "cargo-deny"
    deny.write_text(
        '#!/bin/sh\nfuzz=\ncase "$*" in *"--manifest-path fuzz/Cargo.toml --config deny.toml"*) fuzz=yes ;; esac\n'
        f'case "$*" in\n"--locked "*"check advisories") {advisories} ;;\n'
        f'"--locked "*"check bans licenses sources") {offline} ;;\n*) exit 9 ;;\nesac\n'
    )
    deny.chmod(0o755)
    ran = subprocess.run([ROOT / "tools" / "deny.sh", deny], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout + ran.stderr) == (code, said)


def lint_prerequisites() -> list[str]:
    return re.findall(r"^lint: (.*)$", (ROOT / "Makefile").read_text(), re.M)[0].split()


def test_lint_begins_with_the_lock_file_of_the_fuzzers() -> None:
    assert lint_prerequisites()[0] == "fuzz-lock"
    assert "\nfuzz-lock:\n\t@tools/fuzz_lock.sh\n" in (ROOT / "Makefile").read_text()
    ran = subprocess.run([ROOT / "tools" / "fuzz_lock.sh"], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_a_stale_lock_file_of_the_fuzzers_is_one_message_with_its_cure(tmp_path: Path) -> None:
    """As when a crate has come to depend on another one."""
    left_out = shutil.ignore_patterns("target", "corpus", "artifacts", "data")
    for name in ("fuzz", "crates", "tools"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=left_out)
    for name in ("Cargo.toml", "Cargo.lock", "rust-toolchain.toml"):
        shutil.copy(ROOT / name, tmp_path / name)
    lock = tmp_path / "fuzz" / "Cargo.lock"
    text = lock.read_text()
    dataplane = text.index('name = "dataplane"')
    at = text.index(' "smallvec",\n', dataplane)
    lock.write_text(text[:at] + text[at:].replace(' "smallvec",\n', "", 1))
    ran = subprocess.run([tmp_path / "tools" / "fuzz_lock.sh"], capture_output=True, text=True, check=False)
    assert ran.returncode == 1
    cure = "cargo update --workspace --manifest-path fuzz/Cargo.toml"
    assert ran.stderr == f"fuzz/Cargo.lock does not agree with the crates: run '{cure}' and commit it\n"
    subprocess.run([*cure.split(), "--offline"], cwd=tmp_path, capture_output=True, check=True)
    assert lock.read_text() == text


@pytest.mark.parametrize(
    ("offline", "online", "code", "said"),
    [
        ("exit 0", "exit 9", 0, ""),
        ("echo no matching package named x found >&2; exit 101", "exit 0", 0, ""),
        (
            "echo no matching package named x found >&2; exit 101",
            "echo error: the registry cannot be reached >&2; exit 101",
            1,
            "error: the registry cannot be reached\n",
        ),
    ],
)
def test_the_lock_file_is_looked_at_without_the_registry_where_that_does(
    tmp_path: Path, offline: str, online: str, code: int, said: str
) -> None:
    cargo = tmp_path / "cargo"
    cargo.write_text(f'#!/bin/sh\ncase "$*" in *--offline*) {offline} ;; *) {online} ;; esac\n')
    cargo.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}
    ran = subprocess.run(
        [ROOT / "tools" / "fuzz_lock.sh"], capture_output=True, text=True, check=False, env=environment
    )
    assert (ran.returncode, ran.stderr) == (code, said)


def test_lint_says_that_cargo_deny_is_missing(tmp_path: Path) -> None:
    ran = subprocess.run(
        [ROOT / "tools" / "deny.sh", tmp_path / "none"], capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0
    assert "crates are not checked: there is no cargo-deny" in ran.stderr
    assert ran.stderr.count("\n") == 1
    assert "tools/deny.sh" in (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
