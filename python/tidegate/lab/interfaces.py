"""Links, addresses, neighbours, routes and sysctls of the namespace that this process is in."""

from __future__ import annotations

from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import IoctlEthtool
from pyroute2.netlink.exceptions import NetlinkError

from tidegate.lab.messages import MakeLinks, SetUp

HOST_INTERFACE = "eth0"
PERMANENT, LINK_SCOPE, ECN_FEATURE, RTAX_RTO_MIN = 0x80, 253, 1, 13

# What goes over a host's interface is to be what the wire would carry: whole packets with right checksums.
OFFLOADS = (
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
)

# Before an interface comes: no IPv6, so that nothing speaks up by itself.
QUIET = (("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1"))


def write_sysctl(name: str, value: str) -> None:
    """Set a name below /proc/sys/net."""
    try:
        Path("/proc/sys/net", name).write_text(value)
    except OSError as error:
        raise OSError(f"/proc/sys/net/{name} does not take {value!r}: {error.strerror}") from None


def silence() -> None:
    """What a namespace needs before it has interfaces."""
    for name, value in QUIET:
        if Path("/proc/sys/net", name).exists():
            write_sysctl(name, value)


def make_links(request: MakeLinks) -> None:
    """A veth pair to each host. One queue each way: with more, packets overtake each other."""
    queues = {"num_tx_queues": 1, "num_rx_queues": 1}
    with IPRoute() as ip:
        for name, pid, mtu in request.pairs:
            peer = {"ifname": HOST_INTERFACE, "net_ns_pid": pid, "mtu": mtu, **queues}
            ip.link("add", ifname=name, kind="veth", peer=peer, mtu=mtu, **queues)
            (index,) = ip.link_lookup(ifname=name)
            ip.link("set", index=index, state="up")


def set_up(request: SetUp) -> None:
    """A host's end of its link."""
    for name, value in request.sysctls:
        write_sysctl(name, value)
    with IPRoute() as ip:
        (loopback,) = ip.link_lookup(ifname="lo")
        ip.link("set", index=loopback, state="up")
        found = ip.link_lookup(ifname=HOST_INTERFACE)
        if not found:
            return
        (index,) = found
        sizes = {"gso_max_segs": request.gso_max_segments, "gso_max_size": request.gso_max_bytes}
        asked = {name: value for name, value in sizes.items() if value is not None}
        ip.link("set", index=index, address=request.mac, **asked)
        offloads = IoctlEthtool(HOST_INTERFACE)
        for name in OFFLOADS:
            offloads.set_offload_flag(name, False)
        offloads.close()
        ip.link("set", index=index, state="up")
        ip.addr("add", index=index, address=request.address, prefixlen=8)
        for address, mac in request.neighbours:
            ip.neigh("add", dst=address, lladdr=mac, ifindex=index, state=PERMANENT)
        for route in request.routes:
            wanted = {
                "cc_algo": route.congestion_control,
                "features": ECN_FEATURE if route.ecn else None,
                "initcwnd": route.initial_cwnd,
                "rto_min": route.rto_min_ms,
            }
            metrics: dict[str, object] = {name: value for name, value in wanted.items() if value is not None}
            if route.rto_min_ms is not None:
                # The kernel heeds it if it is locked.
                metrics["lock"] = 1 << RTAX_RTO_MIN
            try:
                ip.route("add", dst=f"{route.to}/32", oif=index, scope=LINK_SCOPE, metrics=metrics)
            except NetlinkError as error:
                raise OSError(
                    f"the kernel does not take a route to {route.to} with {metrics}: {error}"
                ) from None
