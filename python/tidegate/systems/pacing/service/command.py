"""`tidegate agent`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tidegate import logs
from tidegate.options import Json, LogFormat

agent = typer.Typer(
    name="agent",
    invoke_without_command=True,
    rich_markup_mode=None,
    help="Pace this host's TCP flows at the rates that pacing switches tell.",
)


@agent.callback()
def run(
    context: typer.Context,
    config: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Settings (TOML); command-line options take precedence.", show_default=False
        ),
    ] = None,
    interfaces: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            "-i",
            metavar="IFACE",
            help="Interface that the flows use; several times.",
            show_default=False,
        ),
    ] = None,
    cgroups: Annotated[
        list[str] | None,
        typer.Option("--cgroup", metavar="DIR", help="Flows of this cgroup (version 2).", show_default="all"),
    ] = None,
    ports: Annotated[
        list[int] | None,
        typer.Option(
            "--port",
            metavar="N",
            min=1,
            max=65_535,
            help="Flows to this port, or accepted at it.",
            show_default="all",
        ),
    ] = None,
    destinations: Annotated[
        list[str] | None,
        typer.Option(
            "--destination", metavar="PREFIX", help="Flows to this IPv4 or IPv6 prefix.", show_default="all"
        ),
    ] = None,
    direction: Annotated[
        str | None,
        typer.Option(
            metavar="opened|accepted|both", help="Flows that this host opened.", show_default="opened"
        ),
    ] = None,
    existing: Annotated[
        bool | None,
        typer.Option("--existing/--new-only", help="Flows that exist already, too.", show_default="existing"),
    ] = None,
    lend: Annotated[
        bool | None,
        typer.Option(
            "--lend/--no-lend",
            help="Give others what a flow's application does not take.",
            show_default="lend",
        ),
    ] = None,
    weight: Annotated[
        int | None, typer.Option(metavar="N", help="Weight of each flow.", show_default="1")
    ] = None,
    pace_by: Annotated[
        str | None,
        typer.Option(
            metavar="socket|fq|htb",
            help="What holds flows back: TCP, or a qdisc of the interface.",
            show_default="socket",
        ),
    ] = None,
    least_rate: Annotated[
        str | None,
        typer.Option(metavar="RATE", help="Never less than this.", show_default="64 kbit/s"),
    ] = None,
    most_rate: Annotated[
        str | None, typer.Option(metavar="RATE", help="Never more than this.", show_default="34 Gbit/s")
    ] = None,
    changes_per_second: Annotated[
        int | None, typer.Option(metavar="N", help="Believe so many changes of a flow.", show_default="100")
    ] = None,
    refresh: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Ask switches that are quiet for so long.", show_default="10 s"),
    ] = None,
    timeout: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Lift limits without an answer for so long.", show_default="30 s"),
    ] = None,
    key_file: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Keys that options are checked with.", show_default=False),
    ] = None,
    most_flows: Annotated[
        int | None, typer.Option(metavar="N", help="Room for so many flows.", show_default="65536")
    ] = None,
    metrics_addr: Annotated[
        str | None, typer.Option(metavar="HOST:PORT", help="Expose Prometheus metrics.", show_default=False)
    ] = None,
    insecure: Annotated[
        bool | None,
        typer.Option("--insecure", help="Expose metrics at an address that other machines reach."),
    ] = None,
    log_format: Annotated[
        LogFormat | None,
        typer.Option(metavar="text|json", help="Form of the lines on standard error.", show_default="text"),
    ] = None,
) -> None:
    """Pace this host's TCP flows at the rates that pacing switches tell, until Ctrl-C or SIGTERM.

    Needs CAP_BPF, CAP_PERFMON, CAP_NET_ADMIN and CAP_NET_RAW. SIGHUP reads the files again.
    """
    if context.invoked_subcommand is not None:
        return
    from tidegate.systems.pacing.service import settings
    from tidegate.systems.pacing.service.service import Service, log

    given: dict[str, Any] = {
        "direction": direction,
        "existing": existing,
        "lend": lend,
        "weight": weight,
        "pace_by": pace_by,
        "least_rate": least_rate,
        "most_rate": most_rate,
        "changes_per_second": changes_per_second,
        "refresh": refresh,
        "timeout": timeout,
        "key_file": key_file,
        "most_flows": most_flows,
        "metrics_addr": metrics_addr,
        "insecure": insecure,
        "log_format": None if log_format is None else log_format.value,
        "interfaces": None if interfaces is None else tuple(interfaces),
        "cgroups": None if cgroups is None else tuple(cgroups),
        "ports": None if ports is None else tuple(ports),
        "destinations": None if destinations is None else tuple(destinations),
    }
    given = {name: value for name, value in given.items() if value is not None}

    def read() -> settings.Settings:
        return settings.read(config, given)

    if config is not None:
        logs.of_file(settings.form_of_logs(config))
    now = read()
    logs.serve(log.name, as_json=now.log_format == LogFormat.JSON)
    Service(now, read).run()


@agent.command()
def status(as_json: Json = False) -> None:
    """Show the flows that the agent of this network namespace paces, their rates, and why."""
    from rich.console import Console
    from rich.table import Table

    from tidegate.systems.pacing.service.service import ask

    said = ask()
    if as_json:
        from tidegate.cli.output import print_json

        print_json(said)
        return
    table = Table(box=None, pad_edge=False)
    for name in ("flow", "Mbit/s of payload", "weight", "heard s ago", "why"):
        table.add_column(name, justify="left" if name in ("flow", "why") else "right", no_wrap=True)
    for flow in said["flows"]:
        rate, heard = flow["payload_mbps"], flow["heard_s"]
        table.add_row(
            f"{flow['local']} -> {flow['remote']}",
            "-" if rate is None else f"{rate:.3f}",
            str(flow["weight"]),
            "-" if heard is None else f"{heard:.1f}",
            flow["why"],
        )
    Console(highlight=False, soft_wrap=True, markup=False, width=200).print(table)
    told = {name: count for name, count in said["counts"].items() if count}
    print(
        ", ".join(f"{name.replace('_', ' ')} {count}" for name, count in told.items())
        or "nothing counted yet"
    )
    for kind in ("interface", "cgroup"):
        for name in said[f"lost_{kind}s"]:
            print(f"{kind} {name} is gone")


@agent.command()
def unit() -> None:
    """Print a unit for systemd: tidegate agent unit > /etc/systemd/system/tidegate-agent.service."""
    from tidegate.cli.unit import Service
    from tidegate.cli.unit import unit as print_unit

    print_unit(Service.AGENT)
