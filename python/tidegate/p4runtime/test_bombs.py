"""Programs that ask for as much as a text of 1 MiB can: the process that compiles what clients push ends each, within the server's own limits,
with a program or with a diagnostic."""

from __future__ import annotations

import functools
import math
import multiprocessing
import os
import resource
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from tidegate import _core
from tidegate import p4 as programs
from tidegate.p4runtime import Limits
from tidegate.p4runtime.compiling import CHILD, Compiler
from tidegate.p4runtime.config import Configuration
from tidegate.p4runtime.conftest import TEXT
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.messages import p4
from tidegate.p4runtime.test_compiling import program

ROOT = Path(__file__).resolve().parents[3]
PATIENCE = Limits(compile_s=600)
"""By the clock it may take long where others use the same cores."""
SMALL_S = 0.12
"""Processor time of a program of 1000 conditions where the server's limit of processor time was chosen."""
SIZE = 1 << 20
RESIDENT = 1 << 30
"""Bytes of memory that a compilation takes at most; its address space, with the program's state, may be larger."""


def conditions(count: int) -> str:
    return program(body="".join(f"if (m.x == {n % 256}) {{ m.x = m.x + 1; }}" for n in range(count)))


@functools.cache
def limits() -> Limits:
    """The server's limits, where this machine is as fast as the one they were chosen on; its processor time grows with a slower one."""

    def taken_s() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        Compiler(PATIENCE).p4info(conditions(1_000))
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    slower = min(taken_s() for _ in range(3)) / SMALL_S
    return replace(PATIENCE, compile_cpu_s=math.ceil(PATIENCE.compile_cpu_s * max(1, slower)))


def ends(text: str) -> str:
    """P4Info, or what is wrong with the program; it is not ended by a limit of the process."""
    assert len(text) <= SIZE
    try:
        return Compiler(limits()).p4info(text)
    except P4Error as error:
        ended = error
    assert ended.code == Code.INVALID_ARGUMENT, ended.message
    assert ended.message.startswith(("the program does not compile", "the program cannot be run"))
    return ended.message


def states(count: int) -> str:
    """Parser states that go to one another."""
    each = "".join(
        f"state s{n} {{ transition select(m.x) "
        f"{{ 0: s{(n + 1) % count}; 1: accept; default: s{(7 * n + 3) % count}; }} }}\n"
        for n in range(count)
    )
    return program().replace("transition accept; }", f"transition s0; }} {each}", 1)


def hashes(count: int, width: int) -> str:
    """A hash of wide fields."""
    fields = ", ".join(["m.w"] * count)
    body = f"hash(m.x, HashAlgorithm.crc16, 8w0, {{ {fields} }}, 8w100);"
    return program(body=body).replace("bit<8> x; }", f"bit<8> x; bit<{width}> w; }}", 1)


def jumps(how: str) -> str:
    """Very many ways to one place."""
    return "".join(f"if (m.x == {n % 256}) {{ {how}; }}" for n in range(25_000))


def tables(count: int) -> str:
    """Tables of one entry each, one after the other."""
    return program(
        "action a() { m.x = m.x + 1; }"
        + "".join(
            f"table t{n} {{ key = {{ m.x: exact; }} actions = {{ a; }} size = 1; }}" for n in range(count)
        ),
        "".join(f"t{n}.apply();" for n in range(count)),
    )


DEAREST = {
    "3990 states": states(3_990),
    "a hash of 100 wide fields": hashes(100, 65_528),
    "a hash of 30 wide fields": hashes(30, 8_000),
    "conditions": conditions(18_000),
    "statements": program(body="m.x=m.x+1;" * 90_000),
    "breaks": program(body="for (bit<8> i in 0..3) {" + jumps("break") + "}"),
    "continues": program(body="for (bit<8> i in 0..3) {" + jumps("continue") + "}"),
    "exits": program(body=jumps("exit")),
    "4000 tables": tables(4_000),
}


@pytest.mark.parametrize("text", [tables(1_500), DEAREST["3990 states"]], ids=["tables", "states"])
def test_a_program_takes_as_much_memory_in_the_switch_as_in_the_process_that_had_limits(text: str) -> None:
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        child, switch = pool.submit(growths, text).result()
    assert child > 64 << 20, "it is much"
    assert abs(switch - child) < child // 5, (child, switch)


def growths(text: str) -> tuple[int, int]:
    """Bytes of memory that a program takes at most in the process that compiles, and then in a switch, beyond a small one."""
    watched = "import runpy, sys; del sys.argv[0]; runpy.run_path(sys.argv[0]); "
    watched += "sys.stderr.write(open('/proc/self/status').read())"

    def of_child(one: str) -> int:
        words = [sys.executable, "-I", "-S", "-c", watched, CHILD, str(_core.__file__), str(os.getpid())]
        words += [str(limits().compile_cpu_s), str(limits().compile_bytes), "100000000"]
        done = subprocess.run(words, input=one, capture_output=True, text=True, check=True)
        assert done.stdout.startswith("+")
        return most(done.stderr)

    def most(status: str) -> int:
        return int(status.partition("VmHWM:")[2].split()[0]) << 10

    small = programs.Program.from_text(program())
    device = Device(small.pipeline())
    config = Configuration(device, small, {}, lambda _: None, nullcontext(), Limits())

    def of_switch(one: str) -> int:
        config._made(p4.ForwardingPipelineConfig(), one)
        return most(Path("/proc/self/status").read_text())

    child, switch = ([of(one) for one in (program(), text)] for of in (of_child, of_switch))
    return child[1] - child[0], switch[1] - switch[0]


@pytest.mark.slow
@pytest.mark.parametrize("name", DEAREST)
def test_the_dearest_programs_end_within_the_limits(name: str) -> None:
    assert ends(DEAREST[name])


@pytest.mark.slow
def test_each_bomb_ends_within_the_limits(tmp_path: Path) -> None:
    """Those of the compiler's own tests (`crates/p4lang/tests/bombs.rs`), which writes them."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    built = [path for path in target.glob("*/deps/bombs-*") if os.access(path, os.X_OK) and not path.suffix]
    if not built:
        pytest.skip("the compiler's tests are not built; make test builds them")
    newest = max(built, key=lambda path: path.stat().st_mtime)
    subprocess.run(
        [newest, "each_ends_within_its_budget"],
        env={**os.environ, "TIDEGATE_BOMBS": str(tmp_path)},
        check=True,
        stdout=subprocess.DEVNULL,
    )
    bombs = sorted(tmp_path.glob("*.p4"))
    assert len(bombs) > 50
    # In a process without other children, whose memory would count.
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        wrong, resident = pool.submit(what_ends_otherwise, bombs).result()
    assert wrong == {}
    assert resident <= RESIDENT


def what_ends_otherwise(bombs: list[Path]) -> tuple[dict[str, str], int]:
    """Programs that do not end within the limits, and why; bytes of memory of the compilation that took most."""
    wrong = {}
    for bomb in bombs:
        try:
            ends(bomb.read_text())
        except AssertionError as error:
            wrong[bomb.name] = str(error)
    return wrong, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10


@pytest.mark.slow
def test_a_program_that_takes_more_processor_time_is_refused() -> None:
    with pytest.raises(P4Error, match="more than 1 s of processor time") as caught:
        Compiler(replace(PATIENCE, compile_cpu_s=1)).p4info(DEAREST["3990 states"])
    assert caught.value.code == Code.RESOURCE_EXHAUSTED


def test_a_program_that_takes_more_time_is_refused() -> None:
    with pytest.raises(P4Error, match="more than 1 s to compile") as caught:
        Compiler(Limits(compile_s=1)).p4info(DEAREST["3990 states"])
    assert caught.value.code == Code.RESOURCE_EXHAUSTED


def test_a_program_that_takes_more_memory_is_refused() -> None:
    large = program(state="register<bit<64>>(95000000) r;", body="r.write(0, 1);")
    assert ends(large).startswith("# proto-file")
    with pytest.raises(P4Error, match="more than 700 MiB of memory") as caught:
        Compiler(replace(PATIENCE, compile_bytes=700 << 20)).p4info(large)
    assert caught.value.code == Code.RESOURCE_EXHAUSTED


def test_a_program_with_more_p4info_is_refused() -> None:
    with pytest.raises(P4Error, match="bytes; at most 1000 are taken") as caught:
        Compiler(replace(PATIENCE, p4info_bytes=1000)).p4info(TEXT)
    assert caught.value.code == Code.INVALID_ARGUMENT
