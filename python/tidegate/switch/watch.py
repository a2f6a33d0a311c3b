"""A running switch in the terminal."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table

from tidegate import units
from tidegate._core import TidegateError
from tidegate.control.quantities import Family, families
from tidegate.switch.running import LiveSwitch

Row = tuple[str, ...]


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise TidegateError(f"--watch: standard output does not take it: {error.strerror}") from None


class View:
    """Shows what a switch does, while the `with` block runs; `update` looks again."""

    def __init__(self, switch: LiveSwitch, console: Console) -> None:
        self._switch = switch
        self._live = Live(console=console, auto_refresh=False, transient=True)
        self._last: dict[tuple[str, Row], float] = {}
        self._at = time.monotonic()

    def __enter__(self) -> View:
        with _writing():
            self._live.__enter__()
        self.update()
        return self

    def __exit__(self, *of: Any) -> None:
        # Who cannot be shown anything has been told, or is gone.
        with suppress(OSError):
            self._live.__exit__(*of)

    def update(self) -> None:
        """Look again. Raises `TidegateError` if it cannot be shown."""
        content = self.content()
        with _writing():
            self._live.update(content, refresh=True)

    def content(self) -> Group:
        """What is counted, with rates since the last time."""
        found = {family.name: family for family in families(self._switch.subject)}
        now = time.monotonic()
        spent, self._at = max(now - self._at, 1e-3), now
        values = {(name, labels): value for name, family in found.items() for labels, value in family.rows}

        def rate(name: str, labels: Row) -> float:
            value = values.get((name, labels), 0.0)
            return (value - self._last.get((name, labels), value)) / spent

        parts = [self._ports(values, rate), self._queues(values), *self._rest(found)]
        self._last = values
        return Group(*parts)

    def _ports(self, values: dict[tuple[str, Row], float], rate: Any) -> Table:
        table = _table("port", "interface", "by", "in pkt/s", "in bit/s", "out pkt/s", "out bit/s", "dropped")
        for name, labels in values:
            if name != "port_info":
                continue
            of_port = labels[:2]
            row: list[str] = []
            for way in ("received", "sent"):
                row.append(f"{rate('port_packets', (*of_port, way)):,.0f}")
                row.append(units.show_rate(1000 * round(rate("port_bytes", (*of_port, way)) / 125)))
            lost = sum(v for (n, at), v in values.items() if n == "port_dropped" and at[:2] == of_port)
            table.add_row(*labels, *row, f"{lost:,.0f}")
        return table

    def _queues(self, values: dict[tuple[str, Row], float]) -> Table:
        table = _table("port", "queue", "taken", "waiting", "bytes waiting", "dropped", "dropped in egress")
        for name, labels in values:
            if name == "queue_packets":
                shown = [
                    values[key, labels]
                    for key in ("queue_packets", "queue_depth_packets", "queue_depth_bytes")
                ]
                shown += [values["queue_dropped", (*labels, why)] for why in ("queue full", "egress")]
                table.add_row(*labels, *(f"{value:,.0f}" for value in shown))
        return table

    def _rest(self, found: dict[str, Family]) -> list[Table]:
        tables = []
        for name, title in (
            ("packets", "packets"),
            ("dropped", "dropped"),
            ("table_entries", "table entries"),
            ("register", "registers"),
            ("counter_packets", "counters (packets)"),
            ("note", "notes"),
            ("lateness_seconds", "lateness (us)"),
        ):
            rows = found[name].rows
            if not rows:
                continue
            table = _table(title, "value")
            scale = 1e6 if name == "lateness_seconds" else 1
            for labels, value in rows[:12]:
                table.add_row(" ".join(labels), f"{value * scale:,.0f}")
            tables.append(table)
        return tables


def _table(*columns: str) -> Table:
    table = Table(box=None, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index == 0 else "right")
    return table
