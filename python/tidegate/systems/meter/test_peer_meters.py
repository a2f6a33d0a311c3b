"""The controllers of BC-PQP and FairPolicer, and the sizes that they are published with."""

from __future__ import annotations

from typing import Any

import pytest

from tidegate import TidegateError
from tidegate.network import FiveTuple, Flow, Network
from tidegate.systems.meter.controller import Meter, Prefix
from tidegate.systems.meter.experiments.peer_meters import (
    BcPqpMeters,
    FairPolicerMeters,
    published_bucket,
    published_queue,
    steady_bucket,
)
from tidegate.systems.meter.experiments.testbed import Counts, history, star

MBIT = 1e6


@pytest.mark.parametrize(
    ("mbps", "rtt_ms", "reno", "cubic"),
    [
        # BDP of 125 000 bytes: 83.3 packets.
        (100, 10, 1500 * (125_000 / 1500) ** 2 / 18, 7.2 * 125_000 * 50),
        (100, 100, 1500 * (1_250_000 / 1500) ** 2 / 18, 0.72 * 1_250_000 ** (4 / 3)),
        # Where Reno needs more: a long path at 10 Gbit/s.
        (10_000, 200, 1500 * (250e6 / 1500) ** 2 / 18, 0.36 * 250e6 ** (4 / 3)),
    ],
)
def test_the_published_sizes(mbps: int, rtt_ms: float, reno: float, cubic: float) -> None:
    rate, rtt = mbps * MBIT, rtt_ms / 1e3
    assert steady_bucket(rate, rtt) == pytest.approx(max(reno, cubic))
    assert published_bucket(rate, rtt) == round(max(reno, cubic))
    assert published_queue(rate, rtt) == pytest.approx(10 * max(reno, cubic), rel=1e-9)


def lab(make: Any, size: int = 6_250_000, **settings: Any) -> tuple[Network, list[Flow]]:
    """CUBIC and UDP at twice the rate in one meter of 50 Mbit/s, at 5 ms."""
    bed = star(5, data_plane="bcpqp" if make is BcPqpMeters else "fairpolicer")
    net, (a, b) = bed.network, bed.hosts
    flows = [net.tcp(a, b), net.udp(a, b, rate="100 Mbit/s")]
    meters = [Meter(3, 50_000_000, tuple(map(net.five_tuple, flows)))]
    net.control(make(meters, ports=net.forwarding(bed.switch), sizes=[size], **settings))
    net.control(Counts(4, counters=("passed", "dropped")))
    return net, flows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("make", "settings"), [(BcPqpMeters, {}), (BcPqpMeters, {"exact": True}), (FairPolicerMeters, {})]
)
def test_tcp_has_its_half_beside_udp(make: Any, settings: dict[str, Any]) -> None:
    net, _ = lab(make, **settings)
    net.record("1 s")
    result = net.run("15 s")
    assert result.goodput_mbps(5)["goodput_mbps"][0] * 1500 / 1448 == pytest.approx(25, rel=0.05)
    assert history(result.notes, 3).mbps(5) == pytest.approx(50, rel=0.02)


def test_the_published_size_of_a_fast_and_long_path_is_allowed() -> None:
    # 10 Gbit/s and 200 ms: 10 M is 23 TB, by the part of Reno.
    size = published_queue(10e9, 0.2)
    assert size > 2**44
    net = lab(BcPqpMeters, size)[0]
    net.run("10 ms")


@pytest.mark.slow
def test_flows_that_meet_in_a_queue_are_one_to_bcpqp() -> None:
    net, _ = lab(BcPqpMeters, queues=1)
    net.record("1 s")
    assert net.run("15 s").goodput_mbps(5)["goodput_mbps"][0] < 5


FLOWS = tuple(FiveTuple("10.0.0.1", "10.0.0.2", 6, port, 5001) for port in range(65))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: BcPqpMeters([Meter(1024, "1 Mbit/s", ())], ports={}, sizes=[1]),
            "there is no meter 1024; .* 0 to 1023",
        ),
        (
            lambda: FairPolicerMeters([Meter(64, "1 Mbit/s", ())], ports={}, sizes=[1]),
            "no meter 64; .* 0 to 63",
        ),
        (
            lambda: BcPqpMeters([Meter(0, "1 Mbit/s", ())], ports={}, sizes=[]),
            "0 sizes for 1 meters; give one each",
        ),
        (
            lambda: BcPqpMeters([Meter(0, "1 Mbit/s", ())], ports={}, sizes=[0]),
            "the size of meter 0 is 0 bytes; give 1",
        ),
        (
            lambda: FairPolicerMeters([Meter(0, "1 Mbit/s", ())], ports={}, sizes=[2**45]),
            "the size of meter 0 is 35184372088832 bytes; give 1 to 35184372088831",
        ),
        (
            lambda: BcPqpMeters([Meter(0, "63 kbit/s", ())], ports={}, sizes=[1]),
            "the target of meter 0 is 63 kbit/s; give 64 kbit/s to",
        ),
        (
            lambda: FairPolicerMeters([Meter(0, "63 kbit/s", ())], ports={}, sizes=[1]),
            "the target of meter 0 is 63 kbit/s; give 64 kbit/s to",
        ),
        (lambda: BcPqpMeters([], ports={}, sizes=[], queues=65), "65 phantom queues; give 1 to 64"),
        (
            lambda: BcPqpMeters([Meter(0, "1 Mbit/s", FLOWS)], ports={}, sizes=[1], exact=True),
            "65 flows in 65 matches; a queue each needs flows alone, up to 64",
        ),
        (
            lambda: BcPqpMeters(
                [Meter(0, "1 Mbit/s", (Prefix("10.0.0.0/8"),))], ports={}, sizes=[1], exact=True
            ),
            "0 flows in 1 matches",
        ),
        (
            lambda: FairPolicerMeters([], ports={}, sizes=[], alpha_shift=64),
            "alpha_shift is 64; give 0 to 63",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(make: Any, message: str) -> None:
    with pytest.raises(TidegateError, match=message):
        make()
