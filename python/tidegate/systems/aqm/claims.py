"""The claims of the paper (gombos2022), and how runs of this system's experiments judge them.

The paper has graphs and few numbers. Where a bound is ours, the measured value says so. The paper's phases and static runs take 120 s,
and it names no time that is left out: claims go by the rows of whole runs and phases.
"""

from __future__ import annotations

from dataclasses import replace

from tidegate.papers import PaperClaim
from tidegate.systems.aqm import paper_mixes as of_mixes
from tidegate.systems.aqm import paper_phases as of_phases
from tidegate.systems.aqm.paper_values import controlled, whole

PAPER = (
    'G. Gombos, M. Mouw, S. Laki, C. Papagianni, K. De Schepper, "Active Queue Management on the Tofino programmable switch: '
    'The (Dual)PI2 case", NOMS 2022'
)
WHY = {
    "starve": "1-1 starves (0.07), one of 10-10 has 0.31; with 50 flows all are at their minimum window of two packets, which fills the BDP",
    "f4-trend": "at 50 ms and 1-1 CUBIC's lead at the start and its deficit later cancel (without the first 40 s 0.34, 0.21, 0.05, 0.05); "
    "at 10 ms and 25-25 CUBIC has more than Prague",
    "f4-steady": "a flow that starts in the phase is part of it; without the first 40 s the ratio is 0.30 to 0.63",
    "f4-target": "with many flows the controller holds its target at both RTTs; with 1-1 at 50 ms p' falls to 0 at times, and the queue empties",
    "f4-p50": "p' follows from the windows that fill the link, which are longer at 50 ms: the window laws give 0.44 to 0.47",
    "f4-ramp": "it is so of Prague; CUBIC has its share after 1.25 s of slow start at either RTT",
    "f5-like": "p' with 1-1 at 50 ms alone is beyond it (1.12 to 1.29 in three seeds; elsewhere 1.08 to 1.22): PI2's queue empties at times "
    "there, and its p' falls to 0",
    "f5-fair": "a CUBIC flow's RTT includes the delay of C; Prague acts as if its own were at least 25 ms: at 50 ms CUBIC should have 0.67 of "
    "Prague's rate, and has 0.69 with 10-10. With 2-2 it has 0.58: p' varies by 0.8 of its mean, and CUBIC's losses go by its square: 0.67 / "
    "sqrt(1 + 0.8^2) is 0.52",
    "f5-dev": "with one or two flows of each the delay is far below its target while CUBIC's windows grow; with many it is held",
    "f6-rtt": "behind DualPI2 the largest are 50-50 at 5 ms, 120 and 200 Mbit/s: 50 Prague flows of two packets each exceed the BDP and take "
    "nine tenths of the link; then 50-50 at 10 ms and 25-25 at 5 ms at 120 Mbit/s, where they are the BDP, and 20 ms, where CUBIC should have "
    "0.59 of Prague's rate. 1-1 at 1 Gbit/s is as the paper says",
    "f6-ctl": "the longest are behind DualPI2 with 50-50 at 5 ms, 39.7 ms at 200 and 38.2 ms at 120 Mbit/s: the minimum windows of the "
    "Prague flows take nine tenths of the link, and packets in C wait for their turn",
    "f6-more": "the controller holds the mean of both queues: with 10-10 C has 0.92 to 1.07 of PI2's mean, but 1.01 to 1.16 times its p99; single "
    "flows leave C below its target; L is long where 50 flows of two packets exceed the BDP",
    "f7-share": "behind PI2 alone less than half of the cases are so, and by a later run (120 Mbit/s, 5 to 100 ms, 60 s, one seed) those of "
    "many flows are not: 9-1, with a p' of 1.1 to 4.7 %, gives Prague 3 to 22 % more than its share, 45-5, with a p' of 5.3 to 17.5 %, 4 to "
    "14 % less: there most round trips have marks, and unmarked packets alone make Prague's window grow. Window times p' falls from 1.2 at 4 % "
    "to 0.74 at 17.4 %, as Prague's rules give for marks at random; CUBIC's from 1.13 to 0.84",
    "f7-cubic": "two cases are beyond it, behind DualPI2: 90-10 at 120 Mbit/s and 5 ms, where the minimum window of two packets exceeds a Prague "
    "flow's share, and 9-1 at 1 Gbit/s and 20 ms (-0.12), where CUBIC should have 0.59 of Prague's rate and has 0.42",
    "s-fair": "with 1-1 behind PI2 Prague takes more than 120 s to its share at 50 ms, too",
    "s-drop": "with 1-1 a loss costs 2 to 6 % at 50 ms, as the queue makes up for it, and hardly a packet is lost alone at 100 ms; with 2-2 to "
    "25-25 it is 10 to 19 %, with 50-50 6 to 13 %",
    "c-slow": "T and latency count beside the RTT and the queue's delay, not beside the link's rate: the p99 at 40 Gbit/s is 0.86 to 0.96 of "
    "that at 1 Gbit/s with the same T and latency",
    "f8-err": "L stands at its step: Prague is marked with 1.0 to 6.8 times 2 p' (in Fig. 6's mixes 1.0 times), so p' is lower than what the "
    "coupling takes it for, and CUBIC gets more",
    "f8-l2": "more flows have a smaller share each, and two packets in flight per flow exceed the BDP: as f8-l says, but not as f8-l2",
}
"""Causes of what is not found, with the numbers of the run that the README records."""
_LISTED = (
    PaperClaim(
        "starve",
        "I",
        "scalable flows starve classic ones in a shared queue",
        "aqm.queues",
        whole(of_mixes.classic_flows_starve),
    ),
    PaperClaim(
        "hw",
        "III-A",
        "the PI controller's shifts exceed one MAU; no read and write of a register",
        cannot="about the Tofino switch; test_tofino_form.py holds our programs to the rule of registers",
    ),
    PaperClaim(
        "f4-few",
        "Fig. 4",
        "PI2, 120 Mbit/s, 1-1 and 2-2: Prague has more",
        "aqm.phases",
        whole(of_phases.prague_has_more_with_few_flows),
    ),
    PaperClaim(
        "f4-trend",
        "Fig. 4",
        "PI2: fairness grows with the number of flows, at either RTT",
        "aqm.phases",
        whole(of_phases.fairness_grows),
    ),
    PaperClaim(
        "f4-steady",
        "Fig. 4",
        "PI2: Prague is steadier than CUBIC",
        "aqm.phases",
        whole(of_phases.prague_is_steadier),
    ),
    PaperClaim(
        "f4-target",
        "Fig. 4",
        "PI2: off target only at 50 ms with 10-10 and 25-25, above it",
        "aqm.phases",
        whole(of_phases.off_target_only_far),
    ),
    PaperClaim("f4-p", "Fig. 4", "PI2: p' as in the PI2 paper", cannot="a graph without numbers"),
    PaperClaim(
        "f4-p50",
        "Fig. 4",
        "PI2: at 50 ms a higher p' meets the larger delay",
        "aqm.phases",
        whole(of_phases.p_is_higher_at_50_ms),
    ),
    PaperClaim(
        "f4-ramp",
        "Fig. 4",
        "PI2, 1 Gbit/s, few flows: goodput rises slowly, more slowly at 50 ms and for Prague",
        "aqm.phases",
        whole(of_phases.ramps_are_slow),
    ),
    PaperClaim(
        "f4-all",
        "Fig. 4",
        "PI2: delays are controlled in all cases",
        "aqm.phases",
        whole(controlled("pi2")),
    ),
    PaperClaim(
        "f5-like",
        "Fig. 5",
        "DualPI2, 120 Mbit/s: goodput, delay and p' like PI2's",
        "aqm.phases",
        whole(of_phases.dualpi2_is_like_pi2),
    ),
    PaperClaim(
        "f5-fair",
        "Fig. 5",
        "DualPI2, 120 Mbit/s: Prague and CUBIC are fair",
        "aqm.phases",
        whole(of_phases.dualpi2_is_fair),
    ),
    PaperClaim(
        "f5-late",
        "Fig. 5",
        "DualPI2: C's delay is slightly higher in the last two phases",
        "aqm.phases",
        whole(of_phases.classic_delay_is_higher),
    ),
    PaperClaim(
        "f5-more",
        "Fig. 5",
        "1 Gbit/s: Prague has more than behind PI2",
        "aqm.phases",
        whole(of_phases.prague_has_more_than_behind_pi2),
    ),
    PaperClaim(
        "f5-sub",
        "Fig. 5",
        "1 Gbit/s: L's delay is below 1 ms",
        "aqm.phases",
        whole(of_phases.l_is_below_1_ms),
    ),
    PaperClaim(
        "f5-fast",
        "Fig. 5, IV-2",
        "1 Gbit/s: Prague's goodput rises faster",
        "aqm.phases",
        whole(of_phases.prague_rises_faster),
    ),
    PaperClaim(
        "f5-dev",
        "Fig. 5",
        "1 Gbit/s: the delay varies more in the last two phases, but is controlled",
        "aqm.phases",
        whole(of_phases.delay_varies_more),
    ),
    PaperClaim(
        "f6-err",
        "Fig. 6",
        "the mean absolute error is below 0.5",
        "aqm.symmetric",
        whole(of_mixes.mean_error_is_below_half),
    ),
    PaperClaim(
        "f6-rtt",
        "Fig. 6",
        "larger errors only at 50 and 100 ms",
        "aqm.symmetric",
        whole(of_mixes.errors_grow_with_rtt),
    ),
    PaperClaim(
        "f6-slow",
        "Fig. 6",
        "1 Gbit/s, few flows, long RTTs: Prague starts slowly",
        "aqm.symmetric",
        whole(of_mixes.prague_starts_slowly),
    ),
    PaperClaim(
        "f6-ctl",
        "Fig. 6",
        "delays are controlled in all cases",
        "aqm.symmetric",
        whole(controlled("pi2", "dualpi2")),
    ),
    PaperClaim(
        "f6-more",
        "Fig. 6",
        "C's delay is somewhat above PI2's, L's almost 0",
        "aqm.symmetric",
        whole(of_mixes.classic_delay_is_longer),
    ),
    PaperClaim(
        "f7-share",
        "Fig. 7",
        "Prague has more in most cases, above all with DualPI2",
        "aqm.classic_heavy",
        whole(of_mixes.prague_has_more),
    ),
    PaperClaim(
        "f7-cubic",
        "Fig. 7",
        "CUBIC's error is about 0",
        "aqm.classic_heavy",
        whole(of_mixes.cubic_has_its_share),
    ),
    PaperClaim(
        "f7-delay",
        "Fig. 7",
        "C is off target only at 50 and 100 ms; L's delay is negligible",
        "aqm.classic_heavy",
        whole(of_mixes.off_target_only_far),
    ),
    PaperClaim(
        "f8-err",
        "Fig. 8",
        "the mean error is small",
        "aqm.l4s_heavy",
        whole(of_mixes.mean_errors_are_small),
    ),
    PaperClaim(
        "f8-max",
        "Fig. 8",
        "the largest error: CUBIC at 1 Gbit/s, 100 ms, 1-9",
        "aqm.l4s_heavy",
        whole(of_mixes.largest_error),
    ),
    PaperClaim(
        "f8-l",
        "Fig. 8",
        "DualPI2: L's delay is large where the RTT is short and a flow's share small",
        "aqm.l4s_heavy",
        whole(of_mixes.l_is_long_at_short_rtts),
    ),
    PaperClaim(
        "f8-l2",
        "Fig. 8",
        "with more flows L's delay is no longer large",
        "aqm.l4s_heavy",
        whole(of_mixes.l_falls_with_flows),
    ),
    PaperClaim(
        "f8-l3",
        "Fig. 8",
        "with a longer RTT L's delay is no longer large",
        "aqm.l4s_heavy",
        whole(of_mixes.l_falls_with_rtt),
    ),
    PaperClaim(
        "s-fair", "IV-2", "1 Gbit/s: fair but at 100 ms", "aqm.symmetric", whole(of_mixes.fair_at_1_gbps)
    ),
    PaperClaim(
        "s-lit",
        "IV-2",
        "low speeds as in the literature",
        cannot="the paper does not give the literature's figures",
    ),
    PaperClaim(
        "s-drop",
        "IV-2",
        "1 Gbit/s, long RTTs: a single drop costs much goodput",
        "aqm.symmetric",
        whole(of_mixes.a_loss_costs_much),
    ),
    PaperClaim(
        "c-slow",
        "VI",
        "the loop may be too slow at 40 to 100 Gbit/s",
        "aqm.period",
        of_mixes.loop_is_too_slow,
    ),
    PaperClaim(
        "abs", "abstract, VI", "both let CUBIC and Prague coexist", cannot="a summary of the other claims"
    ),
)
CLAIMS = tuple(
    replace(claim, why=f"in the recorded run {WHY[claim.id]}" if claim.id in WHY else None)
    for claim in _LISTED
)
