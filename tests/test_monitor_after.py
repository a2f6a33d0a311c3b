"""`tidegate monitor --after` on captures made here: what is paired, what is warned of, what is refused."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import polars as pl
import pytest
from scapy.layers.inet import IP, TCP
from scapy.layers.l2 import Dot1Q, Ether
from scapy.packet import Packet, Raw
from scapy.utils import PcapWriter

from conftest import Run
from test_monitor import A, B, bulk, later, written
from tidegate import TidegateError
from tidegate.monitor import watch
from tidegate.network import Network

QUEUE_MS, BACK_MS = 3, 1
"""Time in the router of packets from the first side, and of those from the second."""


def passed(
    packets: list[Packet], ahead_ms: float = 0.0, change: Callable[[Packet], None] | None = None
) -> list[Packet]:
    """The packets on the router's other side, whose clock is ahead."""
    copies = []
    for packet in packets:
        copy = packet.copy()
        forth = copy[IP].src == A
        # Where the capture of the first side has them, those of the second have left the router.
        copy[IP].ttl = packet[IP].ttl + (-1 if forth else 1)
        copy.time = packet.time + (QUEUE_MS if forth else -BACK_MS) / 1000 + ahead_ms / 1000
        if change:
            change(copy)
        copies.append(copy)
    return sorted(copies, key=lambda copy: float(copy.time))


def sides(
    folder: Path, ahead_ms: float = 0.0, change: Callable[[Packet], None] | None = None
) -> tuple[Path, Path]:
    packets = bulk().packets
    before = written(packets, folder, "before.pcap")
    return before, written(passed(packets, ahead_ms, change), folder, "after.pcap")


def test_both_sides(tidegate: Run, tmp_path: Path) -> None:
    before, after = sides(tmp_path)
    delays, parquet, picture = (tmp_path / name for name in ("delays.csv", "flows.parquet", "flows.png"))
    words = ["--delays", delays, "--parquet", parquet, "--figure", picture, "--sort", "queue_delay_ms_p95"]
    ran = tidegate("monitor", before, "--after", after, "--json", *words)
    assert (ran.code, ran.err) == (0, "")
    answer = json.loads(ran.out)
    alone = watch([before])
    assert answer["packets"] == answer["after_packets"] == answer["packets_at_both"] == alone["packets"]
    assert answer["after_files"] == [str(after)]
    (forth, back), known = answer["flows"], {flow["src"]: flow for flow in alone["flows"]}
    for flow, took, tap in ((forth, QUEUE_MS, "before"), (back, BACK_MS, "after")):
        for name in ("min", "p50", "p95", "p99", "max"):
            assert flow[f"queue_delay_ms_{name}"] == pytest.approx(took, abs=0.002)
        assert (flow["first_tap"], flow["lost_at_router"], flow["negative_queue_delays"]) == (tap, 0, 0)
        assert flow["queue_delay_samples"] == flow["packets"]
        assert flow.items() >= known[flow["src"]].items()
    rows = pl.read_csv(delays)
    assert len(rows) == answer["packets"]
    assert rows.filter(pl.col("src") == B)["queue_delay_ms"].to_list() == pytest.approx(
        [BACK_MS] * back["packets"], abs=0.002
    )
    table = pl.read_parquet(parquet).sort("queue_delay_ms_p50")
    assert table["first_tap"].to_list() == ["after", "before"]
    assert table["lost_at_router"].dtype == pl.Int64
    assert "queue_delay_ms_p50" not in alone["flows"][0]
    assert picture.stat().st_size > 5000

    ran = tidegate("monitor", before, "--after", after)
    heading, row = ran.out.splitlines()[:2]
    assert heading.split()[-9:] == ["at", "both", "queue", "p50", "p95", "p99", "max", "ms", "lost"]
    assert row.split()[-5:] == ["3.000", "3.000", "3.000", "3.000", "0"]
    assert f"{answer['packets']} packets ({answer['packets']} at both taps)" in ran.out


def test_a_simulated_router(tmp_path: Path) -> None:
    """The longest delay and the drops are those of its queue."""
    net = Network()
    a, b, router = net.host("a"), net.host("b"), net.router("r")
    links = [net.link(a, router, rate="100 Mbit/s", delay="5 ms")]
    links.append(net.link(router, b, rate="20 Mbit/s", delay="5 ms", queue="50 kB"))
    net.tcp(a, b)
    sides = [tmp_path / "lan.pcap", tmp_path / "wan.pcap"]
    for link, path in zip(links, sides, strict=True):
        net.capture(link, router, path)
    [queue] = net.run("2 s").queues.filter(pl.col("queue") == "r -> b").to_dicts()
    forth, back = watch(sides[:1], after=sides[1:])["flows"]
    assert forth["queue_delay_ms_max"] == pytest.approx(queue["queue_delay_ms_max"], abs=1e-6)
    assert forth["queue_delay_ms_max"] > 10
    assert forth["lost_at_router"] == queue["dropped"] > 0
    # Routers of simulations leave the time to live as it is.
    assert (forth["first_tap"], back["first_tap"]) == ("before", "after")
    assert (back["queue_delay_ms_max"], back["lost_at_router"]) == (0, 0)


def test_several_files_of_a_side(tmp_path: Path) -> None:
    before, after = sides(tmp_path)
    whole = watch([before], after=[after])
    halves = []
    for name, packets in (("before", bulk().packets), ("after", passed(bulk().packets))):
        for src in (A, B):
            some = [packet for packet in packets if packet[IP].src == src]
            halves.append(written(some, tmp_path, f"{name}-{src}.pcap"))
    parts = watch(halves[:2], after=halves[2:])
    assert parts["flows"] == whole["flows"]


def tagged(packet: Packet) -> None:
    packet[IP].tos = 3
    packet[Ether].src = "02:00:00:00:00:09"
    inner = packet[IP].copy()
    packet[Ether].remove_payload()
    packet[Ether].add_payload(Dot1Q(vlan=7) / inner)


def test_what_a_router_changes(tmp_path: Path) -> None:
    before, after = sides(tmp_path, change=tagged)
    answer = watch([before], after=[after])
    assert answer["packets_at_both"] == answer["packets"] > 50


@pytest.mark.parametrize("ahead_ms", [-50.0, 50.0])
def test_clocks_that_differ(tidegate: Run, tmp_path: Path, ahead_ms: float) -> None:
    before, after = sides(tmp_path, ahead_ms)
    ran = tidegate("monitor", before, "--after", after, "--json")
    assert ran.code == 0
    flows = {flow["src"]: flow for flow in json.loads(ran.out)["flows"]}
    assert flows[A]["queue_delay_ms_min"] == pytest.approx(QUEUE_MS + ahead_ms, abs=0.002)
    assert flows[B]["queue_delay_ms_min"] == pytest.approx(BACK_MS - ahead_ms, abs=0.002)
    wrong = flows[A] if ahead_ms < 0 else flows[B]
    assert wrong["negative_queue_delays"] == wrong["packets"]
    assert wrong["queue_delay_ms_p50"] == 0
    assert "queue delays are below 0" in ran.err
    # It makes the least delays of both directions the same.
    offset = ran.err.split("--after-offset ")[1].split()[0]
    assert float(offset) == pytest.approx(-ahead_ms - (QUEUE_MS - BACK_MS) / 2, abs=0.002)
    ran = tidegate("monitor", before, "--after", after, "--json", "--after-offset", offset)
    assert ran.err == ""
    for flow in json.loads(ran.out)["flows"]:
        assert flow["queue_delay_ms_min"] == pytest.approx((QUEUE_MS + BACK_MS) / 2, abs=0.002)


def test_clocks_an_hour_apart(tmp_path: Path) -> None:
    before, after = sides(tmp_path, 3_600_000.0)
    answer = watch([before], after=[after])
    assert answer["packets_at_both"] == 0
    assert any("--after-offset" in warning for warning in answer["warnings"])
    assert {flow["lost_at_router"] for flow in answer["flows"]} == {None}
    answer = watch([before], after=[after], after_offset_ms=-3_600_000.0)
    assert answer["packets_at_both"] == answer["packets"]
    assert answer["warnings"] == []


def translated(packet: Packet) -> None:
    if packet[IP].src == A:
        packet[IP].src, packet[TCP].sport = "192.0.2.1", 40_000
    else:
        packet[IP].dst, packet[TCP].dport = "192.0.2.1", 40_000


def test_translated_addresses(tmp_path: Path) -> None:
    before, after = sides(tmp_path, change=translated)
    answer = watch([before], after=[after])
    assert [warning for warning in answer["warnings"] if "(NAT)" in warning]
    for flow in answer["flows"]:
        assert (flow["first_tap"], flow["queue_delay_samples"], flow["lost_at_router"]) == (None, 0, None)
        assert flow["queue_delay_ms_p50"] is None


def test_packets_that_were_joined(tmp_path: Path) -> None:
    packets = bulk(400).packets
    before = written(packets, tmp_path, "before.pcap")
    joined, last = [], None
    for packet in passed(packets):
        length = len(packet[TCP].payload)
        if (
            last is not None
            and length
            and last[TCP].seq + 1000 == packet[TCP].seq
            and packet[TCP].seq % 4000 < 2000
        ):
            last[TCP].payload = Raw(bytes(2000))
            last = None
            continue
        last = packet if length else last
        joined.append(packet)
    assert len(passed(packets)) - len(joined) > 50
    after = written([Ether(bytes(packet)) for packet in joined], tmp_path, "joined.pcap")
    with PcapWriter(str(after)) as file:
        for packet in joined:
            file.write(packet)
    [warning] = watch([before], after=[after])["warnings"]
    assert "(GRO, TSO" in warning
    assert warning.endswith("lost_at_router is wrong")


@pytest.mark.parametrize("until", [1.0, 0.5], ids=["both to the end", "one is stopped earlier"])
def test_the_end_of_a_capture_is_no_loss(tmp_path: Path, until: float) -> None:
    packets = bulk(4000).packets
    there = passed(packets)
    stopped = there[: int(until * len(there))]
    # One packet in a hundred of those with data is lost.
    data = [packet for packet in stopped if packet[IP].src == A and len(packet[TCP].payload)]
    lost = {id(packet) for packet in data[50:-50:100]}
    before = written(packets, tmp_path, "before.pcap")
    after = written([packet for packet in stopped if id(packet) not in lost], tmp_path, "after.pcap")
    answer = watch([before], after=[after])
    assert {flow["src"]: flow["lost_at_router"] for flow in answer["flows"]} == {A: len(lost), B: 0}
    assert len(lost) > 15
    assert answer["unsettled_packets"] == len(packets) - len(stopped)


def test_progress_is_not_told_with_each_packet_of_the_second_tap(tmp_path: Path) -> None:
    packets = bulk(400).packets
    before = written(later(packets, 60_000), tmp_path, "before.pcap")
    told: list[int] = []
    watch([before], after=[written(passed(packets), tmp_path, "after.pcap")], progress=told.append)
    assert told == []


def test_the_begin_of_a_capture_is_no_loss(tmp_path: Path) -> None:
    packets = bulk(4000).packets
    before = written(packets, tmp_path, "before.pcap")
    after = written(passed(packets)[3000:], tmp_path, "after.pcap")
    answer = watch([before], after=[after])
    assert [flow["lost_at_router"] for flow in answer["flows"]] == [0, 0]
    # What was in the router when the second one began was seen behind it alone.
    assert 2990 < answer["unsettled_packets"] <= 3000


def test_packets_in_slight_disorder_have_their_own_delays(tmp_path: Path) -> None:
    """A processor was slow with some packets: they are stamped 50 us before the one ahead of them."""
    packets, there = bulk().packets, passed(bulk().packets)
    for one, other in zip(there[10:-1:5], there[11::5], strict=False):
        one.time = other.time + 0.00005
    delays = tmp_path / "delays.csv"
    before, after = written(packets, tmp_path, "before.pcap"), written(there, tmp_path, "after.pcap")
    answer = watch([before], after=[after], delays=delays)
    assert any("are stamped earlier" in warning for warning in answer["warnings"])
    stamps = {round(float(packet.time) * 1e6) for packet in packets + there}
    seen = pl.read_csv(delays, schema_overrides={"time_s": pl.String})["time_s"].to_list()
    assert {round(float(stamp) * 1e6) for stamp in seen} <= stamps
    early = {round(float(packet.time) * 1e6) for packet in there[11::5] if packet[IP].src == A}
    assert early <= {round(float(stamp) * 1e6) for stamp in seen}


def test_a_clock_of_the_second_tap_that_is_set_back(tmp_path: Path) -> None:
    packets = passed(bulk().packets)
    for packet in packets[60:]:
        packet.time -= 0.02
    after = written(packets, tmp_path, "after.pcap")
    warnings = watch([written(bulk().packets, tmp_path, "before.pcap")], after=[after])["warnings"]
    assert any("of the second tap" in warning and "set back" in warning for warning in warnings)


@pytest.mark.parametrize(
    ("words", "code", "why"),
    [
        (["{before}", "--after", "{before}"], 2, "a capture is given twice"),
        (["-", "--after", "-"], 1, "standard input (-) is given twice"),
        (["{before}", "--delays", "{folder}/d.csv"], 2, "give it with --after"),
        (["{before}", "--sort", "lost_at_router"], 2, "give it with --after"),
        (["{before}", "--after-offset", "3"], 2, "is for captures of --after"),
        (["-i", "lo", "--after", "eth0", "--after-offset", "3"], 2, "have one clock"),
        (["-i", "lo", "--after", "lo"], 2, "an interface is given twice"),
        (["--after", "{after}"], 2, "give captures, or interfaces with -i"),
        (["{before}", "--after", "{folder}/none.pcap"], 1, "none.pcap: cannot be read"),
        (
            ["{before}", "--after", "{after}", "--samples", "{folder}/d.csv", "--delays", "{folder}/d.csv"],
            2,
            "one file",
        ),
        (["{before}", "--after", "{after}", "--figure", "{after}"], 1, "a figure has a name with"),
        (["{before}", "--after", "{after}", "--lost-after", "100"], 2, "--lost-after"),
    ],
)
def test_refused(tidegate: Run, tmp_path: Path, words: list[str], code: int, why: str) -> None:
    before, after = sides(tmp_path)
    ran = tidegate("monitor", *(word.format(before=before, after=after, folder=tmp_path) for word in words))
    assert ran.code == code
    assert why in " ".join(ran.err.replace("│", " ").split())


def test_standard_input_is_the_other_side(tmp_path: Path) -> None:
    before, after = sides(tmp_path)
    words = [sys.executable, "-m", "tidegate.cli", "monitor", str(before), "--after", "-", "--json"]
    done = subprocess.run(words, input=after.read_bytes(), capture_output=True, check=True)
    answer = json.loads(done.stdout)
    assert answer["packets_at_both"] == answer["packets"]


def test_in_python(tmp_path: Path) -> None:
    before, after = sides(tmp_path)
    with pytest.raises(TidegateError, match="give the second one with --after"):
        watch([before], delays=tmp_path / "d.csv")
    for seconds in (0.0, -1.0, 61.0, float("nan")):
        with pytest.raises(TidegateError, match="can be lost after 60 s at most"):
            watch([before], after=[after], lost_after=seconds)
    for offset in (float("inf"), float("nan"), -1e300):
        with pytest.raises(TidegateError, match="more than clocks differ by"):
            watch([before], after=[after], after_offset_ms=offset)
