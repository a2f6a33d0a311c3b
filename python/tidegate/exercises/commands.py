"""What one types at the prompt of a topology."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import time

from tidegate._core import TidegateError
from tidegate.exercises import echo
from tidegate.exercises.host_commands import end_all, in_background
from tidegate.exercises.running import LiveTopology
from tidegate.lab import kernel
from tidegate.suggest import did_you_mean

HELP = """\
HOST COMMAND      run a command at a host; names of hosts stand for their addresses: h1 ping -c 1 h2
HOST COMMAND &    the same, in the background; `jobs` shows what goes on there, `kill N` ends one
SWITCH COMMAND    a command of simple_switch_CLI: s1 table_dump MyIngress.ipv4_lpm
pingall           one ping between each two hosts, both ways
iperf H1 H2 [S]   TCP from one host to another for S seconds (5): the rate that arrives (iperf3)
nodes, links      what there is
xterm HOST        how to get a shell at a host in another terminal
exit              end the network (Ctrl-D too)"""
WORDS = ("exit", "help", "iperf", "jobs", "kill", "links", "nodes", "pingall", "quit", "xterm")
QUEUES = ("set_queue_depth", "set_queue_rate")
"""Commands of simple_switch_CLI that an exercise tries."""
ANSWER_S = 1.0
"""A ping is lost after this time."""
NOT_FOUND = 127
PACKAGES = {
    "ping": "iputils-ping",
    "iperf3": "iperf3",
    "iperf": "iperf",
    "tcpdump": "tcpdump",
    "curl": "curl",
}
"""Of programs that are often missing."""
LISTENS_S = 5.0
LONGEST_S = 3600


class Done(Exception):
    """The prompt is to end."""


def run(net: LiveTopology, line: str, *, interactive: bool = False) -> bool:
    """Carry out a line; gives whether it succeeded. Raises `Done` at its end, `TidegateError` for what cannot be."""
    net.check()
    word, _, rest = line.strip().partition(" ")
    rest = rest.strip()
    if not word or word.startswith("#"):
        return True
    if word in net.topology.hosts:
        return _at_host(net, word, rest, interactive)
    if word in net.switches:
        return _at_switch(net, word, rest)
    match [word, *rest.split()]:
        case ["exit" | "quit"]:
            raise Done
        case ["help" | "?"]:
            print(HELP)
        case ["nodes"]:
            nodes(net)
        case ["links" | "net"]:
            links(net)
        case ["pingall"]:
            return ping_all(net)
        case ["iperf", source, target, *seconds] if len(seconds) < 2:
            return iperf(net, source, target, seconds[0] if seconds else "5")
        case ["jobs"]:
            for number, job in net.jobs().items():
                print(f"{number}: {job.host} {job.text}")
        case ["kill", *numbers]:
            kill(net, numbers)
        case ["xterm" | "gterm", *hosts] if hosts:
            print(
                "\n".join(["in another terminal, as root:", *(net.shell(known(net, one)) for one in hosts)])
            )
        case ["iperf", *_]:
            raise TidegateError("write iperf H1 H2, or iperf H1 H2 SECONDS")
        case ["xterm" | "gterm"]:
            raise TidegateError("write xterm and a host, as: xterm h1")
        case [known_word, _, *_] if known_word in WORDS:
            raise TidegateError(f"{word} stands alone; write: {word}")
        case _:
            words = (*net.topology.hosts, *net.switches, *WORDS)
            raise TidegateError(
                f"there is no {word!r}; {did_you_mean(word, words)}`help` shows what there is"
            )
    return True


def with_addresses(net: LiveTopology, text: str) -> str:
    """Words that are names of hosts become their addresses, as in Mininet."""
    hosts = net.topology.hosts
    return re.sub(
        r"(?<!\S)(\w+)(?!\S)", lambda found: hosts[found[1]].address if found[1] in hosts else found[1], text
    )


def _at_host(net: LiveTopology, host: str, text: str, interactive: bool) -> bool:
    if not text.rstrip("& "):
        raise TidegateError(f"write {host} and a command, as: {host} ip addr")
    command = with_addresses(net, text)
    background = in_background(command)
    if background is not None:
        net.go_on(host, background)
        return True
    # What Python has printed comes first.
    sys.stdout.flush()
    status = net.run(host, command, stdin=None if interactive else subprocess.DEVNULL)
    if status == NOT_FOUND and command.split()[0] in PACKAGES and shutil.which(command.split()[0]) is None:
        sys.stderr.write(f"on Debian and Ubuntu: apt install {PACKAGES[command.split()[0]]}\n")
    return status == 0


def _at_switch(net: LiveTopology, switch: str, text: str) -> bool:
    if not text:
        raise TidegateError(f"write {switch} and a command of simple_switch_CLI, as: {switch} show_tables")
    if text.split()[0] in QUEUES:
        print(
            f"`{text.split()[0]}` has no effect: queues are set at the start, by --queue-limit, and rates by links"
        )
        return True
    try:
        said = net.switches[switch].api.command(text)
    except TidegateError as error:
        raise TidegateError(f"{switch}: {error}") from None
    if said:
        print(said.rstrip("\n"))
    return True


def known(net: LiveTopology, name: str) -> str:
    """A host's name; raises `TidegateError` if it is none."""
    hosts = net.topology.hosts
    if name not in hosts:
        raise TidegateError(
            f"there is no host {name!r}; {did_you_mean(name, hosts)}known: {', '.join(hosts)}"
        )
    return name


def kill(net: LiveTopology, numbers: list[str]) -> None:
    """End commands in the background."""
    jobs = net.jobs()
    if not numbers:
        raise TidegateError("write kill and a number that `jobs` shows, as: kill 1")
    for one in numbers:
        number = one.removeprefix("%")
        if not number.isascii() or not number.isdecimal() or int(number[:9]) not in jobs:
            raise TidegateError(
                f"there is no {one!r} in the background; "
                + (f"there are {', '.join(map(str, jobs))}: see `jobs`" if jobs else "nothing goes on there")
            )
        end_all([jobs[int(number)].command])


def nodes(net: LiveTopology) -> None:
    """Hosts with their addresses, and switches with their programs and ports."""
    for host in net.topology.hosts.values():
        print(f"{host.name}: {host.interface}, {host.mac}")
    for name, live in net.switches.items():
        ports = ", ".join(f"{port.number} ({port.interface})" for port in live.ports)
        print(f"{name}: {f'ports {ports}' if ports else 'no ports'}")


def links(net: LiveTopology) -> None:
    """All links."""
    for link in net.topology.links:
        rate = "" if link.rate is None else f", {link.rate / 1e6:g} Mbit/s"
        delay = "" if link.delay == 0 else f", {link.delay / 1e9:g} ms"
        print(f"{link.ends[0]} - {link.ends[1]}{delay}{rate}")


def ping_all(net: LiveTopology) -> bool:
    """One ping from each host to each other one; those of a host at once."""
    hosts = list(net.topology.hosts.values())
    came = asked = 0
    for source in hosts:
        others = [host for host in hosts if host is not source]
        there = echo.answering(net.namespace(source.name), [host.address for host in others], ANSWER_S)
        asked += len(others)
        came += len(there)
        told = [host.name if host.address in there else "X" for host in others]
        print(f"{source.name} -> {' '.join(told)}", flush=True)
    print(f"{asked - came} of {asked} lost ({came} received)")
    return came == asked


def iperf(net: LiveTopology, source: str, target: str, seconds: str) -> bool:
    """A TCP flow by iperf3; prints what arrives."""
    hosts = net.topology.hosts
    for name in (source, target):
        known(net, name)
    if source == target:
        raise TidegateError(f"iperf is between two hosts; {source} is both")
    if not seconds.isascii() or not seconds.isdecimal() or not 1 <= int(seconds[:6]) <= LONGEST_S:
        raise TidegateError(f"{seconds!r} is not a number of seconds, 1 to {LONGEST_S}")
    missing = kernel.missing_program("iperf3")
    if missing is not None:
        raise TidegateError(missing)
    # What goes wrong the client says, too; a server that is ended while it says good-bye says that as well.
    server = net.start(
        target, "iperf3 --server --one-off", stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        end_s = time.monotonic() + LISTENS_S
        while net.output(target, "ss -Hltn 'sport = :5201'")[1].strip() == "":
            if time.monotonic() > end_s or not server.runs:
                raise TidegateError(f"iperf3 does not listen at {target}: its port 5201 may be taken")
            time.sleep(0.05)
        status, said = net.output(
            source, f"iperf3 --client {hosts[target].address} --time {seconds} --connect-timeout 3000 --json"
        )
    finally:
        end_all([server])
    try:
        answer = json.loads(said)
        if "error" in answer:
            raise TidegateError(f"iperf3 from {source} to {target}: {answer['error']}")
        rate = answer["end"]["sum_received"]["bits_per_second"]
    except (ValueError, KeyError):
        raise TidegateError(
            f"iperf3 from {source} to {target}: {said.strip() or f'ended with {status}'}"
        ) from None
    print(f"{source} -> {target}: {rate / 1e6:.2f} Mbit/s")
    return True
