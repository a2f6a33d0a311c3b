"""`tidegate check`, and what all commands have in common."""

import re
import sys
from pathlib import Path

import pytest

from conftest import EXAMPLES, Run
from tidegate import _core
from tidegate.cli import main
from tidegate.p4runtime.messages import parse_p4info

PROGRAMS = sorted(EXAMPLES.glob("*/*.p4"))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_examples_compile_and_their_p4info_is_valid(tidegate: Run, tmp_path: Path, program: Path) -> None:
    ran = tidegate("check", program, "--p4info", tmp_path / "p4info.txt", "--json")
    assert (ran.code, ran.err) == (0, "")
    summary = ran.json["summary"]
    info = parse_p4info((tmp_path / "p4info.txt").read_text())
    assert {t.preamble.name for t in info.tables} == {t["name"] for t in summary["tables"]}
    assert {r.preamble.name for r in info.registers} == {r["name"] for r in summary["registers"]}
    assert info.pkg_info.arch == "v1model"
    ids = [t.preamble.id for t in info.tables] + [a.preamble.id for a in info.actions]
    assert len(set(ids)) == len(ids)
    for table in info.tables:
        assert {r.id for r in table.action_refs} <= {a.preamble.id for a in info.actions}
    assert [p.name for p in tmp_path.iterdir()] == ["p4info.txt"]


def test_a_summary_for_people(tidegate: Run) -> None:
    ran = tidegate("check", EXAMPLES / "ipv4_router" / "ipv4_router.p4")
    assert ran.code == 0
    assert "RouterIngress.routes" in ran.out
    assert "hdr.ipv4.dst: lpm, 32 bits" in ran.out


def test_one_bit_and_one_field_are_said_as_one(tidegate: Run) -> None:
    said = tidegate("check", EXAMPLES / "firewall" / "firewall.p4").out
    assert "  FirewallIngress.first_filter  size 4096 of 1 bit\n" in said
    assert not re.search(r"\b1 (bits|fields|entries)\b", said)


def test_errors_have_their_place(tidegate: Run, tmp_path: Path) -> None:
    program = tmp_path / "bad.p4"
    program.write_text("#include <core.p4>\nconst bit<8> x = y;\n")
    ran = tidegate("check", program, "--json")
    assert ran.code == 1
    assert not ran.json["ok"]
    first = ran.json["diagnostics"][0]
    assert (first["severity"], first["line"], first["column"]) == ("error", 2, 18)
    assert first["file"].endswith("bad.p4")
    assert "bad.p4:2:18" in ran.err


def test_another_architecture_is_only_checked(tidegate: Run, tmp_path: Path) -> None:
    program = tmp_path / "other.p4"
    program.write_text("control C(); package top(C c); control c() { apply { } } top(c()) main;\n")
    ran = tidegate("check", program, "--json")
    assert ran.code == 0
    assert ran.json["ok"]
    assert "summary" not in ran.json
    assert ran.json["diagnostics"][0]["code"] == "unsupported-architecture"
    assert tidegate("check", program, "--p4info", tmp_path / "info").code == 1
    assert not (tmp_path / "info").exists()


def test_includes_and_macros(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "inc").mkdir()
    (tmp_path / "inc" / "width.p4").write_text("typedef bit<WIDTH> number;\n")
    router = (EXAMPLES / "ipv4_router" / "ipv4_router.p4").read_text()
    (tmp_path / "prog.p4").write_text('#include "width.p4"\nconst number big = 300;\n' + router)
    program = tmp_path / "prog.p4"
    assert tidegate("check", program, "-I", tmp_path / "inc", "-DWIDTH=16", "--json").json["ok"]
    assert tidegate("check", program).code == 1


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["check", "no/such.p4"], 1, "no/such.p4: cannot be read: no such file or directory"),
        (["check", "."], 1, "it is a directory"),
        (["check"], 2, "Missing argument"),
        (["check", "x.p4", "--no-such-option"], 2, "No such option"),
        (["frobnicate"], 2, "No such command"),
        (["stf", "x.p4", "y.stf", "--engine", "steam"], 2, "steam"),
        (["replay", "x.p4", "--in", "nonsense", "--out", "d"], 2, "PORT=FILE"),
    ],
)
def test_exit_codes(tidegate: Run, args: list[str], code: int, message: str) -> None:
    ran = tidegate(*args, process=True)
    assert ran.code == code
    assert message in ran.err
    assert ran.out == ""
    assert "Traceback" not in ran.err


def test_bytes_that_are_not_text(tidegate: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_bytes(bytes(range(1, 256)) * 20)
    ran = tidegate("check", path, "--json", process=True)
    assert ran.code == 1
    assert ran.json["diagnostics"]
    ran = tidegate("check", path, process=True)
    assert ran.code == 1
    # A terminal would obey them.
    assert not set(ran.err) & {chr(code) for code in (*range(10), 11, 12, *range(14, 32), 127)}
    path.write_bytes(b"control c() {\n\0}\n")
    ran = tidegate("check", path)
    assert (ran.code, ran.err) == (
        1,
        f"{path}: cannot be read: it is not text (line 2 has a zero byte)\n",
    )


def test_a_file_that_is_too_long(tidegate: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    with path.open("wb") as file:
        file.truncate(65 << 20)
    ran = tidegate("check", path)
    assert (ran.code, ran.err) == (1, f"{path}: cannot be read: it is larger than 64 MiB\n")


def test_a_byte_order_mark_is_passed_over(tidegate: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_bytes(b"\xef\xbb\xbf#include <core.p4>\ncontrol c() { apply { y = 1; } }\n")
    ran = tidegate("check", path)
    assert "x.p4:2:23" in ran.err


def test_the_command_in_a_process_of_its_own_says_the_same(tidegate: Run) -> None:
    words = ["check", EXAMPLES / "ipv4_router" / "ipv4_router.p4"]
    apart, here = tidegate(*words, process=True), tidegate(*words)
    assert (apart.code, apart.out, apart.err) == (here.code, here.out, here.err)


def test_a_program_without_main_can_be_checked_but_not_run(tidegate: Run, tmp_path: Path) -> None:
    path = tmp_path / "x.p4"
    path.write_text("#include <core.p4>\n\n")
    ran = tidegate("check", path)
    assert ran.code == 0
    assert "Warning: the program has no `main`" in ran.err
    assert "x.p4:1:1" in ran.err
    ran = tidegate("stf", path, tmp_path / "x.stf")
    assert ran.code == 1
    assert "Error: the program has no `main`" in ran.err


@pytest.mark.parametrize("define", ["=3", "1x=3", "a b", "é"])
def test_macros_have_names(tidegate: Run, define: str) -> None:
    ran = tidegate("check", EXAMPLES / "ipv4_router" / "ipv4_router.p4", "-D", define)
    assert ran.code == 1
    assert f"-D {define}: " in ran.err
    assert "is not a macro's name" in ran.err


def test_p4info_that_cannot_be_written(tidegate: Run, tmp_path: Path) -> None:
    program = EXAMPLES / "ipv4_router" / "ipv4_router.p4"
    ran = tidegate("check", program, "--p4info", tmp_path / "no" / "such" / "file")
    assert ran.code == 1
    assert "cannot be written: no such file or directory" in ran.err


def test_a_bug_is_reported_as_such(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Panic(BaseException):
        pass

    def broken(*_: object, **__: object) -> str:
        raise Panic("index out of bounds")

    monkeypatch.setattr(_core, "check", broken)
    monkeypatch.setattr(sys, "argv", ["tidegate", "check", "x.p4"])
    with pytest.raises(SystemExit) as left:
        main()
    assert left.value.code == 3
    err = capsys.readouterr().err
    assert "a bug in Tidegate: Panic: index out of bounds" in err
    assert "Please report it" in err
