"""Operations on a switch as values: the same from methods, from `act`, and from text."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import EXAMPLES
from tidegate import TidegateError, p4
from tidegate.control import operations as op

METERS = p4.compile(
    Path(__file__).parent.parent / "crates" / "commands" / "tests" / "p4" / "v1model" / "meters.p4"
)
ROUTER = p4.compile(EXAMPLES / "ipv4_router" / "ipv4_router.p4")
ACTION = ("next_hop", [2, "02:00:00:00:00:01", "02:00:00:00:00:02"])


@settings(max_examples=300, deadline=None)
@given(
    rate=st.one_of(
        st.integers(0, 10**13),
        st.floats(0, 1e13, allow_nan=False),
        st.floats(0, 1, allow_nan=False),
        st.integers(0, 10**9).map(lambda n: n / 8),
    ),
    burst=st.integers(0, 2**40),
)
def test_rates_are_those_of_the_command_line(rate: float, burst: int) -> None:
    typed, text = METERS.pipeline("interp"), METERS.pipeline("interp")
    typed.meter_set_packets("I.packets", 0, committed_rate=rate, committed_burst=burst)
    words = f"{rate / 1e6:.12f}:{burst}"
    text.command(f"meter_set_rates I.packets 0 {words} {words}")
    assert typed.act(op.MeterRead("I.packets", 0, 1)) == text.act(op.MeterRead("I.packets", 0, 1))


def test_rates_in_bits_are_exact() -> None:
    switch = METERS.pipeline("interp")
    switch.meter_set("I.packets", 0, committed_rate="80.000001 Mbit/s", committed_burst="10 kB")
    assert switch.act(op.MeterRead("I.packets", 0, 1)) == [(10_000_000_125, 10_000, 10_000_000_125, 10_000)]
    with pytest.raises(TidegateError, match="not a rate"):
        switch.meter_set_packets("I.packets", 0, committed_rate=-1, committed_burst=1)
    with pytest.raises(TidegateError, match="must not be less than the first"):
        switch.meter_set_packets("I.packets", 0, committed_rate=2, committed_burst=1, peak_rate=1)


def test_a_refusal_has_parts() -> None:
    switch = ROUTER.pipeline()
    switch.table_add("routes", ["10.0.0.0/8"], *ACTION)
    cases = [
        (op.TableAdd("routes", ["10.0.0.0/8"], ACTION), "exists", "has an entry with this match"),
        (
            op.TableAdd("router", ["10.0.0.0/8"], ACTION),
            "not found",
            r"no table `router`; did you mean `RouterIngress.routes`\? there are",
        ),
        (op.TableAdd("routes", [], ACTION), "invalid", r"has 1 key \(.*\), not 0"),
        (op.TableAdd("routes", ["10.0.0.0/8"], ("next_hop", [1])), "invalid", "takes 3 values"),
        (
            op.TableAdd("routes", [(bytes(5), b"\x08")], ("next_hop", [512, 1, 1])),
            "out of range",
            "fit in the 9 bits",
        ),
        (op.TableDelete("routes", 9), "not found", "has no entry 9"),
    ]
    for operation, kind, why in cases:
        with pytest.raises(TidegateError, match=why) as caught:
            switch.act(operation)
        assert getattr(caught.value, "kind", None) == kind, operation
    assert len(switch.table_entries("routes")) == 1
    with pytest.raises(TidegateError) as caught:
        switch.act(cases[1][0])
    error = vars(caught.value)
    assert error["object"] == "table `router`"
    assert "? there are `" in error["cure"]


def test_what_is_not_an_operation_is_refused() -> None:
    switch = ROUTER.pipeline()
    for wrong in (None, "table_add", object()):
        with pytest.raises(TidegateError, match="is not an operation"):
            switch.act(wrong)  # type: ignore[arg-type]
    for wrong in (op.TableDelete("routes", "first"), op.TableDelete("routes", -1)):  # type: ignore[arg-type]
        with pytest.raises(TidegateError, match=r"the entry .* is not"):
            switch.act(wrong)
    with pytest.raises(TidegateError, match="`port_read` is for a switch with ports"):
        switch.act(op.PortRead(0))


def test_an_entry_is_found_by_handle_and_by_key() -> None:
    switch = ROUTER.pipeline()
    handle = switch.act(op.TableAdd("routes", [("10.0.0.0", 8)], ACTION))
    for entry in (handle, (["10.0.0.0/8"], None), ([(b"\x0a\x00\x00\x00", b"\x08")], None)):
        rows, more = switch.act(op.TableRead("routes", 0, entry))
        assert [row[0] for row in rows] == [handle]
        assert more is None
    switch.act(op.TableSet("routes", (["10.0.0.0/8"], None), ("drop", [])))
    assert switch.table_entries("routes")[0].action.endswith("drop")
    switch.act(op.TableDelete("routes", (["10.0.0.0/8"], None)))
    assert switch.table_entries("routes") == []


def test_what_a_table_says_can_be_written_again() -> None:
    first, second = ROUTER.pipeline(), ROUTER.pipeline()
    for prefix in ("0.0.0.0/0", "10.0.0.0/8", "10.1.2.3/32"):
        first.table_add("routes", [prefix], *ACTION)
    rows, _ = first.act(op.TableRead("routes", 0))
    for row in rows:
        second.act(op.TableAdd("routes", row[1], row[3]))
    assert second.table_entries("routes") == first.table_entries("routes")


def test_batches() -> None:
    switch = ROUTER.pipeline()
    good, other = (op.TableAdd("routes", [prefix], ACTION) for prefix in ("10.0.0.0/8", "11.0.0.0/8"))
    assert switch.batch([]) == switch.batch([], "all") == []
    answers = switch.batch([good, good, op.TableDelete("route", 0), other])
    assert [answers[0], answers[3]] == [0, 1]
    assert [getattr(answer, "kind", None) for answer in answers[1:3]] == ["exists", "not found"]
    before = switch.table_entries("routes")
    with pytest.raises(TidegateError, match="already") as caught:
        switch.batch([op.TableDelete("routes", 0), op.TableClear("routes"), good, good], "all")
    assert vars(caught.value)["index"] == 3
    assert switch.table_entries("routes") == before
    assert switch.batch([op.TableClear("routes"), other, good], "all") == [None, 1, 0]


def test_a_long_batch_is_done_in_order() -> None:
    switch = ROUTER.pipeline()
    prefixes = [f"10.{i // 256}.{i % 256}.0/24" for i in range(1000)]
    adds = [op.TableAdd("routes", [prefix], ACTION) for prefix in prefixes]
    assert switch.batch(adds) == list(range(1000))
