"""`tidegate replay`."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from conftest import EXAMPLES, Run, pcap, pcapng, read_pcap

ROUTER = EXAMPLES / "ipv4_router" / "ipv4_router.p4"
PACKET = bytes.fromhex("00000000000100000000000208004500001c00000000401164cd0a0000010a0102031111222233334444")
LEAVES = bytes.fromhex("02000000000402000000000308004500001c000000003f1165cd0a0000010a0102031111222233334444")
ROUTE = "table_add RouterIngress.routes next_hop 10.1.0.0/16 => 3 02:00:00:00:00:03 02:00:00:00:00:04\n"
SECOND = 10**9
START = 1_700_000_000 * SECOND


@pytest.fixture
def commands(tmp_path: Path) -> Path:
    path = tmp_path / "commands.txt"
    path.write_text("# routes\n" + ROUTE)
    return path


@pytest.mark.parametrize(
    ("data", "unit"),
    [
        (pcap([(START + 1_000, PACKET), (START + 5_000, PACKET)]), 1000),
        (pcap([(START + 1_000, PACKET), (START + 5_000, PACKET)], order=">"), 1000),
        (pcap([(START + 1_001, PACKET), (START + 5_002, PACKET)], nanoseconds=True), 1),
        (pcap([(START + 1_001, PACKET), (START + 5_002, PACKET)], order=">", nanoseconds=True), 1),
        (pcapng([(START + 1_001, PACKET), (START + 5_002, PACKET)]), 1),
        (pcapng([(START + 1_000, PACKET), (START + 5_000, PACKET)], order=">", resolution=6), 1000),
    ],
)
def test_formats(tidegate: Run, tmp_path: Path, commands: Path, data: bytes, unit: int) -> None:
    (tmp_path / "in.pcap").write_bytes(data)
    out = tmp_path / "out"
    for engine in ("interp", "jit"):
        ran = tidegate(
            "replay", ROUTER, "--in", f"1={tmp_path / 'in.pcap'}", "--out", out, "--commands", commands,
            "--json", "--engine", engine,
        )  # fmt: skip
        assert (ran.code, ran.err) == (0, "")
        assert (ran.json["packets_in"], ran.json["packets_out"]) == (2, 2)
        assert [p.name for p in out.iterdir()] == ["port3.pcap"]
        times = [time for time, _ in read_pcap(out / "port3.pcap")]
        want = [START + 1_001, START + 5_002] if unit == 1 else [START + 1_000, START + 5_000]
        assert times == want
        assert [data for _, data in read_pcap(out / "port3.pcap")] == [LEAVES, LEAVES]


def test_inputs_are_merged_by_time(tidegate: Run, tmp_path: Path, commands: Path) -> None:
    def numbered(n: int) -> bytes:
        return PACKET + bytes([n])

    (tmp_path / "a").write_bytes(pcap([(START, numbered(0)), (START + 2000, numbered(2))]))
    (tmp_path / "b").write_bytes(pcapng([(START + 1000, numbered(1)), (START + 2000, numbered(3))]))
    ran = tidegate(
        "replay", ROUTER, "--in", f"1={tmp_path / 'a'}", "--in", f"2={tmp_path / 'b'}",
        "--out", tmp_path / "out", "--commands", commands, "--json",
    )  # fmt: skip
    assert ran.code == 0
    assert [data[-1] for _, data in read_pcap(tmp_path / "out" / "port3.pcap")] == [0, 1, 2, 3]
    assert [i["packets"] for i in ran.json["inputs"]] == [2, 2]
    assert ran.json["duration_ps"] == 2_000_000


@pytest.mark.parametrize("make", [pcap, pcapng])
def test_a_capture_that_is_cut_short(tidegate: Run, tmp_path: Path, commands: Path, make: object) -> None:
    assert callable(make)
    whole = make([(START, PACKET), (START + 1000, PACKET), (START + 2000, PACKET)])
    (tmp_path / "cut").write_bytes(whole[:-9])
    ran = tidegate(
        "replay", ROUTER, "--in", f"1={tmp_path / 'cut'}", "--out", tmp_path / "out", "--commands", commands, "--json"
    )  # fmt: skip
    assert ran.code == 0
    assert ran.json["packets_out"] == 2
    assert ran.json["inputs"][0]["cut"] == "the file ends within a packet"
    assert "cut: the file ends within a packet; the 2 packets before that were replayed" in ran.err


@pytest.mark.parametrize("controller", [False, True])
def test_captures_that_span_more_than_the_clock(tidegate: Run, tmp_path: Path, controller: bool) -> None:
    """As of a machine whose clock was at 1970 until it was set."""
    (tmp_path / "a").write_bytes(pcap([(0, PACKET), (START, PACKET)]))
    (tmp_path / "c.py").write_text("from tidegate.control import Controller\ncontrollers = [Controller()]\n")
    more = ["--controller", tmp_path / "c.py"] if controller else []
    ran = tidegate("replay", ROUTER, "--in", f"1={tmp_path / 'a'}", "--out", tmp_path / "out", *more)
    assert ran.code == 1
    assert "the captures span more than 213 days; replay them in parts" in ran.err
    assert not list(tmp_path.glob("out/*.pcap"))


def test_packets_captured_in_part(tidegate: Run, tmp_path: Path, commands: Path) -> None:
    (tmp_path / "snapped").write_bytes(pcap([(START, PACKET)], wire_len=1000))
    ran = tidegate(
        "replay", ROUTER, "--in", f"1={tmp_path / 'snapped'}", "--out", tmp_path / "out", "--commands", commands,
        "--json",
    )  # fmt: skip
    assert ran.json["inputs"][0]["captured_in_part"] == 1
    assert "captured only in part" in ran.err
    written = (tmp_path / "out" / "port3.pcap").read_bytes()
    assert int.from_bytes(written[24 + 12 : 24 + 16], "little") == 1000


def test_drops_have_their_reason(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(pcap([(START, PACKET)] * 3))
    ran = tidegate("replay", ROUTER, "--in", f"1={tmp_path / 'in'}", "--out", tmp_path / "out", "--json")
    assert ran.json["drops"] == {"dropped in ingress": 3}
    assert list((tmp_path / "out").iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("table_add nowhere drop 1 =>", "no table `nowhere`"),
        ("table_add routes next_hop 10.0.0.0/8 => 3", "takes 3 values (port, src, dst), not 1"),
        ("table_add routes drop 10.0.0.0 =>", "has no prefix length"),
        ("table_add routes drop 10.0.0.0/8", "expected `table_add"),
        ("table_add routes next_hop 10.0.0.0/8 => 512 0 0", "does not fit in 9 bits"),
        ("register_write r 0 0", "no register `r`"),
        ("port_remove 5", "ports cannot be removed"),
        ("frobnicate", "no command `frobnicate`"),
        ("mc_node_associate 1 0", "there is no multicast group 1"),
    ],
)
def test_bad_commands_are_named(tidegate: Run, tmp_path: Path, line: str, message: str) -> None:
    (tmp_path / "in").write_bytes(pcap([(START, PACKET)]))
    (tmp_path / "c").write_text(f"\n{line}\n")
    ran = tidegate(
        "replay", ROUTER, "--in", f"1={tmp_path / 'in'}", "--out", tmp_path / "out", "--commands", tmp_path / "c"
    )  # fmt: skip
    assert ran.code == 1
    assert ran.err.startswith(f"{tmp_path / 'c'}:2: ")
    assert message in ran.err
    assert not (tmp_path / "out").exists()


def test_reading_commands_are_answered_before_and_after(tidegate: Run, tmp_path: Path) -> None:
    program = EXAMPLES / "ecn_marker" / "ecn_marker.p4"
    (tmp_path / "in").write_bytes(pcap([(START, PACKET)]))
    (tmp_path / "c").write_text(
        "register_write MarkerEgress.threshold 0 5\nregister_read MarkerEgress.threshold 0\n"
    )
    ran = tidegate(
        "replay", program, "--in", f"1={tmp_path / 'in'}", "--out", tmp_path / "o", "--commands", tmp_path / "c",
        "--json",
    )  # fmt: skip
    assert ran.code == 0
    assert ran.json["readings"] == [
        {
            "line": 2,
            "command": "register_read MarkerEgress.threshold 0",
            "before": "MarkerEgress.threshold[0]= 5",
            "after": "MarkerEgress.threshold[0]= 5",
        }
    ]


@pytest.mark.parametrize(
    ("data", "message"),
    [(b"", "is empty"), (b"ab", "is not a capture"), (b"#!/bin/sh\n" * 10, "is not a capture")],
)
def test_files_that_are_no_captures(tidegate: Run, tmp_path: Path, data: bytes, message: str) -> None:
    (tmp_path / "in").write_bytes(data)
    ran = tidegate("replay", ROUTER, "--in", f"1={tmp_path / 'in'}", "--out", tmp_path / "out")
    assert (ran.code, len(ran.err.splitlines())) == (1, 1)
    assert message in ran.err


def test_places_that_cannot_be_read_or_written(tidegate: Run, tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(pcap([(START, PACKET)]))
    (tmp_path / "file").write_text("")
    ran = tidegate("replay", ROUTER, "--in", f"1={tmp_path / 'in'}", "--out", tmp_path / "file")
    assert ran.code == 1
    assert "it is not a directory" in ran.err
    ran = tidegate("replay", ROUTER, "--in", f"1={tmp_path}", "--out", tmp_path / "out")
    assert "it is a directory" in ran.err
    ran = tidegate("replay", ROUTER, "--in", f"600={tmp_path / 'in'}", "--out", tmp_path / "out")
    assert (ran.code, "ports are 0 to 510" in " ".join(ran.err.split())) == (2, True)


def test_names_that_somebody_has_prepared_lead_nowhere(tidegate: Run, tmp_path: Path, commands: Path) -> None:
    (tmp_path / "in").write_bytes(pcap([(START, PACKET)]))
    out, target = tmp_path / "out", tmp_path / "target"
    out.mkdir()
    target.write_text("mine")
    for name in (f".probe.{os.getpid()}.part", f".port3.{os.getpid()}.part", "port3.pcap"):
        (out / name).symlink_to(target)
    ran = tidegate(
        "replay", ROUTER, "--in", f"1={tmp_path / 'in'}", "--out", out, "--commands", commands, "--json"
    )
    assert (ran.code, ran.err) == (0, "")
    assert target.read_text() == "mine"
    assert len(read_pcap(out / "port3.pcap")) == 1
    assert not (out / "port3.pcap").is_symlink()
    assert [p.name for p in out.iterdir() if not p.is_symlink()] == ["port3.pcap"]


@pytest.mark.parametrize("linked", [False, True])
def test_an_input_is_not_replaced_by_an_output(
    tidegate: Run, tmp_path: Path, commands: Path, linked: bool
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    read = out / "port3.pcap"
    read.write_bytes(pcap([(START, PACKET)]))
    before = read.read_bytes()
    given = read
    if linked:
        given = tmp_path / "link"
        given.symlink_to(read)
    ran = tidegate("replay", ROUTER, "--in", f"1={given}", "--out", out, "--commands", commands)
    assert ran.code == 1
    assert ran.err == (
        f"{given}: is read, and what leaves by a port could replace it; give another folder than {out}\n"
    )
    assert read.read_bytes() == before
    assert list(out.iterdir()) == [read]


def test_ctrl_c_leaves_nothing_behind(tmp_path: Path, commands: Path) -> None:
    one = pcap([(START, PACKET)])
    (tmp_path / "in").write_bytes(one[:24] + one[24:] * 200_000)
    out = tmp_path / "out"
    command = [
        sys.executable,
        "-m",
        "tidegate.cli",
        "replay",
        ROUTER,
        "--engine",
        "interp",
        "--commands",
        commands,
    ]
    command += [argument for _ in range(5) for argument in ("--in", f"1={tmp_path / 'in'}")]
    run = subprocess.Popen(
        [*command, "--out", out], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    while not out.exists():
        assert run.poll() is None
        time.sleep(0.01)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=60)
    assert (run.returncode, err) == (130, "interrupted\n")
    assert not out.exists()


SLOW = """
#include <core.p4>
#include <v1model.p4>
header h_t { bit<32> n; }
struct headers { h_t h; }
struct meta { bit<32> x; }
parser P(packet_in p, out headers h, inout meta m, inout standard_metadata_t s) {
  state start { p.extract(h.h); transition accept; }
}
control N(inout headers h, inout meta m) { apply {} }
control I(inout headers h, inout meta m, inout standard_metadata_t s) {
  apply {
    for (bit<32> i = 0; i < h.h.n; i = i + 1) {
      hash(m.x, HashAlgorithm.crc32, (bit<32>)0, { m.x, i }, (bit<64>)0xffffffff);
    }
    h.h.n = m.x;
    s.egress_spec = 1;
  }
}
control E(inout headers h, inout meta m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in headers h) { apply { p.emit(h); } }
V1Switch(P(), N(), I(), E(), N(), D()) main;
"""
"""As many hashes as a packet says."""


def slow(tmp_path: Path, *packets: int) -> list[str | Path]:
    """Words of a replay by the interpreter of packets that each take so many hashes."""
    (tmp_path / "slow.p4").write_text(SLOW)
    data = [(START, number.to_bytes(4, "big") + bytes(60)) for number in packets]
    (tmp_path / "in.pcap").write_bytes(pcap(data))
    named = ["--in", f"1={tmp_path / 'in.pcap'}", "--out", tmp_path / "out"]
    return ["replay", tmp_path / "slow.p4", "--engine", "interp", *named]


def test_ctrl_c_between_packets_that_take_long(tmp_path: Path) -> None:
    # All of them take minutes: each has the work of the whole budget.
    words = slow(tmp_path, *([2**32 - 1] * 4000))
    run = subprocess.Popen(
        [sys.executable, "-m", "tidegate.cli", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    while not (tmp_path / "out").exists():
        assert run.poll() is None
        time.sleep(0.01)
    time.sleep(0.5)
    run.send_signal(signal.SIGINT)
    _, err = run.communicate(timeout=20)
    assert (run.returncode, err) == (130, "interrupted\n")
    assert not (tmp_path / "out").exists()


def test_the_time_of_packets_that_take_long(tidegate: Run, tmp_path: Path) -> None:
    begun = time.monotonic()
    ran = tidegate(*slow(tmp_path, *([10_000] * 40)), "--json")
    took_ns = (time.monotonic() - begun) * 1e9
    # Of the three packets of which it is measured, two took so long at least.
    assert 100_000 < ran.json["ns_per_packet"] < took_ns / 20


def test_packets_that_are_stamped_backwards_or_very_long_are_noted(
    tidegate: Run, tmp_path: Path, commands: Path
) -> None:
    capture, out = tmp_path / "in.pcap", tmp_path / "out"
    stamped = [(START + 10_000, PACKET), (START, PACKET), (START + 20_000, PACKET + bytes(300_000))]
    capture.write_bytes(pcap(stamped))
    ran = tidegate("replay", ROUTER, "--in", f"1={capture}", "--out", out, "--commands", commands)
    assert ran.code == 0
    assert "1 packets were stamped earlier than the one before them in their file" in ran.err
    assert "1 packets left with more than 262144 bytes" in ran.err
    assert [time - START for time, _ in read_pcap(out / "port3.pcap")] == [10_000, 10_000, 20_000]


def test_no_file_gets_its_name_if_another_cannot(tidegate: Run, tmp_path: Path, commands: Path) -> None:
    capture, out = tmp_path / "in.pcap", tmp_path / "out"
    capture.write_bytes(pcap([(START, PACKET)]))
    (out / "port3.pcap").mkdir(parents=True)
    ran = tidegate("replay", ROUTER, "--in", f"1={capture}", "--out", out, "--commands", commands)
    assert ran.code == 1
    assert "port3.pcap: cannot be written: it is a directory; move it, or give another folder" in ran.err
    assert list(out.iterdir()) == [out / "port3.pcap"]


def test_the_program_is_not_replaced_by_its_p4info(tidegate: Run, tmp_path: Path) -> None:
    program = tmp_path / "router.p4"
    program.write_text(ROUTER.read_text())
    ran = tidegate("check", program, "--p4info", program)
    assert ran.code == 1
    assert "the P4Info would replace it; give another file" in ran.err
    assert program.read_text() == ROUTER.read_text()
