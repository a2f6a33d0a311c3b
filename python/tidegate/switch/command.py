"""`tidegate switch`."""

from __future__ import annotations

import gc
import os
import signal
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from tidegate import addresses, config_file, logs
from tidegate._core import TidegateError
from tidegate.options import (
    Commands,
    ControllerFile,
    CpuPort,
    Define,
    Include,
    Insecure,
    Limit,
    LiveProfile,
    LiveProfileOption,
    LogFormat,
    LogFormatOption,
    Program,
    QueueLimit,
    Seed,
    ViewPort,
    parse_queue_limit,
    program_limits,
)
from tidegate.processors import processors
from tidegate.switch.ports import MOST_QUEUES, Mode, demand_values, parse_ports
from tidegate.units import counted

if TYPE_CHECKING:
    from tidegate.control.controller import Controller
    from tidegate.switch.running import LiveSwitch
    from tidegate.view.page import Page

log = logs.logger("tidegate.switch")

LOOK_S = 1.0
"""Interval of `--watch` in seconds."""


def _rates(given: list[str] | None) -> list[str] | None:
    """The callback of `--rate`: a file's value is refused with its place."""
    demand_values(given or [], [])
    return given


def _delays(given: list[str] | None) -> list[str] | None:
    """The same of `--delay`."""
    demand_values([], given or [])
    return given


def switch(
    program: Program,
    interface: Annotated[
        list[str],
        typer.Option(
            "--interface",
            "-i",
            metavar="PORT@INTERFACE",
            help="Port number and interface of a port; PORT@tap:NAME creates a TAP device.",
            show_default=False,
        ),
    ],
    commands: Commands = None,
    controller: ControllerFile = None,
    mode: Annotated[Mode, typer.Option(help="Packet I/O backend.")] = Mode.AUTO,
    rate: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT=RATE",
            help="Egress rate of a port, as 1=100Mbit/s.",
            show_default=False,
            callback=_rates,
        ),
    ] = None,
    delay: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PORT=TIME",
            help="Egress delay of a port, as 1=10ms.",
            show_default=False,
            callback=_delays,
        ),
    ] = None,
    queues: Annotated[
        int, typer.Option(metavar="N", min=1, max=MOST_QUEUES, help="Number of queues of each port.")
    ] = 1,
    queue_limit: QueueLimit = "1000",
    merge: Annotated[
        bool,
        typer.Option(
            "--merge/--no-merge",
            help="Merge TCP segments that leave together into one packet for the kernel.",
        ),
    ] = True,
    live_profile: LiveProfileOption = LiveProfile.LATENCY,
    processor: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Processor that the switch's thread stays on; further threads stay on the next ones.",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        int,
        typer.Option(metavar="N", min=1, max=64, help="Number of threads; each has a group of the ports."),
    ] = 1,
    napi_threads: Annotated[
        bool | None,
        typer.Option(
            "--napi-threads/--no-napi-threads",
            help="Have the kernel receive on threads of its own.",
            show_default=False,
        ),
    ] = None,
    cpu_port: CpuPort = None,
    metrics_addr: Annotated[
        str | None,
        typer.Option(metavar="HOST:PORT", help="Expose Prometheus metrics.", show_default=False),
    ] = None,
    metrics_cells: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=65_536,
            help="Cells of a register, counter or meter with series of their own: the first N not zero.  [default: 64]",
            show_default=False,
        ),
    ] = None,
    grpc_addr: Annotated[
        str | None,
        typer.Option(
            metavar="[HOST]:PORT", help="Serve P4Runtime; the default HOST is loopback.", show_default=False
        ),
    ] = None,
    grpc_cert: Annotated[
        Path | None, typer.Option(metavar="FILE", help="TLS certificate of the P4Runtime server (PEM).")
    ] = None,
    grpc_key: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Key of the certificate (PEM).")
    ] = None,
    grpc_ca: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="CA that must have signed the clients' certificates (PEM)."),
    ] = None,
    grpc_limit: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Limit of what P4Runtime clients may do, as compile_cpu_s=10; docs/security.md lists them.",
            show_default=False,
        ),
    ] = None,
    insecure: Insecure = False,
    device_id: Annotated[
        int, typer.Option(metavar="N", min=0, max=2**64 - 1, help="Device id in P4Runtime.")
    ] = 1,
    view: Annotated[bool, typer.Option("--view", help="Show the switch in the browser.")] = False,
    view_port: ViewPort = 0,
    watch: Annotated[bool, typer.Option("--watch", help="Show metrics in the terminal.")] = False,
    seed: Seed = 0,
    include: Include = None,
    define: Define = None,
    limit: Limit = None,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE.toml",
            help="Settings (TOML), by the options' names; command-line options take precedence.",
            show_default=False,
            is_eager=True,
            callback=config_file.take,
        ),
    ] = None,
    log_format: LogFormatOption = LogFormat.TEXT,
) -> None:
    """Run a program as a switch between interfaces, until Ctrl-C or SIGTERM. Needs root."""
    logs.serve(log.name, as_json=log_format is LogFormat.JSON)
    from tidegate import p4
    from tidegate.control.files import load
    from tidegate.switch.running import LiveSwitch

    limits = program_limits(limit)
    certificates = (grpc_cert, grpc_key, grpc_ca)
    remote = (
        None if grpc_addr is None else _Remote(grpc_addr, device_id, certificates, grpc_limit or [], limits)
    )
    if remote is None and (certificates != (None, None, None) or grpc_limit):
        raise TidegateError(
            "--grpc-cert, --grpc-key, --grpc-ca and --grpc-limit are for --grpc-addr; give it too"
        )
    made = [] if controller is None else load(controller)
    given = parse_ports(interface, mode, rate or [], delay or [])
    if any(port.number == cpu_port for port in given):
        raise TidegateError(f"--cpu-port {cpu_port}: an interface has this port; give another number")
    packets, size = parse_queue_limit(queue_limit)
    for option, address in (("--metrics-addr", metrics_addr), ("--grpc-addr", grpc_addr)):
        if address is not None:
            try:
                addresses.parse(address)
            except TidegateError as error:
                raise TidegateError(f"{option} {error}") from None
    if metrics_addr is not None:
        addresses.demand_local_metrics(metrics_addr, insecure)
    live = LiveSwitch(
        p4.compile(program, includes=include or [], defines=define or [], limits=limits),
        given,
        name=program.stem,
        queues=queues,
        queue_packets=packets,
        queue_bytes=size,
        cpu_port=cpu_port,
        merge=merge,
        profile=live_profile.value,
        processor=processor,
        napi_threads=napi_threads,
        threads=threads,
        seed=seed,
        metrics_cells=metrics_cells,
    )
    if threads > live.threads:
        log.warning("--threads %s: %s, one for each port", threads, counted(live.threads, "thread"))
    if live.threads > processors():
        log.warning(
            "%s on %s: they take turns", counted(live.threads, "thread"), counted(processors(), "processor")
        )
    if commands is not None:
        for note in live.script(commands):
            log.info("%s", note)
    _run(live, made, _Services(metrics_addr, remote, insecure, view_port if view else None, watch))


@dataclass(frozen=True)
class _Remote:
    """What clients of P4Runtime meet."""

    address: str
    device_id: int
    certificates: tuple[Path | None, Path | None, Path | None]
    """The server's, its key, and the CA of the clients' (PEM)."""
    limits: list[str]
    """`NAME=VALUE`, of what clients may do."""
    program_limits: dict[str, int]


@dataclass(frozen=True)
class _Services:
    """What shows a switch that runs, or lets others control it."""

    metrics: str | None
    remote: _Remote | None
    insecure: bool
    view_port: int | None
    """The dashboard's; 0 is one that is free, `None` no dashboard."""
    watch: bool


def _run(live: LiveSwitch, made: list[Controller], services: _Services) -> None:
    """The switch with its controllers and services, until a signal ends it."""
    from tidegate.switch import controllers
    from tidegate.view.page import Page

    with ExitStack() as stack:
        told = stack.enter_context(_until_told())
        page = None if services.view_port is None else stack.enter_context(Page(services.view_port))
        stack.enter_context(live)
        if services.metrics is not None:
            from tidegate.switch import metrics

            served = metrics.serve(live, services.metrics, services.insecure)
            stack.callback(served.stop)
            log.info("metrics at http://%s/metrics", served.address)
        if made:
            stack.enter_context(controllers.Controlled(live, made, lambda: bool(told.end)))
        if services.remote is not None:
            told.reset = _serve_remote(live, services.remote, services.insecure, stack)
        for port, state in zip(live.ports, live.statistics()["ports"], strict=True):
            if state["notice"] is not None:
                log.warning("%s", state["notice"])
            log.info("port %s: %s, %s, MTU %s", port.number, port.interface, state["kind"], state["mtu"])
        stack.enter_context(_settled())
        log.info("running; Ctrl-C ends it")
        _ready()
        _watch(live, page, services.watch, told, stack)


def _serve_remote(live: LiveSwitch, remote: _Remote, insecure: bool, stack: ExitStack) -> Callable[[], None]:
    """Serve P4Runtime for as long as the stack lasts. Gives what resets elections."""
    from tidegate.switch import remote as serving

    # Seconds after which a busy thread lets another one have the interpreter: calls that are short wait for less.
    sys.setswitchinterval(0.001)

    secret = serving.tls(*remote.certificates)
    granted = serving.limits(remote.limits)
    server = stack.enter_context(
        serving.served(
            live, remote.address, remote.device_id, secret, granted, insecure, remote.program_limits
        )
    )
    log.info("P4Runtime on %s, device %s", server.address, remote.device_id)
    warning = serving.warning(server.address, secret)
    if warning is not None:
        log.warning("%s", warning)
    return server.reset_elections


def _watch(live: LiveSwitch, page: Page | None, in_terminal: bool, told: _Told, stack: ExitStack) -> None:
    """Wait until the switch is to end, and show it meanwhile."""
    beats: list[Callable[[], None]] = []
    every_s = LOOK_S
    if page is not None:
        from tidegate.view import switching

        log.info("dashboard at %s", page.url)
        looking = switching.Switching(live, live.name)
        stack.callback(looking.close)
        beats.append(partial(looking.update, page))
        every_s = switching.PERIOD_S
    if in_terminal:
        from rich.console import Console

        from tidegate.switch.watch import View

        terminal = stack.enter_context(View(live, Console()))
        beats.append(_seldom(terminal.update))

    def beat() -> None:
        for one in beats:
            one()

    if beats:
        live.wait(told.ended, beat, every_s)
    else:
        live.wait(told.ended)


def _seldom(beat: Callable[[], None]) -> Callable[[], None]:
    """Calls `beat` once in `LOOK_S` at most."""
    last = 0.0

    def seldom() -> None:
        nonlocal last
        if time.monotonic() - last >= LOOK_S * 0.9:
            last = time.monotonic()
            beat()

    return seldom


@contextmanager
def _settled() -> Iterator[None]:
    """Leaves what there is out of garbage collections. A full one stops all threads of Python, 30 ms for what is imported alone."""
    gc.collect()
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()


def _ready() -> None:
    """Tell systemd (`Type=notify`) that the switch runs; see sd_notify(3)."""
    address = os.environ.get("NOTIFY_SOCKET")
    if address:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as one:
            one.sendto(b"READY=1", f"\0{address[1:]}" if address.startswith("@") else address)


@dataclass
class _Told:
    """What signals have said."""

    end: bool = False
    anew: bool = False
    reset: Callable[[], None] = lambda: None

    def ended(self) -> bool:
        """Whether it is to end. What else was said is done first, where no lock is held."""
        if self.anew:
            self.anew = False
            self.reset()
            log.info("P4Runtime elections are reset")
        return self.end


@contextmanager
def _until_told() -> Iterator[_Told]:
    """Note Ctrl-C and SIGTERM, which end the switch, and SIGUSR1, which resets elections."""
    told = _Told()

    def end(number: int, frame: FrameType | None) -> None:
        told.end = True

    def reset(number: int, frame: FrameType | None) -> None:
        told.anew = True

    handlers = ((signal.SIGINT, end), (signal.SIGTERM, end), (signal.SIGUSR1, reset))
    before = {number: signal.signal(number, handler) for number, handler in handlers}
    try:
        yield told
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
