"""Setting and getting the program, and the server itself: addresses, TLS, capabilities."""

from __future__ import annotations

import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from tidegate import TidegateError
from tidegate import p4 as programs
from tidegate.control import operations as op
from tidegate.p4runtime import Server, Tls
from tidegate.p4runtime.conftest import (
    LOOPBACK,
    TEXT,
    Bench,
    Ids,
    Simulated,
    exact,
    frame,
    lldp,
    wait_for,
)
from tidegate.p4runtime.connection import ClientTls, Connection, Refused
from tidegate.p4runtime.device import Device
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.test_compiling import program

# Sends everything to port 3 that was for no port.
OTHER = TEXT.replace("default_action = drop();", "default_action = forward(3);")
SMALL = """
#include <v1model.p4>
struct H {}
struct M {}
parser P(packet_in p, out H h, inout M m, inout standard_metadata_t s) { state start { transition accept; } }
control C(inout H h, inout M m) { apply {} }
control I(inout H h, inout M m, inout standard_metadata_t s) { register<bit<32>>(8) words; apply { words.write(1, 7); s.egress_spec = 2; } }
control E(inout H h, inout M m, inout standard_metadata_t s) { apply {} }
control D(packet_out p, in H h) { apply {} }
V1Switch(P(), C(), I(), E(), C(), D()) main;
"""


def config(text: str, cookie: int | None = None, device_config: bytes | None = None) -> Any:
    info = parse_p4info(programs.Program.from_text(text).p4info)
    made = p4.ForwardingPipelineConfig(p4info=info, p4_device_config=text.encode())
    if device_config is not None:
        made.p4_device_config = device_config
    if cookie is not None:
        made.cookie.cookie = cookie
    return made


def refused(bench: Bench, action: str, given: Any = None) -> str:
    with pytest.raises(Refused) as caught:
        bench.primary.set_config(action, given)
    return caught.value.code


def test_a_client_sets_a_program_and_gets_it_again(bench: Bench) -> None:
    bench.primary.write(("INSERT", bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"))))
    given = config(SMALL, cookie=77)
    bench.primary.set_config("VERIFY", given)
    assert not bench.primary.get_config().HasField("cookie"), "nothing has changed"
    bench.primary.set_config("VERIFY_AND_COMMIT", given)
    assert bench.primary.get_config() == given
    for what, fields in (
        ("COOKIE_ONLY", {"cookie"}),
        ("P4INFO_AND_COOKIE", {"p4info", "cookie"}),
        ("DEVICE_CONFIG_AND_COOKIE", {"p4_device_config", "cookie"}),
    ):
        assert {d.name for d, _ in bench.primary.get_config(what).ListFields()} == fields
    assert bench.pipeline.process(1, 1, frame()) == [(2, frame())]
    ids = Ids(given.p4info)
    (cell,) = bench.primary.read(
        p4.Entity(register_entry={"register_id": ids("words"), "index": {"index": 1}})
    )
    assert cell.register_entry.data.bitstring == b"\x07"
    with pytest.raises(Refused):
        bench.primary.read(bench.entry("exact_table"))
    bench.primary.set_config("VERIFY_AND_COMMIT", config(TEXT))
    assert bench.primary.read(bench.entry("exact_table")) == [], "it begins anew"


def test_save_then_commit(bench: Bench) -> None:
    assert refused(bench, "COMMIT") == "NOT_FOUND"
    bench.primary.set_config("VERIFY_AND_SAVE", config(SMALL))
    ids = Ids(config(SMALL).p4info)
    # Reads and writes are of the program that is saved; packets still go through the other one.
    cell = p4.Entity(
        register_entry={"register_id": ids("words"), "index": {"index": 3}, "data": {"bitstring": b"\x09"}}
    )
    bench.primary.write(("MODIFY", cell))
    assert bench.primary.read(cell) == [cell]
    assert bench.pipeline.process(1, 1, frame()) == []
    assert refused(bench, "COMMIT", config(SMALL)) == "INVALID_ARGUMENT"
    bench.primary.set_config("COMMIT")
    assert bench.pipeline.process(1, 1, frame()) == [(2, frame())]
    assert bench.primary.read(cell) == [cell], "what was written comes with it"
    assert refused(bench, "COMMIT") == "NOT_FOUND"


def test_what_is_replaced_is_freed_when_nobody_waits(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program that ran, and one that was saved and is not run."""
    freed: list[bool] = []
    busy = bench.server._busy

    class Left:
        def free(self) -> None:
            got = threading.Event()

            def other() -> None:
                with busy:
                    got.set()

            threading.Thread(target=other, daemon=True).start()
            freed.append(got.wait(5))

    class Engine:
        def give_up(self) -> Left:
            return Left()

    def install(self: Device, pipeline: programs.Pipeline, keep_state: bool) -> Left:
        self._core.install(pipeline.engine, keep_state)
        return Left()

    monkeypatch.setattr(Device, "install", install)
    bench.primary.set_config("VERIFY_AND_SAVE", config(SMALL))
    bench.primary.set_config("COMMIT")
    assert freed == [True], "the program that ran"
    for action in ("VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"):
        bench.primary.set_config("VERIFY_AND_SAVE", config(SMALL))
        saved = bench.server._config._saved
        assert saved is not None
        assert saved.device.pipeline is not None
        monkeypatch.setattr(saved.device.pipeline, "engine", Engine())
        freed.clear()
        bench.primary.set_config(action, config(SMALL))
        assert freed == [True] * (1 if action == "VERIFY_AND_SAVE" else 2), action
        assert saved.replaced


@pytest.mark.parametrize("keep_state", [False, True])
def test_a_program_takes_the_place_of_another_in_no_time_however_many_entries_its_text_has(
    keep_state: bool,
) -> None:
    """To make them takes some 30 ms, and to compare them with others' as many; requests of others would wait for both."""
    entries = "".join(f"({n % 256}, {n // 256}): a();" for n in range(20_000))
    table = f"table t {{ key = {{ m.x: exact; m.y: exact; }} actions = {{ a; }} const entries = {{ {entries} }} }}"
    text = program(f"action a() {{ m.x = 1; }} {table}", "t.apply();")
    made = programs.Program.from_text(text.replace("bit<8> x;", "bit<8> x; bit<8> y;", 1))
    device = Device(made.pipeline())
    times = []
    for _ in range(5):
        core, next_ = device._core, made.pipeline().engine
        began = time.perf_counter()
        left = core.install(next_, keep_state)
        times.append(time.perf_counter() - began)
        left.free()
    assert min(times) < 0.01


def test_idle_timeouts_begin_when_a_saved_program_is_run(bench: Bench) -> None:
    """However long the switch has been up: what is saved is on a pipeline whose clock stands."""
    bench.pipeline.advance(10**15)
    bench.primary.set_config("VERIFY_AND_SAVE", config(TEXT))
    minute = {"idle_timeout_ns": 60 * 10**9}
    entry = bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"), **minute)
    bench.primary.write(("INSERT", entry))
    bench.primary.set_config("COMMIT")
    told: list[Any] = []
    bench.server._tell = lambda *given: told.append(given)  # type: ignore[method-assign]
    bench.server.poll()
    asked = bench.entry("exact_table", time_since_last_hit={})
    (read,) = bench.primary.read(asked)
    assert (read.table_entry.time_since_last_hit.elapsed_ns, told) == (0, [])
    bench.pipeline.advance(10**15 + 60 * 10**12)
    bench.server.poll()
    assert [what for what, *_ in told] == ["idle_timeouts"]


def test_packets_of_the_old_program_are_not_sent(everything: programs.Program) -> None:
    """They have its header, not that of the new one."""
    with (
        Simulated(everything) as simulated,
        Server(simulated.api, everything, address=LOOPBACK, lock=simulated.lock) as server,
        Connection(server.address) as primary,
    ):
        primary.next("arbitration")

        def counted(what: str) -> int:
            with simulated.lock:
                return int(simulated.surface.act(op.StatisticsRead())[what])

        with simulated.lock:
            simulated.surface.act(op.GeneratorSet(1, (3, lldp(9), 50_000_000_000)))
        wait_for(lambda: counted("packet_ins") > 0)
        with simulated.lock:
            simulated.surface.act(op.GeneratorStop(1))
        waiting, dropped = counted("packet_ins"), counted("dropped")
        primary.set_config("VERIFY_AND_COMMIT", config(SMALL))
        assert (counted("packet_ins"), counted("dropped")) == (0, dropped + waiting)
        server.poll()
        primary.arbitrate(1)
        assert primary.heard.get(timeout=20).WhichOneof("update") == "arbitration"


def test_reconcile_keeps_what_is_there(bench: Bench) -> None:
    entry = bench.entry("exact_table", exact(b"\x01"), action=bench.action("forward", b"\x05"))
    bench.primary.write(("INSERT", entry))
    new = config(TEXT.replace("h.probe.a = value;", "h.probe.a = value + 1;"))
    bench.primary.set_config("RECONCILE_AND_COMMIT", new)
    assert bench.primary.read(bench.entry("exact_table")) == [entry]
    assert bench.pipeline.process(1, 1, frame(probe=b"\x01" + bytes(7)))[0][1][15] == 12, "the new program"
    assert refused(bench, "RECONCILE_AND_COMMIT", config(SMALL)) == "INVALID_ARGUMENT"
    assert bench.primary.read(bench.entry("exact_table")) == [entry], "nothing has changed"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (b"{}", "JSON"),
        (b"\xff\xfe\x00", "text"),
        (b"control", "compile"),
        (b'#include "/etc/passwd"\n' + SMALL.encode(), "cannot find"),
        (SMALL.encode(), "P4Info"),
        (OTHER.replace("bit<48>>(65536) cells", "bit<48>>(65535) cells").encode(), "cells"),
    ],
)
def test_configs_that_are_refused(bench: Bench, text: bytes, said: str) -> None:
    before = bench.primary.get_config()
    for action in ("VERIFY", "VERIFY_AND_SAVE", "VERIFY_AND_COMMIT", "RECONCILE_AND_COMMIT"):
        with pytest.raises(Refused, match=said) as caught:
            bench.primary.set_config(action, config(TEXT, device_config=text))
        assert caught.value.code == "INVALID_ARGUMENT"
        assert refused(bench, action) == "INVALID_ARGUMENT"
    assert refused(bench, "UNSPECIFIED", config(TEXT)) == "INVALID_ARGUMENT"
    assert bench.primary.get_config() == before
    assert bench.primary.read(bench.entry("exact_table")) == []


def test_a_program_that_asks_for_more_copies_than_there_can_be(bench: Bench) -> None:
    for asked, fits in (
        ("multicast_group_table_size=65535, multicast_group_table_max_replicas_per_entry=4096", True),
        ("multicast_group_table_total_replicas=5000, multicast_group_table_max_replicas_per_entry=10", True),
        ("multicast_group_table_size=65536", False),
        ("multicast_group_table_max_replicas_per_entry=4097", False),
        ("multicast_group_table_total_replicas=4097", False),
    ):
        text = SMALL.replace("V1Switch(", f"@platform_property({asked}) V1Switch(")
        made = config(text)
        assert made.p4info.pkg_info.HasField("platform_properties")
        if fits:
            bench.primary.set_config("VERIFY", made)
        else:
            assert refused(bench, "VERIFY", made) == "INVALID_ARGUMENT"


def test_an_empty_device_config_means_the_program_that_runs(bench: Bench) -> None:
    bench.primary.set_config("VERIFY_AND_COMMIT", config(TEXT, cookie=1, device_config=b""))
    assert bench.primary.get_config("COOKIE_ONLY").cookie.cookie == 1
    assert refused(bench, "VERIFY", config(SMALL, device_config=b"")) == "INVALID_ARGUMENT"


def test_only_a_primary_sets_a_program(bench: Bench) -> None:
    with Connection(bench.server.address, election_id=None) as backup:
        backup.next("arbitration")
        with pytest.raises(Refused) as caught:
            backup.set_config("VERIFY", config(SMALL))
        assert caught.value.code == "PERMISSION_DENIED"
        backup.device_id = 9
        for call in (lambda: backup.set_config("VERIFY", config(SMALL)), backup.get_config):
            with pytest.raises(Refused) as caught:
                call()
            assert caught.value.code == "NOT_FOUND"


def test_nothing_is_read_or_written_before_a_program_is_set(everything: programs.Program) -> None:
    small = programs.Program.from_text(SMALL)
    pipeline = small.pipeline()
    with Server(pipeline, None, address=LOOPBACK) as server, Connection(server.address) as controller:
        controller.next("arbitration")
        for call in (
            lambda: controller.write(("INSERT", p4.Entity())),
            lambda: controller.read(p4.Entity(counter_entry={})),
        ):
            with pytest.raises(Refused) as caught:
                call()
            assert caught.value.code == "FAILED_PRECONDITION"
        controller.send(p4.StreamMessageRequest(packet={}))
        assert controller.next("error").canonical_code == 9
        assert controller.get_config() == p4.ForwardingPipelineConfig()
        controller.set_config("VERIFY_AND_COMMIT", config(TEXT))
        assert len(controller.read(p4.Entity(counter_entry={}))) == 8


def test_a_program_is_set_on_a_switch_while_packets_flow(everything: programs.Program) -> None:
    with (
        Simulated(everything) as simulated,
        Server(simulated.api, everything, address=LOOPBACK, lock=simulated.lock) as server,
        Connection(server.address) as controller,
    ):
        controller.next("arbitration")
        with simulated.lock:
            simulated.surface.act(op.GeneratorSet(1, (1, frame(), 100_000_000)))
        for text in (SMALL, TEXT, SMALL):
            controller.set_config("VERIFY_AND_COMMIT", config(text))
        with simulated.lock:
            counts = simulated.surface.act(op.StatisticsRead())
        assert counts["generated"] + counts["received"] + counts["made"] + counts["packet_outs"] == (
            counts["transmitted"] + counts["packet_ins"] + counts["dropped"] + counts["held"]
        )


def test_capabilities_and_the_switch_s_clock(bench: Bench) -> None:
    answer = bench.primary.call("Capabilities", p4.CapabilitiesRequest(device_id=1))
    assert answer.p4runtime_api_version.count(".") == 2
    bench.pipeline.advance(12345)
    assert bench.primary.now() == 12345


@pytest.mark.parametrize(
    "address", ["9559x", "127.0.0.1", "127.0.0.1:99999", "192.0.2.1:9559", "", "::1:9559"]
)
def test_addresses_that_cannot_be_served(everything: programs.Program, address: str) -> None:
    with pytest.raises(TidegateError, match="address"):
        Server(everything.pipeline(), everything, address=address, insecure=True)


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:9559", "box:9559"])
def test_addresses_that_others_reach_need_tls(everything: programs.Program, address: str) -> None:
    with pytest.raises(
        TidegateError, match="without TLS, anyone who reaches this address controls the switch"
    ):
        Server(everything.pipeline(), everything, address=address)


def test_a_port_that_is_taken(bench: Bench, everything: programs.Program) -> None:
    with pytest.raises(TidegateError, match="Address already in use; give another address"):
        Server(everything.pipeline(), everything, address=bench.server.address)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An authority, and what it has signed: a server and a client; a stranger of another authority."""
    where = tmp_path_factory.mktemp("tls")

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=where, check=True, capture_output=True)

    key = ["-newkey", "rsa:2048", "-nodes"]
    for authority in ("ca", "other"):
        openssl(
            *("req", "-x509", *key, "-keyout", f"{authority}.key", "-out", f"{authority}.pem"),
            *("-subj", f"/CN={authority}", "-days", "2"),
        )
    (where / "names").write_text("subjectAltName=DNS:localhost,IP:127.0.0.1")
    for name, authority in (("server", "ca"), ("client", "ca"), ("stranger", "other")):
        openssl("req", *key, "-keyout", f"{name}.key", "-out", f"{name}.csr", "-subj", f"/CN={name}")
        openssl(
            "x509",
            "-req",
            "-in",
            f"{name}.csr",
            "-CA",
            f"{authority}.pem",
            "-CAkey",
            f"{authority}.key",
            "-CAcreateserial",
            "-out",
            f"{name}.pem",
            "-days",
            "2",
            "-extfile",
            "names",
        )
    return where


def test_tls_with_and_without_certificates_of_clients(
    everything: programs.Program, certificates: Path
) -> None:
    authority, server, key = (certificates / name for name in ("ca.pem", "server.pem", "server.key"))
    with Server(everything.pipeline(), everything, address=LOOPBACK, tls=Tls(server, key)) as served:
        with Connection(served.address, tls=ClientTls(authority)) as controller:
            assert controller.next("arbitration").status.code == 0
        with Connection(served.address) as plain, pytest.raises(Refused, match="UNAVAILABLE"):
            plain.next("arbitration")
    with Server(
        everything.pipeline(), everything, address=LOOPBACK, tls=Tls(server, key, authority)
    ) as served:
        known = ClientTls(authority, certificates / "client.pem", certificates / "client.key")
        with Connection(served.address, tls=known) as controller:
            assert controller.next("arbitration").status.code == 0
            (stream,) = served._arbitration.streams
            assert stream.client.startswith("certificate ")
        of_another = ClientTls(authority, certificates / "stranger.pem", certificates / "stranger.key")
        for unknown in (ClientTls(authority), of_another):
            other = Connection(served.address, tls=unknown)
            with pytest.raises(Refused, match="UNAVAILABLE"):
                other.next("arbitration")
            other.close()


def test_certificates_that_are_not_there(everything: programs.Program, tmp_path: Path) -> None:
    with pytest.raises(TidegateError, match=r"none\.key"):
        Server(
            everything.pipeline(),
            everything,
            address=LOOPBACK,
            tls=Tls(tmp_path / "none.pem", tmp_path / "none.key"),
        )
    (tmp_path / "wrong.pem").write_text("no certificate")
    (tmp_path / "large.key").write_bytes(bytes((1 << 20) + 1))
    (tmp_path / "large.key").chmod(0o600)
    with pytest.raises(TidegateError, match="has more than 1048576 bytes"):
        Tls(tmp_path / "none.pem", tmp_path / "large.key").credentials()
    (tmp_path / "large.key").chmod(0o640)
    with pytest.raises(TidegateError, match="can be read by others"):
        Tls(tmp_path / "none.pem", tmp_path / "large.key").credentials()
    for authority, key, why in (
        ("none.pem", None, r"none\.pem: cannot be read: No such file"),
        ("wrong.pem", "large.key", "can be read by others"),
        ("/dev/zero", None, "/dev/zero: has more than 1048576 bytes"),
    ):
        mine = ClientTls(
            tmp_path / authority, tmp_path / "wrong.pem", None if key is None else tmp_path / key
        )
        with pytest.raises(TidegateError, match=why):
            mine.credentials()
    (tmp_path / "wrong.pem").chmod(0o600)
    wrong = Tls(tmp_path / "wrong.pem", tmp_path / "wrong.pem")
    with pytest.raises(TidegateError, match="do not belong together"):
        Server(everything.pipeline(), everything, address=LOOPBACK, tls=wrong)
