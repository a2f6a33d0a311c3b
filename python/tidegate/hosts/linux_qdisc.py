"""Linux's own traffic control at an interface, as `tc` sets it: TBF, HTB, HTB with FQ-CoDel, CAKE, or a policer.

What each of them does is the kernel's; here is only how they are asked for. The interface is in a network namespace of its own, with
which all of it goes away.

Rates and bursts count frames, from the Ethernet header on, as the kernel does for all of these (CAKE by `raw`).
"""

from __future__ import annotations

import shlex
import subprocess
from functools import cache

from tidegate import units
from tidegate._core import TidegateError
from tidegate.lab import kernel
from tidegate.network.qdiscs import Qdisc, QdiscKind

FRAME = 1514
SHAPER_BURST_S = 0.001
"""What a shaper sends at once: what its clock of about a millisecond takes, and some frames."""
BURST_FRAMES = 10
NEEDS = {
    "police": "CONFIG_NET_ACT_POLICE, CONFIG_NET_CLS_MATCHALL and CONFIG_NET_SCH_INGRESS",
    "tbf": "CONFIG_NET_SCH_TBF",
    "htb": "CONFIG_NET_SCH_HTB",
    "fq_codel": "CONFIG_NET_SCH_HTB and CONFIG_NET_SCH_FQ_CODEL",
    "cake": "CONFIG_NET_SCH_CAKE",
}
"""What the kernel is configured with that has it."""


def commands(qdisc: Qdisc, interface: str) -> list[str]:
    """What `tc` is told."""
    rate, burst, limit = units.rate(qdisc.rate), units.size(qdisc.burst), units.size(qdisc.limit)
    at_once = max(BURST_FRAMES * FRAME, round(rate / 8 * SHAPER_BURST_S))
    root = f"qdisc add dev {interface} root"
    htb = [
        f"{root} handle 1: htb default 1",
        f"class add dev {interface} parent 1: classid 1:1 htb rate {rate}bit ceil {rate}bit burst {at_once} "
        f"cburst {at_once} quantum {FRAME}",
    ]
    below = f"qdisc add dev {interface} parent 1:1"
    match qdisc.kind:
        case "police":
            return [
                f"qdisc add dev {interface} clsact",
                f"filter add dev {interface} egress matchall action police rate {rate}bit burst {burst} conform-exceed drop",
            ]
        case "tbf":
            return [f"{root} tbf rate {rate}bit burst {at_once} limit {limit}"]
        case "htb":
            return [*htb, f"{below} bfifo limit {limit}"]
        case "fq_codel":
            return [*htb, f"{below} fq_codel limit {max(limit // FRAME, 1)}"]
        case "cake":
            return [f"{root} cake bandwidth {rate}bit besteffort flows raw memlimit {limit}"]


def _run(before: list[str], qdisc: Qdisc, interface: str) -> str | None:
    """What the kernel says against it; `None`: it is set."""
    for words in commands(qdisc, interface):
        done = subprocess.run([*before, "tc", *shlex.split(words)], capture_output=True, text=True)
        if done.returncode:
            said = done.stderr.strip().splitlines() or [f"tc ended with {done.returncode}"]
            return said[0]
    return None


@cache
def why_not(kind: QdiscKind) -> str | None:
    """Why this machine has no such qdisc; `None`: it has. It is tried at an interface that goes away with its namespace."""
    for program, package in (("tc", "iproute2"), ("unshare", "util-linux"), ("nsenter", "util-linux")):
        if kernel.missing_program(program) is not None:
            return f"{program} is not installed; on Debian and Ubuntu: apt install {package}"
    said = _against(commands(Qdisc(kind, "10 Mbit/s", "100 kB", "100 kB"), "lo"))
    return None if said is None else f"this kernel does not take {kind} ({said}); it needs {NEEDS[kind]}"


def why_not_plain(name: str) -> str | None:
    """Why this machine has no such qdisc with its default settings; `None`: it has."""
    if kernel.missing_program("tc") is not None:
        return "tc is not installed; on Debian and Ubuntu: apt install iproute2"
    said = _against([f"qdisc add dev lo root {name}"])
    return None if said is None else f"this kernel does not take {name} ({said})"


def _against(lines: list[str]) -> str | None:
    """What is said against these lines of `tc`, in a namespace of their own; `None`: nothing."""
    text = " && ".join(f"tc {words}" for words in lines)
    done = subprocess.run(["unshare", "--net", "sh", "-c", text], capture_output=True, text=True)
    if done.returncode == 0:
        return None
    return (done.stderr.strip().splitlines() or ["tc says nothing"])[0]


def install(qdisc: Qdisc, interface: str, namespace: str) -> None:
    """Set it at an interface of a namespace, which is given by its path.

    Raises `TidegateError` if the kernel refuses it.
    """
    said = _run(["nsenter", f"--net={namespace}"], qdisc, interface)
    if said is not None:
        raise TidegateError(f"{interface}: the kernel refuses {qdisc.kind}: {said}")
