"""How long the controller keeps what it has decided, and what it does without a tap behind the router."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tidegate.control import Port, Queue, SwitchApi
from tidegate.network import Network
from tidegate.systems.separation.controller import MOST_MOVES, SeparationController, Taps
from tidegate.systems.separation.routers.simulated import SimulatedRouter
from tidegate.systems.separation.setup import PORTS, program
from tidegate.systems.separation.test_controller import LINK, Noted, Rounds, flow

MBPS = 20.0


def test_a_flow_that_is_moved_again_stays_twice_as_long() -> None:
    rounds = Rounds(rtt_limits=("20 ms",))
    rounds.tick(f1=(20, 10, 0.1))
    rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
    stays = []
    for _ in range(4):
        # It fills the queue that both have, and is moved; then all queues are short.
        plan = rounds.tick(f1=(20, 10, 15), f2=(70, 10, 15))
        assert plan.flows[flow(2)] == 2
        seconds = 1
        while rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1)).flows[flow(2)] == 2:
            seconds += 1
        stays.append(seconds)
    assert stays == [30, 60, 120, 240]


def test_a_flow_is_not_kept_for_more_than_some_hours_however_often_it_is_moved() -> None:
    rounds = Rounds(rtt_limits=("20 ms",))
    rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
    memory = rounds.controller.known[flow(2)]
    for _ in range(MOST_MOVES + 5):
        memory.stays_until = 0
        rounds.tick(f1=(20, 10, 0.1), f2=(70, 10, 1))
        rounds.tick(f1=(20, 10, 15), f2=(70, 10, 15))
    assert memory.moved == MOST_MOVES
    assert memory.stays_until - rounds.now == 30 * 2**MOST_MOVES * 10**12


@pytest.mark.parametrize(("every", "idle_s"), [(1, 60), (8, 480)])
def test_a_place_is_kept_for_a_minute_of_the_time_in_which_a_flow_is_seen(every: int, idle_s: int) -> None:
    """After that the data plane gives it to another flow: `test_data_plane.py`."""

    class Written:
        def __init__(self) -> None:
            self.registers: dict[str, list[int]] = {}

        def state_reset(self) -> None:
            """Forget all."""

        def table_add(self, *entry: Any) -> None:
            """Ports of the taps."""

        def register_write(self, name: str, values: list[int]) -> None:
            """Keep it."""
            self.registers[name] = values

    switch = Written()
    controller = SeparationController(Noted(), Taps((1, 2), 3), LINK, every=every, period="8 s")
    controller.start(cast("SwitchApi", switch))
    assert switch.registers["idle_time"] == [idle_s * 1_000_000]


def shares_beside_a_slow_flow(*, tapped_behind: bool) -> list[float]:
    """Parts of the link that two classes are given, where the flow of the second can use a fifth of it."""
    net = Network()
    s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
    before = net.link(s1, r1, rate="1 Gbit/s", delay="10 us")
    after = net.link(r1, r2, rate=f"{MBPS} Mbit/s", delay="10 us")
    for name, access, delay in (("1", "1 Gbit/s", "5 ms"), ("2", f"{MBPS / 5} Mbit/s", "20 ms")):
        a, b = net.host(f"a{name}"), net.host(f"b{name}")
        net.link(a, s1, rate=access, delay="10 us", queue="20 packets")
        net.link(b, r2, rate="1 Gbit/s", delay=delay)
        net.tcp(a, b)
    switch = net.switch("monitor", program())
    forth, back = PORTS.before
    net.tap(before, switch, forward=forth, reverse=back)
    if tapped_behind:
        net.tap(after, switch, forward=PORTS.after)
    router = SimulatedRouter(
        net.classes(r1, after, Port((Queue(bytes=100_000),), "deficit round robin")), 8, after.forward.mtu
    )
    taps = PORTS if tapped_behind else Taps(PORTS.before)
    controller = SeparationController(
        router, taps, f"{MBPS} Mbit/s", ready=router.begin, classes=2, long_bytes="200 kB"
    )
    net.control(controller, switch)
    net.run("12 s", progress=False)
    assert controller.plan is not None
    return [queue.rate_bps / (MBPS * 1e6) for queue in controller.plan.queues[1:]]


def test_without_a_tap_behind_the_router_all_flows_keep_their_shares() -> None:
    assert shares_beside_a_slow_flow(tapped_behind=False) == pytest.approx([0.5, 0.5], rel=0.01)
    fast, slow = shares_beside_a_slow_flow(tapped_behind=True)
    assert slow < 0.25
    assert fast > 0.7
