"""Messages between a lab and its agents. Times are nanoseconds since the start of the run, unless stated otherwise."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

SENDER_COLUMNS = (
    "tick",
    "time",
    "flow",
    "cwnd",
    "ssthresh",
    "in_flight",
    "srtt_us",
    "rto_us",
    "pacing_rate",
    "retransmits",
    "timeouts",
    "delivered_ce",
    "delivery_rate",
    "bytes_acked",
)
RECEIVER_COLUMNS = ("tick", "time", "flow", "bytes_received")

UNKNOWN = 2**64 - 1
"""In a column: the kernel does not say."""


@dataclass(frozen=True)
class Ready:
    """An agent has its namespace."""

    pid: int


@dataclass(frozen=True)
class Failed:
    """A request failed."""

    why: str


@dataclass(frozen=True)
class MakeLinks:
    """For the agent of the switches' side: a veth pair to each port of a host or router, by the process that holds its namespace."""

    pairs: tuple[tuple[str, int, int, str], ...]
    """Name here, process, MTU, name there."""


@dataclass(frozen=True)
class Route:
    """Settings of the route to another host; `None`: the kernel's default."""

    to: str
    congestion_control: str | None = None
    ecn: bool = False
    initial_cwnd: int | None = None
    rto_min_ms: int | None = None
    quick_ack: bool = False
    room: tuple[int, int] | None = None
    """Where packets get options on their way out: MTU without them, and the MSS that SYNs say nevertheless."""


@dataclass(frozen=True)
class SetUp:
    """For the agent of a host: its end of the link."""

    address: str
    mac: str
    mtu: int
    gso_max_segments: int | None
    gso_max_bytes: int | None
    neighbours: tuple[tuple[str, str], ...]
    """Address and MAC of all other hosts: there is no ARP."""
    routes: tuple[Route, ...]
    sysctls: tuple[tuple[str, str], ...]
    """Names below /proc/sys/net, and values."""
    egress: tuple[int, ...] = ()
    """Egress BPF programs: file descriptors of the lab's process."""
    prefix: int = 8
    """Length of the prefix that is reached without a router."""


@dataclass(frozen=True)
class RouterPort:
    """An interface of a Linux router."""

    name: str
    mac: str
    neighbours: tuple[tuple[str, str], ...]
    """Address of each host that is reached by it, and the MAC of the next hop."""


@dataclass(frozen=True)
class SetUpRouter:
    """For the agent of a Linux router: its interfaces and routes."""

    ports: tuple[RouterPort, ...]


@dataclass(frozen=True)
class Attach:
    """For the agent of a host: BPF programs for its interface, as long as it lives. It answers with its namespace's cookie."""

    ingress: int
    egress: int
    """File descriptors of the lab's process."""


@dataclass(frozen=True)
class FlowPlan:
    """A flow, for the agents at both of its ends."""

    number: int
    label: str
    kind: str
    tool: str
    """`iperf3` or `own`."""
    source: str
    target: str
    source_port: int
    target_port: int
    start: int
    stop: int | None
    size: int | None = None
    ends: str | None = None
    """At `stop`: `fin`, `reset`, or as iperf3 does it."""
    congestion_control: str = ""
    """As the kernel calls it."""
    both_ends: bool = False
    """Whether the receiver takes part in the congestion control."""
    mss: int | None = None
    pacing: bool = False
    rate: int = 0
    payload: int = 0
    pattern: str = ""
    on: int = 0
    off: int = 0
    tos: int = 0
    seed: int = 0


@dataclass(frozen=True)
class Prepare:
    """The flows that an agent's host sends and receives; receivers listen when the agent answers."""

    sends: tuple[FlowPlan, ...]
    receives: tuple[FlowPlan, ...]
    period: int | None
    """Of samples."""


@dataclass(frozen=True)
class Go:
    """The run has started."""

    origin: int
    """When, by the monotonic clock."""
    end: int


@dataclass(frozen=True)
class Look:
    """For the agent of a host: answer with a `Looked` of what its ends of flows are doing."""


@dataclass(frozen=True)
class Looked:
    """What an agent's ends of flows are doing while the run goes on."""

    sent: array[int]
    """Rows of flow, cwnd in packets, smoothed RTT in microseconds, retransmits."""
    received: array[int]
    """Rows of flow, time, bytes."""
    cost: int
    """Nanoseconds that it took to look."""


@dataclass(frozen=True)
class Finish:
    """End the flows that still run, and answer with a `Report`."""


@dataclass
class FlowReport:
    """Results of one end of a flow. `None`: unknown to it."""

    number: int
    started: int | None = None
    finished: int | None = None
    bytes: int | None = None
    retransmits: int | None = None
    timeouts: int | None = None
    datagrams: int | None = None
    delay_sum: int | None = None
    delay_max: int | None = None
    problem: str | None = None


@dataclass
class Report:
    """Results of an agent at the end of a run."""

    sent: list[FlowReport]
    received: list[FlowReport]
    sender_samples: array[int] = field(default_factory=lambda: array("Q"))
    """Rows of `SENDER_COLUMNS`, one after the other."""
    receiver_samples: array[int] = field(default_factory=lambda: array("Q"))
    late_samples: int = 0
    """Samples that were left out because an earlier one took its time."""
