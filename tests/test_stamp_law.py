"""The arithmetic of the BPF congestion control `stamp`, in whole numbers, beside its law in real ones."""

from __future__ import annotations

import ctypes
import math
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from laws import compiled_law, simulated_options
from tidegate.hosts import libbpf, stamp
from tidegate.hosts.controls import Control, refusals
from tidegate.systems.stamping.format import Format
from tidegate.units import rate, size, time

SOURCE = Path(__file__).parent / "data/stamp_law.c"
ONE = 1 << stamp.POINT

pytestmark = pytest.mark.skipif(shutil.which(libbpf.COMPILER) is None, reason="needs clang")

Options = dict[str, object]


class Law(ctypes.Structure):
    """`struct law`."""

    _fields_ = (
        ("reference", ctypes.c_uint64),
        ("rate", ctypes.c_uint64),
        ("sum", ctypes.c_int64),
        ("acked", ctypes.c_uint64),
        ("count", ctypes.c_uint32),
        ("seen", ctypes.c_uint8),
        ("idle", ctypes.c_uint8),
        ("old", ctypes.c_uint8),
    )


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    wide, long, short = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
    return compiled_law(
        SOURCE,
        tmp_path_factory.mktemp("law"),
        ("size_of_parameters", ctypes.c_ulong, []),
        ("law_stamp", ctypes.c_int64, [wide, ctypes.c_char_p, short]),
        ("law_update", None, [wide, wide, long, ctypes.c_uint8, long]),
        ("law_halve", None, [wide, short, short, long]),
        ("law_grow", None, [wide, wide, short, long]),
        ("law_window", short, [wide, long, long, short]),
        ("law_pace", long, [wide, long, short]),
    )


def given(options: Options) -> bytes:
    return stamp.packed(tuple((name, str(value)) for name, value in options.items()))


@dataclass
class Real:
    """The law as systems/stamping describes it, in real numbers; as `update` in crates/transport/src/cc/stamp.rs."""

    options: Options
    reference: float
    rate: float
    acked: float
    sum: float = 0.0
    count: int = 0
    seen: bool = False
    idle: int = 0

    def value(self, name: str) -> float:
        return float(str(self.options.get(name, stamp.DEFAULTS[name])))

    def text(self, name: str) -> str:
        return str(self.options.get(name, stamp.DEFAULTS[name]))

    def update(self, told: float, commit: bool, rtt_ns: int) -> None:
        line, utilisation = rate(self.text("line_rate")), self.text("signal") == "utilisation"
        eta, free = float(self.text("eta") or (0.98 if utilisation else 1.0)), self.value("free_queue")
        slow = min(1.0, time(self.text("base_rtt")) / 1000 / rtt_ns)
        load = told if utilisation else 1 + told - free
        self.sum, self.count, self.seen = self.sum + load, self.count + 1, self.seen or told > 0
        if commit:
            load = self.sum / self.count
            if not utilisation:
                if not self.seen:
                    load = 1 - min(0.5, max(free, self.value("search") * 2 ** min(self.idle, 16)))
                self.idle = 0 if self.seen else self.idle + 1
                self.seen = False
        young = size(self.text("young"))
        age = max(self.value("least_step"), math.sqrt(young / (young + self.acked)))
        step = self.value("step") * line * slow * age
        if load > eta:
            step *= max(0.2, 1 - (load - eta) / self.value("theta"))
        error = load / eta - 1
        divisor = 1 + self.value("gain") * (slow if error > -0.2 else 1.0) * error
        least = min(rate(self.text("min_rate")), line)
        self.rate = min(max(self.reference / divisor + step, least), line)
        if commit:
            self.reference, self.sum, self.count = self.rate, 0.0, 0


CASES: dict[str, Options] = {
    "data centre": {"line_rate": "25 Gbit/s", "base_rtt": "8800 ns"},
    "lab": {"line_rate": "1 Gbit/s", "base_rtt": "2 ms", "min_rate": "1 Mbit/s"},
    "slow": {"line_rate": "10 Mbit/s", "base_rtt": "50 ms", "min_rate": "100 kbit/s"},
    "largest": {"line_rate": "100 Gbit/s", "base_rtt": "1 s", "gain": 1, "theta": 100, "step": 1},
    "utilisation": {"line_rate": "25 Gbit/s", "base_rtt": "8800 ns", "signal": "utilisation"},
    "odd": {"line_rate": "40 Gbit/s", "base_rtt": "1 ms", "eta": 1.5, "free_queue": 1.2, "young": "1 GB"},
}


@pytest.mark.parametrize("case", CASES)
def test_whole_numbers_follow_real_ones(case: str, native: ctypes.CDLL) -> None:
    options = CASES[case]
    parameters = given(options)
    draw = random.Random(case)
    line = rate(str(options["line_rate"]))
    base = time(str(options["base_rtt"])) // 1000
    for _ in range(300):
        acked = draw.choice((0, 10**4, 10**5, 10**7))
        law = Law(reference=line, rate=line, acked=acked)
        real = Real(options, line, line, acked)
        rtt = min(10**9, round(base * draw.choice((0.5, 1, 1.1, 10))))
        for step in range(60):
            told = draw.choice((0, draw.randrange(ONE // 8), draw.randrange(ONE), draw.randrange(ONE << 5)))
            commit = step % 5 == 4
            native.law_update(parameters, ctypes.byref(law), told, commit, rtt)
            real.update(told / ONE, commit, rtt)
            # The 20 bits of a share, thirty steps after one another.
            assert law.rate == pytest.approx(real.rate, rel=2e-4, abs=200)
            # They start from the same numbers again.
            real.reference = law.reference
            law.acked += 1000
            real.acked += 1000


def test_the_size_is_that_of_the_program(native: ctypes.CDLL) -> None:
    assert native.size_of_parameters() == stamp.SIZE == len(given({}))


FORMATS = [
    Format("10 ms", 8),
    Format("10 ms", 16),
    Format("4294967296 ns", 32),
    Format("32 ms", 8, bins="log", mantissa=5),
    Format("100 ms", 16, bins="log", mantissa=12),
    Format("10 ms", 32, fold="sum"),
    # Steps of a part of a picosecond.
    Format("1 ms", 32),
    Format("304 us", 32, fold="sum"),
    Format("100 ms", 32, fold="sum_squ"),
    Format("2 ms", 1, fold="ind"),
]


@pytest.mark.parametrize("form", FORMATS, ids=str)
def test_stamps_are_read_as_their_format_says(form: Format, native: ctypes.CDLL) -> None:
    base = time("2 ms")
    options = form.control_options
    parameters = given({**options, "base_rtt": "2 ms"})
    draw = random.Random(1)
    codes = {0, 1, form.largest, *(draw.randrange(form.largest + 1) for _ in range(1000))}
    for code in codes:
        told = native.law_stamp(parameters, code.to_bytes(form.width) + b"\x02", form.width + 1)
        # The unit is within 0.1 %.
        assert told / ONE == pytest.approx(min(form.decode(code) / base, 1024), rel=1.1e-3, abs=2 / ONE)


def test_what_is_no_stamp_is_left_alone(native: ctypes.CDLL) -> None:
    parameters = given({"base_rtt": "1 us"})
    assert native.law_stamp(parameters, b"\x03\x01", 2) == 3 * ONE
    # Idle is a value.
    assert native.law_stamp(parameters, b"\x00\x01", 2) == 0
    for field in (b"\x05\x00", b"\x05\x41", b"\x01", b"", b"\x01\x02\x03\x04\x05\x01"):
        assert native.law_stamp(parameters, field, len(field)) == -1


def fluid(
    native: ctypes.CDLL, shares: list[float], rtts: list[int], turns: int = 4000
) -> tuple[list[float], float]:
    """Flows over one link in fluid form, as the simulated control's test: rates as shares in the end, and the queue."""
    parameters = given({"line_rate": "1 Gbit/s", "base_rtt": "1 ms", "min_rate": "1 Mbit/s"})
    flows = [Law(reference=round(share * 1e9), rate=round(share * 1e9), acked=10**9) for share in shares]
    told = 0.0
    for turn in range(1, turns):
        for law, rtt in zip(flows, rtts, strict=True):
            native.law_update(parameters, ctypes.byref(law), round(told * ONE), turn % rtt == 0, rtt * 10**6)
        out = sum(law.rate * rtt for law, rtt in zip(flows, rtts, strict=True)) / 1e9
        told = max(0.0, out - out * 1e9 / sum(law.rate for law in flows))
    return [law.rate / 1e9 for law in flows], told


@pytest.mark.parametrize("count", [2, 8, 32])
def test_it_settles_with_a_small_queue_and_equal_shares(count: int, native: ctypes.CDLL) -> None:
    rates, queue = fluid(native, [1.0] + [0.1] * (count - 1), [1] * count)
    assert max(rates) < 1.05 * min(rates)
    assert 0.98 < sum(rates) < 1.4
    assert queue < 0.4


def test_flows_of_unequal_round_trips_get_equal_shares(native: ctypes.CDLL) -> None:
    rates, queue = fluid(native, [0.9, 0.1], [1, 10], 40_000)
    assert max(rates) < 1.1 * min(rates)
    assert queue < 1


def test_losses_and_silence(native: ctypes.CDLL) -> None:
    parameters = given({"line_rate": "1 Gbit/s", "min_rate": "1 Mbit/s"})
    law = Law(reference=100_000_000, rate=120_000_000)
    # A packet in a round trip of 1 ms is 8 Mbit/s: 50 were out at most.
    native.law_halve(ctypes.byref(law), 100, 1000, 10**6)
    assert (law.reference, law.rate) == (50_000_000, 50_000_000)
    native.law_halve(ctypes.byref(law), 4, 1000, 10**6)
    assert law.reference == 16_000_000
    for _ in range(3):
        native.law_halve(ctypes.byref(law), 4, 1000, 10**6)
    assert law.reference == 8_000_000
    native.law_grow(parameters, ctypes.byref(law), 1000, 10**6)
    assert (law.reference, law.rate) == (16_000_000, 16_000_000)


def test_window_and_rate_are_those_of_the_wire(native: ctypes.CDLL) -> None:
    parameters = given({"line_rate": "1 Gbit/s", "min_rate": "1 Mbit/s", "min_cwnd": 3})
    # 125 kB in a millisecond, in packets of 1434 + 66 bytes.
    assert native.law_window(parameters, 10**9, 10**6, 1434) == 84
    assert native.law_window(parameters, 10**6, 10**6, 1434) == 3
    assert native.law_pace(parameters, 10**9, 1434) == 125_000_000 * 1434 // 1500
    assert native.law_pace(parameters, 10, 1434) == 125_000 * 1434 // 1500


def test_the_parameters_are_those_of_the_simulated_control() -> None:
    assert sorted(stamp.DEFAULTS) == simulated_options("stamp")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"stamp_entry": "2"}, ["stamp_entry: it reads one value for all hops, and no vectors"]),
        ({"stamp_back_kind": "30"}, ["stamp_back_kind: it reads the echo only, and no stamps on ACKs"]),
        ({"rtt_weight": "0.5"}, ["rtt_weight: it follows stamps alone"]),
        ({"line_rate": "200 Gbit/s"}, ["line_rate: it counts rates up to 100 Gbit/s"]),
        ({"base_rtt": "2 s"}, ["base_rtt: it counts round trips from 1 ns to 1 s"]),
        ({"rtt": "10 ps"}, ["rtt: it counts round trips from 1 ns to 1 s"]),
        (Format("32 ms", 8, bins="log", mantissa=5).control_options, []),
    ],
)
def test_what_a_real_host_cannot_do_is_refused(options: dict[str, str], why: list[str]) -> None:
    control = Control("stamp", tuple((name, str(value)) for name, value in options.items()))
    assert list(refusals(control)) == [f"the stamp of real hosts: {one}" for one in why]
