"""Round-trip times of a capture by `tidegate monitor`, tshark and tcptrace, and what they must have in common."""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from bisect import bisect_left
from collections import defaultdict
from pathlib import Path
from statistics import median

import polars as pl
import pytest

from tidegate.monitor import watch

needs_tshark = pytest.mark.skipif(shutil.which("tshark") is None, reason="needs tshark")
needs_tcptrace = pytest.mark.skipif(shutil.which("tcptrace") is None, reason="needs tcptrace")

Flow = tuple[str, int, str, int]
"""Source, port, destination, port of a packet that was acknowledged."""
Sample = tuple[str, int, str, int, int, int]
"""The flow; acknowledgment number; microseconds of its time."""


def ours(path: Path, rule: str) -> dict[Sample, float]:
    """Samples by a rule, in ms, in the order of their times."""
    out = path.with_suffix(f".{rule}.csv")
    watch([path], rtt_rule=rule, samples=out)
    return {
        (
            row["src"],
            row["src_port"],
            row["dst"],
            row["dst_port"],
            row["ack"],
            round(float(row["time_s"]) * 1e6),
        ): float(row["rtt_ms"])
        for row in pl.read_csv(out, schema_overrides={"time_s": pl.String, "rtt_ms": pl.String}).iter_rows(
            named=True
        )
    }


def fields(path: Path, *names: str, only: str = "tcp") -> list[list[str]]:
    """Fields of each packet that a display filter of tshark lets through."""
    words = [word for name in names for word in ("-e", name)]
    command = ["tshark", "-r", str(path), "-Y", only, "-T", "fields", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]


def of_tshark(path: Path) -> dict[Sample, float]:
    """Samples of `tcp.analysis.ack_rtt`, in ms."""
    names = (
        "ip.src",
        "ipv6.src",
        "tcp.srcport",
        "ip.dst",
        "ipv6.dst",
        "tcp.dstport",
        "tcp.ack_raw",
        "frame.time_epoch",
        "tcp.analysis.ack_rtt",
    )
    found = {}
    for row in fields(path, *names, only="tcp.analysis.ack_rtt"):
        four, six, sport, four_to, six_to, dport, ack, time, rtt = row
        key = (four_to or six_to, int(dport), four or six, int(sport), int(ack), round(float(time) * 1e6))
        found[key] = float(rtt) * 1000
    return found


def of_tcptrace(path: Path) -> dict[Flow, tuple[list[int], int, float]]:
    """By flow: samples in whole ms in the order of their times, how many it says that there are, and their mean in ms, to 0.1 ms."""
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        command = ["tcptrace", "-r", "-l", "-n", "-Z", str(path.resolve())]
        text = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True).stdout
        for part in re.split(r"TCP connection \d+:", text)[1:]:
            hosts = re.findall(r"host ([a-z0-9]+):\s+(\S+):(\d+)", part)[:2]
            counts = re.search(r"RTT samples:\s+(\d+)\s+RTT samples:\s+(\d+)", part)
            means = re.search(r"RTT avg:\s+(\S+) ms\s+RTT avg:\s+(\S+) ms", part)
            assert counts is not None, part
            assert means is not None, part
            for side in (0, 1):
                (mine, address, port), (theirs, other, other_port) = hosts[side], hosts[1 - side]
                # Of longer names it has the beginning.
                raw = Path(folder, f"{mine}2{theirs}_rttraw.dat"[:14])
                lines = raw.read_text().splitlines() if raw.exists() else []
                samples = [int(line.split()[1]) for line in lines]
                flow = (address, int(port), other, int(other_port))
                assert flow not in found, "connections of the captures have ports of their own"
                found[flow] = (samples, int(counts[1 + side]), float(means[1 + side]))
    return found


def by_flow(samples: dict[Sample, float]) -> dict[Flow, list[float]]:
    """Round-trip times of each flow, in the order in which they come."""
    found: dict[Flow, list[float]] = defaultdict(list)
    for key, rtt in samples.items():
        found[key[:4]].append(rtt)
    return found


def compare(path: Path) -> tuple[int, int]:
    """The rules `tshark` and `tcptrace` against the tools; gives the tools' numbers of samples."""
    theirs, mine = of_tshark(path), ours(path, "tshark")
    assert mine.keys() - theirs.keys() == set()
    assert len(mine) >= 0.99 * len(theirs), theirs.keys() - mine.keys()
    for key, rtt in mine.items():
        assert rtt == pytest.approx(theirs[key], abs=0.0011), key
    all_of_mine = by_flow(mine)
    for flow, expected in by_flow(theirs).items():
        if len(expected) >= 100:
            assert median(all_of_mine[flow]) == pytest.approx(median(expected), rel=0.01), flow
    return len(theirs), compare_tcptrace(path)


def compare_tcptrace(path: Path) -> int:
    """The rule `tcptrace` against the tool, in the order of samples; gives their number."""
    counted = by_flow(ours(path, "tcptrace"))
    expected = of_tcptrace(path)
    assert counted.keys() <= expected.keys()
    for flow, (samples, count, mean) in expected.items():
        mine = counted.get(flow, [])
        assert 0.99 * count <= len(mine) <= count, (flow, len(mine), count)
        # Each of mine is the next of theirs, or theirs has others in between. It cuts them to milliseconds, and not all of 0 are there.
        above = [sample for sample in samples if sample]
        rest = iter(above)
        written = [rtt for rtt in mine if rtt >= 1]
        for number, rtt in enumerate(written):
            least, most = int(rtt - 0.0011), int(rtt + 0.0011)
            assert any(least <= one <= most for one in rest), (flow, number, rtt)
        assert len(above) - len(written) <= count - len(mine), flow
        if len(mine) >= 100:
            assert sum(mine) / len(mine) == pytest.approx(mean, rel=0.01, abs=0.051), flow
    total = sum(count for _, count, _ in expected.values())
    assert sum(map(len, counted.values())) >= 0.99 * total
    return total


MARKS = " || ".join(
    (
        "tcp.analysis.retransmission",
        "tcp.analysis.out_of_order",
        "tcp.analysis.lost_segment",
        "tcp.analysis.ack_lost_segment",
        "tcp.analysis.duplicate_ack",
        "tcp.options.sack_le",
    )
)
"""What tshark finds wrong with a packet, or an acknowledgment tells of a hole."""


def undisturbed(path: Path, samples: dict[Sample, float]) -> set[Sample]:
    """Those of tshark's samples of which no packet of the connection is marked, from the segment to its acknowledgment."""
    marked: dict[Flow, list[int]] = defaultdict(list)
    names = ("ip.src", "ipv6.src", "tcp.srcport", "ip.dst", "ipv6.dst", "tcp.dstport", "frame.time_epoch")
    for four, six, sport, four_to, six_to, dport, time in fields(path, *names, only=MARKS):
        one, other = (four or six, int(sport)), (four_to or six_to, int(dport))
        for flow in ((*one, *other), (*other, *one)):
            marked[flow].append(round(float(time) * 1e6))
    found = set()
    for key, rtt in samples.items():
        times, acked = marked[key[:4]], key[5]
        first = bisect_left(times, acked - round(rtt * 1e3))
        if first == len(times) or times[first] > acked:
            found.add(key)
    return found


def compare_exact(path: Path) -> tuple[int, int]:
    """Each sample of the rule `exact` is one of tshark's, and it has all of those that nothing disturbs; gives the numbers of both.

    That is so where nothing is acknowledged that the capture has not. A sample of 0, of less than the capture's resolution, tshark does
    not show.
    """
    theirs, mine = of_tshark(path), {key: rtt for key, rtt in ours(path, "exact").items() if rtt > 0}
    assert mine.keys() - theirs.keys() == set()
    for key, rtt in mine.items():
        assert rtt == pytest.approx(theirs[key], abs=0.0011), key
    clean = undisturbed(path, theirs)
    assert clean, "the capture is disturbed all the time"
    assert clean - mine.keys() == set()
    return len(mine), len(theirs)


def compare_timestamps(path: Path) -> int:
    """The rule `timestamps` against what tshark reads, paired as pping does; gives the number of samples."""
    names = ("frame.time_epoch", "ip.src", "tcp.srcport", "ip.dst", "tcp.dstport", "tcp.len", "tcp.flags.syn")
    names += ("tcp.options.timestamp.tsval", "tcp.options.timestamp.tsecr", "tcp.flags.ack", "tcp.ack_raw")
    first: dict[tuple[Flow, int], float] = {}
    last: dict[Flow, int] = {}
    expected: dict[Sample, float] = {}
    for time, src, sport, dst, dport, length, syn, value, echo, ack, number in fields(path, *names):
        if not value:
            continue
        flow, back = (src, int(sport), dst, int(dport)), (dst, int(dport), src, int(sport))
        if ack == "True" or ack == "1":
            sent = first.pop((back, int(echo)), None)
            if sent is not None:
                expected[*back, int(number), round(float(time) * 1e6)] = (float(time) - sent) * 1000
        if (int(length) or syn in ("True", "1")) and int(value) > last.get(flow, -1):
            # In the middle of a connection, the first packet of a value may have been before.
            if flow in last or syn in ("True", "1"):
                first[flow, int(value)] = float(time)
            last[flow] = int(value)
    found = ours(path, "timestamps")
    assert found.keys() - expected.keys() == set()
    assert len(found) >= 0.99 * len(expected), expected.keys() - found.keys()
    for key, rtt in found.items():
        assert rtt == pytest.approx(expected[key], abs=0.0011), key
    return len(expected)
