"""Programs that are pushed are compiled elsewhere first: whatever they are, the server goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate import _core
from tidegate import p4 as programs
from tidegate.p4runtime import Connection, Limits, Server, compiling
from tidegate.p4runtime.compiling import CHILD, Compiler
from tidegate.p4runtime.conftest import LOOPBACK, TEXT, VRFS
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.errors import P4Error
from tidegate.p4runtime.messages import p4, parse_p4info

PROGRAM = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { bit<8> x; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control V(inout H h, inout M m) { apply {} }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { STATE apply { BODY } }
V1Switch(P(), V(), I(), E(), V(), D()) main;
"""


def program(state: str = "", body: str = "") -> str:
    return PROGRAM.replace("STATE", state).replace("BODY", body)


BOMBS = {
    "a register of 2 TB": program("register<bit<65535>>(268435456) r;"),
    "a meter of 21 GB": program("meter(268435456, MeterType.bytes) m;"),
    "nested calls of a macro": "#define F(x) x x\n" + "F(" * 20_000 + "a" + ")" * 20_000,
    "pasted names that double": "#define J(a,b) J2(a,b)\n#define J2(a,b) a##b\n#define X0 aaaaaaaaaaaaaaaa\n"
    + "".join(f"#define X{i} J(X{i - 1},X{i - 1})\n" for i in range(1, 30))
    + "const bit<8> X29 = 1;\n",
}


@pytest.fixture
def small(everything: programs.Program) -> Iterator[tuple[Server, Connection]]:
    """A server with limits that are soon reached, and a controller."""
    limits = Limits(compile_cpu_s=1, compile_s=10, source_bytes=100_000)
    with (
        Server(
            everything.pipeline(), everything, address=LOOPBACK, translations=VRFS, limits=limits
        ) as server,
        Connection(server.address) as controller,
    ):
        assert controller.next("arbitration").status.code == 0
        yield server, controller


def config(text: str) -> Any:
    return p4.ForwardingPipelineConfig(p4info=p4.P4Info(), p4_device_config=text.encode())


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_an_answer(small: tuple[Server, Connection], name: str) -> None:
    _, controller = small
    for action in ("VERIFY", "VERIFY_AND_COMMIT"):
        with pytest.raises(Refused) as caught:
            controller.set_config(action, config(BOMBS[name]))
        assert caught.value.code in ("RESOURCE_EXHAUSTED", "INVALID_ARGUMENT")
        assert "\n\n\n" not in caught.value.reason
    assert controller.read(p4.Entity(counter_entry={})), "the program that was there runs"


def test_a_long_text_is_not_compiled(small: tuple[Server, Connection]) -> None:
    _, controller = small
    with pytest.raises(Refused, match="100001 bytes of text; 100000 at most") as caught:
        controller.set_config("VERIFY", config(" " * 100_001))
    assert caught.value.code == "RESOURCE_EXHAUSTED"


CHILDREN = {
    "while True: pass": ("RESOURCE_EXHAUSTED", "more than 1 s of processor time"),
    "import time; time.sleep(60)": ("RESOURCE_EXHAUSTED", "more than 1 s to compile"),
    "import os; os.abort()": ("INVALID_ARGUMENT", "SIGABRT"),
    "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)": ("INVALID_ARGUMENT", "SIGSEGV"),
    "import os, signal; os.kill(os.getpid(), signal.SIGKILL)": ("RESOURCE_EXHAUSTED", "memory may be short"),
    "raise SystemExit(3)": ("RESOURCE_EXHAUSTED", "2048 MiB of memory"),
    "import os; os.write(2, b'memory allocation of 9 bytes failed'); os.abort()": (
        "RESOURCE_EXHAUSTED",
        "2048 MiB of memory",
    ),
    "print('-the program cannot be run: there is no memory for its native code', end='')": (
        "RESOURCE_EXHAUSTED",
        "2048 MiB of memory",
    ),
    "pass": ("INTERNAL", "no answer"),
}


@pytest.mark.parametrize("child", CHILDREN)
def test_ends_of_the_process_that_compiles(
    child: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "child.py"
    limit = "import resource; resource.setrlimit(resource.RLIMIT_CPU, (1, 2))\n"
    script.write_text(limit + child)
    monkeypatch.setattr(compiling, "CHILD", str(script))
    with pytest.raises(P4Error) as caught:
        Compiler(Limits(compile_cpu_s=1, compile_s=1 if "sleep" in child else 30)).p4info("text")
    code, said = CHILDREN[child]
    assert caught.value.code.name == code
    assert said in caught.value.message


def test_the_process_gives_the_p4info(everything: programs.Program) -> None:
    assert Compiler(Limits()).p4info(TEXT) == everything.p4info


def test_limits_of_programs_hold_for_those_that_are_pushed(everything: programs.Program) -> None:
    """More state than by default, and less work than the program needs."""
    large = program("register<bit<64>>(134217728) r;", "r.write(0, 1);")
    limits = {"state_bytes": 2 << 30}
    info = programs.Program.from_text(large, limits=limits).p4info
    pushed = p4.ForwardingPipelineConfig(p4info=parse_p4info(info), p4_device_config=large.encode())
    grants = Limits(compile_bytes=4 << 30)
    for given, refusal in (
        (limits, None),
        ({}, "1073741824"),
        ({**limits, "work": 100}, "100 steps of work"),
    ):
        with (
            Server(
                everything.pipeline(),
                everything,
                address=LOOPBACK,
                translations=VRFS,
                limits=grants,
                program_limits=given,
            ) as server,
            Connection(server.address) as controller,
        ):
            assert controller.next("arbitration").status.code == 0
            for action in ("VERIFY", "VERIFY_AND_COMMIT"):
                if refusal is None:
                    controller.set_config(action, pushed)
                else:
                    with pytest.raises(Refused, match=refusal):
                        controller.set_config(action, pushed)


def test_the_process_ends_with_its_parent() -> None:
    """A parent starts one that waits for its program, and is killed."""
    words = [CHILD, str(_core.__file__), "PARENT", "5", str(2 << 30), "1000"]
    script = (
        "import os, subprocess, sys, time\n"
        f"words = {words!r}; words[2] = str(os.getpid())\n"
        "child = subprocess.Popen([sys.executable, '-I', '-S', *words], stdin=subprocess.PIPE)\n"
        "print(child.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    child = int(parent.stdout.readline())
    until = time.monotonic() + 30
    # It is confined once it reads.
    while "pipe_read" not in Path(f"/proc/{child}/wchan").read_text() and time.monotonic() < until:
        time.sleep(0.01)
    parent.kill()
    parent.wait()
    while Path(f"/proc/{child}/stat").exists() and time.monotonic() < until:
        if Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.01)
    else:
        if Path(f"/proc/{child}").exists():
            os.kill(child, signal.SIGKILL)
            pytest.fail("the child has outlived its parent")
    parent.stdout.close()


def test_others_are_served_while_a_program_is_compiled(
    small: tuple[Server, Connection], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process waits for a file that comes only when the others have been served."""
    server, controller = small
    go = tmp_path / "go"
    script = tmp_path / "child.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'began')!r}, 'w')\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint('-no', end='')\n"
    )
    monkeypatch.setattr(compiling, "CHILD", str(script))
    said: list[str] = []

    def push() -> None:
        with pytest.raises(Refused) as caught:
            controller.set_config("VERIFY_AND_COMMIT", config(TEXT))
        said.append(caught.value.reason)

    pushes = [threading.Thread(target=push) for _ in range(3)]
    for push_thread in pushes:
        push_thread.start()
    until = time.monotonic() + 10
    while not (tmp_path / "began").exists() or (not said and time.monotonic() < until):
        assert time.monotonic() < until
        time.sleep(0.01)
    assert "other programs are being compiled" in said[0], "of three, one compiles and one waits"
    ids = {
        item.preamble.name: item.preamble.id
        for item in parse_p4info(programs.Program.from_text(TEXT).p4info).tables
    }
    assert controller.read(p4.Entity(table_entry={"table_id": next(iter(ids.values()))})) == []
    server.poll()
    with Connection(server.address, election_id=9) as other:
        assert other.next("arbitration").status.code == 0, "elections go on"
        go.touch()
        for push_thread in pushes:
            push_thread.join()
    assert sorted(said)[:2] == ["no", "no"]


def test_the_server_ends_while_a_program_is_compiled(
    everything: programs.Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / "child.py"
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'began')!r}, 'w').write(str(os.getpid()))\ntime.sleep(600)\n"
    )
    monkeypatch.setattr(compiling, "CHILD", str(script))
    limits = Limits(compile_s=600)
    with Server(everything.pipeline(), everything, address=LOOPBACK, limits=limits) as server:
        controller = Connection(server.address)
        controller.next("arbitration")

        def push() -> None:
            with pytest.raises(Refused):
                controller.set_config("VERIFY", config(TEXT))

        pushing = threading.Thread(target=push)
        pushing.start()
        until = time.monotonic() + 10
        while not (tmp_path / "began").exists() or not (tmp_path / "began").read_text():
            assert time.monotonic() < until
            time.sleep(0.01)
    pushing.join(20)
    assert not pushing.is_alive()
    child = int((tmp_path / "began").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(child, 0)
    controller.close()


def test_who_is_not_primary_any_more_sets_no_program(
    bench: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = tmp_path / "go"
    script = tmp_path / "child.py"
    text = TEXT.replace("value;", "value + 0;", 1)
    info = programs.Program.from_text(text).p4info
    script.write_text(
        f"import os, time\nopen({str(tmp_path / 'began')!r}, 'w')\n"
        f"while not os.path.exists({str(go)!r}): time.sleep(0.01)\nprint({'+' + info!r}, end='')\n"
    )
    monkeypatch.setattr(compiling, "CHILD", str(script))
    made = p4.ForwardingPipelineConfig(p4info=parse_p4info(info), p4_device_config=text.encode())
    said: list[str] = []

    def push() -> None:
        with pytest.raises(Refused) as caught:
            bench.primary.set_config("VERIFY_AND_COMMIT", made)
        said.append(caught.value.code)

    pushing = threading.Thread(target=push)
    pushing.start()
    until = time.monotonic() + 10
    while not (tmp_path / "began").exists():
        assert time.monotonic() < until
        time.sleep(0.01)
    with Connection(bench.server.address, election_id=9) as other:
        assert other.next("arbitration").status.code == 0
        go.touch()
        pushing.join()
        assert said == ["PERMISSION_DENIED"]
        assert other.get_config().p4_device_config == b"", "the first program runs"
