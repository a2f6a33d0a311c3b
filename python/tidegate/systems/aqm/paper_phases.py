"""How the claims of the paper (gombos2022) on Figs. 4 and 5 are judged: growing numbers of flows (`aqm.phases`)."""

from __future__ import annotations

import itertools

from tidegate.claims import Row
from tidegate.papers import Finding, Missing, need
from tidegate.systems.aqm.paper_values import RAMP_S, TARGET_MS, by_control, ramp_times, ratios, show, values


def prague_has_more_with_few_flows(rows: list[Row]) -> Finding:
    """f4-few: Prague's goodput over CUBIC's in the first two phases."""
    few = {"way": "pi2", "capacity_mbps": 120, "phase": (0, 1)}
    share = ratios(
        values(rows, "goodput_mbps", control="prague", **few),
        values(rows, "goodput_mbps", control="cubic", **few),
    )
    return Finding(all(value > 1 for value in share.values()), f"Prague over CUBIC: {show(share)}")


def fairness_grows(rows: list[Row]) -> Finding:
    """f4-trend: the absolute error falls from phase to phase."""
    texts, found = [], True
    for rtt in sorted({row["base_rtt_ms"] for row in rows}):
        own = {"way": "pi2", "capacity_mbps": 120, "base_rtt_ms": rtt}
        errors = [max(values(rows, "error_abs_mean", phase=phase, **own).values()) for phase in (0, 1, 2, 3)]
        found &= all(later < sooner for sooner, later in itertools.pairwise(errors))
        texts.append(f"{rtt:g} ms: " + ", ".join(f"{error:.2f}" for error in errors))
    return Finding(found, f"absolute error by phase, {'; '.join(texts)}")


def prague_is_steadier(rows: list[Row]) -> Finding:
    """f4-steady: the variation of a flow's goodput."""
    cubic, prague = (
        values(rows, "goodput_cv", way="pi2", capacity_mbps=120, control=control)
        for control in ("cubic", "prague")
    )
    ratio = ratios(prague, cubic)
    more = [at for at, value in ratio.items() if value >= 1]
    return Finding(
        not more,
        f"std over mean of a flow's goodput in 1 s, Prague's over CUBIC's: {show(ratio)}; not below at: {'; '.join(more) or 'none'}",
    )


def ramps_are_slow(rows: list[Row]) -> Finding:
    """f4-ramp: the time to a fair share, at 10 and 50 ms, of CUBIC and Prague."""
    near, far = (ramp_times(rows, (rtt,), way="pi2", phase=(0, 1)) for rtt in (10.0, 50.0))
    slow = all(max(ramps["prague"].values()) > RAMP_S for ramps in (near, far))
    longer = all(max(far[control].values()) > max(near[control].values()) for control in far)
    prague = all(far["prague"][at] > value for at, value in far["cubic"].items())
    return Finding(
        slow and longer and prague,
        f"to 80 % of a fair share at 10 ms: {by_control(near)}; at 50 ms: {by_control(far)}; slow from {RAMP_S:g} s on is ours",
    )


def prague_rises_faster(rows: list[Row]) -> Finding:
    """f5-fast: never judged, as the paper says both."""
    ramps = ramp_times(rows, (10.0, 50.0), way="dualpi2", phase=(0, 1))
    raise Missing(
        "the paper contradicts itself: Prague rises faster (IV-1 on Fig. 5), and starts slowly (IV-2 on Figs. 6 and 8); "
        f"measured with few flows behind DualPI2, to 80 % of a fair share: {by_control(ramps)}"
    )


def off_target_only_far(rows: list[Row]) -> Finding:
    """f4-target: where the mean delay is off target."""
    delays = values(rows, "delay_ms_mean", way="pi2", capacity_mbps=120, control="cubic")
    above = {at for at in delays if " 50 ms, 10-10" in at or " 50 ms, 25-25" in at}
    need(above, "the run has no 50 ms")
    off = {at for at, delay in delays.items() if abs(delay / TARGET_MS - 1) > 0.05}
    found = off == above and all(delays[at] > TARGET_MS for at in above)
    return Finding(
        found,
        f"{show(delays, 'ms')}; more than 5 % (a bound of ours) off at: {'; '.join(sorted(off)) or 'none'}",
    )


def p_is_higher_at_50_ms(rows: list[Row]) -> Finding:
    """f4-p50: p' at 50 ms over p' at 10 ms."""
    late = {"way": "pi2", "capacity_mbps": 120, "control": "cubic", "phase": (2, 3)}
    far = values(rows, "p_mean", base_rtt_ms=50.0, **late)
    near = values(rows, "p_mean", base_rtt_ms=10.0, **late)
    ratio = ratios(
        {at.replace(" 50 ms", ""): p for at, p in far.items()},
        {at.replace(" 10 ms", ""): p for at, p in near.items()},
    )
    return Finding(all(value > 1 for value in ratio.values()), f"p' at 50 ms over p' at 10 ms: {show(ratio)}")


def dualpi2_is_like_pi2(rows: list[Row]) -> Finding:
    """f5-like: goodput, delay and p' of both."""
    texts, found = [], True
    for column in ("goodput_mbps", "delay_ms_mean", "p_mean"):
        dual, pi2 = (
            values(rows, column, way=way, capacity_mbps=120, control="cubic") for way in ("dualpi2", "pi2")
        )
        ratio = ratios(dual, pi2)
        found &= all(0.8 <= value <= 1.25 for value in ratio.values())
        texts.append(f"{column} {show(ratio)}")
    return Finding(found, f"DualPI2 over PI2, CUBIC: {', '.join(texts)}; the bounds of 0.8 and 1.25 are ours")


def dualpi2_is_fair(rows: list[Row]) -> Finding:
    """f5-fair: CUBIC's error."""
    errors = values(rows, "error_mean", way="dualpi2", capacity_mbps=120, control="cubic")
    return Finding(
        all(abs(error) <= 0.25 for error in errors.values()),
        f"CUBIC's error {show(errors)}; the bound of 0.25 is ours",
    )


def classic_delay_is_higher(rows: list[Row]) -> Finding:
    """f5-late: delays of C less those of PI2's queue."""
    late = {"capacity_mbps": 120, "control": "cubic", "phase": (2, 3)}
    more = {}
    for column in ("delay_ms_mean", "delay_ms_p99"):
        dual, pi2 = (values(rows, column, way=way, **late) for way in ("dualpi2", "pi2"))
        more[column] = {at: delay - pi2[at] for at, delay in dual.items() if at in pi2}
        need(more[column], "the run has no place with both")
    return Finding(
        all(0 < value <= 5 for value in more["delay_ms_mean"].values()),
        f"DualPI2 less PI2: mean {show(more['delay_ms_mean'], 'ms')}, which decides; p99 {show(more['delay_ms_p99'], 'ms')}, by "
        "which alone it would be found if it is above 0: the controller holds the mean at the target, and the distribution is wider",
    )


def prague_has_more_than_behind_pi2(rows: list[Row]) -> Finding:
    """f5-more: Prague's goodput behind both."""
    fast = {"capacity_mbps": 1000, "control": "prague"}
    ratio = ratios(*(values(rows, "goodput_mbps", way=way, **fast) for way in ("dualpi2", "pi2")))
    return Finding(
        all(value > 1 for value in ratio.values()), f"Prague behind DualPI2 over PI2: {show(ratio)}"
    )


def l_is_below_1_ms(rows: list[Row]) -> Finding:
    """f5-sub: the p99 of L."""
    delays = values(rows, "delay_ms_p99", way="dualpi2", capacity_mbps=1000, control="prague")
    return Finding(max(delays.values()) < 1, f"p99 of L {show(delays, 'ms')}")


def delay_varies_more(rows: list[Row]) -> Finding:
    """f5-dev: the deviation of C by phase."""
    fast = {"way": "dualpi2", "capacity_mbps": 1000, "control": "cubic"}
    (early, late), (_, most) = (
        [max(values(rows, column, phase=phases, **fast).values()) for phases in ((0, 1), (2, 3))]
        for column in ("delay_ms_std", "delay_ms_p99")
    )
    return Finding(
        late > early and most <= 2 * TARGET_MS,
        f"largest standard deviation of C: {early:.3g} ms, in the last two phases {late:.3g} ms; p99 there up to {most:.3g} ms",
    )
