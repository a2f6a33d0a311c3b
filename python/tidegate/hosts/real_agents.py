"""The agents of real hosts: their shims as BPF programs (`agent.c`), and what Python is told and sets.

A host's shims are data in a map, and the programs are loaded once for all hosts of a run. What the kernel holds ends with
the file descriptors of this process and of the hosts' processes, however these end; no cgroup, mount or file is made.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import struct
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from tidegate import _core
from tidegate._core import TidegateError
from tidegate.hosts import libbpf
from tidegate.hosts.libbpf import BpfError, Loaded, Map, Ring
from tidegate.hosts.shims import Check, Echo, Insert, Option, Report, Shim

if TYPE_CHECKING:
    from tidegate.network import Network, Node

SOURCE = Path(__file__).with_name("agent.c")
# For tcx links.
SINCE = "6.6"

# Of news that Python has not read yet.
RING_BYTES = 1 << 22

# As in `agent.c`.
MOST_SHIMS = 16
MOST_AGENTS = 4096
MOST_CONNECTIONS = 16384
"""Ends of connections, which are numbered by their flows."""
INSERT, CLOCK, ECHO, REPORT, SIGNAL, GONE, CHECK = range(7)
PLACES = ("ip", "tcp")
KINDS = ("syn", "syn-ack", "data", "ack", "udp")
NEWS = ("opened", "established", "closed", "report")
NO_SHIM = struct.pack("=I4B4B4B40s", 0, GONE, *bytes(11), b"")
_HOST = struct.Struct("=QII")
_SHIM = struct.Struct("=I4B4B4B40s")
_KEY = struct.Struct("=4s4sHH")
_CONNECTION = struct.Struct(f"=10I{MOST_SHIMS * 48}x")
_LIMIT = struct.Struct("=II")
_NUMBER = struct.Struct("=I")
_COUNT = struct.Struct("=QQ")
_NEWS = struct.Struct("=QII3B5x40s")

OPTION_HEAD = 2
ESTABLISHED = 2
ACK_FLAG = 16
LONGEST_DATA = 38
CLOCK_BYTES = 8
# RFC 6994: data of these kinds begins with two bytes that tell experiments apart. The kernel writes none without them.
EXPERIMENTS = (253, 254)
UNLIMITED_RATE = 2**32 - 1
MOST_PACKETS = 2**31 - 1
# What the kernel says of a packet that the network would have lost: no way or no link, no room, a firewall.
LOST = {errno.ENETUNREACH, errno.EHOSTUNREACH, errno.ENETDOWN, errno.ENODEV, errno.ENOBUFS, errno.EPERM}

CLONE_NEWNET = 0x4000_0000
# System calls, the same on all architectures.
FSOPEN, FSCONFIG, FSMOUNT = 430, 431, 432
CREATE, CLOSE_ON_EXEC = 6, 1

_libc = ctypes.CDLL(None, use_errno=True)


def _length(shim: Insert | Echo) -> int:
    """Bytes that the shim's option takes at most."""
    if isinstance(shim, Echo):
        return OPTION_HEAD + min(shim.longest, LONGEST_DATA)
    return OPTION_HEAD + (CLOCK_BYTES if shim.clock else len(shim.data))


def _writes(shim: Shim) -> Option | None:
    """The option that a shim puts on packets."""
    if isinstance(shim, Insert):
        return shim.option
    return shim.write if isinstance(shim, Echo) else None


def _shims(network: Network, host: Node) -> list[Shim]:
    return [shim for attached in network.agents if attached.host is host for shim in attached.agent.shims]


def ip_room(network: Network, host: Node, kind: str) -> int:
    """Bytes of IPv4 options that a host puts on each packet of a kind, at most, with their padding."""
    lengths = [
        _length(shim)
        for shim in _shims(network, host)
        if isinstance(shim, Insert | Echo) and _writes(shim)[0] == "ip" and kind in shim.on  # type: ignore[index]
    ]
    return (sum(lengths) + 3) // 4 * 4


def stamps_data(network: Network, host: Node) -> bool:
    """Whether a host puts the time on data packets."""
    return any(
        isinstance(shim, Insert) and shim.clock and "data" in shim.on for shim in _shims(network, host)
    )


def refusals(network: Network) -> Iterator[str]:
    """What real hosts cannot do of what the agents ask for."""
    hosts = dict.fromkeys(attached.host for attached in network.agents)
    if len(network.agents) > MOST_AGENTS:
        yield f"it has {len(network.agents)} agents; the lab has room for {MOST_AGENTS}"
    tcp = [flow for flow in network.flows if flow.kind == "tcp"]
    last = max((flow.number for flow in tcp if flow.source in hosts or flow.target in hosts), default=0)
    if 2 * last + 1 >= MOST_CONNECTIONS:
        yield (
            f"flow {last} is of a host with agents; agents of real hosts know the first {MOST_CONNECTIONS // 2} flows, "
            "so add these flows first"
        )
    for host in hosts:
        shims = _shims(network, host)
        if len(shims) > MOST_SHIMS:
            yield f"the agents of {host.name} have {len(shims)} shims; a real host has room for {MOST_SHIMS}"
        written: set[tuple[int, str]] = set()
        for shim in shims:
            read = [shim.read, shim.write] if isinstance(shim, Echo) else [shim.option]
            for place in {option.place for option in read} & {"shim", "tag"}:
                yield (
                    f"an agent of {host.name} has a {place} between Ethernet and IP; real hosts have IPv4 and TCP options only, "
                    "so give an option or run it with the simulator"
                )
            if isinstance(shim, Check) and shim.option.place != "ip":
                yield f"an agent of {host.name} checks TCP options; real hosts check IPv4 options alone"
            option = _writes(shim)
            if not isinstance(shim, Insert | Echo) or option is None or option.place != "tcp":
                continue
            if isinstance(shim, Insert) and shim.once:
                yield (
                    f"an agent of {host.name} puts a TCP option on first packets alone; on real hosts that is for IPv4 options only"
                )
            if option.kind in EXPERIMENTS and _length(shim) < OPTION_HEAD + 2:
                yield (
                    f"an agent of {host.name}: Linux writes TCP option {option.kind} with at least 2 bytes of data; "
                    "give it more, or another kind"
                )
            for kind in shim.on:
                if (option.kind, kind) in written:
                    yield (
                        f"agents of {host.name}: two shims write TCP option {option.kind} on `{kind}` packets; "
                        "Linux writes an option once, so choose another kind for one"
                    )
                written.add((option.kind, kind))


def _packed(agent: int, shim: Shim) -> bytes:
    """A shim as the programs have it."""
    if isinstance(shim, Insert | Echo):
        option = shim.option if isinstance(shim, Insert) else shim.write
        on = sum(1 << KINDS.index(kind) for kind in set(shim.on))
        length, place = _length(shim), PLACES.index(option.place)
        if isinstance(shim, Insert):
            what = CLOCK if shim.clock else INSERT
            head = bytes((option.kind, length)) + shim.data
            return _SHIM.pack(agent, what, place, option.kind, on, length, *bytes(6), shim.once, head)
        read = (PLACES.index(shim.read.place), shim.read.kind, int(shim.keep == "max"))
        return _SHIM.pack(agent, ECHO, place, option.kind, on, length, *read, *bytes(4), b"")
    if isinstance(shim, Check):
        keys = struct.pack("=3Q", *shim.keys, shim.signing)
        return _SHIM.pack(agent, CHECK, PLACES.index("ip"), shim.option.kind, *bytes(9), keys)
    what = REPORT if isinstance(shim, Report) else SIGNAL
    place = PLACES.index(shim.option.place)
    consume = shim.consume if isinstance(shim, Report) else None
    consumed = bytes(
        (*((0, 0, 0) if consume is None else (1, *consume)), isinstance(shim, Report) and shim.each)
    )
    return _SHIM.pack(agent, what, place, shim.option.kind, *bytes(5), *consumed, b"")


def _checksum(data: bytes) -> int:
    """RFC 1071."""
    total: int = sum(struct.unpack(f"!{len(data) // 2}H", data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def _pure_ack(end: _End, place: str, options: bytes, seq: int, ack: int, window: int) -> bytes:
    """An ACK of a connection's end from the IPv4 header on, with options of IPv4 or of TCP. `window` is in network order."""
    in_ip, in_tcp = (options, b"") if place == "ip" else (b"", options)
    addresses = b"".join(map(socket.inet_aton, end.addresses))
    offset = (20 + len(in_tcp)) // 4
    tcp = bytearray(struct.pack("!HHIIBBHHH", *end.ports, seq, ack, offset << 4, ACK_FLAG, 0, 0, 0) + in_tcp)
    tcp[14:16] = window.to_bytes(2, "little")
    tcp[16:18] = _checksum(addresses + struct.pack("!HH", socket.IPPROTO_TCP, len(tcp)) + tcp).to_bytes(2)
    ip = (5 + len(in_ip) // 4, 20 + len(in_ip) + len(tcp))
    # The kernel fills in the checksum.
    return (
        struct.pack("!BBHHHBBH", 0x40 | ip[0], 0, ip[1], 0, 0x4000, 64, socket.IPPROTO_TCP, 0)
        + addresses
        + in_ip
        + bytes(tcp)
    )


@contextmanager
def root_cgroup() -> Iterator[int]:
    """The cgroup of version 2 that has all processes, without regard to where cgroups are mounted. Raises BpfError."""

    def call(number: int, *arguments: object) -> int:
        done: int = _libc.syscall(number, *arguments)
        if done < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
        return done

    with ExitStack() as stack:
        try:
            system = call(FSOPEN, b"cgroup2", CLOSE_ON_EXEC)
            stack.callback(os.close, system)
            call(FSCONFIG, system, CREATE, None, None, 0)
            mount = call(FSMOUNT, system, CLOSE_ON_EXEC, 0)
            stack.callback(os.close, mount)
            # What is mounted so can be opened from, but is not itself a folder that programs are attached to.
            folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=mount)
            stack.callback(os.close, folder)
        except OSError as error:
            raise BpfError(f"this kernel gives no cgroup of version 2: {error.strerror}") from None
        yield folder


@contextmanager
def _own_cgroup() -> Iterator[int]:
    """The cgroup of this process and of those that it starts."""
    with root_cgroup() as root:
        try:
            lines = Path("/proc/self/cgroup").read_text().splitlines()
            path = next((line[3:] for line in lines if line.startswith("0::")), "/")
            folder = os.open(f".{path}", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=root)
        except OSError as error:
            raise BpfError(f"this process has no cgroup of version 2: {error.strerror}") from None
        try:
            yield folder
        finally:
            os.close(folder)


@contextmanager
def _inside(namespace: str) -> Iterator[None]:
    """While this lasts, this thread is in another network namespace. Raises `TidegateError` if that is gone."""

    def enter(file: int) -> None:
        if _libc.setns(file, CLONE_NEWNET) < 0:
            raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))

    home = os.open("/proc/thread-self/ns/net", os.O_RDONLY | os.O_CLOEXEC)
    try:
        try:
            there = os.open(namespace, os.O_RDONLY | os.O_CLOEXEC)
            try:
                enter(there)
            finally:
                os.close(there)
        except OSError as error:
            raise TidegateError(f"the network namespace {namespace}: {error.strerror}") from None
        try:
            yield
        finally:
            enter(home)
    finally:
        os.close(home)


@dataclass
class _End:
    """An end of a connection, as agents see it."""

    host: int
    flow: int
    active: bool
    addresses: tuple[str, str]
    ports: tuple[int, int]
    limits: dict[int, tuple[int | None, int | None]] = field(default_factory=dict)
    """By agent: rate in bit/s, packets."""

    @property
    def key(self) -> bytes:
        """Of the map of connections."""
        return _KEY.pack(*(socket.inet_aton(address) for address in self.addresses), *self.ports)


@dataclass
class _Host:
    """A host with agents."""

    address: bytes
    agents: list[int] = field(default_factory=list)
    shims: list[tuple[int, bytes]] = field(default_factory=list)
    """An agent's number, and the shim as the programs have it."""
    cookie: int = 0
    namespace: str = ""
    raw: socket.socket | None = None
    """See `RealAgents.send`."""


class RealAgents:
    """The agents of a run on real hosts; has the methods of `_core.HostAgents`.

    Without agents it does nothing. `attach` them when the hosts' namespaces are there, `begin` when the run does.
    """

    def __init__(self, network: Network) -> None:
        self._network = network
        self._stack = ExitStack()
        self._loaded: Loaded | None = None
        self.hosts: dict[int, _Host] = {}
        """Those with agents, by number."""
        self._ends: dict[int, _End] = {}
        self._agents: list[int] = []
        self._news: list[tuple[int, int, int, str, int, bytes]] = []
        self._changed: set[int] = set()
        self._origin = 0
        self.problem: str | None = None
        """Why this machine cannot run them."""

    def __enter__(self) -> RealAgents:
        if self._network.agents:
            with ExitStack() as stack:
                try:
                    self._load(stack)
                except BpfError as error:
                    self.problem = str(error)
                self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def _load(self, stack: ExitStack) -> None:
        why = libbpf.missing()
        if why is not None:
            raise BpfError(why)
        types = {"leaving": libbpf.BPF_TCX_EGRESS, "came": libbpf.BPF_TCX_INGRESS}
        try:
            loaded = Loaded(libbpf.compiled(SOURCE), attach_types=types, sizes={"news": RING_BYTES})
            stack.callback(loaded.close)
            with _own_cgroup() as cgroup:
                loaded.link("sockets", cgroup, libbpf.BPF_CGROUP_SOCK_OPS)
            self._iterator = loaded.link("limits_set", 0, libbpf.BPF_TRACE_ITER)
        except OSError as error:
            raise BpfError(f"a BPF program cannot be attached: {error.strerror}") from None
        except BpfError as error:
            raise BpfError(f"{error} (it needs Linux {SINCE} or newer)") from None
        self._maps: dict[str, Map] = {
            name: loaded.map(name, size)
            for name, size in (
                ("hosts", _HOST.size + MOST_SHIMS * _SHIM.size),
                ("connections", _CONNECTION.size),
                ("limits", _LIMIT.size),
                ("counts", _COUNT.size),
                ("runs", 8),
                ("lost", 8),
            )
        }
        self._ring = Ring(loaded.map("news", 0).descriptor, self._take)
        stack.callback(self._ring.close)
        self._loaded = loaded

    @property
    def shared(self) -> Mapping[str, int]:
        """Maps for congestion controls, by name."""
        return {} if self._loaded is None else {"signals": self._loaded.map("signals", 0).descriptor}

    @property
    def programs(self) -> tuple[int, int] | None:
        """For the ingress and the egress of the interfaces of hosts with agents."""
        return (
            None if self._loaded is None else (self._loaded.program("came"), self._loaded.program("leaving"))
        )

    def attach(self, hosts: Mapping[Node, tuple[int, str]]) -> None:
        """The hosts are there: the cookie and the file of each network namespace."""
        for node, (cookie, namespace) in hosts.items():
            host = self.hosts[node.number]
            host.cookie, host.namespace = cookie, namespace
            self._write_shims(host)
        for number, end in self._ends.items():
            self._maps["connections"][end.key] = _CONNECTION.pack(number, *bytes(7), end.active, 0)

    def begin(self, origin: int) -> None:
        """The run begins, at this time of the monotonic clock in nanoseconds."""
        self._origin = origin
        if self._loaded is not None:
            self._maps["runs"][bytes(4)] = struct.pack("=Q", origin)

    @property
    def lost(self) -> int:
        """News that came faster than they were read."""
        return 0 if self._loaded is None else int.from_bytes(self._maps["lost"][bytes(4)], "little")

    def add(self, host: int, shims: tuple[Shim, ...]) -> int:
        """See `_core.HostAgents`; before `attach`."""
        # What is wrong with them is wrong in the simulator too.
        checking = _core.Simulation(0)
        checking.host("host")
        _core.HostAgents(checking).add(0, shims)
        number = len(self._agents)
        self._agents.append(host)
        if host not in self.hosts:
            node = self._network.nodes[host]
            self.hosts[host] = _Host(socket.inet_aton(self._network.address(node)))
            self._ends.update(self._ends_of(node))
        there = self.hosts[host]
        there.agents.append(number)
        there.shims += [(number, _packed(number, shim)) for shim in shims]
        return number

    def _ends_of(self, host: Node) -> Iterator[tuple[int, _End]]:
        for flow in self._network.flows:
            if flow.kind != "tcp" or host not in (flow.source, flow.target):
                continue
            five = self._network.five_tuple(flow)
            ends, ports = (five.source, five.target), (five.source_port, five.target_port)
            active = flow.source is host
            if not active:
                ends, ports = ends[::-1], ports[::-1]
            yield 2 * flow.number + (not active), _End(host.number, flow.number, active, ends, ports)

    def _write_shims(self, host: _Host) -> None:
        shims = [shim for _, shim in host.shims]
        writes_tcp = any(shim[4] <= ECHO and shim[5] == PLACES.index("tcp") for shim in shims)
        shims += [NO_SHIM] * (MOST_SHIMS - len(shims))
        self._maps["hosts"][host.address] = _HOST.pack(host.cookie, len(host.shims), writes_tcp) + b"".join(
            shims
        )

    def remove(self, agent: int) -> None:
        """See `_core.HostAgents`."""
        host = self.hosts[self._agents[agent]]
        host.agents.remove(agent)
        # The others keep their places, by which the kernel knows what their options had.
        host.shims = [(owner, NO_SHIM if owner == agent else shim) for owner, shim in host.shims]
        self._write_shims(host)
        for number, end in self._ends.items():
            if end.limits.pop(agent, None) is not None:
                self._limit(number, end)
        self.flush()

    def pace(self, agent: int, connection: int, rate: int | None) -> None:
        """See `_core.HostAgents`; in force with the next `flush`."""
        end = self._ends[connection]
        end.limits[agent] = (rate, end.limits.get(agent, (None, None))[1])
        self._limit(connection, end)

    def limit_cwnd(self, agent: int, connection: int, packets: int | None) -> None:
        """See `_core.HostAgents`; in force with the next `flush`."""
        end = self._ends[connection]
        end.limits[agent] = (end.limits.get(agent, (None, None))[0], packets)
        self._limit(connection, end)

    def _limit(self, connection: int, end: _End) -> None:
        rates = [rate for rate, _ in end.limits.values() if rate is not None]
        windows = [packets for _, packets in end.limits.values() if packets is not None]
        pace = min(max(1, min(rates) // 8), UNLIMITED_RATE) if rates else 0
        cwnd = min(min(windows), MOST_PACKETS) if windows else 0
        self._maps["limits"][_NUMBER.pack(connection)] = _LIMIT.pack(pace, cwnd)
        self._changed.add(end.host)

    def inside(self, agent: int) -> AbstractContextManager[None]:
        """See `Connection.in_namespace`."""
        return _inside(self.hosts[self._agents[agent]].namespace)

    def send(self, agent: int, connection: int, place: str, kind: int, data: bytes) -> bool:
        """See `_core.HostAgents`. Like the window, what it acknowledges is that of the last packet that TCP has sent.

        Where the host has no way to the other end at the time, the packet is lost.
        """
        end = self._ends[connection]
        _, stage, _, _, _, sent_end, sent_ack, window, _, _ = _CONNECTION.unpack(
            self._maps["connections"][end.key]
        )
        if stage != ESTABLISHED:
            return False
        option = bytes((kind, OPTION_HEAD + len(data))) + data
        padded = option + bytes(-len(option) % 4)
        if len(padded) > 40:
            raise TidegateError(f"the option needs {len(option)} bytes, and the header has room for 40")
        packet = _pure_ack(end, place, padded, sent_end, sent_ack, window)
        sender = self._raw_socket(end.host)
        try:
            sender.sendto(packet, (end.addresses[1], 0))
        except OSError as error:
            if error.errno not in LOST:
                raise TidegateError(f"an ACK with an option cannot be sent: {error.strerror}") from None
        return True

    def bytes_sent(self, connection: int) -> int | None:
        """See `_core.HostAgents`."""
        _, stage, _, _, _, sent_end, _, _, _, sent_fin = _CONNECTION.unpack(
            self._maps["connections"][self._ends[connection].key]
        )
        return sent_end if stage == ESTABLISHED and not sent_fin else None

    def _raw_socket(self, host: int) -> socket.socket:
        """For packets with headers of their own, in a host's namespace."""
        there = self.hosts[host]
        if there.raw is None:
            with _inside(there.namespace):
                there.raw = socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW)
            self._stack.callback(there.raw.close)
        return there.raw

    def flush(self) -> None:
        """Set limits that have changed on the sockets of their hosts."""
        while self._changed:
            host = self.hosts[self._changed.pop()]
            assert self._loaded is not None
            try:
                with _inside(host.namespace):
                    self._loaded.iterate(self._iterator)
            except OSError as error:
                raise TidegateError(f"limits of connections cannot be set: {error.strerror}") from None

    def _take(self, record: bytes) -> None:
        at, connection, agent, what, kind, length, option = _NEWS.unpack(record)
        end = self._ends[connection]
        now = max(0, at - self._origin) * 1000
        name = NEWS[what]
        data = option[OPTION_HEAD:length]
        agents = [agent] if name == "report" else self.hosts[end.host].agents
        self._news += [(now, number, connection, name, kind, data) for number in agents]

    def take_news(self) -> list[tuple[int, int, int, str, int, bytes]]:
        """See `_core.HostAgents`."""
        self._ring.consume()
        news, self._news = self._news, []
        return news

    def counts(self, agent: int) -> tuple[int, int, int, int]:
        """See `_core.HostAgents`."""
        no_room, refused = _COUNT.unpack(self._maps["counts"][_NUMBER.pack(agent)])
        return 0, 0, no_room, refused

    def flow(self, connection: int) -> tuple[int, bool, tuple[str, str], tuple[int, int]]:
        """See `_core.HostAgents`."""
        end = self._ends[connection]
        return end.flow, end.active, end.addresses, end.ports
