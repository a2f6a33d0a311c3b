"""What the tests of P4Runtime share: a program with everything in it, switches that run it, and a server in front of them."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import grpc
import pytest

from tidegate import _core
from tidegate import p4 as programs
from tidegate.backends.build import build
from tidegate.control import SwitchApi
from tidegate.network import Network
from tidegate.p4runtime import Limits, Server
from tidegate.p4runtime.connection import Connection, Refused
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


class Entities:
    """Entities of a program with everything."""

    def __init__(self, info: Any) -> None:
        self.ids = Ids(info)

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


class Bench(Entities):
    """A pipeline with everything, a server in front of it, and a controller that is primary."""

    def __init__(self, program: programs.Program) -> None:
        super().__init__(parse_p4info(program.p4info))
        self.pipeline = program.pipeline()
        self.server = Server(self.pipeline, program, address=LOOPBACK, translations=VRFS)

    def __enter__(self) -> Bench:
        self.server.start()
        self.primary = Connection(self.server.address)
        assert self.primary.next("arbitration").status.code == 0
        return self

    def __exit__(self, *_: object) -> None:
        self.primary.close()
        self.server.stop()


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
        self.surface = _core.SwitchControl.of_switch(self._core, switch.number)
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


# Messages.


def exact(value: bytes) -> dict[str, Any]:
    return {"exact": {"value": value}}


def code(error: Refused, index: int = 0) -> str:
    return p4_code(error.errors[index].canonical_code)


def p4_code(number: int) -> str:
    names = {
        0: "OK",
        3: "INVALID_ARGUMENT",
        5: "NOT_FOUND",
        6: "ALREADY_EXISTS",
        7: "PERMISSION_DENIED",
        8: "RESOURCE_EXHAUSTED",
        9: "FAILED_PRECONDITION",
        10: "ABORTED",
        11: "OUT_OF_RANGE",
        12: "UNIMPLEMENTED",
    }
    return names[number]


def refused(bench: Bench, kind: str, entity: Any) -> str:
    with pytest.raises(Refused) as caught:
        bench.primary.write((kind, entity))
    assert caught.value.code == "UNKNOWN"
    return code(caught.value)


def frame(to: int = 1, source: int = 2, kind: int = 0x88B5, probe: bytes = bytes(8)) -> bytes:
    return to.to_bytes(6) + source.to_bytes(6) + kind.to_bytes(2) + probe + bytes(40)


def member(bench: Entities, profile: str, number: int, *action: Any) -> Any:
    made = p4.ActionProfileMember(action_profile_id=bench.ids(profile), member_id=number)
    if action:
        made.action.CopyFrom(bench.action(*action))
    return p4.Entity(action_profile_member=made)


def group(
    bench: Entities, number: int, *shares: tuple[int, int], size: int = 8, profile: str = "choices"
) -> Any:
    made = p4.ActionProfileGroup(action_profile_id=bench.ids(profile), group_id=number, max_size=size)
    for index, weight in shares:
        made.members.add(member_id=index, weight=weight)
    return p4.Entity(action_profile_group=made)


def led(bench: Entities, table: str, **to: Any) -> Any:
    entity = bench.entry(table, exact(b"\x01"))
    for name, value in to.items():
        setattr(entity.table_entry.action, name, value)
    return entity


def one_shot(bench: Entities, *choices: tuple[int, int]) -> Any:
    entity = bench.entry("selected", exact(b"\x01"))
    entity.table_entry.action.action_profile_action_set.SetInParent()
    for port, weight in choices:
        one = entity.table_entry.action.action_profile_action_set.action_profile_actions.add(weight=weight)
        one.action.CopyFrom(bench.action("forward", bytes([port])))
    return entity


def register(bench: Entities, name: str, index: int | None = None, value: bytes | None = None) -> Any:
    entry = p4.RegisterEntry(register_id=bench.ids(name))
    if index is not None:
        entry.index.index = index
        entry.index.SetInParent()
    if value is not None:
        entry.data.bitstring = value
    return p4.Entity(register_entry=entry)


def multicast(number: int, *copies: tuple[int, int], **more: Any) -> Any:
    entry = p4.MulticastGroupEntry(multicast_group_id=number, **more)
    for port, instance in copies:
        entry.replicas.add(port=bytes([port]), instance=instance)
    return p4.Entity(packet_replication_engine_entry={"multicast_group_entry": entry})


def clone_session(number: int, *copies: tuple[int, int], **more: Any) -> Any:
    entry = p4.CloneSessionEntry(session_id=number, **more)
    for port, instance in copies:
        entry.replicas.add(port=bytes([port]), instance=instance)
    return p4.Entity(packet_replication_engine_entry={"clone_session_entry": entry})


def value_set(bench: Entities, *values: bytes) -> Any:
    entry = p4.ValueSetEntry(value_set_id=bench.ids("probes"))
    for value in values:
        entry.members.add().match.add(field_id=1, exact={"value": value})
    return p4.Entity(value_set_entry=entry)


def wait_for(holds: Callable[[], bool]) -> None:
    until = time.monotonic() + 20
    while not holds():
        assert time.monotonic() < until, "it did not come to hold in 20 s"
        time.sleep(0.002)


def lldp(tag: int = 0) -> bytes:
    return bytes(6) + tag.to_bytes(6) + b"\x88\xcc" + bytes(46)


class Served:
    """A server with some limits, and its primary."""

    def __init__(self, server: Server, primary: Connection, ids: Ids) -> None:
        self.server, self.primary, self.ids = server, primary, ids

    def entry(self, key: int) -> Any:
        entry = p4.TableEntry(table_id=self.ids("exact_table"))
        entry.match.add(field_id=1, **exact(key.to_bytes(6)))
        entry.action.action.action_id = self.ids("drop")
        return p4.Entity(table_entry=entry)

    def is_well(self) -> None:
        """The primary writes and reads."""
        self.primary.write(("INSERT", self.entry(77)))
        self.primary.write(("DELETE", self.entry(77)))
        assert self.primary.read(p4.Entity(counter_entry={}))


@contextmanager
def served(program: programs.Program, **given: int) -> Iterator[Served]:
    limits = Limits(**given)
    with (
        Server(program.pipeline(), program, address=LOOPBACK, translations=VRFS, limits=limits) as server,
        Connection(server.address) as primary,
    ):
        assert primary.next("arbitration").status.code == 0
        yield Served(server, primary, Ids(parse_p4info(program.p4info)))


def channel(address: str) -> grpc.Channel:
    """A connection of its own."""
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        # It takes no more than 64 KiB in advance.
        ("grpc.http2.bdp_probe", 0),
        ("grpc.http2.lookahead_bytes", 65_536),
    ]
    return grpc.insecure_channel(address, options=options)


def call(over: grpc.Channel, name: str, kind: str = "stream_stream") -> Any:
    """A call of which bytes are sent and received."""
    return getattr(over, kind)(f"/p4.v1.P4Runtime/{name}")
