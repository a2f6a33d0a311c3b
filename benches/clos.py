"""Time of one core for 100 ms of the tree of `stamping.bits`: 192 hosts, and P4 in all of its 13 switches."""

import time

from tidegate.systems.stamping.experiments.bits import Tree


def measure(*, sender_stamps: bool) -> tuple[float, int]:
    """Seconds of one core, and packets over links."""
    network = Tree(8, "equal", 200, sender_stamps, 192, 100, 20.0).network(1)
    begin = time.process_time()
    result = network.run("100 ms", seed=1, progress=False)
    return time.process_time() - begin, result.hops


if __name__ == "__main__":
    for sender_stamps in (False, True):
        seconds, hops = measure(sender_stamps=sender_stamps)
        what = "switches and senders stamp" if sender_stamps else "switches stamp"
        print(f"{what}: {seconds:.1f} s, {hops} packets over links, {seconds / hops * 1e9:.0f} ns each")
