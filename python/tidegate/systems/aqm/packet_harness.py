"""A rig for tests: packets at given times through a P4 program and its queues, and through the oracle, in front of one slow wire."""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, partial
from pathlib import Path
from typing import Any

from tidegate import units
from tidegate.control import Controller, Port, SwitchApi
from tidegate.network import Network
from tidegate.systems.aqm.controller import BINS, ONE, Aqm, AqmController, dual_port
from tidegate.systems.aqm.experiments.testbed import INSIDE, ONE_QUEUE
from tidegate.systems.aqm.rfc9332_pseudocode import (
    DualPi2,
    Packet,
    Params,
    Pi2,
    Queue,
    Scheduler,
    TsFifo,
    Wrr,
)
from tidegate.systems.aqm.setup import program
from tidegate.systems.aqm.tofino import TofinoAqm, TofinoController

# Bits a second: a byte takes a microsecond on the wire.
RATE = 8_000_000
PORT, CPU_PORT = 0, 9
# In picoseconds.
US, MS = 10**6, 10**9
MAC = 0x0200_0000_0001
L_DSCP, C_DSCP = 46, 8
"""Packets that an operator's classifier puts in L or C."""


@dataclass(frozen=True)
class Sent:
    """A packet that is sent into the switch."""

    at: int
    """Picoseconds."""
    bytes: int = 1514
    ecn: int = 0
    classed: str | None = None
    version: int = 4


@dataclass(frozen=True)
class Left:
    """A packet that has left, in which order."""

    number: int
    ecn: int
    us: int
    """When its first bit was on the wire."""


@dataclass
class Outcome:
    """What came of packets."""

    left: list[Left]
    p: Fraction
    counts: dict[str, list[int]] = field(default_factory=dict)
    """By counter: of C and of L."""
    registers: dict[str, list[int]] = field(default_factory=dict)
    data: list[bytes] = field(default_factory=list)
    """What left, as bytes."""
    notes: list[tuple[float, str, float]] = field(default_factory=list)
    """Seconds, quantity and value of what the controller noted."""
    bins: list[list[int]] = field(default_factory=list)
    """Of the delays in C and in L."""


@cache
def frame(number: int, size: int, ecn: int, dscp: int, version: int) -> bytes:
    """A UDP packet to the sink, its number in its payload and, for IPv4, as identification."""
    payload = number.to_bytes(4)
    ethernet = MAC.to_bytes(6) + b"\x02\x00\x00\x00\x00\x09"
    length = size - 14
    if version == 6:
        first = 6 << 28 | (dscp << 2 | ecn) << 20
        addresses = bytes.fromhex("20010db8000000000000000000000001") * 2
        header = struct.pack(">IHBB", first, length - 40, 17, 64) + addresses
        return ethernet + b"\x86\xdd" + header + (bytes(8) + payload).ljust(length - 40, b"\0")
    fields = (0x45, dscp << 2 | ecn, length, number & 0xFFFF, 0, 64, 17)
    addresses = bytes([192, 0, 2, 1, 10, 0, 0, 1])
    header = struct.pack(">BBHHHBBH", *fields, 0) + addresses
    header = header[:10] + checksum(header).to_bytes(2) + header[12:]
    return ethernet + b"\x08\x00" + header + (bytes(8) + payload).ljust(length - 20, b"\0")


def checksum(header: bytes) -> int:
    """Of an IPv4 header (RFC 1071); 0 over one that has its own."""
    total: int = sum(struct.unpack(f">{len(header) // 2}H", header))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def number_and_ecn(data: bytes) -> tuple[int, int]:
    """Of a packet that has left."""
    if data[12:14] == b"\x86\xdd":
        return int.from_bytes(data[62:66]), data[15] >> 4 & 3
    return int.from_bytes(data[42:46]), data[15] & 3


def dice(seed: int) -> Callable[[], Fraction]:
    """The random numbers of a switch with this seed (SplitMix64), as the program draws them."""
    state = seed

    def draw() -> Fraction:
        nonlocal state
        state = (state + 0x9E37_79B9_7F4A_7C15) % 2**64
        z = state
        z = (z ^ (z >> 30)) * 0xBF58_476D_1CE4_E5B9 % 2**64
        z = (z ^ (z >> 27)) * 0x94D0_49BB_1331_11EB % 2**64
        return Fraction((z ^ (z >> 31)) >> 32, 2**32)

    return draw


class _Feeder(Controller):
    """Sends packets into the switch, and reads what is left at the end."""

    switch: SwitchApi

    def __init__(self, prepare: Callable[[SwitchApi], None]) -> None:
        self._prepare = prepare

    def start(self, switch: SwitchApi) -> None:
        """The program's own controller has started before."""
        self.switch = switch
        self._prepare(switch)

    def send(self, data: bytes) -> None:
        """A packet comes in."""
        self.switch.packet_out(data)

    def act(self, what: Callable[[SwitchApi], None]) -> None:
        """Something is done to the switch."""
        what(self.switch)


COUNTERS = (
    "arrived",
    "overflowed",
    "forwarded",
    "marked",
    "dropped_not_ect",
    "dropped_ect",
)


def through_program(
    name: str,
    aqm: Aqm | TofinoAqm,
    packets: Sequence[Sent],
    *,
    p: Fraction = Fraction(0),
    port: Port | None = None,
    prepare: Callable[[SwitchApi], None] = lambda switch: None,
    during: Sequence[tuple[int, Callable[[SwitchApi], None]]] = (),
    seed: int = 1,
    rate: int = RATE,
    options: Mapping[str, Any] | None = None,
) -> Outcome:
    """What the program and the switch around it do with the packets.

    `during` the run, things are done to the switch. `options` are those of the controller. With a `TofinoAqm`, `name` is a program in
    Tofino's form.
    """
    net = Network()
    switch = net.switch("switch", program(name), queues=2, cpu_port=CPU_PORT)
    sink = net.host("sink")
    link = net.link(switch, sink, rate=rate, delay="1 ms", framing=14)
    queues = port or (ONE_QUEUE if name.startswith("pi2") else dual_port())
    tofino = isinstance(aqm, TofinoAqm)
    likelihoods = ("p_coupled", "p_squared") if tofino else ("p",)
    net.configure(switch, link, queues)

    def set_up(api: SwitchApi) -> None:
        for register in likelihoods:
            api.register_write(register, [min(int(p * ONE), ONE - 1) if tofino else int(p * ONE)], PORT)
        if name == "dualpi2":
            api.table_add("dscps", [L_DSCP], "low")
            api.table_add("dscps", [C_DSCP], "classic")
        prepare(api)

    controller: Controller
    if isinstance(aqm, TofinoAqm):
        controller = TofinoController({PORT: rate}, aqm, ports={_mac(MAC): PORT}, **(options or {}))
    else:
        asks = replace(aqm, classified=any(sent.classed for sent in packets))
        controller = AqmController({PORT: rate}, asks, ports={_mac(MAC): PORT}, **(options or {}))
    feeder = _Feeder(set_up)
    net.control(controller, switch)
    net.control(feeder, switch)
    end = 0
    for number, sent in enumerate(packets):
        data = frame(number, sent.bytes, sent.ecn, dscp(sent.classed), sent.version)
        net.at(units.show_time(sent.at), partial(feeder.send, data))
        end = max(end, sent.at)
    for at, act in during:
        net.at(at, partial(feeder.act, act))
        end = max(end, at)
    end += round(sum(sent.bytes for sent in packets) * 8 / rate * 1e12) + 10**10
    state: dict[str, Any] = {}
    registers = ("classic_delay", "delay_sum") if tofino else ("backlog", "delay", "delay_sum")
    counters = tuple(counter for counter in COUNTERS if counter != "overflowed") if tofino else COUNTERS

    def read() -> None:
        api = feeder.switch
        state["p"] = Fraction(int(api.register_read(likelihoods[0], PORT, 1)[0]), ONE)
        for counter in counters:
            state[counter] = api.counter_read(counter, 2 * PORT, 2)[:, 0].tolist()
        for register in registers:
            state[register] = api.register_read(register, 2 * PORT, 2).tolist()
        cells = api.counter_read("delay_histogram", 2 * PORT * BINS, 2 * BINS)[:, 0]
        state["bins"] = cells.reshape(2, BINS).tolist()
        state["presented"] = [sum(bins) for bins in state["bins"]]

    net.at(end, read)
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "left.pcap"
        net.capture(link, switch, file)
        notes = net.run(end, seed=seed).notes
        records = list(_records(file.read_bytes()))
    return Outcome(
        [Left(*number_and_ecn(data), ns // 1000) for ns, data in records],
        state["p"],
        {name: state[name] for name in ("presented", *counters)},
        {name: state[name] for name in registers},
        [data for _, data in records],
        notes.select("time_s", "quantity", "value").rows(),
        state["bins"],
    )


def _mac(number: int) -> str:
    return ":".join(f"{byte:02x}" for byte in number.to_bytes(6))


def dscp(classed: str | None) -> int:
    """What a packet for that queue carries."""
    return {"L": L_DSCP, "C": C_DSCP, None: 0}[classed]


def _records(data: bytes) -> Any:
    """Times in nanoseconds and bytes, of a pcap file."""
    at = 24
    while at < len(data):
        seconds, nanoseconds, kept, _ = struct.unpack_from("<IIII", data, at)
        yield seconds * 10**9 + nanoseconds, data[at + 16 : at + 16 + kept]
        at += 16 + kept


def params_of(aqm: Aqm, rate: int = RATE) -> Params:
    """The oracle's parameters for what the program is given, with its gains and slope."""
    _, target, alpha, beta, _, _, p_max, *_ = aqm.values()
    min_th, max_th, slope = aqm.values()[7:10]
    return Params(
        limit=aqm.room(rate) + aqm.frame,
        frame=aqm.frame,
        k=Fraction(aqm.k),
        target=target,
        alpha=Fraction(alpha, 2**52),
        beta=Fraction(beta, 2**32),
        p_c_max=Fraction(p_max, 2**32) ** 2,
        min_th=min_th,
        range=max_th - min_th,
        slope=Fraction(slope, 2**32),
        th_len=-1 if aqm.ramp_packets is None else aqm.ramp_packets,
        l4s=aqm.l4s,
        policed=aqm.policed,
        spares_two=aqm.spares_two,
    )


def through_oracle(
    name: str,
    aqm: Aqm,
    packets: Sequence[Sent],
    *,
    p: Fraction = Fraction(0),
    scheduler: Scheduler | None = None,
    seed: int = 1,
    rate: int = RATE,
) -> tuple[Outcome, DualPi2]:
    """What the RFC's algorithm does with the same packets at the same times."""
    kind = Pi2 if name == "pi2" else DualPi2
    # The switch is the network's first node.
    draw = dice(seed ^ 0) if aqm.random else None
    oracle = kind(params_of(aqm, rate), scheduler or Wrr(), draw)
    oracle.p = p
    period_us = aqm.tupdate // US if aqm.home == "data plane" else 0
    left: list[Left] = []
    updated_us = free_at = now = 0

    def updates(q: Queue, qdelay: int) -> None:
        nonlocal updated_us
        elapsed = now // US - updated_us
        if period_us and elapsed >= period_us:
            other = oracle.lq if q is oracle.cq else oracle.cq
            # Beyond a second to 1024 us, as the program.
            elapsed = elapsed if elapsed <= 0xFFFFF else min(elapsed >> 10, 0xFFFFF) << 10
            oracle.update(elapsed, other.time(now), qdelay)
            updated_us = now // US

    def serve(until: int) -> None:
        """Sends what the wire has time for before a time."""
        nonlocal now, free_at
        while oracle.lq.packets or oracle.cq.packets:
            start = max(free_at, now)
            if start > until:
                break
            now = start
            pkt = oracle.dequeue(now, updates)
            if pkt is not None:
                left.append(Left(pkt.number, pkt.ecn, now // US))
                free_at = now + pkt.bytes * 8 * 10**12 // rate

    for number, sent in enumerate(packets):
        serve(sent.at)
        now = sent.at
        oracle.enqueue(now, Packet(number, sent.bytes, sent.ecn, sent.classed))  # type: ignore[arg-type]
    serve(2**62)
    return Outcome(left, oracle.p), oracle


def scheduled(name: str) -> tuple[Port, Scheduler]:
    """A scheduler of the switch, and the oracle's."""
    if name == "time-shifted FIFO":
        return dual_port("time-shifted FIFO", time_shift="50 ms"), TsFifo()
    return dual_port(), Wrr()


# The PI controller in the control plane every 16 ms, with the paper's target, step and random signals.
OUTSIDE = replace(INSIDE, home="control plane")

# p' stays what it is set to: the gains for such a round trip are 0. No native marks, no two-packet minimum.
FIXED = Aqm(rtt_max="100000 s", ramp_from="2 s", spares_two=False)


def spaced(count: int, ecn: int, classed: str | None = None, gap_us: int = 100, **about: int) -> list[Sent]:
    """Small packets that never wait."""
    return [Sent(n * gap_us * US + 1, 80, ecn, classed, **about) for n in range(count)]


def counted(name: str, aqm: Aqm, packets: Sequence[Sent], p: Fraction, **options: Any) -> Outcome:
    """What comes of packets at 80 Mbit/s."""
    return through_program(name, aqm, packets, p=p, rate=80_000_000, **options)


def share(outcome: Outcome, counter: str, queue: int = 0) -> Fraction:
    """Of the packets that left a queue."""
    return Fraction(outcome.counts[counter][queue], outcome.counts["presented"][queue])
