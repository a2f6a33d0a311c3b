"""The dumbbell of `reference.dumbbell` in Tidegate and in ns-3, in turns: time of one core, goodput and mean queue of both.

    .venv/bin/python benches/ns3.py [--flows 1,10,50] [--seconds 10] [--rounds 3]

It needs Debian's `libns3-dev` and a C++ compiler, and builds `benches/ns3/dumbbell.cc`, both with optimisation.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import statistics
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).with_name("ns3") / "dumbbell.cc"
MODULES = ("applications", "internet", "point-to-point", "traffic-control", "network", "stats", "core")
WARM_UP_S = 2


def built(folder: Path) -> Path:
    """The program, and nothing else."""
    program = folder / "dumbbell"
    libraries = [f"-lns3-{module}" for module in MODULES]
    command = ["c++", "-std=c++17", "-O2", str(SOURCE), "-o", str(program), *libraries]
    try:
        subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True)
    except FileNotFoundError:
        sys.exit("there is no C++ compiler here: apt-get install g++")
    except subprocess.CalledProcessError as error:
        sys.exit(f"{error.stderr}\nns-3 is missing or has another form: apt-get install libns3-dev")
    return program


def of_ns3(program: Path, flows: int, seconds: int) -> dict[str, float]:
    """What one run of ns-3 gives."""
    command = [str(program), f"--flows={flows}", f"--seconds={seconds}", f"--warmUp={WARM_UP_S}"]
    found: dict[str, float] = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True).stdout
    )
    return found


def of_tidegate(flows: int, seconds: int) -> dict[str, float]:
    """What one run of Tidegate gives; in a process of its own."""
    import polars as pl

    from tidegate.systems.reference.experiments.dumbbell import BOTTLENECK, dumbbell_network

    network = dumbbell_network(flows, "cubic", "1667 packets", "passive", 0)
    began = time.process_time()
    result = network.run(f"{seconds} s", seed=1, progress=False)
    cpu_s = time.process_time() - began
    queue = result.queues.filter(pl.col("queue") == BOTTLENECK).row(0, named=True)
    samples = result.queue_samples.filter(pl.col("time_s") >= WARM_UP_S, pl.col("queue") == BOTTLENECK)
    return {
        "goodput_mbps": float(result.goodput_mbps(WARM_UP_S)["goodput_mbps"].sum()),
        "queue_delay_ms_mean": float(samples["queue_delay_ms"].to_numpy().mean()),
        "packets": queue["packets"],
        "cpu_s": cpu_s,
    }


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description="Tidegate beside ns-3.")
    parser.add_argument("--flows", default="1,10,50")
    parser.add_argument("--seconds", type=int, default=10)
    parser.add_argument("--rounds", type=int, default=3)
    given = parser.parse_args()
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        program = built(Path(folder))
        for flows in map(int, given.flows.split(",")):
            turns: list[tuple[dict[str, Any], dict[str, Any]]] = []
            for _ in range(given.rounds):
                with ProcessPoolExecutor(1, spawn) as pool:
                    ours = pool.submit(of_tidegate, flows, given.seconds).result()
                turns.append((ours, of_ns3(program, flows, given.seconds)))
            for name, number in (("Tidegate", 0), ("ns-3", 1)):
                one = turns[0][number]
                each = statistics.median(turn[number]["cpu_s"] / turn[number]["packets"] for turn in turns)
                print(
                    f"N={flows:<3} {name:<9} {one['goodput_mbps']:7.1f} Mbit/s, mean queue {one['queue_delay_ms_mean']:5.2f} ms, "
                    f"{one['packets']:.0f} packets through the bottleneck, {each * 1e9:6.0f} ns of a core for each"
                )
            ratios = [
                ours["cpu_s"] / ours["packets"] / theirs["cpu_s"] * theirs["packets"]
                for ours, theirs in turns
            ]
            print(
                f"N={flows:<3} Tidegate / ns-3, time of a core for a packet: {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})"
            )


if __name__ == "__main__":
    main()
