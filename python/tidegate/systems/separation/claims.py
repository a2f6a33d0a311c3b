"""The claims of the paper (gomez2024), and how runs of this system's experiments judge them.

The paper's text has no number for a completion time, its gain, a round-trip time of Fig. 6, or a Jain index of Fig. 7b. "Similar" and
"mostly overlap" are taken here as means that differ by less than 5 %, "lower" as lower by more than that, and fairer as a Jain index that
is higher by more than that. Values are medians over the seeds, of CUBIC where the paper does not say which congestion control.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from tidegate.claims import Claim, Row
from tidegate.papers import Finding, PaperClaim, Parameters, need, of_run

PAPER = (
    'J. Gomez, E. Kfoury, J. Crichigno, G. Srivastava, "Improving TCP Fairness in Non-programmable Networks Using P4-programmable Data '
    'Planes", 2024'
)

Judge = Callable[[list[Row], Parameters], Finding]

NEAR, SIMILAR = 0.10, 0.05
SEVERAL = ("rtt-2", "rtt-4", "rtt-7")
SEPARATED = "guarantee"
UDP_ABOVE = 0.4
"""Part of the link's rate above which `separation.udp` polices a UDP flow."""


def _of(rows: Iterable[Row], column: str, what: str, **where: object) -> float:
    found = [row[column] for row in rows if all(row[key] == value for key, value in where.items())]
    need([value for value in found if value is not None], f"the run has no {what}")
    return float(np.median([value for value in found if value is not None]))


def _phase(
    rows: list[Row], phase: str, column: str, scheme: str = SEPARATED, control: str = "cubic"
) -> float:
    return _of(rows, column, f"{scheme} in `{phase}`", scheme=scheme, phase=phase, control=control)


def _shares(*phases: tuple[str, tuple[int, ...]]) -> Judge:
    """In these phases, each of these flows is within 10 % of its max-min share."""

    def judge(rows: list[Row], _: Parameters) -> Finding:
        parts = [
            _phase(rows, phase, f"flow_{flow}_mbps") / _phase(rows, phase, f"fair_{flow}_mbps")
            for phase, flows in phases
            for flow in flows
        ]
        near = all(abs(part - 1) <= NEAR for part in parts)
        return Finding(near, f"{min(parts):.2f} to {max(parts):.2f} of the max-min shares")

    return judge


def _three_quarters(rows: list[Row], parameters: Parameters) -> Finding:
    part, left = (
        _phase(rows, "2 degraded", column) / float(parameters.get("rate_mbps", 1000.0))
        for column in ("flow_1_mbps", "fair_1_mbps")
    )
    return Finding(
        0.70 <= part <= 0.80,
        f"{part:.0%} of the link; by construction: flow 2 is degraded so far that {left:.0%} are left, a choice of ours",
    )


FREED = (
    ("2 degraded", 1),
    ("1 degraded", 2),
    ("3 degraded", 1),
    ("3 degraded", 2),
    ("3 leaves", 1),
    ("3 leaves", 2),
)
"""When bandwidth becomes free, and the flow that should have it."""


def _whatever_transport(rows: list[Row], _: Parameters) -> Finding:
    """With each congestion control, flows have within 10 % of their shares of what becomes free."""
    controls = sorted({row["control"] for row in rows if row["scheme"] == SEPARATED})
    need([one for one in controls if one != "cubic"], "the run has CUBIC alone")
    parts = {
        control: [
            _phase(rows, phase, f"flow_{flow}_mbps", control=control)
            / _phase(rows, phase, f"fair_{flow}_mbps", control=control)
            for phase, flow in FREED
        ]
        for control in controls
    }
    text = ", ".join(f"{control} {min(own):.2f} to {max(own):.2f}" for control, own in parts.items())
    return Finding(
        all(abs(part - 1) <= NEAR for own in parts.values() for part in own),
        f"of the max-min shares when bandwidth becomes free: {text}",
    )


def _use(rows: list[Row], _: Parameters) -> Finding:
    phases = sorted({row["phase"] for row in rows})
    own, one = (
        min(_phase(rows, phase, "link_use", scheme) for phase in phases) for scheme in (SEPARATED, "fifo")
    )
    shown, others = f"{own:.1%} at least, with one queue {one:.1%}", [one]
    if any(row["scheme"] == "drr" and row["control"] == "cubic" for row in rows):
        others.append(min(_phase(rows, phase, "link_use", "drr") for phase in phases))
        shown += f", with DRR by flow and no controller {others[-1]:.1%}"
    return Finding(own > max(others) + 0.005, shown)


def _mean(rows: list[Row], contender: str, control: str, load: float) -> float:
    return _of(
        rows, "fct_s_mean", f"{contender} with {control}", contender=contender, control=control, load=load
    )


def _several(rows: list[Row]) -> list[str]:
    """The contenders with classes by round-trip time that the run has."""
    found = {row["contender"] for row in rows}
    several = [name for name in SEVERAL if name in found]
    need(several, "the run has no classes by round-trip time")
    return several


def _loads(rows: list[Row]) -> list[float]:
    return sorted({row["load"] for row in rows})


def _lower(rows: list[Row], _: Parameters) -> Finding:
    gains = [
        _mean(rows, several, "cubic", load) / _mean(rows, "fifo-1", "cubic", load) - 1
        for load in _loads(rows)
        for several in _several(rows)
    ]
    return Finding(
        max(gains) < -SIMILAR,
        f"{min(gains):+.1%} to {max(gains):+.1%} beside one queue of 1 BDP ({', '.join(_several(rows))})",
    )


def _overlap(rows: list[Row], _: Parameters) -> Finding:
    gaps = [
        _mean(rows, "rtt-7", control, load) / _mean(rows, "rtt-4", control, load) - 1
        for control in sorted({row["control"] for row in rows})
        for load in _loads(rows)
    ]
    shown = f"7 classes beside 4: {min(gaps):+.1%} to {max(gaps):+.1%}"
    if all("times_s" in row and "seed" in row for row in rows):
        times = {(row["contender"], row["control"], row["load"], row["seed"]): row["times_s"] for row in rows}
        apart = [
            kolmogorov_smirnov(own, times["rtt-7", *cell])
            for (contender, *cell), own in times.items()
            if contender == "rtt-4" and ("rtt-7", *cell) in times
        ]
        if apart:
            shown += f"; distributions apart by {min(apart):.2f} to {max(apart):.2f} (Kolmogorov-Smirnov)"
    return Finding(max(map(abs, gaps)) < SIMILAR, shown)


def kolmogorov_smirnov(one: Sequence[float], other: Sequence[float]) -> float:
    """The largest gap between two distributions."""
    at = np.union1d(one, other)
    parts = (np.searchsorted(np.sort(values), at, side="right") / len(values) for values in (one, other))
    return float(np.abs(np.subtract(*parts)).max())


def _as_cubic(rows: list[Row], _: Parameters) -> Finding:
    ratios = [
        _mean(rows, several, "htcp", load) / _mean(rows, several, "cubic", load) - 1
        for load in _loads(rows)
        for several in ("fifo-1", *_several(rows))
    ]
    return Finding(
        max(map(abs, ratios)) < SIMILAR, f"H-TCP beside CUBIC: {min(ratios):+.1%} to {max(ratios):+.1%}"
    )


def _little(rows: list[Row], _: Parameters) -> Finding:
    controls = [control for control in ("bbr", "bbr3") if any(row["control"] == control for row in rows)]
    need(controls, "the run has no BBR")
    gains = [
        _mean(rows, several, control, load) / _mean(rows, "fifo-1", control, load) - 1
        for control in controls
        for load in _loads(rows)
        for several in _several(rows)
    ]
    return Finding(max(map(abs, gains)) < SIMILAR, f"{min(gains):+.1%} to {max(gains):+.1%} beside one queue")


def _evenly(rows: list[Row], _: Parameters) -> Finding:
    def pairs(column: str) -> list[list[float]]:
        return [
            [
                _of(rows, column, f"{contender} with CUBIC", contender=contender, control="cubic", load=load)
                for contender in ("rtt-4", "fifo-1")
            ]
            for load in _loads(rows)
        ]

    jains = pairs("jain")
    shown = f"Jain's index with 4 classes and with one queue, {SIMILAR:.0%} more asked for: {_listed(jains)}"
    if all(row.get("short_over_long") is not None for row in rows):
        ratios = pairs("short_over_long")
        shown += f"; completion times of short over long round-trip times: {_listed(ratios)}"
    return Finding(all(own > (1 + SIMILAR) * one for own, one in jains), shown)


def _listed(pairs: list[list[float]]) -> str:
    return ", ".join(f"{own:.2f} and {one:.2f}" for own, one in pairs)


def _favours(rows: list[Row], _: Parameters) -> Finding:
    """At each length of the queue."""
    one = [row for row in rows if row["scheme"] == "fifo"]
    parts = {
        control: [
            _of(one, "short_over_long", f"{control} in one queue", control=control, buffer_bdp=buffer)
            for buffer in sorted({row["buffer_bdp"] for row in one})
        ]
        for control in ("cubic", "bbr")
    }
    need(parts["cubic"], "the run has no one queue")
    found = all(part > 1.1 for part in parts["cubic"]) and all(part < 0.9 for part in parts["bbr"])
    spans = ", ".join(f"{name.upper()} {min(own):.2g} to {max(own):.2g}" for name, own in parts.items())
    return Finding(found, f"goodput with 10 ms over that with 100 ms: {spans}")


def _right(rows: list[Row], _: Parameters) -> Finding:
    parts = [row["classes_right"] for row in rows if row.get("classes_right") is not None]
    need(parts, "the run has no classes by round-trip time")
    return Finding(min(parts) >= 0.99, f"{min(parts):.1%} of the flows at least")


def _both_rise(rows: list[Row], _: Parameters) -> Finding:
    where = {"scheme": "one-queue", "control": "cubic"}
    before = _of(rows, "rtt_1_before_ms_p50", "one queue with CUBIC", **where)
    after = _of(rows, "rtt_1_after_ms_p95", "one queue with CUBIC", **where)
    # Flow 2 has the same base RTT, so it would have had what flow 1 had before.
    other = _of(rows, "rtt_2_after_ms_p50", "one queue with CUBIC", **where)
    shown = f"{before:.1f} ms before, p95 {after:.1f} ms after"
    if other <= 1.3 * before:
        shown += f"; flow 2 {other:.1f} ms"
    return Finding(min(after, other) > 1.3 * before, shown)


def _stays_low(rows: list[Row], _: Parameters) -> Finding:
    where = {"scheme": "threshold", "control": "cubic"}
    after = _of(rows, "rtt_1_after_ms_p95", "a threshold with CUBIC", **where)
    limit = _of(rows, "limit_ms", "a threshold with CUBIC", **where)
    return Finding(after <= limit, f"p95 {after:.1f} ms from 3 s on, threshold {limit:g} ms")


def _mitigated(rows: list[Row], _: Parameters) -> Finding:
    """With each congestion control, what the arrival of flow 2 adds to flow 1's RTT is with a threshold at most half of that in one queue.

    In one of 1 BDP, as the classes have: beside a longer one a threshold that moves nobody would do.
    """
    controls = sorted({row["control"] for row in rows if row["scheme"] == "threshold"})
    need(controls, "the run has no threshold")

    def added(scheme: str, control: str) -> float:
        where, what = {"scheme": scheme, "control": control}, f"{scheme} with {control}"
        after, before = (
            _of(rows, column, what, **where) for column in ("rtt_1_after_ms_p95", "rtt_1_before_ms_p50")
        )
        return after - before

    times = {control: (added("threshold", control), added("one-bdp", control)) for control in controls}
    text = ", ".join(
        f"{control} {own:.1f} ms, in one queue of 1 BDP {one:.1f}" for control, (own, one) in times.items()
    )
    return Finding(
        all(own <= one / 2 for own, one in times.values()),
        f"p95 from 3 s on, above the median before, with a threshold: {text}; the bound of a half is ours",
    )


def _unfair(rows: list[Row], _: Parameters) -> Finding:
    found = [
        _of(rows, "jain", "one queue", scheme="fifo", phase=phase, alarms=None)
        for phase in ("1 TCP flow", "2 TCP flows", "3 TCP flows")
    ]
    near = all(abs(one - 1 / (n + 2)) <= 0.05 for n, one in enumerate(found))
    return Finding(near, " ".join(f"{one:.0%}" for one in found))


def _fair(rows: list[Row], _: Parameters) -> Finding:
    alone = _of(rows, "udp_mbps", "separation", scheme=SEPARATED, phase="0 TCP flows", alarms=None)
    found = [
        _of(rows, "jain", "separation", scheme=SEPARATED, phase=phase, alarms=None)
        for phase in ("1 TCP flow", "2 TCP flows", "3 TCP flows")
    ]
    # What all flows together have of the link at most.
    carried = max(row["udp_mbps"] + row["tcp_mbps"] for row in rows if row["alarms"] is None)
    return Finding(
        alone >= (1 - SIMILAR) * carried and min(found) >= 0.95,
        f"alone {alone:.0f} Mbit/s of the {carried:.0f} that all flows have together at most; Jain's index {min(found):.3f} at least",
    )


def _noticed(rows: list[Row], _: Parameters) -> Finding:
    """Each separated scheme detects the flow above the threshold with each seed, and has no false alarm."""
    separated = {row["scheme"] for row in rows if row["detected_s"] is not None or row["alarms"] is not None}
    hostile = [row for row in rows if row["scheme"] in separated and row["alarms"] is None]
    need(hostile, "the run has no separation")
    hostile = [row for row in hostile if row["udp_part"] > UDP_ABOVE]
    need(hostile, f"the run has no UDP flow above {UDP_ABOVE:.0%} of the link, from which on one is policed")
    runs = {(row["scheme"], row["seed"]) for row in hostile}
    missed = runs - {(row["scheme"], row["seed"]) for row in hostile if row["detected_s"] is not None}
    late = [row["detected_s"] for row in hostile if row["detected_s"] is not None]
    alarms = [row["alarms"] for row in rows if row["alarms"] is not None]
    shown = f"within {max(late):.1f} s; {sum(alarms)} false alarms" if late else f"{sum(alarms)} false alarms"
    if missed:
        shown += f"; not detected in {len(missed)} of {len(runs)} runs"
    return Finding(not missed and max(late) <= 3.0 and not any(alarms), shown)


ONE_QUEUE_BUSY = "all at once one queue of 1 BDP is hardly ever idle while flows are under way, so that only the order of service is left to change"

CLAIMS = (
    PaperClaim(
        "C1",
        "Fig. 4",
        "Flow 1 alone has the link; from 60 s on two flows have equal shares",
        "separation.rebalance",
        _shares(("1 alone", (1,)), ("2 joins", (1, 2))),
    ),
    PaperClaim(
        "C2",
        "Fig. 4",
        "When flow 2 is degraded at 120 s, flow 1 gets about 750 Mbit/s of 1000",
        "separation.rebalance",
        _three_quarters,
        why="how far flow 2 is degraded is open in the paper",
    ),
    PaperClaim(
        "C3",
        "Fig. 4",
        "When flow 1 is degraded at 240 s, flow 2 gets the rate that becomes free",
        "separation.rebalance",
        _shares(("1 degraded", (1, 2))),
    ),
    PaperClaim(
        "C4",
        "Fig. 4",
        "Thirds when flow 3 joins; what it leaves when it is degraded or has left goes to flows 1 and 2",
        "separation.rebalance",
        _shares(("3 joins", (1, 2, 3)), ("3 degraded", (1, 2, 3)), ("3 leaves", (1, 2))),
    ),
    PaperClaim(
        "C5",
        "Fig. 4",
        "The use of the link is improved",
        "separation.rebalance",
        _use,
        why="one queue is busy all the time, too: what separation changes is who has the link",
    ),
    PaperClaim(
        "C6",
        "Fig. 5a",
        "CUBIC: with several queues the average completion time is lower than with one",
        "separation.fct",
        _lower,
        why=ONE_QUEUE_BUSY,
    ),
    PaperClaim(
        "C7",
        "Fig. 5",
        "4 and 8 queues mostly overlap (here 4 and 7 classes)",
        "separation.fct",
        _overlap,
        why="with more classes the floor of a buffer is a larger part of a class's bandwidth-delay product",
    ),
    PaperClaim(
        "C8",
        "Fig. 5b",
        "H-TCP: average completion times similar to CUBIC's",
        "separation.fct",
        _as_cubic,
        why="flows are few now and then when they do not all start at once, and H-TCP grows faster",
    ),
    PaperClaim(
        "C9",
        "Fig. 5c-d",
        "BBRv1 and BBRv2 (here BBRv3): more queues change little",
        "separation.fct",
        _little,
        why="BBR's round-trip time bias is taken away, and that changes the order in which flows finish",
    ),
    PaperClaim(
        "C10",
        "Fig. 6a",
        "One queue: the arrival of flow 2 raises the round-trip time of both",
        "separation.bufferbloat",
        _both_rise,
    ),
    PaperClaim(
        "C11",
        "Fig. 6b",
        "With a threshold flow 1 keeps its low round-trip time, and flow 2 is moved",
        "separation.bufferbloat",
        _stays_low,
    ),
    PaperClaim(
        "C12",
        "Fig. 7a",
        "One queue: Jain's index is 50, 33, then 25 % as TCP flows join a UDP flow",
        "separation.udp",
        _unfair,
    ),
    PaperClaim(
        "C13",
        "Fig. 7b",
        "With separation UDP fills the link alone; then all flows have fair shares",
        "separation.udp",
        _fair,
    ),
    PaperClaim(
        "C14",
        "abstract",
        "Flows are identified and put into queues by round-trip time",
        "separation.fct",
        _right,
        why="the first samples of a flow may be too long",
    ),
    PaperClaim(
        "C15",
        "abstract",
        "Fairness among competing flows",
        "separation.fct",
        _evenly,
        why="classes share evenly, but within a class of a small buffer flows live by timeouts",
    ),
    PaperClaim(
        "C16",
        "abstract",
        "Spare bandwidth goes on whatever the transport",
        "separation.rebalance",
        _whatever_transport,
        why="a control that probes for bandwidth does not hold its share at all times",
    ),
    PaperClaim(
        "C17",
        "abstract",
        "Bufferbloat is mitigated",
        "separation.bufferbloat",
        _mitigated,
        why="a queue of its own does not take away what one queue does not add",
    ),
    PaperClaim("C18", "abstract", "Abuses are detected and reduced", "separation.udp", _noticed),
    PaperClaim(
        "C19",
        "section I",
        "In one queue CUBIC favours short round-trip times, and BBR long ones",
        "separation.two",
        _favours,
        why="with a queue of several BDPs both flows have nearly the same round-trip time",
    ),
    PaperClaim(
        "C20",
        "section III-A",
        "Taps do not disturb, and the switch measures at line rate",
        cannot="a tap of the simulator takes none of the link's time by construction; line rate is the hardware's",
    ),
)


def judged(rows: list[Row], experiment: str, parameters: Parameters | None = None) -> list[Claim]:
    """Claims that a run's rows can judge."""
    return of_run(CLAIMS, experiment, rows, parameters or {})
