"""`csig.p4`: tags keep the worst value of a path, and its locator; the meter is an average over windows."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scapy.utils import RawPcapReader

from tidegate import TidegateError, p4, units
from tidegate.control import Controller, SwitchApi
from tidegate.hosts.agents import Agent, Connection
from tidegate.hosts.shims import Echo, Insert, Report, Shim
from tidegate.network import Network
from tidegate.systems.stamping.csig import Csig, Signal, Tag, configure, program, ranges, signalling

ENGINES: list[Literal["interp", "jit"]] = ["interp", "jit"]
MAC = "02:00:00:00:00:02"
ADDRESSES = bytes.fromhex("020000000002020000000001")
PS_PER_US = 1_000_000
PORT, LOCATOR, RATE = 1, 5, 100_000_000
WINDOW_US = 256
PIPELINES = [program(Csig()).pipeline(engine) for engine in ENGINES]


def prepared(pipeline: p4.Pipeline, form: Csig) -> p4.Pipeline:
    for table in ("forward", "ports", "signals", "ranges"):
        pipeline.table_clear(table)
    for register in ("average", "present", "sent"):
        pipeline.register_write(register, [0], PORT)
    pipeline.table_add("forward", [MAC], "to_port", [PORT])
    configure(pipeline, form, PORT, RATE, LOCATOR, PS_PER_US)
    ranges(pipeline, form)
    return pipeline


def tagged(form: Csig, signal: int, bucket: int, locator: int = 99, length: int = 100) -> bytes:
    word = signal << 13 | 1 << 12 | bucket << 7 | locator
    head = ADDRESSES + form.tpid.to_bytes(2) + word.to_bytes(2) + bytes.fromhex("0800")
    return head + bytes(length - len(head))


def sent(pipeline: p4.Pipeline, us: int, frame: bytes) -> bytes:
    ((_, out),) = pipeline.process(us * PS_PER_US, 0, frame)
    return out


def averages(packets: list[tuple[int, int]]) -> list[float]:
    """What the meter says before each packet (microseconds, bytes): bytes in a window, averaged by 1/8."""
    level, bytes_, window, said = 0.0, 0, 0, []
    for us, length in packets:
        while window < us // WINDOW_US:
            level += (bytes_ - level) / 8
            bytes_ = 0
            window += 1
        bytes_ += length
        said.append(level)
    return said


GAPS = st.integers(0, 300) | st.integers(0, 40_000)


@pytest.mark.slow
@given(arrivals=st.lists(st.tuples(GAPS, st.integers(60, 9000)), min_size=1, max_size=40))
def test_the_meter_is_an_average_over_windows(arrivals: list[tuple[int, int]]) -> None:
    for pipeline in PIPELINES:
        prepared(pipeline, Csig())
        # The pipeline's clock goes on from one example to the next.
        us = -(-(pipeline.now // PS_PER_US) // WINDOW_US) * WINDOW_US + WINDOW_US
        pipeline.register_write("present", [us // WINDOW_US], PORT)
        start, packets = us, []
        for gap, length in arrivals:
            us += gap
            packets.append((us - start, length))
        for (at, length), said in zip(packets, averages(packets), strict=True):
            sent(pipeline, start + at, tagged(Csig(), 7, 0, length=length))
            measured = int(pipeline.register_read("average", PORT, 1)[0]) / 256
            # Each window cuts less than a 1/256 byte, each of seven factors at most 1/16384.
            assert measured == pytest.approx(said, rel=1e-3, abs=0.2)


def loaded(pipeline: p4.Pipeline, form: Csig, share: float) -> int:
    """Let a port carry a share of its rate until the meter has settled; return the time."""
    prepared(pipeline, form)
    start = pipeline.now // PS_PER_US // WINDOW_US + 1
    length = round(share * RATE / 8 * WINDOW_US / 1e6)
    for window in range(start, start + 80):
        sent(pipeline, window * WINDOW_US, tagged(form, 7, 0, length=length))
    return (start + 80) * WINDOW_US


@pytest.mark.parametrize("engine", [0, 1])
@pytest.mark.parametrize(
    ("signal", "bucket", "left"),
    [
        # 70 of 100 Mbit/s are available; the full scale is 160.
        (Signal.ABW, 31, (14, LOCATOR)),
        (Signal.ABW, 15, (14, LOCATOR)),
        (Signal.ABW, 14, (14, 99)),
        (Signal.ABW, 3, (3, 99)),
        (Signal.SHARE, 31, (22, LOCATOR)),
        (Signal.SHARE, 22, (22, 99)),
        (Signal.SHARE, 0, (0, 99)),
        # Nothing waits in a pipeline without queues.
        (Signal.DELAY, 0, (0, 99)),
        (Signal.DELAY, 7, (7, 99)),
        (3, 9, (9, 99)),
    ],
)
def test_a_value_is_replaced_by_one_that_is_strictly_worse(
    engine: int, signal: int, bucket: int, left: tuple[int, int]
) -> None:
    form = Csig(bandwidth="160 Mbit/s")
    pipeline = PIPELINES[engine]
    now = loaded(pipeline, form, 0.3)
    assert sent(pipeline, now, tagged(form, signal, bucket)) == tagged(form, signal, *left)


@pytest.mark.parametrize("engine", [0, 1])
def test_buckets_can_have_edges_of_their_own(engine: int) -> None:
    form = Csig(edges=((Signal.SHARE, (0.05, 0.1, 0.25, 0.4, 0.55, 0.71, 0.85)),))
    pipeline = PIPELINES[engine]
    now = loaded(pipeline, form, 0.3)
    out = form.read(sent(pipeline, now, tagged(form, Signal.SHARE, 31)))
    assert out == Tag(Signal.SHARE, 5, LOCATOR)
    assert [form.decode(Signal.SHARE, bucket) for bucket in (0, 1, 5, 7, 31)] == [0, 0.05, 0.55, 0.85, 0.85]


@pytest.mark.parametrize("engine", [0, 1])
def test_what_has_no_tag_or_a_broken_one_passes_untouched(engine: int) -> None:
    form, pipeline = Csig(), PIPELINES[engine]
    now = loaded(pipeline, form, 1.0)
    before = [int(packets) for packets, _ in pipeline.counter_read("unstamped")]
    whole = tagged(form, Signal.SHARE, 31)
    twice = whole[:16] + form.tpid.to_bytes(2) + whole[14:]
    for frame in (ADDRESSES + bytes.fromhex("0800") + bytes(40), whole[:17], twice):
        assert sent(pipeline, now, frame) == frame
    after = [int(packets) for packets, _ in pipeline.counter_read("unstamped")]
    assert [b - a for a, b in zip(before, after, strict=True)] == [1, 1]


def test_a_tag_is_laid_out_as_in_public_implementations() -> None:
    form = Csig()
    assert tagged(form, 1, 0x17, 5)[12:16].hex() == "99003b85"
    assert form.tag(Signal.DELAY).hex() == "99004000"
    assert form.tag(Signal.SHARE).hex() == "99002f80"
    assert form.read(ADDRESSES + bytes.fromhex("99002b850800")) == Tag(Signal.SHARE, 0x17, 5)
    assert form.read(ADDRESSES + bytes.fromhex("0800") + bytes(40)) is None


class Source(Controller):
    """Sends tagged frames through a switch."""

    def __init__(self, frame: bytes, period: str) -> None:
        self.frame = frame
        self.packet_period = period

    def start(self, switch: SwitchApi) -> None:
        switch.generator_set(0, port=500, packet=self.frame, period=self.packet_period)


def test_the_delay_of_a_tag_is_the_longest_queue_of_the_path(tmp_path: Path) -> None:
    """A queue that grows by 2 us with each packet, up to its end, and one behind it that stays empty."""
    form = Csig(delay="3.2 ms")
    net = Network()
    a, b = net.host("a"), net.host("b")
    first, second = signalling(net, "first", form, locator=1), signalling(net, "second", form, locator=2)
    net.link(a, first, rate="1 Gbit/s", delay="10 us")
    net.link(first, second, rate="100 Mbit/s", delay="10 us", queue="100 packets")
    last = net.link(second, b, rate="1 Gbit/s", delay="10 us")
    destination = bytes.fromhex(net.mac(b).replace(":", ""))
    frame = destination + ADDRESSES[6:] + form.tag(Signal.DELAY) + bytes.fromhex("88b6") + bytes(232)
    # 250 bytes take 20 us.
    net.control(Source(frame, "18 us"), first)
    net.capture(last, b, tmp_path / "b.pcap")
    net.run("40 ms", progress=False)
    tags = [form.read(frame) for frame, _ in RawPcapReader(str(tmp_path / "b.pcap"))]
    assert len(tags) > 1900
    buckets = [tag.bucket for tag in tags if tag]
    # The queue is full after 1000 packets: the last of them waits for 100 others, less what has been sent of the first.
    assert buckets[:990] == [number * 2 // 100 for number in range(990)]
    assert set(buckets[1000:]) <= {19, 20}
    assert len(buckets) == len(tags)
    assert {(tag.bucket > 0, tag.locator) for tag in tags if tag} == {(False, 0), (True, 1)}


class Host(Agent):
    """Keeps the tags that it is told of."""

    def __init__(self, form: Csig, *shims: Shim) -> None:
        self.form, self.shims = form, shims
        self.told: list[Tag] = []

    def on_report(self, now: int, connection: Connection, kind: int, data: bytes) -> None:
        self.told.append(self.form.read_data(data))


def test_simulated_hosts_send_read_and_echo_tags() -> None:
    form = Csig(delay="32 ms")
    net = Network()
    a, b = net.host("a"), net.host("b")
    first, second = signalling(net, "first", form, locator=1), signalling(net, "second", form, locator=2)
    net.link(a, first, rate="1 Gbit/s", delay="10 us")
    net.link(first, second, rate="50 Mbit/s", delay="1 ms", queue="100 packets")
    last = net.link(second, b, rate="40 Mbit/s", delay="1 ms", queue="60 packets")
    sender = Host(form, Insert(form.option, form.blank(Signal.DELAY)), Report(form.echo))
    receiver = Host(form, Report(form.option), Echo(form.option, form.echo))
    net.agent(a, sender)
    net.agent(b, receiver)
    flow = net.tcp(a, b, size="2 MB")
    net.record("1 ms", queues=[last])
    result = net.run("2 s", progress=False)
    assert result.flows.row(flow.number, named=True)["bytes_received"] == 2_000_000
    assert {tag.locator for tag in receiver.told} == {0, 1, 2}
    # The longest queue is the last one's: 60 packets at 40 Mbit/s.
    longest = result.queues.filter(pl.col("queue") == "second -> b")["queue_delay_ms_max"].item()
    assert max(tag.bucket for tag in receiver.told if tag.locator == 2) == int(longest) > 15
    assert set(sender.told) <= set(receiver.told)
    assert max(sender.told) == max(receiver.told)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"delay": 0}, "full scale of a CSIG tag's delay is 0"),
        ({"bandwidth": 0}, "full scale of a CSIG tag's bandwidth is 0"),
        ({"window": 0}, "window of a CSIG meter is 0"),
        ({"tpid": 5}, "EtherType of a CSIG tag"),
        ({"edges": ((Signal.ABW, (0.5, 0.2)),)}, "give 1 to 31 rising shares"),
        ({"edges": ((Signal.ABW, ()),)}, "give 1 to 31 rising shares"),
    ],
)
def test_what_makes_no_sense_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(TidegateError, match=message):
        Csig(**arguments)  # type: ignore[arg-type]


def test_data_of_no_tag_is_refused() -> None:
    for data in (b"", b"\x20", b"\x60\x00", b"\x20\x00\x00"):
        with pytest.raises(TidegateError, match="not the data of a CSIG tag"):
            Csig().read_data(data)


def test_a_window_too_long_for_a_link_is_refused() -> None:
    with pytest.raises(TidegateError, match="does not go with a link"):
        configure(PIPELINES[0], Csig(window="10 s"), PORT, units.rate("100 Gbit/s"), 0, PS_PER_US)
