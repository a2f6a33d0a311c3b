"""How runs of `meter.rates`, `ablation`, `flows`, `targets` and `udp_near` judge the claims of the paper (wang2020).

As in the paper, an error is that of goodput (payload, as iperf counts it) over 180 s from the start, relative to the target. The
paper gives no RTT and no MTU, so a claim is found if one of the RTTs shows it; the measured values name each RTT, and say what IP
bytes have beside goodput. The paper's meter is `paper-unbounded`, with the controller as published; `paper` has our bounds.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from tidegate.claims import Percents, Row, medians, percent
from tidegate.papers import Finding, Judge, Missing, Parameters, need

SECONDS = 180
RATES = (100, 200, 300, 400, 500, 600, 700, 800)
"""Of Fig. 10, in Mbit/s."""
PARTS_RATES = (100, 200, 400, 800)
"""Of Exp. 0 to 3 (Figs. 11 and 12)."""
Sets = frozenset[tuple[int, ...]]
"""Targets in Mbit/s of flows that run at once."""
ALIKE: Sets = frozenset((400,) * flows for flows in range(1, 5))
"""Of Figs. 13 to 16."""
DIFFERENT: Sets = frozenset({(100, 200, 300, 400), (400, 500, 600, 700)})
"""Of Figs. 17 to 22."""
PAPERS = "paper-unbounded"
Errors = dict[str, float]
"""By target in Mbit/s; where flows run at once, by case and flow."""
Holds = Callable[[Errors], bool]
Shown = Callable[[Errors], str]


def demand_time(parameters: Parameters) -> None:
    """Refuse runs shorter than the paper's: its controller takes minutes to reach the rate."""
    need(
        parameters["duration_s"] >= SECONDS,
        f"the run has {parameters['duration_s']} s; the paper's means are of {SECONDS} s",
    )


def short_of_time(parameters: Parameters) -> str:
    """What is said of a run whose time is not demanded."""
    return f"runs of {parameters['duration_s']} s (the paper's means are of {SECONDS} s)"


def own(rows: list[Row], scheme: str) -> list[Row]:
    """The rows of a scheme."""
    found = [row for row in rows if row["scheme"] == scheme]
    need(found, f"the run has no scheme {scheme}")
    return found


def round_trips(rows: list[Row]) -> dict[float, list[Row]]:
    """The rows by base RTT in ms."""
    return {
        rtt: [row for row in rows if row["base_rtt_ms"] == rtt]
        for rtt in sorted({row["base_rtt_ms"] for row in rows})
    }


def by_round_trip(rows: list[Row], scheme: str, column: str = "goodput_error") -> dict[float, Errors]:
    """Median of an error over the seeds, by base RTT and target (or case and flow, where flows run at once)."""
    out: dict[float, Errors] = {}
    for rtt, here in round_trips(own(rows, scheme)).items():
        together = any(row["flow"] for row in here)
        out[rtt] = medians(here, column, _flow if together else _target)
    return out


def _target(row: Row) -> str:
    return f"{row['target_mbps']}"


def _flow(row: Row) -> str:
    return f"{row['case']}, flow {row['flow']}"


def show_range(errors: Errors) -> str:
    """Smallest and largest."""
    return Percents().range(list(errors.values()))


def show_at(*rates: int) -> Shown:
    """The errors at these rates."""
    return lambda errors: ", ".join(
        f"{rate} Mbit/s {percent(errors[str(rate)])}" for rate in rates if str(rate) in errors
    )


def show_within_5_percent(errors: Errors) -> str:
    """At how many rates the error is within 5 %."""
    return (
        f"{sum(abs(error) <= 0.05 for error in errors.values())} of {len(errors)} rates, {show_range(errors)}"
    )


def each_round_trip(parts: dict[float, str]) -> str:
    """`0.1 ms: ...; 1 ms: ...`."""
    return "; ".join(f"{rtt:g} ms: {text}" for rtt, text in parts.items())


def _at_any(holds: Holds, by_rtt: dict[float, Errors]) -> bool:
    """Whether it holds at one of the RTTs that have the rates for it; raises `Missing` if none has them."""
    found, missing = [], []
    for errors in by_rtt.values():
        try:
            found.append(holds(errors))
        except Missing as one:
            missing.append(one)
    if not found and missing:
        raise missing[0]
    return any(found)


def at_one_round_trip(scheme: str, holds: Holds, show: Shown = show_range, *, ip: bool = True) -> Judge:
    """Found if the errors of a scheme satisfy `holds` at one of the RTTs; with `ip`, the range of IP bytes stands beside it."""

    def judge(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        goodput = by_round_trip(rows, scheme)
        parts = {rtt: show(errors) for rtt, errors in goodput.items()}
        if ip:
            counted = by_round_trip(rows, scheme, "relative_error")
            parts = {rtt: f"{text} (IP bytes {show_range(counted[rtt])})" for rtt, text in parts.items()}
        return Finding(_at_any(holds, goodput), each_round_trip(parts))

    return judge


def like_a_plain_bucket(holds: Holds, nearer: str | None = None) -> Judge:
    """Of a switch whose meter is a black box: whether a plain bucket of 128 KiB has such errors at one RTT, medians over the seeds.

    A plain bucket's rate is chaotic, so the range over all seeds stands beside it. `nearer` is a scheme of the kind that the switch is said
    to have: it judges in place of the plain bucket where the run has it, and the measured value says so.
    """

    def judge(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        scheme = nearer if nearer and any(row["scheme"] == nearer for row in rows) else "plain"
        errors = by_round_trip(rows, scheme)
        parts = {}
        for rtt, here in round_trips(own(rows, scheme)).items():
            seeds = len({row["seed"] for row in here})
            spread = Percents().range([row["goodput_error"] for row in here])
            parts[rtt] = f"{show_range(errors[rtt])} ({seeds} {'seed' if seeds == 1 else 'seeds'} {spread})"
        by = "" if scheme == "plain" else f"by {scheme}: "
        return Finding(_at_any(holds, errors), by + each_round_trip(parts))

    return judge


def compared(scheme: str, other: str, holds: Holds, show: Shown = show_range) -> Judge:
    """Found if the differences of two schemes' errors satisfy `holds` at one of the RTTs."""

    def judge(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        of, against = by_round_trip(rows, scheme), by_round_trip(rows, other)
        # Joined runs may have more RTTs or rates of one scheme than of the other.
        differences = {
            rtt: {at: of[rtt][at] - against[rtt][at] for at in of[rtt] if at in against[rtt]}
            for rtt in of
            if rtt in against
        }
        differences = {rtt: errors for rtt, errors in differences.items() if errors}
        need(differences, f"the run has {scheme} and {other} at no RTT and rate both")
        measured = each_round_trip({rtt: show(errors) for rtt, errors in differences.items()})
        return Finding(_at_any(holds, differences), f"points: {measured}")

    return judge


def all_within(low: float, high: float) -> Holds:
    """All errors are from `low` to `high`."""
    return lambda errors: all(low <= error <= high for error in errors.values())


def median_within(low: float, high: float) -> Holds:
    """The median over the rates is from `low` to `high`."""
    return lambda errors: low <= statistics.median(errors.values()) <= high


def worst_within(low: float, high: float) -> Holds:
    """The lowest error is from `low` to `high`."""
    return lambda errors: low <= min(errors.values()) <= high


def most_within_5_percent(errors: Errors) -> bool:
    """More than half of the rates."""
    return sum(abs(error) <= 0.05 for error in errors.values()) > len(errors) / 2


def at_all(rates: Sequence[int], holds: Holds) -> Holds:
    """The same of errors at these rates, all of which a run must have."""

    def of_rates(errors: Errors) -> bool:
        missing = [str(rate) for rate in rates if str(rate) not in errors]
        need(not missing, f"the run has no target of {', '.join(missing)} Mbit/s")
        return holds({str(rate): errors[str(rate)] for rate in rates})

    return of_rates


def of_sets(scheme: str, sets: Sets, judge: Judge) -> Judge:
    """The same of a scheme's rows of these sets of targets, at the RTTs at which a run has them all."""

    def judge_sets(rows: list[Row], parameters: Parameters) -> Finding:
        whole: list[Row] = []
        for here in round_trips(own(rows, scheme)).values():
            cases: dict[str, dict[int, int]] = {}
            for row in here:
                # The same for all seeds.
                cases.setdefault(row["case"], {}).setdefault(row["flow"], row["target_mbps"])
            targets = {case: tuple(flows[flow] for flow in sorted(flows)) for case, flows in cases.items()}
            asked = {case for case in targets if targets[case] in sets}
            if sets <= {targets[case] for case in asked}:
                whole += [row for row in here if row["case"] in asked]
        named = "; ".join(", ".join(map(str, targets)) for targets in sorted(sets))
        need(whole, f"the run has at no RTT flows at once with targets of each of: {named} Mbit/s")
        return judge(whole, parameters)

    return judge_sets


def at(rate: int, low: float, high: float = float("inf")) -> Holds:
    """The error at a rate is from `low` to `high`."""

    def holds(errors: Errors) -> bool:
        need(str(rate) in errors, f"the run has no target of {rate} Mbit/s")
        return low <= errors[str(rate)] <= high

    return holds


def both(*of: Holds) -> Holds:
    """All of these hold at the same RTT."""
    return lambda errors: all(one(errors) for one in of)


def fewer_timeouts_and_drops(rows: list[Row], parameters: Parameters) -> Finding:
    """RED_ECN has fewer timeouts and drops than the same without it; without the controller all rates are below their targets.

    Rates are judged in IP bytes: goodput is 3.5 % below a meter's rate by construction.
    """
    demand_time(parameters)
    cells = [
        {(row["base_rtt_ms"], row["target_mbps"]) for row in own(rows, scheme)}
        for scheme in ("plain", "red_ecn", "controller", PAPERS)
    ]
    for rtt, target in sorted({(rtt, target) for rtt, _ in cells[0] for target in PARTS_RATES}):
        need((rtt, target) in cells[0], f"the run has no target of {target} Mbit/s at {rtt:g} ms")
    need(all(each == cells[0] for each in cells), "Exp. 0 to 3 have not the same rates and RTTs")
    totals: dict[str, dict[str, float]] = {}
    for scheme in ("plain", "red_ecn", "controller", PAPERS):
        found = own(rows, scheme)
        need(all(row["timeouts"] is not None for row in found), "the kernel does not count timeouts")
        seeds = len({row["seed"] for row in found})
        totals[scheme] = {
            column: sum(row[column] for row in found) / seeds for column in ("timeouts", "drops")
        }
    fewer = all(
        totals[marks][column] < totals[without][column]
        for marks, without in (("red_ecn", "plain"), (PAPERS, "controller"))
        for column in ("timeouts", "drops")
    )
    below = all(
        error < 0
        for scheme in ("plain", "red_ecn")
        for by_rate in by_round_trip(rows, scheme, "relative_error").values()
        for error in by_rate.values()
    )
    counts = "; ".join(
        f"Exp. {number}: {total['timeouts']:.0f} timeouts, {total['drops']:.0f} drops"
        for number, total in enumerate(totals.values())
    )
    return Finding(
        fewer and below,
        f"{counts} (all cells); Exp. 0 and 1 below the rate in IP bytes throughout: {'yes' if below else 'no'}",
    )


def waiting_for_timeouts(rows: list[Row], parameters: Parameters) -> Finding:
    """Where a plain meter gives less than half of the rate, most of the time is waiting for timeouts of 200 ms."""
    found = own(rows, "plain")
    need(all(row["timeouts"] is not None for row in found), "the kernel does not count timeouts")
    starved = [row for row in found if row["goodput_error"] < -0.5]
    need(starved, "no flow has less than half of its target")
    waits = [row["timeouts"] * 0.2 / parameters["duration_s"] for row in starved]
    return Finding(
        min(waits) > 0.5,
        f"{len(starved)} runs with less than half: {100 * min(waits):.0f} to {100 * max(waits):.0f} % of the time in timeouts",
    )


def alike(rows: list[Row], parameters: Parameters) -> Finding:
    """However many flows of the same target: at one RTT all within 5 points of each other, none below -10 % (bounds of ours)."""
    demand_time(parameters)
    errors = by_round_trip(rows, PAPERS)
    counted = by_round_trip(rows, PAPERS, "relative_error")
    parts = {rtt: f"{show_range(one)} (IP bytes {show_range(counted[rtt])})" for rtt, one in errors.items()}
    close = [
        max(one.values()) - min(one.values()) <= 0.05 and min(one.values()) >= -0.1 for one in errors.values()
    ]
    return Finding(any(close), each_round_trip(parts))


def udp_near_its_rate(rows: list[Row], parameters: Parameters) -> Finding:
    """Constant datagrams through a plain bucket: payload within 5 % of the ideal, from below and above (a bound of ours).

    A bucket has no controller that needs the paper's time.
    """
    found = [row for row in own(rows, "plain") if row["pattern"] == "constant"]
    below, above = ([row for row in found if (row["offered"] > 1) == side] for side in (False, True))
    need(below and above, "the run has no constant rates up to the target and above it")
    ranges = [_udp_range(side) for side in (below, above)]
    return Finding(
        all(abs(row["goodput_error"]) <= 0.05 for row in found),
        f"up to the rate {ranges[0]}, loss up to {100 * max(row['loss'] for row in below):.2g} %; above it {ranges[1]}; "
        f"{short_of_time(parameters)}",
    )


def _udp_range(rows: Sequence[Row]) -> str:
    payload, counted = (
        Percents().range([row[column] for row in rows]) for column in ("goodput_error", "relative_error")
    )
    return f"{payload} (IP bytes {counted})"
