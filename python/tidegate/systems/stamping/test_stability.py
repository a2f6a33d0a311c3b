"""Stability of the control `stamp` with packets: steps of the load at RTTs of 10 us to 10 ms, with its default constants."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from tidegate.network import Network
from tidegate.systems.stamping.experiments.testbed import HEADERS, PLAIN, exact, stamp_all
from tidegate.systems.stamping.setup import stamping

pytestmark = pytest.mark.slow

T0_US = 10
FLOWS = 4


@pytest.mark.parametrize(("rtt_us", "rounds"), [(10, 900), (100, 600), (1_000, 300), (10_000, 150)])
def test_after_a_step_the_queue_is_steady(rtt_us: int, rounds: int) -> None:
    """UDP takes 30 % of the bottleneck in the second third of the run: neither step leaves a lasting oscillation."""
    network, form = Network(), exact("max")
    switch, target = stamping(network, "switch", form, clock="1 ns"), network.host("target")
    wire = {"rate": "25 Gbit/s", "framing": 0, "queue": "100000 packets"}
    packet_us = 1500 * 8e-3 / 25
    delay = round((rtt_us - 2 * packet_us) / 4 * 1e6)
    sources = [network.host(f"from{number}") for number in range(FLOWS + 1)]
    for host in (target, *sources):
        network.link(host, switch, delay=max(delay, 0), **wire)  # type: ignore[arg-type]
    stamp_all(network, (target, *sources[:FLOWS]), form)
    options = {
        **form.control_options,
        "base_rtt": f"{T0_US} us",
        "rtt": f"{rtt_us} us",
        "line_rate": "25 Gbit/s",
        "overhead": HEADERS + form.wire_bytes,
        "min_rate": "1 Mbit/s",
    }
    for source in sources[:FLOWS]:
        network.tcp(source, target, congestion_control="stamp", control_options=options, **PLAIN)
    third = rounds // 3 * rtt_us
    rate = "7.5 Gbit/s"
    network.udp(sources[FLOWS], target, rate=rate, start=f"{third} us", stop=f"{2 * third} us")
    network.record(f"{rtt_us / 4:g} us", queues=network.links[:1])
    result = network.run(f"{3 * third} us", progress=False)
    queue = result.queue_samples.filter(pl.col("queue") == "switch -> target").sort("time_s")
    times, waits = queue["time_s"].to_numpy() * 1e6, queue["bytes"].to_numpy() * packet_us / 1500
    busy = queue["busy_s"].to_numpy()
    for number in (1, 2, 3):
        late = (times > (number - 0.2) * third) & (times < number * third)
        low, high = np.quantile(waits[late], [0.05, 0.95])
        share = (busy[late][-1] - busy[late][0]) * 1e6 / (times[late][-1] - times[late][0])
        # Packets are discrete: a queue of two, and one of UDP between. With an RTT of 100 T0 and more, freed capacity is taken slowly.
        assert high - low <= 3 * packet_us, (rtt_us, number, low, high)
        assert share > (0.98 if number < 3 or rtt_us <= 10 * T0_US else 0.65), (rtt_us, number, share)
