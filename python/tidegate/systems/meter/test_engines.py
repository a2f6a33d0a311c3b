"""`meter.p4`: interpreter and JIT do the same to any packets with any configuration."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.systems.meter.packet_harness import (
    ENGINES,
    GENERATOR,
    MAC,
    METERS,
    PROGRAM,
    Config,
    tokens,
    udp,
    udp6,
)

PAIR = [PROGRAM.pipeline(engine, seed=3) for engine in ENGINES]
CONFIGS = st.builds(
    Config,
    rate=st.integers(0, 2**32 - 1),
    burst=st.integers(0, 2**47),
    mark_below=st.fractions(0, 10_000),
    probability=st.integers(0, 2**17 - 1),
    shift=st.integers(0, 63),
    marks=st.booleans(),
    second_chance=st.booleans(),
    averages=st.booleans(),
    timer=st.booleans(),
)
CELLS = st.lists(st.integers(0, 2**32 - 1) | st.integers(0, 2**64 - 1), min_size=2, max_size=2)


@pytest.mark.slow
@given(
    config=CONFIGS,
    cells=CELLS,
    packets=st.lists(
        st.tuples(st.integers(0, 2**50), st.integers(60, 3000), st.integers(0, 3), st.integers(0, 2)),
        max_size=20,
    ),
)
def test_both_engines_agree(
    config: Config, cells: list[int], packets: list[tuple[int, int, int, int]]
) -> None:
    index = next(METERS)
    known = []
    for switch in PAIR:
        for table in ("forward", "targets4", "targets6", "meters", "generators"):
            switch.table_clear(table)
        switch.table_add("forward", [MAC], "to_port", [1])
        switch.table_add("targets4", ["0.0.0.0/0"], "use", [index])
        switch.table_add("targets6", ["::/0"], "use", [index])
        switch.table_add("generators", [GENERATOR], "pass")
        switch.table_add("meters", [index], "configure", config.values)
        for register, cell in zip(("level", "average"), cells, strict=True):
            switch.register_write(register, [cell], index)
        switch.register_write("rate", [config.rate], index)
        outputs, now = [], 0
        for gap, length, ecn, kind in packets:
            now += gap
            packet = (udp(length, ecn), udp6(length, ecn), tokens(index, length))[kind]
            outputs.append(switch.process(now, GENERATOR if kind == 2 else 0, packet))
        state = [int(switch.register_read(name, index, 1)[0]) for name in ("level", "average", "updated")]
        counts = [
            switch.counter_read(name, index, 1).tolist() for name in ("passed", "dropped", "marked", "spared")
        ]
        known.append((outputs, state, counts))
    assert known[0] == known[1]
