"""What the meters do to flows, in short runs; and the controller: restarts, idle flows, changes while it runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from tidegate import TidegateError
from tidegate.control import SwitchApi
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.meter.controller import (
    PAPER,
    PLAIN,
    UNBOUNDED,
    Bucket,
    Fixed,
    Floats,
    IngressPort,
    Meter,
    MeterController,
    Pid,
    Prefix,
    Seen,
)
from tidegate.systems.meter.experiments.scheme_grid import goodput_error
from tidegate.systems.meter.experiments.testbed import (
    SCHEMES,
    Counts,
    flow_rows,
    history,
    metered_flows,
    star,
)
from tidegate.systems.meter.setup import meter, program

pytestmark = pytest.mark.slow

SECOND = 1_000_000_000_000


def settled_error(
    scheme: str, rtt_ms: float, target: int, seconds: int = 20, control: str = "cubic"
) -> float:
    """Of goodput, scaled to bytes of IP, from the 10th second on."""
    network = metered_flows(scheme, rtt_ms, [target], congestion_control=control)
    network.record("1 s")
    return goodput_error(network.run(f"{seconds} s"), 0, target, 10)


@pytest.mark.parametrize("target", [100, 400])
def test_the_plain_meter_starves_tcp_where_two_packets_a_round_trip_are_more(target: int) -> None:
    network = metered_flows("plain", 0.012, [target])
    (row,) = flow_rows(network.run("10 s"), "plain", 0.012, [target])
    assert row["relative_error"] < -0.7
    # Most of the time it waits for timeouts of 200 ms.
    assert row["timeouts_per_s"] > 3


@pytest.mark.parametrize("rtt_ms", [0.012, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("target", [100, 500])
def test_the_fair_meter_gives_tcp_its_rate(rtt_ms: float, target: int) -> None:
    assert abs(settled_error("fair", rtt_ms, target)) < 0.02


@pytest.mark.parametrize("control", ["reno", "bbr", "bbr3", "htcp", "dctcp", "vegas"])
def test_it_does_so_for_other_congestion_controls(control: str) -> None:
    assert abs(settled_error("fair", 1.0, 100, control=control)) < 0.02


def test_a_plain_bucket_can_have_the_bytes_of_the_fair_meter() -> None:
    targets = [8, 20]
    network = metered_flows("plain-1s", 1.0, targets)
    result = network.run("2 s")
    # 1.05 s of the rate, and what two seconds bring; TCP takes some round trips to find it.
    for number, target in enumerate(targets):
        most = target * 125_000 * (2 + 2**20 / 1e6)
        assert 0.9 * most < history(result.notes, number).bytes[-1] <= most


def test_a_shaped_queue_and_the_standard_meters() -> None:
    assert abs(settled_error("shaper", 1.0, 100)) < 0.01
    assert settled_error("rfc2698", 1.0, 500) == settled_error("plain", 1.0, 500)


class Lab:
    """Two flows, of which the second stops for a while, and a controller."""

    def __init__(
        self,
        make: Callable[..., MeterController] = MeterController,
        targets: Sequence[int] = (100, 50),
        stop: str | None = None,
        **settings: object,
    ) -> None:
        lab = star(0.5)
        self.net, (a, b) = lab.network, lab.hosts
        flows = [self.net.tcp(a, b, ecn="on"), self.net.tcp(a, b, ecn="on", stop=stop)]
        self.meters = [
            Meter(n, target * 1_000_000, (self.net.five_tuple(flow),))
            for n, (flow, target) in enumerate(zip(flows, targets, strict=True))
        ]
        self.controller = make(self.meters, ports=self.net.forwarding(lab.switch), **settings)
        self.net.control(self.controller)
        self.net.control(Counts(2))

    def run(self, seconds: int) -> Result:
        return self.net.run(f"{seconds} s")


def rate(result: Result, meter: int, since: float, until: float) -> float:
    passed = history(result.notes, meter)
    since_at, until_at = np.searchsorted(passed.time_s, [since - 1e-9, until - 1e-9])
    return float(
        (passed.bytes[until_at] - passed.bytes[since_at])
        * 8e-6
        / (passed.time_s[until_at] - passed.time_s[since_at])
    )


@pytest.mark.parametrize(("bucket", "law"), [(PLAIN, Fixed()), (PAPER, Pid())])
def test_a_second_controller_goes_on_where_the_first_died(bucket: Bucket, law: Fixed | Pid) -> None:
    class Dies(MeterController):
        """Is replaced after ten seconds by one that knows nothing but what it was configured with."""

        def tick(self, now: int, switch: SwitchApi) -> None:
            if now == 10 * SECOND:
                self.rate = int(switch.register_read("rate", 0, 1)[0])
                entries = len(switch.table_entries("flows4"))
                self.__init__(lab.meters, ports=ports, bucket=bucket, law=law)  # type: ignore[misc]
                self.start(switch)
                assert int(switch.register_read("rate", 0, 1)[0]) == self.rate
                assert len(switch.table_entries("flows4")) == entries == 2
            else:
                super().tick(now, switch)
                # It goes on from there, not from the target.
                if now == 11 * SECOND and isinstance(law, Pid):
                    after = int(switch.register_read("rate", 0, 1)[0])
                    assert abs(after - self.rate) < 0.25 * self.rate

    lab = Lab(Dies, bucket=bucket, law=law)
    ports = lab.controller._ports
    result = lab.run(20)
    before, after = rate(result, 0, 5, 10), rate(result, 0, 11, 20)
    assert after == pytest.approx(before, rel=0.15)


def test_an_idle_flow_does_not_wind_the_controller_up() -> None:
    lab = Lab(stop="3 s", bucket=PAPER, law=Pid(), patience="2 s")
    result = lab.run(60)
    wound = result.notes.filter(result.notes["quantity"] == "rate_1_mbps")["value"].to_numpy()
    # With an integral that goes on it would be at its bound of eight targets after some 40 s.
    assert wound.max() < 3 * 50
    assert wound[-20:].max() - wound[-20:].min() < 1


def test_meters_come_go_and_change_while_they_run() -> None:
    class Changes(MeterController):
        def tick(self, now: int, switch: SwitchApi) -> None:
            super().tick(now, switch)
            match now // SECOND:
                case 5:
                    self.retarget(switch, 0, "200 Mbit/s")
                case 10:
                    self.remove(switch, 0)
                case 12:
                    self.add(switch, lab.meters[0])

    lab = Lab(Changes, bucket=PLAIN, law=Fixed())
    result = lab.run(17)
    assert rate(result, 0, 2, 5) == pytest.approx(100, rel=0.05)
    assert rate(result, 0, 7, 10) == pytest.approx(200, rel=0.05)
    # While it is gone its packets pass, and are not counted.
    assert rate(result, 0, 11, 12) == 0
    assert rate(result, 0, 14, 17) == pytest.approx(100, rel=0.06)
    assert rate(result, 1, 5, 17) == pytest.approx(50, rel=0.05)


def test_the_timer_refills_as_the_paper_says() -> None:
    network = metered_flows("plain", 1.0, [50])
    (controller, switches), counts = network.controllers
    assert isinstance(controller, MeterController)
    controller._bucket = replace(PLAIN, refill="timer")
    lazy, timer = metered_flows("plain", 1.0, [50]).run("5 s"), network.run("5 s")
    assert rate(timer, 0, 1, 5) == pytest.approx(rate(lazy, 0, 1, 5), rel=0.02)
    del switches, counts


@pytest.mark.parametrize("scheme", ["plain", "fair"])
def test_prefixes_and_ports(scheme: str) -> None:
    lab = star(0.5, hosts=3, data_plane=SCHEMES[scheme].data_plane)
    net, (a, b, c) = lab.network, lab.hosts
    net.udp(a, c, rate="50 Mbit/s")
    net.udp(b, c, rate="50 Mbit/s")
    meters = [
        Meter(0, "10 Mbit/s", (Prefix(f"{net.address(a)}/32"),)),
        Meter(1, "20 Mbit/s", (IngressPort(net.port(lab.switch, net.links[1])),)),
    ]
    lab.meter(meters, scheme)
    result = net.run("5 s")
    assert rate(result, 0, 1, 5) == pytest.approx(10, rel=0.01)
    assert rate(result, 1, 1, 5) == pytest.approx(20, rel=0.01)


@pytest.mark.parametrize(
    ("law", "limited"),
    [
        (Pid(kd=0.1, least=0.0, most=100.0), True),
        # As published it also integrates what a meter that is not limiting lacks.
        (replace(UNBOUNDED, kd=0.1), True),
        (replace(UNBOUNDED, kd=0.1), False),
    ],
)
def test_the_papers_controller_is_its_equations(law: Pid, limited: bool) -> None:
    state = {name: np.array([value]) for name, value in law.begin(100.0, 100.0).items()}
    total, before = 0.0, 0.0
    for achieved in (20.0, 50.0, 90.0, 120.0, 100.0):
        seen = Seen(np.array([100.0]), np.array([achieved]), np.array([limited]), 1.0)
        error = 100.0 - achieved
        total += error
        expected = 100 + 0.7 * error + 0.15 * total + 0.1 * (error - before)
        assert law.rates(state, seen)[0] == pytest.approx(expected)
        before = error


def test_the_published_controller_has_no_bounds() -> None:
    state = {name: np.array([value]) for name, value in UNBOUNDED.begin(100.0, 100.0).items()}

    def next_rate(achieved: float) -> float:
        return float(
            UNBOUNDED.rates(state, Seen(np.array([100.0]), np.array([achieved]), np.array([True]), 1.0))[0]
        )

    assert max(next_rate(0.0) for _ in range(100)) == pytest.approx(100 + 70 + 0.15 * 100 * 100)
    # R + u below 0: no rate.
    assert next_rate(5000.0) == 0


@pytest.mark.parametrize("refill", ["lazy", "timer"])
def test_a_rate_of_nothing_is_the_least_that_the_data_plane_has(refill: Literal["lazy", "timer"]) -> None:
    class Nothing(Fixed):
        def rates(self, state: dict[str, Floats], seen: Seen) -> Floats:
            return 0 * seen.target

    lab = Lab(bucket=replace(PAPER, refill=refill), law=Nothing())
    result = lab.run(4)
    assert rate(result, 0, 0, 1) > 50
    # The bucket of 128 KiB, and nothing after it.
    assert rate(result, 0, 1, 2) < 1.1
    assert rate(result, 0, 2, 4) < 0.01


def test_large_packets() -> None:
    network = metered_flows("fair", 0.5, [100], mtu=9000)
    # What the burst passes at other levels at both ends is a small part of 50 s.
    (row,) = flow_rows(network.run("60 s"), "fair", 0.5, [100])
    assert abs(row["settled_error"]) < 0.02
    # 8948 of 9000 bytes are payload.
    assert row["goodput_mbps"] / row["achieved_mbps"] == pytest.approx(8948 / 9000, abs=0.001)
    assert row["goodput_error"] == pytest.approx(row["goodput_mbps"] / 100 - 1)


@pytest.mark.parametrize("law", [Pid(), Fixed()])
def test_a_law_stays_within_its_bounds(law: Pid | Fixed) -> None:
    state = {name: np.array([value]) for name, value in law.begin(100.0, 100.0).items()}
    for achieved in [0.0] * 300 + [1000.0] * 300:
        seen = Seen(np.array([100.0]), np.array([achieved]), np.array([True]), 1.0)
        (got,) = law.rates(state, seen)
        assert math.isfinite(got)
        assert 10 - 1e-9 <= got <= 800 + 1e-9


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: MeterController(bucket=Bucket(threshold=1.5)),
            "the bucket's threshold is 1.5; give a share from 0 to 1",
        ),
        (lambda: MeterController(bucket=Bucket(burst="0 B")), "the bucket's burst is 0 B"),
        (
            lambda: MeterController(bucket=Bucket(refill="account")),  # type: ignore[arg-type]
            "there is no refill 'account'; known: lazy, timer",
        ),
        (
            lambda: MeterController(bucket=Bucket(tokens=0)),
            "the bucket's average_shift must be 0 to 63, its tokens at least 1",
        ),
        (lambda: run_meters(Meter(70_000, "1 Mbit/s", ())), "there is no meter 70000; there are 0 to 65535"),
        (lambda: run_meters(Meter(1, 0, ())), "the target of meter 1 is 0; give 64 kbit/s to"),
        (
            lambda: run_meters(Meter(1, "525 Gbit/s", ())),
            "the target of meter 1 is 525 Gbit/s; give 64 kbit/s to 524",
        ),
        (lambda: run_meters(Meter(1, "1 Mbit/s", (Prefix("10.0.0.0/40"),))), "prefix"),
    ],
)
def test_what_makes_no_sense_is_refused(make: Callable[[], object], message: str) -> None:
    with pytest.raises(TidegateError, match=message):
        make()


def run_meters(*meters: Meter) -> None:
    lab = star(1.0)
    lab.network.control(MeterController(meters))
    lab.network.run("1 ms")


def test_an_experiment_with_rows_for_each_flow(tmp_path: Path) -> None:
    settings = {
        "low_mbps": (20, 40),
        "high_mbps": (30,),
        "base_rtts_ms": (1.0,),
        "schemes": ("fair",),
        "duration_s": 15,
    }
    answer = run_experiment("meter.targets", settings, seeds=[1], out=tmp_path / "run")
    assert [(row["target_mbps"], row["flow"]) for row in answer["rows"]] == [(20, 0), (40, 1), (30, 0)]
    assert all(claim["holds"] for claim in answer["claims"])
    assert all(abs(row["settled_goodput_error"] - row["settled_error"]) < 0.01 for row in answer["rows"])
    assert (tmp_path / "run" / "figure.png").stat().st_size > 10_000


def test_meters_come_into_anyone_s_network_in_one_call() -> None:
    net = Network()
    switch = net.switch("s", program())
    a, b = net.host("a"), net.host("b")
    controller = meter(net, switch, [Meter(0, "20 Mbit/s", (Prefix("10.0.0.0/24"),))])
    # Hosts that are linked later are forwarded to as well.
    for host in (a, b):
        net.link(host, switch, rate="1 Gbit/s", delay="250 us")
    net.udp(a, b, rate="50 Mbit/s")
    result = net.run("4 s")
    assert isinstance(controller, MeterController)
    # Of 1500 bytes of IP 1472 are payload.
    assert result.flows["goodput_mbps"][0] == pytest.approx(20 * 1472 / 1500, rel=0.03)


def test_forwarding_finds_hosts_behind_routers() -> None:
    net = Network()
    switch, router = net.switch("s", program()), net.router("r")
    near, far = net.host("near"), net.host("far")
    net.link(switch, near, rate="1 Gbit/s", delay="1 us")
    net.link(switch, router, rate="1 Gbit/s", delay="1 us")
    net.link(router, far, rate="1 Gbit/s", delay="1 us")
    assert net.forwarding(switch) == {net.mac(near): 0, net.mac(far): 1}


def test_a_short_run_of_an_experiment_is_judged_by_its_second_half(tmp_path: Path) -> None:
    settings = {
        **find("meter.udp").parameters(),
        "offered": (0.5,),
        "patterns": ("constant",),
        "schemes": ("fair",),
        "duration_s": 4,
    }
    answer = run_experiment("meter.udp", settings, seeds=[1], out=tmp_path / "udp")
    assert answer["rows"][0]["achieved_mbps"] == pytest.approx(50, rel=0.01)
