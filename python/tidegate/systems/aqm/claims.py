"""The claims of the paper (gombos2022), and how runs of this system's experiments judge them.

The paper has graphs and few numbers. Where a bound is ours, the measured value says so. The paper's phases and static runs take 120 s.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable

from tidegate.claims import Row, Unit, medians
from tidegate.papers import Finding, PaperClaim, Parameters, need

PAPER = (
    'G. Gombos, M. Mouw, S. Laki, C. Papagianni, K. De Schepper, "Active Queue Management on the Tofino programmable switch: '
    'The (Dual)PI2 case", NOMS 2022'
)
TARGET_MS = 20.0
SECONDS = 120
Select = Callable[[Row], bool]


def demand_time(parameters: Parameters) -> None:
    """Refuse runs shorter than the paper's."""
    name = "phase_s" if "phase_s" in parameters else "duration_s"
    what = "phases" if name == "phase_s" else "runs"
    need(parameters[name] >= SECONDS, f"{what} of {parameters[name]} s; the paper's are of {SECONDS} s")


def values(rows: Iterable[Row], column: str, **wanted: object) -> dict[str, float]:
    """Medians over the seeds of a column, by place, of the rows in which columns have these values (or one of these)."""

    def one_of(row: Row) -> bool:
        return all(
            row.get(name) in (want if isinstance(want, tuple) else (want,)) for name, want in wanted.items()
        )

    found = medians([row for row in rows if one_of(row)], column, place)
    need(found, "the run has no " + ", ".join(f"{name} {want}" for name, want in wanted.items()))
    return found


def place(row: Row) -> str:
    """`120 Mbit/s, 10 ms, 1-1`."""
    return f"{row['capacity_mbps']} Mbit/s, {row['base_rtt_ms']:g} ms, {row['classic']}-{row['l4s']}"


def ratios(of: dict[str, float], to: dict[str, float]) -> dict[str, float]:
    """One over the other, at the places that both have."""
    both = {at: value / to[at] for at, value in of.items() if to.get(at)}
    need(both, "the run has no place with both")
    return both


def show(found: dict[str, float], unit: str = "") -> str:
    """Their range."""
    return Unit(unit).range(list(found.values()))


def whole(judge: Callable[[list[Row]], Finding]) -> Callable[[list[Row], Parameters], Finding]:
    """A judge of a run of the paper's own time."""

    def judged(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        return judge(rows)

    return judged


def _few(rows: list[Row]) -> Finding:
    few = {"way": "pi2", "capacity_mbps": 120, "phase": (0, 1)}
    share = ratios(
        values(rows, "goodput_mbps", control="prague", **few),
        values(rows, "goodput_mbps", control="cubic", **few),
    )
    return Finding(all(value > 1 for value in share.values()), f"Prague over CUBIC: {show(share)}")


def _trend(rows: list[Row]) -> Finding:
    by_phase = [
        max(values(rows, "error_abs_mean", way="pi2", capacity_mbps=120, phase=phase).values())
        for phase in (0, 1, 2, 3)
    ]
    falls = all(later < sooner for sooner, later in itertools.pairwise(by_phase))
    return Finding(falls, "absolute error by phase: " + ", ".join(f"{error:.2f}" for error in by_phase))


def _target(rows: list[Row]) -> Finding:
    delays = values(rows, "delay_ms_mean", way="pi2", capacity_mbps=120, control="cubic")
    above = {at for at in delays if " 50 ms, 10-10" in at or " 50 ms, 25-25" in at}
    need(above, "the run has no 50 ms")
    off = {at for at, delay in delays.items() if abs(delay / TARGET_MS - 1) > 0.05}
    found = off == above and all(delays[at] > TARGET_MS for at in above)
    return Finding(
        found,
        f"{show(delays, 'ms')}; more than 5 % (a bound of ours) off at: {'; '.join(sorted(off)) or 'none'}",
    )


def _p_at_50(rows: list[Row]) -> Finding:
    late = {"way": "pi2", "capacity_mbps": 120, "control": "cubic", "phase": (2, 3)}
    far = values(rows, "p_mean", base_rtt_ms=50.0, **late)
    near = values(rows, "p_mean", base_rtt_ms=10.0, **late)
    ratio = ratios(
        {at.replace(" 50 ms", ""): p for at, p in far.items()},
        {at.replace(" 10 ms", ""): p for at, p in near.items()},
    )
    return Finding(all(value > 1 for value in ratio.values()), f"p' at 50 ms over p' at 10 ms: {show(ratio)}")


def _controlled(**wanted: object) -> Callable[[list[Row]], Finding]:
    def judge(rows: list[Row]) -> Finding:
        delays = values(rows, "delay_ms_p99", control="cubic", **wanted)
        held = all(delay <= 2 * TARGET_MS for delay in delays.values())
        return Finding(held, f"p99 {show(delays, 'ms')}; the bound of {2 * TARGET_MS:g} ms is ours")

    return judge


def _like_pi2(rows: list[Row]) -> Finding:
    texts, found = [], True
    for column in ("goodput_mbps", "delay_ms_mean", "p_mean"):
        dual, pi2 = (
            values(rows, column, way=way, capacity_mbps=120, control="cubic") for way in ("dualpi2", "pi2")
        )
        ratio = ratios(dual, pi2)
        found &= all(0.8 <= value <= 1.25 for value in ratio.values())
        texts.append(f"{column} {show(ratio)}")
    return Finding(found, f"DualPI2 over PI2, CUBIC: {', '.join(texts)}; the bounds of 0.8 and 1.25 are ours")


def _fair(rows: list[Row]) -> Finding:
    errors = values(rows, "error_mean", way="dualpi2", capacity_mbps=120, control="cubic")
    return Finding(
        all(abs(error) <= 0.25 for error in errors.values()),
        f"CUBIC's error {show(errors)}; the bound of 0.25 is ours",
    )


def _late(rows: list[Row]) -> Finding:
    late = {"capacity_mbps": 120, "control": "cubic", "phase": (2, 3)}
    dual, pi2 = (values(rows, "delay_ms_mean", way=way, **late) for way in ("dualpi2", "pi2"))
    more = {at: delay - pi2[at] for at, delay in dual.items() if at in pi2}
    need(more, "the run has no place with both")
    return Finding(all(0 < value <= 5 for value in more.values()), f"DualPI2 less PI2: {show(more, 'ms')}")


def _more(rows: list[Row]) -> Finding:
    fast = {"capacity_mbps": 1000, "control": "prague"}
    ratio = ratios(*(values(rows, "goodput_mbps", way=way, **fast) for way in ("dualpi2", "pi2")))
    return Finding(
        all(value > 1 for value in ratio.values()), f"Prague behind DualPI2 over PI2: {show(ratio)}"
    )


def _below_1_ms(rows: list[Row]) -> Finding:
    delays = values(rows, "delay_ms_p99", way="dualpi2", capacity_mbps=1000, control="prague")
    return Finding(max(delays.values()) < 1, f"p99 of L {show(delays, 'ms')}")


def _strays(rows: list[Row]) -> Finding:
    fast = {"way": "dualpi2", "capacity_mbps": 1000, "control": "cubic"}
    early, late = (
        max(values(rows, "delay_ms_p99", phase=phases, **fast).values()) for phases in ((0, 1), (2, 3))
    )
    return Finding(late > early, f"largest p99 of C: {early:.3g} ms, in the last two phases {late:.3g} ms")


def _absolute(rows: list[Row], way: str) -> dict[str, float]:
    cubic, prague = (
        values(rows, "error_abs_mean", way=way, control=control) for control in ("cubic", "prague")
    )
    return {at: (cubic[at] + prague[at]) / 2 for at in cubic if at in prague}


def _mean_error(rows: list[Row]) -> Finding:
    means = {
        way: sum(errors.values()) / len(errors)
        for way in ("pi2", "dualpi2")
        if (errors := _absolute(rows, way))
    }
    return Finding(
        all(mean < 0.5 for mean in means.values()),
        ", ".join(f"{way} {mean:.2f}" for way, mean in means.items()),
    )


def _by_rtt(rows: list[Row]) -> Finding:
    texts, found = [], True
    for way in ("pi2", "dualpi2"):
        near, far = (
            _absolute([row for row in rows if row["base_rtt_ms"] in rtts], way)
            for rtts in ((5.0, 10.0, 20.0), (50.0, 100.0))
        )
        need(near and far, "the run lacks short or long RTTs")
        most_near, most_far = max(near.values()), max(far.values())
        found &= most_near < 0.5 <= most_far
        texts.append(f"{way}: up to 20 ms at most {most_near:.2f}, from 50 ms on {most_far:.2f}")
    return Finding(found, "; ".join(texts))


def _longer(rows: list[Row]) -> Finding:
    ratio = ratios(*(values(rows, "delay_ms_mean", way=way, control="cubic") for way in ("dualpi2", "pi2")))
    low = values(rows, "delay_ms_mean", way="dualpi2", control="prague")
    mean = sum(ratio.values()) / len(ratio)
    return Finding(
        1 < mean <= 1.25 and max(low.values()) < 1,
        f"C over PI2's queue: mean {mean:.2f}, {show(ratio)}; mean of L {show(low, 'ms')}",
    )


def _share(rows: list[Row]) -> Finding:
    counts = {}
    for way in ("pi2", "dualpi2"):
        errors = values(rows, "error_mean", way=way, control="prague")
        counts[way] = sum(error > 0 for error in errors.values()) / len(errors)
    measured = ", ".join(f"{way} in {100 * share:.0f} % of the cases" for way, share in counts.items())
    return Finding(
        sum(counts.values()) / 2 > 0.5 and counts["dualpi2"] > counts["pi2"],
        f"Prague has more than its share: {measured}",
    )


def _cubic(rows: list[Row]) -> Finding:
    errors = values(rows, "error_mean", control="cubic", way="pi2") | {
        f"DualPI2, {at}": error
        for at, error in values(rows, "error_mean", control="cubic", way="dualpi2").items()
    }
    return Finding(
        all(abs(error) <= 0.1 for error in errors.values()), f"{show(errors)}; the bound of 0.1 is ours"
    )


def _off_only_far(rows: list[Row]) -> Finding:
    delays = values(rows, "delay_ms_mean", control="cubic", way="dualpi2")
    low = values(rows, "delay_ms_p99", control="prague", way="dualpi2")
    off = [at for at, delay in delays.items() if abs(delay / TARGET_MS - 1) > 0.15]
    far = all(" 50 ms" in at or " 100 ms" in at for at in off)
    measured = (
        f"C more than 15 % (a bound of ours) off at: {'; '.join(off) or 'none'}; p99 of L {show(low, 'ms')}"
    )
    return Finding(far and max(low.values()) < 1, measured)


def _small(rows: list[Row]) -> Finding:
    texts, found = [], True
    for way in ("pi2", "dualpi2"):
        for control in ("cubic", "prague"):
            errors = values(rows, "error_mean", way=way, control=control)
            mean = sum(errors.values()) / len(errors)
            found &= abs(mean) <= 0.2
            texts.append(f"{way} {control} {mean:+.2f}")
    return Finding(found, f"means: {', '.join(texts)}; the bound of 0.2 is ours")


def _largest(rows: list[Row]) -> Finding:
    worst = {}
    for way in ("pi2", "dualpi2"):
        for control in ("cubic", "prague"):
            for at, error in values(rows, "error_mean", way=way, control=control).items():
                worst[f"{way}, {control}, {at}"] = abs(error)
    need(
        any(at.endswith("1000 Mbit/s, 100 ms, 1-9") for at in worst),
        "the run has no 1000 Mbit/s, 100 ms, 1-9",
    )
    largest = max(worst, key=lambda name: worst[name])
    return Finding(largest.endswith("cubic, 1000 Mbit/s, 100 ms, 1-9"), f"{worst[largest]:.2f} at {largest}")


def _long_l(rows: list[Row]) -> Finding:
    rtts = sorted({row["base_rtt_ms"] for row in rows})
    need(len(rtts) > 1, "the run has a single RTT")
    near, far = (
        max(values(rows, "delay_ms_p99", way="dualpi2", control="prague", base_rtt_ms=rtt).values())
        for rtt in (rtts[0], rtts[-1])
    )
    return Finding(
        near > 1 and near > far,
        f"largest p99 of L: {near:.2f} ms at {rtts[0]:g} ms, {far:.2f} at {rtts[-1]:g} ms",
    )


def _gone(rows: list[Row]) -> Finding:
    counts = sorted({row["l4s"] for row in rows})
    need(len(counts) > 1, "the run has one number of flows")
    by_count = [
        max(values(rows, "delay_ms_p99", way="dualpi2", control="prague", l4s=count).values())
        for count in counts
    ]
    shown = ", ".join(f"{count} flows {delay:.2f} ms" for count, delay in zip(counts, by_count, strict=True))
    return Finding(by_count[-1] < by_count[0], f"largest p99 of L: {shown}")


RAMP = "the rows do not have the time that a flow takes to reach its share"
CLAIMS = (
    PaperClaim(
        "starve",
        "I",
        "scalable flows starve classic ones in a shared queue",
        cannot="no experiment has an uncoupled step",
    ),
    PaperClaim(
        "hw",
        "III-A",
        "the PI controller's shifts exceed one MAU; no read and write of a register",
        cannot="about the Tofino switch",
    ),
    PaperClaim(
        "f4-few", "Fig. 4", "PI2, 120 Mbit/s, 1-1 and 2-2: Prague has more", "aqm.phases", whole(_few)
    ),
    PaperClaim(
        "f4-trend", "Fig. 4", "PI2: fairness grows with the number of flows", "aqm.phases", whole(_trend)
    ),
    PaperClaim(
        "f4-steady",
        "Fig. 4",
        "PI2: Prague is steadier than CUBIC",
        cannot="the rows have no deviation of a flow over time",
    ),
    PaperClaim(
        "f4-target",
        "Fig. 4",
        "PI2: off target only at 50 ms with 10-10 and 25-25, above it",
        "aqm.phases",
        whole(_target),
    ),
    PaperClaim("f4-p", "Fig. 4", "PI2: p' as in the PI2 paper", cannot="a graph without numbers"),
    PaperClaim(
        "f4-p50", "Fig. 4", "PI2: at 50 ms a higher p' meets the larger delay", "aqm.phases", whole(_p_at_50)
    ),
    PaperClaim(
        "f4-ramp",
        "Figs. 4, 5",
        "1 Gbit/s, few flows: goodput rises slowly, more slowly at 50 ms and for Prague",
        cannot=RAMP,
    ),
    PaperClaim(
        "f4-all",
        "Fig. 4",
        "PI2: delays are controlled in all cases",
        "aqm.phases",
        whole(_controlled(way="pi2")),
    ),
    PaperClaim(
        "f5-like",
        "Fig. 5",
        "DualPI2, 120 Mbit/s: goodput, delay and p' like PI2's",
        "aqm.phases",
        whole(_like_pi2),
    ),
    PaperClaim(
        "f5-fair", "Fig. 5", "DualPI2, 120 Mbit/s: Prague and CUBIC are fair", "aqm.phases", whole(_fair)
    ),
    PaperClaim(
        "f5-late",
        "Fig. 5",
        "DualPI2: C's delay is slightly higher in the last two phases",
        "aqm.phases",
        whole(_late),
    ),
    PaperClaim("f5-more", "Fig. 5", "1 Gbit/s: Prague has more than behind PI2", "aqm.phases", whole(_more)),
    PaperClaim("f5-sub", "Fig. 5", "1 Gbit/s: L's delay is below 1 ms", "aqm.phases", whole(_below_1_ms)),
    PaperClaim(
        "f5-fast",
        "Fig. 5, IV-2",
        "1 Gbit/s: Prague's goodput rises faster",
        cannot=f"{RAMP}; the paper says slower as well",
    ),
    PaperClaim(
        "f5-dev",
        "Fig. 5",
        "1 Gbit/s: the delay varies more in the last two phases",
        "aqm.phases",
        whole(_strays),
    ),
    PaperClaim(
        "f6-err", "Fig. 6", "the mean absolute error is below 0.5", "aqm.symmetric", whole(_mean_error)
    ),
    PaperClaim("f6-rtt", "Fig. 6", "larger errors only at 50 and 100 ms", "aqm.symmetric", whole(_by_rtt)),
    PaperClaim("f6-slow", "Fig. 6", "1 Gbit/s, few flows, long RTTs: Prague starts slowly", cannot=RAMP),
    PaperClaim(
        "f6-ctl",
        "Fig. 6",
        "delays are controlled in all cases",
        "aqm.symmetric",
        whole(_controlled(way=("pi2", "dualpi2"))),
    ),
    PaperClaim(
        "f6-more",
        "Fig. 6",
        "C's delay is somewhat above PI2's, L's almost 0",
        "aqm.symmetric",
        whole(_longer),
    ),
    PaperClaim(
        "f7-share",
        "Fig. 7",
        "Prague has more in most cases, above all with DualPI2",
        "aqm.classic_heavy",
        whole(_share),
    ),
    PaperClaim("f7-cubic", "Fig. 7", "CUBIC's error is about 0", "aqm.classic_heavy", whole(_cubic)),
    PaperClaim(
        "f7-delay",
        "Fig. 7",
        "C is off target only at 50 and 100 ms; L's delay is negligible",
        "aqm.classic_heavy",
        whole(_off_only_far),
    ),
    PaperClaim("f8-err", "Fig. 8", "the mean error is small", "aqm.l4s_heavy", whole(_small)),
    PaperClaim(
        "f8-max",
        "Fig. 8",
        "the largest error: CUBIC at 1 Gbit/s, 100 ms, 1-9",
        "aqm.l4s_heavy",
        whole(_largest),
    ),
    PaperClaim(
        "f8-l", "Fig. 8", "DualPI2: L's delay is large at short RTTs", "aqm.l4s_heavy", whole(_long_l)
    ),
    PaperClaim(
        "f8-l2", "Fig. 8", "with more flows L's delay is no longer large", "aqm.l4s_heavy", whole(_gone)
    ),
    PaperClaim(
        "s-fair",
        "IV-2",
        "low speeds as in literature; 1 Gbit/s fair but at 100 ms",
        cannot="the literature's figures are not given",
    ),
    PaperClaim(
        "s-drop",
        "IV-2",
        "1 Gbit/s, long RTTs: a single drop costs much goodput",
        cannot="the rows have no goodput around a drop",
    ),
    PaperClaim(
        "c-slow",
        "VI",
        "the loop may be too slow at 40 to 100 Gbit/s",
        cannot="no experiment varies the period within RFC 9332's bounds",
    ),
    PaperClaim(
        "abs", "abstract, VI", "both let CUBIC and Prague coexist", cannot="a summary of the other claims"
    ),
)
