"""Flows that come and go by thousands, with losses: the switch's count of members against the truth, all the time.

The truth is what the packets say that come to the switch, in the order in which they come: a flow is there from the ACK after its
marked SYN, or from its question after an unmarked one, to its FIN or a reset. A capture has them. The switch's count is read every
10 ms, and at the end.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from ipaddress import IPv4Address
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between, most
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.experiments.attack import Victim, attacker_program, frame
from tidegate.systems.pacing.format import Keys, Kind, PacingOption
from tidegate.systems.pacing.setup import PLACES, paced, pacing

HOSTS = 10
REST_S = 9.0
"""After the last flow has begun."""
IDLE = {"flood": "4 s", "keyed-flood": "4 s", "full": "4 s"}
"""Where it is not 30 s: aggregates are gone in twice that, SYNs that nothing follows in an eighth of it and 1 s."""
OUT = 0
"""The bottleneck's port: it is linked first."""
FIN, SYN, RST, ACK = 1, 2, 4, 16
SERVER = bytes((10, 0, 0, 1))


DISTURBANCES = {
    "none": "no disturbance",
    "losses": "losses",
    "reuse": "reused ports, resets",
    "flood": "a flood of SYNs",
    "keyed-flood": "the same, keys, few places",
    "full": "few places",
}
"""What happens beside the flows. `reuse`: a host sends SYNs, ACKs, FINs and resets of fifty ports in any order. `flood`: marked SYNs
from random addresses, 2000 a second, whose handshakes never end. `keyed-flood`: a switch with 1536 places, and the flood's SYNs have no
right check. `full`: a switch with 24 places."""
FEW = {"keyed-flood": 1536, "full": 24}
KEYS = Keys((0x0123456789ABCDEF, 0xFEDCBA9876543210))
GHOST = 0x0A000909
PORTS = 50


class Watch(Controller):
    """Notes how many members the bottleneck has."""

    period = "10 ms"

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note them."""
        switch.note("members", int(switch.register_read("flows", OUT, 1)[0]))
        switch.note("notices", int(switch.counter_read("notices", OUT, 1)[0, 0]))
        switch.note("refused", float(switch.counter_read("refused")[:, 0].sum()))
        switch.note("aggregates", int(switch.register_read("aggregates", OUT, 1)[0]))


class Stranger(Controller):
    """A host that sends what `make` draws, a packet each half millisecond until a time, and then `last`."""

    period = "500 us"

    def __init__(
        self, make: Callable[[np.random.Generator], bytes], last: list[bytes], seed: int, until_s: float
    ) -> None:
        self._make, self._draw, self._until = make, np.random.default_rng(seed), round(until_s * 1e12)
        self._last, self._ended = last, False

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Send one."""
        if now < self._until:
            switch.packet_out(self._make(self._draw))
        elif not self._ended:
            self._ended = True
            for packet in self._last:
                switch.packet_out(packet)


def _stranger(server_mac: bytes, address: int, port: int) -> Victim:
    return Victim(bytes((2, 0, 0, 0, 9, 9)), server_mac, IPv4Address(address).packed, SERVER, (port, 5001))


def _flood(server_mac: bytes, draw: np.random.Generator) -> bytes:
    someone = _stranger(
        server_mac, int(draw.integers(0x0B000000, 0x0C000000)), int(draw.integers(1024, 65_536))
    )
    option = PacingOption(Kind.JOIN, check=int(draw.integers(2**24)))
    return frame(someone, option, SYN, sequence=int(draw.integers(2**32)))


def _anything(server_mac: bytes, draw: np.random.Generator) -> bytes:
    flags = int(draw.choice((SYN, ACK, ACK, ACK, FIN | ACK, RST, RST | ACK, SYN | ACK)))
    option = PacingOption(Kind.JOIN) if flags == SYN else None
    return frame(_stranger(server_mac, GHOST, 2000 + int(draw.integers(PORTS))), option, flags)


@experiment(
    "pacing.churn",
    (
        "disturbance",
        "loss_percent",
        "flows",
        "members_most",
        "samples",
        "wrong_samples",
        "wrong_most",
        "members_at_rest",
        "notices",
        "refused",
    ),
    quick={"flows": 1000},
)
def churn(
    flows: Number = 10_000,
    flows_per_s: Annotated[float, AtLeast(1.0)] = 3000.0,
    disturbances: Annotated[tuple[str, ...], OneOf(DISTURBANCES)] = tuple(DISTURBANCES),
    losses_percent: Annotated[tuple[float, ...], AtLeast(0.0)] = (1.0,),
    size_kb: Annotated[float, AtLeast(1.0)] = 30.0,
) -> Plan:
    """Short flows that come at random times from ten hosts, with losses on all links, floods, reused ports, and full tables."""
    cases = []
    for name in disturbances:
        for loss in losses_percent if name == "losses" else (0.0,):
            folder = tempfile.TemporaryDirectory(prefix="tidegate-churn-")
            until_s = flows / flows_per_s + REST_S
            make = partial(_network, Path(folder.name), name, flows, flows_per_s, loss, size_kb)
            measure = partial(_row, folder, name, flows, loss)
            case = f"loss-{loss:g}" if name == "losses" else name
            cases.append(Case(case, make, f"{round(until_s * 1000)} ms", measure))
    return Plan(cases, _claims, _draw)


def _network(
    folder: Path, name: str, flows: int, flows_per_s: float, loss: float, size_kb: float, seed: int
) -> Network:
    draw = np.random.default_rng(seed)
    keys = KEYS if name == "keyed-flood" else None
    network = Network()
    switch = pacing(network, "switch", keys=keys, idle=IDLE.get(name, "30 s"), places=FEW.get(name, PLACES))
    network.control(Watch(), switch)
    server = network.host("server")
    network.link(switch, server, rate="1 Gbit/s", delay="2 ms", queue="500 packets", loss=loss / 100)
    hosts = []
    for number in range(HOSTS):
        hosts.append(network.host(f"host{number + 1}"))
        link = network.link(
            hosts[-1], switch, rate="1 Gbit/s", delay="100 us", queue="1000 packets", loss=loss / 100
        )
        network.capture(link, switch, folder / f"{seed}-{number}.pcap", snap="96 B")
        paced(network, hosts[-1], keys=keys)
    if name in ("reuse", "flood", "keyed-flood"):
        stranger = network.switch("stranger", attacker_program(), cpu_port=510)
        link = network.link(stranger, switch, rate="1 Gbit/s", delay="100 us", queue="1000 packets")
        network.capture(link, switch, folder / f"{seed}-stranger.pcap", snap="96 B")
        server_mac = bytes.fromhex(network.mac(server).replace(":", ""))
        sends = partial(_anything if name == "reuse" else _flood, server_mac)
        resets = [frame(_stranger(server_mac, GHOST, 2000 + port), None, RST) for port in range(PORTS)]
        last = resets if name == "reuse" else []
        network.control(Stranger(sends, last, seed, flows / flows_per_s), stranger)
    starts = np.sort(draw.uniform(0.0, flows / flows_per_s, flows))
    sizes = np.maximum(draw.exponential(size_kb * 1e3, flows), 1.0)
    for start, size, host in zip(starts, sizes, draw.integers(0, HOSTS, flows), strict=True):
        network.tcp(hosts[host], server, start=round(start * 1e12), size=round(size))
    return network


def packets(path: Path) -> Iterator[tuple[int, bytes]]:
    """Times in nanoseconds and frames of a capture that the simulator has written."""
    data, at = path.read_bytes(), 24
    while at < len(data):
        seconds, rest, length, _ = struct.unpack_from("<IIII", data, at)
        yield seconds * 10**9 + rest, data[at + 16 : at + 16 + length]
        at += 16 + length


def truth(captures: list[Path], keys: Keys | None = None) -> pl.DataFrame:
    """How many members there are from each time on: `time_ns` and `members`, by the packets that come to the switch.

    With keys, a SYN with a right check is enough.
    """
    events = []
    for path in captures:
        for time, data in packets(path):
            header = 4 * (data[14] & 15)
            if data[12:14] != b"\x08\x00" or data[23] != 6 or len(data) < 14 + header + 20:
                continue
            tcp = 14 + header
            flags, source, target = data[tcp + 13], data[26:30], data[30:34]
            ports = data[tcp : tcp + 4]
            to_server = target == SERVER
            key = source + ports if to_server else target + ports[2:] + ports[:2]
            option = PacingOption.of(data[36 : 14 + header]) if header > 20 else None
            if option is not None and option.kind == Kind.JOIN and keys is not None:
                host = (str(IPv4Address(source)), int.from_bytes(ports[:2]))
                peer = (str(IPv4Address(target)), int.from_bytes(ports[2:]))
                bound = int.from_bytes(data[tcp + 4 : tcp + 8])
                own = option.checked(keys.values[option.key], host, peer, bound)
                option = option if own.check == option.check else None
            events.append((time, key, flags, to_server, None if option is None else option.kind))
    events.sort(key=lambda event: event[0])
    asked: set[bytes] = set()
    members: set[bytes] = set()
    times, counts = [0], [0]
    for time, key, flags, to_server, kind in events:
        if flags & RST or (to_server and flags & FIN):
            asked.discard(key)
            members.discard(key)
        elif to_server and flags & (SYN | ACK) == SYN and kind == Kind.JOIN and key not in members:
            (asked if keys is None else members).add(key)
        elif to_server and flags & (SYN | ACK) == ACK and (key in asked or kind == Kind.UPDATE):
            asked.discard(key)
            members.add(key)
        if len(members) != counts[-1]:
            times.append(time)
            counts.append(len(members))
    return pl.DataFrame({"time_ns": times, "members": counts})


def _row(folder: tempfile.TemporaryDirectory[str], name: str, flows: int, loss: float, result: Result) -> Row:
    captures = sorted(Path(folder.name).glob("*.pcap"))
    expected = truth(captures, KEYS if name == "keyed-flood" else None)
    for capture in captures:
        capture.unlink()
    notes = result.notes.filter(pl.col("quantity") == "members").sort("time_s")
    times = (notes["time_s"].to_numpy() * 1e9).round().astype(np.int64)
    counted = notes["value"].to_numpy()
    at = np.searchsorted(expected["time_ns"].to_numpy(), times, side="right") - 1
    wrong = np.abs(counted - expected["members"].to_numpy()[at])
    most = {name: float(of["value"].max()) for (name,), of in result.notes.group_by("quantity")}  # type: ignore[arg-type]
    return {
        "disturbance": name,
        "loss_percent": loss,
        "flows": flows,
        "finished": int(result.flows["finish_s"].is_not_null().sum()),
        "members_most": int(counted.max()),
        "samples": len(wrong),
        "wrong_samples": int((wrong > 0).sum()),
        "wrong_most": int(wrong.max()),
        "members_at_rest": int(counted[-1]),
        "notices": int(most["notices"]),
        "notices_per_change": most["notices"] / (2 * flows),
        "refused": int(most["refused"]),
        "aggregates_most": int(most["aggregates"]),
        "retransmits": int(result.flows["retransmits"].sum()),
    }


def _claims(rows: list[Row]) -> list[Claim]:
    def of(column: str, without: str = "") -> dict[str, float]:
        return most([row for row in rows if row["disturbance"] != without], column, _name)

    claims = [
        between(
            "rest", "ours", "When all flows have ended, no member is left", of("members_at_rest"), high=0.0
        )
    ]
    if exact := of("wrong_most", without="full"):
        statement = "Where each flow has a place, the count is what the packets say, at every sample"
        claims.insert(0, between("exact", "ours", statement, exact, high=0.0))
    return claims


def _name(row: Row) -> str:
    losses = f"{row['loss_percent']:g} % lost"
    return losses if row["disturbance"] == "losses" else DISTURBANCES[row["disturbance"]]


def _draw(runs: list[Run]) -> Figure:
    """Members over time."""
    shown = of_first_seed(runs)
    columns = min(3, len(shown))
    lines = -(-len(shown) // columns)
    figure = Figure(figsize=(4.5 * columns, 3.2 * lines), layout="constrained")
    panels = figure.subplots(lines, columns, squeeze=False).flatten()
    for panel in panels[len(shown) :]:
        panel.set_axis_off()
    for panel, run in zip(panels, shown, strict=False):
        notes = run.tables["notes"].filter(pl.col("quantity") == "members").sort("time_s")
        panel.step(notes["time_s"], notes["value"], where="post", linewidth=0.8)
        end_s = notes.filter(pl.col("value") > 0)["time_s"].max() or 1.0
        panel.set(
            title=_name(run.rows[0]) if run.rows else run.case,
            xlabel="time (s)",
            ylabel="members of the link",
            ylim=(0, None),
            xlim=(0, 1.1 * float(end_s)),  # type: ignore[arg-type]
        )
        panel.grid(alpha=0.3)
    return figure
