"""The claims of the paper (arslan2019), and how runs of this system's experiments judge them.

Values are medians over the seeds that a run has. Verdicts on hops, buffers and bits of several buffers (C8, C14, C19, C25) come from
long runs, whose recorded ones have one seed: what they measure says so. The paper's figures have no numbers in their text, so most
claims are judged by what the text says of the signals' order.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from tidegate.claims import Row, medians
from tidegate.papers import Finding, PaperClaim, Parameters, need
from tidegate.units import counted

RATE_GBPS = 10.0
"""Of the paper's links, at which the constants in time are given."""
PAPER = 'S. Arslan, N. McKeown, "Switches Know the Exact Amount of Congestion", Workshop on Buffer Sizing (BS), 2019'

Judge = Callable[[list[Row], Parameters], Finding]


def _seeds(rows: list[Row]) -> str:
    """What is to be said of a verdict that one seed gives."""
    return "; one seed" if len({row.get("seed") for row in rows}) == 1 else ""


def _of(rows: list[Row], signal: str, column: str) -> float:
    """Median of a column with a signal."""
    values = [row[column] for row in rows if row["signal"] == signal and column in row]
    need(values, f"the run has no {column} with the signal {signal}")
    return float(np.median(values))


def _ratio(rows: list[Row], _: Parameters) -> Finding:
    (high, low), (of_high, of_low) = (
        [_of(rows, signal, column) for signal in ("max", "rtt")] for column in ("throughput_gbps", "of_fair")
    )
    return Finding(
        high >= 2 * low,
        f"MAX {high:.3g}, RTT {low:.3g} Gbit/s: {high / low:.2f} times",
        f"MAX has {of_high:.2f} of the fair share and RTT {of_low:.2f}; {WHY_TWICE}",
    )


def _fair(rows: list[Row], _: Parameters) -> Finding:
    of_fair, rate = _of(rows, "max", "of_fair"), _of(rows, "max", "throughput_gbps")
    return Finding(
        0.9 <= of_fair <= 1.1,
        f"{rate:.3g} Gbit/s, {of_fair:.0%} of the fair share (90 to 110 % asked for)",
    )


def _well_below(rows: list[Row], _: Parameters) -> Finding:
    shares = {name: _of(rows, name, "of_fair") for name in ("sum", "rtt")}
    found = all(share < 0.75 for share in shares.values())
    return Finding(found, f"SUM {shares['sum']:.0%}, RTT {shares['rtt']:.0%} of the fair share")


def _ordered(signals: Sequence[str], column: str, unit: str, digits: int = 3) -> Judge:
    """The signals' medians rise in this order."""

    def judge(rows: list[Row], _: Parameters) -> Finding:
        values = [_of(rows, signal, column) for signal in signals]
        measured = ", ".join(
            f"{name.upper()} {value:.{digits}g}" for name, value in zip(signals, values, strict=True)
        )
        return Finding(all(a < b for a, b in pairwise(values)), f"{measured} {unit}")

    return judge


def _tail(rows: list[Row], _: Parameters) -> Finding:
    values = {name: _of(rows, name, "rtt_us_p95") for name in ("sum", "sum_squ", "max")}
    highest = max(values.values())
    slightly = highest <= 1.2 * values["sum"]
    found = values["sum"] == min(values.values()) and slightly
    return Finding(
        found, ", ".join(f"{name.upper()} {value:.0f}" for name, value in values.items()) + " us (p95)"
    )


def _queues(rows: list[Row], parameters: Parameters) -> list[tuple[int, float, float]]:
    """Cross flows, mean and standard deviation of each queue with MAX."""
    counts = parameters["cross_flows"]
    return [
        (count, _of(rows, "max", f"queue{number}_us_mean"), _of(rows, "max", f"queue{number}_us_sd"))
        for number, count in enumerate(counts, 1)
    ]


def _swings(rows: list[Row], parameters: Parameters) -> Finding:
    queues = _queues(rows, parameters)
    single = [sd / mean for count, mean, sd in queues if count == 1 and mean]
    shared = [sd / mean for count, mean, sd in queues if count > 1]
    need(single and shared, "the run has no queues with one and with several cross flows")
    measured = ", ".join(f"{mean:.0f} us (sd {sd:.0f})" for _, mean, sd in queues)
    return Finding(min(single) > 0.5 and max(shared) < 0.25, measured)


def _fills(rows: list[Row], parameters: Parameters) -> Finding:
    peak = _of(rows, "max", "first_peak_us")
    room = parameters["t_low_us"] * RATE_GBPS / parameters.get("rate_gbps", RATE_GBPS) - rows[0]["min_rtt_us"]
    return Finding(
        peak >= 0.9 * room,
        f"first peak of single-flow queues {peak:.0f} us; T_low is {room:.0f} us above the RTT without queues",
    )


def _elsewhere(rows: list[Row], _: Parameters) -> Finding:
    share = _of(rows, "max", "max_elsewhere")
    return Finding(
        share <= 0.1, f"with MAX another queue is the longest in {share:.0%} of the samples (10 % allowed)"
    )


def _fairness(rows: list[Row], _: Parameters) -> Finding:
    parts = []
    for name in ("rtt", "sum", "max"):
        primary, most = _of(rows, name, "of_fair"), _of(rows, name, "cross_of_fair_most")
        parts.append((name, primary, most))
    measured = "; ".join(
        f"{name.upper()}: primary {a:.2f}, a cross flow at most {b:.2f}" for name, a, b in parts
    )
    by_name = {name: (primary, most) for name, primary, most in parts}
    share, gain = by_name["sum"]
    return Finding(share < 0.75 * by_name["max"][0] and gain > 1.02, f"shares of max-min: {measured}")


def _noise(rows: list[Row], _: Parameters) -> Finding:
    own = [row for row in rows if row["signal"] == "max"]
    need(own, "the run has no signal max")
    counts = sorted({row["hops"] for row in own})
    need(len(counts) > 2, "the run has fewer than three numbers of queues")

    def noise(name: str) -> list[float]:
        return [
            float(np.median([row[f"noise_us_{name}"] for row in own if row["hops"] == n])) for n in counts
        ]

    summed, largest = noise("sum"), noise("max")
    measured = ", ".join(f"{n}: {value:.0f}" for n, value in zip(counts, summed, strict=True))
    less = [
        f"from {n} to {more}" for (n, a), (more, b) in pairwise(zip(counts, summed, strict=True)) if b <= a
    ]
    return Finding(
        not less,
        f"sd of SUM less the bottleneck by queues, us: {measured}; of MAX at most {max(largest):.1f}; that of the RTT is not "
        f"computed, which is SUM and a constant where hosts take no time{_seeds(rows)}",
        f"it does not grow {', '.join(less)} queues",
    )


def _bits(rows: list[Row], column: str, bins: str = "equal", buffer: int | None = None) -> dict[int, float]:
    """Medians of a column by bits, for a kind of bins and a buffer; without one, the paper's of 200 packets."""
    own = [row for row in rows if row["bins"] == bins and row["buffer_packets"] == (buffer or 200)]
    need(own, f"the run has no {bins} bins with a buffer of {buffer or 200} packets")
    numbers = sorted({row["bits"] for row in own})
    return {n: float(np.median([row[column] for row in own if row["bits"] == n])) for n in numbers}


def _with(values: dict[int, float], *bits: int) -> list[float]:
    need(all(n in values for n in bits), f"the run lacks one of {', '.join(map(str, bits))} bits")
    return [values[n] for n in bits]


def _list(values: dict[int, float], digits: int = 0) -> str:
    return ", ".join(f"{n}: {value:.{digits}f}" for n, value in values.items())


def _few_bits(rows: list[Row], _: Parameters) -> Finding:
    """Mean and p95 fall with each step up to 4 bits; from there to 32 they change by at most 5 %."""
    parts = {"mean": _bits(rows, "rtt_us_mean"), "p95": _bits(rows, "rtt_us_p95")}
    against = []
    for name, values in parts.items():
        _with(values, 1, 4, 32)
        few = [value for bits, value in values.items() if bits <= 4]
        if any(b >= a for a, b in pairwise(few)):
            against.append(f"the {name} does not fall with each step up to 4 bits")
        if max(values[4], values[32]) > 1.05 * min(values[4], values[32]):
            against.append(f"from 4 to 32 bits the {name} changes by {values[32] / values[4] - 1:+.1%}")
    return Finding(
        not against,
        f"mean RTT by bits, us: {_list(parts['mean'])}; p95: {_list(parts['p95'])} (from 4 to 32 bits 5 % either way allowed)",
        "; ".join(against),
    )


def _steady(rows: list[Row], _: Parameters) -> Finding:
    rates = _bits(rows, "throughput_gbps")
    four, eight, all_bits = _with(rates, 4, 8, 32)
    found = all(abs(a / b - 1) <= 0.03 for a, b in ((four, all_bits), (eight, all_bits)))
    return Finding(found, f"Gbit/s by bits: {_list(rates, 1)} (3 % allowed)")


def _plenty(rows: list[Row], _: Parameters) -> Finding:
    mean, rates = _bits(rows, "rtt_us_mean"), _bits(rows, "throughput_gbps")
    (eight, exact), (rate, exact_rate) = _with(mean, 8, 32), _with(rates, 8, 32)
    found = eight <= 1.05 * exact and rate >= 0.97 * exact_rate
    return Finding(
        found,
        f"8 bits: {eight / exact - 1:+.1%} mean RTT, {rate / exact_rate - 1:+.1%} throughput; nearly by construction: a bin is "
        f"{200 / 2**8:.2g} of a packet",
    )


def _logarithmic(rows: list[Row], _: Parameters) -> Finding:
    gains = []
    for column in ("rtt_us_mean", "throughput_gbps"):
        log, equal = _bits(rows, column, "log"), _bits(rows, column)
        gains += [log[n] / equal[n] - 1 for n in log if n in equal]
    need(gains, "the run has no number of bits with both kinds of bins")
    largest = max(gains, key=abs)
    return Finding(abs(largest) <= 0.05, f"RTT and throughput differ by {largest:+.1%} at most (5 % allowed)")


def _larger_buffers(rows: list[Row], _: Parameters) -> Finding:
    buffers = sorted({row["buffer_packets"] for row in rows})
    need(len(buffers) > 1, "the run has one buffer; give several by buffers_packets")
    enough: dict[int, float] = {}
    for buffer in buffers:
        mean = _bits(rows, "rtt_us_mean", buffer=buffer)
        (exact,) = _with(mean, 32)
        enough[buffer] = min(n for n in mean if mean[n] <= 1.05 * exact)
    values = list(enough.values())
    found = values == sorted(values) and values[-1] > values[0]
    return Finding(
        found,
        f"bits for a mean RTT within 5 % of 32 bits', by packets of buffer: {_list(enough)}{_seeds(rows)}",
    )


def _overhead(rows: list[Row], _: Parameters) -> Finding:
    (share,) = _with(_bits(rows, "field_share"), 8)
    return Finding(
        share <= 0.01,
        f"8 bits: {share:.2%} of all bytes, with type, length, padding and the echo; arithmetic, of the sizes of field and packets",
    )


def _counters(rows: list[Row], _: Parameters) -> Finding:
    counts = medians(rows, "counter_bits", lambda row: str(row["buffer_packets"]))
    by_buffer = {int(buffer): bits for buffer, bits in counts.items()}
    found = all(16 <= bits <= 32 for bits in by_buffer.values())
    return Finding(
        found,
        f"bits of a count of bytes, by packets of buffer: {_list(by_buffer)}; arithmetic, of the buffers that were set",
    )


def _reacts(rows: list[Row]) -> dict[str, float]:
    """Change of the primary flow's throughput after a burst at the other queue, less that without a burst, by control."""
    names = dict.fromkeys(row["control"] for row in rows)
    return {
        name: float(np.median([row["change"] - row["change_idle"] for row in rows if row["control"] == name]))
        for name in names
    }


def _no_reaction(rows: list[Row], _: Parameters) -> Finding:
    changes = _reacts(rows)
    need({"timely-max", "timely-rtt"} <= changes.keys(), "the run lacks TIMELY with MAX or with RTT")
    measured = ", ".join(f"{name} {value:+.0%}" for name, value in changes.items())
    return Finding(abs(changes["timely-max"]) <= 0.05 and changes["timely-rtt"] < -0.05, measured)


def _of_control(rows: list[Row], control: str, column: str) -> float:
    values = [row[column] for row in rows if row["control"] == control]
    need(values, f"the run lacks {control}")
    return float(np.median(values))


def _other_signals(rows: list[Row], _: Parameters) -> Finding:
    full, loss, standing = (
        _of_control(rows, control, column)
        for control, column in (("cubic", "queue_us_mean"), ("cubic", "peak_us"), ("dctcp", "queue_us_mean"))
    )
    threshold, buffer = rows[0]["mark_above_us"], rows[0]["buffer_us"]
    reacts = _reacts(rows)
    need({"timely-max", "timely-rtt"} <= reacts.keys(), "the run lacks TIMELY with MAX or with RTT")
    late, blind = loss >= 0.95 * buffer, standing >= 0.8 * threshold
    return Finding(
        late and blind and reacts["timely-rtt"] < reacts["timely-max"] - 0.05,
        f"CUBIC: queue of {full:.0f} us, {loss:.0f} after a step (buffer {buffer:.0f}); DCTCP: {standing:.0f} us standing (threshold "
        f"{threshold:.0f}); a burst elsewhere: RTT {reacts['timely-rtt']:+.0%}, MAX {reacts['timely-max']:+.0%}",
    )


def _exact_alpha(rows: list[Row], _: Parameters) -> Finding:
    """Faster: the queue turns earlier after a step, by a sample (10 us). More accurate: it varies less between steps."""
    turn, exact_turn, sd, exact_sd, peak, exact_peak = (
        _of_control(rows, control, column)
        for column in ("turn_us", "queue_us_sd", "peak_us")
        for control in ("dctcp", "dctcp-stamp")
    )
    return Finding(
        exact_turn <= turn - 10 and exact_sd < sd,
        f"with alpha from the stamp the queue turns {exact_turn:.0f} us after a step (with marks {turn:.0f}), its peak is "
        f"{exact_peak:.0f} us ({peak:.0f}), and its standard deviation between steps {exact_sd:.1f} us ({sd:.1f})",
    )


def _completion(rows: list[Row], _: Parameters) -> Finding:
    """TIMELY on MAX against TIMELY on the RTT: utilisation by load, and the mean slowdown by load and size."""
    names = ("timely-max", "timely-rtt")
    need(set(names) <= {row["contender"] for row in rows}, "the run lacks TIMELY with MAX or with RTT")
    own = [row for row in rows if row["contender"] in names]
    left = sum(row["unfinished"] for row in own)
    need(
        not left,
        f"{counted(left, 'flow')} did not end, so that the mean slowdowns of their sizes are not known",
    )

    def middle(column: str, *by: str) -> dict[tuple[Any, ...], float]:
        groups: dict[tuple[Any, ...], dict[str, list[float]]] = {}
        for row in own:
            cell = groups.setdefault(tuple(row[key] for key in by), {})
            cell.setdefault(row["contender"], []).append(row[column])
        return {
            cell: float(np.median(values["timely-max"]) / np.median(values["timely-rtt"]))
            for cell, values in groups.items()
        }

    slower, busier = middle("slowdown_mean", "load", "size"), middle("utilisation", "load")
    measured = ", ".join(f"{size} at {load:.0%} {ratio - 1:+.0%}" for (load, size), ratio in slower.items())
    used = ", ".join(f"{load:.0%} {ratio - 1:+.1%}" for (load,), ratio in busier.items())
    found = all(ratio < 1 for ratio in slower.values()) and all(ratio > 1 for ratio in busier.values())
    return Finding(
        found,
        f"TIMELY on MAX, against the RTT: mean slowdown {measured}; data carried while flows come {used}",
    )


def _buffers(rows: list[Row], control: str) -> dict[tuple[int, int], float]:
    """The smallest buffer without losses, by shared queues and flows: the median over the seeds, infinite if none suffices."""
    found: dict[tuple[int, int], list[float]] = {}
    for row in rows:
        if row["contender"] == control:
            packets = row["lossless_packets"]
            found.setdefault((row["hops"], row["flows"]), []).append(np.inf if packets is None else packets)
    need(found, f"the run lacks {control}")
    return {cell: float(np.median(values)) for cell, values in found.items()}


def _packets(value: float) -> str:
    return "none" if np.isinf(value) else f"{value:.0f}"


def _smaller_buffers(rows: list[Row], _: Parameters) -> Finding:
    largest, rtt = (_buffers(rows, name) for name in ("timely-max", "timely-rtt"))
    measured = ", ".join(
        f"{flows} flows over {hops}: {_packets(largest[hops, flows])} and {_packets(rtt[hops, flows])}"
        for hops, flows in largest
    )
    never_more = all(largest[cell] <= rtt[cell] for cell in largest)
    smaller = any(largest[cell] < rtt[cell] for cell in largest)
    return Finding(
        never_more and smaller,
        f"packets for 98 % without losses with TIMELY on MAX, and on the RTT: {measured}{_seeds(rows)}",
    )


def _bounded(rows: list[Row], _: Parameters) -> Finding:
    spans, parts = {}, []
    for name in ("timely-max", "timely-rtt"):
        found = _buffers(rows, name)
        several = max(flows for hops, flows in found if hops > 1) if any(hops > 1 for hops, _ in found) else 0
        values = {hops: packets for (hops, flows), packets in sorted(found.items()) if flows == several}
        need(len(values) > 1, "the run has no two numbers of shared queues with the same flows")
        spans[name] = max(values.values()) / min(values.values())
        listed = ", ".join(f"{hops}: {_packets(packets)}" for hops, packets in values.items())
        parts.append(f"{name} {listed}")
    found_it = spans["timely-max"] <= 1.25 and spans["timely-rtt"] > spans["timely-max"]
    return Finding(
        found_it, f"packets for 98 % without losses by shared queues: {'; '.join(parts)}{_seeds(rows)}"
    )


WHY_TWICE = (
    "the ratio depends on TIMELY's constants, which the paper does not give (1.35 to 2.03 with a window in the recorded run of "
    "stamping.constants)"
)
WHY_BITS = "with few bits the gradient is zero most of the time, and what ends the increase is loss or T_high; the seeds' spread is in the README"
WHY_CONSTANTS = "it depends on TIMELY's constants, which the paper does not give; these are those of its first author's public code"
WHY_TAIL = "in the recorded run SUM and SUM_SQU are within 3 % of each other; only flows that follow the RTT itself have a lower tail, by 8 %"
WHY_COMPLETION = (
    "MAX does not hold the queue in the sender's own port, which no switch stamps, and the RTT does: in a run of 400 arrivals at 50 % its "
    "p99 was 111 kB with MAX and 16 with the RTT, and short flows wait in it"
)
WHY_BUFFERS = (
    "TIMELY with its author's constants swings about as much on MAX as on the RTT, because T_low and T_high are compared with the RTT; "
    "in the recorded run lone flows and long rows leave their links idle for 2 to 17 % with any buffer"
)
WHY_ELSEWHERE = "in the recorded run single-flow queues, and that of 3 cross flows, swing up to the bottleneck's length, so MAX is not free of their noise"

CLAIMS: tuple[PaperClaim, ...] = (
    PaperClaim(
        "C1",
        "section 1",
        "MAX has 2 times the throughput of RTT (Timely) for the primary flow",
        "stamping.noise",
        _ratio,
    ),
    PaperClaim(
        "C2", "section 4.1", "MAX converges to the fair share", "stamping.noise", _fair, why=WHY_CONSTANTS
    ),
    PaperClaim(
        "C3",
        "section 4.1, Fig. 4",
        "SUM and RTT stay well below the fair share",
        "stamping.noise",
        _well_below,
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C4",
        "section 4.1, Fig. 4",
        "SUM_SQU is between SUM and MAX",
        "stamping.noise",
        _ordered(("sum", "sum_squ", "max"), "throughput_gbps", "Gbit/s"),
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C5",
        "section 4.1, Fig. 4",
        "SUM has a slightly lower tail RTT than SUM_SQU and MAX",
        "stamping.noise",
        _tail,
        why=WHY_TAIL,
    ),
    PaperClaim(
        "C6",
        "Fig. 3",
        "queues of one cross flow swing, those of 3 and 6 are steady",
        "stamping.noise",
        _swings,
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C7",
        "section 4.1",
        "queues first fill until T_low, then swing",
        "stamping.noise",
        _fills,
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C8",
        "sections 1, 4.1",
        "the noise of SUM and RTT grows with the number of hops",
        "stamping.hops",
        _noise,
    ),
    PaperClaim(
        "C9",
        "section 4.1",
        "only the last queue is the bottleneck, MAX ignores the others",
        "stamping.noise",
        _elsewhere,
        why=WHY_ELSEWHERE,
    ),
    PaperClaim(
        "C10", "section 4.1", "SUM trades fairness away", "stamping.noise", _fairness, why=WHY_CONSTANTS
    ),
    PaperClaim(
        "C11",
        "section 3",
        "a burst at a queue that is not the bottleneck needs no reaction",
        "stamping.burst",
        _no_reaction,
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C12",
        "section 5",
        "more weight to longer queues gives more throughput",
        "stamping.noise",
        _ordered(("sum", "sum_squ", "max"), "throughput_gbps", "Gbit/s"),
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C13",
        "abstract",
        "higher utilisation and shorter flow completion times than RTT",
        "stamping.fct",
        _completion,
        why=WHY_COMPLETION,
    ),
    PaperClaim(
        "C14",
        "abstract, section 5",
        "smaller buffers suffice",
        "stamping.buffers",
        _smaller_buffers,
        why=WHY_BUFFERS,
    ),
    PaperClaim(
        "C15",
        "Fig. 5",
        "mean and p95 RTT fall with the bits, little beyond 4",
        "stamping.bits",
        _few_bits,
        why=WHY_BITS,
    ),
    PaperClaim(
        "C16", "Fig. 6", "throughput is steady from 4 bits on", "stamping.bits", _steady, why=WHY_BITS
    ),
    PaperClaim("C17", "section 1", "8 bits are plenty", "stamping.bits", _plenty, why=WHY_BITS),
    PaperClaim(
        "C18", "section 4.2", "logarithmic bins gain little", "stamping.bits", _logarithmic, why=WHY_BITS
    ),
    PaperClaim(
        "C19", "section 4.2", "larger buffers need more bits", "stamping.bits", _larger_buffers, why=WHY_BITS
    ),
    PaperClaim(
        "C20",
        "section 3.1",
        "the field's share of the capacity is negligible",
        "stamping.bits",
        _overhead,
        why="the smallest field has 4 bytes on the wire, and ACKs have 4 more",
    ),
    PaperClaim(
        "C21",
        "section 3.1",
        "less than 0.05 % of a chip's power, and far fewer lines of P4 than INT's 700",
        cannot="the power is a private estimate; stamp.p4 and its parts have about 550 lines with all carriers, folds and quantities, and INT's were 700",
    ),
    PaperClaim(
        "C22",
        "section 4.2",
        "counters of a queue have 16 to 32 bits",
        "stamping.bits",
        _counters,
        why="the buffer is out of the range of the paper's switches",
    ),
    PaperClaim(
        "C23",
        "section 2",
        "loss is late, ECN is blind below its threshold, RTT reacts to any queue",
        "stamping.burst",
        _other_signals,
        why=WHY_CONSTANTS,
    ),
    PaperClaim(
        "C24",
        "section 1",
        "DCTCP would react faster and more accurately with exact occupancy",
        "stamping.burst",
        _exact_alpha,
        why="the step fills most of the buffer within the RTT that any signal needs",
    ),
    PaperClaim(
        "C25",
        "sections 2, 5",
        "RTTs differ by distance and occupancy does not, so buffers have bounds",
        "stamping.buffers",
        _bounded,
        why=WHY_BUFFERS,
    ),
)
