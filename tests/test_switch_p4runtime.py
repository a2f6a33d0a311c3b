"""P4Runtime in front of a switch between real interfaces."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.request import urlopen

import pytest

import system_calls
from namespaces import Place, needs_root, place, within
from switches import LEARNING, MACS, between, frame, ports, run, until_running, waited_for
from system_calls import needs_strace, needs_systemd
from tidegate import TidegateError, addresses, p4, p4runtime
from tidegate.p4runtime.messages import p4 as messages
from tidegate.p4runtime.messages import parse_p4info
from tidegate.switch.metrics import families
from tidegate.switch.remote import served, tls
from tidegate.switch.running import LiveSwitch

EVERYTHING = Path(p4runtime.__file__).with_name("everything.p4")
CPU = 100


@pytest.fixture
def two() -> Iterator[Place]:
    with place(2) as made:
        yield made


@pytest.fixture
def live(two: Place) -> Iterator[LiveSwitch]:
    switch = LiveSwitch(p4.compile(EVERYTHING), ports(two, "packet"), cpu_port=CPU)
    with switch, waited_for(switch):
        yield switch


def ids(connection: p4runtime.Connection) -> dict[str, int]:
    info = connection.get_config().p4info
    found = {
        item.preamble.name: item.preamble.id
        for descriptor, items in info.ListFields()
        if descriptor.name not in ("pkg_info", "type_info")
        for item in items
    }
    return {name.rpartition(".")[2]: number for name, number in found.items()} | found


def test_what_tls_needs() -> None:
    assert tls(None, None, None) is None
    for given in ((Path("c"), None, None), (None, Path("k"), None), (None, None, Path("ca"))):
        with pytest.raises(TidegateError, match="--grpc-cert and --grpc-key"):
            tls(*given)


@pytest.mark.parametrize(
    ("host", "holds"),
    [
        ("127.0.0.1", True),
        ("127.9.9.9", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("box", False),
    ],
)
def test_which_addresses_are_this_machine_s_alone(host: str, holds: bool) -> None:
    assert addresses.is_loopback(host) is holds


@needs_root
def test_packets_to_and_from_a_controller(two: Place, live: LiveSwitch) -> None:
    lldp = bytes(12) + b"\x88\xcc" + bytes(46)
    with (
        served(live, "127.0.0.1:0", 7, None) as server,
        p4runtime.Connection(server.address, device_id=7) as controller,
    ):
        assert controller.next("arbitration").status.code == 0
        two.hosts[1].send(lldp)
        packet = controller.next("packet")
        assert packet.payload == lldp
        assert [item.value for item in packet.metadata] == [b"\x02", b"\x00"]
        out = messages.StreamMessageRequest()
        out.packet.payload = frame(1, 2)
        out.packet.metadata.add(metadata_id=1, value=b"\x01")
        out.packet.metadata.add(metadata_id=2, value=b"\x00")
        controller.send(out)
        assert two.hosts[0].receive(1) == [frame(1, 2)]


@needs_root
def test_entries_are_written_while_packets_flow_and_none_is_lost(two: Place, live: LiveSwitch) -> None:
    target, batches, size = 20_000, 20, 500
    with served(live, "127.0.0.1:0", 1, None) as server, p4runtime.Connection(server.address) as controller:
        controller.next("arbitration")
        known = ids(controller)

        def entry(key: bytes, port: int) -> object:
            made = messages.TableEntry(table_id=known["exact_table"])
            made.match.add(field_id=1, exact={"value": key})
            made.action.action.action_id = known["forward"]
            made.action.action.params.add(param_id=1, value=bytes([port]))
            return messages.Entity(table_entry=made)

        controller.write(("INSERT", entry(MACS[2], 2)))
        done = threading.Event()
        sent = 0

        def send() -> None:
            nonlocal sent
            data = frame(1, 2)
            until = time.monotonic() + 10
            while time.monotonic() < until and (sent < target and not (done.is_set() and sent > 1000)):
                for _ in range(4):
                    two.hosts[0].send(data)
                sent += 4
                time.sleep(0.001)

        sending = threading.Thread(target=send)
        sending.start()
        for batch in range(batches):
            first = 1 + batch * size
            keys = [(0x0400_0000_0000 + index).to_bytes(6) for index in range(first, first + size)]
            controller.write(*[("INSERT", entry(key, 1)) for key in keys])
        done.set()
        sending.join()
        until = time.monotonic() + 10
        while live.statistics()["ports"][1]["sent"] < sent and time.monotonic() < until:
            time.sleep(0.01)
        counts = live.statistics()["ports"]
        assert (counts[0]["received"], counts[1]["sent"]) == (sent, sent)
        assert live.api.drops == {}
        assert len(live.api.table_entries("exact_table")) == batches * size + 1


@needs_root
def test_another_program_while_packets_flow(two: Place, live: LiveSwitch) -> None:
    learning = p4.compile(LEARNING)
    config = messages.ForwardingPipelineConfig(
        p4info=parse_p4info(learning.p4info), p4_device_config=LEARNING.read_bytes()
    )
    with served(live, "127.0.0.1:0", 1, None) as server, p4runtime.Connection(server.address) as controller:
        controller.next("arbitration")
        (streams,) = (item for item in families(live) if item.name == "p4runtime_streams")
        assert streams.rows == [((), 1)]
        two.hosts[0].send(frame(1, 2))
        controller.set_config("VERIFY_AND_COMMIT", config)
        between(live)
        two.hosts[0].send(frame(1, 2))
        assert two.hosts[1].receive(1) == [frame(1, 2)]
        (sizes,) = (item for item in families(live) if item.name == "table_size")
        assert {labels for labels, _ in sizes.rows} == {
            ("SwitchIngress.source",),
            ("SwitchIngress.destination",),
        }


CLIENT = """
import sys
from tidegate.p4runtime import ClientTls, connect
from pathlib import Path
secret = ClientTls(Path(sys.argv[2])) if len(sys.argv) > 2 else None
with connect(sys.argv[1], device_id=3, tls=secret) as switch:
    switch.table_add("destination", [0x020000000002], "forward", [2])
    print(len(switch.table_entries("destination")))
"""


@needs_root
@needs_strace
@needs_systemd
def test_the_unit_permits_the_calls_of_a_switch(two: Place, tmp_path: Path) -> None:
    """From its start to its end: a compiled program, AF_XDP, a TAP device, a P4Runtime client, metrics and frames."""
    unit = subprocess.run(
        [sys.executable, "-m", "tidegate", "unit", "switch"], capture_output=True, text=True, check=True
    ).stdout
    words = [str(LEARNING), "-i", "1@p1", "-i", "2@p2", "-i", "3@tap:tap0", "--device-id", "3"]
    words += ["--grpc-addr", ":0", "--metrics-addr", "127.0.0.1:9100"]
    process = run(two, *words, under=[*system_calls.STRACE, str(tmp_path / "calls")])
    said = until_running(process)
    (address,) = re.findall(r"P4Runtime on ([\d.:]+)", said)
    client = ["ip", "netns", "exec", two.name, sys.executable, "-c", CLIENT, address]
    subprocess.run(client, check=True, capture_output=True, timeout=60)
    metrics = within(str(two.file), lambda: urlopen("http://127.0.0.1:9100/metrics", timeout=20).read())
    assert b"tidegate_" in metrics
    two.hosts[0].send(frame(1, 2))
    assert frame(1, 2) in two.hosts[1].receive(1)
    os.kill(system_calls.traced(process.pid), signal.SIGTERM)
    assert process.wait(20) == 0
    calls = system_calls.made(tmp_path / "calls")
    assert {"bpf", "listen", "ioctl"} <= calls
    # The program's machine code.
    assert re.search(r"mprotect\(.*PROT_EXEC\)", (tmp_path / "calls").read_text())
    assert calls - system_calls.permitted(unit) == set()


@needs_root
def test_the_command_serves_and_ends(two: Place, tmp_path: Path) -> None:
    words = [str(LEARNING), "-i", "1@p1", "-i", "2@p2"]
    process = run(two, *words, "--grpc-addr", ":0", "--device-id", "3")
    said = until_running(process)
    (line,) = (line for line in said.splitlines() if line.startswith("P4Runtime on "))
    address = line.split()[2].rstrip(",")
    client = ["ip", "netns", "exec", two.name, sys.executable, "-c", CLIENT, address]
    ran = subprocess.run(client, capture_output=True, text=True, timeout=60, check=False)
    assert (ran.returncode, ran.stdout) == (0, "1\n"), ran.stderr
    two.hosts[0].send(frame(1, 2))
    assert frame(1, 2) in two.hosts[1].receive(1)
    # Another one on the same port.
    other = run(two, str(LEARNING), "-i", "1@tap:taken", "--grpc-addr", address)
    _, refused = other.communicate(timeout=60)
    assert other.returncode == 1
    assert "Address already in use; give another address" in refused
    assert "add_port" not in refused, "one message"
    process.terminate()
    _, rest = process.communicate(timeout=60)
    assert process.returncode == 0, rest


@needs_root
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--grpc-cert", "none.pem"], "give it too"),
        (["--grpc-addr", ":0", "--grpc-cert", "none.pem"], "--grpc-cert and --grpc-key"),
        (["--grpc-addr", ":0", "--grpc-cert", "none.pem", "--grpc-key", "none.key"], "cannot be read"),
        (["--grpc-addr", "here"], "not an address"),
    ],
)
def test_what_the_command_refuses(two: Place, words: list[str], said: str) -> None:
    process = run(two, str(LEARNING), "-i", "1@p1", *words)
    _, refused = process.communicate(timeout=60)
    assert process.returncode == 1
    assert said in refused


@needs_root
def test_an_operator_resets_elections(two: Place) -> None:
    process = run(two, str(LEARNING), "-i", "1@p1", "-i", "2@p2", "--grpc-addr", ":0")
    address = until_running(process).partition("P4Runtime on ")[2].partition(",")[0]
    client = [*("ip", "netns", "exec", two.name, sys.executable, "-c", GREEDY), address]
    greedy = subprocess.Popen(client, stdout=subprocess.PIPE, text=True)
    assert greedy.stdout is not None
    assert greedy.stdout.readline() == "primary\n"
    process.send_signal(signal.SIGUSR1)
    said, _ = greedy.communicate(timeout=60)
    assert said == "an operator has reset the elections; open another stream\n0\n"
    process.terminate()
    _, rest = process.communicate(timeout=60)
    assert "P4Runtime elections are reset" in rest
    assert process.returncode == 0, rest


GREEDY = """
import sys
from tidegate.p4runtime.connection import Connection, Refused
top = 2**64 - 1
greedy = Connection(sys.argv[1], election_id=(top, top))
if greedy.next("arbitration").status.code == 0:
    print("primary", flush=True)
try:
    greedy.next("nothing")
except Refused as refused:
    print(refused.reason)
print(Connection(sys.argv[1], election_id=1).next("arbitration").status.code)
"""


NAMED = """
#include <v1model.p4>
@p4runtime_translation("", string) type bit<9> port_id_t;
@p4runtime_translation("", string) type bit<10> vrf_id_t;
header h_t { bit<8> a; }
struct H { h_t h; }
struct M { vrf_id_t vrf; }
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { p.extract(h.h); transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) {
    action send(port_id_t port, vrf_id_t vrf) { s.egress_spec = (bit<9>) port; m.vrf = vrf; }
    table t { key = { h.h.a: exact; } actions = { send; NoAction; } }
    apply { t.apply(); }
}
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply { p.emit(h.h); } }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


@needs_root
def test_interfaces_name_ports_and_nothing_else(two: Place) -> None:
    with LiveSwitch(p4.Program.from_text(NAMED), ports(two, "packet")) as switch, waited_for(switch):
        first = switch.ports[0]
        with served(switch, "127.0.0.1:0", 1, None) as server, p4runtime.Connection(server.address) as made:
            made.next("arbitration")
            known = ids(made)
            entry = messages.TableEntry(table_id=known["t"])
            entry.match.add(field_id=1, exact={"value": b"\x01"})
            entry.action.action.action_id = known["send"]
            for number, value in enumerate((first.interface, str(first.number)), 1):
                entry.action.action.params.add(param_id=number, value=value.encode())
            made.write(("INSERT", messages.Entity(table_entry=entry)))
            (read,) = made.read(messages.Entity(table_entry={"table_id": known["t"]}))
            assert read.table_entry == entry
