"""What the tests of P4Runtime share: a program with everything in it, switches that run it, and a server in front of them."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate import p4 as programs
from tidegate.backends.common import build
from tidegate.control import SwitchApi
from tidegate.network import Network
from tidegate.p4runtime import Server
from tidegate.p4runtime.connection import Connection
from tidegate.p4runtime.messages import p4, parse_p4info

TEXT = Path(__file__).with_name("everything.p4").read_text()
LOOPBACK = "127.0.0.1:0"
CPU = 100
VRFS = {"tidegate/vrf": {"red": 1, "blue": 2}}


@pytest.fixture(scope="session")
def everything() -> programs.Program:
    return programs.Program.from_text(TEXT)


class Ids:
    """Ids by name, or by any end of it that is one object's."""

    def __init__(self, info: Any) -> None:
        self.info = info
        self._known: dict[str, int] = {}
        for descriptor, items in info.ListFields():
            if descriptor.name in ("pkg_info", "type_info"):
                continue
            for item in items:
                self._known[item.preamble.name] = item.preamble.id

    def __call__(self, name: str) -> int:
        (found,) = (i for n, i in self._known.items() if n == name or n.endswith(f".{name}"))
        return found


class Bench:
    """A pipeline with everything, a server in front of it, and a controller that is primary."""

    def __init__(self, program: programs.Program) -> None:
        self.pipeline = program.pipeline()
        self.server = Server(self.pipeline, program, address=LOOPBACK, translations=VRFS)
        self.ids = Ids(parse_p4info(program.p4info))

    def __enter__(self) -> Bench:
        self.server.start()
        self.primary = Connection(self.server.address)
        assert self.primary.next("arbitration").status.code == 0
        return self

    def __exit__(self, *_: object) -> None:
        self.primary.close()
        self.server.stop()

    def action(self, name: str, *values: bytes) -> Any:
        action = p4.Action(action_id=self.ids(name))
        for number, value in enumerate(values, 1):
            action.params.add(param_id=number, value=value)
        return action

    def entry(self, table: str, *matches: dict[str, Any], action: Any = None, **more: Any) -> Any:
        """A table entry: matches by field, as `{"exact": {"value": b"..."}}`; empty ones are left out."""
        entry = p4.TableEntry(table_id=self.ids(table), **more)
        for number, match in enumerate(matches, 1):
            if match:
                entry.match.add(field_id=number, **match)
        if action is not None:
            entry.action.action.CopyFrom(action)
        return p4.Entity(table_entry=entry)


@pytest.fixture
def bench(everything: programs.Program) -> Iterator[Bench]:
    with Bench(everything) as made:
        yield made


class Simulated:
    """A switch in a simulated network whose clock goes on by itself, for packets to and from controllers."""

    def __init__(self, program: programs.Program, ports: int = 4) -> None:
        self.lock = threading.RLock()
        net = Network()
        switch = net.switch("s", program, cpu_port=CPU)
        hosts = [net.host(f"h{i}") for i in range(ports)]
        for host in hosts:
            net.link(host, switch, rate="1 Gbit/s", delay="1 us")
        self._core, _ = build(net, 1, with_flows=False)
        self.surface = self._core.control(switch.number)
        self.api = SwitchApi("s", self.surface, [host.name for host in hosts], lambda *_: None)
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._go, daemon=True)

    def _go(self) -> None:
        now = 0
        while not self._stopping.wait(0.001):
            now += 1_000_000_000
            with self.lock:
                self._core.run_until(now)

    def __enter__(self) -> Simulated:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        self._thread.join()
