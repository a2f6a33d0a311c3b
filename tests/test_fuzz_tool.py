"""`tools/fuzz.sh` with fuzzers that do as a test says: what is a fault, and what a machine that stood still."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent

FUZZER = """#!/bin/sh
case $1 in
*/artifacts/*)
    # One input, tried again.
    {again}
    ;;
esac
echo run >>"{runs}"
if [ "$(wc -l <"{runs}")" -le {held_up} ]; then
    for word in "$@"; do case $word in -artifact_prefix=*) : >"${{word#*=}}{artifact}" ;; esac; done
    exit 70
fi
echo "stat::number_of_executed_units: 17"
"""


def fuzz(
    folder: Path, *, held_up: int, artifact: str = "timeout-1", again: str = "exit 0"
) -> subprocess.CompletedProcess[str]:
    for name in ("tools", "fuzz/fuzz_targets", "bin", "target/ci"):
        (folder / name).mkdir(parents=True)
    shutil.copy(ROOT / "tools/fuzz.sh", folder / "tools")
    (folder / "fuzz/fuzz_targets/parse.rs").touch()
    scripts = {
        "bin/cargo": "#!/bin/sh\n",
        "target/ci/parse": FUZZER.format(
            runs=folder / "runs", held_up=held_up, artifact=artifact, again=again
        ),
    }
    for name, text in scripts.items():
        (folder / name).write_text(text)
        (folder / name).chmod(0o755)
    words = ["sh", str(folder / "tools/fuzz.sh"), "--stable", "1", "parse"]
    path = f"{folder / 'bin'}:/usr/bin:/bin"
    return subprocess.run(words, env={"PATH": path}, capture_output=True, text=True, timeout=60)


def test_no_fault(tmp_path: Path) -> None:
    done = fuzz(tmp_path, held_up=0)
    assert (done.returncode, done.stdout) == (0, "parse: 17 inputs in 1 s, no fault\n")


def test_an_input_that_took_long_once_is_the_machine_s(tmp_path: Path) -> None:
    done = fuzz(tmp_path, held_up=1)
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [
        "parse: an input took more than 10 s, and less when it was tried again: from the beginning",
        "parse: 17 inputs in 1 s, no fault",
    ]
    assert not list((tmp_path / "fuzz/artifacts/parse").iterdir())


@pytest.mark.parametrize(
    "faults",
    [{"held_up": 2}, {"held_up": 1, "again": "exit 70"}, {"held_up": 1, "artifact": "crash-1"}],
    ids=["twice", "each time", "crash"],
)
def test_a_fault(tmp_path: Path, faults: dict[str, int | str]) -> None:
    done = fuzz(tmp_path, **faults)  # type: ignore[arg-type]
    assert done.returncode == 123, done
    assert "parse: a fault:" in done.stdout
    assert "-1 in base64:" in done.stdout
