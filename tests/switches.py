"""What tests of live switches share: a learning switch between two hosts, in process or as the command."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from namespaces import Place
from tidegate.switch.ports import SwitchPort
from tidegate.switch.running import LiveSwitch

PROGRAMS = Path(__file__).parent.parent / "examples/p4"
ROUTER = PROGRAMS / "ipv4_router/ipv4_router.p4"
LEARNING = PROGRAMS / "learning_switch/learning_switch.p4"
MACS = [bytes([2, 0, 0, 0, 0, number]) for number in range(3)]
METER = PROGRAMS.parent.parent / "python/tidegate/systems/meter/meter.p4"
KINDS = ["packet", "xdp", "xdp-generic"]


def frame(source: int, target: int, length: int = 60) -> bytes:
    """A frame of a type of its own."""
    head = MACS[target] + MACS[source] + b"\x88\xb5"
    return head + bytes(index % 251 for index in range(length - len(head)))


def ports(at: Place, kind: str) -> list[SwitchPort]:
    return [SwitchPort(host.number, host.interface, kind, str(at.file)) for host in at.hosts]


@contextmanager
def waited_for(live: LiveSwitch) -> Iterator[None]:
    """A thread waits for the running switch, which hands its messages over."""
    ended = threading.Event()
    waiting = threading.Thread(target=live.wait, args=(ended.is_set,))
    waiting.start()
    try:
        yield
    finally:
        ended.set()
        waiting.join()


def wait_for(what: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not what():
        assert time.monotonic() < end, "it has not come"
        time.sleep(0.005)


def between(live: LiveSwitch) -> None:
    """Send by addresses."""
    for number in (1, 2):
        live.api.table_add("destination", [MACS[number].hex(":")], "forward", [number])
        live.api.table_add("source", [MACS[number].hex(":")], "NoAction")


def run(at: Place, *words: str, under: Sequence[str] = ()) -> subprocess.Popen[str]:
    """`tidegate switch` in the switch's namespace, under another program if one is given."""
    switch = [sys.executable, "-m", "tidegate.cli", "switch", *words]
    command = ["ip", "netns", "exec", at.name, *under, *switch]
    return subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def until_running(process: subprocess.Popen[str]) -> str:
    """What it says until it runs."""
    assert process.stderr is not None
    said = ""
    for line in process.stderr:
        said += line
        if line.startswith("running"):
            return said
    raise AssertionError(f"it has ended with {process.wait()}: {said}")


def interfaces(at: Place) -> list[tuple[object, ...]]:
    """What the switch's namespace has: names, longest packets, promiscuity and XDP programs."""
    done = subprocess.run(
        ["ip", "-n", at.name, "-d", "-j", "link"], capture_output=True, text=True, check=True
    )
    keys = ("ifname", "mtu", "promiscuity", "xdp", "txqlen", "max_mtu")
    return [tuple(str(link.get(key)) for key in keys) for link in json.loads(done.stdout)]
