"""A topology as a live network: hosts are namespaces of the lab, each switch is a P4 switch of this process.

Interfaces of switches are called `s1-eth2`, in a namespace of their own; a link between switches is a veth pair there.
"""

from __future__ import annotations

import shlex
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from tidegate import addresses, p4
from tidegate._core import TidegateError
from tidegate.control.files import demand_own
from tidegate.exercises import programs, runtime
from tidegate.exercises.host_commands import Command, end_all, in_background
from tidegate.exercises.reading import shown
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
MOST_SAID = 4096
"""Bytes that are kept of what a command says of errors."""
SAID_S = 0.2
"""For what a command has said when processes that it leaves behind may say more."""
LOOPBACK = "127.0.0.1"
FIRST_GRPC = 50_051
"""The port of the first switch's P4Runtime server in the public tutorials."""


@dataclass(frozen=True)
class Job:
    """A command that goes on in the background of a host."""

    host: str
    text: str
    command: Command


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
        kernel.demand_privilege("tidegate lab", elsewhere="")
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
            filled.append(f"commands of {shown(switch.commands)}")
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
        numbers = ", ".join(str(port.number) for port in live.ports)
        self._say(
            f"{switch.name}: {self._sources[switch.name].name}, {f'ports {numbers}' if numbers else 'no ports'}, "
            f"{', '.join(filled) or 'no entries'}{served}"
        )

    def _run_commands(self, host: Host) -> None:
        for number, text in enumerate(host.commands):
            background = in_background(text)
            if background is not None:
                self.go_on(host.name, background)
                continue
            status, said = self._run(host.name, without_net_tools(text))
            # What is to be added is there: `ip route add` of the host's own network, in a public exercise.
            if status and not said.endswith("File exists"):
                raise TidegateError(
                    f"{self.topology.path}: hosts.{host.name}.commands[{number}]: {shown(text)}: {said or ending(status)}"
                )

    def _run(self, host: str, text: str) -> tuple[int, str]:
        """Run a command that may leave something behind; gives its exit status and what it says of errors."""
        command = self.start(host, text, stderr=subprocess.PIPE)
        said: list[bytes] = []
        reader = threading.Thread(target=_read, args=(command.process.stderr, said), daemon=True)
        reader.start()
        status = self._wait(host, text, command)
        reader.join(SAID_S if command.left else None)
        return status, b"".join(said).decode(errors="replace").strip()

    # Commands of hosts.

    def start(self, host: str, text: str, **how: Any) -> Command:
        """Start a command of the shell at a host. It and what it starts end with the network, or with this process."""
        return Command(self.namespace(host), text, **how)

    def run(self, host: str, text: str, *, stdin: int | None = subprocess.DEVNULL) -> int:
        """Run a command at a host, to the terminal; gives its exit status. Ctrl-C ends the command, and is passed on."""
        return self._wait(host, text, self.start(host, text, stdin=stdin))

    def _wait(self, host: str, text: str, command: Command) -> int:
        """Until a command ends; what it leaves behind goes on in the background."""
        try:
            status = command.wait()
        except BaseException as error:
            # Ctrl-C has reached it.
            end_all([command], told=type(error) is KeyboardInterrupt)
            raise
        if command.left:
            self._keep(host, text, command)
        else:
            command.close()
        return status

    def output(self, host: str, text: str) -> tuple[int, str]:
        """Run a command at a host; gives its exit status and what it and all that it starts say."""
        command = self.start(host, text, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            said, _ = command.process.communicate()
        except BaseException as error:
            end_all([command], told=type(error) is KeyboardInterrupt)
            raise
        status = command.wait()
        command.close()
        return status, said.decode(errors="replace")

    def go_on(self, host: str, text: str) -> int:
        """Start a command in the background, as with `&`; gives its number. Ctrl-C does not reach it."""
        return self._keep(host, text, self.start(host, text, background=True))

    def _keep(self, host: str, text: str, command: Command) -> int:
        self._last_job += 1
        self._jobs[self._last_job] = Job(host, text, command)
        return self._last_job

    def jobs(self) -> dict[int, Job]:
        """What goes on in the background, by its number."""
        for number, job in list(self._jobs.items()):
            if not job.command.runs:
                job.command.close()
                del self._jobs[number]
        return self._jobs

    def _end_commands(self) -> None:
        end_all([job.command for job in self._jobs.values()])


def _read(stream: IO[bytes], said: list[bytes]) -> None:
    """All that a command says, to its end; what daemons say later is not kept."""
    room = MOST_SAID
    with stream:
        while part := stream.read1(4096):  # type: ignore[attr-defined]
            said.append(part[:room])
            room -= len(said[-1])


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
