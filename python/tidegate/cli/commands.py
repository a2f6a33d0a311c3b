"""All commands, in the order in which `--help` lists them."""

from __future__ import annotations

from typing import Annotated

import typer

from tidegate import _core
from tidegate.cli.compare import compare
from tidegate.cli.completion import complete, completion
from tidegate.cli.demo import demo
from tidegate.cli.doctor import doctor
from tidegate.cli.experiments import claims, clean, list_experiments, plot, run
from tidegate.cli.grafana import grafana
from tidegate.cli.lab import lab
from tidegate.cli.man import man
from tidegate.cli.new import new
from tidegate.cli.programs import check, replay, stf
from tidegate.cli.reports import report, view
from tidegate.cli.searching import sweep, tune
from tidegate.cli.unit import unit
from tidegate.monitor import monitor
from tidegate.switch.command import switch
from tidegate.systems.pacing.service.command import agent

app = typer.Typer(
    name="tidegate",
    help="P4 data planes that help TCP: compile, test and run P4_16 programs, simulate networks, run experiments.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(value: bool) -> None:
    if value:
        print(f"tidegate {_core.__version__}")
        raise typer.Exit


@app.callback()
def _main(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    pass


app.command()(demo)
app.command()(check)
app.command()(stf)
app.command()(replay)
app.command()(monitor)
app.command()(switch)
app.command()(lab)
app.add_typer(agent)
app.command(name="list")(list_experiments)
app.command()(run)
app.command()(sweep)
app.command()(tune)
app.command()(clean)
app.command()(plot)
app.command()(report)
app.command()(view)
app.command()(claims)
app.command()(compare)
app.add_typer(new)
app.command()(doctor)
app.command()(unit)
app.command()(grafana)
app.command()(completion)
app.command()(man)
app.command(hidden=True)(complete)
