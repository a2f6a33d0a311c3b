"""What a live switch does about ports that cannot be opened, interfaces that go away, garbage, and a violent end."""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import pytest

from namespaces import Place, ip, needs_root, place
from switches import KINDS, LEARNING, MACS, ROUTER, between, frame, interfaces, ports, run, until_running
from tidegate import p4
from tidegate._core import TidegateError
from tidegate.switch.ports import SwitchPort
from tidegate.switch.running import LiveSwitch


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


@needs_root
@pytest.mark.parametrize(
    ("given", "why"),
    [
        (SwitchPort(2, "p9"), "there is no interface p9 in {file}; `ip link` lists those there are"),
        (
            SwitchPort(2, "a/b"),
            '"a/b" is not the name of an interface: 1 to 15 characters, no space and no /',
        ),
        (SwitchPort(2, "p1"), "interface p1 is taken: it is a port of a running Tidegate already"),
        (
            SwitchPort(2, "p2", "tap"),
            "TAP device p2: an interface of that name exists but is not a TAP device",
        ),
        (SwitchPort(2, "idle"), "interface idle is down; `ip link set idle up` changes that"),
        (
            SwitchPort(2, "large", "xdp"),
            "interface large: its MTU of 9000 is too large for AF_XDP, which takes 3810; use the mode packet",
        ),
        (
            SwitchPort(2, "p2", "xdp", "/run/netns/none"),
            "the network namespace /run/netns/none: no such file or directory",
        ),
    ],
)
def test_ports_that_cannot_be_opened(two: Place, given: SwitchPort, why: str) -> None:
    ip("-n", two.name, "link", "add", "idle", "type", "veth", "peer", "large")
    ip("-n", two.name, "link", "set", "large", "mtu", "9000", "up")
    before = interfaces(two)
    there = replace(given, netns=given.netns or str(two.file))
    live = LiveSwitch(p4.compile(LEARNING), [ports(two, "auto")[0], there])
    with pytest.raises(TidegateError) as refused, live:
        pass
    assert str(refused.value) == why.format(file=two.file)
    # Nothing has stayed, and the interface is free again.
    assert interfaces(two) == before
    with LiveSwitch(p4.compile(LEARNING), ports(two, "auto")):
        assert interfaces(two) != before
    assert interfaces(two) == before


@needs_root
def test_one_interface_is_not_two_switches_port(two: Place) -> None:
    one, other = (LiveSwitch(p4.compile(LEARNING), ports(two, "packet")) for _ in range(2))
    with one, pytest.raises(TidegateError, match="p1 is taken"), other:
        pass


def hearing(live: LiveSwitch) -> Callable[[str], bool]:
    """Whether a switch has said something since this was called."""
    told: list[str] = []

    def said(what: str) -> bool:
        told.extend(live.core.live_messages())
        return any(what in one for one in told)

    return said


def up(live: LiveSwitch) -> list[bool]:
    """Of each port."""
    return [port["up"] for port in live.statistics()["ports"]]


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_an_interface_that_goes_down_and_away(two: Place, kind: str) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind))
    between(live)
    with live:
        ip("-n", two.name, "link", "set", "p2", "down")
        assert up(live) == [True, False]
        two.hosts[0].send(frame(1, 2))
        ip("-n", two.name, "link", "set", "p2", "up")
        assert up(live) == [True, True]
        two.hosts[0].send(frame(1, 2, 77))
        assert two.hosts[1].receive(2, 0.5)[-1:] == [frame(1, 2, 77)]
        ip("-n", two.name, "link", "del", "p2")
        two.hosts[0].send(frame(1, 2))
        before = live.statistics()
        time.sleep(0.2)
        after = live.statistics()
    assert not after["ports"][1]["up"]
    # It does not keep the thread awake.
    assert after["wakeups"] - before["wakeups"] < 10


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_an_interface_that_is_made_anew_is_opened_again(two: Place, kind: str) -> None:
    """Another one of the same name: what was bound to the old one hears nothing more, and its name says that it is up."""
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind))
    between(live)
    said = hearing(live)
    with live:
        two.hosts[0].send(frame(1, 2))
        assert two.hosts[1].receive(1) == [frame(1, 2)]
        sent = live.statistics()["ports"][1]["sent"]
        ip("-n", two.name, "link", "del", "p2")
        wait_for(lambda: said("interface p2 is gone; the other ports go on"))
        assert up(live) == [True, False]
        # The others go on; what was to leave there is counted.
        two.hosts[0].send(frame(1, 2))
        wait_for(lambda: live.statistics()["ports"][1]["refused"] == 1)
        two.hosts[1] = two.again(two.hosts[1])
        wait_for(lambda: said("interface p2 is back: "))
        wait_for(lambda: up(live) == [True, True])
        for number in range(3):
            two.hosts[0].send(frame(1, 2, number))
        assert two.hosts[1].receive(3) == [frame(1, 2, number) for number in range(3)]
        two.hosts[1].send(frame(2, 1))
        assert two.hosts[0].receive(1) == [frame(2, 1)]
        assert live.statistics()["ports"][1]["sent"] == sent + 3


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_an_interface_that_gets_its_name_back_is_opened_again(two: Place, kind: str) -> None:
    """The same interface, with the number that it had: the port that was there has to be gone before it is opened."""
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind))
    between(live)
    with live:
        two.hosts[0].send(frame(1, 2))
        assert two.hosts[1].receive(1) == [frame(1, 2)]
        ip("-n", two.name, "link", "set", "p2", "name", "other")
        wait_for(lambda: up(live) == [True, False])
        # Nothing of the switch is left at it.
        wait_for(lambda: next(one for one in interfaces(two) if one[0] == "other")[2:4] == ("0", "None"))
        ip("-n", two.name, "link", "set", "other", "name", "p2")
        wait_for(lambda: up(live) == [True, True])
        for number in range(3):
            two.hosts[0].send(frame(1, 2, number))
        assert two.hosts[1].receive(3) == [frame(1, 2, number) for number in range(3)]
        assert live.statistics()["ports"][1]["sent"] == 4


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_to_leave_by_an_interface_that_is_down_is_refused(two: Place, kind: str) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind))
    between(live)
    with live:
        ip("-n", two.name, "link", "set", "p2", "down")
        # What is noticed with the first one may leave late: it is in the ring.
        two.hosts[0].send(frame(1, 2))
        wait_for(lambda: live.statistics()["ports"][0]["received"] == 1)
        for number in range(2, 5):
            two.hosts[0].send(frame(1, 2, number))
        wait_for(lambda: live.statistics()["ports"][0]["received"] == 4)
        wait_for(lambda: live.statistics()["ports"][1]["refused"] >= 3)
        ip("-n", two.name, "link", "set", "p2", "up")
        two.hosts[0].send(frame(1, 2, 77))
        came = two.hosts[1].receive(2, 0.5)
    assert came[-1] == frame(1, 2, 77)
    assert [one for one in came[:-1] if one != frame(1, 2)] == []


@needs_root
def test_memory_that_may_not_be_locked(two: Place) -> None:
    # As in a service: some of root's rights, and the usual limit.
    few = [
        "ip",
        "netns",
        "exec",
        two.name,
        "prlimit",
        "--memlock=65536",
        "setpriv",
        "--bounding-set=-ipc_lock",
    ]
    command = [sys.executable, "-m", "tidegate.cli", "switch", str(LEARNING), "-i", "1@p1", "--mode", "xdp"]
    done = subprocess.run([*few, *command], capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "interface p1: no AF_XDP socket on queue 0: 8 MiB of memory cannot be locked; raise the limit, by `ulimit -l unlimited` or "
        "LimitMEMLOCK=infinity in a unit of systemd, or give CAP_IPC_LOCK"
    )


@needs_root
@pytest.mark.parametrize("kind", ["packet", "xdp", "xdp-generic"])
def test_an_interface_with_another_mtu_is_opened_again(two: Place, kind: str) -> None:
    live = LiveSwitch(p4.compile(LEARNING), ports(two, kind))
    between(live)
    said = hearing(live)

    long = frame(1, 2) + bytes(2000)
    with live:
        for host in two.hosts:
            ip("-n", two.name, "link", "set", host.interface, "mtu", "3000")
            ip("-n", host.netns, "link", "set", "e0", "mtu", "3000")
        for host in two.hosts:
            wait_for(partial(said, f"interface {host.interface} has another MTU, 3000: it is opened again"))
            wait_for(partial(said, f"interface {host.interface} is back: "))
        two.hosts[0].send(long)
        assert two.hosts[1].receive(1) == [long]
        assert [port["mtu"] for port in live.statistics()["ports"]] == [3000, 3000]


@needs_root
@pytest.mark.parametrize("kind", ["xdp", "xdp-generic"])
def test_vlan_tags_stay_in_frames_while_a_port_is_open(two: Place, kind: str) -> None:
    def takes_tags_off() -> bool:
        done = subprocess.run(
            ["ip", "netns", "exec", two.name, "ethtool", "-k", "p1"],
            capture_output=True,
            text=True,
            check=True,
        )
        return "rx-vlan-offload: on" in done.stdout

    assert takes_tags_off()
    with LiveSwitch(p4.compile(LEARNING), ports(two, kind)):
        assert not takes_tags_off()
    assert takes_tags_off()


def wait_for(condition: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@needs_root
def test_no_other_user_can_keep_a_switch_from_starting(two: Place) -> None:
    """Anybody can bind a name in the abstract namespace."""
    squat = (
        "import os, socket, sys; held = []; os.setgid(65534); os.setuid(65534)\n"
        "for number in range(1, 200):\n"
        "    one = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
        "    one.bind(f'\\0tidegate-interface-{number}')\n"
        "    held.append(one)\n"
        "print('held', flush=True); sys.stdin.read()"
    )
    command = ["ip", "netns", "exec", two.name, sys.executable, "-c", squat]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as squatter:
        assert squatter.stdout is not None
        assert squatter.stdout.readline() == "held\n"
        with LiveSwitch(p4.compile(LEARNING), ports(two, "packet")):
            pass
        squatter.communicate("")


@needs_root
def test_the_folder_of_claims_is_root_s_alone(two: Place) -> None:
    folder = Path("/run/tidegate-switch")
    with LiveSwitch(p4.compile(LEARNING), ports(two, "packet")):
        about = folder.stat()
        assert (about.st_uid, about.st_mode & 0o777) == (0, 0o700)


def ip_packet(payload: bytes) -> bytes:
    """An IPv4 packet from host 1 to host 2."""
    addresses = bytes([10, 0, 0, 1, 10, 0, 0, 2])
    header = struct.pack("!BBHHHBBH", 0x45, 0, 20 + len(payload), 1, 0, 64, 253, 0) + addresses
    total = sum(struct.unpack("!10H", header))
    total = (total & 0xFFFF) + (total >> 16)
    return (
        MACS[2]
        + MACS[1]
        + b"\x08\x00"
        + header[:10]
        + struct.pack("!H", ~total & 0xFFFF)
        + header[12:]
        + payload
    )


@needs_root
@pytest.mark.parametrize("kind", KINDS)
def test_garbage_is_dropped_or_passed_and_nothing_breaks(two: Place, kind: str) -> None:
    live = LiveSwitch(p4.compile(ROUTER), ports(two, kind))
    live.api.table_add("routes", ["10.0.0.2/32"], "next_hop", [2, MACS[0].hex(":"), MACS[2].hex(":")])
    random = Random(1)
    good = ip_packet(b"the end")
    types = (b"\x08\x00", b"\x86\xdd", b"\x81\x00", b"\x88\xa8", b"\x08\x06", b"\x00\x00")
    sent = 1
    with live:
        for _ in range(300):
            mangled = bytearray(good)
            mangled[random.randrange(12, 34)] = random.randrange(256)
            garbage = MACS[2] + MACS[1] + random.choice(types) + random.randbytes(random.randrange(6, 1400))
            for each in (garbage, bytes(mangled)):
                two.hosts[0].send(each)
                sent += 1
        two.hosts[0].send(good)
        found = two.hosts[1].receive(sent, 1.0)
        counts = live.api.statistics
        errors = live.statistics()["ports"]
    assert found[-1].endswith(b"the end")
    assert counts["received"] == counts["transmitted"] + counts["dropped"] == sent
    assert errors[1]["sent"] == counts["transmitted"] == len(found)


@needs_root
@pytest.mark.parametrize("mode", KINDS)
def test_a_killed_switch_leaves_nothing(two: Place, mode: str) -> None:
    before = interfaces(two)
    for _ in range(3):
        process = run(two, str(LEARNING), "-i", "1@p1", "-i", "2@p2", "-i", "3@tap:lab0", "--mode", mode)
        until_running(process)
        assert interfaces(two) != before
        for _ in range(100):
            two.hosts[0].send(frame(1, 2))
        process.kill()
        process.communicate(timeout=10)
        assert interfaces(two) == before


@needs_root
def test_a_tap_device_of_somebody_else_is_left_as_it_was(two: Place) -> None:
    def state() -> tuple[str, int]:
        show = ["ip", "-n", two.name, "-json", "link", "show", "mine"]
        (link,) = json.loads(subprocess.run(show, capture_output=True, text=True, check=True).stdout)
        return link["operstate"], link["txqlen"]

    subprocess.run(["ip", "-n", two.name, "tuntap", "add", "mine", "mode", "tap"], check=True)
    before = state()
    process = run(two, str(LEARNING), "-i", "1@tap:mine")
    until_running(process)
    assert state() == ("UP", 10_000)
    process.terminate()
    process.communicate(timeout=20)
    assert state() == before


@needs_root
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-i", "1@none"], "there is no interface none; `ip link` lists those there are"),
        (["-i", "1@p1", "--cpu-port", "1"], "--cpu-port 1: an interface has this port; give another number"),
        (
            ["-i", "1@p1", "--metrics-addr", "9100"],
            "--metrics-addr '9100' is not an address; write HOST:PORT, as 127.0.0.1:9559",
        ),
        (
            ["-i", "1@p1", "--grpc-addr", "127.0.0.1:99999"],
            "--grpc-addr '127.0.0.1:99999' is not an address; write HOST:PORT, as 127.0.0.1:9559",
        ),
        (
            ["-i", "1@p1", "--grpc-addr", "0.0.0.0:1"],
            "cannot serve P4Runtime on 0.0.0.0:1: without TLS, anyone who reaches this address controls the switch; "
            "give a certificate and a key, or say that this is meant: --grpc-cert and --grpc-key, or --insecure",
        ),
        (
            ["-i", "1@p1", "--metrics-addr", "[::]:1"],
            "--metrics-addr [::]:1: anyone who reaches this address reads the metrics; "
            "give a loopback address, as 127.0.0.1:9100, or --insecure if this is meant",
        ),
        (
            ["-i", "1@p1", "--grpc-addr", ":1", "--grpc-limit", "calls=0"],
            "--grpc-limit: calls=0: a limit is a whole number from 1 to 1099511627775",
        ),
        (
            ["-i", "1@p1", "--grpc-addr", "192.0.2.1:1", "--insecure"],
            "cannot serve P4Runtime on 192.0.2.1:1: Cannot assign requested address; give another address",
        ),
        (
            ["-i", "1@p1", "--metrics-addr", "192.0.2.1:1", "--insecure"],
            "--metrics-addr 192.0.2.1:1: Cannot assign requested address; give another address",
        ),
        (["-i", "1@p1", "--commands", "none"], "none: cannot be read: no such file or directory"),
        (
            ["-i", "1@p1", "--queue-limit", "many"],
            "--queue-limit many: `many` is not a size: it does not start with a number; write it as in `128 KiB`",
        ),
        (
            ["-i", "1@p1", "--queue-limit", "0"],
            "--queue-limit 0: 0 is not a number of packets: give a whole number from 1 to 4294967295",
        ),
        (
            ["-i", "1@p1", "--queue-limit", "99999999999"],
            "--queue-limit 99999999999: 99999999999 is not a number of packets: "
            "give a whole number from 1 to 4294967295",
        ),
        (
            ["-i", "1@p1", "--queue-limit", "9" * 30],
            f"--queue-limit {'9' * 20}...: {'9' * 20}... is not a number of packets: give one from 1 to 4294967295",
        ),
        (
            ["-i", "1@p1", "--rate", "1=0 Mbit/s"],
            "--rate '1=0 Mbit/s': a port with the rate 0 sends nothing; give a rate above 0",
        ),
        (["-i", "1@tap:"], "the port '1@tap:': the name of the TAP device is missing; write PORT@tap:NAME"),
        (
            ["-i", "1@p1", "--rate", "1=1Mbit/s", "--rate", "1=2Mbit/s"],
            "--rate '1=2Mbit/s': the port 1 has one already; give it once",
        ),
    ],
)
def test_the_command_says_what_is_wrong(two: Place, words: list[str], why: str) -> None:
    process = run(two, str(LEARNING), *words)
    out, said = process.communicate(timeout=20)
    assert (process.returncode, out, said.strip().splitlines()[-1]) == (1, "", why)


def test_without_root_it_says_what_it_needs() -> None:
    as_nobody = ["setpriv", "--reuid=65534", "--clear-groups", "--inh-caps=-all", "--bounding-set=-all"]
    switch = [sys.executable, "-m", "tidegate.cli", "switch", str(LEARNING), "-i", "1@lo", "--mode", "packet"]
    command = [*as_nobody, *switch] if os.geteuid() == 0 else switch
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    rights = "CAP_NET_ADMIN, CAP_NET_RAW, and CAP_BPF for AF_XDP"
    assert done.stderr == f"interface lo: not allowed; a live network needs root ({rights})\n"
