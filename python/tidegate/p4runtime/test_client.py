"""A controller runs unchanged in process, in the simulator, and by P4Runtime."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tidegate import TidegateError, _core, units
from tidegate import p4 as programs
from tidegate.backends.build import build
from tidegate.control import Controller, Digest, PacketIn, SwitchApi, TableEntry
from tidegate.control import operations as op
from tidegate.network import Network
from tidegate.p4runtime import Connection, RemoteSwitch, Server, connect, connection
from tidegate.p4runtime.conftest import CPU, LOOPBACK, VRFS, Bench, Simulated, frame, lldp, wait_for
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.messages import p4
from tidegate.systems.meter.controller import IngressPort, Meter, MeterController, Prefix

METER = Path(units.__file__).with_name("systems") / "meter" / "meter.p4"


@pytest.fixture
def both(everything: programs.Program) -> Iterator[tuple[SwitchApi, RemoteSwitch]]:
    """The same switch, in process and by P4Runtime."""
    with (
        Simulated(everything) as simulated,
        Server(simulated.api, everything, address=LOOPBACK, lock=simulated.lock, translations=VRFS) as server,
        connect(server.address, translations=VRFS) as remote,
    ):
        yield simulated.api, remote


def same(entries: list[TableEntry]) -> list[Any]:
    """Entries without their handles, which are each side's own."""
    rows = [(e.match, e.priority, e.action, e.values, e.packets, e.bytes) for e in entries]
    return sorted(rows, key=repr)


TABLES: list[tuple[str, list[int | str], str, list[int | str], int | None]] = [
    ("exact_table", ["02:00:00:00:00:01"], "forward", [3], None),
    ("exact_table", [7], "drop", [], None),
    ("lpm_table", ["10.0.0.0/8"], "mark", ["0x2a"], None),
    ("lpm_table", ["0/0"], "NoAction", [], None),
    ("ternary_table", ["0x100&&&0xff00", 7], "mark", [1], 5),
    ("range_table", ["5->256"], "mark", [2], 0),
    ("range_table", ["0->65535"], "mark", [3], 9),
    ("optional_table", ["9"], "mark", [3], 1),
    ("vrfs", [1], "in_vrf", [900], None),
]


@pytest.mark.parametrize(("table", "match", "action", "values", "priority"), TABLES)
def test_tables(
    both: tuple[SwitchApi, RemoteSwitch],
    table: str,
    match: list[int | str],
    action: str,
    values: list[int | str],
    priority: int | None,
) -> None:
    local, remote = both
    local.table_add(table, match, action, values, priority)
    expected = same(local.table_entries(table))
    assert same(remote.table_entries(table)) == expected
    local.table_clear(table)
    handle = remote.table_add(table, match, action, values, priority)
    assert same(local.table_entries(table)) == expected
    assert [entry.handle for entry in remote.table_entries(table)] == [handle]
    with pytest.raises(TidegateError, match="already"):
        remote.table_add(table, match, action, values, priority)
    if values:
        for nonsense in (1.5, None, -1, "x"):
            with pytest.raises(TidegateError):
                remote.table_modify(table, handle, action, [nonsense])  # type: ignore[list-item]
    plain = "drop" if table == "exact_table" else "NoAction"
    remote.table_modify(table, handle, plain)
    assert local.table_entries(table)[0].action.endswith(plain)
    remote.table_delete(table, handle)
    assert local.table_entries(table) == []
    with pytest.raises(TidegateError, match="no entry"):
        remote.table_delete(table, handle)


def test_handles_stay_those_of_their_entries(both: tuple[SwitchApi, RemoteSwitch]) -> None:
    _, remote = both
    first, second, third = (remote.table_add("exact_table", [key], "forward", [key]) for key in (1, 2, 3))
    remote.table_delete("exact_table", first)
    fourth = remote.table_add("exact_table", [4], "drop")
    assert len({second, third, fourth}) == 3
    remote.table_modify("exact_table", third, "drop")
    actions = {entry.match[0].value: entry.action for entry in remote.table_entries("exact_table")}
    assert {key: name.rpartition(".")[2] for key, name in actions.items()} == {
        2: "forward",
        3: "drop",
        4: "drop",
    }


def test_defaults_profiles_and_groups(both: tuple[SwitchApi, RemoteSwitch]) -> None:
    local, remote = both
    remote.table_set_default("learning", "learn")
    remote.table_clear("initial_table")
    assert len(local.table_entries("initial_table")) == 1, "the const one stays"
    for switch in (local, remote):
        members = [switch.member_add("choices", "forward", [port]) for port in (1, 2)]
        switch.member_modify("choices", members[0], "drop")
        group = switch.group_add("choices", members[:1])
        switch.group_join("choices", group, members[1])
        switch.group_leave("choices", group, members[0])
        handle = switch.table_add_group("selected", [1], group)
        other = switch.table_add_member("selected", [2], members[0])
        assert sorted(e.action for e in switch.table_entries("selected")) == ["group", "member"]
        with pytest.raises(TidegateError):
            switch.group_delete("choices", group)
        for entry in (handle, other):
            switch.table_delete("selected", entry)
        switch.group_delete("choices", group)
        for member in members:
            switch.member_delete("choices", member)


@pytest.mark.slow
def test_registers_counters_and_meters(both: tuple[SwitchApi, RemoteSwitch]) -> None:
    local, remote = both
    values = np.arange(40_000, dtype=np.uint64) * 7
    remote.register_write("cells", values, 100)
    assert (local.register_read("cells", 100, 40_000) == values).all()
    assert (remote.register_read("cells") == local.register_read("cells")).all()
    assert (remote.register_read("cells", 105, 3) == values[5:8]).all()
    remote.register_write("signed_cells", [0x9D, 5])
    assert (
        local.register_read("signed_cells").tolist()
        == remote.register_read("signed_cells").tolist()
        == [157, 5, 0, 0]
    )
    for wrong in ([-1], [1 << 48], [0.5]):
        with pytest.raises(TidegateError):
            remote.register_write("cells", wrong)
    with pytest.raises(TidegateError, match="65536 cells"):
        remote.register_read("cells", 65_000, 1000)
    local.command("counter_write packets 2 5 50")
    assert remote.counter_read("packets").tolist() == local.counter_read("packets").tolist()
    assert remote.counter_read("packets", 2, 1).tolist() == [[5, 50]]
    remote.counter_reset("packets")
    assert not local.counter_read("packets").any()
    remote.meter_set("rates", 1, committed_rate="1 Mbit/s", committed_burst="10 kB", peak_rate="2 Mbit/s")
    answer = local.command("meter_get_rates rates 1")
    local.meter_set("rates", 1, committed_rate="1 Mbit/s", committed_burst="10 kB", peak_rate="2 Mbit/s")
    assert local.command("meter_get_rates rates 1") == answer
    remote.meter_set("rates", None, committed_rate="1 Mbit/s", committed_burst="10 kB", peak_rate="2 Mbit/s")
    handle = remote.table_add("exact_table", [1], "drop")
    remote.meter_set_packets("exact_rates", handle, committed_rate=5, committed_burst=6)
    local.command("counter_write exact_hits 0 5 50")
    assert remote.table_entries("exact_table")[0].packets == 5
    remote.counter_reset("exact_hits")
    assert remote.table_entries("exact_table")[0].packets == 0


def test_copies_and_what_p4runtime_has_not(both: tuple[SwitchApi, RemoteSwitch]) -> None:
    local, remote = both
    for copies in ([1, 2], [(3, 7)]):
        remote.multicast_set(5, copies)
        remote.mirror_set(9, 1, truncate=100)
        remote.mirror_set(9, group=5)
        assert "group 5" in local.command("mc_dump")
    remote.mirror_set(9)
    remote.mirror_set(9)
    remote.multicast_delete(5)
    remote.multicast_delete(5)
    assert local.command("mc_dump") == ""
    calls: list[Callable[[], object]] = [
        lambda: remote.drops,
        lambda: remote.statistics,
        lambda: remote.command("show_tables"),
        lambda: remote.port_read(1),
        lambda: remote.queue_read(1),
        lambda: remote.generator_stop(1),
        lambda: remote.table_add("nothing", [], "drop"),
        lambda: remote.table_add("exact_table", [1, 2], "drop"),
        lambda: remote.table_add("exact_table", [1], "forward"),
        lambda: remote.table_add("exact_table", [-1], "drop"),
        lambda: remote.table_add("ternary_table", ["0&&&0", 1], "NoAction"),
    ]
    for call in calls:
        with pytest.raises(TidegateError):
            call()
    assert abs(remote.now - local.now) < units.PS_PER_S


def test_only_a_primary_stands_for_a_switch(both: tuple[SwitchApi, RemoteSwitch]) -> None:
    _, remote = both
    address = remote.connection._channel._channel.target().decode()
    with pytest.raises(TidegateError, match="election id"):
        connect(address, election_id=1)
    with connect(address, election_id=2), pytest.raises(TidegateError, match="another controller is primary"):
        remote.run(Controller(), "10 s")


class Everything(Controller):
    """Learns, sends back what it is sent, and counts its ticks."""

    period = "5 ms"

    def start(self, switch: SwitchApi) -> None:
        self.ticks = 0
        self.learned: set[tuple[int, int]] = set()
        self.packets: list[bytes] = []
        switch.table_set_default("learning", "learn")

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.ticks += 1

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        self.learned.add((digest.fields["from"], digest.fields["port"]))
        switch.table_add("learning", [digest.fields["from"]], "NoAction")

    def on_packet_in(self, now: int, switch: SwitchApi, packet: PacketIn) -> None:
        self.packets.append(packet.data)
        # To port 2, seven bits of padding.
        switch.packet_out((2 << 7).to_bytes(2) + packet.data[2:])


def traffic(net: Network, surface: Any) -> None:
    surface.act(op.GeneratorSet(1, (3, lldp(5), 20_000_000_000)))
    surface.act(op.GeneratorSet(2, (1, frame(source=0xABC), 20_000_000_000)))


def test_digests_packets_and_ticks_reach_a_controller(everything: programs.Program) -> None:
    """What it sees by P4Runtime is what it sees in the simulator."""
    net = Network()
    switch = net.switch("s", everything, cpu_port=CPU)
    for number in range(4):
        net.link(net.host(f"h{number}"), switch, rate="1 Gbit/s", delay="1 us")
    local = Everything()

    class Traffic(Controller):
        def start(self, switch: SwitchApi) -> None:
            traffic(net, switch._core)

    net.control(Traffic())
    net.control(local)
    net.run("50 ms")
    remote = Everything()
    with (
        Simulated(everything) as simulated,
        Server(simulated.api, everything, address=LOOPBACK, lock=simulated.lock, poll_every=0.002) as server,
        connect(server.address) as far,
    ):
        with simulated.lock:
            traffic(net, simulated.surface)
        far.run(remote, "20 s", lambda: bool(remote.learned and remote.packets and remote.ticks > 2))
        wait_for(lambda: simulated.surface.act(op.StatisticsRead())["packet_outs"] > 0)
    assert remote.learned == local.learned == {(0xABC, 1)}
    assert remote.packets[0] == local.packets[0]
    assert (remote.ticks > 2, local.ticks) == (True, 10)


def metered() -> tuple[Any, SwitchApi, list[Any], programs.Program]:
    """A meter's network with a flow, and its switch."""
    net = Network()
    program = programs.compile(METER)
    switch = net.switch("meter", program)
    a, b = net.host("a"), net.host("b")
    for host in (a, b):
        net.link(host, switch, rate="100 Mbit/s", delay="100 us")
    net.udp(a, b, rate="30 Mbit/s")
    core, _ = build(net, 1, with_flows=True)
    notes: list[Any] = []
    api = SwitchApi(
        "meter",
        _core.SwitchControl.of_switch(core, switch.number),
        ["a", "b"],
        lambda *note: notes.append(note),
    )
    return core, api, notes, program


def drive(core: Any, switch: SwitchApi) -> None:
    """What is done to a meter, with the simulator's time."""
    meters = [
        Meter(5, "10 Mbit/s", (IngressPort(0),)),
        Meter(7, "1 Mbit/s", (Prefix("10.1.0.0/16"), Prefix("fd00::/8", "to"))),
    ]
    ports = {"02:00:00:00:00:01": 0, "02:00:00:00:00:02": 1}
    controller = MeterController(meters, ports=ports)
    controller.start(switch)
    for second in range(1, 5):
        core.run_until(second * units.PS_PER_S)
        controller.tick(switch.now, switch)
        if second == 2:
            controller.retarget(switch, 5, "15 Mbit/s")
            controller.remove(switch, 7)
    # One that comes later finds what is there.
    again = MeterController([], ports=ports)
    again.start(switch)
    core.run_until(5 * units.PS_PER_S)
    again.tick(switch.now, switch)


def test_the_meter_s_controller_does_the_same_to_the_last_bit() -> None:
    core, local, notes, program = metered()
    drive(core, local)
    other, api, _, _ = metered()
    said: list[Any] = []
    with (
        Server(api, program, address=LOOPBACK) as server,
        RemoteSwitch(Connection(server.address), "meter", note=lambda *note: said.append(note)) as remote,
    ):
        drive(other, remote)
    assert said == notes
    assert len(said) >= 5
    for name in ("level", "average", "updated", "rate", "target"):
        assert (api.register_read(name) == local.register_read(name)).all(), name
    for name in ("passed", "dropped", "marked"):
        assert (api.counter_read(name) == local.counter_read(name)).all(), name
    for table in ("meters", "forward", "ports", "sources4", "targets6"):
        assert same(api.table_entries(table)) == same(local.table_entries(table)), table
    passed = local.counter_read("passed", 5, 1)[0].tolist()
    assert passed[0] > 1000, "packets were metered"


def test_a_controller_hears_when_the_server_ends(everything: programs.Program) -> None:
    server = Server(everything.pipeline(), everything, address=LOOPBACK)
    server.start()
    with connect(server.address) as switch:
        stopping = threading.Timer(0.1, server.stop)
        stopping.start()
        with pytest.raises(TidegateError, match="UNAVAILABLE"):
            switch.run(Controller(), "30 s")
        stopping.join()


def test_messages_that_nobody_takes_are_dropped_and_counted(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "MOST_WAITING", 3)
    with Connection(bench.server.address, election_id=None) as backup:
        for _ in range(9):
            backup.arbitrate(None)
        wait_for(lambda: backup.heard.dropped > 0)
        with pytest.raises(TidegateError, match=r"no digest in 0\.1 s; [1-9]\d* messages .* were dropped"):
            backup.next("digest", 0.1)
        # The end of the stream is not.
        backup.heard.put(TidegateError("it has ended"))
        with pytest.raises(TidegateError, match="it has ended"):
            backup.next("digest", 1)


def test_messages_that_wait_have_a_budget_of_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "MOST_WAITING_BYTES", 100)
    large, small = (p4.StreamMessageResponse(packet=p4.PacketIn(payload=bytes(size))) for size in (200, 30))
    heard = connection.Heard()
    # One that is alone is taken.
    heard.offer(large)
    heard.offer(small)
    assert (heard.qsize(), heard.dropped) == (1, 1)
    assert heard.get() is large
    for _ in range(4):
        heard.offer(small)
    assert (heard.qsize(), heard.dropped) == (2, 3)
    assert heard.get() is small
    heard.offer(small)
    assert (heard.qsize(), heard.dropped) == (2, 3)


def test_a_server_that_sends_too_much_or_nothing(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    entity = p4.Entity(register_entry={"register_id": bench.ids("cells")})
    wrong = [("INSERT", p4.Entity(table_entry={"table_id": 1}))] * 300
    for name, call, why in (
        ("MOST_MESSAGE", lambda switch: list(switch.read(entity)), "larger than max"),
        ("MOST_METADATA", lambda switch: switch.write(*wrong), "metadata"),
    ):
        with monkeypatch.context() as patched:
            patched.setattr(connection, name, 1000)
            with Connection(bench.server.address, election_id=9) as switch:
                switch.next("arbitration")
                with pytest.raises(Refused, match=why) as caught:
                    call(switch)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
    monkeypatch.setattr(connection, "PATIENCE_S", 0.2)
    with bench.server._busy, pytest.raises(Refused) as caught:
        bench.primary.read(entity)
    assert caught.value.code == "DEADLINE_EXCEEDED"
    with pytest.raises(TidegateError, match=r"no digest in 0\.1 s"):
        bench.primary.next("digest", 0.1)
