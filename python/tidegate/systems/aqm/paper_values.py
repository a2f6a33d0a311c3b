"""What the claims of the paper (gombos2022) are judged by: values of a run's rows, by place. Used by `claims.py` and its judges."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tidegate.claims import Row, Unit, medians
from tidegate.papers import Finding, Parameters, need
from tidegate.systems.aqm.experiments.measuring import WHOLE

TARGET_MS = 20.0
SECONDS = 120


def demand_time(parameters: Parameters) -> None:
    """Refuse runs shorter than the paper's."""
    name = "phase_s" if "phase_s" in parameters else "duration_s"
    what = "phases" if name == "phase_s" else "runs"
    need(parameters[name] >= SECONDS, f"{what} of {parameters[name]} s; the paper's are of {SECONDS} s")


def values(rows: Iterable[Row], column: str, **wanted: object) -> dict[str, float]:
    """Medians over the seeds of a column, by place, of the rows of whole runs in which columns have these values (or one of these).

    A row in which the column is `None` has nothing to say. Two AQMs are two places, so `way` names one, or stands before the place.
    """
    one_way = isinstance(wanted.get("way"), str)

    def one_of(row: Row) -> bool:
        return row["window"] == WHOLE and all(
            row.get(name) in (want if isinstance(want, tuple) else (want,)) for name, want in wanted.items()
        )

    def named(row: Row) -> str:
        return place(row) if one_way else f"{row['way']}, {place(row)}"

    found = medians([row for row in rows if one_of(row) and row.get(column) is not None], column, named)
    need(found, "the run has no " + ", ".join(f"{name} {want}" for name, want in wanted.items()))
    return found


def place(row: Row) -> str:
    """`120 Mbit/s, 10 ms, 1-1`."""
    return f"{row['capacity_mbps']} Mbit/s, {row['base_rtt_ms']:g} ms, {row['classic']}-{row['l4s']}"


def ratios(of: dict[str, float], to: dict[str, float]) -> dict[str, float]:
    """One over the other, at the places that both have."""
    both = {at: value / to[at] for at, value in of.items() if to.get(at)}
    need(both, "the run has no place with both")
    return both


def show(found: dict[str, float], unit: str = "") -> str:
    """Their range."""
    return Unit(unit).range(list(found.values()))


def whole(judge: Callable[[list[Row]], Finding]) -> Callable[[list[Row], Parameters], Finding]:
    """A judge of a run of the paper's own time."""

    def judged(rows: list[Row], parameters: Parameters) -> Finding:
        demand_time(parameters)
        return judge(rows)

    return judged


RAMP_S = 10.0
"""From here on a flow's ramp is called slow; the paper has no number."""


def ramp_times(rows: list[Row], rtts: tuple[float, ...], **wanted: object) -> dict[str, dict[str, float]]:
    """Time to 80 % of a fair share in s, by congestion control and place."""
    return {
        control: values(rows, "ramp_s", capacity_mbps=1000, base_rtt_ms=rtts, control=control, **wanted)
        for control in ("cubic", "prague")
    }


def by_control(ramps: dict[str, dict[str, float]]) -> str:
    """Such times as text."""
    return f"CUBIC {show(ramps['cubic'])}, Prague {show(ramps['prague'], 's')}"


def controlled(*ways: str) -> Callable[[list[Row]], Finding]:
    """A judge of whether the delays of the classic queue are controlled, behind each of these AQMs."""

    def judge(rows: list[Row]) -> Finding:
        delays = {way: values(rows, "delay_ms_p99", control="cubic", way=way) for way in ways}
        held = all(delay <= 2 * TARGET_MS for own in delays.values() for delay in own.values())
        text = ", ".join(f"{way} {show(own, 'ms')}" for way, own in delays.items())
        return Finding(held, f"p99 {text}; the bound of {2 * TARGET_MS:g} ms is ours")

    return judge
