"""The tutorials of examples/ for a Linux box: their commands, one after the other, in namespaces that nobody else sees."""

from __future__ import annotations

import re
import signal

import pytest

from live import needs_agents, needs_iperf3, needs_namespaces, wait_for
from test_linux_router_walk import Machine, machine
from test_pages import ROOT
from tidegate.lab import kernel

__all__ = ["machine"]


QUIET = "exec > /dev/null\n"
"""Before servers, which would go on to write between what clients say."""


def blocks(page: str) -> list[str]:
    text = (ROOT / "examples" / page).read_text()
    return re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def inline(page: str, start: str) -> str:
    """The command of the text that begins so."""
    text = (ROOT / "examples" / page).read_text()
    (command,) = re.findall(rf"`({re.escape(start)}[^`]*)`", text)
    return str(command)


def listens(machine: Machine, host: str, port: int) -> bool:
    return f":{port} " in machine.run("ss -ltn", host)


def goodput(shown: str) -> list[float]:
    """Mbit/s of each transfer, as its receiver has it."""
    found = re.findall(r"([\d.]+) ([MK])bits/sec +receiver", shown)
    return [float(rate) / (1 if unit == "M" else 1000) for rate, unit in found]


def typed(text: str, where: str) -> tuple[str, str]:
    """The command of a line that goes on in the background, and what comes behind it."""
    first, rest = text.split(" &\n", 1)
    assert where in first
    return f"{first} &\n", rest


@needs_namespaces
@needs_iperf3
def test_the_meter_of_the_page(machine: Machine) -> None:
    page = "meter_on_linux.md"
    net, switch, measure, share = blocks(page)
    machine.run(net)
    running = machine.begin(switch)
    server, client = typed(measure, "iperf3 -s")
    machine.run(QUIET + server)
    assert wait_for(lambda: listens(machine, "network", 5201))
    (rate,) = goodput(machine.run(client))
    # Without the meter the hosts send at some Gbit/s.
    assert 70 < rate < 105
    machine.run(QUIET + inline(page, "ip netns exec network iperf3 -s -p"))
    assert wait_for(lambda: listens(machine, "network", 5202))
    if not kernel.congestion_controls(["bbr"]):
        share = share.replace("-C bbr", "-C reno")
    rates = goodput(machine.run(f"{share}wait\n"))
    assert len(rates) == 2
    assert 60 < sum(rates) < 105
    assert min(rates) > 0.5 * max(rates)
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 0
    machine.run("ip netns pids network | xargs -r kill")
    machine.run(inline(page, "ip netns delete"))
    assert not machine.run("ip netns list")


@needs_namespaces
@needs_iperf3
@needs_agents
def test_pacing_of_the_page(machine: Machine) -> None:
    net, switch, agent, flows, end, _ = blocks("pacing_on_linux.md")
    machine.run(net)
    running = machine.begin(switch)
    pacing = machine.begin(agent, says="paces flows")
    servers, transfer = flows.split("nsenter --net=/run/netns/sender", 1)
    machine.run(servers)
    assert wait_for(lambda: all(listens(machine, "receiver", port) for port in (5201, 5202)))
    shown = machine.run(f"nsenter --net=/run/netns/sender{transfer}")
    paced = re.findall(r"-> 10\.0\.0\.2:5201 +([\d.]+) .*link 1 gives it the least(;?)", shown)
    # The control connection takes less than its share, the flow has the link.
    assert sorted(more for _, more in paced) == ["", ";"], shown
    (rate,) = (float(rate) for rate, more in paced if not more)
    assert rate == pytest.approx(47.7, abs=1)
    pacing.send_signal(signal.SIGINT)
    assert pacing.wait(20) == 0
    running.send_signal(signal.SIGINT)
    assert running.wait(20) == 0
    machine.run(end)
    assert not machine.run("ip netns list")
