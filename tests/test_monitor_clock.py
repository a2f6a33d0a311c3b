"""`tidegate monitor` on captures whose clock is set back: no false round-trip times."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from scapy.layers.inet import IP, UDP
from scapy.layers.l2 import Ether
from scapy.packet import Packet, Raw

from test_monitor import A, B, Talk, written
from tidegate.monitor import watch

RTT_MS = 40
STEP_MS = 100
"""The clock is set back by so much."""
AT_MS = 300
"""So long after the begin."""


def talk() -> list[Packet]:
    """Half a second of data, a segment each millisecond, each acknowledged after the same time."""
    told = Talk()
    for number in range(500):
        told.send(number, 0, 1000 * number, 0, 1000)
        told.send(number + RTT_MS, 1, 0, 1000 * (number + 1))
    return sorted(told.packets, key=lambda packet: float(packet.time))


def quic() -> list[Packet]:
    """The spin bit changes each 40 ms in each direction."""
    packets = []
    for number in range(1000):
        head = 0x40 | 0x20 * (number // RTT_MS % 2)
        first = bytes([0xC0, 0, 0, 0, 1]) if number < 2 else bytes([head, 1, 2, 3, 4])
        ends, ports = ((A, B), (4433, 443)) if number % 2 else ((B, A), (443, 4433))
        packet = Ether() / IP(src=ends[0], dst=ends[1]) / UDP(sport=ports[0], dport=ports[1])
        packet /= Raw(first + bytes(50))
        packet.time = 1_700_000_000 + number / 1000
        packets.append(packet)
    return packets


def set_back(packets: list[Packet], ms: float) -> list[Packet]:
    """The same with a clock that goes back after 0.3 s."""
    at = packets[0].time + AT_MS / 1000
    copies = [packet.copy() for packet in packets]
    for copy, packet in zip(copies, packets, strict=True):
        copy.time = packet.time - (ms / 1000 if packet.time > at else 0)
    return copies


def samples(captures: list[Path], rule: str = "exact") -> tuple[list[float], list[str]]:
    """Round-trip times in ms, and the warnings."""
    file = captures[0].with_suffix(".csv")
    warnings = watch(captures, rtt_rule=rule, samples=file)["warnings"]
    return pl.read_csv(file)["rtt_ms"].to_list(), warnings


def of_direction(packets: list[Packet], folder: Path, name: str) -> Path:
    return written([packet for packet in packets if packet["IP"].src == name], folder, f"{name}.pcap")


@pytest.mark.parametrize("apart", [False, True], ids=["one file", "a file for each direction"])
def test_no_time_across_a_clock_that_is_set_back(tmp_path: Path, apart: bool) -> None:
    packets = set_back(talk(), STEP_MS)
    files = [of_direction(packets, tmp_path, name) for name in (A, B)]
    files = files if apart else [written(packets, tmp_path)]
    found, warnings = samples(files)
    # What was acknowledged until then, from the segment at 0 ms on; and what was sent when the clock had caught up. With two files the
    # first acknowledgment that is in doubt comes before the last one that is not: both count at the same time.
    before, after = AT_MS - RTT_MS + (not apart), 500 - AT_MS - STEP_MS - 1
    assert found == pytest.approx([RTT_MS] * (before + after), abs=1e-3)
    late = 2 * (STEP_MS - 1)
    assert warnings == [
        f"{late} packets are stamped earlier than the one before them; they count at the time of that one",
        f"{late} of them by more than 0.1 ms: the clock was set back; until it had caught up, RTT rule exact and QUIC's spin "
        "bit give no round-trip times",
    ]
    # Of tcptrace's rule, which takes what the stamps say.
    assert min(samples(files, "tcptrace")[0]) < RTT_MS - 1


def test_no_spin_across_a_clock_that_is_set_back(tmp_path: Path) -> None:
    found, warnings = samples([written(set_back(quic(), STEP_MS), tmp_path)])
    assert found == pytest.approx([RTT_MS] * len(found), abs=1e-3)
    assert len(found) > 30
    assert "the clock was set back" in warnings[1]


def test_packets_in_slight_disorder_lose_nothing(tmp_path: Path) -> None:
    """Each tenth packet is stamped 0.05 ms early, as by another processor: one stamp before that of the packet before it."""
    packets = talk()
    for packet, before in zip(packets[9::10], packets[8::10], strict=True):
        packet.time = before.time - 5e-5
    found, warnings = samples([written(packets, tmp_path)])
    assert len(found) == 500
    assert found == pytest.approx([RTT_MS] * 500, abs=1.1)
    assert len(warnings) == 1
    assert "100 packets are stamped earlier" in warnings[0]
