"""What single judges say of rows: bounds with two sides, each part of a statement, causes and what holds by construction."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tidegate import systems
from tidegate.claims import Row
from tidegate.papers import Finding, Missing, papers
from tidegate.systems.meter.experiments.rates import _plain_claims
from tidegate.systems.stamping.experiments.constants import LABELS, Setting
from tidegate.systems.stamping.experiments.constants import _claims as claims_of_constants


def judged(system: str, id: str, rows: list[Row], **parameters: Any) -> Finding:
    """What the judge of one claim says of these rows."""
    (claim,) = [claim for claim in papers()[system][1] if claim.id == id]
    assert claim.judge is not None
    return claim.judge(rows, parameters)


@pytest.mark.parametrize(("alone", "found"), [(95.0, True), (80.0, False)])
def test_a_udp_flow_alone_has_to_fill_the_link(alone: float, found: bool) -> None:
    row: Row = {"scheme": "guarantee", "jain": 0.99, "alarms": None}
    rows: list[Row] = [{**row, "phase": "0 TCP flows", "udp_mbps": alone, "tcp_mbps": 0.0}]
    rows += [
        {**row, "phase": phase, "udp_mbps": 30.0, "tcp_mbps": 66.0}
        for phase in ("1 TCP flow", "2 TCP flows", "3 TCP flows")
    ]
    assert judged("separation", "C13", rows).found == found


@pytest.mark.parametrize(("one", "found"), [(38.0, True), (22.0, False)])
def test_bufferbloat_is_mitigated_beside_one_queue_of_as_much(one: float, found: bool) -> None:
    """A round trip below the threshold is none the less not mitigated where one queue of 1 BDP is as short, however long that of 4 BDP."""
    row: Row = {"control": "bbr", "rtt_1_before_ms_p50": 20.0, "limit_ms": 30.0}
    rows: list[Row] = [
        {**row, "scheme": "threshold", "rtt_1_after_ms_p95": 21.5},
        {**row, "scheme": "one-queue", "rtt_1_after_ms_p95": 98.0},
    ]
    with pytest.raises(Missing, match="one-bdp with bbr"):
        judged("separation", "C17", rows)
    rows.append({**row, "scheme": "one-bdp", "rtt_1_after_ms_p95": one})
    assert judged("separation", "C17", rows).found == found


def test_a_run_without_a_udp_flow_above_the_threshold_cannot_tell_of_abuses() -> None:
    row: Row = {"seed": 1, "scheme": "cap", "phase": "0 TCP flows", "alarms": None, "detected_s": None}
    fair: Row = {**row, "udp_part": 0.24, "phase": "3 TCP flows", "alarms": 0}
    with pytest.raises(Missing, match="no UDP flow above 40% of the link"):
        judged("separation", "C18", [{**row, "udp_part": 0.3}, fair])
    assert not judged("separation", "C18", [{**row, "udp_part": 1.2}, fair]).found
    assert judged("separation", "C18", [{**row, "udp_part": 1.2, "detected_s": 0.5}, fair]).found


def test_spare_bandwidth_is_judged_with_each_transport() -> None:
    phases = ("1 alone", "2 joins", "2 degraded", "1 degraded", "3 joins", "3 degraded", "3 leaves")

    def rows(control: str, part: float) -> list[Row]:
        flows = {f"flow_{flow}_mbps": 100 * part for flow in (1, 2, 3)}
        flows |= {f"fair_{flow}_mbps": 100.0 for flow in (1, 2, 3)}
        return [{"scheme": "guarantee", "control": control, "phase": phase, **flows} for phase in phases]

    with pytest.raises(Missing, match="CUBIC alone"):
        judged("separation", "C16", rows("cubic", 1.0))
    assert judged("separation", "C16", rows("cubic", 1.0) + rows("bbr", 0.95)).found
    assert not judged("separation", "C16", rows("cubic", 1.0) + rows("bbr", 0.85)).found
    measured = judged("separation", "C2", rows("cubic", 0.75), rate_mbps=100.0).measured
    assert measured.startswith("75% of the link; by construction: flow 2 is degraded so far that 100%")


def test_many_tokens_at_once_are_judged_by_the_most() -> None:
    """A plain bucket is chaotic: one cell between that is off is no burst."""

    def rows(errors: dict[int, float]) -> list[Row]:
        place: Row = {"base_rtt_ms": 1.0, "target_mbps": 100, "timer_packets_per_s": 97656.0}
        return [{**place, "tokens": number, "goodput_error": error} for number, error in errors.items()]

    between = judged("meter", "C23", rows({0: -0.04, 128: -0.04, 8192: -0.11, 65536: -0.04}), duration_s=40)
    assert not between.found
    most = judged("meter", "C23", rows({0: -0.04, 128: -0.04, 8192: -0.04, 65536: -0.2}), duration_s=40)
    assert (most.found, most.measured.endswith("runs of 40 s (the paper's means are of 180 s)")) == (
        True,
        True,
    )


def test_datagrams_of_a_short_run_say_how_short() -> None:
    rows: list[Row] = [
        {"scheme": "plain", "pattern": "constant", "offered": offered, "loss": 0.0}
        | {"goodput_error": -0.019, "relative_error": 0.0}
        for offered in (0.9, 1.1)
    ]
    finding = judged("meter", "C2", rows, duration_s=30)
    assert finding.found
    assert finding.measured.endswith("runs of 30 s (the paper's means are of 180 s)")


@pytest.mark.parametrize(("share", "found"), [(0.89, False), (0.9, True), (1.1, True), (1.11, False)])
def test_a_fair_share_has_two_sides(share: float, found: bool) -> None:
    rows = [{"signal": "max", "throughput_gbps": share, "of_fair": share}]
    assert judged("stamping", "C2", rows).found == found


@pytest.mark.parametrize(
    ("means", "tails", "why"),
    [
        ((800, 600, 450, 440), (2000, 1500, 1100, 1080), ""),
        # The mean rises beyond 4 bits.
        ((800, 600, 450, 490), (2000, 1500, 1100, 1080), "from 4 to 32 bits the mean changes by +8.9%"),
        # 4 bits are 5.2 % above 32: the bound is the same from either side.
        ((800, 600, 462, 439), (2000, 1500, 1100, 1080), "from 4 to 32 bits the mean changes by -5.0%"),
        # The tail still falls a lot.
        ((800, 600, 450, 440), (2000, 1500, 1100, 700), "from 4 to 32 bits the p95 changes by -36.4%"),
        ((800, 600, 450, 440), (1000, 1500, 1100, 1080), "the p95 does not fall with each step up to 4 bits"),
    ],
)
def test_a_few_bits_are_judged_by_mean_and_tail(means: Sequence[int], tails: Sequence[int], why: str) -> None:
    rows: list[Row] = [
        {"bins": "equal", "buffer_packets": 200, "bits": bits, "rtt_us_mean": mean, "rtt_us_p95": tail}
        for bits, mean, tail in zip((1, 2, 4, 32), means, tails, strict=True)
    ]
    finding = judged("stamping", "C15", rows)
    assert (finding.found, finding.why) == (not why, why)


def test_what_holds_by_construction_says_so() -> None:
    row = {"bins": "equal", "buffer_packets": 200, "rtt_us_mean": 490.0, "throughput_gbps": 89.0}
    rows: list[Row] = [
        {**row, "bits": bits, "field_share": 0.003, "counter_bits": 19, "rtt_us_p95": 1.0} for bits in (8, 32)
    ]
    for claim, said in (("C17", "by construction"), ("C20", "arithmetic"), ("C22", "arithmetic")):
        finding = judged("stamping", claim, rows)
        assert (finding.found, said in finding.measured) == (True, True)


def test_that_marked_packets_pass_is_by_construction() -> None:
    row: Row = {"kind": "tcp", "base_rtt_ms": 1.0, "target_mbps": 100, "ce_marks": 100, "spared": 5}
    row |= {"goodput_error": -0.04, "drops": 10}
    finding = judged(
        "meter", "C25", [{**row, "setting": f"second chance {on}"} for on in ("on", "off")], duration_s=180
    )
    assert (finding.found, "by construction" in finding.measured) == (True, True)


def test_noise_that_does_not_grow_says_where() -> None:
    rows: list[Row] = [
        {"signal": "max", "hops": hops, "noise_us_sum": noise, "noise_us_max": 1.0}
        for hops, noise in ((1, 0.0), (2, 13.0), (3, 12.0))
    ]
    finding = judged("stamping", "C8", rows)
    assert (finding.found, finding.why) == (False, "it does not grow from 2 to 3 queues")
    assert "that of the RTT is not computed" in finding.measured


def join_rows(scheme: str, setting: str = "wan", **columns: Sequence[float | Sequence[float]]) -> list[Row]:
    """A row for each period, with a column's values by period, or by period and flow."""
    rows: list[Row] = []
    for period in (1, 2, 3, 4):
        row: Row = {
            "scheme": scheme,
            "setting": setting,
            "period": period,
            "buffer_packets": 32,
            "control": "cubic",
        }
        row["receive_buffer_kib"] = 140 if scheme == "tcp-window" else 32768
        for name, values in columns.items():
            value = values[period - 1]
            if isinstance(value, Sequence):
                row |= {f"flow{flow}_{name}": one for flow, one in enumerate(value, 1)}
            else:
                row[name] = value
        rows.append(row)
    return rows


@pytest.mark.parametrize("times", [0.5, 0.8, 1.2, 1.5])
def test_regular_tcp_varies_as_much_as_published(times: float) -> None:
    """A TCP that varies less is not the paper's; of a paced flow less is better."""
    cells = [[32.32], [22.63, 30.08], [9.349, 10.90, 19.69], [7.806, 5.260, 6.447, 17.27]]
    rows = join_rows("tcp", cv_percent=[[times * one for one in cell] for cell in cells])
    for period in (1, 2, 3, 4):
        assert judged("pacing", f"T2.p{period}.tcp", rows).found == (0.75 <= times <= 1.25)
    paced = join_rows("fq", cv_percent=[[times * 28.4], [times * 4.3, times * 14.1], [1.0] * 3, [1.0] * 4])
    assert judged("pacing", "T2.p1.fq", paced).found == (times <= 1)


@pytest.mark.parametrize(("jain", "found"), [(0.991, False), (0.993, True), (0.995, True), (0.999, False)])
def test_regular_tcp_is_as_unfair_as_published(jain: float, found: bool) -> None:
    assert judged("pacing", "F.p2.tcp", join_rows("tcp", jain=[1.0, jain, jain, jain])).found == found
    assert judged("pacing", "F.p2.fq", join_rows("fq", jain=[1.0, 0.9997, 0.9997, 1.0])).found


def test_a_receive_buffer_is_said_to_be_fitted() -> None:
    finding = judged("pacing", "X0", join_rows("tcp-window", goodput_mbps=[33.6, 66.8, 95.0, 95.0]))
    assert (finding.found, "fitted" in finding.measured) == (True, True)


@pytest.mark.parametrize(("lan", "wan", "found"), [(0.99, 0.9, True), (0.9, 0.9, False), (0.9, 0.99, False)])
def test_a_longer_round_trip_makes_the_difference_larger(lan: float, wan: float, found: bool) -> None:
    rows = []
    for setting, part in (("lan", lan), ("wan", wan)):
        rows += join_rows("fq", setting, goodput_mbps=[95.0] * 4, jain=[1.0] * 4)
        rows += join_rows("tcp", setting, goodput_mbps=[95.0 * part] * 4, jain=[part] * 4)
    assert judged("pacing", "F6.def", rows).found == found


def test_htb_is_judged_where_it_was_run() -> None:
    rows = join_rows(
        "tcp", goodput_mbps=[33.0, 67.0, 88.0, 91.0], cv_percent=[[32.0], [22.0, 30.0], [9.0] * 3, [9.0] * 4]
    )
    rows += join_rows("fq", goodput_mbps=[66.0, 89.0, 93.0, 94.0])
    with pytest.raises(Missing, match="the run has no htb of cubic in period 2"):
        judged("pacing", "X2", rows)
    for last, sum_2, found in ((1.1, 93.0, True), (2.1, 80.0, False)):
        cells = [[8.0], [3.7, 3.0 if found else 31.0], [2.0] * 3, [1.0, 1.0, 1.0, last]]
        both = rows + join_rows("htb", goodput_mbps=[81.0, sum_2, 94.0, 95.0], cv_percent=cells)
        assert [judged("pacing", claim, both).found for claim in ("X2", "X4", "X5")] == [found] * 3


@pytest.mark.parametrize(("share", "found"), [(1.005, True), (0.985, False)])
def test_plain_routers_are_judged_by_shares(share: float, found: bool) -> None:
    rows: list[Row] = [
        {"routers": 0, "of_fair": 0.5},
        {"routers": 1, "of_fair": 1.0},
        {"routers": 2, "of_fair": share},
    ]
    assert judged("pacing", "A6", rows).found == found
    with pytest.raises(Missing, match="no plain routers"):
        judged("pacing", "A6", rows[:1])


def test_what_is_said_at_every_setting_is_ours() -> None:
    """The paper on stamping names no constants, and so not all of them."""
    setting = {name: getattr(Setting(), name) for name in LABELS}
    rows: list[Row] = [
        {**setting, "signal": s, "throughput_gbps": 1.0, "of_fair": 1.0} for s in ("rtt", "max")
    ]
    claims = claims_of_constants(rows)
    assert len(claims) == 3
    assert {(claim.of, claim.published) for claim in claims} == {("ours", None)}


def test_linux_figures_of_a_claim_are_those_of_the_page() -> None:
    page = (Path(systems.__file__).parent / "meter" / "README.md").read_text()
    (live,) = re.findall(r"\| 1 ms \| plain \| Linux \| (.*) \|\n", page)
    busy = sorted(float(part.removesuffix(" %")) for part in live.split(" | "))
    row: Row = {"target_mbps": 100, "relative_error": -0.1, "timeouts": None}
    (little,) = _plain_claims([row], "plain", "plain-1ms", 1, 1500)
    assert f"{busy[-1]:g} to {busy[0]:g} % on a busy machine" in little.statement
    quiet = re.search(
        r"On a quieter machine plain meters on Linux had (\S+), \S+\s+and (\S+) % at 1 ms", page
    )
    assert quiet is not None
    assert f"{quiet[1]} to {quiet[2]} % on a quieter one" in little.statement


@pytest.mark.parametrize(
    ("error", "often", "holds"), [(-0.6, 4.0, True), (-0.6, 1.0, False), (-0.1, 4.0, False)]
)
def test_the_mechanism_of_a_plain_meter_is_stated_as_it_is_judged(
    error: float, often: float, holds: bool
) -> None:
    row: Row = {"target_mbps": 100, "relative_error": error, "timeouts": 1, "timeouts_per_s": often}
    (mechanism,) = _plain_claims([row], "plain", "plain-0.1ms", 0.1, 1500)
    assert mechanism.holds == holds
    assert "if and only if" in mechanism.statement


def meter_cells(
    scheme: str,
    sets: Sequence[Sequence[int]],
    error: float = -0.05,
    rtt: float = 0.1,
    ip: float | None = None,
) -> list[Row]:
    """Rows of flows that run at once with these targets, all with one error of goodput, and `ip` of IP bytes."""
    return [
        {
            "case": f"{scheme}-{rtt:g}ms-{'-'.join(map(str, targets))}",
            "seed": 1,
            "scheme": scheme,
            "base_rtt_ms": rtt,
            "target_mbps": target,
            "flow": flow,
            "goodput_error": error,
            "relative_error": (1 + error) * 1500 / 1448 - 1 if ip is None else ip,
            "timeouts": 1 if scheme in ("plain", "controller") else 0,
            "drops": 1 if scheme in ("plain", "controller") else 0,
        }
        for targets in sets
        for flow, target in enumerate(targets)
    ]


ALIKE = [[400] * flows for flows in range(1, 5)]
DIFFERENT = [[100, 200, 300, 400], [400, 500, 600, 700]]
PARTS = [[rate] for rate in (100, 200, 400, 800)]


@pytest.mark.parametrize(
    ("claim", "scheme", "sets", "error"),
    [
        ("C12", "plain", PARTS, -0.8),
        ("C19", "paper-unbounded", ALIKE, -0.05),
        ("C20a", "plain", ALIKE, -0.8),
        ("C20b", "plain", DIFFERENT, -0.8),
        ("C21", "paper-unbounded", DIFFERENT, -0.05),
    ],
)
def test_a_claim_of_the_meter_needs_all_of_its_cells(
    claim: str, scheme: str, sets: list[list[int]], error: float
) -> None:
    assert judged("meter", claim, meter_cells(scheme, sets, error), duration_s=180).found
    for missing in range(len(sets)):
        here = [*sets[:missing], *sets[missing + 1 :]]
        with pytest.raises(Missing, match=r"targets? of"):
            judged("meter", claim, meter_cells(scheme, here, error), duration_s=180)
        # Another RTT does not make up for it, nor do other targets.
        there = meter_cells(scheme, [sets[missing], [50]], error, rtt=1.0)
        with pytest.raises(Missing, match=r"targets? of"):
            judged("meter", claim, meter_cells(scheme, here, error) + there, duration_s=180)
    other = meter_cells(scheme, [[50]], 0.5)
    assert judged("meter", claim, meter_cells(scheme, sets, error) + other, duration_s=180).found


def test_one_of_four_targets_that_is_near_its_rate_breaks_the_claim_of_other_meters() -> None:
    rows = meter_cells("plain", DIFFERENT, -0.8)
    assert judged("meter", "C20b", rows, duration_s=180).found
    rows[-1]["goodput_error"] = -0.04
    finding = judged("meter", "C20b", rows, duration_s=180)
    assert (finding.found, "-4.0 %" in finding.measured) == (False, True)


def test_flows_that_are_not_alike_are_found_out() -> None:
    rows = meter_cells("paper-unbounded", ALIKE)
    rows[-1]["goodput_error"] = -0.11
    assert not judged("meter", "C19", rows, duration_s=180).found


@pytest.mark.parametrize(
    ("ip", "found", "said"),
    [(-0.01, True, "in IP bytes throughout: yes"), (0.001, False, "in IP bytes throughout: no")],
)
def test_that_a_rate_is_below_its_target_is_judged_in_ip_bytes(ip: float, found: bool, said: str) -> None:
    """Goodput is 3.5 % below by construction."""
    rows = [
        row
        for scheme in ("plain", "red_ecn", "controller", "paper-unbounded")
        for row in meter_cells(scheme, PARTS, -0.034, ip=ip)
    ]
    finding = judged("meter", "C17", rows, duration_s=180)
    assert (finding.found, said in finding.measured) == (found, True)
    with pytest.raises(Missing, match=r"no target of 800 Mbit/s at 0\.1 ms"):
        judged("meter", "C17", [row for row in rows if row["target_mbps"] != 800], duration_s=180)
    with pytest.raises(Missing, match="have not the same rates and RTTs"):
        judged("meter", "C17", [*rows, *meter_cells("plain", PARTS, rtt=1.0)], duration_s=180)


def test_a_meter_of_rfc_2698_is_judged_by_its_kind_where_the_run_has_it() -> None:
    """C7; the other black boxes are judged by the plain bucket, whatever else the run has."""

    def cells(scheme: str, error: float) -> list[Row]:
        place: Row = {"scheme": scheme, "base_rtt_ms": 0.1, "seed": 1, "flow": 0, "relative_error": error}
        return [{**place, "target_mbps": rate, "goodput_error": error} for rate in range(100, 900, 100)]

    plain = judged("meter", "C7", cells("plain", -0.3), duration_s=180)
    assert not plain.found
    assert not plain.measured.startswith("by ")
    both = [*cells("plain", -0.3), *cells("rfc2698", -0.85)]
    of_its_kind = judged("meter", "C7", both, duration_s=180)
    assert of_its_kind.found
    assert of_its_kind.measured.startswith("by rfc2698: ")
    assert not judged("meter", "C6", both, duration_s=180).found
