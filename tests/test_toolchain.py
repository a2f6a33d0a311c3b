"""`tools/toolchain.sh`: which of the Rust toolchains that are installed builds Tidegate."""

from __future__ import annotations

import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
WANTED = tomllib.loads((ROOT / "rust-toolchain.toml").read_text())["toolchain"]["channel"]
RUSTUP = """#!/bin/sh
case "$1" in
toolchain) for name in {names}; do echo "$name"; done ;;
default) echo "old-x86 (default)" ;;
esac
"""
RUSTC = f"""#!/bin/sh
case "$RUSTUP_TOOLCHAIN" in
new*) echo "rustc {WANTED} (abc 2026)" ;;
*) echo "rustc 1.88.0 (abc 2025)" ;;
esac
"""


@pytest.mark.parametrize(
    ("names", "given", "chosen", "said"),
    [
        ("old-x86 new-x86", "", "new-x86", ""),
        (
            "old-x86",
            "",
            "old-x86",
            f"Rust {WANTED} is not installed, which the results are of: building with old-x86",
        ),
        ("old-x86 new-x86", "nightly", "nightly", ""),
    ],
)
def test_the_toolchain(tmp_path: Path, names: str, given: str, chosen: str, said: str) -> None:
    for name, text in (("rustup", RUSTUP.format(names=names)), ("rustc", RUSTC)):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    done = subprocess.run(
        [ROOT / "tools" / "toolchain.sh"],
        env={"PATH": f"{tmp_path}:/usr/bin:/bin", **({"RUSTUP_TOOLCHAIN": given} if given else {})},
        capture_output=True,
        text=True,
        check=True,
    )
    assert (done.stdout.strip(), done.stderr.strip()) == (chosen, said)
