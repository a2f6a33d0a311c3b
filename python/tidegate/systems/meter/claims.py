"""The claims of the paper (wang2020), and which runs judge them; how is in `judges.py`."""

from __future__ import annotations

from tidegate.papers import PaperClaim
from tidegate.systems.meter.judges import (
    PAPERS,
    alike,
    all_within,
    at,
    at_one_round_trip,
    both,
    compared,
    fewer_timeouts_and_drops,
    like_a_plain_bucket,
    median_within,
    most_within_5_percent,
    show_at,
    show_within_5_percent,
    waiting_for_timeouts,
    worst_within,
)

PAPER = (
    'S.-Y. Wang, H.-W. Hu, Y.-B. Lin, "Design and Implementation of TCP-Friendly Meters in P4 Switches", '
    "IEEE/ACM Transactions on Networking 28(4), 2020"
)
FAR_BELOW = all_within(-1.0, -0.5)
"""The paper gives no number; half of the target is a bound of ours."""

CLAIMS = (
    PaperClaim(
        "C1",
        "abstract, I",
        "TCP has about 10 % of its rate behind Netgear's meter",
        "meter.rates",
        like_a_plain_bucket(median_within(-0.95, -0.85)),
        black_box=True,
    ),
    PaperClaim(
        "C2",
        "I",
        "UDP is very close to the rate behind the meters of three switches",
        cannot="no experiment varies it",
    ),
    PaperClaim(
        "C3",
        "I, V-A",
        "a bucket of less than 128 KB gives TCP less (Netgear)",
        cannot="no experiment varies it",
    ),
    PaperClaim(
        "C4",
        "I",
        "the meters of the three switches are about alike",
        cannot="they are black boxes, of which a run has one model; C6 contradicts it",
    ),
    PaperClaim(
        "C5",
        "Fig. 10",
        "Netgear: -85 to -90 % at 100 to 800 Mbit/s",
        "meter.rates",
        like_a_plain_bucket(all_within(-0.90, -0.85)),
        black_box=True,
    ),
    PaperClaim(
        "C6",
        "Fig. 10",
        "Edge-Core: -42 to -83 %",
        "meter.rates",
        like_a_plain_bucket(all_within(-0.83, -0.42)),
        black_box=True,
    ),
    PaperClaim(
        "C7",
        "Fig. 10",
        "Tofino's RFC 2698 meter: -78 to -90 %",
        "meter.rates",
        like_a_plain_bucket(all_within(-0.90, -0.78)),
        black_box=True,
    ),
    PaperClaim(
        "C8",
        "Fig. 10",
        "the paper's meter: -2 to -9 % at 100 to 800 Mbit/s",
        "meter.rates",
        at_one_round_trip(PAPERS, all_within(-0.09, -0.02)),
    ),
    PaperClaim(
        "C9",
        "abstract, V-A, VII",
        "the paper's meter is within 5 % at most rates",
        "meter.rates",
        at_one_round_trip(PAPERS, most_within_5_percent, show_within_5_percent),
    ),
    PaperClaim(
        "C10",
        "abstract, V-A, VII",
        "almost 85 points of the rate more than other meters",
        "meter.rates",
        compared(PAPERS, "plain", lambda gained: 0.75 <= max(gained.values()) <= 0.95),
        black_box=True,
    ),
    PaperClaim(
        "C11",
        "VII",
        "errors of other meters of up to -90 %",
        "meter.rates",
        like_a_plain_bucket(worst_within(-0.95, -0.85)),
        black_box=True,
    ),
    PaperClaim(
        "C12",
        "Figs. 11, 12",
        "Exp. 0, the paper's bare meter: far below the rate",
        "meter.ablation",
        at_one_round_trip("plain", FAR_BELOW),
    ),
    PaperClaim(
        "C13",
        "V-B",
        "Exp. 1, RED_ECN: near the rate at 800 Mbit/s, not at 100",
        "meter.ablation",
        at_one_round_trip("red_ecn", both(at(800, -0.10), at(100, -1.0, -0.10)), show_at(100, 800), ip=False),
    ),
    PaperClaim(
        "C14",
        "V-B, Fig. 12",
        "Exp. 2, controller: -20 % at 100 Mbit/s, near at 800",
        "meter.ablation",
        at_one_round_trip(
            "controller", both(at(100, -0.25, -0.15), at(800, -0.10)), show_at(100, 800), ip=False
        ),
    ),
    PaperClaim(
        "C15",
        "V-B",
        "Exp. 3, both: -10 % at 100 Mbit/s",
        "meter.ablation",
        at_one_round_trip(PAPERS, at(100, -0.15, -0.05), show_at(100), ip=False),
    ),
    PaperClaim(
        "C16",
        "V-B",
        "at 100 Mbit/s RED_ECN improves -20 % to -10 %",
        "meter.ablation",
        compared(PAPERS, "controller", at(100, 0.05), show_at(100)),
    ),
    PaperClaim(
        "C17",
        "IV-C, V-B",
        "RED_ECN avoids drops and timeouts; without the controller the rate is always below the target",
        "meter.ablation",
        fewer_timeouts_and_drops,
    ),
    PaperClaim(
        "C18",
        "V-B",
        "few packets per RTT: timeouts in place of fast retransmits",
        "meter.ablation",
        waiting_for_timeouts,
    ),
    PaperClaim("C19", "Fig. 13", "flows of 400 Mbit/s are about alike, however many", "meter.flows", alike),
    PaperClaim(
        "C20",
        "Figs. 14-16",
        "other meters: far below the rate",
        "meter.flows",
        like_a_plain_bucket(FAR_BELOW),
        black_box=True,
    ),
    PaperClaim(
        "C21",
        "Figs. 17, 21",
        "near the rates of 100 to 400, and well at 400 to 700 Mbit/s",
        "meter.targets",
        at_one_round_trip(PAPERS, all_within(-0.10, 0.0)),
    ),
    PaperClaim(
        "C22",
        "V-C",
        "Edge-Core and Tofino are alike at 400 to 700 Mbit/s",
        cannot="they are black boxes, of which a run has one model; the paper does not show it",
    ),
    PaperClaim(
        "C23",
        "IV-A",
        "128 tokens a timer packet balance bursts and cost: more in one are added in bursts",
        cannot="no experiment varies it",
    ),
    PaperClaim(
        "C24",
        "V-A",
        "Kp alone is near but restless, Ki calms, Kd makes it worse",
        cannot="no experiment varies it",
    ),
    PaperClaim(
        "C25",
        "IV-B",
        "with the second chance marked packets pass sooner than others",
        cannot="no experiment varies it",
    ),
    PaperClaim(
        "C26",
        "IV-B, VI",
        "an averaged level and a finer threshold would be better",
        cannot="no experiment varies it",
    ),
    PaperClaim(
        "C27",
        "III, V",
        "line rate at 100 Gbit/s",
        cannot="a claim about the Tofino switch, which a simulation cannot show",
    ),
)
