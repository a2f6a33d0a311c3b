"""The combination: its parts keep apart."""

from __future__ import annotations

from functools import cache, partial

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tidegate import TidegateError
from tidegate.control import SwitchApi
from tidegate.control.part import Part
from tidegate.measures import last
from tidegate.p4 import Pipeline
from tidegate.systems.aqm.controller import Aqm, AqmController
from tidegate.systems.combined.experiments.together import FORM, PARTS, Setting, network
from tidegate.systems.combined.setup import AQM_NAMES, METER_NAMES, combine, program
from tidegate.systems.meter.controller import MeterController
from tidegate.systems.meter.tables import Meter, Prefix
from tidegate.systems.stamping.format import Format


@pytest.mark.parametrize("meter", ["paper", "fair"])
def test_each_part_does_its_work_in_the_combination(meter: str) -> None:
    result = network(PARTS["together"], Setting(meter=meter)).run("4 s")
    goodput = dict(zip(result.flows["label"], result.flows["goodput_mbps"], strict=True))
    assert 7 < goodput["metered 4"] < 10.5
    assert goodput["stamp 5"] + goodput["stamp 6"] > 80
    assert last(result.notes, "unstamped") == 0
    delays = dict(
        zip(
            *result.queue_samples.filter(pl.col("queue") == "switch -> right", pl.col("time_s") > 2)
            .group_by("number")
            .agg(pl.col("queue_delay_ms").mean())
            .sort("number"),
            strict=True,
        )
    )
    assert delays[1] < 1 < delays[0] < 25


def test_a_meter_s_mark_leaves_the_queue_as_it_is() -> None:
    """The metered flow is ECN-capable and Classic: with marks in the L queue it would have that queue's delay."""
    net = network(PARTS["together"], Setting())
    result = net.run("3 s")
    marked = result.flows.filter(pl.col("label") == "metered 4")["ece_received"].item()
    assert marked > 0
    # L has the two Prague flows' packets and their handshakes, and none of the metered flow's.
    low = result.queues.filter(pl.col("queue") == "switch -> right", pl.col("number") == 1)["bytes"].item()
    prague = result.flows.filter(pl.col("label").str.starts_with("prague"))["bytes_received"].sum()
    assert low < 1.08 * float(prague)


MAC, OUT = "02:00:00:00:00:02", 1
ADDRESSES = bytes.fromhex("020000000002020000000001")


@st.composite
def ip_packets(draw: st.DrawFn) -> tuple[int, bytes]:
    """EtherType and IP packet: mostly to the customer, all else drawn."""
    payload = draw(st.binary(min_size=8, max_size=40))
    if draw(st.booleans()):
        header = bytearray(draw(st.binary(min_size=20, max_size=20)))
        header[0] = draw(st.sampled_from([0x45, 0x45, 0x46]))
        header[9] = draw(st.sampled_from([6, 17, 1]))
        header[16] = draw(st.sampled_from([10, 10, 11]))
        return 0x0800, bytes(header) + payload
    header = bytearray(draw(st.binary(min_size=40, max_size=40)))
    header[6] = draw(st.sampled_from([6, 17, 0, 58]))
    header[24] = draw(st.sampled_from([0xFD, 0xFD, 0x20]))
    return 0x86DD, bytes(header) + payload


@cache
def metered_and_managed() -> Pipeline:
    """A switch that meters what is for the customer, and manages the queue to it."""
    switch = program(FORM).pipeline("jit", seed=1)
    api = SwitchApi("switch", switch._core, (), lambda *_: None)
    matches = (Prefix("10.0.0.0/8", "to"), Prefix("fd00::/8", "to"))
    Part(MeterController([Meter(0, "1 Gbit/s", matches)], ports={MAC: OUT}), METER_NAMES).start(api)
    Part(AqmController({OUT: 10**9}, Aqm(), ports={MAC: OUT}), AQM_NAMES).start(api)
    return switch


@settings(max_examples=100, deadline=None)
@given(packets=st.lists(ip_packets(), min_size=1, max_size=8), tagged=st.booleans())
def test_the_other_parts_see_the_same_behind_a_shim_and_without_one(
    packets: list[tuple[int, bytes]], tagged: bool
) -> None:
    """Meter, class of the queue, counters; what leaves differs by the shim alone."""
    switch = metered_and_managed()
    passed = partial(switch.counter_read, METER_NAMES["passed"], 0, 1)
    arrived = partial(switch.counter_read, "arrived", 2 * OUT, 2)
    tag = b"\x81\x00\x00\x07" if tagged else b""
    shims = {False: b"", True: b"\x88\xb5"}
    for at, (kind, packet) in enumerate(packets):
        seen = []
        for shim in (False, True):
            field = bytes([FORM.size]) + bytes(FORM.size)
            front = ADDRESSES + tag + shims[shim] + kind.to_bytes(2) + (field if shim else b"")
            before = passed()[0][0], arrived()[:, 0].tolist()
            (out,) = switch.process((2 * at + shim) * 10**9, 0, front + packet)
            after = passed()[0][0], arrived()[:, 0].tolist()
            counts = [int(new - old) for new, old in zip(after[1], before[1], strict=True)]
            seen.append((out[0], out[1][len(front) :], int(after[0] - before[0]), counts))
        assert seen[0] == seen[1]
        metered = packet[16] == 10 if kind == 0x0800 else packet[24] == 0xFD
        assert seen[0][2] == int(metered)


def test_a_stamp_in_an_option_is_refused() -> None:
    with pytest.raises(TidegateError, match="give carrier='shim'"):
        program(Format("320 ms"))


def test_the_format_is_the_program_s() -> None:
    from tidegate.network import Network

    assert combine(Network(), "s", FORM).program is program(FORM)
