"""The rule of Tofino's pipeline, from the source: a packet reads and writes each register array at most once, and an array belongs to
ingress or to egress (the paper, section III-A); and no division and no product.
"""

from __future__ import annotations

import re
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
Accesses = Counter[tuple[str, str]]
"""How often, on the path with the most, an array is read or written."""


@cache
def source(name: str) -> str:
    """A program with the files of this folder that it includes, without comments."""
    text = (FOLDER / name).read_text()
    text = re.sub(r'#include "([\w.]+)"', lambda found: source(found[1]), text)
    return re.sub(r"//[^\n]*|#include[^\n]*", "", text)


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


def accesses(program: str, control: str) -> Accesses:
    """What a packet does to registers in a control, and in those that it applies."""
    bodies = controls(source(program))
    body = bodies[control]
    inner = {name: kind for kind, name in re.findall(r"\b(\w+)\(\) (\w+);", body) if kind in bodies}
    begin = re.search(r"\bapply\s*\{", body)
    assert begin is not None
    return _of(body[begin.end() : closing(body, begin.end() - 1)], program, inner)


def _of(block: str, program: str, inner: dict[str, str]) -> Accesses:
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


def broken(name: str) -> set[str]:
    """How a program breaks the rule, and where."""
    prefix = "Pi2" if name.startswith("pi2") else "Dual"
    ingress, egress = (accesses(f"{name}.p4", f"{prefix}{gress}") for gress in ("Ingress", "Egress"))
    out = {f"{array} in ingress and egress" for array, _ in ingress for other, _ in egress if array == other}
    for gress, of in (("ingress", ingress), ("egress", egress)):
        out |= {f"{array}: {count} x {what} in {gress}" for (array, what), count in of.items() if count > 1}
    # Sizes of objects are no part of what happens to a packet.
    moving = re.sub(r"\b(?:counter|register)[^;]*;", "", source(f"{name}.p4"))
    out |= {"products"} if re.search(r"[\w)]\s\*\s[\w(]", moving) else set()
    out |= {"divisions"} if re.search(r"[\w)]\s[/%]\s[\w(]", moving) else set()
    return out


@pytest.mark.parametrize("name", ["pi2_tofino", "dualpi2_tofino"])
def test_a_packet_reads_and_writes_each_array_at_most_once(name: str) -> None:
    assert broken(name) == set()


@pytest.mark.parametrize(
    ("name", "control", "expected"),
    [
        (
            "pi2_tofino",
            "Pi2Egress",
            {("classic_delay", "write"), ("p_coupled", "read"), ("p_squared", "read")},
        ),
        (
            "dualpi2_tofino",
            "DualEgress",
            {("classic_delay", "write"), ("p_coupled", "read"), ("p_squared", "read")},
        ),
    ],
)
def test_all_accesses_are_seen(name: str, control: str, expected: set[tuple[str, str]]) -> None:
    statistics = {("delay_sum", "read"), ("delay_sum", "write")}
    assert set(accesses(f"{name}.p4", control)) == expected | statistics


def test_where_the_programs_of_the_rfc_break_the_rule() -> None:
    """RFC 9332's shared buffer and heads of queues need both queues' state on each side, its recurrence one sum for marks and drops."""
    shared = {
        "backlog in ingress and egress",
        "since in ingress and egress",
        "backlog: 2 x read in ingress",
        "backlog: 2 x read in egress",
        "signals: 2 x read in egress",
        "signals: 2 x write in egress",
        "products",
    }
    assert broken("pi2") == shared
    assert broken("dualpi2") == shared
