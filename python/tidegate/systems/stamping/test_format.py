"""Formats: scales, codes and their edges, layouts, sizes, and what is refused."""

from __future__ import annotations

import itertools
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate import TidegateError
from tidegate.network import Network
from tidegate.systems.stamping.experiments.contenders import queue_stamp
from tidegate.systems.stamping.experiments.testbed import exact
from tidegate.systems.stamping.field import ECHO_ROOM
from tidegate.systems.stamping.format import BITS, Format
from tidegate.systems.stamping.model import folded

PS_PER_US = 1_000_000


@given(bits=st.sampled_from(BITS[:5]), full_us=st.integers(1, 100_000), wait=st.integers(0, 2**32 - 1))
def test_equal_bins_divide_the_full_scale(bits: int, full_us: int, wait: int) -> None:
    form = Format(full_us * PS_PER_US, bits)
    scale = form.scale("10 Gbit/s")
    # Full scales of less than a tick a code included. Up to 2^32 ticks the multiplier's 32 bits suffice for the first bin's edges.
    exact = min(form.largest, (wait << bits) // full_us)
    code = form.code(wait * scale.multiplier >> scale.shift)
    assert code == exact or (code == exact + 1 and full_us > 1 << 31 - bits)
    assert form.decode(code) <= wait * PS_PER_US or code == exact + 1
    if code < form.largest:
        assert form.decode(code + 1) > wait * PS_PER_US


@pytest.mark.parametrize(("bits", "mantissa"), [(8, 5), (8, 4), (4, 1), (4, 2), (2, 0), (16, 12), (2, 1)])
def test_logarithmic_bins_double_their_width(bits: int, mantissa: int) -> None:
    form = Format(1 << 30, bits, "bytes", bins="log", mantissa=mantissa)
    step = (1 << 30) / form.range
    edges = [form.decode(code) / step for code in range(form.largest + 1)]
    assert edges[0] == 0
    assert edges[: 2 << mantissa] == list(range(2 << mantissa))
    for code, (edge, after) in enumerate(itertools.pairwise(edges)):
        assert after - edge == 1 << max(0, (code >> mantissa) - 1)
        assert form.code(int(edge)) == form.code(int(after) - 1) == code
    assert form.code(form.range - 1) == form.code(1 << 40) == form.largest


def test_eight_bits_with_five_of_mantissa_are_the_minifloat_3_5() -> None:
    """Steps of 1/128 below 0.5, 1/64 below 1, 1/32 below 2; the top is 31.5."""
    form = Format(32.0, 8, "utilisation", bins="log", base_rtt="8.8 us")
    assert [form.decode(code) for code in (1, 63, 64, 65, 96, 255)] == [
        1 / 128,
        63 / 128,
        0.5,
        33 / 64,
        1,
        31.5,
    ]


def test_a_sum_of_squares_decodes_to_its_root() -> None:
    form = Format("4 MiB", 32, "bytes", "sum_squ")
    scale = form.scale("10 Gbit/s")
    # Cells are 64 bytes.
    field = form.blank
    for queue in (3 * 64, 4 * 64 + 63):
        field = folded(form, field, queue, scale)
    assert form.read(field) == ((25,), 2)
    assert form.decode(25) == 5 * 64
    assert form.read(folded(form, field, 2**32 - 1, scale)).code == form.largest


def test_ind_is_set_at_the_threshold() -> None:
    form = Format("30 us", 1, fold="ind")
    scale = form.scale("10 Gbit/s")
    assert [form.code(us * scale.multiplier >> scale.shift) for us in (0, 29, 30, 31, 10**6)] == [
        0,
        0,
        1,
        1,
        1,
    ]
    assert form.decode(1) == 30 * PS_PER_US


def test_not_stamped_differs_from_idle() -> None:
    form = Format("1 ms")
    assert form.read(form.blank) == ((0,), 0)
    assert form.read(folded(form, form.blank, 0, form.scale("10 Gbit/s"))) == ((0,), 1)


def test_a_vector_says_only_what_has_been_stamped() -> None:
    form = Format("1 ms", fold="vector", capacity=4)
    assert form.read(bytes([7, 9, 0, 0, 2])) == ((7, 9), 2)


@pytest.mark.parametrize("data", ["", "00", "000000", "0041", "00c0"])
def test_another_layout_is_no_stamp(data: str) -> None:
    with pytest.raises(TidegateError, match="is not a stamp of 2 bytes, version 0"):
        Format("1 ms").read(bytes.fromhex(data))


VALID: dict[str, Any] = {"full_scale": "1 ms"}
REFUSED: list[tuple[dict[str, Any], str]] = [
    ({"bits": 3}, "a stamp of 3 bits: give 1, 2, 4, 8, 16 or 32"),
    ({"bits": True}, "a stamp of True bits"),
    ({"full_scale": 0}, "full scale is 0; give the quantity"),
    ({"full_scale": "1 kB"}, "is not a time"),
    ({"full_scale": 0.5}, "full scale of time is a time, not 0.5"),
    ({"full_scale": "1 ms", "source": "bytes"}, "is not a size"),
    ({"full_scale": "1 ms", "source": "packets"}, "full scale of packets is a number, not '1 ms'"),
    ({"full_scale": float("nan"), "source": "packets"}, "is a number, not nan"),
    ({"full_scale": -1, "source": "packets"}, "full scale is -1"),
    ({"source": "depth"}, "source is one of time, bytes, packets, utilisation, not 'depth'"),
    ({"fold": "min"}, "fold is one of max, sum, sum_squ, ind, vector, not 'min'"),
    ({"carrier": "ipv6"}, "carrier is one of option, shim, not 'ipv6'"),
    ({"fold": "ind"}, "ind is one bit, not 8"),
    ({"fold": "sum_squ", "bits": 1}, "no root; give 2 bits or more"),
    ({"fold": "sum", "bins": "log"}, "do not add up; give equal bins for sum"),
    ({"bins": "log", "mantissa": 8}, "a mantissa of 8 bits does not fit a code of 8; give 0 to 7"),
    ({"bins": "log", "mantissa": 2}, "span more than 2\\^32 steps; give a longer mantissa"),
    ({"capacity": 3}, "only a vector has a capacity; leave it out for max"),
    ({"fold": "vector", "capacity": 64}, "hops of a vector"),
    ({"fold": "vector", "capacity": 0}, "hops of a vector"),
    ({"own": True}, "counts in bytes or packets, not in time"),
    ({"source": "utilisation", "full_scale": 2.0}, "a utilisation needs a base_rtt above 0"),
    ({"base_rtt": "10 us"}, "no other source has one"),
    (
        {"fold": "vector", "capacity": 14, "bits": 32},
        "an option of 59 bytes; an IPv4 header has room for 40. Give fewer hops or bits",
    ),
]


@pytest.mark.parametrize(("change", "message"), REFUSED)
def test_what_makes_no_sense_is_refused(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TidegateError, match=message):
        Format(**{**VALID, **change})


def test_a_full_scale_below_the_resolution_is_refused() -> None:
    with pytest.raises(TidegateError, match="1 us is too short for its number of codes"):
        Format("1 us", 32).scale("10 Gbit/s")
    with pytest.raises(TidegateError, match="does not go with a link of 1 kbit/s"):
        Format(2.0, source="utilisation", base_rtt="1 us").scale("1 kbit/s")


def test_room_for_the_field_and_its_echo() -> None:
    small, large = Format("1 ms"), Format("1 ms", 16, fold="vector", capacity=14)
    small.demand_room(ip_options=36)
    with pytest.raises(TidegateError, match="an option of 4 bytes; other options leave 0 of the 40 bytes"):
        small.demand_room(ip_options=40)
    with pytest.raises(TidegateError, match=r"echo of a stamp has 29 bytes; .* room for 24"):
        large.demand_room()
    small.demand_room(mtu=68)
    with pytest.raises(
        TidegateError, match="an MTU of 60 has no room for payload behind headers of 56 bytes"
    ):
        small.demand_room(mtu=60)


def test_claim_c20_a_byte_is_0_4_percent_of_256_byte_packets() -> None:
    """The field costs more than its byte: with type, length and hops it is 4 bytes, and so is the echo."""
    form = Format("1 ms")
    assert round(100 / 256, 2) == 0.39
    assert (form.wire_bytes, form.echo_bytes) == (4, 4)
    assert round(100 * form.overhead(256), 2) == 1.56
    assert round(100 * form.overhead(1514), 2) == 0.26
    assert round(100 * Format("1 ms", carrier="shim").overhead(256), 2) == 1.95


def test_claim_c22_what_squares_of_14_entries_need() -> None:
    """300 kB takes 19 bits; the squares of 14 such entries 41 bits in bytes, and 29 in cells of 64 bytes."""
    buffer, entries = 300_000, 14
    assert buffer.bit_length() == 19
    assert (entries * buffer**2).bit_length() == 41
    form = Format("4 MiB", 32, "bytes", "sum_squ")
    scale, field = form.scale("10 Gbit/s"), form.blank
    for _ in range(entries):
        field = folded(form, field, buffer, scale)
    assert form.read(field).code.bit_length() == 29
    assert form.decode(form.read(field).code) == pytest.approx(14**0.5 * buffer, rel=1e-3)


README = Path(__file__).with_name("README.md").read_text()


def room(size: int, limit: int) -> str:
    """Bytes on the wire of an option with a field."""
    return str(-(-(2 + size) // 4) * 4) if size <= limit else "no room"


@pytest.mark.parametrize(
    ("label", "bits", "hops"),
    [
        ("`max`, `ind`: 1 to 8 bits", 8, 1),
        ("`max`, `sum`, `sum_squ`: 16 bits", 16, 1),
        ("32 bits", 32, 1),
        ("`vector`, 4 hops of 8 bits", 8, 4),
        ("`vector`, 14 hops of 8 bits", 8, 14),
        ("`vector`, 14 hops of 16 bits", 16, 14),
        ("`vector`, 14 hops of 32 bits", 32, 14),
    ],
)
def test_the_table_of_carriers_is_what_formats_take(label: str, bits: int, hops: int) -> None:
    shim = Format("1 s", bits, carrier="shim", fold="vector", capacity=hops)
    row = f"| {label} | {shim.size} | {room(shim.size, 38)} | {shim.wire_bytes} | {room(shim.size, ECHO_ROOM)} |"
    assert row in README
    assert str(shim.echo_bytes) == room(shim.size, 100)
    if shim.size <= 38:
        assert str(replace(shim, carrier="option").wire_bytes) == room(shim.size, 38)


@pytest.mark.parametrize("size", [64, 256, 1514])
def test_the_table_of_overheads_is_what_formats_cost(size: int) -> None:
    forms = [
        Format("1 ms"),
        Format("1 ms", carrier="shim"),
        Format("1 ms", fold="vector", capacity=14),
    ]
    shares = [1 / size, *(form.overhead(size) for form in forms)]
    assert f"| {size} | " + " | ".join(f"{100 * share:.2f} %" for share in shares) + " |" in README


@pytest.mark.parametrize(
    ("form", "unit", "shift"),
    [
        (Format("2 ms", 8), "7812500 ps", 0),
        # 74218.75 ps: whole ones are near enough.
        (queue_stamp(8), "74219 ps", 0),
        (queue_stamp(32, "sum"), "145 ps", 11),
        (Format("1 ms", 32), "477 ps", 11),
        (exact("max", scale=0.4), "205 ps", 9),
    ],
    ids=str,
)
def test_a_step_is_told_within_a_thousandth(form: Format, unit: str, shift: int) -> None:
    options = form.control_options
    told = int(str(options["stamp_unit"]).removesuffix(" ps")) / 2 ** int(options.get("stamp_shift", 0))
    assert told == pytest.approx(float(form.full / form.range), rel=1e-3)
    assert (options["stamp_unit"], options.get("stamp_shift", 0)) == (unit, shift)


def test_a_congestion_control_is_told_the_format() -> None:
    form = Format("1024 us", 8, bins="log", mantissa=5)
    assert form.control_options == {
        "stamp_unit": "250000 ps",
        "stamp_fold": "max",
        "stamp_kind": 253,
        "stamp_mantissa": 5,
    }
    vector = Format("256 us", 16, fold="vector", capacity=3)
    assert vector.control_options["stamp_entry"] == 2
    net = Network()
    a, b = net.host("a"), net.host("b")
    for one in (form, vector, Format("1 ms", 32, fold="sum_squ")):
        net.tcp(a, b, congestion_control="stamp", control_options=one.control_options)
    with pytest.raises(TidegateError, match="read times from stamps; these are in bytes"):
        _ = Format("1 MiB", source="bytes").control_options
    with pytest.raises(TidegateError, match="give a mantissa of 1 or more, or equal bins"):
        _ = Format("1 ms", 4, bins="log", mantissa=0).control_options
