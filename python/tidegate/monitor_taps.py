"""What `tidegate monitor` has of two taps, one on each side of a router: columns, and a panel of the figure."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate._core import TidegateError

if TYPE_CHECKING:
    from matplotlib.axes import Axes

LOST_AFTER = 2.0
"""Seconds."""
LONGEST = 60.0
"""Seconds that a packet may be said to wait for its copy."""
COLUMNS = {
    "first_tap": "String",
    "queue_delay_samples": "Int64",
    "queue_delay_ms_min": "Float64",
    "queue_delay_ms_p50": "Float64",
    "queue_delay_ms_p95": "Float64",
    "queue_delay_ms_p99": "Float64",
    "queue_delay_ms_max": "Float64",
    "negative_queue_delays": "Int64",
    "lost_at_router": "Int64",
}
"""What a flow has beside `tidegate.monitor.COLUMNS`, with the types of the table (names of Polars)."""
HEADINGS = ("at both", "queue p50", "p95", "p99", "max ms", "lost")

Second = tuple[list[str], int, int, str | None]


def second(
    after: Sequence[str | Path], offset_ms: float, lost_after: float, delays: str | Path | None
) -> Second | None:
    """What the core wants to know of the second tap."""
    if not after:
        if delays is not None:
            raise TidegateError("delays are between two taps; give the second one with --after")
        return None
    if not 0 < lost_after <= LONGEST:
        raise TidegateError(
            f"a packet can be lost after {LONGEST:g} s at most, and not after {lost_after:g} s"
        )
    if not abs(offset_ms) <= 1e12:
        raise TidegateError(f"an offset of {offset_ms:g} ms is more than clocks differ by")
    return (
        [str(one) for one in after],
        round(offset_ms * 1e6),
        round(lost_after * 1e9),
        None if delays is None else str(delays),
    )


def cells(flow: dict[str, Any]) -> list[str]:
    """A flow's cells below `HEADINGS`."""
    delays = [flow[f"queue_delay_ms_{name}"] for name in ("p50", "p95", "p99", "max")]
    lost = flow["lost_at_router"]
    return [
        f"{flow['queue_delay_samples']:,}",
        *("" if delay is None else f"{delay:,.3f}" for delay in delays),
        "" if lost is None else f"{lost:,}",
    ]


def draw(panel: Axes, flows: list[dict[str, Any]]) -> None:
    """Queue delays of flows, a row for each: p50, p95, p99 and the largest; behind it what was lost."""
    names, labelled = ("p50", "p95", "p99", "max"), False
    for row, flow in enumerate(flows):
        values = [flow[f"queue_delay_ms_{name}"] for name in names]
        if values[0] is None:
            continue
        panel.plot([values[0], values[3]], [row, row], color="0.6", linewidth=1)
        for value, marker, name in zip(values, "osD|", names, strict=True):
            panel.plot(value, row, marker, color="tab:orange", markersize=6, label=None if labelled else name)
        labelled = True
        lost = flow["lost_at_router"]
        text = f" {lost:,} lost" if lost else ""
        panel.annotate(text, (values[3], row), xytext=(4, 5), textcoords="offset points", fontsize="x-small")
    panel.set(xlabel="queue delay (ms)")
    panel.grid(alpha=0.3, axis="x")
    panel.margins(x=0.15)
    if labelled:
        panel.legend(fontsize="small")
