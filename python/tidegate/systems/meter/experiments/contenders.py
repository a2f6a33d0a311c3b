"""The contenders of the comparison: each with its data plane, its controller, and the bytes that it lets through at once.

A contender is one entry of `CONTENDERS`. Its burst is a function of the metered rate (bit/s of IP) and the longest base RTT (s), in
bytes of IP; every row of the experiments has it. Each stands with its published burst, or with as many bytes as ours has
(`-1s`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from tidegate import units
from tidegate.claims import Row
from tidegate.control import Controller
from tidegate.experiments import OneOf
from tidegate.network import FiveTuple
from tidegate.network.qdiscs import QdiscKind
from tidegate.systems.meter.controller import (
    PAPER,
    PLAIN,
    UNBOUNDED,
    Fixed,
    Law,
    Meter,
    MeterController,
    Pid,
)
from tidegate.systems.meter.experiments.peer_meters import (
    QUEUES,
    BcPqpMeters,
    FairPolicerMeters,
    published_bucket,
    published_queue,
)
from tidegate.systems.meter.experiments.standard_meters import StandardMeters
from tidegate.systems.meter.fair import FairMeters, peak_for
from tidegate.systems.meter.fair import burst_bytes as fair_burst

Ports = Mapping[str, int]
Control = Callable[[Sequence[Meter], Ports, int, float], Controller]
"""Makes the controller of meters, all with the same burst in bytes, for a longest RTT in seconds."""
Measure = Literal["bound", "burst", "loss", "rate", "share"]
Size = Callable[[float, float], int]
"""Bytes for a rate in bit/s and an RTT in seconds."""

LEAST_BDP = 3000
"""Two packets: less than that holds nothing."""
LEAST_SECOND = 30_000
LINUX_BUFFER = 15_140_000
"""Bytes of the queues of FQ-CoDel and CAKE together: 10 000 frames, so that their AQM decides and not a limit."""


@dataclass(frozen=True)
class Contender:
    """A way to hold flows to a rate together."""

    text: str
    colour: str
    marker: str
    of: Literal["ours", "standard", "paper", "peer"]
    data_plane: str | None
    """The P4 program; `None`: a plain router whose queues are by flow, or a Linux router with `qdisc`."""
    burst: Size
    control: Control | None = None
    qdisc: QdiscKind | None = None
    """A qdisc of Linux, at a Linux router: live alone."""
    waits: bool = False
    """Whether packets wait in a queue: then `burst` is its buffer."""
    weaknesses: Mapping[Measure, str] = field(default_factory=dict)
    """Why claims about it do not hold, by what they are of."""

    def why(self, measure: Measure) -> str:
        """Why a claim about it does not hold."""
        return self.weaknesses.get(measure, "not explained")


def bdp(rate_bps: float, rtt_s: float) -> int:
    """A bandwidth-delay product, at least two packets."""
    return max(round(rate_bps / 8 * rtt_s), LEAST_BDP)


def seconds(count: float) -> Size:
    """So many seconds of the rate, at least 30 kB."""
    return lambda rate_bps, rtt_s: max(round(rate_bps / 8 * count), LEAST_SECOND)


def buffered(rate_bps: float, rtt_s: float) -> int:
    """A bandwidth-delay product, at least 30 kB: bytes that wait in a queue of Linux."""
    return max(round(rate_bps / 8 * rtt_s), LEAST_SECOND)


def equal(rate_bps: float, rtt_s: float) -> int:
    """As many bytes as the fair meter lets through at once: 1.05 s of the rate."""
    return fair_burst(rate_bps)


def _paper(law: Law) -> Control:
    return lambda meters, ports, burst, rtt_s: MeterController(
        meters, ports=ports, bucket=replace(PAPER, burst=burst), law=law
    )


def _plain(meters: Sequence[Meter], ports: Ports, burst: int, rtt_s: float) -> Controller:
    return MeterController(meters, ports=ports, bucket=replace(PLAIN, burst=burst), law=Fixed())


def _standard(scheme: str) -> Control:
    return lambda meters, ports, burst, rtt_s: StandardMeters(
        meters, ports=dict(ports), scheme=scheme, burst=burst
    )


def _bcpqp(meters: Sequence[Meter], ports: Ports, burst: int, rtt_s: float) -> Controller:
    # A queue each where flows are known one by one, so that no two meet; prefixes are hashed over all queues.
    flows = [match for meter in meters for match in meter.matches if isinstance(match, FiveTuple)]
    exact = len(flows) == sum(len(meter.matches) for meter in meters) and len(flows) <= QUEUES
    return BcPqpMeters(meters, ports=ports, sizes=[burst] * len(meters), exact=exact)


def _fairpolicer(meters: Sequence[Meter], ports: Ports, burst: int, rtt_s: float) -> Controller:
    return FairPolicerMeters(meters, ports=ports, sizes=[burst] * len(meters))


def _fair(meters: Sequence[Meter], ports: Ports, burst: int, rtt_s: float) -> Controller:
    return FairMeters(meters, ports=ports, peak=peak_for(round(rtt_s * units.PS_PER_S)))


OF_BCPQP = (
    "burst control lets 1.5 X pass in each period, and draining gives back X: where a sender has no less than that in flight or sends it "
    "in pulses, its queue fills by half of the rate, until Q is reached; what came before the first draining goes at once, since draining "
    "is not capped; and each flow has a Q of its own"
)
OF_FAIRPOLICER = (
    "a flow that comes when nobody else is there may occupy half of the bucket B, and repays it at its share of the rate: beside n flows "
    "that takes n / 2 x B / rate, in which it gets nothing"
)


CONTENDERS = {
    "plain-128k": Contender(
        "plain, 128 KiB", "#fcae91", "v", "standard", "meter", lambda rate_bps, rtt_s: 128 * 1024, _plain
    ),
    "plain-bdp": Contender("plain, 1 BDP", "#fb6a4a", "<", "standard", "meter", bdp, _plain),
    "plain-400ms": Contender("plain, 400 ms", "#de2d26", ">", "standard", "meter", seconds(0.4), _plain),
    "plain-1s": Contender("plain, 1 s", "#a50f15", "^", "standard", "meter", equal, _plain),
    "rfc2697-1s": Contender(
        "RFC 2697, 1 s", "#8c6d31", "1", "standard", "standard", equal, _standard("rfc2697")
    ),
    "rfc2698-1s": Contender(
        "RFC 2698, 1 s", "#bd9e39", "2", "standard", "standard", equal, _standard("rfc2698")
    ),
    "v1model-1s": Contender(
        "v1model's meter, 1 s", "#e7ba52", "3", "standard", "standard", equal, _standard("v1model")
    ),
    "paper": Contender(
        "the paper's, our bounds",
        "#3182bd",
        "o",
        "paper",
        "meter",
        lambda rate_bps, rtt_s: PAPER.bytes(rate_bps),
        _paper(Pid()),
    ),
    "paper-unbounded": Contender(
        "the paper's",
        "#08519c",
        "8",
        "paper",
        "meter",
        lambda rate_bps, rtt_s: PAPER.bytes(rate_bps),
        _paper(UNBOUNDED),
    ),
    "paper-1s": Contender("the paper's, 1 s", "#6baed6", "s", "paper", "meter", equal, _paper(UNBOUNDED)),
    "fair": Contender(
        "fair meter",
        "#006d2c",
        "o",
        "ours",
        "fair",
        equal,
        _fair,
        weaknesses={
            "rate": (
                "a window that grows by a packet a round trip takes longer than the burst lasts to grow again after a cut (Reno; DCTCP and "
                "Prague after slow start or losses), and CUBIC's to its last maximum; for other controls and cells cause not found"
            ),
            "share": (
                "of a few packets a round trip whole ones make a cycle below the share, and a queue that is 1/32 of the limit below the total "
                "is charged 17/16 of its share, so that it stays there at 16/17: with 16 flows of 6.3 packets each, of which no two had one "
                "queue, 0.94 (0.89 with 9/8, 0.97 without); a packet dropped to tell BBRv3 to slow down is more than the 2 % that it takes for "
                "too much where its share is less than 50 packets a round trip: at 180 Mbit/s and 5 ms 0.97, without these drops 0.99; CUBIC's "
                "cycle at 220 ms is longer than ten seconds: 0.94 also where it is alone; of shares of less than a packet a round trip ten "
                "seconds hold a burst of six packets after a timeout more or less, and what BC-PQP passes beyond the rate hides its own; shares "
                "of less than two packets in 0.26 s are counted too late; for other cells cause not found"
            ),
            "loss": (
                "BBR does not heed what it is told, and is dropped at its share; where two packets a round trip are more than a share, "
                "losses alone slow a flow down"
            ),
        },
    ),
    "bcpqp": Contender(
        "BC-PQP, its Q",
        "#756bb1",
        "D",
        "peer",
        "bcpqp",
        published_queue,
        _bcpqp,
        weaknesses={"bound": OF_BCPQP, "burst": OF_BCPQP, "rate": OF_BCPQP},
    ),
    "bcpqp-1s": Contender(
        "BC-PQP, Q of 1 s",
        "#9e9ac8",
        "d",
        "peer",
        "bcpqp",
        equal,
        _bcpqp,
        weaknesses={"bound": OF_BCPQP, "burst": OF_BCPQP, "rate": OF_BCPQP},
    ),
    "fairpolicer": Contender(
        "FairPolicer, its B",
        "#ce1256",
        "P",
        "peer",
        "fairpolicer",
        published_bucket,
        _fairpolicer,
        weaknesses={"share": OF_FAIRPOLICER},
    ),
    "fairpolicer-1s": Contender(
        "FairPolicer, B of 1 s",
        "#df65b0",
        "p",
        "peer",
        "fairpolicer",
        equal,
        _fairpolicer,
        weaknesses={"share": OF_FAIRPOLICER},
    ),
    "shaper": Contender(
        "shaper, FIFO of 1 BDP", "0.6", "x", "standard", "standard", bdp, _standard("shaper"), waits=True
    ),
    "drr": Contender(
        "DRR, 2 BDP",
        "0.2",
        "*",
        "peer",
        None,
        lambda rate_bps, rtt_s: max(2 * bdp(rate_bps, rtt_s), LEAST_SECOND),
        waits=True,
    ),
    "drr-1s": Contender(
        "DRR, 1 s",
        "0.35",
        "X",
        "peer",
        None,
        equal,
        waits=True,
        weaknesses={
            "share": (
                "goodput counts what has come in order, and a flow may have most of the buffer: at 180 Mbit/s and 5 ms among eight different "
                "controls CUBIC had an RTT of 3.8 s, lost packets, and nothing counted for seven seconds until all were repaired, although the "
                "link had sent its share in each second; with a buffer of 0.5 s 0.85, of 0.1 s 0.99; for other cells cause not found"
            )
        },
    ),
    "linux-police": Contender("Linux police, 1 s", "#e6550d", "^", "standard", None, equal, qdisc="police"),
    "linux-tbf": Contender(
        "Linux TBF, 1 BDP", "0.3", "x", "standard", None, buffered, qdisc="tbf", waits=True
    ),
    "linux-htb": Contender(
        "Linux HTB, 1 BDP", "0.45", "+", "standard", None, buffered, qdisc="htb", waits=True
    ),
    "linux-fq_codel": Contender(
        "Linux HTB, FQ-CoDel",
        "#17becf",
        "h",
        "standard",
        None,
        lambda rate_bps, rtt_s: LINUX_BUFFER,
        qdisc="fq_codel",
        waits=True,
    ),
    "linux-cake": Contender(
        "Linux CAKE",
        "#1f77b4",
        "H",
        "standard",
        None,
        lambda rate_bps, rtt_s: LINUX_BUFFER,
        qdisc="cake",
        waits=True,
    ),
}
"""By name. BC-PQP's Q is 10 M and FairPolicer's B is M, as BC-PQP's authors size them; a shaper's buffer is theirs too for `drr`."""

SIMULATED = tuple(name for name, way in CONTENDERS.items() if way.qdisc is None)
"""Those that the simulator has too."""
Contenders = Annotated[tuple[str, ...], OneOf(SIMULATED)]
AnyContenders = Annotated[tuple[str, ...], OneOf(CONTENDERS)]
"""Those that Linux alone has as well."""


def burst_bytes(name: str, rate_mbps: float, rtt_ms: float) -> int:
    """The burst of a contender for a rate and the longest base RTT."""
    return CONTENDERS[name].burst(rate_mbps * 1e6, rtt_ms / 1e3)


def burst_columns(name: str, rate_mbps: float, rtt_ms: float) -> Row:
    """What every row says of a contender's burst: bytes, and milliseconds of the rate."""
    burst = burst_bytes(name, rate_mbps, rtt_ms)
    return {"scheme": name, "burst_bytes": burst, "burst_ms": burst * 8e-3 / rate_mbps}


def rate_bps(rate_mbps: float) -> int:
    """Whole bit/s."""
    return units.rate(round(rate_mbps * 1_000_000))
