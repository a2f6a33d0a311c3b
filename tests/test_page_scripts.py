"""What the pages name besides `tidegate ...`: scripts with their options, modules, targets of cargo and of make. All must exist."""

from __future__ import annotations

import importlib.util
import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from test_page_commands import NOW
from test_pages import ROOT, blocks, name

OF_OTHERS = {("docs/exercises.md", "make run")}
"""Commands of other projects."""
MAKEFILE = (ROOT / "Makefile").read_text()
TARGETS = {target for line in re.findall(r"^([a-z][\w -]*):(?!=)", MAKEFILE, re.M) for target in line.split()}
VARIABLES = set(re.findall(r"\$\((?:or \$\()?([A-Z]+)\)", MAKEFILE)) | set(
    re.findall(r"\$\(if \$\(([A-Z]+)\)", MAKEFILE)
)
COMMAND = re.compile(
    r"^(?:\$ )?(?:sudo )?(?:[A-Z_]+=\S+ )*((?:(?:\S*/)?python3? (?:-m tidegate|\w+/)|cargo (?:bench|run|test|nextest)|make ).*)"
)


def code(text: str) -> Iterator[str]:
    """Lines of code, with those they go on in, and words in backticks, in one line each."""
    lines = [line if of_code else "" for _, line, of_code in blocks(text)]
    yield from (line.strip() for line in re.sub(r"\\\n\s*", "", "\n".join(lines)).splitlines())
    prose = "\n".join(line for _, line, of_code in blocks(text) if not of_code)
    yield from (re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", prose))


def commands(page: Path) -> list[str]:
    found = [match[1].split("  #")[0] for line in code(page.read_text()) if (match := COMMAND.match(line))]
    return [one.partition(" (")[0].rstrip() for one in dict.fromkeys(found)]


FOUND = [(name(page), command) for page in NOW for command in commands(page)]
KINDS = {
    kind: [one for one in FOUND if one[1].split()[0].rpartition("/")[2].rstrip("3") == kind]
    for kind in ("python", "cargo", "make")
}


def manifests() -> dict[str, tuple[Path, dict[str, Any]]]:
    """Folder and manifest of each crate."""
    found = ((path.parent, tomllib.loads(path.read_text())) for path in ROOT.glob("crates/*/Cargo.toml"))
    return {manifest["package"]["name"]: (folder, manifest) for folder, manifest in found}


def without_options(script: Path, options: set[str]) -> set[str]:
    """Which of the options the script's own help does not name."""
    if not options:
        return set()
    # One that reads no options would begin its work.
    assert "argparse" in script.read_text(), f"{script} takes no options"
    done = subprocess.run([sys.executable, script, "--help"], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return options - set(re.findall(r"--[a-z-]+", done.stdout))


@pytest.mark.slow
@pytest.mark.parametrize(("page", "command"), KINDS["python"])
def test_scripts_and_their_options_exist(page: str, command: str) -> None:
    words = shlex.split(command)[1:]
    if words[0] == "-m":
        assert importlib.util.find_spec(words[1].rstrip(".")) is not None
        return
    script = ROOT / words[0]
    assert script.is_file()
    assert without_options(script, {word.split("=")[0] for word in words if word.startswith("--")}) == set()


@pytest.mark.parametrize(("page", "command"), KINDS["cargo"])
def test_targets_of_cargo_exist(page: str, command: str) -> None:
    words = shlex.split(command.partition(" -- ")[0])
    given = dict(pairwise(words))
    crate = given.get("-p", given.get("--package"))
    if crate is None:
        assert not given.keys() & {"--bench", "--example", "--test"}, "the crate is not named"
        return
    folder, manifest = manifests()[crate]
    if bench := given.get("--bench"):
        assert bench in [one["name"] for one in manifest["bench"]]
    for kind in ("example", "test"):
        if target := given.get(f"--{kind}"):
            places = (folder / f"{kind}s" / f"{target}.rs", folder / f"{kind}s" / target / "main.rs")
            assert target in [one["name"] for one in manifest.get(kind, [])] or any(
                place.is_file() for place in places
            )


@pytest.mark.parametrize(("page", "command"), [one for one in KINDS["make"] if one not in OF_OTHERS])
def test_targets_of_make_exist(page: str, command: str) -> None:
    words = shlex.split(command)[1:]
    targets = [word for word in words if "=" not in word and not word.startswith("-")]
    assert set(targets) <= TARGETS
    assert {word.split("=")[0] for word in words if "=" in word} <= VARIABLES


def test_files_of_benches_exist() -> None:
    named = {path for page in NOW for path in re.findall(r"\bbenches/\w+\.py", page.read_text())}
    assert len(named) > 8
    assert [path for path in sorted(named) if not (ROOT / path).is_file()] == []


def test_enough_is_found() -> None:
    assert set(FOUND) >= OF_OTHERS
    assert {kind: len(found) > 10 for kind, found in KINDS.items()} == dict.fromkeys(KINDS, True), KINDS
    assert {"test", "bench-pairs", "wheels"} <= TARGETS
    assert {"S", "REV", "ROUNDS", "SECONDS", "PARTS"} <= VARIABLES


def test_what_does_not_exist_is_found() -> None:
    assert without_options(ROOT / "benches" / "view_live.py", {"--seconds", "--no-such"}) == {"--no-such"}
    with pytest.raises(AssertionError, match="takes no options"):
        without_options(ROOT / "benches" / "clos.py", {"--rounds"})
    with pytest.raises(AssertionError):
        test_targets_of_cargo_exist("", "cargo bench -p dataplane --bench no_such")
    with pytest.raises(AssertionError):
        test_targets_of_make_exist("", "make no-such")
    text = "`make\nlint`\n\n    $ sudo make t S=meter\n\nWe make tests. `python benches/a.py\n--x`\n"
    assert [match[1] for line in code(text) if (match := COMMAND.match(line))] == [
        "make t S=meter",
        "make lint",
        "python benches/a.py --x",
    ]
