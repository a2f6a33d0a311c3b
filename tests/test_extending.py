"""The tutorial of docs/extending.md, step by step in one folder: commands as written, edits as described."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[1] / "docs" / "extending.md"


def blocks() -> list[tuple[str, str]]:
    """Language and text of each block."""
    return re.findall(r"^```(\w+)\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)


def run(command: str, here: Path) -> None:
    words = shlex.split(command)
    if words[0] == "tidegate":
        words = ["python", "-m", *words]
    words[0] = {"python": sys.executable, "rm": "rm"}[words[0]]
    environment = {name: value for name, value in os.environ.items() if name != "TIDEGATE_SYSTEMS"}
    done = subprocess.run(
        words, cwd=here, capture_output=True, text=True, env=environment, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"


def replace(path: Path, old: str, text: str) -> None:
    whole, count = re.subn(old, lambda _: text, path.read_text(), flags=re.DOTALL)
    assert count == 1, path
    path.write_text(whole)


@pytest.mark.slow
def test_the_tutorial_does_what_it_says(tmp_path: Path) -> None:
    for language, text in blocks():
        if language == "console":
            for line in text.splitlines():
                run(line.removeprefix("$ "), tmp_path)
        elif language == "p4":
            replace(tmp_path / "step" / "step.p4", r"[^\n]*bool late = [^\n]*\n", text)
        elif text.startswith('"""How long'):
            (tmp_path / "step" / "experiments" / "queue.py").write_text(text)
        elif text.startswith('"""The step'):
            (tmp_path / "step" / "test_step.py").write_text(text)
        elif text.startswith("def mark"):
            replace(tmp_path / "step" / "setup.py", r"def mark\(.*?\n    return controller\n", text)
        elif language == "python":
            replace(tmp_path / "step" / "controller.py", r" {8}self\._thresholds = \{.*?1 hour\"\)\n", text)
    answer = json.loads((tmp_path / "runs" / "step.queue" / "run.json").read_text())
    assert [claim["holds"] for claim in answer["claims"]] == [True]
    assert (tmp_path / "runs" / "my.buffers" / "figure.png").exists()
