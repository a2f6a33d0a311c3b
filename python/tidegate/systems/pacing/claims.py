"""The claims of the paper (kfoury2019), and how runs of this system's experiments judge them.

The paper's Tables I and II are of one network (100 Mbit/s, a round trip of 20 ms); its figures have no numbers in their text. It does
not give the buffers, the TCP, the receive windows or the reserve l. Values are medians over the seeds.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidegate.claims import Claim, Row, medians, medians_of_times
from tidegate.papers import Finding, PaperClaim, Parameters, need, of_run

PAPER = (
    'E. Kfoury, J. Crichigno, E. Bou-Harb, D. Khoury, G. Srivastava, "Enabling TCP Pacing using Programmable Data Plane Switches", '
    "42nd International Conference on Telecommunications and Signal Processing (TSP), 2019"
)

Judge = Callable[[list[Row], Parameters], Finding]

NEAR = 0.05
"""A mean that differs by less is found."""
AS_MUCH = 0.25
"""Of regular TCP's variation and unfairness, either way; a bound of ours."""
BUFFER = 32
"""Packets; of the runs that claims are judged by."""
CONTROL = "cubic"
"""Of these runs; the paper does not name its TCP, and this is Linux's."""

SUMS = {
    "tcp": (33.62, 67.27, 88.83, 91.86),
    "htb": (81.25, 93.1, 94.42, 95.12),
    "fq": (66.59, 89.91, 93.72, 94.52),
}
"""Table I: Mbit/s of all flows, by period."""
FAIRNESS = {
    "tcp": (0.994, 0.994, 0.974),
    "htb": (0.99998, 0.99998, 0.99999),
    "fq": (0.99960, 0.99960, 0.99997),
}
"""Table II: F by period, from the second on; of the one flow of the first it is 1 by its formula."""
VARIATION = {
    "tcp": ((32.32,), (22.63, 30.08), (9.349, 10.90, 19.69), (7.806, 5.260, 6.447, 17.27)),
    "htb": ((8.188,), (3.773, 2.998), (2.065, 2.081, 1.985), (1.168, 1.138, 0.755, 0.684)),
    "fq": ((28.427,), (4.351, 14.142), (1.618, 1.317, 3.879), (1.022, 1.020, 0.996, 3.336)),
}
"""Table II: percent, by period and flow."""
NO_TIMES = "runs do not measure the processor time of hosts' qdiscs"


def _rows(rows: list[Row], scheme: str, period: int, setting: str = "wan") -> list[Row]:
    chosen = [
        row
        for row in rows
        if (row["scheme"], row["period"], row["setting"], row["buffer_packets"], row["control"])
        == (scheme, period, setting, BUFFER, CONTROL)
    ]
    need(
        chosen,
        f"the run has no {scheme} of {CONTROL} in period {period} of {setting} with a buffer of {BUFFER} packets",
    )
    return chosen


def _median(rows: list[Row], scheme: str, period: int, column: str, setting: str = "wan") -> float:
    values = [row[column] for row in _rows(rows, scheme, period, setting) if row[column] is not None]
    need(values, f"the run has no {column} with {scheme} in period {period}")
    return float(np.median(values))


def _sum(scheme: str, period: int) -> Judge:
    def judge(rows: list[Row], _: Parameters) -> Finding:
        value, published = _median(rows, scheme, period, "goodput_mbps"), SUMS[scheme][period - 1]
        return Finding(abs(value - published) <= NEAR * published, f"{value:.2f} Mbit/s")

    return judge


def _as_much(value: float, published: float) -> bool:
    return abs(value - published) <= AS_MUCH * published


def _fair(scheme: str, period: int) -> Judge:
    """Paced flows are at least as fair as published; regular TCP is as unfair."""

    def judge(rows: list[Row], _: Parameters) -> Finding:
        value, published = _median(rows, scheme, period, "jain"), FAIRNESS[scheme][period - 2]
        found = _as_much(1 - value, 1 - published) if scheme == "tcp" else value >= published - 5e-6
        return Finding(found, f"{value:.5f}")

    return judge


def _variations(rows: list[Row], scheme: str, period: int) -> list[float]:
    return [_median(rows, scheme, period, f"flow{flow}_cv_percent") for flow in range(1, period + 1)]


def _varies(scheme: str, period: int) -> Judge:
    """Paced flows vary at most as published; regular TCP varies as much."""

    def judge(rows: list[Row], _: Parameters) -> Finding:
        values = _variations(rows, scheme, period)
        pairs = list(zip(values, VARIATION[scheme][period - 1], strict=True))
        text = " ".join(f"{value:.2f}" for value in values) + " %"
        return Finding(
            all(_as_much(value, one) if scheme == "tcp" else value <= one for value, one in pairs), text
        )

    return judge


def _grows(rows: list[Row], _: Parameters) -> Finding:
    gains = [
        _median(rows, "fq", p, "goodput_mbps") / _median(rows, "tcp", p, "goodput_mbps") for p in (1, 2, 3, 4)
    ]
    return Finding(all(gain > 1 for gain in gains), "x ".join(f"{gain:.3f}" for gain in gains) + "x")


def _steadier(rows: list[Row], _: Parameters) -> Finding:
    pairs = [
        tuple(_median(rows, scheme, p, f"flow{flow}_cv_percent") for scheme in ("fq", "tcp"))
        for p in (1, 2, 3, 4)
        for flow in range(1, p + 1)
    ]
    worst = max(paced / tcp for paced, tcp in pairs)
    return Finding(worst < 1, f"at most {worst:.2f} of TCP's coefficient of variation")


def _fairer(rows: list[Row], _: Parameters) -> Finding:
    values = {s: min(_median(rows, s, p, "jain") for p in (2, 3, 4)) for s in ("fq", "tcp")}
    return Finding(
        values["fq"] > values["tcp"], f"least Jain index {values['fq']:.5f}, of TCP {values['tcp']:.5f}"
    )


def _at_once(rows: list[Row], _: Parameters) -> Finding:
    own = [row for p in (1, 2, 3, 4) for row in _rows(rows, "fq", p)]
    found = medians_of_times(own, lambda row: row.get("behind_handshake_ms"), lambda row: str(row["period"]))
    times = found.values()
    return Finding(max(times) <= 1.0, f"at most {max(times):.2f} ms behind the handshake of one round trip")


def _lan(rows: list[Row], _: Parameters) -> Finding:
    sums = {s: [_median(rows, s, p, "goodput_mbps", "lan") for p in (1, 2, 3, 4)] for s in ("tcp", "fq")}
    fair = {s: min(_median(rows, s, p, "jain", "lan") for p in (2, 3, 4)) for s in ("tcp", "fq")}
    near = all(abs(a - b) <= NEAR * b for a, b in zip(sums["fq"], sums["tcp"], strict=True))
    text = f"sums {min(sums['fq']):.1f} to {max(sums['fq']):.1f}, TCP's {min(sums['tcp']):.1f} to {max(sums['tcp']):.1f} Mbit/s"
    return Finding(near and fair["fq"] > fair["tcp"], f"{text}; Jain {fair['fq']:.5f}, {fair['tcp']:.5f}")


def _window(rows: list[Row], _: Parameters) -> Finding:
    own = [row["receive_buffer_kib"] for row in rows if row["scheme"] == "tcp-window"]
    need(own, "the run has no TCP with a small receive buffer")
    rows = [row for row in rows if row["receive_buffer_kib"] == min(own)]
    values = [_median(rows, "tcp-window", p, "goodput_mbps") for p in (1, 2)]
    near = all(abs(value - SUMS["tcp"][p]) <= NEAR * SUMS["tcp"][p] for p, value in enumerate(values))
    return Finding(
        near,
        f"with a receive buffer of {min(own)} KiB, which is fitted to the first, {values[0]:.1f} and {values[1]:.1f} Mbit/s",
    )


def _catches_up(rows: list[Row], _: Parameters) -> Finding:
    parts = [
        _median(rows, "tcp", p, "goodput_mbps") / _median(rows, "fq", p, "goodput_mbps") for p in (1, 2, 3, 4)
    ]
    return Finding(
        min(parts[2:]) > max(parts[:2]), ", ".join(f"{part:.3f}" for part in parts) + " of the paced sum"
    )


def _dmz(rows: list[Row], _: Parameters) -> Finding:
    def of(scheme: str) -> list[Row]:
        chosen = [row for row in rows if row["scheme"] == scheme and row["buffer_percent"] == 1.0]
        need(chosen, f"the run has no {scheme} with a buffer of 1 % of a bandwidth-delay product")
        return chosen

    drops = {scheme: sum(row["dropped"] for row in of(scheme)) for scheme in ("fq", "cubic")}
    varies = {
        scheme: max(
            float(np.median([row["cv_10ms_percent"] for row in of(scheme) if row["phase"] == phase]))
            for phase in (1, 2, 3)
        )
        for scheme in ("fq", "cubic")
    }
    text = f"{drops['fq']} drops, {drops['cubic']} with CUBIC; a flow's 10 ms vary by {varies['fq']:.2f} %, {varies['cubic']:.1f} %"
    return Finding(drops["fq"] < drops["cubic"] and varies["fq"] < varies["cubic"], text)


LITTLE = 0.005
"""Of the link: what notices and answers take at ten changes a second."""


def _overhead(rows: list[Row], _: Parameters) -> Finding:
    told = [row for row in rows if row["notices_by"] == "host"]
    need(told, "the run has no notices by host")
    of_link = medians(told, "of_link", lambda row: str(row["flows"]))
    text = ", ".join(f"{100 * part:.4f} % of the link with {flows} flows" for flows, part in of_link.items())
    return Finding(max(of_link.values()) <= LITTLE, f"at ten changes a second: {text}")


def _ordered(period: int) -> Judge:
    """HTB, FQ and TCP by their sums."""

    def judge(rows: list[Row], _: Parameters) -> Finding:
        htb, fq, tcp = (_median(rows, scheme, period, "goodput_mbps") for scheme in ("htb", "fq", "tcp"))
        return Finding(htb > fq > tcp, f"HTB {htb:.2f}, FQ {fq:.2f}, TCP {tcp:.2f} Mbit/s")

    return judge


def _grows_with_rtt(rows: list[Row], _: Parameters) -> Finding:
    """What FQ has more than TCP in sums, and is fairer by, at 20 ms and below 1 ms: the means over the periods."""
    gains, fairer = {}, {}
    for setting in ("lan", "wan"):
        sums, fair = (
            {s: [_median(rows, s, p, column, setting) for p in periods] for s in ("fq", "tcp")}
            for column, periods in (("goodput_mbps", (1, 2, 3, 4)), ("jain", (2, 3, 4)))
        )
        gains[setting] = float(np.mean([a / b for a, b in zip(sums["fq"], sums["tcp"], strict=True)])) - 1
        fairer[setting] = float(np.mean(fair["fq"]) - np.mean(fair["tcp"]))
    return Finding(
        gains["wan"] > gains["lan"] and fairer["wan"] > fairer["lan"],
        f"sums {100 * gains['lan']:+.1f} %, at 20 ms {100 * gains['wan']:+.1f} %; Jain {fairer['lan']:+.4f}, at 20 ms {fairer['wan']:+.4f}",
    )


def _htb_is_steadier(rows: list[Row], _: Parameters) -> Finding:
    htb, tcp = (_variations(rows, scheme, 2) for scheme in ("htb", "tcp"))
    text = "; ".join(
        f"{name} {' '.join(f'{value:.2f}' for value in own)} %" for name, own in (("HTB", htb), ("TCP", tcp))
    )
    return Finding(all(a < b for a, b in zip(htb, tcp, strict=True)), text)


def _htb_is_below_2(rows: list[Row], _: Parameters) -> Finding:
    values = _variations(rows, "htb", 4)
    return Finding(max(values) < 2, " ".join(f"{value:.2f}" for value in values) + " %")


def _across_routers(rows: list[Row], _: Parameters) -> Finding:
    """Every flow of every run has its share within 1 %."""
    off = [abs(row["of_fair"] - 1) for row in rows if row["routers"] > 0]
    need(off, "the run has no plain routers")
    return Finding(
        max(off) <= 0.01,
        f"flows through plain routers are at most {100 * max(off):.2f} % off their shares (1 % allowed); routers that drop options are "
        "not in it",
    )


WHY_LATE = "real hosts and their switch share the machine's processors, and send late"
WHY_ALONE = "where windows grow, the schemes differ by less than what the machine's processors take"
WHY_TCP = "regular TCP alone fills the link where its receive window grows, as in Linux today; see X0 for what limited the paper's"
WHY_VARIES = "how much regular TCP varies, and how unfair it is, depends on the link's buffer and its windows, which the paper does not give"
WHY_MORE = "pacing gives more where no window limits it, and less where a busy machine sends late"


def _tables() -> list[PaperClaim]:
    claims = []
    for scheme in SUMS:
        most, least = ("", "") if scheme == "tcp" else ("at most ", "at least ")
        either = f" (within {100 * AS_MUCH:.0f} %)" if scheme == "tcp" else ""
        for period in (1, 2, 3, 4):
            varied = f"{', '.join(map(str, VARIATION[scheme][period - 1]))} %"
            cells = [
                ("T1", "Table I", f"sum {SUMS[scheme][period - 1]} Mbit/s", "", " (within 5 %)", _sum),
                ("T2", "Table II", f"CV {varied}", most, either, _varies),
            ]
            if period > 1:
                fair = f"F {FAIRNESS[scheme][period - 2]}"
                cells.append(("F", "Table II", fair, least, either.replace("(", "(1 - F "), _fair))
            for table, where, cell, bound, tolerance, judge in cells:
                whose, (name, number) = f"{scheme.upper()}, period {period}: ", cell.split(" ", 1)
                claims.append(
                    PaperClaim(
                        f"{table}.p{period}.{scheme}",
                        where,
                        f"{whose}{name} {bound}{number}{tolerance}",
                        "pacing.join",
                        judge(scheme, period),
                        why=(WHY_TCP if judge is _sum else WHY_VARIES)
                        if scheme == "tcp"
                        else (WHY_MORE if judge is _sum else WHY_LATE),
                        published=f"{whose}{cell}",
                    )
                )
    return claims


CLAIMS = [
    PaperClaim("A1", "abstract", "Hosts are told of a change with the least delay", "pacing.join", _at_once),
    PaperClaim("A2", "abstract", "Pacing raises the throughput", "pacing.join", _grows, why=WHY_TCP),
    PaperClaim("A3", "abstract", "Pacing makes the throughput steadier", "pacing.join", _steadier),
    PaperClaim("A4", "abstract", "Pacing makes shares fairer", "pacing.join", _fairer),
    PaperClaim(
        "A5",
        "abstract",
        "Switches send little: packets at changes alone (no number is given; at most 0.5 % of a link, hosts told once)",
        "pacing.overhead",
        _overhead,
        published="Switches send little: packets at changes alone",
    ),
    PaperClaim(
        "A6",
        "abstract",
        "It works across legacy switches (flows have their shares within 1 %)",
        "pacing.legacy",
        _across_routers,
        published="It works across legacy switches",
    ),
    PaperClaim(
        "A7",
        "abstract, section I",
        "The number of flows and the capacity need not be known before",
        cannot="by construction: the switch counts the flows that ask (`pacing.churn` compares its count with a capture); its links' "
        "capacities are set when it starts",
    ),
    PaperClaim(
        "F6.abc",
        "Fig. 6 (a) to (c)",
        "At 300 Mbit/s below 1 ms sums are similar, paced flows fairer",
        "pacing.join",
        _lan,
    ),
    PaperClaim(
        "F6.def",
        "Fig. 6 (d) to (f)",
        "At 20 ms the difference between paced flows and regular TCP is larger",
        "pacing.join",
        _grows_with_rtt,
    ),
    PaperClaim(
        "X0",
        "Table I",
        "Regular TCP alone gets 33.62 Mbit/s and two flows 67.27, with a receive buffer that is fitted to the first",
        "pacing.join",
        _window,
        published="Regular TCP alone gets 33.62 Mbit/s and two flows 67.27",
    ),
    PaperClaim(
        "X3",
        "section IV",
        "With more flows regular TCP comes nearer to paced flows",
        "pacing.join",
        _catches_up,
    ),
    PaperClaim(
        "B3",
        "abstract, section I",
        "In Science DMZs pacing makes fewer losses and a steadier throughput",
        "pacing.dmz",
        _dmz,
    ),
    PaperClaim(
        "X1", "section IV", "Alone HTB is best, then FQ, then TCP", "pacing.join", _ordered(1), why=WHY_ALONE
    ),
    PaperClaim(
        "X2",
        "section IV",
        "Of two flows HTB is best, then FQ, then TCP",
        "pacing.join",
        _ordered(2),
        why=WHY_ALONE,
    ),
    PaperClaim(
        "X4",
        "section IV",
        "Two flows vary less with HTB than with regular TCP (3.773, 2.998 and 22.63, 30.08 %)",
        "pacing.join",
        _htb_is_steadier,
        why=WHY_LATE,
    ),
    PaperClaim(
        "X5",
        "section IV",
        "With all four flows HTB's CV is below 2 %",
        "pacing.join",
        _htb_is_below_2,
        why=WHY_LATE,
    ),
    PaperClaim(
        "B1",
        "section II-B2",
        "FQ and HTB keep the rate, off by 5 to 6 % at most, at the cost of processor time",
        cannot=f"the paper has it from another one; {NO_TIMES}, and the rates that are kept are those of T1",
    ),
    PaperClaim("B2", "section II-B2", "HTB's processor time grows with packets per second", cannot=NO_TIMES),
    *_tables(),
]


def judged(rows: list[Row], experiment: str) -> list[Claim]:
    """Claims that a run's rows can judge."""
    return of_run(CLAIMS, experiment, rows, {})
