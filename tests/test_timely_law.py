"""The arithmetic of the BPF congestion control `timely`, in whole numbers, beside its law in real ones."""

from __future__ import annotations

import ctypes
import random
import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from laws import compiled_law, simulated_options
from tidegate.hosts import libbpf, timely
from tidegate.hosts.controls import Control, refusals
from tidegate.systems.stamping.format import Format
from tidegate.units import rate, time

SOURCE = Path(__file__).parent / "data/timely_law.c"
HAI_STEPS = 5

pytestmark = pytest.mark.skipif(shutil.which(libbpf.COMPILER) is None, reason="needs clang")

Options = dict[str, str]


class Law(ctypes.Structure):
    """`struct law`."""

    _fields_ = (
        ("rate", ctypes.c_uint64),
        ("diff", ctypes.c_int64),
        ("prev", ctypes.c_uint64),
        ("falling", ctypes.c_uint32),
        ("has_prev", ctypes.c_uint32),
    )


@pytest.fixture(scope="module")
def native(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    wide, long, short = ctypes.c_void_p, ctypes.c_uint64, ctypes.c_uint32
    return compiled_law(
        SOURCE,
        tmp_path_factory.mktemp("law"),
        ("size_of_parameters", ctypes.c_ulong, []),
        ("law_stamp", ctypes.c_int64, [wide, ctypes.c_char_p, short]),
        ("law_update", None, [wide, wide, long, long, long, long]),
        ("law_window", short, [long, long, short]),
        ("law_wide_window", short, [long, long, short]),
    )


def given(options: Options) -> bytes:
    return timely.packed(tuple(options.items()))


@dataclass
class Real:
    """Algorithm 1 of the paper and its forms in real numbers, as `update` in crates/transport/src/cc/timely.rs. Times in nanoseconds."""

    options: Options
    rate: float
    prev: float | None = None
    diff: float = 0.0
    falling: int = 0

    def text(self, name: str) -> str:
        return self.options.get(name, timely.DEFAULTS[name])

    def is_(self, name: str) -> bool:
        return self.text(name) == "yes"

    def update(self, signal: float, rtt: float, since: float, least: float) -> None:
        alpha, beta, most_cut = (float(self.text(name)) for name in ("alpha", "beta", "most_cut"))
        t_low, t_high = (time(self.text(name)) / 1000 for name in ("t_low", "t_high"))
        floor, ceiling, delta = (rate(self.text(name)) for name in ("min_rate", "max_rate", "delta"))
        before, self.prev = self.prev, signal
        if before is None:
            return
        new = signal - before
        self.diff = self.diff * (1 - alpha) + new * alpha
        falls = new < 0 if self.is_("raw_falls") else self.diff <= 0
        self.falling = self.falling + 1 if falls else 0
        compared = signal if self.text("thresholds_on") == "signal" else rtt
        base = least if self.text("thresholds") == "path" and least > t_low else 0
        low, high = base + t_low, base + t_high
        min_rtt = time(self.text("min_rtt")) / 1000 if self.text("min_rtt") else least
        part = min(since / min_rtt, 1) if self.is_("scaled") else 1.0
        step = delta * part

        def cut(share: float) -> None:
            self.rate = max(self.rate * (1 - min(beta * min(share, 1), most_cut)), floor)

        if compared < low:
            self.rate += step
        elif compared > high:
            cut((compared - high) / compared * part)
        elif self.is_("patched"):
            weight = min(max(2 * self.diff / min_rtt + 0.5, 0), 1)
            error = (compared - low) / max(low, 1e-3)
            self.rate = max(
                step * (1 - weight) + self.rate * (1 - min(beta * weight * error, most_cut)), floor
            )
        elif self.diff <= 0:
            self.rate += step * (HAI_STEPS if self.falling >= int(self.text("hai")) else 1)
        else:
            cut(self.diff / min_rtt)
        self.rate = min(self.rate, ceiling)


AUTHOR: Options = {
    "step": "ack",
    "send": "window",
    "scaled": "yes",
    "raw_falls": "yes",
    "most_cut": "0.5",
    "thresholds": "fixed",
    "alpha": "0.3",
    "beta": "0.6",
    "delta": "0.2 Mbit/s",
    "t_low": "12 ms",
    "t_high": "50 ms",
    "min_rate": "10 kbit/s",
}
CASES: dict[str, tuple[Options, int]] = {
    "data centre": ({}, 20_000),
    "long path": ({}, 20_000_000),
    "patched": ({"patched": "yes", "t_low": "30 us", "most_cut": "0.5"}, 20_000),
    "patched from nothing": ({"patched": "yes", "t_low": "0 us", "thresholds": "fixed"}, 20_000),
    "the author's": (AUTHOR, 7_862_400),
    "on stamps": ({**AUTHOR, "signal": "stamp", "thresholds_on": "signal", "min_rtt": "8 ms"}, 7_862_400),
    "largest": ({"t_low": "400 ms", "t_high": "1 s", "delta": "10 Gbit/s", "thresholds": "fixed"}, 10**9),
}


@pytest.mark.parametrize("case", CASES)
def test_whole_numbers_follow_real_ones(case: str, native: ctypes.CDLL) -> None:
    options, least = CASES[case]
    parameters = given(options)
    draw = random.Random(case)
    for _ in range(300):
        start = draw.choice((10**6, 10**8, 10**10))
        law, real = Law(rate=start), Real(options, start)
        longest = signal = rtt = least
        for _ in range(40):
            rtt = min(10**9, max(least, round(rtt * draw.choice((0.7, 0.99, 1, 1.01, 1.5)))))
            signal = rtt if real.text("signal") == "rtt" else draw.randrange(10**8)
            longest, since = max(longest, signal), draw.choice((least // 50, least, 10**9))
            native.law_update(parameters, ctypes.byref(law), signal, rtt, since, least)
            real.update(signal, rtt, since, least)
            # What a filter has cut off, and 20 bits of each share.
            assert law.diff / 256 == pytest.approx(real.diff, abs=1 + 2e-6 * longest)
            assert law.rate == pytest.approx(real.rate, rel=1e-4, abs=20)
            assert law.falling == real.falling or abs(real.diff) < 1
            # They start from the same numbers again.
            real.rate, real.diff, real.falling = law.rate, law.diff / 256, law.falling


def test_the_size_is_that_of_the_program(native: ctypes.CDLL) -> None:
    assert native.size_of_parameters() == timely.SIZE == len(given({}))


@pytest.mark.parametrize("fold", ["max", "sum", "sum_squ"])
def test_stamps_are_nanoseconds(fold: str, native: ctypes.CDLL) -> None:
    # A step of 32 bits is 100 ps.
    form = Format(100 << 32, 32, fold=fold)  # type: ignore[arg-type]
    parameters = given({name: str(value) for name, value in form.control_options.items()})
    draw = random.Random(fold)
    for code in (0, 1, form.largest, *(draw.randrange(form.largest + 1) for _ in range(500))):
        told = native.law_stamp(parameters, code.to_bytes(form.width) + b"\x02", form.width + 1)
        assert told == pytest.approx(float(form.decode(code) / 1000), rel=1e-5, abs=100)


def test_windows_are_of_packets_with_their_headers(native: ctypes.CDLL) -> None:
    # 125 kB in a millisecond, in packets of 1460 + 40 bytes, to the nearest.
    assert native.law_window(10**9, 10**6, 1460) == 83
    assert native.law_window(10**9, 1_007_000, 1460) == 84
    assert native.law_window(10**6, 10**6, 1460) == 1
    assert native.law_window(100 * 10**9, 10**9, 1460) == 8_333_333
    assert native.law_wide_window(10**9, 10**6, 1460) == (2 * 125_000 + 2 * 16_384) // 1460
    assert native.law_wide_window(10**6, 10**6, 1460) == 22
    assert native.law_wide_window(10**6, 10**6, 9000) == 10


def test_the_parameters_are_those_of_the_simulated_control() -> None:
    assert sorted(timely.DEFAULTS) == simulated_options("timely")


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"stamp_entry": "2"}, ["stamp_entry: it reads one value for all hops, and no vectors"]),
        ({"delta": "200 Gbit/s"}, ["delta: it counts rates up to 100 Gbit/s"]),
        ({"t_high": "2 s"}, ["t_high: it counts times up to 1 s"]),
        (AUTHOR, []),
    ],
)
def test_what_a_real_host_cannot_do_is_refused(options: Options, why: list[str]) -> None:
    control = Control("timely", tuple(options.items()))
    assert list(refusals(control)) == [f"the timely of real hosts: {one}" for one in why]
