"""The combination: its parts keep apart."""

from __future__ import annotations

import polars as pl
import pytest

from tidegate import TidegateError
from tidegate.measures import last
from tidegate.systems.combined.experiments.together import FORM, PARTS, network
from tidegate.systems.combined.setup import combine, program
from tidegate.systems.stamping.format import Format


def test_each_part_does_its_work_in_the_combination() -> None:
    result = network(PARTS["together"], 10).run("4 s")
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
    net = network(PARTS["together"], 10)
    result = net.run("3 s")
    marked = result.flows.filter(pl.col("label") == "metered 4")["ece_received"].item()
    assert marked > 0
    # L has the two Prague flows' packets and their handshakes, and none of the metered flow's.
    low = result.queues.filter(pl.col("queue") == "switch -> right", pl.col("number") == 1)["bytes"].item()
    prague = result.flows.filter(pl.col("label").str.starts_with("prague"))["bytes_received"].sum()
    assert low < 1.08 * float(prague)


def test_a_stamp_in_an_option_is_refused() -> None:
    with pytest.raises(TidegateError, match="give carrier='shim'"):
        program(Format("320 ms"))


def test_the_format_is_the_program_s() -> None:
    from tidegate.network import Network

    assert combine(Network(), "s", FORM).program is program(FORM)
