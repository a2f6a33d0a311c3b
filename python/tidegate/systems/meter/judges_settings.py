"""How runs that vary one setting judge the claims of the paper (wang2020): buckets, gains, marking, second chance, timer packets.

The paper has no data on these. Errors are of goodput, as in `judges.py`; the bounds are ours, and each function names its own.
A claim is found if one of the RTTs shows it.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable

from tidegate.claims import Row, medians, percent
from tidegate.papers import Finding, Parameters, need
from tidegate.systems.meter.judges import demand_time, each_round_trip, round_trips, short_of_time

FULL_KIB = 128
CLEAR = 0.005
"""Half a point of the target: less is no difference."""


def _mean(rows: list[Row], value: Callable[[Row], float]) -> float:
    """Mean over the targets of the medians over the seeds."""
    need(rows, "the run lacks a setting that the claim compares")
    valued = [{**row, "value": value(row)} for row in rows]
    return statistics.fmean(medians(valued, "value", lambda row: str(row["target_mbps"])).values())


def _miss(row: Row) -> float:
    return abs(float(row["goodput_error"]))


def _restless(row: Row) -> float:
    return float(row["deviation"])


def smaller_buckets(rows: list[Row], parameters: Parameters) -> Finding:
    """Each smaller bucket has less goodput, mean over the rates, than 128 KiB at one RTT."""
    demand_time(parameters)
    found, parts = False, {}
    for rtt, here in round_trips(rows).items():
        means = {
            size: _mean([row for row in here if row["size_kib"] == size], lambda row: row["goodput_error"])
            for size in sorted({row["size_kib"] for row in here})
        }
        need(
            FULL_KIB in means and min(means) < FULL_KIB,
            "the run has no bucket of 128 KiB beside smaller ones",
        )
        found |= all(error < means[FULL_KIB] for size, error in means.items() if size < FULL_KIB)
        parts[rtt] = ", ".join(f"{size} KiB {percent(error)}" for size, error in means.items())
    return Finding(found, each_round_trip(parts))


def _with_gains(rows: list[Row], kp: float | None, ki: float, kd: float) -> list[Row]:
    return [row for row in rows if (row["ki"], row["kd"]) == (ki, kd) and (kp is None or row["kp"] == kp)]


def _show_gains(rows: list[Row]) -> str:
    return f"{100 * _mean(rows, _miss):.1f} % off, deviation {100 * _mean(rows, _restless):.1f} %"


def proportional_alone(rows: list[Row], parameters: Parameters) -> Finding:
    """With Kp alone the paper's Kp is nearer to the target than the least one, and its 1 s rates deviate more."""
    demand_time(parameters)
    paper = max(row["kp"] for row in rows if row["ki"] > 0)
    found, parts = False, {}
    for rtt, here in round_trips(rows).items():
        gains = sorted({row["kp"] for row in _with_gains(here, None, 0, 0)})
        need(paper in gains and gains[0] < paper, "the run has no smaller Kp beside the paper's")
        least, most = (_with_gains(here, kp, 0, 0) for kp in (gains[0], paper))
        found |= _mean(most, _miss) < _mean(least, _miss) and _mean(most, _restless) > _mean(least, _restless)
        parts[rtt] = ", ".join(f"Kp {kp:g} {_show_gains(_with_gains(here, kp, 0, 0))}" for kp in gains)
    return Finding(found, each_round_trip(parts))


def integral_calms(rows: list[Row], parameters: Parameters) -> Finding:
    """Beside the paper's Kp, each Ki has a smaller deviation of 1 s rates than none."""
    demand_time(parameters)
    paper = max(row["kp"] for row in rows if row["ki"] > 0)
    found, parts = False, {}
    for rtt, here in round_trips(rows).items():
        gains = sorted({row["ki"] for row in here if row["kp"] == paper and row["kd"] == 0})
        need(gains[0] == 0 and len(gains) > 1, "the run has no Ki beside none")
        spread = {ki: _mean(_with_gains(here, paper, ki, 0), _restless) for ki in gains}
        found |= all(value < spread[0] for ki, value in spread.items() if ki > 0)
        parts[rtt] = ", ".join(f"Ki {ki:g} {_show_gains(_with_gains(here, paper, ki, 0))}" for ki in gains)
    return Finding(found, each_round_trip(parts))


def derivative_harms(rows: list[Row], parameters: Parameters) -> Finding:
    """The largest Kd has a larger deviation of 1 s rates than none, and is farther from the target."""
    demand_time(parameters)
    kds = sorted({row["kd"] for row in rows if row["kd"] > 0})
    need(kds, "the run has no Kd above 0")
    kp, ki = next((row["kp"], row["ki"]) for row in rows if row["kd"] > 0)
    found, parts = False, {}
    for rtt, here in round_trips(rows).items():
        none, most = (_with_gains(here, kp, ki, kd) for kd in (0, kds[-1]))
        found |= _mean(most, _restless) > _mean(none, _restless) and _mean(most, _miss) > _mean(none, _miss)
        parts[rtt] = ", ".join(
            f"Kd {kd:g} {_show_gains(_with_gains(here, kp, ki, kd))}" for kd in (0.0, *kds)
        )
    return Finding(found, each_round_trip(parts))


def marked_packets_pass(rows: list[Row], parameters: Parameters) -> Finding:
    """At every rate of one RTT some marked packets pass by the second chance alone."""
    demand_time(parameters)
    found, parts = False, {}
    # A flood of datagrams has no goodput error.
    for rtt, here in round_trips([row for row in rows if row["kind"] == "tcp"]).items():
        on, off = ([row for row in here if row["setting"] == f"second chance {way}"] for way in ("on", "off"))
        need(on and off, "the run has the second chance on or off alone")
        need(all(row["ce_marks"] for row in on), "the run has a cell without marks")
        shares = medians(
            [{**row, "share": row["spared"] / row["ce_marks"]} for row in on],
            "share",
            lambda row: str(row["target_mbps"]),
        )
        found |= all(share > 0 for share in shares.values())
        gained = _mean(on, lambda row: row["goodput_error"]) - _mean(off, lambda row: row["goodput_error"])
        drops = [_mean(some, lambda row: row["drops"]) for some in (on, off)]
        parts[rtt] = (
            f"{100 * min(shares.values()):.2g} to {100 * max(shares.values()):.2g} % of the marked packets pass by it, "
            f"goodput {100 * gained:+.1f} points, {drops[0]:.0f} drops with it, {drops[1]:.0f} without"
        )
    return Finding(
        found,
        f"{each_round_trip(parts)}; that some pass is by construction, and goodput and drops are not judged",
    )


def _marking(rows: list[Row], control: str = "cubic") -> dict[float, dict[str, float]]:
    """Mean miss by RTT and setting."""
    some = [row for row in rows if row["congestion_control"] == control]
    need(some, f"the run has no {control}")
    return {
        rtt: {
            setting: _mean([row for row in here if row["setting"] == setting], _miss)
            for setting in dict.fromkeys(row["setting"] for row in here)
        }
        for rtt, here in round_trips(some).items()
    }


PAPERS_VALUES = "R' 0.5"


def averaged_level(rows: list[Row], parameters: Parameters) -> Finding:
    """The best averaged level is nearer to the target than the present level, by half a point or more, at one RTT."""
    demand_time(parameters)
    found, parts = False, {}
    for rtt, miss in _marking(rows).items():
        averaged = {setting: value for setting, value in miss.items() if setting.startswith("average")}
        need(averaged and PAPERS_VALUES in miss, "the run has no averaged level beside the present one")
        found |= min(averaged.values()) < miss[PAPERS_VALUES] - CLEAR
        shown = ", ".join(f"{setting} {100 * value:.1f} %" for setting, value in averaged.items())
        parts[rtt] = f"present level {100 * miss[PAPERS_VALUES]:.1f} % off, {shown}"
    return Finding(found, each_round_trip(parts))


def finer_threshold(rows: list[Row], parameters: Parameters) -> Finding:
    """The best threshold that is no power of 2 is nearer than the best that is one, by half a point or more, at one RTT."""
    demand_time(parameters)
    found, parts = False, {}
    for rtt, miss in _marking(rows).items():
        values = {
            float(setting.removeprefix("R' ")): one for setting, one in miss.items() if setting[:2] == "R'"
        }
        coarse = {
            share: one for share, one in values.items() if (1 / share).is_integer() and _power(1 / share)
        }
        fine = {share: one for share, one in values.items() if share not in coarse}
        need(coarse and fine, "the run has no thresholds of both kinds")
        found |= min(fine.values()) < min(coarse.values()) - CLEAR
        parts[rtt] = ", ".join(f"R' {share:g} {100 * one:.1f} % off" for share, one in values.items())
    return Finding(found, each_round_trip(parts))


def _power(value: float) -> bool:
    return int(value) & (int(value) - 1) == 0


def other_controls(rows: list[Row], parameters: Parameters) -> Finding:
    """With another congestion control than CUBIC some value is nearer than the paper's by two points or more, at one RTT."""
    demand_time(parameters)
    others = [name for name in dict.fromkeys(row["congestion_control"] for row in rows) if name != "cubic"]
    need(others, "the run has CUBIC alone")
    found, parts = False, []
    for control in others:
        for rtt, miss in _marking(rows, control).items():
            need(PAPERS_VALUES in miss, "the run lacks the paper's values")
            best = min(miss, key=lambda setting: miss[setting])
            found |= miss[best] < miss[PAPERS_VALUES] - 0.02
            parts.append(
                f"{control}, {rtt:g} ms: {100 * miss[PAPERS_VALUES]:.1f} % off, best {best} {100 * miss[best]:.1f} %"
            )
    return Finding(found, "; ".join(parts))


PAPERS_TOKENS = 128


def tokens_balance(rows: list[Row], parameters: Parameters) -> Finding:
    """At one RTT the goodput with N = 128 is that of a continuous refill at every rate, and with the largest N it is not.

    It is not where its median is more than a point of the target outside the range that the seeds of the continuous refill have. The
    bursts of the largest N are the longest; between, a plain bucket may be off by chaos alone.
    """
    found, parts = False, {}
    for rtt, here in round_trips(rows).items():
        lazy: dict[int, list[float]] = {}
        for row in here:
            if not row["tokens"]:
                lazy.setdefault(row["target_mbps"], []).append(row["goodput_error"])
        need(lazy, "the run has no lazy refill")
        away = {}
        for number in sorted({row["tokens"] for row in here if row["tokens"]}):
            some = [row for row in here if row["tokens"] == number]
            away[number] = max(
                max(min(lazy[int(target)]) - error, error - max(lazy[int(target)]), 0.0)
                for target, error in medians(
                    some, "goodput_error", lambda row: str(row["target_mbps"])
                ).items()
            )
        need(PAPERS_TOKENS in away and max(away) > PAPERS_TOKENS, "the run has no larger N beside 128")
        found |= away[PAPERS_TOKENS] <= 0.01 < away[max(away)]
        parts[rtt] = ", ".join(f"N {number} {100 * value:.1f}" for number, value in away.items())
    packets = [row["timer_packets_per_s"] for row in rows if row["tokens"] == PAPERS_TOKENS]
    return Finding(
        found,
        f"points outside the seeds' range with a continuous refill: {each_round_trip(parts)}; bursts of N bytes and N 128's "
        f"{min(packets):.0f} to {max(packets):.0f} timer packets/s are arithmetic, not judged; {short_of_time(parameters)}",
    )
