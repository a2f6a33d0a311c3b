"""What `tidegate agent` costs a host: `python benches/agent.py [--flows N] [--seconds S] [--rate RATE] [--switch] [--json]`.

Two namespaces with a host each. The first host sends on N connections that share RATE; the agent paces them. What a switch would tell is
sent once by the second host; with --switch a pacing switch stands between the two, which takes most of two processors. Told are: how many flows are paced, what they carry, the processor time of the agent's processes, and that of its BPF
programs (`run_time_ns`, with kernel.bpf_stats_enabled, which itself costs some 20 ns a call). Needs root, clang and libbpf.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import selectors
import signal
import socket
import subprocess
import sys
import time
from contextlib import ExitStack, suppress
from pathlib import Path

from tidegate import units
from tidegate.switch.controllers import Controlled
from tidegate.switch.ports import SwitchPort
from tidegate.switch.running import LiveSwitch
from tidegate.systems.pacing.controller import ManagedLink, PacingController
from tidegate.systems.pacing.experiments.attack import Victim, frame
from tidegate.systems.pacing.format import Kind, PacingOption
from tidegate.systems.pacing.setup import program

NAMES = tuple(f"tgagent{os.getpid()}-{part}" for part in ("a", "b", "switch"))
MACS = ("02:00:00:00:00:01", "02:00:00:00:00:02")
ADDRESSES = ("10.9.0.1", "10.9.0.2")
PORT = 5001
STATS = Path("/proc/sys/kernel/bpf_stats_enabled")


def ip(*words: str) -> None:
    """Run `ip`."""
    subprocess.run(["ip", *words], check=True, capture_output=True)


def inside(host: int, *words: str) -> list[str]:
    """A command in a host's namespace."""
    return ["nsenter", f"--net=/run/netns/{NAMES[host]}", *words]


def make_hosts(stack: ExitStack, direct: bool) -> None:
    """The namespaces, and what is in them."""
    for name in NAMES:
        ip("netns", "add", name)
        stack.callback(subprocess.run, ["ip", "netns", "del", name], check=False)
    if direct:
        ends = ("e0", "netns", NAMES[0], "type", "veth", "peer", "e0", "netns", NAMES[1])
        ip("link", "add", *ends)
    for number, (name, mac) in enumerate(zip(NAMES[:2], MACS, strict=True)):
        if not direct:
            peer = ("peer", f"p{number + 1}", "netns", NAMES[2])
            ip("link", "add", "e0", "netns", name, "type", "veth", *peer)
            ip("-n", NAMES[2], "link", "set", f"p{number + 1}", "up")
        ip("-n", name, "link", "set", "e0", "address", mac)
        ip("-n", name, "addr", "add", f"{ADDRESSES[number]}/24", "dev", "e0")
        ip("-n", name, "link", "set", "e0", "up")
        ip("-n", name, "neigh", "add", ADDRESSES[1 - number], "lladdr", MACS[1 - number], "dev", "e0")


def tell(flows: list[dict[str, str]], rate: str) -> None:
    """The second host: notices that a switch would send, each of them once."""
    kbps = units.rate(rate) // 1000
    option = PacingOption(Kind.NOTICE, rate=kbps, weight=len(flows), link=1)
    macs = [bytes.fromhex(mac.replace(":", "")) for mac in MACS]
    ends = [socket.inet_aton(address) for address in ADDRESSES]
    with socket.socket(socket.AF_PACKET, socket.SOCK_RAW) as out:
        out.bind(("e0", 0))
        for at, flow in enumerate(flows):
            port = int(flow["local"].rpartition(":")[2])
            victim = Victim(*macs, *ends, (port, PORT))
            out.send(frame(victim, option, 0, to_host=True))
            if at % 100 == 99:
                time.sleep(0.01)


def receive() -> None:
    """The second host: reads all that comes."""
    listening = socket.create_server((ADDRESSES[1], PORT), backlog=4096)
    listening.setblocking(False)
    with selectors.DefaultSelector() as ready:
        ready.register(listening, selectors.EVENT_READ)
        print("listens", flush=True)
        while True:
            for key, _ in ready.select():
                if key.fileobj is listening:
                    with suppress(BlockingIOError):
                        while True:
                            ready.register(listening.accept()[0], selectors.EVENT_READ)
                else:
                    assert isinstance(key.fileobj, socket.socket)
                    key.fileobj.recv(1 << 18)


def send(flows: int) -> None:
    """The first host: keeps the queues of its sockets full."""
    data = bytes(1 << 14)
    with selectors.DefaultSelector() as ready:
        for _ in range(flows):
            made = socket.create_connection((ADDRESSES[1], PORT))
            made.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 15)
            made.setblocking(False)
            ready.register(made, selectors.EVENT_WRITE)
        print("sends", flush=True)
        while True:
            for key, _ in ready.select():
                assert isinstance(key.fileobj, socket.socket)
                with suppress(BlockingIOError):
                    key.fileobj.send(data)


def cpu_s(pid: int) -> float:
    """Processor time of a process."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) / 1e9


def programs(pid: int) -> dict[str, tuple[float, int]]:
    """Seconds and runs of the BPF programs that a process has, by their kinds."""
    kinds = {"13": "sockets", "3": "packets", "26": "visits"}
    told: dict[str, tuple[float, int]] = {}
    seen = set()
    for path in Path(f"/proc/{pid}/fdinfo").iterdir():
        with suppress(OSError):
            said = {
                name: value.strip()
                for name, _, value in (line.partition(":") for line in path.read_text().splitlines())
            }
            if "run_time_ns" in said and said["prog_id"] not in seen:
                seen.add(said["prog_id"])
                kind = kinds.get(said["prog_type"], said["prog_type"])
                seconds, runs = told.get(kind, (0.0, 0))
                told[kind] = seconds + int(said["run_time_ns"]) / 1e9, runs + int(said["run_cnt"])
    return told


def received() -> int:
    """Bytes that have come to the second host."""
    done = subprocess.run(
        inside(1, "ip", "-j", "-s", "link", "show", "e0"), capture_output=True, text=True, check=True
    )
    count: int = json.loads(done.stdout)[0]["stats64"]["rx"]["bytes"]
    return count


def status() -> dict[str, object]:
    """What the agent says."""
    command = inside(0, sys.executable, "-m", "tidegate", "agent", "status", "--json")
    answer: dict[str, object] = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return answer


def measure(flows: int, seconds: float, rate: str, direct: bool) -> dict[str, float]:
    """One run."""
    with ExitStack() as stack:
        make_hosts(stack, direct)
        before = STATS.read_text()
        STATS.write_text("1")
        stack.callback(STATS.write_text, before)
        if not direct:
            ports = [SwitchPort(n + 1, f"p{n + 1}", "auto", f"/run/netns/{NAMES[2]}") for n in range(2)]
            live = stack.enter_context(LiveSwitch(program(), ports))
            controller = PacingController({}, {2: ManagedLink(rate, 1)}, wires={1: 2, 2: 1})
            stack.enter_context(Controlled(live, [controller]))
        started = [
            (inside(1, sys.executable, __file__, "receive"), "listens"),
            (inside(0, sys.executable, "-m", "tidegate", "agent", "-i", "e0"), "paces flows"),
            (inside(0, sys.executable, __file__, "send", "--flows", str(flows)), "sends"),
        ]
        processes = []
        for command, until in started:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            processes.append(process)
            stack.callback(end, process)
            assert process.stdout is not None
            for line in process.stdout:
                if until in line:
                    break
            else:
                raise SystemExit(f"{command} has ended")
        if direct:
            words = (sys.executable, __file__, "tell", "--rate", rate)
            subprocess.run(inside(1, *words), input=json.dumps(status()["flows"]), text=True, check=True)
        time.sleep(3)
        agent = processes[1].pid
        keepers = Path(f"/proc/{agent}/task/{agent}/children").read_text().split()
        pids = [agent, *map(int, keepers)]
        counted = status()["counts"]
        assert isinstance(counted, dict)
        begin = time.monotonic(), sum(map(cpu_s, pids)), programs(agent), received()
        time.sleep(seconds)
        over = time.monotonic(), sum(map(cpu_s, pids)), programs(agent), received()
        spent = over[0] - begin[0]
        told = status()
        said, counts = told["flows"], told["counts"]
        assert isinstance(said, list)
        assert isinstance(counts, dict)
        answer = {
            "flows": flows,
            "paced": sum(flow["state"] == "paced" for flow in said),
            "received_mbps": 8 * (over[3] - begin[3]) / spent / 1e6,
            "notices_a_second": (counts["notices"] - counted["notices"]) / spent,
            "processes_percent": 100 * (over[1] - begin[1]) / spent,
        }
        for kind, (took, runs) in over[2].items():
            took_before, runs_before = begin[2][kind]
            answer[f"{kind}_percent"] = 100 * (took - took_before) / spent
            answer[f"{kind}_runs_a_second"] = (runs - runs_before) / spent
            answer[f"{kind}_ns"] = 1e9 * (took - took_before) / max(1, runs - runs_before)
        return answer


def end(process: subprocess.Popen[str]) -> None:
    """Have it end."""
    process.send_signal(signal.SIGTERM)
    try:
        process.wait(5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("part", nargs="?", choices=("send", "receive", "tell"))
    parser.add_argument("--flows", type=int, default=1000)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--rate", default="1 Gbit/s")
    parser.add_argument("--switch", action="store_true")
    parser.add_argument("--json", action="store_true")
    given = parser.parse_args()
    # A file for each connection.
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if given.part == "receive":
        receive()
    elif given.part == "send":
        send(given.flows)
    elif given.part == "tell":
        tell(json.load(sys.stdin), given.rate)
    else:
        told = measure(given.flows, given.seconds, given.rate, not given.switch)
        if given.json:
            print(json.dumps(told))
        else:
            print("\n".join(f"{name:20} {value:12.2f}" for name, value in told.items()))


if __name__ == "__main__":
    main()
