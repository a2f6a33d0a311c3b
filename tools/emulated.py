"""Runs an aarch64 wheel under an emulator: what `make wheels` has built for the other processor works there, native code included.

    python tools/emulated.py dist/tidegate-*_aarch64.whl                      all checks, some five minutes
    python tools/emulated.py dist/tidegate-*_aarch64.whl -- stf A.p4 A.stf    one command of the wheel's `tidegate`

The checks are the STF tests of the examples and systems on both engines, and an experiment whose rows have to be to the bit what this
machine's build has. A Python for aarch64 comes from Debian's packages, unpacked into target/aarch64 without being installed, and the
wheel's packages from the registry, as pinned in requirements-run.lock; jenkspy, which has no wheel for aarch64, is compiled by the zig of
`make wheels`. Needs apt-get (Debian or Ubuntu), dpkg and qemu-user.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / "target" / "aarch64"
SYSTEM, SITE = FOLDER / "system", FOLDER / "site"
PACKAGES = ("python3-minimal", "libpython3-dev", "libstdc++6", "zlib1g")
COMPILED = "jenkspy"
TAGS = ("manylinux2014", "manylinux_2_17", "manylinux_2_28", "manylinux_2_31", "manylinux_2_34")
EXPERIMENT = "meter.rates"
P4 = ("examples/p4", "python/tidegate/systems")


def stop(message: str) -> NoReturn:
    """End with what is wrong, and how to cure it."""
    sys.exit(f"tools/emulated.py: {message}")


def unpack_system() -> None:
    """A Python for aarch64 and what it needs, with an apt of its own: nothing of this machine's changes."""
    state = FOLDER / "apt"
    for part in ("state/lists/partial", "cache/archives/partial"):
        (state / part).mkdir(parents=True, exist_ok=True)
    (state / "status").touch()
    options = {
        "Dir::State": state / "state",
        "Dir::State::status": state / "status",
        "Dir::Cache": state / "cache",
        "APT::Architecture": "arm64",
        "APT::Architectures": "arm64",
        "APT::Sandbox::User": "root",
    }
    apt = ["apt-get", "-qq", *(f"-o{name}={value}" for name, value in options.items())]
    # A repository without packages for arm64 fails to update, and is not needed.
    subprocess.run([*apt, "update"], capture_output=True, check=False)
    subprocess.run(
        [*apt, "--yes", "--download-only", "--no-install-recommends", "install", *PACKAGES], check=True
    )
    made = FOLDER / "new-system"
    for package in sorted((state / "cache" / "archives").glob("*.deb")):
        subprocess.run(["dpkg", "--extract", package, made], check=True)
    made.rename(SYSTEM)


def interpreter() -> Path:
    """The unpacked Python."""
    found = sorted((SYSTEM / "usr" / "bin").glob("python3.*[0-9]"))
    if not found:
        stop(f"there is no Python in {SYSTEM}; remove {FOLDER}, and run it again")
    return found[-1]


def pinned(*, compiled: bool) -> str:
    """The lock file's entries of what is compiled, or of all else."""
    entries = re.split(r"\n(?=[a-z0-9])", (ROOT / "requirements-run.lock").read_text())
    return "\n".join(
        entry for entry in entries if entry[0] != "#" and entry.startswith(f"{COMPILED}==") == compiled
    )


def download(into: Path, lock: str, *options: str) -> None:
    """Pinned packages of the registry."""
    named = FOLDER / "packages.lock"
    named.write_text(lock)
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    wanted = ["--require-hashes", "--no-deps", f"--dest={into}", f"--requirement={named}"]
    subprocess.run([*pip, *options, *wanted], check=True)


def compile_package(source: Path, into: Path) -> None:
    """A package with one C file beside its Python, as jenkspy is."""
    zig = next((ROOT / ".venv" / "wheels").glob("lib/python*/site-packages/ziglang/zig"), None)
    if zig is None:
        stop("zig is not found in .venv/wheels; make wheels installs it")
    shutil.unpack_archive(source, into)
    (unpacked,) = into.glob(f"{COMPILED}-*")
    (code,) = unpacked.glob(f"{COMPILED}/src/jenks.c")
    # Python's headers alone: zig has a C library of its own.
    system, own = SYSTEM / "usr" / "include", into / "include"
    for part in ("", "aarch64-linux-gnu"):
        shutil.copytree(system / part / interpreter().name, own / part / interpreter().name)
    cc = [str(zig), "cc", "-target", "aarch64-linux-gnu.2.17", "-O2", "-shared", "-fPIC"]
    includes = [f"-I{own / interpreter().name}", f"-I{own}", f"-I{code.parent}", f"-I{code.parent.parent}"]
    made = unpacked / COMPILED / "jenks.so"
    subprocess.run([*cc, *includes, str(code), "-o", str(made)], check=True)
    shutil.copytree(unpacked / COMPILED, SITE / COMPILED)


def install(wheel: Path) -> None:
    """The wheel's packages, downloaded once, and the wheel, each time anew."""
    stored, wanted = FOLDER / "packages", FOLDER / "stored.lock"
    whole = pinned(compiled=False) + pinned(compiled=True)
    if not wanted.exists() or wanted.read_text() != whole:
        shutil.rmtree(stored, ignore_errors=True)
        version = interpreter().name.removeprefix("python")
        of = [f"--platform={tag}_aarch64" for tag in TAGS]
        of += [f"--python-version={version}", "--implementation=cp", "--abi=cp" + version.replace(".", "")]
        download(stored, pinned(compiled=False), "--only-binary=:all:", *of, "--abi=abi3", "--abi=none")
        download(stored, pinned(compiled=True), "--no-binary=:all:")
        wanted.write_text(whole)
    shutil.rmtree(SITE, ignore_errors=True)
    for each in (*sorted(stored.glob("*.whl")), wheel):
        with zipfile.ZipFile(each) as packed:
            packed.extractall(SITE)
    (source,) = stored.glob(f"{COMPILED}-*.tar.gz")
    with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
        compile_package(source, Path(folder))


def emulated(words: list[str], *, quiet: bool = False) -> subprocess.CompletedProcess[str]:
    """Run the wheel's `tidegate`."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(FOLDER), "PYTHONPATH": str(SITE)}
    command = ["qemu-aarch64", "-L", SYSTEM, interpreter(), "-m", "tidegate", *words]
    return subprocess.run(command, env=environment, text=True, capture_output=quiet, check=False)


def check() -> int:
    """All checks; how many failed."""
    failed = 0
    for script in sorted(path for folder in P4 for path in (ROOT / folder).rglob("*.stf")):
        for engine in ("interp", "jit"):
            words = ["stf", str(script.with_suffix(".p4")), str(script), "--engine", engine]
            done = emulated(words, quiet=True)
            failed += done.returncode != 0
            said = (done.stdout + done.stderr).strip().splitlines()
            print(f"{engine}: {said[-1] if said else 'nothing printed'}", flush=True)
    run = ["run", EXPERIMENT, "--quick", "--json", "--out"]
    there = emulated([*run, str(FOLDER / "there")], quiet=True)
    here = subprocess.run(
        [ROOT / ".venv" / "bin" / "tidegate", *run, FOLDER / "here"],
        text=True,
        capture_output=True,
        check=False,
    )
    if there.returncode or here.returncode:
        print(there.stderr[-2000:], here.stderr[-2000:], sep="\n")
        return failed + 1
    rows = json.loads(here.stdout)["rows"]
    same = rows == json.loads(there.stdout)["rows"]
    verdict = "the same" if same else "not the same"
    print(f"{EXPERIMENT} --quick: {len(rows)} rows, {verdict} on both processors")
    return failed + (not same)


def main() -> int:
    """Set up, and check or run one command."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("wheel", type=Path)
    parser.add_argument("command", nargs="*", help="of the wheel's tidegate, after --")
    options = parser.parse_args()
    for program, package in (("apt-get", "apt"), ("dpkg", "dpkg"), ("qemu-aarch64", "qemu-user")):
        if shutil.which(program) is None:
            stop(f"{program} is not found: apt install {package}")
    if not options.wheel.is_file() or "aarch64" not in options.wheel.name:
        stop(f"{options.wheel} is no wheel for aarch64; make wheels builds one")
    if not SYSTEM.exists():
        unpack_system()
    install(options.wheel)
    if options.command:
        return emulated(options.command).returncode
    return 1 if check() else 0


if __name__ == "__main__":
    sys.exit(main())
