"""The limits of compiling a program, from Python."""

from __future__ import annotations

from pathlib import Path

import pytest

from conftest import Run
from tidegate import TidegateError, p4

HEAD = """#include <v1model.p4>
struct H {} struct M { bit<8> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
"""
TAIL = "}\nV1Switch(P(), V(), I(), E(), V(), D()) main;\n"


def program(directory: Path, ingress: str) -> Path:
    path = directory / "limits.p4"
    path.write_text(HEAD + ingress + TAIL)
    return path


def test_state_has_a_limit_that_can_be_raised(tmp_path: Path) -> None:
    path = program(tmp_path, "register<bit<64>>(1 << 27) large; apply { large.write(0, 1); }")
    with pytest.raises(TidegateError) as refused:
        p4.compile(path)
    for part in (
        "register `I.large` alone 1073741824",
        "134217728 cells of 8 bytes",
        "`state_bytes`",
        "limits.p4:8",
    ):
        assert part in str(refused.value)
    p4.compile(path, limits={"state_bytes": 2 << 30})


def test_waiting_packets_are_a_part_of_the_state(tmp_path: Path) -> None:
    path = program(tmp_path, "apply { m.x = 1; }")
    p4.compile(path, limits={"queue_bytes": 1 << 30})
    with pytest.raises(TidegateError, match="the packets of `all queues` alone 1073741825"):
        p4.compile(path, limits={"queue_bytes": (1 << 30) + 1})


def test_a_switch_refuses_queues_beyond_its_budget(tidegate: Run, tmp_path: Path) -> None:
    path = program(tmp_path, "apply { m.x = 1; }")
    words = ["-i", "1@nowhere", "--queues", "256", "--queue-limit", "4294967295"]
    said = tidegate("switch", path, *words)
    assert said.code == 1
    (line,) = said.err.splitlines()
    assert "full queues of 1 port take" in line


def test_less_work_refuses_what_is_compiled_by_default(tmp_path: Path) -> None:
    path = program(tmp_path, "apply { m.x = 1; }")
    p4.compile(path)
    with pytest.raises(TidegateError, match="more than 100 steps of work"):
        p4.compile(path, limits={"work": 100})


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        ({"patience": 1}, 'there is no limit "patience"; there are source_bytes, '),
        ({"work": -1}, "-1 is not the limit work"),
        ({"work": True}, "True is not the limit work"),
    ],
)
def test_what_is_no_limit_is_refused(tmp_path: Path, limits: dict[str, int], message: str) -> None:
    with pytest.raises(TidegateError) as refused:
        p4.compile(program(tmp_path, "apply {}"), limits=limits)
    assert message in str(refused.value)
