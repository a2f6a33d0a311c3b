"""The limit of CONTRIBUTING.md to the length of a file."""

import re
from pathlib import Path

ROOT = Path(__file__).parent.parent
LIMIT = 700
SOURCES = {".rs", ".py", ".c", ".h", ".p4"}
FOLDERS = ("crates", "python", "tests", "examples", "benches", "fuzz")


def test_files_over_the_limit_are_those_that_have_a_reason() -> None:
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SOURCES]
    long = {
        str(path.relative_to(ROOT))
        for path in files
        if "target" not in path.parts and len(path.read_text().splitlines()) > LIMIT
    }
    reasons = re.search(r"Two files are longer: (.*?)\n- ", (ROOT / "CONTRIBUTING.md").read_text(), re.DOTALL)
    assert reasons is not None
    assert long == set(re.findall(r"`([^`]+\.\w+)`", reasons[1]))
    assert len(files) > 300
