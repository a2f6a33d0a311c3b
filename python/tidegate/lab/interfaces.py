"""Links, addresses, neighbours, routes and sysctls of the namespace that this process is in."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pyroute2 import IPRoute
from pyroute2.ethtool.ioctl import IoctlEthtool
from pyroute2.netlink.exceptions import NetlinkError

from tidegate.hosts import libbpf
from tidegate.lab.messages import Attach, MakeLinks, SetUp, SetUpRouter

HOST_INTERFACE = "eth0"
NETLINK_ROUTE, NLMSG_NOOP, RTM_NEWNEIGH = 0, 1, 28
REQUEST, ACK, CREATE = 0x1, 0x4, 0x400
NDA_DST, NDA_LLADDR = 1, 2
# struct nlmsghdr and struct ndmsg.
_HEADER = struct.Struct("=IHHII")
_NEIGHBOUR = struct.Struct("=B3xiHBB")
CLSACT_EGRESS, ETH_P_ALL = 0xFFFF_FFF3, 0x0003
SO_NETNS_COOKIE = 71
PERMANENT, LINK_SCOPE, ECN_FEATURE, RTAX_RTO_MIN = 0x80, 253, 1, 13

# What goes over a host's interface is to be what the wire would carry: whole packets with right checksums.
OFFLOADS = (
    "tx-checksumming",
    "tcp-segmentation-offload",
    "generic-segmentation-offload",
    "generic-receive-offload",
)

# Before interfaces are added: no IPv6, so that the kernel sends no packets of its own.
QUIET = (("ipv6/conf/all/disable_ipv6", "1"), ("ipv6/conf/default/disable_ipv6", "1"))


def write_sysctl(name: str, value: str) -> None:
    """Set a name below /proc/sys/net."""
    try:
        Path("/proc/sys/net", name).write_text(value)
    except OSError as error:
        raise OSError(f"/proc/sys/net/{name} does not take {value!r}: {error.strerror}") from None


def processors(numbers: Iterable[int]) -> str:
    """Processors as the kernel writes them: the bits of hexadecimal numbers, 32 in each."""
    mask = sum(1 << number for number in numbers)
    top = max(mask.bit_length() - 1, 0) // 32 * 32
    return ",".join(f"{mask >> at & 0xFFFF_FFFF:08x}" for at in range(top, -1, -32))


def before_interfaces(receive_on: Iterable[int]) -> None:
    """Settings of a namespace that must precede its interfaces; `receive_on` are processors."""
    # Without any a host receives on the sender's processor, which is that of the network's thread. A kernel before 6.3 can do no
    # other, and carries less.
    with suppress(OSError):
        write_sysctl("core/rps_default_mask", processors(receive_on))
    for name, value in QUIET:
        if Path("/proc/sys/net", name).exists():
            write_sysctl(name, value)


def make_links(request: MakeLinks) -> None:
    """A veth pair to each host or router. One queue per direction: more would reorder packets."""
    queues = {"num_tx_queues": 1, "num_rx_queues": 1}
    with IPRoute() as ip:
        for name, pid, mtu, there in request.pairs:
            peer = {"ifname": there, "net_ns_pid": pid, "mtu": mtu, **queues}
            ip.link("add", ifname=name, kind="veth", peer=peer, mtu=mtu, **queues)
            (index,) = ip.link_lookup(ifname=name)
            ip.link("set", index=index, state="up")


def add_neighbours(index: int, neighbours: Iterable[tuple[str, str]]) -> None:
    """All of an interface's neighbours at once: there is one for each pair of hosts, and pyroute2 takes half a millisecond."""
    messages = bytearray()
    for address, mac in neighbours:
        body = _NEIGHBOUR.pack(socket.AF_INET, index, PERMANENT, 0, 0)
        body += _attribute(NDA_DST, socket.inet_aton(address))
        body += _attribute(NDA_LLADDR, bytes.fromhex(mac.replace(":", "")))
        messages += _HEADER.pack(_HEADER.size + len(body), RTM_NEWNEIGH, REQUEST | CREATE, 0, 0) + body
    # The kernel answers an error, and this last request of nothing, which comes after all others.
    messages += _HEADER.pack(_HEADER.size, NLMSG_NOOP, REQUEST | ACK, 0, 0)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_ROUTE) as one:
        one.sendto(messages, (0, 0))
        answer = one.recv(1 << 16)
    (error,) = struct.unpack_from("=i", answer, _HEADER.size)
    if error:
        raise OSError(-error, "the kernel does not take the neighbours of a host")


def _attribute(kind: int, value: bytes) -> bytes:
    return struct.pack("=HH", 4 + len(value), kind) + value + bytes(-len(value) % 4)


def _without_offloads(interface: str) -> None:
    offloads = IoctlEthtool(interface)
    for name in OFFLOADS:
        offloads.set_offload_flag(name, False)
    offloads.close()


ROUTING = (
    ("ipv4/ip_forward", "1"),
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    # What comes and goes by one interface is no reason to tell the sender.
    ("ipv4/conf/all/send_redirects", "0"),
    ("ipv4/conf/default/send_redirects", "0"),
)


def set_up_router(request: SetUpRouter) -> None:
    """A Linux router: it forwards between its interfaces, which have no addresses."""
    for name, value in ROUTING:
        write_sysctl(name, value)
    with IPRoute() as ip:
        for port in request.ports:
            (index,) = ip.link_lookup(ifname=port.name)
            ip.link("set", index=index, address=port.mac)
            _without_offloads(port.name)
            write_sysctl(f"ipv4/conf/{port.name}/rp_filter", "0")
            ip.link("set", index=index, state="up")
            add_neighbours(index, port.neighbours)
            for address, _ in port.neighbours:
                ip.route("add", dst=f"{address}/32", oif=index, scope=LINK_SCOPE)


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
        _without_offloads(HOST_INTERFACE)
        ip.link("set", index=index, state="up")
        if request.egress:
            ip.tc("add", "clsact", index)
        for place, program in enumerate(request.egress):
            run = {"fd": program, "name": f"tidegate-{place}", "direct_action": True}
            ip.tc("add-filter", "bpf", index, parent=CLSACT_EGRESS, prio=1 + place, protocol=ETH_P_ALL, **run)
        ip.addr("add", index=index, address=request.address, prefixlen=request.prefix)
        add_neighbours(index, request.neighbours)
        for route in request.routes:
            wanted = {
                "cc_algo": route.congestion_control,
                "features": ECN_FEATURE if route.ecn else None,
                "initcwnd": route.initial_cwnd,
                "rto_min": route.rto_min_ms,
                "quickack": 1 if route.quick_ack else None,
                "mtu": None if route.room is None else route.room[0],
                "advmss": None if route.room is None else route.room[1],
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


def attach(request: Attach) -> int:
    """Programs at the interface until this process ends; gives the cookie of its namespace."""
    with IPRoute() as ip:
        (index,) = ip.link_lookup(ifname=HOST_INTERFACE)
    libbpf.link(request.ingress, index, libbpf.BPF_TCX_INGRESS)
    libbpf.link(request.egress, index, libbpf.BPF_TCX_EGRESS)
    return namespace_cookie()


def namespace_cookie() -> int:
    """The kernel's number for the network namespace that this process is in."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
        return int.from_bytes(one.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8), "little")
