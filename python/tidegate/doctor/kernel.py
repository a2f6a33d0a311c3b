"""What the kernel has and permits: each feature is tried."""

from __future__ import annotations

import platform
import resource
from collections.abc import Iterator
from pathlib import Path

from tidegate._core import TidegateError
from tidegate.doctor.report import Finding, State
from tidegate.hosts import libbpf, linux_qdisc
from tidegate.lab import kernel
from tidegate.processors import processors

SUDO = "run as root: sudo tidegate doctor"
OLDEST = (5, 9)
BUFFERS = 4 << 20
"""Bytes of a socket's buffer: 1 Gbit/s at a round trip of 30 ms."""
FILES = 1024
CONTROLS = {
    "reno": "CONFIG_TCP_CONG_ADVANCED",
    "cubic": "CONFIG_TCP_CONG_CUBIC",
    "bbr": "CONFIG_TCP_CONG_BBR",
    "vegas": "CONFIG_TCP_CONG_VEGAS",
    "htcp": "CONFIG_TCP_CONG_HTCP",
}
OWN = ("dctcp", "prague")
"""Those that Tidegate brings where the kernel has none."""
PLAIN = {"fq": "CONFIG_NET_SCH_FQ", "dualpi2": "CONFIG_NET_SCH_DUALPI2 (Linux 6.17)"}
QDISCS = ("tbf", "htb", "fq_codel", "cake", "police")


def machine() -> Iterator[Finding]:
    """Kernel and processors."""
    release = platform.release()
    linux = platform.system() == "Linux"
    old = linux and tuple(int(part) for part in release.split(".")[:2]) < OLDEST
    yield Finding(
        "machine",
        "kernel",
        State.WORKS if linux and not old else State.MISSING,
        f"{platform.system()} {release}, {platform.machine()}",
        ""
        if linux and not old
        else "live networks need Linux 5.9 or newer; the simulator needs none of this",
    )
    count = processors()
    yield Finding(
        "machine",
        "processors",
        State.WORKS if count > 1 else State.MISSING,
        f"{count}",
        ""
        if count > 1
        else "with one processor, hosts and switch of a live network wait for each other: use two",
    )


def privileges() -> Iterator[Finding]:
    """What this process may do."""
    from tidegate.systems.pacing.service.pacer import demand_capabilities

    may = kernel.may_make_namespaces()
    yield Finding(
        "machine",
        "privileges",
        State.WORKS if may else State.MISSING,
        "CAP_NET_ADMIN, CAP_NET_RAW, CAP_SYS_ADMIN" if may else "not root",
        "" if may else SUDO,
    )
    try:
        demand_capabilities()
    except TidegateError as error:
        yield Finding("machine", "privileges of the agent", State.MISSING, str(error).partition(":")[0], SUDO)
    else:
        yield Finding("machine", "privileges of the agent", State.WORKS, "CAP_BPF, CAP_PERFMON and others")


def features() -> Iterator[Finding]:
    """Namespaces, packet I/O, BPF, cgroups."""
    yield from _lab()
    why = libbpf.missing()
    yield Finding(
        "kernel",
        "BPF",
        State.WORKS if why is None else State.MISSING,
        "libbpf and types of the kernel (BTF)" if why is None else why.partition(";")[0],
        "" if why is None else _cure(why, "a kernel with CONFIG_DEBUG_INFO_BTF"),
    )
    mounted = [line.split()[1] for line in _text("/proc/mounts").splitlines() if " cgroup2 " in line]
    yield Finding(
        "kernel",
        "cgroup v2",
        State.WORKS if mounted else State.MISSING,
        ", ".join(mounted[:2]) or "not mounted",
        "" if mounted else "mount -t cgroup2 none /sys/fs/cgroup",
    )


def _lab() -> Iterator[Finding]:
    """A lab of one host, and a switch's port in each mode."""
    try:
        kernel.demand_privilege()
    except TidegateError:
        for name in ("lab", "AF_XDP in the driver", "AF_XDP, generic", "AF_PACKET"):
            yield Finding("kernel", name, State.UNKNOWN, "needs root", SUDO)
        return
    from tidegate.lab.lab import SWITCH, Lab
    from tidegate.lab.messages import MakeLinks

    try:
        with Lab(["probe"]) as lab:
            lab.ask(SWITCH, MakeLinks((("probe0", lab.pid("probe"), 1500, "eth0"),)))
            yield Finding("kernel", "lab", State.WORKS, "network namespaces and veth")
            for name, mode, cure in (
                ("AF_XDP in the driver", "xdp", "a kernel with CONFIG_XDP_SOCKETS; --mode packet needs none"),
                (
                    "AF_XDP, generic",
                    "xdp-generic",
                    "a kernel with CONFIG_XDP_SOCKETS; --mode packet needs none",
                ),
                ("AF_PACKET", "packet", "a kernel with CONFIG_PACKET"),
            ):
                why = _port(mode, lab.namespace(SWITCH))
                yield Finding("kernel", name, State.MISSING if why else State.WORKS, why, cure if why else "")
    except (TidegateError, OSError) as error:
        yield Finding(
            "kernel", "lab", State.MISSING, str(error), "a kernel with CONFIG_NET_NS and CONFIG_VETH"
        )


def _port(mode: str, namespace: str) -> str:
    """What is said against a port in this mode; empty: nothing."""
    from tidegate import p4, program
    from tidegate.switch.ports import SwitchPort
    from tidegate.switch.running import LiveSwitch

    try:
        with LiveSwitch(
            p4.compile(program("meter")),
            [SwitchPort(1, "probe0", mode, namespace)],
        ):
            return ""
    except TidegateError as error:
        return str(error)


def qdiscs() -> Iterator[Finding]:
    """Those that `Network.qdisc` and `tidegate agent` have a use for."""
    if not kernel.may_make_namespaces():
        for name in (*PLAIN, *QDISCS):
            yield Finding("qdiscs", name, State.UNKNOWN, "needs root", SUDO)
        return
    for name, option in PLAIN.items():
        why = linux_qdisc.why_not_plain(name)
        yield Finding(
            "qdiscs",
            name,
            State.MISSING if why else State.WORKS,
            why or "",
            f"a kernel with {option}" if why else "",
        )
    for kind in QDISCS:
        why = linux_qdisc.why_not(kind)
        said, _, needs = (why or "").partition("; it needs ")
        cure = f"a kernel with {needs}" if needs else _cure(said, "")
        yield Finding("qdiscs", kind, State.MISSING if why else State.WORKS, said, cure if why else "")


def congestion_controls() -> Iterator[Finding]:
    """The kernel's, and those that Tidegate loads."""
    there = kernel.congestion_controls((*CONTROLS, *OWN))
    for name, option in CONTROLS.items():
        yield Finding(
            "congestion controls",
            name,
            State.WORKS if name in there else State.MISSING,
            "the kernel's" if name in there else "not in this kernel",
            "" if name in there else f"a kernel with {option}",
        )
    lacking = [name for name in OWN if name not in there]
    for name in OWN:
        if name not in lacking:
            yield Finding("congestion controls", name, State.WORKS, "the kernel's")
    if not lacking:
        return
    if not kernel.may_make_namespaces():
        for name in lacking:
            yield Finding("congestion controls", name, State.UNKNOWN, "loading Tidegate's needs root", SUDO)
        return
    from tidegate.hosts.controls import Control, Controls

    with Controls(Control(name) for name in lacking) as loaded:
        for name in lacking:
            why = loaded.problems.get(Control(name))
            yield Finding(
                "congestion controls",
                name,
                State.MISSING if why else State.WORKS,
                why or "Tidegate's own (BPF)",
                _cure(why, "see BPF and clang") if why else "",
            )


def settings() -> Iterator[Finding]:
    """Settings of the kernel that matter for live runs."""
    for name, what in (("tcp_rmem", "receive"), ("tcp_wmem", "send")):
        words = _text(f"/proc/sys/net/ipv4/{name}").split()
        most = int(words[2]) if len(words) == 3 else 0
        good = most >= BUFFERS
        yield Finding(
            "settings",
            f"net.ipv4.{name}",
            State.WORKS if good else State.MISSING,
            f"{what} buffers up to {most / (1 << 20):.1f} MiB",
            "" if good else f"sysctl -w net.ipv4.{name}='4096 131072 {BUFFERS}'",
        )
    runtime = _text("/proc/sys/kernel/sched_rt_runtime_us").strip()
    if runtime:
        good = runtime != "0"
        yield Finding(
            "settings",
            "kernel.sched_rt_runtime_us",
            State.WORKS if good else State.MISSING,
            f"{runtime} us for real-time threads, as a live network's" if good else "no real-time threads",
            "" if good else "sysctl -w kernel.sched_rt_runtime_us=950000",
        )
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    good = files == resource.RLIM_INFINITY or files >= FILES
    yield Finding(
        "settings",
        "open files",
        State.WORKS if good else State.MISSING,
        f"{files}",
        "" if good else f"ulimit -n {FILES}",
    )


def _cure(why: str, otherwise: str) -> str:
    """The cure that a message has in it."""
    return why.partition(": ")[2] if "apt install" in why else otherwise


def _text(path: str) -> str:
    try:
        return Path(path).read_text()
    except OSError:
        return ""
