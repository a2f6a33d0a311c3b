"""Congestion controls that the kernel does not have: they come with a lab, they go with it, and they do what they are to do."""

from __future__ import annotations

import re
import signal
import struct
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from conftest import read_pcap
from live import (
    Attempt,
    again_if_disturbed,
    has_ended,
    held,
    is_there,
    missing_parts,
    needs_iperf3,
    needs_namespaces,
    needs_prague,
    untimed,
    wait_for,
    watched,
    without,
)
from tidegate import TidegateError
from tidegate.hosts import libbpf
from tidegate.hosts.controls import SOURCES, Control, Controls
from tidegate.lab import kernel
from tidegate.lab.plan import lacking, plan
from tidegate.network import Network
from tidegate.results import Result
from tidegate.systems.aqm.experiments.measuring import rows_of
from tidegate.systems.aqm.experiments.testbed import Bottleneck, bottleneck, classic_flows, l4s_flows

# In the object, before the name: `NEEDS_ACCURATE_ECN`.
FLAGS = b"\4\0\0\0prague_XXXXXX"

has_its_own = bool(kernel.congestion_controls(["prague"]))
of_tidegate = pytest.mark.skipif(has_its_own, reason="this kernel has a prague of its own")


def asking() -> Network:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="100 Mbit/s", delay="5 ms")
    net.tcp(a, b, congestion_control="prague", ecn="accurate")
    net.tcp(a, b, congestion_control="cubic", size="1 MB")
    return net


def known() -> list[str]:
    return kernel.known_congestion_controls().split(", ")


@needs_namespaces
@untimed
@needs_prague
@of_tidegate
def test_two_labs_have_their_own_and_leave_none() -> None:
    assert Control("prague") in lacking(asking())
    with Controls([Control("prague"), Control("cubic")]) as one, Controls([Control("prague")]) as other:
        assert (list(one.names), one.problems) == ([Control("prague")], {})
        both = [one.names[Control("prague")], other.names[Control("prague")]]
        assert both[0] != both[1]
        assert set(both) <= set(known())
        hosts = plan(asking(), 1, one)
        (flow, plain) = hosts[0].prepare.sends
        assert (flow.congestion_control, flow.tool, flow.both_ends) == (both[0], "own", True)
        assert (plain.congestion_control, plain.both_ends) == ("cubic", False)
        assert all(host.set_up.egress == (one.markers["prague"],) for host in hosts)
    assert wait_for(lambda: not set(both) & set(known()))


@of_tidegate
@missing_parts
def test_what_is_missing_is_said(what: str, value: object, why: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with (
        without(what, value, monkeypatch),
        Controls([Control("prague")]) as controls,
        pytest.raises(TidegateError) as error,
    ):
        plan(asking(), 1, controls)
    assert re.search(
        rf"prague a -> b: this kernel does not have .* prague; Tidegate's own cannot be loaded: {why}",
        str(error.value),
    )


@needs_namespaces
@untimed
@needs_prague
def test_a_program_that_does_not_load_says_why(tmp_path: Path) -> None:
    source = tmp_path / "wrong.c"
    source.write_text(
        '__attribute__((section("tc"), used)) int wrong(void *packet) { return *(int *)(packet + 100000); }\n'
        'char terms[] __attribute__((section("license"), used)) = "GPL";\n'
    )
    with pytest.raises(libbpf.BpfError, match="failed to load"):
        libbpf.Loaded(libbpf.compiled(source))
    source.with_name("worse.c").write_text("int")
    with pytest.raises(libbpf.BpfError, match=r"clang does not compile it: .*worse\.c"):
        libbpf.compiled(source.with_name("worse.c"))


@needs_namespaces
@untimed
@needs_prague
@of_tidegate
def test_a_kernel_that_does_not_take_it_is_told_of(monkeypatch: pytest.MonkeyPatch) -> None:
    # As one without accurate ECN: a flag that it does not know.
    source = libbpf.compiled(SOURCES["prague"])
    assert source.count(FLAGS) == 1
    monkeypatch.setattr(libbpf, "compiled", lambda _: source.replace(FLAGS, b"\x40" + FLAGS[1:]))
    with Controls([Control("prague")]) as controls:
        assert not controls.names
        assert "it needs Linux 6.18 or newer" in controls.problems[Control("prague")]


LOAD = """
from tidegate.network import Network
from tidegate.results import Result
net = Network()
a, b, r = net.host("a"), net.host("b"), net.router("r")
net.link(a, r, rate="1 Gbit/s", delay="100 us")
net.link(b, r, rate="1 Gbit/s", delay="100 us")
net.tcp(a, b, congestion_control="prague", ecn="accurate")
net.tcp(b, a, congestion_control="prague", ecn="accurate", size="1 GB")
net.at("300 ms", lambda: print("there", flush=True))
net.run("60 s", backend="live", progress=False)
"""


@needs_namespaces
@untimed
@needs_prague
@of_tidegate
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_nothing_is_left_of_a_lab_that_is_killed(how: signal.Signals) -> None:
    one = subprocess.Popen([sys.executable, "-c", LOAD], stdout=subprocess.PIPE, text=True)
    assert one.stdout is not None
    assert one.stdout.readline() == "there\n"
    things = held(one.pid)
    # The congestion control's functions and the one that marks; the two tables.
    assert len(things) >= 9
    assert all(is_there(*thing) for thing in things)
    one.send_signal(how)
    one.communicate(timeout=60)
    assert wait_for(lambda: has_ended(one.pid, set()))
    assert wait_for(lambda: not any(is_there(*thing) for thing in things))


FLOWS_S = 4
# p99 of how late packets are. They come in bursts, which queues mark: it must be below the 2.4 ms that the 20 packets of `marking`
# take to send, and the millisecond that an L queue is long.
LATE_MS = 1
SYN, RST = 2, 4


def shared(capture: Path) -> Bottleneck:
    """Two flows of each kind."""
    lab = bottleneck("dualpi2", 60, 10.0)
    classic_flows(lab, 2)
    l4s_flows(lab, 2)
    lab.network.record("100 ms", queues=[lab.link])
    lab.network.capture(lab.link, lab.sink, capture, snap="80 B")
    return lab


class Runs:
    """One run for several tests, and another one where a busy machine has made a test fail."""

    def __init__(self, folder: Path) -> None:
        self.capture = folder / "sink.pcap"
        self._result: Result | None = None

    def result(self) -> Result:
        if self._result is None or Attempt.number > 0:
            net = shared(self.capture).network
            self._result = net.run(f"{FLOWS_S} s", backend="live", progress=False)
        return watched(self._result, LATE_MS)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    return Runs(tmp_path_factory.mktemp("captures"))


@needs_namespaces
@needs_prague
@needs_iperf3
@again_if_disturbed
def test_cubic_and_prague_share_the_queues_of_real_hosts(runs: Runs) -> None:
    result = runs.result()
    cubic, prague = rows_of(result, shared(runs.capture), {}, 1.0, FLOWS_S)
    assert (cubic["control"], prague["control"]) == ("cubic", "prague")
    assert cubic["utilisation"] > 0.9
    for row in (cubic, prague):
        assert 0.4 < row["goodput_mbps"] / (60 / 4) < 1.6
    # In L flows hardly wait; what is dropped is CUBIC's, what is marked Prague's.
    assert prague["delay_ms_mean"] < 1 < 8 < cubic["delay_ms_mean"] < 30
    assert (cubic["marked_share"], prague["dropped_share"]) == (0, 0)
    assert prague["marked_share"] > 2 * cubic["dropped_share"] > 0
    assert result.flows.filter(pl.col("label").str.starts_with("prague"))["retransmits"].max() < 20
    samples = result.flow_samples.filter(pl.col("flow") == 2)
    assert 10 < samples["srtt_ms"].to_list()[-1] < 13
    # Paced at 1.03 windows per round trip.
    last = samples.row(-1, named=True)
    paced = last["pacing_rate_mbps"] * last["srtt_ms"] / last["cwnd_packets"]
    assert 1.02 * 1400 * 8e-3 < paced < 1.2 * 1460 * 8e-3


@needs_namespaces
@needs_prague
@needs_iperf3
@again_if_disturbed
def test_marks_are_told_one_by_one(runs: Runs) -> None:
    result = runs.result()
    net = shared(runs.capture).network
    five = net.five_tuple(net.flows[2])
    field, marked, counted, steps = set(), 0, None, 0
    of_cubic = set()
    for _, frame in read_pcap(runs.capture):
        ecn, words = frame[15] & 3, sum(struct.unpack_from("!10H", frame, 14))
        # The header's checksum is right, whoever wrote the field.
        assert words % 0xFFFF == 0
        source, target = struct.unpack_from("!HH", frame, 34)
        flags = frame[47]
        if source == five.source_port and not flags & (SYN | RST):
            field.add(ecn)
            marked += ecn == 3
        elif target == five.source_port and not flags & SYN:
            # AE, CWR and ECE count packets that came with CE (RFC 9768 section 3.2).
            ace = (frame[46] & 1) << 2 | flags >> 6
            steps += 0 if counted is None else (ace - counted) % 8
            counted = ace
        elif source in (net.five_tuple(flow).source_port for flow in net.flows[:2]):
            of_cubic.add(ecn)
    assert field == {1, 3}
    assert of_cubic == {0}
    assert marked > 10
    # The last may not have been told.
    assert 0 <= marked - steps <= 4
    delivered = result.flow_samples.filter(pl.col("flow") == 2)["delivered_ce"].to_list()[-1]
    assert delivered == pytest.approx(marked, abs=0.1 * marked + 4)


@needs_namespaces
@needs_prague
@again_if_disturbed
def test_a_lost_syn_does_not_cost_ecn() -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="20 Mbit/s", delay="5 ms", queue="1000 packets", mark_above=10, loss=1.0)
    link.set("500 ms", loss=0.0)
    net.tcp(a, b, congestion_control="prague", ecn="accurate")
    net.tcp(a, b, ecn="on", size="10 MB")
    net.record("100 ms")
    result = watched(net.run("2 s", backend="live", progress=False))
    assert result.flow_samples.filter(pl.col("bytes_received") > 0)["time_s"].min() > 1
    told = result.flow_samples.group_by("flow").agg(pl.col("delivered_ce").last())
    assert told.height == 2
    assert told["delivered_ce"].min() > 0


def marking() -> Network:
    """A queue that marks what finds twenty packets waiting."""
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="100 Mbit/s", delay="5 ms", queue="1000 packets", mark_above=20)
    for _ in range(2):
        net.tcp(a, b, congestion_control="dctcp")
    net.record("10 ms", queues=[link])
    return net


@needs_namespaces
@needs_prague
@again_if_disturbed
def test_dctcp_holds_the_queue_where_the_simulated_one_does() -> None:
    delays, windows, marks = {}, {}, {}
    run = marking().run
    for backend in ("sim", "live"):
        result = run("3 s", backend=backend, progress=False)
        if backend == "live":
            watched(result, LATE_MS)
        queue = result.queue_samples.filter(pl.col("queue") == "a -> b", pl.col("time_s") > 1)
        flows = result.flow_samples.filter(pl.col("time_s") > 1)
        delays[backend] = queue["queue_delay_ms"].mean()
        windows[backend] = flows["cwnd_packets"].mean()
        marks[backend] = flows.group_by("flow").agg(pl.col("delivered_ce").max())["delivered_ce"].sum()
        assert result.queues.filter(pl.col("queue") == "a -> b")["dropped"].item() == 0
        assert result.flows["bytes_received"].sum() > 0.85 * 100e6 / 8 * 3 * 1448 / 1514
    assert 1.2 < delays["sim"] < 2.6
    for measured in (delays, windows):
        assert measured["live"] == pytest.approx(measured["sim"], rel=0.3), measured
    assert 0.5 < marks["live"] / marks["sim"] < 2
