"""The pages: length of lines, links, and the files and Rust names that they give."""

import itertools
import re
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 120
PAGES = sorted(
    page
    for page in ROOT.rglob("*.md")
    if not any(
        part.startswith(".") or part in ("target", "runs", "dist") for part in page.relative_to(ROOT).parts
    )
)
WITH_PATHS = ("docs/architecture.md", "docs/architectures.md", "CONTRIBUTING.md")
SOURCES = (
    "",
    "crates",
    "crates/p4lang/src",
    "crates/dataplane/src",
    "crates/commands/tests/p4",
    "python/tidegate",
    "python/tidegate/systems/*",
    "docs",
)
"""Where a path of these pages may begin."""


def name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def blocks(text: str) -> Iterator[tuple[int, str, bool]]:
    """Number, text, and whether it is code, of each line; indented code stands behind an empty line."""
    fence, indented, before = False, False, ""
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("```"):
            fence = not fence
            yield number, line, True
        else:
            indented = line.startswith("    ") and (indented or not before.strip())
            yield number, line, fence or indented
        before = line


def too_long(text: str) -> list[int]:
    """Numbers of the lines of prose with more than 120 characters. A heading, a list item and a quote are prose."""
    return [
        number
        for number, line, code in blocks(text)
        if not code and not line.lstrip().startswith("|") and len(line) > LONGEST
    ]


def test_long_lines_are_found() -> None:
    long = "word " * 25
    page = f"{long}\n- {long}\n```\n{long}\n```\n| {long} |\n\n    {long}\n    {long}\n\n{long}\n    {long}\n"
    assert too_long(page) == [1, 2, 11, 12]


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_prose_is_at_most_120_characters_wide(page: Path) -> None:
    assert too_long(page.read_text()) == []


def prose(page: Path) -> str:
    return "\n".join(line for _, line, code in blocks(page.read_text()) if not code)


@cache
def anchors(page: Path) -> frozenset[str]:
    """What `#...` can refer to, as GitHub makes it from headings."""
    headings = re.findall(r"^#+ +(.*)$", prose(page), re.MULTILINE)
    return frozenset(re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings)


@pytest.mark.parametrize("page", PAGES, ids=name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if "://" in link:
            continue
        place, _, anchor = link.partition("#")
        target = (page.parent / place).resolve() if place else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def quoted(page: Path) -> list[str]:
    """What stands in backticks, and what begins the lines of the drawings of `docs/architecture.md`."""
    found = re.findall(r"`([^`\n]+)`", prose(page))
    if page.name == "architecture.md":
        drawn = (line.split() for _, line, code in blocks(page.read_text()) if code and line.split())
        found += [
            words[0].rstrip(",") for words in drawn if "/" in words[0] or words[0].endswith((".rs", ".py"))
        ]
    return found


def paths(page: Path) -> list[str]:
    """Those that are paths; NAME, SYSTEM and `<name>` stand for any."""
    out = []
    for text in quoted(page):
        path = text.split("::")[0]
        if re.fullmatch(r"[\w.<>/-]+", path) and ("/" in path.strip("/") or path.endswith((".rs", ".py"))):
            out.append(re.sub(r"<\w+>|\b(NAME|SYSTEM|PROG|CRATE)\b", "*", path))
    return out


def exists(path: str) -> bool:
    first, _, rest = path.rstrip("/").partition("/")
    within = [f"{start}/{path}".strip("/") for start in SOURCES]
    within += [f"crates/{first}/{inner}/{rest}" for inner in ("src", "tests")] if rest else []
    return any(next(ROOT.glob(pattern), None) is not None for pattern in within)


@pytest.mark.parametrize("page", WITH_PATHS)
def test_files_that_are_named_exist(page: str) -> None:
    found = paths(ROOT / page)
    assert len(found) > 5
    assert [path for path in found if not exists(path)] == []


@cache
def rust() -> tuple[frozenset[str], ...]:
    """The words of each Rust file."""
    files = [file for crate in ROOT.glob("crates/*") for file in crate.rglob("*.rs")]
    return tuple(frozenset(re.findall(r"\w+", file.read_text())) for file in files)


@pytest.mark.parametrize("page", WITH_PATHS)
def test_rust_names_that_are_given_exist(page: str) -> None:
    given = {found for text in quoted(ROOT / page) for found in re.findall(r"\w+(?:::\w+)+", text)}
    unknown = [text for text in given if not any(words.issuperset(text.split("::")[-2:]) for words in rust())]
    assert unknown == []


DIFFERENCES = "crates/commands/tests/p4/v1model/differences"


def untested(text: str) -> list[str]:
    """The differences that a page lists without the name of a test, or with one that does not exist."""
    found = []
    for item in re.findall(r"^- (.*?)(?=^- |\Z|\n\n)", text, flags=re.DOTALL | re.MULTILINE):
        names = re.findall(r"\(`([\w./]+\.(?:stf|py|rs)(?:::\w+)?)`\)", item)
        missing = [name for name in names if not is_test(name)]
        found += [f"{' '.join(item.split())[:60]}: {missing or 'no test'}"] if missing or not names else []
    return found


def is_test(name: str) -> bool:
    path, _, function = name.partition("::")
    file = ROOT / path if "/" in path else ROOT / DIFFERENCES / path
    return file.is_file() and (
        not function or re.search(rf"\b(def|fn) {function}\(", file.read_text()) is not None
    )


def test_each_difference_from_the_reference_switch_names_its_test() -> None:
    text = (ROOT / "docs/p4.md").read_text().split("Differences from it")[1].split("\n\n", 1)[1]
    assert text.count("\n- ") >= 7
    assert untested(text) == []


def test_a_difference_without_a_test_is_found() -> None:
    listed = "- one (`part_bytes.stf`);\n- two;\n- three (`no_such.stf`);\n- four (`tests/test_pages.py::no_such`).\n"
    assert [found.split(":")[0] for found in untested(listed)] == [
        "two;",
        "three (`no_such.stf`);",
        "four (`tests/test_pages.py",
    ]


def test_a_missing_file_is_found() -> None:
    assert not exists("network/no_such_file.rs")
    assert exists("dataplane/path.rs")
    assert exists("crates/transport/src/cc/*.rs")


def uses() -> dict[str, set[str]]:
    """The crates that each crate uses, by its `Cargo.toml`."""
    manifests = {
        file.parent.name: tomllib.loads(file.read_text()) for file in ROOT.glob("crates/*/Cargo.toml")
    }
    return {
        crate: manifest.get("dependencies", {}).keys() & manifests.keys()
        for crate, manifest in manifests.items()
    }


def test_the_arrows_between_crates_are_true() -> None:
    """Each arrow is a dependency, and each dependency is an arrow or a way of several."""
    crates, arrows = uses(), set()
    for line in re.findall(
        r"^[a-z0-9, ]+ -> [a-z0-9, >-]+$", (ROOT / "docs" / "architecture.md").read_text(), re.MULTILINE
    ):
        for chain in re.split(r" {2,}", line):
            steps = [set(step.split(", ")) for step in chain.split(" -> ")]
            arrows |= {(a, b) for left, right in itertools.pairwise(steps) for a in left for b in right}
    assert {(used, by) for by, all_used in crates.items() for used in all_used} >= arrows

    def reaches(used: str, by: str) -> bool:
        return any(end == by or reaches(end, by) for start, end in arrows if start == used)

    missing = [(used, by) for by, all_used in crates.items() for used in all_used if not reaches(used, by)]
    assert missing == []
