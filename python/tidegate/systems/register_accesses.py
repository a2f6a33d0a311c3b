"""What a packet does to a P4 program's register arrays, read off the source: how often, on the path with the most, it reads and writes each.

For tests of the rule of a switch's pipeline, in which a packet reads and writes an array at most once.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

Accesses = Counter[tuple[str, str]]
"""How often, on the path with the most, an array is read or written."""


@cache
def source(path: Path) -> str:
    """A program with the files that it includes by their own names, without comments."""
    text = re.sub(r'#include "([\w./]+)"', lambda found: source(path.parent / found[1]), path.read_text())
    return re.sub(r"//[^\n]*|#include[^\n]*", "", text)


def arrays(path: Path) -> set[str]:
    """The register arrays that a program declares."""
    return set(re.findall(r"\bregister\s*<.*>\s*\([^)]*\)\s*(\w+)\s*;", source(path)))


def operations(path: Path) -> list[str]:
    """The products and divisions of a program, each as it stands in the source; sizes of objects are no part of what happens to a packet."""
    moving = re.sub(r"\b(?:counter|register)[^;]*;", "", source(path))
    return re.findall(r"[\w)]\s[*/%]\s[\w(]", moving)


def closing(text: str, at: int) -> int:
    """The place of the brace or parenthesis that closes the one at `at`."""
    pair = {"{": "}", "(": ")"}[text[at]]
    depth = 0
    for place in range(at, len(text)):
        depth += (text[place] == text[at]) - (text[place] == pair)
        if depth == 0:
            return place
    raise AssertionError(f"nothing closes {text[at : at + 40]!r}")


def controls(text: str) -> dict[str, str]:
    """The body of each control."""
    found = {}
    for head in re.finditer(r"\bcontrol (\w+)\s*\(", text):
        begin = text.index("{", closing(text, head.end() - 1))
        found[head[1]] = text[begin + 1 : closing(text, begin)]
    return found


def largest(*branches: Accesses) -> Accesses:
    """Of each access as many as the branch with the most has."""
    return Counter({key: max(branch[key] for branch in branches) for branch in branches for key in branch})


def accesses(program: Path, control: str) -> Accesses:
    """What a packet does to registers in a control, and in those that it applies."""
    bodies = controls(source(program))
    body = bodies[control]
    inner = {name: kind for kind, name in re.findall(r"\b(\w+)\(\) (\w+);", body) if kind in bodies}
    begin = re.search(r"\bapply\s*\{", body)
    assert begin is not None
    return _of(body[begin.end() : closing(body, begin.end() - 1)], program, inner)


def _of(block: str, program: Path, inner: dict[str, str]) -> Accesses:
    """Of a block: statements one after the other, of branches the largest."""
    total: Accesses = Counter()
    at = 0
    word = re.compile(r"\bif\s*\(|\bswitch\s*\(|\b(\w+)\.(read|write|apply)\s*\(")
    while found := word.search(block, at):
        begin = found.end() - 1
        end = closing(block, begin)
        if found[1] is not None:
            if found[2] == "apply":
                if found[1] in inner:
                    total += accesses(program, inner[found[1]])
            else:
                total[found[1], found[2]] += 1
            at = end
        elif found[0].startswith("if"):
            total += _of(block[begin + 1 : end], program, inner)
            then, at = _braces(block, end + 1)
            branches = [_of(then, program, inner)]
            while more := re.match(r"\s*else\s*(if\s*\()?", block[at:]):
                if more[1]:
                    condition = at + more.end() - 1
                    end = closing(block, condition)
                    total += _of(block[condition + 1 : end], program, inner)
                    then, at = _braces(block, end + 1)
                else:
                    then, at = _braces(block, at + more.end())
                branches.append(_of(then, program, inner))
                if not more[1]:
                    break
            total += largest(*branches)
        else:
            total += _of(block[begin + 1 : end], program, inner)
            cases, at = _braces(block, end + 1)
            places = [place.end() - 1 for place in re.finditer(r"\w+\s*:\s*\{", cases)]
            total += largest(
                Counter(),
                *(_of(cases[place + 1 : closing(cases, place)], program, inner) for place in places),
            )
    return total


def _braces(block: str, at: int) -> tuple[str, int]:
    """The block in the next pair of braces, and the place behind it."""
    begin = block.index("{", at)
    assert not block[at:begin].strip(), "an if without braces is not known here"
    end = closing(block, begin)
    return block[begin + 1 : end], end + 1
