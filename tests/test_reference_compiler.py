"""Our P4 programs, in all their forms, are such as the reference compiler takes for its switch."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import EXAMPLES, Run

PYTHON = Path(__file__).parent.parent / "python"
STAMP = PYTHON / "tidegate/systems/stamping/stamp.p4"
COMPILER = "p4c-bm2-ss"
# Peers of the meter with loops, which it has none of in controls (docs/p4.md).
REFUSED = ("bcpqp.p4", "fairpolicer.p4")


def stamp(*words: str, codes: tuple[int, int, int] = (8, 1, 1)) -> tuple[Path, list[str]]:
    """A form of `stamp.p4`: its definitions, and a code's bits and bytes, and how many codes a packet has."""
    sizes = zip(("STAMP_BITS", "STAMP_BYTES", "STAMP_ENTRIES"), codes, strict=True)
    return STAMP, [*words, *(f"{name}={value}" for name, value in sizes)]


FORMS: list[tuple[Path, list[str]]] = [
    *((path, []) for path in sorted((PYTHON / "tidegate").rglob("*.p4")) if ") main;" in path.read_text()),
    *((path, []) for path in sorted(EXAMPLES.rglob("*.p4"))),
    stamp("STAMP_SOURCE=SOURCE_BYTES", "STAMP_FOLD=FOLD_SUM", "STAMP_OWN", codes=(16, 2, 1)),
    stamp("STAMP_SOURCE=SOURCE_UTILISATION", "STAMP_MANTISSA=5", "STAMP_CARRIER=CARRIER_SHIM"),
    stamp("STAMP_SOURCE=SOURCE_PACKETS", "STAMP_FOLD=FOLD_SUM_SQU", codes=(32, 4, 1)),
    stamp("STAMP_SOURCE=SOURCE_TELEMETRY", "STAMP_FOLD=FOLD_VECTOR", codes=(64, 8, 4)),
    # A vector of 2016 bits, the longest.
    stamp("STAMP_CARRIER=CARRIER_SHIM", "STAMP_FOLD=FOLD_VECTOR", codes=(32, 4, 63)),
    stamp("STAMP_FOLD=FOLD_VECTOR", codes=(8, 1, 37)),
]


def named(form: tuple[Path, list[str]]) -> str:
    return " ".join([form[0].name, *form[1]])


@pytest.mark.parametrize("form", FORMS, ids=named)
def test_no_warning(tidegate: Run, form: tuple[Path, list[str]]) -> None:
    """What that compiler refuses for its switch, and is cheap to see, gets one."""
    program, definitions = form
    ran = tidegate("check", program, *(word for name in definitions for word in ("-D", name)))
    assert (ran.code, ran.err) == (0, "")


@pytest.mark.parametrize("form", [form for form in FORMS if form[0].name not in REFUSED], ids=named)
def test_it_compiles(form: tuple[Path, list[str]], tmp_path: Path) -> None:
    """With the reference compiler itself."""
    compiler = shutil.which(COMPILER)
    if compiler is None:
        pytest.skip(f"needs {COMPILER}, the reference compiler for its switch")
    program, definitions = form
    words = [f"-D{name}" for name in definitions]
    command = [
        compiler,
        "--std",
        "p4-16",
        "-I",
        str(PYTHON),
        *words,
        "-o",
        str(tmp_path / "out.json"),
        str(program),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=600)
    assert ran.returncode == 0, ran.stderr
