"""`separation.fct`: rows beside the tables that they are computed from, its flows, and lists of flows from a capture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from tidegate._core import TidegateError
from tidegate.claims import Row
from tidegate.experiments import Run, run
from tidegate.experiments.registry import find
from tidegate.monitor import frame, watch
from tidegate.network import Network
from tidegate.systems.separation.buffers import stanford
from tidegate.systems.separation.controller import SeparationController
from tidegate.systems.separation.experiments import fct
from tidegate.systems.separation.experiments.long_flows import (
    MEAN_MB,
    RTTS_MS,
    SIZES_MB,
    TRACE,
    listed,
    workload,
)
from tidegate.systems.separation.experiments.testbed import MTU

RATE_MBPS = 10.0
FLOWS = 20


def rows(out: Path, **settings: Any) -> dict[str, Row]:
    """By contender."""
    given = {**find("separation.fct").parameters(), "flows": FLOWS, "rate_mbps": RATE_MBPS, **settings}
    found = run("separation.fct", given, seeds=[1], out=out)["rows"]
    return {row["contender"]: row for row in found}


@pytest.mark.slow
def test_rows_say_what_flows_and_queues_have(tmp_path: Path) -> None:
    contenders = ("fifo-1", "hash-4", "rtt-2", "split-4")
    found = rows(tmp_path / "out", contenders=contenders, arrivals=("once",))
    rtts = np.array(workload(FLOWS, RATE_MBPS, 0.0, 1).rtts)
    long = rtts > np.median(rtts)
    for contender in contenders:
        row = found[contender]
        tables = tmp_path / "out" / "tables" / f"cubic-{contender}-once-1"
        flows = pl.read_parquet(tables / "flows.parquet").sort("flow")
        queues = pl.read_parquet(tables / "queues.parquet").filter(pl.col("queue") == "r1 -> r2")
        times = flows["completion_ms"].to_numpy() / 1e3
        assert row["unfinished"] == 0
        assert row["fct_s_mean"] == pytest.approx(times.mean())
        assert row["fct_s_p95"] == pytest.approx(np.percentile(times, 95))
        assert row["short_over_long"] == pytest.approx(times[~long].mean() / times[long].mean())
        rates = flows["size_bytes"].to_numpy() / times
        assert row["jain"] == pytest.approx(rates.sum() ** 2 / (FLOWS * (rates**2).sum()))
        # All start within a second: the time with work is from the first start to the last end.
        work_s = flows["finish_s"].to_numpy().max() - flows["start_s"].to_numpy().min()
        idle = 1 - int(queues["bytes"].sum()) * 8 / (RATE_MBPS * 1e6) / work_s
        assert 0 < row["idle_while_flows"] == pytest.approx(idle, abs=1e-6)
        assert 0 <= row["idle_while_waiting"] <= idle
        # The queue of the shortest round-trip times is that of the first class, where there are classes.
        first = queues.filter(pl.col("number") == (contender != "fifo-1"))
        assert row["short_delay_ms_p99"] == first["queue_delay_ms_p99"].item()
        assert len(queues) == {"fifo-1": 1, "rtt-2": 3}.get(contender, 5)
        notes = pl.read_parquet(tables / "notes.parquet")
        looks = notes.filter(pl.col("quantity") == "classes_right")
        right = looks["value"].mean()
        assert row["classes_right"] == (None if right is None else pytest.approx(right))
        ideal = notes.filter(pl.col("quantity") == "classes_ideal")["value"].mean()
        assert row["classes_ideal"] == (None if ideal is None else pytest.approx(ideal))
        if right is not None:
            # The run goes on for half as long again as the flows, which are not judged when they have ended.
            last_s = flows["finish_s"].to_numpy().max()
            assert 0 < looks["time_s"].to_numpy().max() <= last_s + 2 < 0.8 * notes["time_s"].to_numpy().max()
        assert (row["classified"] is not None) == (contender in ("rtt-2", "split-4"))
        newcomers = queues.filter(pl.col("number") == 0)["bytes"].item() / int(queues["bytes"].sum())
        assert row["newcomers"] == (None if contender == "fifo-1" else pytest.approx(newcomers))
    assert 0.8 < found["rtt-2"]["classified"] <= 1
    assert 0 < found["rtt-2"]["newcomers"] < 0.5
    assert found["rtt-2"]["classes_right"] > 0.95


@pytest.mark.parametrize("waiting", [0.009, 0.011, None])
def test_the_link_is_claimed_to_be_busy_while_packets_wait(waiting: float | None) -> None:
    """With classes by round-trip time, in each seed."""
    columns = ("fct_s_mean", "short_over_long", "idle_while_flows", "jain", "short_delay_ms_p99")
    row: Row = {"control": "cubic", "load": 0.8, "classes_right": None, **dict.fromkeys(columns, 1.0)}
    parts: dict[str, list[float | None]] = {
        "fifo-1": [0.02, 0.02],
        "eq1-4": [0.02, 0.02],
        "rtt-4": [0.001, waiting],
    }
    rows = [
        row | {"contender": name, "seed": seed} | ({} if waiting is None else {"idle_while_waiting": part})
        for name, both in parts.items()
        for seed, part in enumerate(both, 1)
    ]
    claims = {claim.id: claim.holds for claim in fct._claims(rows)}
    assert claims.get("idle") == (None if waiting is None else waiting < 0.01)


@pytest.mark.slow
def test_classes_by_round_trip_time_take_its_advantage_away(tmp_path: Path) -> None:
    """In one queue flows of short round-trip times are sooner done; with classes by it those of either half take as long."""
    found = rows(
        tmp_path / "out", contenders=("fifo-1", "rtt-4"), arrivals=("once",), flows=60, rate_mbps=50.0
    )
    assert found["fifo-1"]["short_over_long"] < 0.85
    assert 0.9 < found["rtt-4"]["short_over_long"] < 1.1
    assert found["rtt-4"]["classes_right"] > 0.99


@pytest.mark.parametrize(
    ("contender", "aqm", "bdps"),
    [
        ("fifo-0.1", None, 0.1),
        ("fifo-1", None, 1.0),
        ("fifo-10", None, 10.0),
        ("codel", "codel", 1.0),
        ("drr", "drr", 1.0),
        ("fq_codel", "fq_codel", None),
    ],
)
def test_contenders_without_classes_have_their_queues(
    contender: str, aqm: str | None, bdps: float | None
) -> None:
    bed = fct.Bed(contender, "cubic", FLOWS, RATE_MBPS, 0.0, 10.0)
    net = bed.network(1)
    (wire,) = [link.forward for link in net.links if link.name == "r1 - r2"]
    assert wire.aqm == aqm
    if bdps is None:
        assert wire.packets == 10240
    else:
        assert wire.bytes == max(round(RATE_MBPS * 1e6 / 8 * bed.workload(1).mean_rtt_s * bdps), 4 * MTU)
    assert not net.controllers


def test_the_stanford_buffer_is_by_the_flows_that_there_are_at_once() -> None:
    def size(load: float) -> int:
        net = fct.Bed("fifo-stanford", "cubic", 300, 100.0, load, 10.0).network(1)
        (wire,) = [link.forward for link in net.links if link.name == "r1 - r2"]
        return wire.bytes or 0

    mean = workload(300, 100.0, 0.0, 1).mean_rtt_s
    assert size(0.0) == stanford(1e8, mean, 300, floor_packets=4)
    # In overload nearly all run at once, at a load of 0.8 some ten.
    assert size(0.0) <= size(TRACE) < size(0.8) < stanford(1e8, mean, 1)


@pytest.mark.parametrize(
    ("contender", "options"),
    [
        ("hash-4", {"classes": 4, "classify_by": "hash"}),
        ("rtt-7", {"classes": 7, "classify_by": "rtt", "buffers": "stanford", "weighting": "flows"}),
        ("fit-7", {"classes": 7, "by_fit": True, "weighting": "flows"}),
        ("link-4", {"classes": 4, "classify_by": "rtt", "buffers": "link", "weighting": "flows"}),
        ("split-4", {"classes": 4, "classify_by": "rtt", "buffers": "split", "weighting": "flows"}),
        ("equal-4", {"classes": 4, "classify_by": "rtt", "weighting": "classes"}),
        ("eq1-4", {"classes": 4, "classify_by": "rtt", "weighting": "rtt"}),
    ],
)
def test_contenders_with_classes_have_their_controllers(contender: str, options: dict[str, Any]) -> None:
    net = fct.Bed(contender, "cubic", FLOWS, RATE_MBPS, 0.0, 10.0).network(1)
    controller, *others = [one for one, _ in net.controllers]
    assert {name: getattr(controller, name) for name in options} == options
    # Hash and random classes have no true ones to be compared with.
    assert len(others) == (contender != "hash-4")


def test_the_true_round_trip_time_is_that_of_the_whole_path() -> None:
    """The monitor measures the links too; beside a break that stands between, 40 us would make another class."""
    bed = fct.Bed("rtt-4", "cubic", 3, 100.0, 0.0, 10.0)
    net = bed.network(1)
    controller, right = (one for one, _ in net.controllers)
    assert isinstance(controller, SeparationController)
    assert isinstance(right, fct.Right)
    net.run("4 s", seed=1)
    measured = {one.flow: one.base_rtt_s for one in controller.flows.by_place.values()}
    assert measured == pytest.approx(right.rtts, abs=1.5e-5)


@pytest.mark.parametrize("floor", [16, 64])
def test_the_least_buffer_of_a_class_is_a_parameter(floor: int) -> None:
    experiment = find("separation.fct")
    settings = {"contenders": ("rtt-4",), "arrivals": ("once",), "flows": 8, "rate_mbps": RATE_MBPS}
    plan = experiment.planned({**experiment.parameters(), **settings, "floor_packets": floor})
    make = plan.cases[0].network
    assert callable(make)
    net = make(1)
    controller, *_ = [one for one, _ in net.controllers]
    net.run("1.5 s", seed=1)
    assert isinstance(controller, SeparationController)
    assert controller.plan is not None
    # Nothing is known yet of the flows, and a hundredth of the link is what their classes have.
    assert {queue.buffer_bytes for queue in controller.plan.queues[1:]} == {floor * 1514}


def test_random_classes_are_the_seed_s() -> None:
    def classes(seed: int) -> list[int]:
        net = fct.Bed("random-4", "cubic", 200, RATE_MBPS, 0.0, 10.0).network(seed)
        ((controller, _),) = net.controllers
        assert isinstance(controller, SeparationController)
        given = controller.classify_by
        assert isinstance(given, dict)
        return [given[net.five_tuple(flow)] for flow in net.flows]

    one = classes(1)
    assert one == classes(1) != classes(2)
    assert min(np.bincount(one, minlength=4)) > 30


def test_flows_of_all_arrivals_and_sizes() -> None:
    for load, begin, end in ((0.0, 0.0, 1.0), (TRACE, 0.0, 900.0 * 300 / 6000)):
        starts = np.array(workload(300, 100.0, load, 1).starts)
        assert begin <= starts.min() < begin + end / 20
        assert end - end / 20 < starts.max() <= end
    drawn = workload(300, 100.0, 0.8, 1)
    assert drawn.drained_s(100.0) / max(drawn.starts) == pytest.approx(0.8, rel=0.15)
    low, high = (size * 1e5 for size in SIZES_MB)
    assert low <= min(drawn.sizes) < 1.1 * low < 0.9 * high < max(drawn.sizes) <= high
    assert RTTS_MS[0] / 1e3 <= min(drawn.rtts) < max(drawn.rtts) <= RTTS_MS[1] / 1e3
    equal = workload(300, 100.0, 0.8, 1, "equal")
    assert set(equal.sizes) == {round(MEAN_MB * 1e5)}
    assert equal.rtts == drawn.rtts
    # The trace's flows at the paper's size offer its link some 40 times what it carries.
    assert workload(6000, 1000.0, TRACE, 1).load(1000.0) == pytest.approx(TRACE, rel=0.05)


@pytest.mark.slow
def test_flows_that_have_not_begun_have_no_completion_time(tmp_path: Path) -> None:
    (row,) = rows(tmp_path / "out", contenders=("fifo-1",), arrivals=("0.8",), most_times=0.5).values()
    flows = pl.read_parquet(tmp_path / "out" / "tables" / "cubic-fifo-1-0.8-1" / "flows.parquet")
    drawn = workload(FLOWS, RATE_MBPS, 0.8, 1)
    # Some are under way at the end.
    end_s = row["last_s"]
    begun = np.array(drawn.starts) < end_s
    assert 0 < begun.sum() < FLOWS
    finish = flows.sort("flow")["finish_s"].to_numpy().astype(float)
    times = np.where(np.isnan(finish), end_s, finish) - drawn.starts
    assert row["fct_s_mean"] == pytest.approx(times[begun].mean())
    assert len(row["times_s"]) == begun.sum()
    assert row["unfinished"] == np.isnan(finish).sum()


@pytest.mark.slow
def test_a_trace_of_equal_sizes_runs(tmp_path: Path) -> None:
    (row,) = rows(
        tmp_path / "out", contenders=("eq1-4",), arrivals=("trace",), sizes="equal", flows=8
    ).values()
    assert row["load"] == TRACE
    assert row["unfinished"] == 0
    # All fair shares of one size end together, so that weights that differ have a lower mean.
    assert row["fct_s_mean"] < 1.05 * row["ideal_s_mean"]


def test_the_figure_has_a_panel_for_each_control_and_load() -> None:
    """Of four flows one is not finished: the distribution ends at three quarters."""
    done = pl.DataFrame({"completion_ms": [3e3, None, 1e3, 2e3]})
    runs = [
        Run(
            f"{control}-{contender}-{load}",
            1,
            [
                {
                    "control": control,
                    "contender": contender,
                    "load": load,
                    "flows": 4,
                    "fct_s_mean": 2.5,
                    "ideal_s_mean": 2.0,
                }
            ],
            {"flows": done},
        )
        for load in (0.0, 0.8)
        for control in ("reno", "cubic")
        for contender in ("rtt-4", "fifo-1")
    ]
    figure = fct._draw(runs)
    titles = [panel.get_title().split(", ")[:2] for panel in figure.axes]
    assert titles == [[one, load] for one in ("reno", "cubic") for load in ("at once", "load 0.8")]
    for panel in figure.axes:
        curves = [line for line in panel.lines if line.get_marker() == "None"]
        assert [line.get_linestyle() for line in curves] == ["-", "--"]
        for line in curves:
            assert np.asarray(line.get_xydata()).tolist() == [[1, 0.25], [2, 0.5], [3, 0.75]]
        assert panel.get_legend() is None
        assert panel.get_ylim() == (0, 1)
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["4 classes by RTT", "one queue, 1 BDP"]
    first, second, third, fourth = figure.axes
    assert first.get_shared_x_axes().joined(first, third)
    assert not first.get_shared_x_axes().joined(first, second)
    # Powers of ten between them overlap where times go over less than two decades.
    figure.draw_without_rendering()
    assert not any(label.get_text() for label in fourth.get_xticklabels(minor=True))
    assert {"1", "2"} <= {label.get_text().removesuffix(".0") for label in fourth.get_xticklabels()}
    # Of a run that was interrupted.
    assert fct._draw([Run("reno-rtt-4-once", 1, None, {})]).legends == []


@pytest.fixture
def captured(tmp_path: Path) -> Path:
    """What the monitor writes of three transfers, seen between the two legs."""
    net = Network()
    r1, r2 = net.router("r1"), net.router("r2")
    link = net.link(r1, r2, rate="50 Mbit/s", delay="1 us")
    for number, (size, near_ms, far_ms) in enumerate(((300_000, 1, 4), (200_000, 2, 10), (400_000, 3, 20))):
        a, b = net.host(f"a{number}"), net.host(f"b{number}")
        net.link(a, r1, rate="1 Gbit/s", delay=f"{near_ms} ms")
        net.link(b, r2, rate="1 Gbit/s", delay=f"{far_ms} ms")
        net.tcp(a, b, size=size, start=f"{number * 500 + 100} ms")
    net.capture(link, r1, tmp_path / "tap.pcap", snap="94 B")
    net.run("3 s", progress=False)
    frame(watch([tmp_path / "tap.pcap"])).write_parquet(tmp_path / "flows.parquet")
    return tmp_path / "flows.parquet"


def test_a_list_has_the_flows_of_a_capture(captured: Path) -> None:
    found = listed(captured)
    assert found.sizes == (300_000, 200_000, 400_000)
    assert found.starts == pytest.approx((0, 0.5, 1), abs=0.01)
    # Both legs.
    assert found.rtts == pytest.approx((0.010, 0.024, 0.046), abs=0.001)
    table = pl.read_parquet(captured)
    as_csv = captured.with_suffix(".csv")
    table.write_csv(as_csv)
    assert listed(as_csv) == found
    # What has no payload, or no round-trip time, is no flow to send.
    table.with_columns(rtt_ms_min=pl.when(pl.col("payload_bytes") != 300_000).then("rtt_ms_min")).write_csv(
        as_csv
    )
    assert listed(as_csv).sizes == (200_000, 400_000)


def test_a_list_is_run_in_place_of_drawn_flows(captured: Path, tmp_path: Path) -> None:
    found = rows(tmp_path / "out", contenders=("fifo-1", "rtt-2"), flow_list=str(captured))
    for row in found.values():
        assert (row["flows"], row["unfinished"]) == (3, 0)
        # 900 kB in a second and half as much again.
        assert row["load"] == pytest.approx(900e3 * 8 * 1514 / 1448 / 1e7, rel=0.02)
        assert row["fct_s_mean"] < 1


@pytest.mark.parametrize(
    ("name", "text", "says"),
    [
        (
            "flows.txt",
            "",
            "a list of flows ends with .parquet or .csv; {cure}",
        ),
        ("flows.csv", None, "No such file or directory; {cure}"),
        ("flows.parquet", None, "No such file or directory; {cure}"),
        ("flows.csv", "", "empty CSV; {cure}"),
        (
            "flows.parquet",
            "protocol",
            "parquet: File out of specification: A Parquet file must contain a header and footer with at least 12 bytes; {cure}",
        ),
        (
            "flows.csv",
            "protocol,src\ntcp,a\n",
            "it has no column src_port, dst, dst_port, payload_bytes, first_s, rtt_ms_min; {cure}",
        ),
        (
            "flows.csv",
            "{head}\ntcp,a,1,b,2,many,0,3\n",
            "conversion from `str` to `f64` failed in column 'payload_bytes' for 1 out of 1 values: [\"many\"]; {cure}",
        ),
        (
            "flows.csv",
            "{head}\nudp,a,1,b,2,9,0,3\n",
            "no TCP flow of it has both payload and a round-trip time; give another",
        ),
    ],
)
def test_what_is_no_list_of_flows_is_refused(tmp_path: Path, name: str, text: str | None, says: str) -> None:
    path = tmp_path / name
    head = "protocol,src,src_port,dst,dst_port,payload_bytes,first_s,rtt_ms_min"
    if text is not None:
        path.write_text(text.replace("{head}", head))
    cure = "give what `tidegate monitor --parquet` writes, or a CSV file with the same columns"
    with pytest.raises(TidegateError) as error:
        find("separation.fct").planned({**find("separation.fct").parameters(), "flow_list": str(path)})
    assert str(error.value) == f"{path}: {says.replace('{cure}', cure)}"
