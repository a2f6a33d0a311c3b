"""The protocols' modules against scapy: packets that scapy makes are read as it has them, and are written the same."""

import json
import random
import shutil
import subprocess
from functools import cache
from pathlib import Path

import pytest
from scapy.layers.inet import ICMP, IP, TCP, UDP, IPOption
from scapy.layers.inet6 import (
    ICMPv6EchoRequest,
    IPv6,
    IPv6ExtHdrDestOpt,
    IPv6ExtHdrFragment,
    IPv6ExtHdrHopByHop,
    IPv6ExtHdrRouting,
    PadN,
)
from scapy.layers.l2 import ARP, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import wrpcap

from run import PROFILE, WORKSPACE

ROOT = Path(__file__).parents[1]
PACKETS = 600


def octets(dice: random.Random, most: int) -> bytes:
    return dice.randbytes(dice.randrange(most))


def tcp_options(dice: random.Random, syn: bool) -> list[tuple[str | int, object]]:
    """As Linux has them, so that there is one way to write them; one of an experimental kind behind."""
    stamps = (dice.getrandbits(32), dice.getrandbits(32))
    if syn:
        options: list[tuple[str | int, object]] = [("MSS", dice.getrandbits(16)), ("SAckOK", b"")]
        options += [("Timestamp", stamps), ("NOP", None), ("WScale", dice.randrange(15))]
        return options
    options = [("NOP", None), ("NOP", None), ("Timestamp", stamps)]
    blocks = dice.randrange(3)
    if blocks:
        edges = tuple(dice.getrandbits(32) for _ in range(2 * blocks))
        options += [("NOP", None), ("NOP", None), ("SAck", edges)]
    else:
        data = dice.randbytes(dice.choice((0, 2, 6, 10)))
        # scapy knows kind 254 by a form of its own.
        options += [(253, data)] + [("NOP", None)] * (-(len(data) + 2) % 4)
    return options


def above(dice: random.Random) -> Packet:
    ports = {"sport": dice.getrandbits(16), "dport": dice.getrandbits(16)}
    match dice.randrange(3):
        case 0:
            flags = dice.getrandbits(9)
            options = tcp_options(dice, bool(flags & 2))
            numbers = {
                "seq": dice.getrandbits(32),
                "ack": dice.getrandbits(32),
                "window": dice.getrandbits(16),
            }
            return TCP(**ports, **numbers, flags=flags, options=options) / Raw(octets(dice, 80))
        case 1:
            return UDP(**ports) / Raw(octets(dice, 80))
    return Raw(b"")


def packet(dice: random.Random) -> Packet:
    ether = Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02")
    for _ in range(dice.choice((0, 0, 1, 2))):
        ether /= Dot1Q(prio=dice.randrange(8), dei=dice.randrange(2), vlan=dice.randrange(4096))
    v4 = {"src": f"10.0.{dice.randrange(256)}.1", "dst": f"10.1.{dice.randrange(256)}.2"}
    v6 = {"src": f"fd00::{dice.randrange(1, 256):x}", "dst": f"fd01::{dice.randrange(1, 256):x}"}
    kind = dice.randrange(8)
    if kind == 0:
        return ether / ARP(op=dice.choice((1, 2)), psrc=v4["src"], pdst=v4["dst"])
    if kind < 5:
        # A multiple of four bytes with its header: the end of the list is then the header's.
        data = dice.randbytes(dice.choice((2, 6, 10)))
        options = [IPOption(bytes([dice.choice((0x1E, 0x5E, 0x9E)), len(data) + 2]) + data)]
        fields = {"tos": dice.getrandbits(8), "id": dice.getrandbits(16), "ttl": dice.getrandbits(8)}
        ip = IP(**v4, **fields, flags=dice.choice(("", "DF")), options=dice.choice(([], options)))
        if kind == 4:
            return (
                ether
                / ip
                / ICMP(type=8, id=dice.getrandbits(16), seq=dice.getrandbits(16))
                / octets(dice, 40)
            )
        return ether / ip / above(dice)
    whole = IPv6(**v6, tc=dice.getrandbits(8), fl=dice.getrandbits(20), hlim=dice.getrandbits(8))
    if dice.random() < 0.4:
        whole /= IPv6ExtHdrHopByHop(options=[PadN(optdata=octets(dice, 20))])
    if dice.random() < 0.3:
        whole /= IPv6ExtHdrDestOpt(options=[PadN(optdata=octets(dice, 20))])
    if dice.random() < 0.2:
        whole /= IPv6ExtHdrFragment(id=dice.getrandbits(32))
    if kind == 5:
        return ether / whole / ICMPv6EchoRequest(id=dice.getrandbits(16), data=octets(dice, 40))
    return ether / whole / above(dice)


@cache
def example() -> str:
    """The example `describe`, as it is built with the Rust tests."""
    profile = ["--profile", PROFILE] if PROFILE else []
    command = ["cargo", "build", "--locked", *profile, *WORKSPACE, "--example", "describe"]
    command.append("--message-format=json")
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    built = [json.loads(line) for line in done.stdout.splitlines()]
    (path,) = (
        one["executable"]
        for one in built
        if one["reason"] == "compiler-artifact" and one["target"]["name"] == "describe"
    )
    return str(path)


def describe(packets: list[Packet], folder: Path) -> list[str]:
    """What the example `describe` says of these packets, line by line."""
    if shutil.which("cargo") is None:
        pytest.skip("needs cargo: the example is built from source")
    wrpcap(str(folder / "packets.pcap"), packets)
    command = [example(), str(folder / "packets.pcap")]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def expected(raw: bytes) -> dict[str, str]:
    """The fields of a packet by scapy, named as the example names them."""
    p, fields = Ether(raw), {}
    if ARP in p:
        return {"arp": str(p[ARP].op), "sender": hexed(p[ARP].psrc), "target": hexed(p[ARP].pdst)}
    ip = p[IP] if IP in p else p[IPv6]
    traffic_class = ip.tos if IP in p else ip.tc
    fields |= {"dscp": str(traffic_class >> 2), "ecn": str(traffic_class & 3)}
    if IP in p:
        # The bytes of each option: scapy's form of one depends on its kind.
        data = [bytes(option) for option in ip.options]
        listed = ",".join(f"{option[0]}:{option[2:].hex()}" for option in data if len(option) > 1)
        fields |= {"ttl": str(ip.ttl), "id": str(ip.id), "df": str(int(ip.flags.DF)), "ip_options": listed}
        fields |= {"from": hexed(ip.src), "to": hexed(ip.dst)}
    else:
        present = (
            (0, IPv6ExtHdrHopByHop),
            (60, IPv6ExtHdrDestOpt),
            (44, IPv6ExtHdrFragment),
            (43, IPv6ExtHdrRouting),
        )
        fields |= {"ttl": str(ip.hlim), "flow": str(ip.fl)}
        fields["extensions"] = ",".join(str(number) for number, layer in present if layer in p)
    if TCP in p:
        tcp = p[TCP]
        fields |= {
            "seq": str(tcp.seq),
            "ack": str(tcp.ack),
            "flags": str(int(tcp.flags)),
            "window": str(tcp.window),
        }
        options = {name: value for name, value in tcp.options if name != "NOP"}
        fields["stamps"] = "{}:{}".format(*options["Timestamp"])
        edges = options.get("SAck", ())
        fields["sack"] = ",".join(
            f"{left}-{right}" for left, right in zip(edges[::2], edges[1::2], strict=True)
        )
        fields["others"] = f"253:{options[253].hex()}" if 253 in options else ""
        if "MSS" in options:
            fields |= {"mss": str(options["MSS"]), "scale": str(options["WScale"]), "sack_ok": "1"}
    for layer in (TCP, UDP):
        if layer in p:
            fields |= {"sport": str(p[layer].sport), "dport": str(p[layer].dport)}
            fields["payload"] = str(len(bytes(p[layer].payload)))
    if ICMP in p:
        fields |= {"type": "8", "rest": f"{p[ICMP].id:04x}{p[ICMP].seq:04x}"}
    return fields


def hexed(address: str) -> str:
    return "".join(f"{int(part):02x}" for part in address.split("."))


def test_packets_are_read_and_written_as_scapy_does(tmp_path: Path) -> None:
    dice = random.Random(7)
    packets = [packet(dice) for _ in range(PACKETS)]
    lines = describe(packets, tmp_path)
    assert len(lines) == PACKETS
    seen = set()
    for made, line in zip(packets, lines, strict=True):
        fields = dict(part.split("=", 1) for part in line.split())
        wanted = expected(bytes(made))
        assert {name: fields.get(name) for name in wanted} == wanted, (made.summary(), line)
        assert fields["same"] == "true", (made.summary(), line)
        seen |= {name for name, value in fields.items() if value}
    assert {"vlan", "arp", "ip_options", "extensions", "others", "sack", "mss", "rest"} <= seen


def test_damaged_packets_are_refused(tmp_path: Path) -> None:
    good = Ether(src="02:00:00:00:00:01") / IP(src="10.0.0.1", dst="10.0.0.2")
    cases = {
        "the_IP_checksum_is_wrong": good.copy() / UDP(),
        "the_TCP_checksum_is_wrong": good / TCP(chksum=1),
        "the_UDP_checksum_is_wrong": good / UDP(chksum=1),
        "the_ICMP_checksum_is_wrong": good / ICMP(chksum=1),
        "the_IP_length_is_larger_than_the_packet": good.copy() / UDP(),
        "a_TCP_option_has_a_wrong_length": good / TCP(dataofs=6) / Raw(b"\xfd\x09\0\0"),
        "an_IPv6_extension_header_is_cut_short": Ether() / IPv6(nh=60) / Raw(b"\x3b\xff\0\0"),
        "the_VLAN_tag_is_cut_short": Ether(type=0x8100) / Raw(b"\0\x01"),
    }
    cases["the_IP_checksum_is_wrong"][IP].chksum = 1
    cases["the_IP_length_is_larger_than_the_packet"][IP].len = 200
    assert describe(list(cases.values()), tmp_path) == [f"refused={why}" for why in cases]
