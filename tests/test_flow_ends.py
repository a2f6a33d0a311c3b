"""How a TCP flow ends at its `stop`: with a FIN or a RST of its sender, between simulated hosts and between real ones."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether

from conftest import read_pcap
from live import needs_namespaces, untimed
from tidegate import TidegateError
from tidegate.network import Network
from tidegate.results import Result

STOP_S = 0.5
BOTH = pytest.mark.parametrize("backend", ["sim", pytest.param("live", marks=[needs_namespaces, untimed])])


def run(
    backend: Literal["sim", "live"], ends: str, file: Path, **options: object
) -> tuple[Result, list[IP], list[IP]]:
    """The results of a flow of 20 Mbit/s, and what its sender and its receiver send from its stop on."""
    network = Network()
    source, target = network.host("source"), network.host("target")
    link = network.link(source, target, rate="20 Mbit/s", delay="10 ms", queue="50 packets")
    flow = network.tcp(source, target, stop=round(STOP_S * 1e12), ends=ends, **options)
    network.capture(link, source, file, snap="94 B")
    result = network.run("2 s", backend=backend, progress=False)
    forward: list[IP] = []
    back: list[IP] = []
    for at, data in read_pcap(file):
        packet = Ether(data)
        if TCP in packet and at >= STOP_S * 1e9:
            of = forward if packet[IP].src == network.five_tuple(flow).source else back
            of.append(packet[IP])
    return result, forward, back


def payload(packet: IP) -> int:
    return int(packet.len - 4 * packet.ihl - 4 * packet[TCP].dataofs)


@BOTH
@pytest.mark.parametrize("size", [None, "100 MB"])
def test_a_fin_follows_what_was_sent(
    backend: Literal["sim", "live"], size: str | None, tmp_path: Path
) -> None:
    result, forward, back = run(backend, "fin", tmp_path / "a.pcap", size=size)
    assert not any(packet[TCP].flags.R for packet in forward + back)
    fins = [packet for packet in forward if packet[TCP].flags.F]
    ends = {packet[TCP].seq + payload(packet) for packet in fins}
    assert ends == {
        max(packet[TCP].seq + payload(packet) for packet in forward if payload(packet) or packet in fins)
    }
    # All of it has come, and the receiver closes too.
    assert max(packet[TCP].ack for packet in back) == ends.pop() + 1
    assert any(packet[TCP].flags.F for packet in back)
    assert result.flows["finish_s"][0] > STOP_S
    # Where not all of a size has come, there is no time that it took.
    assert result.flows["completion_ms"].is_null().to_list() == [size is not None]
    assert result.flows["slowdown"].to_list() == [None]


@BOTH
@pytest.mark.parametrize("size", [None, "100 MB"])
def test_a_reset_ends_a_flow_at_once(
    backend: Literal["sim", "live"], size: str | None, tmp_path: Path
) -> None:
    result, forward, back = run(backend, "reset", tmp_path / "a.pcap", size=size)
    resets = [packet for packet in forward if packet[TCP].flags.R]
    # One says so, and one answers each ACK that was on its way.
    assert len(resets) > 10
    first, *answers = resets
    assert str(first[TCP].flags) == "RA"
    assert {str(packet[TCP].flags) for packet in answers} == {"R"}
    # Nothing that the application had written follows.
    later = forward[forward.index(first) :]
    assert later == resets
    assert not any(payload(packet) for packet in resets)
    assert not any(packet[TCP].flags.R or packet[TCP].flags.F for packet in back)
    assert result.flows["finish_s"].to_list() == [None]


def test_what_cannot_be_is_refused() -> None:
    network = Network()
    ends = network.host("a"), network.host("b")
    with pytest.raises(TidegateError, match="ends by 'crash', which there is not; known: fin, reset"):
        network.tcp(*ends, stop="1 s", ends="crash")
    with pytest.raises(TidegateError, match="a -> b ends by 'fin', but never; give a stop"):
        network.tcp(*ends, ends="fin")
