"""A slice of `separation.fct` at its full size: `python benches/fct.py [SECONDS]` prints CPU time for each simulated second.

6000 flows through 1 Gbit/s, four classes by round-trip time, the monitor on each flow in one of eight seconds, as the full run has them. It
takes seven hours of simulated time; a slice shows what one of its seconds costs once all flows have started. So that the classes are there
within it, flows count as long from 0.3 MB on. The digest is of all tables and notes: two versions that are to be the same show the same.
"""

import hashlib
import sys
import time

from tidegate.systems.separation.experiments import fct
from tidegate.systems.separation.experiments.long_flows import ONCE

SECONDS = 40
"""By default."""
WARM_S = 10
"""Slow start, in which all flows lose most."""


def main() -> None:
    """Run, and print."""
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    fct.LONG_MB = 0.3
    # The full run's end, for the period of its samples.
    net = fct.Bed("rtt-4", "cubic", 6000, 1000.0, ONCE, 25_092.0, every=8).network(seed=1)
    reached: list[tuple[int, float]] = []
    result = net.run(
        f"{seconds} s", seed=1, progress=lambda done, _: reached.append((done, time.process_time()))
    )
    warm = [(done, cpu) for done, cpu in reached if done >= WARM_S * 10**12]
    digest = hashlib.sha256()
    for table in (result.flows, result.queues, result.queue_samples, result.notes):
        for column in table.columns:
            digest.update(repr(table[column].to_list()).encode())
    if len(warm) > 1:
        (begin, before), (end, after) = warm[0], warm[-1]
        print(f"{1e3 * (after - before) / ((end - begin) / 1e12):.1f} ms of CPU time for a simulated second")
    received = int(result.flows["bytes_received"].sum())
    print(f"{received / 1e9:.2f} GB received, {int(result.flows['retransmits'].sum())} segments sent again")
    print(f"digest {digest.hexdigest()[:16]}")


if __name__ == "__main__":
    main()
