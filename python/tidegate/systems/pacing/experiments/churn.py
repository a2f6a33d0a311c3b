"""Flows that come and go by thousands, with losses: the switch's count of members against the truth, all the time.

The truth is what the packets say that come to the switch, in the order in which they come: a flow is there from the ACK after its
marked SYN, or from its question after an unmarked one, to its FIN or a reset. A capture has them. The switch's count is read every
10 ms, and at the end.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate.claims import Claim, Row, between
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Number, Plan, Run, experiment
from tidegate.network import Network
from tidegate.plots import of_first_seed
from tidegate.results import Result
from tidegate.systems.pacing.format import Kind, PacingOption
from tidegate.systems.pacing.setup import paced, pacing

HOSTS = 10
REST_S = 5.0
"""After the last flow has begun."""
OUT = 0
"""The bottleneck's port: it is linked first."""
FIN, SYN, RST, ACK = 1, 2, 4, 16


class Watch(Controller):
    """Notes how many members the bottleneck has."""

    period = "10 ms"

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note them."""
        switch.note("members", int(switch.register_read("flows", OUT, 1)[0]))
        switch.note("notices", int(switch.counter_read("notices", OUT, 1)[0, 0]))


@experiment(
    "pacing.churn",
    (
        "loss_percent",
        "flows",
        "members_most",
        "samples",
        "wrong_samples",
        "wrong_most",
        "members_at_rest",
        "notices",
    ),
    quick={"flows": 1000},
)
def churn(
    flows: Number = 10_000,
    flows_per_s: Annotated[float, AtLeast(1.0)] = 3000.0,
    losses_percent: Annotated[tuple[float, ...], AtLeast(0.0)] = (0.0, 1.0),
    size_kb: Annotated[float, AtLeast(1.0)] = 30.0,
) -> Plan:
    """Short flows that come at random times from ten hosts, without and with losses on all links."""
    cases = []
    for loss in losses_percent:
        folder = tempfile.TemporaryDirectory(prefix="tidegate-churn-")
        until_s = flows / flows_per_s + REST_S
        make = partial(_network, Path(folder.name), flows, flows_per_s, loss, size_kb)
        measure = partial(_row, folder, flows, loss)
        cases.append(Case(f"loss-{loss:g}", make, f"{round(until_s * 1000)} ms", measure))
    return Plan(cases, _claims, _draw)


def _network(folder: Path, flows: int, flows_per_s: float, loss: float, size_kb: float, seed: int) -> Network:
    draw = np.random.default_rng(seed)
    network = Network()
    switch = pacing(network, "switch")
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
        paced(network, hosts[-1])
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


def truth(captures: list[Path]) -> pl.DataFrame:
    """How many members there are from each time on: `time_ns` and `members`, by the packets that come to the switch."""
    events = []
    for path in captures:
        for time, frame in packets(path):
            header = 4 * (frame[14] & 15)
            if frame[12:14] != b"\x08\x00" or frame[23] != 6 or len(frame) < 14 + header + 20:
                continue
            tcp = 14 + header
            flags, source, target = frame[tcp + 13], frame[26:30], frame[30:34]
            ports = frame[tcp : tcp + 4]
            to_server = target == SERVER
            key = source + ports if to_server else target + ports[2:] + ports[:2]
            option = PacingOption.of(frame[36 : 14 + header]) if header > 20 else None
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
            asked.add(key)
        elif to_server and flags & (SYN | ACK) == ACK and (key in asked or kind == Kind.UPDATE):
            asked.discard(key)
            members.add(key)
        if len(members) != counts[-1]:
            times.append(time)
            counts.append(len(members))
    return pl.DataFrame({"time_ns": times, "members": counts})


SERVER = bytes((10, 0, 0, 1))


def _row(folder: tempfile.TemporaryDirectory[str], flows: int, loss: float, result: Result) -> Row:
    captures = sorted(Path(folder.name).glob("*.pcap"))
    expected = truth(captures)
    for capture in captures:
        capture.unlink()
    notes = result.notes.filter(pl.col("quantity") == "members").sort("time_s")
    times = (notes["time_s"].to_numpy() * 1e9).round().astype(np.int64)
    counted = notes["value"].to_numpy()
    at = np.searchsorted(expected["time_ns"].to_numpy(), times, side="right") - 1
    wrong = np.abs(counted - expected["members"].to_numpy()[at])
    notices = result.notes.filter(pl.col("quantity") == "notices")["value"]
    return {
        "loss_percent": loss,
        "flows": flows,
        "finished": int(result.flows["finish_s"].is_not_null().sum()),
        "members_most": int(counted.max()),
        "samples": len(wrong),
        "wrong_samples": int((wrong > 0).sum()),
        "wrong_most": int(wrong.max()),
        "members_at_rest": int(counted[-1]),
        "notices": int(notices.max()),  # type: ignore[arg-type]
        "notices_per_change": float(notices.max()) / (2 * flows),  # type: ignore[arg-type]
        "retransmits": int(result.flows["retransmits"].sum()),
    }


def _claims(rows: list[Row]) -> list[Claim]:
    def of(column: str) -> dict[str, float]:
        return {f"{row['loss_percent']:g} % lost": float(row[column]) for row in rows}

    return [
        between(
            "exact", "ours", "The count is what the packets say, at every sample", of("wrong_most"), high=0.0
        ),
        between(
            "rest", "ours", "When all flows have ended, no member is left", of("members_at_rest"), high=0.0
        ),
    ]


def _draw(runs: list[Run]) -> Figure:
    """Members over time."""
    shown = of_first_seed(runs)
    figure = Figure(figsize=(5.5 * len(shown), 3.6), layout="constrained")
    for panel, run in zip(figure.subplots(1, len(shown), squeeze=False)[0], shown, strict=True):
        notes = run.tables["notes"].filter(pl.col("quantity") == "members").sort("time_s")
        row = (run.rows or [{}])[0]
        panel.step(notes["time_s"], notes["value"], where="post", linewidth=0.8)
        panel.set(
            title=f"{row.get('flows', 0)} flows, {row.get('loss_percent', 0):g} % lost",
            xlabel="time (s)",
            ylabel="members of the link",
            ylim=(0, None),
        )
        panel.grid(alpha=0.3)
    return figure
