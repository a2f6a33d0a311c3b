"""Rounds of thousands of flows: how much a controller reads and tells, for any number of them. `benches/rounds.py` times the same."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest

from tidegate._core import TidegateError
from tidegate.control import Digest, SwitchApi
from tidegate.network import Network
from tidegate.systems.separation.controller import SeparationController, Taps
from tidegate.systems.separation.routers import Plan, Router
from tidegate.systems.separation.setup import program

PERIOD = "1 s"


class Counted:
    """A switch, and how often it was asked for what."""

    def __init__(self, switch: SwitchApi) -> None:
        self._switch, self.reads = switch, Counter[str]()

    def register_read(self, name: str) -> Any:
        """Read one."""
        self.reads[name] += 1
        return self._switch.register_read(name)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._switch, name)


@dataclass
class Filled(SeparationController):
    """One whose monitor has places for so many flows with round-trip times of 1 to 224 ms; in each round all of them have sent."""

    number: int = 6000
    moved: float = 0.0
    """The part of the flows that has another time in each round."""
    lost: int = 0
    """Flows that have found no place."""
    reads: list[Counter[str]] = field(default_factory=list)
    took: list[tuple[float, float | None]] = field(default_factory=list)
    """`round_s` and `commit_s` of each round."""

    def start(self, switch: SwitchApi) -> None:
        """Fill the places."""
        super().start(switch)
        self._rng, self._round = np.random.default_rng(1), 0
        self._rtts_us = np.exp(self._rng.uniform(np.log(1e3), np.log(224e3), self.number)).astype(int)
        for place in range(self.number):
            ends = {"low": 0x0A000001 + place, "high": 0x0A800001, "six": 0, "protocol": 6}
            ports = {"low_port": 1024 + place, "high_port": 80, "place": place}
            self.on_digest(0, switch, Digest("flow_t", ends | ports))

    def tick(self, now: int, switch: SwitchApi) -> None:
        """One round."""
        self._round += 1
        changed = self._rng.random(self.number) < self.moved
        self._rtts_us[changed] = self._rng.permutation(self._rtts_us[changed])
        for name, values in {
            "bytes": np.full(self.number, 20_000 * self._round),
            "rtt_base": self._rtts_us,
            "rtt_samples": np.full(self.number, 9 * self._round),
            "queued_samples": np.full(self.number, 9 * self._round),
        }.items():
            cells = np.zeros(len(switch.register_read(name)), np.int64)
            cells[: 2 * self.number : 2] = values
            switch.register_write(name, cells.tolist())
        switch.register_write("no_place", [self.lost])
        counted = Counted(switch)
        self.commit_s = None
        super().tick(now, counted)  # type: ignore[arg-type]
        self.reads.append(counted.reads)
        assert self.round_s is not None
        self.took.append((self.round_s, self.commit_s))


def rounds(
    router: Router, number: int, seconds: int, moved: float = 0.0, *, bits: int = 14, lost: int = 0
) -> Filled:
    """A controller that has had so many rounds; its monitor has as many places as is advised for 6000 flows."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    switch = net.switch("monitor", program(flow_bits=bits))
    for host in (a, b):
        net.link(host, switch, rate="1 Gbit/s", delay=0)
    controller = Filled(
        router, Taps((1, 2), 3), "1 Gbit/s", classes=7, period=PERIOD, number=number, moved=moved, lost=lost
    )
    net.control(controller, switch)
    net.run(f"{seconds} s", progress=False)
    return controller


@dataclass
class Kept:
    """A router that keeps what it was told, or refuses it."""

    refuses: bool = False
    most_queues: int = 8
    plans: list[Plan] = field(default_factory=list)

    def apply(self, plan: Plan) -> None:
        """Take a plan."""
        self.plans.append(plan)
        if self.refuses:
            raise TidegateError("router 1: it refuses")


@pytest.mark.slow
def test_a_round_reads_each_register_once_and_tells_the_router_what_has_changed() -> None:
    router = Kept()
    found = rounds(router, 6000, 4)
    few = rounds(Kept(), 10, 4)
    assert len(found.reads) == 4
    # As many reads for any number of flows: all of a register at once.
    assert set(map(str, found.reads)) == set(map(str, few.reads))
    assert set(found.reads[0].values()) == {1}
    # Nothing has changed after the first round, and the router is left alone.
    (plan,) = router.plans
    assert len(plan.flows) == 6000
    assert set(plan.flows.values()) == set(range(1, 8))
    assert [commit is None for _, commit in found.took] == [False, True, True, True]
    assert sum(queue.rate_bps for queue in plan.queues[1:]) <= 1e9


def test_times_of_a_round_and_of_the_router_are_apart() -> None:
    refused = rounds(Kept(refuses=True), 10, 3)
    assert all(commit is not None and commit >= 0 for _, commit in refused.took)
    assert all(of >= 0 for of, _ in refused.took)
    # They are no notes: these are the same in each run.
    assert {"round_s", "commit_s"} <= set(vars(refused))


@pytest.mark.parametrize(("number", "bits", "warned"), [(300, 8, True), (300, 14, False), (0, 8, False)])
def test_a_few_flows_without_a_place_are_no_reason_to_enlarge_large_tables(
    caplog: pytest.LogCaptureFixture, number: int, bits: int, warned: bool
) -> None:
    rounds(Kept(), number, 3, bits=bits, lost=3)
    assert [message.partition(":")[2] for message in caplog.messages] == (
        [" make its tables larger (flow_bits=10)"] if warned else []
    )
