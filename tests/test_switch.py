"""`tidegate switch`: a P4 switch between real interfaces."""

from __future__ import annotations

import errno
import os
import re
import signal
import socket
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from io import StringIO
from pathlib import Path
from random import Random

import pytest
from rich.console import Console

from namespaces import (
    ETH_P_ALL,
    Host,
    Place,
    ip,
    needs_root,
    place,
    processors_of_networks,
    within,
    write_within,
)
from switches import (
    KINDS,
    LEARNING,
    MACS,
    METER,
    between,
    frame,
    interfaces,
    ports,
    run,
    until_running,
    wait_for,
)
from tidegate import addresses, p4
from tidegate._core import TidegateError
from tidegate.switch import running
from tidegate.switch.metrics import families, serve
from tidegate.switch.ports import Mode, SwitchPort, parse_port, parse_ports
from tidegate.switch.running import LiveSwitch
from tidegate.switch.watch import View

SO_RCVBUFFORCE = 33
DIGITS = "1" * 5000
"""More than Python reads as one number."""


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


def test_ports_are_read() -> None:
    assert parse_port("1@eth1") == SwitchPort(1, "eth1", "auto")
    assert parse_port("510@eth1.5", Mode.XDP) == SwitchPort(510, "eth1.5", "xdp")
    assert parse_port("0@tap:lab0", Mode.PACKET) == SwitchPort(0, "lab0", "tap")
    ports = parse_ports(["1@a", "2@b"], Mode.AUTO, ["2=100 Mbit/s"], ["1=10ms"])
    assert [(port.rate, port.delay) for port in ports] == [(None, 10_000_000_000), (100_000_000, 0)]


@pytest.mark.parametrize(
    ("given", "rates", "why"),
    [
        (["eth1"], [], "the port 'eth1': write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME"),
        (["x@eth1"], [], "the port 'x@eth1': write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME"),
        (["511@eth1"], [], "the port '511@eth1': ports are 0 to 510"),
        (["1@a", "1@b"], [], "the port '1@b': a has the number 1"),
        (["1@a", "2@a"], [], "the port '2@a': a is a port already"),
        (["1@a"], ["3=1 Mbit/s"], "--rate '3=1 Mbit/s': write PORT=VALUE with one of the ports 1"),
        ([f"{DIGITS}@a"], [], f"the port '{DIGITS}@a': write PORT@INTERFACE, as 1@eth1, or PORT@tap:NAME"),
        (
            ["1@a"],
            [f"{DIGITS}=1 Mbit/s"],
            f"--rate '{DIGITS}=1 Mbit/s': write PORT=VALUE with one of the ports 1",
        ),
    ],
)
def test_ports_that_make_no_sense(given: list[str], rates: list[str], why: str) -> None:
    with pytest.raises(TidegateError) as refused:
        parse_ports(given, Mode.AUTO, rates, [])
    assert str(refused.value) == why


@pytest.mark.parametrize("port", ["", "x", "65536", "-1", "\u0661", DIGITS])
def test_addresses_that_make_no_sense(port: str) -> None:
    with pytest.raises(TidegateError) as refused:
        addresses.parse(f"127.0.0.1:{port}")
    assert str(refused.value) == f"'127.0.0.1:{port}' is not an address; write HOST:PORT, as 127.0.0.1:9559"


@needs_root
@pytest.mark.parametrize("merge", [True, False])
@pytest.mark.parametrize(
    ("kind", "mtu"), [*((kind, 1500) for kind in KINDS), ("packet", 9000), ("auto", 9000)]
)
def test_frames_of_all_sizes_pass_as_they_are(kind: str, mtu: int, merge: bool) -> None:
    with place(2, mtu) as two:
        frames_of_all_sizes(two, kind, mtu, merge)


def frames_of_all_sizes(two: Place, kind: str, mtu: int, merge: bool) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind), merge=merge)
    between(live)
    one, other = two.hosts
    sent = [frame(1, 2, length) for length in (14, 15, 59, 60, 64, 1513, mtu + 14)]
    # A VLAN tag, two of them, and with the longest packet.
    for tags in (b"\x81\x00\x20\x05", b"\x88\xa8\x00\x07\x81\x00\x00\x05"):
        sent.append(MACS[2] + MACS[1] + tags + frame(1, 2, 100)[12:])
    sent.append(MACS[2] + MACS[1] + b"\x81\x00\x00\x05" + frame(1, 2, mtu + 14)[12:])
    with live:
        for each in sent:
            one.send(each)
        assert other.receive(len(sent)) == sent
        other.send(frame(2, 1))
        assert one.receive(1) == [frame(2, 1)]
        first, second = live.statistics()["ports"]
    assert first["kind"] == (kind if kind != "auto" else "packet")
    assert (first["received"], first["sent"], second["received"], second["sent"]) == (
        len(sent),
        1,
        1,
        len(sent),
    )
    assert first["received_bytes"] == sum(len(each) for each in sent)
    assert live.api.drops == {}


@needs_root
def test_the_kernel_receives_on_threads_of_its_own_while_that_is_asked_for(two: Place) -> None:
    many = len(os.sched_getaffinity(0)) > 2

    def threaded() -> list[str]:
        shown = ["cat", "/sys/class/net/p1/threaded", "/sys/class/net/p2/threaded"]
        done = subprocess.run(
            ["ip", "netns", "exec", two.name, *shown], capture_output=True, check=True, text=True
        )
        return done.stdout.split()

    for profile, asked, has in (
        ("latency", None, False),
        ("latency", True, True),
        ("throughput", None, many),
        ("throughput", True, True),
        ("throughput", False, False),
    ):
        live = LiveSwitch(p4.compile(LEARNING), ports(two, "xdp"), profile=profile, napi_threads=asked)
        between(live)
        with live:
            assert threaded() == [str(int(has))] * 2
            two.hosts[0].send(frame(1, 2))
            assert two.hosts[1].receive(1) == [frame(1, 2)]
        assert threaded() == ["0", "0"]
    # This process's own view of interfaces is what it was.
    assert Path("/sys/class/net/lo").exists()
    assert not Path("/sys/class/net/p1/threaded").exists()


@needs_root
def test_the_switch_s_thread_stays_on_a_processor(two: Place) -> None:
    allowed = os.sched_getaffinity(0)
    for processor, expected in ((None, allowed), (max(allowed), {max(allowed)})):
        live = LiveSwitch(p4.compile(LEARNING), ports(two, "xdp"), processor=processor)
        between(live)
        with live:
            two.hosts[0].send(frame(1, 2))
            assert two.hosts[1].receive(1) == [frame(1, 2)]
            assert processors_of_networks() == [expected]
        assert os.sched_getaffinity(0) == allowed
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "xdp"), processor=max(allowed) + 1)
    said = f"processor {max(allowed) + 1} is not one that this process may use; it may use {min(allowed)}"
    with pytest.raises(TidegateError, match=said), live:
        pass
    assert processors_of_networks() == []


@needs_root
def test_the_command_says_which_processors_there_are(two: Place) -> None:
    process = run(two, str(LEARNING), "-i", "1@p1", "--processor", "100000")
    _, said = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "processor 100000 is not one that this process may use; it may use" in said


@needs_root
def test_there_is_no_other_profile(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "xdp"), profile="fast")
    with pytest.raises(TidegateError, match="no live profile `fast`; known: latency, throughput"), live:
        pass


@needs_root
def test_a_tap_device_is_made_and_goes(two: Place) -> None:
    given = [SwitchPort(1, "p1", "auto", str(two.file)), SwitchPort(2, "lab0", "tap", str(two.file))]
    live = LiveSwitch(p4.compile(LEARNING), given)
    between(live)

    def in_use() -> socket.socket:
        opened = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(ETH_P_ALL))
        opened.bind(("lab0", ETH_P_ALL))
        return opened

    sent = [frame(1, 2, length) for length in (14, 60, 1514)]
    with live:
        with within(str(two.file), in_use) as device:
            two.hosts[1].socket, theirs = device, two.hosts[1].socket
            for each in sent:
                two.hosts[0].send(each)
            assert two.hosts[1].receive(3) == sent
            two.hosts[1].send(frame(2, 1))
            two.hosts[1].socket = theirs
        assert two.hosts[0].receive(1) == [frame(2, 1)]
        assert live.statistics()["ports"][1]["kind"] == "tap"
    assert "lab0" not in [name for name, *_ in interfaces(two)]


@needs_root
@pytest.mark.parametrize(("kind", "merge"), [(kind, merge) for kind in KINDS for merge in (True, False)])
def test_tcp_of_hosts_with_offloads_on(two: Place, kind: str, merge: bool) -> None:
    """Real stacks, that leave checksums and cutting to hardware that is not there, in IPv4 and IPv6."""
    for number, host in enumerate(two.hosts, 1):
        if kind == "xdp-generic":
            # It cannot take what is larger than a link's packet.
            command = ["ip", "netns", "exec", host.netns, "ethtool", "-K", "e0", "tso", "off", "gso", "off"]
            subprocess.run(command, check=True)
        write_within(host.netns, "/proc/sys/net/ipv6/conf/e0/disable_ipv6", "0")
        ip("-n", host.netns, "link", "set", "e0", "address", MACS[number].hex(":"))
        for net, length in (("10.0.0.", 24), ("fd00::", 64)):
            there = f"{net}{3 - number}"
            ip("-n", host.netns, "addr", "add", f"{net}{number}/{length}", "dev", "e0", "nodad")
            ip("-n", host.netns, "neigh", "replace", there, "lladdr", MACS[3 - number].hex(":"), "dev", "e0")
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind), merge=merge)
    between(live)
    data = Random(2).randbytes(2_000_000)
    with live:
        for family, address in ((socket.AF_INET, "10.0.0.2"), (socket.AF_INET6, "fd00::2")):
            server, client = (host_socket(host, family) for host in reversed(two.hosts))
            with server, client:
                server.bind((address, 5000))
                server.listen()
                sender = threading.Thread(target=send_all, args=(client, (address, 5000), data))
                sender.start()
                connection, _ = server.accept()
                connection.settimeout(20)
                with connection:
                    assert all_of(connection) == data
                sender.join()
        first, second = live.statistics()["ports"]
    assert first["completed"] > 0
    assert (first["segmented"] > 0) == (kind == "packet")
    # What was cut leaves together, but where that is not wanted.
    assert second["merged"] > 0 or kind != "packet" or not merge
    assert merge or first["merged"] == second["merged"] == 0


def host_socket(host: Host, family: int) -> socket.socket:
    opened = within(f"/run/netns/{host.netns}", lambda: socket.socket(family, socket.SOCK_STREAM))
    opened.settimeout(20)
    return opened


def all_of(connection: socket.socket) -> bytes:
    return b"".join(iter(lambda: connection.recv(1 << 20), b""))


def send_all(client: socket.socket, to: tuple[str, int], data: bytes) -> None:
    client.connect(to)
    client.sendall(data)
    client.shutdown(socket.SHUT_WR)


@needs_root
def test_frames_stay_in_order(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "xdp"))
    between(live)
    two.hosts[1].socket.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 16 << 20)
    with live:
        for number in range(5000):
            two.hosts[0].send(frame(1, 2)[:14] + number.to_bytes(4, "big") + bytes(46))
        numbers = [int.from_bytes(each[14:18], "big") for each in two.hosts[1].receive(5000)]
    assert numbers == list(range(5000))


@needs_root
def test_a_packet_generator_set_before_the_start_runs_though_nothing_comes(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "xdp"))
    between(live)
    live.api.generator_set(0, port=1, packet=frame(1, 2), period="10 ms")
    with live:
        assert two.hosts[1].receive(3) == [frame(1, 2)] * 3


@pytest.mark.live
def test_delay_and_rate_of_a_port(two: Place) -> None:
    one, other = ports(two, "auto")
    live = LiveSwitch(p4.compile(LEARNING), [one, replace(other, delay="40 ms", rate="8 Mbit/s")])
    between(live)
    with live:
        began = time.monotonic()
        for _ in range(10):
            two.hosts[0].send(frame(1, 2, 1000))
        frames = two.hosts[1].receive(10)
        spent = time.monotonic() - began
    # A millisecond to send each.
    assert len(frames) == 10
    assert 0.05 <= spent < 0.5


def flood(live: LiveSwitch, place: Place, sender: int, frames: int) -> None:
    """Sends frames of 986 bytes from the IP header on to the other host; the switch has received them."""
    before = live.api.statistics["received"]
    for _ in range(frames):
        place.hosts[sender].send(frame(sender + 1, 2 - sender, 1000))
    wait_for(lambda: live.api.statistics["received"] == before + frames)


@needs_root
def test_links_with_a_delay_hold_no_more_than_they_may(two: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    room = 100
    monkeypatch.setattr(running, "ON_WIRES", room * (986 + 512))
    one, other = ports(two, "packet")
    live = LiveSwitch(p4.compile(LEARNING), [one, replace(other, delay="1 h")])
    between(live)
    with live:
        flood(live, two, 0, 3 * room)
        assert live.api.drops["queue memory"] == 2 * room
        assert live.api.statistics["transmitted"] == room


@needs_root
def test_links_with_a_delay_have_equal_shares_of_what_they_may_hold(
    two: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is full takes nothing of the other's."""
    room = 100
    monkeypatch.setattr(running, "ON_WIRES", 2 * room * (986 + 512))
    live = LiveSwitch(p4.compile(LEARNING), [replace(port, delay="1 h") for port in ports(two, "packet")])
    between(live)
    with live:
        flood(live, two, 0, 3 * room)
        assert live.api.drops["queue memory"] == 2 * room
        flood(live, two, 1, 3 * room)
        assert live.api.drops["queue memory"] == 4 * room
        assert live.api.statistics["transmitted"] == 2 * room


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_a_control_plane_that_is_busy_costs_no_packet(two: Place, kind: str) -> None:
    live = LiveSwitch(p4.compile(METER), ports(two, kind))
    live.api.table_set_default("forward", "to_port", [2])
    sent, done = 3000, threading.Event()

    def traffic() -> None:
        for number in range(sent):
            two.hosts[0].send(frame(1, 2, 64 + number % 8))
        done.set()

    with live:
        sender = threading.Thread(target=traffic)
        sender.start()
        calls = 0
        while calls < 20 or not done.is_set():
            live.api.register_read("average")
            live.api.register_write("rate", [1, 2, 3], start=calls % 1000)
            calls += 1
        sender.join()
        wait_for(lambda: live.api.statistics["transmitted"] == sent)
        first, second = live.statistics()["ports"]
    assert (first["received"], first["overrun"], second["sent"], second["refused"]) == (sent, 0, sent, 0)


@needs_root
def test_the_view_shows_what_is_counted(two: Place) -> None:
    live = LiveSwitch(p4.compile(METER), ports(two, "packet"))
    live.api.register_write("rate", [77], start=5)
    shown = Console(file=StringIO(), width=120)
    with live, View(live, shown) as view:
        two.hosts[0].send(frame(1, 2))
        wait_for(lambda: live.api.statistics["received"] == 1)
        shown.print(view.content())
    text = shown.file.getvalue()
    assert re.search(r"^MeterIngress.rate 5 +77$", text, re.MULTILINE)
    assert re.search(r"^received +1$", text, re.MULTILINE)
    assert re.search(r"^1 +p1 +packet ", text, re.MULTILINE)


@needs_root
def test_a_view_that_cannot_be_shown_is_told_of(two: Place) -> None:
    live = LiveSwitch(p4.compile(METER), ports(two, "packet"))

    class Full(StringIO):
        def write(self, text: str) -> int:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    why = "--watch: standard output does not take it: No space left on device"
    with live, pytest.raises(TidegateError, match=why), View(live, Console(file=Full(), force_terminal=True)):
        pass


@needs_root
def test_metrics_are_served(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"))
    between(live)
    with live:
        server = serve(live, "127.0.0.1:0")
        try:
            two.hosts[0].send(frame(1, 2))
            two.hosts[1].receive(1)
            with urllib.request.urlopen(f"http://{server.address}/metrics") as answer:
                text = answer.read().decode()
        finally:
            server.stop()
    assert 'tidegate_port_packets_total{interface="p1",port="1",way="received"} 1.0' in text
    assert 'tidegate_table_entries{table="SwitchIngress.destination"} 2.0' in text


@needs_root
def test_what_is_counted_has_a_name(two: Place) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, "auto"), queue_packets=77)
    between(live)
    with live:
        two.hosts[0].send(frame(1, 2, 100))
        two.hosts[1].receive(1)
        found = {(family.name, labels): value for family in families(live) for labels, value in family.rows}
    assert found["port_packets", ("1", "p1", "received")] == 1
    assert found["port_bytes", ("2", "p2", "sent")] == 100
    assert found["queue_packets", ("2", "0")] == 1
    assert found["packets", ("transmitted",)] == 1
    assert found["table_entries", ("SwitchIngress.destination",)] == 2
    assert live.api.port_read(2).queues[0].packets == 77


@needs_root
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGINT])
def test_the_command_runs_until_it_is_told(two: Place, tmp_path: Path, ending: signal.Signals) -> None:
    commands = tmp_path / "commands"
    commands.write_text(f"table_add destination forward {MACS[2].hex(':')} => 9\n")
    process = run(two, str(LEARNING), "-i", "1@p1", "-i", "9@p2", "--commands", str(commands))
    try:
        said = until_running(process)
        assert "port 9: p2, " in said
        two.hosts[0].send(frame(1, 2))
        assert two.hosts[1].receive(1) == [frame(1, 2)]
    finally:
        process.send_signal(ending)
        _, rest = process.communicate(timeout=10)
    assert (process.returncode, rest) == (0, "")
