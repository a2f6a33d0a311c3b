"""The lab: it comes, it goes however it ends, it harms nobody, and what it cannot do it says beforehand."""

from __future__ import annotations

import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
from scapy.layers.inet import IP, TCP
from scapy.utils import rdpcap

from live import (
    Attempt,
    again_if_disturbed,
    has_ended,
    labs_of,
    namespaces,
    needs_iperf3,
    needs_namespaces,
    processes,
    spaces_of,
    untimed,
    wait_for,
)
from namespaces import processors_of_networks
from tidegate import TidegateError
from tidegate.lab import kernel, names
from tidegate.lab.interfaces import processors
from tidegate.lab.keeper import TCP_BUCKETS
from tidegate.lab.lab import SWITCH, Lab
from tidegate.lab.placement import Placement, placement
from tidegate.lab.plan import plan
from tidegate.network import Network, Node

# How often a lab is killed; a hundred takes some minutes.
ROUNDS = int(os.environ.get("TIDEGATE_LAB_ROUNDS", "6"))

# A flow and a switch, as fast as they go.
LOAD = """
from tidegate.network import Network
net = Network()
a, b, r = net.host("a"), net.host("b"), net.router("r")
net.link(a, r, rate="10 Gbit/s", delay="100 us")
net.link(b, r, rate="10 Gbit/s", delay="100 us")
net.tcp(a, b)
net.tcp(b, a, size="100 MB")
net.udp(a, b, rate="20 Mbit/s", pattern="poisson")
net.record("5 ms", net.links)
"""


def pair() -> tuple[Network, Node, Node]:
    net = Network()
    a, b = net.host("a"), net.host("b")
    net.link(a, b, rate="100 Mbit/s", delay="5 ms", queue="100 packets")
    return net, a, b


def linked(net: Network, name: str) -> Node:
    """A host at a router of its own."""
    host = net.host(name)
    net.link(host, net.router(f"router of {name}"), rate="1 Gbit/s", delay=0)
    return host


def interfaces() -> set[str]:
    return set(os.listdir("/sys/class/net"))


def test_names_of_hosts_can_be_parts_of_file_names() -> None:
    assert names.host_names(["a", "b.1", "my host/2", "a", "switch", "x" * 70]) == [
        "a",
        "b.1",
        "my_host_2-2",
        "a-3",
        "switch-4",
        "x" * 64 + "-5",
    ]


def test_names_of_dead_labs_are_recognised(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(names, "FOLDER", tmp_path)
    mine = names.new_run()
    names.link(f"{mine}-a", os.getpid())
    # The number of a process that is there, but began at another time; and one that is not there.
    pid, begun, space, _ = mine.removeprefix("tidegate-").split("-")
    reused, gone = (
        f"tidegate-{pid}-{int(begun) + 1}-{space}-abcdef-a",
        f"tidegate-4194305-17-{space}-abcdef-switch",
    )
    for name in (reused, gone):
        names.link(name, os.getpid())
    for other in ("tidegate", "tidegate-mine", "blue", "tidegate-4194305-17-abcdef-of-before"):
        (tmp_path / other).symlink_to("/proc/self/ns/net")
    (tmp_path / f"tidegate-4194305-17-{space}-abcdef-file").touch()
    # One that leads elsewhere, and one of another user.
    (tmp_path / f"tidegate-4194305-17-{space}-abcdef-elsewhere").symlink_to("/etc/passwd")
    if os.geteuid() == 0:
        theirs = f"tidegate-4194305-17-{space}-abcdef-theirs"
        names.link(theirs, os.getpid())
        os.lchown(tmp_path / theirs, 65534, 65534)
    left = set(os.listdir(tmp_path)) - {reused, gone, f"{mine}-a"}
    assert names.remove_dead() == sorted([reused, gone])
    assert set(os.listdir(tmp_path)) == left | {f"{mine}-a"}
    names.unlink(mine)
    assert set(os.listdir(tmp_path)) == left


def test_labs_of_another_pid_namespace_are_left_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Their processes cannot be seen from here, unless this is the first namespace; then none are left where none are seen."""
    monkeypatch.setattr(names, "FOLDER", tmp_path)
    mine, elsewhere = names._space(), 4_000_000_001
    there = f"tidegate-4194305-17-{elsewhere}-abcdef-a"
    names.link(there, os.getpid())
    monkeypatch.setattr(names, "FIRST_SPACE", 1)
    assert names.remove_dead() == []
    assert [one.name for one in names.sort()[0]] == [there]
    # From the first namespace they are seen.
    monkeypatch.setattr(names, "FIRST_SPACE", mine)
    of = {"1": mine, "7": elsewhere}
    monkeypatch.setattr(names, "_spaces", lambda: of.values())
    assert names.remove_dead() == []
    del of["7"]
    assert names.remove_dead() == [there]


def refusals() -> dict[str, tuple[Callable[[Network, Node, Node], Any], str]]:
    return {
        "page": (lambda net, a, b: net.page(a, b), "request-response connections run in the simulator only"),
        "congestion control": (
            lambda net, a, b: net.tcp(a, b, congestion_control="timely"),
            "timely a -> b: this kernel does not have the congestion control timely; it has .*reno",
        ),
        "extra delay": (lambda net, a, b: net.tcp(a, b, extra_delay="1 ms"), "extra_delay"),
        "quick ack": (
            lambda net, a, b: (net.tcp(a, b, quick_ack=True), net.tcp(a, b)),
            "they differ in quick_ack; all that b gets from a has the same in a kernel",
        ),
        "delayed ack": (lambda net, a, b: net.tcp(a, b, delayed_ack="1 ms"), "delayed_ack"),
        "ecn": (
            lambda net, a, b: net.tcp(a, b, ecn="accurate"),
            "ecn 'accurate': cubic has off, passive and on",
        ),
        "classic ecn": (
            lambda net, a, b: net.tcp(a, b, congestion_control="prague", ecn="on"),
            "prague always asks for accurate ECN",
        ),
        "mss": (lambda net, a, b: net.tcp(a, b, mss=40_000), "the kernel takes 88 to 32767"),
        "bursts": (lambda net, a, b: net.tcp(a, b, segmentation_offload="2 kB"), "segmentation_offload"),
        "ticks": (
            lambda net, a, b: net.tcp(a, b, ticks_per_second=777),
            "ticks_per_second: 777; this kernel",
        ),
        "much output": (lambda net, a, b: net.tcp(a, b, limit_output="2 GiB"), "less than 2 GiB"),
        "large buffers": (
            lambda net, a, b: net.tcp(a, b, receive_buffer_max="1 GiB"),
            "cubic a -> b: receive_buffer_max: the lab takes less than 1 GiB",
        ),
        "output": (
            lambda net, a, b: (net.tcp(a, b), net.tcp(a, b, limit_output="1 MiB")),
            "they differ in limit_output; all that a sends",
        ),
        "rto": (lambda net, a, b: net.tcp(a, b, rto_min="1500 us"), "rto_min"),
        "timestamps": (
            lambda net, a, b: (net.tcp(a, b), net.tcp(a, b, timestamps=False, label="plain")),
            "cubic a -> b, plain: they differ in timestamps; all that a sends and receives",
        ),
        "sack": (lambda net, a, b: (net.tcp(a, b), net.tcp(b, a, sack=False)), "they differ in sack"),
        "buffers": (
            lambda net, a, b: (net.tcp(a, b), net.tcp(a, b, receive_buffer_max="1 MiB")),
            "they differ in receive_buffer_max; all that b receives",
        ),
        "windows": (
            lambda net, a, b: (net.tcp(a, b), net.tcp(a, b, initial_cwnd=3)),
            "they differ in initial_cwnd; all that goes from a to b",
        ),
        "one way with and without ECN": (
            lambda net, a, b: (net.tcp(a, b), net.tcp(a, b, ecn="on")),
            "they differ in asking for ECN",
        ),
        "large datagrams": (
            lambda net, a, b: net.udp(a, b, rate="1 Mbit/s", payload=1473),
            "do not fit the MTU",
        ),
        "many datagrams": (
            lambda net, a, b: net.udp(a, b, rate="1 Gbit/s", pattern="poisson", payload=200),
            "more than the 200000 packets a second",
        ),
        "no link": (
            lambda net, a, b: net.tcp(a, net.host("c")),
            "cubic a -> c: there is no way from a to c; add a link",
        ),
        "no way": (
            lambda net, a, b: net.udp(a, linked(net, "c"), rate="1 Mbit/s"),
            "there is no way from a to c",
        ),
        "many hosts": (
            lambda net, a, b: [net.host(f"h{n}") for n in range(500)],
            "502 hosts; the lab has room for",
        ),
    }


@pytest.mark.parametrize("what", refusals())
def test_what_a_kernel_cannot_do_is_refused_by_name(what: str) -> None:
    net, a, b = pair()
    make, why = refusals()[what]
    make(net, a, b)
    with pytest.raises(TidegateError, match=why) as error:
        plan(net, 1)
    assert str(error.value).startswith("the live backend cannot run this network:\n")


def test_hosts_reach_each_other_over_routers_and_switches_or_directly() -> None:
    net, a, b = pair()
    c, d = linked(net, "c"), linked(net, "d")
    one, other = (node for node in net.nodes if node.kind == "router")
    middle = net.router("middle")
    net.link(one, middle, rate="1 Gbit/s", delay=0)
    net.link(other, middle, rate="1 Gbit/s", delay=0)
    net.tcp(a, b, size="1 MB")
    net.tcp(c, d, size="1 MB")
    assert [host.node for host in plan(net, 1)] == [a, b, c, d]
    net.tcp(b, c, size="1 MB")
    with pytest.raises(TidegateError, match="no way from b to c"):
        plan(net, 1)


def test_all_refusals_come_at_once() -> None:
    net, a, b = pair()
    net.page(a, b)
    net.tcp(a, b, congestion_control="prague", ecn="accurate", extra_delay="1 ms")
    with pytest.raises(TidegateError) as error:
        plan(net, 1)
    assert len(str(error.value).splitlines()) == 4


def test_without_iperf3(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    net, a, b = pair()
    net.tcp(a, b, size="1 MB")
    plan(net, 1)
    net.tcp(a, b)
    with pytest.raises(TidegateError, match=r"iperf3 is not installed; .*apt install iperf3"):
        plan(net, 1)


def test_congestion_controls_are_read_from_the_kernel() -> None:
    assert kernel.congestion_controls(["reno", "no-such-thing"]) == {"reno"}


@pytest.mark.slow
@needs_namespaces
@untimed
def test_without_root() -> None:
    drop = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
    command = [sys.executable, "-m", "tidegate.cli", "run", "meter.rates", "--quick", "--backend", "live"]
    done = subprocess.run([*drop, *command], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")
    assert "needs root" in done.stderr
    assert "--backend sim" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.slow
def test_experiments_say_where_they_run() -> None:
    command = [sys.executable, "-m", "tidegate.cli"]
    done = subprocess.run(
        [*command, "run", "reference.dumbbell", "--backend", "live"], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert "reference.dumbbell runs on sim, not on live; on live run: aqm." in done.stderr
    listed = json.loads(subprocess.run([*command, "list", "--json"], capture_output=True, text=True).stdout)
    by_name = {one["name"]: one for one in listed["experiments"]}
    assert by_name["meter.rates"]["backends"] == ["sim", "live"]
    assert by_name["meter.longrtt"]["backends"] == ["sim"]


@needs_namespaces
@untimed
def test_a_lab_comes_and_goes() -> None:
    before = interfaces()
    with Lab(["a", "my host"]) as lab:
        assert lab.hosts == ["a", "my_host-1"]
        assert {path.name for path in labs_of(os.getpid())} == {
            f"{lab.run}-a",
            f"{lab.run}-my_host-1",
            f"{lab.run}-{SWITCH}",
        }
        made = {os.readlink(lab.namespace(name)) for name in (*lab.hosts, SWITCH)}
        assert made == spaces_of(os.getpid())
        assert len(made) == 3
        assert os.readlink("/proc/self/ns/net") not in made
        lab.check()
    assert has_ended(os.getpid(), made)
    assert interfaces() == before


@needs_namespaces
@untimed
def test_a_lab_in_a_process_with_many_files() -> None:
    """Descriptors above 1023 are too large for select()."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < 2048:
        pytest.skip(f"no more than {hard} files may be open")
    resource.setrlimit(resource.RLIMIT_NOFILE, (max(soft, 2048), hard))
    files = [os.open("/dev/null", os.O_RDONLY) for _ in range(1100)]
    try:
        with Lab(["a"]) as lab:
            lab.check()
    finally:
        for file in files:
            os.close(file)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@needs_namespaces
@untimed
def test_two_labs_of_one_process_do_not_meet() -> None:
    with Lab(["a"]) as one, Lab(["a"]) as other:
        assert one.run != other.run
        spaces = {os.readlink(lab.namespace(name)) for lab in (one, other) for name in ("a", SWITCH)}
        assert len(spaces) == 4
        other.close()
        one.check()
        assert {path.name for path in labs_of(os.getpid())} == {f"{one.run}-a", f"{one.run}-{SWITCH}"}


@needs_namespaces
@untimed
@pytest.mark.parametrize("who", ["agent", "keeper"])
def test_a_lab_that_is_ended_from_outside(who: str) -> None:
    net, a, b = pair()
    net.tcp(a, b, size="1 GB")
    there: set[str] = set()

    def end() -> None:
        there.update(spaces_of(os.getpid()))
        (agent, *_) = labs_of(os.getpid())
        pid = int(os.readlink(agent).split("/")[2])
        if who == "keeper":
            pid = parent_of(pid)
        os.kill(pid, signal.SIGKILL)

    net.at("200 ms", end)
    with pytest.raises(TidegateError, match="the lab was ended from outside"):
        net.run("20 s", backend="live")
    assert len(there) == 3
    assert wait_for(lambda: has_ended(os.getpid(), there))


@needs_namespaces
@untimed
def test_an_error_in_a_run_ends_the_lab() -> None:
    net, a, b = pair()
    net.tcp(a, b, size="1 GB")
    net.capture(net.links[0], a, Path("/nowhere/x.pcap"))
    with pytest.raises(TidegateError, match=r"/nowhere/x\.pcap"):
        net.run("1 s", backend="live")
    assert not labs_of(os.getpid())
    net.captures.clear()

    def fail() -> None:
        raise ValueError("as asked")

    net.at("100 ms", fail)
    with pytest.raises(ValueError, match="as asked"):
        net.run("20 s", backend="live")
    assert not labs_of(os.getpid())
    assert net.running is None


@needs_namespaces
@untimed
def test_controllers_do_not_keep_the_network_waiting() -> None:
    """They hold its lock while they read and write, on a machine that has other things to do as well."""
    before = os.sched_getscheduler(0)
    try:
        os.sched_setscheduler(0, os.SCHED_RR, os.sched_param(1))
    except PermissionError:
        pytest.skip("needs CAP_SYS_NICE")
    finally:
        os.sched_setscheduler(0, before, os.sched_param(0))
    seen = []
    net, a, b = pair()
    net.tcp(a, b, size="1 MB")
    net.at("50 ms", lambda: seen.append(os.sched_getscheduler(0)))
    net.run("200 ms", backend="live", progress=False)
    assert seen == [os.SCHED_RR | os.SCHED_RESET_ON_FORK]
    assert os.sched_getscheduler(0) == before


def parent_of(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


class Victim:
    """A process that runs a lab under load."""

    def __init__(self, folder: Path) -> None:
        script = folder / "load.py"
        script.write_text(LOAD + 'print(net.run("60 s", backend="live", progress=False).interrupted)\n')
        self.process = subprocess.Popen(
            [sys.executable, str(script)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )

    def wait_for_lab(self) -> None:
        assert wait_for(lambda: len(labs_of(self.process.pid)) == 3)

    def end(self, how: signal.Signals) -> tuple[str, str]:
        self.process.send_signal(how)
        return self.process.communicate(timeout=90)

    def has_ended(self) -> bool:
        """Whether nothing is left of it."""
        return has_ended(self.process.pid, self.came)

    def look(self) -> None:
        self.came = spaces_of(self.process.pid)


@needs_namespaces
@untimed
@needs_iperf3
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_lab(how: signal.Signals, tmp_path: Path) -> None:
    victim = Victim(tmp_path)
    victim.wait_for_lab()
    assert wait_for(lambda: bool(iperf_of(victim.process.pid)))
    victim.look()
    out, _ = victim.end(how)
    if how is signal.SIGINT:
        assert (victim.process.returncode, out) == (0, "True\n")
    else:
        assert victim.process.returncode == -signal.SIGTERM
    assert wait_for(victim.has_ended)


@needs_namespaces
@untimed
@needs_iperf3
def test_an_interrupted_experiment_keeps_what_there_is(tmp_path: Path) -> None:
    out = tmp_path / "run"
    settings = ["rates_mbps=50", "base_rtts_ms=1", "schemes=plain", "duration_s=60"]
    options = [part for setting in settings for part in ("--set", setting)]
    command = [sys.executable, "-m", "tidegate.cli", "run", "meter.rates", "--backend", "live"]
    one = subprocess.Popen([*command, *options, "--out", str(out)], stderr=subprocess.PIPE, text=True)
    assert wait_for(lambda: bool(iperf_of(one.pid)))
    time.sleep(0.5)
    one.send_signal(signal.SIGINT)
    _, said = one.communicate(timeout=90)
    assert one.returncode == 130
    assert "interrupted with 0 of 1 runs done" in said
    about = json.loads((out / "run.json").read_text())
    assert (about["backend"], about["interrupted"], about["rows"]) == ("live", True, [])
    flows = pl.read_parquet(out / "tables" / "plain-1ms-50-1" / "flows.parquet")
    assert flows["bytes_received"][0] > 0
    assert not labs_of(one.pid)


def iperf_of(pid: int) -> list[int]:
    """The iperf3 clients in a process's labs, by the namespaces."""
    inside = spaces_of(pid)
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            if (
                b"--client" in (process / "cmdline").read_bytes()
                and os.readlink(process / "ns/net") in inside
            ):
                found.append(int(process.name))
        except OSError:
            continue
    return found


@needs_namespaces
@untimed
@needs_iperf3
def test_nothing_is_left_however_often_and_whenever_a_lab_is_killed(tmp_path: Path) -> None:
    before = interfaces()
    chance = random.Random(5)
    for number in range(ROUNDS):
        victim = Victim(tmp_path)
        if number % 2:
            victim.wait_for_lab()
        # While it starts, while it sets up, or under load.
        time.sleep(chance.random() * 1.5)
        victim.look()
        how = signal.SIGKILL if number % 4 < 2 else signal.SIGINT
        victim.end(how)
        assert wait_for(victim.has_ended), f"round {number}, {how.name}"
    assert interfaces() == before


@needs_namespaces
@untimed
@needs_iperf3
def test_what_a_killed_keeper_leaves_goes_with_the_next_lab(tmp_path: Path) -> None:
    victim = Victim(tmp_path)
    victim.wait_for_lab()
    victim.look()
    left = labs_of(victim.process.pid)
    agent = int(os.readlink(left[0]).split("/")[2])
    os.kill(parent_of(agent), signal.SIGKILL)
    victim.end(signal.SIGKILL)
    # Processes and namespaces are gone at once; the names, if the lab's process had no time for them, with the next lab.
    assert wait_for(lambda: not processes(f"tidegate-{victim.process.pid}-"))
    assert wait_for(lambda: not namespaces() & victim.came)
    with Lab(["a"]):
        assert not labs_of(victim.process.pid)


TELL = """
from live import is_disturbed
result = net.run("2 s", backend="live", progress=False)
print(*result.flows["bytes_received"], is_disturbed(result))
"""


@needs_namespaces
@needs_iperf3
@again_if_disturbed
def test_two_labs_at_once() -> None:
    script = LOAD.replace("10 Gbit/s", "50 Mbit/s") + TELL
    both = [
        subprocess.Popen(
            [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parent
        )
        for _ in range(2)
    ]
    answers = [one.communicate(timeout=120)[0].split() for one in both]
    assert [one.returncode for one in both] == [0, 0]
    if any(disturbed == "True" for *_, disturbed in answers):
        Attempt.disturbed = "packets were late"
    for *words, _ in answers:
        received = [int(word) for word in words]
        # Every flow takes its own 2 s, which need not be the others': the link's rate is all that bounds it. 20 of its 50 Mbit/s
        # are the datagrams'; the flow back waits behind the other's acknowledgements.
        assert 3e6 < received[0] < 50e6 / 8 * 2
        assert 1e6 < received[1] < 50e6 / 8 * 2
        assert received[2] == pytest.approx(20e6 / 8 * 2 * 1472 / 1500, rel=0.1)


def test_processors_as_the_kernel_writes_them() -> None:
    assert processors([]) == "00000000"
    assert processors([0]) == "00000001"
    assert processors(range(32)) == "ffffffff"
    assert processors([1, 32, 64]) == "00000001,00000001,00000002"


@needs_namespaces
@untimed
@pytest.mark.parametrize(
    ("name", "value", "base"),
    [
        ("ipv4/tcp_ehash_entries", TCP_BUCKETS, 10),
        ("core/rps_default_mask", sum(1 << number for number in os.sched_getaffinity(0)), 16),
    ],
)
def test_a_host_s_kernel_is_set_up_for_speed(name: str, value: int, base: int) -> None:
    file = Path("/proc/sys/net", name)
    if not file.exists():
        pytest.skip(f"this kernel has no {file}")
    before = file.read_text()
    with Lab(["a"]) as lab:
        command = ["nsenter", f"--net={lab.namespace('a')}", "cat", file]
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert int(said.replace(",", ""), base) == value
    assert file.read_text() == before


@pytest.mark.parametrize(
    ("allowed", "expected"),
    [
        ({0}, Placement(None, (0,), (0,))),
        ({0, 1}, Placement(1, (0,), ())),
        ({2, 5}, Placement(5, (2,), ())),
        ({0, 1, 2, 3}, Placement(3, (0, 1, 2), (0, 1, 2))),
    ],
)
def test_senders_receive_beside_the_network_s_processor(allowed: set[int], expected: Placement) -> None:
    assert placement(allowed) == expected


@needs_namespaces
@untimed
def test_hosts_receive_where_they_are_told_to() -> None:
    file = Path("/proc/sys/net/core/rps_default_mask")
    if not file.exists():
        pytest.skip(f"this kernel has no {file}")
    with Lab(["a", "b"], receiving=[[0], []]) as lab:
        for host, mask in (("a", 1), ("b", 0)):
            command = ["nsenter", f"--net={lab.namespace(host)}", "cat", str(file)]
            said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
            assert int(said.replace(",", ""), 16) == mask


@needs_namespaces
@untimed
def test_the_network_s_thread_stays_on_its_processor() -> None:
    allowed, network = os.sched_getaffinity(0), placement().network
    expected = allowed if network is None else {network}
    found: list[list[set[int]]] = []
    net, a, b = pair()
    net.tcp(a, b, size="1 MB")
    net.at("50 ms", lambda: found.append(processors_of_networks()))
    net.run("200 ms", backend="live", progress=False)
    assert found == [[expected]]
    assert processors_of_networks() == []
    assert os.sched_getaffinity(0) == allowed


@needs_namespaces
def test_clean_removes_what_a_killed_keeper_left() -> None:
    """Not beside others: the next lab of anybody's removes it, too."""
    with Lab(["a"]) as lab:
        dead = f"tidegate-4194305-17-{names._space()}-abcdef-a"
        names.link(dead, os.getpid())
        command = [sys.executable, "-m", "tidegate.cli", "clean"]
        answer = json.loads(subprocess.run([*command, "--json"], capture_output=True, text=True).stdout)
        assert dead in answer["removed"]
        assert {f"{lab.run}-a", f"{lab.run}-{SWITCH}"} <= set(answer["running"])
        lab.check()
        done = subprocess.run(command, capture_output=True, text=True)
        assert f"in use: {lab.run}-a\n" in done.stdout
        assert dead not in done.stdout


@pytest.mark.parametrize("backend", ["sim", pytest.param("live", marks=[needs_namespaces, needs_iperf3])])
@pytest.mark.parametrize("quick_ack", [False, True])
def test_each_packet_is_acknowledged_at_once_if_that_is_asked_for(
    backend: str, quick_ack: bool, tmp_path: Path
) -> None:
    net = Network()
    a, b = net.host("a"), net.host("b")
    link = net.link(a, b, rate="20 Mbit/s", delay="2 ms")
    net.tcp(a, b, quick_ack=quick_ack, segmentation_offload=None, size="3 MB")
    net.capture(link, b, tmp_path / "b.pcap")
    net.run("2 s", backend=backend, progress=False)
    packets = [packet[IP] for packet in rdpcap(str(tmp_path / "b.pcap")) if TCP in packet]
    data = sum(packet.len > 1000 for packet in packets)
    acks = sum(packet.src == net.address(b) for packet in packets)
    assert data > 2000
    # Linux delays ACKs once the windows are open.
    assert acks / data > 0.9 if quick_ack else acks / data < 0.75
