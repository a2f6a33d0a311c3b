"""What the solutions of the public P4 tutorials' exercises do, looked at in their own networks."""

from __future__ import annotations

import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path

import frames
from tidegate.exercises import commands
from tidegate.exercises.host_commands import end_all
from tidegate.exercises.running import LiveTopology
from tutorial_controllers import IDLE_S, FlowCache, pushed, write_tunnel

PROGRAM = f"{sys.executable} {Path(frames.__file__).resolve()}"
BROADCAST = "ff:ff:ff:ff:ff:ff"
EXPEDITED, VOICE = 46, 44
"""Code points (RFC 3246, RFC 5865)."""


def ask(net: LiveTopology, host: str, frame: bytes) -> list[bytes]:
    """What comes to a host after it has sent a frame."""
    status, said = net.output(host, f"{PROGRAM} ask {frame.hex()}")
    assert status == 0, said
    return [bytes.fromhex(line) for line in said.split()]


def send(net: LiveTopology, host: str, frame: bytes, count: int = 1) -> None:
    status, said = net.output(host, f"{PROGRAM} send {frame.hex()} {count}")
    assert status == 0, said


@contextmanager
def hearing(net: LiveTopology, host: str, seconds: float = 2) -> Iterator[list[bytes]]:
    """What arrives at a host: filled when the block has ended, and the time is over."""
    heard: list[bytes] = []
    command = net.start(host, f"{PROGRAM} hear {seconds}", stdout=subprocess.PIPE)
    try:
        process = command.process
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        yield heard
        heard += [bytes.fromhex(line.decode()) for line in process.communicate()[0].split()]
    finally:
        end_all([command])


def ping(net: LiveTopology, host: str, other: str) -> bool:
    return net.output(host, commands.with_addresses(net, f"ping -c 2 -i 0.2 -W 1 {other}"))[0] == 0


def connects(net: LiveTopology, host: str, other: str) -> bool:
    """Whether a TCP connection from one to the other comes to be."""
    return (
        net.output(
            host,
            f"{sys.executable} -c 'import socket; socket.create_connection((\"{net.topology.hosts[other].address}\", 5001), 1)'",
        )[0]
        == 0
    )


def listen(net: LiveTopology, host: str) -> None:
    script = 'import socket, time; s = socket.create_server(("", 5001)); time.sleep(60)'
    net.go_on(host, f"{sys.executable} -c '{script}'")
    while not net.output(host, "ss -Hltn 'sport = :5001'")[1].strip():
        pass


@contextmanager
def full(net: LiveTopology) -> Iterator[None]:
    """More UDP from h11 to h22 than the slow link between their switches carries."""
    frame = frames.ethernet(
        "08:00:00:00:01:00", net.topology.hosts["h11"].mac, 0x800,
        frames.ipv4("10.0.1.11", "10.0.2.22", 17, frames.udp(4000, 4000, bytes(1400))),
    )  # fmt: skip
    command = net.start("h11", f"{PROGRAM} send {frame.hex()} 500", stdout=subprocess.DEVNULL)
    try:
        yield
    finally:
        end_all([command])


def from_h1(net: LiveTopology, packet: bytes) -> bytes:
    return frames.ethernet("08:00:00:00:01:00", net.topology.hosts["h1"].mac, 0x800, packet)


def udp_of(heard: list[bytes], port: int) -> list[bytes]:
    """IPv4 packets with UDP to a port."""
    packets = [one[14:] for one in heard if one[12:14] == b"\x08\x00"]
    return [
        one
        for one in packets
        if one[9] == 17 and struct.unpack_from("!H", one, 4 * (one[0] & 15) + 2)[0] == port
    ]


def all_reached(net: LiveTopology) -> None:
    assert commands.ping_all(net)


def tunnel(net: LiveTopology) -> None:
    """The identifier decides, not the address: h2 gets what is addressed to h3."""
    all_reached(net)
    inner = frames.ipv4("10.0.1.1", "10.0.3.3", 17, frames.udp(4000, 4321))
    frame = frames.ethernet(
        "08:00:00:00:01:00", net.topology.hosts["h1"].mac, 0x1212, struct.pack("!HH", 0x800, 2) + inner
    )
    with hearing(net, "h2") as heard:
        send(net, "h1", frame)
    assert [one[14:] for one in heard if one[12:14] == b"\x12\x12"] == [frame[14:]]


def calculator(net: LiveTopology) -> None:
    h1, h2 = (net.topology.hosts[name].mac for name in ("h1", "h2"))
    for operation, result in ((b"+", 21), (b"-", 9), (b"&", 6), (b"|", 15), (b"^", 9)):
        asked = b"P4\x01" + operation + struct.pack("!III", 15, 6, 0xDEADBABE)
        answers = [
            one for one in ask(net, "h1", frames.ethernet(h2, h1, 0x1234, asked)) if one[12:14] == b"\x12\x34"
        ]
        assert [struct.unpack_from("!I", one, 26)[0] for one in answers] == [result], operation


def congestion(net: LiveTopology) -> None:
    """What waits behind ten packets is marked with CE."""
    packet = from_h1(net, frames.ipv4("10.0.1.1", "10.0.2.2", 17, frames.udp(4000, 4321), tos=1))
    with hearing(net, "h2") as heard:
        send(net, "h1", packet, 3)
    assert {one[1] & 3 for one in udp_of(heard, 4321)} == {1}
    with hearing(net, "h2", 10) as heard, full(net):
        send(net, "h1", packet, 150)
    assert 3 in {one[1] & 3 for one in udp_of(heard, 4321)}


def inspection(net: LiveTopology) -> None:
    """Both switches leave their number and the length of their queue."""
    packet = from_h1(net, frames.ipv4(
        "10.0.1.1", "10.0.2.2", 17, frames.udp(4000, 4321), options=bytes([0x1F, 4, 0, 0])
    ))  # fmt: skip
    with hearing(net, "h2", 10) as heard, full(net):
        send(net, "h1", packet, 150)
    traces = [
        [struct.unpack_from("!II", one, 24 + 8 * at) for at in range(struct.unpack_from("!H", one, 22)[0])]
        for one in udp_of(heard, 4321)
    ]
    assert traces
    assert all([number for number, _ in trace] == [2, 1] for trace in traces)
    assert max(trace[1][1] for trace in traces) > 0


def service(net: LiveTopology) -> None:
    all_reached(net)
    with hearing(net, "h2") as heard:
        for protocol, payload in ((17, frames.udp(4000, 4321)), (6, frames.syn(4000, 4321))):
            send(net, "h1", from_h1(net, frames.ipv4("10.0.1.1", "10.0.2.2", protocol, payload, tos=1)))
    points = {one[23]: one[15] >> 2 for one in heard if one[12:14] == b"\x08\x00" and one[14:15] == b"\x45"}
    assert (points[17], points[6]) == (EXPEDITED, VOICE)


def source_route(net: LiveTopology) -> None:
    """By the ports in the frame from h1 to h2: s1, s3 and s2, or round twice."""
    for ports in ((3, 3, 1), (2, 3, 2, 2, 1)):
        route = b"".join(
            struct.pack("!H", port | (0x8000 if last else 0))
            for port, last in zip(ports, [False] * (len(ports) - 1) + [True], strict=True)
        )
        packet = frames.ipv4("10.0.1.1", "10.0.2.2", 17, frames.udp(4000, 4321))
        with hearing(net, "h2") as heard:
            send(net, "h1", frames.ethernet(BROADCAST, net.topology.hosts["h1"].mac, 0x1234, route + packet))
        assert [one[8] for one in udp_of(heard, 4321)] == [64 - len(ports)]


def balance(net: LiveTopology) -> None:
    """Connections to 10.0.0.1 go to both servers, each packet to one."""
    with hearing(net, "h2", 4) as second, hearing(net, "h3", 4) as third:
        for port in range(4000, 4016):
            send(net, "h1", from_h1(net, frames.ipv4("10.0.1.1", "10.0.0.1", 6, frames.syn(port, 1234))))
    ports = [
        {struct.unpack_from("!H", one, 34)[0] for one in heard if one[12:14] == b"\x08\x00" and one[23] == 6}
        for heard in (second, third)
    ]
    assert all(ports)
    assert not ports[0] & ports[1]
    assert ports[0] | ports[1] == set(range(4000, 4016))


def firewall(net: LiveTopology) -> None:
    """TCP from outside reaches no host inside; from inside, and within, it does."""
    all_reached(net)
    for host in ("h1", "h2", "h3"):
        listen(net, host)
    assert connects(net, "h1", "h2")
    assert connects(net, "h1", "h3")
    assert not connects(net, "h3", "h1")


def link_monitor(net: LiveTopology) -> None:
    """A probe comes back to h1 with the number and the bytes of each switch that it has passed."""
    probe = frames.ethernet(BROADCAST, net.topology.hosts["h1"].mac, 0x812, bytes([0, 4, 1, 4, 1, 1]))
    all_reached(net)
    ask(net, "h1", probe)
    assert ping(net, "h1", "h4")
    [back] = [one for one in ask(net, "h1", probe) if one[12:14] == b"\x08\x12"]
    assert back[14] == 5
    hops = [back[15 + 18 * at : 33 + 18 * at] for at in range(5)]
    assert [one[0] & 127 for one in hops] == [1, 3, 2, 4, 1]
    counted = [struct.unpack_from("!I", one, 2)[0] for one in hops]
    # The last is the port to s4, by which the pings to h4 went.
    assert counted[4] > 2 * 84


def multicast(net: LiveTopology) -> None:
    all_reached(net)


def access_list(net: LiveTopology) -> None:
    assert ping(net, "h1", "h2")
    assert not ping(net, "h3", "h1")
    counted = {
        name: net.switches["s1"].api.command(f"counter_read MyIngress.{name} {index}")
        for name, index in (("ipv4_counter", 1), ("acl_drop_counter", 3), ("drop_counter", 0))
    }
    assert "2 packets" in counted["ipv4_counter"]
    assert "2 packets" in counted["acl_drop_counter"]
    assert "0 packets" in counted["drop_counter"]


def tunnel_by_controller(net: LiveTopology, source: Path) -> None:
    """Pings between h1 and h2 are counted in both tunnels."""
    with pushed(source) as switches:
        assert not ping(net, "h1", "h2")
        write_tunnel(switches["s1"], switches["s2"], 100, "10.0.2.2")
        write_tunnel(switches["s2"], switches["s1"], 200, "10.0.1.1")
        assert ping(net, "h1", "h2")
        for name, way, tunnel in (("s1", "ingress", 100), ("s2", "egress", 100), ("s2", "ingress", 200)):
            assert switches[name].packets(f"MyIngress.{way}TunnelCounter", tunnel) == 2


def flow_cache(net: LiveTopology, source: Path) -> None:
    """The first packet of a flow goes by the controller, later ones by its entry until the flow is idle."""
    with pushed(source) as switches:
        caches = [FlowCache(switch) for switch in switches.values()]
        try:
            for one in caches:
                one.start()
            net.output("h1", "ping -c 1 -W 1 10.0.2.2")
            assert ping(net, "h1", "h2")
            assert switches["s1"].packets("MyEgress.egressPktInCounter", 2) >= 1
            end_s = time.monotonic() + 4 * IDLE_S
            while not caches[0].deleted and time.monotonic() < end_s:
                time.sleep(0.1)
            assert IPv4Address("10.0.2.2").packed in caches[0].deleted
        finally:
            for one in caches:
                one.end()


BY_CONTROLLER: dict[str, Callable[[LiveTopology, Path], None]] = {
    "flowcache": flow_cache,
    "p4runtime": tunnel_by_controller,
}
RESULTS: dict[str, Callable[[LiveTopology], None]] = {
    "acl_with_counters": access_list,
    "basic": all_reached,
    "basic_tunnel": tunnel,
    "calc": calculator,
    "ecn": congestion,
    "firewall": firewall,
    "link_monitor": link_monitor,
    "load_balance": balance,
    "mri": inspection,
    "multicast": multicast,
    "qos": service,
    "source_routing": source_route,
}


def look(exercise: str, net: LiveTopology, program: Path) -> None:
    """Look at what an exercise's solution does; at one that is not known here, whether it starts."""
    if exercise in BY_CONTROLLER:
        BY_CONTROLLER[exercise](net, program)
    elif exercise in RESULTS:
        RESULTS[exercise](net)
