"""The experiments in short runs, and what a network with pacing does."""

from __future__ import annotations

import importlib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.network import Network
from tidegate.papers import Missing
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.claims import CLAIMS
from tidegate.systems.pacing.controller import ManagedLink, PacingController
from tidegate.systems.pacing.experiments.dmz import buffer_needed, fair_after_s
from tidegate.systems.pacing.experiments.join import in_force_ms
from tidegate.systems.pacing.experiments.overhead import APART_S, FIRST_S, JOINS, fair_mbps
from tidegate.systems.pacing.experiments.overhead import _row as overhead_row
from tidegate.systems.pacing.experiments.star import Star
from tidegate.systems.pacing.format import Keys
from tidegate.systems.pacing.max_min import Demand, max_min
from tidegate.systems.pacing.setup import pacing

KEYS = Keys((1, 2))


def test_progressive_filling_finds_known_shares() -> None:
    links = {"a": 10.0, "b": 4.0}
    flows = [Demand(["a"]), Demand(["a", "b"]), Demand(["b"]), Demand(["a"], most=1.0)]
    found = max_min(links, flows)
    assert found.rates == pytest.approx((7.0, 2.0, 2.0, 1.0))
    assert found.levels == 3
    assert max_min({"a": 9.0}, [Demand(["a"], 1), Demand(["a"], 2)]).rates == pytest.approx((3.0, 6.0))


@pytest.mark.parametrize("keys", [None, KEYS])
@pytest.mark.parametrize("control", ["cubic", "reno"])
def test_flows_share_a_link_from_their_first_round_trips_on(keys: Keys | None, control: str) -> None:
    star = Star(100.0, 10.0, 32, {"keys": keys})
    for number in range(3):
        star.flow(star.host(keys=keys), 0.5 * number, congestion_control=control)
    result = star.network.run("3 s")
    assert star.rates(result, 1.5, 3.0) == pytest.approx([star.given_mbps / 3] * 3, rel=0.002)
    assert result.flows["retransmits"].sum() == 0
    # A join is told to each flow of before, and to the new one.
    assert sum(agent.counts["notice"] for agent in star.agents) == 1 + 2 + 3
    assert sum(agent.counts["trace"] for agent in star.agents) == 3


def test_notices_that_are_lost_come_again() -> None:
    star = Star(100.0, 4.0, options={"again": "20 ms"})
    for number in range(4):
        star.flow(star.host(), 0.1 * number)
    for link in star.access:
        link.set("250 ms", loss=0.5, direction="reverse")
        link.set("700 ms", loss=0.0)
    star.network.run("2 s")
    rates = [agent.changes[-1][2] for agent in star.agents]
    assert rates == pytest.approx([star.given_mbps * 1e6 / 4] * 4, rel=0.002)


@pytest.mark.parametrize(
    ("congestion_control", "least", "most"),
    [
        ("reno", 0.999, 1.0),
        ("htcp", 0.999, 1.0),
        ("vegas", 0.999, 1.0),
        ("dctcp", 0.999, 1.0),
        # They drain the pipe to see its round trip.
        ("bbr", 0.96, 0.99),
        ("bbr3", 0.95, 0.99),
    ],
)
def test_any_congestion_control_is_paced(congestion_control: str, least: float, most: float) -> None:
    star = Star(100.0, 20.0, 32)
    for number in range(4):
        star.flow(star.host(), 0.3 * number, congestion_control=congestion_control)
    result = star.network.run("12 s")
    rates = star.rates(result, 4.0, 12.0)
    assert least <= rates.sum() / star.given_mbps <= most
    assert rates == pytest.approx([rates.mean()] * 4, rel=0.002)
    assert result.flows["retransmits"].sum() == 0
    assert result.queues["queue_delay_ms_p99"][0] < 1


def test_hosts_without_the_right_key_are_not_paced() -> None:
    star = Star(100.0, 10.0, 64, {"keys": KEYS})
    star.flow(star.host(keys=KEYS))
    star.flow(star.host(keys=Keys((3, 4))), 0.5)
    star.flow(star.host(), 0.5)
    star.network.run("2 s")
    assert [len(agent.flows) for agent in star.agents] == [1, 1, 1]
    assert [bool(agent.changes) for agent in star.agents] == [True, False, False]


def test_keys_can_be_changed_while_flows_run() -> None:
    star = Star(100.0, 10.0, 64, {"keys": KEYS})
    controller = next(c for c, _ in star.network.controllers if isinstance(c, PacingController))
    seen: list[int] = []

    class Changer(PacingController):
        """Signs with the other key from 1 s on."""

        def __init__(self) -> None:
            super().__init__(dict, dict)
            self.period = "1 s"

        def start(self, switch: Any) -> None:
            """Leave the tables alone."""

        def tick(self, now: int, switch: Any) -> None:
            """Change the key once."""
            if not seen:
                controller.use(switch, Keys(KEYS.values, signing=1))
            seen.append(now)

    star.network.control(Changer(), star.switch)
    star.flow(star.host(keys=KEYS))
    star.flow(star.host(keys=KEYS), 1.5)
    result = star.network.run("3 s")
    assert seen
    assert star.rates(result, 2.0, 3.0) == pytest.approx([star.given_mbps / 2] * 2, rel=0.005)


def test_an_agent_that_dies_lifts_the_rate() -> None:
    star = Star(100.0, 2.0, 500)
    star.flow(star.host())
    star.flow(star.host())
    network = star.network
    network.at("1 s", lambda: network.agents[0].kill())
    result = network.run("3 s")
    rates = star.rates(result, 1.5, 3.0)
    assert rates[0] > 1.02 * star.given_mbps / 2


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (
            lambda: ManagedLink("100 Mbit/s", 0).kbps(),
            "a managed link has the number 0; give one from 1 to 254",
        ),
        (lambda: ManagedLink("1 kbit/s", 1).kbps(), "gives away 0 kbit/s"),
        (lambda: ManagedLink("1 Gbit/s", 1, reserve=1.0).kbps(), "the reserve of a link is 1.0"),
        (lambda: ManagedLink("1 Gbit/s", 1, frame=14).long_by(), "give a size from 64 bytes on"),
        (lambda: PacingController(dict, dict, tick="1 ns"), "the tick time of a pacing switch is below 1 us"),
        (lambda: PacingAgent(weight=0), "a flow's weight is 0; give one from 1 to 65535"),
        (lambda: PacingAgent(mtu=50), "an MTU of 50 has no room for payload"),
        (
            lambda: PacingAgent(least="2 Mbit/s", most="1 Mbit/s"),
            "give a least rate above 0 and at most the largest",
        ),
        (lambda: Keys((2**64, 0)), "a key has 64 bits"),
    ],
)
def test_wrong_settings_are_refused(make: Any, why: str) -> None:
    with pytest.raises(TidegateError, match=why):
        make()


def test_hosts_of_the_simulator_have_no_htb(tmp_path: Path) -> None:
    settings = {"schemes": ("htb",), "settings": ("wan",), "buffers": (32,), "period_s": 2.0}
    with pytest.raises(TidegateError, match="run it with --backend live, or take the scheme fq"):
        run_experiment("pacing.join", settings, seeds=[1], out=tmp_path / "out")


def test_more_links_than_numbers_are_refused() -> None:
    network = Network()
    switch = pacing(network, "switch")
    for number in range(255):
        host = network.host(f"host{number}")
        network.link(host, switch, rate="1 Gbit/s", delay="1 us")
    network.tcp(network.nodes[1], network.nodes[2])
    with pytest.raises(
        TidegateError, match="this network has 255 managed links; a pacing option tells 254 apart"
    ):
        network.run("1 ms")


EXPERIMENTS: dict[str, tuple[dict[str, Any], int]] = {
    "join": (
        {
            "schemes": ("tcp", "tcp-window", "fq", "rcp"),
            "buffers": (16, 32),
            "receive_buffers_kib": (140, 256),
            "settings": ("wan",),
            "period_s": 2.0,
        },
        36,
    ),
    "equation": ({"random_chains": 1}, 4 * (4 + 5 + 10 + 7 + 3)),
    "dmz": (
        {
            "rate_gbps": 5.0,
            "schemes": ("fq", "cubic", "manual-4"),
            "buffers_percent": (1.0, 3.0),
            "phase_s": 3.0,
            "sweep_phase_s": 3.0,
        },
        18,
    ),
    "leave": ({"rtts_ms": (5.0,)}, 3),
    "paths": ({"random_chains": 1}, 21),
    "hosts": ({"flows": (3, 1), "duration_s": 3.0}, 4),
    "weights": ({"weights": (1, 3), "duration_s": 3.0}, 4),
    "unmanaged": ({"cross_mbps": (20.0,)}, 1),
    "legacy": ({"routers": (1,), "duration_s": 3.0}, 4),
    "reroute": ({"delay_ms": 2.0}, 3),
    "churn": ({"flows": 300, "losses_percent": (2.0,)}, 6),
    "overhead": ({"flows": (4, 40)}, 4),
    "attack": ({"attacks": ("update",), "keyed": (True,), "duration_s": 4.0}, 1),
}


def test_a_share_is_fair_when_it_stays_so() -> None:
    fair = np.ones((2, 20))
    assert fair_after_s(fair, 1.0) == 0.0
    fair[1, 4] = 0.97
    assert fair_after_s(fair, 1.0) == pytest.approx(0.5)
    assert fair_after_s(fair[:, :14], 1.0) is None
    assert fair_after_s(1.03 * fair, 1.0) is None


def test_the_buffer_that_is_needed_is_that_from_which_on_all_phases_have_enough() -> None:
    found = {0.1: (0.99, 0.99), 1.0: (0.99, 0.9), 3.0: (0.98, 0.99), 10.0: (0.99, 1.0)}
    rows = [
        {"scheme": "fq", "buffer_percent": percent, "of_limit_late": part}
        for percent, parts in found.items()
        for part in parts
    ]
    assert buffer_needed(rows, "fq") == 3.0
    assert buffer_needed(rows[:4], "fq") is None


def told(*changes: tuple[float, int, float]) -> PacingAgent:
    """A host's agent that has set these rates: time in seconds, flow, Mbit/s."""
    agent = PacingAgent()
    agent.changes = [(time, flow, 1e6 * rate) for time, flow, rate in changes]
    return agent


@pytest.mark.parametrize(
    ("others", "late_ms"),
    [
        ([(1.0, 1, 20.0), (2.03, 1, 10.0)], 30.0),
        # Within 2 %; and what comes after the time that is looked at does not count.
        ([(1.0, 1, 20.0), (2.03, 1, 10.1), (4.5, 1, 20.0)], 30.0),
        # It had the rate before.
        ([(1.0, 1, 10.0)], 10.0),
        ([(2.02, 1, 10.0), (2.04, 1, 5.0), (2.06, 1, 10.0)], 60.0),
        # It was never told, told another rate, or lost it again.
        ([(1.0, 1, 20.0)], None),
        ([], None),
        ([(1.0, 1, 20.0), (2.03, 1, 10.3)], None),
        ([(2.03, 1, 10.0), (2.5, 1, 0.0)], None),
    ],
)
def test_a_rate_is_in_force_when_all_have_it(
    others: list[tuple[float, int, float]], late_ms: float | None
) -> None:
    agents = [told((1.0, 0, 20.0), (2.01, 0, 10.0)), told(*others)]
    found = in_force_ms(agents, {0: 10.0, 1: 10.0}, 2.0, 4.0)
    assert found == (None if late_ms is None else pytest.approx(late_ms))


def test_the_overhead_s_time_ends_with_the_rate_that_stays() -> None:
    """A rate that is set first and replaced by another is not the one that follows from the join."""
    changes, opened = [], {}
    for join in range(JOINS):
        begin, fair = FIRST_S + join * APART_S, fair_mbps(4 + join + 1)
        opened[4 + join] = begin
        for flow in range(4 + join + 1):
            changes += [(begin + 0.01, flow, 0.98 * fair), (begin + 0.03, flow, fair)]
    joining = told()
    joining.opened = opened
    notes = pl.DataFrame({"quantity": ["notices"], "time_s": [0.0], "value": [0.0]})
    row = overhead_row("host", 4, [told(*changes), joining], SimpleNamespace(notes=notes))  # type: ignore[arg-type]
    assert row["in_force_ms"] == pytest.approx(30.0)
    # One that is never told.
    last = [change for change in changes if change[1] != 2]
    row = overhead_row("host", 4, [told(*last), joining], SimpleNamespace(notes=notes))  # type: ignore[arg-type]
    assert row["in_force_ms"] is None


def test_controls_are_compared_and_bbr_is_one_of_its_own() -> None:
    given = {"controls": ("cubic", "reno"), "schemes": ("tcp", "bbr"), "settings": ("lan",)}
    cases = find("pacing.join").plan(**given).cases
    assert [case.name for case in cases] == ["lan-tcp-cubic-32", "lan-bbr-bbr-32", "lan-tcp-reno-32"]


def test_the_paper_is_judged_by_its_control_alone() -> None:
    def joined(scheme: str, period: int, control: str, mbps: float) -> dict[str, Any]:
        where = {"scheme": scheme, "setting": "wan", "buffer_packets": 32, "period": period}
        return {**where, "control": control, "goodput_mbps": mbps, "receive_buffer_kib": 32 * 1024}

    judge = next(claim.judge for claim in CLAIMS if claim.id == "A2")
    assert judge is not None
    own = [joined(s, p, "cubic", mbps) for s, mbps in (("tcp", 90.0), ("fq", 95.0)) for p in (1, 2, 3, 4)]
    reno = [joined("tcp", p, "reno", 1000.0) for p in (1, 2, 3, 4)]
    assert judge(own + 3 * reno, {}).found
    with pytest.raises(Missing, match="no fq of cubic in period 1"):
        judge([{**row, "control": "reno"} for row in own], {})


def verdicts(name: str, rows: list[dict[str, Any]], *given: Any) -> dict[str, tuple[bool, str]]:
    """Of the claims of an experiment's module."""
    module = importlib.import_module(f"tidegate.systems.pacing.experiments.{name}")
    return {claim.id: (claim.holds, claim.measured) for claim in module._claims(*given, rows)}


def test_a_host_that_is_never_told_breaks_the_claims_of_its_experiment() -> None:
    def leaves(kind: str, after_ms: float | None) -> dict[str, Any]:
        late = {"in_force_ms": after_ms, "after_close_ms": None if kind == "gone" else after_ms}
        return {"kind": kind, "rtt_ms": 1.0, "of_given": 1.0, **late}

    def moved(span: str, after_ms: float | None) -> dict[str, Any]:
        return {"span": span, "largest_off": 0.0, "in_force_ms": after_ms}

    def joined(period: int, after_ms: float | None) -> dict[str, Any]:
        where = {"scheme": "fq", "setting": "wan", "control": "cubic", "buffer_packets": 32}
        return {**where, "period": period, "jain": 1.0, "behind_handshake_ms": after_ms}

    for kind in ("fin", "reset", "gone"):
        assert verdicts("leave", [leaves(kind, 0.5)] * 3, 1.0)[kind] == (True, "0.5 ms")
        rows = [leaves(kind, 0.5), leaves(kind, None), leaves(kind, 0.5)]
        assert verdicts("leave", rows, 1.0)[kind] == (False, "inf ms; beyond: 1 ms (inf)")
    spans = [moved("before", None), moved("away", 2.0)]
    assert verdicts("reroute", [*spans, moved("back", 3.0)], 5.0)["in-force"] == (True, "2 to 3 ms")
    assert not verdicts("reroute", [*spans, moved("back", None)], 5.0)["in-force"][0]
    judge = next(claim.judge for claim in CLAIMS if claim.id == "A1")
    assert judge is not None
    periods = [joined(period, 0.1) for period in (1, 2, 3)]
    for last, holds in ((joined(4, 0.2), True), (joined(4, None), False)):
        assert verdicts("join", [*periods, last], 32, 2.0)["wan-in-force"][0] is holds
        assert judge([*periods, last], {}).found is holds


def test_what_must_not_happen_in_any_run_is_judged_by_the_worst_seed() -> None:
    def attacked(off: float) -> dict[str, Any]:
        return {"attack": "update", "keyed": True, "largest_off": off, "largest_off_beyond": off}

    def churned(wrong: int) -> dict[str, Any]:
        return {"disturbance": "none", "loss_percent": 0.0, "wrong_most": wrong, "members_at_rest": wrong}

    assert verdicts("attack", [attacked(off) for off in (0.0, -0.2, 0.0)])["keyed"][0] is False
    found = verdicts("churn", [churned(wrong) for wrong in (0, 1, 0)])
    assert [holds for holds, _ in found.values()] == [False, False]
    for late in ([0.3, None, 0.3], [0.0, 0.0, 0.0]):
        # A share that is fair from the first moment on is no share that never is.
        rows = [row for after_s in late for row in of_dmz(after_s)]
        assert verdicts("dmz", rows)["fair"][0] is (None not in late)


def of_dmz(fair_after_s: float | None) -> list[dict[str, Any]]:
    """A seed's rows of flows that are paced."""
    good = {
        "of_limit": 1.0,
        "of_limit_late": 1.0,
        "dropped": 0,
        "dropped_late": 0,
        "fair_after_s": fair_after_s,
    }
    where = {"scheme": "fq", "buffer_percent": 1.0, "phase_s": 4.0}
    return [{**where, **good, "phase": phase} for phase in (1, 2, 3)]


@pytest.mark.slow
@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_writes_its_rows_claims_and_figure(name: str, tmp_path: Path) -> None:
    settings, rows = EXPERIMENTS[name]
    answer = run_experiment(f"pacing.{name}", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    assert len(answer["rows"]) == rows
    assert "nan" not in " ".join(claim["measured"] for claim in answer["claims"])
    assert all(claim["holds"] for claim in answer["claims"]), answer["claims"]


@pytest.mark.slow
def test_paced_flows_join_as_the_paper_says(tmp_path: Path) -> None:
    """Tables I and II, the paced flows; all periods of 15 s."""
    settings = {"schemes": ("fq",), "buffers": (32,), "settings": ("wan",)}
    answer = run_experiment("pacing.join", settings, seeds=[1], out=tmp_path / "out")
    ours = [claim for claim in answer["claims"] if claim["of"] == "ours"]
    assert len(ours) == 7
    assert all(claim["holds"] for claim in ours), ours
