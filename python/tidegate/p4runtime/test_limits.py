"""What the server grants, and that a client who goes beyond it locks nobody out."""

from __future__ import annotations

import gc
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import fields
from functools import partial
from typing import Any

import grpc
import pytest
from google.protobuf import any_pb2, struct_pb2

from tidegate import TidegateError
from tidegate import p4 as programs
from tidegate.control.delivery import Turn
from tidegate.p4runtime import Connection, Limits
from tidegate.p4runtime.arbitration import Arbitration, Rules, Stream
from tidegate.p4runtime.conftest import TEXT, Bench, call, channel, exact, multicast, served
from tidegate.p4runtime.conftest import refused as wrong_code
from tidegate.p4runtime.conftest import wait_for as until
from tidegate.p4runtime.connection import Refused
from tidegate.p4runtime.errors import Code, P4Error
from tidegate.p4runtime.messages import p4

PATIENCE_S = 20.0


def refused(call: Any) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        for _ in call:
            pass
    return caught.value.code().name, caught.value.details() or ""


def ended(calls: list[Any]) -> int:
    return sum(not one.is_active() for one in calls)


ALL_CELLS = p4.ReadRequest(device_id=1, entities=[{"register_entry": {}}]).SerializeToString()


# Settings.


def test_settings_as_text() -> None:
    assert Limits.parse([]) == Limits()
    assert Limits.parse(["calls=7", "idle_s=9"]) == Limits(calls=7, idle_s=9)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("calls", "NAME=VALUE"),
        ("cals=3", "there is no limit 'cals'; did you mean 'calls'\\? the names are message_bytes, "),
        ("calls=x", "whole number"),
        ("calls=-1", "whole number"),
        ("calls=0", "from 1 to"),
        (f"calls={1 << 40}", "from 1 to"),
        ("updates_at_once=4097", "4096 at most"),
    ],
)
def test_settings_that_make_no_sense(text: str, said: str) -> None:
    with pytest.raises(TidegateError, match=said):
        Limits.parse([text])
    with pytest.raises(TidegateError, match="twice"):
        Limits.parse(["calls=1", "calls=2"])


def test_the_documentation_lists_all_settings() -> None:
    from pathlib import Path

    text = (Path(__file__).resolve().parents[3] / "docs" / "security.md").read_text()
    section = text.partition("## P4Runtime")[2].partition("\n## ")[0]
    for field in fields(Limits):
        rows = [line for line in section.splitlines() if f"`{field.name}`" in line]
        assert len(rows) == 1, f"docs/security.md has {field.name} in one row"


# Sizes.


def test_a_message_has_a_size(everything: programs.Program) -> None:
    with served(everything, message_bytes=10_000) as made:
        request = p4.WriteRequest(device_id=1)
        request.updates.add(type=1).entity.table_entry.metadata = bytes(10_000)
        with pytest.raises(Refused) as caught:
            made.primary.call("Write", request)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
        made.is_well()


def test_a_write_has_so_many_updates(everything: programs.Program) -> None:
    with served(everything, updates=10, updates_at_once=5) as made:
        made.primary.write(*[("INSERT", made.entry(key)) for key in range(1, 11)])
        updates = [("DELETE", made.entry(key)) for key in range(1, 12)]
        with pytest.raises(Refused, match="11 updates are too many; give 10 at most") as caught:
            made.primary.write(*updates)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
        number = p4.Update.Type.Value("DELETE")
        with pytest.raises(Refused, match="give 5 at most, or CONTINUE_ON_ERROR") as caught:
            made.primary.write_updates([(number, one) for _, one in updates[:6]], "DATAPLANE_ATOMIC")
        assert caught.value.code == "UNIMPLEMENTED"
        made.is_well()


def test_a_read_has_so_many_requests_and_entities(everything: programs.Program) -> None:
    with served(everything, requests=3, entities=10) as made:
        asked = p4.Entity(table_entry=p4.TableEntry(table_id=made.ids("exact_table")))
        made.primary.write(*[("INSERT", made.entry(key)) for key in range(1, 11)])
        assert len(made.primary.read(asked)) == 10
        with pytest.raises(Refused, match="4 requests are too many; give 3 at most"):
            made.primary.read(*[asked] * 4)
        made.primary.write(("INSERT", made.entry(11)))
        with pytest.raises(Refused, match="more than 10 entities, or 64 MiB; read fewer") as caught:
            made.primary.read(asked)
        assert caught.value.code == "RESOURCE_EXHAUSTED"
        made.is_well()


def test_messages_that_wait_for_a_controller(everything: programs.Program) -> None:
    stream = Stream(Limits(messages_per_stream=3).messages_per_stream)
    assert [stream.send(p4.StreamMessageResponse(), "packet_ins") for _ in range(5)] == [True] * 3 + [
        False
    ] * 2
    assert stream.dropped == {"packet_ins": 2}


def test_bytes_that_wait_for_a_controller_are_bounded() -> None:
    stream = Stream(size=1000)
    packet = p4.StreamMessageResponse(packet={"payload": bytes(400)})
    for _ in range(4):
        stream.send(packet, "packet_ins")
    assert stream.dropped == {"packet_ins": 2}
    next(iter(stream))
    assert stream.send(packet, "packet_ins"), "what was taken has made room"
    for _ in range(3):
        stream.send(packet)
    assert stream.error is not None, "beyond twice as much"


def test_a_refused_packet_out_is_not_echoed_whole(everything: programs.Program) -> None:
    with served(everything) as made:
        packet = p4.PacketOut(payload=bytes(70_000))
        packet.metadata.add(metadata_id=99, value=bytes(50_000))
        made.primary.send(p4.StreamMessageRequest(packet=packet))
        error = made.primary.next("error")
        assert error.packet_out.packet_out.payload == bytes(1024)
        assert error.ByteSize() < 4096


def test_a_long_message_of_a_stream_is_not_read(everything: programs.Program) -> None:
    """Its empty fields would take many times as much, for each stream. That of a controller goes on; one without a role ends."""
    with served(everything, stream_bytes=2048) as made:
        packet = p4.PacketOut(metadata=[p4.PacketMetadata()] * 1024)
        long = p4.StreamMessageRequest(packet=packet)
        assert long.ByteSize() > 2048
        made.primary.send(long)
        error = made.primary.next("error")
        assert (error.canonical_code, error.WhichOneof("details")) == (Code.RESOURCE_EXHAUSTED, "other")
        assert "2048 at most" in error.message
        with channel(made.server.address) as other:
            answers = call(other, "StreamChannel")(iter([long.SerializeToString()]))
            with pytest.raises(grpc.RpcError) as caught:
                next(answers)
            assert caught.value.code() == grpc.StatusCode.FAILED_PRECONDITION
        made.is_well()


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        (b"\x9a\x06" + b"\x80\x80\x04" + bytes(Limits().role_bytes), "65536 bytes at most"),
        # Empty names, and more of them than are looked at.
        ({"objects": {"list_value": {"values": [{}] * 300}}}, "256 objects"),
        ({"objects": {"list_value": {"values": [{}]}}}, "no value"),
        ({"packet_in": {}}, "cannot be read"),
    ],
)
def test_configurations_of_roles_are_bounded(value: Any, wrong: str) -> None:
    config = any_pb2.Any(type_url="type.googleapis.com/google.protobuf.Struct")
    config.value = value if isinstance(value, bytes) else struct_pb2.Struct(fields=value).SerializeToString()
    with pytest.raises(P4Error, match=wrong):
        Rules.of(config)


def test_metadata_is_bounded(bench: Bench) -> None:
    forward = bench.action("drop")
    for size, fits in ((1024, True), (1025, False)):
        metadata = bytes(size)
        entry = bench.entry("exact_table", exact(b"\x01"), action=forward, metadata=metadata)
        for entity in (entry, multicast(5, (1, 1), metadata=metadata)):
            if fits:
                bench.primary.write(("INSERT", entity))
            else:
                assert wrong_code(bench, "MODIFY", entity) == "RESOURCE_EXHAUSTED"


# Calls.


def test_half_open_calls_are_ended_and_meanwhile_others_are_served(everything: programs.Program) -> None:
    """Calls that send no request, over connections of their own, more than the server takes at a time."""
    with served(everything, calls=4, calls_per_client=4, request_s=1) as made, ExitStack() as stack:
        stop = threading.Event()
        stack.callback(stop.set)

        def silent() -> Iterator[bytes]:
            stop.wait(PATIENCE_S)
            yield from ()

        calls = []
        for name in ("Write", "Read", "Write", "Read", "SetForwardingPipelineConfig", "Capabilities"):
            over = stack.enter_context(channel(made.server.address))
            calls.append(call(over, name)(silent()))
        began = time.monotonic()
        made.is_well()
        codes = [refused(one)[0] for one in calls]
        assert sorted(codes) == ["CANCELLED"] * 4 + ["RESOURCE_EXHAUSTED"] * 2
        assert time.monotonic() - began < PATIENCE_S
        with Connection(made.server.address, election_id=None) as other:
            assert other.read(p4.Entity(counter_entry={})), "there is room again"


def test_unread_answers_are_ended_and_meanwhile_the_primary_is_served(everything: programs.Program) -> None:
    with (
        served(everything, calls=4, calls_per_client=4, stalled_s=1) as made,
        channel(made.server.address) as over,
    ):
        # More than gRPC takes in advance.
        reads = [call(over, "Read", "unary_stream")(ALL_CELLS) for _ in range(4)]
        until(lambda: made.server._clients.count == 4)
        counters = p4.ReadRequest(device_id=1, entities=[{"counter_entry": {}}]).SerializeToString()
        code, said = refused(call(over, "Read", "unary_stream")(counters))
        assert (code, said) == ("RESOURCE_EXHAUSTED", "this client has 4 calls already; wait for one to end")
        made.is_well()

        def room() -> bool:
            try:
                return bool(list(call(over, "Read", "unary_stream")(counters)))
            except grpc.RpcError:
                return False

        until(room)
        del reads


def test_an_answer_of_one_message_lasts_until_it_is_taken(everything: programs.Program) -> None:
    """So those who ask for it and take none of it do not have the server keep them all."""
    with served(everything, calls_per_client=3, stalled_s=1) as made, channel(made.server.address) as over:
        large = made.primary.get_config()
        large.cookie.cookie = 5
        large.p4_device_config = (TEXT + "//" + "x" * 400_000).encode()
        made.primary.set_config("VERIFY_AND_COMMIT", large)
        request = p4.GetForwardingPipelineConfigRequest(device_id=1).SerializeToString()
        calls = [call(over, "GetForwardingPipelineConfig", "unary_stream")(request) for _ in range(5)]
        until(lambda: ended(calls) == 2)
        assert made.server._clients.count == 3
        until(lambda: made.server._clients.count == 0)
        made.is_well()


def test_a_call_takes_so_long(everything: programs.Program) -> None:
    with served(everything, call_s=1, entities=1 << 24) as made, channel(made.server.address) as over:
        assert refused(call(over, "Read", "unary_stream")(ALL_CELLS * 12))[0] == "CANCELLED"
        made.is_well()


def test_one_client_does_not_have_all_calls(everything: programs.Program) -> None:
    with served(everything, calls=5, calls_per_client=2, request_s=60) as made, ExitStack() as stack:
        over = stack.enter_context(channel(made.server.address))
        stop = threading.Event()
        stack.callback(stop.set)

        def silent() -> Iterator[bytes]:
            stop.wait(PATIENCE_S)
            yield from ()

        calls = [call(over, "Read")(silent()) for _ in range(3)]
        until(lambda: ended(calls) == 1)
        made.is_well()
        for one in calls:
            one.cancel()


def test_calls_of_a_primary_s_connection_are_counted_too(everything: programs.Program) -> None:
    """Those beyond its room are as any client's, of which there can be so many; and its room is left when these are taken."""
    with served(everything, calls_per_primary=2, calls_per_client=3, request_s=60) as made:
        stop, over = threading.Event(), channel(made.server.address)

        def silent() -> Iterator[bytes]:
            stop.wait(PATIENCE_S)
            yield from ()

        others = [call(over, "Read")(silent()) for _ in range(2)]
        until(lambda: made.server._clients.count == 2)
        calls = [call(made.primary._channel, "Read")(silent()) for _ in range(4)]
        until(lambda: ended(calls) == 1)
        assert made.server._clients.count == 5
        others += [call(over, "Read")(silent()) for _ in range(3)]
        until(lambda: ended(others) == 3)
        stop.set()
        until(lambda: ended(calls) == 4)
        over.close()
        made.is_well()


# Streams and roles.


def test_streams_without_arbitration_are_ended(everything: programs.Program) -> None:
    with served(everything, streams=4, streams_per_client=4, request_s=1) as made:
        silent = [Connection(made.server.address, take_part=False) for _ in range(3)]
        until(lambda: made.server.statistics["streams"] == 4)
        for one in silent:
            with pytest.raises(Refused, match="none came within 1 s") as caught:
                one.next("arbitration")
            assert caught.value.code == "FAILED_PRECONDITION"
            one.close()
        with Connection(made.server.address, election_id=5) as other:
            assert other.next("arbitration").status.code == 0


def test_a_client_has_so_many_streams(everything: programs.Program) -> None:
    """A newcomer is refused, and those that take part in elections stay."""
    with served(everything, streams=4, streams_per_client=3) as made, ExitStack() as streams:
        backup = streams.enter_context(Connection(made.server.address, election_id=None))
        assert backup.next("arbitration").status.code == Code.ALREADY_EXISTS
        silent = streams.enter_context(Connection(made.server.address, take_part=False))
        until(lambda: made.server.statistics["streams"] == 3)
        second = streams.enter_context(Connection(made.server.address, election_id=None))
        assert second.next("arbitration").status.code == Code.ALREADY_EXISTS
        with pytest.raises(Refused, match="another one has its place"):
            silent.next("arbitration")
        until(lambda: made.server.statistics["streams"] == 3)
        with Connection(made.server.address, election_id=9) as more:
            with pytest.raises(Refused, match="this client has 3 streams already; close one") as caught:
                more.next("arbitration")
            assert caught.value.code == "RESOURCE_EXHAUSTED"
        second.close()
        until(lambda: made.server.statistics["streams"] == 2)
        with Connection(made.server.address, election_id=9) as back:
            assert back.next("arbitration").status.code == Code.OK
        made.primary.arbitrate(10)
        while made.primary.next("arbitration").election_id.low != 10:
            pass
        made.is_well()


def ways(arbitration: Arbitration) -> list[str]:
    return [stream.client for stream in arbitration.streams if stream.closed is None]


def test_the_client_with_most_streams_makes_way() -> None:
    arbitration = Arbitration(1, Limits(streams=4, streams_per_client=3))
    first, *_ = (arbitrate(arbitration, client, None) for client in ("b", "a", "b", "c"))
    arbitrate(arbitration, "d", None)
    assert ways(arbitration) == ["b", "a", "c", "d"], "the newest one"
    assert first.closed is None
    # All have as many as it would have.
    for client in ("a", "e"):
        with pytest.raises(P4Error, match="there are 4 streams already; close one"):
            arbitrate(arbitration, client, None)
    assert ways(arbitration) == ["b", "a", "c", "d"]


def test_streams_of_primaries_do_not_make_way() -> None:
    arbitration = Arbitration(1, Limits(streams=3, streams_per_client=2))
    for client, role in (("b", "a"), ("a", "b"), ("b", "c")):
        arbitrate(arbitration, role, 5, client)
    with pytest.raises(P4Error, match="there are 3 streams already; close one"):
        arbitration.join(Stream(client="d"))
    assert len(arbitration.primaries()) == 3


def test_streams_that_end_unread_have_a_budget() -> None:
    arbitration = Arbitration(1, Limits(streams=3, streams_per_client=2))
    cancelled: list[int] = []
    streams = [Stream(client="a", cancel=partial(cancelled.append, number)) for number in range(6)]
    for stream in streams[:5]:
        arbitration.join(stream)
    with pytest.raises(P4Error, match="3 streams are ending; try again"):
        arbitration.join(streams[5])
    assert cancelled == [0, 1, 2]
    for stream in streams[:3]:
        arbitration.leave(stream)
    arbitration.join(streams[5])
    assert ways(arbitration) == ["a", "a"]


def arbitrate(arbitration: Arbitration, role: str, election: int | None, client: str | None = None) -> Stream:
    stream = Stream(client=client or role)
    arbitration.join(stream)
    update = p4.MasterArbitrationUpdate(device_id=1, role={"name": role})
    if election is not None:
        update.election_id.low = election
    arbitration.update(stream, update)
    return stream


def test_roles_without_streams_make_way() -> None:
    arbitration = Arbitration(1, Limits(roles=3))
    first = arbitrate(arbitration, "first", 5)
    second = arbitrate(arbitration, "second", 6)
    with pytest.raises(P4Error, match="3 roles already, and all have streams"):
        arbitrate(arbitration, "third", 1)
    arbitration.leave(second)
    arbitration.leave(first)
    # What a role knows stays as long as there is room.
    again = arbitrate(arbitration, "first", 4)
    assert arbitration.primary_rules(again) is None, "5 is the highest that there was"
    for number in range(5):
        stream = arbitrate(arbitration, f"r{number}", 1)
        assert arbitration.primary_rules(stream) is not None
        arbitration.leave(stream)
    assert arbitration.rules("first"), "it has a stream"
    # A role that never had a primary is forgotten at once.
    arbitration.leave(arbitrate(arbitration, "none", None))
    with pytest.raises(P4Error, match="no role 'none'"):
        arbitration.rules("none")


def test_an_operator_resets_elections(everything: programs.Program) -> None:
    top = (2**64 - 1, 2**64 - 1)
    with served(everything) as made:
        with Connection(made.server.address, election_id=top) as greedy:
            assert greedy.next("arbitration").status.code == 0
        with Connection(made.server.address, election_id=9) as late:
            advice = late.next("arbitration")
            assert advice.status.code != 0, "as the specification has it"
            assert (advice.election_id.high, advice.election_id.low) == top
            made.server.reset_elections()
            for one in (late, made.primary):
                with pytest.raises(Refused, match="an operator has reset the elections") as caught:
                    one.next("nothing")
                assert caught.value.code == "ABORTED"
        with Connection(made.server.address, election_id=9) as anew:
            assert anew.next("arbitration").status.code == 0


# Large answers and batches.


def test_a_client_that_is_gone_costs_nothing_more(everything: programs.Program) -> None:
    """A read of all cells ends with its client: the server makes no more messages of them."""
    with served(everything) as made:
        running = made.server._config.committed
        assert running is not None
        answers, produced = running.answers, list[int]()

        def watched(*given: Any) -> Iterator[bytes]:
            for answer in answers(*given):
                produced.append(len(answer))
                yield answer

        running.answers = watched  # type: ignore[assignment, method-assign]
        with channel(made.server.address) as over:
            read = call(over, "Read", "unary_stream")(ALL_CELLS * 3)
            next(read)
            read.cancel()
        until(lambda: made.server._clients.count == 0)
        assert len(produced) < 3 * 65_536 / 1024 / 2
        made.is_well()


def test_others_write_while_a_large_answer_is_made(everything: programs.Program) -> None:
    with served(everything) as made, channel(made.server.address) as over:
        read = call(over, "Read", "unary_stream")(ALL_CELLS)
        first = p4.ReadResponse.FromString(next(read))
        made.is_well()
        cells = len(first.entities) + sum(len(p4.ReadResponse.FromString(data).entities) for data in read)
        assert cells >= 65_536


def test_a_large_write_gives_way_to_an_election_and_is_finished(everything: programs.Program) -> None:
    with served(everything) as made, Connection(made.server.address, election_id=None) as other:
        other.next("arbitration")
        running = made.server._config.committed
        assert running is not None
        write, slices, told = running.device.write, list[int](), list[str]()

        def write_early() -> None:
            try:
                other.write(("INSERT", made.entry(1000)))
            except Refused as error:
                told.append(str(error))

        early = threading.Thread(target=write_early)

        def watched(operations: Any) -> Any:
            slices.append(len(operations))
            if len(slices) == 2:
                other.arbitrate(9)
                # Its election waits for its turn, and has it before the next slice.
                until(lambda: bool(made.server._busy._waiting))
            if len(slices) == 3:
                # The one before is told of it, and the new one has to wait.
                assert made.primary.next("arbitration").election_id.low == 9
                early.start()
                until(lambda: bool(made.server._busy._waiting))
            if len(slices) == 4:
                early.join()
                assert other.heard.empty()
            return write(operations)

        running.device.write = watched  # type: ignore[method-assign]
        made.primary.write(*[("INSERT", made.entry(key)) for key in range(1, 401)])
        assert slices == [128, 128, 128, 16]
        (refusal,) = told
        assert "PERMISSION_DENIED: a write of the primary before goes on" in refusal
        assert other.next("arbitration").status.code == 0
        assert len(other.read(p4.Entity(table_entry={"table_id": made.ids("exact_table")}))) == 400
        with pytest.raises(Refused, match="not primary"):
            made.primary.write(("INSERT", made.entry(1000)))
        other.write(("INSERT", made.entry(1000)))


def test_a_read_gets_all_of_one_program(everything: programs.Program) -> None:
    """What is read is held, and messages are made of it later; a read that has not all of it yet is `ABORTED`."""
    with served(everything) as made:
        running = made.server._config.committed
        assert running is not None
        everywhere = [p4.Entity(register_entry={})]
        found = running.snapshot(everywhere, lambda _: True)
        made.primary.set_config("VERIFY_AND_COMMIT", made.primary.get_config("P4INFO_AND_COOKIE"))
        cells = sum(len(p4.ReadResponse.FromString(data).entities) for data in running.answers(found))
        assert cells == found.count >= 65_536
        with pytest.raises(P4Error, match="another program was set meanwhile") as caught:
            running.snapshot(everywhere, lambda _: True)
        assert caught.value.code.name == "ABORTED"


def test_a_read_is_between_two_writes(everything: programs.Program) -> None:
    """A write waits until a read has all that it asks for, so that the answer is of one state."""
    with served(everything) as made, Connection(made.server.address, election_id=None) as other:
        running = made.server._config.committed
        assert running is not None
        snapshot, writing = running.snapshot, list[threading.Thread]()
        ids = [made.ids("cells"), made.ids("signed_cells")]
        cells = [
            p4.Entity(register_entry={"register_id": number, "data": {"bitstring": b"\x07"}})
            for number in ids
        ]

        def write() -> None:
            made.primary.write(*[("MODIFY", cell) for cell in cells])

        def watched(*given: Any) -> Any:
            writing.append(threading.Thread(target=write))
            writing[-1].start()
            until(lambda: bool(made.server._writing._ahead))
            return snapshot(*given)

        def values() -> set[bytes]:
            asked = [p4.Entity(register_entry={"register_id": number}) for number in ids]
            return {one.register_entry.data.bitstring for one in other.read(*asked)}

        running.snapshot = watched  # type: ignore[assignment, method-assign]
        # It is read twice, because it is large: the write comes between, and then all of it is there.
        assert values() == {b"\x07"}
        running.snapshot = snapshot  # type: ignore[method-assign]
        for one in writing:
            one.join()
        assert values() == {b"\x07"}
        small = p4.Entity(register_entry={"register_id": ids[1]})
        cells = cells[1:]
        cells[0].register_entry.data.bitstring = b"\x05"
        running.snapshot = watched  # type: ignore[assignment, method-assign]
        assert {one.register_entry.data.bitstring for one in other.read(small)} == {b"\x07"}
        writing[-1].join()
        running.snapshot = snapshot  # type: ignore[method-assign]
        assert {one.register_entry.data.bitstring for one in other.read(small)} == {b"\x05"}


def test_large_answers_have_places(everything: programs.Program) -> None:
    """Three clients leave a large answer unread, of which two have places; small reads and the primary's are served."""
    with served(everything, stalled_s=2) as made, channel(made.server.address) as over:
        counters = p4.ReadRequest(device_id=1, entities=[{"counter_entry": {}}]).SerializeToString()
        reads = [call(over, "Read", "unary_stream")(ALL_CELLS) for _ in range(3)]
        until(lambda: sum(one.sending is not None for one in made.server._clients._calls) == 2)
        assert len(list(call(over, "Read", "unary_stream")(counters))) == 1
        assert len(made.primary.read(p4.Entity(register_entry={}))) >= 65_536
        made.is_well()
        # The third has its place when the others are cut off, and then is cut off too.
        until(lambda: made.server._clients.count == 0)
        assert reads


# Whose turn it is.


def test_turns_go_in_order_of_asking() -> None:
    turn, order = Turn(), list[int]()

    def take(number: int) -> None:
        with turn, turn:
            order.append(number)

    threads = []
    with turn:
        for number in range(5):
            threads.append(threading.Thread(target=take, args=(number,)))
            threads[-1].start()
            until(lambda: len(turn._waiting) == number + 1)  # noqa: B023
    # The thread that gave it back does not get before those who wait.
    with turn:
        order.append(99)
    for thread in threads:
        thread.join()
    assert order == [0, 1, 2, 3, 4, 99]


def test_turns_of_those_who_come_ahead() -> None:
    turn, order = Turn(), list[str]()

    def take(name: str) -> None:
        with turn.ahead(name.startswith("ahead")):
            order.append(name)

    threads = []
    with turn:
        for name in ("a", "ahead 1", "b", "ahead 2"):
            threads.append(threading.Thread(target=take, args=(name,)))
            threads[-1].start()
            until(lambda: len(turn._waiting) + len(turn._ahead) == len(threads))
    for thread in threads:
        thread.join()
    assert order == ["ahead 1", "ahead 2", "a", "b"]


def test_those_who_come_ahead_leave_turns_to_others() -> None:
    turn, order = Turn(), list[str]()

    def take(name: str) -> None:
        with turn.always_ahead(name != "other"), turn:
            order.append(name)

    threads = []
    with turn:
        for name in ("other", "other", *"abcdefg"):
            threads.append(threading.Thread(target=take, args=(name,)))
            threads[-1].start()
            until(lambda: len(turn._waiting) + len(turn._ahead) == len(threads))
    for thread in threads:
        thread.join()
    assert order == [*"abcd", "other", *"efg", "other"]


def test_refused_updates_leave_no_garbage(bench: Bench) -> None:
    """A garbage collection stops all threads, for longer the more it finds."""
    running = bench.server._config.current()
    cell = p4.RegisterEntry(register_id=bench.ids("cells"), data={"bitstring": b"\x05"})
    updates = [p4.Update(type=p4.Update.DELETE, entity=p4.Entity(register_entry=cell))] * 1000
    wrong = p4.ReadRequest(entities=[p4.Entity(table_entry={"table_id": 99})] * 1000).entities
    gc.collect()
    gc.disable()
    try:
        assert all(running.write(updates, lambda name: True))
        assert all(running.write_all(updates[:256], lambda name: True))
        assert all(running.snapshot(wrong, lambda name: True).errors)
        assert gc.collect() < 100
    finally:
        gc.enable()
