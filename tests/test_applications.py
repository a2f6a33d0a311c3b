"""Applications: pages, lists of flows, workloads; their tables, their errors."""

import math
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest

from tidegate import TidegateError, workloads
from tidegate.network import Network, Node
from tidegate.topologies import dumbbell, leaf_spine


def pair(rate: str = "1 Gbit/s") -> tuple[Network, Node, Node]:
    """Two hosts 10 ms apart."""
    net = Network()
    bell = dumbbell(net, 1, bottleneck={"rate": rate, "delay": "3 ms"})
    return net, *bell.pairs[0]


def test_a_page_over_one_connection_and_over_many() -> None:
    net, a, b = pair()
    one = net.page(a, b, objects=4, response="10 kB", think="50 ms")
    many = net.page(a, b, objects=4, response="10 kB", connections="new", label="cold", start="1 s")
    assert (len(one.flows), len(many.flows)) == (1, 4)
    result = net.run("3 s")
    pages = result.pages
    assert pages["label"].to_list() == ["page a0 -> b0"] * 4 + ["cold"] * 4
    assert pages["object"].to_list() == [0, 1, 2, 3] * 2
    assert pages["flow"].to_list() == [0, 0, 0, 0, 1, 2, 3, 4]
    # A round trip of 10 ms, and one more for a handshake.
    assert pages["response_ms"].to_list() == pytest.approx([20, 10, 10, 10, 20, 20, 20, 20], abs=0.4)
    assert pages["start_s"][1] == pytest.approx(pages["finish_s"][0] + 0.05)
    assert pages["start_s"][5] == pytest.approx(pages["finish_s"][4])
    assert result.flows["bytes_received"].to_list() == [40_000, 10_000, 10_000, 10_000, 10_000]
    assert result.flows["kind"].unique().to_list() == ["page"]
    times = result.page_times()
    assert times["page"].to_list() == [0, 1]
    assert times["answers"].to_list() == [4, 4]
    assert times["page_ms"].to_list() == pytest.approx([20 + 3 * 60, 80], abs=1)


def test_a_page_that_is_not_done_at_the_end() -> None:
    net, a, b = pair()
    net.page(a, b, objects=3, think="1 s", response="10 kB")
    pages = net.run("1.025 s").pages
    assert pages["finish_s"].is_null().to_list() == [False, True]


def test_flows_by_a_list() -> None:
    net, a, b = pair()
    flows = net.transfers([("0 s", "1 kB", a, b), ("1 s", "2 kB", b, a)], congestion_control="reno")
    assert [flow.label for flow in flows] == ["reno a0 -> b0", "reno b0 -> a0"]
    table = net.run("2 s").flows
    assert table["start_s"].to_list() == [0, 1]
    assert table["size_bytes"].to_list() == [1000, 2000]
    assert table["completion_ms"].to_list() == pytest.approx([15.0, 15.0], abs=0.1)
    assert table["slowdown"].to_list() == pytest.approx([1, 1])


def test_a_flow_with_a_round_trip_of_its_own() -> None:
    net, a, b = pair("10 Gbit/s")
    net.tcp(a, b)
    net.tcp(a, b, extra_delay="30 ms")
    net.record("10 ms")
    samples = net.run("100 ms").flow_samples.filter(pl.col("srtt_ms") > 0)
    smallest = samples.group_by("flow").agg(pl.col("srtt_ms").min()).sort("flow")
    assert smallest["srtt_ms"][1] - smallest["srtt_ms"][0] == pytest.approx(30, abs=1)


def test_a_list_with_round_trips_of_their_own() -> None:
    net, a, b = pair("10 Gbit/s")
    net.transfers([("0 s", "1 kB", a, b, "20 ms"), (0, 1000, a, b), (0, 1000, a, b, 0)], extra_delay="5 ms")
    table = net.run("1 s").flows
    # SYN and data wait: twice the extra delay on top of one and a half round trips.
    assert table["completion_ms"].to_list() == pytest.approx([55, 25, 15], abs=0.1)
    assert table["slowdown"].to_list() == pytest.approx([1, 1, 1], abs=1e-3)


def test_a_workload_makes_its_load() -> None:
    net = Network()
    fabric = leaf_spine(net, 2, 2, 4)
    # Half of what eight hosts' links carry.
    flows = net.workload(
        fabric.hosts, load=0.5, rate=8 * 10_000_000_000, start="100 ms", stop="1.1 s", seed=5
    )
    specs = [flow.spec for flow in flows]
    sizes = [spec.size for spec in specs]  # type: ignore[union-attr]
    assert len(flows) == pytest.approx(40e9 / 8 / 1.665e6, rel=0.03)
    assert sum(sizes) * 8 == pytest.approx(40e9, rel=0.05)
    assert min(spec.start for spec in specs) >= 100_000_000_000  # type: ignore[union-attr]
    assert all(flow.source is not flow.target for flow in flows)
    assert len({(flow.source.name, flow.target.name) for flow in flows}) == 56
    again = Network()
    same = leaf_spine(again, 2, 2, 4)
    options = {"load": 0.5, "rate": "80 Gbit/s", "start": "100 ms", "stop": "1.1 s"}
    assert [f.spec for f in again.workload(same.hosts, seed=5, **options)] == specs  # type: ignore[arg-type]
    assert [f.spec for f in again.workload(same.hosts, seed=6, **options)] != specs  # type: ignore[arg-type]


def test_a_workload_between_pairs_runs() -> None:
    net = Network()
    bell = dumbbell(net, 5, bottleneck={"rate": "1 Gbit/s", "delay": "50 us"}, access={"delay": "5 us"})
    flows = net.workload(
        bell.pairs, load=0.5, rate="1 Gbit/s", stop="1 s", sizes="data-mining", congestion_control="reno"
    )
    assert {flow.source.name for flow in flows} <= {f"a{i}" for i in range(5)}
    table = net.run("20 s").flows
    assert table["bytes_received"].to_list() == table["size_bytes"].to_list()
    assert (table["slowdown"] > 0.9999).all()
    assert (table["slowdown"] == 1).sum() > 0
    assert table["label"][0].startswith("reno a")


def test_a_distribution_without_an_end_is_refused() -> None:
    with pytest.raises(TidegateError, match=r"/dev/zero: .*1048576 bytes"):
        workloads.sizes("/dev/zero")


def test_distributions_from_files(tmp_path: Path) -> None:
    assert workloads.known() == ["data-mining", "web-search"]
    assert workloads.sizes("web-search").quantile(0.97) == 9_733_820
    mine = tmp_path / "mine.cdf"
    mine.write_text("1000 0.5\n3000 1\n")
    assert workloads.sizes(mine).mean() == 1500
    net, a, b = pair()
    flows = net.workload([(a, b)], load=0.1, rate="1 Gbit/s", stop="100 ms", sizes=str(mine))
    assert all(1000 <= flow.spec.size <= 3000 for flow in flows)  # type: ignore[union-attr, operator]
    mine.write_text("1000 0.5\n3000 0.9\n")
    with pytest.raises(TidegateError, match=r"mine\.cdf: the last share is 0\.9; it must be 1"):
        workloads.sizes(mine)
    mine.write_bytes(b"1000 0.5\r\n3000 1\r\n")
    assert workloads.sizes(mine).mean() == 1500
    mine.write_bytes(b"\xff")
    with pytest.raises(TidegateError, match=r"mine\.cdf: is not text"):
        workloads.sizes(mine)
    with pytest.raises(TidegateError, match="/dev/zero: has more than 1048576 bytes"):
        workloads.sizes("/dev/zero")


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda net, a, b: net.page(a, a), "goes from a host to itself"),
        (
            lambda net, a, b: net.page(a, b, connections="many"),
            "connections are persistent or new, not 'many'",
        ),
        (lambda net, a, b: net.page(a, b, objects=0), "the page a0 -> b0 has 0 objects"),
        (lambda net, a, b: net.page(a, b, response="0 B"), "a page asks for nothing"),
        (lambda net, a, b: net.page(a, b, congestion_control="best"), "no congestion control `best`"),
        (lambda net, a, b: net.transfers([("0 s", "0 B", a, b)]), "the TCP flow a0 -> b0 has the size 0"),
        (lambda net, a, b: net.transfers([(0, 1, a, b), (0, 1, a, net.nodes[0])]), "left is a router"),
        (lambda net, a, b: net.workload([a], load=1, rate="1 Gbit/s", stop="1 s"), "needs two hosts or more"),
        (
            lambda net, a, b: net.workload([a, (a, b)], load=1, rate="1 Gbit/s", stop="1 s"),
            "needs two hosts or more, or pairs of hosts (and not both)",
        ),
        (
            lambda net, a, b: net.workload([a, b], load=0, rate="1 Gbit/s", stop="1 s"),
            "a load of 0 of 1 Gbit/s makes no flows",
        ),
        (
            lambda net, a, b: net.workload([a, b], load=math.inf, rate="1 Gbit/s", stop="1 s"),
            "a load of inf of 1 Gbit/s makes no flows",
        ),
        (
            lambda net, a, b: net.tcp(a, Network().host("z")),
            "an end of the TCP flow is z, which is not a node of this network",
        ),
        (lambda net, a, b: net.tcp(a, "b0"), "an end of the TCP flow is 'b0', which is not a node"),
        (
            lambda net, a, b: net.record("1 ms", [a]),
            "a link whose queues are recorded is a0, which is not a link",
        ),
        (
            lambda net, a, b: net.record("1 ms", [dumbbell(Network(), 1).bottleneck]),
            "a link whose queues are recorded is left - right, which is not a link of this network",
        ),
        (
            lambda net, a, b: net.route(net.nodes[0], b, [net.links[0]]),
            "the link of a route is a list, which is not a link",
        ),
        (
            lambda net, a, b: net.capture(net.links[0], net.nodes[0], "/tmp"),
            "that is a folder; give a file's name",
        ),
        (
            lambda net, a, b: net.workload([a, b], load=1, rate="1 Gbit/s", start="2 s", stop="1 s"),
            "the workload stops at 1 s, before it starts at 2 s",
        ),
        (
            lambda net, a, b: net.workload([a, b], load=1, rate="1000 Gbit/s", stop="3600 s"),
            "makes about 270",
        ),
        (
            lambda net, a, b: net.workload([a, b], load=1, rate="1 Gbit/s", stop="1 s", sizes="search"),
            "no distribution of flow sizes 'search'; did you mean 'web-search'? known: data-mining, web-search, or a file",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(build: Callable[..., object], message: str) -> None:
    net, a, b = pair()
    with pytest.raises(TidegateError) as error:  # noqa: PT012
        build(net, a, b)
        net.run("1 s")
    assert message in str(error.value)


def test_former_names_of_requests_and_directions_mean_the_same() -> None:
    results = []
    for names in ("new", "former"):
        net = Network()
        a, b = net.host("a"), net.host("b")
        link = net.link(a, b, rate="100 Mbit/s", delay="1 ms")
        if names == "new":
            net.request_response(a, b, objects=3, response="10 kB", think_time="50 ms")
            link.set("30 ms", delay="5 ms", direction="forward")
            link.set("80 ms", rate="10 Mbit/s", direction="reverse")
        else:
            net.page(a, b, objects=3, response="10 kB", think="50 ms")
            link.set("30 ms", delay="5 ms", direction="there")
            link.set("80 ms", rate="10 Mbit/s", direction="back")
        results.append(net.run("1 s").pages)
    assert results[0].equals(results[1])
    first, second, third = results[0]["response_ms"]
    assert first + 1 < second < third - 5
    with pytest.raises(TidegateError, match="a direction is both, forward or reverse, not 'sideways'"):
        link.set(0, delay=0, direction="sideways")
