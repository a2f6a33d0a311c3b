"""What tests share: running the command, making captures."""

from __future__ import annotations

import io
import json
import logging
import os
import shutil
import struct
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path
from typing import Any

import pytest

from tidegate import cli, logs

ROOT = Path(__file__).resolve().parent.parent
EXAMPLES = ROOT / "examples" / "p4"
LONGEST = (
    "tests/test_agent.py",
    "tests/test_cluster.py",
    "python/tidegate/systems/stamping/test_experiments.py",
    "python/tidegate/systems/stamping/test_fct.py",
    "tests/test_view.py",
    "python/tidegate/systems/stamping/test_echoes.py",
    "tests/test_monitor_interface.py",
    "tests/test_extending.py",
    "tests/test_experiment_folders.py",
    "python/tidegate/systems/separation/test_experiments.py",
    "tests/test_affected.py",
    "python/tidegate/systems/pacing/test_experiments.py",
    "tests/test_page_commands.py",
    "tests/test_pages_walked.py",
    "tests/test_wheel.py",
    "tests/test_exercises.py",
    "tests/test_monitor.py",
    "tests/test_monitor_rules.py",
    "tests/test_monitor_captures.py",
    "tests/test_monitor_taps.py",
    "tests/test_junos_router.py",
    "tests/test_switch_failures.py",
    "tests/test_template.py",
    "tests/test_network.py",
    "tests/test_junos_netconfd.py",
    "tests/test_sweep.py",
    "tests/test_interrupt.py",
    "python/tidegate/systems/aqm/test_experiments.py",
    "python/tidegate/p4runtime/test_fuzz.py",
    "python/tidegate/p4runtime/test_fuzz_calls.py",
    "python/tidegate/p4runtime/test_limits.py",
    "tests/test_grafana.py",
    "tests/test_agent_trust.py",
)
"""Test files that take long, the longest first."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where processes share the files, the end is for short ones: one long file would keep one processor busy only."""
    places = {ROOT / name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path, len(places)))


class Ran:
    """The exit code and output of one run of the command, and the process that it was."""

    def __init__(self, code: int, out: str, err: str, pid: int) -> None:
        self.code = code
        self.out = out
        self.err = err
        self.pid = pid

    @property
    def json(self) -> Any:
        """Standard output as one JSON object."""
        answer = json.loads(self.out)
        assert isinstance(answer, dict)
        return answer


Run = Callable[..., Ran]


def _services() -> dict[str, list[logging.Handler]]:
    return {
        name: made.handlers
        for name, made in logging.root.manager.loggerDict.items()
        if name.startswith("tidegate.") and isinstance(made, logging.Logger) and made.handlers
    }


@contextmanager
def _same_loggers() -> Iterator[None]:
    """What a service was told of the form of its lines is over with the command."""
    before = _services()
    try:
        yield
    finally:
        for name in _services():
            if name in before:
                logging.getLogger(name).handlers = before[name]
            else:
                logs.listen(name, as_json=False)


def _in_this_process(words: list[str]) -> Ran:
    """The command without the start of a Python of its own, which would take longer than most of the tests."""
    out, err = io.StringIO(), io.StringIO()
    with pytest.MonkeyPatch.context() as patch, redirect_stdout(out), redirect_stderr(err), _same_loggers():
        patch.setattr(sys, "argv", ["tidegate", *words])
        try:
            cli.main()
            code: object = 0
        except SystemExit as leaving:
            code = leaving.code or 0
    assert isinstance(code, int)
    return Ran(code, out.getvalue(), err.getvalue(), os.getpid())


@pytest.fixture
def tidegate() -> Run:
    """Runs the command; in a process of its own, as users do, with `process=True`."""

    def run(*args: object, process: bool = False) -> Ran:
        words = [str(arg) for arg in args]
        if not process:
            return _in_this_process(words)
        command = [sys.executable, "-m", "tidegate.cli", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
            try:
                out, err = process.communicate(timeout=120)
            finally:
                process.kill()
        return Ran(process.returncode, out, err, process.pid)

    return run


def pcap(
    packets: list[tuple[int, bytes]],
    *,
    order: str = "<",
    nanoseconds: bool = False,
    link_type: int = 1,
    wire_len: int | None = None,
) -> bytes:
    """A pcap file of packets with their times in nanoseconds."""
    magic = 0xA1B23C4D if nanoseconds else 0xA1B2C3D4
    out = struct.pack(order + "IHHiIII", magic, 2, 4, 0, 0, 65535, link_type)
    for time, data in packets:
        seconds, rest = divmod(time, 10**9)
        fraction = rest if nanoseconds else rest // 1000
        out += struct.pack(order + "IIII", seconds, fraction, len(data), wire_len or len(data)) + data
    return out


def pcapng(packets: list[tuple[int, bytes]], *, order: str = "<", resolution: int = 9) -> bytes:
    """A pcapng file; `resolution` is the exponent of the timestamps' unit."""

    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        length = len(body) + 12
        return struct.pack(order + "II", kind, length) + body + struct.pack(order + "I", length)

    out = block(0x0A0D0D0A, struct.pack(order + "IHHq", 0x1A2B3C4D, 1, 0, -1))
    option = struct.pack(order + "HHBxxx", 9, 1, resolution) + struct.pack(order + "HH", 0, 0)
    out += block(1, struct.pack(order + "HHI", 1, 0, 0) + option)
    out += block(0x0BAD, b"a block of a kind that nobody knows")
    for time, data in packets:
        stamp = time * 10**resolution // 10**9
        head = struct.pack(order + "IIIII", 0, stamp >> 32, stamp & 0xFFFFFFFF, len(data), len(data))
        out += block(6, head + data)
    return out


def read_pcap(path: Path) -> list[tuple[int, bytes]]:
    """Times in nanoseconds and packets of a file that `tidegate replay` wrote."""
    data = path.read_bytes()
    magic, _, _, _, _, _, link_type = struct.unpack_from("<IHHiIII", data)
    assert (magic, link_type) == (0xA1B23C4D, 1)
    at, packets = 24, []
    while at < len(data):
        seconds, rest, captured, _ = struct.unpack_from("<IIII", data, at)
        packets.append((seconds * 10**9 + rest, data[at + 16 : at + 16 + captured]))
        at += 16 + captured
    assert at == len(data)
    return packets


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """Chromium, by Playwright; the test is skipped without."""
    playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs chromium")
    with playwright.sync_playwright() as driver:
        made = driver.chromium.launch(executable_path=chromium, args=["--disable-gpu", "--no-first-run"])
        yield made
        made.close()
