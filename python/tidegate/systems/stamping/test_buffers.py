"""The search for the smallest buffer, in short runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tidegate.claims import Row
from tidegate.experiments import find
from tidegate.experiments import run as run_experiment
from tidegate.papers import Missing
from tidegate.systems.stamping.claims import _bounded, _smaller_buffers
from tidegate.systems.stamping.experiments.buffers import BUSY, Chain, needed
from tidegate.systems.stamping.experiments.contenders import T0_US

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("hops", [1, 3, 12])
def test_the_round_trip_without_queues_is_t0_for_all_flows(hops: int) -> None:
    chain = Chain("stamp", 2, hops, 100, 1.0, 1.0)
    for number in range(hops + 1):
        network = chain.network(1)
        hosts = {node.name: node for node in network.nodes}
        # One at a time.
        network.flows.clear()
        network.tcp(hosts[f"from{number}"], hosts[f"to{number}"], **chain.who.keywords)
        samples = network.run("400 us", progress=False).flow_samples
        # `stamp` lets a queue of 0.08 T0 stand.
        assert -0.1 < samples["srtt_ms"].drop_nulls()[-1] * 1e3 - T0_US < 0.08 * T0_US


@pytest.mark.parametrize("column", ["buffer_packets", "lossless_packets"])
def test_what_the_search_finds_suffices_and_one_packet_less_does_not(column: str) -> None:
    chain = Chain("stamp", 4, 2, 64, 4.0, 1.0)
    row = chain.rows(chain.network(3).run(chain.until, seed=3, progress=False))
    found = row[column]
    assert 1 < found < 64

    def suffices(buffer: int) -> bool:
        busy, dropped = chain.judge(chain.network(3, buffer).run(chain.until, seed=3, progress=False))
        return busy >= BUSY and (column == "buffer_packets" or dropped == 0)

    assert suffices(found)
    assert not suffices(found - 1)


def test_where_no_buffer_suffices_there_is_none() -> None:
    """HPCC uses 95 % of a link."""
    chain = Chain("hpcc", 4, 1, 200, 4.0, 1.0)
    row = chain.rows(chain.network(1).run(chain.until, seed=1, progress=False))
    assert (row["buffer_packets"], row["lossless_packets"]) == (None, None)
    assert 0.8 < row["busy_with_most"] < BUSY


def rows(**packets: dict[tuple[int, int], int | None]) -> list[Row]:
    return [
        {
            "contender": name.replace("_", "-"),
            "hops": hops,
            "flows": flows,
            "threshold": None,
            "lossless_packets": found,
            "buffer_packets": 1,
        }
        for name, cells in packets.items()
        for (hops, flows), found in cells.items()
    ]


def test_the_best_threshold_counts() -> None:
    own = [
        {"contender": "dctcp", "hops": 1, "flows": 2, "threshold": threshold, "lossless_packets": found}
        for threshold, found in ((2, None), (3, 9), (5, 7), (8, 11))
    ]
    assert needed(own, "dctcp", "lossless_packets") == {"2 over 1": 7.0}
    assert needed(own[:1], "dctcp", "lossless_packets") == {"2 over 1": np.inf}


def test_claims_of_the_paper_by_rows() -> None:
    """C14: MAX never needs more than RTT. C25: over shared queues, MAX needs about the same."""
    small = rows(timely_max={(1, 10): 20, (4, 10): 24}, timely_rtt={(1, 10): 20, (4, 10): None})
    assert _smaller_buffers(small, {}).found
    assert _bounded(small, {}).found
    large = rows(timely_max={(1, 10): 20, (4, 10): 40}, timely_rtt={(1, 10): 19, (4, 10): None})
    assert not _smaller_buffers(large, {}).found
    assert not _bounded(large, {}).found
    # What one seed gives says so.
    assert _smaller_buffers(small, {}).measured.endswith("; one seed")
    seeds = [row | {"seed": seed} for row in small for seed in (1, 2)]
    assert not _smaller_buffers(seeds, {}).measured.endswith("seed")
    with pytest.raises(Missing):
        _bounded(rows(timely_max={(1, 10): 20}, timely_rtt={(1, 10): 20}), {})


def test_telemetry_is_left_out_of_rows_that_it_has_no_room_for() -> None:
    plan = find("stamping.buffers").plan(contenders=("hpcc", "cubic"), flows=(2,), hops=(2, 4))
    assert [case.name for case in plan.cases] == [
        "hpcc-2-1",
        "hpcc-10-2",
        "cubic-2-1",
        "cubic-10-2",
        "cubic-10-4",
    ]


def test_it_runs_is_drawn_and_judged(tmp_path: Path) -> None:
    settings = {
        "contenders": ("stamp", "timely-max", "timely-rtt", "dctcp"),
        "flows": (4,),
        "hops": (2,),
        "flows_of_hops": 4,
        "thresholds": (3, 8),
        "duration_ms": 2.0,
        "most_packets": 64,
    }
    answer = run_experiment("stamping.buffers", settings, seeds=[1], out=tmp_path / "out")
    assert (tmp_path / "out" / "figure.png").stat().st_size > 10_000
    assert len(answer["rows"]) == 10
    ids = [claim["id"] for claim in answer["claims"]]
    assert ids == ["c14", "c25", "half-of-dctcp-losses", "half-of-dctcp-without"]
    assert all(claim["why"] for claim in answer["claims"] if not claim["holds"])
