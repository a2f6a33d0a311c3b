"""`fair.p4`: what passes in all whoever sends, who gets how much of it, and whom it tells to slow down."""

from __future__ import annotations

import itertools
import random
import struct
import zlib
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path

import polars as pl
import pytest
from hypothesis import Phase as Stage
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate.network import Network
from tidegate.systems.meter.fair import BEGIN, FairMeters, burst_bytes
from tidegate.systems.meter.fair_harness import MS, US, Fair, S, datagram, datagram6, segment
from tidegate.systems.meter.packet_harness import (
    CE,
    ECT0,
    ECT1,
    ENGINES,
    MAC,
    NOT_ECT,
    Engine,
    ecn_of,
    folded,
)
from tidegate.systems.meter.setup import program
from tidegate.systems.meter.tables import Meter
from tidegate.systems.register_accesses import accesses, arrays, operations, source

SOURCE = bytes([192, 0, 2, 1])
CODES = [NOT_ECT, ECT1, ECT0, CE]


@dataclass(frozen=True)
class Phase:
    """Packets of a flow, one after another."""

    flow: int
    gap_us: int
    length: int
    ecn: int
    count: int
    tcp: bool
    syn: bool


PHASES = st.lists(
    st.builds(
        Phase,
        flow=st.integers(0, 5) | st.integers(0, 63),
        gap_us=st.sampled_from([0, 1, 10, 100, 1_000, 10_000, 300_000, 2_000_000]),
        length=st.sampled_from([40, 300, 1500, 9000]),
        ecn=st.sampled_from(CODES),
        count=st.integers(1, 60),
        tcp=st.booleans(),
        syn=st.booleans(),
    ),
    min_size=1,
    max_size=12,
)
RATES = st.sampled_from([64_000, 1_000_000, 20_000_000, 1_000_000_000, 40_000_000_000])
BURSTS = st.sampled_from(["1 ms", "30 ms", "1 s", "4 s"])
QUEUES = st.sampled_from([8, 1024])
"""Fewer than there are flows, and so many that hardly two meet."""
CROWDS = st.builds(
    lambda phase, flows: [replace(phase, flow=flow) for flow in range(flows)],
    st.builds(
        Phase,
        flow=st.just(0),
        gap_us=st.sampled_from([0, 1, 10, 100, 1_000, 10_000]),
        length=st.sampled_from([40, 1500, 9000]),
        ecn=st.sampled_from(CODES),
        count=st.integers(1, 8),
        tcp=st.booleans(),
        syn=st.booleans(),
    ),
    st.integers(7, 64),
)
"""Up to 64 flows, each of which sends the same."""


def play(meter: Fair, phases: list[Phase], begin_us: int) -> list[tuple[int, int, bytes | None]]:
    """Time in us, length, and what left, of each packet."""
    now, out = begin_us, []
    for phase in phases:
        for number in range(phase.count):
            now += phase.gap_us
            if phase.tcp:
                packet = segment(
                    phase.flow, phase.length, phase.ecn, "S" if phase.syn and number == 0 else "A"
                )
            else:
                packet = datagram(phase.flow, phase.length, phase.ecn)
            out.append((now, phase.length, meter.send(now * US, packet)))
    return out


def most_in_excess(passed: list[tuple[int, int]], rate: int) -> float:
    """The largest of bytes(i..j) - rate * (t_j - t_i), by one pass. The switch's clock has whole microseconds."""
    most = lowest = total = 0.0
    begin = passed[0][0] if passed else 0
    for at, length in passed:
        lowest = min(lowest, total - rate / 8e6 * (at - begin))
        total += length
        most = max(most, total - rate / 8e6 * (at - begin) - lowest)
    return most


@pytest.mark.slow
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=80)
@given(
    rate=RATES,
    burst=BURSTS,
    queues=QUEUES,
    phases=PHASES | st.tuples(PHASES, CROWDS, PHASES).map(lambda parts: [*parts[0], *parts[1], *parts[2]]),
    begin=st.integers(0, 2**40),
)
def test_no_sender_gets_more_than_the_rate_and_the_burst(
    engine: Engine, rate: int, burst: str, queues: int, phases: list[Phase], begin: int
) -> None:
    meter = Fair(rate, engine, burst=burst, queues=queues)
    passed = [(at, length) for at, length, out in play(meter, phases, begin) if out is not None]
    assert most_in_excess(passed, rate) <= burst_bytes(rate, burst) + 1
    # Since the first packet, which finds it idle, less.
    total = 0
    for at, length in passed:
        total += length
        assert total - rate / 8e6 * (at - passed[0][0]) <= (1 - BEGIN) * burst_bytes(rate, burst) + 1


@st.composite
def hostile(draw: st.DrawFn) -> tuple[bytes, int]:
    """A frame to the customer in which all else is a lie: lengths, version, options, fragments, protocol, ports, flags; and its bytes of IP."""
    tag = draw(st.just(b"") | st.binary(min_size=2, max_size=2).map(lambda tag: b"\x81\x00" + tag))
    header = bytearray(draw(st.binary(min_size=20, max_size=20)))
    kind = b"\x08\x00"
    if draw(st.booleans()):
        header[0] = draw(st.sampled_from([0x45, 0x45, 0x40, 0x46, 0x4F, 0x60, 0x00]))
        header[2:4] = draw(st.sampled_from([b"\0\0", b"\0\x14", b"\0\x14", b"\xff\xff"]))
        header[6:8] = draw(st.sampled_from([b"\0\0", b"\x20\0", b"\0\1", b"\xff\xff"]))
        header[9] = draw(st.sampled_from([6, 17, 1, 4, 41, 50, 132, 255]))
        header[16] = 10
    else:
        kind = b"\x86\xdd"
        header += draw(st.binary(min_size=20, max_size=20))
        header[4:6] = draw(st.sampled_from([b"\0\0", b"\xff\xff", b"\0\x14"]))
        header[6] = draw(st.sampled_from([6, 17, 0, 43, 44, 59, 60, 41]))
        header[24] = 0xFD
    rest = draw(st.binary(max_size=24)).ljust(draw(st.sampled_from([0, 20, 500, 1460, 8960])), b"\0")
    frame = bytes.fromhex(MAC.replace(":", "")) + draw(st.binary(min_size=6, max_size=6)) + tag + kind
    return frame + header + rest, len(header) + len(rest)


TRAINS = st.lists(
    st.tuples(
        hostile(), st.sampled_from([0, 1, 10, 100, 1_000, 10_000, 300_000, 2_000_000]), st.integers(1, 60)
    ),
    min_size=1,
    max_size=12,
)


# What fails is not made smaller, which would take minutes.
@pytest.mark.parametrize("engine", ENGINES)
@settings(max_examples=25, deadline=None, phases=[Stage.reuse, Stage.generate])
@given(rate=RATES, burst=BURSTS | st.just("1 ms"), trains=TRAINS, begin=st.integers(0, 2**43))
def test_no_packet_that_lies_gets_more_than_the_rate_and_the_burst(
    engine: Engine, rate: int, burst: str, trains: list[tuple[tuple[bytes, int], int, int]], begin: int
) -> None:
    meter = Fair(rate, engine, burst=burst)
    before = meter.counts()
    now, passed, sent = begin, [], 0
    for (frame, length), gap_us, count in trains:
        for _ in range(count):
            now += gap_us
            sent += 1
            if meter.send(now * US, frame) is not None:
                passed.append((now, length))
    assert most_in_excess(passed, rate) <= burst_bytes(rate, burst) + 1
    # No one of them goes around the meter.
    after = meter.counts()
    assert after["passed"] - before["passed"] == len(passed)
    assert after["dropped"] - before["dropped"] == sent - len(passed)


@pytest.mark.slow
@settings(max_examples=60)
@given(rate=RATES, burst=BURSTS, phases=PHASES, begin=st.integers(0, 2**40))
def test_both_engines_agree(rate: int, burst: str, phases: list[Phase], begin: int) -> None:
    known = []
    for engine in ENGINES:
        meter = Fair(rate, engine, burst=burst)
        known.append((play(meter, phases, begin), list(meter.registers().values())))
    assert known[0] == known[1]


@pytest.mark.slow
@settings(max_examples=60)
@given(phases=PHASES)
def test_a_mark_makes_ect_ce_and_nothing_else(phases: list[Phase]) -> None:
    """RFC 3168 section 5, RFC 9331 section 4: packets leave as they came, but for CE in place of an ECT code point, with a right checksum."""
    meter = Fair("2 Mbit/s")
    now = 0
    for phase in phases:
        for _ in range(phase.count):
            now += phase.gap_us
            packet = segment(phase.flow, phase.length, phase.ecn)
            out = meter.send(now * US, packet)
            if out is None or out == packet:
                continue
            assert phase.ecn in (ECT0, ECT1)
            assert ecn_of(out) == CE
            assert folded(out[14:34]) == 0xFFFF
            assert (out[:15], out[16:24], out[26:]) == (packet[:15], packet[16:24], packet[26:])


def flood(
    meter: Fair, rates_mbps: list[float], seconds: float, *, length: int = 1000, ecn: int = NOT_ECT
) -> list[int]:
    """Bytes that pass of each flow; all send at constant rates, whatever happens, in a random phase."""
    draw = random.Random(1)
    gaps = [length * 8 / mbps for mbps in rates_mbps]
    arrivals = sorted(
        (draw.random() * gap + number * gap, flow)
        for flow, gap in enumerate(gaps)
        for number in range(int(seconds * 1e6 / gap))
    )
    passed = [0] * len(rates_mbps)
    for at, flow in arrivals:
        if meter.send(round(at) * US, datagram(flow, length, ecn)) is not None:
            passed[flow] += length
    return passed


@pytest.mark.parametrize("begin", [0, S // 2, 5 * S])
@pytest.mark.parametrize(("flows", "load"), [(1, 0.5), (1, 0.8), (1, 1.0), (2, 0.9), (2, 1.0), (5, 1.0)])
def test_datagrams_at_their_share_lose_nothing_from_the_first_on(flows: int, load: float, begin: int) -> None:
    """Not ECT, so that they would be told by a loss: some are there from the switch's first packet on, and after a pause they begin anew."""
    meter = Fair("12 Mbit/s", queues=1024)
    gap = round(MS * flows / load)
    for since in (begin, begin + 5 * S):
        for number in range(3 * S // gap):
            for flow in range(flows):
                meter.send(since + number * gap + flow * gap // flows, datagram(flow, 1500))
    counts = meter.counts()
    assert (counts["dropped"], counts["told"]) == (0, 0)
    assert counts["passed"] == 2 * (3 * S // gap) * flows


@pytest.mark.parametrize("ecn", CODES)
@pytest.mark.parametrize(
    ("rates", "shares"),
    [
        ([20], [10]),
        ([30, 30], [5, 5]),
        ([100, 6], [5, 5]),
        # Who asks for less gets it, and the others share the rest.
        ([30, 30, 2], [4, 4, 2]),
        ([1, 20], [1, 9]),
        ([3, 3], [3, 3]),
    ],
)
def test_floods_get_max_min_shares(rates: list[float], shares: list[float], ecn: int) -> None:
    passed = flood(Fair("10 Mbit/s", queues=1024), rates, 8, ecn=ecn)
    for got, share in zip(passed, shares, strict=True):
        # In the first second of all the burst passes, too.
        assert got * 8 / 8e6 == pytest.approx(share, rel=0.2)


def test_the_start_is_a_part_of_the_burst() -> None:
    meter = Fair("80 Mbit/s")
    passed = sum(
        1000 for number in range(20_000) if meter.send(number // 20 * US, datagram(0, 1000)) is not None
    )
    # 10 MB/s: 299 ms of it at most, and the rate for a millisecond. A flow's packets above sixteen times what is left are dropped.
    assert 2_400_000 <= passed <= (1 - BEGIN) * (1 << 20) * 10 + 10_000


@pytest.mark.parametrize("begin_ms", [20, 50, 100, 300])
def test_who_fills_the_peak_leaves_room_in_it_for_others(begin_ms: int) -> None:
    meter = Fair("12 Mbit/s", queues=1024)
    # Half of the rate, until the level that a meter begins with is gone.
    for number in range(1_000):
        meter.send(number * 2 * MS, segment(0, 1500))
    passed = sent = flooded = 0
    for number in range(5_000):
        at = 2 * S + number * 100 * US
        flooded += meter.send(at, segment(0, 1500)) is None
        if number >= begin_ms * 10 and number % 50 == 0:
            sent += 1
            passed += meter.send(at, segment(1, 1500)) is not None
    assert flooded > 3_000
    assert passed == sent


def fill(
    meter: Fair,
    begin_ms: int,
    end_ms: int,
    *,
    flow: int = 0,
    ecn: int = ECT0,
    load: float = 1.3,
    rtt_ms: int = 10,
) -> list[int]:
    """A TCP flow through 12 Mbit/s, 1500 bytes a millisecond at the rate, that does not respond; times of marks or drops in ms."""
    told = []
    if begin_ms == 0:
        meter.send(0, segment(flow, 60, ecn, "S"))
    for number in range(int((end_ms - begin_ms) * load)):
        at = (begin_ms + rtt_ms) * MS + int(number / load * MS)
        out = meter.send(at, segment(flow, 1500, ecn))
        if out is None or ecn_of(out) == CE != ecn:
            told.append(at // MS)
    return told


def test_a_flow_is_told_once_in_some_round_trips_and_all_its_packets_are_marked() -> None:
    meter = Fair("12 Mbit/s")
    # The total is full after 0.9 s.
    told = fill(meter, 0, 800)
    assert told
    runs: list[list[int]] = []
    for at in told:
        if runs and at - runs[-1][-1] <= 2:
            runs[-1].append(at)
        else:
            runs.append([at])
    # A round trip of 10 ms at 1.3 packets a millisecond; then a window without.
    assert all(run[-1] - run[0] <= 11 for run in runs)
    assert all(len(run) >= 10 for run in runs)
    assert min(later[0] - run[-1] for run, later in itertools.pairwise(runs)) >= 9


def test_a_flow_that_is_not_ect_loses_one_packet_each_time() -> None:
    marked = Fair("12 Mbit/s")
    fill(marked, 0, 800)
    before = marked.counts()
    dropped = Fair("12 Mbit/s")
    fill(dropped, 0, 800, ecn=NOT_ECT)
    counts = dropped.counts()
    assert (before["told"], before["dropped"]) == (0, 0)
    assert before["marked"] > 0
    assert counts["marked"] == 0
    assert 0 < counts["told"] == counts["dropped"] <= before["marked"] / 8


def test_a_flow_at_its_rate_is_not_told() -> None:
    meter = Fair("12 Mbit/s")
    # Once its slow start was ended.
    fill(meter, 0, 300, load=1.0)
    assert fill(meter, 300, 4_000, load=0.99) == []


def test_the_round_trip_is_that_from_the_syn_to_the_next_packet() -> None:
    meter = Fair("12 Mbit/s")
    for begin, gap, expected in ((0, 7_000, 7_000), (S, 10, 50), (2 * S, 900_000, 400_000)):
        meter.send(begin, segment(1, 60, ECT0, "S"))
        meter.send(begin + gap * US, segment(1, 1500, ECT0))
        (state,) = [cell for cell in meter.registers()["state"] if (cell >> 32) & 0x7FFFF]
        assert (state >> 32) & 0x7FFFF == expected


def test_a_repeated_syn_measures_from_the_last_one() -> None:
    meter = Fair("12 Mbit/s")
    meter.send(0, segment(1, 60, ECT0, "S"))
    meter.send(S, segment(1, 60, ECT0, "S"))
    meter.send(S + 20 * MS, segment(1, 1500, ECT0))
    (state,) = [cell for cell in meter.registers()["state"] if cell]
    assert (state >> 32) & 0x7FFFF == 20_000


def stalls_of(meter: Fair) -> tuple[list[int], int]:
    """How long a flow of twice 12 Mbit/s is held back each time, at a round trip of 0.3 ms, in which two packets are too many:
    they take 2 ms. And how many of its packets pass in 6 s."""
    meter.send(0, segment(0, 60, NOT_ECT, "S"))
    times = (300 * US + number * 500 * US for number in range(12_000))
    passed = [at for at in times if meter.send(at, segment(0, 1500)) is not None]
    return [later - at for at, later in itertools.pairwise(passed) if later - at > 20 * MS], len(passed)


def levels_ms(meter: Fair, now: int) -> tuple[float, list[float]]:
    """The levels of the meter's total and of its queues that are not empty."""
    registers, ticks = meter.registers(), now // US << 16
    levels = [(cell - ticks) / 65_536e3 for cell in (*registers["total"], *registers["finish"])]
    return levels[0], [level for level in levels[1:] if level > 0]


def test_queues_of_flows_grow_as_the_total_does() -> None:
    """A total below half of its limit gives flows more than their shares, but not before their queues are as long as it is."""
    meter = Fair("12 Mbit/s")
    for flow in range(2):
        meter.send(0, segment(flow, 1500, ECT0))
    # The level that a meter begins with has passed by then; each flow sends 0.6 times the rate.
    for burst in range(300):
        at = 900 * MS + burst * 5 * MS
        for _ in range(3):
            for flow in range(2):
                meter.send(at, segment(flow, 1500, ECT0))
        total, queues = levels_ms(meter, at)
        # A packet is 2 ms of a flow's share.
        assert len(queues) == 2
        assert all(abs(level - total) <= 8 for level in queues)
    assert total == pytest.approx(300, abs=10)


def test_who_uses_less_than_its_share_loses_nothing_and_the_other_has_what_is_left() -> None:
    meter = Fair("12 Mbit/s")
    passed = [0, 0]
    for number in range(12_000):
        for flow, each in enumerate((1, 10)):
            if number % each == 0:
                passed[flow] += meter.send(900 * MS + number * MS, datagram(flow, 1500)) is not None
    assert passed[1] == 1_200
    # All of the rate, and the burst.
    assert 0 <= sum(passed) - 12_000 <= 1_050


def counted(meter: Fair) -> tuple[int, int, int]:
    """Flows that are counted for the next slot of 262 ms, in this one, and in the one before."""
    (cell,) = meter.registers()["flows"]
    return cell >> 32 & 0xFFFF, cell >> 16 & 0xFFFF, cell & 0xFFFF


def test_a_stalled_flow_is_counted_while_it_waits_to_send_again() -> None:
    meter = Fair("12 Mbit/s", queues=1024)
    meter.send(400 * MS, segment(0, 60, ECT0, "S"))
    at, held = 400 * MS + 300 * US, 0
    while held < 20:
        held = held + 1 if meter.send(at, segment(0, 1500, ECT0)) is None else 0
        at += 500 * US
    slot = at // US >> 18
    assert counted(meter) == (1, 1, 1)
    for later, expected in ((1, (0, 2, 1)), (2, (0, 1, 2)), (3, (0, 1, 1))):
        begin = ((slot + later) << 18) * US
        for _ in range(3):
            meter.send(begin, segment(1, 1500))
        assert counted(meter) == expected


def test_where_two_packets_in_a_round_trip_are_too_many_a_flow_is_stalled_for_150_ms() -> None:
    stalls, passed = stalls_of(Fair("12 Mbit/s"))
    assert len(stalls) >= 10
    assert all(148 * MS <= stall <= 152 * MS for stall in stalls)
    # The rate is kept nevertheless: 6 s at 1.5 kB a ms, and the burst.
    assert 6_000 <= passed <= 6_000 + 1_050


def test_a_burst_of_less_than_150_ms_stalls_a_flow_until_its_queue_is_empty() -> None:
    stalls, _ = stalls_of(Fair("12 Mbit/s", burst="30 ms"))
    assert len(stalls) >= 50
    # The queue holds 0.95 of 32.8 ms; a packet costs 1 ms, more while the total is nearly full.
    assert all(28 * MS <= stall <= 32 * MS for stall in stalls)


def queue_of(source: bytes, port: int, queues: int) -> int:
    """The queue of a datagram's flow in a meter of so many: CRC-32 of addresses, protocol and ports."""
    return zlib.crc32(source + bytes([10, 0, 0, 1, 17]) + struct.pack("!HH", port, 9)) % queues


def test_flows_with_one_hash_have_one_share_together() -> None:
    meter = Fair("10 Mbit/s", queues=8)
    first, *others = range(40)
    mine = queue_of(SOURCE, 1000, 8)
    twin = next(flow for flow in others if queue_of(SOURCE, 1000 + flow, 8) == mine)
    other = next(flow for flow in others if queue_of(SOURCE, 1000 + flow, 8) != mine)
    passed = dict.fromkeys((first, twin, other), 0)
    for number in range(8_000):
        for offset, flow in enumerate(passed):
            at = number * MS + offset * 300 * US
            passed[flow] += meter.send(at, datagram(flow, 1000)) is not None
    assert passed[first] + passed[twin] == pytest.approx(passed[other], rel=0.1)


@pytest.mark.parametrize("ecn", [NOT_ECT, ECT0])
def test_two_equal_floods_in_one_queue_share_it_by_chance(ecn: int) -> None:
    """Nothing divides a queue: at random times each has half of it, at fixed ones who comes at the better moment has more."""
    meter = Fair("10 Mbit/s", queues=8)
    twin = next(
        flow for flow in range(1, 40) if queue_of(SOURCE, 1000 + flow, 8) == queue_of(SOURCE, 1000, 8)
    )
    draw, passed = random.Random(3), {0: 0, twin: 0}
    for at, flow in sorted((draw.randrange(8_000_000), flow) for flow in passed for _ in range(8_000)):
        passed[flow] += meter.send(at * US, datagram(flow, 1000, ecn)) is not None
    assert passed[0] == pytest.approx(passed[twin], rel=0.1)
    meter, fixed = Fair("10 Mbit/s", queues=8), {0: 0, twin: 0}
    for number in range(8_000):
        for offset, flow in enumerate(fixed):
            fixed[flow] += meter.send(number * MS + offset * 300 * US, datagram(flow, 1000, ecn)) is not None
    assert sum(fixed.values()) == pytest.approx(sum(passed.values()), rel=0.02)


@pytest.mark.parametrize("control", ["cubic", "cubic+ECN"])
@pytest.mark.parametrize(("queues", "least"), [(1, 0.0), (8, 0.9)])
def test_tcp_in_one_queue_with_a_flood_has_nothing(control: str, queues: int, least: float) -> None:
    """CUBIC beside datagrams of three times the rate: half of the rate in a queue of its own, nothing where both are in one."""
    flows = Network()
    source, sink = flows.host("source"), flows.host("sink")
    switch = flows.switch("meter", program("fair"))
    for host in (source, sink):
        flows.link(host, switch, rate="1 Gbit/s", delay="5 ms", queue="1000 packets")
    tcp = flows.tcp(source, sink, congestion_control="cubic", ecn="on" if control == "cubic+ECN" else "off")
    udp = flows.udp(source, sink, rate="30 Mbit/s")
    meter = Meter(0, "10 Mbit/s", (flows.five_tuple(tcp), flows.five_tuple(udp)))
    flows.control(FairMeters([meter], ports=flows.forwarding(switch), queues=queues), switch)
    flows.record("1 s")
    samples = flows.run("20 s").flow_samples.filter(pl.col("flow") == tcp.number, pl.col("time_s") >= 10)
    received = samples["bytes_received"].to_list()
    share = (received[-1] - received[0]) * 8 * (1500 / 1448) / 10 / 5e6
    assert least <= share <= least + 0.15


@pytest.mark.slow
@pytest.mark.parametrize(
    ("flows", "queues", "probability"),
    [(16, 4096, 0.00366), (64, 4096, 0.0153), (64, 64, 0.629), (64, 1024, 0.0597), (64, 65_536, 0.00096)],
)
def test_how_many_flows_share_a_queue(flows: int, queues: int, probability: float) -> None:
    """A flow of n with random addresses and ports is not alone with probability 1 - (1 - 1/queues)^(n - 1)."""
    assert 1 - (1 - 1 / queues) ** (flows - 1) == pytest.approx(probability, rel=0.01)
    # So many that 400 flows are expected not to be alone: their number varies by 7 %.
    draw, shared, trials = random.Random(5), 0, max(round(400 / (probability * flows)), 40)
    for _ in range(trials):
        found = Counter(
            queue_of(draw.randbytes(4), draw.randrange(1024, 65536), queues) for _ in range(flows)
        )
        shared += sum(count for count in found.values() if count > 1)
    assert shared / trials / flows == pytest.approx(probability, rel=0.25)


def test_ipv6_and_ipv4_have_queues_of_their_own() -> None:
    meter = Fair("10 Mbit/s", queues=1024)
    passed = [0, 0]
    for number in range(16_000):
        at = number * 500 * US
        for version, packet in enumerate((datagram(0, 1000), datagram6(0, 1000))):
            passed[version] += meter.send(at, packet) is not None
    assert passed[0] == pytest.approx(passed[1], rel=0.1)


def test_a_new_meter_begins_with_a_part_of_its_limit() -> None:
    meter = Fair("80 Mbit/s")
    meter.send(5 * S, datagram(0, 1000))
    (total,) = meter.registers()["total"]
    assert total / 65536 - 5e6 == pytest.approx(BEGIN * 2**20 + 100, abs=1)


def test_no_division_few_products_and_each_register_is_read_and_written_once() -> None:
    """What a switch's stages can do: no division, no random number, and on each path at most one read and one write of each array."""
    program = Path(__file__).with_name("fair.p4")
    # A packet's time; what it costs its flow, two; the room that the total leaves to a flow.
    assert [operation[2] for operation in operations(program)] == ["*"] * 4
    assert "random(" not in source(program)
    # The controller's own.
    touched = arrays(program) - {"target"}
    assert len(touched) == 8
    expected = {(array, what): 1 for array in touched for what in ("read", "write")}
    assert accesses(program, "FairIngress") == expected
    assert not accesses(program, "FairEgress")


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("r.read(x, 0); if (x > 0) { r.write(0, x); } else { r.write(0, 1); }", {"read": 1, "write": 1}),
        ("r.read(x, 0); if (x > 0) { r.write(0, x); } r.write(0, 1);", {"read": 1, "write": 2}),
        ("if (x > 0) { r.read(x, 0); } else if (x > 1) { r.read(x, 0); r.read(x, 0); }", {"read": 2}),
        ("inner.apply(); r.read(x, 0);", {"read": 2}),
    ],
)
def test_accesses_are_counted_by_path(tmp_path: Path, body: str, found: dict[str, int]) -> None:
    program = tmp_path / "program.p4"
    program.write_text(
        "control Inner() { apply { r.read(x, 0); } }\n"
        f"control Outer() {{ register<bit<32>>(SIZE) r; Inner() inner; apply {{ {body} }} }}\n"
    )
    assert arrays(program) == {"r"}
    assert accesses(program, "Outer") == {("r", what): count for what, count in found.items()}
