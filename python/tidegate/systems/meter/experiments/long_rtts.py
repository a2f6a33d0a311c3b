"""One flow at 50 to 200 ms: how far TCP's goodput is from the rate.

A cell's window begins at the 10th second and lasts 50 s (50 times the burst of one second that contenders have alike) or three of CUBIC's
epochs at its window, whichever is longer; every row states it. Goodput is scaled by 1500/1448, with raw goodput beside it.

What cannot be at the rate is derived beforehand. Without a queue the window is the rate, and the level of a phantom queue its integral:
it swings around its mean as the window swings around the rate, by what passes or is lacking in half of a cycle, in seconds of the rate.
Where the queue is empty before the window is as large as the rate again, the mean is below the rate. The fair meter tells a flow to slow
down at 0.7 of its burst at the latest, so a swing has room for 0.7 x 1.05 s (`DEPTH_S`).

- Reno's window grows from 2/3 W to 4/3 W, by a packet a round trip (W: packets in flight at the rate): W x RTT / 18.
- CUBIC's mean is 0.925 of its maximum, which it reaches after K: 0.038 K, and twice of that with fast convergence (RFC 9438 section 4.7).
- DCTCP's swing is small, but its first cut is one half (alpha begins at 1). The meter ends slow start when 0.75 of the flow's share have
  been sent in a round trip; the answer comes after another doubling, so 0.75 W are left. They grow by a packet a round trip for W / 4
  round trips, in which what is lacking is lost.

Property 2 of the meter has only Reno with a swing of more than the burst as an exception; `fair-rate` judges by that, and `fair-fits` by
the list above. What cannot be at the rate is still bounded: by the mean of a sawtooth whose maximum is the rate, which is 3/4 for Reno and
0.925 for CUBIC, and by the 3/4 that slow start leaves of DCTCP's.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Annotated

import numpy as np
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, medians, most, percent
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.meter.experiments.contenders import CONTENDERS, Contenders, burst_columns
from tidegate.systems.meter.experiments.customer import (
    PASSED,
    Customer,
    excess,
    ip_of_payload,
    retransmits_since,
    sent,
    tcp_history,
)
from tidegate.systems.meter.experiments.fair_sharing import LOSS_FREE_S, MTU_BITS, WHY_LOSS, can_be_spared
from tidegate.systems.meter.fair import TARGET

FROM_S = 10
BURST_S = 2**20 / 1e6
"""Of the contenders with an equal burst: what Reno's swing is compared with, and a 50th of the shortest window."""
BURSTS = 50
EPOCHS = 3
DEPTH_S = TARGET * BURST_S
"""In which the fair meter lets a flow's queue swing."""
LIMIT = 0.02
STARVED = {"reno": -0.25, "cubic": -0.075, "dctcp": -0.25}
"""Of what cannot be at the rate, by control."""
RANGE = 20.0
"""Percent that the figure's colours tell apart."""
PEERS = ("bcpqp", "bcpqp-1s")
CUBIC_C, CUBIC_BETA = 0.4, 0.7
CONTROLS = (
    "cubic",
    "cubic+ECN",
    "reno",
    "reno+ECN",
    "bbr",
    "bbr+ECN",
    "bbr3",
    "bbr3+ECN",
    "dctcp+ECN",
    "prague+ECN",
)
TABLE = (
    "scheme",
    "burst_bytes",
    "control",
    "target_mbps",
    "base_rtt_ms",
    "window_s",
    "goodput_mbps",
    "error",
    "passed_error",
    "retransmits",
)


def packets(rate_mbps: float, rtt_ms: float) -> float:
    """W: packets of 1500 bytes in flight at the rate."""
    return rate_mbps * 1e6 * rtt_ms / 1e3 / MTU_BITS


def epoch_s(rate_mbps: float, rtt_ms: float) -> float:
    """K, the time of CUBIC from a cut to its last maximum, for a mean window at the rate (RFC 9438 section 4.2)."""
    # The mean over an epoch is (1 - (1 - beta) / 4) of the maximum.
    largest = packets(rate_mbps, rtt_ms) / (1 - (1 - CUBIC_BETA) / 4)
    return float(np.cbrt(largest * (1 - CUBIC_BETA) / CUBIC_C))


def window_s(rate_mbps: float, rtt_ms: float) -> int:
    """Whole seconds of a cell's window."""
    return int(np.ceil(max(BURSTS * BURST_S, EPOCHS * epoch_s(rate_mbps, rtt_ms))))


def reno_swing_s(rate_mbps: float, rtt_ms: float) -> float:
    """What Reno's sawtooth has above or below its mean, in seconds of the rate: W x RTT / 18."""
    return packets(rate_mbps, rtt_ms) * rtt_ms / 1e3 / 18


def cubic_swing_s(rate_mbps: float, rtt_ms: float) -> float:
    """The same of CUBIC, with fast convergence: twice 0.038 K."""
    return 2 * 0.038 * epoch_s(rate_mbps, rtt_ms)


def dctcp_loss_s(rate_mbps: float, rtt_ms: float) -> float:
    """What DCTCP loses in a cell's window after slow start, in seconds of the rate: it begins at 3/4 and grows for W / 4 round trips."""
    grows_s = packets(rate_mbps, rtt_ms) / 4 * rtt_ms / 1e3
    end_s = FROM_S + window_s(rate_mbps, rtt_ms)
    at = np.clip([FROM_S, end_s], 0, grows_s)
    # The integral of 1/4 (1 - t / grows).
    lacking = (at - at**2 / (2 * grows_s)) / 4
    return float(lacking[1] - lacking[0])


def exceeds_burst(control: str, rate_mbps: float, rtt_ms: float) -> bool:
    """Property 2's exception: Reno whose swing is more than the burst."""
    return control.startswith("reno") and reno_swing_s(rate_mbps, rtt_ms) > BURST_S


def cannot(control: str, rate_mbps: float, rtt_ms: float) -> bool:
    """Whether a cell cannot be at the rate behind the fair meter, by the derivation above."""
    match control.partition("+")[0]:
        case "reno":
            return reno_swing_s(rate_mbps, rtt_ms) > DEPTH_S
        case "cubic":
            return cubic_swing_s(rate_mbps, rtt_ms) > DEPTH_S
        case "dctcp":
            return dctcp_loss_s(rate_mbps, rtt_ms) > LIMIT * window_s(rate_mbps, rtt_ms)
    return False


def build(contender: str, control: str, rate_mbps: float, rtt_ms: float, seed: int) -> Customer:
    """One flow, which starts within the first tenth of a second."""
    at = Customer(contender, rate_mbps, rtt_ms)
    at.named(control, start=random.Random(seed).randrange(units.PS_PER_S // 10))
    at.attach("250 ms")
    return at


def measure(contender: str, control: str, rate_mbps: float, rtt_ms: float) -> Callable[[Result], Row]:
    """The row of a case."""

    def row(result: Result) -> Row:
        (flow,) = build(contender, control, rate_mbps, rtt_ms, 1).flows
        passed, goodput = sent(result, PASSED), tcp_history(result, flow.number).mbps(FROM_S)
        burst = burst_columns(contender, rate_mbps, rtt_ms)
        return {
            **burst,
            "control": control,
            "target_mbps": rate_mbps,
            "base_rtt_ms": rtt_ms,
            "from_s": FROM_S,
            "window_s": window_s(rate_mbps, rtt_ms),
            "cannot": cannot(control, rate_mbps, rtt_ms),
            "goodput_mbps": goodput / ip_of_payload(1500),
            "error": goodput / rate_mbps - 1,
            "passed_error": passed.mbps(FROM_S) / rate_mbps - 1,
            "excess_ms": excess(passed, rate_mbps) * 8e-3 / rate_mbps,
            "retransmits": retransmits_since(result, flow, LOSS_FREE_S),
            "timeouts": int(result.flows["timeouts"][0]),
        }

    return row


def cell(row: Row) -> str:
    """`cubic+ECN, 100 Mbit/s, 50 ms`."""
    return f"{row['control']}, {row['target_mbps']:g} Mbit/s, {row['base_rtt_ms']:g} ms"


def _place(row: Row) -> tuple[str, float, float]:
    return row["control"], row["target_mbps"], row["base_rtt_ms"]


def claims_of(rows: list[Row]) -> list[Claim]:
    """Properties 2 and 4 of the meter for ours, and its mean error and retransmissions against BC-PQP's."""
    out: list[Claim] = []
    for name, way in CONTENDERS.items():
        own = [row for row in rows if row["scheme"] == name]
        if not own or way.of != "ours":
            continue
        out += _rate(name, own)
        out += _losses(name, own, rows)
        mine = {at: abs(error) for at, error in medians(own, "error", cell).items()}
        for peer in PEERS:
            theirs = medians([row for row in rows if row["scheme"] == peer], "error", cell)
            both = [at for at in mine if at in theirs]
            if both:
                means = [float(np.mean([abs(errors[at]) for at in both])) for errors in (mine, theirs)]
                statement = (
                    f"{way.text}: mean absolute error of {len(both)} cells ({percent(means[0])}) at most that of "
                    f"{CONTENDERS[peer].text} ({percent(means[1])}); the difference in points"
                )
                out.append(
                    between(
                        f"{name}-{peer}",
                        "ours",
                        statement,
                        {"mean": means[0] - means[1]},
                        high=0,
                        why=way.why("rate"),
                        form=Percents(),
                    )
                )
    return out


def _rate(name: str, own: list[Row]) -> list[Claim]:
    """Property 2: at the rate but where that cannot be."""
    way = CONTENDERS[name]
    groups = [
        (
            "rate",
            "goodput within 2 % of the rate in each cell but those of Reno whose swing is more than the burst",
            [row for row in own if not exceeds_burst(*_place(row))],
            -LIMIT,
        ),
        (
            "fits",
            "goodput within 2 % of the rate in each cell whose window has room to swing",
            [row for row in own if not cannot(*_place(row))],
            -LIMIT,
        ),
    ]
    for control, lowest in STARVED.items():
        statement = f"{control}, where its window has no room to swing: {percent(lowest)} to {percent(LIMIT)}"
        some = [row for row in own if row["control"].startswith(control) and cannot(*_place(row))]
        groups.append((control, statement, some, lowest))
    return [
        between(
            f"{name}-{id}",
            "ours",
            f"{way.text}: {statement}",
            medians(some, "error", cell),
            lowest,
            LIMIT,
            why=way.why("rate"),
            form=Percents(8),
        )
        for id, statement, some, lowest in groups
        if some
    ]


def _spared(row: Row) -> bool:
    control, _, ecn = row["control"].partition("+")
    return bool(ecn) and can_be_spared(control, row["target_mbps"], row["base_rtt_ms"])


def _losses(name: str, own: list[Row], rows: list[Row]) -> list[Claim]:
    """Property 4: none where marks can spare them, and no more than behind BC-PQP elsewhere."""
    way, out = CONTENDERS[name], []
    spared = most([row for row in own if _spared(row)], "retransmits", cell)
    if spared:
        statement = (
            f"{way.text}: no retransmissions after {LOSS_FREE_S} s of flows that heed marks and whose rate is two packets a round trip "
            "or more (BBRv3: four)"
        )
        out.append(between(f"{name}-loss", "ours", statement, spared, 0, 0, why=WHY_LOSS))
    counts = medians([row for row in own if not _spared(row)], "retransmits", cell)
    for peer in PEERS:
        theirs = medians([row for row in rows if row["scheme"] == peer], "retransmits", cell)
        more = {at: count - theirs[at] for at, count in counts.items() if at in theirs}
        if more:
            statement = (
                f"{way.text} against {CONTENDERS[peer].text}: no more retransmissions of any flow without ECN, or that does not heed marks, "
                "or whose rate is too small for it"
            )
            out.append(between(f"{name}-{peer}-loss", "ours", statement, more, high=0, why=way.why("loss")))
    return out


@experiment(
    "meter.longrtt",
    TABLE,
    quick={
        "controls": ("cubic", "cubic+ECN"),
        "rates_mbps": (10.0, 50.0),
        "base_rtts_ms": (100.0,),
        "schemes": ("plain-1s", "fair", "bcpqp-1s"),
    },
)
def longrtt(
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = (
        "cubic",
        "cubic+ECN",
        "reno+ECN",
        "bbr",
        "dctcp+ECN",
        "prague+ECN",
    ),
    rates_mbps: Annotated[tuple[float, ...], AtLeast(0.1, 1000)] = (10.0, 100.0, 300.0, 700.0),
    base_rtts_ms: Annotated[tuple[float, ...], AtLeast(0.01, 1000)] = (50.0, 100.0, 150.0, 200.0),
    schemes: Contenders = ("plain-1s", "fair", "bcpqp", "bcpqp-1s", "fairpolicer-1s", "shaper"),
) -> Plan:
    """One flow at long RTTs: the error of its goodput, over a window that each row states."""

    def case(scheme: str, control: str, rate: float, rtt: float) -> Case:
        def network(seed: int) -> Network:
            return build(scheme, control, rate, rtt, seed).network

        until = f"{FROM_S + window_s(rate, rtt)} s"
        return Case(
            f"{scheme}-{control}-{rate:g}-{rtt:g}ms", network, until, measure(scheme, control, rate, rtt)
        )

    def draw(runs: list[Run]) -> Figure:
        return draw_errors(all_rows(runs), schemes, controls, rates_mbps, base_rtts_ms)

    grid = [
        (scheme, control, rate, rtt)
        for control in controls
        for rate in rates_mbps
        for rtt in base_rtts_ms
        for scheme in schemes
    ]
    return Plan([case(*each) for each in grid], claims_of, draw)


def draw_errors(
    rows: list[Row],
    schemes: tuple[str, ...],
    controls: tuple[str, ...],
    rates_mbps: tuple[float, ...],
    base_rtts_ms: tuple[float, ...],
) -> Figure:
    """A panel for each contender: a line for each control, a column for each rate and RTT."""
    places = [(rate, rtt) for rate in rates_mbps for rtt in base_rtts_ms]
    width, height = 2.8 + 0.62 * len(places), 1.7 + (0.45 + 0.3 * len(controls)) * len(schemes)
    figure = Figure(figsize=(max(width, 7), height), layout="constrained")
    panels = figure.subplots(len(schemes), 1, squeeze=False, sharex=True)[:, 0]
    for panel, scheme in zip(panels, schemes, strict=True):
        # The list is of the fair meter's room for a swing.
        ours = CONTENDERS[scheme].of == "ours"
        errors = medians([row for row in rows if row["scheme"] == scheme], "error", cell)
        grid = np.array(
            [
                [
                    100
                    * errors.get(cell({"control": control, "target_mbps": rate, "base_rtt_ms": rtt}), np.nan)
                    for rate, rtt in places
                ]
                for control in controls
            ]
        )
        image = panel.imshow(
            np.clip(grid, -RANGE, RANGE), cmap="RdBu", vmin=-RANGE, vmax=RANGE, aspect="auto"
        )
        for (line, column), value in np.ndenumerate(grid):
            if np.isnan(value):
                continue
            panel.text(
                column,
                line,
                f"{value:+.1f}" + ("*" if ours and cannot(controls[line], *places[column]) else ""),
                ha="center",
                va="center",
                fontsize=8,
                color="white" if abs(value) > 0.6 * RANGE else "black",
                weight="bold" if abs(value) > 100 * LIMIT else "normal",
            )
        panel.set_yticks(range(len(controls)), controls, fontsize=8)
        panel.set_title(CONTENDERS[scheme].text, fontsize=9)
    panels[-1].set_xticks(range(len(places)), [f"{rate:g}\n{rtt:g} ms" for rate, rtt in places], fontsize=8)
    panels[-1].set_xlabel("rate (Mbit/s), base RTT")
    figure.colorbar(image, ax=list(panels), label="error of goodput (%)", pad=0.01, aspect=40)
    figure.suptitle(
        "One flow by rate and RTT, from the 10th second on\nbold: more than 2 % off; *: its window has no room to swing",
        fontsize=10,
    )
    return figure
