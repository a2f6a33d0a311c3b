"""The short form of the fuzzer of `fuzzing.py`, whose rounds are the same each time; and faults that it finds."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tidegate import p4 as programs
from tidegate.p4runtime import fuzzing
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import P4Error
from tidegate.p4runtime.fuzzing import PROGRAM, Fault, Round
from tidegate.p4runtime.running import Running
from tidegate.p4runtime.translate.packets import Packets

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def program() -> programs.Program:
    return programs.Program.from_text(PROGRAM)


@pytest.mark.parametrize("number", range(1, 11))
def test_messages_that_make_no_sense(program: programs.Program, number: int) -> None:
    made = Round(number, program)
    made.run()
    assert sum(made.counted.values()) >= fuzzing.MESSAGES
    assert min(made.counted.values()) > 0, made.counted


def raised(*_: Any) -> Any:
    raise KeyError("a fault")


def half_done(self: Device, operations: Any) -> Any:
    for operation in operations:
        self.act(operation)
    return []


@pytest.mark.parametrize(
    ("of", "name", "fault", "said"),
    [
        (Running, "name_of", raised, "status 13: KeyError"),
        (Packets, "packet_out", raised, "StreamChannel raised KeyError|status 13: KeyError"),
        (Packets, "packet_in", raised, "messages to controllers were lost"),
        (Device, "write_all", half_done, "has changed what can be read|status 13: IndexError"),
    ],
)
def test_faults_are_found(
    program: programs.Program, monkeypatch: pytest.MonkeyPatch, of: type, name: str, fault: Any, said: str
) -> None:
    monkeypatch.setattr(of, name, fault)
    with pytest.raises(Fault, match=said):
        rounds(program)


def rounds(program: programs.Program) -> None:
    for number in range(2, 7):
        Round(number, program).run()


def test_what_a_refused_request_does_is_found(
    program: programs.Program, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Running.write

    def refused(self: Running, updates: Any, *given: Any) -> Any:
        return [P4Error.unsupported("no") for _ in write(self, updates, *given)]

    monkeypatch.setattr(Running, "write", refused)
    with pytest.raises(Fault, match="a refused request has changed what can be read"):
        Round(2, program).run()


def test_a_call_that_takes_long_is_found(program: programs.Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuzzing, "CPU_S", 1e-6)
    with pytest.raises(Fault, match="s of processor time"):
        Round(2, program).run()


def test_a_round_that_takes_long_twice_is_a_fault(
    program: programs.Program, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    times: Iterator[Fault] = iter([fuzzing.TooLong("Read took 1.20 s of processor time")])

    def run(self: Round) -> None:
        for late in times:
            raise late

    monkeypatch.setattr(Round, "run", run)
    assert fuzzing.main(["--round", "2"]) == 0
    assert "round 2: Read took 1.20 s of processor time; once more" in capsys.readouterr().err
    late = fuzzing.TooLong("Read took 1.20 s of processor time")
    times = iter([late, late])
    assert fuzzing.main(["--round", "2"]) == 1
    times = iter([Fault("Read raised ValueError()")])
    assert fuzzing.main(["--round", "2"]) == 1
    assert "once more" not in capsys.readouterr().err.splitlines()[-1]
