"""`tidegate monitor`: what captures may be like, and what it says of their flows."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import struct
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import matplotlib
import polars as pl
import pytest
from scapy.layers.inet import IP, TCP, UDP, fragment
from scapy.layers.inet6 import IPv6, IPv6ExtHdrDestOpt, IPv6ExtHdrHopByHop
from scapy.layers.l2 import CookedLinux, Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapNgWriter, PcapWriter, RawPcapWriter, wrpcap

from conftest import Run
from tidegate import TidegateError
from tidegate.monitor import Interfaces, Sort, chosen, watch
from tidegate.network import Network

A, B = "10.0.0.1", "10.0.0.2"


@dataclass
class Talk:
    """A connection, packet by packet, at the place of a tap. Times are milliseconds."""

    ports: tuple[int, int] = (1000, 80)
    isn: tuple[int, int] = (1000, 9000)
    addresses: tuple[str, str] = (A, B)

    def __post_init__(self) -> None:
        self.packets: list[Packet] = []

    def send(
        self,
        at_ms: float,
        side: int,
        seq: int,
        ack: int | None,
        length: int = 0,
        flags: str = "",
        options: list[object] | None = None,
        window: int = 500,
    ) -> None:
        """`seq` and `ack` count from the sides' first byte of payload."""
        mine, theirs = self.isn if side == 0 else self.isn[::-1]
        ends, ports = (self.addresses, self.ports) if side == 0 else (self.addresses[::-1], self.ports[::-1])
        packet = Ether() / (IPv6 if ":" in ends[0] else IP)(src=ends[0], dst=ends[1])
        packet /= TCP(
            sport=ports[0],
            dport=ports[1],
            seq=(mine + 1 + seq) % 2**32,
            ack=0 if ack is None else (theirs + 1 + ack) % 2**32,
            flags=flags + ("" if ack is None else "A"),
            options=options or [],
            window=window,
        )
        packet /= Raw(bytes(length))
        packet.time = 1_700_000_000 + at_ms / 1000
        self.packets.append(packet)

    def open(self, at_ms: float = 0.0, rtt_ms: float = 10.0) -> float:
        """The handshake, at a tap beside the first side; gives when it is over."""
        self.send(at_ms, 0, -1, None, flags="S")
        self.send(at_ms + rtt_ms, 1, -1, 0, flags="S")
        self.send(at_ms + rtt_ms + 0.1, 0, 0, 0)
        return at_ms + rtt_ms + 1

    def write(self, folder: Path) -> Path:
        path = folder / "talk.pcap"
        wrpcap(str(path), self.packets)
        return path


def simulated(folder: Path, loss: float = 0.0, behind: float = 0.0) -> Path:
    """Connections of two hosts over a narrow link, captured before it. `behind`: what is lost behind the tap."""
    net = Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r")
    path = folder / "lab.pcap"
    first = net.link(a, router, rate="1 Gbit/s", delay="1 ms")
    net.capture(first, router, path, snap="96 B")
    narrow = net.link(router, b, rate="20 Mbit/s", delay="9 ms", queue="30 packets", loss=loss)
    if behind:
        narrow.set(0, loss=behind, direction="forward")
    for number in range(4):
        net.tcp(a, b, size="2 MB", start=f"{100 * number} ms", ecn="accurate" if number % 2 else "passive")
        net.tcp(b, a, size="500 kB", start=f"{50 + 100 * number} ms")
    net.run("6 s", seed=3)
    return path


def test_flows_are_counted_by_direction(tmp_path: Path) -> None:
    talk = Talk()
    at = talk.open()
    talk.send(at, 0, 0, 0, 700)
    talk.send(at + 10, 1, 0, 700, 300)
    talk.send(at + 11, 0, 0, 300, 700)
    udp = Ether() / IP(src=A, dst=B) / UDP(sport=5, dport=6) / Raw(bytes(100))
    other = Ether() / IP(src=A, dst=B, proto=47) / Raw(bytes(10))
    udp.time = other.time = talk.packets[-1].time
    answer = watch([Talk.write(talk, tmp_path)])
    rows = {(row["src"], row["src_port"]): row for row in answer["flows"]}
    forward, back = rows[A, 1000], rows[B, 80]
    assert (forward["packets"], forward["payload_bytes"], forward["syn"], forward["retransmissions"]) == (
        4,
        1400,
        1,
        1,
    )
    assert forward["bytes"] == 4 * 40 + 1400
    assert (forward["rtt_samples"], forward["rtt_ms_min"]) == (2, pytest.approx(10.0, abs=0.001))
    assert (back["packets"], back["payload_bytes"], back["rtt_samples"]) == (2, 300, 2)
    talk.packets += [udp, other]
    answer = watch([talk.write(tmp_path)])
    assert answer["other_packets"] == 1
    (datagrams,) = [row for row in answer["flows"] if row["protocol"] == "udp"]
    assert (datagrams["packets"], datagrams["bytes"], datagrams["retransmissions"]) == (1, 128, None)


def test_headers_between(tmp_path: Path) -> None:
    """VLAN tags, extension headers of IPv6, cooked captures and raw IP."""
    six = ("fd00::1", "fd00::2")
    inner = (
        IPv6(src=six[0], dst=six[1])
        / IPv6ExtHdrHopByHop()
        / IPv6ExtHdrDestOpt()
        / TCP(sport=7, dport=8)
        / Raw(bytes(9))
    )
    for number, packet in enumerate(
        (Ether() / Dot1Q(vlan=5) / Dot1Q(vlan=6) / inner, CookedLinux(proto=0x86DD) / inner, inner)
    ):
        folder = tmp_path / str(number)
        folder.mkdir()
        (row,) = watch([written([packet], folder)])["flows"]
        assert (row["src"], row["src_port"], row["payload_bytes"]) == (six[0], 7, 9)


def test_what_is_not_looked_into(tmp_path: Path) -> None:
    inner = IP(src=A, dst=B) / UDP(sport=7, dport=8) / Raw(bytes(3000))
    seen = watch([written([Ether() / IP() / inner], tmp_path)])
    assert (seen["flows"], seen["other_packets"]) == ([], 1)
    assert seen["warnings"][0].startswith("none of the packets (1) is TCP or UDP over IP")
    seen = watch([written([Ether() / part for part in fragment(inner, 1480)], tmp_path)])
    (row,) = seen["flows"]
    assert (row["packets"], row["bytes"], seen["other_packets"], seen["warnings"]) == (1, 1500, 2, [])


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return simulated(tmp_path_factory.mktemp("lab"))


@pytest.mark.slow
@pytest.mark.parametrize("how", ["gz", "zst"])
def test_compressed_captures(lab: Path, how: str) -> None:
    if how == "zst" and shutil.which("zstd") is None:
        pytest.skip("needs zstd")
    out = lab.with_name(f"{lab.name}.{how}")
    if how == "gz":
        data = lab.read_bytes()
        out.write_bytes(gzip.compress(data[:5000]) + gzip.compress(data[5000:]))
    else:
        data = lab.read_bytes()
        parts = [
            subprocess.run(["zstd", "-c"], input=part, capture_output=True, check=True).stdout
            for part in (data[:5000], data[5000:])
        ]
        out.write_bytes(b"".join(parts))
    assert watch([out])["flows"] == watch([lab])["flows"]
    # Cut in the middle: what there is, and a warning.
    cut = out.with_name(f"cut.{how}")
    cut.write_bytes(out.read_bytes()[: out.stat().st_size // 2])
    answer = watch([cut])
    assert 0 < answer["packets"] < watch([lab])["packets"]
    assert "were read" in answer["warnings"][0]


@pytest.mark.slow
def test_interfaces_apart_are_put_together(lab: Path, tmp_path: Path) -> None:
    """Each direction in a file of its own, as two taps give them; in any order."""
    from scapy.utils import rdpcap

    packets = rdpcap(str(lab))
    parts = []
    for number, address in enumerate(("10.0.0.1", "10.0.0.2")):
        part = [packet for packet in packets if packet[IP].src == address]
        path = tmp_path / f"{number}.pcap"
        with PcapWriter(str(path), nano=True) as writer:
            writer.write(part)
        parts.append(path)
    whole = {(row["src"], row["src_port"]): row["rtt_samples"] for row in watch([lab])["flows"]}
    for order in (parts, parts[::-1]):
        found = {(row["src"], row["src_port"]): row["rtt_samples"] for row in watch(order)["flows"]}
        assert found.keys() == whole.keys()
        assert sum(found.values()) == pytest.approx(sum(whole.values()), rel=0.001)
    alone = watch(parts[:1])
    assert sum(row["rtt_samples"] for row in alone["flows"]) == 0
    assert "one direction alone" in alone["warnings"][0]


def test_pcapng_and_snapped_packets(tmp_path: Path) -> None:
    talk = Talk()
    at = talk.open()
    for number in range(10):
        talk.send(at + number, 0, 1000 * number, 0, 1000)
        talk.send(at + number + 10, 1, 0, 1000 * (number + 1))
    talk.packets.sort(key=lambda packet: float(packet.time))
    whole = watch([talk.write(tmp_path)])
    ng = tmp_path / "talk.pcapng"
    with PcapNgWriter(str(ng)) as writer:
        writer.write(talk.packets)
    assert [row["rtt_samples"] for row in watch([ng])["flows"]] == [
        row["rtt_samples"] for row in whole["flows"]
    ]
    for packet in talk.packets:
        packet.wirelen = len(packet)
    snapped = tmp_path / "snapped.pcap"
    with PcapWriter(str(snapped)) as writer:
        for packet in talk.packets:
            short = Ether(bytes(packet)[:54])
            short.time, short.wirelen = packet.time, len(packet)
            writer.write(short)
    assert watch([snapped])["flows"] == whole["flows"]


def test_quic_s_spin_bit(tmp_path: Path) -> None:
    packets = []
    for number in range(60):
        # Each direction changes its bit each 40 ms.
        head = 0x40 | 0x20 * (number // 4 % 2)
        ends = (A, B) if number % 2 else (B, A)
        ports = (4433, 443) if number % 2 else (443, 4433)
        first = bytes([0xC0, 0, 0, 0, 1]) if number < 2 else bytes([head, 1, 2, 3, 4])
        packet = (
            Ether()
            / IP(src=ends[0], dst=ends[1])
            / UDP(sport=ports[0], dport=ports[1])
            / Raw(first + bytes(50))
        )
        packet.time = 1_700_000_000 + number * 0.01
        packets.append(packet)
    rows = watch([written(packets, tmp_path)])["flows"]
    assert len(rows) == 2
    for row in rows:
        assert row["rtt_samples"] >= 12
        assert row["rtt_ms_p50"] == pytest.approx(40.0, abs=0.01)


def written(packets: list[Packet], folder: Path, name: str = "some.pcap") -> Path:
    path = folder / name
    wrpcap(str(path), packets)
    return path


def test_what_cannot_be_watched(tmp_path: Path) -> None:
    text = tmp_path / "text.pcap"
    text.write_text("no capture at all")
    with pytest.raises(TidegateError, match=r"text.pcap: is not a capture; expected a pcap or pcapng file"):
        watch([text])
    with pytest.raises(TidegateError, match=r"none.pcap: cannot be read: no such file"):
        watch([tmp_path / "none.pcap"])
    with pytest.raises(
        TidegateError, match="there is no RTT rule `chen`; known: exact, tshark, tcptrace, timestamps"
    ):
        watch([text], rtt_rule="chen")
    wifi = tmp_path / "wifi.pcap"
    with PcapWriter(str(wifi), linktype=105) as writer:
        writer.write(Raw(bytes(40)))
    with pytest.raises(
        TidegateError, match=r"wifi.pcap: packets of link type 105; the monitor reads Ethernet"
    ):
        watch([wifi], samples=tmp_path / "samples.csv")
    assert not (tmp_path / "samples.csv").exists()


def test_packets_of_another_link_type_are_left_out_of_a_capture_that_has_others_too(tmp_path: Path) -> None:
    def block(kind: int, body: bytes) -> bytes:
        body += bytes(-len(body) % 4)
        return struct.pack("<II", kind, len(body) + 12) + body + struct.pack("<I", len(body) + 12)

    def packet(interface: int, data: bytes) -> bytes:
        return block(6, struct.pack("<IIIII", interface, 0, 1, len(data), len(data)) + data)

    header = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    usb, ethernet = (block(1, struct.pack("<HHI", link, 0, 0)) for link in (220, 1))
    frame = bytes(Ether() / IP() / UDP() / Raw(b"data"))
    capture = tmp_path / "both.pcapng"
    capture.write_bytes(
        header + usb + ethernet + packet(0, bytes(70)) + packet(1, frame) + packet(0, bytes(70))
    )
    answer = watch([capture])
    assert [flow["packets"] for flow in answer["flows"]] == [1]
    assert answer["packets"] == 3
    assert any("both.pcapng: 2 packets of link type 220 are left out" in one for one in answer["warnings"])
    kinds = [block(1, struct.pack("<HHI", link, 0, 0)) for link in range(190, 220)]
    capture.write_bytes(
        header + ethernet + b"".join(kinds) + b"".join(packet(one, frame) for one in range(31))
    )
    (said,) = [one for one in watch([capture])["warnings"] if "link type" in one]
    assert (
        "30 packets of link type 190, 191, 192, 193, 194, 195, 196, 197, among others, are left out" in said
    )
    capture.write_bytes(header + usb + ethernet + packet(0, bytes(70)))
    with pytest.raises(TidegateError, match="packets of link type 220; the monitor reads"):
        watch([capture])


def test_an_interrupt_ends_the_wait_for_a_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe.pcap"
    os.mkfifo(pipe)
    with subprocess.Popen(
        [sys.executable, "-m", "tidegate", "monitor", str(pipe)],
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    ) as other:
        # It waits in `open`, of which /proc has the name.
        where = Path(f"/proc/{other.pid}/wchan")
        for _ in range(600):
            if where.read_text() in ("wait_for_partner", "fifo_open"):
                break
            time.sleep(0.05)
        other.send_signal(signal.SIGINT)
        _, said = other.communicate(timeout=20)
    assert (other.returncode, said) == (130, "interrupted\n")


def test_what_makes_no_sense_in_python(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    wrpcap(str(capture), [Ether() / IP() / UDP()])
    before = capture.read_bytes()
    for given, said in (
        ({"max_flows": 0}, "0 is not a number of connections"),
        ({"max_flows": 1 << 70}, "is not a number of connections"),
        ({"rtt_memory": -1}, "-1 is not a number of MiB"),
        ({"rtt_memory": 1 << 50}, "is not a number of MiB"),
        ({"samples": capture}, "is one of the captures, which it would replace"),
        ({"after": [capture]}, "is given twice"),
        ({"after": str(capture)}, r"after is a list: write after=\['"),
    ):
        with pytest.raises(TidegateError, match=said):
            watch([capture], **given)  # type: ignore[arg-type]
        assert capture.read_bytes() == before
    with pytest.raises(TidegateError, match="nothing to watch"):
        watch([])
    with pytest.raises(TidegateError, match=r"files is a list: write files=\['"):
        watch(str(capture))
    with pytest.raises(TidegateError, match=r"interfaces is a list: write interfaces=\['lo'\]"):
        Interfaces("lo")
    with pytest.raises(TidegateError, match="lo: an interface is given twice"):
        Interfaces(["lo"], after=["lo"])


def test_files_that_are_not_written(tidegate: Run, lab: Path, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.write_text("mine")
    for name in ("samples.csv", "flows.parquet", "figure.png"):
        (tmp_path / name).symlink_to(target)
    ran = tidegate("monitor", lab, "--samples", tmp_path / "samples.csv")
    assert (ran.code, ran.err) == (
        1,
        f"{tmp_path}/samples.csv: it is a symbolic link; give the file itself\n",
    )
    words = ["--parquet", tmp_path / "flows.parquet", "--figure", tmp_path / "figure.png"]
    assert tidegate("monitor", lab, *words).code == 0
    assert target.read_text() == "mine"
    assert pl.read_parquet(tmp_path / "flows.parquet").height > 0
    assert (tmp_path / "figure.png").read_bytes().startswith(b"\x89PNG")
    capture = tmp_path / "capture.csv"
    capture.write_bytes(lab.read_bytes())
    before = capture.read_bytes()
    ran = tidegate("monitor", capture, "--samples", capture)
    assert ran.code == 1
    assert "is one of the captures, which it would replace; give another name" in ran.err
    assert capture.read_bytes() == before


def test_the_figure_has_the_flows_that_are_shown(tidegate: Run, tmp_path: Path) -> None:
    capture, figure = written(bulk().packets, tmp_path), tmp_path / "flows.svg"
    for top, drawn in (("1", 1), ("2", 2)):
        with matplotlib.rc_context({"svg.fonttype": "none"}):
            assert tidegate("monitor", capture, "--top", top, "--figure", figure).code == 0
        assert figure.read_text().count(">tcp 10.0.0.") == drawn


def test_what_cannot_be_written_is_said_before_anything_is_read(
    tidegate: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said(option: str, name: str) -> str:
        ran = tidegate("monitor", tmp_path / "none.pcap", option, tmp_path / name)
        assert (ran.code, ran.out) == (1, "")
        return ran.err

    options = (("--samples", "x.csv"), ("--parquet", "x.parquet"), ("--figure", "x.png"))
    for option, name in options:
        (tmp_path / name).mkdir()
        assert said(option, name) == (
            f"{tmp_path / name}: cannot be written: it is a directory; give a file\n"
        )
        (tmp_path / name).rmdir()
    for option, name in options[1:]:
        (tmp_path / name).symlink_to("/dev/null")
        assert "it is a device or a pipe; give a file" in said(option, name)
        (tmp_path / name).unlink()
    monkeypatch.setattr("tidegate.monitor_files.access", lambda *_: False)
    for option, name in options[1:]:
        assert f"{name}: cannot be written: no permission for the folder {tmp_path}" in said(option, name)


def test_a_file_that_cannot_be_written_takes_no_table_with_it(tidegate: Run, tmp_path: Path) -> None:
    capture = written(bulk().packets, tmp_path)
    for option, name in (("--parquet", "/proc/x.parquet"), ("--figure", "/proc/x.png")):
        ran = tidegate("monitor", capture, option, name)
        assert ran.code == 1
        assert f"{name}: cannot be written: " in ran.err
        assert "10.0.0.1:1000" in ran.out
        ran = tidegate("monitor", capture, option, name, "--json")
        assert (ran.code, list(ran.json)) == (1, ["error"])


def test_more_connections_than_are_watched(tmp_path: Path) -> None:
    packets = [Ether() / IP(src=A, dst=B) / TCP(sport=port, dport=80) for port in range(1, 11)]
    answer = watch([written(packets, tmp_path)], max_flows=4)
    assert (len(answer["flows"]), answer["untracked_packets"]) == (4, 6)
    assert "--max-flows" in answer["warnings"][0]


def test_more_round_trip_times_than_there_is_memory_for(tidegate: Run, tmp_path: Path) -> None:
    # Each packet made by scapy takes a millisecond: one a connection, and its sequence number is counted up in its bytes.
    packets = []
    for port in range(100, 150):
        packets.append(bytes(Ether() / IP(src=B, dst=A) / TCP(sport=80, dport=port, flags="A", ack=0)))
        first = bytes(Ether() / IP(src=A, dst=B) / TCP(sport=port, dport=80, flags="A", seq=0) / b"x")
        packets += [first[:38] + seq.to_bytes(4, "big") + first[42:] for seq in range(2000)]
    capture = tmp_path / "many.pcap"
    with RawPcapWriter(str(capture), linktype=1) as writer:
        writer.write(packets)
    ran = tidegate("monitor", capture, "--rtt-memory", "1", "--json")
    answer = json.loads(ran.out)
    unsampled = answer["unsampled_segments"]
    assert (unsampled > 20_000, answer["samples_without_detail"]) == (True, 0)
    assert f"warning: {unsampled} segments give no round-trip time" in ran.err
    assert "--rtt-memory" in ran.err
    answer = watch([capture])
    assert (answer["unsampled_segments"], answer["warnings"]) == (0, [])


def bulk(segments: int = 50) -> Talk:
    """Data in one direction, an acknowledgment for every second segment."""
    talk = Talk()
    at = talk.open()
    for number in range(segments):
        talk.send(at + number, 0, 1000 * number, 0, 1000)
        if number % 2 == 1:
            talk.send(at + number + 10.5, 1, 0, 1000 * (number + 1))
    talk.packets.sort(key=lambda packet: float(packet.time))
    return talk


def later(packets: list[Packet], ms: float) -> list[Packet]:
    copies = [packet.copy() for packet in packets]
    for copy, packet in zip(copies, packets, strict=True):
        copy.time = packet.time + ms / 1000
    return copies


def test_a_capture_that_is_given_twice(tidegate: Run, tmp_path: Path) -> None:
    capture = written(bulk().packets, tmp_path)
    link, hard = tmp_path / "link.pcap", tmp_path / "hard.pcap"
    link.symlink_to(capture)
    hard.hardlink_to(capture)
    for again in (capture, tmp_path / ".." / tmp_path.name / capture.name, link, hard):
        ran = tidegate("monitor", capture, again)
        assert (ran.code, ran.out) == (2, "")
        assert ran.err.count(f"{again}: a capture is given twice; give each once") == 1
    with capture.open("rb") as file:
        done = subprocess.run(
            [sys.executable, "-m", "tidegate.cli", "monitor", str(capture), "-"],
            stdin=file,
            capture_output=True,
            check=False,
        )
    assert done.returncode == 2
    assert b"a capture is given twice" in done.stderr


def test_both_sides_of_a_router(tidegate: Run, tmp_path: Path) -> None:
    talk = bulk()
    before = written(talk.packets, tmp_path, "before.pcap")
    after = written(later(talk.packets, 3), tmp_path, "after.pcap")
    ran = tidegate("monitor", before, after, "--json", "--match", "zzz")
    assert ran.code == 0
    # It is of all flows, whatever --match chooses.
    warnings = [one for one in json.loads(ran.out)["warnings"] if "were seen twice" in one]
    assert len(warnings) == 1
    assert ran.err.count(f"warning: {warnings[0]}\n") == 1
    percent = int(warnings[0].split()[1])
    assert 90 <= percent <= 100
    assert warnings[0].endswith("give one side of the router, and the other with --after")
    # One source, or each direction in its own: nothing is there twice.
    both = written(talk.packets + later(talk.packets, 3), tmp_path, "both.pcap")
    halves = [
        written([packet for packet in talk.packets if packet[IP].src == side], tmp_path, f"{side}.pcap")
        for side in (A, B)
    ]
    for files in ([before], [both], halves):
        assert not any("seen twice" in one for one in watch(files)["warnings"])


def test_a_match_without_flows(tidegate: Run, tmp_path: Path) -> None:
    capture = written(bulk().packets, tmp_path)
    some, none = tmp_path / "some.parquet", tmp_path / "none.parquet"
    ran = tidegate("monitor", capture, "--parquet", some)
    assert (ran.code, ran.err) == (0, "")
    ran = tidegate("monitor", capture, "--match", "zzz", "--parquet", none)
    assert ran.code == 0
    assert ran.err == "warning: --match zzz found no flow; it is looked for in protocol, address and port\n"
    table = pl.read_parquet(none)
    assert table.height == 0
    assert table.schema == pl.read_parquet(some).schema
    assert table.columns == list(watch([capture])["flows"][0])


def test_sorting_and_choosing() -> None:
    rows = [
        {
            "protocol": "tcp",
            "src": A,
            "src_port": port,
            "dst": B,
            "dst_port": 80,
            "bytes": port,
            **{f"rtt_ms_{name}": rtt for name in ("min", "p50", "p95", "p99")},
        }
        for port, rtt in ((1, 3.0), (2, None), (3, 1.0))
    ]
    answer = {"flows": rows}
    assert [row["src_port"] for row in chosen(answer, "bytes", None)] == [3, 2, 1]
    for sort in (Sort.RTT_MIN, Sort.RTT_P50, Sort.RTT_P95, Sort.RTT_P99):
        assert [row["src_port"] for row in chosen(answer, sort, None)] == [1, 3, 2]
    assert [row["src_port"] for row in chosen(answer, "bytes", f"{A}:3")] == [3]


def run(*words: str, stdin: bytes | None = None) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "tidegate.cli", "monitor", *words],
        input=stdin,
        capture_output=True,
        check=False,
    )


@pytest.mark.slow
def test_the_command(lab: Path, tmp_path: Path) -> None:
    done = run("-", "--json", "--match", ":10000", stdin=lab.read_bytes())
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert answer["flows"]
    row = answer["flows"][0]
    assert {
        "src",
        "src_port",
        "dst",
        "dst_port",
        "rtt_samples",
        "rtt_ms_p50",
        "throughput_mbps",
    } <= row.keys()
    out, picture = tmp_path / "flows.parquet", tmp_path / "flows.png"
    done = run(
        str(lab), "--parquet", str(out), "--figure", str(picture), "--sort", "rtt_ms_p50", "--top", "3"
    )
    assert done.returncode == 0, done.stderr
    assert b"of which the first 3 are shown" in done.stdout
    assert len(pl.read_parquet(out)) == 16
    assert picture.stat().st_size > 5000
    for words, code, why in (
        (("none.pcap",), 1, b"none.pcap: cannot be read"),
        ((str(lab), "--figure", "picture.txt"), 1, b"a figure has a name with .png"),
        (("-", "-"), 1, b"standard input (-) is given twice"),
        ((str(lab), "--rtt-rule", "chen"), 2, b"chen"),
    ):
        done = run(*words)
        assert done.returncode == code, done.stderr
        assert why in done.stderr


@pytest.mark.slow
def test_whatever_is_in_a_file(lab: Path, tmp_path: Path) -> None:
    """Bytes changed at random: an answer or one message."""
    dice, data = random.Random(5), lab.read_bytes()[:40_000]
    for _ in range(150):
        bad = bytearray(data)
        for _ in range(dice.choice((1, 10, 300))):
            bad[dice.randrange(len(bad))] = dice.randrange(256)
        path = tmp_path / "bad.pcap"
        path.write_bytes(bad[: dice.randrange(1, len(bad))])
        for rule in ("exact", "tshark", "tcptrace", "timestamps"):
            with suppress(TidegateError):
                assert watch([path], rtt_rule=rule)["packets"] >= 0
