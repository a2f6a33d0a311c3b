"""`tidegate doctor`."""

from __future__ import annotations

import sys
from dataclasses import asdict

import typer

from tidegate.cli.output import FAILED, print_json
from tidegate.options import Json

MARKS = {"works": "ok", "missing": "--", "not tried": "??"}


def doctor(as_json: Json = False) -> None:
    """Say what works on this machine, what does not, and how to have it. As root it tries the kernel's features, too."""
    from tidegate.doctor.report import examine, uses

    findings = examine()
    engine = next(one for one in findings if one.name == "P4 engine")
    if as_json:
        print_json(
            {
                "uses": [
                    {"name": use.name, "works": not against, "lacks": [one.name for one in against]}
                    for use, against in uses(findings)
                ],
                "findings": [asdict(one) for one in findings],
            }
        )
    else:
        for use, against in uses(findings):
            lacks = f": {', '.join(f'{one.name} ({one.state})' for one in against)}" if against else ""
            print(f"{'--' if against else 'ok'} {use.name}{lacks}")
        group = ""
        for one in findings:
            if one.group != group:
                group = one.group
                print(f"\n{group}")
            print(f"  {MARKS[one.state]} {one.name}{f': {one.said}' if one.said else ''}")
            if one.cure:
                print(f"       {one.cure}")
    sys.stdout.flush()
    if not engine.works:
        raise typer.Exit(FAILED)
