"""The rules of `tidegate monitor`, each against the tool whose rule it is, sample by sample."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import pytest
from scapy.layers.inet import TCP
from scapy.utils import PcapWriter, rdpcap

from rtt_tools import (
    compare,
    compare_exact,
    compare_timestamps,
    needs_tcptrace,
    needs_tshark,
    of_tshark,
    ours,
)
from test_monitor import Talk, simulated


def without_ack_flag(talk: Talk) -> None:
    """The last packet keeps its acknowledgment number and loses the flag that says that it has one."""
    talk.packets[-1][TCP].flags = "R"


@needs_tshark
@needs_tcptrace
@pytest.mark.parametrize("offset", [1000, 2**32 - 4000])
def test_cases_of_the_rules(tmp_path: Path, offset: int) -> None:
    """What the rules do is in the names; tshark and tcptrace are asked as well."""
    cases: dict[str, tuple[Callable[[Talk, float], None], dict[str, int]]] = {
        "one ACK for two": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 1, 0, 1000, 0, 1000),
                t.send(at + 11, 1, 0, 2000),
            ),
            {"exact": 1, "tshark": 1, "tcptrace": 1},
        ),
        "sent again": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 200, 0, 0, 0, 1000),
                t.send(at + 210, 1, 0, 1000),
            ),
            {"exact": 0, "tshark": 1, "tcptrace": 0},
        ),
        "two sent again as one": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 1, 0, 1000, 0, 1000),
                t.send(at + 200, 0, 0, 0, 2000),
                t.send(at + 210, 1, 0, 2000),
            ),
            {"exact": 0, "tshark": 1, "tcptrace": 0},
        ),
        "a hole that is filled": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 1, 0, 1000, 0, 1000),
                t.send(at + 2, 0, 2000, 0, 1000),
                t.send(at + 11, 1, 0, 0, options=[("SAck", (1, 2))]),
                t.send(at + 12, 0, 0, 0, 1000),
                t.send(at + 22, 1, 0, 3000),
            ),
            {"exact": 0, "tshark": 1, "tcptrace": 0},
        ),
        "reordered before the tap": (
            lambda t, at: (
                t.send(at, 0, 1000, 0, 1000),
                t.send(at + 1, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000),
                t.send(at + 11, 1, 0, 2000),
            ),
            {"exact": 0, "tshark": 2, "tcptrace": 1},
        ),
        "ACKs within a large segment": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 3000),
                t.send(at + 10, 1, 0, 1000),
                t.send(at + 10.1, 1, 0, 2000),
                t.send(at + 10.2, 1, 0, 3000),
            ),
            {"exact": 1, "tshark": 1, "tcptrace": 0},
        ),
        "keep-alive": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000),
                t.send(at + 500, 0, 999, 0),
                t.send(at + 510, 1, 0, 1000),
            ),
            {"exact": 1, "tshark": 1, "tcptrace": 1},
        ),
        "of what was never seen": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 5, 1, 0, 500_000),
                t.send(at + 10, 1, 0, 1000),
            ),
            {"exact": 1, "tshark": 0, "tcptrace": 0},
        ),
        "late, lower ACK": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 1, 0, 1000, 0, 1000),
                t.send(at + 11, 1, 0, 2000),
                t.send(at + 12, 1, 0, 1000),
            ),
            {"exact": 1, "tshark": 1, "tcptrace": 1},
        ),
        "FIN": (
            lambda t, at: (t.send(at, 0, 0, 0, 1000, "F"), t.send(at + 10, 1, 0, 1001)),
            {"exact": 1, "tshark": 1, "tcptrace": 1},
        ),
        "sent again though it was acknowledged": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000),
                t.send(at + 11, 0, 0, 0, 1000),
                t.send(at + 21, 1, 0, 1000),
            ),
            {"exact": 1, "tshark": 2, "tcptrace": 1},
        ),
        "keep-alive of one byte": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000),
                t.send(at + 500, 0, 999, 0, 1),
                t.send(at + 510, 1, 0, 1000),
            ),
            {"exact": 1, "tshark": 2, "tcptrace": 1},
        ),
        "zero-window probe that is taken at last": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000, window=0),
                t.send(at + 200, 0, 1000, 0, 1),
                t.send(at + 210, 1, 0, 1000, window=0),
                t.send(at + 400, 0, 1000, 0, 1),
                t.send(at + 410, 1, 0, 1001),
            ),
            {"exact": 1, "tshark": 2, "tcptrace": 1},
        ),
        "zero-window probe that is taken at once": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000, window=0),
                t.send(at + 200, 0, 1000, 0, 1),
                t.send(at + 210, 1, 0, 1001),
            ),
            {"exact": 2, "tshark": 2, "tcptrace": 1},
        ),
        "RST with an acknowledgment number and no ACK flag": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000, flags="R"),
                without_ack_flag(t),
            ),
            {"exact": 0, "tshark": 1, "tcptrace": 0},
        ),
        "data and its ACK in one microsecond": (
            lambda t, at: (t.send(at, 0, 0, 0, 1000), t.send(at, 1, 0, 1000)),
            {"exact": 1, "tshark": 0, "tcptrace": 1},
        ),
        "two segments in one microsecond": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at, 0, 1000, 0, 1000),
                t.send(at + 10, 1, 0, 1000),
                t.send(at + 10, 1, 0, 2000),
            ),
            {"exact": 2, "tshark": 2, "tcptrace": 2},
        ),
        "ACKs on data": (
            lambda t, at: (
                t.send(at, 0, 0, 0, 1000),
                t.send(at + 10, 1, 0, 1000, 300),
                t.send(at + 11, 0, 1000, 300, 1000),
                t.send(at + 21, 1, 300, 2000),
            ),
            {"exact": 3, "tshark": 3, "tcptrace": 3},
        ),
    }
    # The handshake's: the SYN's and the SYN-ACK's.
    handshake = 2
    for number, (name, (packets, expected)) in enumerate(cases.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        talk = Talk(isn=(offset, 9000))
        packets(talk, talk.open())
        path = talk.write(folder)
        found = {rule: len(ours(path, rule)) - handshake for rule in expected}
        assert found == expected, name
        compare(path)


@needs_tshark
def test_another_connection_on_the_same_ports(tmp_path: Path) -> None:
    def stamps(value: int, echo: int) -> list[object]:
        return [("NOP", None), ("NOP", None), ("Timestamp", (value, echo))]

    # The first loses its last segment for good. The second, with lower numbers and values, comes to those of the first.
    talk = Talk(isn=(100_999, 4999))
    talk.send(0, 0, -1, None, flags="S", options=stamps(1000, 0))
    talk.send(10, 1, -1, 0, flags="S", options=stamps(7000, 1000))
    talk.send(11, 0, 0, 0, 1000, options=stamps(2000, 7000))
    talk.isn = (21_499, 8999)
    talk.send(60_000, 0, -1, None, flags="S", options=stamps(100, 0))
    talk.send(60_020, 1, -1, 0, flags="S", options=stamps(300, 100))
    talk.send(60_021, 0, 0, 0, 60_000, options=stamps(121, 300))
    talk.send(60_041, 1, 0, 60_000, options=stamps(341, 121))
    talk.send(61_900, 0, 60_000, 0, 20_500, options=stamps(2000, 341))
    talk.send(61_920, 1, 0, 80_500, options=stamps(2220, 2000))
    path = talk.write(tmp_path)
    for rule in ("exact", "tshark", "timestamps"):
        assert list(ours(path, rule).values()) == pytest.approx([10, 1, 20, 1, 20, 20]), rule
    assert ours(path, "tshark") == pytest.approx(of_tshark(path))


@needs_tshark
@needs_tcptrace
@pytest.mark.slow
@pytest.mark.parametrize("loss", [0.0, 0.01], ids=["drops", "losses"])
def test_connections_with_losses(tmp_path: Path, loss: float) -> None:
    path = simulated(tmp_path, loss)
    tshark, tcptrace = compare(path)
    assert tshark > 3000
    assert tcptrace > 1000
    exact, _ = compare_exact(path)
    assert exact > 0.9 * tshark
    assert compare_timestamps(path) > 1000


@needs_tshark
@needs_tcptrace
@pytest.mark.slow
def test_packets_out_of_order(tmp_path: Path) -> None:
    """A capture whose packets have changed places, as in a network with several paths."""
    packets = list(rdpcap(str(simulated(tmp_path, 0.005))))
    dice = random.Random(7)
    for at in range(0, len(packets) - 4, 5):
        if dice.random() < 0.2:
            one, other = at, at + dice.randrange(1, 4)
            times = packets[one].time, packets[other].time
            packets[one], packets[other] = packets[other], packets[one]
            packets[one].time, packets[other].time = times
    path = tmp_path / "disordered.pcap"
    with PcapWriter(str(path)) as writer:
        writer.write(packets)
    tshark, tcptrace = compare(path)
    assert tshark > 3000
    assert tcptrace > 500
    exact, _ = compare_exact(path)
    assert exact > 0.5 * tshark
    assert compare_timestamps(path) > 1000


@needs_tshark
@pytest.mark.slow
def test_timestamps_are_paired_once_each(tmp_path: Path) -> None:
    assert compare_timestamps(simulated(tmp_path)) > 1000


@pytest.mark.slow
@pytest.mark.parametrize("behind", [0.0, 0.02])
def test_exact_samples_are_true(tmp_path: Path, behind: float) -> None:
    """Acknowledgments are not lost here: no sample is longer than the queues and a delayed acknowledgment make it."""
    path = simulated(tmp_path, behind=behind)
    exact = ours(path, "exact")
    assert len(exact) > 2000
    assert max(exact.values()) < 20 + 30 * 1514 * 8 / 20e3 + 41
    assert min(exact.values()) >= 0.0
    if behind:
        assert max(ours(path, "tshark").values()) > 2 * max(exact.values())
