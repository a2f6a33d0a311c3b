"""`backend="live"`: what real Linux stacks do over links, queues and switches of a description, and how it is told."""

from __future__ import annotations

import gzip
import json
import os
import subprocess
from pathlib import Path

import polars as pl
import pytest

from conftest import read_pcap
from live import again_if_disturbed, labs_of, needs_iperf3, needs_namespaces, undisturbed, watched
from tidegate.control import Controller, Digest, SwitchApi
from tidegate.experiments.plan import Run
from tidegate.network import Link, Network
from tidegate.report import flent
from tidegate.results import TABLES, Result

pytestmark = [needs_namespaces, needs_iperf3]

EXAMPLES = Path(__file__).parents[1] / "examples/p4"
# What a link carries of an IP packet of 1500 bytes with timestamps, and its framing of 14.
GOODPUT = 1448 / 1514


class Pairs:
    """Hosts in pairs, each with a link of its own, so that one run has room for all flows."""

    def __init__(self) -> None:
        self.net = Network()
        self.links: dict[str, Link] = {}

    def add(self, name: str, **link: object) -> tuple[object, object]:
        a, b = self.net.host(f"{name}-a"), self.net.host(f"{name}-b")
        options = {"rate": "100 Mbit/s", "delay": "5 ms", "queue": "100 packets"} | link
        self.links[name] = self.net.link(a, b, **options)
        return a, b


def describe(folder: Path) -> Pairs:
    pairs = Pairs()
    net = pairs.net
    net.tcp(*pairs.add("plain"), label="plain")
    ends = pairs.add("marked", rate="50 Mbit/s", mark_above=40, queue="1000 packets")
    net.tcp(*ends, ecn="on", label="marked")
    net.tcp(*pairs.add("unmarked", rate="20 Mbit/s", mark_above=15), ecn="passive", label="unmarked")
    # A sender that was kept waiting makes up for it at once.
    ends = pairs.add("udp", queue="2000 packets")
    net.udp(*ends, rate="20 Mbit/s", ecn="ect0", label="constant")
    net.udp(*ends, rate="8 Mbit/s", pattern="poisson", payload=972, label="poisson")
    net.udp(*ends, rate="20 Mbit/s", pattern="on-off", on="10 ms", off="30 ms", label="on-off")
    ends = pairs.add("sized")
    net.tcp(*ends, size="2 MB", start="500 ms", rto_min="20 ms", initial_cwnd=4, label="sized")
    net.tcp(*ends[::-1], size="10 kB", start="1500 ms", congestion_control="reno", label="small")
    ends = pairs.add("stopped", rate="10 Mbit/s")
    net.tcp(*ends, stop="1 s", congestion_control="reno", label="stopped")
    net.udp(*ends, rate="1 Mbit/s", start="1 s", stop="2 s", label="stopped udp")
    net.tcp(*ends, start="10 s", label="never")
    net.record("10 ms", pairs.links.values())
    for name in ("marked", "udp"):
        link = pairs.links[name]
        net.capture(link, link.b, folder / f"{name}.pcap", snap="64 B")
    return pairs


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("captures")


@pytest.fixture(scope="module")
def live(captures: Path) -> Result:
    return undisturbed(lambda: describe(captures).net.run("3 s", backend="live", progress=False))


def flow(result: Result, label: str) -> dict[str, object]:
    return result.flows.row(by_predicate=pl.col("label") == label, named=True)


def samples(result: Result, label: str) -> pl.DataFrame:
    return result.flow_samples.filter(pl.col("flow") == flow(result, label)["flow"])


def queue(result: Result, name: str) -> dict[str, object]:
    return result.queues.row(by_predicate=pl.col("queue") == f"{name}-a -> {name}-b", named=True)


def test_tables_are_the_simulators(live: Result, tmp_path: Path) -> None:
    simulated = describe(tmp_path).net.run("50 ms", progress=False)
    for name in TABLES:
        assert getattr(live, name).schema == getattr(simulated, name).schema, name
    assert live.flows["label"].to_list() == simulated.flows["label"].to_list()
    assert live.queues["queue"].to_list() == simulated.queues["queue"].to_list()
    assert (live.end_s, live.interrupted) == (3.0, False)
    assert simulated.warnings == ()
    assert simulated.live.is_empty()


def test_what_a_kernel_does_not_say_is_null(live: Result) -> None:
    for name in ("ideal_ms", "slowdown", "fast_recoveries", "tail_loss_probes", "undos", "ece_received"):
        assert live.flows[name].null_count() == live.flows.height, name
    assert live.pages.is_empty()


def test_a_transfer_has_the_links_rate_and_round_trip(live: Result) -> None:
    of_flow = samples(live, "plain")
    goodput = live.goodput_mbps(1.0).row(by_predicate=pl.col("flow") == 0)[1]
    assert goodput == pytest.approx(100 * GOODPUT, rel=0.05)
    # The two ends are looked at apart: the last sample is a few periods of 10 ms older at most.
    after = flow(live, "plain")["bytes_received"] - of_flow["bytes_received"][-1]
    assert 0 <= after < 0.04 * 100e6 / 8
    waiting = live.queue_samples.filter((pl.col("queue") == "plain-a -> plain-b") & (pl.col("time_s") > 1))[
        "queue_delay_ms"
    ]
    settled = of_flow.filter(pl.col("time_s") > 1)
    # Host overhead comes on top.
    assert 9.9 < settled["srtt_ms"].median() - waiting.median() < 14
    assert 9.9 < of_flow["srtt_ms"].min() < 13
    # What is on its way fills the wire and its queue.
    assert settled["in_flight_packets"].median() == pytest.approx(
        (10 + waiting.median()) / 1e3 * 100e6 / 8 / 1514, rel=0.15
    )
    assert settled["rto_ms"].min() >= 200
    assert flow(live, "plain")["retransmits"] >= queue(live, "plain")["dropped"] > 0


def test_samples_keep_their_period(live: Result) -> None:
    times = samples(live, "plain")["time_s"]
    assert times.is_sorted()
    assert times[-1] == pytest.approx(3.0, abs=0.2)
    assert len(times) > 250
    assert times.diff().median() == pytest.approx(0.01, abs=0.002)
    received = samples(live, "plain")["bytes_received"]
    assert received.is_sorted()


def test_flent_reads_a_live_run(live: Result, tmp_path: Path) -> None:
    tables = {name: getattr(live, name) for name in TABLES}
    data = flent.of_run(Run("case", 1, [], tables), "live", 1.8e9)
    assert data is not None
    assert data["metadata"]["STEP_SIZE"] == pytest.approx(0.01, abs=0.002)
    found = {
        about["LABEL"]: name for name, about in data["metadata"]["SERIES_META"].items() if "LABEL" in about
    }
    for label in ("plain", "marked", "sized"):
        rates = data["results"][found[label]]
        assert len(rates) == len(data["x_values"])
        counted = samples(live, label)["bytes_received"]
        # What came before the first sample, which a busy machine takes late, is in no rate.
        received = counted[-1] - counted[0]
        total = sum(rate for rate in rates if rate is not None) * data["metadata"]["STEP_SIZE"]
        assert total == pytest.approx(received * 8e-6, rel=0.05), label
    assert {"t", "val", "tcp_rtt", "tcp_cwnd"} <= data["raw_values"][found["plain"]][1].keys()
    written = tmp_path / "live.flent.gz"
    written.write_bytes(gzip.compress(json.dumps(data).encode()))
    resultset = pytest.importorskip("flent.resultset", reason="needs flent (`make extras`)")
    assert found["plain"] in resultset.load(str(written)).series_names


def test_ecn_is_negotiated_if_it_is_asked_for(live: Result, captures: Path) -> None:
    marked = flow(live, "marked")
    assert queue(live, "marked")["dropped"] == 0
    # Some packets overtake each other between real interfaces.
    assert marked["retransmits"] < 20
    assert queue(live, "marked")["marked"] > 0
    assert samples(live, "marked")["delivered_ce"][-1] > 0
    # A first window that is marked costs a second or two.
    assert 0.6 < marked["goodput_mbps"] / (50 * GOODPUT) < 1.01
    # Without it there is nothing that could be marked.
    assert queue(live, "unmarked")["marked"] == 0
    assert queue(live, "unmarked")["dropped"] > 0
    assert samples(live, "unmarked")["delivered_ce"][-1] == 0
    code_points = {packet[15] & 3 for _, packet in read_pcap(captures / "marked.pcap")}
    assert code_points == {0, 2, 3}


def test_datagrams_come_at_their_rate(live: Result, captures: Path) -> None:
    for label, packets_per_s in (
        ("constant", 20e6 / 8 / 1500),
        ("poisson", 1000),
        ("on-off", 20e6 / 8 / 1500 / 4),
    ):
        row = flow(live, label)
        spent = 3 - row["start_s"]
        assert row["datagrams_sent"] == pytest.approx(packets_per_s * spent, rel=0.1), label
        # None is lost; some are still on their way.
        assert 0 <= row["datagrams_sent"] - row["datagrams_received"] <= 60, label
    # One way, with a queue that others use as well.
    assert 5 <= flow(live, "poisson")["delay_ms_mean"] < 10
    assert flow(live, "poisson")["bytes_received"] == flow(live, "poisson")["datagrams_received"] * 972
    packets = [packet for _, packet in read_pcap(captures / "udp.pcap")]
    numbers = [int.from_bytes(packet[34:36], "big") for packet in packets if packet[23] == 17]
    assert numbers.count(10_001) == pytest.approx(flow(live, "poisson")["datagrams_received"], abs=60)
    constant = [packet for packet in packets if packet[23] == 17 and packet[34:36] == b"\x27\x10"]
    # But for the two in which iperf3's ends greet each other.
    assert sum(packet[15] != 2 for packet in constant) <= 2


def test_captures_hold_real_frames_and_nothing_stray(live: Result, captures: Path) -> None:
    net = describe(captures).net
    (marked,) = (one for one in net.flows if one.label == "marked")
    five = net.five_tuple(marked)
    packets = read_pcap(captures / "marked.pcap")
    times = [time for time, _ in packets]
    assert times == sorted(times)
    assert 0 < times[0] < times[-1] < 4e9
    ports = set()
    for _, packet in packets:
        assert packet[12:14] == b"\x08\x00"
        assert {packet[26:30], packet[30:34]} == {
            bytes(map(int, address.split("."))) for address in (five.source, five.target)
        }
        ports.add((int.from_bytes(packet[34:36], "big"), int.from_bytes(packet[36:38], "big")))
    # The data connection, and iperf3's own from a port above those of flows.
    assert (five.source_port, five.target_port) in ports
    others = {min(pair) for pair in ports} - {five.source_port}
    assert others == {five.target_port}
    assert len(ports) == 4


def test_flows_with_a_size_end(live: Result) -> None:
    sized = flow(live, "sized")
    assert (sized["bytes_received"], sized["size_bytes"]) == (2_000_000, 2_000_000)
    assert sized["start_s"] == pytest.approx(0.5, abs=0.05)
    # A handshake, slow start from four segments, and 160 ms on the wire.
    assert 0.68 < sized["finish_s"] < 1.2
    assert sized["completion_ms"] == pytest.approx((sized["finish_s"] - sized["start_s"]) * 1e3)
    assert sized["goodput_mbps"] == pytest.approx(16e3 / sized["completion_ms"])
    first = samples(live, "sized").row(0, named=True)
    assert first["rto_ms"] < 100
    # It may have doubled by then.
    assert first["cwnd_packets"] in (4, 8)
    # Ten kilobytes fit the first window: a round trip for the handshake, half of one for the data.
    assert 15 < flow(live, "small")["completion_ms"] < 100
    assert flow(live, "small")["timeouts"] == 0


def test_flows_start_and_stop_when_they_are_to(live: Result) -> None:
    stopped = flow(live, "stopped")
    # What waits in the queue still comes.
    assert stopped["bytes_received"] == pytest.approx(10e6 / 8 * GOODPUT, rel=0.25)
    times = samples(live, "stopped")["time_s"]
    assert times.max() < 1.5
    udp = flow(live, "stopped udp")
    assert 1 <= udp["start_s"] < 1.8
    assert udp["datagrams_received"] == pytest.approx(1e6 / 8 / 1500 * (2 - udp["start_s"]), abs=10)
    never = flow(live, "never")
    assert (never["start_s"], never["bytes_received"], never["retransmits"]) == (None, 0, 0)


def test_the_result_says_how_late_packets_were(live: Result) -> None:
    values = {(where, quantity): value for where, quantity, value in live.live.iter_rows()}
    lateness = [values["", f"lateness_ms_{name}"] for name in ("p50", "p90", "p99", "p999", "max")]
    assert lateness[:4] == sorted(lateness[:4])
    assert lateness[0] > 0
    assert values["", "frames"] > 20_000
    assert values["plain-b", "sent_bytes"] > flow(live, "plain")["bytes_received"]
    late = lateness[-1] > 5 or lateness[2] > 1
    assert late == any("busy with other things" in warning for warning in live.warnings)


class Learner(Controller):
    """Learns where addresses are."""

    period = "100 ms"

    def start(self, switch: SwitchApi) -> None:
        self.learned: dict[int, int] = {}
        self.ticks: list[int] = []
        switch.multicast_set(1, range(len(switch.ports)))

    def tick(self, now: int, switch: SwitchApi) -> None:
        self.ticks.append(now)
        switch.note("learned", len(self.learned))

    def on_digest(self, now: int, switch: SwitchApi, digest: Digest) -> None:
        source, port = digest.fields["src"], digest.fields["port"]
        if source not in self.learned:
            self.learned[source] = port
            switch.table_add("source", [source], "NoAction")
            switch.table_add("destination", [source], "forward", [port])


@again_if_disturbed
def test_a_p4_switch_with_a_controller_and_links_that_change() -> None:
    net = Network()
    switch = net.switch("s", EXAMPLES / "learning_switch/learning_switch.p4")
    hosts = [net.host(f"h{n}") for n in range(3)]
    links = [net.link(host, switch, rate="100 Mbit/s", delay="1 ms") for host in hosts]
    learner = Learner()
    net.control(learner)
    net.tcp(hosts[0], hosts[1])
    net.at("1 s", lambda: links[1].set("1 s", rate="20 Mbit/s"))
    net.record("50 ms")
    result = watched(net.run("2 s", backend="live", progress=False))
    assert set(learner.learned.values()) == {0, 1}
    assert len(learner.ticks) == 20
    assert result.notes["value"][-1] == 2
    assert all(0 <= now - (n + 1) * 10**11 < 9e10 for n, now in enumerate(learner.ticks))
    received = result.flow_samples.select("time_s", "bytes_received")

    def mbps(since: float, until: float) -> float:
        part = received.filter(pl.col("time_s").is_between(since, until))
        spent = part["time_s"][-1] - part["time_s"][0]
        return float((part["bytes_received"][-1] - part["bytes_received"][0]) * 8e-6 / spent)

    assert mbps(0.5, 1.0) == pytest.approx(100 * GOODPUT, rel=0.1)
    assert mbps(1.5, 2.0) == pytest.approx(20 * GOODPUT, rel=0.1)
    # Changes by `at` hold for one run.
    assert net.changes == []


@again_if_disturbed
def test_a_host_keeps_as_little_in_its_own_queue_as_a_simulated_one() -> None:
    def describe(own_rate: str) -> Network:
        net = Network()
        a, b, router = net.host("a"), net.host("b"), net.router("r")
        net.link(a, router, rate=own_rate, delay="5 ms", queue="10000 packets")
        net.link(b, router, rate="1 Gbit/s", delay="5 ms")
        net.tcp(a, b, start="500 ms", limit_output="4 MiB")
        net.record("100 ms")
        return net

    def shape() -> None:
        """A real host's own queue is not in the lab's links: 100 Mbit/s in the kernel of the sender."""
        (host,) = (path.name for path in labs_of(os.getpid()) if path.name.endswith("-a"))
        for words in (
            "qdisc add dev eth0 root handle 1: htb default 1",
            "class add dev eth0 parent 1: classid 1:1 htb rate 100mbit burst 3k cburst 3k",
            "qdisc add dev eth0 parent 1:1 pfifo limit 10000",
        ):
            command = ["ip", "netns", "exec", host, "tc", *words.split()]
            done = subprocess.run(command, capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"this kernel has no HTB: {done.stderr.strip()}")

    def run() -> Result:
        net = describe("1 Gbit/s")
        net.at("100 ms", shape)
        return net.run("5 s", backend="live", progress=False)

    def settled(result: Result, column: str) -> float:
        return float(result.flow_samples.filter(pl.col("time_s") > 2)[column].mean())  # type: ignore[arg-type]

    # What HTB does not send while the machine stalls is not made up for.
    live, simulated = watched(run(), late_ms=1), describe("100 Mbit/s").run("5 s")
    # Both grow in moments in which the machine does something else; without a limit of small queues both would be ten times as large.
    for column in ("srtt_ms", "cwnd_packets"):
        assert 0.8 < settled(live, column) / settled(simulated, column) < 2.5, column
    assert live.flows["goodput_mbps"][0] == pytest.approx(simulated.flows["goodput_mbps"][0], rel=0.05)


LATE = """
import time
from tidegate.lab.sampler import Sampler

looks = Sampler.look

def look(self):
    if self._received and time.monotonic_ns() - self.start >= 1_000_000_000:
        time.sleep(0.02)
    return looks(self)

Sampler.look = look
"""


def test_a_receiver_that_is_late_at_the_end_has_its_last_sample(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(LATE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")]))
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="100 Mbit/s", delay="100 us", queue="64 packets")
    for _ in range(4):
        net.tcp(a, b)
    net.record("200 ms")
    result = net.run("1 s", backend="live", progress=False)
    last = result.flow_samples.sort("time_s").group_by("flow", maintain_order=True).tail(2)
    grown = last.group_by("flow").agg(pl.col("bytes_received").diff().last())
    assert grown.height == 4
    assert grown["bytes_received"].min() > 0
