"""What a sweep of 200 runs costs on two workers, beside the runs alone: in processor time, and in how long workers stand idle.

    python benches/sweep.py [--runs 200] [--duration 20] [--cluster local]

Ideal is the time of the runs, one after the other in one process, halved. `cpu` is the processor time of the whole sweep over that of the
same runs alone; `busy` is the part of their time that the workers run something, from the first task to the last. The sweep takes
cpu / busy of the ideal time. `busy` holds with other load on the machine; `cpu` needs a quiet one, as processes that share caches take more
processor time for the same work. `halves` is how much more: the same runs, half of them in each of two processes at once and nothing
beside them, over the ideal time; and the tasks' time over that of those halves is what the cluster itself costs.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

from tidegate.experiments import find, sweep
from tidegate.experiments.executors import Here
from tidegate.experiments.executors.cluster import Cluster, opened
from tidegate.experiments.jobs import Ended, Executor, Jobs, Tell
from tidegate.experiments.landscape import Landscape

NAME = "meter.rates"


def processor_s() -> float:
    """Processor time of this process and of its children that have ended."""
    own, others = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return own.ru_utime + own.ru_stime + others.ru_utime + others.ru_stime


class Watched:
    """Runs on a cluster, and what its workers were doing meanwhile."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.busy_s = self.span_s = 0.0

    def run(self, jobs: Jobs, tell: Tell, ended: Ended) -> None:
        """Run all, and note when tasks began and ended."""
        from distributed import get_task_stream

        with get_task_stream(client=self._cluster.client) as stream:
            self._cluster.run(jobs, tell, ended)
        found = [one for task in stream.data for one in task["startstops"] if one["action"] == "compute"]
        self.busy_s = sum(one["stop"] - one["start"] for one in found)
        self.span_s = max(one["stop"] for one in found) - min(one["start"] for one in found)


def timed(place: Path, seeds: list[int], duration_s: int, executor: Executor) -> tuple[float, float]:
    """Wall-clock and processor time of a sweep of 20 runs for each seed."""
    one = find(NAME)
    over = sweep.read_over(one, ["rates_mbps=20,40,60,80,100", "base_rtts_ms=2,5,10,20"])
    given: dict[str, Any] = {**one.parameters(), "schemes": ("plain",), "duration_s": duration_s}
    begun, before = time.perf_counter(), processor_s()
    landscape = Landscape(tuple(over), column="goodput_mbps")
    sweep.run(NAME, given, over, landscape=landscape, seeds=seeds, out=place, executor=executor)
    return time.perf_counter() - begun, processor_s() - before


def halved(place: Path, seeds: list[int], duration_s: int) -> float:
    """Wall-clock time of the runs in two processes at once: of the slower one."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(2, spawn, initializer=find, initargs=(NAME,)) as pool:
        both = [
            pool.submit(timed, place / f"{number}", seeds[number::2], duration_s, Here())
            for number in range(2)
        ]
        return max(one.result()[0] for one in both)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--duration", type=int, default=20)
    parser.add_argument("--cluster", default="local")
    asked = parser.parse_args()
    seeds = list(range(1, asked.runs // 20 + 1))
    with tempfile.TemporaryDirectory() as folder:
        _, alone_s = timed(Path(folder) / "alone", seeds, asked.duration, Here())
        halves_s = halved(Path(folder), seeds, asked.duration)
        begun, before = time.perf_counter(), processor_s()
        with opened(asked.cluster, ["n_workers=2"], 2, print) as cluster:
            started, watched = time.perf_counter() - begun, Watched(cluster)
            wall_s, _ = timed(Path(folder) / "spread", seeds, asked.duration, watched)
        cpu = (processor_s() - before) / alone_s
        busy = watched.busy_s / (2 * watched.span_s)
        print(
            f"{20 * len(seeds)} runs, {alone_s:.1f} s of a processor alone; halves {halves_s / (alone_s / 2):.3f}; "
            f"on two workers: cpu {cpu:.3f}, busy {busy:.3f}, cpu / busy {cpu / busy:.3f}, "
            f"tasks over halves {watched.span_s / halves_s:.3f}; "
            f"start {started:.1f} s, sweep {wall_s:.1f} s, tasks {watched.span_s:.1f} s"
        )


if __name__ == "__main__":
    main()
