"""The engine, in Rust. Answers of commands are JSON text."""

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any

__version__: str

class TidegateError(Exception):
    """The input or the run is at fault; the text says where and what would be right.

    An operation on a switch that is refused has attributes: `kind` (invalid, out of range, not found, exists, full, denied, in
    use), `object`, `field` or `None`, and `cure`, which may be empty.
    """

def default_limits() -> list[tuple[str, int]]: ...
def check(
    path: str | PathLike[str],
    includes: list[str],
    defines: list[str],
    limits: dict[str, int],
    p4info: str | PathLike[str] | None,
    color: bool,
) -> str:
    """Compile a program; with `p4info`, write its P4Info to that file."""

def monitor(
    files: Sequence[str],
    rule: str,
    most_flows: int,
    rtt_bytes: int,
    samples: str | PathLike[str] | None,
    second: tuple[list[str], int, int, str | None] | None,
    partial: bool,
    progress: Callable[[int], None] | None,
) -> str: ...
def stf(
    path: str | PathLike[str],
    test: str | PathLike[str],
    includes: list[str],
    defines: list[str],
    engine: str,
    trace: bool,
    seed: int,
) -> str:
    """Run a test of the Simple Test Framework."""

class Program:
    """A compiled program."""

    def __new__(
        cls, path: str | PathLike[str], includes: list[str], defines: list[str], limits: dict[str, int]
    ) -> Program: ...
    @staticmethod
    def from_text(name: str, text: str, limits: dict[str, int]) -> Program: ...
    def controller_headers(self) -> list[tuple[str, list[tuple[str, int]]]]: ...
    def p4info(self) -> str: ...
    def summary(self) -> str: ...

class Pipeline:
    """A pipeline that packets are run through one by one."""

    def __new__(cls, program: Program, engine: str, seed: int) -> Pipeline: ...
    def process(self, now: int, port: int, packet: bytes) -> list[tuple[int, bytes]]: ...
    def trace(self, now: int, port: int, packet: bytes) -> tuple[list[tuple[int, bytes]], str]: ...
    def advance(self, now: int) -> None: ...
    def give_up(self) -> Leftover: ...

class Leftover:
    """What is not in use any more: to free it takes time, for which nobody need wait."""

    def free(self) -> None: ...

def parse_value(text: str, width: int) -> bytes:
    """A value as the reference switch's command line has it."""

def parse_match(text: str, kind: str, width: int) -> bytes | tuple[bytes, bytes] | None:
    """A match as the reference switch's command line has it; `None` matches anything."""

def parse_time(text: str) -> int:
    """Picoseconds of `20 ms`."""

def parse_rate(text: str) -> int:
    """Bit/s of `500 Mbit/s`."""

def parse_size(text: str) -> int:
    """Bytes of `128 KiB`."""

def show_time(ps: int) -> str: ...
def show_rate(bps: int) -> str: ...
def host_ipv4(host: int) -> str:
    """IPv4 address of the host of that number, counted from 0."""

def host_mac(host: int) -> str:
    """Ethernet address of the host of that number, counted from 0."""

def flow_ports(number: int, udp: bool) -> tuple[int, int]:
    """Source's and receiver's port of a flow. TCP and UDP flows are counted apart, each from 0."""

def check_congestion_control(name: str, options: Sequence[tuple[str, str]]) -> None:
    """Refuse a congestion control that there is not, and parameters that it does not have."""

class Sizes:
    """A distribution of flow sizes: lines of bytes and cumulative share."""

    def __new__(cls, text: str) -> Sizes: ...
    def mean(self) -> float: ...
    def quantile(self, share: float) -> int: ...
    def poisson(
        self, gap: int, start: int, stop: int, pairs: int, seed: int
    ) -> list[tuple[int, int, int]]: ...

class Replay:
    """Captures on their way through a pipeline. Times are picoseconds since the first packet."""

    def __new__(
        cls,
        program: Program,
        inputs: Sequence[tuple[int, str | PathLike[str]]],
        out: str | PathLike[str],
        commands: str | PathLike[str] | None,
        engine: str,
        trace: int,
        seed: int,
        cpu_port: int | None,
    ) -> Replay: ...
    @property
    def control(self) -> SwitchControl: ...
    def advance(self, until: int | None, pausing: bool, progress: Callable[[int], None] | None) -> int: ...
    @property
    def done(self) -> bool: ...
    def take_packet_in(self) -> tuple[int, bytes, int] | None: ...
    def packet_out(self, packet: bytes) -> None: ...
    def abandon(self) -> None: ...
    def finish(self) -> str: ...

class Simulation:
    """A network in virtual time. Picoseconds, bit/s, bytes; ids count from 0."""

    def __new__(cls, seed: int) -> Simulation: ...
    def host(self, name: str) -> int: ...
    def router(self, name: str) -> int: ...
    def switch(
        self, name: str, program: Program, queues: int, cpu_port: int | None, nanoseconds: bool
    ) -> int: ...
    def harden(self, node: int) -> None: ...
    def watch(self, node: int) -> None: ...
    def port_queues(self, port: int) -> list[dict[str, Any]]: ...
    def link(
        self, a: int, b: int, there: object, back: object, b_number: int | None = None
    ) -> tuple[int, int]: ...
    def change_link(self, at: int, port: int, link: object) -> None: ...
    def set_route(self, router: int, to: int, port: int) -> None: ...
    def tcp(self, flow: object) -> int: ...
    def udp(self, flow: object) -> int: ...
    def page(self, page: object) -> int: ...
    def exchanges(self, page: int) -> list[tuple[int, int, int | None]]: ...
    def record(self, period: int, flows: bool, ports: list[int]) -> None: ...
    def record_waits(self, port: int) -> None: ...
    def capture(self, port: int, path: str | PathLike[str], snap: int) -> None: ...
    def end_capture(self, port: int) -> None: ...
    def tap(self, port: int, switch: int, number: int, every: int) -> None: ...
    def flush_captures(self) -> list[str | None]: ...
    def set_threads(self, threads: int) -> None: ...
    def threads(self) -> tuple[int, str | None]: ...
    def run_until(self, end: int) -> int: ...
    def go_live(
        self,
        ports: Sequence[tuple[int, str | PathLike[str] | None, str, str]],
        merge: bool = False,
        profile: str = "latency",
        processor: int | None = None,
        napi_threads: bool | None = None,
        threads: int = 1,
    ) -> None:
        """Run by the clock, between real hosts: host, network namespace's file, interface and kind of each port."""

    def live_until(self, end: int) -> int:
        """Wait until a time, or until a watched switch has news; return the time reached."""

    def live_statistics(self) -> dict[str, Any]: ...
    def live_messages(self) -> list[str]: ...
    def end_live(self) -> None: ...
    def now(self) -> int: ...
    def work(self) -> tuple[int, int]: ...
    def outcome(self, flow: int) -> dict[str, Any]: ...
    def queue(self, port: int) -> dict[str, Any]: ...
    def wait_quantile(self, port: int, queue: int, share: float) -> int | None: ...
    def samples(self) -> tuple[list[Columns], list[Columns]]: ...

class View:
    """Somebody's view of some ports of a simulation and of its first flows, so many at most."""

    def __new__(cls, simulation: Simulation, ports: Sequence[int], flows: int) -> View: ...
    def look(self, flows: Sequence[int], most: int) -> list[tuple[str, bytes]]:
        """Looks at these flows, and in turn at so many of all flows and of the ports. Gives columns: name, and values as 32-bit floats."""

class HostAgents:
    """The agents of a simulation's hosts; rates in bit/s."""

    def __new__(cls, simulation: Simulation) -> HostAgents: ...
    def add(self, host: int, shims: Sequence[object]) -> int: ...
    def remove(self, agent: int) -> None: ...
    def pace(self, agent: int, connection: int, rate: int | None) -> None: ...
    def limit_cwnd(self, agent: int, connection: int, packets: int | None) -> None: ...
    def take_news(self) -> list[tuple[int, int, int, str, int, bytes]]:
        """Time, agent, connection, what has happened, and of a report the option's kind and data."""

    def bytes_sent(self, connection: int) -> int | None: ...
    def send(self, agent: int, connection: int, place: str, kind: int, data: bytes) -> bool:
        """Send a pure ACK with an option; gives whether the connection is established."""

    def malformed_options(self) -> int:
        """Packets that hosts with agents dropped for an option, or a header between Ethernet and IP, of a wrong length."""

    def counts(self, agent: int) -> tuple[int, int, int, int]:
        """Packets dropped, packets held, options without room, options that were not believed."""

    def flow(self, connection: int) -> tuple[int, bool, tuple[str, str], tuple[int, int]]:
        """The flow's number, whether this end opened it, addresses and ports of this end and the other."""

class InterfaceMonitor:
    """Watches interfaces as packets come."""

    def __init__(
        self,
        interfaces: Sequence[str],
        rule: str,
        most_flows: int,
        rtt_bytes: int,
        samples: str | None,
        second: tuple[list[str], int, int, str | None] | None,
    ) -> None: ...
    def run(self, milliseconds: int) -> None:
        """Watch for so long."""
    def answer(self, most: int | None = None, text: str | None = None) -> str:
        """The answer up to now, as JSON text."""
    def settle(self) -> None:
        """Decide of two taps what is lost, as at the end of captures."""
    def end(self) -> list[str]:
        """End it; give warnings."""

class RouterPort:
    """A port of a plain router, with queues by class."""

    def __init__(self, simulation: Simulation, port: int, set: object) -> None:
        """Make or set its queues by a `PortSet`."""
    def act(self, operation: object) -> Any:
        """Do `PortSet`, `PortRead` or `QueueRead` of `tidegate.control.operations` at this port."""
    def assign(self, flows: Sequence[tuple[str, str, int, int, int]], queue: int | None) -> None: ...

class TableEntries:
    """Rows as they were when they were read, made into tuples when they are asked for."""

    def __len__(self) -> int: ...
    def __getitem__(self, index: int) -> tuple[Any, ...]: ...

class SwitchControl:
    """A switch as its control plane sees it: one of a network, or a pipeline alone."""

    @staticmethod
    def of_switch(simulation: Simulation, node: int) -> SwitchControl: ...
    @staticmethod
    def of_pipeline(pipeline: Pipeline) -> SwitchControl: ...
    def now(self) -> int: ...
    def act(self, operation: object) -> Any:
        """Do an operation of `tidegate.control.operations`; return its answer.

        | answer | is |
        |---|---|
        | Handle, Count | int |
        | Rows | list of rows, and the handle to go on from or `None` |
        | Idle | list of table and row |
        | Default | leads, note |
        | Totals | list of table, declared size, entries, packets or `None`, bytes or `None` |
        | Matches | for each member a list of matches |
        | Members | list of number and call |
        | Groups | list of number, shares, size |
        | Words | bytes, words of 64 bits of each cell |
        | Counts | packets and bytes of each cell, as words of 64 bits |
        | Rates | for each cell rates or `None` |
        | Multicast | list of group and nodes: handle, replication id, ports |
        | Mirrors | list of session, what is set, port and replication id of each copy |
        | Digests | list of name and fields |
        | Drops | list of reason and count |
        | Packet | picoseconds, bytes, zeros behind them; or `None` |
        | Statistics, Queue | dict |
        | Port | scheduler, quantum, shaper, queues |
        | Generator | ingress port, packet, picoseconds; or `None` |

        A row: handle, matches, priority, leads, (packets, bytes), rates or `None`, idle timeout, picoseconds since the last hit,
        whether it is const, note. A match: bytes, two bytes objects, or `None` for anything. A call: name, list of bytes.
        """

    def table_entries(self, operation: object, slices: int) -> tuple[TableEntries, int | None]:
        """Do a `TableRead` of several entries up to `slices` times in a row; return all rows, and the handle to go on from."""

    def act_each(self, operations: Sequence[object]) -> list[Any]:
        """Do operations in order; for each its answer, or the `TidegateError` that `act` would have raised."""

    def act_all(self, operations: Sequence[object]) -> list[Any]:
        """Do all operations, or none; the `TidegateError` of the one that is refused has its number as `index`."""

    def table_keys(self, table: str) -> list[tuple[str, Any, int]]:
        """Name, match kind and width of each key of a table."""

    def command(self, line: str) -> str: ...
    def script(self, path: str | PathLike[str]) -> list[str]:
        """Run a file of commands; return notes on those that have no effect."""

    def install(self, next: Pipeline, keep_state: bool) -> Leftover: ...
    def take_digests(self) -> list[tuple[str, list[tuple[str, int]]]]: ...
    def take_idle(self) -> list[tuple[str, tuple[Any, ...]]]: ...
    def take_packet_in(self) -> tuple[int, bytes, int] | None: ...

class Columns:
    """Columns of unsigned 64-bit numbers, by the Arrow PyCapsule interface."""

    def __arrow_c_array__(self, requested_schema: object | None = None) -> tuple[object, object]: ...
