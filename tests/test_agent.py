"""`tidegate agent`: real sockets between namespaces, with a pacing switch between them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import threading
import urllib.request
from contextlib import suppress
from pathlib import Path

import pytest
from pyroute2 import IPRoute
from scapy.layers.inet import IP, TCP, IPOption
from scapy.layers.inet6 import HBHOptUnknown, IPv6, IPv6ExtHdrHopByHop, PadN
from scapy.layers.l2 import Ether

import system_calls
from live import needs_agents
from namespaces import ip, needs_root, place, within
from paced_hosts import (
    AGENT,
    GIVEN,
    GIVEN6,
    KEYS,
    SO_MAX_PACING_RATE,
    address,
    address6,
    cgroup2,
    limit,
    listening,
    net,
    paced_at,
    tso_rtt_log,
    unlimited,
)
from switches import wait_for
from system_calls import STRACE, needs_strace, needs_systemd
from tidegate.systems.pacing.format import Kind, PacingOption
from tidegate.systems.pacing.service.pacer import Pacer
from tidegate.systems.pacing.service.settings import Settings


@needs_root
@needs_agents
def test_flows_share_what_a_link_gives() -> None:
    with net() as made:
        server = made.server()
        agent = made.agent("--no-lend")
        assert tso_rtt_log(made) == "0"
        first = made.connect()
        assert paced_at(first, GIVEN)()
        # An IPv4 connection of an IPv6 socket.
        second = made.connect(family=socket.AF_INET6)
        assert paced_at(second, GIVEN / 2)()
        wait_for(paced_at(first, GIVEN / 2))
        told = {flow["local"].rpartition(":")[2]: flow for flow in made.status()["flows"]}
        flow = told[str(first.getsockname()[1])]
        assert (flow["state"], flow["links"]) == ("paced", {"7": pytest.approx(50 * 0.9975 / 2, rel=0.002)})
        assert flow["payload_mbps"] == pytest.approx(GIVEN / 2 * 8 / 1e6, rel=0.002)
        second.close()
        server.accept()[0].close()
        server.accept()[0].close()
        wait_for(paced_at(first, GIVEN))
        done = made.command("agent", "status", "--json")
        assert (done.returncode, json.loads(done.stdout)["pid"]) == (0, agent.pid)
        assert made.end(agent) == 0
        assert unlimited(first)()
        assert tso_rtt_log(made) != "0"
        done = made.command("agent", "status")
        assert (done.returncode, done.stderr[:13]) == (1, "no agent runs")


@needs_root
@needs_agents
def test_a_change_is_told_to_a_host_once() -> None:
    with net() as made:
        server = made.server()
        made.agent("--no-lend")
        flows = [made.connect() for _ in range(8)]
        wait_for(lambda: all(paced_at(flow, GIVEN / 8)() for flow in flows))
        counts = made.status()["counts"]
        other = made.connect()
        assert paced_at(other, GIVEN / 9)()
        wait_for(lambda: all(paced_at(flow, GIVEN / 9)() for flow in flows))
        # For all that there were, and for the new one.
        wait_for(lambda: made.status()["counts"]["notices"] - counts["notices"] == 2)
        for flow in made.status()["flows"]:
            assert flow["links"] == {"7": pytest.approx(50 * 0.9975 / 9, rel=0.002)}
        other.close()
        server.accept()
        wait_for(lambda: all(paced_at(flow, GIVEN / 8)() for flow in flows))


@needs_root
@needs_agents
@pytest.mark.parametrize("keyed", [False, True])
def test_flows_of_ipv6_are_paced(tmp_path: Path, keyed: bool) -> None:
    with net(KEYS if keyed else None) as made:
        made.use_ipv6()
        server, old_server = made.server(ipv6=True), made.server()
        before = made.connect(ipv6=True)
        options = ["--no-lend", "--destination", "fd09::/64"]
        if keyed:
            file = tmp_path / "keys.toml"
            file.write_text('keys = ["0123456789abcdef", "1122334455667788"]')
            file.chmod(0o600)
            options += ["--key-file", str(file)]
        agent = made.agent(*options)
        # One that was there asks; others ask with their SYNs.
        wait_for(paced_at(before, GIVEN6))
        first = made.connect(ipv6=True)
        assert paced_at(first, GIVEN6 / 2)()
        wait_for(paced_at(before, GIVEN6 / 2))
        assert unlimited(made.connect())()
        old_server.accept()[0].close()
        flows = made.status()["flows"]
        assert {flow["remote"] for flow in flows} == {"[fd09::2]:5001"}
        assert {flow["local"] for flow in flows} == {
            f"[fd09::1]:{one.getsockname()[1]}" for one in (before, first)
        }
        # Data goes through with what is sent beside it.
        there = server.accept()[0]
        # More than the buffers of both ends need hold: it is sent while it is read.
        sending = threading.Thread(target=before.sendall, args=(bytes(300_000),))
        sending.start()
        got = 0
        while got < 300_000:
            got += len(there.recv(65_536))
        sending.join()
        there.close()
        before.close()
        wait_for(paced_at(first, GIVEN6))
        counts = made.status()["counts"]
        assert counts["marked"] == 1
        assert counts["traces"] == 1
        assert counts["notices"] >= 2
        assert counts["updates"] >= 1
        assert counts["bad_check"] == counts["malformed"] == counts["no_room"] == 0
        assert made.end(agent) == 0
        assert unlimited(first)()


@needs_root
@needs_agents
@pytest.mark.parametrize("ipv6", [False, True])
def test_traces_of_several_links_are_read(ipv6: bool) -> None:
    with net() as made:
        made.use_ipv6()
        made.server(ipv6=ipv6)
        made.agent("--no-lend")
        own = made.connect(ipv6=ipv6)
        given = GIVEN6 if ipv6 else GIVEN
        assert paced_at(own, given)()
        # A SYN-ACK that two other switches have written to; this one puts its option in front.
        made.live.api.register_write("appends", [1], 0)
        traces = [PacingOption(Kind.TRACE, rate=20_000 * at, weight=2, link=at, hops=1).data for at in (4, 3)]
        frame = Ether(src=made._macs[2], dst=made._macs[1])
        if ipv6:
            options = [
                *(HBHOptUnknown(otype=0x3E, optdata=traces[0]), PadN(optdata=bytes(2))),
                HBHOptUnknown(otype=0x3E, optdata=traces[1]),
            ]
            ip6 = IPv6(src=address6(2), dst=address6(1)) / IPv6ExtHdrHopByHop(options=options)
            frame /= ip6
        else:
            frame /= IP(
                src=address(2), dst=address(1), options=[IPOption(b"\x5e\x0c" + one) for one in traces]
            )
        frame /= TCP(sport=5001, dport=own.getsockname()[1], flags="SA")
        made.at.hosts[1].send(bytes(frame))
        wait_for(lambda: made.status()["counts"]["traces"] == 4)
        (flow,) = made.status()["flows"]
        assert flow["links"] == {
            "7": pytest.approx(50 * 0.9975, rel=2e-3),
            "4": pytest.approx(40, rel=2e-3),
            "3": pytest.approx(30, rel=2e-3),
        }
        wait_for(paced_at(own, given * 30 / (50 * 0.9975)))
        # The other switches are told, and this one gives the rest to others.
        wait_for(lambda: made.status()["counts"]["updates"] >= 1)


@needs_root
@needs_agents
def test_which_flows_are_paced(tmp_path: Path) -> None:
    config = tmp_path / "agent.toml"
    config.write_text('ports = [5001]\ndestinations = ["10.9.0.0/30"]\nweight = 3\n')
    with net() as made:
        made.server()
        made.server(5002)
        before = made.connect(), made.connect(5002)
        agent = made.agent("--config", str(config), "--no-lend")
        # What exists is paced as soon as it is answered.
        wait_for(paced_at(before[0], GIVEN))
        after = made.connect(), made.connect(5002)
        wait_for(paced_at(before[0], GIVEN / 2))
        wait_for(paced_at(after[0], GIVEN / 2))
        assert unlimited(before[1])()
        assert unlimited(after[1])()
        assert all(flow["weight"] == 3 for flow in made.status()["flows"])
        config.write_text("ports = [5001, 5002]\ndestinations = []\n")
        agent.send_signal(signal.SIGHUP)
        wait_for(paced_at(before[1], GIVEN / 8))
        wait_for(paced_at(before[0], GIVEN * 3 / 8))
        config.write_text("ports = [0]")
        agent.send_signal(signal.SIGHUP)
        assert agent.stderr is not None
        said = [agent.stderr.readline() for _ in range(3)]
        assert any("not reloaded" in line and "TCP port" in line for line in said), said
        assert paced_at(before[1], GIVEN / 8)()


@needs_root
@needs_agents
def test_accepted_flows_and_those_of_a_cgroup() -> None:
    # The switch paces what goes to the second host: so the first one is to accept.
    with net() as made:
        root = Path(tmp) if (tmp := cgroup2()) else pytest.skip("cgroups of version 2 are not mounted")
        inside = root / f"tidegate-test-{os.getpid()}"
        inside.mkdir()
        made.stack.callback(inside.rmdir)
        made.agent("--direction", "accepted", "--cgroup", str(inside))

        def listen() -> socket.socket:
            listening = socket.create_server((address(1), 0))
            listening.settimeout(5)
            return listening

        here = f"/run/netns/{made.at.hosts[0].netns}"
        mine = Path("/proc/self/cgroup").read_text().splitlines()
        home = root / next(line[3:] for line in mine if line.startswith("0::")).lstrip("/")
        (inside / "cgroup.procs").write_text(str(os.getpid()))
        try:
            chosen = within(here, listen)
        finally:
            (home / "cgroup.procs").write_text(str(os.getpid()))
        other = within(here, listen)
        ends = []
        for one in (chosen, other):
            there = within(
                f"/run/netns/{made.at.hosts[1].netns}",
                lambda one=one: socket.create_connection(one.getsockname()),  # type: ignore[misc]
            )
            ends += [one.accept()[0], there, one]
        for end in ends:
            made.stack.callback(end.close)
        wait_for(paced_at(ends[0], GIVEN))
        assert unlimited(ends[3])()


@needs_root
@needs_agents
@pytest.mark.parametrize("both", [False, True])
def test_a_killed_agent_leaves_no_limits(both: bool) -> None:
    with net() as made:
        made.server()
        before = tso_rtt_log(made)
        agent = made.agent("--no-lend")
        own = made.connect()
        set_by_application = made.connect()
        wait_for(paced_at(own, GIVEN / 2))
        own_limit = 1_000_000
        set_by_application.setsockopt(socket.SOL_SOCKET, SO_MAX_PACING_RATE, struct.pack("=Q", own_limit))
        (keeper,) = _children(agent.pid)
        if both:
            os.kill(keeper, signal.SIGSTOP)
        agent.kill()
        agent.wait()
        if not both:
            wait_for(unlimited(own), 2)
            wait_for(lambda: not _alive(keeper), 2)
            assert tso_rtt_log(made) == before
        else:
            os.kill(keeper, signal.SIGKILL)
            wait_for(lambda: not _alive(keeper), 2)
            assert paced_at(own, GIVEN / 2)()
            done = made.command("clean")
            assert (done.returncode, "removed: limits of sockets" in done.stdout) == (0, True), done
            assert unlimited(own)()
            assert tso_rtt_log(made) == before
        # Limits that others have set stay.
        assert limit(set_by_application) == own_limit
        # Names of others' labs may be removed meanwhile.
        assert "removed: limits of sockets" not in made.command("clean").stdout
        assert "no agent runs" in made.command("agent", "status").stderr


@needs_root
@needs_agents
def test_no_limit_is_set_behind_lift() -> None:
    with net() as made:
        made.server()
        here = f"/run/netns/{made.at.hosts[0].netns}"
        pacer = within(here, lambda: Pacer(Settings(interfaces=("e0",))))
        made.stack.callback(pacer.close)
        first = made.connect()
        assert paced_at(first, GIVEN)()
        within(here, pacer.lift)
        assert unlimited(first)()
        # Until the programs are unloaded, they hear of flows.
        assert unlimited(made.connect())()
        assert unlimited(first)()


def _children(pid: int) -> list[int]:
    return [int(one) for one in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _alive(pid: int) -> bool:
    with suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


@needs_root
@needs_agents
@pytest.mark.parametrize("killed", [False, True])
def test_classes_of_htb(killed: bool) -> None:
    with net() as made:
        netns = made.at.hosts[0].netns

        def qdisc() -> str:
            return subprocess.run(
                ["tc", "-n", netns, "qdisc", "show", "dev", "e0"], capture_output=True, text=True
            ).stdout

        def classes() -> dict[int, float]:
            """Bytes/s."""
            with IPRoute(netns=netns) as kernel:
                (index,) = kernel.link_lookup(ifname="e0")
                found = kernel.get_classes(index)
            return {
                one["handle"] & 0xFFFF: one.get_attr("TCA_OPTIONS").get_attr("TCA_HTB_PARMS")["rate"]
                for one in found
            }

        made.server()
        before = qdisc()
        agent = made.agent("--pace-by", "htb", "--no-lend")
        assert qdisc().startswith("qdisc htb 7467:")
        frames = 50e6 / 8 * 0.9975
        flows = [made.connect() for _ in range(2)]
        for flow in flows:
            priority = flow.getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY)
            assert priority >> 16 == 0x7467
            wait_for(lambda p=priority: classes().get(p & 0xFFFF) == pytest.approx(frames / 2, rel=0.002))  # type: ignore[misc]
            assert unlimited(flow)()
        if killed:
            agent.kill()
            agent.wait()
            wait_for(lambda: qdisc() == before, 2)
        else:
            assert made.end(agent) == 0
            assert qdisc() == before
        assert flows[0].getsockopt(socket.SOL_SOCKET, socket.SO_PRIORITY) == 0


@needs_root
@needs_agents
def test_a_qdisc_that_cannot_be() -> None:
    with place(1) as made:
        netns = made.hosts[0].netns
        agent = ["nsenter", f"--net=/run/netns/{netns}", *AGENT, "-i", "e0", "--pace-by"]
        subprocess.run(
            [
                "tc",
                "-n",
                netns,
                "qdisc",
                "add",
                "dev",
                "e0",
                "root",
                "tbf",
                "rate",
                "9mbit",
                "burst",
                "9k",
                "limit",
                "9k",
            ],
            check=True,
        )
        done = subprocess.run([*agent, "htb"], capture_output=True, text=True)
        assert (
            done.returncode,
            "interface e0 has the qdisc tbf, which somebody has chosen" in done.stderr,
        ) == (1, True)
        subprocess.run(["tc", "-n", netns, "qdisc", "del", "dev", "e0", "root"], check=True)
        has_fq = (
            subprocess.run(
                ["tc", "-n", netns, "qdisc", "add", "dev", "e0", "root", "fq"], capture_output=True
            ).returncode
            == 0
        )
        if not has_fq:
            done = subprocess.run([*agent, "fq"], capture_output=True, text=True)
            assert (done.returncode, "interface e0: fq cannot be set up" in done.stderr) == (1, True), (
                done.stderr
            )
        assert within(f"/run/netns/{netns}", _left) == []


@needs_root
@needs_agents
def test_a_dead_keeper_is_replaced() -> None:
    with net() as made:
        made.server()
        agent = made.agent()
        own = made.connect()
        (keeper,) = _children(agent.pid)
        os.kill(keeper, signal.SIGKILL)
        wait_for(lambda: _children(agent.pid) not in ([], [keeper]))
        agent.kill()
        agent.wait()
        wait_for(unlimited(own), 2)


@needs_root
@needs_agents
def test_a_switch_that_stops_answering() -> None:
    with net() as made:
        server = made.server()
        made.agent("--refresh", "300ms", "--timeout", "900ms")
        own = made.connect()
        there = server.accept()[0]
        made.stack.callback(there.close)
        assert paced_at(own, GIVEN)()

        def talk() -> None:
            own.send(b"x" * 100)
            there.recv(1000)

        made.live.api.register_write("capacity", [0], 2)

        def lifted() -> bool:
            talk()
            return unlimited(own)()

        wait_for(lifted)
        (flow,) = made.status()["flows"]
        assert (flow["state"], flow["why"]) == ("silent", "its switches have stopped answering")
        # It has forgotten the flow meanwhile, and is asked.
        made.switch.close()
        made.run_switch()

        def paced() -> bool:
            talk()
            return limit(own) < 2**32 - 1

        wait_for(paced)
        assert made.status()["counts"]["silent"] == 1


@needs_root
@needs_agents
def test_what_an_application_leaves_is_given_to_others() -> None:
    with net() as made:
        server = made.server()
        made.agent()
        idle, busy = made.connect(), made.connect()
        made.stack.callback(server.accept()[0].close)
        assert paced_at(busy, GIVEN / 2)()
        there = server.accept()[0]
        there.settimeout(0)
        busy.settimeout(0)

        def moves() -> bool:
            with suppress(BlockingIOError):
                while True:
                    busy.send(bytes(65536))
            with suppress(BlockingIOError):
                while there.recv(1 << 20):
                    pass
            return limit(busy) > 0.9 * GIVEN

        wait_for(moves, 10)
        told = {flow["local"].rpartition(":")[2]: flow for flow in made.status()["flows"]}
        assert told[str(idle.getsockname()[1])]["used_mbps"] < 0.1
        there.close()


@needs_root
@needs_agents
def test_without_the_switch_the_second_syn_connects() -> None:
    with net() as made:
        made.server()
        made.agent()
        # Packets with options are lost on the way, as in some networks.
        drop = ["tc", "-n", made.at.hosts[0].netns]
        subprocess.run([*drop, "qdisc", "add", "dev", "e0", "clsact"], check=True)
        ip("-n", made.at.hosts[0].netns, "link", "add", "hole", "type", "veth", "peer", "ground")
        ip("-n", made.at.hosts[0].netns, "link", "set", "hole", "up")
        match = ["match", "u8", "0x48", "0xff", "at", "0"]
        away = ["action", "mirred", "egress", "redirect", "dev", "hole"]
        words = ["filter", "add", "dev", "e0", "egress", "protocol", "ip", "u32", *match, *away]
        subprocess.run([*drop, *words], check=True)
        own = made.connect()
        counts = made.status()["counts"]
        assert (counts["marked"], counts["unmarked"]) == (1, 1)
        assert unlimited(own)()
        (flow,) = made.status()["flows"]
        assert (flow["state"], flow["why"]) == ("asking", "no switch has answered")


@needs_root
@needs_agents
def test_metrics_log_and_an_interface_that_goes() -> None:
    with net() as made:
        made.server()
        agent = made.agent("--metrics-addr", "127.0.0.1:0", "--log-format", "json", until="metrics at")
        own = made.connect()
        assert paced_at(own, GIVEN)()
        port = listening(agent.pid, made.at.hosts[0].netns)
        page = within(
            f"/run/netns/{made.at.hosts[0].netns}",
            lambda: urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=5).read().decode(),
        )
        assert 'tidegate_agent_flows{state="paced"} 1.0' in page
        assert "tidegate_agent_marked_total 1.0" in page
        ip("-n", made.at.hosts[0].netns, "link", "set", "e0", "down")
        ip("-n", made.at.hosts[0].netns, "link", "set", "e0", "name", "e1")
        assert agent.stderr is not None
        wait_for(lambda: made.status()["lost_interfaces"] == ["e0"])
        ip("-n", made.at.hosts[0].netns, "link", "set", "e1", "name", "e0")
        wait_for(lambda: made.status()["lost_interfaces"] == [])
        agent.send_signal(signal.SIGTERM)
        lines = [json.loads(line) for line in agent.stderr]
        messages = [line["message"] for line in lines]
        assert "interface e0 is gone; its flows are not told any more" in messages
        assert lines[-1]["message"] == "stops: limits are lifted"


@needs_root
@needs_agents
@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["-i", "nowhere0"], "there is no interface 'nowhere0'; there are e0, lo, tun0"),
        (["--cgroup", "/nowhere"], "cgroup /nowhere: there is no such folder"),
        (["--cgroup", "/tmp"], "cgroup /tmp: it is in no file system of cgroups of version 2"),
        (["-i", "tun0"], "interface tun0 has no Ethernet header (kind 65534)"),
        (["--metrics-addr", "192.0.2.1:80", "--insecure"], "Cannot assign requested address"),
        (["--metrics-addr", "0.0.0.0:80"], "or --insecure if this is meant"),
    ],
)
def test_what_is_not_there(words: list[str], why: str) -> None:
    with place(1) as made:
        ip("-n", made.hosts[0].netns, "tuntap", "add", "tun0", "mode", "tun")
        netns = f"--net=/run/netns/{made.hosts[0].netns}"
        done = subprocess.run(["nsenter", netns, *AGENT, "-i", "e0", *words], capture_output=True, text=True)
        assert (done.returncode, why in done.stderr, "Traceback" in done.stderr) == (1, True, False), (
            done.stderr
        )
        left = within(f"/run/netns/{made.hosts[0].netns}", _left)
        assert left == []


def _left() -> list[Path]:
    from tidegate.systems.pacing.service import left

    return [left.path()] if left.path().exists() else []


@needs_root
@needs_agents
def test_two_agents() -> None:
    with net() as made:
        made.agent()
        done = made.command("agent", "-i", "e0")
        assert (done.returncode, "an agent runs already in this network namespace" in done.stderr) == (
            1,
            True,
        )


@needs_root
@needs_agents
@pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs setpriv")
@pytest.mark.skipif(cgroup2() is None, reason="cgroups of version 2 are not mounted")
def test_four_capabilities_are_enough(tmp_path: Path) -> None:
    needed = ["bpf", "perfmon", "net_admin", "net_raw"]
    os.chown(tmp_path, 65534, 65534)
    for held in (needed, needed[1:]):
        # This one for the files of this user's Python alone.
        given = ",".join(["-all", *(f"+{name}" for name in [*held, "dac_read_search"])])
        user = ["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups"]
        words = [f"--{kind}={given}" for kind in ("bounding-set", "inh-caps", "ambient-caps")]
        with place(1) as made:
            command = [
                "nsenter",
                f"--net=/run/netns/{made.hosts[0].netns}",
                *user,
                *words,
                *AGENT,
                "-i",
                "e0",
            ]
            environment = os.environ | {"RUNTIME_DIRECTORY": str(tmp_path)}
            with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment) as process:
                assert process.stderr is not None
                said = process.stderr.readline()
                if held == needed:
                    process.send_signal(signal.SIGTERM)
                said += process.stderr.read()
        if held == needed:
            assert said.startswith("paces flows at e0"), said
            assert process.returncode == 0
        else:
            assert said == "the agent needs CAP_BPF: run it as root, or from its systemd unit\n"
            assert process.returncode == 1
        assert list(tmp_path.iterdir()) == []


@needs_root
@needs_agents
@needs_strace
@needs_systemd
def test_the_unit_permits_the_calls_that_it_makes(tmp_path: Path) -> None:
    """From its start to its end, with what it starts: the compiler and the keeper."""
    unit = subprocess.run([*AGENT, "unit"], capture_output=True, text=True, check=True).stdout
    with place(1) as made:
        command = ["nsenter", f"--net=/run/netns/{made.hosts[0].netns}"]
        command += [*STRACE, str(tmp_path / "calls"), *AGENT, "-i", "e0"]
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            said = process.stderr.readline()
            os.kill(system_calls.traced(process.pid), signal.SIGTERM)
            said += process.stderr.read()
    assert said.startswith("paces flows at e0"), said
    calls = system_calls.made(tmp_path / "calls")
    assert {"bpf", "execve"} <= calls
    assert calls - system_calls.permitted(unit) == set()
