"""Our P4 programs keep to what the reference compiler's grammar asks of names."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "python" / "tidegate"
PROGRAMS = sorted(PACKAGE.rglob("*.p4"))
# Types that core.p4 and v1model.p4 declare.
DECLARED = {
    "packet_in",
    "packet_out",
    "error",
    "match_kind",
    "register",
    "counter",
    "direct_counter",
    "meter",
    "direct_meter",
    "action_profile",
    "action_selector",
    "Checksum16",
    "standard_metadata_t",
    "HashAlgorithm",
    "CounterType",
    "MeterType",
    "CloneType",
}
TYPES = re.compile(
    r"\b(?:header|struct|enum|header_union|control|parser|extern|package)\s+(?:bit<\d+>\s+)?(\w+)"
    r"|\b(?:typedef|type)\s+[^;]*?(\w+)\s*;"
)
ACTIONS = re.compile(r"\baction\s+(\w+)\s*\(([^)]*)\)")


def text(path: Path) -> str:
    return re.sub(r"//.*", "", path.read_text())


def included(path: Path) -> list[Path]:
    """A program and what it includes of ours."""
    found = [path]
    for name in re.findall(r'#include "([^"]+)"', path.read_text()):
        found += included((path.parent / name).resolve())
    return found


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: str(path.relative_to(PACKAGE)))
def test_no_parameter_of_an_action_is_named_as_a_type(program: Path) -> None:
    """The reference compiler's parser does not declare an action's parameters: in its body such a name is the type's."""
    types = set(DECLARED)
    for path in included(program):
        types |= {name for match in TYPES.findall(text(path)) for name in match if name}
    for action, parameters in ACTIONS.findall(text(program)):
        names = {parameter.split()[-1] for parameter in parameters.split(",") if parameter.split()}
        assert not names & types, action
