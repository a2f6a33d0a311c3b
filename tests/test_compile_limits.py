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


LARGE = "register<bit<64>>(1 << 27) large; apply { large.write(0, 1); }"


def test_check_takes_limits(tidegate: Run, tmp_path: Path) -> None:
    path = program(tmp_path, LARGE)
    assert "state-limit" in tidegate("check", path).err
    assert tidegate("check", path, "--limit", "state_bytes=2147483648", "--limit", "depth=500").code == 0


@pytest.mark.parametrize(
    ("limits", "message"),
    [
        (["state_byte=1"], "there is no limit 'state_byte'; did you mean 'state_bytes'? the names are "),
        (["state_bytes"], "'state_bytes' is not NAME=VALUE; give a number, as state_bytes=1073741824"),
        (["work=-1"], "'work=-1': give a whole number from 0 to 18446744073709551615"),
        (["work=18446744073709551616"], "give a whole number from 0 to 18446744073709551615"),
        (["work=1", "work=2"], "work is given twice"),
    ],
)
@pytest.mark.parametrize("command", ["check", "switch"])
def test_what_is_no_limit_is_one_message(
    tidegate: Run, tmp_path: Path, command: str, limits: list[str], message: str
) -> None:
    words = [word for limit in limits for word in ("--limit", limit)]
    ports = ["-i", "1@nowhere"] if command == "switch" else []
    said = tidegate(command, program(tmp_path, "apply {}"), *ports, *words)
    assert said.code == 1
    (line,) = said.err.splitlines()
    assert f"--limit {message}" in line or (message in line and "--limit" in line)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            'queues = 256\nqueue_limit = "4294967295"\n',
            "full queues of 1 port take",
        ),
        (
            'queue_limit = "100000"\n[limit]\nqueue_bytes = 1000000\n',
            "`queue_bytes` is 1000000; give fewer or shorter queues, or raise `queue_bytes`",
        ),
    ],
)
def test_a_switch_refuses_queues_beyond_its_budget(
    tidegate: Run, tmp_path: Path, settings: str, message: str
) -> None:
    path = tmp_path / "switch.toml"
    of = program(tmp_path, "apply { m.x = 1; }")
    path.write_text(f'program = "{of}"\ninterface = ["1@nowhere"]\n{settings}')
    said = tidegate("switch", "--config", path)
    assert said.code == 1
    (line,) = said.err.splitlines()
    assert message in line


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
