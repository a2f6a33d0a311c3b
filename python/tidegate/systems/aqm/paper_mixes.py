"""How the claims of the paper (gombos2022) on Figs. 6 to 8 are judged, and those that ours judge: other queues, and the loop's speed."""

from __future__ import annotations

from tidegate.claims import Row, medians
from tidegate.papers import Finding, Parameters, need
from tidegate.systems.aqm.paper_values import RAMP_S, TARGET_MS, by_control, ramp_times, ratios, show, values


def _absolute(rows: list[Row], way: str) -> dict[str, float]:
    cubic, prague = (
        values(rows, "error_abs_mean", way=way, control=control) for control in ("cubic", "prague")
    )
    return {at: (cubic[at] + prague[at]) / 2 for at in cubic if at in prague}


def mean_error_is_below_half(rows: list[Row]) -> Finding:
    """f6-err: over all cases."""
    means = {
        way: sum(errors.values()) / len(errors)
        for way in ("pi2", "dualpi2")
        if (errors := _absolute(rows, way))
    }
    return Finding(
        all(mean < 0.5 for mean in means.values()),
        ", ".join(f"{way} {mean:.2f}" for way, mean in means.items()),
    )


def errors_grow_with_rtt(rows: list[Row]) -> Finding:
    """f6-rtt: the largest error of short and of long RTTs."""
    texts, found = [], True
    for way in ("pi2", "dualpi2"):
        near, far = (
            _absolute([row for row in rows if row["base_rtt_ms"] in rtts], way)
            for rtts in ((5.0, 10.0, 20.0), (50.0, 100.0))
        )
        need(near and far, "the run lacks short or long RTTs")
        most_near, most_far = max(near.values()), max(far.values())
        found &= most_near < 0.5 and most_far > most_near
        texts.append(f"{way}: up to 20 ms at most {most_near:.2f}, from 50 ms on {most_far:.2f}")
    return Finding(found, "; ".join(texts))


def prague_starts_slowly(rows: list[Row]) -> Finding:
    """f6-slow: the time to a fair share."""
    few = {"classic": (1, 2)}
    texts, found = [], True
    for way in ("pi2", "dualpi2"):
        near, far = (ramp_times(rows, rtts, way=way, **few) for rtts in ((5.0, 10.0), (50.0, 100.0)))
        found &= min(far["prague"].values()) > max(max(near["prague"].values()), RAMP_S)
        found &= all(far["prague"][at] > value for at, value in far["cubic"].items())
        texts.append(f"{way}: up to 10 ms {by_control(near)}; from 50 ms on {by_control(far)}")
    return Finding(
        found, f"to 80 % of a fair share, {'. '.join(texts)}; that slow begins at {RAMP_S:g} s is ours"
    )


def fair_at_1_gbps(rows: list[Row]) -> Finding:
    """s-fair: the largest error at 1 Gbit/s by RTT."""
    texts, found = [], True
    for way in ("pi2", "dualpi2"):
        most = {
            rtt: max(
                _absolute(
                    [row for row in rows if row["capacity_mbps"] == 1000 and row["base_rtt_ms"] == rtt], way
                ).values()
            )
            for rtt in sorted({row["base_rtt_ms"] for row in rows})
        }
        need(100.0 in most, "the run has no 100 ms")
        rest = [error for rtt, error in most.items() if rtt < 100]
        found &= max(rest) < 0.5 < most[100.0]
        texts.append(f"{way} " + ", ".join(f"{rtt:g} ms {error:.2f}" for rtt, error in most.items()))
    return Finding(found, f"largest absolute error at 1 Gbit/s: {'; '.join(texts)}; the bound of 0.5 is ours")


def a_loss_costs_much(rows: list[Row]) -> Finding:
    """s-drop: goodput around single losses, behind each AQM."""
    far = {"capacity_mbps": 1000, "base_rtt_ms": (50.0, 100.0), "control": "cubic"}
    costs = {way: values(rows, "loss_cost", way=way, **far) for way in ("pi2", "dualpi2")}
    text = ", ".join(
        f"{way} {show({at: 100 * cost for at, cost in own.items()}, '%')}" for way, own in costs.items()
    )
    return Finding(
        min(cost for own in costs.values() for cost in own.values()) >= 0.2,
        f"goodput of a CUBIC flow in the second after a single loss, less than in the one before: {text}; the bound of 20 % is ours",
    )


def classic_delay_is_longer(rows: list[Row]) -> Finding:
    """f6-more: delays of C over those of PI2's queue, and those of L."""
    ratio = ratios(*(values(rows, "delay_ms_mean", way=way, control="cubic") for way in ("dualpi2", "pi2")))
    low = values(rows, "delay_ms_mean", way="dualpi2", control="prague")
    mean = sum(ratio.values()) / len(ratio)
    return Finding(
        1 < mean <= 1.25 and max(low.values()) < 1,
        f"C over PI2's queue: mean {mean:.2f}, {show(ratio)}; mean of L {show(low, 'ms')}",
    )


def prague_has_more(rows: list[Row]) -> Finding:
    """f7-share: in how many cases Prague has more than its share, behind each AQM."""
    counts = {}
    for way in ("pi2", "dualpi2"):
        errors = values(rows, "error_mean", way=way, control="prague")
        counts[way] = sum(error > 0 for error in errors.values()) / len(errors)
    measured = ", ".join(f"{way} in {100 * share:.0f} % of the cases" for way, share in counts.items())
    return Finding(
        min(counts.values()) > 0.5 and counts["dualpi2"] > counts["pi2"],
        f"Prague has more than its share: {measured}",
    )


def cubic_has_its_share(rows: list[Row]) -> Finding:
    """f7-cubic: CUBIC's error in each case."""
    errors = values(rows, "error_mean", control="cubic", way="pi2") | {
        f"DualPI2, {at}": error
        for at, error in values(rows, "error_mean", control="cubic", way="dualpi2").items()
    }
    return Finding(
        all(abs(error) <= 0.1 for error in errors.values()), f"{show(errors)}; the bound of 0.1 is ours"
    )


def off_target_only_far(rows: list[Row]) -> Finding:
    """f7-delay: where C's mean delay is off target, and the p99 of L."""
    delays = values(rows, "delay_ms_mean", control="cubic", way="dualpi2")
    low = values(rows, "delay_ms_p99", control="prague", way="dualpi2")
    off = [at for at, delay in delays.items() if abs(delay / TARGET_MS - 1) > 0.15]
    far = all(" 50 ms" in at or " 100 ms" in at for at in off)
    measured = (
        f"C more than 15 % (a bound of ours) off at: {'; '.join(off) or 'none'}; p99 of L {show(low, 'ms')}"
    )
    return Finding(far and max(low.values()) < 1, measured)


def mean_errors_are_small(rows: list[Row]) -> Finding:
    """f8-err: of both controls, over all cases."""
    texts, found = [], True
    for way in ("pi2", "dualpi2"):
        for control in ("cubic", "prague"):
            errors = values(rows, "error_mean", way=way, control=control)
            mean = sum(errors.values()) / len(errors)
            found &= abs(mean) <= 0.2
            texts.append(f"{way} {control} {mean:+.2f}")
    return Finding(found, f"means: {', '.join(texts)}; the bound of 0.2 is ours")


def largest_error(rows: list[Row]) -> Finding:
    """f8-max: where it is."""
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


def _l_p99(rows: list[Row], column: str) -> dict[float, float]:
    """The largest p99 of L in ms, by a column's values."""
    found = {
        value: max(values(rows, "delay_ms_p99", way="dualpi2", control="prague", **{column: value}).values())
        for value in sorted({row[column] for row in rows})
    }
    need(len(found) > 1, f"the run has a single {column}")
    return found


def _listed(delays: dict[float, float], unit: str) -> str:
    return ", ".join(f"{value:g} {unit} {delay:.2f} ms" for value, delay in delays.items())


def l_is_long_at_short_rtts(rows: list[Row]) -> Finding:
    """f8-l: the p99 of L by RTT."""
    delays = list(_l_p99(rows, "base_rtt_ms").values())
    return Finding(
        delays[0] > 1 and delays[0] == max(delays),
        f"largest p99 of L: {_listed(_l_p99(rows, 'base_rtt_ms'), 'ms')}",
    )


def l_falls_with_rtt(rows: list[Row]) -> Finding:
    """f8-l3: the same, to the longest RTT."""
    delays = _l_p99(rows, "base_rtt_ms")
    *_, last = delays.values()
    return Finding(
        last < delays[min(delays)] / 2, f"largest p99 of L: {_listed(delays, 'ms')}; less than half is ours"
    )


def l_falls_with_flows(rows: list[Row]) -> Finding:
    """f8-l2: the p99 of L by number of flows."""
    delays = _l_p99(rows, "l4s")
    *_, last = delays.values()
    return Finding(last < delays[min(delays)], f"largest p99 of L: {_listed(delays, 'flows')}")


def classic_flows_starve(rows: list[Row]) -> Finding:
    """starve: CUBIC beside Prague behind one ECN step."""
    cubic, prague = (
        values(rows, "goodput_mbps", way="step", control=control) for control in ("cubic", "prague")
    )
    share = ratios(cubic, prague)
    return Finding(
        all(value < 0.25 for value in share.values()),
        f"CUBIC with ECN over Prague behind one ECN step: {show(share)}; the bound of a quarter is ours",
    )


def loop_is_too_slow(rows: list[Row], parameters: Parameters) -> Finding:
    """c-slow: C's delay with each T and latency, from 40 Gbit/s on."""
    inside, outside = (
        [row for row in rows if (row["home"] == "data plane") == is_in] for is_in in (True, False)
    )
    fast = [row for row in outside if row["capacity_gbps"] >= 40]
    need(fast and inside, "the run has no link of 40 Gbit/s or more, or no controller in the data plane")
    reference = medians(inside, "steady_delay_ms_p99", lambda row: f"{row['capacity_gbps']} Gbit/s")
    delays = medians(
        fast,
        "steady_delay_ms_p99",
        lambda row: (
            f"{row['capacity_gbps']} Gbit/s, T {row['period_ms']:g} ms, latency {row['latency_ms']:g} ms"
        ),
    )
    ratio = {name: delay / reference[name.partition(",")[0]] for name, delay in delays.items()}
    most = max(ratio, key=lambda name: ratio[name])
    return Finding(
        ratio[most] > 1.5,
        f"p99 of C over that with the controller in the data plane: {show(ratio)}, most at {most}; the bound of 1.5 is ours",
    )
