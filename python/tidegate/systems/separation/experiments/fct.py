"""Fig. 5: completion times of thousands of long flows through one link, by the router's queues.

The paper takes starts, sizes (150 MB to 2 GB) and round-trip times (1 to 224 ms) from a trace and gives neither distributions nor the
buffer of the one queue. 6000 such flows are at least 0.9 TB, and 1 Gbit/s carries 0.11 TB in the trace's 15 minutes: nearly all of them
run at once. So both ends are run here, all at once and Poisson arrivals at a load, with log-uniform sizes and round-trip times,
and the one queue's buffer is swept. Sizes are scaled with the rate: a link of 100 Mbit/s has a tenth of them. Starts that are uniform in
the trace's time, equal sizes, and a list of flows from a capture are there too (`long_flows`).

A fair comparison has every contender with the same link and flows. While the link is busy only the order of service changes the mean
completion time; so beside it stand the part of the time with flows in which the link is idle, and what an ideal processor-sharing link would give.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from tidegate import units
from tidegate.claims import Claim, Percents, Row, Unit, between, medians, most
from tidegate.control import Controller, SwitchApi
from tidegate.experiments import AtLeast, Case, Number, OneOf, Plan, Run, experiment
from tidegate.network import FiveTuple, Link, Network, Node, Switch
from tidegate.plots import all_rows, of_first_seed
from tidegate.results import Result
from tidegate.systems.separation.buffers import FLOOR_PACKETS, stanford
from tidegate.systems.separation.claims import judged
from tidegate.systems.separation.classes import Classifier
from tidegate.systems.separation.controller import SeparationController
from tidegate.systems.separation.experiments.long_flows import (
    ARRIVALS,
    MEAN_MB,
    ONCE,
    SIZES,
    TRACE,
    Workload,
    listed,
    processor_sharing,
    workload,
)
from tidegate.systems.separation.experiments.testbed import (
    FRAMING,
    MTU,
    PAYLOAD,
    STEP_S,
    idle_while_waiting,
    jain,
)
from tidegate.systems.separation.measured import sketch_bits
from tidegate.systems.separation.setup import separation

CONTENDERS = {
    "fifo-0.1": "one queue, 0.1 BDP",
    "fifo-1": "one queue, 1 BDP",
    "fifo-10": "one queue, 10 BDP",
    "fifo-stanford": "one queue, Stanford buffer",
    "codel": "one queue, CoDel",
    "fq_codel": "FQ-CoDel",
    "drr": "a queue for each flow (DRR)",
    "hash-4": "4 classes by hash",
    "random-4": "4 classes at random",
    "rtt-2": "2 classes by RTT",
    "rtt-4": "4 classes by RTT",
    "rtt-7": "7 classes by RTT",
    "fit-7": "as many classes by RTT as fit, 7 at most",
    "link-4": "4 classes by RTT, buffers by the link's rate",
    "split-4": "4 classes by RTT, 1 BDP split",
    "equal-4": "4 classes by RTT, as much for each class",
    "eq1-4": "4 classes by RTT, weights of equation 1",
}
"""With the queue for flows that are not known yet, seven classes take the eight queues of the paper's router."""
CLASSED: dict[str, dict[str, Any]] = {
    "rtt": {},
    "fit": {"by_fit": True},
    "hash": {"classify_by": "hash"},
    "random": {},
    "link": {"buffers": "link"},
    "split": {"buffers": "split"},
    "equal": {"weighting": "classes"},
    "eq1": {"weighting": "rtt"},
}
"""Contenders with a controller, by the first part of their names, and how its options differ."""
BY_RTT = ("rtt", "fit", "link", "split", "equal", "eq1")
JUDGED = ("rtt-2", "rtt-4", "rtt-7", "fit-7", "link-4", "split-4")
"""Contenders that claims of ours are about: classes by round-trip time that share by flows."""
PAIRS = 20
"""Of hosts; a flow's round-trip time is its own."""
CONTROLS = ("cubic", "htcp", "reno", "bbr", "bbr3")
LONG_MB = 10.0
"""At 1 Gbit/s."""
WIRE_US = 5
"""Delay of each of the four links between two hosts."""


class Right(Controller):
    """Notes how many of the flows in classes are in the one that their true round-trip times give, and keeps how many are in one.

    The true class is by the controller's breaks (`classes_right`), which stay while they fit, and by breaks of the true round-trip times
    of these flows at the time (`classes_ideal`). A flow without a sample yet is with the newcomers, in no class; one that has ended is
    not counted, and while there is none nothing is noted.
    """

    period = "5 s"

    def __init__(self, of: SeparationController, rtts: dict[FiveTuple, float]) -> None:
        self._of, self.rtts = of, rtts
        self.classified: list[float] = []
        """Of the active flows that the monitor knows, the part that has a class, at each look."""

    def start(self, switch: SwitchApi) -> None:
        """Begin anew."""
        self.classified = []

    def tick(self, now: int, switch: SwitchApi) -> None:
        """Note it."""
        ends, found = self._of.class_ends, self._of.classes_now()
        if self._of.known:
            self.classified.append(len(found) / len(self._of.known))
        if found:
            times = np.array([self.rtts[flow] for flow in found])
            of = np.fromiter(found.values(), np.intp, len(found))
            for quantity, by in (("classes_right", ends), ("classes_ideal", self._ideal_ends(times))):
                switch.note(quantity, int((np.searchsorted(by, times) == of).sum()) / len(found))

    def _ideal_ends(self, times: np.ndarray) -> list[float]:
        anew = Classifier(self._of.classes, self._of.by_fit)
        anew.classify(dict(enumerate(times.tolist())))
        return anew.ends


@dataclass
class Bed:
    """A contender's network."""

    contender: str
    control: str
    flows: int
    rate_mbps: float
    load: float
    end_s: float
    every: int = 1
    sizes: str = "loguniform"
    given: Workload | None = None
    """Flows of a list, in place of those drawn."""
    floor_packets: int = FLOOR_PACKETS
    """The least buffer of a class."""
    right: Right | None = field(default=None, repr=False)

    def workload(self, seed: int) -> Workload:
        """The flows of a seed."""
        if self.given is not None:
            return self.given
        return workload(self.flows, self.rate_mbps, self.load, seed, self.sizes)

    def network(self, seed: int) -> Network:
        """Hosts in pairs, the tapped link, the congested link, and the flows of a seed."""
        flows = self.workload(seed)
        net = Network()
        s1, r1, r2 = (net.router(name) for name in ("s1", "r1", "r2"))
        edge = {"rate": "40 Gbit/s", "delay": f"{WIRE_US} us", "queue": "1000000 packets"}
        before = net.link(s1, r1, **edge)  # type: ignore[arg-type]
        rate_bps = self.rate_mbps * 1e6
        bdp = rate_bps / 8 * flows.mean_rtt_s
        kind, _, part = self.contender.partition("-")
        by_rule = stanford(rate_bps, flows.mean_rtt_s, self._at_once(flows), floor_packets=4)
        size = max(
            by_rule if part == "stanford" else round(bdp * (float(part) if kind == "fifo" else 1)), 4 * MTU
        )
        managed = kind if kind in ("codel", "fq_codel", "drr") else None
        queue = "10240 packets" if kind == "fq_codel" else f"{size} B"
        after = net.link(r1, r2, rate=round(rate_bps), delay=f"{WIRE_US} us", queue=queue, aqm=managed)
        pairs: list[tuple[Node, Node]] = []
        for number in range(PAIRS):
            a, b = net.host(f"a{number}"), net.host(f"b{number}")
            net.link(a, s1, **edge)  # type: ignore[arg-type]
            net.link(b, r2, **edge)  # type: ignore[arg-type]
            pairs.append((a, b))
        net.transfers(
            (
                (round(start * units.PS_PER_S), size, *pairs[number % PAIRS], round(rtt * units.PS_PER_S))
                for number, (start, size, rtt) in enumerate(
                    zip(flows.starts, flows.sizes, flows.rtts, strict=True)
                )
            ),
            congestion_control=self.control,
            receive_buffer_max="200 MB",
        )
        if kind in CLASSED:
            self._separate(net, (r1, before, after), size, flows, seed)
        # Each sample has all flows: as many rows for any number of them.
        net.record(f"{max(STEP_S, self.end_s / 2000 * max(1.0, self.flows / 300))} s", [after])
        return net

    def _at_once(self, flows: Workload) -> int:
        """How many flows there are at once, about: the n of the Stanford rule."""
        if self.load == ONCE:
            return self.flows
        shared = processor_sharing(flows, self.rate_mbps * 1e6 * PAYLOAD / (MTU + FRAMING))
        return max(1, min(self.flows, round(sum(shared) / (max(flows.starts) or 1))))

    def _separate(
        self,
        net: Network,
        place: tuple[Node, Link, Link],
        size: int,
        flows: Workload,
        seed: int,
    ) -> None:
        router, before, after = place
        kind, _, part = self.contender.partition("-")
        classes, options = int(part), dict(CLASSED[kind])
        tuples = [net.five_tuple(flow) for flow in net.flows]
        if kind == "random":
            drawn = np.random.default_rng([seed, self.flows, classes]).integers(0, classes, len(tuples))
            options["classify_by"] = dict(zip(tuples, drawn.tolist(), strict=True))
        bits = (2 * self.flows - 1).bit_length()
        controller = separation(
            net,
            "monitor",
            router,
            before,
            after,
            buffer=f"{size} B",
            sizes={"flow_bits": max(bits, 8), "sketch_bits": sketch_bits(self.flows)},
            classes=classes,
            long_bytes=round(LONG_MB * 1e6 * self.rate_mbps / 1e3),
            period=f"{self.every} s",
            every=self.every,
            floor_packets=self.floor_packets,
            **options,
        )
        if kind in BY_RTT:
            monitor = next(node for node in net.nodes if isinstance(node, Switch))
            on_links_s = 2 * 4 * WIRE_US / 1e6
            rtts = (rtt + on_links_s for rtt in flows.rtts)
            self.right = Right(controller, dict(zip(tuples, rtts, strict=True)))
            net.control(self.right, monitor)

    def row(self, result: Result) -> Row:
        """The run's row."""
        flows = self.workload(result.seed)
        table = result.flows.sort("flow")
        # What the run ended before it began has had no time.
        begun = np.array(flows.starts) < result.end_s
        starts, sizes, rtts = (np.array(column)[begun] for column in (flows.starts, flows.sizes, flows.rtts))
        finish = table["finish_s"].to_numpy().astype(float)[begun]
        finished = ~np.isnan(finish)
        # A flow that has not finished counts with the time that it has had: the mean is a lower bound then.
        times = np.where(finished, finish, result.end_s) - starts
        short = rtts <= np.median(rtts)
        goodput = self.rate_mbps * 1e6 * PAYLOAD / (MTU + FRAMING)
        ideal = np.array(processor_sharing(flows, goodput))[begun]
        # Sizes are log-uniform: the middle third by size has flows of like sizes in both halves.
        rates = sizes * 8 / times / 1e6
        queue = result.queues.filter(pl.col("queue") == "r1 -> r2")
        # Beside each of a router's queues stand its own bytes.
        sent = int(queue["bytes"].sum())
        last = float(np.nanmax(np.where(finished, finish, result.end_s)))
        busy_s = sent * 8 / (self.rate_mbps * 1e6)
        work_s = _work_s(starts, starts + times)
        waits = queue.filter(pl.col("packets") > 0)
        classified = [] if self.right is None else self.right.classified
        return {
            "contender": self.contender,
            "control": self.control,
            "load": self.load,
            "flows": self.flows,
            "unfinished": self.flows - int(finished.sum()),
            "fct_s_mean": float(times.mean()),
            "fct_s_p50": float(np.median(times)),
            "fct_s_p95": float(np.percentile(times, 95)),
            "ideal_s_mean": float(ideal.mean()),
            # None: all have the same round-trip time.
            "short_over_long": None if short.all() else float(times[short].mean() / times[~short].mean()),
            "idle_while_flows": float(max(0.0, 1 - busy_s / work_s)),
            # By samples a second apart or so: a link whose queue is empty for a while between two of them counts as well.
            "idle_while_waiting": idle_while_waiting(result, float(starts.min()), last),
            "jain": jain(rates),
            "queue_delay_ms_p99": float(waits["queue_delay_ms_p99"].max() or 0.0),  # type: ignore[arg-type]
            "short_delay_ms_p99": _short_delay(waits, self.contender),
            **{quantity: _mean(result.notes, quantity) for quantity in ("classes_right", "classes_ideal")},
            "classified": float(np.mean(classified)) if classified else None,
            # None: a contender without a queue for flows that are not known.
            "newcomers": _newcomers(queue) if self.contender.partition("-")[0] in CLASSED else None,
            "resent": int(table["retransmits"].sum()) * PAYLOAD / max(int(table["bytes_received"].sum()), 1),
            "last_s": last,
            "times_s": times.round(2).tolist(),
        }


def _mean(notes: pl.DataFrame, quantity: str) -> float | None:
    values = notes.filter(pl.col("quantity") == quantity)["value"].to_numpy()
    return float(values.mean()) if len(values) else None


def _newcomers(queues: pl.DataFrame) -> float:
    """The part of the bytes that went through the queue of flows that are not known."""
    sent = int(queues["bytes"].sum())
    return int(queues.filter(pl.col("number") == 0)["bytes"].sum()) / sent if sent else 0.0


def _short_delay(queues: pl.DataFrame, contender: str) -> float:
    """p99 of the queue that flows with the shortest round-trip times use.

    With classes by hash or at random it is that of the first class, which has flows of any round-trip time.
    """
    number = int(contender.partition("-")[0] in CLASSED)
    found = queues.filter(pl.col("number") == number)["queue_delay_ms_p99"]
    return float(found[0] or 0.0) if len(found) else 0.0


def _work_s(begins: np.ndarray, ends: np.ndarray) -> float:
    """Time in which at least one flow is under way."""
    total, until = 0.0, 0.0
    for begin, end in sorted(zip(begins.tolist(), ends.tolist(), strict=True)):
        total += max(0.0, end - max(begin, until))
        until = max(until, end)
    return total


@experiment(
    "separation.fct",
    (
        "contender",
        "control",
        "load",
        "unfinished",
        "fct_s_mean",
        "fct_s_p95",
        "ideal_s_mean",
        "short_over_long",
        "idle_while_flows",
        "idle_while_waiting",
        "jain",
        "short_delay_ms_p99",
    ),
    quick={
        "flows": 60,
        "contenders": ("fifo-1", "drr", "hash-4", "rtt-4"),
        "arrivals": ("once",),
        "rate_mbps": 50.0,
    },
)
def fct(
    contenders: Annotated[tuple[str, ...], OneOf(CONTENDERS)] = tuple(CONTENDERS),
    controls: Annotated[tuple[str, ...], OneOf(CONTROLS)] = ("cubic",),
    arrivals: Annotated[tuple[str, ...], OneOf(ARRIVALS)] = ("once", "0.8"),
    flows: Number = 300,
    rate_mbps: Annotated[float, AtLeast(10.0)] = 100.0,
    most_times: Annotated[float, AtLeast(0.1)] = 1.5,
    monitor_every: Annotated[int, AtLeast(1, 10)] = 1,
    sizes: Annotated[str, OneOf(SIZES)] = "loguniform",
    flow_list: str = "",
    floor_packets: Annotated[int, AtLeast(1, 10_000)] = FLOOR_PACKETS,
) -> Plan:
    """Completion times of long flows with round-trip times of 1 to 224 ms: queues by RTT, by hash, by flow, and one queue (Fig. 5).

    `flow_list`: a file of `tidegate monitor --parquet`, or CSV with its columns. Number of flows, starts, sizes and round-trip times are its
    then, in place of `flows`, `arrivals` and `sizes`. `floor_packets`: the least buffer of a class; fewer packets are less delay, and more
    timeouts where many flows share a class.

    A smaller run is not the paper's: of 6000 flows at 1 Gbit/s each has 0.17 Mbit/s, of the default's twice and of `--quick`'s five times
    as much. "The full size" in README.md of this system has the error of smaller runs beside the full size.
    """
    given = listed(Path(flow_list)) if flow_list else None
    loads = [ARRIVALS[each] for each in arrivals]
    if given is not None:
        flows, loads = len(given.starts), [given.load(rate_mbps)]
    cases = []
    for load in loads:
        for control in controls:
            for contender in contenders:
                mean = MEAN_MB * 1e3 * rate_mbps
                drained = flows * mean * 8 * (MTU + FRAMING) / PAYLOAD / (rate_mbps * 1e6)
                if given is not None:
                    drained = given.drained_s(rate_mbps)
                # Overload takes as long as the link needs, anything below as long as flows come.
                end_s = float(np.ceil(most_times * drained / min(load or 1.0, 1.0)))
                bed = Bed(
                    contender,
                    control,
                    flows,
                    rate_mbps,
                    load,
                    end_s,
                    monitor_every,
                    sizes,
                    given,
                    floor_packets,
                )
                name = f"{control}-{contender}-{'list' if given is not None else _NAMES.get(load, load)}"
                cases.append(Case(name, bed.network, f"{end_s:g} s", bed.row))
    return Plan(cases, _claims, _draw)


_NAMES = {ONCE: "once", TRACE: "trace"}


def _when(load: float) -> str:
    """A load in words."""
    return {ONCE: "at once", TRACE: "as in the trace"}.get(load, f"{load}")


def _cells(rows: list[Row]) -> list[list[Row]]:
    """Rows of one control and load."""
    keys = sorted({(row["control"], row["load"]) for row in rows})
    return [[row for row in rows if (row["control"], row["load"]) == key] for key in keys]


def _median(rows: list[Row], contender: str, column: str) -> float | None:
    found = [row[column] for row in rows if row["contender"] == contender and row[column] is not None]
    return float(np.median(found)) if found else None


def _named(row: Row) -> str:
    return f"{row['control']}, {_when(row['load'])}, {row['contender']}"


def _claims(rows: list[Row]) -> list[Claim]:
    ratios, jains, random_jains, delays, idles = {}, {}, {}, {}, {}
    for cell in _cells(rows):
        where = f"{cell[0]['control']}, {_when(cell[0]['load'])}"
        one_delay = _median(cell, "fifo-1", "short_delay_ms_p99")
        by_hash, at_random = (_median(cell, name, "jain") for name in ("hash-4", "random-4"))
        for contender in JUDGED:
            if _median(cell, contender, "fct_s_mean") is None:
                continue
            name = f"{where}, {contender}"
            ratio = _median(cell, contender, "short_over_long")
            if ratio is not None:
                ratios[name] = ratio
            idles[name] = _median(cell, contender, "idle_while_flows") or 0.0
            if by_hash:
                jains[name] = (_median(cell, contender, "jain") or 0.0) / by_hash - 1
            if at_random:
                random_jains[name] = (_median(cell, contender, "jain") or 0.0) / at_random - 1
            if one_delay:
                delays[name] = (_median(cell, contender, "short_delay_ms_p99") or 0.0) / one_delay
    claims = []
    if ratios:
        claims.append(
            between(
                "even",
                "ours",
                "Flows of the shorter half of round-trip times finish after 0.9 to 1.1 of the time of the longer half's",
                ratios,
                0.9,
                1.1,
                why="the classes share evenly, and within the class of the longest round-trip times these still differ by much",
            )
        )
    if jains:
        claims.append(
            between(
                "jain",
                "ours",
                "Jain's index of the flows' goodputs is at least that with 4 classes by hash",
                jains,
                low=-0.005,
                why="within a class flows compete as in one queue",
                form=Percents(),
            )
        )
    if random_jains:
        claims.append(
            between(
                "jain-random",
                "ours",
                "Jain's index of the flows' goodputs is at least that with 4 classes at random",
                random_jains,
                low=-0.005,
                why="within a class flows compete as in one queue",
                form=Percents(),
            )
        )
    if delays:
        claims.append(
            between(
                "delay",
                "ours",
                "p99 of the delay in the queue of the shortest round-trip times is at most a fifth of one 1 BDP queue's",
                delays,
                high=0.2,
                why="its buffer has a floor (`floor_packets`), and its rate is a part of the link's",
                form=Unit("times"),
            )
        )
    right = medians(
        [row for row in rows if row["classes_right"] is not None],
        "classes_right",
        _named,
    )
    if right:
        claims.append(
            between(
                "classes",
                "ours",
                "At least 99 % of the flows are in the class that their true round-trip times give",
                right,
                low=0.99,
                why="the first samples of a flow may be too long",
                form=Percents(),
            )
        )
    if idles:
        claims.append(
            between(
                "busy",
                "ours",
                "The link is idle for less than 1 % of the time in which flows are under way",
                idles,
                high=0.01,
                why="flows that are few for a while, after a timeout or at the end, do not fill the link",
                form=Percents(),
            )
        )
    # Runs of before have no such column.
    judgeable = [row for row in rows if row["contender"] in JUDGED]
    waiting = [row for row in judgeable if row.get("idle_while_waiting") is not None]
    if waiting:
        claims.append(
            between(
                "idle",
                "ours",
                "With classes by RTT the link is idle for at most 1 % of the time while packets wait for it",
                most(waiting, "idle_while_waiting", _named),
                high=0.01,
                why="shapers hold the packets of some classes back while others have none",
                form=Percents(),
            )
        )
    return claims + judged(rows, "separation.fct")


def _style(contender: str) -> str:
    kind = contender.partition("-")[0]
    return {"rtt": "-", "fifo": "--"}.get(kind, ":")


def _draw(runs: list[Run]) -> Figure:
    """Distributions of completion times: a row of panels for each control, a column for each load.

    Each distribution is of all flows: where some are not finished, it ends below 1.
    """
    shown = [run for run in of_first_seed(runs) if run.rows]
    rows = all_rows(shown)
    # In the order in which they were given.
    controls, loads, contenders = (
        list(dict.fromkeys(row[name] for row in rows)) for name in ("control", "load", "contender")
    )
    lines: dict[str, Any] = {}
    size = max(len(controls), 1), max(len(loads), 1)
    figure = Figure(figsize=(1.2 + 4.8 * size[1], 1.9 + 2.8 * size[0]), layout="constrained")
    panels = figure.subplots(*size, sharex="col", sharey=True, squeeze=False)
    for run, row in zip(shown, rows, strict=True):
        panel = panels[controls.index(row["control"]), loads.index(row["load"])]
        times = np.sort(run.tables["flows"]["completion_ms"].drop_nulls().to_numpy() / 1e3)
        number = contenders.index(row["contender"])
        (line,) = panel.plot(
            times,
            np.arange(1, len(times) + 1) / row["flows"],
            _style(row["contender"]),
            color=f"C{number % 10}",
            linewidth=1.2 if number < 10 else 2.2,
        )
        lines.setdefault(row["contender"], line)
        mean = row["fct_s_mean"]
        panel.plot(
            mean, np.searchsorted(times, mean) / row["flows"], "o", color=line.get_color(), markersize=4
        )
        when = _when(row["load"]) if row["load"] in _NAMES else f"load {row['load']:g}"
        panel.set_title(
            f"{row['control']}, {when}, {row['flows']} flows; ideal mean {row['ideal_s_mean']:.0f} s",
            fontsize=9,
        )
    for panel in panels.flat:
        panel.grid(alpha=0.25)
    for load, panel in zip(loads, panels[-1], strict=False):
        panel.set_xlabel("completion time (s)")
        if load in _NAMES:
            panel.set_xlim(left=0)
        else:
            # Most flows take seconds, and few take minutes.
            panel.set_xscale("log")
            panel.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
            panel.xaxis.set_major_formatter(ScalarFormatter())
            panel.xaxis.set_minor_formatter(NullFormatter())
    for panel in panels[:, 0]:
        panel.set_ylabel("part of all flows")
    panels[0, 0].set_ylim(0, 1)
    if lines:
        figure.legend(
            lines.values(),
            [CONTENDERS[name] for name in lines],
            loc="outside lower center",
            ncols=2 * size[1],
            fontsize=8,
            title="Dots are means",
            title_fontsize=8,
        )
    return figure
