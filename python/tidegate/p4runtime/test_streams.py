"""Elections and roles, digests, packets, idle timeouts: what goes by a controller's stream."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest
from google.protobuf import any_pb2, struct_pb2

from tidegate import p4 as programs
from tidegate.control import operations as op
from tidegate.control.delivery import Messages
from tidegate.p4runtime import Limits, Server
from tidegate.p4runtime.arbitration import Arbitration, Stream
from tidegate.p4runtime.conftest import LOOPBACK, Bench, Ids, Simulated, exact, frame, lldp, wait_for
from tidegate.p4runtime.connection import Connection, Refused
from tidegate.p4runtime.digests import MOST_FORGOTTEN, Digests
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.messages import p4, parse_p4info
from tidegate.p4runtime.schema import Schema

PRIMARY, BACKUP, NONE = 0, 6, 5


def status(controller: Connection) -> tuple[int, int]:
    advice = controller.next("arbitration")
    return advice.status.code, advice.election_id.low


def nothing(bench: Bench) -> Any:
    return p4.Entity(counter_entry={"counter_id": bench.ids("packets"), "index": {"index": 1}})


def may_write(bench: Bench, controller: Connection) -> bool:
    try:
        controller.write(("MODIFY", nothing(bench)))
    except Refused as refused:
        if refused.code != "PERMISSION_DENIED":
            raise
        return False
    return True


# Elections.


def test_promotion_demotion_and_the_end_of_a_primary(bench: Bench) -> None:
    one = bench.primary
    assert may_write(bench, one)
    with Connection(bench.server.address, election_id=5) as two:
        assert status(two) == (PRIMARY, 5)
        assert status(one) == (BACKUP, 5)
        assert not may_write(bench, one)
        assert may_write(bench, two)
        one.arbitrate(9)
        assert (status(two), status(one)) == ((BACKUP, 9), (PRIMARY, 9))
        # A primary that lowers its id leaves nobody, though another one has a higher id than the new one.
        one.arbitrate(2)
        assert (status(two), status(one)) == ((NONE, 9), (NONE, 9))
        assert not may_write(bench, one)
        assert not may_write(bench, two)
        two.arbitrate(9)
        assert (status(one), status(two)) == ((BACKUP, 9), (PRIMARY, 9))
    # It dies with the election won.
    assert status(one) == (NONE, 9)
    assert not may_write(bench, one)
    one.arbitrate(8)
    assert status(one) == (NONE, 9), "below the highest that there ever was"
    one.arbitrate(10)
    assert status(one) == (PRIMARY, 10)
    assert may_write(bench, one)


DOOMED = """
import sys, time
from tidegate.p4runtime import Connection
controller = Connection(sys.argv[1], election_id=7)
print(controller.next("arbitration").status.code, flush=True)
time.sleep(60)
"""


def test_a_primary_that_is_killed(bench: Bench) -> None:
    command = [sys.executable, "-c", DOOMED, bench.server.address]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as doomed:
        assert doomed.stdout is not None
        assert doomed.stdout.readline() == "0\n"
        assert status(bench.primary) == (BACKUP, 7)
        doomed.kill()
    assert status(bench.primary) == (NONE, 7)
    bench.primary.arbitrate(8)
    assert status(bench.primary) == (PRIMARY, 8)


def test_a_backup_for_good_and_an_id_of_128_bits(bench: Bench) -> None:
    with Connection(bench.server.address, election_id=None) as backup:
        assert status(backup) == (BACKUP, 1)
        assert not may_write(bench, backup)
        assert len(backup.read(p4.Entity(counter_entry={}))) == 8, "anyone may read"
        with Connection(bench.server.address, election_id=(1, 0)) as high:
            assert high.next("arbitration").status.code == PRIMARY
            assert not may_write(bench, bench.primary)
            assert may_write(bench, high)


@pytest.mark.parametrize(
    ("wanted", "code"),
    [
        ({"device_id": 2}, "NOT_FOUND"),
        ({"election_id": 1}, "INVALID_ARGUMENT"),
        ({"role_config": any_pb2.Any(type_url="x/y.Z")}, "INVALID_ARGUMENT"),
        ({"role": "x" * 300}, "RESOURCE_EXHAUSTED"),
    ],
)
def test_streams_that_are_refused(bench: Bench, wanted: dict[str, Any], code: str) -> None:
    with Connection(bench.server.address, **{"election_id": 3, **wanted}) as other:
        with pytest.raises(Refused) as caught:
            other.next("arbitration")
        assert caught.value.code == code
    assert may_write(bench, bench.primary)


def test_a_stream_keeps_its_device_and_its_role(bench: Bench) -> None:
    for change in ("device_id", "role"):
        with Connection(bench.server.address, election_id=3) as other:
            status(other)
            setattr(other, change, 7 if change == "device_id" else "other")
            other.arbitrate(4)
            with pytest.raises(Refused) as caught:
                other.next("arbitration")
            assert caught.value.code == "FAILED_PRECONDITION"
        bench.primary.arbitrate(4)


def test_a_stream_begins_with_an_election(bench: Bench) -> None:
    with Connection(bench.server.address, take_part=False) as other:
        other.send(p4.StreamMessageRequest(digest_ack={"digest_id": 1}))
        with pytest.raises(Refused) as caught:
            other.next("error")
        assert caught.value.code == "FAILED_PRECONDITION"


def joined(arbitration: Arbitration, election: int) -> Stream:
    stream = Stream()
    arbitration.join(stream)
    arbitration.update(stream, p4.MasterArbitrationUpdate(device_id=1, election_id={"low": election}))
    return stream


def heard(stream: Stream) -> list[int]:
    """Statuses that a stream is told, up to now."""
    found = [message.arbitration.status.code for message, _ in stream._waiting]
    stream._waiting.clear()
    return found


def test_a_new_primary_waits_for_the_writes_of_the_one_before() -> None:
    arbitration = Arbitration(1)
    first = joined(arbitration, 1)
    role = arbitration.check(p4.WriteRequest(device_id=1, election_id={"low": 1}))
    arbitration.begin_write(role)
    second = joined(arbitration, 2)
    assert (heard(first), heard(second)) == ([PRIMARY, BACKUP], [])
    assert arbitration.primaries() == []
    # A third one takes its place, and leaves before the write has ended.
    third = joined(arbitration, 3)
    assert (heard(first), heard(second), heard(third)) == ([BACKUP], [BACKUP], [])
    arbitration.leave(third)
    assert (heard(first), heard(second)) == ([NONE], [NONE])
    arbitration.update(second, p4.MasterArbitrationUpdate(device_id=1, election_id={"low": 3}))
    assert (heard(first), heard(second)) == ([BACKUP], [])
    for election in (1, 3):
        with pytest.raises(P4Error) as caught:
            arbitration.check(p4.WriteRequest(device_id=1, election_id={"low": election}))
        assert caught.value.code == Code.PERMISSION_DENIED
    arbitration.end_write(role)
    assert (heard(first), heard(second)) == ([], [PRIMARY])
    assert arbitration.check(p4.WriteRequest(device_id=1, election_id={"low": 3})) is role


def test_there_is_an_end_of_streams(everything: programs.Program) -> None:
    arbitration = Arbitration(1)
    streams = [joined(arbitration, number) for number in range(2)]
    streams += [Stream(client=str(number)) for number in range(2, 33)]
    for stream in streams[2:]:
        arbitration.join(stream)
    # The oldest one that has not taken part in an election.
    assert "there are 32 streams" in str(streams[2].error)
    assert [stream for stream in streams if stream.closed is not None] == [streams[2]]


# Roles.


def rules(**given: Any) -> any_pb2.Any:
    config = struct_pb2.Struct()
    config.update(given)
    packed = any_pb2.Any()
    packed.Pack(config)
    return packed


def packed(given: any_pb2.Any) -> Any:
    """As a message of the pool that P4Runtime's are in."""
    return p4.Any.FromString(given.SerializeToString())


def test_roles_have_their_own_elections_and_objects(bench: Bench) -> None:
    config = rules(objects=["Work.packets", "*.lpm_table"], packet_out=False, pipeline=False)
    with Connection(bench.server.address, role="counts", role_config=config, election_id=1) as counts:
        advice = counts.next("arbitration")
        assert (advice.status.code, advice.role.name) == (PRIMARY, "counts")
        assert advice.role.config == packed(config)
        assert may_write(bench, counts)
        assert may_write(bench, bench.primary), "two primaries of two roles"
        other = bench.entry("exact_table", exact(b"\x01"), action=bench.action("drop"))
        with pytest.raises(Refused) as caught:
            counts.write(("INSERT", other))
        assert caught.value.errors[0].canonical_code == 7
        bench.primary.write(("INSERT", other))
        everything = p4.Entity(table_entry={}), p4.Entity(counter_entry={}), p4.Entity(register_entry={})
        assert {e.WhichOneof("entity") for e in counts.read(*everything)} == {"counter_entry"}
        with pytest.raises(Refused) as caught:
            counts.set_config("COMMIT")
        assert caught.value.code == "PERMISSION_DENIED"
        counts.send(p4.StreamMessageRequest(packet={"payload": b"x"}))
        assert counts.next("error").canonical_code == 7
        # The role's next primary says what it may do; the others learn of it.
        with Connection(bench.server.address, role="counts", election_id=2) as free:
            status(free)
            assert counts.next("arbitration").role.config == p4.Any()
            free.write(("DELETE", other))
    request = p4.WriteRequest(device_id=1, role="nobody", election_id={"low": 1})
    with pytest.raises(Refused) as caught:
        bench.primary.call("Write", request)
    assert caught.value.code == "NOT_FOUND"


@pytest.mark.parametrize(
    "config", [rules(objects="Work.packets"), rules(packet_in=3), rules(other=True), any_pb2.Any()]
)
def test_configurations_of_roles_that_make_no_sense(bench: Bench, config: any_pb2.Any) -> None:
    with Connection(bench.server.address, role="r", role_config=config) as other:
        with pytest.raises(Refused) as caught:
            other.next("arbitration")
        assert caught.value.code == "INVALID_ARGUMENT"


@pytest.mark.parametrize("objects", [["a"] * 257, ["a" * 257]])
def test_configurations_of_roles_have_a_size(bench: Bench, objects: list[str]) -> None:
    with Connection(bench.server.address, role="r", role_config=rules(objects=objects)) as other:
        with pytest.raises(Refused, match="256 objects at most, and their names have 256") as caught:
            other.next("arbitration")
        assert caught.value.code == "RESOURCE_EXHAUSTED"


# Digests.


def digest_entry(bench: Bench, **config: int) -> Any:
    entry = p4.DigestEntry(digest_id=bench.ids("seen_t"))
    entry.config.CopyFrom(p4.DigestEntry.Config(**config))
    return p4.Entity(digest_entry=entry)


@pytest.fixture
def learning(bench: Bench) -> Bench:
    default = bench.entry("learning", is_default_action=True, action=bench.action("learn"))
    bench.primary.write(("MODIFY", default))
    return bench


def seen(message: Any) -> list[tuple[int, int]]:
    values = [[int.from_bytes(m.bitstring) for m in data.struct.members] for data in message.data]
    return [(source, port) for source, port in values]


def test_digests_come_when_wanted_and_once_until_acknowledged(learning: Bench) -> None:
    bench, controller = learning, learning.primary

    def packet(source: int) -> None:
        bench.pipeline.process(1, 3, frame(source=source))
        bench.server.poll()

    packet(1)
    hour = 3_600_000_000_000
    controller.write(("INSERT", digest_entry(bench, max_list_size=1, ack_timeout_ns=hour)))
    assert controller.read(p4.Entity(digest_entry={})) == [
        digest_entry(bench, max_list_size=1, ack_timeout_ns=hour)
    ]
    packet(2)
    first = controller.next("digest")
    assert seen(first) == [(2, 3)]
    assert first.list_id
    assert first.timestamp
    packet(2)
    packet(4)
    second = controller.next("digest")
    assert seen(second) == [(4, 3)], "what was sent is not sent again"
    controller.send(
        p4.StreamMessageRequest(digest_ack={"digest_id": first.digest_id, "list_id": first.list_id})
    )
    controller.send(p4.StreamMessageRequest(digest_ack={"digest_id": 1}))
    assert controller.next("error").canonical_code == 3, "this is heard after the acknowledgement"
    packet(2)
    assert seen(controller.next("digest")) == [(2, 3)]
    controller.write(("MODIFY", digest_entry(bench, max_list_size=2, max_timeout_ns=hour)))
    for source in (7, 7, 8):
        packet(source)
    assert seen(controller.next("digest")) == [(7, 3), (8, 3)]
    controller.write(("DELETE", digest_entry(bench)))
    packet(9)
    controller.write(("INSERT", digest_entry(bench)))
    packet(10)
    assert seen(controller.next("digest")) == [(10, 3)]


def test_refused_digest_entries(bench: Bench) -> None:
    for kind, entity, code in (
        ("MODIFY", digest_entry(bench), 5),
        ("DELETE", digest_entry(bench), 5),
        ("INSERT", digest_entry(bench, max_list_size=-1), 3),
        ("INSERT", p4.Entity(digest_entry={"digest_id": 5}), 3),
    ):
        with pytest.raises(Refused) as caught:
            bench.primary.write((kind, entity))
        assert caught.value.errors[0].canonical_code == code
    bench.primary.write(("INSERT", digest_entry(bench)))
    with pytest.raises(Refused) as caught:
        bench.primary.write(("INSERT", digest_entry(bench)))
    assert caught.value.errors[0].canonical_code == 6


def test_timeouts_of_digests_by_the_clock(everything: programs.Program) -> None:
    clock = [0]
    info = parse_p4info(everything.p4info)
    digests = Digests(Schema(info), clock=lambda: clock[0])
    number = Ids(info)("seen_t")
    config = {"max_timeout_ns": 100, "max_list_size": 10, "ack_timeout_ns": 1000}
    digests.write(1, p4.DigestEntry(digest_id=number, config=config))
    fields = [("from", 5), ("port", 1)]
    assert list(digests.offer("seen_t", fields)) == []
    clock[0] = 99
    assert list(digests.due()) == []
    clock[0] = 100
    assert [seen(message) for _, message in digests.due()] == [[(5, 1)]]
    assert list(digests.offer("seen_t", fields)) == []
    clock[0] = 1100
    assert list(digests.due()) == [], "it may be sent again from now on"
    assert list(digests.offer("seen_t", fields)) == []
    clock[0] = 1200
    assert [seen(message) for _, message in digests.due()] == [[(5, 1)]]


def test_many_lists_of_digests_time_out_at_once(everything: programs.Program) -> None:
    """Each is forgotten in steps of its own size alone, and some of them at a time."""
    clock = [0]
    info = parse_p4info(everything.p4info)
    digests = Digests(Schema(info), clock=lambda: clock[0])
    number = Ids(info)("seen_t")
    config = {"max_list_size": 1, "max_timeout_ns": 1, "ack_timeout_ns": 1000}
    digests.write(1, p4.DigestEntry(digest_id=number, config=config))
    wanted = digests._wanted[number]
    many = Limits().digests_sent
    keys = [key.to_bytes(4) for key in range(many)]
    wanted.sent.update(keys)
    wanted.lists.update({at: (0, [key]) for at, key in enumerate(keys, 1)})
    clock[0] = 1000
    began = time.process_time()
    assert list(digests.due()) == []
    assert len(wanted.lists) == len(wanted.sent) == many - MOST_FORGOTTEN
    while wanted.lists:
        assert list(digests.due()) == []
    assert not wanted.sent
    assert time.process_time() - began < 5


# Idle timeouts.


def test_idle_entries_are_told_of(bench: Bench) -> None:
    hit = bench.entry(
        "exact_table", exact(b"\x01"), action=bench.action("drop"), idle_timeout_ns=1000, metadata=b"m"
    )
    other = bench.entry("exact_table", exact(b"\x02"), action=bench.action("drop"), idle_timeout_ns=5000)
    bench.primary.write(("INSERT", hit), ("INSERT", other))
    bench.pipeline.process(600_000, 1, frame())
    for now, keys in ((1_599_999, []), (1_600_000, [b"\x01"]), (5_000_000, [b"\x01", b"\x02"])):
        bench.pipeline.advance(now)
        bench.server.poll()
        if keys:
            notice = bench.primary.next("idle_timeout_notification")
            assert sorted(e.match[0].exact.value for e in notice.table_entry) == keys
            assert notice.timestamp
            assert notice.table_entry[0].metadata == b"m"
            assert notice.table_entry[0].idle_timeout_ns == 1000
    asked = bench.entry("exact_table", exact(b"\x01"), time_since_last_hit={})
    (read,) = bench.primary.read(asked)
    assert read.table_entry.time_since_last_hit.elapsed_ns == 4400
    assert not bench.primary.read(bench.entry("exact_table"))[0].table_entry.HasField("time_since_last_hit")
    # Without a timeout there is nothing to tell.
    for key in (b"\x01", b"\x02"):
        bench.primary.write(("MODIFY", bench.entry("exact_table", exact(key), action=bench.action("drop"))))
    bench.pipeline.advance(10**12)
    bench.server.poll()
    bench.primary.arbitrate(1)
    assert bench.primary.heard.get(timeout=20).WhichOneof("update") == "arbitration"


# Packets.


@pytest.fixture(scope="module")
def simulated(everything: programs.Program) -> Iterator[Simulated]:
    with Simulated(everything) as made:
        yield made


@pytest.fixture
def served(simulated: Simulated, everything: programs.Program) -> Iterator[tuple[Server, Connection]]:
    with (
        Server(simulated.api, everything, address=LOOPBACK, lock=simulated.lock, poll_every=0.002) as server,
        Connection(server.address) as controller,
    ):
        assert status(controller) == (PRIMARY, 1)
        yield server, controller


def test_packets_to_the_controller_have_their_header_as_metadata(
    simulated: Simulated, served: tuple[Server, Connection]
) -> None:
    _, controller = served
    with simulated.lock:
        simulated.surface.act(op.GeneratorSet(1, (3, lldp(9), 50_000_000_000)))
    packet = controller.next("packet")
    with simulated.lock:
        simulated.surface.act(op.GeneratorStop(1))
    assert packet.payload == lldp(9)
    assert [(m.metadata_id, m.value) for m in packet.metadata] == [(1, b"\x03"), (2, b"\x00")]


def test_packets_from_the_controller(simulated: Simulated, served: tuple[Server, Connection]) -> None:
    _, controller = served

    def sent() -> int:
        with simulated.lock:
            return int(simulated.surface.act(op.StatisticsRead())["packet_outs"])

    before = sent()
    metadata = [{"metadata_id": 1, "value": b"\x02"}, {"metadata_id": 2, "value": b"\x00"}]
    controller.send(p4.StreamMessageRequest(packet={"payload": frame(), "metadata": metadata}))
    wait_for(lambda: sent() == before + 1)
    wait_for(lambda: simulated.surface.act(op.QueueRead(2, 0))["packets"] >= 1)
    for wrong, code in (
        ([], 3),
        (metadata[:1], 3),
        ([*metadata, {"metadata_id": 7, "value": b"\x01"}], 3),
        ([metadata[0], {"metadata_id": 2, "value": b"\x80"}], 11),
        ([metadata[0], {"metadata_id": 2, "value": b""}], 11),
    ):
        controller.send(p4.StreamMessageRequest(packet={"payload": b"abc", "metadata": wrong}))
        error = controller.next("error")
        assert error.canonical_code == code
        assert error.packet_out.packet_out.payload == b"abc"
    assert sent() == before + 1, "what is wrong is dropped"
    with Connection(controller_address(served), election_id=None) as backup:
        status(backup)
        backup.send(p4.StreamMessageRequest(packet={"payload": b"abc", "metadata": metadata}))
        assert backup.next("error").canonical_code == 7


def controller_address(served: tuple[Server, Connection]) -> str:
    return served[0].address


def test_a_pipeline_alone_takes_no_packets_from_a_controller(bench: Bench) -> None:
    metadata = [{"metadata_id": 1, "value": b"\x02"}, {"metadata_id": 2, "value": b"\x00"}]
    bench.primary.send(p4.StreamMessageRequest(packet={"payload": b"abc", "metadata": metadata}))
    assert bench.primary.next("error").canonical_code == 9


def test_a_controller_that_talks_and_does_not_listen_is_cut_off() -> None:
    """Answers to elections are not dropped, and so they end it."""
    stream = Stream(limit=4)
    sent = [stream.send(p4.StreamMessageResponse()) for _ in range(20)]
    assert sent == [True] * 9 + [False] * 11
    assert stream.error is not None
    assert stream.error.code == 8
    assert list(stream) == []


def test_many_controllers_at_once(bench: Bench) -> None:
    """Elections, writes, reads and programs by several threads: each is answered, and the last word holds."""
    wrong: list[BaseException] = []

    def use(number: int) -> None:
        try:
            with Connection(bench.server.address, role=f"r{number}", election_id=1) as mine:
                status(mine)
                for round_ in range(10):
                    key = (number << 8 | round_).to_bytes(3)
                    entry = bench.entry("exact_table", exact(key), action=bench.action("drop"))
                    mine.write(("INSERT", entry))
                    assert len(mine.read(entry)) == 1
                    mine.get_config("COOKIE_ONLY")
                    mine.arbitrate(round_ + 2)
                    assert status(mine)[0] == PRIMARY
        except BaseException as error:
            wrong.append(error)

    threads = [threading.Thread(target=use, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(bench.primary.read(bench.entry("exact_table"))) == 80


def test_a_controller_that_stalls_loses_packets_and_the_switch_goes_on(bench: Bench) -> None:
    """It reads nothing: what it cannot take is dropped and counted, and others are served."""
    stream = Stream()
    for _ in range(Limits().messages_per_stream + 10):
        stream.send(p4.StreamMessageResponse(), "packet_ins")
    assert stream.dropped["packet_ins"] == 10
    stalled = Connection.__new__(Connection)
    stalled._listen = lambda: None  # type: ignore[method-assign]
    Connection.__init__(stalled, bench.server.address, election_id=2)
    wait_for(lambda: not may_write(bench, bench.primary))
    packet = (0, bytes(4000), 0)
    for _ in range(30):
        bench.server.deliver(Messages(packets=[packet] * 500))
    assert bench.server.statistics["packet_ins_dropped"] > 0
    with Connection(bench.server.address, election_id=3) as other:
        assert status(other) == (PRIMARY, 3)
        assert may_write(bench, other)
        bench.server.deliver(Messages(packets=[packet]))
        assert len(other.next("packet").payload) == 3998
    stalled.close()
    wait_for(lambda: bench.server.statistics["streams"] == 1)
    assert bench.server.statistics["packet_ins_dropped"] > 0, "counted after the stream is gone, too"
