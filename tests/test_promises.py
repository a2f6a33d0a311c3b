"""What the pages promise of every case: each such sentence has a test that tries to break it.

A sentence of a README, of a page in docs or of SECURITY.md with one of the words below is looked up in `promises.tsv`: page, words of the
sentence, and a test (`FILE::NAME`). A sentence that promises nothing - a result of runs, what a paper says, what a word means, what is not
promised - does without these words: it says which cases were measured, or what is meant.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SYSTEMS = "python/tidegate/systems"
PAGES = sorted(
    path.relative_to(ROOT).as_posix()
    for path in [
        *ROOT.glob(f"{SYSTEMS}/*/README.md"),
        *ROOT.glob("docs/*.md"),
        ROOT / "README.md",
        ROOT / "SECURITY.md",
    ]
)
WORDS = re.compile(r"\b(whatever|never|any|always|exact|exactly|every)\b", re.IGNORECASE)
# Intervals, kinds of match and what stands between quotes promise nothing.
OTHER = re.compile(
    r"\bevery (\d|`?period|millisecond|five seconds|ten seconds)|`[^`]*`|\"[^\"]*\"|\bexact(?= match|,)|\bany more\b"
)


def promises(text: str) -> Iterator[str]:
    text = re.sub(r"^```.*?^```$", "", text, flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*|] |#|\s*\d+\. )", text):
        joined = re.sub(
            r"`[^`]*`|\"[^\"]*\"", lambda quoted: quoted[0].replace(".", "\0"), " ".join(block.split())
        )
        for sentence in re.split(r"(?<=[.:;?!])\s+(?=[A-Z`*(\[0-9])", joined):
            if WORDS.search(OTHER.sub("", sentence)):
                yield sentence.replace("\0", ".")


def table() -> list[tuple[str, str, str]]:
    rows = []
    for line in (ROOT / "tests/promises.tsv").read_text().splitlines():
        page, words, what = line.split("\t")
        rows.append((page if page.endswith(".md") else f"{SYSTEMS}/{page}/README.md", words, what))
    return rows


@pytest.mark.parametrize("page", PAGES)
def test_promises_have_a_test(page: str) -> None:
    known = [words for of, words, _ in table() if of == page]
    found = list(promises((ROOT / page).read_text()))
    new = [sentence for sentence in found if not any(words in sentence for words in known)]
    assert not new, (
        f"{page} promises what tests/promises.tsv does not have: name the test there, or reword it"
    )
    gone = [words for words in known if not any(words in sentence for sentence in found)]
    assert not gone, f"{page} does not have these sentences any more: take them out of tests/promises.tsv"


def test_the_tests_exist() -> None:
    named = {what for _, _, what in table()}
    assert len(named) > 25
    for test in sorted(named):
        file, name = test.split("::")
        path = ROOT / file
        assert path.is_file(), f"{test}: there is no such file"
        assert re.search(rf"\b(def|fn) {name}\b", path.read_text()), f"{test}: there is no such test"


def test_a_new_promise_is_found() -> None:
    text = "One. It never drops\na packet of `any.p4`. `never.` is a word.\n\n- every 16 ms: whatever comes, it\n  holds."
    assert list(promises(text)) == [
        "It never drops a packet of `any.p4`.",
        "- every 16 ms: whatever comes, it holds.",
    ]
