"""Runs tests, as `make test`, `make dev` and `make t S=NAME` do.

    python tests/run.py all          every Rust and Python test; live tests one after another but for `concurrent` ones, the others on all
                                     processors; `untimed` live tests beside them
    python tests/run.py build-rust   builds the Rust tests
    python tests/run.py fast         Python tests that are neither live nor slow: those that the files concern which have changed
                                     since they last passed
    python tests/run.py fast-rust    Rust tests that take less than two seconds each
    python tests/run.py only NAME    the tests of one system (`meter`), crate (`transport`), Python package (`p4runtime`)
                                     or test file (`queues`, `tests/test_network.py`)

Rust tests run under cargo-nextest where it is installed, which starts them on all processors, and under `cargo test` elsewhere.
With TIDEGATE_PROFILE, a Cargo profile, they share the build of their libraries with an extension of that profile. With
TIDEGATE_LIVE_AFTER, a file, live tests that measure begin when it is gone: until then something else runs on the machine.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from affected import ALWAYS, affected, changed_since

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.prefix) / "bin"
# Of pytest: tests were run, and some failed.
TESTS_FAILED = 1
ALONE = "live and not concurrent and not untimed"
POOL = f"not ({ALONE}) and not untimed and not soak"
PROFILE = os.environ.get("TIDEGATE_PROFILE", "")
# The bindings have no tests of their own. With them, and with the feature that maturin sets, libraries have the features
# that they have in the extension.
WORKSPACE = (
    ["--workspace", "--features", "pyo3/extension-module"]
    if PROFILE
    else ["--workspace", "--exclude", "tidegate-python"]
)


def has_nextest() -> bool:
    """Whether `cargo nextest` can be run; says so where it cannot."""
    if shutil.which("cargo-nextest", path=_environment()["PATH"]):
        return True
    print("cargo-nextest is not installed: running the Rust tests with cargo test", file=sys.stderr)
    return False


def _environment() -> dict[str, str]:
    """With the tools of the environment; and with bytecode, without which each of a thousand processes would compile all modules."""
    given = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return given | {"PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"}


def _run(*command: str) -> int:
    print("+", *command, file=sys.stderr, flush=True)
    return subprocess.run(command, cwd=ROOT, env=_environment(), check=False).returncode


def _rust_tests(*words: str) -> int:
    """Rust tests of the workspace; `words` are for nextest."""
    if has_nextest():
        profile = ["--cargo-profile", PROFILE] if PROFILE else []
        return _run("cargo", "nextest", "run", "--locked", *profile, *WORKSPACE, *words)
    profile = ["--profile", PROFILE] if PROFILE else []
    return _run(
        "cargo", "test", "--locked", *profile, *WORKSPACE, *(word for word in words if word == "--no-run")
    )


def _packets(*words: str) -> int:
    """The benchmark of packets: what is measured beside each other has to do the same."""
    profile = ["--profile", PROFILE] if PROFILE else []
    return _run("cargo", "bench", "--locked", *profile, *WORKSPACE, "--bench", "packets", *words)


def rust(*, fast: bool = False) -> int:
    """The tests of all crates."""
    if fast:
        return _rust_tests("--profile", "fast")
    return _rust_tests("--profile", "default") or _packets("--", "--once")


def build_rust() -> int:
    """What `rust` runs, built."""
    return _rust_tests("--no-run") or _packets("--no-run")


def python(*words: str, parallel: bool) -> int:
    """Some Python tests; in parallel, a file at a time: tests of a file may share a switch.

    The files that take longest begin first: see `conftest.py`. There are two processes more than processors, for while tests wait.
    """
    processors = len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    spread = ["-n", str(processors + 2), "--dist", "loadfile", "--no-loadscope-reorder"] if parallel else []
    return _run(str(BIN / "pytest"), *spread, *words)


def again(tests: str, *cache: str) -> int:
    """Those of the tests that have failed, a second time and one after another: they fail if they fail twice.

    A machine that others use too can be too slow for a test that waits for something.
    """
    print("tests failed: those alone, a second time", file=sys.stderr)
    return python("-m", tests, "--last-failed", "--last-failed-no-failures", "none", *cache, parallel=False)


def together() -> int:
    """All but the live tests that measure time. Those that measure none mostly wait, so they run in a process of their own."""
    # What has failed is noted by each of the two in a folder of its own.
    cache = ("-o", "cache_dir=.pytest_cache/untimed")
    with tempfile.TemporaryFile() as said:
        command = [str(BIN / "pytest"), "-m", "untimed", "--durations=5", *cache]
        untimed = subprocess.Popen(
            command, cwd=ROOT, env=_environment(), stdout=said, stderr=subprocess.STDOUT
        )
        try:
            code = python("-m", POOL, "--durations=15", parallel=True)
            beside = untimed.wait()
        finally:
            untimed.terminate()
            untimed.wait()
        said.seek(0)
        print("+", *command, said.read().decode(), file=sys.stderr, flush=True)
    code = again(POOL) if code == TESTS_FAILED else code
    beside = again("untimed", *cache) if beside == TESTS_FAILED else beside
    return code or beside


def live() -> int:
    """Live tests that need the processors and the network namespaces to themselves.

    Real hosts share the machine with whatever else it runs: what fails is run again.
    """
    while os.path.exists(os.environ.get("TIDEGATE_LIVE_AFTER", "")):
        time.sleep(0.2)
    code = python("-m", ALONE, "-rs", "--durations=15", parallel=False)
    return again(ALONE) if code == TESTS_FAILED else code


def fast() -> int:
    """The fast Python tests of what has changed since they last passed; all of them the first time."""
    passed, began = BIN.parent / ".python-tested", time.time()
    chosen: list[str] = []
    if passed.exists():
        changed = changed_since(passed.stat().st_mtime)
        chosen = sorted(map(str, affected(changed)))
        names = ", ".join(sorted(str(path.relative_to(ROOT)) for path in changed)[:5]) or "nothing"
        print(f"changed since the tests last passed: {names}; test files: {len(chosen)}", file=sys.stderr)
    code = python("-m", "not live and not slow and not soak", *chosen, parallel=len(chosen) != len(ALWAYS))
    if code == 0:
        passed.touch()
        os.utime(passed, (began, began))
    return code


def everything() -> int:
    """All tests but the soak tests."""
    return rust() or together() or live()


def only(name: str) -> int:
    """The tests that a name stands for: all of them, where it stands for several things."""
    package = ROOT / "python" / "tidegate"
    named = [ROOT / name, ROOT / "tests" / f"test_{name}.py", *package.rglob(f"test_{name}.py")]
    folders = [
        place for place in (package / "systems" / name, package / name) if any(place.glob("**/test_*.py"))
    ]
    files = [place for place in named if place.suffix == ".py" and place.exists()] + folders
    runs = (
        [["--package", name]] if (ROOT / "crates" / name / "Cargo.toml").exists() and name != "python" else []
    )
    runs += [
        ["--package", path.parts[-3], "--test", name]
        for path in ROOT.glob(f"crates/*/tests/{name}*")
        if name in (path.stem, path.name)
    ]
    if not files and not runs:
        print(
            f"no tests of `{name}`: give the name of a system, a crate, a folder of python/tidegate, or a test file",
            file=sys.stderr,
        )
        return 2
    rust_tests = ["nextest", "run", "--locked"] if runs and has_nextest() else ["test", "--locked"]
    for run in runs:
        if code := _run("cargo", *rust_tests, *run):
            return code
    return python("-m", "not soak", *sorted(map(str, files)), parallel=False) if files else 0


def main(words: list[str]) -> int:
    """Run what the words say; the exit code is that of the first command that fails."""
    match words:
        case ["all"]:
            return everything()
        case ["fast"]:
            return fast()
        case ["fast-rust"]:
            return rust(fast=True)
        case ["build-rust"]:
            return build_rust()
        case ["only", name] if name:
            return only(name)
        case _:
            print(__doc__, file=sys.stderr)
            return 2


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
