"""Exit codes and messages: 1 and one message for what the input or the machine is at fault for, 3 for bugs alone, and JSON of both."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES, Run, pcap
from tidegate import TidegateError, _core, cli
from tidegate.control import files
from tidegate.control.files import load
from tidegate.replay import replay

ROUTER = EXAMPLES / "ipv4_router" / "ipv4_router.p4"
FULL = Path("/dev/full")


def fails_with(monkeypatch: pytest.MonkeyPatch, error: BaseException) -> None:
    def broken(*_: object, **__: object) -> str:
        raise error

    monkeypatch.setattr(_core, "check", broken)


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (TidegateError("x.p4:3:9: `y` is not declared"), 1, "x.p4:3:9: `y` is not declared"),
        (OSError(errno.ENOSPC, "No space left on device", "out/x"), 1, "out/x: No space left on device"),
        (PermissionError(errno.EACCES, "Permission denied", "/root/x"), 1, "/root/x: Permission denied"),
        (OSError(errno.ENOSYS, "Function not implemented"), 1, "Function not implemented"),
        (MemoryError(), 1, "there is not enough memory"),
        (KeyboardInterrupt(), 130, "interrupted"),
        (OSError(errno.EBADF, "Bad file descriptor"), 3, "tidegate: this is a bug in Tidegate: OSError: "),
        (ValueError("index"), 3, "tidegate: this is a bug in Tidegate: ValueError: index\n"),
    ],
)
@pytest.mark.parametrize("as_json", [False, True])
def test_codes_and_messages(
    tidegate: Run,
    monkeypatch: pytest.MonkeyPatch,
    error: BaseException,
    code: int,
    message: str,
    as_json: bool,
) -> None:
    fails_with(monkeypatch, error)
    ran = tidegate("check", "x.p4", *(["--json"] if as_json else []))
    assert ran.code == code
    assert ran.err.startswith(message)
    assert len(ran.err.splitlines()) == (2 if code == 3 else 1)
    assert "Traceback" not in ran.err
    if not as_json:
        assert ran.out == ""
        return
    assert list(ran.json) == ["error"]
    assert ran.json["error"]["message"].startswith(message)
    assert ran.json["error"].get("place") == ("x.p4:3:9" if message.startswith("x.p4") else None)


@pytest.mark.parametrize(
    "words",
    [["man", ""], ["grafana", ""], ["check", ""], ["check", "x.p4", "-D", ""], ["lab", "-c", "x", ""]],
)
def test_an_empty_word_is_refused(
    tidegate: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = tidegate(*words)
    assert ran.code == 2
    assert f"the word after {words[-2]!r} is empty; is a variable of the shell not set?" in " ".join(
        ran.err.split()
    )
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("port", ["511", "600", "99999999999", "9" * 5000])
def test_a_port_of_a_capture_that_cannot_be(tidegate: Run, tmp_path: Path, port: str) -> None:
    capture = tmp_path / "in.pcap"
    capture.write_bytes(pcap([(0, bytes(64))]))
    ran = tidegate("replay", ROUTER, "--in", f"{port}={capture}", "--out", tmp_path / "out")
    assert ran.code == 2
    assert f"port {port[:20]} is not possible: ports are 0 to 510" in " ".join(ran.err.split())
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("number", ["-1", str(2**64), "9" * 30])
def test_a_number_of_packets_that_cannot_be(tidegate: Run, tmp_path: Path, number: str) -> None:
    capture = tmp_path / "in.pcap"
    capture.write_bytes(pcap([(0, bytes(64))]))
    words = ["--in", f"1={capture}", "--out", tmp_path / "out", "--trace", number]
    assert tidegate("replay", ROUTER, *words).code == 2
    with pytest.raises(TidegateError, match="is not a number of packets"):
        replay(ROUTER, inputs={1: capture}, out=tmp_path / "out", trace=int(number))


def test_wrong_usage_as_json(tidegate: Run) -> None:
    ran = tidegate("run", "reference.dumbbell", "--backend", "wet", "--json")
    assert ran.code == 2
    assert ran.json["error"]["message"].endswith("there is no backend 'wet'; known: sim, live")
    assert "there is no backend 'wet'" in ran.err
    ran = tidegate("check", "--json")
    assert ran.code == 2
    assert "PROG.p4" in ran.json["error"]["message"]
    ran = tidegate("run", "no.such", "--json")
    assert ran.code == 1
    assert "no.such" in ran.json["error"]["message"]


def test_a_command_that_fails_with_an_answer_gives_that_one(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "x.p4").write_text("control c() { apply { x = 1; } }")
    ran = tidegate("check", tmp_path / "x.p4", "--json")
    assert (ran.code, ran.json["ok"]) == (1, False)


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [["list"], ["list", "--json"], ["check", str(ROUTER)]])
def test_output_that_does_not_fit(words: list[str]) -> None:
    with FULL.open("w") as full:
        command = [sys.executable, "-m", "tidegate", *words]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert done.stderr in ("No space left on device\n", "standard output: No space left on device\n")


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: mounts a file system")
@pytest.mark.live
@pytest.mark.concurrent
@pytest.mark.parametrize("closed", [">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(("words", "code"), [(["list"], 0), (["list", "--json"], 0), (["lst"], 2)])
def test_descriptors_that_are_closed(words: list[str], code: int, closed: str) -> None:
    command = [sys.executable, "-m", "tidegate", *words]
    done = subprocess.run(
        ["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == code
    assert "Traceback" not in done.stderr
    assert bool(done.stdout) == (">&-" not in closed.split() and code == 0)


@pytest.mark.parametrize("out", ["there", "new/folder"])
def test_a_full_disk(tmp_path: Path, out: str) -> None:
    packets = [(n, bytes(1000)) for n in range(200)]
    (tmp_path / "in.pcap").write_bytes(pcap(packets))
    (tmp_path / "all.p4").write_text(FORWARD)
    words = ["replay", str(tmp_path / "all.p4"), "--in", f"1={tmp_path}/in.pcap", "--out", f"/mnt/{out}"]
    # In a mount namespace of its own: it goes with the process.
    script = (
        "import os, subprocess, sys; "
        "subprocess.run(['mount', '-t', 'tmpfs', '-o', 'size=64k', 'none', '/mnt'], check=True); "
        "os.mkdir('/mnt/there'); "
        "done = subprocess.run([sys.executable, '-m', 'tidegate', *sys.argv[1:]]); "
        "print(sorted(os.listdir('/mnt'))); sys.exit(done.returncode)"
    )
    command = ["unshare", "--mount", sys.executable, "-c", script, *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, f"/mnt/{out}: cannot be written: no space left on device\n")
    assert done.stdout == "['there']\n"


FORWARD = """
#include <v1model.p4>
struct h_t {} struct m_t {}
parser P(packet_in p, out h_t h, inout m_t m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout h_t h, inout m_t m) { apply {} }
control I(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply { s.egress_spec = 2; } }
control E(inout h_t h, inout m_t m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in h_t h) { apply {} }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def test_sigterm_leaves_nothing_half_made(tmp_path: Path) -> None:
    one = pcap([(1, bytes(100))])
    (tmp_path / "in").write_bytes(one[:24] + one[24:] * 300_000)
    (tmp_path / "all.p4").write_text(FORWARD)
    out = tmp_path / "out"
    command = [sys.executable, "-m", "tidegate.cli", "replay", str(tmp_path / "all.p4"), "--engine", "interp"]
    command += [part for _ in range(5) for part in ("--in", f"1={tmp_path / 'in'}")]
    with subprocess.Popen([*command, "--out", str(out)], stderr=subprocess.PIPE, text=True) as run:
        while not out.exists():
            assert run.poll() is None
            time.sleep(0.01)
        run.send_signal(signal.SIGTERM)
        _, said = run.communicate(timeout=60)
    assert (run.returncode, said) == (130, "interrupted\n")
    assert not out.exists()


CONTROLLER = """
from tidegate.control import Controller
class Mine(Controller):
    def start(self, switch):
        raise KeyError("a user's mistake")
controllers = Mine()
"""


def test_a_controller_that_raises(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(CONTROLLER)
    (tmp_path / "in").write_bytes(pcap([(1, bytes(60))]))
    words = ["replay", ROUTER, "--in", f"1={tmp_path}/in", "--out", tmp_path / "out"]
    ran = tidegate(*words, "--controller", tmp_path / "mine.py")
    assert ran.code == 1
    assert "the controller Mine failed in start (" in ran.err
    assert "mine.py:5): KeyError: " in ran.err
    assert len(ran.err.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_does_not_run_what_others_can_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder, file = tmp_path / "mine", tmp_path / "mine" / "controller.py"
    folder.mkdir()
    file.write_text(CONTROLLER)
    assert len(load(file)) == 1

    def refused() -> str:
        with pytest.raises(TidegateError) as told:
            load(file)
        return str(told.value)

    file.chmod(0o664)
    assert refused().endswith(f"chmod go-w {file}")
    file.chmod(0o644)
    os.chown(file, 65534, 65534)
    assert "is of user 65534, who decides what root would run; chown root" in refused()
    monkeypatch.setenv("SUDO_UID", "65534")
    assert len(load(file)) == 1
    monkeypatch.delenv("SUDO_UID")
    os.chown(file, 0, 0)
    folder.chmod(0o777)
    assert refused().endswith(f"chmod go-w {folder}")
    folder.chmod(0o1777)
    assert len(load(file)) == 1
    link = tmp_path / "link.py"
    link.symlink_to(file)
    os.chown(file, 65534, 65534)
    with pytest.raises(TidegateError, match="is of user 65534"):
        load(link)


WRONG = [
    "",
    " ",
    "-1",
    "0",
    "nan",
    "a=b",
    "=",
    "no/such.p4",
    "\u00fc\u200b",
    "[1",
    "{}",
    "x" * 300,
    "--",
    "-",
]
OPTIONS = [
    "--set",
    "--seed",
    "--repeat",
    "--out",
    "--backend",
    "--engine",
    "--top",
    "--threads",
    "--quick",
    "--json",
    "-z",
    "--no-such",
]


@pytest.mark.parametrize(
    "command", ["check", "stf", "replay", "monitor", "list", "run", "sweep", "tune", "claims", "compare"]
)
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(words=st.lists(st.sampled_from(WRONG) | st.sampled_from(OPTIONS) | st.just(str(ROUTER)), max_size=6))
def test_whatever_the_words_are_there_is_one_json_object(
    tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: str, words: list[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    ran = tidegate(command, "--json", *words)
    assert isinstance(ran.json, dict)
    assert ran.code in (0, 1, 2)
    if ran.code:
        assert ran.json["error"]["message"]
        assert ran.err


def test_errors_of_a_run_are_told_once(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("...")
    ran = tidegate("run", "reference.dumbbell", "--quick", "--json", "--out", tmp_path / "mine")
    answer: dict[str, Any] = json.loads(ran.out)
    assert ran.code == 1
    assert answer["error"]["message"] == ran.err.strip()
    assert cli.FAILED == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_root_does_not_run_what_a_link_of_another_user_leads_to(tmp_path: Path) -> None:
    folder, file = tmp_path / "theirs", tmp_path / "controller.py"
    file.write_text(CONTROLLER)
    folder.mkdir()
    link = folder / "link.py"
    link.symlink_to(file)
    assert len(load(link)) == 1
    os.chown(folder, 65534, 65534)
    with pytest.raises(TidegateError, match=f"{folder} is of user 65534"):
        load(link)
    (tmp_path / "second.py").symlink_to(link)
    with pytest.raises(TidegateError, match=f"{folder} is of user 65534"):
        load(tmp_path / "second.py")


def test_a_controller_is_run_as_it_was_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "controller.py"
    file.write_text(CONTROLLER)
    read = files._read_own

    def and_replaced(path: Path) -> bytes:
        text = read(path)
        file.write_text("raise KeyError('another text')")
        return text

    monkeypatch.setattr(files, "_read_own", and_replaced)
    assert len(load(file)) == 1
