"""Rounds of separation's controller with 6000 flows, and what a router takes for their plan: `python benches/rounds.py`.

The monitor's registers are those of the simulator's switch; all flows are known, and a tenth of them has another round-trip time in each
round. Beside a router that only keeps its plan stands a Linux router, in a namespace of its own: as root.
"""

import os
import subprocess
from statistics import median

from tidegate.hosts.linux_router import LinuxRouter
from tidegate.systems.separation.routers import Router
from tidegate.systems.separation.test_rounds import Kept, rounds

FLOWS, ROUNDS = 6000, 12
NAMESPACE = f"tidegate-rounds-{os.getpid()}"


def told(name: str, router: Router) -> None:
    """Run with a router, and print."""
    found = rounds(router, FLOWS, ROUNDS, moved=0.1)
    commits = [commit for _, commit in found.took if commit is not None]
    times = [of for of, _ in found.took]
    print(
        f"{name}: {FLOWS} flows, {ROUNDS} rounds of {1e3 * median(times):.0f} ms (most {1e3 * max(times):.0f} ms); "
        f"commit of the first plan {1e3 * commits[0]:.1f} ms, of later ones {1e3 * median(commits[1:]):.1f} ms "
        f"(most {1e3 * max(commits[1:]):.1f} ms)"
    )


if __name__ == "__main__":
    told("plan only", Kept())
    if os.geteuid() == 0:
        subprocess.run(["ip", "netns", "add", NAMESPACE], check=True)
        try:
            link = ["link", "add", "dev", "out", "type", "veth", "peer", "name", "far"]
            for words in (link, ["link", "set", "dev", "out", "up"]):
                subprocess.run(["ip", "-n", NAMESPACE, *words], check=True)
            with LinuxRouter("out", "1 Gbit/s", namespace=f"/run/netns/{NAMESPACE}") as router:
                told(f"Linux router, {router.classifier}", router)
        finally:
            subprocess.run(["ip", "netns", "del", NAMESPACE], check=True)
    else:
        print("Linux router: needs root")
