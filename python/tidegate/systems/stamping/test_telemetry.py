"""Telemetry: what switches write, and the congestion controls that read it, against what their papers say of a full link."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest
from scapy.layers.inet import IP
from scapy.layers.l2 import Ether

from tidegate import TidegateError
from tidegate.hosts.agents import Agent
from tidegate.hosts.shims import Echo, Insert, Signal
from tidegate.network import Network
from tidegate.systems.stamping.model import with_checksum
from tidegate.systems.stamping.setup import program, stamping
from tidegate.systems.stamping.telemetry import Telemetry

FORM = Telemetry()
MAC = "02:00:00:00:00:02"
# Four links of 5 us, and the packets' time on them.
RTT_US = 21.4
BDP = 25e9 * RTT_US * 1e-6 / 8


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_hop_says_rate_time_bytes_sent_and_queue(engine: Any) -> None:
    pipeline = program(FORM).pipeline(engine)
    pipeline.table_add("forward", [MAC], "to_port", [1])
    pipeline.table_add("ports", [1], "stamp", list(FORM.scale("25 Gbit/s")))
    option = bytes([30, 2 + FORM.size]) + FORM.blank + b"\0"
    head = bytes(Ether(dst=MAC, src="02:00:00:00:00:01") / IP(ihl=12, len=1486, proto=17))
    frame = with_checksum(head + option + bytes(1486 - 48))
    for number, (at, queue) in enumerate([(0, 0), (0xABCDEF012, 0), (1, 8079), (2, 1 << 30)]):
        # A pipeline alone has no queue of packets, so what is behind the packet is none.
        pipeline.register_write("backlog", [queue], 1)
        ((_, out),) = pipeline.process(at, 0, frame)
        (hop,) = FORM.read(out[36:61]).codes
        assert (hop >> 61, hop >> 37 & 0xFFFFFF) == (2, at // 1_000_000 & 0xFFFFFF)
        assert (hop >> 17 & 0xFFFFF, hop & 0x1FFFF) == (number * 1500 >> 7, 0)
        assert out == with_checksum(out)


def test_what_does_not_go_with_telemetry() -> None:
    for capacity, room in [(1, 12), (3, 28), (4, 36)]:
        assert Telemetry(capacity).wire_bytes == room
    with pytest.raises(TidegateError, match="an option of 43 bytes; an IPv4 header has room for 40"):
        Telemetry(5)
    with pytest.raises(TidegateError, match="ticks in 1 us; give the switch clock="):
        FORM.scale("25 Gbit/s", tick="1 us")
    with pytest.raises(TidegateError, match="no code for a link of 5 Gbit/s; there are 1, 10, 25, "):
        FORM.scale("5 Gbit/s")


class Host(Agent):
    """Sends room for telemetry, and echoes it to the congestion control."""

    shims = (
        Insert(FORM.option, FORM.blank),
        Echo(FORM.option, FORM.echo, longest=FORM.size),
        Signal(FORM.echo),
    )


def star(control: str, count: int, **options: str | int) -> tuple[list[float], float]:
    """Flows over one link of 25 Gbit/s: the rate of each on the wire in Gbit/s, and the mean queue in bytes, after 4 ms."""
    network = Network()
    switch = stamping(network, "switch", FORM, clock="1 ns")
    target = network.host("target")
    wire: dict[str, Any] = {"rate": "25 Gbit/s", "delay": "5 us", "queue": "1000 packets", "framing": 38}
    shared = network.link(switch, target, **wire)
    network.agent(target, Host())
    for number in range(count):
        source = network.host(f"source{number}")
        network.link(source, switch, **wire)
        network.agent(source, Host())
        network.tcp(
            source,
            target,
            start=f"{10 * number} us",
            congestion_control=control,
            control_options={
                **FORM.control_options,
                "line_rate": "25 Gbit/s",
                "rtt": f"{RTT_US} us",
                "overhead": 106,
                **options,
            },
            quick_ack=True,
            timestamps=False,
            segmentation_offload=None,
        )
    network.record("4 us", queues=[shared])
    result = network.run("8 ms", progress=False)
    assert result.flows["retransmits"].sum() == 0
    half = result.flow_samples.filter(pl.col("time_s") >= 0.004)
    ends = half.group_by("flow", maintain_order=True).agg(
        (pl.col("bytes_received").last() - pl.col("bytes_received").first()) / 0.004
    )
    # Payload of 1432 bytes in 1538 on the wire.
    rates = [rate * 8e-9 * 1538 / 1432 for rate in ends["bytes_received"]]
    return rates, result.queue_samples.filter(pl.col("time_s") >= 0.004)["bytes"].mean()  # type: ignore[return-value]


def jain(rates: list[float]) -> float:
    return sum(rates) ** 2 / len(rates) / sum(rate * rate for rate in rates)


def test_hpcc_fills_a_link_to_its_share_without_a_queue() -> None:
    # Its aim is 95 % of what the link carries (section 3.2).
    (rate,), queue = star("hpcc", 1)
    assert rate == pytest.approx(0.95 * 25, rel=0.02)
    assert queue < 200


def test_hpcc_has_the_queue_that_its_additive_steps_make() -> None:
    # Many flows exceed the 5 % that are left: N * W_AI less 5 % of what is in flight.
    rates, queue = star("hpcc", 20, additive_increase="500 B")
    assert queue == pytest.approx(20 * 500 - 0.05 * BDP, rel=0.25)
    assert jain(rates) > 0.99
    assert sum(rates) > 24


def test_powertcp_has_a_queue_in_proportion_to_its_flows_and_full_use() -> None:
    # The paper's fixed point is a queue of beta for each flow, of windows that are not whole packets (section 3.4).
    queues = []
    for flows, sharing in [(10, 50), (20, 50), (10, 100)]:
        rates, queue = star("powertcp", flows, flows=sharing)
        assert jain(rates) > 0.99
        assert sum(rates) > 24.5
        assert 0.45 < queue / (flows * BDP / sharing) < 1.05
        queues.append(queue)
    assert queues[1] / queues[0] == pytest.approx(2, rel=0.2)
    assert queues[2] / queues[0] == pytest.approx(0.5, rel=0.2)
