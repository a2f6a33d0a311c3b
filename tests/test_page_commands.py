"""The commands and Python of the pages, run as they are written where they can be (`make test-docs`).

Python blocks of a page are run one after the other, each behind those before it, in a folder of their own that has `examples` and
`python`. Commands without placeholders are run, or, where they would take long or need interfaces, read: their options and
experiments must exist. What can be neither is in a list, with the reason.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import typer

from conftest import Run
from test_pages import PAGES, ROOT, name
from tidegate.cli import app
from tidegate.experiments import find, with_settings

NOT_RUN = {
    (
        "docs/control.md",
        "from tidegate.control import Port, Queue, Shaper",
    ): "a part of a network of the reader's",
    ("docs/live.md", "from tidegate.network import Network"): "needs root: real hosts",
    (
        "docs/p4runtime.md",
        "from tidegate.control import Controller, Digest, SwitchApi",
    ): "needs a switch that runs",
    (
        "examples/pacing_on_linux.md",
        'controllers = PacingController({}, {2: ManagedLink("50 Mbit/s", number=1)}, wires={1: 2, 2: 1})',
    ): "a line of a file of the examples",
    ("python/tidegate/systems/separation/README.md", "# separate.py"): "needs a Juniper router",
    (
        "python/tidegate/systems/separation/README.md",
        "# separate_linux.py",
    ): "needs root and an interface: test_linux_router_walk.py",
    ("docs/live.md", "from tidegate.control import Port, Queue"): "needs root: real hosts",
    (
        "docs/exercises.md",
        "from mininet.net import Mininet",
    ): "needs root, Mininet and files: test_mininet.py",
}
"""Page and first line of Python blocks that are compiled only, and why."""
NEEDS = {"cluster.md": "distributed"}
"""Packages of extras that the Python of a page needs."""
SLOW_OR_LIVE = (
    "run",
    "sweep",
    "tune",
    "monitor",
    "replay",
    "switch",
    "agent",
    "clean",
    "claims",
    "plot",
    "report",
    "view",
    "lab",
    "compare",
    "demo",
)
"""Commands that are read here, and walked in test_pages_walked.py: they take long, or files and interfaces of the reader's."""
COMMAND = typer.main.get_command(app)
TRACE = ROOT / "python/tidegate/scenarios/wifi.trace"
"""Stands for files of the reader's."""


# The changelog has commands of the past, and a template names of systems that are still to be made.
# test_extending.py runs the tutorial, whose steps need those before them.
NOW = [
    page
    for page in PAGES
    if page.name not in ("CHANGELOG.md", "extending.md") and "templates" not in page.parts
]


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


BLOCKS = [(page, number) for page in NOW for number in range(len(python_blocks(page)))]


def first_line(block: str) -> str:
    return block.splitlines()[0]


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for folder in ("examples", "python", "tests"):
        (tmp_path / folder).symlink_to(ROOT / folder)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "number"), BLOCKS, ids=lambda one: name(one) if isinstance(one, Path) else str(one)
)
def test_python_of_a_page_runs(page: Path, number: int, place: Path) -> None:
    if page.name in NEEDS:
        pytest.importorskip(NEEDS[page.name], reason="needs an extra")
    blocks = python_blocks(page)
    assert compile(blocks[number], name(page), "exec")
    if (name(page), first_line(blocks[number])) in NOT_RUN:
        return
    text = "\n".join(
        block for block in blocks[: number + 1] if (name(page), first_line(block)) not in NOT_RUN
    )
    command = [sys.executable, "-c", text]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_what_is_not_run_is_there() -> None:
    there = {(name(page), first_line(block)) for page in PAGES for block in python_blocks(page)}
    assert there >= NOT_RUN.keys()


def commands(page: Path) -> Iterator[str]:
    """What begins with `tidegate` in code, in order: lines of blocks, with those they go on in, and words in backticks."""
    text = re.sub(r"\\\n\s*", "", page.read_text())
    of_blocks = r"^[ \t]*(?:[$#] )?(?:sudo )?(?:ip netns exec \w+ |docker run (?:-\S+ )+)?(?:\S*bin/)?(tidegate [a-z-].*)"
    in_backticks = r"`(?:sudo )?(?:\S*bin/)?(tidegate\s[a-z][^`]*)`"
    found = {}
    for match in re.finditer(of_blocks, text, re.MULTILINE):
        if not re.match(r"tidegate (is|runs|has|and|in)\b", match[1]):
            found[match.start(1)] = match[1].split("  #")[0].rstrip(" &")
    for match in re.finditer(in_backticks, text):
        found[match.start(1)] = match[1].replace("\n", " ")
    for _, command in sorted(found.items()):
        yield command


COMMANDS = list(dict.fromkeys((name(page), command) for page in NOW for command in commands(page)))


def understood(command: str) -> tuple[Any, list[str]]:
    """The subcommand, and its words."""
    words = shlex.split(re.sub(r"[\[\]]|\\|\.\.\.", " ", command))[1:]
    at: Any = COMMAND
    while words and hasattr(at, "commands") and words[0] in at.commands:
        at = at.commands[words.pop(0)]
    return at, words


@pytest.mark.parametrize(("page", "command"), COMMANDS)
def test_commands_and_options_exist(page: str, command: str) -> None:
    at, words = understood(command)
    assert at is not COMMAND, f"there is no such command: {command}"
    known = {option for parameter in at.params for option in (*parameter.opts, *parameter.secondary_opts)} | {
        "--help"
    }
    given = {word.split("=")[0].rstrip(".,;|") for word in words if re.match(r"--?[a-zA-Z]", word)}
    assert given <= known, f"{command}: {given - known}"


@pytest.mark.parametrize(("page", "command"), [one for one in COMMANDS if one[1].startswith("tidegate run ")])
def test_experiments_and_their_settings_exist(
    page: str, command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    _, words = understood(command)
    if not re.fullmatch(r"[a-z0-9_]+\.[a-z0-9_]+", words[0]):
        pytest.skip("a placeholder")
    one = find(words[0])
    backend = words[words.index("--backend") + 1] if "--backend" in words else "sim"
    settings = [word for before, word in pairwise(words) if before == "--set" and word[0].islower()]
    for parameter, _, path in (setting.partition("=") for setting in settings):
        if parameter in one.files():
            # A file of the reader's.
            (tmp_path / path).write_bytes(TRACE.read_bytes())
    one.check(with_settings(one, settings, "--quick" in words, backend.split("|")[0]))


def runs(command: str) -> bool:
    """Whether a command can be run here: more than a name, no placeholders, and soon over."""
    words = command.split()
    if words[1] in SLOW_OR_LIVE or (
        words[1] in ("check", "stf") and not any(".p4" in word for word in words)
    ):
        return False
    return not re.search(r"[A-Z]{3,}|[\[\]|]|\.\.\.|prog\.p4", command)


RUN = [one for one in COMMANDS if runs(one[1])]


@pytest.mark.parametrize(("page", "command"), RUN)
def test_commands_run_as_written(
    page: str, command: str, place: Path, tidegate: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A system's page names the files beside it.
    beside = (ROOT / page).parent
    monkeypatch.chdir(beside if any((beside / word).is_file() for word in command.split()) else place)
    done = tidegate(*shlex.split(command.partition(" > ")[0])[1:])
    assert done.code == 0, done.err


def test_enough_is_found() -> None:
    assert len(COMMANDS) > 40
    assert len(RUN) > 3
    assert len(BLOCKS) > 8


def test_a_trace_is_as_the_readme_shows_it(tidegate: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines of `...` stand for any."""
    monkeypatch.chdir(ROOT)
    block = re.search(
        r"```\n\$ (tidegate stf [^\n]*)\n\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL
    )
    assert block is not None
    shown = tidegate(*shlex.split(block[1])[1:]).out
    parts = [re.escape(line).replace(r"\.\.\.", ".*") for line in block[2].rstrip().splitlines()]
    pattern = "\n".join(parts).replace("\n\\ \\ .*\n", "\n(?:.*\n)*?")
    assert re.search(pattern, shown), shown
