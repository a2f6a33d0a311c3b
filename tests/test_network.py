"""Networks: built, refused, run; the same seed gives the same result."""

import json
import math
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from scapy.layers.inet import IP
from scapy.utils import rdpcap

from tidegate import TidegateError, experiments, units
from tidegate.experiments import find, jobs, replot, with_settings
from tidegate.experiments import run as run_experiment
from tidegate.network import Network, Node
from tidegate.results import jain


def pair(**bottleneck: object) -> tuple[Network, Node, Node]:
    """Two hosts over one bottleneck of 100 Mbit/s and 10 ms."""
    net = Network()
    a, b, r = net.host("a"), net.host("b"), net.router("r")
    net.link(a, r, rate="1 Gbit/s", delay="1 us")
    settings: dict[str, object] = {"rate": "100 Mbit/s", "delay": "5 ms", "queue": "100 packets"}
    net.link(r, b, **{**settings, **bottleneck})  # type: ignore[arg-type]
    return net, a, b


def test_a_transfer_is_whole_and_takes_its_time() -> None:
    net, a, b = pair()
    net.tcp(a, b, size="10 MB", start="1 s")
    result = net.run("10 s")
    row = result.flows.row(0, named=True)
    assert row["bytes_received"] == 10_000_000
    # 10 MB in segments of 1448 of 1514 bytes at 100 Mbit/s are 0.84 s; slow start and one loss episode come on top.
    assert 1.84 < row["finish_s"] < 2.3
    assert row["goodput_mbps"] == pytest.approx(80 / (row["finish_s"] - 1), rel=1e-6)


def test_one_seed_one_result() -> None:
    def tables(seed: int) -> list[pl.DataFrame]:
        net, a, b = pair(loss=0.001, jitter="1 ms")
        net.tcp(a, b)
        net.udp(a, b, rate="10 Mbit/s", pattern="poisson")
        net.record("10 ms", queues=net.links)
        result = net.run("3 s", seed=seed)
        return [result.flows, result.queues, result.flow_samples, result.queue_samples]

    first, again, other = tables(1), tables(1), tables(2)
    assert all(a.equals(b) for a, b in zip(first, again, strict=True))
    assert not first[0].equals(other[0])


def test_two_flows_share_a_bottleneck() -> None:
    net = Network()
    left, right = net.router("left"), net.router("right")
    link = net.link(left, right, rate="100 Mbit/s", delay="5 ms", queue="1 BDP", rtt="14 ms")
    for i in range(2):
        a, b = net.host(f"a{i}"), net.host(f"b{i}")
        net.link(a, left, rate="1 Gbit/s", delay="1 ms")
        net.link(right, b, rate="1 Gbit/s", delay="1 ms")
        net.tcp(a, b, congestion_control="reno")
    net.record("50 ms", queues=[link])
    result = net.run("20 s")
    rates = result.goodput_mbps(5)["goodput_mbps"]
    assert rates.sum() == pytest.approx(95.6, abs=1)
    assert jain(rates) > 0.9
    queue = result.queues.filter(pl.col("queue") == "left -> right").row(0, named=True)
    assert queue["utilisation"] > 0.97
    # One BDP is 175 kB: 14 ms, and the packets that were being sent.
    assert 10 < queue["queue_delay_ms_max"] < 14.2
    assert queue["queue_delay_ms_p50"] <= queue["queue_delay_ms_p99"] <= queue["queue_delay_ms_max"] * 1.04


def test_a_link_changes_while_it_runs() -> None:
    net, a, b = pair()
    net.tcp(a, b)
    net.record("100 ms")
    net.links[1].set("3 s", rate="10 Mbit/s")
    net.at("6 s", lambda: net.links[1].set("7 s", rate="50 Mbit/s"))
    for _ in range(2):
        result = net.run("11 s")
        received = result.flow_samples.select("time_s", "bytes_received")

        def rate(since: float, to: float, received: pl.DataFrame = received) -> float:
            span = received.filter(pl.col("time_s").is_between(since, to))["bytes_received"]
            return float(span[-1] - span[0]) * 8 / (to - since) / 1e6

        assert rate(1, 3) == pytest.approx(95.6, abs=2)
        assert rate(4, 7) == pytest.approx(9.56, abs=0.5)
        assert rate(9, 11) == pytest.approx(47.8, abs=2)
        # What an action changed is for that run alone; the other one is for both directions.
        assert len(net.changes) == 2


def test_goodput_is_between_a_flows_own_samples() -> None:
    """A flow that had finished has no row; the others are measured between their own samples."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="10 Mbit/s", delay="5 ms")
    net.tcp(a, b, size="300 kB")
    net.tcp(a, b)
    net.tcp(a, b, start="2.95 s")
    net.tcp(a, b, size="20 kB", start="0.95 s")
    net.record("100 ms")
    result = net.run("3 s")
    assert result.goodput_mbps()["flow"].to_list() == [0, 1, 2, 3]
    rates = dict(result.goodput_mbps(1.0).iter_rows())
    assert rates.keys() == {1, 2, 3}
    assert rates[1] == pytest.approx(9.56, rel=0.02)
    assert math.isnan(rates[2])
    # From 1.0 to 1.2 s, the first sample after its end.
    assert rates[3] == pytest.approx(20_000 * 8e-6 / 0.2)


def test_udp_arrives_at_its_rate() -> None:
    net, a, b = pair()
    net.udp(a, b, rate="12 Mbit/s", payload=1472, stop="2 s")
    row = net.run("3 s").flows.row(0, named=True)
    assert row["datagrams_sent"] == row["datagrams_received"] == 2000
    assert row["goodput_mbps"] == pytest.approx(12 * 1472 / 1500, rel=0.01)
    assert row["delay_ms_max"] == pytest.approx(5.13, abs=0.02)


def test_faults_on_a_wire() -> None:
    net, a, b = pair(burst_loss=(0.005, 0.2, 0.0, 0.5), duplicate=0.01, reorder=0.01, reorder_by="2 ms")
    net.tcp(a, b, size="5 MB")
    result = net.run("60 s")
    row = result.flows.row(0, named=True)
    assert row["bytes_received"] == 5_000_000
    assert row["retransmits"] > 0
    lost = result.queues.filter(pl.col("queue") == "r -> b")["lost"][0]
    assert 0 < lost < 200


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda net, a, b: net.host("a"), "there is a node 'a' already"),
        (lambda net, a, b: net.tcp(a, a), "goes from a host to itself"),
        (lambda net, a, b: net.tcp(a, net.nodes[2]), "r is a router; a flow ends at hosts"),
        (
            lambda net, a, b: net.tcp(a, b, congestion_control="best"),
            "the TCP flow a -> b: there is no congestion control `best`; known: reno, cubic, ",
        ),
        (
            lambda net, a, b: net.tcp(a, b, control_options={"beta": 0.5}),
            "the TCP flow a -> b: cubic has no parameters, and `beta` is given",
        ),
        *(
            (
                lambda net, a, b, options=options: net.tcp(a, b, control_options=options),
                f"control_options of the TCP flow a -> b are {options}; give a dictionary",
            )
            for options in (5, [1], {1: 2})
        ),
        (
            lambda net, a, b: net.tcp(a, b, label="\ud800"),
            "the label '\\ud800' of a flow from a to b is not text",
        ),
        (lambda net, a, b: net.transfers(5), "transfers are 5; give a list of start, size"),
        (lambda net, a, b: net.transfers([("1 ms",)]), "transfer 0 is ('1 ms',); give start, size"),
        (
            lambda net, a, b: net.tcp(
                a, b, congestion_control="timely", control_options={"t_low": "50 miles"}
            ),
            "timely: t_low is `50 miles`; give a time, as `50 us`",
        ),
        (
            lambda net, a, b: net.tcp(a, b, congestion_control="timely", control_options={"t_lo": "1 us"}),
            "timely has no parameter `t_lo`; it has signal, ",
        ),
        (
            lambda net, a, b: net.switch("s", "examples/p4/ecn_marker/ecn_marker.p4", clock="1 ms"),
            "the switch s has the clock '1 ms'; give 1 us or 1 ns",
        ),
        (lambda net, a, b: net.tcp(a, b, ecn="maybe"), "there is no ECN mode `maybe`"),
        (lambda net, a, b: net.tcp(a, b, size="0 B"), "the TCP flow a -> b has the size 0"),
        (
            lambda net, a, b: net.tcp(a, b, start="2 s", stop="1 s"),
            "the TCP flow a -> b stops at 1 s, before it starts at 2 s",
        ),
        (lambda net, a, b: net.tcp(a, b, start="-1 s"), "`-1 s` is not a time: it must not be negative"),
        (
            lambda net, a, b: net.tcp(a, b, start=1.5),
            "1.5 what? say '1.5 s'; a whole number alone is a time in picoseconds",
        ),
        (lambda net, a, b: net.udp(a, b, rate="0 bit/s"), "the UDP flow a -> b sends nothing"),
        (lambda net, a, b: net.udp(a, b, rate="fast"), "`fast` is not a rate"),
        (lambda net, a, b: net.link(a, b, rate="1 Gbit/s", delay="0 s"), "host a has a link already"),
        (
            lambda net, a, b: net.link(net.nodes[2], net.host("c"), rate="0 bit/s", delay="1 ms"),
            "the link r - c has the rate 0",
        ),
        (
            lambda net, a, b: net.link(
                net.nodes[2], net.host("c"), rate="1 Gbit/s", delay="0 s", queue="1 BDP"
            ),
            "a BDP of this link is less than a byte",
        ),
        (
            lambda net, a, b: net.link(net.nodes[2], net.host("c"), rate="1 Gbit/s", delay="1 ms", loss=1.5),
            "the link r - c has loss 1.5; give a share from 0 to 1",
        ),
        (lambda net, a, b: net.tcp(a, net.host("c")), "flow 0: there is no way from a to c; add a link"),
        (lambda net, a, b: net.record("0 s"), "the period of recording is 0"),
        (
            lambda net, a, b: [net.record(period) for period in ("100 ms", "100 ms", "10 ms")],
            "this network is recorded every 100 ms already, and not every 10 ms; give the same period",
        ),
        (
            lambda net, a, b: net.links[0].set("1 s", direction="up"),
            "a direction is both, forward or reverse",
        ),
    ],
)
def test_what_makes_no_sense_is_refused(build: object, message: str) -> None:
    net, a, b = pair()

    def build_and_run() -> None:
        build(net, a, b)  # type: ignore[operator]
        net.run("1 s")

    with pytest.raises(TidegateError) as error:
        build_and_run()
    assert message in str(error.value)


def test_units() -> None:
    assert units.time("1.5 us") == 1_500_000
    assert units.rate("95.6 Mbit/s") == 95_600_000
    assert units.size("128 KiB") == 131_072
    assert units.show_time(20_000_000_000) == "20 ms"
    assert units.show_rate(units.rate("10 Gbit/s")) == "10 Gbit/s"


def test_settings() -> None:
    one = find("reference.dumbbell")
    parameters = with_settings(one, ["flows=2,3", "congestion_control=reno", "duration_s=5"])
    assert parameters["flows"] == (2, 3)
    assert parameters["duration_s"] == 5
    for setting, message in [
        ("flows", "write it as name=value"),
        ("flow=1", "has no parameter 'flow'; did you mean 'flows'? it has flows, congestion_control"),
        ("flows=many", "'many' is not a list of whole numbers"),
        ("flows=1.5", "'1.5' is not a list of whole numbers"),
        ("duration_s=long", "'long' is not a whole number"),
    ]:
        with pytest.raises(TidegateError, match=re.escape(message)):
            with_settings(one, [setting])
    with pytest.raises(TidegateError, match=r"no experiment 'nothing'; known: .*reference\.dumbbell"):
        find("nothing")


@pytest.mark.slow
def test_an_experiment_leaves_a_folder_that_can_be_drawn_again(tmp_path: Path) -> None:
    out = tmp_path / "run"
    command = [
        sys.executable,
        "-m",
        "tidegate.cli",
        "run",
        "reference.dumbbell",
        "--set",
        "flows=2",
        "--quick",
    ]
    done = subprocess.run(
        [*command, "--repeat", "2", "--out", str(out), "--json"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    answer = json.loads(done.stdout)
    assert set(answer) == {
        "experiment",
        "backend",
        "parameters",
        "seeds",
        "rows",
        "claims",
        "warnings",
        "out",
    }
    assert answer["seeds"] == [1, 2]
    assert [row["case"] for row in answer["rows"]] == ["n2", "n2"]
    assert answer["rows"][0]["goodput_mbps"] == pytest.approx(965, abs=10)
    assert answer["claims"][0]["holds"]
    assert json.loads((out / "run.json").read_text())["rows"] == answer["rows"]
    assert pl.read_parquet(out / "tables" / "n2-1" / "flows.parquet").height == 2
    figure = out / "figure.png"
    figure.unlink()
    assert replot(out) == figure
    assert figure.read_bytes().startswith(b"\x89PNG")
    # A second run takes the folder's place; a folder of something else is left alone.
    run_experiment(
        "reference.dumbbell",
        {"flows": (1,)},
        seeds=[1],
        quick=True,
        out=out,
    )
    assert sorted(p.name for p in (out / "tables").iterdir()) == ["n1-1"]
    # What else is in its folder stays.
    (out / "thoughts.md").write_text("...")
    run_experiment(
        "reference.dumbbell",
        {"flows": (2,)},
        seeds=[1],
        quick=True,
        out=out,
    )
    assert sorted(p.name for p in (out / "tables").iterdir()) == ["n2-1"]
    assert sorted(p.name for p in out.iterdir()) == [
        ".tidegate-run",
        "figure.png",
        "report.html",
        "run.json",
        "tables",
        "thoughts.md",
    ]
    assert [p.name for p in tmp_path.iterdir()] == [out.name]
    other = tmp_path / "mine"
    other.mkdir()
    (other / "thesis.tex").write_text("...")
    with pytest.raises(TidegateError, match="does not hold an earlier run"):
        run_experiment("reference.dumbbell", {}, seeds=[1], quick=True, out=other)
    assert [p.name for p in other.iterdir()] == ["thesis.tex"]


@pytest.mark.parametrize("place", ["/proc/nowhere", "/dev/null/x", "file/x", "file", "n" * 300])
def test_a_folder_that_cannot_be_written_is_refused_before_anything_runs(place: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    asked: list[int] = []
    with pytest.raises(TidegateError, match=r"cannot be written there: .*; give another folder with --out"):
        run_experiment(
            "reference.dumbbell",
            {},
            seeds=[1],
            quick=True,
            out=tmp_path / place,
            progress=lambda done, _: asked.append(done),
        )
    assert asked == []
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


@pytest.mark.slow
def test_wrong_names_on_the_command_line() -> None:
    command = [sys.executable, "-m", "tidegate.cli", "run"]
    done = subprocess.run([*command, "meter.nothing"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "there is no experiment 'meter.nothing'" in done.stderr
    done = subprocess.run(
        [*command, "reference.dumbbell", "--backend", "cloud"], capture_output=True, text=True
    )
    assert done.returncode == 2


def test_a_p4_switch_in_a_network() -> None:
    net = Network()
    example = Path(__file__).parent.parent / "examples" / "p4" / "ipv4_router" / "ipv4_router.p4"
    router = net.switch("r", example)
    a, b = net.host("a"), net.host("b")
    up = net.link(a, router, rate="1 Gbit/s", delay="1 ms")
    down = net.link(router, b, rate="50 Mbit/s", delay="1 ms", queue="50 packets")
    for host, link in ((a, up), (b, down)):
        port = net.port(router, link)
        entry = f"{net.address(host)}/32 => {port} 02:00:00:00:ff:00 {net.mac(host)}"
        router.commands.append(f"table_add routes next_hop {entry}")
    assert (net.address(b), net.mac(b)) == ("10.0.0.2", "02:00:00:00:00:02")
    net.tcp(a, b)
    result = net.run("5 s")
    # 1448 of 1514 bytes of 50 Mbit/s.
    assert result.flows["goodput_mbps"][0] == pytest.approx(47.8, abs=0.8)
    queue = result.queues.filter(pl.col("queue") == "r -> b").row(0, named=True)
    assert queue["dropped"] > 0
    assert queue["queue_delay_ms_max"] == pytest.approx(50 * 1514 * 8 / 50e3, rel=0.05)
    assert queue["utilisation"] > 0.98
    router.commands.append("table_add routes next_hop 10.0.0.9/40 => 1 2 3")
    with pytest.raises(TidegateError, match=r"switch r: table_add routes next_hop 10.0.0.9/40 .*: key"):
        net.run("1 s")


def test_a_switch_needs_a_program(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.p4"
    wrong.write_text("control c() { apply { x = 1; } }")
    with pytest.raises(TidegateError, match="`x` is not declared"):
        Network().switch("s", wrong)


def _record(**given: object) -> str:
    return json.dumps({"experiment": "a.b", "parameters": {}, "rows": [], **given})


@pytest.mark.parametrize(
    ("record", "why"),
    [
        ("", "run.json is not JSON: Expecting value"),
        ("[]", "run.json is not a JSON object"),
        ("{}", "run.json has no experiment, parameters, rows"),
        (f'{{"rows": {"1" * 5000}}}', "run.json is not JSON: Exceeds the limit"),
        (_record(rows=5), "run.json: rows has the wrong type"),
        (_record(parameters=5), "run.json: parameters has the wrong type"),
        (_record(versions=5), "run.json: versions has the wrong type"),
        (_record(seeds=["1"]), "run.json: seeds has a value of the wrong type"),
        (_record(warnings=[1]), "run.json: warnings has a value of the wrong type"),
        (_record(live_profile=5), "run.json: live_profile has the wrong type"),
        (_record(), "run.json has no rows"),
        (
            _record(experiment="sweep of a.b", rows=[{"case": "a", "seed": 1}]),
            "run.json is a sweep's and has no landscape",
        ),
        (_record(rows=[{"case": "a"}]), "run.json: rows.0. has no seed of the right type"),
        (_record(rows=[{"case": "../..", "seed": 1}]), "run.json: rows.0.: case '../..' is no name"),
        (_record(claims=[{"holds": True}]), "run.json: claims.0. has no statement of the right type"),
    ],
)
def test_a_record_that_is_none(tmp_path: Path, record: str, why: str) -> None:
    (tmp_path / "run.json").write_text(record)
    with pytest.raises(TidegateError, match=f"does not hold a run: {why}"):
        replot(tmp_path)


@pytest.mark.slow
def test_an_interrupted_run_does_not_take_a_whole_one_s_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"

    def again(progress: Any = None, **given: Any) -> dict[str, Any]:
        return run_experiment("reference.dumbbell", given, seeds=[1], quick=True, out=out, progress=progress)

    def interrupted(done: float, total: int) -> None:
        raise KeyboardInterrupt

    again(flows=(1,))

    def between(*_: object) -> Any:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(jobs, "run_case", between)
        with pytest.raises(experiments.Interrupted, match="0 of 1 runs done; nothing is saved"):
            again(flows=(2,))
    assert [p.name for p in tmp_path.iterdir()] == ["run"]
    with pytest.raises(experiments.Interrupted, match=r"tables up to then are in .*run\.interrupted"):
        again(interrupted, flows=(2,))
    assert sorted(p.name for p in (out / "tables").iterdir()) == ["n1-1"]
    assert json.loads((tmp_path / "run.interrupted" / "run.json").read_text())["interrupted"] is True
    again(flows=(3,))
    assert sorted(p.name for p in (out / "tables").iterdir()) == ["n3-1"]
    # A record that was cut off is no whole run.
    (out / "run.json").write_text("{")
    with pytest.raises(experiments.Interrupted, match=r"tables up to then are in .*run; "):
        again(interrupted, flows=(2,))


@pytest.mark.slow
def test_an_interrupted_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it has done is taken, and what comes out is what one run gives."""
    whole = {"flows": (1, 2, 3), "duration_s": 3.0}
    done: list[int] = []
    run_case = jobs.run_case

    def counted(progress: Any, case: experiments.Case, *how: Any) -> Any:
        done.append(["n1", "n2", "n3"].index(case.name))
        if len(done) == 2:
            raise KeyboardInterrupt
        return run_case(progress, case, *how)

    def again(out: Path, given: dict[str, Any], resume: bool = False) -> dict[str, Any]:
        return run_experiment(
            "reference.dumbbell", given, seeds=[1], quick=True, out=out, resume=resume, progress=heard
        )

    told: list[tuple[float, int]] = []

    def heard(now: float, of: int) -> None:
        told.append((now, of))

    reference = again(tmp_path / "reference", whole)
    assert told == sorted(told)
    assert any(now % 1 for now, _ in told)
    out = tmp_path / "run"
    with pytest.raises(TidegateError, match=r"hold no interrupted run; leave out --resume"):
        again(out, whole, resume=True)
    monkeypatch.setattr(jobs, "run_case", counted)
    with pytest.raises(experiments.Interrupted, match=r"1 of 3 runs done; .* --resume goes on"):
        again(out, whole)
    with pytest.raises(TidegateError, match=r"is a run with duration_s=3\.0 and not duration_s=4\.0; give"):
        again(out, {**whole, "duration_s": 4.0}, resume=True)
    told.clear()
    answer = again(out, whole, resume=True)
    assert done == [0, 1, 1, 2]
    assert {of for _, of in told} == {3}
    assert min(now for now, _ in told) >= 1
    assert {**answer, "out": ""} == {**reference, "out": ""}
    for table in (tmp_path / "reference" / "tables").rglob("*.parquet"):
        assert table.read_bytes() == (out / table.relative_to(tmp_path / "reference")).read_bytes()
    assert (out / "figure.png").exists()
    # One beside a whole run goes away when it has been taken up.
    done.clear()
    with pytest.raises(experiments.Interrupted, match=r"run\.interrupted; "):
        again(out, whole)
    assert again(out, whole, resume=True)["rows"] == reference["rows"]
    assert sorted(one.name for one in tmp_path.iterdir()) == ["reference", "run"]
    # Tables that are gone are no reason to begin again unasked.
    done.clear()
    with pytest.raises(experiments.Interrupted):
        again(tmp_path / "third", whole)
    next((tmp_path / "third").rglob("flows.parquet")).unlink()
    with pytest.raises(TidegateError, match="the tables of n1, seed 1, cannot be read"):
        again(tmp_path / "third", whole, resume=True)


NO_COUNT = (-1, 2**32, 1.5, math.nan, "1", None, True, b"1")
WRONG_TYPES: list[tuple[str, str, Any]] = [
    *[("link", name, value) for name in ("framing", "mtu") for value in NO_COUNT],
    *[("link", name, value) for name in ("loss", "reorder", "duplicate") for value in ("0", None, True)],
    *[("link", "burst_loss", value) for value in (0.1, (0.1, 0.2), ("a", "b", "c", "d"))],
    *[("link", "mark_above", value) for value in (-1, 1.5, "1", True)],
    *[("link", "aqm", value) for value in (1, True)],
    *[
        ("link", "queue", value)
        for value in (100, None, "0 packets", "99999999999 packets", "9" * 400 + " BDP")
    ],
    *[("tcp", name, value) for name in ("mss", "initial_cwnd") for value in (0, *NO_COUNT)],
    *[("tcp", name, value) for name in ("sack", "timestamps", "pacing") for value in (1, None, "yes")],
    *[("tcp", name, 1) for name in ("ecn", "label", "congestion_control")],
    *[("tcp", "ticks_per_second", value) for value in (0, 1.5, "250", 10_001)],
    ("tcp", "mss", 65_496),
    ("tcp", "size", 2**63),
    *[("udp", "payload", value) for value in (0, *NO_COUNT)],
    *[("udp", name, 1) for name in ("ecn", "pattern", "label")],
    *[("run", "seed", value) for value in (-1, 2**64, 1.5, "1", None, True)],
]


@pytest.mark.parametrize(("what", "name", "value"), WRONG_TYPES)
def test_values_that_make_no_sense_are_refused(what: str, name: str, value: Any) -> None:
    given: dict[str, dict[str, Any]] = {"link": {}, "tcp": {}, "udp": {}, "run": {}}
    given[what][name] = value

    def described_and_run() -> None:
        net = Network()
        a, b = net.host("a"), net.host("b")
        net.link(a, b, **{"rate": "1 Mbit/s", "delay": "1 ms", **given["link"]})
        net.tcp(a, b, **given["tcp"])
        net.udp(a, b, **{"rate": "1 Mbit/s", **given["udp"]})
        net.run("1 ms", **given["run"])

    with pytest.raises(TidegateError):
        described_and_run()


@pytest.mark.parametrize("kind", ["tcp", "udp"])
def test_packets_that_the_host_s_own_link_cannot_carry_are_refused(kind: str) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="1 Mbit/s", delay="1 ms", mtu=1400)
    if kind == "tcp":
        net.tcp(a, b, mss=1361)
    else:
        net.udp(a, b, rate="1 Mbit/s", payload=1373)
    why = "flow 0 has packets of 1401 bytes, and the link of a an MTU of 1400; give the flow a smaller MSS"
    with pytest.raises(TidegateError, match=why):
        net.run("10 ms")


def test_what_cannot_be_called_is_no_action() -> None:
    with pytest.raises(TidegateError, match="something to call, not 5"):
        Network().at("1 ms", 5)  # type: ignore[arg-type]


@pytest.mark.slow
def test_an_interrupt_is_heard_in_the_middle_of_much_work(tmp_path: Path) -> None:
    script = tmp_path / "much.py"
    script.write_text(
        "import signal\n"
        "from tidegate.network import Network\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "net = Network()\n"
        "a, b = net.host('a'), net.host('b')\n"
        "net.link(a, b, rate='1 Mbit/s', delay='1 ms')\n"
        "net.run('1 ms')  # Whatever this imports, it does now.\n"
        "net.udp(a, b, rate=10**17)\n"
        "print('begun', flush=True)\n"
        "print(net.run('10 s').interrupted)\n"
    )
    process = subprocess.Popen([sys.executable, str(script)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert process.stdout.readline() == "begun\n"
    time.sleep(1)
    process.send_signal(signal.SIGINT)
    out, _ = process.communicate(timeout=30)
    assert (process.returncode, out) == (0, "True\n")


def test_whole_numbers_may_be_numpy_s() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate=np.int64(1_000_000), delay=np.uint32(1_000), mtu=np.int32(1500), loss=np.float32(0))  # type: ignore[arg-type]
    net.tcp(a, b, mss=np.int64(1460), sack=np.bool_(True))  # type: ignore[arg-type]
    assert net.run("50 ms", seed=np.int64(3)).flows["bytes_received"][0] > 0  # type: ignore[arg-type]


@pytest.mark.parametrize("aqm", ["codel", "pie"])
def test_managed_queues_hold_a_flow_near_their_target(aqm: str) -> None:
    net = Network()
    a, router, b = net.host("a"), net.router("r"), net.host("b")
    net.link(a, router, rate="1 Gbit/s", delay=0)
    link = net.link(router, b, rate="50 Mbit/s", delay="10 ms", queue="1000 packets", aqm=aqm)
    for _ in range(5):
        net.tcp(a, b)
    net.record("100 ms", queues=[link])
    result = net.run("20 s")
    queue = result.queues.filter(pl.col("queue") == "r -> b").row(0, named=True)
    target_ms = {"codel": 5, "pie": 15}[aqm]
    assert target_ms / 2 < queue["queue_delay_ms_mean"] < 2 * target_ms
    assert queue["utilisation"] > 0.97
    assert queue["dropped"] > 20
    samples = result.queue_samples.filter(pl.col("queue") == "r -> b", pl.col("time_s") > 5)
    assert target_ms / 2 < samples["queue_delay_ms"].mean() < 2 * target_ms


def test_queue_management_that_there_is_not_is_refused() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    with pytest.raises(TidegateError, match="there is no queue management `red`; known: codel, pie"):
        net.link(a, b, rate="1 Gbit/s", delay=0, aqm="red")


@pytest.mark.parametrize(
    ("given", "why"),
    [
        (
            {"pattern": "sine"},
            "there is no pattern 'sine'; known: constant, poisson, on-off, on-off exponential",
        ),
        ({"ecn": "marked"}, "there is no ECN code point 'marked'; known: not-ect, ect1, ect0, ce"),
    ],
)
def test_datagrams_that_cannot_be_are_refused_when_described(given: dict[str, str], why: str) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    with pytest.raises(TidegateError, match=why):
        net.udp(a, b, rate="1 Mbit/s", **given)  # type: ignore[arg-type]


@pytest.mark.parametrize(("ecn", "bits"), [("not-ect", 0), ("ect1", 1), ("ect0", 2), ("ce", 3)])
def test_datagrams_have_the_code_point_that_is_asked_for(tmp_path: Path, ecn: str, bits: int) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="1 Gbit/s", delay=0)
    net.udp(a, b, rate="1 Mbit/s", ecn=ecn)
    net.capture(link, a, tmp_path / "sent.pcap")
    net.run("50 ms")
    sent = [packet[IP].tos & 3 for packet in rdpcap(str(tmp_path / "sent.pcap"))]
    assert sent == [bits] * len(sent) != []


@pytest.mark.parametrize("cc", ["reno", "cubic"])
def test_a_host_keeps_little_in_its_own_queue(cc: str) -> None:
    def run(**options: object) -> tuple[float, float]:
        net = Network()
        a, b = net.host("a"), net.host("b")
        net.link(a, b, rate="100 Mbit/s", delay="10 ms", queue="10000 packets")
        net.tcp(a, b, congestion_control=cc, **options)  # type: ignore[arg-type]
        net.record("100 ms")
        result = net.run("10 s")
        settled = result.flow_samples.filter(pl.col("time_s") > 5)
        return result.flows["goodput_mbps"][0], float(settled["srtt_ms"].mean())  # type: ignore[arg-type]

    # Linux on the same way, its own queue shaped by HTB: 95 Mbit/s; 23 ms with CUBIC, 29 to 36 with Reno.
    goodput, srtt = run(limit_output="4 MiB")
    assert goodput > 93
    assert 21 < srtt < 36
    # Whole windows in the queue.
    assert run()[1] > 200


def test_cubic_goes_by_the_kernels_ticks() -> None:
    def run(ticks: int | None) -> pl.DataFrame:
        net, a, b = pair(delay="1 ms")
        net.tcp(a, b, ticks_per_second=ticks)
        return net.run("20 s").flows

    assert run(None).equals(run(250))
    assert not run(250).equals(run(1000))
    with pytest.raises(TidegateError, match=r"0 is not the kernel.s ticks_per_second .*from 1 to 10000"):
        run(0)
