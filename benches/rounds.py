"""Rounds of separation's controller with 6000 flows, and what a router takes for their plan: `python benches/rounds.py`.

The monitor's registers are those of the simulator's switch; all flows are known, and a tenth of them has another round-trip time in each
round. Beside a router that only keeps its plan stands a Linux router, in a namespace of its own: as root. A Junos router's servers of
the tests take a plan of 1000 flows, on this machine: our own, and `netconfd`, as root where it is installed. They show what the client
and NETCONF cost, and not how long a router of Juniper takes.
"""

import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

sys.path.insert(0, str(Path(__file__).parent.parent / "tests"))
from lxml import etree

from junos_cases import SET_BEFORE, another, made
from netconf_server import BASE, Place, configuration, netconfd, netconfd_lacks, ours
from tidegate.hosts.linux_router import LinuxRouter
from tidegate.systems.separation.routers import Router
from tidegate.systems.separation.test_rounds import Kept, rounds

FLOWS, ROUNDS = 6000, 12
JUNOS_FLOWS = 1000
NAMESPACE = f"tidegate-rounds-{os.getpid()}"


def told(name: str, router: Router, flows: int = FLOWS) -> None:
    """Run with a router, and print."""
    found = rounds(router, flows, ROUNDS, moved=0.1)
    commits = [commit for _, commit in found.took if commit is not None]
    times = [of for of, _ in found.took]
    print(
        f"{name}: {flows} flows, {ROUNDS} rounds of {1e3 * median(times):.0f} ms (most {1e3 * max(times):.0f} ms); "
        f"commit of the first plan {1e3 * commits[0]:.1f} ms, of later ones {1e3 * median(commits[1:]):.1f} ms "
        f"(most {1e3 * max(commits[1:]):.1f} ms)"
    )


def told_junos(name: str, place: Place) -> None:
    """Of a Junos router at a server; a term of its filter for each flow."""
    options = {"queues": range(8), "classify": "flows", "rate": "1 Gbit/s", "timeout": "60 s"}
    with made(place, **options) as router:
        told(f"Junos router, {name}", router, JUNOS_FLOWS)


def junos() -> None:
    """With both servers, as far as they are here."""
    # Ours says each lock.
    logging.getLogger("netconf").setLevel(logging.CRITICAL)
    with tempfile.TemporaryDirectory() as folder, ours(Path(folder)) as (place, methods):
        methods.reset(SET_BEFORE)
        told_junos("a server in Python", place)
    lacks = "needs root" if os.geteuid() != 0 else netconfd_lacks()
    if lacks:
        print(f"Junos router, netconfd: {lacks}")
        return
    with tempfile.TemporaryDirectory() as folder, netconfd(Path(folder)) as place:
        config = etree.Element(f"{{{BASE}}}config")
        config.append(configuration(SET_BEFORE))
        with another(place) as operator:
            operator.edit_config(config, target="candidate")
            operator.commit()
        told_junos("netconfd", place)


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
    junos()
