"""Echoes where ACKs are delayed and packets come out of order, and the controls that follow them."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import polars as pl
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Ether
from scapy.utils import RawPcapReader

from tidegate.hosts.agents import Agent
from tidegate.hosts.shims import Echo, Insert, Signal
from tidegate.network import Network
from tidegate.results import jain
from tidegate.systems.stamping.format import Format
from tidegate.systems.stamping.model import find
from tidegate.systems.stamping.setup import stamping

FORM = Format("32 ms", 8, bins="log", mantissa=5)
ACCESS = "1 Gbit/s"
# A packet takes 0.12 ms: it comes two or three places too late.
REORDERED: dict[str, Any] = {"reorder": 0.02, "reorder_by": "300 us"}
EACH: dict[str, Any] = {"quick_ack": True, "segmentation_offload": None}
WAYS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "each packet": (EACH, {}),
    "delayed": ({"segmentation_offload": None}, {}),
    "bursts": ({}, {}),
    "out of order": (EACH, REORDERED),
    "delayed, out of order": ({"segmentation_offload": None}, REORDERED),
}
"""Keywords of flows and of the way to the receiver."""


class Host(Agent):
    def __init__(self, keep: Literal["latest", "max"] = "max") -> None:
        self.shims = (
            Insert(FORM.option, FORM.blank),
            Echo(FORM.option, FORM.echo, keep=keep),
            Signal(FORM.echo),
        )


def lab(way: str, flows: list[dict[str, Any]], keep: Literal["latest", "max"] = "max") -> Network:
    """Senders, a stamping switch and a receiver; round trips of 2 ms, and a bottleneck of 100 Mbit/s."""
    keywords, late = WAYS[way]
    net = Network()
    switch, target = stamping(net, "switch", FORM), net.host("target")
    last = net.link(switch, target, rate="100 Mbit/s", delay="500 us", queue="250 packets")
    if late:
        last.set(0, direction="forward", **late)
    net.agent(target, Host(keep))
    for number, flow in enumerate(flows):
        host = net.host(f"from{number}")
        net.link(host, switch, rate=ACCESS, delay="500 us", queue="10 MB")
        net.agent(host, Host(keep))
        net.tcp(host, target, start=number * 10**10, **keywords, **flow)
    net.record("1 ms", queues=[last])
    return net


STAMP: dict[str, Any] = {
    "congestion_control": "stamp",
    "control_options": {
        **FORM.control_options,
        "line_rate": ACCESS,
        "base_rtt": "2 ms",
        "min_rate": "1 Mbit/s",
        "min_cwnd": 2,
    },
}
TIMELY: dict[str, Any] = {
    "congestion_control": "timely",
    "control_options": {
        **FORM.control_options,
        "signal": "stamp",
        "step": "ack",
        "send": "window",
        "scaled": "yes",
        "raw_falls": "yes",
        "most_cut": 0.5,
        "thresholds": "fixed",
        "t_low": "4 ms",
        "t_high": "15 ms",
        "delta": "1 Mbit/s",
        "alpha": 0.3,
        "beta": 0.6,
    },
}
DCTCP: dict[str, Any] = {
    "congestion_control": "dctcp",
    "control_options": {**FORM.control_options, "alpha": "stamp", "threshold": "2 ms"},
}


def echoed(frame: bytes) -> int | None:
    """The code of an echo."""
    for kind, data in Ether(frame)[TCP].options:
        if kind == FORM.echo.kind:
            return FORM.read(data).code
    return None


@pytest.mark.parametrize("keep", ["latest", "max"])
@pytest.mark.parametrize("way", WAYS)
def test_an_ack_echoes_what_has_come_since_the_last(
    way: str, keep: Literal["latest", "max"], tmp_path: Path
) -> None:
    """`max`: the largest, once. `latest`: the last one, on each ACK. In both, in the order of arrival, which need not be that of sending."""
    net = lab(way, [STAMP, {"congestion_control": "cubic"}], keep)
    net.capture(net.links[0], net.nodes[1], tmp_path / "target.pcap")
    net.run("300 ms", progress=False)
    target = net.address(net.nodes[1])
    stamps: dict[int, list[int]] = {}
    latest: dict[int, int] = {}
    echoes, skipped, several = 0, 0, 0
    for frame, _ in RawPcapReader(str(tmp_path / "target.pcap")):
        packet = Ether(frame)
        if packet[IP].dst == target:
            at = find(FORM, frame)
            if isinstance(at, int):
                flow, code = packet[TCP].sport, FORM.read(frame[at : at + FORM.size]).code
                stamps.setdefault(flow, []).append(code)
                latest[flow] = code
            continue
        flow, echo = packet[TCP].dport, echoed(frame)
        if flow not in latest:
            assert echo is None
            continue
        since = stamps[flow]
        if echo is None:
            # Nothing new, or SACK has taken the room.
            assert (keep == "max" and not since) or len(packet[TCP].options) > 3
            skipped += 1
            continue
        several += len(set(since)) > 1
        assert echo == (max(since) if keep == "max" else latest[flow])
        since.clear()
        echoes += 1
    assert echoes > 500
    assert skipped < echoes / 10
    assert (several > 50) == ("delayed" in way or way == "bursts")


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("control", [STAMP, TIMELY, DCTCP], ids=["stamp", "timely", "dctcp"])
def test_a_control_goes_on_with_fewer_or_disordered_echoes(control: dict[str, Any], way: str) -> None:
    """Two flows keep the link busy and the queue at the control's own length, as with an ACK for each packet."""
    result = lab(way, [control, control]).run("4 s", progress=False)
    late = pl.col("time_s") > 1.5
    queue = result.queue_samples.filter(late & (pl.col("queue") == "switch -> target"))
    busy, times = queue["busy_s"], queue["time_s"]
    assert (busy[-1] - busy[0]) / (times[-1] - times[0]) > 0.99
    shares = jain(result.goodput_mbps(1.5)["goodput_mbps"])
    longest = queue["queue_delay_ms"].quantile(0.99)
    assert longest is not None
    name = control["congestion_control"]
    # What the control aims at: a quarter of a round trip, T_low less the round trip and what its steps add, the threshold.
    assert shares > {"stamp": 0.98, "timely": 0.98, "dctcp": 0.85}[name]
    assert longest < {"stamp": 0.6, "timely": 5, "dctcp": 2.6}[name]
    assert result.flows["timeouts"].sum() == 0
    assert result.flows["retransmits"].sum() < 10
