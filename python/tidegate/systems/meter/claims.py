"""The claims of the paper (wang2020), and how runs of this system's experiments judge them.

As in the paper, an error is that of goodput (payload, as iperf counts it) over 180 s from the start. The paper gives no RTT, so
a claim is found if one of the RTTs shows it; the measured values name each RTT.
"""

from __future__ import annotations

from collections.abc import Callable

from tidegate.claims import Percents, Row, medians
from tidegate.papers import Finding, PaperClaim, Parameters, need

PAPER = (
    'S.-Y. Wang, H.-W. Hu, Y.-B. Lin, "Design and Implementation of TCP-Friendly Meters in P4 Switches", '
    "IEEE/ACM Transactions on Networking 28(4), 2020"
)
SECONDS = 180
Errors = dict[str, float]
"""By target in Mbit/s; where flows run at once, by case and flow."""


def demand_time(parameters: Parameters) -> None:
    """Refuse runs shorter than the paper's: its controller takes minutes to reach the rate."""
    need(
        parameters["duration_s"] >= SECONDS,
        f"the run has {parameters['duration_s']} s; the paper's means are of {SECONDS} s",
    )


def goodput_errors(rows: list[Row], scheme: str) -> dict[float, Errors]:
    """Median over the seeds of goodput over target less 1, by base RTT and target."""
    own = [
        {**row, "error": row["goodput_mbps"] / row["target_mbps"] - 1}
        for row in rows
        if row["scheme"] == scheme
    ]
    need(own, f"the run has no scheme {scheme}")
    out: dict[float, Errors] = {}
    for rtt in sorted({row["base_rtt_ms"] for row in own}):
        here = [row for row in own if row["base_rtt_ms"] == rtt]
        together = any(row["flow"] for row in here)
        out[rtt] = medians(here, "error", _flow if together else _target)
    return out


def _target(row: Row) -> str:
    return f"{row['target_mbps']}"


def _flow(row: Row) -> str:
    return f"{row['case']}, flow {row['flow']}"


def _show(errors: Errors) -> str:
    return Percents().range(list(errors.values()))


def at_one_round_trip(
    scheme: str, holds: Callable[[Errors], bool]
) -> Callable[[list[Row], Parameters], Finding]:
    """Found if the errors of a scheme satisfy `holds` at one of the RTTs."""

    def judge(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        by_rtt = goodput_errors(rows, scheme)
        measured = "; ".join(f"{rtt:g} ms: {_show(errors)}" for rtt, errors in by_rtt.items())
        return Finding(any(holds(errors) for errors in by_rtt.values()), measured)

    return judge


def compared(
    scheme: str, other: str, holds: Callable[[Errors], bool]
) -> Callable[[list[Row], Parameters], Finding]:
    """Found if the differences of two schemes' errors satisfy `holds` at one of the RTTs."""

    def judge(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        of, against = goodput_errors(rows, scheme), goodput_errors(rows, other)
        differences = {rtt: {at: error - against[rtt][at] for at, error in of[rtt].items()} for rtt in of}
        measured = "; ".join(f"{rtt:g} ms: {_show(errors)} (points)" for rtt, errors in differences.items())
        return Finding(any(holds(errors) for errors in differences.values()), measured)

    return judge


def all_within(low: float, high: float) -> Callable[[Errors], bool]:
    """All errors are from `low` to `high`."""
    return lambda errors: all(low <= error <= high for error in errors.values())


def most_within_5_percent(errors: Errors) -> bool:
    """More than half of the rates."""
    return sum(abs(error) <= 0.05 for error in errors.values()) > len(errors) / 2


def at(rate: int, low: float, high: float = float("inf")) -> Callable[[Errors], bool]:
    """The error at a rate is from `low` to `high`."""

    def holds(errors: Errors) -> bool:
        need(str(rate) in errors, f"the run has no target of {rate} Mbit/s")
        return low <= errors[str(rate)] <= high

    return holds


def both(*of: Callable[[Errors], bool]) -> Callable[[Errors], bool]:
    """All of these hold at the same RTT."""
    return lambda errors: all(one(errors) for one in of)


def _timeouts(rows: list[Row], parameters: Parameters) -> Finding:
    demand_time(parameters)
    total: dict[str, float] = {}
    for scheme in ("plain", "red_ecn", "controller", "paper"):
        own = [row for row in rows if row["scheme"] == scheme]
        need(own, f"the run has no scheme {scheme}")
        need(all(row["timeouts"] is not None for row in own), "the kernel does not count timeouts")
        total[scheme] = sum(row["timeouts"] for row in own)
    fewer = total["red_ecn"] < total["plain"] and total["paper"] < total["controller"]
    errors = goodput_errors(rows, "red_ecn").values()
    below = all(error < 0 for by_rate in errors for error in by_rate.values())
    counts = ", ".join(f"{scheme} {count:.0f}" for scheme, count in total.items())
    return Finding(
        fewer and below, f"timeouts in all: {counts}; RED_ECN alone always below: {'yes' if below else 'no'}"
    )


def _waiting(rows: list[Row], parameters: Parameters) -> Finding:
    own = [row for row in rows if row["scheme"] == "plain"]
    need(own, "the run has no scheme plain")
    need(all(row["timeouts"] is not None for row in own), "the kernel does not count timeouts")
    starved = [row for row in own if row["goodput_mbps"] < 0.5 * row["target_mbps"]]
    need(starved, "no flow has less than half of its target")
    waits = [row["timeouts"] * 0.2 / parameters["duration_s"] for row in starved]
    return Finding(
        min(waits) > 0.5,
        f"{100 * min(waits):.0f} to {100 * max(waits):.0f} % of the time for timeouts of 200 ms",
    )


def _udp(rows: list[Row], parameters: Parameters) -> Finding:
    own = [
        row
        for row in rows
        if row["scheme"] == "plain" and row["offered"] > 1 and row["pattern"] == "constant"
    ]
    need(own, "the run has no constant rate above the target through a plain meter")
    errors = [row["relative_error"] for row in own]
    return Finding(
        all(abs(error) <= 0.05 for error in errors), f"{Percents().range(errors)} of the target, IP bytes"
    )


def _alike(rows: list[Row], parameters: Parameters) -> Finding:
    demand_time(parameters)
    cases: dict[str, dict[float, list[float]]] = {}
    for row in rows:
        if row["scheme"] == "paper":
            errors = cases.setdefault(f"{row['base_rtt_ms']:g} ms", {})
            errors.setdefault(row["flow"], []).append(row["goodput_mbps"] / row["target_mbps"] - 1)
    need(cases, "the run has no scheme paper")
    spans = {rtt: [error for flow in flows.values() for error in flow] for rtt, flows in cases.items()}
    measured = "; ".join(f"{rtt}: {Percents().range(errors)}" for rtt, errors in spans.items())
    alike = [max(errors) - min(errors) <= 0.05 and min(errors) >= -0.1 for errors in spans.values()]
    return Finding(any(alike), measured)


def _near(rows: list[Row], parameters: Parameters) -> Finding:
    return at_one_round_trip("paper", all_within(-0.10, 0.0))(rows, parameters)


BLACK_BOX = (
    "the switch's meter is a black box: a run can only show that a plain bucket of 128 KB behaves alike"
)
FAR_BELOW = all_within(-1.0, -0.5)
"""The paper gives no number; half of the target is a bound of ours."""

CLAIMS = (
    PaperClaim(
        "C1", "abstract, I", "TCP has about 10 % of its rate behind Netgear's meter", cannot=BLACK_BOX
    ),
    PaperClaim("C2", "I", "UDP is very close to the rate behind a meter", "meter.udp", _udp),
    PaperClaim(
        "C3",
        "I, V-A",
        "a bucket of less than 128 KB gives TCP less",
        cannot="no experiment varies the plain bucket",
    ),
    PaperClaim(
        "C4", "I", "the meters of three switches are about alike", cannot=f"{BLACK_BOX}; C6 contradicts it"
    ),
    PaperClaim("C5", "Fig. 10", "Netgear: -85 to -90 % at 100 to 800 Mbit/s", cannot=BLACK_BOX),
    PaperClaim("C6", "Fig. 10", "Edge-Core: -42 to -83 %", cannot=BLACK_BOX),
    PaperClaim(
        "C7",
        "Fig. 10",
        "Tofino's RFC 2698 meter: -78 to -90 %",
        "meter.rates",
        at_one_round_trip("rfc2698", all_within(-0.90, -0.78)),
    ),
    PaperClaim(
        "C8",
        "Fig. 10",
        "the paper's meter: -2 to -9 % at 100 to 800 Mbit/s",
        "meter.rates",
        at_one_round_trip("paper", all_within(-0.09, -0.02)),
    ),
    PaperClaim(
        "C9",
        "abstract, V-A, VII",
        "the paper's meter is within 5 % at most rates",
        "meter.rates",
        at_one_round_trip("paper", most_within_5_percent),
    ),
    PaperClaim(
        "C10",
        "abstract, V-A, VII",
        "almost 85 points of the rate more than other meters",
        "meter.rates",
        compared("paper", "plain", lambda gained: 0.75 <= max(gained.values()) <= 0.95),
    ),
    PaperClaim("C11", "VII", "errors of other meters of up to -90 %", cannot=BLACK_BOX),
    PaperClaim(
        "C12",
        "Figs. 11, 12",
        "Exp. 0, the meter alone: far below the rate",
        "meter.ablation",
        at_one_round_trip("plain", FAR_BELOW),
    ),
    PaperClaim(
        "C13",
        "V-B",
        "Exp. 1, RED_ECN: near the rate at 800 Mbit/s, not at 100",
        "meter.ablation",
        at_one_round_trip("red_ecn", both(at(800, -0.10), at(100, -1.0, -0.10))),
    ),
    PaperClaim(
        "C14",
        "V-B, Fig. 12",
        "Exp. 2, controller: -20 % at 100 Mbit/s, near at 800",
        "meter.ablation",
        at_one_round_trip("controller", both(at(100, -0.25, -0.15), at(800, -0.10))),
    ),
    PaperClaim(
        "C15",
        "V-B",
        "Exp. 3, both: -10 % at 100 Mbit/s",
        "meter.ablation",
        at_one_round_trip("paper", at(100, -0.15, -0.05)),
    ),
    PaperClaim(
        "C16",
        "V-B",
        "at 100 Mbit/s RED_ECN improves -20 % to -10 %",
        "meter.ablation",
        compared("paper", "controller", at(100, 0.05)),
    ),
    PaperClaim(
        "C17",
        "IV-C, V-B",
        "RED_ECN avoids timeouts; without the controller the rate is always below the target",
        "meter.ablation",
        _timeouts,
    ),
    PaperClaim(
        "C18",
        "V-B",
        "few packets per RTT: timeouts in place of fast retransmits",
        "meter.ablation",
        _waiting,
    ),
    PaperClaim("C19", "Fig. 13", "flows of 400 Mbit/s are about alike, however many", "meter.flows", _alike),
    PaperClaim(
        "C20",
        "Figs. 14-16",
        "other meters: far below the rate",
        "meter.flows",
        at_one_round_trip("plain", FAR_BELOW),
    ),
    PaperClaim(
        "C21",
        "Figs. 17, 21",
        "near the rates of 100 to 400, and well at 400 to 700 Mbit/s",
        "meter.targets",
        _near,
    ),
    PaperClaim(
        "C22",
        "V-C",
        "Edge-Core and Tofino are alike at 400 to 700 Mbit/s",
        cannot=f"{BLACK_BOX}; the paper does not show it",
    ),
    PaperClaim(
        "C23",
        "IV-A",
        "128 tokens a timer packet balance bursts and cost",
        cannot="no experiment varies the tokens of a timer packet",
    ),
    PaperClaim(
        "C24",
        "V-A",
        "Kp alone is near but restless, Ki calms, Kd makes it worse",
        cannot="no experiment varies the gains",
    ),
    PaperClaim(
        "C25",
        "IV-B",
        "with the second chance marked packets pass sooner",
        cannot="no experiment switches the second chance off",
    ),
    PaperClaim(
        "C26",
        "IV-B, VI",
        "an averaged level and a finer threshold would be better",
        cannot="no experiment varies them",
    ),
    PaperClaim(
        "C27",
        "III, V",
        "line rate at 100 Gbit/s",
        cannot="a claim about the Tofino switch, which a simulation cannot show",
    ),
)
