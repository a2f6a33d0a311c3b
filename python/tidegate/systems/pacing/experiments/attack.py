"""Outsiders that forge: joins, rates of others' flows, notices. What the keyed check and the host's own bounds leave of it.

An attacker at the same switch sends packets in others' names from 2 s on. It knows addresses and ports of all flows, but no key; it
may have seen what was sent before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache, partial
from ipaddress import IPv4Address
from pathlib import Path
from textwrap import fill
from typing import Annotated

import numpy as np
import polars as pl
from matplotlib.figure import Figure

from tidegate import units
from tidegate.claims import Claim, Percents, Row, between, furthest, medians
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, OneOf, Plan, Run, experiment
from tidegate.p4 import Program
from tidegate.p4 import compile as compile_p4
from tidegate.plots import all_rows
from tidegate.results import Result
from tidegate.systems.pacing.agent import PacingAgent
from tidegate.systems.pacing.controller import RESERVE
from tidegate.systems.pacing.experiments.join import PAYLOAD
from tidegate.systems.pacing.experiments.star import Star
from tidegate.systems.pacing.format import OPTION, Keys, Kind, PacingOption, number, packed

KEYS = Keys((0x243F6A8885A308D3, 0x13198A2E03707344))
FLOWS = 4
BEGIN_S = 2.0
SETTLE_S = 0.5
BOTTLENECK = 1
"""The number of its link: it is the first."""


@dataclass(frozen=True)
class Victim:
    """A flow, as an attacker sees it."""

    mac: bytes
    server_mac: bytes
    address: bytes
    server: bytes
    ports: tuple[int, int]
    number: int = 0
    """Which of the flows; the later ones have heard of fewer changes."""
    given_kbps: int = 0
    """What the bottleneck gives to all flows."""


def checksum(data: bytes) -> int:
    """RFC 1071."""
    total = sum(int.from_bytes(data[at : at + 2]) for at in range(0, len(data), 2))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def frame(
    victim: Victim, option: PacingOption | None, flags: int, *, to_host: bool = False, sequence: int = 0
) -> bytes:
    """A packet of a flow, or to its host, with an option or without."""
    ends = [victim.address, victim.server]
    ports = list(victim.ports)
    macs = victim.server_mac + victim.mac
    if to_host:
        ends, ports, macs = ends[::-1], ports[::-1], victim.mac + victim.server_mac
    option_bytes = b"" if option is None else bytes((OPTION.kind, 12)) + option.data
    words = 10 + len(option_bytes) // 4
    head = bytes((0x40 | words - 5, 0)) + (4 * words).to_bytes(2) + bytes(4) + b"\x40\x06"
    ip = head + checksum(head + bytes(2) + b"".join(ends) + option_bytes).to_bytes(2) + b"".join(ends)
    tcp = (
        b"".join(port.to_bytes(2) for port in ports)
        + sequence.to_bytes(4)
        + bytes(4)
        + bytes((0x50, flags))
        + bytes(2)
    )
    sum_of_tcp = checksum(b"".join(ends) + b"\x00\x06\x00\x14" + tcp + bytes(4))
    return macs + b"\x08\x00" + ip + option_bytes + tcp + sum_of_tcp.to_bytes(2) + bytes(2)


Forge = Callable[[Victim, np.random.Generator], bytes]


def _join(victim: Victim, draw: np.random.Generator, *, finishes: bool = False) -> bytes:
    """A flow that there is not; `finishes`: its handshake's ACK."""
    port = int(draw.integers(2_000, 2_050))
    other = replace(victim, ports=(port, victim.ports[1]))
    flags = 16 if finishes or draw.random() < 0.5 else 2
    return frame(other, PacingOption(Kind.JOIN, weight=65_535), flags, sequence=int(draw.integers(0, 2**32)))


def _update(victim: Victim, draw: np.random.Generator) -> bytes:
    """Says that the flow takes next to nothing."""
    return frame(victim, PacingOption(Kind.UPDATE, rate=1, link=200, check=int(draw.integers(0, 2**24))), 0)


def _notice(rate: int) -> Forge:
    def forge(victim: Victim, draw: np.random.Generator) -> bytes:
        link, sequence = int(draw.integers(0, 256)), int(draw.integers(0, 256))
        option = PacingOption(
            Kind.NOTICE, rate, 1, link=link, sequence=sequence, check=int(draw.integers(0, 2**24))
        )
        return frame(victim, option, 0, to_host=True)

    return forge


def _replay(victim: Victim, draw: np.random.Generator) -> bytes:
    """One of the notices that the flow had, at its own start or when a later flow began, with the check it had."""
    flows = int(draw.integers(victim.number + 1, FLOWS + 1))
    host = str(IPv4Address(victim.address)), victim.ports[0]
    server = str(IPv4Address(victim.server)), victim.ports[1]
    notice = PacingOption(Kind.NOTICE, victim.given_kbps, flows, link=BOTTLENECK, sequence=flows)
    return frame(victim, notice.checked(KEYS.values[KEYS.signing], host, server), 0, to_host=True)


ATTACKS: dict[str, Forge | None] = {
    "none": None,
    "join": _join,
    "update": _update,
    "notice-low": _notice(1),
    "notice-absurd": _notice(2_000_000_000),
    "replay": _replay,
}
NAMES = {
    "none": "none",
    "join": "flows that there are not",
    "update": "others' rates",
    "notice-low": "notices of 1 kbit/s",
    "notice-absurd": "notices of 2 Tbit/s",
    "replay": "old notices again",
}


class Attacker(Controller):
    """Sends forged packets one by one: what a burst of them does to a queue, packets without options do as well."""

    period = "500 us"

    def __init__(self, forge: Forge, victims: Callable[[], list[Victim]]) -> None:
        self._forge, self._victims = forge, victims
        self._known: list[Victim] = []
        self._draw = np.random.default_rng(1)

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Send them."""
        if not self._known:
            self._known = self._victims()
        victims = self._known
        if now >= BEGIN_S * units.PS_PER_S:
            victim = victims[int(self._draw.integers(0, len(victims)))]
            switch.packet_out(self._forge(victim, self._draw))


@cache
def attacker_program() -> Program:
    """A host that sends what its controller gives it."""
    return compile_p4(Path(__file__).with_name("attacker.p4"))


@experiment(
    "pacing.attack",
    (
        "attack",
        "keyed",
        "goodput_mbps",
        "others_mbps",
        "largest_off",
        "largest_off_beyond",
        "refused_by_switch",
        "refused_by_hosts",
    ),
    quick={"duration_s": 4.0},
    backends=("sim", "live"),
)
def attack(
    attacks: Annotated[tuple[str, ...], OneOf(ATTACKS)] = tuple(ATTACKS),
    keyed: tuple[bool, ...] = (False, True),
    rate_mbps: Annotated[float, AtLeast(1.0)] = 100.0,
    duration_s: Annotated[float, AtLeast(4.0)] = 6.0,
) -> Plan:
    """Four paced flows while an attacker sends 2000 forged or repeated packets a second, without and with keys."""
    cases = []
    for name in attacks:
        for has_keys in keyed:
            keys = KEYS if has_keys else None
            star = Star(rate_mbps, 10.0, options={"keys": keys})
            for start in range(FLOWS):
                star.flow(star.host(keys=keys), 0.1 * start)
            forge = ATTACKS[name]
            if forge is not None:
                attacker = star.network.switch("attacker", attacker_program(), cpu_port=510)
                star.network.link(attacker, star.switch, rate="1 Gbit/s", delay="10 us", queue="1000 packets")
                star.network.control(Attacker(forge, partial(_victims, star)), attacker)
            star.network.control(Refusals(), star.switch)
            by_hosts: list[int] = []
            star.network.at(round((duration_s - 0.01) * 1e12), partial(_count, star, by_hosts))
            measure = partial(_row, star, name, has_keys, duration_s, by_hosts)
            cases.append(
                Case(
                    f"{name}-{'keys' if has_keys else 'open'}",
                    star.network,
                    f"{round(duration_s * 1000)} ms",
                    measure,
                )
            )
    return Plan(cases, _claims, _draw)


class Refusals(Controller):
    """Notes what the switch has refused."""

    period = "100 ms"

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note it."""
        switch.note("refused", float(switch.counter_read("refused")[:, 0].sum()))


def _victims(star: Star) -> list[Victim]:
    network = star.network
    given = number(packed(round(star.rate_mbps * 1000 * (1 - RESERVE))))

    def mac(address: str) -> bytes:
        return bytes.fromhex(address.replace(":", ""))

    found = []
    for which, flow in enumerate(network.flows):
        own = network.five_tuple(flow)
        ends = IPv4Address(own.source).packed, IPv4Address(own.target).packed
        macs = mac(network.mac(flow.source)), mac(network.mac(flow.target))
        found.append(Victim(*macs, *ends, (own.source_port, own.target_port), which, given))
    return found


def _count(star: Star, found: list[int]) -> None:
    """What the hosts have refused: options with a wrong check, and what makes no sense."""
    for attached in star.network.agents:
        counts = attached.agent.counts if isinstance(attached.agent, PacingAgent) else Counter()
        found.append(attached.counts()["refused"] + counts["malformed"] + counts["stale"])


def _row(
    star: Star, name: str, has_keys: bool, duration_s: float, by_hosts: list[int], result: Result
) -> Row:
    """`others_mbps`: frames at the bottleneck that are not the flows', as many bits a second; `beyond`: without their part of it."""
    rates = star.rates(result, BEGIN_S + SETTLE_S, duration_s)
    before = star.rates(result, BEGIN_S - 1.0, BEGIN_S)
    link = result.queue_samples.filter(pl.col("queue") == "switch -> server")
    sent = np.interp(
        [BEGIN_S + SETTLE_S, duration_s], link["time_s"].to_numpy(), link["sent_bytes"].to_numpy()
    )
    frames_mbps = float(np.diff(sent)[0]) * 8e-6 / (duration_s - BEGIN_S - SETTLE_S)
    others_mbps = max(frames_mbps - float(rates.sum()) / PAYLOAD, 0.0)
    off = rates / before - 1
    beyond = rates / (before * (1 - others_mbps / frames_mbps)) - 1
    return {
        "attack": name,
        "keyed": has_keys,
        "goodput_mbps": float(rates.sum()),
        "others_mbps": others_mbps,
        "largest_off": float(off[np.argmax(np.abs(off))]),
        "largest_off_beyond": float(beyond[np.argmax(np.abs(beyond))]),
        "refused_by_switch": int(result.notes.filter(pl.col("quantity") == "refused")["value"].max()),  # type: ignore[arg-type]
        "refused_by_hosts": sum(by_hosts[-FLOWS:]),
    }


def _claims(rows: list[Row]) -> list[Claim]:
    with_keys = [row for row in rows if row["keyed"]]
    without = [row for row in rows if not row["keyed"] and row["attack"] != "none"]
    off, open_off = (furthest(own, "largest_off", _name) for own in (with_keys, without))
    claims = []
    if off:
        claims.append(
            between(
                "keyed",
                "ours",
                "With keys no flow's goodput moves by more than 1 %",
                off,
                -0.01,
                0.01,
                why="forged packets, and what real hosts answer to them, take a part of the link (others_mbps)",
                form=Percents(),
            )
        )
        claims.append(
            between(
                "beyond",
                "ours",
                "With keys no flow's goodput moves by more than 1 % beyond the part of the link that the attack's packets take",
                furthest(with_keys, "largest_off_beyond", _name),
                -0.01,
                0.01,
                form=Percents(),
            )
        )
    if open_off:
        claims.append(
            between(
                "open",
                "ours",
                "Without keys no flow's goodput moves by more than 1 %",
                open_off,
                -0.01,
                0.01,
                why="without a key whoever knows a flow's addresses and ports speaks for it",
                form=Percents(),
            )
        )
    return claims


def _name(row: Row) -> str:
    return NAMES[row["attack"]]


def _draw(runs: list[Run]) -> Figure:
    """The largest change of a flow's goodput."""
    rows = all_rows(runs)
    figure = Figure(figsize=(7, 3.6), layout="constrained")
    panel = figure.subplots()
    names = list(dict.fromkeys(row["attack"] for row in rows))
    for shift, has_keys in ((-0.2, False), (0.2, True)):
        own = [row for row in rows if row["keyed"] is has_keys]
        found = medians(own, lambda row: 100 * abs(row["largest_off"]), lambda row: str(row["attack"]))
        label = "with keys" if has_keys else "without keys"
        panel.bar([names.index(name) + shift for name in found], list(found.values()), 0.4, label=label)
    panel.axhline(1.0, color="0.5", linestyle=":")
    panel.set_yscale("log")
    panel.yaxis.set_major_formatter("{x:g}")
    panel.set_xticks(range(len(names)), [fill(NAMES[name], 14) for name in names], fontsize="small")
    panel.set(ylabel="largest change of a flow's goodput (%)", xlabel="what is forged", ylim=(0.01, 200))
    figure.legend(loc="outside upper right", ncols=2, fontsize="small")
    panel.grid(alpha=0.3, axis="y")
    return figure
