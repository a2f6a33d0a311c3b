"""The BPF programs of `pace.c`: loaded and attached, told their settings, and read.

What the kernel holds ends with the file descriptors of this process and of its keeper, however these end; nothing is pinned. Limits of
sockets outlive both. They are known by the last bits of their rates, so that `lift_left` finds them later.
"""

from __future__ import annotations

import fcntl
import os
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv4Network, IPv6Address, IPv6Network, ip_address
from pathlib import Path

from tidegate import units
from tidegate._core import TidegateError
from tidegate.hosts import libbpf
from tidegate.hosts.libbpf import BpfError, Loaded, Ring
from tidegate.hosts.real_agents import root_cgroup
from tidegate.lab import kernel
from tidegate.lab.death import interruptible
from tidegate.lab.interfaces import namespace_cookie
from tidegate.systems.pacing.service.settings import DIRECTIONS, MOST_CGROUPS, Settings

SOURCE = Path(__file__).with_name("pace.c")
SINCE = "6.6"
CGROUPS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
CGROUP2_MAGIC = 0x63677270
SIOCGIFHWADDR = 0x8927
ARPHRD_ETHER, ARPHRD_LOOPBACK = 1, 772
CAPABILITIES = {
    "CAP_NET_ADMIN": kernel.NET_ADMIN,
    "CAP_NET_RAW": kernel.NET_RAW,
    "CAP_PERFMON": 38,
    "CAP_BPF": 39,
}

# As in `pace.c`.
LINKS = 8
MOST_CLASSES = 4096
COUNTERS = (
    *("marked", "unmarked", "traces", "notices", "updates", "stale", "malformed", "bad_version", "bad_check"),
    *("not_ours", "too_often", "out_of_bounds", "full", "no_room", "too_many_links", "silent", "adopted"),
    *("not_set", "no_class"),
)
COUNTERS_HELP = {
    "marked": "SYNs with the option",
    "unmarked": "repeated SYNs, without the option",
    "traces": "SYN-ACKs in which switches have told a rate",
    "notices": "notices of switches",
    "updates": "packets that ask or tell switches",
    "stale": "notices that came after newer ones",
    "malformed": "options that make no sense",
    "bad_version": "options of another version",
    "bad_check": "options with a wrong check",
    "not_ours": "notices for connections that this host does not pace",
    "too_often": "options beyond changes_per_second",
    "out_of_bounds": "rates beyond least_rate or most_rate",
    "full": "flows beyond most_flows",
    "no_room": "SYNs without room for the option",
    "too_many_links": "links beyond 8 on a path",
    "silent": "flows whose switches have stopped answering",
    "adopted": "flows that were there before the service",
    "not_set": "limits that the kernel has refused",
    "no_class": "flows without a class of HTB",
}
ASKING, PACED, SILENT = 1, 2, 3
STATES = {ASKING: "asking", PACED: "paced", SILENT: "silent"}
_SETTINGS = struct.Struct(f"=Q2Q2Q{MOST_CGROUPS}QIIIIII11BxI")
_KEY = struct.Struct("=16s16sHH")
_SHARE = struct.Struct("=II8BQQ")
_FLOW = struct.Struct("=7I8B5I8Q")
_NUMBER = struct.Struct("=I")
_COUNT = struct.Struct("=Q")
_PREFIX = struct.Struct("=I16s")
# Of IPv4, and of IPv6; where the target's address stands in them.
PACKETS = {4: (52, slice(16, 20)), 6: (76, slice(24, 40))}
FLOW_BYTES = _FLOW.size + LINKS * _SHARE.size
ONE = _NUMBER.pack(1)
FIRST = _NUMBER.pack(0)


@dataclass(frozen=True)
class Share:
    """What a link gives for each unit of weight."""

    link: int
    kbps: float


@dataclass(frozen=True)
class PacedFlow:
    """A flow as the programs have it."""

    local: tuple[str, int]
    remote: tuple[str, int]
    state: str
    """`asking`: no switch has told a rate; `paced`; `silent`: switches have stopped answering, and it is not paced."""
    opened: bool
    """By this host."""
    weight: int
    frames_kbps: int | None
    """Its rate in frames."""
    payload_bps: int | None
    """What its socket is limited to, in bit/s of payload; None: nothing."""
    link: int
    """Which link the rate is from."""
    used_kbps: int | None
    """What its application takes, in frames, where that is clearly less; None: all."""
    class_number: int
    """Of HTB; 0: none."""
    class_rate: int
    """What its class has, in bytes/s of frames."""
    shares: tuple[Share, ...]
    heard_s: float | None
    """Since a switch was heard last."""


@dataclass(frozen=True)
class Cgroup:
    """A cgroup that flows are chosen by."""

    number: int
    """The kernel's, which no other has had."""
    link: int
    """Of the program that stands there."""


class Pacer:
    """The programs in the kernel, until `close`."""

    def __init__(self, settings: Settings) -> None:
        self._stack = ExitStack()
        self._attached: dict[str, int] = {}
        self._interfaces: dict[str, int] = {}
        self._ports: set[bytes] = set()
        self._peers: set[bytes] = set()
        self._cgroups: dict[str, Cgroup] = {}
        self._sorting = 0
        for name in settings.interfaces:
            self._interface(name)
            self._demand_ethernet(name)
        for name in settings.cgroups:
            with _cgroup_folder(name):
                pass
        with ExitStack() as stack:
            stack.callback(self._detach_all)
            self._loaded = _load(stack, settings.most_flows)
            self._iterator = self._loaded.link("visit", 0, libbpf.BPF_TRACE_ITER)
            self._ring = Ring(self._loaded.map("wakes", 0).descriptor, lambda _: None)
            stack.callback(self._ring.close)
            self._flows = self._loaded.map("flows", FLOW_BYTES)
            self._counts = self._loaded.map("counts", _COUNT.size)
            self._woken = self._loaded.map("woken", _NUMBER.size)
            self._raw = {
                version: stack.enter_context(socket.socket(family, socket.SOCK_RAW, socket.IPPROTO_RAW))
                for version, family in ((4, socket.AF_INET), (6, socket.AF_INET6))
            }
            if settings.pace_by == "htb":
                free = self._loaded.map("free_classes", _NUMBER.size)
                for number in range(1, MOST_CLASSES + 1):
                    free.push(_NUMBER.pack(number))
            self.use(settings)
            self._stack = stack.pop_all()

    @property
    def descriptor(self) -> int:
        """Can be read from when `visit` is to be called."""
        return self._ring.descriptor

    def use(self, settings: Settings) -> None:
        """Work with these settings from now on. Flows that are chosen no more stay until they end, but for those of other cgroups.

        Raises `TidegateError` where that is not possible; all is as before then.
        """
        for name in settings.interfaces:
            self._interface(name)
            self._demand_ethernet(name)
        cgroups: dict[str, Cgroup] = {}
        with ExitStack() as undo:
            for name in settings.cgroups or ("",):
                if name not in cgroups:
                    cgroups[name] = self._cgroup(name)
                    if cgroups[name] != self._cgroups.get(name):
                        undo.callback(libbpf.unlink, cgroups[name].link)
            for name in settings.interfaces:
                if self._attach(name):
                    undo.callback(self._detach, name)
            undo.pop_all()
        for name in set(self._interfaces) - set(settings.interfaces):
            self._detach(name)
        keep = {_NUMBER.pack(port) for port in settings.ports}
        _replace(self._loaded.map("ports", 4), self._ports, keep)
        self._ports = keep
        keep = {_prefix(one) for one in settings.networks}
        _replace(self._loaded.map("peers", 4), self._peers, keep)
        self._peers = keep
        self._settings = settings
        self._stand_at(cgroups)

    def _stand_at(self, cgroups: dict[str, Cgroup]) -> None:
        """Hear of the flows of these cgroups, and no more of those of others."""
        before, self._cgroups = self._cgroups, cgroups
        self._write()
        left = {one.link for one in before.values()} - {one.link for one in cgroups.values()}
        for link in left:
            libbpf.unlink(link)
        if left:
            self._sort()

    def _sort(self) -> None:
        """Lift the limits of flows outside the cgroups, and forget these flows: nobody hears of their ends any more."""
        self._sorting += 1
        self._write(sort=True)
        self._loaded.iterate(self._iterator)
        self._write()
        # Those that have ended meanwhile have no sockets.
        for key, value in list(self._flows.items(_KEY.size)):
            class_number, sorting = _FLOW.unpack(value[: _FLOW.size])[18:20]
            if sorting != self._sorting:
                with suppress(KeyError):
                    del self._flows[key]
                    if class_number:
                        self._loaded.map("free_classes", _NUMBER.size).push(_NUMBER.pack(class_number))

    def _write(self, *, lift: bool = False, sort: bool = False) -> None:
        """Tell the programs their settings."""
        settings, keys = self._settings, self._settings.keys
        low, high = _own_ports()
        cgroups = [one.number for one in self._cgroups.values()] if settings.cgroups else []
        self._loaded.map("settings", _SETTINGS.size)[FIRST] = _SETTINGS.pack(
            namespace_cookie(),
            *((0, 0) if keys is None else keys.values),
            settings.refresh_ns,
            settings.timeout_ns,
            *(cgroups + [0] * MOST_CGROUPS)[:MOST_CGROUPS],
            units.rate(settings.least_rate) // 8,
            units.rate(settings.most_rate) // 8,
            settings.weight,
            settings.changes_per_second,
            low,
            high,
            keys is not None,
            0 if keys is None else keys.signing,
            DIRECTIONS[settings.direction],
            not settings.ports,
            not settings.destinations,
            not settings.cgroups,
            settings.existing,
            settings.lend,
            lift,
            settings.pace_by == "htb",
            sort,
            self._sorting,
        )

    def _interface(self, name: str) -> int:
        try:
            return socket.if_nametoindex(name)
        except OSError:
            known = ", ".join(sorted(one for _, one in socket.if_nameindex()))
            raise TidegateError(f"there is no interface {name!r}; there are {known}") from None

    @staticmethod
    def _demand_ethernet(name: str) -> None:
        """The programs look for IP behind an Ethernet header."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            told = fcntl.ioctl(one, SIOCGIFHWADDR, struct.pack("=16s24x", name.encode()))
        kind = struct.unpack_from("=H", told, 16)[0]
        if kind not in (ARPHRD_ETHER, ARPHRD_LOOPBACK):
            raise TidegateError(
                f"interface {name} has no Ethernet header (kind {kind}): name the one that it sends by"
            )

    def _attach(self, name: str) -> bool:
        """Attach to an interface; gives whether that was not so already."""
        index = self._interface(name)
        if self._interfaces.get(name) == index:
            return False
        self._detach(name)
        for program, kind, side in (
            ("leaving", libbpf.BPF_TCX_EGRESS, "out"),
            ("came", libbpf.BPF_TCX_INGRESS, "in"),
        ):
            try:
                self._attached[f"{name} {side}"] = libbpf.link(self._loaded.program(program), index, kind)
            except OSError as error:
                self._detach(name)
                raise TidegateError(
                    f"interface {name}: a BPF program cannot be attached: {error.strerror} (it needs Linux {SINCE})"
                ) from None
        self._interfaces[name] = index
        return True

    def _detach(self, name: str) -> None:
        self._interfaces.pop(name, None)
        for side in ("out", "in"):
            link = self._attached.pop(f"{name} {side}", None)
            if link is not None:
                libbpf.unlink(link)

    def _detach_all(self) -> None:
        for name in list(self._interfaces):
            self._detach(name)
        while self._cgroups:
            libbpf.unlink(self._cgroups.popitem()[1].link)

    def lost_interfaces(self) -> list[str]:
        """Interfaces that are gone, or others than before; those that have come back are attached again."""
        lost = []
        for name in self._settings.interfaces:
            try:
                index = socket.if_nametoindex(name)
            except OSError:
                lost.append(name)
                continue
            if self._interfaces.get(name) != index:
                try:
                    self._attach(name)
                except TidegateError:
                    lost.append(name)
        return lost

    def lost_cgroups(self) -> list[str]:
        """Cgroups that are gone; those that were made again are attached to."""
        found, lost = dict(self._cgroups), []
        for name in self._settings.cgroups:
            try:
                found[name] = self._cgroup(name)
            except (TidegateError, OSError):
                lost.append(name)
        if found != self._cgroups:
            self._stand_at(found)
        return lost

    def _cgroup(self, name: str) -> Cgroup:
        """A cgroup, with the program attached to it."""
        with _cgroup_folder(name) as folder:
            number = os.fstat(folder).st_ino
            known = self._cgroups.get(name)
            if known is not None and known.number == number:
                return known
            try:
                link = libbpf.link(self._loaded.program("sockets"), folder, libbpf.BPF_CGROUP_SOCK_OPS)
                return Cgroup(number, link)
            except OSError as error:
                where = f"cgroup {name}" if name else "the cgroup of all processes"
                raise TidegateError(f"{where}: a BPF program cannot be attached: {error.strerror}") from None

    def visit(self) -> None:
        """Set limits that have changed, and send what switches are to be told."""
        self._woken[FIRST] = FIRST
        packets = self._loaded.iterate(self._iterator)
        at = 0
        while at < len(packets):
            version = packets[at] >> 4
            length, target = PACKETS[version]
            packet = packets[at : at + length]
            at += length
            # One that is lost is sent again.
            with suppress(OSError):
                self._raw[version].sendto(packet, (str(ip_address(packet[target])), 0))

    def heard(self) -> None:
        """What `descriptor` said has been heard."""
        self._ring.consume()

    def lift(self) -> None:
        """Take all limits off that were set here."""
        self._write(lift=True)
        self._loaded.iterate(self._iterator)

    def flows(self) -> Iterator[PacedFlow]:
        """All flows that are to be paced."""
        now = time.monotonic_ns()
        for key, value in self._flows.items(_KEY.size):
            yield _flow(key, value, now)

    def counts(self) -> dict[str, int]:
        """How often each thing has happened since the start."""
        return {
            name: _COUNT.unpack(self._counts[_NUMBER.pack(number)])[0] for number, name in enumerate(COUNTERS)
        }

    def close(self) -> None:
        """Unload the programs. Limits stay; see `lift`."""
        self._stack.close()


def _flow(key: bytes, value: bytes, now: int) -> PacedFlow:
    local, remote, local_port, remote_port = _KEY.unpack(key)
    numbers = _FLOW.unpack(value[: _FLOW.size])
    _, weight, kbps, _, limit = numbers[:5]
    _, link, state, _, _, direction, *_ = numbers[7:15]
    limit_kbps, class_number, heard = numbers[17], numbers[18], numbers[21]
    shares = []
    for at in range(LINKS):
        of_all, weights, number, _, known, _, left, *_ = _SHARE.unpack_from(
            value, _FLOW.size + at * _SHARE.size
        )
        if known and not left:
            shares.append(Share(number, of_all / max(1, weights)))
    return PacedFlow(
        (_address(local), local_port),
        (_address(remote), remote_port),
        STATES[state],
        direction == DIRECTIONS["opened"],
        weight,
        kbps or None,
        limit * 8 or None,
        link,
        limit_kbps or None,
        class_number,
        limit * 65_536 // numbers[5] if numbers[5] else 0,
        tuple(shares),
        (now - heard) / 1e9 if heard else None,
    )


def _address(packed: bytes) -> str:
    address = IPv6Address(packed)
    return str(address.ipv4_mapped or address)


def _prefix(network: IPv4Network | IPv6Network) -> bytes:
    """As a key of `peers`: of IPv4 in ::ffff:0:0/96."""
    if network.version == 4:
        return _PREFIX.pack(96 + network.prefixlen, bytes(10) + b"\xff\xff" + network.network_address.packed)
    return _PREFIX.pack(network.prefixlen, network.network_address.packed)


def _replace(into: libbpf.Map, old: set[bytes], new: set[bytes]) -> None:
    # In this order, as there is room for either.
    for key in old - new:
        del into[key]
    for key in new - old:
        into[key] = ONE


def _load(stack: ExitStack, most_flows: int) -> Loaded:
    """Raises TidegateError where this machine cannot."""
    why = libbpf.missing()
    if why is not None:
        raise TidegateError(why)
    types = {"leaving": libbpf.BPF_TCX_EGRESS, "came": libbpf.BPF_TCX_INGRESS}
    try:
        elf = libbpf.compiled(SOURCE)
        # The kernel checks the programs, which takes seconds on a busy machine.
        loaded = interruptible(lambda: Loaded(elf, attach_types=types, sizes={"flows": most_flows}))
    except BpfError as error:
        raise TidegateError(f"the BPF programs cannot be loaded: {error}") from None
    stack.callback(loaded.close)
    return loaded


def demand_capabilities() -> None:
    """Raises TidegateError where this process may not load and attach the programs."""
    held = kernel.capabilities()
    missing = [name for name, number in CAPABILITIES.items() if not held >> number & 1]
    if missing:
        raise TidegateError(f"the agent needs {', '.join(missing)}: run it as root, or from its systemd unit")


def lift_left() -> None:
    """Take limits off that a service has left which ended together with its keeper."""
    with ExitStack() as stack:
        loaded = _load(stack, 1)
        iterator = loaded.link("visit", 0, libbpf.BPF_TRACE_ITER)
        numbers = list(_SETTINGS.unpack(bytes(_SETTINGS.size)))
        # Before what flows are limited by, and the two of sorting.
        numbers[-4] = True
        loaded.map("settings", _SETTINGS.size)[FIRST] = _SETTINGS.pack(*numbers)
        loaded.iterate(iterator)


@contextmanager
def _cgroup_folder(name: str) -> Iterator[int]:
    """A folder of cgroups of version 2; of all processes, if the name is empty."""
    path = Path(name) if name else next(filter(_is_cgroup2, CGROUPS), CGROUPS[0])
    if _is_cgroup2(path):
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    elif name:
        why = (
            "it is in no file system of cgroups of version 2" if path.is_dir() else "there is no such folder"
        )
        raise TidegateError(f"cgroup {name}: {why}; name a folder below {CGROUPS[0]} (mount -t cgroup2)")
    else:
        try:
            with root_cgroup() as root:
                folder = os.dup(root)
        except BpfError as error:
            raise TidegateError(f"{CGROUPS[0]} has no cgroups of version 2, and {error}") from None
    try:
        yield folder
    finally:
        os.close(folder)


def _is_cgroup2(path: Path) -> bool:
    try:
        found = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return libbpf.file_system(found) == CGROUP2_MAGIC
    finally:
        os.close(found)


def _own_ports() -> tuple[int, int]:
    """Local ports that connections are opened from."""
    low, high = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    return int(low), int(high)
