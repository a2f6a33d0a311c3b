"""Meters between real hosts: the fair meter's bound, and Linux's own meters and shapers, its contenders; what a kernel lacks is refused."""

from __future__ import annotations

import random

import pytest

from live import again_if_disturbed, needs_iperf3, needs_namespaces, watched
from tidegate import TidegateError
from tidegate.hosts import linux_qdisc
from tidegate.lab.routers import Ways, refusals
from tidegate.network import Link, Network, Node, Qdisc
from tidegate.systems.meter.experiments.contenders import CONTENDERS
from tidegate.systems.meter.experiments.customer import PASSED, Customer, excess, retransmits_since, sent

LINUX = [name for name, way in CONTENDERS.items() if way.qdisc is not None]


@needs_namespaces
@needs_iperf3
@pytest.mark.parametrize("name", LINUX)
@again_if_disturbed
def test_each_holds_datagrams_to_its_rate(name: str) -> None:
    kind = CONTENDERS[name].qdisc
    assert kind is not None
    lacking = linux_qdisc.why_not(kind)
    if lacking is not None:
        pytest.skip(lacking)
    at = Customer(name, 10, 5, apart=True)
    at.udp(2)
    result = watched(at.attach("100 ms").run("4 s", backend="live"))
    passed = sent(result, PASSED)
    # The policer's bucket is empty after 1.05 s.
    assert passed.mbps(2.5) == pytest.approx(10, rel=0.03)
    if name == "linux-police":
        assert passed.bytes[-1] == pytest.approx(10e6 / 8 * 4 + at.burst, rel=0.1)


@needs_namespaces
@needs_iperf3
@pytest.mark.parametrize(
    ("seed", "rate_mbps", "offered", "payloads"),
    [
        (1, 2, (0.8, 3), (200, 500, 1000, 1472)),
        (2, 2, (0.8, 3), (200, 500, 1000, 1472)),
        # No more packets a second than a busy machine sends.
        (1, 100, (0.4, 0.8), (1000, 1472)),
    ],
)
@again_if_disturbed
def test_no_sender_gets_more_than_the_rate_and_the_burst(
    seed: int, rate_mbps: int, offered: tuple[float, float], payloads: tuple[int, ...]
) -> None:
    """The fair meter's bound, with datagrams of all code points and many sizes, steady, by chance, and on and off."""
    draw, at = random.Random(seed), Customer("fair", rate_mbps, 2, apart=True)
    for code in ("not-ect", "ect0", "ect1", "ce"):
        at.udp(
            draw.uniform(*offered),
            ecn=code,
            payload=draw.choice(payloads),
            pattern=draw.choice(["constant", "poisson", "on-off"]),
            on="200 ms",
            off="200 ms",
            start=f"{draw.randrange(500)} ms",
        )
    passed = sent(watched(at.attach("20 ms", sinks=False).run("6 s", backend="live")), PASSED)
    byte_rate = rate_mbps * 1e6 / 8
    most = excess(passed, rate_mbps)
    print(f"{most:.0f} bytes in addition to the rate, {most / at.burst:.2f} of the burst")
    # Samples are read some milliseconds late on a busy machine: as much of the rate may be counted too early.
    assert most <= at.burst + 0.01 * byte_rate + 1_500
    # They send more than the rate: it is used.
    assert passed.bytes[-1] > 0.9 * byte_rate * 6


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_flows_with_ecn_lose_nothing_and_share_the_rate() -> None:
    """The fair meter's shares and losses: eight flows of CUBIC with ECN, five packets an RTT each, from the sixth second on."""
    at = Customer("fair", 40, 12, apart=True)
    for _ in range(8):
        at.tcp("cubic", ecn="on")
    result = watched(at.attach("100 ms").run("16 s", backend="live"), late_ms=2)
    assert [retransmits_since(result, flow, 5) for flow in at.flows] == [0] * 8
    shares = [one.mbps(6) for one in at.histories(result)]
    assert min(shares) > 0.8 * 40 / 8
    assert sum(shares) == pytest.approx(40, rel=0.02)


def line() -> tuple[Network, Node, Link]:
    net = Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r", linux=True)
    net.link(a, router, rate="1 Gbit/s", delay="1 ms")
    return net, router, net.link(router, b, rate="1 Gbit/s", delay="1 ms")


def test_a_qdisc_that_the_kernel_lacks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    net, router, out = line()
    net.qdisc(router, out, Qdisc("cake", "10 Mbit/s"))
    monkeypatch.setattr(linux_qdisc, "why_not", lambda kind: f"this kernel does not take {kind}")
    assert list(refusals(net, Ways(net))) == ["r: this kernel does not take cake"]


@pytest.mark.parametrize(
    ("kind", "rate", "sizes", "why"),
    [
        ("sfq", "1 Mbit/s", {}, "there is no qdisc 'sfq' here; known: police, tbf, htb, fq_codel, cake"),
        ("tbf", "1 kbit/s", {}, "the qdisc's rate is 1 kbit/s; give 8 kbit/s or more"),
        (
            "tbf",
            "1 Mbit/s",
            {"limit": "1 kB"},
            "the qdisc's limit is 1 kB; give a frame of 1514 bytes to 4 GB",
        ),
        (
            "police",
            "1 Mbit/s",
            {"burst": "5 GB"},
            "the qdisc's burst is 5 GB; give a frame of 1514 bytes to 4 GB",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(kind: str, rate: str, sizes: dict[str, str], why: str) -> None:
    with pytest.raises(TidegateError, match=why):
        Qdisc(kind, rate, **sizes)  # type: ignore[arg-type]


def test_a_port_has_one_qdisc_and_a_linux_router() -> None:
    net, router, out = line()
    qdisc = Qdisc("tbf", "10 Mbit/s")
    net.qdisc(router, out, qdisc)
    with pytest.raises(TidegateError, match="the port of r at r - b has a qdisc already"):
        net.qdisc(router, out, qdisc)
    plain = net.router("plain")
    link = net.link(plain, router, rate="1 Gbit/s", delay="1 ms")
    with pytest.raises(
        TidegateError, match=r"plain is not a Linux router \(router\(linux=True\)\); qdiscs are for those"
    ):
        net.qdisc(plain, link, qdisc)
