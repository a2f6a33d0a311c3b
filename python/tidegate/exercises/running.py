"""A topology as a live network: hosts are namespaces of the lab, each switch is a P4 switch of this process.

Interfaces of switches are called `s1-eth2`, in a namespace of their own; a link between switches is a veth pair there.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tidegate import addresses, p4
from tidegate._core import TidegateError
from tidegate.control.files import demand_own
from tidegate.exercises import programs, runtime
from tidegate.exercises.topology import Host, Switch, Topology, interface
from tidegate.lab import kernel
from tidegate.lab.interfaces import HOST_INTERFACE
from tidegate.lab.lab import SWITCH, Lab
from tidegate.lab.messages import MakeLinks, SetUp
from tidegate.switch.ports import SwitchPort
from tidegate.switch.running import LiveSwitch
from tidegate.units import counted

MTU = 1500
"""Of hosts."""
ROOM = 2000
"""Of interfaces of switches: programs add headers to packets of full size."""
PROGRAMS = (
    ("ip", "iproute2"),
    ("nsenter", "util-linux"),
    ("setpriv", "util-linux"),
    ("unshare", "util-linux"),
)
# A command ends with the process that started it, and does not begin where that is gone already. With `preexec_fn` Popen would fork
# beside the threads of gRPC, whose handler of forks aborts some of the children.
WITH_PARENT = 'test "$PPID" = "$0" && exec "$@"'
# The first process of a PID namespace: with it the kernel ends all that a command has started. It outlives Ctrl-C, the command does
# not: the trap is for this shell, and the one that it starts has none.
FIRST = 'trap : INT TERM; sh -c "$1"; exit $?'
# `/sys` with the host's own interfaces, as `ip netns exec` has it, and what is mounted there besides. Containers may refuse it.
OWN_SYS = (
    "{ mount --rbind /sys /mnt && mount -t sysfs sysfs /sys && "
    "for one in cgroup bpf; do mount --rbind /mnt/fs/$one /sys/fs/$one; done; umount -l /mnt; } 2>/dev/null"
)
END_S = 2.0
LOOPBACK = "127.0.0.1"
FIRST_GRPC = 50_051
"""The port of the first switch's P4Runtime server in the public tutorials."""


@dataclass(frozen=True)
class Job:
    """A command that goes on in the background of a host."""

    host: str
    command: str
    process: subprocess.Popen[bytes]


class LiveTopology:
    """A topology that runs, while the `with` block lasts."""

    def __init__(
        self,
        topology: Topology,
        program: Path | None = None,
        *,
        includes: list[str] | None = None,
        defines: list[str] | None = None,
        grpc: bool = False,
        cpu_port: int | None = None,
        queue_limit: tuple[int | None, int | None] = (1000, None),
        say: Callable[[str], None] = lambda text: None,
    ) -> None:
        """Compiles the programs; raises `TidegateError` before anything is set up.

        `queue_limit`: packets or bytes that wait in a queue of a port at most.
        """
        if any(host.commands for host in topology.hosts.values()):
            demand_own(topology.path)
        kernel.demand_privilege()
        if grpc:
            _demand_addresses(topology)
        for tool, package in PROGRAMS:
            if shutil.which(tool) is None:
                raise TidegateError(f"{tool} is not installed; on Debian and Ubuntu: apt install {package}")
        self.topology = topology
        self.switches: dict[str, LiveSwitch] = {}
        self._say = say
        self._grpc = grpc
        self._cpu_port = cpu_port
        self._queue_packets, self._queue_bytes = queue_limit
        self._stack = ExitStack()
        self._ended = threading.Event()
        self._jobs: dict[int, Job] = {}
        self._last_job = 0
        compiled: dict[Path, p4.Program] = {}
        self._programs: dict[str, p4.Program] = {}
        self._sources: dict[str, Path] = {}
        for switch in topology.switches.values():
            source = programs.program_of(topology, switch, program)
            if source not in compiled:
                compiled[source] = p4.compile(source, includes=includes or [], defines=defines or [])
            self._programs[switch.name], self._sources[switch.name] = compiled[source], source
        if program is not None and program not in compiled:
            raise TidegateError(
                f"{topology.path}: no switch runs {program}: its files name "
                f"{', '.join(sorted({source.name for source in compiled}))}; give a program of such a name, "
                'or change "program" at switches'
            )

    def __enter__(self) -> Self:
        for note in self.topology.notes:
            self._say(note)
        with ExitStack() as stack:
            self._lab = stack.enter_context(Lab(self.topology.hosts))
            self._names = dict(zip(self.topology.hosts, self._lab.hosts, strict=True))
            stack.callback(self._end_commands)
            self._wire()
            for number, switch in enumerate(self.topology.switches.values()):
                self._start(switch, number, stack)
            for host in self.topology.hosts.values():
                self._run_commands(host)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def check(self) -> None:
        """Raise `TidegateError` if the lab has been ended from outside."""
        self._lab.check()

    def namespace(self, host: str) -> str:
        """The file of a host's network namespace."""
        return self._lab.namespace(self._names[host])

    def shell(self, host: str) -> str:
        """What starts a shell at a host from another terminal."""
        return f"ip netns exec {self._lab.run}-{self._names[host]} bash"

    # Set up.

    def _wire(self) -> None:
        """All links, and the hosts' addresses."""
        pairs = []
        for link in self.topology.links:
            first, second = link.ends
            if first.port is None or second.port is None:
                host, port = (first, second) if first.port is None else (second, first)
                pid = self._lab.pid(self._names[host.node])
                pairs.append((interface(port), pid, MTU, HOST_INTERFACE))
            else:
                pairs.append((interface(first), self._lab.pid(SWITCH), ROOM, interface(second)))
        self._lab.ask(SWITCH, MakeLinks(tuple(pairs)))
        for link in self.topology.links:
            for end in link.ends:
                if end.port is not None:
                    self._in_namespace(SWITCH, f"ip link set {interface(end)} mtu {ROOM} up")
        self._lab.ask_all(
            {
                self._names[host.name]: SetUp(
                    address=host.address,
                    mac=host.mac,
                    mtu=MTU,
                    gso_max_segments=None,
                    gso_max_bytes=None,
                    neighbours=host.neighbours,
                    routes=(),
                    sysctls=(),
                    prefix=host.interface.network.prefixlen,
                )
                for host in self.topology.hosts.values()
            }
        )

        for name, about in self.topology.hosts.items():
            if about.gateway is not None:
                route = f"ip route add default via {about.gateway} dev {HOST_INTERFACE}"
                self._in_namespace(self._names[name], route)

    def _in_namespace(self, agent: str, command: str) -> None:
        done = subprocess.run(
            ["nsenter", f"--net={self._lab.namespace(agent)}", *shlex.split(command)],
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise TidegateError(f"{command}: {done.stderr.strip() or ending(done.returncode)}")

    def _start(self, switch: Switch, number: int, stack: ExitStack) -> None:
        """A switch with what its files say, then its ports."""
        ports = []
        for end, other, link in self.topology.ends_of(switch.name):
            assert end.port is not None
            ports.append(
                SwitchPort(
                    end.port,
                    interface(end),
                    netns=self._lab.namespace(SWITCH),
                    rate=link.rate,
                    delay=link.delay,
                    # A host's own interface has neither.
                    both=other.port is None and (link.delay > 0 or link.rate is not None),
                )
            )
        program = self._programs[switch.name]
        cpu_port = switch.cpu_port if switch.cpu_port is not None else self._cpu_port
        if any(port.number == cpu_port for port in ports):
            raise TidegateError(
                f"{self.topology.path}: switches.{switch.name}: port {cpu_port} leads to a link; give another CPU port"
            )
        live = LiveSwitch(
            program,
            ports,
            name=switch.name,
            queues=switch.queues,
            queue_packets=self._queue_packets,
            queue_bytes=self._queue_bytes,
            cpu_port=cpu_port,
            merge=False,
        )
        filled = []
        if switch.runtime is not None:
            path = programs.demand(self.topology, switch.runtime, f"switches.{switch.name}.runtime_json")
            filled.append(counted(runtime.write(path, program, live.api), "entry", "entries"))
        if switch.commands is not None:
            path = programs.demand(self.topology, switch.commands, f"switches.{switch.name}.cli_input")
            for note in live.script(path):
                self._say(f"{switch.name}: {note}")
            filled.append(f"commands of {switch.commands}")
        stack.enter_context(live)
        self.switches[switch.name] = live
        served = ""
        if self._grpc:
            from tidegate.switch import remote

            address = f"{LOOPBACK}:{FIRST_GRPC + number}"
            stack.enter_context(remote.served(live, address, number, None))
            served = f", P4Runtime on {address}, device {number}"
        thread = threading.Thread(target=live.wait, args=(self._ended.is_set,), name=switch.name, daemon=True)
        thread.start()
        # It is called back first: the thread has to leave the switch before that ends.
        stack.callback(thread.join)
        stack.callback(self._ended.set)
        self._say(
            f"{switch.name}: {self._sources[switch.name].name}, ports {', '.join(str(port.number) for port in live.ports)}, "
            f"{', '.join(filled) or 'no entries'}{served}"
        )

    def _run_commands(self, host: Host) -> None:
        for number, command in enumerate(host.commands):
            with self.start(host.name, without_net_tools(command), stderr=subprocess.PIPE) as process:
                _, said = process.communicate()
                # What is to be added is there: `ip route add` of the host's own network, in a public exercise.
                if process.returncode and not said.strip().endswith(b"File exists"):
                    why = said.decode(errors="replace").strip() or ending(process.returncode)
                    raise TidegateError(
                        f"{self.topology.path}: hosts.{host.name}.commands[{number}]: {command}: {why}"
                    )

    # Commands of hosts.

    def start(
        self, host: str, command: str, *, stdout: int | IO[Any] | None = None, stderr: int | IO[Any] | None = None,
        stdin: int | None = subprocess.DEVNULL,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Start a command of the shell at a host. It and what it starts end with the network, or with this process."""
        return subprocess.Popen(
            [
                *("setpriv", "--pdeathsig", "KILL", "sh", "-c", WITH_PARENT, str(os.getpid())),
                *("nsenter", f"--net={self.namespace(host)}"),
                *("unshare", "--mount", "--pid", "--fork", "--kill-child=SIGKILL"),
                *("sh", "-c", f"{OWN_SYS}; {FIRST}", "sh", command),
            ],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
        )

    def run(self, host: str, command: str, *, stdin: int | None = subprocess.DEVNULL) -> int:
        """Run a command at a host, to the terminal; gives its exit status. Ctrl-C ends the command, and is passed on."""
        process = self.start(host, command, stdin=stdin)
        try:
            return process.wait()
        except BaseException:
            end(process)
            raise

    def output(self, host: str, command: str) -> tuple[int, str]:
        """Run a command at a host; gives its exit status and what it says."""
        process = self.start(host, command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = process.communicate()
        except BaseException:
            end(process)
            raise
        return process.returncode, said.decode(errors="replace")

    def go_on(self, host: str, command: str) -> int:
        """Start a command in the background, as with `&`; gives its number."""
        self._last_job += 1
        self._jobs[self._last_job] = Job(host, command, self.start(host, command))
        return self._last_job

    def jobs(self) -> dict[int, Job]:
        """What goes on in the background, by its number."""
        self._jobs = {number: job for number, job in self._jobs.items() if job.process.poll() is None}
        return self._jobs

    def _end_commands(self) -> None:
        for job in self._jobs.values():
            end(job.process)


def _demand_addresses(topology: Topology) -> None:
    """Refuse addresses of P4Runtime that another process has."""
    for number, name in enumerate(topology.switches):
        why_not = addresses.why_not(LOOPBACK, FIRST_GRPC + number)
        if why_not is not None:
            raise TidegateError(
                f"P4Runtime of {name} is served at {LOOPBACK}:{FIRST_GRPC + number}: {why_not}; "
                "end what listens there, which `ss -ltnp` shows"
            )


def ending(status: int) -> str:
    """How a command has ended, by its exit status.

    >>> ending(1), ending(-6)
    ('ended with 1', 'was ended by SIGABRT')
    """
    if status >= 0:
        return f"ended with {status}"
    try:
        return f"was ended by {signal.Signals(-status).name}"
    except ValueError:
        # A real-time signal between the first and the last.
        return f"was ended by signal {-status}"


def end(process: subprocess.Popen[bytes]) -> None:
    """End a command, and what it has started."""
    with suppress(subprocess.TimeoutExpired):
        # After Ctrl-C it ends by itself.
        process.wait(END_S if process.poll() is None and sys.exc_info()[0] is not None else 0)
    if process.poll() is None:
        process.send_signal(signal.SIGKILL)
        process.wait()


def without_net_tools(command: str) -> str:
    """`route add default gw A dev I` and `arp -i I -s A M`, which many topologies have, by `ip` where net-tools are missing."""
    words = command.split()
    match words:
        case ["route", "add", "default", "gw", address, "dev", device] if shutil.which("route") is None:
            return f"ip route add default via {address} dev {device}"
        case ["route", "add", "default", "gw", address] if shutil.which("route") is None:
            return f"ip route add default via {address}"
        case ["arp", "-i", device, "-s", address, mac] if shutil.which("arp") is None:
            return f"ip neigh replace {address} lladdr {mac} dev {device}"
        case ["arp", "-s", address, mac] if shutil.which("arp") is None:
            return f"ip neigh replace {address} lladdr {mac} dev {HOST_INTERFACE}"
    return command
