"""The claims of the paper (wang2020), and which runs judge them; how is in `judges.py` and `judges_settings.py`."""

from __future__ import annotations

from tidegate.papers import PaperClaim
from tidegate.systems.meter.judges import (
    ALIKE,
    DIFFERENT,
    PAPERS,
    PARTS_RATES,
    RATES,
    alike,
    all_within,
    at,
    at_all,
    at_one_round_trip,
    both,
    compared,
    fewer_timeouts_and_drops,
    like_a_plain_bucket,
    median_within,
    most_within_5_percent,
    of_sets,
    show_at,
    show_within_5_percent,
    udp_near_its_rate,
    waiting_for_timeouts,
    worst_within,
)
from tidegate.systems.meter.judges_settings import (
    averaged_level,
    derivative_harms,
    finer_threshold,
    integral_calms,
    marked_packets_pass,
    other_controls,
    proportional_alone,
    smaller_buckets,
    tokens_balance,
)

PAPER = (
    'S.-Y. Wang, H.-W. Hu, Y.-B. Lin, "Design and Implementation of TCP-Friendly Meters in P4 Switches", '
    "IEEE/ACM Transactions on Networking 28(4), 2020"
)
CHAOTIC = (
    "a plain bucket is chaotic where two packets per RTT exceed the rate: in the recorded runs some rates have -98 % at an RTT at which "
    "others have -5 %"
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
        why=CHAOTIC,
    ),
    PaperClaim(
        "C2",
        "I",
        "UDP is very close to the rate behind the meters of three switches",
        "meter.udp_near",
        udp_near_its_rate,
        black_box=True,
    ),
    PaperClaim(
        "C3",
        "I, V-A",
        "a bucket of less than 128 KB gives TCP less (Netgear)",
        "meter.buckets",
        smaller_buckets,
        black_box=True,
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
        like_a_plain_bucket(at_all(RATES, all_within(-0.90, -0.85))),
        black_box=True,
        why=CHAOTIC,
    ),
    PaperClaim(
        "C6",
        "Fig. 10",
        "Edge-Core: -42 to -83 %",
        "meter.rates",
        like_a_plain_bucket(at_all(RATES, all_within(-0.83, -0.42))),
        black_box=True,
        why=CHAOTIC,
    ),
    PaperClaim(
        "C7",
        "Fig. 10",
        "Tofino's RFC 2698 meter: -78 to -90 %",
        "meter.rates",
        like_a_plain_bucket(at_all(RATES, all_within(-0.90, -0.78)), nearer="rfc2698"),
        black_box=True,
        why=CHAOTIC,
    ),
    PaperClaim(
        "C8",
        "Fig. 10",
        "the paper's meter: -2 to -9 % at 100 to 800 Mbit/s",
        "meter.rates",
        at_one_round_trip(PAPERS, at_all(RATES, all_within(-0.09, -0.02))),
    ),
    PaperClaim(
        "C9",
        "abstract, V-A, VII",
        "the paper's meter is within 5 % at most rates",
        "meter.rates",
        at_one_round_trip(PAPERS, at_all(RATES, most_within_5_percent), show_within_5_percent),
        why=(
            "a meter of IP bytes ends at -3.5 % of goodput at an MTU of 1500; in the recorded runs the minute that the integral takes "
            "costs 1 to 5 points more, and in IP bytes 8 of 8 rates are within 5 % at 0.1 and 0.5 ms, as is goodput at 0.5 ms with an "
            "MTU of 9000"
        ),
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
        why=CHAOTIC,
    ),
    PaperClaim(
        "C12",
        "Figs. 11, 12",
        "Exp. 0, the paper's bare meter: far below the rate",
        "meter.ablation",
        at_one_round_trip("plain", at_all(PARTS_RATES, FAR_BELOW)),
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
        why=(
            "in the recorded runs, at 0.1 and 0.03 ms, the window with the marks is one packet, after a timeout, for 41 to 64 % of the "
            "time; with the controller alone it stays at two packets, and losses are repaired without a timeout"
        ),
    ),
    PaperClaim(
        "C17",
        "IV-C, V-B",
        "RED_ECN avoids drops and timeouts; without the controller the rate stays below the target",
        "meter.ablation",
        fewer_timeouts_and_drops,
        why="in the recorded run RED_ECN avoids drops, but beside the controller it causes timeouts, as in C16",
    ),
    PaperClaim(
        "C18",
        "V-B",
        "few packets per RTT: timeouts in place of fast retransmits",
        "meter.ablation",
        waiting_for_timeouts,
    ),
    PaperClaim(
        "C19",
        "Fig. 13",
        "flows of 400 Mbit/s are about alike, however many",
        "meter.flows",
        of_sets(PAPERS, ALIKE, alike),
    ),
    PaperClaim(
        "C20a",
        "Figs. 14-16",
        "other meters: far below the rate",
        "meter.flows",
        of_sets("plain", ALIKE, like_a_plain_bucket(FAR_BELOW)),
        black_box=True,
    ),
    PaperClaim(
        "C20b",
        "Figs. 18-20, 22",
        "other meters, four targets: far below the rates",
        "meter.targets",
        of_sets("plain", DIFFERENT, like_a_plain_bucket(FAR_BELOW)),
        black_box=True,
        why=CHAOTIC,
    ),
    PaperClaim(
        "C21",
        "Figs. 17, 21",
        "near the rates of 100 to 400, and well at 400 to 700 Mbit/s",
        "meter.targets",
        of_sets(PAPERS, DIFFERENT, at_one_round_trip(PAPERS, all_within(-0.10, 0.0))),
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
        "128 tokens a timer packet are few enough: goodput is that of a continuous refill, and with many more it is not",
        "meter.refill",
        tokens_balance,
        published="128 tokens a timer packet balance bursts and cost: more in one are added in bursts",
    ),
    PaperClaim(
        "C24a",
        "V-A",
        "the greater Kp alone comes near the rate, but is restless",
        "meter.tuning",
        proportional_alone,
    ),
    PaperClaim(
        "C24b",
        "V-A",
        "Ki calms the rate",
        "meter.tuning",
        integral_calms,
        why=(
            "in the recorded run the rate is calm at 1 ms with the paper's Kp alone; at 0.1 ms and 100 Mbit/s it is bursts between some "
            "450 timeouts with each Ki"
        ),
    ),
    PaperClaim("C24c", "V-A", "Kd above 0 makes it worse", "meter.tuning", derivative_harms),
    PaperClaim(
        "C25",
        "IV-B",
        "with the second chance marked packets pass sooner than others",
        "meter.second_chance",
        marked_packets_pass,
    ),
    PaperClaim(
        "C26a",
        "IV-B",
        "an averaged level may be better than the present one",
        "meter.marking",
        averaged_level,
        why=(
            "an average follows late, so marks come after the bucket is empty: in the recorded run 1.6 to 4.6 times the drops at 1 ms; "
            "at 0.1 ms two packets per RTT exceed its rate of 100 Mbit/s, and no marks change that"
        ),
    ),
    PaperClaim(
        "C26b",
        "VI",
        "a threshold that is no power of 2 may be better",
        "meter.marking",
        finer_threshold,
        why=(
            "in the recorded run the lower the threshold the nearer at 1 ms, and the lowest, 1/8, is a power of 2; at 0.1 ms all are "
            "within a point"
        ),
    ),
    PaperClaim(
        "C26c",
        "VI",
        "other congestion controls may need other values",
        "meter.marking",
        other_controls,
        why=(
            "in the recorded run Reno, BBR and DCTCP with the paper's values are at 1 ms at the most that goodput can be; at 0.1 ms other "
            "values are 0.1 to 0.9 points nearer"
        ),
    ),
    PaperClaim(
        "C27",
        "III, V",
        "line rate at 100 Gbit/s",
        cannot="a claim about the Tofino switch, which a simulation cannot show",
    ),
)
