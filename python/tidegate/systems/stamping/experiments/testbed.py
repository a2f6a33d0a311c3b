"""What the experiments share: hosts that stamp and read stamps, and TIMELY with the constants of the paper's first author."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from tidegate.experiments import OneOf
from tidegate.hosts.agents import Agent
from tidegate.hosts.shims import Echo, Insert, Shim, Signal
from tidegate.network import Network, Node
from tidegate.systems.stamping.field import Field
from tidegate.systems.stamping.format import Format

# 32 bits whose steps are picoseconds: no value of a stamp is rounded.
EXACT = 1 << 32
PACKET = 1500
"""Bytes of a data packet, with headers."""
HEADERS = 40

SIGNALS: dict[str, str] = {
    "rtt": "RTT",
    "rtt_less_hops": "RTT less a constant",
    "sum": "SUM",
    "sum_squ": "SUM_SQU",
    "max": "MAX",
    "ind": "IND",
}
"""Congestion signals: what figures call them. All but the round trips are folds of stamps."""

Signals = Annotated[tuple[str, ...], OneOf(SIGNALS)]

WHY_CONSTANTS = "the result is sensitive to TIMELY's constants, which the paper does not give; these are those of its first author's public code"


def exact(fold: str, threshold_us: float = 120.0, scale: float = 1.0) -> Format:
    """Times in queue, of 32 bits: the paper's default. The squares of SUM_SQU are of steps of 1/65536 of 2 ms; IND has one bit.

    `scale`: the times of this network in those of the paper's.
    """
    if fold == "ind":
        return Format(round(threshold_us * scale * 1e6), bits=1, fold="ind")
    whole = 2 * 10**9 if fold == "sum_squ" else EXACT
    return Format(round(whole * scale), bits=32, fold=fold)  # type: ignore[arg-type]


def is_stamp(signal: str) -> bool:
    """Whether a signal is a fold of stamps."""
    return not signal.startswith("rtt")


def stamp_for(signal: str, threshold_us: float = 120.0, scale: float = 1.0) -> Format:
    """The stamp on the packets of a run that follows a signal: with round trips packets are stamped all the same, and as long."""
    return exact(signal if is_stamp(signal) else "max", threshold_us, scale)


def payload(form: Format) -> int:
    """Bytes of payload in a full packet."""
    return PACKET - HEADERS - form.wire_bytes


class StampedHost(Agent):
    """Writes the blank field on data packets, echoes the field of those that come, and hands echoes to the congestion control.

    The echo is that of the last data packet: with an ACK for each packet there is no other.
    """

    def __init__(self, form: Field) -> None:
        self.shims: tuple[Shim, ...] = (
            Insert(form.option, form.blank),
            Echo(form.option, form.echo, longest=form.size),
            Signal(form.echo),
        )


def stamp_all(network: Network, hosts: Iterable[Node], form: Field) -> None:
    """All hosts write, echo and read stamps."""
    for host in hosts:
        network.agent(host, StampedHost(form))


PLAIN: dict[str, Any] = {"quick_ack": True, "timestamps": False, "segmentation_offload": None}
"""Keywords of `Network.tcp`: an ACK for each packet, single packets, no options but those of the experiments."""


def author_s_timely(
    signal: str, stamp: dict[str, str | int], base_rtt_us: float, **constants: Any
) -> dict[str, Any]:
    """TIMELY as the paper's first author published it for ns-2, as keywords of `Network.tcp`.

    A step for each ACK, thresholds on the RTT, the gradient of the signal over the least RTT, a window without pacing. `stamp`
    says how to read stamps; `constants` replace the options of `timely`.
    """
    options: dict[str, Any] = {
        "step": "ack",
        "send": "window",
        "scaled": "yes",
        "raw_falls": "yes",
        "most_cut": 0.5,
        "thresholds": "fixed",
        **constants,
    }
    if is_stamp(signal):
        options |= {"signal": "stamp", **stamp}
    elif signal == "rtt_less_hops":
        options |= {"signal": signal, "hop_delay": f"{base_rtt_us:g} us"}
    return {"congestion_control": "timely", "control_options": options, **PLAIN}
