"""`standard.p4`: RFC 2697 and RFC 2698 against their texts, and the shaped queue."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import TidegateError, p4
from tidegate.control import Controller, Port, Queue, Shaper, SwitchApi
from tidegate.network import Network
from tidegate.systems.meter.packet_harness import ENGINES, MAC, UNIT, US, Engine, timed, udp, udp6

SOURCE = Path(__file__).with_name("standard.p4")
PROGRAM = p4.compile(SOURCE)
SWITCHES: dict[Engine, p4.Pipeline] = {engine: PROGRAM.pipeline(engine) for engine in ENGINES}
METERS = itertools.count()
GREEN, YELLOW, RED = "green", "yellow", "red"


class Meter:
    """A meter of its own, for everything sent to 10.0.0.0/8 and fd00::/8, whose buckets are full. Sizes are bytes."""

    def __init__(self, engine: Engine, action: str, cbs: int = 0, second: int = 0) -> None:
        self.index = next(METERS)
        self.switch = SWITCHES[engine]
        for table in ("forward", "targets4", "targets6", "meters"):
            self.switch.table_clear(table)
        self.switch.table_add("forward", [MAC], "to_port", [1])
        self.switch.table_add("targets4", ["10.0.0.0/8"], "use", [self.index])
        self.switch.table_add("targets6", ["fd00::/8"], "use", [self.index])
        values = [cbs * UNIT, second * UNIT] if action.startswith("rfc") else []
        self.switch.table_add("meters", [self.index], action, values)
        self.write("tc", cbs * UNIT)
        self.write("te", second * UNIT)
        self.write("tp", second * UNIT)

    def write(self, register: str, value: int) -> None:
        self.switch.register_write(register, [value], self.index)

    def read(self, register: str) -> int:
        return int(self.switch.register_read(register, self.index, 1)[0])

    def counts(self) -> tuple[list[int], list[int]]:
        """Packets, and bytes, passed, dropped, yellow."""
        cells = [self.switch.counter_read(name, self.index, 1)[0] for name in ("passed", "dropped", "yellow")]
        return [int(cell[0]) for cell in cells], [int(cell[1]) for cell in cells]

    def color(self, at: int, packet: bytes) -> str:
        """What colour a packet gets at a time in picoseconds; what passes is left as it is."""
        (passed, dropped, yellow), _ = self.counts()
        out = self.switch.process(at, 0, packet)
        (passed_then, dropped_then, yellow_then), _ = self.counts()
        if not out:
            assert (passed_then, dropped_then, yellow_then) == (passed, dropped + 1, yellow)
            return RED
        assert out == [(1, packet)]
        assert (passed_then, dropped_then) == (passed + 1, dropped)
        return YELLOW if yellow_then > yellow else GREEN


# Gaps of up to 60 us and rates of up to 20 byte/us: the RFCs' tokens come one by one, and so they do below.
ARRIVALS = st.lists(
    st.tuples(st.integers(0, 60 * US), st.integers(28, 3000), st.just(0)), min_size=1, max_size=25
)
RATES = st.integers(0, 20)
SIZES = st.integers(0, 10_000)


@pytest.mark.parametrize("engine", ENGINES)
@given(cir=RATES, cbs=SIZES, ebs=SIZES, arrivals=ARRIVALS)
@settings(max_examples=60)
def test_rfc_2697(engine: Engine, cir: int, cbs: int, ebs: int, arrivals: list[tuple[int, int, int]]) -> None:
    meter = Meter(engine, "rfc2697", cbs, ebs)
    meter.write("cir", cir * UNIT)
    # Section 3: at time 0 both buckets are full; then, CIR times a second:
    tc, te, then = cbs, ebs, 0
    for at, length, _ in timed(arrivals):
        for _ in range(cir * (at // US - then)):
            if tc < cbs:
                tc += 1
            elif te < ebs:
                te += 1
        then = at // US
        if tc - length >= 0:
            color, tc = GREEN, tc - length
        elif te - length >= 0:
            color, te = YELLOW, te - length
        else:
            color = RED
        assert meter.color(at, udp(length)) == color
        assert (meter.read("tc"), meter.read("te")) == (tc * UNIT, te * UNIT)


@pytest.mark.parametrize("engine", ENGINES)
@given(cir=RATES, pir=RATES, cbs=SIZES, pbs=SIZES, arrivals=ARRIVALS)
@settings(max_examples=60)
def test_rfc_2698(
    engine: Engine, cir: int, pir: int, cbs: int, pbs: int, arrivals: list[tuple[int, int, int]]
) -> None:
    meter = Meter(engine, "rfc2698", cbs, pbs)
    meter.write("cir", cir * UNIT)
    meter.write("pir", pir * UNIT)
    # Section 3: at time 0 both buckets are full; then PIR times a second, and CIR times a second:
    tc, tp, then = cbs, pbs, 0
    for at, length, _ in timed(arrivals):
        for _ in range(pir * (at // US - then)):
            tp += tp < pbs
        for _ in range(cir * (at // US - then)):
            tc += tc < cbs
        then = at // US
        if tp - length < 0:
            color = RED
        elif tc - length < 0:
            color, tp = YELLOW, tp - length
        else:
            color, tp, tc = GREEN, tp - length, tc - length
        assert meter.color(at, udp(length)) == color
        assert (meter.read("tc"), meter.read("tp")) == (tc * UNIT, tp * UNIT)


@pytest.mark.parametrize("engine", ENGINES)
@given(cir=RATES, pir=RATES, cbs=SIZES, pbs=SIZES, arrivals=ARRIVALS)
@settings(max_examples=60)
def test_v1model_s_meter_is_rfc_2698_of_frames(
    engine: Engine, cir: int, pir: int, cbs: int, pbs: int, arrivals: list[tuple[int, int, int]]
) -> None:
    meter = Meter(engine, "v1model_meter")
    cir, pir = sorted((cir, pir))
    # It is set at time 0, and its clock is finer than microseconds.
    meter.switch.process(0, 0, bytes(14))
    meter.switch.meter_set(
        "frames",
        meter.index,
        committed_rate=f"{8 * cir} Mbit/s",
        committed_burst=cbs,
        peak_rate=f"{8 * pir} Mbit/s",
        peak_burst=pbs,
    )
    tc, tp, then = Fraction(cbs), Fraction(pbs), 0
    for at, length, _ in timed(arrivals):
        us, then = Fraction(at - then, US), at
        tc, tp, frame = min(tc + cir * us, Fraction(cbs)), min(tp + pir * us, Fraction(pbs)), length + 14
        if tp < frame:
            color = RED
        elif tc < frame:
            color, tp = YELLOW, tp - frame
        else:
            color, tp, tc = GREEN, tp - frame, tc - frame
        assert meter.color(at, udp(length)) == color


def test_a_rate_of_ip_is_a_larger_one_of_frames() -> None:
    # 100 Mbit/s of IP in packets of 1500 bytes: what v1model's meter is set to, and RFC 2698 in IP bytes.
    frames, ip = Meter("jit", "v1model_meter"), Meter("jit", "rfc2698", 150_000, 150_000)
    ip.switch.table_clear("targets4")
    ip.switch.table_add("meters", [frames.index], "v1model_meter")
    ip.write("cir", UNIT * 25 // 2)
    ip.write("pir", UNIT * 25 // 2)
    ip.switch.process(0, 0, bytes(14))
    rate, burst = 100_000_000 * 1514 // 1500, 150_000 * 1514 // 1500
    frames.switch.meter_set("frames", frames.index, committed_rate=rate, committed_burst=burst)
    handle = ip.switch.table_add("targets4", ["10.0.0.0/8"], "use", [frames.index])
    for at in range(0, 1_000_000, 60):
        for meter in (frames, ip):
            ip.switch.table_modify("targets4", handle, "use", [meter.index])
            ip.switch.process(at * US, 0, udp(1500))
    passed = [meter.counts()[0][0] for meter in (frames, ip)]
    # A second's bytes and a bucket.
    assert passed[1] == pytest.approx((12_500_000 + 150_000) / 1500, abs=1)
    assert passed[0] == pytest.approx(passed[1], abs=1)


@pytest.mark.parametrize(
    ("action", "second", "colors"),
    [
        ("rfc2697", 1_000, [GREEN, YELLOW, RED]),
        ("rfc2697", 999, [GREEN, RED]),
        ("rfc2698", 2_000, [GREEN, YELLOW, RED]),
        ("rfc2698", 1_999, [GREEN, RED]),
    ],
)
@pytest.mark.parametrize("tag", [b"", bytes.fromhex("81000007")])
def test_to_the_byte(action: str, second: int, colors: list[str], tag: bytes) -> None:
    meter = Meter("jit", action, 1_000, second)
    packet = udp(1_000)[:12] + tag + udp(1_000)[12:]
    # What goes nowhere takes no tokens.
    meter.switch.table_clear("forward")
    assert meter.switch.process(0, 0, packet) == []
    meter.switch.table_add("forward", [MAC], "to_port", [1])
    assert [meter.color(0, packet) for _ in colors] == colors


@pytest.mark.parametrize("action", ["rfc2697", "rfc2698"])
@pytest.mark.parametrize("rate", [2**31, 2**32 - 1])
@pytest.mark.parametrize("us", [2**31 - 1, 2**31, 2**32, 2**33, 86_400 * 10**6])
def test_after_a_day_at_the_highest_rate_nothing_overflows(action: str, rate: int, us: int) -> None:
    meter = Meter("jit", action, 2**31, 2**31)
    for register, value in (("cir", rate), ("pir", rate), ("tc", 0), ("te", 0), ("tp", 0)):
        meter.write(register, value)
    assert meter.color(us * US, udp(1_000)) == GREEN
    assert meter.read("tc") == (2**31 - 1_000) * UNIT


def test_no_more_than_the_bursts_and_the_rate() -> None:
    meter = Meter("jit", "rfc2697", 20_000, 30_000)
    # A rate that is not a whole number of bytes a microsecond: 100 Mbit/s and a little.
    meter.write("cir", 12 * UNIT + 32_769)
    for at in range(0, 100_000, 7):
        meter.color(at * US, udp(1_500))
    _, (size, _, _) = meter.counts()
    packets, _ = meter.counts()
    most = 50_000 + Fraction(12 * UNIT + 32_769, UNIT) * 100_000
    assert most - 3_000 < size - 14 * packets[0] <= most


@pytest.mark.parametrize("action", ["rfc2697", "rfc2698", "v1model_meter", "shape"])
@pytest.mark.parametrize("make", [udp, udp6])
def test_what_counts_as_passed(action: str, make: Any) -> None:
    meter = Meter("jit", "rfc2698", 10_000, 10_000)
    meter.switch.table_clear("meters")
    values = {"rfc2697": [10_000 * UNIT] * 2, "rfc2698": [10_000 * UNIT] * 2, "shape": [3]}.get(action, [])
    meter.switch.table_add("meters", [meter.index], action, values)
    assert meter.color(0, make(1_000)) == GREEN
    assert meter.counts() == ([1, 0, 0], [1_014, 0, 0])
    # Without an entry for the meter, or for the packet, or a way out.
    meter.switch.table_clear("meters")
    assert meter.switch.process(0, 0, make(1_000)) == [(1, make(1_000))]
    meter.switch.table_clear("targets4")
    meter.switch.table_clear("targets6")
    assert meter.switch.process(0, 0, make(1_000)) == [(1, make(1_000))]
    meter.switch.table_clear("forward")
    assert meter.switch.process(0, 0, make(1_000)) == []
    assert meter.counts() == ([1, 0, 0], [1_014, 0, 0])
    with pytest.raises(TidegateError):
        meter.switch.table_add("meters", [meter.index], "pass")


class Shaping(Controller):
    """Sends what goes to one host to a queue of its port."""

    def __init__(self, net: Network, queue: int) -> None:
        self.net, self.queue = net, queue

    def start(self, switch: SwitchApi) -> None:
        for number, host in enumerate(self.net.nodes[1:]):
            switch.table_add("forward", [self.net.mac(host)], "to_port", [number])
        switch.table_add("targets4", [self.net.address(self.net.nodes[2]) + "/32"], "use", [1])
        switch.table_add("meters", [1], "shape", [self.queue])


@pytest.mark.parametrize("queue", [0, 5, 7])
def test_a_shaped_queue(queue: int) -> None:
    net = Network()
    switch = net.switch("s", PROGRAM)
    a, b = net.host("a"), net.host("b")
    net.link(a, switch, rate="1 Gbit/s", delay="10 us")
    link = net.link(switch, b, rate="1 Gbit/s", delay="10 us")
    shaped = Queue(packets=100, shaper=Shaper(50_000_000 * 1514 // 1500, "3 kB"))
    net.configure(switch, link, Port(tuple(shaped if each == queue else Queue() for each in range(8))))
    net.control(Shaping(net, queue))
    net.udp(a, b, rate="100 Mbit/s", payload=1472)
    net.udp(b, a, rate="100 Mbit/s", payload=1472)
    there, back = net.run("2 s").flows["datagrams_received"].to_list()
    assert there * 1500 * 8 / 2 == pytest.approx(50e6, rel=0.01)
    assert back * 1500 * 8 / 2 == pytest.approx(100e6, rel=0.01)
