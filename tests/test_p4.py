"""`tidegate.p4`."""

import contextlib

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import EXAMPLES
from tidegate import TidegateError, p4

PACKET = bytes.fromhex("00000000000100000000000208004500001c00000000401164cd0a0000010a0102031111222233334444")
ROUTER = p4.compile(EXAMPLES / "ipv4_router" / "ipv4_router.p4")
MARKER = p4.compile(EXAMPLES / "ecn_marker" / "ecn_marker.p4")


@pytest.mark.parametrize("engine", ["interp", "jit"])
def test_a_packet_and_its_entries(engine: str) -> None:
    switch = ROUTER.pipeline("jit" if engine == "jit" else "interp")
    handle = switch.table_add("routes", ["10.1.0.0/16"], "next_hop", [3, "02:00:00:00:00:03", 0x020000000004])
    [(port, out)] = switch.process(0, 1, PACKET)
    assert (port, out[22]) == (3, 63)
    switch.table_modify("routes", handle, "next_hop", [4, 1, 2])
    assert switch.process(0, 1, PACKET)[0][0] == 4
    switch.table_delete("routes", handle)
    outputs, text = switch.trace(0, 1, PACKET)
    assert outputs == []
    assert "miss" in text
    assert switch.drops == {"dropped in ingress": 1}


def test_refusals_change_nothing() -> None:
    switch = ROUTER.pipeline()
    for match, values in ((["10.0.0.0"], [1, 2, 3]), (["10.0.0.0/8"], [1]), (["10.0.0.0/8 # x"], [1, 2, 3])):
        with pytest.raises(TidegateError):
            switch.table_add("routes", match, "next_hop", values)
    assert switch.command("table_num_entries routes") == "0"
    with pytest.raises(TidegateError, match="no table"):
        switch.command("table_clear nowhere")
    with pytest.raises(TidegateError, match="cannot be read"):
        p4.compile("no/such.p4")
    with pytest.raises(TidegateError, match="no engine"):
        ROUTER.pipeline("steam")  # type: ignore[arg-type]


def test_registers_in_bulk() -> None:
    switch = MARKER.pipeline()
    assert switch.register_read("threshold").tolist() == [0]
    switch.register_write("threshold", [7])
    assert switch.register_read("MarkerEgress.threshold").tolist() == [7]
    assert switch.counter_read("marked").shape[1] == 2
    for values, start in (([1, 2], 0), ([1], 1), ([2**60], 0), ([-1], 0), ([0.5], 0)):
        with pytest.raises(TidegateError):
            switch.register_write("threshold", values, start)
    assert switch.register_read("threshold").dtype == np.uint64
    assert switch.register_read("threshold").tolist() == [7]


def test_what_a_program_says_of_itself() -> None:
    assert ROUTER.summary["tables"][0]["name"] == "RouterIngress.routes"
    assert 'name: "RouterIngress.routes"' in ROUTER.p4info


@pytest.mark.slow
@given(st.binary(max_size=200), st.integers(0, 2**40))
def test_both_engines_agree_on_any_packet(packet: bytes, now: int) -> None:
    outputs = []
    for engine in ("interp", "jit"):
        switch = ROUTER.pipeline("jit" if engine == "jit" else "interp")
        switch.table_add("routes", ["0.0.0.0/0"], "next_hop", [3, 1, 2])
        outputs.append((switch.process(now, 1, packet), switch.drops))
    assert outputs[0] == outputs[1]


@pytest.mark.slow
@given(st.text())
def test_any_line_is_answered_or_refused(line: str) -> None:
    switch = ROUTER.pipeline("interp")
    before = switch.command("show_tables")
    with contextlib.suppress(TidegateError):
        switch.command(line)
    assert switch.command("show_tables") == before


def test_what_is_no_packet_port_or_time_is_refused() -> None:
    pipeline = MARKER.pipeline()
    for now, port, packet, message in [
        (0, 0, "abc", "a packet is bytes, not a str"),
        (0, -1, b"", "-1 is not a port's number: give a whole number from 0 to 511"),
        (0, 512, b"", "512 is not a port's number"),
        (-1, 0, b"", "-1 is not a time in picoseconds"),
        ("1 s", 0, b"", "'1 s' is not a time in picoseconds"),
    ]:
        for run in (pipeline.process, pipeline.trace):
            with pytest.raises(TidegateError, match=message):
                run(now, port, packet)  # type: ignore[arg-type]
