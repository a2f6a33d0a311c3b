"""A policer in front of a simulated host: what a real kernel shows, and by the same way."""

import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import pytest

from conftest import read_pcap
from tidegate.experiments import replot, run
from tidegate.systems.reference.experiments.policer import policer_network

pytestmark = pytest.mark.slow

MS = 1_000_000


def test_the_experiment(tmp_path: Path) -> None:
    out = tmp_path / "run"
    answer = run("reference.policer", {}, seeds=[1], quick=True, out=out)
    assert len(answer["claims"]) == 9
    assert [claim["statement"] for claim in answer["claims"] if not claim["holds"]] == []
    assert replot(out).read_bytes().startswith(b"\x89PNG")


@dataclass(frozen=True)
class Data:
    """A segment with data: when, and its number in the stream."""

    ns: int
    seq: int


def segments(path: Path) -> tuple[list[Data], list[int]]:
    """The segments with data from 10.0.0.1 in a capture; and the times of all other packets."""
    data, others = [], []
    for ns, frame in read_pcap(path):
        total, source = struct.unpack_from("!H", frame, 16)[0], frame[26:30]
        seq, offset = struct.unpack_from("!I", frame, 38)[0], frame[46] >> 4
        if source == b"\x0a\x00\x00\x01" and total > 20 + 4 * offset:
            data.append(Data(ns, seq))
        else:
            others.append(ns)
    return data, others


@pytest.mark.parametrize(("rate", "rtt_us"), [(100, 100), (800, 12)])
def test_the_collapse_is_whole_windows_lost_and_timeouts_of_200_ms(
    tmp_path: Path, rate: int, rtt_us: int
) -> None:
    net = policer_network(rate, rtt_us)
    a, b = net.nodes[0], net.nodes[1]
    net.capture(net.links[0], a, tmp_path / "a.pcap", snap="66 B")
    net.capture(net.links[1], b, tmp_path / "b.pcap", snap="66 B")
    flow = net.run("3 s").flows.row(0, named=True)
    (sent, answers), (come, _) = segments(tmp_path / "a.pcap"), segments(tmp_path / "b.pcap")
    silences = [(one, next) for one, next in pairwise(sent) if next.ns - one.ns > 150 * MS]
    # Nearly all of the time is silence: the smallest timeout of Linux, and a round trip or one of its other timers.
    assert sum(next.ns - one.ns for one, next in silences) > 0.9 * 2.8e9
    assert all(200 * MS <= next.ns - one.ns < 203 * MS for one, next in silences)
    assert flow["timeouts"] >= len(silences) >= 13
    for one, next in silences:
        # After the last answer nothing comes through any more: the rest of the window is gone.
        last_answer = max(ns for ns in answers if ns < next.ns)
        assert last_answer <= one.ns
        assert not any(last_answer < d.ns < next.ns for d in come)
        # What ends the silence is a segment that was sent before and did not come.
        assert next.seq in {d.seq for d in sent if d.ns < next.ns}
        assert next.seq not in {d.seq for d in come if d.ns < next.ns}
    # Meanwhile the bucket fills: 86 packets and more go through, then it is dry again.
    assert len({d.seq for d in come}) / len(silences) > 80


def test_a_round_trip_of_a_millisecond_loses_packets_and_not_the_rate() -> None:
    flow = policer_network(100, 1000).run("5 s").flows.row(0, named=True)
    assert flow["goodput_mbps"] == pytest.approx(95.6, abs=1)
    assert flow["retransmits"] > 1000
    assert (flow["timeouts"], flow["undos"]) == (0, 0)
